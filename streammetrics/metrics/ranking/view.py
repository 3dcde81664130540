"""Rankings as arrays over all queries at once: tie groups, ranks and ideal rankings.

A *group* is a run of results of one query with equal scores; with ``ties="doc"`` every result is a
group of its own. An expectation over the orders of tied results is a sum over groups, or over the
*places* of a group: its ranks within the depth. No loop here runs over queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.statistics.rankings.order import counted, run_starts

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Floats, Ints, Places
    from streammetrics.statistics.rankings.table import RankingTable


_LONG = 1 << 16  # places of one grade up to which they are summed one by one


@dataclass(frozen=True)
class TieGroups:
    """Tie groups in rank order; all arrays have the same length."""

    query: Array
    first: Ints  # the group's first row
    size: Ints
    before: Ints  # results of the query above the group
    within: Ints  # results of the group that are within the depth, in any order
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
    """A table of ranking rows, read to a depth, with a threshold of relevance."""

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
        """How many results of each query are kept: 0 only where there were none."""
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
        """Return the sum of values for each query, in their order; for ``None`` their number."""
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
        """Query, grade and number of the judgments kept, by query and descending grade."""
        judgments, grades, width = self.table.judgments, self.table.grades, len(self.table.levels)
        query = np.concatenate([judgments.query, grades.query]).astype(np.int64)
        grade = np.concatenate([judgments.grade, grades.grade])
        times = np.concatenate([np.ones(len(judgments.query), np.int64), grades.times])
        cells, times = counted(query * width + (width - 1 - grade), times)
        query, grade = np.divmod(cells, max(1, width))
        return query, width - 1 - grade, times

    @cached_property
    def n_relevant(self) -> Ints:
        """How many documents are relevant to each query, retrieved or not."""
        query, grade, times = self.given
        return self.by_query(query, times * self.is_relevant[grade]).astype(np.int64)

    @property
    def highest(self) -> Floats:
        """The highest relevance judged in each query, ``-inf`` without judgments."""
        query, grade, _ = self.given
        first, highest = run_starts(query), np.full(self.n_queries, -np.inf)
        highest[query[first]] = self.table.levels[grade[first]]
        return highest

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
        )  # a state of few bytes may stand for billions of documents
        if long.size:
            first, last = (before + _LONG + 1)[long], (before + times)[long]
            ideal += self.by_query(query[long], gain[grade[long]] * summed_discounts(first, last))
        return ideal


def added(values: Array, first: Ints) -> Array:
    """Return the sum over the rows of each group."""
    if len(first) == len(values):
        return values
    sums: Array = np.add.reduceat(values, first)
    return sums


def places_of_rows(counts: Ints) -> tuple[Ints, Ints]:
    """Return the row and the place (from 0) of `counts` places of each row."""
    row = np.repeat(np.arange(len(counts)), counts)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)


def running_sum(values: Ints, query: Array) -> Ints:
    """Return the sum of the values above each one, within its query."""
    above = np.cumsum(values) - values
    starts = run_starts(query)
    return above - np.repeat(above[starts], np.diff(starts, append=len(query)))


def running_product(factors: Floats, place: Ints) -> Floats:
    """Return the products of the factors up to each place, starting anew at each place 0.

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
    """Return the quotient, 0 where the denominator is 0."""
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    result: Floats = np.divide(
        numerator, denominator, out=np.zeros(shape), where=np.greater(denominator, 0)
    )
    return result


def discounts(rank: Ints) -> Floats:
    """Return 1 / log2(rank + 1)."""
    last = int(rank.max(initial=0))
    if last > _LONG + 8 * rank.size:  # a few terms above rows that are only counted
        far: Floats = 1.0 / np.log2(rank + 1.0)
        return far
    table: Floats = 1.0 / np.log2(np.arange(2.0, last + 2.0))
    return table.take(rank - 1)


def summed_discounts(first: Ints, last: Ints) -> Floats:
    """Return the sums of the discounts of ranks from `first` to `last`, both beyond 2**16.

    By the Euler-Maclaurin formula: with u = ln(rank + 1) the integral is that of exp(u) / u, which
    Gauss quadrature with sixteen points gives to the last bit or two; the terms beyond the first
    derivative are below 1e-17.
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

    chance: Floats = np.exp(choose(r, h) + choose(n - r, m - h) - choose(n, m))
    return chance
