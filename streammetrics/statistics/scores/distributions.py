"""Sums of how far predicted distributions over classes are from those that are true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from streammetrics.core import elementary
from streammetrics.core.columns.logits import log_total, softplus
from streammetrics.core.columns.schema import Condition, Schema
from streammetrics.core.columns.scores import Scores
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.errors import InvalidBatchError
from streammetrics.statistics.scores.losses import EPSILON, negative_log
from streammetrics.statistics.sums.deviances import deviance
from streammetrics.statistics.sums.precise import softmax_and_error
from streammetrics.statistics.sums.rowwise import RowSum

if TYPE_CHECKING:
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.types import Bools, Floats, ReadColumn


_TINY = 1e-290  # probabilities below this have few digits, or none


@dataclass(frozen=True)
class OfOneWidth(Condition):
    """Refuses distributions over other numbers of classes."""

    def check(self, batch: Batch, missing: Bools | None) -> None:  # noqa: ARG002 - no row matters
        """Check the shapes."""
        one, other = (batch.numbers(name) for name in ("y_true", "y_score"))
        if one.shape != other.shape:
            titles = batch.title("y_true"), batch.title("y_score")
            raise InvalidBatchError(
                f"{titles[0]} has shape {one.shape} and {titles[1]} {other.shape}: both are "
                "distributions over the same classes"
            )


class DistributionSum(RowSum):
    """The cross entropy of distributions, or what it has beyond the entropy of the true one.

    Of (n, K) probabilities of K classes, or of (n,) of one of two.
    """

    loss: Literal["cross_entropy", "kl"]
    from_logits: bool = False
    nan_policy: NanPolicy = "raise"

    @property
    def schema(self) -> Schema:
        """Distributions, the second of which may be logits."""
        fields = (
            Scores("y_true", wide=True, use="probability"),
            Scores("y_score", wide=True, use="logit" if self.from_logits else "probability"),
        )
        return Schema(fields, self.nan_policy, conditions=(OfOneWidth(),))

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return the divergence of each row."""
        p, q = columns
        if self.from_logits:
            terms = self._of_logits(p, q)
        elif self.loss == "kl":
            terms = _divergence(p, q, p - q)
            if p.ndim == 1:
                terms += _divergence(1 - p, 1 - q, q - p)
        else:
            q = np.clip(q, EPSILON, 1 - EPSILON)
            if p.ndim == 1:
                terms = p * negative_log(q.copy(), 1 - q) + (1 - p) * negative_log(1 - q, q)
            else:
                terms = p * -elementary.log(q)
        total: Floats = terms if terms.ndim == 1 else np.ascontiguousarray(terms).sum(axis=1)
        return total

    def _of_logits(self, p: Floats, z: Floats) -> Floats:
        """Return the terms (n, K) of rows whose predictions are logits; nothing is clipped."""
        two = p.ndim == 1
        if two:
            lost = np.stack([softplus(-z), softplus(z)], axis=1)
            p, z = np.stack([p, 1 - p], axis=1), np.stack([z, np.zeros_like(z)], axis=1)
        else:
            top, total = log_total(z)
            lost = (top[:, None] - z) + total[:, None]
        if self.loss == "cross_entropy":
            return np.asarray(p * lost)
        q, rest = softmax_and_error(z)
        apart = (p - q) - rest
        if two:
            apart[:, 1] = -apart[:, 0]  # 1 - p is rounded
        far = np.where(p > 0, p * (elementary.log(np.where(p > 0, p, 1.0)) + lost) - p, 0.0)
        return np.where(q < _TINY, far, deviance(p, np.maximum(q, _TINY), apart))


def _divergence(p: Floats, q: Floats, apart: Floats) -> Floats:
    """Return p log(p / q) - p + q, which is never negative; the last two add up to 0 in a row.

    A prediction below `EPSILON` counts as that, unless the truth is as small.
    """
    at_least = np.maximum(q, np.minimum(p, EPSILON))
    return np.where(p > 0, deviance(p, np.where(p > 0, at_least, 1.0), apart), q)
