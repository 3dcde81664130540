"""Clustering against ground truth: mutual information and entropies."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from streammetrics.core.constraints import Positive
from streammetrics.metrics.clustering.pairs import LabelingMetric
from streammetrics.metrics.families import Family
from streammetrics.statistics.formulas import deviance

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Floats, Ints, Places
    from streammetrics.metrics.clustering.pairs import Overlap


_TERMS = 1 << 18  # terms of an expectation per block, so that a dozen arrays of them stay small
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
_FACTORIALS = np.array([math.lgamma(k + 1.0) for k in range(16)])


def entropy(sizes: Ints) -> float:
    """Return the entropy of a labeling with clusters of these sizes, in nats."""
    if len(sizes) < 2:
        return 0.0
    n = sizes.sum()
    share, rest = sizes / n, (n - sizes) / n
    # The logarithm of a share near 1 is computed from the rest, which keeps its digits.
    logs = np.where(rest < 0.5, np.log1p(-np.minimum(rest, 0.5)), np.log(share))
    return float(-(share * logs).sum())


def expected_information(rows: Ints, columns: Ints) -> float:
    """Return the mean mutual information of random labelings with clusters of these sizes.

    The number of rows that two clusters share is hypergeometric, and the result needs the mean of
    D(count, m). It depends on the two sizes only, so each pair of *different* sizes is computed
    once, from at most a few hundred counts around m, however large n is (see `_mean_deviance`).
    """
    n = int(rows.sum())
    sizes_a, times_a = np.unique(rows, return_counts=True)
    sizes_b, times_b = np.unique(columns, return_counts=True)
    total = 0.0
    step = max(1, _TERMS // (256 * len(sizes_b)))
    for start in range(0, len(sizes_a), step):
        part = slice(start, start + step)
        a = np.repeat(sizes_a[part], len(sizes_b))
        b = np.tile(sizes_b, len(sizes_a[part]))
        times = np.multiply.outer(times_a[part].astype(float), times_b.astype(float)).ravel()
        total += float((times * _mean_deviance(a, b, n)).sum())
    return total / n


def _mean_deviance(a: Ints, b: Ints, n: int) -> Floats:
    """Return the mean of D(x, a b / n) for hypergeometric x, for each pair of sizes.

    x is a sum of independent binary variables (Pitman 1997) with variance v. By Bennett's
    inequality it deviates from its mean by more than t with a probability below
    2 exp(-D(v + t, v)), here 1e-23. Within that range it suffices to add up every h-th count with
    h <= sqrt(v) / 3: the error of such a sum is the characteristic function at multiples of
    2 pi / h, at most exp(-v (1 - cos(2 pi / h))) < 1e-31.
    """
    m = a.astype(np.float64) * b / n
    variance = m * (1.0 - a / n) * (n - b) / max(n - 1, 1)
    reach = _reach(variance)
    step = np.maximum(np.floor(np.sqrt(variance) / 3.0), 1.0)
    lowest, highest = np.maximum(0, a + b - n), np.minimum(a, b)
    low = np.maximum(np.floor(m) - reach, lowest)
    counts = np.floor((np.minimum(np.ceil(m) + reach, highest) - low) / step) + 1.0
    means = np.empty(len(m))
    # Sorted by length to limit padding; pairs that visit every count come first.
    order = np.lexsort((counts, step > 1.0))
    for start in range(0, len(order), 256):
        part = order[start : start + 256]
        steps = np.arange(int(counts[part[-1]]))
        each = [column[part, None] for column in (a, b, m, low, step, counts)]
        means[part] = _summed(steps, n, *each)
    return means


def _reach(variance: Floats) -> Floats:
    """Return a t with D(v + t, v) >= 53, found by bisection at the next larger power of two."""
    variances = 2.0 ** np.arange(-40.0, 81.0)
    low, high = np.zeros_like(variances), 40.0 + 12.0 * np.sqrt(variances)
    for _ in range(40):
        middle = (low + high) / 2
        enough = deviance(variances + middle, variances) >= 53.0
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    place = np.searchsorted(variances, variance)
    return np.ceil(high[np.minimum(place, len(variances) - 1)])


def _summed(
    steps: Places, n: int, a: Array, b: Array, m: Array, low: Array, step: Array, counts: Array
) -> Floats:
    inside = steps < counts
    x = low + step * np.where(inside, steps, 0)
    deviances = _of_counts(x, m)
    if (step == 1.0).all():
        # The probability of each count is a rational multiple of the previous one.
        before = x[:, :-1]
        odds = (a - before) * (b - before) / ((before + 1.0) * (n - a - b + before + 1.0))
        exponent = np.zeros_like(x)
        np.cumsum(np.log(np.where(inside[:, 1:], odds, 1.0)), axis=1, out=exponent[:, 1:])
    else:
        # The probability of a 2 x 2 table with given margins is, up to a factor, the product of
        # the probabilities of its four counts, each given its expectation.
        rest = ((a - x, a - m), (b - x, b - m), (n - a - b + x, n - a - b + m))
        exponent = -deviances - _stirling(x)
        for count, mean in rest:
            exponent -= _of_counts(count, mean) + _stirling(count)
    exponent = np.where(inside, exponent, -np.inf)
    chance = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return np.asarray((chance * deviances).sum(axis=1) / chance.sum(axis=1))


def _of_counts(count: Floats, mean: Floats) -> Floats:
    # If the mean is 0, the count is 0 and so is the deviance.
    return deviance(count, np.where(mean > 0.0, mean, 1.0)) * (mean > 0.0)


def _stirling(count: Floats) -> Floats:
    """Return log(count!) - (count log count - count), 0 for 0."""
    large = np.maximum(count, 16.0)
    inverse = 1.0 / large
    square = inverse * inverse
    tail = inverse * np.polynomial.polynomial.polyval(square, _STIRLING)
    small = np.minimum(count, 15.0)
    logged = small * np.log(np.maximum(small, 1.0)) - small
    return np.where(
        count < 16.0,
        _FACTORIALS[small.astype(np.intp)] - logged,
        0.5 * np.log(2.0 * math.pi * large) + tail,
    )


Average = Literal["arithmetic", "geometric", "min", "max"]


class InformationMetric(LabelingMetric[float]):
    """Base class of metrics computed from mutual information and entropies, in nats."""

    _formula = ("readout", "read", "read_information")

    def read(self, overlap: Overlap) -> float:
        """Return the value from the mutual information and the entropies."""
        return self.read_information(
            mutual_information(overlap),
            entropy(overlap.true_sizes),
            entropy(overlap.pred_sizes),
            overlap,
        )

    @abstractmethod
    def read_information(self, mutual: float, true: float, pred: float, overlap: Overlap) -> float:
        """Return the value from the mutual information and the entropies of both sides."""


class MutualInfo(InformationMetric):
    """Mutual information of two labelings, in nats.

    Formula: Σ_(i,j) (n_ij / n) log(n n_ij / (a_i b_j)), with n_ij the rows of class i in cluster
    j, a_i the rows of class i and b_j those of cluster j.

    Computed as a sum of terms that are never negative, so small values keep their digits.

    Parameters are those of `LabelingMetric`.

    Reference: ``sklearn.metrics.mutual_info_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.MutualInfo().update([0, 0, 1, 1], ["a", "a", "b", "b"]).compute()
        0.6931471805599453
    """

    higher_is_better = True
    value_range = (0.0, math.inf)

    def read_information(self, mutual: float, true: float, pred: float, overlap: Overlap) -> float:
        """Return the information."""
        return mutual

    def _largest(self, overlap: Overlap) -> float:
        """Return the smaller entropy."""
        return min(entropy(overlap.true_sizes), entropy(overlap.pred_sizes))


class NormalizedMutualInfo(InformationMetric):
    """Normalized mutual information: the mutual information over the mean of both entropies.

    Formula: MI / mean(H(true), H(pred))

    1 if both labelings have one cluster, 0 if only one of them does, as in scikit-learn.

    The other parameters are those of `LabelingMetric`.

    Args:
        average: The kind of mean: ``"arithmetic"``, ``"geometric"``, ``"min"`` or ``"max"``.

    Reference: ``sklearn.metrics.normalized_mutual_info_score`` (`average_method`).

    Example:
        >>> import streammetrics as sm
        >>> sm.NormalizedMutualInfo().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        0.8
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    average: Average = "arithmetic"

    def read_information(self, mutual: float, true: float, pred: float, overlap: Overlap) -> float:
        """Return the normalized mutual information."""
        if trivial(overlap):
            return 1.0
        return mutual / mean_entropy(true, pred, self.average) if mutual else 0.0


class AdjustedMutualInfo(InformationMetric):
    """Adjusted mutual information: the mutual information corrected for chance.

    Formula: (MI - E[MI]) / (mean(H(true), H(pred)) - E[MI])

    The expectation is over random labelings with clusters of the same sizes. The number of rows
    that two clusters share is then hypergeometric. For each pair of different sizes only counts
    near the mean are visited, at most a few hundred; the others are beyond the precision of
    float64. 1 for equal labelings, 0 if only one of the two has a single cluster, as in
    scikit-learn.

    The other parameters are those of `LabelingMetric`.

    Args:
        average: The kind of mean: ``"arithmetic"``, ``"geometric"``, ``"min"`` or ``"max"``.

    Memory and cost: 16 bytes per pair of labels that occurs; `compute` takes a few µs per pair of
    different cluster sizes, whatever the number of rows.

    Reference: ``sklearn.metrics.adjusted_mutual_info_score`` (`average_method`); Vinh, Epps and
    Bailey (2010).

    Example:
        >>> import streammetrics as sm
        >>> ami = sm.AdjustedMutualInfo().update([0, 0, 1, 1, 2], [0, 0, 1, 2, 2])
        >>> round(ami.compute(), 6)
        0.375
    """

    higher_is_better = True
    value_range = (-1.0, 1.0)
    family = Family.ADJUSTED_INFORMATION

    average: Average = "arithmetic"

    def read_information(self, mutual: float, true: float, pred: float, overlap: Overlap) -> float:
        """Return the adjusted mutual information."""
        if trivial(overlap):
            return 1.0
        if len(overlap.true_sizes) == 1 or len(overlap.pred_sizes) == 1:
            return 0.0
        if overlap.n in {len(overlap.true_sizes), len(overlap.pred_sizes)}:
            # If every row is its own cluster, chance gives as much for any other labeling.
            best = mean_entropy(true, pred, self.average)
            return 1.0 if mutual == best else 0.0
        expected = expected_information(overlap.true_sizes, overlap.pred_sizes)
        possible = mean_entropy(true, pred, self.average) - expected
        # If both differences are rounding errors, keep them away from 0 as scikit-learn does.
        return away_from_zero(mutual - expected) / away_from_zero(possible)


class Homogeneity(InformationMetric):
    """Homogeneity: whether each cluster holds rows of one class only.

    Formula: MI / H(true)

    1 if there is a single class.

    Parameters are those of `LabelingMetric`.

    Reference: ``sklearn.metrics.homogeneity_score``; Rosenberg and Hirschberg (2007).

    Example:
        >>> import streammetrics as sm
        >>> sm.Homogeneity().update([0, 0, 1, 1], [0, 0, 0, 0]).compute()
        0.0
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read_information(self, mutual: float, true: float, pred: float, overlap: Overlap) -> float:
        """Return the share of the entropy of classes that is explained."""
        return mutual / true if true else 1.0


class Completeness(InformationMetric):
    """Completeness: whether the rows of each class are in one cluster.

    Formula: MI / H(pred)

    1 if there is a single cluster.

    Parameters are those of `LabelingMetric`.

    Reference: ``sklearn.metrics.completeness_score``; Rosenberg and Hirschberg (2007).

    Example:
        >>> import streammetrics as sm
        >>> sm.Completeness().update([0, 0, 1, 1], [0, 0, 0, 0]).compute()
        1.0
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read_information(self, mutual: float, true: float, pred: float, overlap: Overlap) -> float:
        """Return the share of the entropy of clusters that is explained."""
        return mutual / pred if pred else 1.0


class VMeasure(InformationMetric):
    """V-measure: the weighted harmonic mean of homogeneity h and completeness c.

    Formula: (1 + β) h c / (β h + c)

    0 if h and c are both 0. With ``beta=1`` it equals `NormalizedMutualInfo`.

    The other parameters are those of `LabelingMetric`.

    Args:
        beta: The weight of completeness relative to homogeneity.

    Raises:
        ValueError: `beta` is not positive and finite.

    Reference: ``sklearn.metrics.v_measure_score``; Rosenberg and Hirschberg (2007).

    Example:
        >>> import streammetrics as sm
        >>> sm.VMeasure().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        0.8
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    beta: Annotated[float, Positive] = 1.0

    def read_information(self, mutual: float, true: float, pred: float, overlap: Overlap) -> float:
        """Return the harmonic mean."""
        h, c = (mutual / true if true else 1.0), (mutual / pred if pred else 1.0)
        return (1 + self.beta) * h * c / (self.beta * h + c) if h + c else 0.0


def mutual_information(overlap: Overlap) -> float:
    """Return the mutual information in nats, as a sum of terms that are never negative."""
    if len(overlap.true_sizes) == 1 or len(overlap.pred_sizes) == 1:
        return 0.0
    counts = overlap.counts
    # If one side refines the other, the information is an entropy, with fewer rounding errors.
    if len(counts) == len(overlap.pred_sizes):
        return entropy(overlap.true_sizes)
    if len(counts) == len(overlap.true_sizes):
        return entropy(overlap.pred_sizes)
    expected, apart, absent = overlap.expected()
    n = overlap.n
    # The deviance of a pair that never occurs is its expected count.
    return (math.fsum(deviance(counts, expected / n, apart / n)) + absent / n) / n


def trivial(overlap: Overlap) -> bool:
    """Whether both labelings have a single cluster."""
    return len(overlap.true_sizes) == len(overlap.pred_sizes) == 1


def mean_entropy(true: float, pred: float, average: Average) -> float:
    """Return the mean of both entropies that `average` names."""
    if average == "geometric":
        return math.sqrt(true * pred)
    if average == "arithmetic":
        return (true + pred) / 2
    return min(true, pred) if average == "min" else max(true, pred)


def away_from_zero(value: float) -> float:
    """Return the value, or 2**-52 with its sign if it is closer to 0."""
    return min(value, -(2.0**-52)) if value < 0 else max(value, 2.0**-52)
