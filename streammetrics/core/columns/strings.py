"""Strings as integer codes into a sorted vocabulary, without a Python loop over rows.

Statistics count integers. A column of strings therefore becomes ``(codes, vocabulary)``: the
distinct strings that occur, sorted by code point, and for each row its string's place among
them, or -1 where the row is null. Both depend on the strings alone: two libraries that hold the
same strings give the same codes.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.columns.distinct import distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Places

    Coded = tuple[Places, list[str]]


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
    """Codes of a contiguous one-dimensional ``U`` array in native byte order."""
    if not array.dtype.itemsize:
        return code_objects(array.tolist())
    codes, first = distinct(array)
    ranks, vocabulary = code_objects(array[first].tolist())
    return ranks[codes], vocabulary


def recode(codes: Array, labels: Sequence[object]) -> Coded:
    """Codes into any list of labels, made canonical.

    ``labels`` may be unsorted, repeat itself, hold nulls and hold labels that no row has; a code
    of -1 is a null row.
    """
    occurs = np.zeros(len(labels) + 1, np.bool_)
    occurs[codes] = True  # -1 is the last place
    used = np.flatnonzero(occurs[:-1])
    ranks, vocabulary = code_objects([labels[place] for place in used.tolist()])
    lookup = np.full(len(labels) + 1, -1, np.intp)
    lookup[used] = ranks
    return lookup.take(codes, mode="wrap"), vocabulary


def merge_codes(
    parts: Sequence[tuple[Places, NDArray[np.str_]]],
) -> tuple[Places, NDArray[np.str_]]:
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
