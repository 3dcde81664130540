"""Arrays, series and tables of other libraries as columns.

The libraries (pandas, polars, PyArrow, PyTorch, JAX, TensorFlow) are recognised by the module of a
value's type and read through its own methods; none of them is imported.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from streammetrics.core.columns.column import (
    REFUSED,
    Column,
    coded,
    refuse,
    refuse_kind,
    reshaped,
    stacked,
    taken,
    type_title,
    with_nulls,
)
from streammetrics.core.columns.distinct import distinct
from streammetrics.core.columns.lists import SMALLER, from_items, kind_of
from streammetrics.core.columns.strings import code_objects, recode
from streammetrics.core.errors import InvalidBatchError, an

if TYPE_CHECKING:
    from streammetrics.core.columns.column import Reader
    from streammetrics.core.types import Bools, Foreign

_ARROW_STRINGS = {"string", "large_string", "string_view"}
_ARROW_NUMBERS = {"bool", "halffloat", "float", "double"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


@lru_cache(maxsize=512)
def foreign_reader(cls: type) -> Callable[[Foreign, str, Reader], Column]:
    """Choose how to read a type, by the modules it and its bases come from."""
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
    if hasattr(cls, "tocsr") and hasattr(cls, "toarray"):  # SciPy's sparse matrices
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
        array = value.numpy(force=True)  # detached, and brought over from an accelerator
    except TypeError:  # bfloat16 and smaller floats, which NumPy does not have
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
    if kind == "Decimal":  # by way of its digits, so that the nearest float is found
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
        # With nulls, PyArrow would turn integers into floats: fill first.
        filled = (
            value
            if kind in {"halffloat", "float", "double"}
            else value.fill_null(False if kind == "bool" else 0)
        )
        values = read(filled.to_numpy(zero_copy_only=False), name)
        return with_nulls(values, _arrow_nulls(value), name)
    if kind == "null":
        return with_nulls(Column(np.zeros(len(value)), None, True), np.ones(len(value)), name)
    if kind.startswith("decimal"):  # by way of its digits, so that the nearest float is found
        return _from_arrow(_undecimal(value, name), name, read)
    if hasattr(value, "combine_chunks"):
        value = value.combine_chunks()
    if kind == "dictionary":
        index = _from_arrow(value.indices, name, read)
        codes = index.values if index.nulls is None else np.where(index.nulls, -1, index.values)
        if str(value.type.value_type) in _ARROW_STRINGS:
            return coded(*recode(codes, value.dictionary.to_pylist()), name)
        return taken(_from_arrow(value.dictionary, name, read), codes, name)
    if hasattr(value, "storage"):  # an extension, whose type may be called anything
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
    """Raise that rows are no lists of one length, with the first that is another one."""
    if None in lengths:
        refuse(name, f"no list in row {lengths.index(None)}, but a null", "leave such rows out")
    row = next(row for row, length in enumerate(lengths) if length != lengths[0])
    found = f"lists of unequal length ({lengths[0]} in row 0, {lengths[row]} in row {row})"
    refuse(name, found, "pass (n,) or (n, d)")


def _from_arrow_lists(value: Foreign, kind: str, name: str, read: Reader) -> Column:
    if kind == "fixed_size_list":  # null rows have entries too, and a slice keeps its parent's
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
