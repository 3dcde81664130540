"""Recommendations: coverage, exposure, novelty and diversity."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum, exact_dot
from streammetrics.core.confidence import Refusal
from streammetrics.core.configured import require
from streammetrics.core.constraints import AtLeast, NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.metrics.clustering.pairs import Overlap
from streammetrics.metrics.families import GROWS, LISTS, Family
from streammetrics.metrics.rowwise import MeanOfRows
from streammetrics.statistics.sums import Popularity
from streammetrics.statistics.tables import LabelPairs

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike
    from streammetrics.statistics.sums import RowSum


class CatalogueMetric(Metric[float]):
    """Base class of metrics of which items of a catalogue were shown, and how often."""

    n_items: int | None
    nan_policy: NanPolicy

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of pairs of a list and an item."""
        return (LabelPairs(row="query", column="item", nan_policy=self.nan_policy),)

    def update(self, query: ArrayLike, item: ArrayLike, *, counts: ArrayLike = None) -> Self:
        """Add a batch of rows: the id of a list, and the id of an item shown in it, each (n,)."""
        return self.feed({"query": query, "item": item, "counts": counts})

    def _lacking(self, table: LabelPairs) -> str:
        shown = Overlap.of(table).pred_sizes.size
        return f"{shown:,} items were shown, of a catalogue of n_items={self.n_items}"


class CatalogueCoverage(CatalogueMetric):
    """Catalogue coverage: the share of items that were recommended at all.

    Formula: |recommended items| / N, with N items in the catalogue.

    Args:
        n_items: The number N of items in the catalogue. The value is ``nan`` if more were
            recommended.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing id are left out.

    Memory and cost: same as `ExposureGini`; both share one state in a `MetricSet`.

    Reference: Ge, Delgado-Battenfeld and Jannach, "Beyond accuracy", RecSys 2010.

    Example:
        >>> import streammetrics as sm
        >>> sm.CatalogueCoverage(n_items=4).update(["u", "u", "v"], ["a", "b", "a"]).compute()
        0.5
    """

    higher_is_better = True
    family = Refusal(GROWS.format("a mean over lists, such as IntraListDiversity,"))

    n_items: Annotated[int, AtLeast(1)]
    nan_policy: NanPolicy = "raise"

    def readout(self, table: LabelPairs) -> float:
        """Return the share."""
        shown = Overlap.of(table).pred_sizes.size
        return shown / self.n_items if 0 < shown <= self.n_items else math.nan


class ExposureGini(CatalogueMetric):
    """Gini coefficient of exposure: 0 if items appear equally often, near 1 if only one does.

    Formula: Σ_i (2 i - N - 1) c_i / (N Σ_i c_i), with c_i the counts of the N items, in
    ascending order.

    Args:
        n_items: The number N of items in the catalogue, including those never recommended.
            ``None``: only items that were recommended count.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing id are left out.

    Memory and cost: 16 bytes per pair of a list and an item.

    Reference: Fleder and Hosanagar, "Blockbuster culture's next rise or fall", Manag. Sci. 55
    (2009).

    Example:
        >>> import streammetrics as sm
        >>> sm.ExposureGini().update(["u", "u", "v", "w"], ["a", "b", "a", "a"]).compute()
        0.25
    """

    higher_is_better = False
    family = LISTS

    n_items: Annotated[int, AtLeast(1)] | None = None
    nan_policy: NanPolicy = "raise"

    def readout(self, table: LabelPairs) -> float:
        """Return the coefficient."""
        counts = np.sort(Overlap.of(table).pred_sizes)
        shown, total = counts.size, int(counts.sum())
        n = self.n_items or shown
        if not 0 < shown <= n:
            return math.nan
        # Σ (2 i - n - 1) c_i in exact integers; counts are 0 except at i = n - shown + j.
        places = 2 * exact_dot(np.arange(1, shown + 1), counts)
        return (places + (n - 2 * shown - 1) * total) / (n * total)


class IntraListDiversity(Metric[float]):
    """Intra-list diversity: the share of pairs of items in a list from different categories.

    Formula: mean_q (1 - Σ_c m_c (m_c - 1) / (m (m - 1))), with m_c of the m items of a list in
    category c.

    The mean is over lists q with at least two items.

    Args:
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing id are left out.

    Memory and cost: 16 bytes per pair of a list and a category in it.

    Reference: Ziegler et al., "Improving recommendation lists through topic diversification",
    WWW 2005, with the distance 1 of different categories.

    Example:
        >>> import streammetrics as sm
        >>> lists, categories = ["u", "u", "u", "v", "v"], ["pop", "pop", "folk", "pop", "rap"]
        >>> round(sm.IntraListDiversity().update(lists, categories).compute(), 6)
        0.833333
    """

    higher_is_better = True
    family = LISTS
    _nan_reason = "no list has two items"

    nan_policy: NanPolicy = "raise"

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of pairs of a list and a category."""
        return (LabelPairs(row="query", column="category", nan_policy=self.nan_policy),)

    def update(self, query: ArrayLike, category: ArrayLike, *, counts: ArrayLike = None) -> Self:
        """Add a batch of rows: the id of a list, and the category of an item in it, each (n,)."""
        return self.feed({"query": query, "category": category, "counts": counts})

    def readout(self, table: LabelPairs) -> float:
        """Return the mean over lists."""
        if not len(table.counts):
            return math.nan
        overlap = Overlap.of(table)
        sizes = overlap.true_sizes.astype(np.float64)
        counts = overlap.counts.astype(np.float64)
        alike = np.bincount(overlap.rows, counts * (counts - 1), sizes.size)
        several = sizes > 1
        if not several.any():
            return math.nan
        values = 1 - alike[several] / (sizes[several] * (sizes[several] - 1))
        return float(ExactSum.of(values).fraction() / values.size)


class ListMean(MeanOfRows):
    """Base class of metrics that average a function of the popularity of shown items."""

    def update(
        self, popularity: ArrayLike, *, sample_weight: ArrayLike = None, counts: ArrayLike = None
    ) -> Self:
        """Add a batch of rows.

        Args:
            popularity: The share of users who know each shown item, (n,).
            sample_weight: Non-negative weights, (n,).
            counts: How many rows each row stands for, (n,); whole numbers.

        Raises:
            InvalidBatchError: A popularity is not above 0 and at most 1.
        """
        return self.feed(
            {"popularity": popularity, "sample_weight": sample_weight, "counts": counts}
        )


class Novelty(ListMean):
    """Novelty: the mean self-information of the shown items, in bits.

    Formula: -mean log_2 s, with s the share of users who know the item.

    Parameters are those of `MeanOfRows`.

    Reference: Zhou et al., "Solving the apparent diversity-accuracy dilemma of recommender
    systems", PNAS 107 (2010).

    Example:
        >>> import streammetrics as sm
        >>> sm.Novelty().update([0.5, 0.25]).compute()
        1.5
    """

    higher_is_better = True

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of self-information."""
        return (Popularity(surprise=True, nan_policy=self.nan_policy),)


class PopularityBias(ListMean):
    """Popularity bias: the mean popularity of shown items relative to that of the catalogue.

    Formula: mean u / c, with u the popularity of a shown item and c the mean popularity of the
    catalogue.

    Values above 1 mean that popular items are favoured.

    The other parameters are those of `MeanOfRows`.

    Args:
        of_catalogue: The mean popularity c of all items; with 1 the value is the mean popularity
            of shown items.

    Reference: Yin et al., "Challenging the long tail recommendation", VLDB 2012 (average
    recommendation popularity); Abdollahpouri et al. (2019).

    Example:
        >>> import streammetrics as sm
        >>> sm.PopularityBias(of_catalogue=0.25).update([0.5, 0.25]).compute()
        1.5
    """

    higher_is_better = False
    value_range = (0.0, math.inf)
    family = Family.ROW_MEAN

    of_catalogue: Annotated[float, AtLeast(0)] = 1.0

    def check_parameters(self) -> None:
        """Check that the catalogue's popularity is above 0."""
        require(self, "of_catalogue", 0 < self.of_catalogue <= 1, "a share above 0")

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of popularities."""
        return (Popularity(nan_policy=self.nan_policy),)

    def readout(self, held: RowSum) -> float:
        """Return the ratio."""
        return super().readout(held) / self.of_catalogue
