"""Losses of probabilities relative to always predicting the frequencies of the classes."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

from streammetrics.core import elementary
from streammetrics.core.arithmetic.rounding import nearest
from streammetrics.core.confidence import Refusal
from streammetrics.metrics.families import BASELINE
from streammetrics.metrics.scores.base import ScoredMetric
from streammetrics.statistics.scores.losses import ClassWeights, ProbabilityLossSum

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic

__all__ = ["D2Brier", "D2LogLoss", "NormalizedEntropy"]

_NO_REST = 2.0**-60  # -log(1 - x) of an x below this is x, to float64


class ShareOfLoss(ScoredMetric[float]):
    """Base of the metrics 1 - L / L_0, with L_0 the loss of predicting the class frequencies.

    1 is perfect, 0 no better than the frequencies. Undefined where all rows are of one class.
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
        """Return the value for a loss over that of the frequencies."""
        return 1 - relative


class D2LogLoss(ShareOfLoss):
    """D² log loss: how much lower the log loss is than that of predicting class frequencies.

    Formula: 1 - L(p) / L(f), with L the log loss and f the frequencies of the classes.

    1 is perfect, 0 no better than the frequencies. It is McFadden's R² on these rows. Probabilities
    are clipped as in `LogLoss`, and frequencies are not. Undefined where all rows are of one class.

    The other parameters are those of `ScoredMetric`.

    Args:
        from_logits: Whether scores are logits, as in `LogLoss`.

    Memory and cost: as `LogLoss`, and 16 bytes per class.

    Confidence: only by units, ``MetricSet(..., unit=...)``: the state does not hold how
    the two losses vary together.

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

    1 is perfect, 0 no better than the frequencies. Correctly rounded. Undefined where all rows are
    of one class.

    Parameters are those of `ScoredMetric`.

    Memory and cost: as `BrierScore`, and 16 bytes per class.

    Confidence: only by units, ``MetricSet(..., unit=...)``: the state does not hold how
    the two losses vary together.

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

    Below 1 where predictions are better than the frequencies. Probabilities are clipped as in
    `LogLoss`, and frequencies are not. Undefined where all rows are of one class.

    The other parameters are those of `ScoredMetric`.

    Args:
        from_logits: Whether scores are logits, as in `LogLoss`.

    Memory and cost: as `LogLoss`, and 16 bytes per class.

    Confidence: only by units, ``MetricSet(..., unit=...)``: the state does not hold how
    the two losses vary together.

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
    """Return the entropy of shares, each term of which is right to 1e-15 of itself."""
    return sum((share * _information(share) for share in shares if share), start=Fraction(0))


def _information(share: Fraction) -> Fraction:
    """Return -log(share), from the rest of the shares where this one is near 1."""
    rest = 1 - share
    if rest < _NO_REST:
        return rest
    if 2 * rest < 1:
        return Fraction(-float(elementary.log1p(-nearest(rest))))
    power = max(0, share.denominator.bit_length() - share.numerator.bit_length() - 1000)
    return Fraction(power * elementary.LOG_2 - float(elementary.log(float(share * 2**power))))
