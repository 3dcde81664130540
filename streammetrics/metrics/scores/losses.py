"""Losses of probabilities and scores."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from streammetrics.core import elementary
from streammetrics.core.arithmetic.exact import nearest
from streammetrics.core.columns.labels import Label, one_kind
from streammetrics.core.confidence import Refusal
from streammetrics.core.constraints import AtLeast, NanPolicy
from streammetrics.core.metric import Metric, dependent
from streammetrics.metrics.families import BASELINE, Family
from streammetrics.metrics.rowwise import MeanOfRows
from streammetrics.metrics.scores.base import ScoredMetric, schema_options
from streammetrics.statistics.probabilities import (
    ClassWeights,
    DistributionSum,
    LabelRankingSpread,
    LabelRankingSum,
    ProbabilityLossSpread,
    ProbabilityLossSum,
)
from streammetrics.statistics.sums import mean_of

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike
    from streammetrics.statistics.probabilities import LossName


_MOST = 709.0  # the largest exponent whose exponential is finite in float64


class LogLoss(ScoredMetric[float]):
    """Log loss (cross-entropy): the mean negative log-likelihood of the true class.

    Formula: -Σ w log p / Σ w, with p the probability of the true class.

    Probabilities are clipped to [2**-52, 1 - 2**-52], including those given as float32, so that all
    batches are treated alike; they are not normalized. Logits z, up to 9e307, are not clipped: the
    loss is then log(1 + e^-z) or the negative log-softmax. ``nan`` without rows.

    The other parameters are those of `ScoredMetric`.

    Args:
        from_logits: Whether scores are logits: log(p / (1 - p)) for (n,) scores, the inputs of a
            softmax for (n, K) scores.
        spread: Whether to also sum the squares of losses, which `confidence` needs; large batches
            then take 1.5 to 2 times as long.

    Memory and cost: `ProbabilityLossSum`, 100 bytes; 5 to 10 ns per score.

    Reference: ``sklearn.metrics.log_loss``.

    Example:
        >>> import streammetrics as sm
        >>> loss = sm.LogLoss().update([1, 0, 0, 1], [0.9, 0.1, 0.2, 0.35])
        >>> round(loss.compute(), 6)
        0.370922
    """

    higher_is_better = False
    value_range = (0.0, math.inf)
    family = Family.LOG_LOSS
    _reads_groups = True

    from_logits: bool = False
    spread: bool = True

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        loss: Literal["log", "logit"] = "logit" if self.from_logits else "log"
        return (summed(self, loss),)

    def readout(self, losses: ProbabilityLossSum) -> float:
        """Return the mean loss."""
        return losses.mean()


class BrierScore(ScoredMetric[float]):
    """Brier score: the squared error of probabilities, summed over classes, averaged over rows.

    Formula: Σ w Σ_k (p_k - [y = k])² / Σ w

    ``nan`` without rows.

    The other parameters are those of `ScoredMetric`.

    Args:
        scale_by_half: Whether to halve the score, so that it is in [0, 1], and (p - y)² for two
            classes. ``"auto"``: halve it for scores (n,) and (n, 2), as in scikit-learn.
        spread: Whether to also sum the squares of losses, which `confidence` needs; large batches
            then take 1.5 to 2 times as long.

    Memory and cost: `ProbabilityLossSum`, 100 bytes; 2 to 5 ns per score.

    Reference: ``sklearn.metrics.brier_score_loss``.

    Example:
        >>> import streammetrics as sm
        >>> sm.BrierScore().update([0, 1, 1, 0], [0.125, 0.75, 0.875, 0.25]).compute()
        0.0390625
    """

    higher_is_better = False
    value_range = (0.0, 2.0)
    family = Family.BRIER
    _reads_groups = True

    scale_by_half: Literal["auto"] | bool = "auto"
    spread: bool = True

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        return (summed(self, "brier", from_logits=self.from_logits),)

    def readout(self, losses: ProbabilityLossSum) -> float:
        """Return the mean loss."""
        halved = losses.columns < 3 if self.scale_by_half == "auto" else self.scale_by_half
        return losses.mean() / (1 + halved)


class ProbabilityLoss(ScoredMetric[float]):
    """Base class of losses of probabilities whose parameters were all released together."""

    higher_is_better: ClassVar[bool | None] = False
    family = Family.SCORE_LOSS
    _reads_groups = True

    spread: bool = True

    def readout(self, losses: ProbabilityLossSum) -> float:
        """Return the mean loss."""
        return losses.mean()


def summed(metric: Any, loss: LossName, **options: Any) -> ProbabilityLossSum:
    """Return the sum of a loss, with the sum of squares if the metric has ``spread=True``."""
    kind = ProbabilityLossSpread if metric.spread else ProbabilityLossSum
    return kind(loss=loss, **options, **schema_options(metric))


class FocalLoss(ProbabilityLoss):
    """Focal loss: the log loss with less weight on well-predicted rows, averaged.

    Formula: -Σ w (1 - p)^gamma log p / Σ w, with p the probability of the true class.

    The larger `gamma`, the less well-predicted rows count; with 0 it is `LogLoss`. Probabilities
    are clipped as in `LogLoss`; logits are not. Pass the class weights of the paper (alpha) as
    `sample_weight`; the mean is then over the sum of weights. ``nan`` without rows.

    The other parameters are those of `ScoredMetric`.

    Args:
        gamma: The exponent, 0 or more.
        from_logits: Whether scores are logits, as in `LogLoss`.
        spread: As in `LogLoss`.

    Memory and cost: `ProbabilityLossSum`, 100 bytes; 30 ns per score.

    Reference: Lin et al., "Focal loss for dense object detection", ICCV 2017;
    ``torchvision.ops.sigmoid_focal_loss(alpha=-1)``.

    Example:
        >>> import streammetrics as sm
        >>> round(sm.FocalLoss(gamma=2).update([1, 0, 1], [0.9, 0.25, 0.5]).compute(), 6)
        0.064107
    """

    value_range = (0.0, math.inf)

    gamma: Annotated[float, AtLeast(0)] = 2.0

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        loss: Literal["focal", "focal_logit"] = "focal_logit" if self.from_logits else "focal"
        return (summed(self, loss, parameter=self.gamma),)


class RankedProbabilityScore(ProbabilityLoss):
    """Ranked probability score: the squared error of cumulative probabilities of ordered classes.

    Formula: mean Σ_(k < K) (p_1 + ... + p_k - [y <= k])²

    The farther a class is from the true one, the more its probability counts. The columns of scores
    are in the order of the classes.

    The other parameters are those of `ScoredMetric`.

    Args:
        normalize: Whether to divide by K - 1, so that the score is in [0, 1].
        spread: As in `LogLoss`.

    Raises:
        InvalidBatchError: From `update`, if scores are not (n, K).

    Memory and cost: `ProbabilityLossSum`, 100 bytes; 5 ns per score.

    Reference: Epstein, "A scoring system for probability forecasts of ranked categories", J. Appl.
    Meteorol. 8 (1969); ``scoringrules.rps_score``.

    Example:
        >>> import streammetrics as sm
        >>> rps = sm.RankedProbabilityScore()
        >>> rps.update([0, 2], [[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]).compute()
        0.28125
    """

    higher_is_better = False
    family = Family.SCORE_LOSS

    normalize: bool = False

    @dependent
    def value_range(self) -> tuple[float, float]:
        """From 0 to 1 if normalized, else to one less than the classes."""
        return 0.0, 1.0 if self.normalize else math.inf

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        return (summed(self, "ranked", from_logits=self.from_logits),)

    def readout(self, losses: ProbabilityLossSum) -> float:
        """Return the mean loss."""
        return losses.mean() / (max(losses.columns - 1, 1) if self.normalize else 1)


def exponential(mean: float) -> float:
    """Return e to a non-negative power, infinity if it overflows float64."""
    return float(elementary.exp(mean)) if mean < _MOST else mean * math.inf


class Perplexity(ProbabilityLoss):
    """Perplexity: the exponential of the mean log loss of tokens.

    Formula: exp(-Σ w log p / Σ w), with p the probability of the true token.

    Tokens are labels (n,) with scores (n, V) over the vocabulary, or (B, T) with scores (B, V, T).
    Probabilities are clipped as in `LogLoss`; both share one state in a `MetricSet`. ``nan``
    without rows.

    The other parameters are those of `ScoredMetric`.

    Args:
        from_logits: Whether scores are logits, to which the log-softmax is applied.
        ignore_index: Tokens with this label, such as padding, are left out.
        spread: As in `LogLoss`.

    Memory and cost: same as `LogLoss`.

    Reference: ``torchmetrics.text.Perplexity``, which takes logits (B, T, V).

    Example:
        >>> import streammetrics as sm
        >>> tokens = sm.Perplexity(ignore_index=-100)
        >>> _ = tokens.update([0, 1, -100], [[0.5, 0.5], [0.75, 0.25], [0.9, 0.1]])
        >>> round(tokens.compute(), 6)
        2.828427
    """

    higher_is_better = False
    value_range = (1.0, math.inf)
    family = Family.PERPLEXITY

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        return (summed(self, "logit" if self.from_logits else "log"),)

    def readout(self, losses: ProbabilityLossSum) -> float:
        """Return the exponential of the mean loss."""
        return exponential(losses.mean())


class CalibrationInTheLarge(ProbabilityLoss):
    """Calibration in the large: the mean probability minus the observed rate.

    Formula: Σ w p / Σ w - P / n, with P positives among n rows.

    Above 0 the predictions are overconfident. For (n, K) scores it is the mean of the largest
    probability of each row minus the accuracy. ``nan`` without rows.

    The other parameters are those of `ScoredMetric`.

    Args:
        spread: As in `LogLoss`.

    Memory and cost: `ProbabilityLossSum`, 100 bytes; 3 ns per score.

    Reference: Steyerberg, "Clinical Prediction Models" (2019), 15.3; for (n, K) scores
    the overconfidence of Guo et al., "On calibration of modern neural networks", ICML 2017.

    Example:
        >>> import streammetrics as sm
        >>> sm.CalibrationInTheLarge().update([0, 1, 1, 0], [0.5, 0.75, 1.0, 0.25]).compute()
        0.125
    """

    higher_is_better = None
    value_range = (-1.0, 1.0)
    family = Family.SIGNED_SCORE_LOSS

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of differences."""
        return (summed(self, "excess", from_logits=self.from_logits),)


_NO_REST = 2.0**-60  # for x below this, -log(1 - x) is x in float64


class ShareOfLoss(ScoredMetric[float]):
    """Base class of metrics 1 - L / L_0, with L_0 the loss of predicting the class frequencies.

    1 is perfect, 0 no better than the frequencies. Undefined if all rows are of one class.
    """

    higher_is_better: ClassVar[bool | None] = True
    _nan_reason = "all rows are of one class"

    @abstractmethod
    def _null(self, shares: list[Fraction]) -> Fraction:
        """Return the mean loss of predicting the frequencies of the classes."""

    def readout(self, losses: ProbabilityLossSum, classes: ClassWeights) -> float:
        """Return the value."""
        shares, rows = classes.shares(), losses.rows.fraction()
        null = self._null(shares) if rows else 0
        return nearest(self._share(losses.total.fraction() / rows / null) if null else None)

    def _share(self, relative: Fraction) -> Fraction:
        """Return the value for the ratio of a loss to that of the frequencies."""
        return 1 - relative


class D2LogLoss(ShareOfLoss):
    """D² log loss: how much lower the log loss is than that of predicting class frequencies.

    Formula: 1 - L(p) / L(f), with L the log loss and f the frequencies of the classes.

    1 is perfect, 0 no better than the frequencies. It is McFadden's R² on these rows. Probabilities
    are clipped as in `LogLoss`; frequencies are not. Undefined if all rows are of one class.

    The other parameters are those of `ScoredMetric`.

    Args:
        from_logits: Whether scores are logits, as in `LogLoss`.

    Memory and cost: same as `LogLoss`, plus 16 bytes per class.

    Confidence: only with ``MetricSet(..., unit=...)``: the state does not record how the two
    losses vary together.

    Reference: ``sklearn.metrics.d2_log_loss_score``.

    Example:
        >>> import streammetrics as sm
        >>> share = sm.D2LogLoss().update([1, 0, 0, 1], [0.9, 0.1, 0.2, 0.35])
        >>> round(share.compute(), 6)
        0.464873
    """

    family = Refusal(BASELINE.format("loss", "LogLoss"))

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses, and the weights of classes."""
        return _log_losses(self)

    def _null(self, shares: list[Fraction]) -> Fraction:
        return _entropy(shares)


class D2Brier(ShareOfLoss):
    """D² Brier score (Brier skill score): how much lower it is than that of class frequencies.

    Formula: 1 - B(p) / B(f), with B the Brier score and f the frequencies of the classes.

    1 is perfect, 0 no better than the frequencies. Correctly rounded. Undefined if all rows are of
    one class.

    Parameters are those of `ScoredMetric`.

    Memory and cost: same as `BrierScore`, plus 16 bytes per class.

    Confidence: only with ``MetricSet(..., unit=...)``: the state does not record how the two
    losses vary together.

    Reference: ``sklearn.metrics.d2_brier_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.D2Brier().update([0, 1, 1, 0], [0.125, 0.75, 0.875, 0.25]).compute()
        0.84375
    """

    family = Refusal(BASELINE.format("loss", "BrierScore"))

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses, and the weights of classes."""
        options = self._schema_options
        loss = ProbabilityLossSum(loss="brier", from_logits=self.from_logits, **options)
        return loss, ClassWeights(**options)

    def _null(self, shares: list[Fraction]) -> Fraction:
        return 1 - sum((share * share for share in shares), start=shares[0] * 0)


class NormalizedEntropy(ShareOfLoss):
    """Normalized entropy: the log loss over that of predicting class frequencies.

    Formula: L(p) / L(f), with L the log loss and f the frequencies of the classes.

    Below 1 predictions are better than the frequencies. Probabilities are clipped as in `LogLoss`;
    frequencies are not. Undefined if all rows are of one class.

    The other parameters are those of `ScoredMetric`.

    Args:
        from_logits: Whether scores are logits, as in `LogLoss`.

    Memory and cost: same as `LogLoss`, plus 16 bytes per class.

    Confidence: only with ``MetricSet(..., unit=...)``: the state does not record how the two
    losses vary together.

    Reference: He et al. (2014), "Practical Lessons from Predicting Clicks on Ads at Facebook";
    ``torcheval.metrics.BinaryNormalizedEntropy``.

    Example:
        >>> import streammetrics as sm
        >>> loss = sm.NormalizedEntropy().update([1, 0, 0, 1], [0.9, 0.1, 0.2, 0.35])
        >>> round(loss.compute(), 6)
        0.535127
    """

    higher_is_better = False
    family = Refusal(BASELINE.format("loss", "LogLoss"))

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses, and the weights of classes."""
        return _log_losses(self)

    def _null(self, shares: list[Fraction]) -> Fraction:
        return _entropy(shares)

    def _share(self, relative: Fraction) -> Fraction:
        return relative


def _log_losses(metric: ShareOfLoss) -> tuple[Statistic, ...]:
    loss: Literal["log", "logit"] = "logit" if metric.from_logits else "log"
    options = metric._schema_options
    return ProbabilityLossSum(loss=loss, **options), ClassWeights(**options)


def _entropy(shares: list[Fraction]) -> Fraction:
    """Return the entropy of shares; each term has a relative error of at most 1e-15."""
    return sum((share * _information(share) for share in shares if share), start=Fraction(0))


def _information(share: Fraction) -> Fraction:
    """Return -log(share), computed from the other shares if this one is near 1."""
    rest = 1 - share
    if rest < _NO_REST:
        return rest
    if 2 * rest < 1:
        return Fraction(-float(elementary.log1p(-nearest(rest))))
    power = max(0, share.denominator.bit_length() - share.numerator.bit_length() - 1000)
    return Fraction(power * elementary.LOG_2 - float(elementary.log(float(share * 2**power))))


class DistributionMetric(MeanOfRows):
    """Base class of metrics of a true and a predicted distribution in each row."""

    from_logits: bool = False

    def update(
        self,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows.

        Args:
            y_true: The true probabilities, (n, K), or (n,) for one of two classes.
            y_score: The predicted probabilities, of the same shape.
            sample_weight: Non-negative weights, (n,).
            counts: How many rows each row stands for, (n,); whole numbers.

        Raises:
            InvalidBatchError: A row is not a distribution, or the numbers of classes differ.
        """
        return self.feed(
            {"y_true": y_true, "y_score": y_score, "sample_weight": sample_weight, "counts": counts}
        )


class CrossEntropy(DistributionMetric):
    """Mean cross-entropy of soft labels, in nats.

    Formula: -mean Σ_k p_k log q_k, with p the true and q the predicted probabilities.

    Predictions are clipped to [2**-52, 1 - 2**-52], as in `LogLoss`; logits are not. If each row
    has a single true class, it equals `LogLoss`.

    The other parameters are those of `MeanOfRows`.

    Args:
        from_logits: Whether predictions are logits, to which the log-softmax is applied, or the
            log-sigmoid for (n,) logits.

    Reference: ``torch.nn.CrossEntropyLoss`` with probabilities as targets.

    Example:
        >>> import streammetrics as sm
        >>> round(sm.CrossEntropy().update([[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5]] * 2).compute(), 6)
        0.693147
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of cross entropies."""
        options = {"from_logits": self.from_logits}
        return (DistributionSum(loss="cross_entropy", nan_policy=self.nan_policy, **options),)


class KLDivergence(DistributionMetric):
    """Mean Kullback-Leibler divergence of the true from the predicted distributions, in nats.

    Formula: mean Σ_k (p_k log(p_k / q_k) - p_k + q_k), with p the true and q the predicted
    probabilities. The last two terms add up to 0 over a row; with them no term is negative, and
    none loses its digits where p and q are nearly equal.

    Predictions below 2**-52 count as 2**-52, or as the true probability if that is smaller;
    predictions given as logits are used as they are.

    The other parameters are those of `MeanOfRows`.

    Args:
        from_logits: Whether predictions are logits, to which the log-softmax is applied, or the
            log-sigmoid for (n,) logits.

    Reference: ``scipy.stats.entropy(p, q)``; ``torchmetrics.KLDivergence``.

    Example:
        >>> import streammetrics as sm
        >>> round(sm.KLDivergence().update([[0.5, 0.5]], [[0.25, 0.75]]).compute(), 6)
        0.143841
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of divergences."""
        options = {"from_logits": self.from_logits}
        return (DistributionSum(loss="kl", nan_policy=self.nan_policy, **options),)


class _ScoreRows(Metric[float]):
    """Base class of metrics of labels and scores without the parameters of a `ScoredMetric`."""

    def update(
        self,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows: labels (n,), or indicators or sets of labels, and scores."""
        return self.feed(
            {"y_true": y_true, "y_score": y_score, "sample_weight": sample_weight, "counts": counts}
        )


class HingeLoss(_ScoreRows):
    """Mean hinge loss of decision values, or its square.

    Formula: Σ w max(0, 1 - m) / Σ w, with m the margin.

    For (n,) values f the margin is f for the positive class and -f for the other. For (n, K) values
    it is the value of the true class minus the largest of the others (Crammer and Singer). ``nan``
    without rows.

    Args:
        squared: Whether to square the loss of each row.
        spread: As in `LogLoss`.
        pos_label: As in `LogLoss`, for (n,) values.
        labels: The class of each column of (n, K) values, or the two classes of (n,) values.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
        ignore_index: Rows with this true label are left out, regardless of their other values.

    Raises:
        InvalidBatchError: From `update`, if a value is infinite or beyond 2**510.

    Memory and cost: `ProbabilityLossSum`, 100 bytes; 5 ns per score.

    Reference: ``sklearn.metrics.hinge_loss``; squared, ``torchmetrics.HingeLoss``.

    Example:
        >>> import streammetrics as sm
        >>> sm.HingeLoss().update([1, 0, 1, 1], [2.0, -0.5, 0.25, 1.0]).compute()
        0.3125
        >>> sm.HingeLoss(squared=True).update([1, 2], [[0.0, 2.0, 0.5], [0.0, 1.0, 0.5]]).compute()
        1.125
    """

    higher_is_better = False
    value_range = (0.0, math.inf)
    family = Family.SCORE_LOSS
    _reads_groups = True

    squared: bool = False
    spread: bool = True
    pos_label: Label | None = None
    labels: Any = None
    nan_policy: NanPolicy = "raise"
    ignore_index: int | None = None

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        return (summed(self, "hinge", parameter=2.0 if self.squared else 1.0),)

    def check_parameters(self) -> None:
        """Convert the labels to one type."""
        self.labels = one_kind(self.labels, self.ignore_index)

    def readout(self, losses: ProbabilityLossSum) -> float:
        """Return the mean loss."""
        return losses.mean()


class LabelRankingMetric(_ScoreRows):
    """Base class of metrics that average over rows how scores rank the labels.

    Args:
        labels: The names of the labels, in the order of columns; `y_true` may then be sets of them.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
        spread: Whether to also sum the squares of the rows' values, which `confidence` needs.

    Memory and cost: exact sums, 200 bytes; about 20 ns per score.
    """

    higher_is_better: ClassVar[bool | None] = False
    family = Family.SCORE_LOSS
    _reads_groups = True
    labels: Any = None
    nan_policy: NanPolicy = "raise"
    spread: bool = True

    @property
    @abstractmethod
    def _of(self) -> Literal["coverage", "precision", "inversions"]:
        """The value of a row that is averaged."""

    def check_parameters(self) -> None:
        """Convert the labels to one type."""
        self.labels = one_kind(self.labels)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of the rows' values."""
        kind = LabelRankingSpread if self.spread else LabelRankingSum
        return (kind(of=self._of, labels=self.labels, nan_policy=self.nan_policy),)

    def readout(self, sums: LabelRankingSum) -> float:
        """Return the mean."""
        return mean_of(sums.total, sums.rows)


class CoverageError(LabelRankingMetric):
    """Coverage error: how far down the ranking of labels the last true label is.

    Formula: mean_i max_(k in Y_i) rank_ik, with Y_i the true labels of row i.

    The rank of a label counts all labels with an equal score; a row without true labels counts as
    0. The best possible value is the mean number of true labels per row.

    Parameters are those of `LabelRankingMetric`.

    Reference: ``sklearn.metrics.coverage_error``.

    Example:
        >>> import streammetrics as sm
        >>> rows = [[1, 0, 0], [0, 1, 1]], [[0.9, 0.1, 0.5], [0.8, 0.6, 0.1]]
        >>> sm.CoverageError().update(*rows).compute()
        2.0
    """

    _of = "coverage"
    value_range = (0.0, math.inf)


class LabelRankingAveragePrecision(LabelRankingMetric):
    """Label ranking average precision: the precision at each true label, averaged.

    Formula: mean_i (1 / |Y_i|) Σ_(k in Y_i) (|{j in Y_i: s_j >= s_k}| / rank_ik), with Y_i the true
    labels of row i.

    A row with no true label, or with all labels, counts as 1.

    Parameters are those of `LabelRankingMetric`.

    Reference: ``sklearn.metrics.label_ranking_average_precision_score``.

    Example:
        >>> import streammetrics as sm
        >>> rows = [[1, 0, 0], [0, 0, 1]], [[0.75, 0.5, 1.0], [1.0, 0.2, 0.1]]
        >>> round(sm.LabelRankingAveragePrecision().update(*rows).compute(), 6)
        0.416667
    """

    higher_is_better = True
    _of = "precision"
    value_range = (0.0, 1.0)


class LabelRankingLoss(LabelRankingMetric):
    """Label ranking loss: the share of pairs of a true and a false label in the wrong order.

    Formula: mean_i (wrong_i / (|Y_i| (L - |Y_i|))), with wrong_i the pairs of row i in the wrong
    order and Y_i the true ones of its L labels.

    Labels with equal scores count as in the wrong order. A row with no true label, or with all
    labels, counts as 0.

    Parameters are those of `LabelRankingMetric`.

    Reference: ``sklearn.metrics.label_ranking_loss``.

    Example:
        >>> import streammetrics as sm
        >>> rows = [[1, 0, 0], [0, 0, 1]], [[0.75, 0.5, 1.0], [1.0, 0.2, 0.1]]
        >>> sm.LabelRankingLoss().update(*rows).compute()
        0.75
    """

    _of = "inversions"
    value_range = (0.0, 1.0)
