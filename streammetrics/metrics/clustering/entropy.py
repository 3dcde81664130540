"""Clusterings compared with true labels by the information that they share."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Literal

from streammetrics.core.constraints import Positive
from streammetrics.metrics.clustering.base import LabelingMetric
from streammetrics.metrics.clustering.information import (
    entropy,
    expected_information,
)
from streammetrics.metrics.families import Family
from streammetrics.statistics.sums.deviances import deviance

if TYPE_CHECKING:
    from streammetrics.metrics.clustering.view import Overlap

__all__ = [
    "AdjustedMutualInfo",
    "Completeness",
    "Homogeneity",
    "MutualInfo",
    "NormalizedMutualInfo",
    "VMeasure",
]

Average = Literal["arithmetic", "geometric", "min", "max"]


class InformationMetric(LabelingMetric[float]):
    """Base of the metrics made of mutual information and entropies, in nats."""

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

    def read_information(self, mutual: float, true: float, pred: float, overlap: Overlap) -> float:  # noqa: ARG002 - only the first
        """Return the information."""
        return mutual


class NormalizedMutualInfo(InformationMetric):
    """Normalized mutual information: the mutual information over the mean of both entropies.

    Formula: MI / mean(H(true), H(pred))

    1 where both labelings have one cluster, 0 where only one of them does, as in scikit-learn.

    The other parameters are those of `LabelingMetric`.

    Args:
        average: Which mean: ``"arithmetic"``, ``"geometric"``, ``"min"`` or ``"max"``.

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

    The expectation is over random labelings with clusters of the same sizes. The count of rows that
    two clusters share is then hypergeometric; for each pair of different sizes only the counts
    near its mean are visited, at most a few hundred, as the rest is beyond the precision of
    float64. 1 for equal labelings, 0 where only one of the two has a single cluster, as in
    scikit-learn.

    The other parameters are those of `LabelingMetric`.

    Args:
        average: Which mean: ``"arithmetic"``, ``"geometric"``, ``"min"`` or ``"max"``.

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
            # Every row is its own cluster: chance gives as much, whatever the other labeling is.
            best = mean_entropy(true, pred, self.average)
            return 1.0 if mutual == best else 0.0
        expected = expected_information(overlap.true_sizes, overlap.pred_sizes)
        possible = mean_entropy(true, pred, self.average) - expected
        # Where both differences are rounding errors, they are kept away from 0 as in scikit-learn.
        return away_from_zero(mutual - expected) / away_from_zero(possible)


class Homogeneity(InformationMetric):
    """Homogeneity: whether each cluster holds rows of one class only.

    Formula: MI / H(true)

    1 where there is a single class.

    Parameters are those of `LabelingMetric`.

    Reference: ``sklearn.metrics.homogeneity_score``; Rosenberg and Hirschberg (2007).

    Example:
        >>> import streammetrics as sm
        >>> sm.Homogeneity().update([0, 0, 1, 1], [0, 0, 0, 0]).compute()
        0.0
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read_information(self, mutual: float, true: float, pred: float, overlap: Overlap) -> float:  # noqa: ARG002 - only two of them
        """Return the share of the true entropy that is explained."""
        return mutual / true if true else 1.0


class Completeness(InformationMetric):
    """Completeness: whether the rows of each class are in one cluster.

    Formula: MI / H(pred)

    1 where there is a single cluster.

    Parameters are those of `LabelingMetric`.

    Reference: ``sklearn.metrics.completeness_score``; Rosenberg and Hirschberg (2007).

    Example:
        >>> import streammetrics as sm
        >>> sm.Completeness().update([0, 0, 1, 1], [0, 0, 0, 0]).compute()
        1.0
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read_information(self, mutual: float, true: float, pred: float, overlap: Overlap) -> float:  # noqa: ARG002 - only two of them
        """Return the share of the predicted entropy that is explained."""
        return mutual / pred if pred else 1.0


class VMeasure(InformationMetric):
    """V-measure: the weighted harmonic mean of homogeneity h and completeness c.

    Formula: (1 + β) h c / (β h + c)

    0 where h and c are both 0. With ``beta=1`` it equals `NormalizedMutualInfo`.

    The other parameters are those of `LabelingMetric`.

    Args:
        beta: How many times as much completeness counts as homogeneity.

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

    def read_information(self, mutual: float, true: float, pred: float, overlap: Overlap) -> float:  # noqa: ARG002 - not the counts
        """Return the harmonic mean."""
        h, c = (mutual / true if true else 1.0), (mutual / pred if pred else 1.0)
        return (1 + self.beta) * h * c / (self.beta * h + c) if h + c else 0.0


def mutual_information(overlap: Overlap) -> float:
    """Return the mutual information in nats, as a sum of terms that are never negative."""
    if len(overlap.true_sizes) == 1 or len(overlap.pred_sizes) == 1:
        return 0.0
    counts = overlap.counts
    # Where one side is a refinement of the other, the information is an entropy: not rounded.
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
    """Return the value, or 2**-52 with its sign where it is closer to 0."""
    return min(value, -(2.0**-52)) if value < 0 else max(value, 2.0**-52)
