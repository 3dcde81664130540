"""Which (query, document) pairs have been judged, and which retrieved: to find those seen again.

Sorted 64-bit hashes, in a few arrays of falling size. A hash that occurs twice may be a chance, so
the rows themselves then decide; a pair that occurs twice is always found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from streammetrics.statistics.rankings.ids import hashed, mixed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.statistics.rankings.table import RankingTable

Hashes: TypeAlias = "NDArray[np.uint64]"

_JUDGED = np.uint64(0xD6E8FEB86659FD93)  # told apart from retrieved


def pair_hashes(table: RankingTable) -> Hashes:
    """Return the sorted hashes of all pairs that are judged or retrieved in a table."""
    queries, docs = mixed(hashed(table.queries)), hashed(table.docs)
    results, given = table.results, table.judgments
    named = results.doc >= 0
    graded = named & (results.grade >= 0)
    # Positive grades of results are among the judgments already: do not count them again.
    graded &= ~np.append(table.levels > 0, False).take(results.grade)
    judged = [(given.query, given.doc), (results.query[graded], results.doc[graded])]
    parts = [mixed(queries.take(q) + docs.take(d)) ^ _JUDGED for q, d in judged]
    if named.any():
        rows = results.at(named)
        parts.append(mixed(queries.take(rows.query) + docs.take(rows.doc)))
    return np.sort(np.concatenate(parts))


def seen_again(levels: tuple[Hashes, ...], hashes: Hashes) -> bool:
    """Whether some hash occurs twice, among `hashes` or in them and a level."""
    if (hashes[1:] == hashes[:-1]).any():
        return True
    for level in levels:
        if (level.take(np.searchsorted(level, hashes), mode="clip") == hashes).any():
            return True
    return False


def with_hashes(levels: tuple[Hashes, ...], hashes: Hashes) -> tuple[Hashes, ...]:
    """Return the levels with more hashes: each is merged about log n times, and none is empty."""
    if not len(hashes):
        return levels
    rest = list(levels)
    while rest and len(rest[-1]) <= 4 * len(hashes):
        hashes = np.sort(np.concatenate([rest.pop(), hashes]))
    return (*rest, hashes)
