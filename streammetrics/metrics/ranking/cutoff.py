"""Rankings cut off at k, and rankings as sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from streammetrics.core.constraints import AtLeast, Between, Positive
from streammetrics.metrics.averages import beta_weights
from streammetrics.metrics.ranking.base import (
    AtK,
    RankingMetric,
    UpToK,
    added,
    ratio_or_zero,
    running_sum,
)
from streammetrics.statistics.rankings import nonrelevant_alone

if TYPE_CHECKING:
    from streammetrics.core.types import Bools, Floats
    from streammetrics.metrics.ranking.base import Ranking
    from streammetrics.statistics.rankings import RankingBuffer


class PrecisionAtK(AtK):
    """Precision at k: the share of the first k results that are relevant.

    Formula: mean_q (h / k), with h relevant documents among the first k results.

    The denominator is k even for queries with fewer than k results, unless `adaptive_k` is set.

    The other parameters are those of `RankingMetric`.

    Args:
        k: The number of results that count.
        adaptive_k: Whether the denominator is the number of results if that is below k.

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

    adaptive_k: bool = False

    def read(self, ranking: Ranking) -> Floats:
        """Return hits / k."""
        if self.adaptive_k:
            return ratio_or_zero(ranking.hits(), np.minimum(ranking.retrieved, self.k))
        return ranking.hits() / self.k


class RecallAtK(AtK):
    """Recall at k: the share of relevant documents that are among the first k results.

    Formula: mean_q (h / R), with h of R relevant documents among the first k
    results.

    R counts every document judged relevant, retrieved or not.

    The other parameters are those of `RankingMetric`.

    Args:
        k: The number of results that count.

    Memory and cost: same as `PrecisionAtK`; both share one state in a `MetricSet`.

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
    with m of n tied results, r of which are relevant, and include no other relevant result.

    The other parameters are those of `RankingMetric`.

    Args:
        k: The number of results that count.

    Memory and cost: same as `PrecisionAtK`; both share one state in a `MetricSet`.

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
        """Return 1 minus the probability that no result is relevant."""
        groups = ranking.groups
        groups = groups.at((groups.relevant > 0) & (groups.within > 0))
        miss = np.ones(ranking.n_queries)
        whole = groups.within == groups.size
        miss[groups.query[whole]] = 0.0
        partial = groups.at(~whole)  # at most one group per query, which has the k-th result
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
        k: The number of results that count.
        beta: The weight of recall relative to precision, 0 or more.

    Raises:
        ValueError: `beta` is negative or not finite.

    Memory and cost: same as `PrecisionAtK`; both share one state in a `MetricSet`.

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


class SetPrecision(RankingMetric):
    """Precision of all results of a query, in any order.

    Formula: mean_q (h / n), with h of n results relevant.

    Parameters are those of `RankingMetric`.

    Memory and cost: all rows are kept.

    Reference: trec_eval ``set_P``; ir_measures ``SetP``.

    Example:
        >>> import streammetrics as sm
        >>> sm.SetPrecision().update([1] * 4, [0, 1, 1, 1], [0.9, 0.8, 0.1, None]).compute()
        0.6666666666666666
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read(self, ranking: Ranking) -> Floats:
        """Return the hits over the results."""
        return ratio_or_zero(ranking.hits(), ranking.retrieved)


class SetRecall(RankingMetric):
    """Recall of all results of a query, in any order.

    Formula: mean_q (h / R), with h of R relevant documents among all results.

    Parameters are those of `RankingMetric`.

    Memory and cost: all rows are kept.

    Reference: trec_eval ``set_recall``; ir_measures ``SetR``.

    Example:
        >>> import streammetrics as sm
        >>> sm.SetRecall().update([1] * 4, [0, 1, 1, 1], [0.9, 0.8, 0.1, None]).compute()
        0.6666666666666666
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read(self, ranking: Ranking) -> Floats:
        """Return the hits over the relevant documents."""
        return ratio_or_zero(ranking.hits(), ranking.n_relevant)


class SetF(RankingMetric):
    """F-beta of all results of a query: of its `SetPrecision` P and `SetRecall` R.

    Formula: mean_q ((1 + β²) P R / (β² P + R))

    The other parameters are those of `RankingMetric`.

    Args:
        beta: The weight of recall relative to precision.

    Memory and cost: all rows are kept.

    Reference: trec_eval ``set_F``; ir_measures ``SetF``.

    Example:
        >>> import streammetrics as sm
        >>> sm.SetF().update([1] * 3, [0, 1, 1], [0.9, 0.8, None]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    beta: Annotated[float, Positive] = 1.0

    def read(self, ranking: Ranking) -> Floats:
        """Return the weighted harmonic mean."""
        recall, precision = beta_weights(self.beta)
        whole = recall * ranking.n_relevant + precision * ranking.retrieved
        return ratio_or_zero((recall + precision) * ranking.hits(), whole)


class HitsAtK(AtK):
    """Hits at k: the number of relevant documents among the first k results.

    Formula: mean_q h, with h relevant documents among the first k.

    The other parameters are those of `RankingMetric`.

    Args:
        k: The number of results that count.

    Memory and cost: same as `PrecisionAtK`; both share one state in a `MetricSet`.

    Reference: ranx ``hits``; trec_eval ``num_rel_ret`` of the first k.

    Example:
        >>> import streammetrics as sm
        >>> sm.HitsAtK(k=2).update([1] * 3, [1, 1, 1], [0.9, 0.8, 0.1]).compute()
        2.0
    """

    higher_is_better = True

    def read(self, ranking: Ranking) -> Floats:
        """Return the hits."""
        return ranking.hits()


class JudgedAtK(AtK):
    """Judged at k: the share of the first k results that have a judgment.

    Formula: mean_q (j / min(k, n)), with j judged among the first k of n results. A missing
    relevance is not a judgment, and -1 is one. A query without relevant documents has such a share
    too, and ``no_relevant="zero"`` leaves it as it is.

    The other parameters are those of `RankingMetric`.

    Args:
        k: The number of results that count.

    Memory and cost: same as `PrecisionAtK`; both share one state in a `MetricSet`.

    Reference: ir_measures ``Judged``.

    Example:
        >>> import streammetrics as sm
        >>> sm.JudgedAtK(k=2).update([1] * 3, [0, None, 1], [0.9, 0.8, 0.1]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read(self, ranking: Ranking) -> Floats:
        """Return the judged results over the results."""
        judged = _expected(ranking, ranking.table.results.grade >= 0)
        return ratio_or_zero(judged, np.minimum(ranking.retrieved, self.k))


class FallOutAtK(AtK):
    """Fall-out at k: the share of documents judged not relevant that are among the first k.

    Formula: mean_q (h / N), with h of the N documents judged not relevant among the first k. A
    relevance of -1 is one of them.

    The other parameters are those of `RankingMetric`.

    Args:
        k: The number of results that count.
        no_irrelevant: Whether a query without documents judged not relevant counts as ``"zero"``,
            as 1 (``"one"``) or is left out (``"skip"``).

    Memory and cost: all rows are kept.

    Reference: ``torchmetrics.retrieval.RetrievalFallOut``.

    Example:
        >>> import streammetrics as sm
        >>> sm.FallOutAtK(k=2).update([1] * 4, [1, 0, 0, 1], [0.9, 0.8, 0.1, 0.2]).compute()
        0.5
    """

    higher_is_better = False
    value_range = (0.0, 1.0)

    _partial = True

    no_irrelevant: Literal["zero", "one", "skip"] = "zero"

    def statistics(self) -> tuple[RankingBuffer]:
        """Return a buffer of all rows, because documents that are not relevant are counted."""
        return (self._buffer(),)

    def read(self, ranking: Ranking) -> Floats:
        """Return the results judged not relevant over all documents judged not relevant."""
        marked, (query, grade, times) = _not_relevant(ranking), ranking.given
        others = ranking.by_query(query, times * ~ranking.is_relevant[grade])
        others += ranking.by_query(nonrelevant_alone(ranking.table), None)
        instead = {"zero": 0.0, "one": 1.0, "skip": np.nan}[self.no_irrelevant]
        share = ratio_or_zero(_expected(ranking, marked), others)
        return np.where(others > 0, share, instead)

    def _lacking(self, buffer: RankingBuffer) -> str:
        judged = (
            "no query has a document judged not relevant (no_irrelevant='zero' counts them as 0)"
        )
        return super()._lacking(buffer) or judged


class GroupedROCAUC(UpToK):
    """Grouped AUC: the ROC AUC of the judged results of each query, averaged over queries.

    Formula: mean_q ((C + T / 2) / (P N)), with C pairs of one of P relevant and one of N other
    results in the right order, and T tied pairs.

    With `max_fpr` it is the partial area up to that false positive rate of each query, standardized
    as in `ROCAUC`. With ``ties="average"`` results that tie with the k-th count too.

    The other parameters are those of `RankingMetric`.

    Args:
        k: How many results of each query count, ``None`` for all.
        unjudged: Whether results without a judgment are left out (``"skip"``) or count as not
            relevant (``"wrong"``).
        max_fpr: The largest false positive rate, in (0, 1]; ``None``: the whole area.
        one_sided: Whether a query without both kinds of results is left out (``"skip"``) or counts
            as ``"zero"``; one without relevant documents counts as 1 with ``no_relevant="one"``.

    Memory and cost: without `k` all rows are kept; with `k` as `PrecisionAtK`, with which it shares
    its state in a set.

    Reference: Zhu et al., "Optimized Cost per Click in Taobao Display Advertising", KDD 2017;
    ``torchmetrics.retrieval.RetrievalAUROC`` with ``one_sided="zero"``;
    ``sklearn.metrics.roc_auc_score`` of each query; ir_measures ``Accuracy`` with
    ``unjudged="wrong"``.

    Example:
        >>> import streammetrics as sm
        >>> rows = {"query": [1, 1, 1, 2, 2], "relevance": [1, 0, 0, 0, 1]}
        >>> sm.GroupedROCAUC().update(**rows, score=[0.5, 0.7, 0.1, 0.2, 0.3]).compute()
        0.75
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    _partial = True

    k: Annotated[int, AtLeast(1)] | None = None
    unjudged: Literal["skip", "wrong"] = "skip"
    max_fpr: Annotated[float, Between(0, 1, without=(0,))] | None = None
    one_sided: Literal["skip", "zero"] = "skip"

    def _lacking(self, buffer: RankingBuffer) -> str:
        both = "no query has results of both kinds, relevant and not"
        return super()._lacking(buffer) or both

    def read(self, ranking: Ranking) -> Floats:
        """Return the standardized area, ``nan`` or 0 without results of both kinds."""
        groups = ranking.groups
        wrong = _not_relevant(ranking)
        if self.unjudged == "wrong":
            wrong = ~ranking.is_relevant[ranking.table.results.grade]
        within = groups.within > 0
        relevant, others = (
            within * part for part in (groups.relevant, added(wrong.astype(np.int64), groups.first))
        )
        all_relevant, all_others = (ranking.by_query(groups.query, p) for p in (relevant, others))
        end = 1.0 if self.max_fpr is None else self.max_fpr
        above = running_sum(others, groups.query)
        width = np.clip(end * all_others[groups.query] - above, 0, others)
        area = width * (groups.found + relevant * ratio_or_zero(width, others) / 2)
        with np.errstate(invalid="ignore"):
            share: Floats = ranking.by_query(groups.query, area) / (all_relevant * all_others)
        if end < 1:
            share = (1 + (share - end**2 / 2) / (end - end**2 / 2)) / 2
        return np.where(np.isnan(share), 0.0, share) if self.one_sided == "zero" else share


def _not_relevant(ranking: Ranking) -> Bools:
    """Return which results are judged not relevant."""
    grade = ranking.table.results.grade
    others: Bools = (grade >= 0) & ~ranking.is_relevant[grade]
    return others


def _expected(ranking: Ranking, marked: Bools) -> Floats:
    """Return the expected number of marked results within the depth."""
    groups = ranking.groups
    within = groups.within / groups.size
    return ranking.by_query(groups.query, added(marked.astype(np.int64), groups.first) * within)
