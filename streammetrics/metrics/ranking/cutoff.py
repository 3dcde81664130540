"""Metrics of binary relevance among the first k results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from streammetrics.core.constraints import AtLeast
from streammetrics.metrics.averages import beta_weights
from streammetrics.metrics.ranking.base import AtK
from streammetrics.metrics.ranking.view import ratio_or_zero

if TYPE_CHECKING:
    from streammetrics.core.types import Floats
    from streammetrics.metrics.ranking.view import Ranking

__all__ = ["FBetaAtK", "HitRateAtK", "PrecisionAtK", "RecallAtK"]


class PrecisionAtK(AtK):
    """Precision at k: the share of the first k results that are relevant.

    Formula: mean_q (h / k), with h relevant documents among the first k results.

    The denominator is k also for queries with fewer than k results.

    The other parameters are those of `RankingMetric`.

    Args:
        k: How many results count.

    Memory and cost: for each query, the results that score at least as high as its k-th, its
    relevant documents, and the counts of its grades of relevance.

    Reference: trec_eval ``P_k``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.PrecisionAtK(k=2)
        >>> metric.update(query=[1, 1, 1], relevance=[0, 1, 1], score=[0.9, 0.8, 0.1]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read(self, ranking: Ranking) -> Floats:
        """Return hits / k."""
        return ranking.hits() / self.k


class RecallAtK(AtK):
    """Recall at k: the share of relevant documents that are among the first k results.

    Formula: mean_q (h / R), with h of R relevant documents among the first k
    results.

    R counts every document judged relevant, retrieved or not.

    The other parameters are those of `RankingMetric`.

    Args:
        k: How many results count.

    Memory and cost: as `PrecisionAtK`, with which it shares its state in a set.

    Reference: trec_eval ``recall_k``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.RecallAtK(k=2)
        >>> metric.update(query=["a"] * 3, relevance=[0, 1, 1], score=[0.9, 0.8, None]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read(self, ranking: Ranking) -> Floats:
        """Return hits / R."""
        return ratio_or_zero(ranking.hits(), ranking.n_relevant)


class HitRateAtK(AtK):
    """Hit rate at k (success): the share of queries with a relevant document among the first k.

    Formula: mean_q [h > 0], with h relevant documents among the first k.

    With ``ties="average"`` it is 1 - C(n - r, m) / C(n, m) for a query whose first k results end
    with m of a group of n tied ones, r of them relevant, and hold no other relevant one.

    The other parameters are those of `RankingMetric`.

    Args:
        k: How many results count.

    Memory and cost: as `PrecisionAtK`, with which it shares its state in a set.

    Reference: trec_eval ``success_k``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.HitRateAtK(k=1)
        >>> metric.update([1, 1, 2, 2], [1, 0, 0, 1], [0.9, 0.8, 0.9, 0.8]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read(self, ranking: Ranking) -> Floats:
        """Return 1 less the probability that no result is relevant."""
        groups = ranking.groups
        groups = groups.at((groups.relevant > 0) & (groups.within > 0))
        miss = np.ones(ranking.n_queries)
        whole = groups.within == groups.size
        miss[groups.query[whole]] = 0.0
        partial = groups.at(~whole)  # at most one group per query: that of the k-th result
        if len(partial.query):
            group, place, _ = partial.places()
            left = partial.size[group] - place
            none = np.maximum(left - partial.relevant[group], 0) / left
            starts = np.flatnonzero(place == 0)
            miss[partial.query] *= np.multiply.reduceat(none, starts)
        return 1.0 - miss


class FBetaAtK(AtK):
    """F-beta at k: the weighted harmonic mean of precision and recall at k.

    Formula: mean_q ((1 + β²) h / (β² R + k)), with h of R relevant documents among the first k
    results.

    The other parameters are those of `RankingMetric`.

    Args:
        k: How many results count.
        beta: How many times as much recall counts as precision, 0 or more.

    Raises:
        ValueError: `beta` is negative or not finite.

    Memory and cost: as `PrecisionAtK`, with which it shares its state in a set.

    Reference: van Rijsbergen, Information Retrieval (1979), ch. 7.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.FBetaAtK(k=2)
        >>> metric.update(query=[1, 1, 1], relevance=[0, 1, 1], score=[0.9, 0.8, 0.1]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    beta: Annotated[float, AtLeast(0)] = 1.0

    def read(self, ranking: Ranking) -> Floats:
        """Return (1 + b^2) hits / (b^2 R + k)."""
        recall, precision = beta_weights(self.beta)
        whole = recall * ranking.n_relevant + precision * self.k
        return ratio_or_zero((recall + precision) * ranking.hits(), whole)
