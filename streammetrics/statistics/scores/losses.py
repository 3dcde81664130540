"""Exact sums of what each row's predicted probabilities lose, and the check that they are such."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streammetrics.core.columns.scores import Scores
from streammetrics.core.errors import StateFormatError
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.fields.amounts import Amount, Weight
from streammetrics.core.fields.plain import Width
from streammetrics.core.fields.sums import Sum
from streammetrics.statistics.scores.base import ScoredStatistic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

EPSILON = float(np.finfo(np.float64).eps)  # probabilities are clipped to [EPSILON, 1 - EPSILON]


class Probabilities(ScoredStatistic):
    """Nothing: only that every score is in [0, 1], for metrics that read another statistic."""

    @property
    def scores(self) -> Scores:
        """Probabilities."""
        return Scores(wide=True, use="probability")

    def update(self, *columns: Any, weight: Floats | None) -> None:
        """Keep nothing: the schema has checked the rows."""


class ProbabilityLossSum(ScoredStatistic):
    """The exact sum of a loss, rounded row by row, and of the weights; 100 bytes.

    `loss` is ``"log"`` or ``"brier"`` of probabilities, which with `from_logits` are made of
    logits, or ``"logit"``: the log loss of logits. The Brier loss is summed over the classes, of
    which (n,) scores have two.
    """

    loss: Literal["log", "logit", "brier"]
    from_logits: bool = False

    total = Sum()
    rows = Weight()
    columns = Width("columns of scores")

    @property
    def scores(self) -> Scores:
        """Probabilities, or logits."""
        use: Literal["logit", "probability"] = "logit" if self.loss == "logit" else "probability"
        return Scores(wide=True, use=use, from_logits=self.from_logits)

    def update(self, *columns: Any, weight: Floats | None) -> None:
        """Add the losses of rows: codes (n,) and scores (n,) or (n, K)."""
        self.add(columns, weight, self.lift(columns, weight))

    def add(self, columns: tuple[Any, ...], weight: Floats | None, loss: ExactSum) -> None:
        """Add rows, of which this is the sum of losses."""
        codes, scores = columns
        self.total += loss
        self.rows += Amount.of_rows(codes.size, weight)
        self.columns = 1 if scores.ndim == 1 else scores.shape[1]

    def lift(self, columns: tuple[Any, ...], weight: Floats | None) -> ExactSum:
        """Return the sum of the losses of rows."""
        return ExactSum.of_terms(self.losses, columns, weight)

    def losses(self, codes: NDArray[Any], scores: Floats) -> Floats:
        """Return the loss of each row."""
        losses: Floats = _LOSSES[self.loss][scores.ndim - 1](codes, scores)
        return losses

    def mean(self) -> float:
        """Return the mean loss, correctly rounded; ``nan`` of no rows."""
        rows = self.rows.fraction()
        return float(self.total.fraction() / rows) if rows else float("nan")

    def check_fields(self) -> None:
        """Check that there are losses, columns and rows, or none of them."""
        lost, seen = self.total.fraction(), bool(self.rows)
        if lost < 0 or (self.columns > 0) != seen or (lost and not seen):
            raise StateFormatError("the sums and the columns of scores do not fit each other")


def _log_binary(codes: NDArray[np.uint8], scores: Floats) -> Floats:
    probability = (codes ^ 1).astype(np.float64)
    np.subtract(scores, probability, out=probability)
    return _log(np.abs(probability, out=probability))


def _log_classes(codes: NDArray[np.intp], scores: Floats) -> Floats:
    return _log(scores[np.arange(codes.size), codes])


def _log(probability: Floats) -> Floats:
    """Return the log, negated, of the clipped probabilities in their place."""
    np.maximum(probability, EPSILON, out=probability)
    np.minimum(probability, 1 - EPSILON, out=probability)
    np.log(probability, out=probability)
    return np.negative(probability, out=probability)


def _logit_binary(codes: NDArray[np.uint8], scores: Floats) -> Floats:
    """Return log(1 + exp(z)), where z is the logit of the wrong class."""
    wrong = np.where(codes.view(np.bool_), -scores, scores)
    loss = np.exp(-np.abs(wrong))
    np.log1p(loss, out=loss)
    loss += np.maximum(wrong, 0.0)
    return loss


def _logit_classes(codes: NDArray[np.intp], scores: Floats) -> Floats:
    """Return log(sum of exp(z)) less the logit of the true class, shifted by the largest."""
    top = scores.max(axis=1)
    loss: Floats = np.log(np.exp(scores - top[:, None]).sum(axis=1))
    loss += top - scores[np.arange(codes.size), codes]
    return loss


def _brier_binary(codes: NDArray[np.uint8], scores: Floats) -> Floats:
    """Return the sum over both classes: twice the square, and doubling is exact."""
    off = codes.astype(np.float64)
    np.subtract(scores, off, out=off)
    off *= off
    off *= 2.0
    return off


def _brier_classes(codes: NDArray[np.intp], scores: Floats) -> Floats:
    off = scores.copy(order="C")
    off[np.arange(codes.size), codes] -= 1.0
    off *= off
    total: Floats = off.sum(axis=1)
    return total


_LOSSES: dict[str, tuple[Any, Any]] = {
    "log": (_log_binary, _log_classes),
    "logit": (_logit_binary, _logit_classes),
    "brier": (_brier_binary, _brier_classes),
}
