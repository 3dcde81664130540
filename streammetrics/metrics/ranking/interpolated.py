"""Interpolated precision at given recalls, as in trec_eval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.constraints import Share
from streammetrics.metrics.ranking.base import RankingMetric

if TYPE_CHECKING:
    from streammetrics.core.types import Floats
    from streammetrics.metrics.ranking.view import Ranking

__all__ = ["ElevenPointAP", "InterpolatedPrecision"]

_ELEVEN = tuple(place / 10 for place in range(11))


class InterpolatedPrecision(RankingMetric):
    """Interpolated precision: the highest precision at any rank with at least a given recall.

    Formula: mean_q max_(r_i >= r) P_i, with P_i and r_i the precision and the recall at rank i.

    As in trec_eval, the recall is reached with ⌊recall R + 0.9⌋ of the R relevant documents. Tied
    results are taken together; with ``ties="doc"`` they have an order.

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
