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

from streammetrics.core import tuning
from streammetrics.core.columns.distinct import MULTIPLIER, looked_up, numbered

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
    """Codes of a contiguous one-dimensional ``U`` array in native byte order.

    Rows are hashed to 64 bits, grouped by hash, and every row is compared with its group's
    first; should two strings share a hash, the slower dictionary takes over. Exact in any case.
    """
    width = array.dtype.itemsize // 4
    if not width:
        return code_objects(array.tolist())
    word = np.uint32 if width % 2 else np.uint64
    words: Array = array.view(word).reshape(len(array), -1)
    hashes = _hashes(words)
    codes, first = numbered(hashes)
    firsts = words[first]
    for start in range(0, len(array), tuning.STRING_ROWS):
        block = slice(start, start + tuning.STRING_ROWS)
        if not np.array_equal(firsts.take(codes[block], axis=0), words[block]):
            return code_objects(array.tolist())
    ranks, vocabulary = code_objects(array[first].tolist())
    return looked_up(ranks, codes), vocabulary


def _hashes(words: Array) -> NDArray[np.uint64]:
    hashes = np.zeros(len(words), np.uint64)
    for start in range(0, len(words), tuning.STRING_ROWS):
        block = hashes[start : start + tuning.STRING_ROWS]
        for column in words[start : start + tuning.STRING_ROWS].T:
            block += column
            block *= np.uint64(MULTIPLIER)
    return hashes


def recode(codes: Array, labels: Sequence[object]) -> Coded:
    """Codes into any list of labels, made canonical.

    ``labels`` may be unsorted, repeat itself, hold nulls and hold labels that no row has; a code
    of -1 is a null row.
    """
    occurs = np.zeros(len(labels) + 1, np.bool_)
    occurs[-1] = True  # the place of -1
    for start in range(0, len(codes), tuning.BATCH_ROWS):
        occurs[codes[start : start + tuning.BATCH_ROWS]] = True
        if occurs.all():  # mostly after some rows
            break
    used = np.flatnonzero(occurs[:-1])
    ranks, vocabulary = code_objects([labels[place] for place in used.tolist()])
    lookup = np.full(len(labels) + 1, -1, np.intp)
    lookup[used] = ranks
    return looked_up(lookup, codes), vocabulary


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
