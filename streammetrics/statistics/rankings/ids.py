"""Ids as codes: the distinct ids, sorted, and each row's place among them.

Ids are integers, or strings held as UTF-8 bytes (their order is that of the code points, and they
take a quarter of the memory of NumPy's own strings). Relevances are coded in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from streammetrics.core.columns.distinct import unique
from streammetrics.core.errors import IncompatibleMetricsError, InvalidBatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.types import Array, Floats

Values: TypeAlias = "Array"  # sorted distinct ids: int64 or bytes; or float64 relevances
Codes: TypeAlias = "NDArray[np.int32]"  # places among them, -1 where there is none

_MOST = 2**31 - 1  # codes are 32 bits wide
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # of splitmix64
_ODD = 0x9E3779B97F4A7C15  # 2**64 / golden ratio


class Coded(NamedTuple):
    """A column: ``values[codes]``, with the code -1 where a row has no value."""

    values: Values
    codes: Codes


def coded_ids(column: Column) -> Coded:
    """Code a column of integers or strings; its nulls are -1."""
    if column.vocabulary is not None:
        values, codes = used(column.vocabulary, column.values)
        return Coded(_bytes(values), codes)
    if column.nulls is None:
        return coded_integers(column.values)
    codes = np.full(len(column.values), -1, np.int32)
    there = ~column.nulls
    if not there.any():
        return Coded(np.empty(0, np.int64), codes)
    values, codes[there] = coded_integers(column.values[there])
    return Coded(values, codes)


def coded_integers(values: Array) -> Coded:
    """Code integers: by a table where they lie close together, else by hashing."""
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * len(values):
        distinct, places = unique(values)
        return Coded(distinct.astype(np.int64), places.astype(np.int32))
    offsets = values if low == 0 else values.astype(np.int64) - low
    seen = np.zeros(high - low + 1, np.bool_)
    seen[offsets] = True
    distinct = np.flatnonzero(seen)
    table = np.cumsum(seen, dtype=np.int32)
    table -= 1
    return Coded(distinct + low, table.take(offsets))


def coded_relevances(relevance: Floats) -> Coded:
    """Code finite relevances; nan is -1."""
    there = relevance == relevance  # noqa: PLR0124 - nan differs from itself
    if not there.all():
        codes = np.full(len(relevance), -1, np.int32)
        if not there.any():
            return Coded(np.empty(0), codes)
        values, codes[there] = coded_relevances(relevance[there])
        return Coded(values, codes)
    if abs(relevance).max() < 2**15:
        whole = relevance.astype(np.int64)
        if (whole == relevance).all():
            integers, codes = coded_integers(whole)
            return Coded(integers.astype(np.float64), codes)
    distinct, places = unique(relevance + 0.0)  # -0.0 is 0.0
    return Coded(distinct, places.astype(np.int32))


def used(values: Values, *columns: Array) -> tuple[Any, ...]:
    """Return the values that some code points to, and the codes among them."""
    seen = np.zeros(len(values) + 1, np.bool_)
    for codes in columns:
        seen[codes] = True
    seen[-1] = False  # the place of the code -1
    if seen[:-1].all():
        return (values, *(codes.astype(np.int32, copy=False) for codes in columns))
    table = np.cumsum(seen, dtype=np.int32)
    table -= 1
    table[-1] = -1
    return (values[seen[:-1]], *(table.take(codes) for codes in columns))


def union(parts: Sequence[Values]) -> tuple[Values, list[Codes | None]]:
    """Return all values and the place of each part's among them; ``None`` where they stay."""
    some = [values for values in parts if len(values)]
    if not some:
        return parts[0], [None] * len(parts)
    kinds = {values.dtype.kind for values in some}
    if len(kinds) > 1:
        raise IncompatibleMetricsError("ids are integers on one side and strings on the other")
    largest = max(some, key=len)
    rest = [values for values in some if values is not largest]
    rest = [values for values in rest if not _same(values, largest)]
    merged = _with(largest, np.sort(np.concatenate(rest))) if rest else largest
    if len(merged) > _MOST:
        raise InvalidBatchError(f"there are more than {_MOST:,} distinct ids")
    places: list[Codes | None] = []
    for values in parts:
        if len(values) in {0, len(merged)}:  # all of them are in it: as many are all of it
            places.append(None)
        else:
            places.append(np.searchsorted(merged, values).astype(np.int32))
    return merged, places


def moved(codes: Codes, places: Codes | None) -> Codes:
    """Return codes into a union; -1 stays -1."""
    return codes if places is None else np.append(places, np.int32(-1)).take(codes)


def _same(values: Values, others: Values) -> bool:
    return len(values) == len(others) and bool((values == others).all())


def _with(values: Values, more: Values) -> Values:
    """Return the distinct values of two sorted arrays; those of the first are distinct."""
    more = more[np.append(True, more[1:] != more[:-1])]
    width = np.promote_types(values.dtype, more.dtype)
    values, more = values.astype(width, copy=False), more.astype(width, copy=False)
    at = np.searchsorted(values, more)
    new = values.take(at, mode="clip") != more
    return np.insert(values, at[new], more[new])


def narrowest(values: Values) -> Values:
    """Return bytes in the least width that holds them; empty arrays are int64."""
    if values.dtype.kind != "S":
        return values
    if not len(values):
        return np.empty(0, np.int64)
    return values.astype(f"S{max(1, int(np.strings.str_len(values).max()))}", copy=False)


def _bytes(texts: NDArray[np.str_]) -> Values:
    if not len(texts):
        return np.empty(0, np.int64)
    try:
        return narrowest(texts.astype("S"))
    except UnicodeEncodeError:  # not only ASCII
        return narrowest(np.strings.encode(texts, "utf-8"))


def decoded(values: Values) -> list[int] | list[str]:
    """Return ids as Python integers or strings; raise `UnicodeDecodeError` if they are neither."""
    if values.dtype.kind == "S":
        return np.strings.decode(values, "utf-8").tolist()  # type: ignore[no-any-return]
    return values.tolist()  # type: ignore[no-any-return]


def hashed(values: Values) -> NDArray[np.uint64]:
    """Return 64 bits of each id, which depend on the id alone."""
    if values.dtype.kind != "S":
        return mixed(values.astype(np.int64, copy=False).view(np.uint64))
    width = -(-values.dtype.itemsize // 8)
    words = values.astype(f"S{8 * width}").view("<u8").reshape(len(values), width)
    powers = np.multiply.accumulate(np.full(width, _ODD, np.uint64))
    return mixed(np.einsum("ij,j->i", words, powers))  # zero padding adds nothing


def mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return bits that look random (the finaliser of splitmix64), one to one."""
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX[0]
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX[1]
    result: NDArray[np.uint64] = bits ^ (bits >> np.uint64(31))
    return result
