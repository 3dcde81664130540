"""Events checked by the schemas of a suite, whether they have their label or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.batch import WEIGHT
from streammetrics.core.columns.conversion import Column, as_column
from streammetrics.core.columns.schema import joined_facts
from streammetrics.core.columns.scored import ScoredLabels
from streammetrics.core.errors import InvalidBatchError
from streammetrics.live.keys import SliceKeys
from streammetrics.live.rows import batch_of, columns_of
from streammetrics.live.truth import stand_ins, truth_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Facts, Rows, Schema
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.types import ArrayLike, ClassLabel

_GUESSES = {
    "number": Column(np.array([0.5]), None, True),
    "id": Column(np.array([0]), None, True),
}

_MANY = 1 << 16  # labels
_OF_LABELS = frozenset({"labels", "negative label", "columns of labels"})  # facts


class Checks:
    """What rows of a suite have to be, and what all of them have agreed on so far.

    Args:
        suite: The metrics.
        kinds: What each column holds.
        facts: Returns what is agreed on by all that is in the state, from wherever it came.
        default: The label that stands for those that never came.
        declared: Raises where columns hold what is not declared.
        apart: Whether labels are checked by themselves, and not beside a prediction that was good.
    """

    def __init__(
        self,
        suite: Mergeable,
        kinds: Mapping[str, str],
        facts: Callable[[], Sequence[Facts]],
        *,
        apart: bool = False,
        default: object = None,
        declared: Callable[[Mapping[str, Column]], None] | None = None,
    ) -> None:
        self._declared = declared
        self._suite, self._kinds, self._facts, self._apart = suite, kinds, facts, apart
        self._truth, self._default = truth_of(suite), default
        self._layout = suite._layout
        self._feeds = self._layout.start.feeds
        keys = SliceKeys(suite)
        self._keys, self._made = keys.kinds, keys.kinds.keys() | keys.titles
        self._example: dict[str, Column | list[object]] = {}  # a prediction that was good

    def observed(self, columns: Mapping[str, ArrayLike]) -> bool:
        """Check rows; return whether they may wait beside others.

        Raises:
            InvalidBatchError: They are refused, alone or beside what other rows were.
        """
        return self._agreed(*self._read(columns, _length(columns), columns.keys()))

    @property
    def facts(self) -> tuple[Facts, ...]:
        """What all rows that were checked have agreed on."""
        return tuple([feed.facts for feed in self._feeds])

    def predicted(self, columns: Mapping[str, ArrayLike]) -> bool:
        """Check rows without their label, which is stood in for, as `observed`."""
        n = _length(columns)
        first: InvalidBatchError | None = None
        others = {name: value for name, value in columns.items() if name not in self._made}
        for label in stand_ins(self._suite, others):
            try:
                stood_in = {**columns, self._truth: [label] * n}
                batch, rows = self._read(stood_in, n, columns.keys())
            except InvalidBatchError as error:
                first = first or error
                continue
            self._check_default(np.shape(label))
            waits = self._agreed(batch, tuple(map(self._without_label, self._layout.schemas, rows)))
            if n and not self._apart:
                self._example = {
                    name: _first(value) if name in self._keys else as_column(value, name)[:1]
                    for name, value in columns.items()
                }
            return waits
        assert first is not None
        try:
            raise first
        finally:
            del first  # which would hold itself, and these rows, by this call in its traceback

    def _check_default(self, several: tuple[int, ...]) -> None:
        if several and self._default is not None:
            raise InvalidBatchError(
                f"labels have {several[0]} values a row, and default_label={self._default!r} is "
                "one: leave it away",
                self._truth,
            )

    def _read(
        self, columns: Mapping[str, object], n: int, given: Set[str]
    ) -> tuple[Batch, tuple[Rows, ...]]:
        """Read so many rows, of which some columns are given, and others stand in for theirs."""
        batch = batch_of(self._suite, columns)
        if self._declared is not None:
            every = columns_of(batch)
            self._declared(
                {name: every[name] for name in every if name in given or name in self._made}
            )
        rows = self._layout.read(batch)
        if batch.n_rows != n:  # labels (B, T) would be rows of their own
            raise InvalidBatchError(
                f"{self._truth} has {batch.n_rows / n:g} values a row: pass one label a row, each "
                "with its time",
                self._truth,
            )
        return batch, rows

    def labelled(self, columns: Mapping[str, object]) -> bool:
        """Check labels without what was predicted, as `observed`."""
        (labels,) = columns.values()
        label = as_column(labels, self._truth)
        several = label.values.shape[1:]  # values of a row
        self._check_default(several)
        example: dict[str, Any] = self._example or {
            name: [None] if name in self._keys else _guess(kind, label, several)
            for name, kind in self._kinds.items()
            if name not in {self._truth, WEIGHT}
        }
        same = np.zeros(len(label), np.intp)
        repeated = {
            name: value * len(same) if isinstance(value, list) else value[same]
            for name, value in example.items()
        }
        try:
            rows: Sequence[Rows]
            batch, rows = self._read({**repeated, **columns}, len(label), columns.keys())
        except InvalidBatchError as error:
            if several or self._example:
                raise
            if error.column == self._truth and not self._may_be_classes(label):
                raise
            return False  # of what was guessed: it is seen when the prediction is there
        if not self._example:
            rows = [_with_facts(read, self._of_labels) for read in rows]
        return self._agreed(batch, rows)

    def _may_be_classes(self, label: Column) -> bool:
        """Whether labels refused beside one score a row go with predictions (n, K)."""
        fields = [f for s in self._layout.schemas for f in s.fields if isinstance(f, ScoredLabels)]
        return bool(fields) and all(field.may_be_classes(label) for field in fields)

    def _agreed(self, batch: Batch, rows: Sequence[Rows]) -> bool:
        """Let rows agree with all others; return whether they may wait beside them."""
        seen = zip(self._feeds, self._facts(), strict=True)  # also elsewhere, and before
        feeds = tuple(
            [feed._replace(facts=joined_facts(feed.facts, facts)) for feed, facts in seen]
        )
        self._feeds = self._layout.agreed(feeds, rows)
        whole = all(read.n == batch.n_rows and not read.omitted for read in rows)
        return whole and not self._layout.can_refuse

    @property
    def _of_labels(self) -> frozenset[str]:
        """The names of facts that labels tell."""
        return _OF_LABELS | {f"labels of {self._truth}"}

    def _without_label(self, schema: Schema, rows: Rows) -> Rows:
        """Return rows without what they tell of a label that only stands in for theirs."""
        dropped = self._of_labels
        inside = [kind for name, kind in schema.kinds.items() if name not in self._made]
        if inside.count("label") > 1:  # the others are of its kind
            dropped = dropped - {"labels"}
        return _with_facts(rows, rows.facts.keys() - dropped)


class Told:
    """What rows were that are good: of numbers how far they go, of labels which there were.

    Rows that are nothing else tell nothing that is not known.
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self._kinds = kinds
        self._ends: dict[str, tuple[float, float]] = {}
        self._labels: dict[str, set[ClassLabel]] = {}

    def covers(self, columns: Mapping[str, Column]) -> bool:
        """Whether rows are nothing else than those before."""
        return all(self._covers(name, column) for name, column in columns.items())

    def _covers(self, name: str, column: Column) -> bool:
        if not _is_plain(column):
            return False
        if self._kinds.get(name, "number") == "number":
            low, high = self._ends.get(name, (1.0, 0.0))
            return bool(low <= column.values.min() and column.values.max() <= high)
        return bool(self._labels.get(name)) and _labels(column) <= self._labels[name]

    def learn(self, columns: Mapping[str, Column]) -> None:
        """Learn from rows that were good."""
        for name, column in columns.items():
            if not _is_plain(column):
                continue
            if self._kinds.get(name, "number") == "number":
                low, high = column.values.min(), column.values.max()
                least, most = self._ends.get(name, (low, high))
                self._ends[name] = min(low, least), max(high, most)
            else:
                labels = self._labels.setdefault(name, set())
                labels |= _labels(column)
                if len(labels) > _MANY:  # are read each time
                    labels.clear()


def _length(columns: Mapping[str, Any]) -> int:
    """Return how many rows there are."""
    return next((len(column) for column in columns.values() if column is not None), 0)


def _guess(kind: str, label: Column, several: tuple[int, ...]) -> Column:
    """Return what a prediction may have been, of as many values as its label has."""
    guess = _GUESSES.get(kind, label[:1])
    if kind == "number" and several:
        return Column(np.full((1, *several), 0.5), None, True)
    return guess


def _is_plain(column: Column) -> bool:
    return column.values.ndim == 1 and column.nulls is None and len(column) > 0


def _labels(column: Column) -> set[ClassLabel]:
    words = column.vocabulary
    return set((np.unique(column.values) if words is None else words).tolist())


def representative_rows(
    columns: Mapping[str, Column], kinds: Mapping[str, str]
) -> Mapping[str, Column]:
    """Return rows that stand for all, which were checked alone: every label is among theirs.

    What numbers may be is an interval, so that the smallest and the largest are enough of them.
    """
    rows = [np.zeros(1, np.intp)]
    for name, column in columns.items():
        values = column.values
        if not _is_plain(column):
            return columns
        if kinds.get(name, "number") == "number":
            rows.append(np.array([values.argmin(), values.argmax()]))
        else:
            rows.append(np.unique(values, return_index=True)[1])
    some = np.unique(np.concatenate(rows))
    return {name: column[some] for name, column in columns.items()}


def _with_facts(rows: Rows, names: Set[str]) -> Rows:
    """Return rows with only some of their facts."""
    return rows._replace(facts={name: f for name, f in rows.facts.items() if name in names})


def _first(keys: Any) -> list[object]:
    """Return the first of a column of keys, as Python has it."""
    first = keys[:1]
    for name in ("to_pylist", "to_list", "tolist"):  # of Arrow, of pandas and polars, of NumPy
        if hasattr(first, name):
            return list(getattr(first, name)())
    return list(first)
