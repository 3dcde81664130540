"""Inputs of a model: columns of events that are watched as they arrive, without any label."""

from __future__ import annotations

import hashlib
import math
import os
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Self, TypeVar, cast

import numpy as np

from streammetrics.core.columns.batch import near
from streammetrics.core.columns.column import null_mask
from streammetrics.core.columns.conversion import Column, as_column
from streammetrics.core.columns.schema import reject
from streammetrics.core.errors import InvalidBatchError, StateFormatError, an
from streammetrics.core.feeding.plan import Plan
from streammetrics.core.loading import from_bytes, load
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.metric import Metric, made_once, read_together
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.table import Table
from streammetrics.core.results.values import Interval, Result
from streammetrics.core.state.arrays import nested, part, take_array
from streammetrics.live.events import is_missing
from streammetrics.live.possible.remembered import Called, Classes, ScoreCells
from streammetrics.live.rows import batch_of
from streammetrics.live.samples import (
    Method,
    chance_of,
    chance_of_bins,
    distance_of,
    metric_for,
    samples_of,
    statistic_in,
    together,
    values_in,
)
from streammetrics.metrics.distributions import Quantile
from streammetrics.metrics.drift import BinnedDistance
from streammetrics.statistics.probabilities import SampleHistogram
from streammetrics.statistics.tables import SampleTable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from streammetrics.core.arithmetic.histogram import SortedHistogram
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Kind as ColumnKind
    from streammetrics.core.feeding.states import State
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, ArrayLike, Arrays, Bools, Document, Ints, Json


CELLS = 1024  # maximum cells of a histogram, in a pane and of a reference
LEVEL = 0.999  # the share of windows in which chance stays below its bound
_BINS = 10  # of a PSI
_MOST = 10_000  # known categories
_KEYS = ("type", "range", "categories", "reference")
_RESERVED = ("id", "time", "kind")
MISSING = math.nan  # a missing number of a single event, compared by identity
_NO_CODE = -1  # of a missing category
_METHODS: dict[str, tuple[Method, ...]] = {
    "number": ("ks", "psi", "wasserstein"),
    "category": ("psi", "js"),
}


# --- metrics of inputs ---------------------------------------------------------------------------


class Distance(NamedTuple):
    """A distance from the reference.

    Attributes:
        value: The distance; ``nan`` without rows.
        low: The exact distance is certainly not below.
        high: The exact distance is certainly not above.
        chance: What two samples of these sizes from one population stay below, in 999 of 1,000.
    """

    value: float
    low: float
    high: float
    chance: float


_NOTHING = Distance(math.nan, math.nan, math.nan, math.nan)


class InputShare(Metric[float]):
    """The share of rows with a flag.

    Args:
        column: The column of flags, 0 or 1.
    """

    higher_is_better = False
    value_range = (0.0, 1.0)

    column: str

    def update(self, values: ArrayLike) -> Self:
        """Add the flags of rows."""
        return self.feed({self.column: values})

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the number of rows without and with the flag."""
        return (Called(of=self.column, threshold=0.5),)

    def readout(self, rows: Called) -> float:
        """Return the share."""
        flagged, total = self.trials(rows)
        return flagged / total if total else math.nan

    def trials(self, rows: Called) -> tuple[float, float]:
        """Return the number of rows with the flag, and of all rows."""
        return float(rows.rows.counts[1]), float(rows.n_rows)


S = TypeVar("S", ScoreCells, Classes)


class InputDistance(Metric[float], Generic[S]):
    """Base class of distances of a column from a reference.

    Args:
        column: The column.
        method: The distance.
        reference: The digest of the reference.
    """

    column: str
    method: Literal["ks", "wasserstein", "psi", "js"]
    reference: str

    _sample = cast("Any", None)  # the rows of the reference

    @classmethod
    def to(cls, column: str, method: Method, reference: str, sample: object) -> Self:
        """Return the distance from a reference."""
        found = cls(column=column, method=method, reference=reference)
        found._sample = sample
        return found

    def update(self, values: ArrayLike) -> Self:
        """Add rows."""
        return self.feed({self.column: values})

    @abstractmethod
    def certain(self, statistic: S) -> tuple[float, float, float]:
        """Return the distance of the rows in a statistic, with its certain bounds."""

    @abstractmethod
    def chance(self, statistic: S) -> float:
        """Return what the distance stays below by chance."""

    def distance(self, statistic: S) -> Distance:
        """Return the distance of the rows in a statistic; ``nan`` without rows."""
        if not statistic.n_rows:
            return _NOTHING
        return Distance(*self.certain(statistic), self.chance(statistic))

    def readout(self, statistic: S) -> float:
        """Return the distance; ``nan`` without rows."""
        return self.certain(statistic)[0] if statistic.n_rows else math.nan

    def interval(self, statistic: S) -> Interval[float]:
        """Return the certain bounds of the distance."""
        _, low, high = self.certain(statistic) if statistic.n_rows else _NOTHING[:3]
        return Interval(low, high)


class NumberDistance(InputDistance[ScoreCells]):
    """The distance of numbers from those of a reference."""

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the histogram of the numbers."""
        return (ScoreCells(of=self.column, max_bins=CELLS, nan_policy="omit"),)

    def is_exact(self, statistic: ScoreCells) -> bool:
        """Whether every cell of both samples holds a single value."""
        return not statistic.n_rows or self._samples(statistic).exact

    def certain(self, statistic: ScoreCells) -> tuple[float, float, float]:
        """Return the distance of the numbers, with its certain bounds."""
        return distance_of(self._samples(statistic), self.method, _BINS)

    def chance(self, statistic: ScoreCells) -> float:
        """Return what the distance stays below by chance."""
        return chance_of(self._samples(statistic), self.method, _BINS, LEVEL)

    def _samples(self, statistic: ScoreCells) -> SampleHistogram:
        return made_once(lambda cells: together(self._sample, cells.histogram), statistic)


class CategoryDistance(InputDistance[Classes]):
    """The distance of the shares of categories from those of a reference."""

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the count of each category."""
        return (Classes(of=self.column, nan_policy="omit"),)

    def certain(self, statistic: Classes) -> tuple[float, float, float]:
        """Return the distance of the shares of those categories that occur."""
        metric = metric_for(self.method, "categories")
        assert isinstance(metric, BinnedDistance)
        value = metric.of_amounts(*self._counts(statistic))
        return value, value, value

    def chance(self, statistic: Classes) -> float:
        """Return what the distance stays below by chance."""
        current, reference = self._counts(statistic)
        parts = 1 / int(current.sum()) + 1 / int(reference.sum())
        both = current + reference
        return chance_of_bins(self.method, both / both.sum(), parts, LEVEL)

    def _counts(self, statistic: Classes) -> tuple[Ints, Ints]:
        """Return the counts of those categories that occur, in the rows and in the reference."""
        reference: Ints = self._sample
        current = np.zeros_like(reference)
        current[[*map(int, statistic.counts)]] = [*statistic.counts.values()]
        some = (current > 0) | (reference > 0)
        return current[some], reference[some]


# --- declarations --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Input:
    """A declared input.

    Events hold a number as float64, where infinity means that it is missing, so that rows can be
    compared; and a category as its place among the known ones, after the last if it is not known.
    """

    name: str
    kind: str
    range: tuple[float, float] | None = None
    categories: tuple[str, ...] = ()
    # A histogram of numbers, or a count of each category, those not known last.
    reference: Any = field(default=None, compare=False)

    @property
    def column(self) -> str:
        """The name of its column in events, and in the states of panes."""
        return f"input/{self.name}"

    def described(self) -> Document:
        """Return the declaration as JSON values, with a digest of the reference."""
        return {
            "type": self.kind,
            "range": self.range and [*map(repr, self.range)],
            "categories": [*self.categories],
            "reference": self._digest,
        }

    @cached_property
    def _digest(self) -> str:
        parts = [array.tobytes() for _, array in sorted(self.arrays().items())]
        return hashlib.sha256(b"".join(parts)).hexdigest()[:16] if parts else ""

    def arrays(self) -> dict[str, Array]:
        """Return the reference as arrays; none without one."""
        if self.reference is None:
            return {}
        if self.kind == "category":
            return {"counts": self.reference}
        return samples_of(self.reference, CELLS).arrays()

    @classmethod
    def read(cls, name: str, told: Document, arrays: Arrays) -> Input:
        """Return the input that `described` and `arrays` describe.

        Raises:
            StateFormatError: They describe none.
        """
        if not isinstance(told, dict) or list(told) != [*_KEYS]:
            raise StateFormatError(f"the state does not say what the input {name!r} is")
        values: Document = {"type": told["type"]}
        if told["range"]:
            values["range"] = [*map(float, told["range"])]
        if told["categories"]:
            values["categories"] = [*told["categories"]]
        found = _input_of(name, values)
        if arrays and found.kind == "category":
            counts = take_array(arrays, "counts", "int64")
            if (
                len(counts) != len(found.categories) + 1
                or counts.min() < 0
                or counts[-1]
                or not counts.any()
            ):
                raise StateFormatError(f"the reference of {name!r} does not fit its categories")
            found = replace(found, reference=counts)
        elif arrays:
            (histogram,) = SampleHistogram(max_bins=CELLS).restored(arrays).histograms
            if not _is_reference(histogram):
                raise StateFormatError(f"the reference of {name!r} is not that of rows")
            found = replace(found, reference=histogram)
        if found._digest != told["reference"] or found.categories != tuple(told["categories"]):
            raise StateFormatError(f"the input {name!r} is not the one that was declared")
        return found

    # --- events ----------------------------------------------------------------------------------

    def column_of(self, values: object, n: int) -> Column:
        """Return n rows as events hold them; ``None`` if all are missing.

        Raises:
            InvalidBatchError: A value is none of the declared type.
        """
        if values is None:
            values = [None] * n
        column = as_column(values, self.name)
        if column.vocabulary is not None and _holds_lists(values):
            raise InvalidBatchError(
                f"{self.name} has a list in each row, and is declared as an input: pass one "
                f"{self.kind} a row",
                self.name,
            )
        if column.values.ndim > 1 or column.values.dtype.kind not in "biuf":
            raise InvalidBatchError(
                f"{self.name} has {column.values.dtype} of shape {column.values.shape}, and is "
                f"declared as an input: pass one {self.kind} a row",
                self.name,
            )
        if len(column) != n:
            raise InvalidBatchError(
                f"{self.name} has {len(column)} rows, the other columns have {n}", self.name
            )
        missing = null_mask(column)
        if column.values.dtype.kind == "f":
            missing = missing | np.isnan(column.values)
        made = self._codes if self.kind == "category" else self._numbers
        return Column(made(column, missing), None, True)

    def _numbers(self, column: Column, missing: Bools) -> Array:
        words = column.vocabulary
        if words is not None and not missing.all():
            texts = words[np.maximum(column.values, 0)]
            advice = f"inputs={{{self.name!r}: 'category'}} would declare text"
            reject(self.name, "is text, and declared as a number,", ~missing, texts, advice=advice)
        values = column.values.astype(np.float64)
        if (wrong := np.isinf(values) & ~missing).any():
            reject(self.name, "is infinite", wrong, values)
        values[missing] = np.inf
        return values + 0.0  # -0.0 becomes 0.0

    def _codes(self, column: Column, missing: Bools) -> Array:
        known = self._known
        if column.vocabulary is not None:
            words, places = column.vocabulary.tolist(), np.maximum(column.values, 0)
        else:
            values = np.where(missing, 0, column.values)
            if (wrong := np.rint(values) != values).any():
                what = "is not a category (text, an integer or a boolean)"
                reject(self.name, what, wrong, values)
            found, places = np.unique(values, return_inverse=True)
            words = [str(int(value)) for value in found.tolist()]
        table = np.array([known.get(word, len(known)) for word in words] or [_NO_CODE], np.int64)
        return np.where(missing, _NO_CODE, table[places])

    @cached_property
    def _known(self) -> dict[str, int]:
        """The code of each known category."""
        return {category: code for code, category in enumerate(self.categories)}

    def check(self, column: Column) -> None:
        """Raise `StateFormatError` unless a column of a state is one that events hold."""
        values = column.values
        if self.kind == "number":
            good = values.dtype == np.float64 and not np.isnan(values).any()
            good = good and not (values == -np.inf).any()
        else:
            good = values.dtype.kind == "i" and bool(
                np.all((values >= _NO_CODE) & (values <= len(self.categories)))
            )
        if column.vocabulary is not None or column.nulls is not None or values.ndim > 1 or not good:
            raise StateFormatError(f"the input {self.name!r} of waiting rows is not valid")

    # --- panes -----------------------------------------------------------------------------------

    @property
    def _flags(self) -> tuple[str, ...]:
        """What is counted of it."""
        if self.kind == "number":
            return ("nulls",) if self.range is None else ("nulls", "outside")
        return ("nulls", "unseen") if self.categories else ("nulls",)

    def metrics(self) -> Iterator[tuple[str, Metric[float]]]:
        """Yield its metrics by name."""
        for flag in self._flags:
            yield f"{self.name}/{flag}", InputShare(column=f"{self.column}/{flag}")
        if self.reference is not None:
            of = NumberDistance if self.kind == "number" else CategoryDistance
            digest = self._digest
            for method in _METHODS[self.kind]:
                made = of.to(self.column, method, digest, self.reference)
                yield f"{self.name}/{method}", made

    def batch_columns(self, column: Column) -> Iterator[tuple[str, Column]]:
        """Yield the columns that its metrics read."""
        values = column.values
        if self.kind == "number":
            missing = np.isinf(values)
            low, high = self.range or (-math.inf, math.inf)
            flags = {"outside": ~missing & ((values < low) | (values > high))}
            yield self.column, Column(np.where(missing, np.nan, values), None, True)
        else:
            missing = values == _NO_CODE
            flags = {"unseen": values == len(self.categories)}
            yield self.column, Column(values, missing if missing.any() else None, True)
        flags["nulls"] = missing
        for flag in self._flags:
            yield f"{self.column}/{flag}", Column(flags[flag].astype(np.float64), None, True)

    def summary(self, window: MetricSet) -> InputSummary:
        """Return what a window has of it."""
        flagged: dict[str, Any] = {
            flag: window[f"{self.name}/{flag}"]._read()[0] for flag in self._flags
        }
        counts = {flag: int(each.rows.counts[1]) for flag, each in flagged.items()}
        distances = {}
        for method in () if self.reference is None else _METHODS[self.kind]:
            metric: Any = window[f"{self.name}/{method}"]
            distances[str(method)] = metric.distance(*metric._read())
        outside, unseen = counts.get("outside"), counts.get("unseen")
        rows = int(flagged["nulls"].n_rows)
        return InputSummary(self.name, rows, counts["nulls"], outside, unseen, distances)


class InputSummary(NamedTuple):
    """The rows of a window by what their input is.

    Attributes:
        name: The name of the input.
        rows: The number of predictions and observations.
        nulls: How many of them lack it.
        outside: How many are outside its range; ``None`` without a range.
        unseen: How many have a category that is not known; ``None`` without known ones.
        distances: Each `Distance` from the reference, by method; empty without a reference.
    """

    name: str
    rows: int
    nulls: int
    outside: int | None
    unseen: int | None
    distances: dict[str, Distance]


class InputTable(tuple[InputSummary, ...], Result):
    """The inputs of a window, in the order of their declaration."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Document]:
        """Return each input as plain Python objects, by name."""
        found = {}
        for one in self:
            distances = {method: each._asdict() for method, each in one.distances.items()}
            found[one.name] = {**one._asdict(), "distances": distances}
            del found[one.name]["name"]
        return found

    def _table(self) -> Table:
        counts = ("rows", "nulls", "outside", "unseen")
        columns: dict[str, list[object]] = {n: [getattr(one, n) for one in self] for n in counts}
        for method in dict.fromkeys(method for one in self for method in one.distances):
            found = [one.distances.get(method, _NOTHING) for one in self]
            columns |= {method: [each.value for each in found]}
            columns |= {f"{method}_chance": [each.chance for each in found]}
        return Table({"input": [one.name for one in self]}, columns)

    def __repr__(self) -> str:
        return self._table().text()


class Inputs:
    """The declared inputs of a stream.

    Args:
        every: The inputs.
        read: The names of columns that metrics or slices read.

    Raises:
        ValueError: An input has a name that means something else.

    Attributes:
        only: The names of columns that are inputs alone.
        kinds: The kind of each of their columns in events.
        suite: The metrics that panes hold of them; ``None`` without inputs.
        plan: The plan of these metrics.
    """

    def __init__(self, every: Sequence[Input] = (), read: Collection[str] = ()) -> None:
        self.every = tuple(every)
        self.only = frozenset(one.name for one in every) - frozenset(read)
        self.kinds: dict[str, ColumnKind] = {
            one.column: "number" if one.kind == "number" else "label" for one in every
        }
        metrics = {name: metric for one in every for name, metric in one.metrics()}
        for name in {*self.kinds, *metrics} & {*read}:
            raise ValueError(f"inputs: {name!r} is also a column of events: rename it")
        self.suite = MetricSet(metrics) if metrics else None
        self.plan = Plan(()) if self.suite is None else self.suite._plan

    def __bool__(self) -> bool:
        return bool(self.every)

    def described(self) -> Document:
        """Return the declarations by name."""
        return {one.name: one.described() for one in self.every}

    def arrays(self) -> dict[str, Array]:
        """Return the references."""
        found: dict[str, Array] = {}
        for place, one in enumerate(self.every):
            found |= nested(str(place), one.arrays())
        return found

    @staticmethod
    def read(told: Json, arrays: Arrays) -> list[Input]:
        """Return the inputs of a state.

        Raises:
            StateFormatError: The state describes none.
        """
        if not isinstance(told, dict):
            raise StateFormatError("the state does not say which inputs it has")
        try:
            return [
                Input.read(name, each, part(arrays, str(place)))
                for place, (name, each) in enumerate(told.items())
            ]
        except (TypeError, ValueError) as error:
            raise StateFormatError(f"the state has invalid inputs: {error}") from error

    # --- events ----------------------------------------------------------------------------------

    def take(self, columns: Mapping[str, object], n: int) -> dict[str, Column]:
        """Return the inputs among columns of n rows, as events hold them.

        Raises:
            InvalidBatchError: A value is none of the declared type.
        """
        return {one.column: one.column_of(columns.get(one.name), n) for one in self.every}

    def with_nan(self, row: Mapping[str, object]) -> Mapping[str, object]:
        """Return the columns of one row, with NaN for each number that is missing."""
        if not self.every:
            return row
        found = dict(row)
        for one in self.every:
            value = found.get(one.name, 0.0)
            if one.kind == "number" and one.name in self.only and is_missing(value):
                found[one.name] = MISSING
        return found

    def rest(self, columns: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the columns that are not inputs alone."""
        if not self.every:
            return columns
        return {
            name: column
            for name, column in columns.items()
            if name not in self.only and name not in self.kinds
        }

    def batch(self, columns: Mapping[str, Column]) -> Batch:
        """Return the rows of events as the metrics read them."""
        assert self.suite is not None  # callers check that there are inputs
        made = [pair for one in self.every for pair in one.batch_columns(columns[one.column])]
        return batch_of(self.suite, dict(made), checked=True)

    def check(self, columns: Mapping[str, Column]) -> None:
        """Raise `StateFormatError` unless the columns of a state are those of the inputs."""
        if not self.kinds.keys() <= columns.keys():
            raise StateFormatError("rows of the state lack their inputs")
        for one in self.every:
            one.check(columns[one.column])

    # --- reads -----------------------------------------------------------------------------------

    def check_name(self, name: str) -> None:
        """Raise `ValueError` if an input lacks a declaration for a metric of this name."""
        declared, _, of = name.rpartition("/")
        for one in self.every:
            needs = {"outside": "range"} if one.kind == "number" else {"unseen": "categories"}
            needs |= dict.fromkeys(_METHODS[one.kind], "reference")
            if one.name == declared and of in needs:
                raise ValueError(
                    f"there is no metric {name!r}: the input {declared!r} has no {needs[of]}, "
                    "declare it in inputs"
                )

    def table(self, state: State) -> InputTable:
        """Return the inputs of a window at its state."""
        if self.suite is None:
            return InputTable()
        window = self.suite._at(state)
        with read_together():
            return InputTable(one.summary(window) for one in self.every)


def _holds_lists(texts: Any) -> bool:
    """Return whether a column of texts has one a row in a list; then all rows do."""
    if getattr(texts, "ndim", 1) > 1:
        return True
    first = next((each for each in texts if each is not None), "")
    return not isinstance(first, str) and hasattr(first, "__len__")


# --- what users declare --------------------------------------------------------------------------


def inputs_of(given: Mapping[str, object] | None) -> list[Input]:
    """Return the inputs that the user declares.

    Raises:
        TypeError: They are not declared in a mapping.
        ValueError: A declaration is not valid; the message names the input, and what to write.
    """
    if given is None:
        return []
    if not hasattr(given, "items"):
        raise TypeError(f"inputs={given!r}: expected names with types, {{'age': 'number'}}")
    return [_input_of(name, told) for name, told in given.items()]


def _input_of(name: str, told: Json) -> Input:
    if isinstance(told, Input):
        return told
    values = {"type": told} if isinstance(told, str) else told
    if not isinstance(name, str) or not name or name in _RESERVED:
        raise ValueError(f"inputs: {name!r} is not the name of an input")
    if "/" in name:
        raise ValueError(f"inputs: {name!r} has a /, which ends the name of an input: rename it")
    if not hasattr(values, "items"):
        raise ValueError(f"inputs: {name} is {told!r}; expected 'number', 'category' or a table")
    for key in values:
        if key not in _KEYS:
            raise ValueError(f"inputs: {name} has no key {key!r}{near(str(key), _KEYS)}")
    kind = values.get("type")
    if kind not in ("number", "category"):
        raise ValueError(f"inputs: {name} has the type {kind!r}; expected 'number' or 'category'")
    limits, categories = values.get("range"), values.get("categories")
    if limits is not None and kind == "category":
        raise ValueError(f"inputs: {name} is a category and has no range: leave it out")
    if categories is not None and kind == "number":
        raise ValueError(f"inputs: {name} is a number and has no categories: leave them out")
    try:
        reference = values.get("reference")
        if kind == "number":
            found = None if reference is None else _histogram(reference, name)
            return Input(name, kind, _range_of(limits), (), found)
        counts = {} if reference is None else _counts(reference, name)
        known = _known({*_categories_of(categories), *counts})
        each = np.array([*(counts.get(word, 0) for word in known), 0], np.int64)
        return Input(name, kind, None, tuple(known), None if reference is None else each)
    except (ValueError, OSError) as error:  # also of a reference that cannot be read
        raise ValueError(f"inputs: {name}: {error}") from error


def _range_of(told: Json) -> tuple[float, float] | None:
    if told is None:
        return None
    good = isinstance(told, list | tuple) and len(told) == 2
    good = good and all(type(end) in {int, float} and not math.isnan(end) for end in told)
    if not good or not told[0] <= told[1]:
        raise ValueError(f"range is {told!r}; expected the smallest and the largest number")
    return float(told[0]), float(told[1])


def _categories_of(told: Json) -> list[str]:
    if told is None:
        return []
    good = isinstance(told, list | tuple) and all(isinstance(x, str | int) for x in told)
    if not good or not told:
        raise ValueError(f"categories are {told!r}; expected a list of texts or integers")
    return [word if isinstance(word, str) else str(int(word)) for word in told]


def _known(categories: set[str]) -> list[str]:
    if len(categories) > _MOST:
        raise ValueError(f"{len(categories):,} categories: at most {_MOST:,} are known")
    return sorted(categories)


def _state_of(reference: object) -> Mergeable | None:
    """Return a reference that is a state, its bytes, or its path; ``None`` for a column."""
    if isinstance(reference, bytes):
        reference = from_bytes(reference)
    elif isinstance(reference, str | os.PathLike):
        reference = load(reference)
    elif not isinstance(reference, Mergeable):
        return None
    if not isinstance(reference, Mergeable):
        raise ValueError(f"the reference is {an(type(reference).__name__)}, no metric and no set")  # noqa: TRY004 - named with its input
    return reference


def _histogram(reference: object, name: str) -> SortedHistogram:
    """Return the rows of a reference of numbers, as those of the first of two samples."""
    state = _state_of(reference)
    if state is None:
        state = Quantile(q=0.5, nan_policy="omit").update(reference)
    of = name if isinstance(state, MetricSet) else None
    histogram = values_in(state, of).histogram
    if histogram is None:
        raise ValueError("the reference has seen no rows")
    if isinstance(statistic_in(state, of), SampleHistogram) and histogram.totals()[1]:
        raise ValueError("the reference has rows of a current sample: save one without")
    found = histogram.narrowed(CELLS).pooled(CELLS, 0)
    if not _is_reference(found):
        raise ValueError("the reference has weights: save one without")
    return found


def _is_reference(histogram: SortedHistogram) -> bool:
    """Return whether a histogram has rows without weights, all of the first of two samples."""
    n, current = histogram.totals()
    return isinstance(n, int) and n > 0 and current == 0


def _counts(reference: object, name: str) -> dict[str, int]:
    """Return how often a reference has each category."""
    state = _state_of(reference)
    if state is None:
        every = as_column(reference, name)
        missing = null_mask(every)
        words = every.values if every.vocabulary is None else every.vocabulary[every.values]
        if every.vocabulary is None and every.values.dtype.kind not in "biu":
            raise ValueError("the reference is no column of text, integers or booleans")
        found, counts = np.unique(words[~missing], return_counts=True)
        if not found.size:
            raise ValueError("the reference has seen no rows")
        return dict(zip(_texts(found), counts.tolist(), strict=True))
    for statistic in state._accumulator.flush().statistics:
        if isinstance(statistic, SampleTable):
            return _counts_in(statistic)
    raise ValueError(
        "the reference has no counts of categories: save a PopulationStability(bins='categories')"
    )


def _counts_in(table: SampleTable) -> dict[str, int]:
    cells = table.cells()
    if cells.row_labels.tolist() != [0]:
        raise ValueError("the reference has rows of a current sample, or none: save one without")
    if not isinstance(cells.amount, np.ndarray):
        raise ValueError("the reference has weights: save one without")  # noqa: TRY004 - as above
    labels = cells.column_labels[cells.columns]
    return dict(zip(_texts(labels), cells.amount.tolist(), strict=True))


def _texts(labels: Array) -> list[str]:
    return [x if isinstance(x, str) else str(int(x)) for x in labels.tolist()]
