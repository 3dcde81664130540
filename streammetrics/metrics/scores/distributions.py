"""Predicted distributions over classes compared with true ones, such as soft labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from streammetrics.metrics.rowwise import RowMean
from streammetrics.statistics.scores.distributions import DistributionSum

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike

__all__ = ["CrossEntropy", "KLDivergence"]


class DistributionMetric(RowMean):
    """Base of the metrics of a true and a predicted distribution in each row."""

    from_logits: bool = False

    def update(
        self, y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike = None
    ) -> Self:
        """Add a batch of rows.

        Args:
            y_true: The true probabilities, (n, K), or (n,) of one of two classes.
            y_score: The predicted ones, of the same shape.
            sample_weight: Non-negative weights, (n,).

        Raises:
            InvalidBatchError: A row is not a distribution, or the numbers of classes differ.
        """
        return self.feed({"y_true": y_true, "y_score": y_score, "sample_weight": sample_weight})


class CrossEntropy(DistributionMetric):
    """Mean cross-entropy of soft labels, in nats.

    Formula: -mean Σ_k p_k log q_k, with p the true and q the predicted probabilities.

    Predictions are clipped to [2**-52, 1 - 2**-52], as in `LogLoss`, and logits are not. Where each
    row has a single true class, it equals `LogLoss`.

    The other parameters are those of `RowMean`.

    Args:
        from_logits: Whether predictions are logits, of which the log-softmax is taken, or the
            log-sigmoid of (n,) ones.

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

    Predictions below 2**-52 count as that where the true probability is larger; those of logits
    count as what they are.

    The other parameters are those of `RowMean`.

    Args:
        from_logits: Whether predictions are logits, of which the log-softmax is taken, or the
            log-sigmoid of (n,) ones.

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
