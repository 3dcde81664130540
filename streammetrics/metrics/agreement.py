"""Agreement of raters, and association of two labelings."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from streammetrics.core.arithmetic.exact import nearest
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.metrics.clustering.information import entropy, mutual_information
from streammetrics.metrics.clustering.pairs import LabelingMetric
from streammetrics.metrics.families import ITEMS
from streammetrics.statistics.tables import RaterCodes, RatingCounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike
    from streammetrics.metrics.clustering.pairs import Overlap
    from streammetrics.statistics.tables import Items, LabelPairs


def phi_squared(overlap: Overlap) -> float:
    """Return χ² / n, computed as a sum of non-negative terms."""
    expected, apart, absent = overlap.expected()
    return float((apart * (apart / expected)).sum()) / overlap.n / overlap.n + absent / overlap.n**2


def corrected(overlap: Overlap) -> tuple[float, float, float]:
    """Return φ², r - 1 and c - 1, all corrected for bias, with r and c labels on the two sides."""
    rows, columns, n = overlap.true_sizes.size - 1, overlap.pred_sizes.size - 1, overlap.n
    if n < 2:
        return 0.0, 0.0, 0.0
    phi = max(0.0, phi_squared(overlap) - rows * columns / (n - 1))
    return phi, rows - rows**2 / (n - 1), columns - columns**2 / (n - 1)


def _too_few(metric: LabelingMetric[float], table: LabelPairs) -> str:
    """Return why the value is undefined: a side has one label, or the correction leaves nothing."""
    why = LabelingMetric._lacking(metric, table)
    return why or "bias_correction=True leaves nothing of so few rows"


class CramersV(LabelingMetric[float]):
    """Cramér's V: the association of two nominal variables, from 0 to 1.

    Formula: √(χ² / (n min(r - 1, c - 1))), with r and c the numbers of labels of both sides.

    0 if the labelings are independent, 1 if the labels of one side determine those of the other.
    Undefined if either side has a single label.

    The other parameters are those of `LabelingMetric`.

    Args:
        bias_correction: Whether to subtract the value expected by chance (Bergsma's correction).
            torchmetrics does so by default; SciPy does not.

    Reference: ``scipy.stats.contingency.association(method="cramer")``;
    ``torchmetrics.nominal.CramersV``; Bergsma, J. Korean Stat. Soc. 42 (2013).

    Example:
        >>> import streammetrics as sm
        >>> sm.CramersV().update(["a", "a", "b", "b"], [0, 0, 1, 0]).compute()
        0.5773502691896257
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    bias_correction: bool = False

    _lacking = _too_few

    def read(self, overlap: Overlap) -> float:
        """Return the coefficient."""
        phi, rows, columns = _sides(overlap, self.bias_correction)
        return _root(phi, min(rows, columns))


class TschuprowsT(LabelingMetric[float]):
    """Tschuprow's T: the association of two nominal variables, from 0 to 1.

    Formula: √(χ² / (n √((r - 1) (c - 1)))), with r and c the numbers of labels of both sides.

    1 only if r = c and each label determines the other. Undefined if either side has a single
    label.

    The other parameters are those of `LabelingMetric`.

    Args:
        bias_correction: As in `CramersV`.

    Reference: ``scipy.stats.contingency.association(method="tschuprow")``;
    ``torchmetrics.nominal.TschuprowsT``.

    Example:
        >>> import streammetrics as sm
        >>> sm.TschuprowsT().update(["a", "a", "b", "b"], [0, 0, 1, 0]).compute()
        0.5773502691896257
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    bias_correction: bool = False

    _lacking = _too_few

    def read(self, overlap: Overlap) -> float:
        """Return the coefficient."""
        phi, rows, columns = _sides(overlap, self.bias_correction)
        return _root(phi, math.sqrt(max(rows, 0.0) * max(columns, 0.0)))


class PearsonsContingencyCoefficient(LabelingMetric[float]):
    """Pearson's contingency coefficient of two nominal variables.

    Formula: √(φ² / (1 + φ²)), with φ² = χ² / n.

    0 if the labelings are independent; at most √(1 - 1 / min(r, c)) for r and c labels.

    Parameters are those of `LabelingMetric`.

    Reference: ``scipy.stats.contingency.association(method="pearson")``;
    ``torchmetrics.nominal.PearsonsContingencyCoefficient``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PearsonsContingencyCoefficient().update(["a", "a", "b", "b"], [0, 0, 1, 0]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read(self, overlap: Overlap) -> float:
        """Return the coefficient."""
        phi = phi_squared(overlap)
        return math.sqrt(phi / (1 + phi))

    def _largest(self, overlap: Overlap) -> float:
        """Return √(1 - 1 / min(r, c))."""
        return math.sqrt(1 - 1 / min(len(overlap.true_sizes), len(overlap.pred_sizes)))


class TheilsU(LabelingMetric[float]):
    """Theil's U: the share of the entropy of `labels_true` that `labels_pred` explains.

    Formula: MI / H(true)

    Not symmetric. Equal to `Homogeneity`, except that it is undefined if `labels_true` has a single
    label.

    Parameters are those of `LabelingMetric`.

    Reference: Theil, "Statistical Decomposition Analysis" (1972);
    ``torchmetrics.nominal.TheilsU``.

    Example:
        >>> import streammetrics as sm
        >>> round(sm.TheilsU().update(["a", "a", "b", "b"], [0, 0, 1, 0]).compute(), 6)
        0.311278
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read(self, overlap: Overlap) -> float:
        """Return the share."""
        if overlap.true_sizes.size < 2:
            return math.nan
        return min(1.0, mutual_information(overlap) / entropy(overlap.true_sizes))


def _sides(overlap: Overlap, correct: bool) -> tuple[float, float, float]:
    if correct:
        return corrected(overlap)
    rows, columns = overlap.true_sizes.size - 1.0, overlap.pred_sizes.size - 1.0
    return phi_squared(overlap), rows, columns


def _root(phi: float, most: float) -> float:
    return min(1.0, math.sqrt(phi / most)) if most > 0 else math.nan


class Agreement(Metric[float]):
    """Base class of agreement metrics for raters who assign items to categories.

    Values are computed in exact arithmetic and rounded once. Items without ratings are left out.

    Args:
        nan_policy: ``"omit"`` leaves out items with a missing count; for `FleissKappa` also items
            that a rater did not rate.
        from_raters: ``True``: `ratings` (n, R) hold the category assigned by each of R raters, as
            an integer code from 0 to 1023. ``nan`` or null means not rated; `FleissKappa` treats
            it as a missing value. The categories are the codes that occur.
            Otherwise `ratings` (n, K) are counts of raters. With ``None`` all rows must have the
            same total, which detects codes passed by mistake. ``False`` also accepts different
            totals, except for `FleissKappa`, which requires equal numbers of ratings.

    Memory and cost: 8 (K + 1)² bytes per distinct number of ratings; about 20 K² ns per item.
    """

    _formula = ("readout", "read")

    nan_policy: NanPolicy = "raise"
    from_raters: bool | None = None

    _equal: ClassVar[bool] = False  # whether all items must have the same number of ratings

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sums of counts and of their products."""
        if self.from_raters:
            return (RaterCodes(nan_policy=self.nan_policy, partial=not self._equal),)
        equal = self._equal or self.from_raters is None
        return (RatingCounts(nan_policy=self.nan_policy, equal=equal),)

    def update(self, ratings: ArrayLike, *, counts: ArrayLike = None) -> Self:
        """Add a batch of items.

        Args:
            ratings: The number of raters who chose each of K categories, (n, K); with
                `from_raters` the category chosen by each of R raters, (n, R).
            counts: How many rows each row stands for, (n,); whole numbers.

        Raises:
            InvalidBatchError: A count or a code is not a non-negative integer, or items have
                different numbers of ratings where equal numbers are required.
        """
        return self.feed({"ratings": ratings, "counts": counts})

    def readout(self, ratings: RatingCounts | RaterCodes) -> float:
        """Return the agreement; ``nan`` if it is undefined."""
        items = ratings.items()
        return nearest(self.read(items) if any(each.ratings > 1 for each in items) else None)

    @abstractmethod
    def read(self, items: Sequence[Items]) -> Fraction | None:
        """Return the agreement; at least one item has two or more ratings."""


def _beyond(observed: Fraction, chance: Fraction) -> Fraction | None:
    return (observed - chance) / (1 - chance) if chance != 1 else None


def _observed(items: Sequence[Items]) -> Fraction:
    """Return the mean over items of the share of rating pairs that agree."""
    shares = [
        Fraction(sum(each.pairs[k][k] - each.counts[k] for k in range(len(each.counts))))
        / (each.ratings * (each.ratings - 1))
        for each in items
        if each.ratings > 1
    ]
    return sum(shares, Fraction(0)) / sum(each.items for each in items if each.ratings > 1)


class FleissKappa(Agreement):
    """Fleiss' kappa: agreement of raters beyond chance.

    Formula: (P - P_e) / (1 - P_e)

    P is the mean over items of the share of rating pairs that agree. P_e is the sum over categories
    of the squared share of all ratings, or with ``chance="uniform"`` 1 over the number of
    categories (Randolph's free-marginal kappa). All items must have the same number of ratings:
    counts with different totals raise, but an item without any rating is left out, though it is one
    of the `n_rows`; with `from_raters` an item that a rater did not rate is missing. Undefined if
    items have a single rating, or only one category occurs.

    The other parameters are those of `Agreement`.

    Args:
        chance: Whether categories are as likely by chance as they are ``"observed"``, or equally
            (``"uniform"``).

    Confidence: only with ``MetricSet(..., unit=...)``: the state does not record the agreement of
    single items.

    Reference: Fleiss, Psychol. Bull. 76 (1971); ``statsmodels.stats.inter_rater.fleiss_kappa``;
    ``torchmetrics.nominal.FleissKappa(mode="counts")``.

    Example:
        >>> import streammetrics as sm
        >>> sm.FleissKappa().update([[3, 0], [0, 3], [2, 1], [1, 2]]).compute()
        0.3333333333333333
        >>> codes = [[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 1]]  # of three raters
        >>> sm.FleissKappa(from_raters=True).update(codes).compute()
        0.3333333333333333
    """

    higher_is_better = True
    _nan_reason = "no item has two ratings, or only one category occurs"
    family = ITEMS
    _equal = True

    chance: Literal["observed", "uniform"] = "observed"

    def read(self, items: Sequence[Items]) -> Fraction | None:
        """Return kappa."""
        if self.chance == "uniform":
            return _beyond(_observed(items), Fraction(1, len(items[0].counts)))
        counts = [sum(column) for column in zip(*(each.counts for each in items), strict=True)]
        total = sum(counts)
        chance = sum((Fraction(count, total) ** 2 for count in counts), Fraction(0))
        return _beyond(_observed(items), chance)


class GwetAC1(Agreement):
    """Gwet's AC1: agreement of raters beyond chance, robust if one category dominates.

    Formula: (P - P_e) / (1 - P_e)

    P is that of `FleissKappa` and P_e = Σ_k π_k (1 - π_k) / (K - 1), where π_k is the mean over
    items of the share of ratings in category k. Undefined if no item has two ratings, or if there
    is only one category.

    Parameters are those of `Agreement`.

    Confidence: only with ``MetricSet(..., unit=...)``: the state does not record the agreement of
    single items.

    Reference: Gwet, Br. J. Math. Stat. Psychol. 61 (2008); ``irrCAC.raw.CAC.gwet``.

    Example:
        >>> import streammetrics as sm
        >>> sm.GwetAC1().update([[3, 0], [3, 0], [3, 0], [2, 1]]).compute()
        0.8032786885245902
    """

    higher_is_better = True
    _nan_reason = "no item has two ratings, or only one category occurs"
    family = ITEMS

    def read(self, items: Sequence[Items]) -> Fraction | None:
        """Return AC1."""
        size = len(items[0].counts)
        total = sum(each.items for each in items)
        shares = [
            sum((Fraction(each.counts[k], each.ratings) for each in items), Fraction(0)) / total
            for k in range(size)
        ]
        if size < 2:
            return None
        chance = sum((share * (1 - share) for share in shares), Fraction(0)) / (size - 1)
        return _beyond(_observed(items), chance)


class KrippendorffAlpha(Agreement):
    """Krippendorff's alpha: 1 minus the ratio of observed to expected disagreement of raters.

    Formula: 1 - D_o / D_e

    D_o is the mean squared distance between two ratings of the same item, each item weighted by its
    number of ratings. D_e is the mean squared distance between any two ratings. Items with a single
    rating are left out. Undefined if no item has two ratings, or only one category occurs.

    Confidence: only with ``MetricSet(..., unit=...)``: the state does not record the agreement of
    single items.

    The other parameters are those of `Agreement`.

    Args:
        level: Level of measurement, which defines the squared distance of two categories.
            ``"nominal"``: 1 if they differ. ``"interval"``: the squared difference of their
            positions, or of their codes with `from_raters`. ``"ratio"``: the square of that
            difference over their sum. ``"ordinal"``: the square of the number of ratings between
            them, which includes half of their own.

    Reference: Krippendorff, "Content Analysis" (2004), 11;
    ``krippendorff.alpha(value_counts=...)``.

    Example:
        >>> import streammetrics as sm
        >>> round(sm.KrippendorffAlpha().update([[3, 0], [0, 3], [2, 1], [1, 2]]).compute(), 6)
        0.388889
    """

    higher_is_better = True
    _nan_reason = "no item has two ratings, or only one category occurs"
    family = ITEMS

    level: Literal["nominal", "ordinal", "interval", "ratio"] = "nominal"

    def read(self, items: Sequence[Items]) -> Fraction | None:
        """Return alpha."""
        rated = [each for each in items if each.ratings > 1]
        size = range(len(rated[0].counts))
        together = [
            [
                sum((Fraction(each.pairs[a][b], each.ratings - 1) for each in rated), Fraction(0))
                for b in size
            ]
            for a in size
        ]
        counts = [sum(each.counts[k] for each in rated) for k in size]
        total = sum(counts)
        at = rated[0].values
        apart = [(a, b, self._distance(a, b, counts, at)) for a in size for b in size if a != b]
        observed = sum((together[a][b] * d for a, b, d in apart), Fraction(0)) / total
        chance = sum((counts[a] * counts[b] * d for a, b, d in apart), Fraction(0))
        return 1 - observed * total * (total - 1) / chance if chance else None

    def _distance(self, a: int, b: int, counts: Sequence[int], at: Sequence[int]) -> Fraction:
        """Return the squared distance of two categories; `at` holds the positions of all."""
        if self.level == "nominal":
            return Fraction(1)
        low, high = sorted((a, b))
        if self.level == "interval":
            return Fraction(at[high] - at[low]) ** 2
        if self.level == "ratio":
            return Fraction(at[high] - at[low], at[high] + at[low]) ** 2
        return (sum(counts[low : high + 1]) - Fraction(counts[low] + counts[high], 2)) ** 2
