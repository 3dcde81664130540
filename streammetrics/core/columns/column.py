"""Column: the rows of one input as NumPy holds them, and what can be done with columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from streammetrics.core.columns.strings import merge_codes, recode
from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Bools, Foreign, Places

    Mask = Bools
    Reader = Callable[[Foreign, str], "Column"]  # what `as_column` does, any number of dimensions

EXACT = 2**53  # float64 holds every integer up to here
BESIDE_UNSIGNED = "beside integers of 2**63 or more"
APART = "pass them in batches of their own"
REFUSED = {
    "c": ("complex numbers", "pass real numbers"),
    "M": ("dates", "pass numbers"),
    "m": ("time differences", "pass numbers"),
    "S": ("bytes", "decode them to str"),
    "V": ("structured or raw records", "pass one field"),
}


class UnlikeError(InvalidBatchError):
    """Values are of a kind that no column has: `as_column` says what to pass instead."""

    def __init__(
        self, found: str, advice: str, column: str | None = None, row: int | None = None
    ) -> None:
        super().__init__(f"{found}; {advice}", column, row)
        self.found, self.advice = found, advice


@dataclass(slots=True)  # never changed, but a frozen one is three times as slow to make
class Column:
    """One column of a batch: ``(n,)``, or ``(n, d)`` for a matrix.

    Attributes:
        values: booleans, integers or floats, C-contiguous, aligned, in native byte order; uint64
            only where a value is beyond int64; with a `vocabulary`, integer codes into it. 0 (code
            -1) where null.
        nulls: True where the source says missing, of the shape of `values`; ``None`` where
            nothing is. NaN is a value, not a null, except among strings.
        owned: whether `values` is a new array that nobody else can write to.
        vocabulary: of strings, the distinct ones that occur, sorted by code point.

    """

    values: Array
    nulls: Bools | None = None
    owned: bool = False
    vocabulary: NDArray[np.str_] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice | Array) -> Column:
        """Return some of the rows; the vocabulary stays whole."""
        nulls = None if self.nulls is None else self.nulls[rows]
        if nulls is not None and not nulls.any():
            nulls = None
        owned = self.owned or not isinstance(rows, slice)
        return Column(self.values[rows], nulls, owned, self.vocabulary)

    def copy(self) -> Column:
        """Return the column with `values` of its own; itself if they are already."""
        if self.owned:
            return self
        return replace(self, values=self.values.copy(), owned=True)


def concatenate(columns: Sequence[Column], name: str = "the column") -> Column:
    """Return the rows of one or more columns one after the other, vocabularies merged.

    Empty columns and those that are all null go with any kind. Raises `InvalidBatchError` for
    strings beside numbers, unequal widths, and integers that no type has beside the others.
    """
    columns = [column for column in columns if len(column)] or columns[:1]
    if len(columns) == 1:
        return columns[0]
    if len({column.values.shape[1:] for column in columns}) > 1:
        shapes = " and ".join(sorted({str(column.values.shape) for column in columns}))
        refuse(name, f"batches of shapes {shapes}", "pass rows of one width")
    nulls = None
    if any(column.nulls is not None for column in columns):
        nulls = np.concatenate([null_mask(column) for column in columns])
    with_values = _with_values(columns)
    if any(column.vocabulary is not None for column in with_values):
        if any(column.vocabulary is None for column in with_values):
            refuse(name, "strings and numbers", "pass one kind")
        nothing = np.empty(0, "U1")
        codes, vocabulary = merge_codes(
            [
                (np.full(len(column), -1, np.intp), nothing)
                if column.vocabulary is None
                else (column.values, column.vocabulary)
                for column in columns
            ]
        )
        return Column(codes, nulls, True, vocabulary)
    dtype = _common_dtype(with_values, name)
    return Column(np.concatenate([c.values.astype(dtype) for c in columns]), nulls, True)


def coded(codes: Places, vocabulary: list[str], name: str) -> Column:
    """Make a column of codes; nulls are the codes of -1."""
    texts = np.array(vocabulary) if vocabulary else np.empty(0, "U1")
    if texts.tolist() != vocabulary:
        refuse(name, "strings that end in NUL characters", "strip them")
    nulls = codes < 0
    return Column(codes, nulls if nulls.any() else None, True, texts)


def taken(labels: Column, codes: Array, name: str) -> Column:
    """Return the labels that codes point to; -1 is null. Dictionaries and categories."""
    if labels.vocabulary is not None:
        texts = labels.vocabulary.tolist()
        places = np.append(labels.values, -1)
        return coded(*recode(places[codes], texts), name)
    missing = codes < 0
    column = Column(np.append(labels.values, labels.values.dtype.type(0))[codes], None, True)
    return with_nulls(column, missing | np.append(null_mask(labels), False)[codes], name)


def with_nulls(column: Column, nulls: Array, name: str) -> Column:
    """Mark nulls; the values that a source keeps beneath them are overwritten."""
    if not nulls.any():
        return column
    nulls = np.array(nulls, np.bool_)
    if column.nulls is not None:
        nulls |= column.nulls
    if column.vocabulary is not None:  # strings only a null row holds do not occur
        codes = np.where(nulls, -1, column.values)
        return coded(*recode(codes, column.vocabulary.tolist()), name)
    values = column.values if column.owned else column.values.copy()
    values[nulls] = 0
    return Column(values, nulls, True)


def null_mask(column: Column) -> Bools:
    """Return the nulls as a mask, also where there are none."""
    return np.zeros(column.values.shape, np.bool_) if column.nulls is None else column.nulls


def either(one: Mask | None, other: Mask | None) -> Mask | None:
    """Return where one of two masks is set; ``None`` is one that is nowhere."""
    if one is None or other is None:
        return other if one is None else one
    return one | other


def stacked(columns: Sequence[Column], name: str) -> Column:
    """Return one-dimensional columns side by side, as a matrix."""
    if not columns:
        refuse(name, "no columns", "pass (n,) or (n, d)")
    if len(columns) == 1 and columns[0].vocabulary is not None:
        return columns[0]
    if any(column.vocabulary is not None for column in columns):
        refuse_text_matrix(name)
    if any(column.values.ndim > 1 for column in columns):
        refuse(name, "more than two dimensions", "pass (n,) or (n, d)")
    dtype = _common_dtype(_with_values(columns), name)
    values = np.empty((len(columns[0]), len(columns)), dtype)
    for place, column in enumerate(columns):
        values[:, place] = column.values
    nulls = None
    if any(column.nulls is not None for column in columns):
        nulls = np.stack([null_mask(column) for column in columns], axis=1)
    return Column(values, nulls, True)


def reshaped(column: Column, shape: tuple[int, ...], name: str) -> Column:
    """Return a flat column of a matrix's entries as that matrix."""
    if column.vocabulary is not None and shape[1:] == (1,):
        return column
    if column.vocabulary is not None:
        refuse_text_matrix(name)
    if column.values.ndim > 1:
        refuse(name, "more than two dimensions", "pass (n,) or (n, d)")
    nulls = None if column.nulls is None else column.nulls.reshape(shape)
    return Column(column.values.reshape(shape), nulls, column.owned)


def _with_values(columns: Sequence[Column]) -> Sequence[Column]:
    """Leave out the columns that are all null: any kind of values fits them."""
    some = [column for column in columns if column.nulls is None or not column.nulls.all()]
    return some or columns


def _common_dtype(columns: Sequence[Column], name: str) -> np.dtype[Any]:
    dtypes = {column.values.dtype for column in columns}
    dtype: np.dtype[Any] = np.result_type(*dtypes)
    if dtype.kind == "f" and all(other.kind != "f" for other in dtypes):  # signed beside uint64
        for column in columns:
            check(column.values >= 0, name, f"is negative {BESIDE_UNSIGNED}", APART)
        return np.dtype(np.uint64)
    if dtype.kind == "f" and len(dtypes) > 1:
        for column in columns:
            values = column.values
            if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
                is_exact = (values <= EXACT) & (values >= -EXACT)
                check(is_exact, name, "has floats beside integers beyond 2**53", "pass one kind")
    return dtype


def check(good: Array, name: str, what: str, advice: str) -> None:
    """Raise unless all values are good, naming the count and the first that is not."""
    if not good.all():
        wrong = np.atleast_1d(~good)
        first = np.argwhere(wrong)[0].tolist()
        row = f"row {first[0]}" + (f", column {first[1]}" if len(first) > 1 else "")
        count = int(np.count_nonzero(wrong))
        raise InvalidBatchError(
            f"{name} {what} in {count} value{'s' * (count != 1)}, first in {row}; {advice}"
        )


def refuse(name: str, found: str, advice: str, row: int | None = None) -> NoReturn:
    """Raise that a column holds what it cannot, from which row on if it is not the whole column."""
    raise InvalidBatchError(f"{name} holds {found}; {advice}", name, row)


def refuse_text_matrix(name: str) -> NoReturn:
    """Raise that a column is a matrix of strings."""
    advice = (
        "pass a matrix of integer codes, as np.unique(x, return_inverse=True)[1].reshape(x.shape), "
        "or one column of strings, as (n,)"
    )
    refuse(name, "a matrix of strings", advice)


def refuse_kind(name: str, found: str, advice: str, row: int | None = None) -> NoReturn:
    """Raise that a column holds values of a kind that none has."""
    raise UnlikeError(f"{name} holds {found}", advice, name, row)


def type_title(cls: type) -> str:
    """Return a type's name as errors write it."""
    module = "" if cls.__module__ == "builtins" else f"{cls.__module__}."
    return module + cls.__qualname__
