"""Sums over rows with probabilities: losses, samples of values, and label rankings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from streammetrics.core import elementary
from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.labels import Indicators
from streammetrics.core.columns.schema import Condition, Schema
from streammetrics.core.columns.scores import (
    SAMPLES,
    ScoredLabels,
    Scores,
    log_total,
    sigmoid,
    softplus,
)
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.counting import counts_of
from streammetrics.core.errors import InvalidBatchError, StateFormatError
from streammetrics.core.fields.sums import GroupedSums, NamedSums, Sum, Width
from streammetrics.core.fields.weights import Weight, WeightedCount, have_weights, signs_of
from streammetrics.core.statistic import Statistic
from streammetrics.core.types import ClassLabel
from streammetrics.statistics.formulas import deviance, softmax_and_error
from streammetrics.statistics.histograms import ScoredStatistic, ScoreHistogram
from streammetrics.statistics.sums import RowSum, Spreading, mean_of, summed, sums_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction

    from numpy.typing import NDArray

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Field
    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Bools, Columns, Floats, Ints, Places, ReadColumn


LossName: TypeAlias = Literal[
    "log", "logit", "brier", "focal", "focal_logit", "hinge", "ranked", "excess"
]

EPSILON = float(np.finfo(np.float64).eps)  # probabilities are clipped to [EPSILON, 1 - EPSILON]


class Probabilities(ScoredStatistic):
    """Stores nothing: its schema checks, for other statistics, that every score is in [0, 1]."""

    in_kernels = takes_counts = True

    @property
    def scores(self) -> Scores:
        """Probabilities."""
        return Scores(wide=True, use="probability")

    def update(self, *columns: object, weight: Floats | None) -> None:
        """Do nothing: the schema has checked the rows."""


class ProbabilityLossSum(ScoredStatistic):
    """The exact sum of a loss that is rounded row by row, and of the weights; 100 bytes.

    Losses take probabilities, except for ``"logit"`` (the log loss of logits), ``"focal_logit"``
    (their focal loss) and the hinge losses (of decision values). With `from_logits` the scores are
    logits; losses that would lose digits for probabilities near 1 are computed from those of the
    other classes. The Brier loss is summed over classes, two for scores (n,). ``"ranked"`` takes
    scores (n, K) only. Only ``"excess"`` can be negative.
    """

    in_kernels = takes_counts = True

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

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, object]:
        """Return the losses of rows: codes (n,), and scores (n,) or (n, K)."""
        if group is None:
            total = ExactSum.of_terms(self.losses, columns, weight)
        else:
            total = summed(self.losses(*columns), weight, group)
        rows = WeightedCount.of_rows(len(columns[0]), weight, group)
        return {"total": total, "rows": rows, "columns": _width(columns[1])}

    def losses(self, codes: Array, scores: Floats) -> Floats:
        """Return the loss of each row."""
        loss = (_OF_LOGITS if self.from_logits else _LOSSES)[self.loss]
        of = loss.classes if scores.ndim > 1 else loss.binary
        return of(codes, scores, self.parameter)

    def mean(self) -> float:
        """Return the mean loss, correctly rounded; ``nan`` without rows."""
        return mean_of(self.total, self.rows)

    def check_fields(self) -> None:
        """Check that losses, columns and rows are consistent."""
        self._check(self.total, self.rows, self.columns)

    def check_groups(self, values: Mapping[str, Any], size: int) -> None:
        """Check all groups at once."""
        self._check(values["total"], values["rows"], values["columns"])

    def _check(self, total: ExactSum, rows: WeightedCount, columns: Ints | int) -> None:
        lost, seen = signs_of(total), rows.signs() != 0
        negative = (lost < 0) & (self.loss != "excess")
        if (negative | ((np.asarray(columns) > 0) != seen) | ((lost != 0) & ~seen)).any():
            raise StateFormatError("the sums and the columns of scores do not fit each other")


def _width(scores: Floats) -> int:
    return 1 if scores.ndim == 1 else scores.shape[1]


def _log_binary(codes: NDArray[np.uint8], scores: Floats, _: float) -> Floats:
    scores = np.clip(scores, EPSILON, 1 - EPSILON)
    return negative_log(*_of_truth(codes, scores))


def _log_classes(codes: Places, scores: Floats, _: float) -> Floats:
    return _log(_of_class(codes, scores))


def _of_truth(codes: NDArray[np.uint8], scores: Floats) -> tuple[Floats, Floats]:
    """Return the probabilities of each row's true class and of the other one, of two."""
    truth = (codes ^ 1).astype(np.float64)
    np.subtract(scores, truth, out=truth)
    other = codes.astype(np.float64)
    np.subtract(scores, other, out=other)
    return np.abs(truth, out=truth), np.abs(other, out=other)


def negative_log(t: Floats, other: Floats) -> Floats:
    """Return -log t, computed in place, where `other` is 1 - t and one of the two is rounded.

    The error e = 1 - t - other matters if t is near 1: log(t + e) is about log t + e / t.
    """
    rest = np.subtract(1.0, t)
    rest -= other
    rest /= t
    rest += elementary.log(t, out=t)
    return np.negative(rest, out=rest)


def _of_class(codes: Places, scores: Floats) -> Floats:
    """Return the score of each row's true class, of several."""
    return scores[np.arange(codes.size), codes]


def _log(probability: Floats) -> Floats:
    """Return the negative log of the clipped probabilities, computed in place."""
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
    """Return log(sum of exp(z)) minus the logit of the true class."""
    top, loss = log_total(scores)
    loss += top - _of_class(codes, scores)
    return loss


def _focal_logit_binary(codes: NDArray[np.uint8], scores: Floats, gamma: float) -> Floats:
    return _focused(_logit_binary(codes, scores, gamma), gamma)


def _focal_logit_classes(codes: Places, scores: Floats, gamma: float) -> Floats:
    return _focused(_logit_classes(codes, scores, gamma), gamma)


def _focused(loss: Floats, gamma: float) -> Floats:
    """Return the focal loss of rows from their log losses: 1 - p is 1 - exp(-loss)."""
    factor = np.negative(elementary.expm1(np.negative(loss)))
    elementary.power(factor, gamma, out=factor)
    factor *= loss
    return factor


def _brier_binary(codes: NDArray[np.uint8], scores: Floats, _: float) -> Floats:
    """Return the sum over both classes: twice the square; doubling is exact."""
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
    """Return the loss of the margin over the best other class (Crammer and Singer)."""
    own, others = _of_class(codes, scores), scores.copy(order="C")
    others[np.arange(codes.size), codes] = -np.inf
    best = others.max(axis=1)
    margin = own - best
    # The rounding error of the margin matters if the margin is near 1.
    back = own - margin
    return _hinge(margin, power, (own - (margin + back)) + (back - best))


def _hinge(margin: Floats, power: float, rest: Floats | float = 0.0) -> Floats:
    loss = np.maximum((1.0 - margin) - rest, 0.0)
    return loss * loss if power == 2 else loss


def _ranked(codes: Places, scores: Floats, _: float) -> Floats:
    """Return summed squared differences of cumulative probabilities; the last, 0, is left out."""
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
    """Return exp(z - max of the row) of logits z (n, K), and its row sums without the maximum."""
    rows, best = np.arange(len(scores)), scores.argmax(axis=1)
    with np.errstate(over="ignore"):  # an overflowing difference is a probability of 0
        odds = elementary.exp(scores - scores[rows, best][:, None])
    odds[rows, best] = 0.0  # small terms would lose digits if added to this term of 1
    others: Floats = odds.sum(axis=1)
    odds[rows, best] = 1.0
    return odds, others


def _wrong_binary(codes: NDArray[np.uint8], scores: Floats) -> Floats:
    """Return the probability of the wrong class of two, from logits."""
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
    """Return squares of P(class <= k) for k below the true class, else of P(class > k), summed."""
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
    """The loss of a row, a function of class codes, scores (n,) or (n, K), and a parameter."""

    binary: Callable[[Array, Floats, float], Floats]
    classes: Callable[[Array, Floats, float], Floats]
    use: Literal["probability", "logit", "margin"] = "probability"
    matrix: bool = False  # whether scores must be (n, K)


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


# Losses of logits, which may be infinite.
_OF_LOGITS: dict[LossName, _Loss] = {
    "brier": _Loss(_brier_of_logits_binary, _brier_of_logits_classes),
    "ranked": _Loss(_ranked_of_logits, _ranked_of_logits),
    "excess": _Loss(_excess_of_logits_binary, _excess_of_logits_classes),
}


class ClassWeights(ScoredStatistic):
    """The weight of the rows of each class; for scores (n,) of the negative, then the positive."""

    takes_counts = True

    classes = NamedSums(lambda _: ("rows",))

    @property
    def scores(self) -> Scores:
        """Any scores: another statistic of the metric restricts them."""
        return Scores(wide=True, use="shape")

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Add the weights of rows: codes (n,), and scores (n,) or (n, K)."""
        codes, scores = columns
        size = 2 if scores.ndim == 1 else scores.shape[1]
        if have_weights(weight):
            rows = ExactSum.grouped(codes.astype(np.intp), size, weight)
        else:
            rows = ExactSum.counts(counts_of((size,), codes, times=weight))
        self.classes = type(self).classes.plus(self.classes, {"rows": rows})

    def shares(self) -> list[Fraction]:
        """Return the share of each class; empty without rows."""
        if not self.classes:
            return []
        rows = self.classes["rows"]
        weights = [rows[k].fraction() for k in range(rows.shape[0])]
        return [weight / sum(weights) for weight in weights]

    def check_fields(self) -> None:
        """Check that there are at least two classes with non-negative weights."""
        if not self.classes:
            return
        rows = self.classes["rows"]
        if rows.shape < (2,) or not rows.digits.size or (np.asarray(rows.to_float()) < 0).any():
            raise StateFormatError("the weights of classes are not those of any rows")


@dataclass(frozen=True)
class SampleValues(Scores):
    """A column of values, one a row; values may be infinite."""

    name: str = "values"

    @property
    def plain(self) -> Scores:
        """The same column without restrictions."""
        return SampleValues(long=True)


class SampleHistogram(ScoreHistogram):
    """Weight of two samples at each value: a `ScoreHistogram` whose labels name the sample.

    The positive class is the current sample.
    """

    @property
    def schema(self) -> Schema:
        """The sample of each row, and its value."""
        field: Field = ScoredLabels(SampleValues(), self.pos_label, truth="sample", pair=SAMPLES)
        return Schema((field,), self.nan_policy)


class ProbabilityLossSpread(Spreading, ProbabilityLossSum):
    """The sum of a loss of probabilities, and of its squares."""

    in_kernels = takes_counts = True

    def check_groups(self, values: Mapping[str, Any], size: int) -> None:
        """Check the sums and the squares of all groups at once."""
        super().check_groups(values, size)
        powers, seen = values["powers"], values["squared_weight"].signs() != 0
        shapes = {total.shape for total in getattr(powers, "sums", {}).values()}
        if not isinstance(powers, GroupedSums) or (powers.seen != seen).any() or shapes - {(size,)}:
            raise StateFormatError("there are no sums of squares of 1 outputs")
        if powers.sums and powers.sums["squares"].any_negative:
            raise StateFormatError("sums of squares are negative")

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, object]:
        """Return the losses of the rows and their squares, in one pass."""
        found = sums_of(self.losses, columns, weight, group)
        width = _width(columns[1])
        return {"total": found.total, "rows": found.rows, "columns": width, **found.spread}


_TINY = 1e-290  # probabilities below this have few or no digits


@dataclass(frozen=True)
class OfOneWidth(Condition):
    """Condition that both distributions have the same shape."""

    def check(self, batch: Batch, missing: Bools | None) -> None:
        """Raise if the shapes differ."""
        one, other = (batch.numbers(name) for name in ("y_true", "y_score"))
        if one.shape != other.shape:
            titles = batch.title("y_true"), batch.title("y_score")
            raise InvalidBatchError(
                f"{titles[0]} has shape {one.shape} and {titles[1]} {other.shape}: both are "
                "distributions over the same classes"
            )


class DistributionSum(RowSum):
    """The cross entropy of distributions, or their Kullback-Leibler divergence.

    Distributions are probabilities (n, K) of K classes, or (n,) of one of two classes.
    """

    loss: Literal["cross_entropy", "kl"]
    from_logits: bool = False
    nan_policy: NanPolicy = "raise"

    @property
    def schema(self) -> Schema:
        """Two distributions; the second may be logits."""
        fields = (
            Scores("y_true", wide=True, use="probability"),
            Scores("y_score", wide=True, use="logit" if self.from_logits else "probability"),
        )
        return Schema(fields, self.nan_policy, conditions=(OfOneWidth(),))

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return the loss of each row."""
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
        return terms if terms.ndim == 1 else np.ascontiguousarray(terms).sum(axis=1)

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
            apart[:, 1] = -apart[:, 0]  # the rounding of 1 - p must not matter
        far = np.where(p > 0, p * (elementary.log(np.where(p > 0, p, 1.0)) + lost) - p, 0.0)
        return np.where(q < _TINY, far, deviance(p, np.maximum(q, _TINY), apart))


def _divergence(p: Floats, q: Floats, apart: Floats) -> Floats:
    """Return p log(p / q) - p + q, which is never negative; q - p sums to 0 over a row.

    q is clipped below at the smaller of p and `EPSILON`, in both places.
    """
    at_least = np.maximum(q, np.minimum(p, EPSILON))
    apart = np.where(at_least > q, p - at_least, apart)
    return np.where(p > 0, deviance(p, np.where(p > 0, at_least, 1.0), apart), q)


class LabelRankingSum(Statistic):
    """The exact sum of a number of each row, rounded row by row, and of the weights.

    `of` is one of:

    - ``"coverage"``: the rank of the lowest-ranked true label.
    - ``"precision"``: the mean over true labels of the share of true labels among those ranked at
      least as high.
    - ``"inversions"``: the share of pairs of a true and a false label in the wrong order or tied.
    """

    of: Literal["coverage", "precision", "inversions"]
    labels: tuple[ClassLabel, ...] | None = None
    nan_policy: NanPolicy = "raise"

    total = Sum()
    rows = Weight()

    @property
    def schema(self) -> Schema:
        """Indicators and scores of each label."""
        indicators = Indicators("y_score", True, self.labels, len(self.labels or ()))
        return Schema((indicators,), self.nan_policy)

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, object]:
        """Return the sums of the numbers of rows."""
        rows = WeightedCount.of_rows(len(columns[0]), weight, group)
        return {"total": summed(self.of_each(*columns), weight, group), "rows": rows}

    def check_fields(self) -> None:
        """Check that the sum is not negative, and that there is none without rows."""
        super().check_fields()
        if self.total.fraction() < 0 or (self.total.fraction() and not self.rows):
            raise StateFormatError("the sum is not that of any rows")

    def of_each(self, truth: NDArray[np.uint8], scores: Floats) -> Floats:
        """Return the number of each row."""
        marks = truth.view(np.bool_)
        true = np.count_nonzero(marks, axis=1)
        if self.of == "coverage":
            least = np.where(marks, scores, np.inf).min(axis=1)
            covered = np.count_nonzero(scores >= least[:, None], axis=1)
            return np.where(true > 0, covered, 0).astype(np.float64)
        rank, hits, marks = _ranked_labels(marks, scores)
        some = (true > 0) & (true < truth.shape[1])
        if self.of == "precision":
            shares = np.where(marks, hits / rank, 0.0).sum(axis=1) / np.maximum(true, 1)
            return np.where(some, shares, 1.0)
        wrong = np.where(marks, rank - hits, 0).sum(axis=1)
        pairs = np.maximum(true * (truth.shape[1] - true), 1)
        return np.where(some, wrong / pairs, 0.0)


def _ranked_labels(marks: Bools, scores: Floats) -> tuple[Array, Array, Bools]:
    """Return, for labels sorted best first, the ranks, the true labels up to each, and the marks.

    Tied labels share the largest rank.
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=1)
    marks = np.take_along_axis(marks, order, axis=1)
    width = scores.shape[1]
    last = np.broadcast_to(np.arange(width), scores.shape).copy()  # last place with this score
    last[:, :-1][ranked[:, 1:] == ranked[:, :-1]] = width
    ends = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    hits = np.take_along_axis(np.cumsum(marks, axis=1), ends, axis=1)
    return ends + 1, hits, marks


class LabelRankingSpread(LabelRankingSum, RowSum):
    """The sum of a number of each row, and of its square."""

    lift = RowSum.lift

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return the number of each row."""
        return self.of_each(*columns)
