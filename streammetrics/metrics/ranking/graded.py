"""Rankings of documents with graded relevance: discounted gains and expected reciprocal rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from streammetrics.core.constraints import Positive
from streammetrics.metrics.ranking.base import UpToK
from streammetrics.metrics.ranking.view import ratio, running_product, spread
from streammetrics.statistics.rankings.order import run_starts

if TYPE_CHECKING:
    from streammetrics.core.types import Floats
    from streammetrics.metrics.ranking.view import Ranking, TieGroups
    from streammetrics.statistics.rankings.buffer import RankingBuffer

__all__ = ["DCG", "NDCG", "ExpectedReciprocalRank"]


Gain = Literal["linear", "exponential"]


class DCG(UpToK):
    """Discounted cumulative gain, in the mean over queries.

    Formula: mean_q Σ_i (g_i / log_2(i + 1)), with g_i the gain of the result at rank i.

    The other parameters are those of `RankingMetric`. With ties in
    expectation each result of a tie gains the mean of its group (McSherry and Najork 2008).

    Args:
        k: How many results count, ``None`` for all.
        gain: ``"linear"``: the relevance (trec_eval, scikit-learn); ``"exponential"``:
            2^relevance - 1 (Burges et al.), which is infinite above 1023. Negative relevance
            gains nothing.

    Memory and cost: without `k` all rows are kept; with `k` as `PrecisionAtK`, and the same
    statistic.

    Reference: ``sklearn.metrics.dcg_score``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.DCG(k=2)
        >>> metric.update(query=[1, 1, 1], relevance=[3, 0, 2], score=[0.9, 0.8, 0.1]).compute()
        3.0
    """

    gain: Gain = "linear"

    def read(self, ranking: Ranking) -> Floats:
        """Return the expected discounted gain."""
        with np.errstate(over="ignore", invalid="ignore"):
            return ranking.discounted(_gains(ranking, self.gain))


class NDCG(UpToK):
    """Discounted cumulative gain over that of the ideal ranking of all judged documents.

    Formula: mean_q (DCG / IDCG), with IDCG that of the ideal ranking.

    The other parameters are those of `RankingMetric`.

    Args:
        k: How many results count, here and in the ideal ranking, ``None`` for all.
        gain: ``"linear"``: the relevance (trec_eval, scikit-learn); ``"exponential"``:
            2^relevance - 1 (Burges et al.), of any relevance: gains beyond float64 are taken as
            shares of a power of two near the largest of their query. Negative relevance gains
            nothing.

    Memory and cost: without `k` all rows are kept; with `k` as `PrecisionAtK`, and the same
    statistic.

    Reference: trec_eval ``ndcg_cut_k`` and ``ndcg``; ``sklearn.metrics.ndcg_score``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.NDCG(k=2)
        >>> metric.update(query=[1, 1, 1], relevance=[3, 0, 3], score=[0.9, 0.8, 0.1]).compute()
        0.6131471927654584
    """

    gain: Gain = "linear"

    def read(self, ranking: Ranking) -> Floats:
        """Return the expected discounted gain over the ideal one."""
        values = _normalised(ranking, _gains(ranking, self.gain))
        if self.gain == "exponential" and ranking.table.levels.max(initial=0.0) > _LARGE:
            powers = np.ceil(ranking.highest / _LARGE) * _LARGE
            for power in np.unique(powers[powers > _LARGE]):  # one or two, of any usual grades
                of_it = powers == power
                values[of_it] = _normalised(ranking, _gains(ranking, self.gain, power))[of_it]
        return values


_LARGE = 512.0  # relevance of which not even the gains of 2**511 documents add up beyond float64


def _normalised(ranking: Ranking, gains: Floats) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        return ratio(ranking.discounted(gains), ranking.ideally_discounted(gains))


def _gains(ranking: Ranking, gain: Gain, power: float = 0.0) -> Floats:
    """Return the gain of each level, over two to a power."""
    positive = np.maximum(ranking.table.levels, 0.0)
    if gain == "linear":
        return positive
    with np.errstate(over="ignore"):
        gains: Floats = np.exp2(positive - power) - np.exp2(-power)
    return gains


class ExpectedReciprocalRank(UpToK):
    """Expected reciprocal of the rank at which a reader stops.

    Formula: mean_q Σ_i (1 / i) R_i Π_(j < i) (1 - R_j)

    The reader is satisfied by a document of relevance g with R = (2^g - 1) / 2^max_grade, and by
    one of negative relevance never.

    The other parameters are those of `RankingMetric`. With ties in
    expectation, a group of n tied results costs up to n^2 (n k with `k`) operations.

    Args:
        k: How many results count, ``None`` for all.
        max_grade: The highest relevance there is; ``None`` takes the highest that was judged in
            any query, so that values of one query then depend on the others.

    Raises:
        InvalidBatchError: From `update`, where a relevance is above `max_grade`.

    Memory and cost: without `k` all rows are kept; with `k` as `PrecisionAtK`, and the same
    statistic where `max_grade` is ``None``.

    Reference: Chapelle et al. (CIKM 2009); gdeval's ``err`` has max_grade=4.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.ExpectedReciprocalRank(max_grade=1)
        >>> metric.update(query=[1, 1, 1], relevance=[1, 0, 1], score=[0.9, 0.8, 0.1]).compute()
        0.5833333333333334
    """

    max_grade: Annotated[float, Positive] | None = None

    def statistics(self) -> tuple[RankingBuffer]:
        """Return a buffer that holds no relevance above `max_grade`."""
        return (self._buffer(k=self._depth, highest=self.max_grade),)

    def read(self, ranking: Ranking) -> Floats:
        """Return the expected reciprocal rank at which the reader stops."""
        levels, groups = ranking.table.levels, ranking.groups
        highest = levels.max(initial=0.0) if self.max_grade is None else self.max_grade
        stops = np.exp2(np.maximum(levels, 0.0) - highest) - np.exp2(-highest)
        stop = np.append(stops, 0.0)[ranking.table.results.grade]
        if not len(stop):
            return np.zeros(ranking.n_queries)
        goes_on = np.multiply.reduceat(1.0 - stop, groups.first)
        starts = run_starts(groups.query)
        _, place = spread(np.diff(starts, append=len(groups.query)))
        reached = running_product(np.where(place > 0, np.roll(goes_on, 1), 1.0), place)
        inside = np.zeros(len(reached))
        alone = groups.size == 1
        inside[alone] = stop[groups.first[alone]] / (groups.before[alone] + 1)
        tied = np.flatnonzero(~alone & (goes_on < 1.0) & (groups.within > 0))
        inside[tied] = _stops_in_groups(groups.at(tied), stop)
        inside[groups.within == 0] = 0.0
        return ranking.by_query(groups.query, reached * inside)


def _stops_in_groups(groups: TieGroups, stop: Floats) -> Floats:
    """Return for each group the expected 1 / rank of a stop inside, for a reader who got there.

    The chance to be still reading after i places is s_i, the mean over all i of its n documents of
    the product of 1 - R. Documents are added one by one to these means, in groups of similar size:
    s_i of t documents is (1 - i/t) s_i + i/t (1 - R_t) s_{i-1} of t - 1 documents.
    """
    values = np.zeros(len(groups.query))
    exponent = np.frexp(groups.size.astype(np.float64))[1]
    for bucket in np.unique(exponent):
        rows = np.flatnonzero(exponent == bucket)
        rows = rows[np.argsort(-groups.size[rows], kind="stable")]
        part = groups.at(rows)
        places = np.arange(int(part.within.max()) + 1)
        means = np.zeros((len(rows), len(places)))
        means[:, 0] = 1.0
        for t in range(1, int(part.size[0]) + 1):
            active = int(np.count_nonzero(part.size >= t))  # the largest come first
            added = 1.0 - stop[part.first[:active] + t - 1]
            means[:active, 1:] = (
                means[:active, 1:] * (1 - np.minimum(places[1:], t) / t)
                + means[:active, :-1] * (places[1:] / t) * added[:, None]
            )
        stopped = means[:, :-1] - means[:, 1:]
        stopped[places[None, 1:] > part.within[:, None]] = 0.0
        values[rows] = (stopped / (part.before[:, None] + places[1:])).sum(axis=1)
    return values
