"""Anything array-like becomes a NumPy column here, and nowhere else.

Lists are read by :mod:`streammetrics.core.columns.lists`, the types of other libraries by
:mod:`streammetrics.core.columns.libraries`, NumPy's own here.

Values are taken as they are: integers keep their width and floats theirs, nothing is widened
that need not be, and nothing is copied where the memory can be shared. Whatever would change a
value silently (text among numbers, integers rounded by floats beside them) raises.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ma  # loaded here: a handler of a signal may come while it loads

from streammetrics.core.columns.column import (
    REFUSED,
    Column,
    UnlikeError,
    check,
    coded,
    concatenate,
    refuse,
    refuse_kind,
    refuse_text_matrix,
    reshaped,
    stacked,
    type_title,
    with_nulls,
)
from streammetrics.core.columns.libraries import foreign_reader
from streammetrics.core.columns.lists import from_items
from streammetrics.core.columns.strings import code_fixed, code_objects
from streammetrics.core.errors import InvalidBatchError, an

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streammetrics.core.types import Array, ArrayLike

__all__ = ["Beside", "Column", "as_column", "concatenate"]

_READY = frozenset("?bBhHiIlqefd")  # dtype characters taken as they are; unsigned long is not


@dataclass(frozen=True)
class Beside:
    """Columns by name that make one matrix."""

    columns: Mapping[str, ArrayLike]


def as_column(
    value: object, name: str, *, max_ndim: int = 2, advice: str = "", copied: int = 0
) -> Column:
    """Return anything array-like as a column; `name` is what errors call it.

    A scalar is one row, a column stays one. ``uint64`` becomes ``int64`` where that holds it
    (together they would promote to floats), ``longdouble`` is rounded to ``float64``, ``bfloat16``
    and smaller become ``float32``, a Decimal an integer where it is one of 64 bits, else the
    nearest ``float64``. `advice` is what to pass in the place of values that no column has. Arrays
    of up to `copied` rows are copied.

    Raises:
        InvalidBatchError: for complex numbers, dates, bytes and other objects, mixed or ragged
            lists, more than `max_ndim` dimensions, integers beyond 64 bits, those beyond 64 signed
            bits beside negative ones, and those beyond 2**53 beside floats.

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
    if value is None or isinstance(value, (bytes, bytearray, complex)):
        refuse(name, f"{value!r:.40}", "pass an array")
    cls: Any = type(value)
    try:
        return foreign_reader(cls)(value, name, _read)
    except (InvalidBatchError, MemoryError):
        raise
    except Exception as error:  # whatever another library raises, the caller gets one type
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InvalidBatchError(
            f"{name} is {an(type_title(type(value)))} that cannot be read as an array ({reason}); "
            "convert it to NumPy"
        ) from error


def _from_numpy(value: Array, name: str) -> Column:
    if isinstance(value, ma.MaskedArray) and value.dtype.names is None:
        # Numbers beneath the mask may be out of range: they are never looked at.
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
        # pandas has lists in a column as objects, of Parquet as arrays
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
