"""Strings as integer codes into a sorted vocabulary, without a Python loop over rows.

Statistics count integers. A column of strings therefore becomes ``(codes, vocabulary)``: the
distinct strings that occur, sorted by code point, and for each row its string's place among
them, or -1 where the row is null. Both depend on the strings alone: two libraries that hold the
same strings give the same codes.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core import tuning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Coded = tuple[NDArray[np.intp], list[str]]

_MULTIPLIER = 0x9E3779B97F4A7C15  # 2**64 / golden ratio, odd


def code_objects(items: Sequence[object]) -> Coded:
    """Codes of Python strings; whatever is not a ``str`` counts as null.

    Costs one set and one dictionary look-up a row, both in C.
    """
    if any(kind is not str and issubclass(kind, str) for kind in set(map(type, items))):
        # Enum members and numpy.str_ may hash or compare in their own way: take the plain text.
        items = [str.__str__(item) if isinstance(item, str) else item for item in items]
    vocabulary = sorted({item for item in set(items) if isinstance(item, str)})
    place: dict[object, int] = {text: code for code, text in enumerate(vocabulary)}
    return np.fromiter(map(place.get, items, repeat(-1)), np.intp, len(items)), vocabulary


def code_fixed(array: NDArray[np.str_]) -> Coded:
    """Codes of a contiguous one-dimensional ``U`` array in native byte order.

    Rows are hashed to 64 bits, grouped by hash, and every row is compared with its group's
    first; should two strings share a hash, the slower dictionary takes over. Exact in any case.
    """
    width = array.dtype.itemsize // 4
    if not width:
        return code_objects(array.tolist())
    points = array.view(np.uint32).reshape(len(array), width)
    powers = np.multiply.accumulate(np.full(width, _MULTIPLIER, np.uint64))
    codes, first = group(np.einsum("ij,j->i", points, powers))
    for start in range(0, len(array), tuning.STRING_ROWS):
        block = slice(start, start + tuning.STRING_ROWS)
        if not np.array_equal(points[first[codes[block]]], points[block]):
            return code_objects(array.tolist())
    return recode(codes, array[first].tolist())


def group(keys: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Number equal keys alike: ``(codes, rows)`` with ``keys[rows][codes] == keys``."""
    order = np.argsort(keys)
    ordered = keys[order]
    starts = np.ones(len(keys), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    codes = np.empty(len(keys), np.intp)
    codes[order] = np.cumsum(starts) - 1
    return codes, order[starts]


def recode(codes: NDArray[Any], labels: Sequence[object]) -> Coded:
    """Codes into any list of labels, made canonical.

    ``labels`` may be unsorted, repeat itself, hold nulls and hold labels that no row has; a code
    of -1 is a null row.
    """
    occurs = np.zeros(len(labels) + 1, np.bool_)  # the last place is that of -1
    occurs[codes] = True
    used = np.flatnonzero(occurs[:-1])
    ranks, vocabulary = code_objects([labels[place] for place in used.tolist()])
    lookup = np.full(len(labels) + 1, -1, np.intp)
    lookup[used] = ranks
    return lookup[codes], vocabulary


def merge_codes(
    parts: Sequence[tuple[NDArray[np.intp], NDArray[np.str_]]],
) -> tuple[NDArray[np.intp], NDArray[np.str_]]:
    """Codes of several columns, one after the other, over the union of their vocabularies."""
    vocabularies = [vocabulary for _, vocabulary in parts]
    if all(np.array_equal(vocabulary, vocabularies[0]) for vocabulary in vocabularies[1:]):
        return np.concatenate([codes for codes, _ in parts]), vocabularies[0]
    merged, places = np.unique(np.concatenate(vocabularies), return_inverse=True)
    moved, start = [], 0
    for codes, vocabulary in parts:
        lookup = np.append(places[start : start + len(vocabulary)], -1)  # a null stays -1
        moved.append(lookup[codes])
        start += len(vocabulary)
    return np.concatenate(moved), merged
