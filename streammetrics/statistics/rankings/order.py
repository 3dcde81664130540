"""Results in rank order, and those that the top k can need.

One sort of packed 64-bit keys ``query << b | leading bits of the descending score`` does nearly
all; the few rows whose packed keys are equal are put in their exact order afterwards.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from streammetrics.core import tuning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Bools, Floats, Ints, Places


_MAGNITUDE = np.int64((1 << 63) - 1)
Keys: TypeAlias = "NDArray[np.uint64]"


class Results(NamedTuple):
    """Retrieved rows: place of the query, score, place of the document and of the grade (or -1)."""

    query: Array
    score: Array
    doc: Array
    grade: Array

    def at(self, rows: Places | Bools) -> Results:
        """Return some of the rows."""
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        return Results(*(column.take(rows) for column in self))


def descending(score: Floats) -> Keys:
    """Return integers that ascend where the score descends; there is no -0.0."""
    bits = score.view(np.int64)
    bits = np.where(bits < 0, bits ^ _MAGNITUDE, bits) if bits.size and bits.min() < 0 else bits
    return (_MAGNITUDE - bits).view(np.uint64)  # wraps around for negative scores, as meant


def ranked(results: Results, n_queries: int, k: int | None) -> Results:
    """Return results by query and rank: descending score, then document, then grade.

    With `k`, those that score less than the k-th best of their query are left out; all that tie
    with it stay. Queries are taken in blocks, so that scratch memory stays small beside the rows.
    """
    counts = np.bincount(results.query, minlength=n_queries)
    if len(results.query) <= tuning.RANKED_ROWS:
        return _ranked(results, counts, 0, k)
    block = np.cumsum(counts) // tuning.RANKED_ROWS
    starts = np.append(run_starts(block), n_queries)
    parts = []
    for start, stop in pairwise(starts.tolist()):
        rows = np.flatnonzero((results.query >= start) & (results.query < stop))
        parts.append(_ranked(results.at(rows), counts[start:stop], start, k))
    return Results(*map(np.concatenate, zip(*parts, strict=True)))


def _ranked(results: Results, counts: Ints, start: int, k: int | None) -> Results:
    """Rank the results of the queries from `start` on, which have `counts` of them."""
    places = results.query - start
    shift = np.uint64(max(1, (len(counts) - 1).bit_length()))
    packed = descending(results.score)
    packed >>= shift
    packed |= places.astype(np.uint64) << (np.uint64(64) - shift)
    if k is not None and counts.max(initial=0) > k:
        last = np.cumsum(counts) - counts + np.minimum(counts, k) - 1
        worst = np.sort(packed).take(last, mode="clip")  # a query without results has no row
        first = np.flatnonzero(packed <= worst.take(places))
        results, packed = results.at(first), packed.take(first)
    results = results.at(_order(results, packed))
    return results if k is None else _within(results, k)


def _order(results: Results, packed: Keys) -> Places:
    order = np.argsort(packed)
    packed = packed.take(order)
    same = packed[1:] == packed[:-1]
    if same.any():  # equal scores, or scores that differ only in bits that were shifted out
        unsure = np.zeros(len(packed), np.bool_)
        unsure[1:] = same
        unsure[:-1] |= same
        places = np.flatnonzero(unsure)
        rows = order.take(places)
        sure = descending(results.score.take(rows))
        by = (-results.grade.take(rows), -results.doc.take(rows), sure, packed.take(places))
        order[places] = rows.take(np.lexsort(by))
    return order


def _within(results: Results, k: int) -> Results:
    """Return the first k of each query and what ties with the k-th; all are in rank order."""
    starts = run_starts(results.query)
    counts = np.diff(starts, append=len(results.query))
    worst = results.score.take(starts + np.minimum(counts, k) - 1)
    kept = results.score >= np.repeat(worst, counts)
    return results if kept.all() else results.at(kept)


def run_starts(*columns: NDArray[np.generic]) -> Places:
    """Return where a row differs from the one before in any of the columns."""
    new = np.ones(len(columns[0]), np.bool_)
    new[1:] = columns[0][1:] != columns[0][:-1]
    for column in columns[1:]:
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)


def counted(cells: Ints, times: Ints) -> tuple[Ints, Ints]:
    """Return the distinct cells (non-negative) and the sum of each one's times."""
    if int(cells.max(initial=-1)) < 2 * len(cells):
        sums = np.bincount(cells, weights=times)  # exact: counts of rows are below 2**53
        there = np.flatnonzero(sums)
        return there, sums.take(there).astype(np.int64)
    order = np.argsort(cells)
    cells = cells.take(order)
    starts = run_starts(cells)
    return cells.take(starts), np.add.reduceat(times.take(order), starts) if len(cells) else times
