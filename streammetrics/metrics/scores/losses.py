"""What predicted probabilities lose: means of a loss of each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from streammetrics.metrics.scores.base import ScoredMetric
from streammetrics.statistics.scores.losses import ProbabilityLossSum
from streammetrics.statistics.spreads import ProbabilityLossSpread

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic

__all__ = ["BrierScore", "LogLoss"]


class LogLoss(ScoredMetric[float]):
    """Mean negative log-likelihood of the true class: -log p for it, averaged over rows.

    Probabilities are clipped to [2**-52, 1 - 2**-52], also where they come as float32, so that no
    batch is treated unlike another; they are not normalised. Of logits it is log(1 + e^-z) or the
    log-softmax, up to 9e307. ``nan`` of no rows.

    Args:
        from_logits: Whether scores are logits: log p / (1 - p) for (n,), softmax for (n, K).
            They are not clipped.
        spread: Whether to sum the squares of losses too: `confidence` needs them, and large
            batches take half as long again to twice as long. The others: see
            `ScoredMetric`.

    Memory and cost: `ProbabilityLossSum`, 100 bytes; 5 to 10 ns a score.

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
        kind = ProbabilityLossSpread if self.spread else ProbabilityLossSum
        return (kind(loss=loss, **self._schema_options),)

    def readout(self, losses: ProbabilityLossSum) -> float:
        """Return the mean loss."""
        return losses.mean()


class BrierScore(ScoredMetric[float]):
    """Mean squared error of probabilities: the sum over classes of (p_k - [true class is k])**2.

    ``nan`` of no rows.

    Args:
        scale_by_half: Whether to halve it, which puts it in [0, 1] and for two classes makes it
            (p - y)**2. ``"auto"``: for (n,) scores and for (n, 2), as scikit-learn does.
        spread: Whether to sum the squares of losses too: `confidence` needs them, and large
            batches take half as long again to twice as long. The others: see
            `ScoredMetric`.

    Memory and cost: `ProbabilityLossSum`, 100 bytes; 2 to 5 ns a score.

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
        kind = ProbabilityLossSpread if self.spread else ProbabilityLossSum
        return (kind(loss="brier", from_logits=self.from_logits, **self._schema_options),)

    def readout(self, losses: ProbabilityLossSum) -> float:
        """Return the mean loss."""
        halved = losses.columns < 3 if self.scale_by_half == "auto" else self.scale_by_half
        return losses.mean() / 2 if halved else losses.mean()
