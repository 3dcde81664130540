"""Rankings with binary relevance."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.confidence import Refusal
from streammetrics.core.constraints import Between, Share
from streammetrics.metrics.families import GROWS, NO_MEAN
from streammetrics.metrics.ranking.base import (
    Aggregation,
    AtK,
    RankingMetric,
    UpToK,
    added,
    hypergeometric,
    places_of_rows,
    ratio_or_zero,
    running_product,
    running_sum,
)
from streammetrics.metrics.ranking.cutoff import PrecisionAtK, RecallAtK
from streammetrics.statistics.ranking_rows import run_starts
from streammetrics.statistics.rankings import nonrelevant_alone

if TYPE_CHECKING:
    from streammetrics.core.types import Bools, Floats, Ints
    from streammetrics.metrics.ranking.base import Ranking, TieGroups
    from streammetrics.statistics.rankings import RankingBuffer


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

    With ``ties="average"``, if the first relevant results are r of n tied ones, after b other
    results, the expectation is Σ_j C(n - j, r - 1) / ((b + j) C(n, r)).

    The other parameters are those of `RankingMetric`.

    Args:
        k: The number of results that count, ``None`` for all.

    Memory and cost: without `k`, a query's results that score at least as high as its best relevant
    one (all while it has none), and its relevant documents; with `k` same as `PrecisionAtK`, and
    both share one state in a `MetricSet`.

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
        last = groups.size - groups.relevant + 1  # the first relevant result is at most here
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
    of which f are relevant. Its i-th place holds a relevant result with probability r / n, which
    then adds (f + 1 + (i - 1)(r - 1)/(n - 1)) / (b + i) (McSherry and Najork 2008).

    The other parameters are those of `RankingMetric`.

    Args:
        k: The number of results that count, ``None`` for all.
        denominator: The divisor of the sum. ``"relevant"``: the number of relevant documents,
            retrieved or not (trec_eval, ranx). ``"min"``: that number, but at most `k`.
            ``"hits"``: the number of relevant documents among the first k (torchmetrics).

    Memory and cost: without `k` all rows are kept; with `k` same as `PrecisionAtK`, and both share
    one state in a `MetricSet`.

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
    """Return the expected ratio of the sum of precisions to the hits, both within the depth.

    The hits are random only in the group of the k-th result, where they are hypergeometric. Given h
    hits among its first m places, these places are like a whole group of m with h relevant.
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
    chance /= np.bincount(row, weights=chance)[row]  # corrects their sum for rounding
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
    """Rank-biased precision: the utility for a reader who continues with probability p.

    Formula: mean_q (1 - p) Σ_i rel_i p^(i-1), with rel_i 1 where the i-th result is relevant, else
    0.

    The other parameters are those of `RankingMetric`.

    Args:
        p: The probability that the reader continues to the next result, in (0, 1).

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

    Documents without a judgment are ignored, as are those with negative relevance, which means not
    judged in TREC files.

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
        fewer = np.clip(most - above, 0, wrong + 1)  # those of their places that are below R
        total = fewer * above + fewer * (fewer - 1) / 2 + (wrong + 1 - fewer) * most
        lost = ratio_or_zero(total / (wrong + 1), np.minimum(n, r)[groups.query])
        return ratio_or_zero(ranking.by_query(groups.query, groups.relevant * (1.0 - lost)), r)


_OWN = ("k", "precision", "adaptive_k")  # parameters that other metrics lack, or define themselves


class SetAP(RankingMetric):
    """Average precision of an unordered set: `SetPrecision` times `SetRecall` of each query.

    Formula: mean_q (h h / (n R)), with h of R relevant documents among the n results.

    Parameters are those of `RankingMetric`.

    Memory and cost: all rows are kept.

    Reference: trec_eval ``set_map``; ir_measures ``SetAP``.

    Example:
        >>> import streammetrics as sm
        >>> sm.SetAP().update([1] * 4, [0, 1, 1, 1], [0.9, 0.8, 0.1, None]).compute()
        0.4444444444444444
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read(self, ranking: Ranking) -> Floats:
        """Return the squared hits over results times relevant documents."""
        hits = ranking.hits()
        return ratio_or_zero(hits, ranking.retrieved) * ratio_or_zero(hits, ranking.n_relevant)


class RankingCount(RankingMetric):
    """Number of queries, results or relevant documents, summed over queries.

    Formula: Σ_q n_q, with n_q the count of a query.

    The other parameters are those of `RankingMetric`.

    Args:
        of: What to count: ``"queries"``, ``"results"``, ``"relevant"`` documents (retrieved or
            not), or ``"hits"``, the relevant results.
        aggregation: ``"sum"``, which takes no weights, or as in `RankingMetric`.

    Memory and cost: all rows are kept.

    Reference: ir_measures ``NumQ``, ``NumRet``, ``NumRel`` and ``NumRet(rel=1)``; trec_eval
    ``num_q``, ``num_ret``, ``num_rel`` and ``num_rel_ret``.

    Example:
        >>> import streammetrics as sm
        >>> rows = {"query": [1, 1, 2], "relevance": [1, 1, 0], "score": [0.9, None, 0.1]}
        >>> [sm.RankingCount(of=what).update(**rows).compute() for what in ("queries", "relevant")]
        [2.0, 2.0]
    """

    higher_is_better = None
    family = Refusal(GROWS.format("a mean over queries, such as HitsAtK,"))
    _incomparable = NO_MEAN

    of: Literal["queries", "results", "relevant", "hits"] = "queries"
    aggregation: Literal["sum"] | Aggregation = "sum"  # type: ignore[assignment]  # one more

    def check_parameters(self) -> None:
        """Check that no query counts as 1, which is a perfect score and no count.

        Raises:
            ValueError: ``no_relevant`` is ``"one"``.
        """
        super().check_parameters()
        if self.no_relevant == "one":
            raise ValueError(
                "RankingCount(no_relevant='one'): 1 is a perfect score and not a count; "
                "no_relevant='zero' counts every query, 'skip' those with relevant documents"
            )

    def read(self, ranking: Ranking) -> Floats:
        """Return the count of each query."""
        if self.of == "queries":
            return np.ones(ranking.n_queries)
        if self.of == "hits":
            return ranking.hits()
        counted = ranking.retrieved if self.of == "results" else ranking.n_relevant
        return counted.astype(np.float64)

    def readout(self, buffer: RankingBuffer) -> float:
        """Return the sum over the queries that count, without their weights."""
        if self.aggregation != "sum":
            return super().readout(buffer)
        _, values = self._counted(buffer)
        return float(ExactSum.of(values).fraction()) if len(values) else 0.0


class RecallAtFixedPrecision(AtK):
    """Recall at fixed precision: the highest recall of a cut-off up to k with enough precision.

    Formula: max_(P_i >= p) R_i, with P_i and R_i the means over queries of precision and recall
    at cut-off i, and p the `precision`.

    The cut-off is the same for all queries. 0 if no cut-off reaches the precision.

    The other parameters are those of `RankingMetric`.

    Args:
        precision: The required mean precision, from 0 to 1.
        k: The largest cut-off.
        adaptive_k: Whether the precision of a query with fewer results is of these, as in
            `PrecisionAtK`.

    Memory and cost: same as `PrecisionAtK`; both share one state in a `MetricSet`. `compute` takes
    one pass per cut-off, up to the length of the longest ranking.

    Reference: ``torchmetrics.retrieval.RetrievalRecallAtFixedPrecision``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.RecallAtFixedPrecision(precision=0.6, k=4)
        >>> metric.update([1] * 4, [1, 0, 1, 1], [0.9, 0.8, 0.7, 0.1]).compute()
        1.0
        >>> sm.score(sm.RecallAtFixedPrecision(precision=0.8, k=4), [1, 1], [0, 1], [0.9, 0.8])
        0.0
    """

    higher_is_better = True
    family = Refusal(
        "its cut-off is the best of these queries only; RecallAtK at that k, on other queries, has "
        "limits"
    )
    _incomparable = NO_MEAN

    precision: Share
    adaptive_k: bool = False

    def read(self, ranking: Ranking) -> Floats:
        """Return the recall of each query at the depth."""
        return ratio_or_zero(ranking.hits(), ranking.n_relevant)

    def _counted(self, buffer: RankingBuffer) -> tuple[Bools, Floats]:
        """Return which queries count, and their recall at the last cut-off with the precision."""
        options = {name: value for name, value in self.config.items() if name not in _OWN}
        precise = {**options, "adaptive_k": self.adaptive_k}
        # Beyond the last result of the longest ranking, recall is constant and precision no higher.
        longest = int(np.bincount(buffer.table.results.query).max(initial=0))
        for k in range(min(self.k, longest), 0, -1):  # recall never falls as k grows
            if PrecisionAtK(k=k, **precise).readout(buffer) >= self.precision:
                return RecallAtK(k=k, **options)._counted(buffer)
        counted, values = super()._counted(buffer)
        return counted, np.zeros_like(values)


_EPSILON = 1e-5  # trec_eval's smoothing, for results with no judged one above
_AT_ONCE = 1 << 20  # number of terms of tied results computed at a time


class InfAP(RankingMetric):
    """Inferred average precision (infAP), from judgments of a sample of the pool.

    Formula: mean_q (1 / R) Σ_i (1 + (P_i) (r_i + ε) / (r_i + n_i + 2 ε)) / i, with i the ranks of
    relevant results.

    P_i results above rank i are in the pool, of which r_i are judged relevant and n_i not relevant;
    ε is 1e-5. A negative relevance (-1 in TREC files) means that a document is in the pool but was
    not judged. A document without a judgment row is not in the pool. With ``ties="average"`` a
    group of n tied results takes up to n² operations.

    Parameters are those of `RankingMetric`.

    Memory and cost: all rows are kept.

    Reference: trec_eval ``infAP``; Yilmaz and Aslam, "Estimating average precision with incomplete
    and imperfect judgments", CIKM 2006.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.InfAP()
        >>> rows = {"query": [1] * 5, "relevance": [-1, 1, None, 0, 1], "score": [5, 4, 3, 2, 1]}
        >>> round(metric.update(**rows).compute(), 5)
        0.625
    """

    higher_is_better = True

    def read(self, ranking: Ranking) -> Floats:
        """Return the expected sum of precisions at relevant results over the relevant documents."""
        results = ranking.table.results
        level = np.append(ranking.table.levels, np.nan)[results.grade]
        pooled, wrong = level < 0, (level >= 0) & ~ranking.is_relevant[results.grade]
        groups = ranking.groups
        sizes = [added(part.astype(np.int64), groups.first) for part in (pooled, wrong)]
        above = [running_sum(size, groups.query) for size in sizes]
        with_relevant = np.flatnonzero(groups.relevant)
        groups = groups.at(with_relevant)
        ties = _Ties(groups, *(side[with_relevant] for side in (*sizes, *above)))
        group, place, _ = groups.places()
        share = groups.relevant[group] / groups.size[group]
        values = share * ties.precisions(group, place)
        return ratio_or_zero(ranking.by_query(groups.query[group], values), ranking.n_relevant)


class _Ties(NamedTuple):
    """Tie groups with a relevant result, and how many in them and above are pooled or judged."""

    groups: TieGroups
    pooled: Ints
    wrong: Ints
    pooled_above: Ints
    wrong_above: Ints

    def precisions(self, group: Ints, place: Ints) -> Floats:
        """Return the expected precision at a relevant result in each place of each group."""
        judged = self.groups.relevant + self.wrong - 1  # in the group, without the result itself
        rest = self.groups.size - 1 - judged
        least = np.maximum(place - rest[group], 0)
        terms = np.minimum(place, judged[group]) - least + 1
        values = np.empty(len(group))
        blocks = run_starts((np.cumsum(terms) - 1) // _AT_ONCE)
        for start, stop in pairwise([*blocks.tolist(), len(group)]):
            part = slice(start, stop)
            values[part] = self._expected(group[part], place[part], least[part], terms[part])
        return values

    def _expected(self, group: Ints, place: Ints, least: Ints, terms: Ints) -> Floats:
        """Return the mean over the number of judged results of the group above each place."""
        groups, others = self.groups, self.groups.size - 1
        judged = groups.relevant + self.wrong - 1
        row, more = places_of_rows(terms)
        above = least[row] + more
        of = group[row]
        chance = hypergeometric(above, place[row], judged[of], others[of])
        chance /= np.bincount(row, weights=chance)[row]  # corrects their sum for rounding
        relevant = groups.found[of] + ratio_or_zero(above * (groups.relevant[of] - 1), judged[of])
        known = groups.found[of] + self.wrong_above[of] + above
        pooled = self.pooled_above[of] + ratio_or_zero(
            (place[row] - above) * self.pooled[of], others[of] - judged[of]
        )
        rank = groups.before[of] + place[row] + 1
        sampled = (relevant + _EPSILON) / (known + 2 * _EPSILON)
        values = (1 + (known + pooled) * sampled) / rank
        weighted: Floats = chance * values
        return np.bincount(row, weights=weighted).astype(np.float64, copy=False)


_ELEVEN = tuple(place / 10 for place in range(11))


class InterpolatedPrecision(RankingMetric):
    """Interpolated precision: the highest precision at any rank with at least a given recall.

    Formula: mean_q max_(r_i >= r) P_i, with P_i and r_i the precision and the recall at rank i.

    As in trec_eval, the recall is reached with ⌊recall R + 0.9⌋ of the R relevant documents. Tied
    results are taken together; with ``ties="doc"`` they are ordered.

    The other parameters are those of `RankingMetric`.

    Args:
        recall: The required recall, from 0 to 1.

    Memory and cost: all rows are kept.

    Reference: trec_eval ``iprec_at_recall``; ir_measures ``IPrec``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.InterpolatedPrecision(recall=0.5)
        >>> metric.update([1] * 4, [0, 1, 1, 0], [0.9, 0.8, 0.7, 0.1]).compute()
        0.6666666666666666
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    recall: Share

    def read(self, ranking: Ranking) -> Floats:
        """Return the precision."""
        return _interpolated(ranking, self.recall)


class ElevenPointAP(RankingMetric):
    """Eleven-point average precision: the mean of `InterpolatedPrecision` at recall 0, 0.1, ..., 1.

    Formula: (1 / 11) Σ_(r = 0, 0.1, ..., 1) P(r), with P(r) the interpolated precision at recall r.

    Parameters are those of `RankingMetric`.

    Memory and cost: all rows are kept.

    Reference: trec_eval ``11pt_avg``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.ElevenPointAP()
        >>> round(metric.update([1] * 4, [0, 1, 1, 0], [0.9, 0.8, 0.7, 0.1]).compute(), 6)
        0.666667
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read(self, ranking: Ranking) -> Floats:
        """Return the mean of the eleven precisions."""
        precisions: Floats = np.mean([_interpolated(ranking, recall) for recall in _ELEVEN], axis=0)
        return precisions


def _interpolated(ranking: Ranking, recall: float) -> Floats:
    groups = ranking.groups
    found = groups.found + groups.relevant
    precision = found / (groups.before + groups.size)
    wanted = (recall * ranking.n_relevant + 0.9).astype(np.int64)
    best = np.zeros(ranking.n_queries)
    enough = found >= wanted[groups.query]
    np.maximum.at(best, groups.query[enough], precision[enough])
    return best
