"""Inferred average precision, where only a sample of a pool of documents was judged."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.metrics.ranking.base import RankingMetric
from streammetrics.metrics.ranking.view import (
    added,
    hypergeometric,
    places_of_rows,
    ratio_or_zero,
    running_sum,
)
from streammetrics.statistics.rankings.order import run_starts

if TYPE_CHECKING:
    from streammetrics.core.types import Floats, Ints
    from streammetrics.metrics.ranking.view import Ranking, TieGroups

__all__ = ["InfAP"]

_EPSILON = 1e-5  # trec_eval's smoothing, where nothing above a result is judged
_AT_ONCE = 1 << 20  # terms of tied results that are computed at a time


class InfAP(RankingMetric):
    """Inferred average precision (infAP), from judgments of a sample of the pool.

    Formula: mean_q (1 / R) Σ_i (1 + (P_i) (r_i + ε) / (r_i + n_i + 2 ε)) / i, with i the ranks of
    relevant results.

    P_i results above rank i are in the pool, of which r_i are judged relevant and n_i not relevant;
    ε is 1e-5. A negative relevance (-1 in TREC files) means that a document is in the pool but was
    not judged; a document without a judgment row is not in the pool. With ``ties="average"`` a
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
    """Tie groups with a relevant result: how many in them and above are pooled or not relevant."""

    groups: TieGroups
    pooled: Ints
    wrong: Ints
    pooled_above: Ints
    wrong_above: Ints

    def precisions(self, group: Ints, place: Ints) -> Floats:
        """Return the expected precision at a relevant result in each place of each group."""
        judged = self.groups.relevant + self.wrong - 1  # of the group, besides the result itself
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
        chance /= np.bincount(row, weights=chance)[row]  # they sum to 1 but for rounding
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
