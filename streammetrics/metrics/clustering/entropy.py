"""Clusterings judged against a truth by what two labelings tell of each other."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from streammetrics.core.constraints import Positive
from streammetrics.core.exact.integers import exact_dot
from streammetrics.metrics.clustering.base import LabelingMetric
from streammetrics.metrics.clustering.information import (
    deviance,
    entropy,
    expected_information,
)

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
    """Base of the metrics made of entropies, in nats."""

    def read(self, overlap: Overlap) -> float:
        """Return the value for the information and the entropies."""
        return self.read_information(
            mutual_information(overlap),
            entropy(overlap.true_sizes),
            entropy(overlap.pred_sizes),
            overlap,
        )

    @abstractmethod
    def read_information(self, mutual: float, true: float, pred: float, overlap: Overlap) -> float:
        """Return the value for the mutual information and the entropies of both sides."""


class MutualInfo(InformationMetric):
    r"""Mutual information of two labelings, in nats.

    Formula: Σ_(i,j) (n_ij / n) log(n n_ij / (a_i b_j)), with a_i and b_j the sums of rows and
    columns.

    Computed as a sum of terms that are never negative, so a small value keeps its digits.

    Args:
        nan_policy: see `LabelingMetric`.

    Reference: `sklearn.metrics.mutual_info_score`.

    Example:
        >>> import streammetrics as sm
        >>> sm.MutualInfo().update([0, 0, 1, 1], ["a", "a", "b", "b"]).compute()
        0.6931471805599453
    """

    def read_information(self, mutual: float, true: float, pred: float, overlap: Overlap) -> float:  # noqa: ARG002 - only the first
        """Return the information."""
        return mutual


class NormalizedMutualInfo(InformationMetric):
    r"""Mutual information over the mean of the two entropies.

    Formula: MI / mean(H(true), H(pred))

    1 where both labelings have one cluster, 0 where only one of them has, as in scikit-learn.

    Args:
        average: Which mean: ``"arithmetic"``, ``"geometric"``, ``"min"`` or ``"max"``.
        nan_policy: see `LabelingMetric`.

    Reference: `sklearn.metrics.normalized_mutual_info_score` (`average_method`).

    Example:
        >>> import streammetrics as sm
        >>> sm.NormalizedMutualInfo().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        0.8
    """

    average: Average = "arithmetic"

    def read_information(self, mutual: float, true: float, pred: float, overlap: Overlap) -> float:
        """Return the normalised information."""
        if trivial(overlap):
            return 1.0
        return mutual / averaged(true, pred, self.average) if mutual else 0.0


class AdjustedMutualInfo(InformationMetric):
    r"""Mutual information with chance taken out.

    Formula: (MI - E[MI]) / (mean(H(true), H(pred)) - E[MI])

    The expectation is over random labelings with clusters of these sizes: the hypergeometric
    distribution of each pair of different sizes, of which at most a few hundred counts around its
    centre are visited, all that float64 can see. 1 for equal labelings, 0 where one of the two has
    one cluster, as in scikit-learn.

    Args:
        average: Which mean: ``"arithmetic"``, ``"geometric"``, ``"min"`` or ``"max"``.
        nan_policy: see `LabelingMetric`.

    Memory and cost: 16 bytes a pair of labels that occurs; `compute` takes a few µs for each
        pair of different sizes of clusters, whatever the number of rows.

    Reference: `sklearn.metrics.adjusted_mutual_info_score` (`average_method`); Vinh, Epps and
        Bailey (2010).

    Example:
        >>> import streammetrics as sm
        >>> ami = sm.AdjustedMutualInfo().update([0, 0, 1, 1, 2], [0, 0, 1, 2, 2])
        >>> round(ami.compute(), 6)
        0.375
    """

    average: Average = "arithmetic"

    def read_information(self, mutual: float, true: float, pred: float, overlap: Overlap) -> float:
        """Return the adjusted information."""
        if trivial(overlap):
            return 1.0
        if len(overlap.true_sizes) == 1 or len(overlap.pred_sizes) == 1:
            return 0.0
        if overlap.n in {len(overlap.true_sizes), len(overlap.pred_sizes)}:
            # Every row its own cluster: whatever the other labeling is, chance gives as much.
            best = averaged(true, pred, self.average)
            return 1.0 if mutual == best else 0.0
        expected = expected_information(overlap.true_sizes, overlap.pred_sizes)
        possible = averaged(true, pred, self.average) - expected
        # Where nothing is possible the rest is rounding: scikit-learn's smallest number decides.
        return away_from_zero(mutual - expected) / away_from_zero(possible)


class Homogeneity(InformationMetric):
    r"""Whether clusters hold one class each.

    Formula: MI / H(true)

    1 where there is one true cluster.

    Args:
        nan_policy: see `LabelingMetric`.

    Reference: `sklearn.metrics.homogeneity_score`; Rosenberg and Hirschberg (2007).

    Example:
        >>> import streammetrics as sm
        >>> sm.Homogeneity().update([0, 0, 1, 1], [0, 0, 0, 0]).compute()
        0.0
    """

    def read_information(self, mutual: float, true: float, pred: float, overlap: Overlap) -> float:  # noqa: ARG002 - only two of them
        """Return the share of the true entropy that is explained."""
        return mutual / true if true else 1.0


class Completeness(InformationMetric):
    r"""Whether each class is in one cluster.

    Formula: MI / H(pred)

    1 where there is one predicted cluster.

    Args:
        nan_policy: see `LabelingMetric`.

    Reference: `sklearn.metrics.completeness_score`; Rosenberg and Hirschberg (2007).

    Example:
        >>> import streammetrics as sm
        >>> sm.Completeness().update([0, 0, 1, 1], [0, 0, 0, 0]).compute()
        1.0
    """

    def read_information(self, mutual: float, true: float, pred: float, overlap: Overlap) -> float:  # noqa: ARG002 - only two of them
        """Return the share of the predicted entropy that is explained."""
        return mutual / pred if pred else 1.0


class VMeasure(InformationMetric):
    r"""Weighted harmonic mean of homogeneity h and completeness c.

    Formula: (1 + β) h c / (β h + c)

    0 where both are. With ``beta=1`` it is `NormalizedMutualInfo`.

    Args:
        beta: Weight of completeness against homogeneity.
        nan_policy: see `LabelingMetric`.

    Raises:
        ValueError: `beta` is not positive and finite.

    Reference: `sklearn.metrics.v_measure_score`; Rosenberg and Hirschberg (2007).

    Example:
        >>> import streammetrics as sm
        >>> sm.VMeasure().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        0.8
    """

    beta: Annotated[float, Positive] = 1.0

    def read_information(self, mutual: float, true: float, pred: float, overlap: Overlap) -> float:  # noqa: ARG002 - not the counts
        """Return the harmonic mean."""
        h, c = (mutual / true if true else 1.0), (mutual / pred if pred else 1.0)
        return (1 + self.beta) * h * c / (self.beta * h + c) if h + c else 0.0


def mutual_information(overlap: Overlap) -> float:
    """Return the mutual information in nats, from terms that are never negative."""
    if len(overlap.true_sizes) == 1 or len(overlap.pred_sizes) == 1:
        return 0.0
    n, counts = overlap.n, overlap.counts
    # A cluster that lies in one of the other side has nothing more to say: no rounding then.
    if len(counts) == len(overlap.pred_sizes):
        return entropy(overlap.true_sizes)
    if len(counts) == len(overlap.true_sizes):
        return entropy(overlap.pred_sizes)
    true, pred = overlap.true_sizes[overlap.rows], overlap.pred_sizes[overlap.columns]
    found = deviance(counts, true.astype(np.float64) * pred / n)
    # Pairs of labels that never occur have their expectation as deviance, whose sum is exact.
    absent = (n * n - exact_dot(true, pred)) / n
    return (math.fsum(found) + absent) / n


def trivial(overlap: Overlap) -> bool:
    """Whether both labelings have one cluster."""
    return len(overlap.true_sizes) == len(overlap.pred_sizes) == 1


def averaged(true: float, pred: float, average: Average) -> float:
    """Return one of four means."""
    if average == "geometric":
        return math.sqrt(true * pred)
    if average == "arithmetic":
        return (true + pred) / 2
    return min(true, pred) if average == "min" else max(true, pred)


def away_from_zero(value: float) -> float:
    """Return the value, or the smallest one of its sign that counts."""
    return min(value, -(2.0**-52)) if value < 0 else max(value, 2.0**-52)
