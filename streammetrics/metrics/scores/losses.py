"""What predicted probabilities lose: means of a loss of each row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from streammetrics.core.constraints import AtLeast
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

_MOST = 709.0  # whose exponential is still a float64


class LogLoss(ScoredMetric[float]):
    """Mean negative log-likelihood of the true class.

    Formula: -Σ w log p / Σ w, with p the probability of the true class.

    Probabilities are clipped to [2**-52, 1 - 2**-52], also where they come as float32, so that no
    batch is treated unlike another; they are not normalised. Of logits it is log(1 + e^-z) or the
    log-softmax, up to 9e307. ``nan`` of no rows.

    The other parameters are those of `ScoredMetric`.

    Args:
        from_logits: Whether scores are logits: log p / (1 - p) for (n,), softmax for (n, K).
            They are not clipped.
        spread: Whether to sum the squares of losses too: `confidence` needs them, and large
            batches take half as long again to twice as long.

    Memory and cost: `ProbabilityLossSum`, 100 bytes; 5 to 10 ns per score.

    Reference: ``sklearn.metrics.log_loss``.

    Example:
        >>> import streammetrics as sm
        >>> loss = sm.LogLoss().update([1, 0, 0, 1], [0.9, 0.1, 0.2, 0.35])
        >>> round(loss.compute(), 6)
        0.370922
    """

    higher_is_better = False

    from_logits: bool = False
    spread: bool = True

    _younger = (("ignore_index", None), ("spread", False))

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        loss: Literal["log", "logit"] = "logit" if self.from_logits else "log"
        return (summed(self, loss),)

    def readout(self, losses: ProbabilityLossSum) -> float:
        """Return the mean loss."""
        return losses.mean()


class BrierScore(ScoredMetric[float]):
    """Mean squared error of probabilities, summed over classes.

    Formula: Σ w Σ_k (p_k - [y = k])² / Σ w

    ``nan`` of no rows.

    The other parameters are those of `ScoredMetric`.

    Args:
        scale_by_half: Whether to halve it, which puts it in [0, 1] and for two classes makes it
            (p - y)**2. ``"auto"``: for (n,) scores and for (n, 2), as scikit-learn does.
        spread: Whether to sum the squares of losses too: `confidence` needs them, and large
            batches take half as long again to twice as long.

    Memory and cost: `ProbabilityLossSum`, 100 bytes; 2 to 5 ns per score.

    Reference: ``sklearn.metrics.brier_score_loss``.

    Example:
        >>> import streammetrics as sm
        >>> sm.BrierScore().update([0, 1, 1, 0], [0.125, 0.75, 0.875, 0.25]).compute()
        0.0390625
    """

    higher_is_better = False

    scale_by_half: Literal["auto"] | bool = "auto"
    spread: bool = True

    _younger = (*ScoredMetric._younger, ("spread", False))

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        return (summed(self, "brier", from_logits=self.from_logits),)

    def readout(self, losses: ProbabilityLossSum) -> float:
        """Return the mean loss."""
        halved = losses.columns < 3 if self.scale_by_half == "auto" else self.scale_by_half
        return losses.mean() / 2 if halved else losses.mean()


class ProbabilityLoss(ScoredMetric[float]):
    """A mean of one row's loss of probabilities, whose parameters are all of one age."""

    higher_is_better: ClassVar[bool | None] = False

    spread: bool = True

    _younger = ()

    def readout(self, losses: ProbabilityLossSum) -> float:
        """Return the mean loss."""
        return losses.mean()


def summed(metric: Any, loss: LossName, **options: Any) -> ProbabilityLossSum:
    """Return the sum of a loss, for a metric told to keep its spread with that of squares."""
    kind = ProbabilityLossSpread if metric.spread else ProbabilityLossSum
    return kind(loss=loss, **options, **schema_options(metric))


class FocalLoss(ProbabilityLoss):
    """Mean focal loss of the probability of the true class.

    Formula: -Σ w (1 - p)^gamma log p / Σ w

    Rows that are predicted well count less, the more so the larger `gamma`; at 0 it is `LogLoss`,
    with which it shares the clipping of probabilities. What classes weigh (alpha of the paper) is
    a `sample_weight`; the mean is then over the sum of weights. ``nan`` of no rows.

    The other parameters are those of `ScoredMetric`.

    Args:
        gamma: The exponent, 0 or more.
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
        options = {"parameter": self.gamma, "from_logits": self.from_logits}
        return (summed(self, "focal", **options),)


class RankedProbabilityScore(ProbabilityLoss):
    """Mean squared distance of cumulative probabilities, of classes that have an order.

    Formula: mean Σ_(k < K) (p_1 + ... + p_k - [y <= k])²

    A probability counts the more the farther its class is from the true one. Columns are in the
    order of the classes.

    The other parameters are those of `ScoredMetric`.

    Args:
        normalize: Whether to divide by K - 1, which puts it in [0, 1].
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

    normalize: bool = False

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        return (summed(self, "ranked", from_logits=self.from_logits),)

    def readout(self, losses: ProbabilityLossSum) -> float:
        """Return the mean loss."""
        return losses.mean() / (max(losses.columns - 1, 1) if self.normalize else 1)


def exponential(mean: float) -> float:
    """Return e to a power that is not negative, infinity where it is beyond float64."""
    return math.exp(mean) if mean < _MOST else mean * math.inf


class Perplexity(ProbabilityLoss):
    """Exponential of the mean log loss of tokens.

    Formula: exp(-Σ w log p / Σ w)

    Tokens are labels (n,) with scores (n, V) of the vocabulary, or (B, T) with (B, V, T).
    Probabilities are clipped as in `LogLoss`, with which it shares its state in a set. ``nan`` of
    no rows.

    The other parameters are those of `ScoredMetric`.

    Args:
        from_logits: Whether scores are logits, of which the log-softmax is taken.
        ignore_index: Tokens with this label are left out, such as padding.
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

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        return (summed(self, "logit" if self.from_logits else "log"),)

    def readout(self, losses: ProbabilityLossSum) -> float:
        """Return the exponential of the mean loss."""
        return exponential(losses.mean())


class CalibrationInTheLarge(ProbabilityLoss):
    """Mean probability less the rate of what was predicted: above 0 is too sure.

    Formula: Σ w p / Σ w - P / n

    Of (n,) scores Σ w p / Σ w less the share of positives; of (n, K) the mean of the largest
    probability of each row less the accuracy. ``nan`` of no rows.

    The other parameters are those of `ScoredMetric`.

    Args:
        spread: As in `LogLoss`.

    Memory and cost: `ProbabilityLossSum`, 100 bytes; 3 ns per score.

    Reference: Steyerberg, "Clinical Prediction Models" (2019), 15.3; of (n, K) scores what
    Guo et al. 2017 call overconfidence.

    Example:
        >>> import streammetrics as sm
        >>> sm.CalibrationInTheLarge().update([0, 1, 1, 0], [0.5, 0.75, 1.0, 0.25]).compute()
        0.125
    """

    higher_is_better = None

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of differences."""
        return (summed(self, "excess", from_logits=self.from_logits),)
