"""Metrics of binary relevance over whole rankings: MAP, MRR, R-precision and others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from streammetrics.core.constraints import Between
from streammetrics.metrics.ranking.base import RankingMetric, UpToK
from streammetrics.metrics.ranking.view import (
    added,
    hypergeometric,
    places_of_rows,
    ratio_or_zero,
    running_product,
    running_sum,
)
from streammetrics.statistics.rankings.combine import nonrelevant_alone

if TYPE_CHECKING:
    from streammetrics.core.types import Floats
    from streammetrics.metrics.ranking.view import Ranking, TieGroups
    from streammetrics.statistics.rankings.buffer import RankingBuffer

__all__ = [
    "MAP",
    "MRR",
    "BPref",
    "RPrecision",
    "RankBiasedPrecision",
]


class RPrecision(RankingMetric):
    """R-precision: the precision of the first R results, for a query with R relevant documents.

    Formula: mean_q (h / R), with h relevant documents among the first R results.

    Parameters are those of `RankingMetric`.

    Memory and cost: all rows are kept.

    Reference: trec_eval ``Rprec``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.RPrecision()
        >>> metric.update(query=[1, 1, 1], relevance=[0, 1, 1], score=[0.9, 0.8, 0.1]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read(self, ranking: Ranking) -> Floats:
        """Return the hits among the first R results over R."""
        return ratio_or_zero(ranking.hits(ranking.n_relevant), ranking.n_relevant)


class MRR(UpToK):
    """Mean reciprocal rank (MRR) of the first relevant result, 0 for queries without one.

    Formula: mean_q (1 / rank_q), with rank_q the rank of the first relevant result.

    With ``ties="average"``, where the first relevant results are r in a group of n tied ones, after
    b others, the expectation is Σ_j C(n - j, r - 1) / ((b + j) C(n, r)).

    The other parameters are those of `RankingMetric`.

    Args:
        k: How many results count, ``None`` for all.

    Memory and cost: without `k`, a query's results that score at least as high as its best relevant
    one (all while it has none), and its relevant documents; with `k` as `PrecisionAtK`, with which
    it shares its state in a set.

    Reference: trec_eval ``recip_rank``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.MRR()
        >>> metric.update([1, 1, 2, 2], [1, 0, 0, 1], [0.9, 0.8, 0.9, 0.8]).compute()
        0.75
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def statistics(self) -> tuple[RankingBuffer]:
        """Return a buffer down to the best relevant result, or to the k-th."""
        if self.k is None:
            return (self._buffer(first_at=self.relevant_at),)
        return super().statistics()

    def read(self, ranking: Ranking) -> Floats:
        """Return the expected reciprocal rank."""
        groups = ranking.groups
        groups = groups.at((groups.relevant > 0) & (groups.found == 0) & (groups.within > 0))
        last = groups.size - groups.relevant + 1  # the first relevant one is not after it
        group, place, rank = groups.places(np.minimum(last, groups.within))
        left, relevant = groups.size[group] - place, groups.relevant[group]
        missed = np.where(place > 0, (left + 1 - relevant) / (left + 1), 1.0)
        chance = running_product(missed, place) * relevant / left
        return ranking.by_query(groups.query[group], chance / rank)


class MAP(UpToK):
    """Mean average precision (MAP): the precision at each relevant result, averaged.

    Formula: mean_q (1 / R) Σ_i (rel_i h_i / i), with h_i relevant documents among the first i, and
    rel_i 1 where the i-th is relevant, else 0.

    With ``ties="average"``, consider a group of n tied results, r of them relevant, after b results
    of which f are relevant: its i-th place holds a relevant result with probability r / n, which
    then adds (f + 1 + (i - 1)(r - 1)/(n - 1)) / (b + i) (McSherry and Najork 2008).

    The other parameters are those of `RankingMetric`.

    Args:
        k: How many results count, ``None`` for all.
        denominator: What the sum is divided by. ``"relevant"``: the number of relevant documents,
            retrieved or not (trec_eval, ranx); ``"min"``: that number, but at most `k`;
            ``"hits"``: the number of those among the first k (torchmetrics).

    Memory and cost: without `k` all rows are kept; with `k` as `PrecisionAtK`, with which it shares
    its state in a set.

    Reference: trec_eval ``map`` and ``map_cut_k``.

    Example:
        >>> import streammetrics as sm
        >>> rows = {"query": [1] * 5, "relevance": [0, 1, 1, 0, 1], "score": [5, 4, 3, 2, 1]}
        >>> round(sm.MAP(k=2).update(**rows).compute(), 3)
        0.167
        >>> sm.MAP(k=2, denominator="min").update(**rows).compute()
        0.25
        >>> sm.MAP(k=2, denominator="hits").update(**rows).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    denominator: Literal["relevant", "min", "hits"] = "relevant"

    def read(self, ranking: Ranking) -> Floats:
        """Return the expected average precision."""
        groups = ranking.groups
        groups = groups.at((groups.relevant > 0) & (groups.within > 0))
        if self.denominator == "hits":
            return _over_hits(ranking, groups)
        total = ranking.n_relevant
        if self.denominator == "min" and self.k is not None:
            total = np.minimum(total, self.k)
        return ratio_or_zero(_precisions(ranking, groups), total)


def _precisions(ranking: Ranking, groups: TieGroups) -> Floats:
    """Return the expected sum, for each query, of the precisions at relevant results."""
    group, place, rank = groups.places()
    size, relevant = groups.size[group], groups.relevant[group]
    others = ratio_or_zero(place * (relevant - 1), size - 1)
    found = groups.found[group] + 1 + others
    return ranking.by_query(groups.query[group], relevant / size * found / rank)


def _over_hits(ranking: Ranking, groups: TieGroups) -> Floats:
    """Return the expected ratio of the sum of precisions and the hits, both within the depth.

    The hits are random only in the group of the k-th result, where they are hypergeometric: given
    h of them among its first m places, these are like a whole group of m with h relevant.
    """
    whole = groups.within == groups.size
    full, cut = groups.at(whole), groups.at(~whole)
    above = _precisions(ranking, full)
    values = ratio_or_zero(above, ranking.by_query(full.query, full.relevant))
    if not len(cut.query):
        return values
    n, m, r = cut.size, cut.within, cut.relevant
    least = np.maximum(m - (n - r), 0)
    row, more = places_of_rows(np.minimum(m, r) - least + 1)
    h = least[row] + more
    chance = hypergeometric(h, m[row], r[row], n[row])
    chance /= np.bincount(row, weights=chance)[row]  # they sum to 1 but for rounding
    group, place, rank = cut.places()
    harmonic = np.bincount(group, weights=1.0 / rank)[row]
    weighted = np.bincount(group, weights=place / rank)[row]
    found = cut.found[row]
    inside = (found + 1) * harmonic + ratio_or_zero(h - 1, m[row] - 1) * weighted
    total = above[cut.query[row]] + h / m[row] * inside
    expected = np.bincount(row, weights=chance * ratio_or_zero(total, found + h))
    values[cut.query] = expected
    return values


class RankBiasedPrecision(RankingMetric):
    """Rank-biased precision: the utility for a reader who reads on with probability p.

    Formula: mean_q (1 - p) Σ_i rel_i p^(i-1), with rel_i 1 where the i-th result is relevant, else
    0.

    The other parameters are those of `RankingMetric`.

    Args:
        p: The probability that the reader goes on to the next result, in (0, 1).

    Raises:
        ValueError: `p` is not in (0, 1).

    Memory and cost: all rows are kept.

    Reference: Moffat and Zobel, "Rank-biased precision for measurement of retrieval effectiveness",
    ACM TOIS 27 (2008).

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.RankBiasedPrecision(p=0.5)
        >>> metric.update(query=[1, 1, 1], relevance=[0, 1, 1], score=[0.9, 0.8, 0.1]).compute()
        0.375
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    p: Annotated[float, Between(0, 1, without=(0, 1))]

    def read(self, ranking: Ranking) -> Floats:
        """Return (1 - p) times the sum of p^(rank - 1) over relevant results."""
        groups = ranking.groups
        groups = groups.at(groups.relevant > 0)
        group, _, rank = groups.places()
        reached = np.power(self.p, np.arange(0.0, int(rank.max(initial=0)))).take(rank - 1)
        share = groups.relevant / groups.size
        return (1 - self.p) * ranking.by_query(groups.query[group], share[group] * reached)


class BPref(RankingMetric):
    """Bpref: how rarely documents judged not relevant are ranked above relevant ones.

    Formula: mean_q Σ_d (1 - min(above_d, R) / min(N, R)) / R, with d the retrieved ones of the
    R relevant documents, and above_d those of the N documents judged not relevant that rank above.

    Documents without a judgment do not matter; nor do those of negative relevance, which in TREC
    files means not judged.

    Parameters are those of `RankingMetric`.

    Memory and cost: all rows are kept.

    Reference: trec_eval ``bpref``; Buckley and Voorhees, "Retrieval evaluation with incomplete
    information", SIGIR 2004.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.BPref()
        >>> metric.update(query=[1] * 4, relevance=[1, 0, 1, 0], score=[4, 3, 2, 1]).compute()
        0.75
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read(self, ranking: Ranking) -> Floats:
        """Return the expected preference."""
        table, groups = ranking.table, ranking.groups
        judged_not = np.append(~ranking.is_relevant[:-1] & (table.levels >= 0), False)
        wrong = added(judged_not[table.results.grade].astype(np.int64), groups.first)
        above = running_sum(wrong, groups.query)
        query, grade, times = ranking.given
        n = ranking.by_query(query, times * judged_not[grade])
        n += ranking.by_query(nonrelevant_alone(table, judged_not), None)
        r = ranking.n_relevant.astype(np.float64)
        most = r[groups.query]
        fewer = np.clip(most - above, 0, wrong + 1)  # of their places, those below R
        total = fewer * above + fewer * (fewer - 1) / 2 + (wrong + 1 - fewer) * most
        lost = ratio_or_zero(total / (wrong + 1), np.minimum(n, r)[groups.query])
        return ratio_or_zero(ranking.by_query(groups.query, groups.relevant * (1.0 - lost)), r)
