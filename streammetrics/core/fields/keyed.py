"""Sets of labels, tables by label and what these hold, and fields of keys for authors.

What an author's statistic assigns to its attribute is `Any`: pyright takes the assignment for
another declaration of the field, which would otherwise lose its methods.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.column import Column, unique
from streammetrics.core.counting import Union, extent, spread
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.field import StateField, not_among
from streammetrics.core.fields.weights import WeightedCount, check_rows, countable
from streammetrics.core.state.arrays import nested, part, take_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.configured import Configured
    from streammetrics.core.types import Array, Arrays, Bools, Floats, Places

    Labelled = tuple[Array, Places]  # sorted labels, and places among them

_NEAR = 1 << 16  # integers this near to each other are placed by subtraction


def coded_labels(column: Column) -> tuple[Array, Array]:
    """Return each row's place among labels, in order, some of which may not occur.

    Places are integers of any width.
    """
    values = column.values
    if values.dtype == np.bool_:
        values = values.view(np.uint8)  # booleans as places would be a mask
    if column.vocabulary is not None:
        return values, column.vocabulary
    if not values.size:
        return values, np.empty(0, np.int64)
    low, high = map(int, extent(values))
    if high - low >= max(_NEAR, values.size):
        labels, places = unique(values.astype(np.int64, copy=False))
        return places, labels
    if not 0 <= low <= high - low:
        # In the values' own type the difference could overflow.
        return values.astype(np.int64) - low, np.arange(low, high + 1, dtype=np.int64)
    return values, np.arange(high + 1)


def used_labels(labels: Array, places: Array) -> Labelled:
    """Return the labels that occur among the places, and the places among them."""
    seen = np.zeros(len(labels), np.bool_)
    seen[places] = True
    if seen.all():
        return labels, places.astype(np.int64, copy=False)
    return labels[seen], (np.cumsum(seen) - 1)[places]


def packed_labels(labels: Array) -> Array:
    """Return labels as an array of a state: integers as they are, strings as JSON in bytes."""
    if labels.dtype.kind != "U":
        return labels
    text = json.dumps(labels.tolist(), ensure_ascii=False, separators=(",", ":"))
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


def unpacked_labels(arrays: Arrays, name: str) -> Array:
    """Return the labels that `packed_labels` made an array of."""
    if name in arrays and arrays[name].dtype == np.uint8:
        packed = take_array(arrays, name, "uint8").tobytes()
        try:
            texts = json.loads(packed.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError) as error:
            raise StateFormatError(f"labels of a state cannot be read: {error}") from None
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise StateFormatError("labels of a state are neither integers nor text")
        return np.array(texts, dtype=np.str_)
    return take_array(arrays, name, "int64")


# ---- columns of tables by label ----


C = TypeVar("C")


class Entries(ABC, Generic[C]):
    """A column of a table: what it holds for each of its labels, a commutative monoid."""

    @abstractmethod
    def none(self) -> C:
        """Return the entries of no labels."""

    @abstractmethod
    def plus(self, mine: C, other: C, union: Union) -> C:
        """Return the entries of both at the places of a union."""

    @abstractmethod
    def arrays(self, name: str, value: C) -> dict[str, Array]:
        """Return the arrays, all of them named for the column."""

    @abstractmethod
    def taken(self, name: str, arrays: Arrays, size: int) -> C:
        """Return as many entries from the arrays of all columns, or raise `ValueError`."""

    @abstractmethod
    def at(self, value: C, rows: Places) -> C:
        """Return some of the entries."""

    def minus(self, value: C, other: C, places: Places | None) -> C:
        """Return the entries less `other`, which stands at some of their places."""
        raise IncompatibleMetricsError(
            "a minimum or maximum cannot be computed without some of its rows"
        )

    def scaled(self, value: C, weight: float) -> C:
        """Return the entries of rows of so many times the weight."""
        return value

    def used(self, value: C) -> Bools | None:
        """Return which labels have rows; ``None`` where these entries cannot tell."""
        return None


class Weights(Entries[WeightedCount]):
    """How much there is of each label, which is more than nothing.

    With `whole` rows have no weights: their counts are an array of their own, and there are at most
    2**61 of them.
    """

    def __init__(self, *, whole: bool = False) -> None:
        self._whole = whole

    def none(self) -> WeightedCount:
        """Return no amounts."""
        return WeightedCount.of_counts(np.empty(0, np.int64))

    def plus(self, mine: WeightedCount, other: WeightedCount, union: Union) -> WeightedCount:
        """Return the sums."""
        if self._whole:
            check_rows(mine.counts, other.counts)
        size = len(union.keys)
        return mine.spread(union.mine, size) + other.spread(union.theirs, size)

    def arrays(self, name: str, value: WeightedCount) -> dict[str, Array]:
        """Return counts, or digits of exact sums."""
        return {name: value.counts} if self._whole else nested(name, value.arrays())

    def taken(self, name: str, arrays: Arrays, size: int) -> WeightedCount:
        """Return amounts, all of them positive."""
        if self._whole:
            counts = take_array(arrays, name, "int64")
            if not countable(counts):
                raise StateFormatError(f"{name} are more rows than are counted")
            value = WeightedCount.of_counts(counts)
        else:
            value = WeightedCount.of_exact(ExactSum.from_arrays((size,), part(arrays, name)))
        if value.counts.shape != (size,) or not (value.signs() > 0).all():
            raise StateFormatError(f"{name} of labels are not positive, one for each")
        return value

    def at(self, value: WeightedCount, rows: Places) -> WeightedCount:
        """Return some of the amounts."""
        return value.at(rows)

    def minus(
        self, value: WeightedCount, other: WeightedCount, places: Places | None
    ) -> WeightedCount:
        """Return the differences, none of them negative."""
        return value - other.spread(places, len(value.counts))

    def scaled(self, value: WeightedCount, weight: float) -> WeightedCount:
        """Return the products."""
        return value.scaled(weight)

    def used(self, value: WeightedCount) -> Bools:
        """Return where there is something."""
        used: Bools = value.signs() != 0
        return used


class Sums(Entries[ExactSum]):
    """Exact sums (labels, width), as wide as the rows turn out to be."""

    def none(self) -> ExactSum:
        """Return no sums."""
        return ExactSum.zero((0, 0))

    def plus(self, mine: ExactSum, other: ExactSum, union: Union) -> ExactSum:
        """Return the sums of both."""
        if mine.shape[1:] != other.shape[1:]:
            raise IncompatibleMetricsError(
                f"sums of {other.shape[1]} columns cannot join those of {mine.shape[1]}"
            )
        size = len(union.keys)
        return _regrouped(mine, union.mine, size) + _regrouped(other, union.theirs, size)

    def arrays(self, name: str, value: ExactSum) -> dict[str, Array]:
        """Return the digits."""
        return nested(name, value.arrays())

    def taken(self, name: str, arrays: Arrays, size: int) -> ExactSum:
        """Return canonical sums."""
        parts = part(arrays, name)
        rows = len(parts["digits"]) if "digits" in parts and parts["digits"].ndim else 0
        return ExactSum.from_arrays((size, rows // size if size else 0), parts)

    def at(self, value: ExactSum, rows: Places) -> ExactSum:
        """Return some of the sums."""
        return value[rows]

    def minus(self, value: ExactSum, other: ExactSum, places: Places | None) -> ExactSum:
        """Return the differences."""
        return value - _regrouped(other, places, value.shape[0])

    def scaled(self, value: ExactSum, weight: float) -> ExactSum:
        """Return the products."""
        return value.times(weight)


class KeyedExtremes(Entries["Floats"]):
    """The smallest number of each column (labels, width), or the `largest`; all are finite."""

    def __init__(self, *, largest: bool = False) -> None:
        self._better = np.maximum if largest else np.minimum
        self._worst = -np.inf if largest else np.inf

    def none(self) -> Floats:
        """Return no numbers."""
        return np.empty((0, 0))

    def plus(self, mine: Floats, other: Floats, union: Union) -> Floats:
        """Return the extremes of both."""
        if mine.shape[1:] != other.shape[1:]:
            raise IncompatibleMetricsError(
                f"{other.shape[1]} columns cannot join {mine.shape[1]} columns"
            )
        size = len(union.keys)
        better: Floats = self._better(
            spread(mine, union.mine, size, self._worst),
            spread(other, union.theirs, size, self._worst),
        )
        return better

    def arrays(self, name: str, value: Floats) -> dict[str, Array]:
        """Return the numbers."""
        return {name: value}

    def taken(self, name: str, arrays: Arrays, size: int) -> Floats:
        """Return the numbers, each as it is written."""
        values = take_array(arrays, name, "float64", 2)
        if len(values) != size:
            raise StateFormatError(f"{name} of {len(values)} labels, not of {size}")
        if not np.isfinite(values).all() or np.signbit(values[values == 0.0]).any():
            raise StateFormatError(f"{name} of labels are not finite, or -0.0")
        return values

    def at(self, value: Floats, rows: Places) -> Floats:
        """Return some of the numbers."""
        return value[rows]


def _regrouped(sums: ExactSum, places: Places | None, size: int) -> ExactSum:
    return sums if places is None else sums.regroup(places, size)


class LabelledEntries(NamedTuple):
    """Labels, distinct and ascending, and for each what its columns hold."""

    labels: Array
    columns: dict[str, Any]


class LabelTable(StateField[LabelledEntries]):
    """A table of the labels that occur; the columns are given by name, and make its arrays.

    One of them is `Weights`, which says of a label that rows are taken out of whether any is left.
    """

    def __init__(self, *, inline: bool = False, **columns: Entries[Any]) -> None:
        super().__init__(inline=inline)
        self._columns = columns

    def empty(self, of: Configured) -> LabelledEntries:
        """Return no labels."""
        columns = {name: kind.none() for name, kind in self._columns.items()}
        return LabelledEntries(np.empty(0, np.int64), columns)

    def plus(self, mine: LabelledEntries, other: LabelledEntries) -> LabelledEntries:
        """Return the entries of both for all labels."""
        if not len(mine.labels) or not len(other.labels):
            return mine if len(mine.labels) else other
        return self.united(mine, other)[0]

    def united(
        self, mine: LabelledEntries, other: LabelledEntries
    ) -> tuple[LabelledEntries, Union]:
        """Return the same of tables that are not empty, and how their labels were united."""
        union = Union.of(mine.labels, other.labels)
        columns = {
            name: kind.plus(mine.columns[name], other.columns[name], union)
            for name, kind in self._columns.items()
        }
        return LabelledEntries(union.keys, columns), union

    def arrays(self, value: LabelledEntries) -> dict[str, Array]:
        """Return the labels and the arrays of all columns."""
        arrays = {"labels": packed_labels(value.labels)}
        for name, kind in self._columns.items():
            arrays |= kind.arrays(name, value.columns[name])
        return arrays

    def taken(self, arrays: Arrays, of: Configured) -> LabelledEntries:
        """Return the table: labels in order, and as many entries in each column."""
        labels = unpacked_labels(arrays, "labels")
        if not (labels[1:] > labels[:-1]).all():
            raise StateFormatError("the labels of a table are out of order")
        known = {"labels"}
        columns = {}
        for name, kind in self._columns.items():
            columns[name] = kind.taken(name, arrays, len(labels))
            known |= kind.arrays(name, columns[name]).keys()
        if arrays.keys() != known or not (len(labels) or labels.dtype == np.int64):
            raise StateFormatError(f"{sorted(arrays)} are not the arrays of a table by labels")
        return LabelledEntries(labels, columns)

    def scaled(self, value: LabelledEntries, weight: float) -> LabelledEntries:
        """Return the table of rows of so many times the weight."""
        kinds = self._columns
        return value._replace(
            columns={name: kinds[name].scaled(held, weight) for name, held in value.columns.items()}
        )

    def nbytes(self, value: LabelledEntries) -> int:
        """Bytes held now."""
        held: int = sum(entries.nbytes for entries in value.columns.values())
        return value.labels.nbytes + held

    def minus(self, value: LabelledEntries, other: LabelledEntries) -> LabelledEntries:
        """Return the table without rows, and without labels that have none left."""
        if not len(other.labels):
            return value
        union = Union.of(value.labels, other.labels)
        if len(union.keys) != len(value.labels):
            raise not_among("some labels are not here")
        left, kept = {}, np.zeros(len(value.labels), np.bool_)
        for name, kind in self._columns.items():
            left[name] = kind.minus(value.columns[name], other.columns[name], union.theirs)
            used = kind.used(left[name])
            kept = kept if used is None else kept | used
        if kept.all():
            return LabelledEntries(value.labels, left)
        rows = np.flatnonzero(kept)
        for name, kind in self._columns.items():
            gone = kind.at(left[name], np.flatnonzero(~kept))
            if isinstance(gone, ExactSum) and gone.digits.any():
                raise not_among(f"{name} are left of labels without rows")
            left[name] = kind.at(left[name], rows)
        if not rows.size:
            return LabelledEntries(
                np.empty(0, np.int64), {name: k.none() for name, k in self._columns.items()}
            )
        return LabelledEntries(value.labels[rows], left)


# ---- fields for authors ----


def _keys(keys: object) -> tuple[Array, Places]:
    """Return the distinct keys of a column, integers or text, and the place of each row's key."""
    if isinstance(keys, Column):
        codes, labels = coded_labels(keys)
        return used_labels(labels, codes)
    found, places = np.unique(np.asarray(keys), return_inverse=True)
    return (found if found.dtype.kind == "U" else found.astype(np.int64)), places


class KeyCounts(LabelTable):
    """How many rows each key has, or what they weigh; keys are integers or text."""

    def __init__(self, *, inline: bool = False) -> None:
        super().__init__(inline=inline, amount=Weights())

    def added(self, value: LabelledEntries, keys: object, weight: Floats | None = None) -> Any:
        """Return the counts with those of more rows: an array of keys, or a column of `Labels`."""
        labels, places = _keys(keys)
        amount = WeightedCount.at_places(places, len(labels), weight)
        return self.plus(value, LabelledEntries(labels, {"amount": amount}))

    def counts(self, value: LabelledEntries) -> dict[Any, float]:
        """Return the count of each key, in the order of the keys."""
        amounts = np.atleast_1d(value.columns["amount"].exact().to_float())
        return dict(zip(value.labels.tolist(), amounts.tolist(), strict=True))


class RankedIds(NamedTuple):
    """Ids with their values, the largest value first and equal ones by id."""

    ids: Array
    values: Floats


class Largest(StateField[RankedIds]):
    """The `k` ids with the largest values; an id that occurs several times has its largest."""

    def __init__(self, k: int, *, inline: bool = False) -> None:
        super().__init__(inline=inline)
        self._k = k

    def empty(self, of: Configured) -> RankedIds:
        """Return no ids."""
        return RankedIds(np.empty(0, np.int64), np.empty(0))

    def added(self, value: RankedIds, ids: object, values: Floats) -> Any:
        """Return the largest of these and of more rows: ids, and a finite number for each."""
        labels, places = _keys(ids)
        return self.plus(value, self._first(labels[places], np.asarray(values, np.float64)))

    def plus(self, mine: RankedIds, other: RankedIds) -> RankedIds:
        """Return the largest of both."""
        if not len(mine.ids) or not len(other.ids):
            return mine if len(mine.ids) else other
        if mine.ids.dtype.kind != other.ids.dtype.kind:
            raise IncompatibleMetricsError(f"{self.name}: text cannot join integers as ids")
        pairs = zip(mine, other, strict=True)
        return self._first(*map(np.concatenate, pairs))

    def _first(self, ids: Array, values: Floats) -> RankedIds:
        values = values + 0.0  # -0.0 is 0.0
        order = np.lexsort((ids, -values))
        _, first = np.unique(ids[order], return_index=True)
        kept = order[np.sort(first)[: self._k]]
        return RankedIds(ids[kept], values[kept])

    def arrays(self, value: RankedIds) -> dict[str, Array]:
        """Return the ids and the values."""
        ids = value.ids
        width = max(map(len, ids.tolist()), default=1) if ids.dtype.kind == "U" else 0
        return {"ids": packed_labels(ids.astype(f"U{width}") if width else ids), "values": value[1]}

    def taken(self, arrays: Arrays, of: Configured) -> RankedIds:
        """Return ids and values that are in order and not too many."""
        ids, values = unpacked_labels(arrays, "ids"), take_array(arrays, "values", "float64")
        if len(arrays) != 2 or len(ids) != len(values) or not np.isfinite(values).all():
            raise StateFormatError("they are not ids with a finite value for each")
        again = self._first(ids, values)
        same = len(again.ids) == len(ids) and bool((again.ids == ids).all())
        if not same or again.values.tobytes() != values.tobytes():
            raise StateFormatError(f"they are not the {self._k} largest values, in order")
        return again


class HashSketch(StateField["NDArray[np.uint64]"]):
    """The `k` smallest distinct hashes of 64 bits: how many different things there were."""

    def __init__(self, k: int, *, inline: bool = False) -> None:
        super().__init__(inline=inline)
        self._k = k

    def empty(self, of: Configured) -> NDArray[np.uint64]:
        """Return no hashes."""
        return np.empty(0, np.uint64)

    def plus(self, mine: NDArray[np.uint64], other: NDArray[np.uint64]) -> Any:
        """Return the smallest hashes of both."""
        return np.union1d(mine, other)[: self._k]

    def arrays(self, value: NDArray[np.uint64]) -> dict[str, Array]:
        """Return the hashes, ascending."""
        return {"": value}

    def taken(self, arrays: Arrays, of: Configured) -> NDArray[np.uint64]:
        """Return hashes that are distinct, ascending and not too many."""
        hashes = self.the_array(arrays, "uint64")
        if len(hashes) > self._k or not (hashes[1:] > hashes[:-1]).all():
            raise StateFormatError(f"they are not the {self._k} smallest hashes, ascending")
        return hashes.copy()

    def scaled(self, value: NDArray[np.uint64], weight: float) -> NDArray[np.uint64]:
        """Return the same hashes."""
        return value

    def distinct(self, value: NDArray[np.uint64]) -> float:
        """Return the number of distinct hashes: exact below `k`, else estimated."""
        if len(value) < self._k:
            return float(len(value))
        return (self._k - 1) / (float(value[-1]) + 1.0) * 2.0**64
