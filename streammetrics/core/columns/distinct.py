"""Equal keys numbered alike: integers, hashes of strings, and objects by where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core import tuning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Places

    Numbered = tuple[Places, Places]

MULTIPLIER = 0x9E3779B97F4A7C15  # 2**64 / golden ratio, odd
_SLOTS = 1 << 16  # in which thousands of keys seldom meet
_SHIFT = np.uint64(64 - 16)  # leaves of a hash the number of a slot


class _Numbers(dict[int, int]):
    """Keys with their numbers, in the order in which they were met."""

    def __missing__(self, key: int) -> int:
        self[key] = number = len(self)
        return number


def numbered(keys: Array) -> Numbered:
    """Number equal integers alike, as `group` does but in any order."""
    return number_few(keys.astype(np.uint64, copy=False)) or group(keys)


def number_few(keys: NDArray[np.uint64]) -> Numbered | None:
    """Number equal keys alike, in any order; ``None`` where many differ.

    Each slot of a table holds the key that was met there last. Nearly every row of few keys finds
    its own, at some nanoseconds; the others are looked up in a dictionary.
    """
    if len(keys) < tuning.KEYS_MET // 8:  # nor worth the table
        return None
    numbers, firsts = _Numbers(), []
    held = np.empty(_SLOTS, np.intp)
    met = np.zeros(_SLOTS, np.uint64)
    met[0] = 1  # no key is met yet: 0 has its slot here, and 1 has it elsewhere
    codes = np.empty(len(keys), np.intp)
    for start in range(0, len(keys), tuning.KEYS_MET):
        block = keys[start : start + tuning.KEYS_MET]
        slots = (block * np.uint64(MULTIPLIER) >> _SHIFT).view(np.intp)
        part = held.take(slots, out=codes[start : start + len(block)], mode="clip")
        lost = np.flatnonzero(met.take(slots, mode="clip") != block)
        if not lost.size:
            continue
        before, at = len(numbers), slots[lost]
        found = np.fromiter(map(numbers.__getitem__, block[lost].tolist()), np.intp, lost.size)
        if 2 * len(numbers) > start + len(block):
            return None
        each, first = np.unique(found, return_index=True)
        firsts.append(start + lost[first[each >= before]])
        part[lost] = held[at] = found
        met[at] = block[lost]
    return codes, np.concatenate(firsts)


def group(keys: Array) -> Numbered:
    """Number equal keys alike, in order: ``(codes, rows)`` with ``keys[rows][codes] == keys``."""
    order = np.argsort(keys)
    ordered = keys[order]
    starts = np.ones(len(keys), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    codes = np.empty(len(keys), np.intp)
    codes[order] = np.cumsum(starts) - 1
    return codes, order[starts]


def looked_up(table: Array, codes: Array) -> Array:
    """Return ``table[codes]``, where -1 is the last place, a block at a time."""
    found = np.empty(len(codes), table.dtype)
    for start in range(0, len(codes), tuning.BATCH_ROWS):
        rows = slice(start, start + tuning.BATCH_ROWS)
        np.take(table, codes[rows], out=found[rows], mode="wrap")  # "raise" would copy
    return found


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
    if len(items) < tuning.KEYS_MET // 8:
        return None
    array = items if isinstance(items, np.ndarray) else np.fromiter(items, object, len(items))
    found = number_few(np.asarray(_ObjectPlaces(array)))
    return None if found is None else (found[0], array[found[1]].tolist())
