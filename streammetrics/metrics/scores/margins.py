"""Losses of decision values: scores that are positive for one class and negative for the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from streammetrics.core.columns.labels import Label, one_kind
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.metrics.families import Family
from streammetrics.metrics.scores.losses import summed

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike
    from streammetrics.statistics.scores.losses import ProbabilityLossSum

__all__ = ["HingeLoss"]


class HingeLoss(Metric[float]):
    """Mean hinge loss of decision values, or its square.

    Formula: Σ w max(0, 1 - m) / Σ w, with m the margin.

    The margin of a value f of (n,) is f for the positive class and -f for the other. For (n, K)
    values it is that of the true class less the largest other (Crammer and Singer). ``nan`` without
    rows.

    Args:
        squared: Whether the loss of each row is squared.
        spread: As in `LogLoss`.
        pos_label: As in `LogLoss`, of (n,) values.
        labels: The class of each column of (n, K) values, or the two classes of (n,) values.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
        ignore_index: Rows with this true label are left out, whatever else they hold.

    Raises:
        InvalidBatchError: From `update`, where a value is infinite or beyond 2**510.

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
    family = Family.SCORE_LOSS

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

    def update(
        self, y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike = None
    ) -> Self:
        """Add a batch of rows: labels (n,), and decision values (n,) or (n, K)."""
        return self.feed({"y_true": y_true, "y_score": y_score, "sample_weight": sample_weight})

    def readout(self, losses: ProbabilityLossSum) -> float:
        """Return the mean loss."""
        return losses.mean()
