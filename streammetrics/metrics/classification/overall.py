"""Metrics of the whole confusion table: accuracy, means over classes, and agreement."""

from __future__ import annotations

import math
from itertools import accumulate, repeat
from operator import add, mul
from typing import TYPE_CHECKING, Literal

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.metric import dependent
from streammetrics.metrics.averages import row_sums
from streammetrics.metrics.classification.base import ContingencyMetric
from streammetrics.metrics.families import Family

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streammetrics.core.types import Floats
    from streammetrics.metrics.classification.margins import Integers
    from streammetrics.metrics.classification.view import Confusion


class Accuracy(ContingencyMetric[float]):
    """Accuracy: the share of rows that are predicted correctly.

    Formula: Σ_i C_ii / n, with C_ij the rows of class i predicted as j.

    The other parameters are those of `ContingencyMetric`.

    Args:
        normalize: Whether to return the share of correct rows instead of their number.

    Reference: ``sklearn.metrics.accuracy_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.Accuracy().update(["cat", "dog", "dog"], ["cat", "dog", "cat"]).compute()
        0.6666666666666666
    """

    higher_is_better = True
    family = Family.HITS

    normalize: bool = True

    @dependent
    def value_range(self) -> tuple[float, float] | None:
        """From 0 to 1; a number of rows is unbounded."""
        return (0.0, 1.0) if self.normalize else None

    def read(self, table: Confusion) -> Floats:
        """Return the share of rows on the diagonal, or their number."""
        return self.ratio(table.hits, table.total) if self.normalize else table.unscaled(table.hits)


class ZeroOneLoss(ContingencyMetric[float]):
    """Zero-one loss: the share of rows that are predicted incorrectly.

    Formula: 1 - Σ_i C_ii / n, with C_ij the rows of class i predicted as j.

    The other parameters are those of `ContingencyMetric`.

    Args:
        normalize: Whether to return the share of incorrect rows instead of their number.

    Reference: ``sklearn.metrics.zero_one_loss``.

    Example:
        >>> import streammetrics as sm
        >>> sm.ZeroOneLoss().update(["cat", "dog", "dog"], ["cat", "dog", "cat"]).compute()
        0.3333333333333333
    """

    higher_is_better = False
    family = Family.MISSES

    normalize: bool = True

    @dependent
    def value_range(self) -> tuple[float, float] | None:
        """From 0 to 1; a number of rows is unbounded."""
        return (0.0, 1.0) if self.normalize else None

    def read(self, table: Confusion) -> Floats:
        """Return the share of rows off the diagonal, or their number."""
        misses = table.misses
        return self.ratio(misses, table.total) if self.normalize else table.unscaled(misses)


class BalancedAccuracy(ContingencyMetric[float]):
    """Balanced accuracy: the mean recall of the classes that have rows.

    Formula: mean_i (C_ii / t_i), with t_i the rows of class i.

    The other parameters are those of `ContingencyMetric`.

    Args:
        adjusted: Whether to rescale so that chance gives 0 and a perfect prediction 1.

    Reference: ``sklearn.metrics.balanced_accuracy_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.BalancedAccuracy().update([0, 0, 0, 1], [0, 0, 1, 1]).compute()
        0.8333333333333333
    """

    higher_is_better = True
    _nan_reason = "all rows are of one class"

    adjusted: bool = False

    @dependent
    def value_range(self) -> tuple[float, float]:
        """From 0 to 1, or from -1 to 1 if adjusted."""
        return (-1.0, 1.0) if self.adjusted else (0.0, 1.0)

    def read(self, table: Confusion) -> Floats:
        """Return the mean recall."""
        if self.adjusted:
            return np.array([self._above_chance(each) for each in table.integers()])
        recalls, seen = table.recalls()
        return np.asarray(row_sums(recalls, seen) / seen.sum(axis=1))

    def _above_chance(self, of: Integers) -> float:
        """Return (Σ recall - 1) / (K - 1), with recalls in units small enough to avoid rounding.

        For two classes the sum differs from 1 by more than a unit, or not at all.
        """
        actual, tp = of.actual, of.tp
        one = 1 << 2 * max(actual).bit_length() + 64
        recalls = [hits * one // rows for hits, rows in zip(tp, actual, strict=True) if rows]
        if len(recalls) < 2:
            return self._zero_by_zero
        above = sum(recalls) - one
        return above / ((len(recalls) - 1) * one) if abs(above) > len(recalls) else 0.0


class GMean(ContingencyMetric[float]):
    """G-mean: the geometric mean of the recalls of the classes that have rows.

    Formula: (Π_k r_k)^(1/K), with r_k the recall of class k of K.

    For two classes it is the square root of sensitivity times specificity. 0 if no row of a class
    is predicted correctly.

    Parameters are those of `ContingencyMetric`.

    Reference: Kubat and Matwin (1997); ``imblearn.metrics.geometric_mean_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.GMean().update([0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 0]).compute()
        0.7071067811865476
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read(self, table: Confusion) -> Floats:
        """Return the geometric mean, from logarithms, because the product may underflow."""
        recalls, seen = table.recalls()
        count = seen.sum(axis=1)
        with np.errstate(divide="ignore"):
            logs = np.log(recalls)
        means: Floats = np.exp(row_sums(logs, seen) / count)
        return np.where(count == 2, np.sqrt(recalls.prod(axis=1, where=seen)), means)


class ExpectedCost(ContingencyMetric[float]):
    """Expected cost: the mean cost of rows, by true and predicted class.

    Formula: Σ_(i,j) C_ij cost_ij / n, with C_ij the rows of class i predicted as j.

    The other parameters are those of `ContingencyMetric`.

    Args:
        cost: The cost of a row of class i (row) that is predicted as class j (column), in the order
            of `labels`. Without `labels` the classes are 0 to K - 1; with a threshold the negative
            class comes first.

    Raises:
        ValueError: `cost` is not a square matrix of finite numbers with one row per class.

    Reference: Elkan (2001), "The Foundations of Cost-Sensitive Learning".

    Example:
        >>> import streammetrics as sm
        >>> sm.ExpectedCost(cost=((0, 1), (5, 0))).update([0, 1, 1, 0], [1, 1, 0, 0]).compute()
        1.5
    """

    higher_is_better = False

    cost: tuple[tuple[float, ...], ...]

    def check_parameters(self) -> None:
        """Check that there is a cost for every pair of classes, and set the labels if needed."""
        costs = np.array([len(row) if isinstance(row, tuple) else -1 for row in self.cost])
        square = costs.size > 0 and bool((costs == costs.size).all())
        numbers = square and all(
            isinstance(x, int | float) and math.isfinite(x) for row in self.cost for x in row
        )
        require(self, "cost", numbers, "a square of finite numbers")
        if self.labels is None and self.threshold is None:
            self.labels = tuple(range(len(self.cost)))
        super().check_parameters()
        size = 2 if self.labels is None else len(self.labels)
        require(self, "cost", len(self.cost) == size, f"a square of {size} classes")

    def read(self, table: Confusion) -> Floats:
        """Return the mean cost."""
        costs = np.array(self.cost, np.float64)[table.rows, table.columns]
        terms = table.parts(costs * (table.amount / table.total[table.group]))
        return np.array([math.fsum(each) for each in terms])


class MatthewsCorrcoef(ContingencyMetric[float]):
    """Matthews correlation coefficient: the correlation of the true and the predicted class.

    Formula: (c n - Σ_k t_k p_k) / √((n² - Σ_k p_k²) (n² - Σ_k t_k²)), with c of n rows predicted
    right, t_k rows of class k and p_k predictions of it.

    Computed from integers and rounded once, so it is accurate for billions of rows. Undefined (see
    `zero_division`) if all rows are of one class, or are predicted as one class.

    Parameters are those of `ContingencyMetric`.

    Reference: ``sklearn.metrics.matthews_corrcoef``, which gives 0 if it is undefined.

    Example:
        >>> import streammetrics as sm
        >>> sm.MatthewsCorrcoef().update([1, 1, 1, 0], [1, 0, 1, 1]).compute()
        -0.3333333333333333
    """

    higher_is_better = True
    value_range = (-1.0, 1.0)
    _nan_reason = "all rows are of one class, or predicted as one"

    def read(self, table: Confusion) -> Floats:
        """Return the multiclass correlation coefficient."""
        return np.array(list(map(self._correlation, table.integers())))

    def _correlation(self, counts: Integers) -> float:
        actual, predicted, tp, _ = counts
        n = sum(actual)
        covariance = sum(tp) * n - _dot(actual, predicted)
        spread = (n * n - _dot(predicted, predicted)) * (n * n - _dot(actual, actual))
        if spread == 0:
            return self._zero_by_zero
        size = math.sqrt(covariance**2 / spread)  # quotients of integers are rounded once
        return size if covariance > 0 else 0.0 - size


class CohenKappa(ContingencyMetric[float]):
    """Cohen's kappa: agreement of true and predicted classes beyond chance.

    Formula: 1 - Σ w C / Σ w E, with C_ij the rows of class i predicted as j, E_ij = t_i p_j / n
    those expected by chance, and w_ij the cost of the disagreement.

    Computed from integers and rounded once, as for `MatthewsCorrcoef`.

    Undefined (see `zero_division`) if agreement is complete by chance alone.

    The other parameters are those of `ContingencyMetric`.

    Args:
        weights: The cost of a disagreement between classes i and j: 1 (``None``), |i - j|
            (``"linear"``) or its square (``"quadratic"``), by their positions in `classes`.

    Reference: ``sklearn.metrics.cohen_kappa_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.CohenKappa().update([0, 1, 2, 2], [0, 2, 2, 2]).compute()
        0.5555555555555556
    """

    higher_is_better = True
    value_range = (-1.0, 1.0)
    family = Family.KAPPA
    _nan_reason = "all rows are of one class and predicted as it, or of labels that are left out"

    weights: Literal["linear", "quadratic"] | None = None

    @property
    def _takes_others(self) -> bool:
        """Whether there may be other labels; their rows are left out."""
        return self.labels is not None

    def read(self, table: Confusion) -> Floats:
        """Return the weighted kappa."""
        table = table.within()
        apart = table.parts(np.abs(table.rows - table.columns)) if self.weights else repeat([])
        return np.array(list(map(self._agreement, table.integers(), apart)))

    def _agreement(self, counts: Integers, gaps: list[int]) -> float:
        actual, predicted, tp, cells = counts
        n = sum(actual)
        if self.weights is None:
            seen, chance = n - sum(tp), n * n - _dot(actual, predicted)
            return (chance - seen * n) / chance if chance else self._zero_by_zero
        if self.weights == "linear":
            # Σ |i - j| t p adds up the pairs across each gap between neighbouring classes.
            below, under = list(accumulate(actual)), list(accumulate(predicted))
            seen = _dot(gaps, cells)
            chance = n * (sum(below) + sum(under)) - 2 * _dot(below, under)
        else:
            places = range(len(actual))
            seen = _dot(map(mul, gaps, gaps), cells)
            chance = n * _dot(map(add, actual, predicted), map(mul, places, places))
            chance -= 2 * _dot(actual, places) * _dot(predicted, places)
        return (chance - seen * n) / chance if chance else self._zero_by_zero


def _dot(one: Iterable[int], other: Iterable[int]) -> int:
    return sum(map(mul, one, other))
