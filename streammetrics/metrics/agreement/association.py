"""Association of two labelings whose labels have no order, from their table of counts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.exact.integers import exact_dot
from streammetrics.metrics.clustering.base import LabelingMetric
from streammetrics.metrics.clustering.entropy import mutual_information
from streammetrics.metrics.clustering.information import entropy

if TYPE_CHECKING:
    from streammetrics.metrics.clustering.view import Overlap

__all__ = ["CramersV", "PearsonsContingencyCoefficient", "TheilsU", "TschuprowsT"]


def phi_squared(overlap: Overlap) -> float:
    """Return χ² / n, as a sum of terms none of which is negative."""
    true, pred = overlap.true_sizes[overlap.rows], overlap.pred_sizes[overlap.columns]
    expected = true.astype(np.float64) * pred / overlap.n
    seen = float(((overlap.counts - expected) ** 2 / expected).sum()) / overlap.n
    # Pairs that never occur add what is expected of them, which is what is left of n.
    return seen + (overlap.n**2 - exact_dot(true, pred)) / overlap.n**2


def corrected(overlap: Overlap) -> tuple[float, float, float]:
    """Return φ², and the numbers of labels of both sides less 1, without what chance adds."""
    rows, columns, n = overlap.true_sizes.size - 1, overlap.pred_sizes.size - 1, overlap.n
    if n < 2:
        return 0.0, 0.0, 0.0
    phi = max(0.0, phi_squared(overlap) - rows * columns / (n - 1))
    return phi, rows - rows**2 / (n - 1), columns - columns**2 / (n - 1)


class CramersV(LabelingMetric[float]):
    """Cramér's V of a table with r rows and c columns.

    Formula: √(χ² / (n min(r - 1, c - 1)))

    0 of labelings that are independent, 1 where either says the other. Undefined where one has a
    single label.

    Args:
        bias_correction: Whether to take off what chance alone adds (Bergsma), as torchmetrics does
            by default, and SciPy does not.
        nan_policy: See `LabelingMetric`.

    Reference: ``scipy.stats.contingency.association(method="cramer")``;
    ``torchmetrics.nominal.CramersV``; Bergsma, J. Korean Stat. Soc. 42 (2013).

    Example:
        >>> import streammetrics as sm
        >>> sm.CramersV().update(["a", "a", "b", "b"], [0, 0, 1, 0]).compute()
        0.5773502691896257
    """

    bias_correction: bool = False

    def read(self, overlap: Overlap) -> float:
        """Return the coefficient."""
        phi, rows, columns = _sides(overlap, self.bias_correction)
        return _root(phi, min(rows, columns))


class TschuprowsT(LabelingMetric[float]):
    """Tschuprow's T of a table with r rows and c columns.

    Formula: √(χ² / (n √((r - 1) (c - 1))))

    It is 1 only where r = c and each label says the other. Undefined where one side has a single
    label.

    Args:
        bias_correction: As in `CramersV`.
        nan_policy: See `LabelingMetric`.

    Reference: ``scipy.stats.contingency.association(method="tschuprow")``;
    ``torchmetrics.nominal.TschuprowsT``.

    Example:
        >>> import streammetrics as sm
        >>> sm.TschuprowsT().update(["a", "a", "b", "b"], [0, 0, 1, 0]).compute()
        0.5773502691896257
    """

    bias_correction: bool = False

    def read(self, overlap: Overlap) -> float:
        """Return the coefficient."""
        phi, rows, columns = _sides(overlap, self.bias_correction)
        return _root(phi, math.sqrt(max(rows, 0.0) * max(columns, 0.0)))


class PearsonsContingencyCoefficient(LabelingMetric[float]):
    """Pearson's contingency coefficient.

    Formula: √(φ² / (1 + φ²)), with φ² = χ² / n.

    0 of labelings that are independent; at most √(1 - 1 / min(r, c)).

    Parameters are those of `LabelingMetric`.

    Reference: ``scipy.stats.contingency.association(method="pearson")``;
    ``torchmetrics.nominal.PearsonsContingencyCoefficient``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PearsonsContingencyCoefficient().update(["a", "a", "b", "b"], [0, 0, 1, 0]).compute()
        0.5
    """

    def read(self, overlap: Overlap) -> float:
        """Return the coefficient."""
        phi = phi_squared(overlap)
        return math.sqrt(phi / (1 + phi))


class TheilsU(LabelingMetric[float]):
    """Theil's U, the share of the entropy of `labels_true` that `labels_pred` tells.

    Formula: MI / H(true)

    It is not symmetric. Undefined where `labels_true` has a single label; else it is `Homogeneity`.

    Parameters are those of `LabelingMetric`.

    Reference: Theil, "Statistical Decomposition Analysis" (1972);
    ``torchmetrics.nominal.TheilsU``.

    Example:
        >>> import streammetrics as sm
        >>> round(sm.TheilsU().update(["a", "a", "b", "b"], [0, 0, 1, 0]).compute(), 6)
        0.311278
    """

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
