"""What all ranking metrics share: inputs, parameters and the mean over queries."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.constraints import AtLeast, NanPolicy, Positive
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import KeyedValues
from streammetrics.metrics.families import Family
from streammetrics.metrics.ranking.view import Ranking
from streammetrics.statistics.rankings.buffer import RankingBuffer
from streammetrics.statistics.rankings.ids import decoded

if TYPE_CHECKING:
    from streammetrics.core.types import ArrayLike, Bools, Floats, Options

__all__ = ["ranking_preset"]

_BLOCK = 1 << 19  # rows read at a time

_PRESETS: dict[str, dict[str, object]] = {
    "trec_eval": {"ties": "doc", "relevant_at": 1.0, "no_relevant": "zero", "unretrieved": "skip"},
    "sklearn": {
        "ties": "average", "relevant_at": 1.0, "no_relevant": "zero", "unretrieved": "zero",
    },
}  # fmt: skip


def ranking_preset(name: Literal["trec_eval", "sklearn"]) -> Options:
    """Return the parameters with which ranking metrics reproduce another tool.

    ``"trec_eval"`` is trec_eval without ``-c``; for ``-c`` set ``unretrieved="zero"`` too. It
    breaks ties by descending document id, as text, and reads scores as 32-bit floats: where ties
    matter, round scores first (``scores.astype("float32")``). ``"sklearn"`` reproduces
    ``ndcg_score`` and ``dcg_score``.

    Args:
        name: The tool.

    Raises:
        ValueError: There is no preset of this name.

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
    """Base of the ranking metrics: the mean over queries of a value of each query's ranking.

    Rows come in any order and in any batches. A row is a judgment, a result or both. With document
    ids, judgments and results may come separately and are joined by (query, document); a null
    means that the value is not given. A result without a judgment counts as not relevant; a judged
    document that is not retrieved counts in recall and in the ideal ranking. Each row without a
    document id is a document of its own.

    A query without any judgment is left out and counted in `n_unjudged`; a query of weight 0 is
    left out. The weight of a query may be given in any of its rows, and is 1 if in none.

    Args:
        ties: How results with equal scores are ordered. ``"average"``: the expectation over all
            orders; ``"doc"``: by descending document id, integers by value and strings by code
            point, as in trec_eval.
        relevant_at: The smallest relevance that counts as relevant, above 0. In metrics with graded
            gains it is every positive relevance, whatever this is.
        no_relevant: Whether a judged query without relevant documents counts as ``"zero"`` or is
            left out (``"skip"``).
        unretrieved: The same for a judged query without results; ``"zero"`` is trec_eval's ``-c``.
        nan_policy: ``"raise"``, or ``"omit"``: rows whose relevance or score is nan are left out.
    """

    family: ClassVar[str | None] = Family.QUERIES
    _graded: ClassVar[bool] = False  # whether any positive relevance counts, by how large it is

    _formula = ("readout", "read")

    ties: Literal["average", "doc"] = "average"
    relevant_at: Annotated[float, Positive] = 1.0
    no_relevant: Literal["zero", "skip"] = "zero"
    unretrieved: Literal["zero", "skip"] = "zero"
    nan_policy: NanPolicy = "raise"

    @property
    def _depth(self) -> int | None:
        """How many results of each query count, ``None`` for all."""
        return None

    def statistics(self) -> tuple[RankingBuffer]:
        """Return a buffer that keeps what the depth needs."""
        return (self._buffer(k=self._depth),)

    def _buffer(self, **needs: Any) -> RankingBuffer:
        return RankingBuffer(named=self.ties == "doc", nan_policy=self.nan_policy, **needs)

    @abstractmethod
    def read(self, ranking: Ranking) -> Floats:
        """Return the value of every query, 0 without relevant documents or results."""

    def _has_relevant(self, ranking: Ranking) -> Bools:
        """Return which queries have a relevant document, or one with a gain where grades count."""
        found: Bools = ranking.highest > 0 if self._graded else ranking.n_relevant > 0
        return found

    def readout(self, buffer: RankingBuffer) -> float:
        """Return the mean over the queries that count, from an exact sum, so in any order."""
        counted, values = self._counted(buffer)
        if not len(values):
            return math.nan
        if not np.isfinite(values).all():
            return float(values.max() / len(values))  # a gain beyond float64: inf or nan
        weights = self._weights(buffer, counted)
        if weights is None:
            return float(ExactSum.of(values).fraction() / len(values))
        return float(ExactSum.of(values, weights).fraction() / ExactSum.of(weights).fraction())

    def _lacking(self, buffer: RankingBuffer) -> str:
        counted, _ = self._counted(buffer)
        if counted.any():
            return ""
        table = buffer.table
        if not table.judged.any():
            return "no query has a judged document"
        if table.weights is not None and not table.weights[table.judged].any():
            return "all judged queries have weight 0"
        skipped = [name for name in ("no_relevant", "unretrieved") if getattr(self, name) == "skip"]
        if not skipped:
            return ""
        lacks = {"no_relevant": "a relevant document", "unretrieved": "results"}
        without = " and ".join(lacks[name] for name in skipped)
        typed = ", ".join(f"{name}='zero'" for name in skipped)
        return f"no judged query has {without} ({typed} counts them as 0)"

    def _weights(self, buffer: RankingBuffer, counted: Bools) -> Floats | None:
        """Return the weights of the queries that count, ``None`` where none was given."""
        weights = buffer.table.weights
        return None if weights is None else np.where(np.isnan(weights), 1.0, weights)[counted]

    def _counted(self, buffer: RankingBuffer) -> tuple[Bools, Floats]:
        """Return which queries count, and their values."""
        counted, values = [np.zeros(0, np.bool_)], [np.zeros(0)]
        for table in buffer.table.blocks(
            _BLOCK
        ):  # temporary arrays take several times the memory of the rows
            averaged = self.ties == "average"
            ranking = Ranking(table, averaged=averaged, relevant_at=self.relevant_at, k=self._depth)
            counts = table.judged if table.weights is None else table.judged & (table.weights != 0)
            if self.no_relevant == "skip":
                counts = counts & self._has_relevant(ranking)
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
        """How many queries `compute` averages."""
        (buffer,) = self._read()
        return int(np.count_nonzero(self._counted(buffer)[0]))  # type: ignore[arg-type]

    @property
    def n_unjudged(self) -> int:
        """How many queries have results but no judgments, and are left out."""
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
        """Add a batch of rows: judgments, results or both.

        Args:
            query: The query id of each row, (n,): integers or strings.
            relevance: How relevant the document is, (n,); null where it was not judged.
            score: The score that it is ranked by, (n,); null where it was not retrieved.
            doc: The document id, (n,): integers or strings.
            query_weight: The weight of the query, (n,), the same in all its rows that give one.

        Raises:
            InvalidBatchError: A score is nan or a relevance is not finite, a row has neither, ids
                are not all integers or all strings, a document id is missing with ``ties="doc"``, a
                document has two relevances or two scores in one query, or a query has two weights.
                The message names the first such query and document; the state is unchanged.
        """
        rows = {"query": query, "relevance": relevance, "score": score, "doc": doc}
        return self.feed({**rows, "query_weight": query_weight})


class AtK(RankingMetric):
    """Base of the metrics of the first k results."""

    k: Annotated[int, AtLeast(1)]

    @property
    def _depth(self) -> int | None:
        """The first k."""
        return self.k


class UpToK(RankingMetric):
    """Base of the metrics of the first k results, or of all."""

    k: Annotated[int, AtLeast(1)] | None = None

    @property
    def _depth(self) -> int | None:
        """The first k, or all."""
        return self.k
