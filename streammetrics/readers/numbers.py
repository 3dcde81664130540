"""Numbers in text that float64 cannot represent: read as exact integers, or rejected."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from streammetrics.core.columns.column import EXACT
from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Foreign, Places

_INTEGER = re.compile(r"[+-]?[0-9]+")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_INTEGERS = (pa.int64(), pa.uint64())
BEYOND = (
    "which is beyond float64: divide the column, or leave the field empty, which is a missing value"
)


def long_places(column: Foreign) -> Places:
    """Return the indices of float64 values at which integers may be rounded or numbers infinite."""
    values = np.frombuffer(column.buffers()[1], np.float64)[column.offset :][: len(column)]
    if not len(values) or (values.max() < EXACT and values.min() > -EXACT):
        return np.empty(0, np.intp)
    sizes = np.abs(values)  # max() above returns nan if any value is nan
    return np.flatnonzero(sizes >= EXACT)


def exact(floats: Foreign, texts: Foreign, name: str, row: int) -> Foreign:
    """Return numbers as float64 if it represents every integer exactly, otherwise as integers.

    Args:
        floats: The numbers of the texts, each as the nearest float64.
        texts: The texts.
        name: The column's name in messages.
        row: The number of the first row, for messages.

    Raises:
        InvalidBatchError: A finite number is beyond float64, or an integer that float64 cannot
            represent occurs beside fractions or needs more than 64 bits.
    """
    if not len(long_places(floats)):
        return floats
    for place in overflows(floats, texts):
        raise InvalidBatchError(
            f"{name} holds {texts[place].as_py():.40} in row {row + place}, {BEYOND}",
            name,
            row + place,
        )
    for kind in _INTEGERS:
        with contextlib.suppress(pa.ArrowInvalid):
            return texts.cast(kind)
    lost = lost_integers(floats, texts)
    if not lost:
        return floats
    for kind in _INTEGERS:
        with contextlib.suppress(pa.ArrowInvalid, OverflowError):
            values = np.array(floats.cast(kind).fill_null(0))
            values[list(lost)] = np.array(list(lost.values()), values.dtype)
            return pa.array(values, mask=np.array(floats.is_null()))
    place, whole = next(iter(lost.items()))
    beside = ", beside numbers that are not all integers of 64 bits"
    raise InvalidBatchError(
        f"{name} holds {whole} in row {row + place}, which float64 cannot hold"
        f"{beside if -(2**63) <= whole < 2**64 else ''}: divide it, or subtract an offset",
        name,
        row + place,
    )


def trimmed(texts: Foreign) -> Foreign:
    """Strip blanks and tabs from texts."""
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, and rarely needed

    return pc.utf8_trim(texts, " \t")


def is_number(text: Any) -> bool:
    """Return whether a text is a number or missing."""
    with contextlib.suppress(pa.ArrowInvalid):
        text.cast(pa.float64())
        return True
    return False


def alike(columns: Sequence[Foreign]) -> list[Foreign]:
    """Cast all columns to integers if one is of integers, because they may form a matrix."""
    if any(pa.types.is_integer(column.type) for column in columns):
        return [_as_integers(column) for column in columns]
    return list(columns)


def _as_integers(column: Foreign) -> object:
    with contextlib.suppress(pa.ArrowInvalid):
        return column.cast(pa.int64())
    return column


def overflows(floats: Foreign, texts: Foreign) -> list[int]:
    """Return the indices of finite numbers in text whose floats are infinite."""
    places = [place for place in long_places(floats).tolist() if texts[place].is_valid]
    infinite = [place for place in places if np.isinf(floats[place].as_py())]
    return [place for place in infinite if not is_infinity(texts[place].as_py())]


def is_infinity(text: str) -> bool:
    """Return whether a text spells infinity."""
    return _INFINITE.fullmatch(text.strip()) is not None


def lost_integers(floats: Foreign, texts: Foreign) -> dict[int, int]:
    """Return the integers in text that float64 rounds, by index."""
    spelled = {place: texts[place].as_py() for place in long_places(floats).tolist()}
    wholes = {place: int(text) for place, text in spelled.items() if _INTEGER.fullmatch(text or "")}
    return {place: whole for place, whole in wholes.items() if whole != int(float(whole))}
