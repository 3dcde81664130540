"""Dates as keys to slice by: columns of dates of any library, as days."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Foreign

    Codes = Array  # integers, of any width


_UTC = {"UTC", "Etc/UTC", "UTC+00:00", "+00:00", "Z"}  # whose midnight begins the date it names


def day_of(day: int) -> datetime.date:
    """Return the date so many days after the first of 1970."""
    return datetime.date(1970, 1, 1) + datetime.timedelta(day)


def days_of(value: Foreign, title: str) -> Array | None:
    """Return a column of dates as days, ``None`` where it holds none."""
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
    days = times.reshape(-1).astype("datetime64[D]")
    odd = ~np.isnat(days) & (days.astype(times.dtype) != times.reshape(-1))
    if odd.any():
        row = int(np.argmax(odd))
        raise InvalidBatchError(
            f"{title} holds times of day, first in row {row} ({times.reshape(-1)[row]}); slices "
            "are by date: cut them to days",
            title,
            row,
        )
    return days


def _zoned(title: str, zone: object, row: int | None) -> InvalidBatchError:
    """Return that a column has times of a zone: which day that is depends on whom one asks."""
    first = "" if row is None else f", first in row {row}"
    return InvalidBatchError(
        f"{title} holds times of the zone {zone}{first}; slices are by date: cut them to days, "
        "as text or as dates without a zone",
        title if row is not None else None,
        row,
    )


def _zone(value: object) -> object:
    """Return the zone of a column of times of any library, ``None`` where it has none."""
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
