"""Rows of regression: a target and a prediction, (n,) or (n, d), compared number by number."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import Condition, Schema, reject
from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.types import Bools, Floats

    Extent = tuple[float, float]

TRUE, PRED = "y_true", "y_pred"


@dataclass(frozen=True)
class FiniteTerms(Condition):
    """Refuses rows where a term of target and prediction overflows.

    It is checked with the batch, since rows may wait before a statistic computes their terms.
    """

    @abstractmethod
    def fits(self, true: Extent, pred: Extent) -> bool:
        """Whether no term can overflow, by the smallest and the largest of both columns."""

    @abstractmethod
    def terms(self, true: Floats, pred: Floats) -> Floats:
        """Return the terms, not finite where one overflows."""

    @abstractmethod
    def complaint(self) -> str:
        """Return what to say of rows whose term overflows."""

    def holds(self, batch: Batch) -> bool:
        """Whether the extents of both columns tell that every term is finite."""
        one, other = batch.known[TRUE], batch.known[PRED]
        return self.fits((one.low, one.high), (other.low, other.high))

    def check(self, batch: Batch, missing: Bools | None) -> None:
        """Check that both columns are of one shape and that every term is finite."""
        one, other = batch.numeric(TRUE), batch.numeric(PRED)
        true, pred = one.values, other.values
        if true.shape != pred.shape and _table(true).shape != _table(pred).shape:
            raise InvalidBatchError(
                f"{batch.title(TRUE)} has {_table(true).shape[1]} numbers a row, "
                f"{batch.title(PRED)} has {_table(pred).shape[1]}"
            )
        if self.fits((one.low, one.high), (other.low, other.high)):
            return
        true, pred = _table(true), _table(pred)
        with np.errstate(all="ignore"):
            wrong = np.logical_not(np.isfinite(self.terms(true, pred)).all(axis=1))
        if missing is not None:
            wrong &= ~missing
        if wrong.any():
            titles = f"{batch.title(TRUE)} and {batch.title(PRED)}"
            reject(titles, self.complaint(), wrong, np.stack([true, pred], axis=1))


@dataclass(frozen=True)
class FiniteDifference(FiniteTerms):
    """Refuses rows where ``y_true - y_pred`` overflows."""

    def fits(self, true: Extent, pred: Extent) -> bool:
        """Whether the largest difference is finite."""
        return math.isfinite(true[1] - pred[0]) and math.isfinite(pred[1] - true[0])

    def terms(self, true: Floats, pred: Floats) -> Floats:
        """Return the differences."""
        return true - pred

    def complaint(self) -> str:
        """Say that the difference overflows."""
        return "differ by more than float64 can hold"


def _table(values: Floats) -> Floats:
    return values[:, None] if values.ndim == 1 else values


def regression_schema(
    nan_policy: str,
    finite: FiniteTerms | None = None,
    *,
    true: Numbers | None = None,
    pred: Numbers | None = None,
) -> Schema:
    """Return the schema of targets and predictions, by default any whose difference is finite."""
    fields = (
        true or Numbers(TRUE, wide=True, long=True),
        pred or Numbers(PRED, wide=True, long=True),
    )
    return Schema(fields, nan_policy, conditions=(finite or FiniteDifference(),))


def values_schema(of: str, nan_policy: str, *, long: bool = False) -> Schema:
    """Return the schema of plain ``"values"``, of ``"targets"``, or of ``"errors"``.

    What is read of targets is how far apart they are, which rounded ones do not tell.
    """
    if of == "values":
        return Schema((Numbers("values", ordered=True, long=long),), nan_policy)
    return regression_schema(nan_policy, true=Numbers(TRUE, wide=True, long=of != "targets"))
