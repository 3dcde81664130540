"""Several labels a row in: indicators (n, L) of them, or sets, beside such or beside scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.column import either
from streammetrics.core.columns.schema import Field, reject
from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.columns.schema import Finished, Kind, Taken
    from streammetrics.core.types import Array, Bools, ClassLabel, Columns, Places

    Marks = NDArray[np.uint8]

_ONE_EACH = "for one label a row leave multilabel=True away"


@dataclass(frozen=True)
class Indicators(Field):
    """Which labels each row has, (n, L) of 0 and 1, and which it is said to have, or their scores.

    With `labels` there are so many, and either side may be sets of them. Scores are any numbers,
    with `probabilities` such.
    """

    second: str = "y_pred"
    scores: bool = False
    labels: tuple[ClassLabel, ...] | None = None
    width: int = 0  # how many labels there are, 0 where it is not known
    probabilities: bool = False

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]  # read-only where the base only declares
        """The truth and what is judged."""
        return ("y_true", self.second)

    @property
    def kinds(self) -> dict[str, Kind]:
        """Labels, and labels or numbers."""
        return {"y_true": "label", self.second: "number" if self.scores else "label"}

    @property
    def sets(self) -> tuple[str, ...]:  # type: ignore[override]  # read-only where the base only declares
        """The columns that may hold sets of labels."""
        return self.names[:1] if self.scores else self.names

    def take(self, batch: Batch) -> Taken:
        """Return the matrices, and where a row lacks a value."""
        taken, missing = [], None
        for name in self.names:
            column = batch.column(name)
            values, absent = self._matrix(batch, name, column)
            missing = either(missing, absent)
            taken.append(values)
        if taken[0].shape != taken[1].shape and any(values.size for values in taken):
            title, other = map(batch.title, self.names)
            raise InvalidBatchError(
                f"{other} has shape {taken[1].shape}, and {title} has {taken[0].shape}: both have "
                f"a column for each label; {_ONE_EACH}"
            )
        return tuple(taken), missing

    def _matrix(self, batch: Batch, name: str, column: Column) -> tuple[Any, Any]:
        title = batch.title(name)
        if column.vocabulary is not None:
            raise InvalidBatchError(
                f"{title} holds text; pass indicators (n, L), or sets of labels and labels=[...] "
                f"that says which there are; {_ONE_EACH}",
                title,
            )
        if self.scores and name == self.second:
            values = batch.numbers(name)
            low, _ = batch.extent(name)
            missing = None if low == low else np.isnan(values)  # noqa: PLR0124 - the test for nan
        else:
            values, missing = column.values, column.nulls
            if values.dtype.kind == "f" and (absent := np.isnan(values)).any():
                missing = either(missing, absent)
        if values.ndim == 1 and (self.width == 1 or not values.size):
            # (n, 1) has become a column by now, and a list of no rows has no columns
            values = values.reshape(len(values), self.width)
        if values.ndim != 2 or (self.width and values.shape[1] != self.width):
            found = "one number a row" if values.ndim == 1 else f"shape {values.shape}"
            wanted = f"(n, {self.width or 'L'}), a column for each label"
            raise InvalidBatchError(f"{title} has {found}, not {wanted}; {_ONE_EACH}", title)
        if missing is None:
            return values, None
        return values, missing.reshape(len(values), -1).any(axis=1)

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:
        """Check that indicators are 0 and 1, and that scores are what they are used as."""
        if self.scores:
            batch.refuse_long(self.second, "what is computed here")
        for name, values in zip(self.names, taken, strict=True):
            if not (self.scores and name == self.second):
                self._check_marks(batch, name, values, missing)
        if self.probabilities:
            low, high = batch.extent(self.second)
            if not (low >= 0 and high <= 1):
                wrong = ~((taken[1] >= 0) & (taken[1] <= 1))
                advice = "pass probabilities, or say from_logits=True if these are logits"
                _refuse(batch, self.second, "is outside [0, 1]", wrong, taken[1], missing, advice)

    def _check_marks(self, batch: Batch, name: str, values: Array, missing: Bools | None) -> None:
        if values.dtype.kind == "b" or not values.size:
            return
        if values.dtype.kind in "iu":
            low, high = values.min(), values.max()
            if low >= 0 and high <= 1:
                return
        wrong = (values != 0) & (values != 1)
        advice = "an indicator is 0 or 1: scores take a threshold, classes a column of one label"
        _refuse(batch, name, "is no indicator", wrong, values, missing, advice)

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return indicators as uint8, and scores as float64, of the kept rows."""
        truth, second = (values if rows is None else values[rows] for values in taken)
        if truth.shape[1] == 0 and len(truth):
            raise InvalidBatchError(f"{batch.title('y_true')} has no columns")
        judged = second if self.scores else _marks(second)
        facts = {"columns of labels": truth.shape[1]} if len(truth) else {}
        return (_marks(truth), judged), facts

    @property
    def plain(self) -> Field:
        """The same columns, of any scores."""
        return Indicators(self.second, self.scores, self.labels, self.width)


def _refuse(
    batch: Batch,
    name: str,
    what: str,
    wrong: Bools,
    values: Array,
    missing: Bools | None,
    advice: str,
) -> None:
    if missing is not None:
        wrong = wrong & ~missing[:, None]
    if wrong.any():
        reject(batch.title(name), what, wrong, values, advice=advice)


def _marks(values: Array) -> Marks:
    """Return zeros and ones as uint8, in rows."""
    if values.dtype.kind == "b":
        return np.ascontiguousarray(values).view(np.uint8)
    return np.ascontiguousarray(values.astype(np.uint8, copy=False))
