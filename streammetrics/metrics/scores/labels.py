"""How well the scores of a row rank its labels, where rows have several labels."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from streammetrics.core.arithmetic.rounding import nearest
from streammetrics.core.columns.labels import one_kind
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.metrics.families import Family
from streammetrics.statistics.scores.labels import LabelRankingSpread, LabelRankingSum

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike

__all__ = ["CoverageError", "LabelRankingAveragePrecision", "LabelRankingLoss"]


class LabelRankingMetric(Metric[float]):
    """Base of the metrics that are a mean over rows of how scores rank labels.

    Args:
        labels: The names of the labels, in the order of columns; `y_true` may then be sets of them.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
        spread: Whether to sum the squares of the rows' values too, which `confidence` needs.

    Memory and cost: exact sums, 200 bytes; about 20 ns per score.
    """

    higher_is_better: ClassVar[bool | None] = False
    family = Family.SCORE_LOSS
    labels: Any = None
    nan_policy: NanPolicy = "raise"
    spread: bool = True

    @property
    @abstractmethod
    def _of(self) -> Literal["coverage", "precision", "inversions"]:
        """Which value of a row is averaged."""

    def check_parameters(self) -> None:
        """Convert the labels to one type."""
        self.labels = one_kind(self.labels)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of the rows' values."""
        kind = LabelRankingSpread if self.spread else LabelRankingSum
        return (kind(of=self._of, labels=self.labels, nan_policy=self.nan_policy),)

    def update(
        self, y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike = None
    ) -> Self:
        """Add a batch of rows: indicators (n, L) or sets of labels, and scores (n, L)."""
        return self.feed({"y_true": y_true, "y_score": y_score, "sample_weight": sample_weight})

    def readout(self, sums: LabelRankingSum) -> float:
        """Return the mean."""
        rows = sums.rows.fraction()
        return nearest(sums.total.fraction() / rows if rows else None)


class CoverageError(LabelRankingMetric):
    """Coverage error: how far down the ranking of labels one must go to find all true ones.

    Formula: mean_i max_(k in Y_i) rank_ik, with Y_i the true labels of row i.

    Labels with equal scores are all counted; a row without labels counts 0. The best possible value
    is the mean number of true labels per row.

    Parameters are those of `LabelRankingMetric`.

    Reference: ``sklearn.metrics.coverage_error``.

    Example:
        >>> import streammetrics as sm
        >>> rows = [[1, 0, 0], [0, 1, 1]], [[0.9, 0.1, 0.5], [0.8, 0.6, 0.1]]
        >>> sm.CoverageError().update(*rows).compute()
        2.0
    """

    _of = "coverage"


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
