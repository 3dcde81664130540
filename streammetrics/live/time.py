"""Time in: whatever says when, as nanoseconds since 1970, and durations as nanoseconds."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Floats, Foreign, Ints

SECOND = 10**9
DAY = 86_400 * SECOND
LATEST = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp())  # seconds; times are before it

_UNITS = {
    "ns": 1, "us": 10**3, "ms": 10**6, "s": SECOND, "sec": SECOND, "min": 60 * SECOND,
    "h": 3600 * SECOND, "d": DAY, "w": 7 * DAY,
}  # fmt: skip
_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ENDS = (  # of days, and how much later than what stands in their place
    (re.compile(r"(?<=[T ])24:?00(?=(:?00(\.0+)?)?([Z+-]|$))"), "00:00", timedelta(days=1)),
    (re.compile(r"(?<=[T ][0-9]{2}:[0-9]{2}):60(\.0+)?(?=[Z+-]|$)"), ":59", timedelta(seconds=1)),
)
_DTYPE = np.dtype("datetime64[ns]")


def duration(value: str | timedelta, name: str) -> int:
    """Return a length of time in nanoseconds, more than none.

    Raises:
        ValueError: It is none; the message says how one is written.
    """
    nanoseconds = 0
    if isinstance(value, timedelta):
        nanoseconds = _of_timedelta(value)
    elif isinstance(value, str) and (found := _DURATION.fullmatch(value)):
        number, unit = found.groups()
        if unit in _UNITS:
            whole, _, part = number.partition(".")
            scaled = int(whole + part) * _UNITS[unit]
            nanoseconds, rest = divmod(scaled, 10 ** len(part))
            nanoseconds = 0 if rest else nanoseconds
    if nanoseconds <= 0:
        raise ValueError(
            f'{name}={value!r} is no duration: write "90s", "5min", "1h", "7d", or a timedelta'
        )
    return nanoseconds


def shown_duration(nanoseconds: int) -> str:
    """Return a duration as `duration` reads it."""
    for unit in ("d", "h", "min", "s", "ms", "us"):
        if nanoseconds % _UNITS[unit] == 0:
            return f"{nanoseconds // _UNITS[unit]}{unit}"
    return f"{nanoseconds}ns"


def shown_time(nanoseconds: int) -> str:
    """Return a time as people read it, in UTC."""
    return f"{np.datetime64(int(nanoseconds), 'ns').astype('datetime64[us]')}Z"


def instant(value: object, name: str = "time") -> int:
    """Return one time in nanoseconds since 1970.

    Args:
        value: An aware ``datetime``, a ``datetime64`` (in UTC), POSIX seconds, or text of ISO 8601
            with its zone.
        name: What the message calls it.

    Raises:
        InvalidBatchError: It is none of these, or before 1970 or beyond 2200.
    """
    return int(instants([value], name)[0])


def instants(values: object, name: str = "time") -> Ints:
    """Return a column of times in nanoseconds since 1970, or raise as `instant` does."""
    array = _array(values, name)
    if array.dtype.kind == "M":
        return _of_dates(array, name)
    if array.dtype.kind in "iuf":
        return _of_seconds(array, name)
    if array.dtype.kind in "OU":
        each = [_one(value, name, row) for row, value in enumerate(array.tolist())]
        return np.array(each, np.int64).reshape(-1)
    return _refuse(name, f"holds {array.dtype}, which is no time", array.tolist()[0], 0)


def _array(values: Foreign, name: str) -> Array:
    """Return a column as NumPy has it: of numbers, dates, or objects."""
    kind = type(values).__module__.partition(".")[0]
    if kind == "pandas" and getattr(values.dtype, "tz", None) is not None:
        values = values.to_numpy(dtype=_DTYPE)  # in UTC
    elif kind == "polars" and getattr(values.dtype, "time_zone", None) is not None:
        values = values.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy()
    elif isinstance(values, list | tuple) and any(
        isinstance(value, datetime | str | bool) for value in values
    ):
        column = np.empty(len(values), object)
        column[:] = values
        return column
    array = np.asarray(values)
    if array.ndim != 1:
        raise InvalidBatchError(f"{name} has {array.ndim} dimensions; one time a row is needed")
    return array


def _of_dates(array: Array, name: str) -> Ints:
    missing = np.isnat(array)
    if missing.any():
        _refuse(name, "is missing (NaT)", "NaT", int(np.argmax(missing)))
    seconds = array.astype("datetime64[s]").view(np.int64)  # which nothing overflows
    _check(name, seconds, array)
    return array.astype(_DTYPE).view(np.int64)


def _of_seconds(array: Array, name: str) -> Ints:
    seconds = array.astype(np.float64)
    _check(name, seconds, array)
    return nanoseconds(seconds)


def nanoseconds(seconds: Floats) -> Ints:
    """Return POSIX seconds, which are between 1970 and 2200, in nanoseconds."""
    # The whole seconds and the rest are exact, their product would not be.
    whole = np.floor(seconds)
    rest = np.rint((seconds - whole) * SECOND).astype(np.int64)
    return whole.astype(np.int64) * SECOND + rest


def _check(name: str, seconds: Array, given: Array) -> None:
    good = (seconds >= 0) & (seconds < LATEST)
    if not good.all():
        row = int(np.argmin(good))
        value = str(given[row]) if given.dtype.kind == "M" else given[row : row + 1].tolist()[0]
        _refuse(name, "is not between 1970 and 2200", value, row)


def _one(value: object, name: str, row: int) -> int:
    """Return one time of a column of objects."""
    if isinstance(value, str):
        value = _parsed(value, name, row)
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            advice = "a datetime needs its zone: datetime.now(UTC), or .replace(tzinfo=...)"
            _refuse(name, "is naive", value.isoformat(), row, advice)
        nanoseconds = _of_timedelta(value - EPOCH) + getattr(value, "nanosecond", 0)
        if 0 <= nanoseconds < LATEST * SECOND:
            return nanoseconds
        _refuse(name, "is not between 1970 and 2200", value.isoformat(), row)
    if isinstance(value, np.datetime64):
        return int(_of_dates(np.array([value]), name)[0])
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return int(_of_seconds(np.array([value]), name)[0])
    return _refuse(name, "is no time", value, row)


def _parsed(text: str, name: str, row: int) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        found = _ends_day(text)
        if found is not None:
            return found
        _refuse(name, "is no time of ISO 8601, as 2026-11-20T08:30Z", text, row)


def _ends_day(text: str) -> datetime | None:
    """Return a leap second, or 24:00, as the day that begins then, as POSIX has it; or nothing."""
    for pattern, instead, more in _ENDS:
        changed, n = pattern.subn(instead, text, count=1)
        with suppress(ValueError, OverflowError):
            found = datetime.fromisoformat(changed) + more if n else None
            if found is not None and (more.days or _is_midnight(found)):
                return found
    return None


def _is_midnight(time: datetime) -> bool:
    """Whether it is, in UTC: leap seconds are the last ones of its days."""
    offset = time.utcoffset()
    return offset is not None and not (time - EPOCH).seconds


def _of_timedelta(value: timedelta) -> int:
    return (value.days * 86_400 + value.seconds) * SECOND + value.microseconds * 1000


def _refuse(name: str, what: str, value: object, row: int, advice: str = "") -> NoReturn:
    if not advice:
        far = isinstance(value, int | float) and not math.isnan(value) and abs(value) >= LATEST
        advice = "seconds are needed" + (": divide milliseconds by 1000" if far else "")
        if not isinstance(value, int | float):
            advice = "pass aware datetimes, datetime64, or POSIX seconds"
    raise InvalidBatchError(f"{name} {what}, first in row {row} ({value!r}); {advice}", name, row)
