"""Shared parts of ranking metrics: parameters, and the view of the queries."""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.constraints import AtLeast, NanPolicy, Positive
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import KeyedValues
from streammetrics.metrics.families import Family
from streammetrics.statistics.ranking_rows import counted, decoded, run_starts
from streammetrics.statistics.rankings import RankingBuffer

if TYPE_CHECKING:
    from streammetrics.core.types import Array, ArrayLike, Bools, Floats, Ints, Options, Places
    from streammetrics.statistics.rankings import RankingTable


_LONG = 1 << 16  # up to this many places of one grade are summed one by one


@dataclass(frozen=True)
class TieGroups:
    """Tie groups in rank order; all arrays have the same length."""

    query: Array
    first: Ints  # the group's first row
    size: Ints
    before: Ints  # results of the query above the group
    within: Ints  # results of the group within the depth, for any order
    relevant: Ints
    found: Ints  # relevant results above the group

    def at(self, rows: Array) -> TieGroups:
        """Return some of the groups."""
        columns = (self.query, self.first, self.size, self.before, self.within, self.relevant)
        return TieGroups(*(column[rows] for column in (*columns, self.found)))

    def places(self, counts: Ints | None = None) -> tuple[Ints, Ints, Ints]:
        """Return the group, place (from 0) and rank of the first `counts` places of each group."""
        group, place = places_of_rows(self.within if counts is None else counts)
        return group, place, self.before[group] + place + 1


class Ranking:
    """A table of ranking rows, read to a depth, with a relevance threshold."""

    def __init__(
        self, table: RankingTable, *, averaged: bool, relevant_at: float, k: int | None
    ) -> None:
        self.table = table
        self.averaged = averaged
        self.n_queries = len(table.queries)
        self.k = k
        self.is_relevant = np.append(
            table.levels >= relevant_at, False
        )  # by grade; -1 is the last element

    @cached_property
    def retrieved(self) -> Ints:
        """The number of results kept for each query; 0 only if it had none."""
        return np.bincount(self.table.results.query, minlength=self.n_queries)

    @cached_property
    def groups(self) -> TieGroups:
        """The tie groups."""
        results = self.table.results
        columns = (results.query, results.score)
        first = run_starts(*columns) if self.averaged else np.arange(len(results.query))
        size = np.diff(first, append=len(results.query))
        query = results.query[first]
        start = np.cumsum(self.retrieved) - self.retrieved
        before = first - start[query]
        relevant = added(self.is_relevant[results.grade].astype(np.int64), first)
        within = size if self.k is None else np.minimum(size, np.maximum(self.k - before, 0))
        found = running_sum(relevant, query)
        return TieGroups(query, first, size, before, within, relevant, found)

    def by_query(self, query: Array, values: Array | None) -> Floats:
        """Return the sum of values per query, in query order; for ``None`` the number of rows."""
        sums = np.bincount(query, weights=values, minlength=self.n_queries)
        return sums.astype(np.float64, copy=False)

    def hits(self, depth: Ints | None = None) -> Floats:
        """Return the expected number of relevant results of each query, within a depth."""
        groups = self.groups
        within = groups.within
        if depth is not None:
            within = np.clip(depth[groups.query] - groups.before, 0, groups.size)
        return self.by_query(groups.query, groups.relevant * within / groups.size)

    @cached_property
    def given(self) -> tuple[Ints, Places, Ints]:
        """Query, grade and count of the judgments kept, by query and descending grade."""
        judgments, grades, width = self.table.judgments, self.table.grades, len(self.table.levels)
        query = np.concatenate([judgments.query, grades.query]).astype(np.int64)
        grade = np.concatenate([judgments.grade, grades.grade])
        times = np.concatenate([np.ones(len(judgments.query), np.int64), grades.times])
        cells, times = counted(query * width + (width - 1 - grade), times)
        query, grade = np.divmod(cells, max(1, width))
        return query, width - 1 - grade, times

    @cached_property
    def n_relevant(self) -> Ints:
        """The number of documents relevant to each query, retrieved or not."""
        query, grade, times = self.given
        return self.by_query(query, times * self.is_relevant[grade]).astype(np.int64)

    @property
    def highest(self) -> Floats:
        """The highest relevance judged in each query, ``-inf`` without judgments."""
        query, grade, _ = self.given
        first, highest = run_starts(query), np.full(self.n_queries, -np.inf)
        highest[query[first]] = self.table.levels[grade[first]]
        return highest

    def gains(self) -> tuple[Array, Floats, Ints]:
        """Return the query, the gain and the rank of each result, query by query in rank order.

        The gain is the relevance, or 0 if it was not judged or is negative. Results of equal score
        all have their mean.
        """
        groups = self.groups
        gains = np.append(np.maximum(self.table.levels, 0.0), 0.0)
        means = added(gains[self.table.results.grade], groups.first) / groups.size
        group, _, ranks = groups.places()
        return groups.query[group], means[group], ranks

    def discounted(self, gain: Floats) -> Floats:
        """Return the expected discounted gain of each query, from the gain of each level."""
        groups = self.groups
        gains = added(np.append(gain, 0.0)[self.table.results.grade], groups.first)
        mean = gains / groups.size if self.averaged else gains
        discounted = np.flatnonzero(mean)
        gaining, mean = groups.at(discounted), mean[discounted]
        group, _, rank = gaining.places()
        return self.by_query(gaining.query[group], mean[group] * discounts(rank))

    def ideally_discounted(self, gain: Floats) -> Floats:
        """Return the discounted gain of the best ranking of all judged documents."""
        query, grade, times = self.given
        gaining = np.flatnonzero(gain[grade])
        query, grade, times = query[gaining], grade[gaining], times[gaining]
        before = running_sum(times, query)
        if self.k is not None:
            times = np.minimum(times, np.maximum(self.k - before, 0))
        row, place = places_of_rows(np.minimum(times, _LONG))
        rank = before[row] + place + 1
        ideal = self.by_query(query[row], gain[grade[row]] * discounts(rank))
        long = np.flatnonzero(
            times > _LONG
        )  # a few bytes of state may represent billions of documents
        if long.size:
            first, last = (before + _LONG + 1)[long], (before + times)[long]
            ideal += self.by_query(query[long], gain[grade[long]] * summed_discounts(first, last))
        return ideal


def added(values: Array, first: Ints) -> Array:
    """Return the sum over the rows of each group."""
    if len(first) == len(values):
        return values
    return np.add.reduceat(values, first)


def places_of_rows(counts: Ints) -> tuple[Ints, Ints]:
    """Return the row and the place (from 0) for `counts` places of each row."""
    row = np.repeat(np.arange(len(counts)), counts)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)


def running_sum(values: Ints, query: Array) -> Ints:
    """Return the sum of the values above each value, within its query."""
    above = np.cumsum(values) - values
    starts = run_starts(query)
    return above - np.repeat(above[starts], np.diff(starts, append=len(query)))


def running_product(factors: Floats, place: Ints) -> Floats:
    """Return the products of the factors up to each place, restarting at each place 0.

    Each pass doubles the number of factors, so the error is that of about log2(n) roundings.
    """
    products, step = factors.copy(), 1
    farthest = int(place.max(initial=0))
    while step <= farthest:
        far = np.flatnonzero(place >= step)
        products[far] *= products[far - step]
        step *= 2
    return products


def ratio_or_zero(numerator: Array, denominator: Array | float) -> Floats:
    """Return the quotient, or 0 if the denominator is 0."""
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    result: Floats = np.divide(
        numerator, denominator, out=np.zeros(shape), where=np.greater(denominator, 0)
    )
    return result


def discounts(rank: Ints) -> Floats:
    """Return 1 / log2(rank + 1)."""
    last = int(rank.max(initial=0))
    if last > _LONG + 8 * rank.size:  # too few ranks, too far down, for a table
        far: Floats = 1.0 / np.log2(rank + 1.0)
        return far
    table: Floats = 1.0 / np.log2(np.arange(2.0, last + 2.0))
    return table.take(rank - 1)


def summed_discounts(first: Ints, last: Ints) -> Floats:
    """Return the sums of the discounts of ranks from `first` to `last`, both beyond 2**16.

    Computed by the Euler-Maclaurin formula. With u = ln(rank + 1) the integrand is exp(u) / u,
    which Gauss quadrature with sixteen points integrates to the last bit or two. Terms beyond the
    first derivative are below 1e-17.
    """
    low, high = np.log(first + 1.0), np.log(last + 1.0)
    points, weights = np.polynomial.legendre.leggauss(16)
    panels = np.arange(64.0)[:, np.newaxis] + (points + 1.0) / 2.0
    width = np.log1p((last - first) / (first + 1.0))[:, np.newaxis, np.newaxis] / 64.0
    u = low[:, np.newaxis, np.newaxis] + width * panels
    integral = (np.exp(u) / u * weights * width).sum(axis=(1, 2)) / 2.0
    slopes = np.exp(-low) / low**2 - np.exp(-high) / high**2
    sums: Floats = np.log(2.0) * (integral + (1.0 / low + 1.0 / high) / 2.0 + slopes / 12.0)
    return sums


def hypergeometric(h: Ints, m: Ints, r: Ints, n: Ints) -> Floats:
    """Return the probability of h relevant among m results drawn from n with r relevant."""
    logs = np.log(np.arange(1.0, int(n.max()) + 1.0))
    table = np.concatenate([[0.0], np.cumsum(logs)])

    def choose(a: Ints, b: Ints) -> Floats:
        result: Floats = table[a] - table[b] - table[a - b]
        return result

    return np.exp(choose(r, h) + choose(n - r, m - h) - choose(n, m))


_BLOCK = 1 << 19  # number of rows read at a time

_PRESETS: dict[str, dict[str, object]] = {
    "trec_eval": {"ties": "doc", "relevant_at": 1.0, "no_relevant": "zero", "unretrieved": "skip"},
    "sklearn": {
        "ties": "average", "relevant_at": 1.0, "no_relevant": "zero", "unretrieved": "zero",
    },
}  # fmt: skip


def ranking_preset(name: Literal["trec_eval", "sklearn"]) -> Options:
    """Return the parameters with which ranking metrics reproduce another tool.

    ``"trec_eval"`` is trec_eval without ``-c``; for ``-c`` also set ``unretrieved="zero"``.
    trec_eval breaks ties by descending document id, as text, and reads scores as 32-bit floats. If
    ties matter, round scores first (``scores.astype("float32")``). ``"sklearn"`` reproduces
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


Aggregation = Literal["mean", "median", "median_low", "min", "max"]


class RankingMetric(Metric[float]):
    """Base class of ranking metrics: the mean over queries of a value of each query's ranking.

    Rows come in any order and in any batches. A row is a judgment, a result or both. With document
    ids, judgments and results may come separately and are joined by (query, document); a null
    means that the value is not given. A result without a judgment counts as not relevant; a judged
    document that is not retrieved counts in recall and in the ideal ranking. Each row without a
    document id is a separate document.

    A query without any judgment is left out and counted in `n_unjudged`; a query with weight 0 is
    left out. The weight of a query may be given in any of its rows; it is 1 if none gives it.

    Args:
        ties: How to order results with equal scores. ``"average"``: the expectation over all
            orders. ``"doc"``: by descending document id, integers by value and strings by code
            point, as in trec_eval.
        relevant_at: The smallest relevance that counts as relevant, above 0. Metrics with graded
            gains ignore it: in them every positive relevance counts.
        no_relevant: Whether a judged query without relevant documents counts as 0 (``"zero"``), as
            1 (``"one"``) or is left out (``"skip"``).
        unretrieved: Whether a judged query without results counts as 0 (``"zero"``, trec_eval's
            ``-c``) or is left out (``"skip"``).
        nan_policy: ``"raise"``, or ``"omit"``: rows whose relevance or score is nan are left out.
        aggregation: How the values of queries are combined: ``"mean"``, ``"median"``,
            ``"median_low"``, ``"min"`` or ``"max"``. For an even number of queries ``"median"`` is
            the mean of the middle two values, and ``"median_low"`` the lower one. Weights of
            queries apply to means and medians. Use `per_query` for any other aggregate.
    """

    family: ClassVar[str | None] = Family.QUERIES
    _graded: ClassVar[bool] = False  # whether every positive relevance counts, by its size
    _partial: ClassVar[bool] = False  # whether a query with the value nan is left out

    _formula: ClassVar[tuple[str, ...]] = ("readout", "read")

    ties: Literal["average", "doc"] = "average"
    relevant_at: Annotated[float, Positive] = 1.0
    no_relevant: Literal["zero", "one", "skip"] = "zero"
    unretrieved: Literal["zero", "skip"] = "zero"
    nan_policy: NanPolicy = "raise"
    aggregation: Aggregation = "mean"

    @property
    def _depth(self) -> int | None:
        """The number of results of each query that count, ``None`` for all."""
        return None

    def statistics(self) -> tuple[RankingBuffer]:
        """Return a buffer that keeps the rows needed for the depth."""
        return (self._buffer(k=self._depth),)

    def _buffer(self, **needs: Any) -> RankingBuffer:
        return RankingBuffer(named=self.ties == "doc", nan_policy=self.nan_policy, **needs)

    @abstractmethod
    def read(self, ranking: Ranking) -> Floats:
        """Return the value of every query; 0 without relevant documents or results."""

    def _has_relevant(self, ranking: Ranking) -> Bools:
        """Return which queries have a relevant document, or a positive relevance if graded."""
        return ranking.highest > 0 if self._graded else ranking.n_relevant > 0

    def readout(self, buffer: RankingBuffer) -> float:
        """Return the aggregate of the queries that count.

        The mean is computed from an exact sum, so it does not depend on the order.
        """
        counted, values = self._counted(buffer)
        if not len(values):
            return math.nan
        weights = self._weights(buffer, counted)
        if self.aggregation != "mean":
            return _aggregated(values, weights, self.aggregation)
        if not np.isfinite(values).all():
            return float(values.max() / len(values))  # a gain beyond float64: inf or nan
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
        """Return the weights of the queries that count, ``None`` if no weight was given."""
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
            found = self.read(ranking)
            if self.no_relevant == "one":
                found = np.where(self._has_relevant(ranking), found, 1.0)
            if self._partial:
                counts = counts & ~np.isnan(found)
            counted.append(counts)
            values.append(found[counts])
        return np.concatenate(counted), np.concatenate(values)

    def per_query(self) -> KeyedValues:
        """Return the value of each query that counts, by ascending query id."""
        return self._shape(*self._read())

    def _shape(self, buffer: Any) -> KeyedValues:
        """Return the value of each query."""
        counts, values = self._counted(buffer)
        queries = decoded(buffer.table.queries[counts])
        return KeyedValues(dict(zip(queries, values.tolist(), strict=True)), "query")

    @property
    def n_queries(self) -> int:
        """The number of queries that `compute` averages."""
        (buffer,) = self._read()
        return int(np.count_nonzero(self._counted(buffer)[0]))  # type: ignore[arg-type]

    @property
    def n_unjudged(self) -> int:
        """The number of queries that have results but no judgments; they are left out."""
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
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows: judgments, results or both.

        Args:
            query: The query id of each row, (n,): integers or strings.
            relevance: The relevance of the document, (n,); null if it was not judged.
            score: The score by which it is ranked, (n,); null if it was not retrieved.
            doc: The document id, (n,): integers or strings.
            query_weight: The weight of the query, (n,), the same in all its rows that give one.
            counts: Must be ``None``: documents of a query are rows of their own.

        Raises:
            InvalidBatchError: A score is nan or a relevance is not finite, a row has neither, ids
                are not all integers or all strings, a document id is missing with ``ties="doc"``, a
                document has two relevances or two scores in one query, or a query has two weights.
                The message names the first such query and document; the state is unchanged.
        """
        rows = {"query": query, "relevance": relevance, "score": score, "doc": doc}
        return self.feed({**rows, "query_weight": query_weight, "counts": counts})


def _aggregated(values: Floats, weights: Floats | None, how: str) -> float:
    """Return the smallest, the largest or a median of values."""
    if how in {"min", "max"}:
        return float(values.min() if how == "min" else values.max())
    order = np.argsort(values)
    parts = np.ones(len(values)) if weights is None else weights[order]
    reached = list(accumulate(map(Fraction, parts.tolist())))
    half = reached[-1] / 2
    place = bisect_left(reached, half)
    low = float(values[order[place]])
    if how == "median_low" or reached[place] > half:
        return low
    return low / 2 + float(values[order[place + 1]]) / 2


class AtK(RankingMetric):
    """Base class of metrics of the first k results."""

    k: Annotated[int, AtLeast(1)]

    @property
    def _depth(self) -> int | None:
        """The first k."""
        return self.k


class UpToK(RankingMetric):
    """Base class of metrics of the first k results, or of all."""

    k: Annotated[int, AtLeast(1)] | None = None

    @property
    def _depth(self) -> int | None:
        """The first k, or all."""
        return self.k


class QueryMean(UpToK):
    """Base class of metrics that compute a value for each query from the gains of its results.

    A subclass computes the value in `of_query`, which is called for each query. A query without
    results has the value 0. A metric of the package has `read` in its place, which computes the
    values of all queries from `Ranking.gains` at once.

    The parameters are those of `UpToK`.
    """

    _graded = True
    _formula = ("readout", "read", "of_query")

    @abstractmethod
    def of_query(self, gain: Floats, rank: Ints) -> float:
        """Return the value of a query.

        Args:
            gain: The relevance of its results from the first rank to the last; 0 if it was not
                judged or is negative. Results of equal score all have their mean.
            rank: The ranks, from 1.

        """

    def read(self, ranking: Ranking) -> Floats:
        """Return the value of every query."""
        queries, gains, ranks = ranking.gains()
        values = np.zeros(ranking.n_queries)
        ends = np.cumsum(np.bincount(queries, minlength=ranking.n_queries)).tolist()
        first = 0
        for query, last in enumerate(ends):
            if last > first:
                values[query] = self.of_query(gains[first:last], ranks[first:last])
            first = last
        return values
