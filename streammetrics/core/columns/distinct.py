"""Equal keys numbered alike: integers, strings of one width, and objects by where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.counting import counts_of, is_dense
from streammetrics.core.kernels import kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Places

_FIRST = 1 << 8  # keys for which there is room at first
_TRIED = 1 << 14  # objects that tell whether many are the same


def distinct(keys: Array) -> tuple[Places, Places]:
    """Number equal rows alike, in the order in which they come; return also the first row of each.

    >>> codes, rows = distinct(np.array([7, 5, 7]))
    >>> codes.tolist(), rows.tolist()
    ([0, 1, 0], [0, 1])
    """
    keys = np.ascontiguousarray(keys)
    codes, rows = np.empty(len(keys), np.int64), np.empty(_FIRST, np.int64)
    if not len(keys):
        return codes, codes
    width = keys.nbytes // len(keys)
    stored, slots = np.empty(_FIRST * width, np.uint8), np.zeros(2 * _FIRST, np.uint32)
    done, used = kernels.factorize(slots, stored, width, 0, keys, codes, True, rows)
    while done < len(keys):
        stored, rows = np.resize(stored, 4 * stored.size), np.resize(rows, 4 * rows.size)
        slots = np.zeros(4 * slots.size, np.uint32)
        kernels.table_put(slots, stored, width, 0, used)
        more, now = kernels.factorize(
            slots, stored, width, used, keys[done:], codes[done:], True, rows
        )
        rows[used:now] += done
        done, used = done + more, now
    return codes, rows[:used]


def unique(keys: Array) -> tuple[Array, Places]:
    """Return the distinct keys, sorted, and each row's place among them."""
    codes, rows = distinct(keys)
    found = keys[rows]
    order = np.argsort(found)
    places = np.empty(order.size, np.int64)
    places[order] = np.arange(order.size)
    return found[order], places[codes]


def numbered(codes: Array, size: int) -> tuple[Places, Places]:
    """Number codes below `size` without gaps; return also the code of each number, ascending.

    >>> places, found = numbered(np.array([7, 5, 7]), 10)
    >>> places.tolist(), found.tolist()
    ([1, 0, 1], [5, 7])
    """
    if not is_dense(size, codes.size):
        found, places = unique(codes)
        return places, found
    found = np.flatnonzero(counts_of((size,), codes))
    if found.size == size:
        return codes, found
    lookup = np.empty(size, np.intp)
    lookup[found] = np.arange(found.size)
    return lookup[codes], found


class _ObjectPlaces:
    """Where the objects of an array are, as an array: one object has one place."""

    def __init__(self, array: NDArray[np.object_]) -> None:
        shape = {key: array.__array_interface__[key] for key in ("shape", "strides", "data")}
        self.__array_interface__ = shape | {"typestr": np.dtype(np.uintp).str, "version": 3}
        self.of = array  # lives as long as this


def same_objects(
    items: Sequence[Any] | NDArray[np.object_],
) -> tuple[Places, list[Any]] | None:
    """Return distinct objects and which of them each item is; ``None`` where many differ.

    >>> cat, dog = "cat", "dog"
    >>> codes, objects = same_objects([cat, dog, cat] * 2000)
    >>> codes[:3].tolist(), objects
    ([0, 1, 0], ['cat', 'dog'])
    """
    if len(items) < _TRIED // 8:  # read sooner than compared
        return None
    array = items if isinstance(items, np.ndarray) else np.fromiter(items, object, len(items))
    places = np.asarray(_ObjectPlaces(array))
    if 2 * len(distinct(places[:_TRIED])[1]) > min(len(array), _TRIED):
        return None
    codes, rows = distinct(places)
    return codes, array[rows].tolist()
