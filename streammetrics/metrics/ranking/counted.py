"""Counts of queries, results and relevant documents, and metrics of such counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.confidence import Refusal
from streammetrics.core.constraints import Share
from streammetrics.metrics.families import GROWS, NO_MEAN
from streammetrics.metrics.ranking.base import AtK, RankingMetric
from streammetrics.metrics.ranking.cutoff import PrecisionAtK, RecallAtK
from streammetrics.metrics.ranking.view import ratio_or_zero

if TYPE_CHECKING:
    from streammetrics.core.types import Bools, Floats
    from streammetrics.metrics.ranking.view import Ranking
    from streammetrics.statistics.rankings.buffer import RankingBuffer

__all__ = ["RankingCount", "RecallAtFixedPrecision", "SetAP"]

_OWN = ("k", "precision")  # parameters that other metrics lack, or declare themselves


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
        of: What is counted: ``"queries"``, ``"results"``, ``"relevant"`` documents, retrieved or
            not, or ``"hits"``, the relevant results.

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
        _, values = self._counted(buffer)
        return float(ExactSum.of(values).fraction()) if len(values) else 0.0


class RecallAtFixedPrecision(AtK):
    """Recall at fixed precision: the highest recall of any cut-off up to k that is precise enough.

    Formula: max_(P_i >= p) R_i, with P_i and R_i the means over queries of precision and recall
    at cut-off i, and p the `precision`.

    The cut-off is the same for all queries. 0 where no cut-off has the precision.

    The other parameters are those of `RankingMetric`.

    Args:
        precision: The required mean precision, from 0 to 1.
        k: The largest cut-off.

    Memory and cost: as `PrecisionAtK`, with which it shares its state in a set; `compute` takes a
    pass per cut-off up to the longest ranking.

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

    def read(self, ranking: Ranking) -> Floats:
        """Return the recall of each query at the depth."""
        return ratio_or_zero(ranking.hits(), ranking.n_relevant)

    def _counted(self, buffer: RankingBuffer) -> tuple[Bools, Floats]:
        """Return which queries count, and their recall at the last cut-off precise enough."""
        options = {name: value for name, value in self.config.items() if name not in _OWN}
        # After the last result of the longest ranking recall stays and precision falls.
        longest = int(np.bincount(buffer.table.results.query).max(initial=0))
        for k in range(min(self.k, longest), 0, -1):  # recall never falls
            if PrecisionAtK(k=k, **options).readout(buffer) >= self.precision:
                return RecallAtK(k=k, **options)._counted(buffer)
        counted, values = super()._counted(buffer)
        return counted, np.zeros_like(values)
