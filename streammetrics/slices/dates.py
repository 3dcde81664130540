"""Dates and times as keys to slice by: columns of any library, and text in ISO 8601 format."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.errors import Hint, InvalidBatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Array, Bools, Foreign

    Codes = Array  # integers, of any width


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
    every: Array = times[codes if nulls is None else np.where(nulls, len(texts), codes)]
    return every


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
