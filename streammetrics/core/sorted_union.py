"""The union of two sorted arrays of keys, and the mapping of rows to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Places


class Union(NamedTuple):
    """Distinct keys, ascending, and the index in them of each key of either side.

    An index array is None if a side's keys are all of the keys, in the same order.
    """

    keys: Array
    mine: Places | None
    theirs: Places | None

    @classmethod
    def of(cls, mine: Array, theirs: Array) -> Union:
        """Return the union of two ascending arrays of distinct keys."""
        if _same(mine, theirs) or not len(theirs):
            return cls(mine, None, None if len(theirs) else np.empty(0, np.intp))
        if not len(mine):
            return cls(theirs, np.empty(0, np.intp), None)
        before = np.searchsorted(mine, theirs)
        fresh = mine[np.minimum(before, len(mine) - 1)] != theirs
        added = before[fresh]
        # Each key of mine is shifted by the number of new keys below it.
        places = (
            np.arange(len(mine)) + np.cumsum(np.bincount(added, minlength=len(mine)))[: len(mine)]
        )
        found = np.empty(len(theirs), np.intp)
        found[fresh] = added + np.arange(added.size)
        found[~fresh] = places[before[~fresh]]
        keys = np.empty(len(mine) + added.size, np.result_type(mine, theirs))
        keys[places], keys[found] = mine, theirs
        return cls(
            keys,
            None if len(keys) == len(mine) else places,
            None if len(keys) == len(theirs) else found,
        )


def _same(mine: Array, theirs: Array) -> bool:
    return mine is theirs or (
        len(mine) == len(theirs)
        and mine.dtype == theirs.dtype
        and mine.tobytes() == theirs.tobytes()
    )


def moved(places: Places | None, codes: Array) -> Array:
    """Convert codes of one side to codes of the union."""
    return codes if places is None else places[codes]


def spread(rows: Array, places: Places | None, size: int, fill: object = 0) -> Array:
    """Place rows ``(n, ...)`` in a table of `size` rows; the others are `fill`."""
    if places is None:
        return rows
    table = np.full((size, *rows.shape[1:]), fill, rows.dtype)
    table[places] = rows
    return table
