"""Predicted distributions over classes against true ones, such as soft labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from streammetrics.metrics.rowwise import RowMean
from streammetrics.statistics.scores.distributions import DistributionSum

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike

__all__ = ["CrossEntropy", "KLDivergence"]


class DistributionMetric(RowMean):
    """A metric of two distributions in each row."""

    from_logits: bool = False

    def update(
        self, y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike = None
    ) -> Self:
        """Take rows: true and predicted probabilities (n, K), or (n,) of one of two classes.

        Raises:
            InvalidBatchError: What should be probabilities is not, or of other classes.
        """
        return self.feed({"y_true": y_true, "y_score": y_score, "sample_weight": sample_weight})


class CrossEntropy(DistributionMetric):
    """Mean cross entropy of soft labels, of the true p and the predicted q, in nats.

    Formula: -mean Σ_k p_k log q_k

    Predictions are clipped to [2**-52, 1 - 2**-52], as in `LogLoss`, which it is for labels of one
    class each.

    The other parameters are those of `RowMean`.

    Args:
        from_logits: Whether predictions are logits, of which probabilities are made.

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
    """Mean Kullback-Leibler divergence of the true p and the predicted q, in nats.

    Formula: mean Σ_k p_k log(p_k / q_k)

    Predictions are clipped to [2**-52, 1 - 2**-52], as in `LogLoss`.

    The other parameters are those of `RowMean`.

    Args:
        from_logits: Whether predictions are logits, of which probabilities are made.

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
