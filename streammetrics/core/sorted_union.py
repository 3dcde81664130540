"""Sorted keys of two tables united, and the rows of both brought to their places."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Places


class Union(NamedTuple):
    """Distinct keys, ascending, and the places among them of the keys of either side.

    Places are None where all keys stay as they are.
    """

    keys: Array
    mine: Places | None
    theirs: Places | None

    @classmethod
    def of(cls, mine: Array, theirs: Array) -> Union:
        """Unite two arrays of distinct keys, both ascending."""
        if _same(mine, theirs) or not len(theirs):
            return cls(mine, None, None if len(theirs) else np.empty(0, np.intp))
        if not len(mine):
            return cls(theirs, np.empty(0, np.intp), None)
        before = np.searchsorted(mine, theirs)
        fresh = mine[np.minimum(before, len(mine) - 1)] != theirs
        added = before[fresh]
        # Behind each of mine stand all new ones that are smaller.
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
    """Return codes of one side as codes of the union."""
    return codes if places is None else places[codes]


def spread(rows: Array, places: Places | None, size: int, fill: object = 0) -> Array:
    """Return rows ``(n, ...)`` at their places among `size`; what is between them is `fill`."""
    if places is None:
        return rows
    table = np.full((size, *rows.shape[1:]), fill, rows.dtype)
    table[places] = rows
    return table
