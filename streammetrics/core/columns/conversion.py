"""Conversion of anything array-like to columns: NumPy, lists, and other libraries."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy import ma  # at import time: a signal handler may run during a lazy import

from streammetrics.core.columns.column import (
    APART,
    BESIDE_UNSIGNED,
    EXACT,
    REFUSED,
    Column,
    UnlikeError,
    check,
    code_fixed,
    code_objects,
    coded,
    concatenate,
    distinct,
    recode,
    refuse,
    refuse_kind,
    refuse_text_matrix,
    reshaped,
    same_objects,
    stacked,
    taken,
    type_title,
    with_nulls,
)
from streammetrics.core.errors import InvalidBatchError, an

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from streammetrics.core.columns.column import Reader
    from streammetrics.core.types import Array, ArrayLike, Bools, Foreign

    Items = Sequence[Any] | NDArray[np.object_]


__all__ = [
    "Beside",
    "Column",
    "as_column",
    "concatenate",
]


SMALLER = "pass labels and ids as strings, divide numbers or subtract an offset"


@lru_cache(maxsize=512)
def _kind(cls: type) -> str:
    """Classify a type: b(ool), i(nt), f(loat), s(tr), d(ecimal), 0 (null), [ (row), a(rray), ?."""
    root = cls.__module__.partition(".")[0]
    if cls is np.timedelta64:  # np.timedelta64 is a subclass of np.signedinteger
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
    """Return the `_kind` of an object's type."""
    cls: object = type(item)
    return _kind(cls)


def from_items(
    items: Items, name: str, read: Reader, *, width: int = 1, nested: bool = True
) -> Column:
    """Convert a sequence of Python objects, `width` of which make a row.

    An object that occurs many times is converted once. Nested arrays, and arrays made from the
    objects, go through `read`.
    """
    same = same_objects(items)
    if same is not None:
        codes, objects = same
        try:
            return from_items(objects, name, read, nested=nested)[codes]
        except InvalidBatchError:
            pass  # convert them all, so that the error names the right row
    items = items.tolist() if isinstance(items, np.ndarray) else items
    return _from_each(items, name, read, width=width, nested=nested)


def _from_each(
    items: Sequence[object], name: str, read: Reader, *, width: int, nested: bool
) -> Column:
    types: set[object] = set(map(type, items))
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
    items: Iterable[object], is_bad: Callable[[Any], bool], width: int
) -> Iterator[tuple[int, object]]:
    """Yield (row, item) of each bad item; callers raise at the first."""
    return ((place // width, item) for place, item in enumerate(items) if is_bad(item))


def _refuse_mixed(items: Sequence[object], name: str, width: int) -> None:
    """Raise at the first item that mixes text and numbers; NaN among strings is a null."""

    def is_text(item: Any) -> bool | None:  # None for a null
        kind = kind_of(item)
        return None if kind == "0" or (kind == "f" and math.isnan(item)) else kind == "s"

    first = next((text for text in map(is_text, items) if text is not None), None)
    for row, item in _found(items, lambda item: is_text(item) is (not first), width):
        found = f"strings and numbers ({item!r:.40} in row {row} is unlike those before)"
        refuse(name, found, "convert to one kind", row)


def _numbers(items: Sequence[object], kinds: set[str], name: str, width: int) -> Array:
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


def _unsigned(items: Sequence[object], name: str, width: int) -> NDArray[np.uint64]:
    """Convert integers that exceed int64 to uint64."""
    for row, _ in _found(items, lambda item: not -(2**63) <= int(item) < 2**64, width):
        refuse(name, f"an integer beyond 64 bits in row {row}", SMALLER, row)
    for row, _ in _found(items, lambda item: item < 0, width):
        refuse(name, f"a negative integer {BESIDE_UNSIGNED} in row {row}", APART, row)
    return np.array(items, np.uint64)


def _plain(items: Sequence[object], name: str, width: int) -> list[object]:
    """Replace each Decimal by an integer if it is one of 64 bits, else by the nearest float."""

    def is_beyond(item: object) -> bool:  # the exponent test spares most conversions
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
    except InvalidBatchError as error:  # its row number is relative to this row
        raise InvalidBatchError(str(error), name, row) from None


def _owned(column: Column) -> Column:
    """Mark the column as owning its array, which was created here."""
    return Column(column.values, column.nulls, True, column.vocabulary)


def _row_ndim(item: object) -> int:
    kind = kind_of(item)
    return int(getattr(item, "ndim", 1)) if kind == "a" else int(kind == "[")


def _check_width(widths: Iterable[int], width: int, name: str) -> None:
    for row, other in _found(widths, lambda other: other != width, 1):
        found = f"rows of unequal length ({other} in row {row}, {width} in row 0)"
        refuse(name, found, "pass (n,) or (n, d)", row)


_ARROW_STRINGS = {"string", "large_string", "string_view"}
_ARROW_NUMBERS = {"bool", "halffloat", "float", "double"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


@lru_cache(maxsize=512)
def foreign_reader(cls: type) -> Callable[[Foreign, str, Reader], Column]:
    """Choose the reader of a type from the modules of the type and its bases."""
    roots = {base.__module__.partition(".")[0] for base in cls.__mro__}
    if "torch" in roots and hasattr(cls, "detach"):
        return _from_torch
    if "pandas" in roots and (hasattr(cls, "columns") or hasattr(cls, "dtype")):
        return _from_pandas
    if "polars" in roots and hasattr(cls, "to_numpy"):
        return _from_polars
    if "pyarrow" in roots and (hasattr(cls, "columns") or hasattr(cls, "null_count")):
        return _from_arrow
    if "pyarrow" in roots and hasattr(cls, "as_py"):
        return lambda value, name, read: from_items([value.as_py()], name, read)
    if hasattr(cls, "tocsr") and hasattr(cls, "toarray"):  # SciPy sparse matrices
        return lambda value, name, read: read(value.toarray(), name)
    if hasattr(cls, "__array__") or hasattr(cls, "__array_interface__") or cls is memoryview:
        return lambda value, name, read: read(np.asarray(value), name)
    if hasattr(cls, "__dlpack__"):
        return lambda value, name, read: read(np.from_dlpack(value), name)
    if issubclass(cls, Sequence):
        return lambda value, name, read: from_items(list(value), name, read)
    return _from_unknown


def _from_unknown(value: object, name: str, _read: Reader) -> Column:
    raise InvalidBatchError(f"{name} is {an(type_title(type(value)))}; pass a list or an array")


def _from_torch(value: Foreign, name: str, read: Reader) -> Column:
    if value.is_complex():
        refuse_kind(name, *REFUSED["c"])
    try:
        array = value.numpy(force=True)  # detached, and copied from the accelerator
    except TypeError:  # bfloat16 and smaller floats, which NumPy lacks
        array = value.float().numpy(force=True)
    return read(array, name)


def _from_pandas(value: Foreign, name: str, read: Reader) -> Column:
    if hasattr(value, "columns"):
        dtypes = set(value.dtypes)
        if len(dtypes) == 1 and isinstance(dtypes.pop(), np.dtype):
            return read(value.to_numpy(), name)
        titles = enumerate(value.columns)
        parts = [_from_pandas(value.iloc[:, i], f"{name}[{title!r}]", read) for i, title in titles]
        return stacked(parts, name)
    dtype, array = value.dtype, value.array if hasattr(value, "array") else value
    if isinstance(dtype, np.dtype):
        return read(value.to_numpy(), name)
    if hasattr(dtype, "categories"):
        return taken(_from_pandas(dtype.categories, name, read), np.asarray(array.codes), name)
    if hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", "").startswith("pyarrow"):
        return _from_arrow(array.__arrow_array__(), name, read)
    if hasattr(dtype, "numpy_dtype") and kind_of(dtype.na_value) == "0":
        plain = dtype.numpy_dtype
        values = array.to_numpy(dtype=plain, na_value=plain.type(0))
        return with_nulls(read(values, name), array.isna(), name)
    return read(np.asarray(array), name)


def _from_polars(value: Foreign, name: str, read: Reader) -> Column:
    if hasattr(value, "get_columns"):
        columns = value.get_columns()
        return stacked([_from_polars(s, f"{name}[{s.name!r}]", read) for s in columns], name)
    kind = value.dtype.base_type().__name__
    if kind in {"String", "Categorical", "Enum"}:
        return _from_polars_strings(value, kind, name)
    if kind == "Null":
        return with_nulls(Column(np.zeros(len(value)), None, True), np.ones(len(value)), name)
    if kind == "List":
        lengths = value.list.len()
        if lengths.null_count() or lengths.n_unique() > 1:
            _refuse_lengths(lengths.to_list(), name)
        if not len(value):
            return read(np.zeros((0, 0)), name)
        return _from_polars(value.list.to_array(lengths[0]), name, read)
    if kind == "Array":
        return stacked(
            [_from_polars(value.arr.get(i), name, read) for i in range(value.dtype.size)], name
        )
    if kind == "Object":
        return from_items(value.to_list(), name, read, nested=False)
    if kind == "Decimal":  # through its digits, to get the nearest float
        types = sys.modules["polars"]
        whole = not value.dtype.scale
        numbers = value.cast(types.Int64) if whole else value.cast(types.String).cast(types.Float64)
        return _from_polars(numbers, name, read)
    if kind != "Boolean" and not (value.dtype.is_numeric() and not kind.endswith("128")):
        refuse(name, f"{value.dtype} values", "cast them to Float64, Int64 or String")
    if not value.null_count():
        return read(value.to_numpy(), name)
    filled = value.fill_null(False if kind == "Boolean" else 0).cast(value.dtype)
    return with_nulls(read(filled.to_numpy(), name), value.is_null().to_numpy(), name)


def _from_polars_strings(value: Foreign, kind: str, name: str) -> Column:
    present = value.drop_nulls()
    coded_by = present.cast(sys.modules["polars"].Categorical) if kind == "String" else present
    keys = coded_by.to_physical().to_numpy()
    places, rows = distinct(keys)
    labels = present.gather(rows).to_list()
    if not value.null_count():
        return coded(*recode(places, labels), name)
    codes = np.full(len(value), -1, np.intp)
    codes[value.is_not_null().to_numpy()] = places
    return coded(*recode(codes, labels), name)


def _from_arrow(value: Foreign, name: str, read: Reader) -> Column:
    if hasattr(value, "columns"):
        titled = zip(value.columns, value.schema.names, strict=True)
        return stacked([_from_arrow(c, f"{name}[{title!r}]", read) for c, title in titled], name)
    kind = re.split(r"\W", str(value.type), maxsplit=1)[0]
    if kind in _ARROW_STRINGS:
        if not len(value):
            return coded(*code_objects([]), name)
        value, kind = value.dictionary_encode(), "dictionary"
    if kind in _ARROW_NUMBERS:
        if not value.null_count:
            return read(value.to_numpy(zero_copy_only=False), name)
        # PyArrow converts integers with nulls to floats: fill the nulls first.
        filled = (
            value
            if kind in {"halffloat", "float", "double"}
            else value.fill_null(False if kind == "bool" else 0)
        )
        values = read(filled.to_numpy(zero_copy_only=False), name)
        return with_nulls(values, _arrow_nulls(value), name)
    if kind == "null":
        return with_nulls(Column(np.zeros(len(value)), None, True), np.ones(len(value)), name)
    if kind.startswith("decimal"):  # through its digits, to get the nearest float
        return _from_arrow(_undecimal(value, name), name, read)
    if hasattr(value, "combine_chunks"):
        value = value.combine_chunks()
    if kind == "dictionary":
        index = _from_arrow(value.indices, name, read)
        codes = index.values if index.nulls is None else np.where(index.nulls, -1, index.values)
        if str(value.type.value_type) in _ARROW_STRINGS:
            return coded(*recode(codes, value.dictionary.to_pylist()), name)
        return taken(_from_arrow(value.dictionary, name, read), codes, name)
    if hasattr(value, "storage"):  # an extension type, which can have any name
        return _from_arrow(value.storage, name, read)
    if kind in {"list", "large_list", "fixed_size_list"}:
        return _from_arrow_lists(value, kind, name, read)
    return refuse(name, f"{value.type} values", "cast them to float64, int64 or string")


def _undecimal(value: Foreign, name: str) -> Foreign:
    if value.type.scale > 0:
        return value.cast("string").cast("float64")
    try:
        return value.cast("int64")
    except ValueError:
        return refuse(name, "integers beyond 64 bits", SMALLER)


def _refuse_lengths(lengths: Sequence[int | None], name: str) -> NoReturn:
    """Raise an error naming the first null list, or the first of a different length."""
    if None in lengths:
        refuse(name, f"no list in row {lengths.index(None)}, but a null", "leave such rows out")
    row = next(row for row, length in enumerate(lengths) if length != lengths[0])
    found = f"lists of unequal length ({lengths[0]} in row 0, {lengths[row]} in row {row})"
    refuse(name, found, "pass (n,) or (n, d)")


def _from_arrow_lists(value: Foreign, kind: str, name: str, read: Reader) -> Column:
    if kind == "fixed_size_list":  # `values` includes entries of null rows and ignores slicing
        width = value.type.list_size
        flat = value.values.slice(value.offset * width, len(value) * width)
    else:
        lengths = value.value_lengths()
        if value.null_count or len(lengths.unique()) > 1:
            _refuse_lengths(lengths.to_pylist(), name)
        width = lengths[0].as_py() if len(value) else 0
        flat = value.flatten()
    matrix = reshaped(_from_arrow(flat, name, read), (len(value), width), name)
    return with_nulls(matrix, np.repeat(_arrow_nulls(value)[:, None], width, axis=1), name)


def _arrow_nulls(value: Foreign) -> Bools:
    return np.asarray(value.is_null().to_numpy(zero_copy_only=False))


def encoded_texts(value: Foreign) -> tuple[list[object], Array | None] | None:
    """Return labels and the label of each row, or the texts of all rows and ``None``.

    Labels may repeat, be unused, and be no text. Returns ``None`` for a column with nulls, and for
    one that is neither a list or an array of objects nor encoded by its library.
    """
    if getattr(value, "dtype", None) == np.dtype(object):
        return (value.tolist(), None) if value.ndim == 1 else None
    array: Foreign = getattr(value, "array", value)  # of a series
    if hasattr(getattr(array, "dtype", None), "categories"):
        codes = np.asarray(array.codes)
        return None if codes.min(initial=0) < 0 else (array.dtype.categories.tolist(), codes)
    if hasattr(array, "dtype") and hasattr(array, "__arrow_array__"):
        array = array.__arrow_array__()
    kind = getattr(array, "type", None)
    if kind is not None and hasattr(array, "dictionary_encode"):
        if str(kind) in _ARROW_STRINGS:
            array = array.dictionary_encode()
        if array.null_count or not hasattr(array.type, "value_type"):
            return None
        array = array.combine_chunks() if hasattr(array, "combine_chunks") else array
        if not hasattr(array, "indices"):
            return None
        return array.dictionary.to_pylist(), array.indices.to_numpy()
    return (array, None) if isinstance(array, list) else None


_READY = frozenset("?bBhHiIlqefd")  # dtype characters taken unchanged; not "L", unsigned long


@dataclass(frozen=True)
class Beside:
    """Named columns that form one matrix."""

    columns: Mapping[str, ArrayLike]


def as_column(
    value: object, name: str, *, max_ndim: int = 2, advice: str = "", copied: int = 0
) -> Column:
    """Convert anything array-like to a column; `name` is its name in error messages.

    A scalar becomes one row, and a `Column` is returned unchanged. ``uint64`` becomes ``int64`` if
    it fits, because mixing the two promotes to floats. ``longdouble`` is rounded to ``float64``;
    ``bfloat16`` and smaller floats become ``float32``. A Decimal becomes an integer if it is one of
    64 bits, else the nearest ``float64``. `advice` replaces the advice in errors about unsupported
    types. Arrays of at most `copied` rows are copied.

    Raises:
        InvalidBatchError: for complex numbers, dates, bytes and other objects, mixed or ragged
            lists, more than `max_ndim` dimensions, integers beyond 64 bits, integers beyond int64
            beside negative ones, and integers beyond 2**53 beside floats.

    >>> as_column([3, None, 4], "y_true")
    Column(values=array([3, 0, 4]), nulls=array([False,  True, False]), owned=True, vocabulary=None)
    >>> as_column(["cat", "ant", "cat"], "y_true").vocabulary.tolist()
    ['ant', 'cat']

    """
    if (
        type(value) is np.ndarray
        and (dtype := value.dtype).char in _READY
        and dtype.isnative
        and value.flags.carray
        and 1 <= value.ndim <= max_ndim
    ):
        return Column(value.copy(), None, True) if len(value) <= copied else Column(value)
    try:
        column = value if isinstance(value, Column) else _read(value, name)
    except UnlikeError as error:
        text = f"{error.found}; {advice or error.advice}"
        raise InvalidBatchError(text, error.column, error.row) from None
    if column.values.ndim > max_ndim:
        raise InvalidBatchError(f"{name} has shape {column.values.shape}; pass one column, as (n,)")
    return column


def _read(value: object, name: str) -> Column:
    if isinstance(value, np.ndarray):
        return _from_numpy(value, name)
    if isinstance(value, Beside):
        columns = [_read(part, f"{name}[{title!r}]") for title, part in value.columns.items()]
        if len(set(map(len, columns))) > 1:
            refuse(name, "columns of unequal length", "pass rows of one width")
        return stacked(columns, name)
    if isinstance(value, (bool, int, float, str, Decimal, np.generic)):
        return from_items([value], name, _read)
    if isinstance(value, (list, tuple)):
        return from_items(value, name, _read)
    if value is None:
        raise InvalidBatchError(f"{name} is None; pass its values", name)
    if isinstance(value, (bytes, bytearray, complex)):
        refuse(name, f"{value!r:.40}", "pass an array")
    cls: object = type(value)
    try:
        return foreign_reader(cls)(value, name, _read)
    except (InvalidBatchError, MemoryError):
        raise
    except Exception as error:  # any error of another library becomes an InvalidBatchError
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InvalidBatchError(
            f"{name} is {an(type_title(type(value)))} that cannot be read as an array ({reason}); "
            "convert it to NumPy"
        ) from error


def _from_numpy(value: Array, name: str) -> Column:
    if isinstance(value, ma.MaskedArray) and value.dtype.names is None:
        # Masked numbers may be out of range: replace them before they are checked.
        data = value.filled(0) if value.dtype.kind in "biuf" else value.data
        column = _from_numpy(data, name)
        return with_nulls(column, ma.getmaskarray(value).reshape(column.values.shape), name)
    array = np.asarray(value)
    if (
        array.dtype.char in _READY
        and array.dtype.isnative
        and (flags := array.flags).c_contiguous
        and flags.aligned
        and 1 <= array.ndim <= 2
    ):
        return Column(array)
    dtype = array.dtype
    if dtype.kind == "O":
        width = math.prod(array.shape[1:]) or 1
        # pandas stores lists in an object column, and reads lists of Parquet as arrays.
        column = from_items(array.ravel(), name, _read, width=width, nested=array.ndim == 1)
        return reshaped(column, array.shape, name) if array.ndim > 1 else column
    if dtype.kind in "UT":
        if array.ndim > 1 and array.shape[1:] != (1,):
            refuse_text_matrix(name)
        if not array.size:
            return coded(*code_objects([]), name)
        if dtype.kind == "T":
            return from_items(array.reshape(-1).tolist(), name, _read)
        fixed = np.ascontiguousarray(array.reshape(-1), dtype.newbyteorder("="))
        return coded(*code_fixed(fixed), name)
    if dtype.type.__module__.partition(".")[0] == "ml_dtypes":
        wide = np.int8 if "int" in dtype.name else np.float32
        return Column(np.atleast_1d(array.astype(wide)), None, True)
    if dtype.kind in REFUSED:
        refuse_kind(name, *REFUSED[dtype.kind])
    ready = _ready(array, name)
    return Column(np.atleast_1d(ready), None, not np.may_share_memory(ready, array))


def _ready(array: Array, name: str) -> Array:
    dtype = array.dtype
    if dtype.kind == "f" and dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            rounded = array.astype(np.float64, order="C")
        check(~(np.isinf(rounded) & np.isfinite(array)), name, "is beyond float64", "rescale")
        return rounded
    array = np.require(array, dtype.newbyteorder("="), ["C", "A"])
    if dtype.kind == "u" and dtype.itemsize == 8:
        signed = array.view(np.int64)
        return signed if signed.min(initial=0) >= 0 else array
    return array
