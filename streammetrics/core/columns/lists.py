"""Lists and tuples of Python objects as columns."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ma  # loaded here: a handler of a signal may come while it loads

from streammetrics.core.columns.column import (
    APART,
    BESIDE_UNSIGNED,
    EXACT,
    Column,
    coded,
    concatenate,
    refuse,
    refuse_kind,
    reshaped,
    type_title,
    with_nulls,
)
from streammetrics.core.columns.distinct import same_objects
from streammetrics.core.columns.strings import code_objects
from streammetrics.core.errors import InvalidBatchError, an

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.columns.column import Reader
    from streammetrics.core.types import Array

    Items = Sequence[Any] | NDArray[np.object_]

SMALLER = "pass labels and ids as strings, divide numbers or subtract an offset"


@lru_cache(maxsize=512)
def _kind(cls: type) -> str:
    """Tell bool, int, float, string, Decimal, null (0), row ([), array (a) and all else (?)."""
    root = cls.__module__.partition(".")[0]
    if cls is np.timedelta64:  # to NumPy a kind of integer
        return "?"
    if cls is type(None) or cls is type(ma.masked):
        return "0"
    if root == "pandas" and cls.__name__ in {"NAType", "NaTType"}:
        return "0"
    if issubclass(cls, (bool, np.bool_)):
        return "b"
    if issubclass(cls, (int, np.integer)):
        return "i"
    if issubclass(cls, (float, np.floating)):
        return "f"
    if issubclass(cls, str):
        return "s"
    if issubclass(cls, Decimal):
        return "d"
    if root == "ml_dtypes":
        return "i" if "int" in cls.__name__ else "f"
    if issubclass(cls, (list, tuple)):
        return "["
    if not issubclass(cls, np.generic) and (hasattr(cls, "__array__") or hasattr(cls, "detach")):
        return "a"
    return "?"


def kind_of(item: object) -> str:
    """Tell the `_kind` of an object."""
    cls: Any = type(item)
    return _kind(cls)


def from_items(
    items: Items, name: str, read: Reader, *, width: int = 1, nested: bool = True
) -> Column:
    """Read a sequence of Python objects; `width` of them make a row.

    Objects that are there again and again are read once. Arrays among them, and arrays made of
    them, go through `read`.
    """
    same = same_objects(items)
    if same is not None:
        codes, objects = same
        try:
            return from_items(objects, name, read, nested=nested)[codes]
        except InvalidBatchError:
            pass  # all of them together tell which row is wrong
    items = items.tolist() if isinstance(items, np.ndarray) else items
    return _from_each(items, name, read, width=width, nested=nested)


def _from_each(
    items: Sequence[Any], name: str, read: Reader, *, width: int, nested: bool
) -> Column:
    types: set[Any] = set(map(type, items))
    kinds = {_kind(cls) for cls in types}
    refused = "?" if nested else "?[a"
    if not kinds.isdisjoint(refused):
        for row, item in _found(items, lambda item: kind_of(item) in refused, width):
            found = f"{an(type_title(type(item)))} in row {row}"
            refuse_kind(name, found, "pass numbers, booleans or strings in (n,) or (n, d)", row)
    if "d" in kinds:
        plain = _plain(items, name, width)
        return _from_each(plain, name, read, width=width, nested=nested)
    if kinds & {"[", "a"}:
        return _from_rows(items, kinds, name, read)
    if "s" in kinds:
        if kinds - {"s", "0"}:
            _refuse_mixed(items, name, width)
        return coded(*code_objects(items), name)
    if "0" not in kinds:
        return _owned(read(_numbers(items, kinds, name, width), name))
    empty = {cls for cls in types if _kind(cls) == "0"}
    nulls = np.fromiter(map(empty.__contains__, map(type, items)), np.bool_, len(items))
    filled = list(items)
    for place in np.flatnonzero(nulls).tolist():
        filled[place] = 0
    values = _owned(read(_numbers(filled, kinds - {"0"}, name, width), name))
    return with_nulls(values, nulls, name)


def _found(
    items: Iterable[Any], is_bad: Callable[[Any], bool], width: int
) -> Iterator[tuple[int, object]]:
    """Yield each bad item after its row; `width` items make a row. Callers refuse the first."""
    return ((place // width, item) for place, item in enumerate(items) if is_bad(item))


def _refuse_mixed(items: Sequence[Any], name: str, width: int) -> None:
    """Raise where one item is text and another a number; NaN among texts is a null."""

    def is_text(item: Any) -> bool | None:  # None where it is neither, a null
        kind = kind_of(item)
        return None if kind == "0" or (kind == "f" and math.isnan(item)) else kind == "s"

    first = next((text for text in map(is_text, items) if text is not None), None)
    for row, item in _found(items, lambda item: is_text(item) is (not first), width):
        found = f"strings and numbers ({item!r:.40} in row {row} is unlike those before)"
        refuse(name, found, "convert to one kind", row)


def _numbers(items: Sequence[Any], kinds: set[str], name: str, width: int) -> Array:
    if kinds == {"b"}:
        return np.array(items, np.bool_)
    types = set(map(type, items))
    if len(types) == 1 and issubclass(cls := types.pop(), np.generic):
        return np.array(items, cls)
    try:
        if kinds and "f" not in kinds:
            return np.array(items, np.int64)
        array = np.array(items, np.longdouble if np.longdouble in types else np.float64)
        if "i" not in kinds or not (np.abs(array) >= EXACT).any():
            return array
    except OverflowError:
        if "f" not in kinds:
            return _unsigned(items, name, width)

    def is_far(item: Any) -> bool:
        return kind_of(item) == "i" and not -EXACT <= int(item) <= EXACT

    for row, _ in _found(items, is_far, width):
        refuse(name, f"an integer beside floats, beyond 2**53 in row {row}", SMALLER, row)
    return array


def _unsigned(items: Sequence[Any], name: str, width: int) -> NDArray[np.uint64]:
    """Return integers of which one is beyond 64 signed bits."""
    for row, _ in _found(items, lambda item: not -(2**63) <= int(item) < 2**64, width):
        refuse(name, f"an integer beyond 64 bits in row {row}", SMALLER, row)
    for row, _ in _found(items, lambda item: item < 0, width):
        refuse(name, f"a negative integer {BESIDE_UNSIGNED} in row {row}", APART, row)
    return np.array(items, np.uint64)


def _plain(items: Sequence[object], name: str, width: int) -> list[Any]:
    """Return Decimals as integers where they are such of 64 bits, else as the nearest floats."""

    def is_beyond(item: object) -> bool:  # only the largest are converted, to see whether they are
        return isinstance(item, Decimal) and item.adjusted() > 307 and math.isinf(float(item))

    for row, _ in _found(items, is_beyond, width):
        refuse(name, f"a Decimal beyond float64 in row {row}", "rescale", row)
    return [_number(item) if isinstance(item, Decimal) else item for item in items]


def _number(item: Decimal) -> int | float:
    if item.is_nan():
        return math.nan
    if -(2**63) <= item < 2**64 and item == (whole := int(item)):
        return whole
    return float(item)


def _from_rows(items: Sequence[Any], kinds: set[str], name: str, read: Reader) -> Column:
    if kinds == {"["}:
        width = len(items[0])
        _check_width(map(len, items), width, name)
        flat = list(chain.from_iterable(items))
        column = from_items(flat, name, read, width=width or 1, nested=False)
        return reshaped(column, (len(items), width), name)
    parts = [_one_row(item, row, name, read) for row, item in enumerate(items)]
    each = list(map(_row_ndim, items))
    if set(each) == {0}:
        return concatenate(parts, name)
    if set(each) != {1}:
        row = next((row for row, ndim in enumerate(each) if ndim != each[0]), 0)
        found = f"rows of different or too many dimensions (in row {row})"
        refuse(name, found, "pass (n,) or (n, d)", row)
    _check_width(map(len, parts), len(parts[0]), name)
    return reshaped(concatenate(parts, name), (len(parts), len(parts[0])), name)


def _one_row(item: object, row: int, name: str, read: Reader) -> Column:
    try:
        if kind_of(item) in "[a":
            return read(item, f"{name}, row {row},")
        return from_items([item], name, read)
    except InvalidBatchError as error:  # its row is one of this row
        raise InvalidBatchError(str(error), name, row) from None


def _owned(column: Column) -> Column:
    """Mark a column of an array made here."""
    return Column(column.values, column.nulls, True, column.vocabulary)


def _row_ndim(item: object) -> int:
    kind = kind_of(item)
    return int(getattr(item, "ndim", 1)) if kind == "a" else int(kind == "[")


def _check_width(widths: Iterable[int], width: int, name: str) -> None:
    for row, other in _found(widths, lambda other: other != width, 1):
        found = f"rows of unequal length ({other} in row {row}, {width} in row 0)"
        refuse(name, found, "pass (n,) or (n, d)", row)
