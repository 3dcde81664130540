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
        keys = np.concatenate([mine, theirs])
        keys.sort(kind="stable")  # which finds both runs and merges them
        new = np.ones(len(keys), np.bool_)
        np.not_equal(keys[1:], keys[:-1], out=new[1:])
        keys = keys[new]
        return cls(keys, places_of(mine, keys), places_of(theirs, keys))


def _same(mine: Array, theirs: Array) -> bool:
    return mine is theirs or (
        len(mine) == len(theirs)
        and mine.dtype == theirs.dtype
        and mine.tobytes() == theirs.tobytes()
    )


def places_of(some: Array, keys: Array) -> Places | None:
    """Return the places of some keys, all of which are among `keys`, in the same order."""
    return None if len(some) == len(keys) else np.searchsorted(keys, some)


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
