"""Exact sums of what each row's predicted probabilities lose, and the check that they are such."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from streammetrics.core import elementary
from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.arithmetic.rounding import nearest
from streammetrics.core.columns.logits import log_total, sigmoid, softplus
from streammetrics.core.columns.scores import Scores
from streammetrics.core.counting import counts_of
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.amounts import Amount
from streammetrics.core.fields.plain import Width
from streammetrics.core.fields.sums import NamedSums, Sum, each_plus
from streammetrics.core.fields.weights import Weight
from streammetrics.statistics.scores.base import ScoredStatistic

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from numpy.typing import NDArray

    from streammetrics.core.counting import Grouping
    from streammetrics.core.types import Array, Columns, Floats, Places, ReadColumn


LossName: TypeAlias = Literal[
    "log", "logit", "brier", "focal", "focal_logit", "hinge", "ranked", "excess"
]

EPSILON = float(np.finfo(np.float64).eps)  # probabilities are clipped to [EPSILON, 1 - EPSILON]


class Probabilities(ScoredStatistic):
    """Keeps nothing: its schema checks that every score is in [0, 1], for other statistics."""

    in_kernels = True

    @property
    def scores(self) -> Scores:
        """Probabilities."""
        return Scores(wide=True, use="probability")

    def update(self, *columns: object, weight: Floats | None) -> None:
        """Keep nothing: the schema has checked the rows."""


class ProbabilityLossSum(ScoredStatistic):
    """The exact sum of a loss, rounded row by row, and of the weights; 100 bytes.

    Losses are of probabilities; ``"logit"`` is the log loss of logits and ``"focal_logit"`` their
    focal loss, and the hinges are of decision values. With `from_logits` the scores are logits, and
    losses that a probability near 1 would leave few digits are made of those of the other classes.
    The Brier loss is summed over the classes, of which (n,) scores have two. ``"ranked"`` is of
    (n, K) scores only. ``"excess"`` alone may be negative.
    """

    in_kernels = True

    loss: LossName
    parameter: float = 0.0
    from_logits: bool = False

    total = Sum()
    rows = Weight()
    columns = Width("columns of scores")

    @property
    def matrix(self) -> bool:  # type: ignore[override]  # here it depends on the loss
        """Whether scores have to be (n, K)."""
        return _LOSSES[self.loss].matrix

    @property
    def scores(self) -> Scores:
        """Probabilities, logits or decision values."""
        return Scores(wide=True, use="logits" if self.from_logits else _LOSSES[self.loss].use)

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Add the losses of rows: codes (n,) and scores (n,) or (n, K)."""
        self.add(columns, self.lift(columns, weight), Amount.of_rows(len(columns[0]), weight))

    def add(self, columns: Columns, loss: ExactSum, rows: Amount) -> None:
        """Add rows, of which this is the sum of losses, and what they weigh."""
        scores = columns[1]
        self.total += loss
        self.rows += rows
        self.columns = 1 if scores.ndim == 1 else scores.shape[1]

    def by_group(
        self, group: Grouping, columns: tuple[Any, ...], weight: Array | None
    ) -> dict[str, object]:
        """Return the losses of each group."""
        losses, scores = self.losses(*columns), columns[1]
        fields = self.losses_by_group(group, losses, weight)
        return fields | {"columns": 1 if scores.ndim == 1 else scores.shape[1]}

    def losses_by_group(
        self, group: Grouping, losses: Floats, weight: Array | None
    ) -> dict[str, Any]:
        """Return what rows with these losses add to each group."""
        return {
            "total": ExactSum.grouped(group.index, group.size, losses, weight),
            "rows": Amount.by_group(group, weight),
        }

    def lift(self, columns: tuple[object, ...], weight: Floats | None) -> ExactSum:
        """Return the sum of the losses of rows."""
        return ExactSum.of_terms(self.losses, columns, weight)

    def losses(self, codes: Array, scores: Floats) -> Floats:
        """Return the loss of each row."""
        loss = (_OF_LOGITS if self.from_logits else _LOSSES)[self.loss]
        of = loss.classes if scores.ndim > 1 else loss.binary
        return of(codes, scores, self.parameter)

    def mean(self) -> float:
        """Return the mean loss, correctly rounded; ``nan`` of no rows."""
        rows = self.rows.fraction()
        return nearest(self.total.fraction() / rows if rows else None)

    def check_fields(self) -> None:
        """Check that there are losses, columns and rows, or none of them."""
        lost, seen = self.total.integers()[0], bool(self.rows)
        negative = lost < 0 and self.loss != "excess"
        if negative or (self.columns > 0) != seen or (lost and not seen):
            raise StateFormatError("the sums and the columns of scores do not fit each other")


def _log_binary(codes: NDArray[np.uint8], scores: Floats, _: float) -> Floats:
    scores = np.clip(scores, EPSILON, 1 - EPSILON)
    return negative_log(*_of_truth(codes, scores))


def _log_classes(codes: Places, scores: Floats, _: float) -> Floats:
    return _log(_of_class(codes, scores))


def _of_truth(codes: NDArray[np.uint8], scores: Floats) -> tuple[Floats, Floats]:
    """Return the probabilities that each row gives its true class, of two, and the other one."""
    truth = (codes ^ 1).astype(np.float64)
    np.subtract(scores, truth, out=truth)
    other = codes.astype(np.float64)
    np.subtract(scores, other, out=other)
    return np.abs(truth, out=truth), np.abs(other, out=other)


def negative_log(t: Floats, other: Floats) -> Floats:
    """Return -log t in the place of t, where 1 - t is the other, and one of the two is rounded.

    The error e = 1 - t - other matters where t is near 1: log(t + e) = log t + e / t.
    """
    rest = np.subtract(1.0, t)
    rest -= other
    rest /= t
    rest += elementary.log(t, out=t)
    return np.negative(rest, out=rest)


def _of_class(codes: Places, scores: Floats) -> Floats:
    """Return the score that each row gives its true class, of several."""
    return scores[np.arange(codes.size), codes]


def _log(probability: Floats) -> Floats:
    """Return the log, negated, of the clipped probabilities in their place."""
    np.maximum(probability, EPSILON, out=probability)
    np.minimum(probability, 1 - EPSILON, out=probability)
    elementary.log(probability, out=probability)
    return np.negative(probability, out=probability)


def _focal_binary(codes: NDArray[np.uint8], scores: Floats, gamma: float) -> Floats:
    _, other = _of_truth(codes, scores)
    factor = elementary.power(other, gamma)
    factor *= _log_binary(codes, scores, gamma)
    return factor


def _focal_classes(codes: Places, scores: Floats, gamma: float) -> Floats:
    probability = _of_class(codes, scores)
    factor = elementary.power(1.0 - probability, gamma)
    factor *= _log(probability)
    return factor


def _logit_binary(codes: NDArray[np.uint8], scores: Floats, _: float) -> Floats:
    """Return log(1 + exp(z)), where z is the logit of the wrong class."""
    return softplus(np.where(codes.view(np.bool_), -scores, scores))


def _logit_classes(codes: Places, scores: Floats, _: float) -> Floats:
    """Return log(sum of exp(z)) less the logit of the true class."""
    top, loss = log_total(scores)
    loss += top - _of_class(codes, scores)
    return loss


def _focal_logit_binary(codes: NDArray[np.uint8], scores: Floats, gamma: float) -> Floats:
    return _focused(_logit_binary(codes, scores, gamma), gamma)


def _focal_logit_classes(codes: Places, scores: Floats, gamma: float) -> Floats:
    return _focused(_logit_classes(codes, scores, gamma), gamma)


def _focused(loss: Floats, gamma: float) -> Floats:
    """Return the focal loss of rows with these log losses: 1 - p is 1 - exp(-loss)."""
    factor = np.negative(elementary.expm1(np.negative(loss)))
    elementary.power(factor, gamma, out=factor)
    factor *= loss
    return factor


def _brier_binary(codes: NDArray[np.uint8], scores: Floats, _: float) -> Floats:
    """Return the sum over both classes: twice the square, and doubling is exact."""
    off = codes.astype(np.float64)
    np.subtract(scores, off, out=off)
    off *= off
    off *= 2.0
    return off


def _brier_classes(codes: Places, scores: Floats, _: float) -> Floats:
    off = scores.copy(order="C")
    off[np.arange(codes.size), codes] -= 1.0
    off *= off
    total: Floats = off.sum(axis=1)
    return total


def _hinge_binary(codes: NDArray[np.uint8], scores: Floats, power: float) -> Floats:
    return _hinge(np.where(codes.view(np.bool_), scores, -scores), power)


def _hinge_classes(codes: Places, scores: Floats, power: float) -> Floats:
    """Return the loss of the distance from the true class to the best other (Crammer, Singer)."""
    own, others = _of_class(codes, scores), scores.copy(order="C")
    others[np.arange(codes.size), codes] = -np.inf
    best = others.max(axis=1)
    margin = own - best
    # What is rounded off the margin matters where it is near 1.
    back = own - margin
    return _hinge(margin, power, (own - (margin + back)) + (back - best))


def _hinge(margin: Floats, power: float, rest: Floats | float = 0.0) -> Floats:
    loss = np.maximum((1.0 - margin) - rest, 0.0)
    return loss * loss if power == 2 else loss


def _ranked(codes: Places, scores: Floats, _: float) -> Floats:
    """Return the squared distances of cumulative probabilities, the last of which are both 1."""
    off = scores.copy(order="C")
    off[np.arange(codes.size), codes] -= 1.0
    np.cumsum(off, axis=1, out=off)
    off = off[:, :-1] ** 2
    total: Floats = off.sum(axis=1)
    return total


def _excess_binary(codes: NDArray[np.uint8], scores: Floats, _: float) -> Floats:
    return scores - codes


def _excess_classes(codes: Places, scores: Floats, _: float) -> Floats:
    best = scores.argmax(axis=1)
    excess: Floats = scores[np.arange(codes.size), best] - (best == codes)
    return excess


def _odds(scores: Floats) -> tuple[Floats, Floats]:
    """Return exp(z) of each logit (n, K) less the largest of its row, and the sum of the others."""
    rows, best = np.arange(len(scores)), scores.argmax(axis=1)
    with np.errstate(over="ignore"):  # a difference beyond float64 is a probability of 0
        odds = elementary.exp(scores - scores[rows, best][:, None])
    odds[rows, best] = 0.0  # a term of 1, beside which small ones would lose their digits
    others: Floats = odds.sum(axis=1)
    odds[rows, best] = 1.0
    return odds, others


def _wrong_binary(codes: NDArray[np.uint8], scores: Floats) -> Floats:
    """Return the probability that each logit gives the wrong class of two."""
    return sigmoid(np.where(codes.view(np.bool_), -scores, scores))


def _brier_of_logits_binary(codes: NDArray[np.uint8], scores: Floats, _: float) -> Floats:
    off = _wrong_binary(codes, scores)
    off *= off
    off *= 2.0
    return off


def _brier_of_logits_classes(codes: Places, scores: Floats, _: float) -> Floats:
    odds, others = _odds(scores)
    off = odds / (1.0 + others)[:, None]
    rows = np.arange(codes.size)
    off[rows, codes] = 0.0
    off[rows, codes] = off.sum(axis=1)
    off *= off
    total: Floats = off.sum(axis=1)
    return total


def _ranked_of_logits(codes: Places, scores: Floats, _: float) -> Floats:
    """Return what is below of classes below the true one, and what is above of the others."""
    odds, others = _odds(scores)
    shares = odds / (1.0 + others)[:, None]
    below = np.cumsum(shares, axis=1)[:, :-1]
    above = np.cumsum(shares[:, :0:-1], axis=1)[:, ::-1]
    off = np.where(np.arange(below.shape[1]) < codes[:, None], below, above)
    off *= off
    total: Floats = off.sum(axis=1)
    return total


def _excess_of_logits_binary(codes: NDArray[np.uint8], scores: Floats, _: float) -> Floats:
    wrong = _wrong_binary(codes, scores)
    return np.where(codes.view(np.bool_), -wrong, wrong)


def _excess_of_logits_classes(codes: Places, scores: Floats, _: float) -> Floats:
    others = _odds(scores)[1]
    excess = np.where(scores.argmax(axis=1) == codes, -others, 1.0)
    excess /= 1.0 + others
    return excess


class _Loss(NamedTuple):
    """One row's loss of its class and (n,) or (n, K) scores, given a parameter."""

    binary: Callable[[Any, Floats, float], Floats]
    classes: Callable[[Any, Floats, float], Floats]
    use: Literal["probability", "logit", "margin"] = "probability"
    matrix: bool = False  # only (n, K) scores have a meaning


_LOSSES: dict[LossName, _Loss] = {
    "log": _Loss(_log_binary, _log_classes),
    "logit": _Loss(_logit_binary, _logit_classes, "logit"),
    "brier": _Loss(_brier_binary, _brier_classes),
    "focal": _Loss(_focal_binary, _focal_classes),
    "focal_logit": _Loss(_focal_logit_binary, _focal_logit_classes, "logit"),
    "hinge": _Loss(_hinge_binary, _hinge_classes, "margin"),
    "ranked": _Loss(_ranked, _ranked, matrix=True),
    "excess": _Loss(_excess_binary, _excess_classes),
}


# Of logits, infinite ones among them.
_OF_LOGITS: dict[LossName, _Loss] = {
    "brier": _Loss(_brier_of_logits_binary, _brier_of_logits_classes),
    "ranked": _Loss(_ranked_of_logits, _ranked_of_logits),
    "excess": _Loss(_excess_of_logits_binary, _excess_of_logits_classes),
}


class ClassWeights(ScoredStatistic):
    """The weight of the rows of each class: two of (n,) scores, the negative one first."""

    classes = NamedSums(lambda _: ("rows",))

    @property
    def scores(self) -> Scores:
        """Any scores: another statistic of the metric says what they may be."""
        return Scores(wide=True, use="shape")

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Add the weights of rows: codes (n,) and scores (n,) or (n, K)."""
        codes, scores = columns
        size = 2 if scores.ndim == 1 else scores.shape[1]
        if weight is None:
            rows = ExactSum.counts(counts_of((size,), codes))
        else:
            rows = ExactSum.grouped(codes.astype(np.intp), size, weight)
        self.classes = each_plus(self.classes, {"rows": rows})

    def shares(self) -> list[Fraction]:
        """Return the share of each class, none without rows."""
        if not self.classes:
            return []
        rows = self.classes["rows"]
        weights = [rows[k].fraction() for k in range(rows.shape[0])]
        return [weight / sum(weights) for weight in weights]

    def check_fields(self) -> None:
        """Check that there are two classes at least, and that weights are those of rows."""
        if not self.classes:
            return
        rows = self.classes["rows"]
        if rows.shape < (2,) or not rows.digits.size or (np.asarray(rows.to_float()) < 0).any():
            raise StateFormatError("the weights of classes are not those of any rows")
