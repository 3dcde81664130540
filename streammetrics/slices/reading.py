"""Conversion of columns to slice by to one column of keys, with each distinct key encoded once."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.batch import near
from streammetrics.core.columns.column import numbered, unique
from streammetrics.core.columns.conversion import Column, as_column
from streammetrics.core.columns.labels import as_integers, flat
from streammetrics.core.columns.schema import reject
from streammetrics.core.counting import extent
from streammetrics.core.errors import Hint, InvalidBatchError
from streammetrics.slices.bins import (
    Bins,
    KeySpec,
    Periods,
    as_days,
    day_of,
    days_of,
    is_time,
    times_in,
    times_of,
    title_of,
)
from streammetrics.statistics.grouped.keys import encoded, parts_of, text_of
from streammetrics.statistics.grouped.schema import KeyColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from streammetrics.core.columns.schema import Facts
    from streammetrics.core.types import Array, Bools, Places

    Codes = Array  # integers, of any width

_NEAR = 1 << 16  # integers with a smaller range are encoded by subtraction
_WORTH = 256  # rows per code above which encoding unused codes is cheaper than finding them
_KINDS = {str: "text", bool: "true or false", int: "integers", datetime.date: "dates"}


@dataclass
class _CodedColumn:
    """One column: codes below `size` and their values; the last code may be a missing value."""

    codes: Codes
    values: Sequence[object]
    size: int
    kind: str | None  # None if the values do not determine it
    made: Callable[[Any], Any] | None  # converts values, applied only to those that occur

    @classmethod
    def of(
        cls,
        codes: Codes,
        values: Sequence[object],
        nulls: Bools | None,
        kind: str | None,
        made: Callable[[Any], Any] | None = None,
    ) -> _CodedColumn:
        if nulls is None:
            return cls(codes, values, len(values), kind, made)
        codes = np.where(nulls, len(values), codes.astype(np.intp, copy=False))
        return cls(codes, values, len(values) + 1, None if nulls.all() else kind, made)

    def spelt(self, codes: Places) -> list[str]:
        """Return the `encoded` key parts of codes."""
        places, found = numbered(codes, self.size)
        values = self.values
        known: Iterable[Any] = [values[code] for code in found.tolist() if code < len(values)]
        texts = list(map(encoded, known if self.made is None else map(self.made, known)))
        if found.size and found[-1] == len(values):
            texts.append(encoded(None))
        return [texts[place] for place in places.tolist()]


def key_column(columns: Mapping[str, object], by: Sequence[KeySpec]) -> KeyColumn:
    """Return the keys of rows as text, as `keys` encodes them, with the kind of each column.

    Raises:
        InvalidBatchError: A column is missing, or holds values that cannot be keys.
    """
    facts: Facts = {}
    parts: list[_CodedColumn] = []
    for column in by:
        title = title_of(column)
        value = columns.get(title)
        if value is None:
            raise InvalidBatchError(f"no column {title!r} to slice by{near(title, list(columns))}")
        part = _cut(value, column)
        if parts and len(part.codes) != len(parts[0].codes):
            raise InvalidBatchError(
                f"columns differ in length: {title_of(by[0])} has {len(parts[0].codes)} rows, "
                f"{title} has {len(part.codes)}"
            )
        if part.kind is not None:
            facts[f"by {title}"] = part.kind
        parts.append(part)
    codes, combinations = _crossed(parts)
    spelt = [
        part.spelt(each)
        for part, each in zip(parts, np.ascontiguousarray(combinations.T), strict=True)
    ]
    texts = list(map(text_of, zip(*spelt, strict=True)))
    vocabulary = np.array(texts) if texts else np.empty(0, "U1")
    order = np.argsort(vocabulary)
    rank = np.empty(len(texts), np.int16 if len(texts) <= 1 << 15 else np.intp)
    rank[order] = np.arange(len(texts))
    return KeyColumn(rank.take(codes, mode="wrap"), None, True, vocabulary[order], facts)


def read_keys(column: Column, by: Sequence[KeySpec]) -> KeyColumn:
    """Return keys made by `key_column` that were stored as text.

    Raises:
        InvalidBatchError: A column has keys of two kinds, or the stored keys are not text.
    """
    if column.vocabulary is None:
        raise InvalidBatchError("the keys of the waiting rows are not text")
    facts: Facts = {}
    used = column.vocabulary[np.unique(column.values)]
    for text in used.tolist():
        for kind, name in zip(_kinds_in(text), by, strict=True):
            if kind is not None and facts.setdefault(f"by {title_of(name)}", kind) != kind:
                raise InvalidBatchError(
                    f"{title_of(name)} holds {kind} and {facts[f'by {title_of(name)}']}: pass one "
                    "kind of keys"
                )
    return KeyColumn(column.values, None, column.owned, column.vocabulary, facts)


@lru_cache(maxsize=1 << 14)
def _kinds_in(text: str) -> tuple[str | None, ...]:
    """Return the kind of each part of a key; ``None`` for missing values and bins."""
    return tuple([_KINDS.get(type(part)) for part in parts_of(text) or ()])


def _crossed(parts: Sequence[_CodedColumn]) -> tuple[Codes, Places]:
    """Return the combination number of each row, and the codes of each combination.

    With many rows, some combinations may not occur.
    """
    first, *others = parts
    if not others and first.size * _WORTH <= len(first.codes):
        return first.codes, np.arange(first.size)[:, None]
    codes, rows = numbered(first.codes.astype(np.intp, copy=False), first.size)
    combinations = rows[:, None]
    for part in others:
        pair = codes * part.size + part.codes
        codes, found = numbered(pair, len(combinations) * part.size)
        before, code = np.divmod(found, part.size)
        combinations = np.column_stack([combinations[before], code])
    return codes, combinations


def _cut(value: object, by: KeySpec) -> _CodedColumn:
    if isinstance(by, Bins):
        return _binned(value, by)
    return _in_periods(value, by) if isinstance(by, Periods) else _part(value, by)


def _of_times(times: Array, kind: str, made: Callable[[int], object]) -> _CodedColumn:
    missing = np.isnat(times)
    numbers = times.astype(np.int64)
    numbers[missing] = 0
    places, found = _places(numbers)
    return _CodedColumn.of(places, found, missing, kind, made)


def _in_periods(value: object, by: Periods) -> _CodedColumn:
    title = by.column
    times = times_of(value, title)
    if times is None:
        column = flat(as_column(value, title, advice="Periods need times"), title)
        if column.vocabulary is None and len(column.values) and not _all_missing(column):
            raise InvalidBatchError(f"{title} holds numbers; Periods need times")
        texts = [] if column.vocabulary is None else column.vocabulary.tolist()
        nulls = np.ones(len(column.values), bool) if column.vocabulary is None else column.nulls
        codes = column.values if nulls is None else np.where(nulls, 0, column.values)
        times = times_in(texts, codes.astype(np.intp, copy=False), nulls, title)
    if by.period == "hour":
        return _of_times(times.astype("datetime64[h]"), "text", _hour)
    if by.period == "month":
        return _of_times(times.astype("datetime64[M]"), "text", _month)
    days = times.astype("datetime64[D]")
    if by.period == "week":  # 1970-01-01 was a Thursday
        days -= (days.astype(np.int64) + 3) % 7
    return _of_times(days, "dates", day_of)


def _hour(hour: int) -> str:
    return f"{np.datetime64(hour, 'h').astype('datetime64[D]')} {hour % 24:02}:00"


def _month(month: int) -> str:
    return str(np.datetime64(month, "M"))


def _all_missing(column: Column) -> bool:
    if column.nulls is not None and bool(column.nulls.all()):
        return True
    return column.values.dtype.kind == "f" and bool(np.isnan(column.values).all())


def _part(value: object, title: str) -> _CodedColumn:
    days = days_of(value, title)
    if days is not None:
        return _of_times(days, "dates", day_of)
    advice = "keys are text, integers, booleans or dates: pass them as text"
    column = flat(as_column(value, title, advice=advice), title)
    values, nulls = column.values, column.nulls
    if column.vocabulary is not None:
        codes = values if nulls is None else np.where(nulls, 0, values)
        texts = column.vocabulary.tolist()
        _check_unicode(texts, codes, nulls, title)
        if any(map(is_time, texts)):
            used = set(np.unique(codes if nulls is None else codes[~nulls]).tolist())
            timely = [code for code in used if is_time(texts[code])]
            if timely and len(timely) < len(used):
                raise InvalidBatchError(
                    f"{title} holds the time {texts[timely[0]]!r} and other text: pass one kind"
                )
            if timely:  # the result is the same as for this column read from Parquet
                times = times_in(texts, codes.astype(np.intp, copy=False), nulls, title)
                return _of_times(as_days(times, title), "dates", day_of)
        return _CodedColumn.of(codes, texts, nulls, "text")
    if values.dtype.kind == "b":
        return _CodedColumn.of(values.view(np.uint8), [False, True], nulls, "true or false")
    _check_truths(value, title)
    if values.dtype.kind == "f":
        hint = Hint("keys are text, integers, booleans or dates; {bins} cuts numbers", bins=title)
        values, nulls = as_integers(values, nulls, title, "is not a key to slice by", hint)
    places, found = _places(values)
    return _CodedColumn.of(places, found, nulls, "integers")


def _check_truths(value: Any, title: str) -> None:
    """Raise if a list or object array mixes booleans with numbers, as which they would count."""
    if isinstance(value, list | tuple) or getattr(value, "dtype", None) == np.dtype(object):
        truths = [isinstance(one, bool | np.bool_) for one in value]
        if any(truths):
            raise InvalidBatchError(
                f"{title} holds numbers and, first in row {truths.index(True)}, true or false: "
                "pass one kind of keys"
            )


def _check_unicode(texts: Sequence[str], codes: Codes, nulls: Bools | None, title: str) -> None:
    """Raise if text has a lone surrogate, which cannot be encoded for output."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        halves = [any("\ud800" <= sign <= "\udfff" for sign in text) for text in texts]
        wrong = np.array(halves)[codes]
        if nulls is not None:
            wrong &= ~nulls
        if wrong.any():
            what = "holds half a character (a lone surrogate)"
            advice = "decode it anew, with errors='replace' where the bytes are no UTF-8"
            reject(title, what, wrong, np.array(texts, object)[codes], advice=advice)


def _places(values: Array) -> tuple[Codes, Sequence[int]]:
    """Return a code for each integer, and the sorted values of codes; some may not occur."""
    if not values.size:
        return np.empty(0, np.intp), []
    low, high = map(int, extent(values))
    if high - low >= _NEAR:
        found, places = unique(values)
        return places, found.tolist()
    if values.dtype.kind == "u" and low > high - low:
        return (values - values.dtype.type(low)).astype(np.int64), range(low, high + 1)
    if not 0 <= low <= high - low:
        # In the dtype of the values the difference could overflow.
        return values.astype(np.int64) - low, range(low, high + 1)
    return values, range(high + 1)


def _binned(value: object, bins: Bins) -> _CodedColumn:
    title = bins.column
    column = flat(as_column(value, title, advice="Bins need numbers"), title)
    if column.vocabulary is not None and len(column.vocabulary):
        raise InvalidBatchError(f"{title} holds text; Bins need numbers")
    if column.values.dtype.kind in "iu":
        codes, missing = _cut_integers(column.values, bins.edges), column.nulls
    else:
        numbers = column.values.astype(np.float64)
        missing = np.isnan(numbers)
        if column.nulls is not None:
            missing |= column.nulls
        codes = np.searchsorted(np.array(bins.edges, np.float64), numbers, side="right")
    return _CodedColumn.of(
        codes, bins.bins, missing if missing is not None and missing.any() else None, None
    )


def _cut_integers(values: Array, edges: Sequence[float]) -> Codes:
    """Return the bin of each integer, without the rounding of large ones to float64."""
    span = np.iinfo(values.dtype)
    whole = [math.ceil(edge) for edge in edges]
    within = np.array([edge for edge in whole if span.min <= edge <= span.max], values.dtype)
    below: int = sum(edge < span.min for edge in whole)
    return np.searchsorted(within, values, side="right") + below
