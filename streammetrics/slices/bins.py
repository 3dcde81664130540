"""Columns to slice by, in bins or by time, and their conversion to one column of keys."""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy import iterable

from streammetrics.core.columns.batch import near
from streammetrics.core.columns.column import numbered, unique
from streammetrics.core.columns.conversion import Column, as_column
from streammetrics.core.columns.labels import as_integers, flat
from streammetrics.core.columns.schema import reject
from streammetrics.core.counting import counts_of, extent
from streammetrics.core.errors import Hint, InvalidBatchError
from streammetrics.statistics.keys import Bin, KeyColumn, encoded, parts_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from streammetrics.core.columns.schema import Facts
    from streammetrics.core.types import Array, Bools, Foreign, Places

    Codes = Array  # integers, of any width

# ---- dates and times as keys: columns of any library, and text in ISO 8601 format ----


_UTC = {"UTC", "Etc/UTC", "UTC+00:00", "+00:00", "Z"}  # zones in which dates are those of UTC
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}.*")


def day_of(day: int) -> datetime.date:
    """Return the date that is `day` days after 1970-01-01."""
    return datetime.date(1970, 1, 1) + datetime.timedelta(day)


def times_of(value: Foreign, title: str) -> Array | None:
    """Return a column of dates or times as a datetime64 array (n,), or ``None`` for others."""
    if isinstance(value, datetime.date):
        value = [value]
    if isinstance(value, list | tuple) or str(getattr(value, "dtype", "")) == "object":
        known = next((item for item in value if item is not None and item == item), None)  # noqa: PLR0124 - the test for nan
        if not isinstance(known, datetime.date):
            return None
        items = list(value)
        odd = next((row for row, x in enumerate(items) if not _is_date(x)), None)
        if odd is not None:
            raise InvalidBatchError(
                f"{title} holds dates and {items[odd]!r}, first in row {odd}: pass one kind",
                title,
                odd,
            )
        for row, item in enumerate(items):
            if getattr(item, "tzinfo", None) is not None and str(item.tzinfo) not in _UTC:
                raise _zoned(title, item.tzinfo, row)
        times = np.array([None if _is_null(x) else _plain(x) for x in items], "datetime64[us]")
    elif _holds_dates(value):
        zone = _zone(value)
        if zone is not None and str(zone) not in _UTC:
            raise _zoned(title, zone, None)
        times = np.asarray(value, None if zone is None else "datetime64[ns]")
    else:
        return None
    return times.reshape(-1)


def days_of(value: Foreign, title: str) -> Array | None:
    """Return a column of dates as days, or ``None`` if it holds none."""
    times = times_of(value, title)
    return None if times is None else as_days(times, title)


def as_days(times: Array, title: str) -> Array:
    """Return times as days; raise `InvalidBatchError` if one is not midnight."""
    days: Array = times.astype("datetime64[D]")
    odd = ~np.isnat(days) & (days.astype(times.dtype) != times)
    if odd.any():
        row = int(np.argmax(odd))
        raise InvalidBatchError(
            f"{title} holds times of day, first in row {row} ({times[row]})",
            title,
            row,
            Hint("slices are by date: cut them with {periods}", periods=title),
        )
    return days


def is_time(text: str) -> bool:
    """Whether a text is a date with a time of day; CSV files hold times as text."""
    return _TIME.fullmatch(text) is not None and _spelt(text) is not None


def times_in(texts: Sequence[str], codes: Codes, nulls: Bools | None, title: str) -> Array:
    """Return the time of each row from ISO 8601 texts and codes into them.

    Raises:
        InvalidBatchError: A text is not a time, or has a time zone other than UTC.
    """
    found = []
    used = np.unique(codes if nulls is None else codes[~nulls])
    for code in used.tolist():
        time = _spelt(texts[code])
        wrong = codes == code if nulls is None else (codes == code) & ~nulls
        if time is None:
            row = int(np.argmax(wrong))
            raise InvalidBatchError(
                f"{title} holds {texts[code]!r:.60}, first in row {row}: expected times, as text "
                "2026-01-31 or 2026-01-31 23:59:59",
                title,
                row,
            )
        if time.tzinfo is not None and time.utcoffset():
            raise _zoned(title, time.tzinfo, int(np.argmax(wrong)))
        found.append(time.replace(tzinfo=None))
    times = np.full(len(texts) + 1, "NaT", "datetime64[us]")
    times[used] = found
    return times[codes if nulls is None else np.where(nulls, len(texts), codes)]


def _spelt(text: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None


def _zoned(title: str, zone: object, row: int | None) -> InvalidBatchError:
    """Return the error for times of another zone than UTC, whose dates depend on the zone."""
    first = "" if row is None else f", first in row {row}"
    return InvalidBatchError(
        f"{title} holds times of the zone {zone}{first}, and which day that is depends on the "
        "zone: convert them to UTC, or drop the zone to use the local time, as "
        "series.dt.tz_localize(None) does in pandas",
        title if row is not None else None,
        row,
    )


def _zone(value: object) -> object:
    """Return the time zone of a column of times of any library, or ``None`` if it has none."""
    kind = getattr(value, "type", None) or getattr(value, "dtype", None)
    kind = getattr(kind, "pyarrow_dtype", kind)
    return getattr(kind, "tz", None) or getattr(kind, "time_zone", None)


def _plain(day: datetime.date) -> datetime.date:
    return day.replace(tzinfo=None) if isinstance(day, datetime.datetime) else day


def _holds_dates(value: object) -> bool:
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    name = str(getattr(value, "type", "") or getattr(value, "dtype", "")).lower()
    return kind == "M" or name.startswith(("date", "timestamp"))


def _is_date(value: object) -> bool:
    return _is_null(value) or isinstance(value, datetime.date)


def _is_null(value: object) -> bool:
    return value is None or bool(value != value)  # noqa: PLR0124 - the test for nan and NaT


@dataclass(frozen=True, init=False, repr=False)
class Bins:
    """A column of numbers to slice by, binned at edges: ``edges[i] <= x < edges[i + 1]``.

    Numbers below the first edge have their own bin, as do numbers from the last edge on. Missing
    numbers form their own slice.

    Args:
        column: The column's name.
        edges: The lower bounds of the bins, finite and strictly ascending.

    Raises:
        ValueError: There are no edges, or they are not ascending.

    Example:
        >>> import streammetrics as sm
        >>> suite = sm.MetricSet({"mae": sm.MAE()})
        >>> slices = sm.Slices(suite, by=[[sm.Bins("age", [18, 30, 50])]])
        >>> _ = slices.update(y_true=[1.0, 2.0, 3.0], y_pred=[1.0, 1.0, 1.0], age=[17, 30, 49])
        >>> slices.compute().to_dict()
        {'age': ['< 18', '[30, 50)'], 'n_rows': [1, 2], 'mae': [0.0, 1.5]}
    """

    column: str
    edges: tuple[float, ...]

    def __init__(self, column: str, edges: Sequence[float]) -> None:
        if not isinstance(column, str) or not column:
            raise TypeError(f"Bins({column!r}): expected the name of a column first, then edges")
        try:
            # Whole edges are stored as integers: 18 and 18.0 are the same edge.
            every: Any = edges
            given = [] if isinstance(every, str) else list(every)  # a str would give its letters
            numbers = [float(edge) for edge in given]
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"Bins({column!r}, {edges!r}): expected numbers as edges") from None
        rounded = [edge for edge, number in zip(given, numbers, strict=True) if edge != number]
        if rounded and math.isfinite(rounded[0]):
            raise ValueError(
                f"Bins({column!r}, ...): the edge {rounded[0]} is not a float64; the nearest is "
                f"{int(float(rounded[0]))}"
            )
        ascending = all(a < b for a, b in pairwise(numbers))
        if not numbers or not ascending or not all(map(math.isfinite, numbers)):
            raise ValueError(
                f"Bins({column!r}, {edges!r}): expected one or more finite edges, ascending, such "
                f"as Bins({column!r}, [18, 30, 50])"
            )
        whole = (int(x) if x.is_integer() and abs(x) < 2**53 else x for x in numbers)
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "edges", tuple(whole))

    def __repr__(self) -> str:
        return f"Bins({self.column!r}, {list(self.edges)!r})"

    @property
    def bins(self) -> list[Bin]:
        """All bins, in order."""
        return [Bin(*pair) for pair in zip((None, *self.edges), (*self.edges, None), strict=True)]


Period = Literal["hour", "day", "week", "month"]
PERIODS: tuple[Period, ...] = get_args(Period)


@dataclass(frozen=True, repr=False)
class Periods:
    """A column of times to slice by, truncated to hours, days, weeks or months.

    Times are those of Arrow, pandas, polars or NumPy, Python dates and datetimes, or text in
    ISO 8601 format. They have no time zone or are in UTC. A day is a date, and a week is the date
    of its Monday. A month is text such as ``2026-01``, and an hour text such as
    ``2026-01-31 23:00``. Missing times form their own slice.

    Args:
        column: The column's name.
        period: ``"hour"``, ``"day"``, ``"week"`` or ``"month"``.

    Raises:
        ValueError: The period is not one of these.

    Example:
        >>> import streammetrics as sm
        >>> slices = sm.Slices(sm.MetricSet({"n": sm.Count()}), by=[[sm.Periods("when", "month")]])
        >>> days = ["2026-01-31 23:59", "2026-02-01", "2026-02-28"]
        >>> slices.update(values=[1, 1, 1], when=days).compute().to_dict()
        {'when': ['2026-01', '2026-02'], 'n_rows': [1, 2], 'n': [1, 2]}
    """

    column: str
    period: Period

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise TypeError(f"Periods({self.column!r}): expected the name of a column first")
        if self.period not in PERIODS:
            raise ValueError(
                f"Periods({self.column!r}, {self.period!r}): expected "
                f"{', '.join(map(repr, PERIODS[:-1]))} or {PERIODS[-1]!r}"
            )

    def __repr__(self) -> str:
        return f"Periods({self.column!r}, {self.period!r})"


KeySpec = str | Bins | Periods


def title_of(by: KeySpec) -> str:
    """Return the name of a column to slice by."""
    return by if isinstance(by, str) else by.column


def column_of(text: str) -> KeySpec:
    """Parse a column to slice by: its name, bins such as ``age:18:30``, or ``when:day``.

    Raises:
        ValueError: The text is none of these.
    """
    name, *edges = text.strip().split(":")
    if not name:
        raise ValueError(f"{text!r} does not name a column")
    if not edges:
        return name
    if len(edges) == 1 and (period := next((p for p in PERIODS if p == edges[0]), None)):
        return Periods(name, period)
    try:
        return Bins(name, [float(edge) for edge in edges])
    except ValueError:
        raise ValueError(
            f"{text}: expected a column, or with ascending edges of bins age:18:30:50, or times "
            f"by {', '.join(PERIODS)}: when:day"
        ) from None


def specs_of(by: object, *, some: bool = True) -> tuple[tuple[KeySpec, ...], ...]:
    """Return the columns of each kind of slice, without duplicate kinds.

    Raises:
        ValueError: No column is named although `some` is True, a column is given in two ways, a
            kind of slice has the same columns as another, or `by` is a set, which has no order.
    """
    if any(isinstance(each, set | frozenset) for each in (by, *(by if iterable(by) else ()))):
        raise ValueError(
            f"by={by!r}: a set has no order, which would change the order of results: pass a list"
        )
    given = [by] if isinstance(by, KeySpec) or not iterable(by) else list(by)
    specs: list[tuple[KeySpec, ...]] = []
    for spec in given:
        columns = (spec,) if isinstance(spec, KeySpec) or not iterable(spec) else tuple(spec)
        if not all(isinstance(column, KeySpec) and title_of(column) for column in columns):
            raise ValueError(
                f"by={by!r}: expected a list of lists of columns, such as "
                '[["country"], ["country", "device"]], where a column is a name, Bins or Periods'
            )
        if len(set(map(title_of, columns))) < len(columns):
            raise ValueError(f"by has a column twice in {list(columns)!r}")
        if columns in specs:
            continue
        same = next((other for other in specs if set(other) == set(columns)), None)
        if same is not None:
            raise ValueError(f"by has one kind of slice twice: {list(same)} and {list(columns)}")
        specs.append(columns)
    if not any(specs) and (some or not specs):
        raise ValueError(f'by={by!r} does not name a column: pass by=[["country"]]')
    ways: dict[str, KeySpec] = {}
    for column in (column for spec in specs for column in spec):
        if ways.setdefault(title_of(column), column) != column:
            raise ValueError(
                f"by has {title_of(column)!r} in two ways: "
                f"{ways[title_of(column)]!r} and {column!r}; a copy of the column under another "
                "name may be sliced the other way"
            )
    return tuple(specs)


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
    made: Callable[[Any], object] | None  # converts values, applied only to those that occur

    @classmethod
    def of(
        cls,
        codes: Codes,
        values: Sequence[object],
        nulls: Bools | None,
        kind: str | None,
        made: Callable[[Any], object] | None = None,
    ) -> _CodedColumn:
        if nulls is None:
            return cls(codes, values, len(values), kind, made)
        codes = np.where(nulls, len(values), codes.astype(np.intp, copy=False))
        return cls(codes, values, len(values) + 1, None if nulls.all() else kind, made)

    def spelt(self, codes: Places) -> list[str]:
        """Return the `encoded` key parts of codes."""
        places, found = numbered(codes, self.size)
        values = self.values
        known = [values[code] for code in found.tolist() if code < len(values)]
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
    there = counts_of((len(column.vocabulary),), column.values) > 0
    used = column.vocabulary[there]
    for kinds in dict.fromkeys(map(_kinds_in, used.tolist())):
        for kind, name in zip(kinds, by, strict=True):
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
