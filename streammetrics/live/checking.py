"""Events checked by the schemas of a suite, whether they have their label or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.batch import WEIGHT
from streammetrics.core.columns.conversion import Column, as_column
from streammetrics.core.errors import InvalidBatchError
from streammetrics.live.keys import Keys
from streammetrics.live.rows import batch_of
from streammetrics.live.truth import stand_ins, truth_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Facts, Rows
    from streammetrics.core.mergeable import Mergeable

_GUESSES = {
    "number": Column(np.array([0.5]), None, True),
    "id": Column(np.array([0]), None, True),
}


class Checks:
    """What rows of a suite have to be, and what all of them have agreed on so far.

    Args:
        suite: The metrics.
        kinds: What each column holds.
        facts: Returns what is agreed on by all that is in the state, from wherever it came.
    """

    def __init__(
        self, suite: Mergeable, kinds: Mapping[str, str], facts: Callable[[], Sequence[Facts]]
    ) -> None:
        self._suite, self._kinds, self._facts = suite, kinds, facts
        self._truth = truth_of(suite)
        self._feeds = suite._layout.start.feeds
        self._keys = Keys(suite).kinds
        self._example: dict[str, Column | list[Any]] = {}  # a prediction that was good

    def observed(self, columns: Mapping[str, Any]) -> bool:
        """Check rows; return whether they may wait beside others.

        Raises:
            InvalidBatchError: They are refused, alone or beside what other rows were.
        """
        return self._checked(batch_of(self._suite, columns), agree=True)

    def predicted(self, columns: Mapping[str, Any]) -> bool:
        """Check rows without their label, which is stood in for, as `observed`."""
        n = len(next(iter(columns.values()), ()))
        first: InvalidBatchError | None = None
        others = {name: value for name, value in columns.items() if name not in self._keys}
        for label in stand_ins(self._suite, others):
            try:
                batch = batch_of(self._suite, {**columns, self._truth: [label] * n})
                waits = self._checked(batch, agree=False)
            except InvalidBatchError as error:
                first = first or error
                continue
            if n:
                self._example = {
                    name: _first(value) if name in self._keys else as_column(value, name)[:1]
                    for name, value in columns.items()
                }
            return waits
        assert first is not None
        raise first

    def labelled(self, columns: Mapping[str, Any]) -> bool:
        """Check labels without what was predicted, as `observed`."""
        (labels,) = columns.values()
        label = as_column(labels, self._truth)
        example: dict[str, Any] = self._example or {
            name: [None] if name in self._keys else _GUESSES.get(kind, label[:1])
            for name, kind in self._kinds.items()
            if name not in {self._truth, WEIGHT}
        }
        same = np.zeros(len(label), np.intp)
        repeated = {
            name: value * len(same) if isinstance(value, list) else value[same]
            for name, value in example.items()
        }
        try:
            return self._checked(batch_of(self._suite, {**repeated, **columns}), agree=True)
        except InvalidBatchError as error:
            if not self._example and error.column != self._truth:
                return False  # of what was guessed: it is seen when the prediction is there
            raise

    def _checked(self, batch: Batch, *, agree: bool) -> bool:
        layout = self._suite._layout
        rows: Sequence[Rows] = layout.read(batch)
        if agree:
            seen = zip(self._feeds, self._facts(), strict=True)  # also elsewhere, and before
            feeds = tuple([feed.grown(facts, 0, 0) for feed, facts in seen])
            self._feeds = layout.agreed(feeds, rows)
        whole = all(read.n == batch.n_rows and not read.omitted for read in rows)
        return whole and not layout.can_refuse


def _first(keys: Any) -> list[Any]:
    """Return the first of a column of keys, as Python has it."""
    first = keys[:1]
    for name in ("to_pylist", "to_list", "tolist"):  # of Arrow, of pandas and polars, of NumPy
        if hasattr(first, name):
            return list(getattr(first, name)())
    return list(first)
