"""The column type, and operations on columns: nulls, distinct values, string codes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from streammetrics.core.counting import counts_of, is_dense
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.kernels import kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Bools, Foreign, Places

    Coded = tuple[Places, list[str]]
    Mask = Bools
    Reader = Callable[[Foreign, str], "Column"]  # `as_column`, without a limit on dimensions


_FIRST = 1 << 8  # initial capacity, in keys
_TRIED = 1 << 14  # objects sampled to estimate how many are distinct


def distinct(keys: Array) -> tuple[Places, Places]:
    """Number rows by their value, in order of first appearance; return also the first row of each.

    >>> codes, rows = distinct(np.array([7, 5, 7]))
    >>> codes.tolist(), rows.tolist()
    ([0, 1, 0], [0, 1])
    """
    keys = np.ascontiguousarray(keys)
    codes, rows = np.empty(len(keys), np.int64), np.empty(_FIRST, np.int64)
    if not len(keys):
        return codes, codes
    width = keys.nbytes // len(keys)
    stored, slots = np.empty(_FIRST * width, np.uint8), np.zeros(2 * _FIRST, np.uint32)
    done, used = kernels.factorize(slots, stored, width, 0, keys, codes, True, rows)
    while done < len(keys):
        stored, rows = np.resize(stored, 4 * stored.size), np.resize(rows, 4 * rows.size)
        slots = np.zeros(4 * slots.size, np.uint32)
        kernels.table_put(slots, stored, width, 0, used)
        more, now = kernels.factorize(
            slots, stored, width, used, keys[done:], codes[done:], True, rows
        )
        rows[used:now] += done
        done, used = done + more, now
    return codes, rows[:used]


def are_more(keys: Array, most: int) -> bool:
    """Whether there are more than `most` distinct keys."""
    stored, codes = np.empty(most, keys.dtype), np.empty(len(keys), np.int64)
    slots = np.zeros(1 << (2 * most - 1).bit_length(), np.uint32)
    done, _ = kernels.factorize(slots, stored, keys.itemsize, 0, keys, codes, True, None)
    return bool(done < len(keys))


def unique(keys: Array) -> tuple[Array, Places]:
    """Return the sorted distinct keys, and the index of each row's key among them."""
    codes, rows = distinct(keys)
    found = keys[rows]
    order = np.argsort(found)
    places = np.empty(order.size, np.int64)
    places[order] = np.arange(order.size)
    return found[order], places[codes]


def numbered(codes: Array, size: int) -> tuple[Places, Places]:
    """Renumber codes below `size` without gaps; return also the original codes, ascending.

    >>> places, found = numbered(np.array([7, 5, 7]), 10)
    >>> places.tolist(), found.tolist()
    ([1, 0, 1], [5, 7])
    """
    if not is_dense(size, codes.size):
        found, places = unique(codes)
        return places, found
    found = np.flatnonzero(counts_of((size,), codes))
    if found.size == size:
        return codes, found
    lookup = np.empty(size, np.intp)
    lookup[found] = np.arange(found.size)
    return lookup[codes], found


class _ObjectPlaces:
    """The addresses of an object array's items, exposed as an integer array."""

    def __init__(self, array: NDArray[np.object_]) -> None:
        shape = {key: array.__array_interface__[key] for key in ("shape", "strides", "data")}
        self.__array_interface__ = shape | {"typestr": np.dtype(np.uintp).str, "version": 3}
        self.of = array  # keeps the objects alive


def same_objects(
    items: Sequence[object] | NDArray[np.object_],
) -> tuple[Places, list[object]] | None:
    """Return an index per item into the distinct objects (by identity), and these objects.

    Returns ``None`` if there are few items, or if most of a sample are different objects.

    >>> cat, dog = "cat", "dog"
    >>> codes, objects = same_objects([cat, dog, cat] * 2000)
    >>> codes[:3].tolist(), objects
    ([0, 1, 0], ['cat', 'dog'])
    """
    if len(items) < _TRIED // 8:  # reading so few is faster than comparing them
        return None

    def places(items: Sequence[object] | NDArray[np.object_]) -> Array:
        array = items if isinstance(items, np.ndarray) else np.fromiter(items, object, len(items))
        return np.asarray(_ObjectPlaces(array))

    if 2 * len(distinct(places(items[:_TRIED]))[1]) > min(len(items), _TRIED):
        return None
    codes, rows = distinct(places(items))
    return codes, [items[row] for row in rows.tolist()]


def code_objects(items: Sequence[object]) -> Coded:
    """Encode Python strings as codes into a sorted vocabulary; anything else is null (-1).

    Costs one dictionary look-up per row, in C.
    """
    if any(kind is not str and issubclass(kind, str) for kind in set(map(type, items))):
        # Enum members and numpy.str_ may override hashing or comparison: use the plain text.
        items = [str.__str__(item) if isinstance(item, str) else item for item in items]
    place: defaultdict[object, int] = defaultdict(count().__next__)  # in order of appearance
    codes = np.fromiter(map(place.__getitem__, items), np.intp, len(items))
    vocabulary = sorted([item for item in place if isinstance(item, str)])
    ranks = np.full(len(place), -1, np.intp)
    ranks[[place[text] for text in vocabulary]] = np.arange(len(vocabulary))
    return ranks[codes], vocabulary


def code_fixed(array: NDArray[np.str_]) -> Coded:
    """Encode a contiguous one-dimensional ``U`` array in native byte order."""
    if not array.dtype.itemsize:
        return code_objects(array.tolist())
    codes, first = distinct(array)
    ranks, vocabulary = code_objects(array[first].tolist())
    return ranks[codes], vocabulary


def recode(codes: Array, labels: Sequence[object]) -> Coded:
    """Replace codes into any list of labels by codes into a sorted vocabulary.

    `labels` may be unsorted, and may hold duplicates, nulls and labels without a row. A code of -1
    is a null.
    """
    occurs = np.zeros(len(labels) + 1, np.bool_)
    occurs[codes] = True  # -1 marks the last entry
    used = np.flatnonzero(occurs[:-1])
    ranks, vocabulary = code_objects([labels[place] for place in used.tolist()])
    lookup = np.full(len(labels) + 1, -1, np.intp)
    lookup[used] = ranks
    return lookup.take(codes, mode="wrap"), vocabulary


def merge_codes(
    parts: Sequence[tuple[Places, NDArray[np.str_]]],
) -> tuple[Places, NDArray[np.str_]]:
    """Concatenate the codes of several columns over the union of their vocabularies."""
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


EXACT = 2**53  # float64 represents every integer up to this
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
    """A value of a type that no column can hold; `as_column` may replace the advice."""

    def __init__(
        self, found: str, advice: str, column: str | None = None, row: int | None = None
    ) -> None:
        super().__init__(f"{found}; {advice}", column, row)
        self.found, self.advice = found, advice


@dataclass(slots=True)  # not frozen, although never changed: creation would be three times slower
class Column:
    """One column of a batch: ``(n,)``, or ``(n, d)`` for a matrix.

    Attributes:
        values: Booleans, integers or floats, C-contiguous, aligned, in native byte order. uint64
            only if a value exceeds int64. With a `vocabulary`, integer codes into it. Nulls are 0,
            or code -1.
        nulls: Mask of the nulls of the source, of the shape of `values`; ``None`` if there are
            none. NaN is a value, not a null, except among strings.
        owned: Whether `values` is a new array that nobody else can write to.
        vocabulary: The distinct strings that occur, sorted by code point; ``None`` for numbers.

    """

    values: Array
    nulls: Bools | None = None
    owned: bool = False
    vocabulary: NDArray[np.str_] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice | Array) -> Column:
        """Return some of the rows; the vocabulary is kept whole."""
        nulls = None if self.nulls is None else self.nulls[rows]
        if nulls is not None and not nulls.any():
            nulls = None
        owned = self.owned or not isinstance(rows, slice)
        return Column(self.values[rows], nulls, owned, self.vocabulary)

    def copy(self) -> Column:
        """Return a column that owns its `values`: itself if it already does, else a copy."""
        if self.owned:
            return self
        return replace(self, values=self.values.copy(), owned=True)


def concatenate(columns: Sequence[Column], name: str = "the column") -> Column:
    """Concatenate one or more columns, merging their vocabularies.

    Empty columns and columns of nulls only are compatible with any kind. Raises `InvalidBatchError`
    for strings beside numbers, unequal widths, and integers that no common dtype can represent.
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
    """Make a column of codes into a sorted vocabulary; a code of -1 is a null."""
    texts = np.array(vocabulary) if vocabulary else np.empty(0, "U1")
    if texts.tolist() != vocabulary:
        refuse(name, "strings that end in NUL characters", "strip them")
    nulls = codes < 0
    return Column(codes, nulls if nulls.any() else None, True, texts)


def taken(labels: Column, codes: Array, name: str) -> Column:
    """Look up codes in a column of labels (dictionaries, categoricals); a code of -1 is a null."""
    if labels.vocabulary is not None:
        texts = labels.vocabulary.tolist()
        places = np.append(labels.values, -1)
        return coded(*recode(places[codes], texts), name)
    missing = codes < 0
    column = Column(np.append(labels.values, labels.values.dtype.type(0))[codes], None, True)
    return with_nulls(column, missing | np.append(null_mask(labels), False)[codes], name)


def with_nulls(column: Column, nulls: Array, name: str) -> Column:
    """Return the column with additional nulls; the values underneath them become 0."""
    if not nulls.any():
        return column
    nulls = np.array(nulls, np.bool_)
    if column.nulls is not None:
        nulls |= column.nulls
    if column.vocabulary is not None:  # drop strings that only null rows hold
        codes = np.where(nulls, -1, column.values)
        return coded(*recode(codes, column.vocabulary.tolist()), name)
    values = column.values if column.owned else column.values.copy()
    values[nulls] = 0
    return Column(values, nulls, True)


def null_mask(column: Column) -> Bools:
    """Return the nulls as a mask, all False if there are none."""
    return np.zeros(column.values.shape, np.bool_) if column.nulls is None else column.nulls


def either(one: Mask | None, other: Mask | None) -> Mask | None:
    """Return the union of two masks; ``None`` is an empty mask."""
    if one is None or other is None:
        return other if one is None else one
    return one | other


def stacked(columns: Sequence[Column], name: str) -> Column:
    """Stack one-dimensional columns side by side into a matrix."""
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
    """Reshape a flat column of matrix entries to that matrix."""
    if column.vocabulary is not None and shape[1:] == (1,):
        return column
    if column.vocabulary is not None:
        refuse_text_matrix(name)
    if column.values.ndim > 1:
        refuse(name, "more than two dimensions", "pass (n,) or (n, d)")
    nulls = None if column.nulls is None else column.nulls.reshape(shape)
    return Column(column.values.reshape(shape), nulls, column.owned)


def _with_values(columns: Sequence[Column]) -> Sequence[Column]:
    """Drop columns that are entirely null, which fit any kind; keep all if every column is."""
    some = [column for column in columns if column.nulls is None or not column.nulls.all()]
    return some or columns


def _common_dtype(columns: Sequence[Column], name: str) -> np.dtype[np.generic]:
    dtypes = {column.values.dtype for column in columns}
    dtype: np.dtype[np.generic] = np.result_type(*dtypes)
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
    """Raise unless all values are good; the message has the count and the first bad position."""
    if not good.all():
        wrong = np.atleast_1d(~good)
        first = np.argwhere(wrong)[0].tolist()
        row = f"row {first[0]}" + (f", column {first[1]}" if len(first) > 1 else "")
        count = int(np.count_nonzero(wrong))
        raise InvalidBatchError(
            f"{name} {what} in {count} value{'s' * (count != 1)}, first in {row}; {advice}"
        )


def refuse(name: str, found: str, advice: str, row: int | None = None) -> NoReturn:
    """Raise an error that the column holds something it cannot; `row` is the first bad row."""
    raise InvalidBatchError(f"{name} holds {found}; {advice}", name, row)


def refuse_text_matrix(name: str) -> NoReturn:
    """Raise an error that the column is a matrix of strings."""
    advice = (
        "pass a matrix of integer codes, as np.unique(x, return_inverse=True)[1].reshape(x.shape), "
        "or one column of strings, as (n,)"
    )
    refuse(name, "a matrix of strings", advice)


def refuse_kind(name: str, found: str, advice: str, row: int | None = None) -> NoReturn:
    """Raise an error that the column holds values of an unsupported type."""
    raise UnlikeError(f"{name} holds {found}", advice, name, row)


def type_title(cls: type) -> str:
    """Return the qualified name of a type for error messages, without ``builtins``."""
    module = "" if cls.__module__ == "builtins" else f"{cls.__module__}."
    return module + cls.__qualname__
