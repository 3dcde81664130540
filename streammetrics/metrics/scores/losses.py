"""Losses of predicted probabilities: means of one loss per row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from streammetrics.core import elementary
from streammetrics.core.constraints import AtLeast
from streammetrics.metrics.families import Family
from streammetrics.metrics.scores.base import ScoredMetric, schema_options
from streammetrics.statistics.scores.losses import ProbabilityLossSum
from streammetrics.statistics.scores.spreads import ProbabilityLossSpread

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.statistics.scores.losses import LossName

__all__ = [
    "BrierScore",
    "CalibrationInTheLarge",
    "FocalLoss",
    "LogLoss",
    "Perplexity",
    "RankedProbabilityScore",
]

_MOST = 709.0  # its exponential is still a float64


class LogLoss(ScoredMetric[float]):
    """Log loss (cross-entropy): the mean negative log-likelihood of the true class.

    Formula: -Σ w log p / Σ w, with p the probability of the true class.

    Probabilities are clipped to [2**-52, 1 - 2**-52], also those given as float32, so that all
    batches are treated alike; they are not normalized. Logits z, up to 9e307, are not clipped: the
    loss is then log(1 + e^-z) or the negative log-softmax. ``nan`` without rows.

    The other parameters are those of `ScoredMetric`.

    Args:
        from_logits: Whether scores are logits: log(p / (1 - p)) for (n,) scores, the inputs of a
            softmax for (n, K) scores.
        spread: Whether to sum the squares of losses too, which `confidence` needs; large batches
            then take half as long again to twice as long.

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
            classes. ``"auto"``: halve it for scores (n,) and (n, 2), as scikit-learn does.
        spread: Whether to sum the squares of losses too, which `confidence` needs; large batches
            then take half as long again to twice as long.

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

    scale_by_half: Literal["auto"] | bool = "auto"
    spread: bool = True

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        return (summed(self, "brier", from_logits=self.from_logits),)

    def readout(self, losses: ProbabilityLossSum) -> float:
        """Return the mean loss."""
        halved = losses.columns < 3 if self.scale_by_half == "auto" else self.scale_by_half
        return losses.mean() / 2 if halved else losses.mean()


class ProbabilityLoss(ScoredMetric[float]):
    """Base of the later losses of probabilities, whose parameters all came in one release."""

    higher_is_better: ClassVar[bool | None] = False
    family = Family.SCORE_LOSS

    spread: bool = True

    def readout(self, losses: ProbabilityLossSum) -> float:
        """Return the mean loss."""
        return losses.mean()


def summed(metric: Any, loss: LossName, **options: Any) -> ProbabilityLossSum:
    """Return the sum of a loss, with the sum of squares if the metric has ``spread=True``."""
    kind = ProbabilityLossSpread if metric.spread else ProbabilityLossSum
    return kind(loss=loss, **options, **schema_options(metric))


class FocalLoss(ProbabilityLoss):
    """Focal loss: the log loss with less weight on rows that are predicted well, averaged.

    Formula: -Σ w (1 - p)^gamma log p / Σ w, with p the probability of the true class.

    The larger `gamma`, the less rows count that are predicted well; with 0 it is `LogLoss`.
    Probabilities are clipped as there, and logits are not. The class weights of the paper (alpha)
    are given as `sample_weight`, and the mean is then over the sum of weights. ``nan`` without
    rows.

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

    gamma: Annotated[float, AtLeast(0)] = 2.0

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        loss: Literal["focal", "focal_logit"] = "focal_logit" if self.from_logits else "focal"
        return (summed(self, loss, parameter=self.gamma),)


class RankedProbabilityScore(ProbabilityLoss):
    """Ranked probability score: the squared error of cumulative probabilities of ordered classes.

    Formula: mean Σ_(k < K) (p_1 + ... + p_k - [y <= k])²

    Probability counts the more, the farther its class is from the true one. The columns of scores
    are in the order of the classes.

    The other parameters are those of `ScoredMetric`.

    Args:
        normalize: Whether to divide by K - 1, so that the score is in [0, 1].
        spread: As in `LogLoss`.

    Raises:
        InvalidBatchError: From `update`, where scores are not (n, K).

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

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        return (summed(self, "ranked", from_logits=self.from_logits),)

    def readout(self, losses: ProbabilityLossSum) -> float:
        """Return the mean loss."""
        return losses.mean() / (max(losses.columns - 1, 1) if self.normalize else 1)


def exponential(mean: float) -> float:
    """Return e to a non-negative power, infinity where it is beyond float64."""
    return float(elementary.exp(mean)) if mean < _MOST else mean * math.inf


class Perplexity(ProbabilityLoss):
    """Perplexity: the exponential of the mean log loss of tokens.

    Formula: exp(-Σ w log p / Σ w), with p the probability of the true token.

    Tokens are labels (n,) with scores (n, V) over the vocabulary, or (B, T) with scores (B, V, T).
    Probabilities are clipped as in `LogLoss`, with which it shares its state in a set. ``nan``
    without rows.

    The other parameters are those of `ScoredMetric`.

    Args:
        from_logits: Whether scores are logits, of which the log-softmax is taken.
        ignore_index: Tokens with this label, such as padding, are left out.
        spread: As in `LogLoss`.

    Memory and cost: as `LogLoss`.

    Reference: ``torchmetrics.text.Perplexity``, which takes logits (B, T, V).

    Example:
        >>> import streammetrics as sm
        >>> tokens = sm.Perplexity(ignore_index=-100)
        >>> _ = tokens.update([0, 1, -100], [[0.5, 0.5], [0.75, 0.25], [0.9, 0.1]])
        >>> round(tokens.compute(), 6)
        2.828427
    """

    higher_is_better = False
    family = Family.PERPLEXITY

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        return (summed(self, "logit" if self.from_logits else "log"),)

    def readout(self, losses: ProbabilityLossSum) -> float:
        """Return the exponential of the mean loss."""
        return exponential(losses.mean())


class CalibrationInTheLarge(ProbabilityLoss):
    """Calibration in the large: the mean probability less the observed rate.

    Formula: Σ w p / Σ w - P / n, with P positives among n rows.

    Above 0 the predictions are overconfident. For (n, K) scores it is the mean of the largest
    probability of each row less the accuracy. ``nan`` without rows.

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
    family = Family.SIGNED_SCORE_LOSS

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of differences."""
        return (summed(self, "excess", from_logits=self.from_logits),)
