"""Whether the true class is among those that score highest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from streammetrics.core.columns.labels import Label, one_kind
from streammetrics.core.constraints import AtLeast, NanPolicy
from streammetrics.core.exact.rounding import nearest
from streammetrics.core.metric import Metric
from streammetrics.statistics.tables.topk import TopKHits

if TYPE_CHECKING:
    from streammetrics.core.types import ArrayLike


__all__ = ["TopKAccuracy"]


class TopKAccuracy(Metric[float]):
    """Share of rows whose true class is among the k highest scores.

    Formula: Σ w [rank_y <= k] / Σ w, with rank_y that of the true class.

    Among equal scores the class of the later column comes first, whatever the order of rows. Of
    one score a row, the probability of the positive of two classes and for ``k=1`` only, that class
    comes first where it is above a half.

    Args:
        k: How many classes may be named.
        labels: The class of each column of scores; ``None``: the integers 0 to K - 1.
        pos_label: The class of one score a row.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
        from_logits: Whether scores are logits; their order within a row is the same, and of one a
            row those above 0 are of the positive class.
        ignore_index: Rows with this true label are left out, whatever else they hold.
        normalize: ``False`` gives the sum of the rows that are right, not their share.

    Raises:
        ValueError: `k` is not positive.

    Memory and cost: two sums.

    Reference: ``sklearn.metrics.top_k_accuracy_score``.

    Example:
        >>> import streammetrics as sm
        >>> top = sm.TopKAccuracy(k=2)
        >>> top.update([0, 2], [[0.4, 0.5, 0.1], [0.3, 0.6, 0.1]]).compute()
        0.5
    """

    higher_is_better = True

    k: Annotated[int, AtLeast(1)] = 2
    labels: Any = None
    nan_policy: NanPolicy = "raise"
    from_logits: bool = False
    ignore_index: int | None = None
    normalize: bool = True
    pos_label: Label = 1

    _younger = (
        ("from_logits", False), ("ignore_index", None), ("normalize", True), ("pos_label", 1),
    )  # fmt: skip

    def check_parameters(self) -> None:
        """Bring the labels to one kind."""
        self.labels = one_kind(self.labels, self.ignore_index)

    def statistics(self) -> tuple[TopKHits]:
        """Return the hits."""
        hits = TopKHits(
            k=self.k,
            labels=self.labels,
            pos_label=self.pos_label,
            nan_policy=self.nan_policy,
            ignore_index=self.ignore_index,
            from_logits=self.from_logits,
        )
        return (hits,)

    def update(
        self, y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike = None
    ) -> Self:
        """Take rows: labels, and (n, K) scores, or one score a row."""
        return self.feed({"y_true": y_true, "y_score": y_score, "sample_weight": sample_weight})

    def readout(self, counts: TopKHits) -> float:
        """Return hits over rows, or hits."""
        total = counts.total.fraction()
        if not self.normalize:
            return nearest(counts.hits.fraction())
        return nearest(counts.hits.fraction() / total if total else None)
