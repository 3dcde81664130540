"""Top-k accuracy: whether the true class is among those with the highest scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from streammetrics.core.arithmetic.exact import nearest
from streammetrics.core.columns.labels import Label, one_kind
from streammetrics.core.constraints import AtLeast, NanPolicy
from streammetrics.core.metric import Metric, dependent
from streammetrics.metrics.families import Family
from streammetrics.statistics.tables.threshold import TopKHits

if TYPE_CHECKING:
    from streammetrics.core.types import ArrayLike


class TopKAccuracy(Metric[float]):
    """Top-k accuracy: the share of rows whose true class is among the k highest scores.

    Formula: Σ w [rank_y <= k] / Σ w, with rank_y the rank of the true class.

    If scores are equal, the class of the later column ranks first. Scores (n,) are probabilities of
    the positive of two classes, which ranks first if its score is above 0.5; they are allowed only
    for ``k=1``.

    Args:
        k: The number of highest scores that count, at least 1.
        labels: The class of each column of scores; ``None``: the integers 0 to K - 1.
        pos_label: The positive class of (n,) scores. ``None``: 1, with labels 0 and 1, -1 and 1, or
            booleans; any other labels raise.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
        from_logits: Whether scores are logits: scores (n,) are then compared with 0 instead of 0.5.
            For (n, K) scores it makes no difference.
        ignore_index: Rows with this true label are left out, regardless of their other values.
        normalize: Whether to return the share of correct rows instead of their number.

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
    family = Family.TOP_K

    k: Annotated[int, AtLeast(1)] = 2
    labels: Any = None
    nan_policy: NanPolicy = "raise"
    from_logits: bool = False
    ignore_index: int | None = None
    normalize: bool = True
    pos_label: Label | None = None

    def check_parameters(self) -> None:
        """Convert the labels to one type."""
        self.labels = one_kind(self.labels, self.ignore_index)

    @dependent
    def value_range(self) -> tuple[float, float] | None:
        """From 0 to 1; a number of rows is unbounded."""
        return (0.0, 1.0) if self.normalize else None

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
        self,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows: labels (n,), and scores (n, K) or (n,)."""
        return self.feed(
            {"y_true": y_true, "y_score": y_score, "sample_weight": sample_weight, "counts": counts}
        )

    def readout(self, counts: TopKHits) -> float:
        """Return the share of hits, or their number."""
        total = counts.total.fraction()
        if not self.normalize:
            return nearest(counts.hits.fraction())
        return nearest(counts.hits.fraction() / total if total else None)
