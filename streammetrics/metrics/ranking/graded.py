"""Metrics of graded relevance: discounted cumulative gain and expected reciprocal rank."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from streammetrics.core.constraints import Positive
from streammetrics.metrics.ranking.base import UpToK, places_of_rows, ratio_or_zero, running_product
from streammetrics.statistics.ranking_rows import run_starts

if TYPE_CHECKING:
    from streammetrics.core.types import Floats
    from streammetrics.metrics.ranking.base import Ranking, TieGroups
    from streammetrics.statistics.rankings import RankingBuffer

Gain = Literal["linear", "exponential"]


class DCG(UpToK):
    """Discounted cumulative gain (DCG).

    Formula: mean_q Σ_i (g_i / log_2(i + 1)), with g_i the gain of the result at rank i.

    With ``ties="average"`` each tied result has the mean gain of its group (McSherry and Najork
    2008).

    The other parameters are those of `RankingMetric`.

    Args:
        k: The number of results that count, ``None`` for all.
        gain: ``"linear"``: the relevance (trec_eval, scikit-learn). ``"exponential"``:
            2^relevance - 1 (Burges et al.), which is infinite for a relevance above 1023. Negative
            relevance has the gain 0.

    Memory and cost: without `k` all rows are kept; with `k` same as `PrecisionAtK`, and both share
    one state in a `MetricSet`.

    Reference: ``sklearn.metrics.dcg_score``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.DCG(k=2)
        >>> metric.update(query=[1, 1, 1], relevance=[3, 0, 2], score=[0.9, 0.8, 0.1]).compute()
        3.0
    """

    higher_is_better = True
    _graded = True

    gain: Gain = "linear"

    def read(self, ranking: Ranking) -> Floats:
        """Return the expected discounted gain."""
        with np.errstate(over="ignore", invalid="ignore"):
            return ranking.discounted(_gains(ranking, self.gain))


class NDCG(UpToK):
    """Normalized discounted cumulative gain (NDCG): the DCG over that of the ideal ranking.

    Formula: mean_q (DCG / IDCG), with IDCG the DCG of the best order of all judged documents.

    The other parameters are those of `RankingMetric`.

    Args:
        k: The number of results that count, here and in the ideal ranking, ``None`` for all.
        gain: ``"linear"``: the relevance (trec_eval, scikit-learn). ``"exponential"``:
            2^relevance - 1 (Burges et al.), for any relevance: gains beyond float64 are scaled by a
            power of two near the largest of the query. Negative relevance has the gain 0.

    Memory and cost: without `k` all rows are kept; with `k` same as `PrecisionAtK`, and both share
    one state in a `MetricSet`.

    Reference: trec_eval ``ndcg_cut_k`` and ``ndcg``; ``sklearn.metrics.ndcg_score``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.NDCG(k=2)
        >>> metric.update(query=[1, 1, 1], relevance=[3, 0, 3], score=[0.9, 0.8, 0.1]).compute()
        0.6131471927654584
    """

    higher_is_better = True
    _graded = True
    value_range = (0.0, 1.0)

    gain: Gain = "linear"

    def read(self, ranking: Ranking) -> Floats:
        """Return the expected discounted gain over the ideal one."""
        values = _normalised(ranking, _gains(ranking, self.gain))
        if self.gain == "exponential" and ranking.table.levels.max(initial=0.0) > _LARGE:
            powers = np.ceil(ranking.highest / _LARGE) * _LARGE
            for power in np.unique(powers[powers > _LARGE]):  # one or two for the usual grades
                of_it = powers == power
                values[of_it] = _normalised(ranking, _gains(ranking, self.gain, power))[of_it]
        return values


_LARGE = 512.0  # up to this relevance, even the gains of 2**511 documents have a finite sum


def _normalised(ranking: Ranking, gains: Floats) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        return ratio_or_zero(ranking.discounted(gains), ranking.ideally_discounted(gains))


def _gains(ranking: Ranking, gain: Gain, power: float = 0.0) -> Floats:
    """Return the gain of each level of relevance, divided by a power of two."""
    positive = np.maximum(ranking.table.levels, 0.0)
    if gain == "linear":
        return positive
    with np.errstate(over="ignore"):
        return _exponential(positive, power)


def _exponential(levels: Floats, power: float) -> Floats:
    """Return (2**level - 1) / 2**power, to full accuracy even near level 0."""
    gains: Floats = np.exp2(levels - power) - np.exp2(-power)
    small = np.expm1(np.minimum(levels, 0.5) * math.log(2.0)) * np.exp2(-power)
    return np.where(levels < 0.5, small, gains)


class ExpectedReciprocalRank(UpToK):
    """Expected reciprocal rank (ERR) of the result at which a reader stops.

    Formula: mean_q Σ_i (1 / i) R_i Π_(j < i) (1 - R_j), with R_i the probability that the i-th
    result satisfies the reader.

    R = (2^g - 1) / 2^max_grade for a document of relevance g, and 0 for negative relevance. With
    ``ties="average"`` a group of n tied results takes up to n² operations, or n k with `k`.

    The other parameters are those of `RankingMetric`.

    Args:
        k: The number of results that count, ``None`` for all.
        max_grade: The highest possible relevance. ``None``: the highest judged in any query; the
            value of a query then depends on the other queries.

    Raises:
        InvalidBatchError: From `update`, if a relevance is above `max_grade`.

    Memory and cost: without `k` all rows are kept; with `k` same as `PrecisionAtK`, and both share
    one state in a `MetricSet` if `max_grade` is ``None``.

    Reference: Chapelle et al., "Expected reciprocal rank for graded relevance", CIKM 2009; gdeval's
    ``err`` has ``max_grade=4``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.ExpectedReciprocalRank(max_grade=1)
        >>> metric.update(query=[1, 1, 1], relevance=[1, 0, 1], score=[0.9, 0.8, 0.1]).compute()
        0.5833333333333334
    """

    higher_is_better = True
    _graded = True
    value_range = (0.0, 1.0)

    max_grade: Annotated[float, Positive] | None = None

    def statistics(self) -> tuple[RankingBuffer]:
        """Return a buffer that raises on a relevance above `max_grade`."""
        return (self._buffer(k=self._depth, highest=self.max_grade),)

    def read(self, ranking: Ranking) -> Floats:
        """Return the expected reciprocal rank at which the reader stops."""
        levels, groups = ranking.table.levels, ranking.groups
        highest = levels.max(initial=0.0) if self.max_grade is None else self.max_grade
        stops = _exponential(np.maximum(levels, 0.0), highest)
        stop = np.append(stops, 0.0)[ranking.table.results.grade]
        if not len(stop):
            return np.zeros(ranking.n_queries)
        goes_on = np.multiply.reduceat(1.0 - stop, groups.first)
        starts = run_starts(groups.query)
        _, place = places_of_rows(np.diff(starts, append=len(groups.query)))
        reached = running_product(np.where(place > 0, np.roll(goes_on, 1), 1.0), place)
        inside = np.zeros(len(reached))
        alone = groups.size == 1
        inside[alone] = stop[groups.first[alone]] / (groups.before[alone] + 1)
        tied = np.flatnonzero(~alone & (goes_on < 1.0) & (groups.within > 0))
        inside[tied] = _stops_in_groups(groups.at(tied), stop)
        inside[groups.within == 0] = 0.0
        return ranking.by_query(groups.query, reached * inside)


def _stops_in_groups(groups: TieGroups, stop: Floats) -> Floats:
    """Return the expected 1 / rank of a stop within each group, for a reader who reaches it.

    Let s_i be the probability to continue after i places: the mean, over all choices of i of the n
    documents, of the product of their 1 - R. Documents are added to these means one by one,
    together for groups of similar size. With t documents, s_i becomes
    (1 - i/t) s_i + i/t (1 - R_t) s_{i-1}, where the right side is for t - 1 documents.
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
            active = int(np.count_nonzero(part.size >= t))  # the largest groups come first
            added = 1.0 - stop[part.first[:active] + t - 1]
            means[:active, 1:] = (
                means[:active, 1:] * (1 - np.minimum(places[1:], t) / t)
                + means[:active, :-1] * (places[1:] / t) * added[:, None]
            )
        stopped = means[:, :-1] - means[:, 1:]
        stopped[places[None, 1:] > part.within[:, None]] = 0.0
        values[rows] = (stopped / (part.before[:, None] + places[1:])).sum(axis=1)
    return values
