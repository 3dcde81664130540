"""What all ranking metrics share: their input, their parameters and the mean over queries."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np

from streammetrics.core.constraints import AtLeast, NanPolicy, Positive
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import KeyedValues
from streammetrics.metrics.ranking.view import Ranking
from streammetrics.statistics.rankings.buffer import RankingBuffer
from streammetrics.statistics.rankings.ids import decoded

if TYPE_CHECKING:
    from streammetrics.core.types import ArrayLike, Bools, Floats

__all__ = ["ranking_preset"]

_BLOCK = 1 << 19  # rows read at a time

_PRESETS: dict[str, dict[str, Any]] = {
    "trec_eval": {"ties": "doc", "relevant_at": 1.0, "no_relevant": "zero", "unretrieved": "skip"},
    "sklearn": {
        "ties": "average", "relevant_at": 1.0, "no_relevant": "zero", "unretrieved": "zero",
    },
}  # fmt: skip


def ranking_preset(name: Literal["trec_eval", "sklearn"]) -> dict[str, Any]:
    """Return the parameters under which ranking metrics give another tool's values.

    ``"trec_eval"`` is trec_eval without ``-c``; with ``-c``, ``unretrieved`` is ``"zero"``. It
    breaks ties by descending document id, as text, and reads scores as 32-bit floats, so round
    them (``scores.astype("float32")``) where ties matter. ``"sklearn"`` is ``ndcg_score`` and
    ``dcg_score``.

    Raises:
        ValueError: The name is neither.

    Example:
        >>> import streammetrics as sm
        >>> sm.ranking_preset("trec_eval")["ties"]
        'doc'
        >>> sm.NDCG(k=10, **sm.ranking_preset("trec_eval"))
        NDCG(ties='doc', unretrieved='skip', k=10) <0 rows>
    """
    if name not in _PRESETS:
        raise ValueError(f"ranking_preset({name!r}): expected 'trec_eval' or 'sklearn'")
    return dict(_PRESETS[name])


class RankingMetric(Metric[float]):
    """The mean over queries of a value of each query's ranking, weighted if queries have weights.

    Rows come in any order and batches. A row is a judgment, a result or both: with documents,
    judgments and results may come apart and are joined by (query, document); a null is a value
    left out. A result without a judgment is not relevant; a judged document that is not retrieved
    counts in recall and in the ideal ranking. Rows without a document are each one of its own.

    A query without any judgment is left out, and counted in `n_unjudged`, and so is one of weight
    0. The weight of a query may be said by any of its rows; where none does it is 1.

    Args:
        ties: Results with equal scores, ``"average"``: the expectation over their orders;
            ``"doc"``: by descending document, integers by value and strings by code point
            (trec_eval's).
        relevant_at: The least relevance that is relevant, above 0 (0 and below never is). Metrics
            of graded gains use all positive relevances, and this only to tell which queries have
            something relevant.
        no_relevant: A judged query without a relevant document counts as ``"zero"`` or is left
            out, ``"skip"``.
        unretrieved: The same for a judged query without results (``"zero"`` is trec_eval's
            ``-c``).
        nan_policy: ``"raise"``, or ``"omit"``, which leaves rows out whose relevance or score is
            nan.
    """

    higher_is_better: ClassVar[bool | None] = True

    ties: Literal["average", "doc"] = "average"
    relevant_at: Annotated[float, Positive] = 1.0
    no_relevant: Literal["zero", "skip"] = "zero"
    unretrieved: Literal["zero", "skip"] = "zero"
    nan_policy: NanPolicy = "raise"

    @property
    def _depth(self) -> int | None:
        """How many results of each query count; ``None`` for all."""
        return None

    def statistics(self) -> tuple[RankingBuffer]:
        """Return a buffer of what the depth needs."""
        return (self._buffer(k=self._depth),)

    def _buffer(self, **needs: Any) -> RankingBuffer:
        return RankingBuffer(named=self.ties == "doc", nan_policy=self.nan_policy, **needs)

    @abstractmethod
    def read(self, ranking: Ranking) -> Floats:
        """Return the value of every query, 0 where it has nothing relevant or no results."""

    def readout(self, buffer: RankingBuffer) -> float:
        """Return the mean over the queries that count; the sum is exact, so no order shows."""
        counted, values = self._counted(buffer)
        if not len(values):
            return math.nan
        if not np.isfinite(values).all():
            return float(values.max() / len(values))  # a gain beyond float64: inf or nan
        weights = self._weights(buffer, counted)
        if weights is None:
            return float(ExactSum.of(values).fraction() / len(values))
        return float(ExactSum.of(values, weights).fraction() / ExactSum.of(weights).fraction())

    def _weights(self, buffer: RankingBuffer, counted: Bools) -> Floats | None:
        """Return the weights of the queries that count, ``None`` where none was said."""
        weights = buffer.table.weights
        return None if weights is None else np.where(np.isnan(weights), 1.0, weights)[counted]

    def _counted(self, buffer: RankingBuffer) -> tuple[Bools, Floats]:
        """Return which queries count, and the values of those."""
        counted, values = [np.zeros(0, np.bool_)], [np.zeros(0)]
        for table in buffer.table.blocks(_BLOCK):  # scratch memory is several times the rows
            averaged = self.ties == "average"
            ranking = Ranking(table, averaged=averaged, relevant_at=self.relevant_at, k=self._depth)
            counts = table.judged if table.weights is None else table.judged & (table.weights != 0)
            if self.no_relevant == "skip":
                counts = counts & (ranking.n_relevant > 0)
            if self.unretrieved == "skip":
                counts = counts & (ranking.retrieved > 0)
            counted.append(counts)
            values.append(self.read(ranking)[counts])
        return np.concatenate(counted), np.concatenate(values)

    def per_query(self) -> KeyedValues:
        """Return the value of each query that counts, by ascending query id."""
        return self._shape(*self._read())

    def _shape(self, buffer: Any) -> KeyedValues:
        """Return the value of each query."""
        counts, values = self._counted(buffer)
        queries: Any = decoded(buffer.table.queries[counts])
        return KeyedValues(dict(zip(queries, values.tolist(), strict=True)), "query")

    @property
    def n_queries(self) -> int:
        """How many queries `compute` is the mean of."""
        (buffer,) = self._read()
        return int(np.count_nonzero(self._counted(buffer)[0]))  # type: ignore[arg-type]

    @property
    def n_unjudged(self) -> int:
        """How many queries have results but no judgment, and are left out."""
        (buffer,) = self._read()
        return int(np.count_nonzero(~buffer.table.judged))  # type: ignore[attr-defined]

    def update(
        self,
        query: ArrayLike,
        relevance: ArrayLike = None,
        score: ArrayLike = None,
        doc: ArrayLike = None,
        *,
        query_weight: ArrayLike = None,
    ) -> Self:
        """Take rows: a query each, and a relevance, a score or both; a document to join them by.

        Args:
            query: The query of each row.
            relevance: How relevant the document is, null where it was not judged.
            score: What it is ranked by, null where it was not retrieved.
            doc: The document.
            query_weight: The weight of the query, the same in all of its rows that say one.

        Raises:
            InvalidBatchError: A score is nan or a relevance not finite, a row has neither, ids are
                not integers or strings of one kind, a document that ``ties="doc"`` needs is
                missing, a document has two relevances or two scores in one query, or a query two
                weights. The first such query and document are named, and nothing has changed.
        """
        rows = {"query": query, "relevance": relevance, "score": score, "doc": doc}
        return self.feed({**rows, "query_weight": query_weight})


class AtK(RankingMetric):
    """A metric of the first k results."""

    k: Annotated[int, AtLeast(1)]

    @property
    def _depth(self) -> int | None:
        """The first k."""
        return self.k


class UpToK(RankingMetric):
    """A metric of the first k results, or of all."""

    k: Annotated[int, AtLeast(1)] | None = None

    @property
    def _depth(self) -> int | None:
        """The first k, or all."""
        return self.k
