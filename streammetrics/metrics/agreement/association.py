"""Association of two nominal variables, from their contingency table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from streammetrics.metrics.clustering.base import LabelingMetric
from streammetrics.metrics.clustering.entropy import mutual_information
from streammetrics.metrics.clustering.information import entropy

if TYPE_CHECKING:
    from streammetrics.metrics.clustering.view import Overlap
    from streammetrics.statistics.tables.contingency import LabelPairs

__all__ = ["CramersV", "PearsonsContingencyCoefficient", "TheilsU", "TschuprowsT"]


def phi_squared(overlap: Overlap) -> float:
    """Return χ² / n, as a sum of terms none of which is negative."""
    expected, apart, absent = overlap.expected()
    return float((apart * (apart / expected)).sum()) / overlap.n / overlap.n + absent / overlap.n**2


def corrected(overlap: Overlap) -> tuple[float, float, float]:
    """Return φ² and the numbers of labels of both sides less 1, each corrected for bias."""
    rows, columns, n = overlap.true_sizes.size - 1, overlap.pred_sizes.size - 1, overlap.n
    if n < 2:
        return 0.0, 0.0, 0.0
    phi = max(0.0, phi_squared(overlap) - rows * columns / (n - 1))
    return phi, rows - rows**2 / (n - 1), columns - columns**2 / (n - 1)


def _too_few(metric: LabelingMetric[float], table: LabelPairs) -> str:
    """Return which side has a single label, or that the correction leaves nothing."""
    why = LabelingMetric._lacking(metric, table)
    return why or "bias_correction=True leaves nothing of so few rows"


class CramersV(LabelingMetric[float]):
    """Cramér's V: the association of two nominal variables, from 0 to 1.

    Formula: √(χ² / (n min(r - 1, c - 1))), with r and c the numbers of labels of both sides.

    0 where the labelings are independent, 1 where the labels of one side determine the other's.
    Undefined where a side has a single label.

    The other parameters are those of `LabelingMetric`.

    Args:
        bias_correction: Whether to subtract the value expected by chance (Bergsma), as torchmetrics
            does by default and SciPy does not.

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

    1 only where r = c and each label determines the other. Undefined where a side has a single
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

    0 where the labelings are independent; at most √(1 - 1 / min(r, c)), for r and c labels.

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


class TheilsU(LabelingMetric[float]):
    """Theil's U: the share of the entropy of `labels_true` that `labels_pred` explains.

    Formula: MI / H(true)

    It is not symmetric. It equals `Homogeneity`, but is undefined where `labels_true` has a single
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
