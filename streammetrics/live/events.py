"""Events: their ids, times and columns, and their serialization."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, TypeGuard
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from streammetrics.core.columns.column import null_mask
from streammetrics.core.columns.conversion import Column, concatenate
from streammetrics.core.columns.nested import Nested
from streammetrics.core.columns.schema import reject
from streammetrics.core.errors import InvalidBatchError, StateFormatError
from streammetrics.core.fields.keyed import packed_labels, unpacked_labels
from streammetrics.core.state.arrays import nested, part, take_array
from streammetrics.core.state.container import packed as packed_file
from streammetrics.core.state.container import unpacked
from streammetrics.inference.units import whole_of
from streammetrics.slices.bins import Bins, key_column, title_of
from streammetrics.slices.slices import Slices
from streammetrics.statistics.keys import OTHER, checked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.columns.schema import Kind as ColumnKind
    from streammetrics.core.feeding.states import State
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.types import Array, Arrays, Bools, Floats, Foreign, Ints

    By = str | Sequence[str] | None


SECOND = 10**9
DAY = 86_400 * SECOND
LATEST = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp())  # in seconds; times must be earlier

_UNITS = {
    "ns": 1, "us": 10**3, "ms": 10**6, "s": SECOND, "sec": SECOND, "min": 60 * SECOND,
    "h": 3600 * SECOND, "d": DAY, "w": 7 * DAY,
}  # fmt: skip
_LONGEST = 200 * 365 * DAY
_SHOWN = 60  # characters of a duration
_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*")
_SECONDS = re.compile(r"\s*[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?\s*")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ENDS = (  # end-of-day forms: pattern, its replacement, and the offset to add
    (re.compile(r"(?<=[T ])24:?00(?=(:?00(\.0+)?)?([Z+-]|$))"), "00:00", timedelta(days=1)),
    (re.compile(r"(?<=[T ][0-9]{2}:[0-9]{2}):60(?=[Z+.-]|$)"), ":59", timedelta(seconds=1)),
)
_DTYPE = np.dtype("datetime64[ns]")


def duration(value: str | timedelta, name: str) -> int:
    """Return a positive duration in nanoseconds.

    Raises:
        ValueError: The value is not a positive duration, or longer than 200 years; the message
            shows valid forms.
    """
    nanoseconds, is_long = 0, isinstance(value, str) and len(value) > _SHOWN
    if isinstance(value, timedelta):
        nanoseconds = _of_timedelta(value)
    elif isinstance(value, str) and not is_long and (found := _DURATION.fullmatch(value)):
        number, unit = found.groups()
        if unit in _UNITS:
            whole, _, part = number.partition(".")
            scaled = int(whole + part) * _UNITS[unit]
            nanoseconds, rest = divmod(scaled, 10 ** len(part))
            nanoseconds = 0 if rest else nanoseconds
    shown = f"{str(value)[:_SHOWN]!r}..." if is_long else repr(value)
    if nanoseconds > _LONGEST or is_long:
        raise ValueError(f"{name}={shown} is too long: the longest duration is {_LONGEST // DAY}d")
    if nanoseconds <= 0:
        raise ValueError(
            f'{name}={shown} is not a duration: write "90s", "5min", "1h", "7d", or a timedelta'
        )
    return nanoseconds


_SIZE = re.compile(r"([0-9]{1,15}(?:[.][0-9]{1,15})?) ?(B|kB|MB|GB)")
_UNITS_OF_SIZE = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}


def size(text: str, name: str = "") -> int:
    """Return a positive number of bytes.

    Raises:
        ValueError: The text is none; the message shows valid forms.
    """
    found = _SIZE.fullmatch(text)
    n = 0 if found is None else int(Fraction(found[1]) * _UNITS_OF_SIZE[found[2]])
    if not n:
        shown = f"{name}={text!r}" if name else repr(text)
        raise ValueError(f'{shown} is not a size: write "64MB" or "1.5GB"')
    return n


def shown_duration(nanoseconds: int) -> str:
    """Format a duration so that `duration` can parse it."""
    for unit in ("d", "h", "min", "s", "ms", "us"):
        if nanoseconds % _UNITS[unit] == 0:
            return f"{nanoseconds // _UNITS[unit]}{unit}"
    return f"{nanoseconds}ns"


def shown_time(nanoseconds: int) -> str:
    """Format a time in UTC for messages."""
    return f"{np.datetime64(int(nanoseconds), 'ns').astype('datetime64[us]')}Z"


def instant(value: object, name: str = "time") -> int:
    """Return a time in nanoseconds since 1970.

    Args:
        value: An aware ``datetime``, a ``datetime64`` (in UTC), POSIX seconds, or ISO 8601 text
            with a UTC offset.
        name: The name of the value in messages.

    Raises:
        InvalidBatchError: The value has none of these types, or is not between 1970 and 2200.
    """
    return int(instants([value], name)[0])


def instants(values: object, name: str = "time") -> Ints:
    """Return a column of times in nanoseconds since 1970, as `instant` does for one value."""
    array = _array(values, name)
    if array.dtype.kind == "M":
        return _of_dates(array, name)
    if array.dtype.kind in "iuf":
        return _of_seconds(array, name)
    if array.dtype.kind in "OU":
        listed = array.tolist()
        try:
            each = [_one(value, name, row) for row, value in enumerate(listed)]
        except InvalidBatchError as error:
            _refuse_among_seconds(name, listed, error.row)
            raise
        return np.array(each, np.int64).reshape(-1)
    return _refuse(name, f"holds {array.dtype}, not times", array.tolist()[0], 0)


def _array(values: Foreign, name: str) -> Array:
    """Return a column as a NumPy array of numbers, dates or objects."""
    kind = type(values).__module__.partition(".")[0]
    if kind == "pandas" and getattr(values.dtype, "tz", None) is not None:
        values = values.to_numpy(dtype=_DTYPE)  # in UTC
    elif kind == "polars" and getattr(values.dtype, "time_zone", None) is not None:
        values = values.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy()
    elif isinstance(values, list | tuple) and any(
        isinstance(value, datetime | str | bool) for value in values
    ):
        return _objects(values)
    try:
        array = np.asarray(values)
    except ValueError:  # lists among the times
        return _objects(values)
    if array.ndim != 1:
        raise InvalidBatchError(f"{name} has {array.ndim} dimensions; one time a row is needed")
    return array


def _objects(values: Sequence[object]) -> Array:
    column = np.empty(len(values), object)
    column[:] = values
    return column


def _of_dates(array: Array, name: str, first: int = 0) -> Ints:
    """Convert dates of rows from `first` on."""
    missing = np.isnat(array)
    if missing.any():
        _reject_missing(name, missing, first)
    seconds = array.astype("datetime64[s]").view(np.int64)  # seconds cannot overflow
    _check(name, seconds, array, first)
    return array.astype(_DTYPE).view(np.int64)


def _of_seconds(array: Array, name: str, first: int = 0) -> Ints:
    """Convert POSIX seconds of rows from `first` on."""
    seconds = array.astype(np.float64)
    _check(name, seconds, array, first)
    return nanoseconds(seconds)


def nanoseconds(seconds: Floats) -> Ints:
    """Convert POSIX seconds between 1970 and 2200 to nanoseconds."""
    # Whole and fractional seconds are exact; their product with 1e9 would not be.
    whole = np.floor(seconds)
    rest = np.rint((seconds - whole) * SECOND).astype(np.int64)
    return whole.astype(np.int64) * SECOND + rest


def _check(name: str, seconds: Array, given: Array, first: int) -> None:
    good = (seconds >= 0) & (seconds < LATEST)
    if not good.all():
        row = int(np.argmin(good))
        if np.isnan(seconds[row]):
            _reject_missing(name, np.isnan(seconds), first)
        value = str(given[row]) if given.dtype.kind == "M" else given[row : row + 1].tolist()[0]
        _refuse(name, "is not between 1970 and 2200", value, first + row)


def _reject_missing(name: str, missing: Bools, first: int) -> NoReturn:
    rows = first + np.arange(len(missing))
    reject(name, "is missing (NaN or null)", missing, rows=rows, advice="every row needs a time")


def _one(value: object, name: str, row: int) -> int:
    """Return one time of a column of objects."""
    if value is None:
        _refuse(name, "is missing (null)", value, row)
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
        return int(_of_dates(np.array([value]), name, row)[0])
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        if isinstance(value, int) and abs(value) >> 64:  # float64 may not hold it
            value = math.inf if value > 0 else -math.inf
        return int(_of_seconds(np.array([value]), name, row)[0])
    return _refuse(name, "is not a time", value, row)


def _refuse_among_seconds(name: str, listed: Sequence[object], row: int | None) -> None:
    """Raise for the first value that is no number if the one of a row is, but is given as text.

    A column of a text file is text if one value is no number.
    """
    numbers = [isinstance(each, str) and _SECONDS.fullmatch(each) is not None for each in listed]
    if row is not None and numbers[row] and not all(numbers):
        row = numbers.index(False)
        _refuse(name, "is no number of seconds, as other rows have", listed[row], row)


def _parsed(text: str, name: str, row: int) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        found = _ends_day(text)
        if found is not None:
            return found
        _refuse(name, "is not a time in ISO 8601, such as 2026-11-20T08:30Z", text, row)


def _ends_day(text: str) -> datetime | None:
    """Parse a leap second or 24:00 as the start of the next day, as POSIX does; None for others."""
    for pattern, instead, more in _ENDS:
        changed, n = pattern.subn(instead, text, count=1)
        with suppress(ValueError, OverflowError):
            found = datetime.fromisoformat(changed) + more if n else None
            if found is not None and (more.days or _is_midnight(found)):
                return found
    return None


def _is_midnight(time: datetime) -> bool:
    """Return whether a time is midnight in UTC, where leap seconds end a day."""
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


_CODES = {"d": np.float64, "q": np.int64}


def packed(values: Sequence[object], code: Literal["d", "q"]) -> Array:
    """Convert a list to a float64 (``d``) or int64 (``q``) array.

    This takes a third of the time of `numpy.array`, which has to detect the type.
    """
    array: Any = np.empty(len(values), _CODES[code])
    struct.pack_into(f"{len(values)}{code}", array, 0, *values)
    return array  # type: ignore[no-any-return]


DEFAULT = (("1min", "3h"), ("1h", "15d"), ("1d", "400d"))
QUARTER = 900 * SECOND  # midnight in every time zone is a multiple of it
_MOST = 1_000_000  # panes per tier
_LAST_DAY = LATEST * SECOND // DAY + 1


@dataclass(frozen=True)
class Tier:
    """Panes of one length, of which the newest `count` are kept.

    With a zone, panes are calendar days in that zone, including days of 23 or 25 hours. Panes
    before `floor` were removed early; this is not part of the configuration.
    """

    length: int  # nanoseconds
    count: int
    zone: str = ""
    floor: int = field(default=0, compare=False)

    def numbers(self, times: Ints) -> Ints:
        """Return the number of the pane that contains each time."""
        if not self.zone or not len(times):
            return times // self.length
        first = max(int(times.min()) // DAY - 1, 0)
        days = range(first, int(times.max()) // DAY + 3)
        starts = np.array([self.start(day) for day in days], np.int64)
        starts[0] = min(starts[0], 0) if first == 0 else starts[0]
        return first - 1 + np.searchsorted(starts, times, side="right")

    def number(self, time: int) -> int:
        """Return the number of the pane that contains a time."""
        if not self.zone:
            return time // self.length
        return int(self.numbers(np.array([time], np.int64))[0])

    def start(self, number: int) -> int:
        """Return the start time of a pane, in nanoseconds."""
        return _midnight(self.zone, number) if self.zone else number * self.length

    def oldest(self, newest: int) -> int:
        """Return the number of the oldest pane kept when the newest event is at `newest`."""
        oldest = self.number(newest) - self.count + 1  # negative near 1970
        return max(oldest, self.floor) if self.floor else oldest

    @property
    def shown(self) -> str:
        """A description of the tier for messages."""
        reach = shown_duration(self.length * self.count)
        zone = f" of {self.zone}" if self.zone else ""
        return f"panes of {shown_duration(self.length)}{zone} for {reach}"


def tiers_of(given: Sequence[Sequence[object]]) -> tuple[Tier, ...]:
    """Return the tiers that the user passed, the finest first.

    Raises:
        ValueError: They are not valid; the message says why.
    """
    if isinstance(given, str) or not given:
        raise ValueError(f'tiers={given!r}: expected pairs such as ("1min", "3h")')
    tiers = tuple(_tier(one) for one in given)
    for fine, coarse in pairwise(tiers):
        if coarse.length <= fine.length or coarse.length % fine.length:
            raise ValueError(f"{coarse.shown}: must be a multiple of {shown_duration(fine.length)}")
        if coarse.length * coarse.count < fine.length * fine.count:
            raise ValueError(f"{coarse.shown} reach less far back than {fine.shown}")
    return tiers


def _tier(given: Sequence[Any]) -> Tier:
    if isinstance(given, str) or len(given) not in {2, 3}:
        raise ValueError(f'the tier {given!r}: expected ("1min", "3h") or ("1d", "400d", "UTC")')
    length, reach = duration(given[0], "tiers"), duration(given[1], "tiers")
    zone = given[2] if len(given) == 3 else ""
    if reach % length or reach // length > _MOST:
        raise ValueError(
            f"the tier {tuple(given)!r} reaches back {shown_duration(reach)}, which is not a whole "
            f"number of panes of {shown_duration(length)}, or more than {_MOST:,} of them"
        )
    if zone and length != DAY:
        raise ValueError(f"the tier {tuple(given)!r} has a zone: only panes of 1d are of a zone")
    if zone:
        _zone(zone)
    elif DAY % length and length % DAY:
        raise ValueError(
            f"panes of {shown_duration(length)} do not divide a day, nor are they whole days"
        )
    return Tier(length, reach // length, zone)


@lru_cache(maxsize=64)
def _zone(name: Any) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
        raise ValueError(f"{name!r} is not a time zone, such as Europe/Berlin") from error


@lru_cache(maxsize=4096)
def _midnight(zone: str, day: int) -> int:
    """Return the first instant of a day in a time zone, in nanoseconds."""
    day = min(max(day, 0), _LAST_DAY)
    local = datetime(1970, 1, 1, tzinfo=_zone(zone)) + timedelta(days=day)
    since = local.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * SECOND


IDS = frozenset({str, int, bytes, UUID})  # other types are converted to these
_STR, _BYTES, _INT, _UUID = 0x00, 0x20, 0x40, 0x60  # type bits in the last byte of a key
_HASHED = 0x10
_SHORT = 15  # bytes of an id that fit into its key
_NO_COLUMNS = (str, bytes, Set, Mapping)  # iterable types that are not a column


def keys_of(ids: object) -> NDArray[np.uint64]:
    """Return the 16-byte key of each id, as (n, 2) integers.

    Raises:
        InvalidBatchError: A value is not an id.
    """
    if isinstance(ids, _NO_COLUMNS) or not hasattr(ids, "__iter__") or not getattr(ids, "ndim", 1):
        raise InvalidBatchError(f"id is {ids!r} beside columns: pass an id a row, in order", "id")
    array = ids if isinstance(ids, np.ndarray) else None
    if array is not None and array.ndim == 1 and array.dtype.kind in "iu":
        return _of_integers(array)
    keys = _of_arrow(ids) if hasattr(ids, "to_pylist") else None
    if keys is not None:
        return keys
    listed = _listed(ids)
    found = _of_alike(listed)
    if found is not None:
        return found
    try:
        blob = b"".join([_key(value, row) for row, value in enumerate(listed)])
    except InvalidBatchError as error:
        if error.row is None or not is_missing(listed[error.row]):
            raise
        missing = np.array([*map(is_missing, listed)])
        reject("id", "is missing (null)", missing, advice="every row needs an id")
    return np.frombuffer(blob, ">u8").astype(np.uint64).reshape(-1, 2)


def _listed(column: Foreign) -> list[Any]:
    """Return the values of a column of any library as Python's."""
    read = getattr(column, "to_pylist", getattr(column, "tolist", lambda: column))
    every = read()
    return every if isinstance(every, list) else list(every)


def is_missing(value: object) -> bool:
    """Return whether a value of a list is null or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def keys_of_checked(ids: list[Any]) -> NDArray[np.uint64]:
    """Return the keys of ids that have been validated; fast if all of them are integers."""
    try:
        return _of_integers(packed(ids, "q"))
    except struct.error:  # one is not an integer, or exceeds 64 bits
        return keys_of(ids)


def _of_alike(ids: list[Any]) -> NDArray[np.uint64] | None:
    """Return the keys if all ids are integers or all are short ASCII strings, else ``None``."""
    kinds = set(map(type, ids))
    if kinds == {int}:
        try:
            return _of_integers(packed(ids, "q"))
        except struct.error:  # one exceeds 64 bits
            return None
    if kinds != {str} or not (joined := "".join(ids)).isascii():
        return None
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    return _of_texts(np.frombuffer(joined.encode(), np.uint8), lengths)


def _of_arrow(ids: Foreign) -> NDArray[np.uint64] | None:
    """Return the keys of short strings in an Arrow column, else ``None``."""
    wide = {"string": np.int32, "large_string": np.int64}.get(str(ids.type))
    if wide is None or not hasattr(ids, "buffers") or ids.null_count or not len(ids):
        return None
    _, ends, texts = ids.buffers()
    places = np.frombuffer(ends, wide)[ids.offset : ids.offset + len(ids) + 1].astype(np.int64)
    data = np.frombuffer(texts or b"", np.uint8)[places[0] : places[-1]]
    return _of_texts(data, np.diff(places))


def _of_texts(data: NDArray[np.uint8], lengths: Ints) -> NDArray[np.uint64] | None:
    """Return the keys of strings that are concatenated in `data`; ``None`` if one is too long."""
    if lengths.max() > _SHORT:
        return None
    whole = np.zeros((len(lengths), 16), np.uint8)
    whole[np.arange(16) < lengths[:, None]] = data
    whole[:, _SHORT] = lengths | _STR
    return whole.view(">u8").astype(np.uint64)


def versions_of(versions: object, n: int = 1) -> Ints:
    """Return the version of each label, from one integer for all or a column.

    Raises:
        InvalidBatchError: A value is not an integer from 0 to 2^63 - 1.
    """
    several = hasattr(versions, "__len__")
    try:
        array = np.asarray(versions if several else [versions] * n)
    except ValueError:  # a list among the values
        _no_version(versions)
    are_integers = array.ndim == 1 and array.dtype.kind in "iu"
    good = are_integers and array.size and array.min() >= 0 and array.max() < 1 << 63
    if not good and array.shape != (0,):
        _no_version(versions if several and array.ndim and len(array) else [versions] * n)
    return array.astype(np.int64)


def _no_version(versions: Any) -> NoReturn:
    """Raise for the first value that is not a valid version."""
    listed = _listed(versions)
    missing = np.array([*map(is_missing, listed)])
    if missing.any():
        advice = "pass an integer from 0 to 2^63 - 1, or no versions"
        reject("version", "is missing (null)", missing, advice=advice)
    good = [_is_integer(each) and 0 <= each < 1 << 63 for each in listed]
    row = good.index(False) if False in good else 0
    raise InvalidBatchError(
        f"version is {listed[row]!r}, first in row {row}: versions are integers from 0 to 2^63 - 1",
        "version",
        row,
    )


def _of_integers(array: Array) -> NDArray[np.uint64]:
    if array.dtype.kind == "u" and array.size and array.max() >= 1 << 63:
        return keys_of(array.tolist())
    keys = np.empty((len(array), 2), np.uint64)
    keys[:, 0] = array.astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)
    keys[:, 1] = _INT
    return keys


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _key(value: object, row: int = 0) -> bytes:
    if isinstance(value, str):
        return _of_bytes(value.encode(errors="surrogatepass"), _STR)
    if _is_integer(value):
        if -(1 << 63) <= value < 1 << 63:
            return (int(value) + (1 << 63)).to_bytes(8, "big") + bytes(7) + bytes([_INT])
        return _hashed(str(value).encode(), _INT)
    if isinstance(value, bytes):
        return _of_bytes(value, _BYTES)
    if isinstance(value, UUID):
        return _hashed(value.bytes, _UUID)
    raise InvalidBatchError(
        f"id is {value!r}, first in row {row}; an id is a string, bytes, an integer or a UUID",
        "id",
        row,
    )


def _of_bytes(value: bytes, kind: int) -> bytes:
    n = len(value)
    return value.ljust(15, b"\0") + bytes([kind | n]) if n <= _SHORT else _hashed(value, kind)


def _hashed(value: bytes, kind: int) -> bytes:
    return blake2b(value, digest_size=15).digest() + bytes([kind | _HASHED])


Kind = Literal["observe", "predict", "label"]
KINDS: tuple[Kind, ...] = ("observe", "predict", "label")
_NO_KEYS = np.empty((0, 2), np.uint64)
_NO_VERSIONS = np.empty(0, np.int64)


class Events(NamedTuple):
    """Events of one kind with the same columns."""

    kind: Kind
    times: Ints
    columns: Mapping[str, Column]
    keys: NDArray[np.uint64] = _NO_KEYS  # of the ids; empty for observations without ids
    versions: Ints = _NO_VERSIONS  # of labels; empty for other kinds

    @property
    def form(self) -> tuple[object, ...]:
        """The kind, columns and types; events of equal form can be concatenated."""
        types = [
            (name, c.values.dtype, c.values.shape[1:], c.vocabulary is None, c.nulls is None)
            for name, c in self.columns.items()
        ]
        return (self.kind, bool(len(self.keys)), *types)

    @property
    def are_waiting_rows(self) -> bool:
        """Whether they are rows that wait before they reach the panes."""
        return self.kind != "label" and bool(len(self.keys))

    def take(self, rows: slice | Array) -> Events:
        """Return some of them."""
        kind, times, columns, keys, versions = self
        some = {name: column[rows] for name, column in columns.items()}
        keys = keys[rows] if len(keys) else keys
        versions = versions[rows] if len(versions) else versions
        return Events(kind, times[rows], some, keys, versions)


def alike(parts: Sequence[Events]) -> list[list[Events]]:
    """Group events by their form."""
    groups: dict[tuple[object, ...], list[Events]] = {}
    for events in parts:
        groups.setdefault(events.form, []).append(events)
    return list(groups.values())


def joined_events(group: Sequence[Events]) -> Events:
    """Concatenate events of one form."""
    if len(group) == 1:
        return group[0]
    kinds, times, columns, keys, versions = zip(*group, strict=True)
    names = columns[0]
    whole = {name: _joined([some[name] for some in columns], name) for name in names}
    rows = map(np.concatenate, (keys, versions))
    return Events(kinds[0], np.concatenate(times), whole, *rows)


def _joined(columns: Sequence[Column], name: str) -> Column:
    """Concatenate columns, including nested ones."""
    if not isinstance(columns[0], Nested):
        return concatenate(columns, name)
    nested = [column for column in columns if isinstance(column, Nested)]
    counts = np.concatenate([column.values for column in nested])
    nulls = np.concatenate([null_mask(column) for column in nested])
    return Nested.of(counts, concatenate([column.flat for column in nested], name), nulls)


def written(parts: Sequence[Events]) -> bytes:
    """Serialize events, with a checksum."""
    arrays: dict[str, Array] = {}
    told = []
    for place, events in enumerate(parts):
        told.append([events.kind, list(events.columns)])
        mine: dict[str, Array] = {"times": events.times}
        if events.kind != "observe" or len(events.keys):
            mine["keys"] = events.keys
        if events.kind == "label":
            mine["versions"] = events.versions
        for number, column in enumerate(events.columns.values()):
            mine |= nested(f"column/{number}", column_arrays(column))
        arrays |= nested(str(place), mine)
    return packed_file({"events": told}, arrays)


def read(blob: bytes) -> list[Events]:
    """Deserialize events that `written` serialized.

    Raises:
        StateFormatError: The bytes are not events.
    """
    file = unpacked(blob)
    told = file.meta.get("events")
    if not isinstance(told, tuple) or not all(map(_is_told, told)):
        raise StateFormatError("a part of the journal does not say what events it has")
    return [
        _events(kind, names, part(file.arrays, str(place)))
        for place, (kind, names) in enumerate(told)
    ]


def _is_told(told: object) -> bool:
    if not isinstance(told, tuple) or len(told) != 2 or told[0] not in KINDS:
        return False
    return isinstance(told[1], tuple) and all(isinstance(name, str) for name in told[1])


def _events(kind: Kind, names: Sequence[str], arrays: Arrays) -> Events:
    times = take_array(arrays, "times", "int64")
    has_ids = kind != "observe" or "keys" in arrays
    keys = take_array(arrays, "keys", "uint64", 2) if has_ids else _NO_KEYS
    versions = take_array(arrays, "versions", "int64") if kind == "label" else _NO_VERSIONS
    columns = {
        name: column_of(part(arrays, f"column/{number}")) for number, name in enumerate(names)
    }
    lengths = {len(times), *map(len, columns.values())}
    lengths |= {len(keys)} if has_ids else set()
    lengths |= {len(versions)} if kind == "label" else set()
    if len(lengths) > 1:
        raise StateFormatError("the columns of events in the journal differ in length")
    return Events(kind, times, columns, keys, versions)


def column_arrays(column: Column) -> dict[str, Array]:
    """Return the arrays of a column; a vocabulary is reduced to the words that occur."""
    arrays: dict[str, Array] = {"values": column.values}
    if column.vocabulary is not None:
        used, codes = np.unique(column.values, return_inverse=True)
        first = int(used.searchsorted(0))  # nulls have a negative code
        arrays["values"] = codes.astype(np.int64) - first
        arrays["vocabulary"] = packed_labels(column.vocabulary[used[first:]])
    if column.nulls is not None:
        arrays["nulls"] = column.nulls
    if isinstance(column, Nested):
        arrays |= nested("flat", column_arrays(column.flat))
    return arrays


def column_of(arrays: Arrays) -> Column:
    """Rebuild and validate a column from the arrays of `column_arrays`."""
    values, nulls = arrays.get("values"), arrays.get("nulls")
    if values is None or values.dtype.kind not in "biuf" or values.ndim not in {1, 2}:
        raise StateFormatError("a column is of no type that columns have")
    if nulls is not None and (nulls.dtype != np.bool_ or nulls.shape != values.shape):
        raise StateFormatError("what is missing of a column does not fit it")
    flat = part(arrays, "flat")
    if flat:
        counts, within = take_array(arrays, "values", "int64"), column_of(flat)
        if (counts < 0).any() or counts.sum() != len(within):
            raise StateFormatError("the values of a column are not as many as its rows hold")
        return Nested.of(counts, within, nulls)
    if "vocabulary" not in arrays:
        return Column(values, nulls)
    words = unpacked_labels(arrays, "vocabulary")
    least = 0 if nulls is None else -1
    if words.dtype.kind != "U" or values.dtype != np.int64 or values.ndim != 1:
        raise StateFormatError("a column of texts holds none")
    if len(values) and not least <= values.min() <= values.max() < len(words):
        raise StateFormatError("a text of a column is not among those there are")
    return Column(values.astype(np.intp), nulls, False, words)


class SliceKeys:
    """The slice keys of a suite; there are none unless it is `Slices`.

    Args:
        suite: The metrics.
        proxy: The column of judgments, if there is one.

    Attributes:
        kinds: The kind of each column that rows are sliced by, by the user's name of the column.
        titles: The names of the key columns made from them.
        inner: The suite of each slice.
    """

    def __init__(self, suite: Mergeable, proxy: str | None = None) -> None:
        self._suite = suite
        self._cuts = suite._cuts if isinstance(suite, Slices) else ()
        self.inner: Mergeable = suite._suite if isinstance(suite, Slices) else suite
        self.kinds: dict[str, ColumnKind] = {
            title_of(column): "number" if isinstance(column, Bins) else "label"
            for cut in self._cuts
            for column in cut.by
        }
        self.titles = frozenset(cut.title for cut in self._cuts)
        plan = self.inner._plan
        renamed: Mapping[str, str] = getattr(suite, "columns", {})
        self._needed = {renamed.get(name, name) for name in plan.required}
        if proxy is not None:
            self._needed.add(proxy)
        self._read = self._needed | {renamed.get(name, name) for name in plan.optional}
        self._only = self.kinds.keys() - self._read

    def made(self, columns: Mapping[str, object]) -> dict[str, Any]:
        """Return columns with a text key for each kind of slice, without key-only columns."""
        if not self._cuts or self._cuts[0].title in columns:
            return dict(columns)
        keys = {cut.title: key_column(columns, cut.by) for cut in self._cuts}
        return {**{n: c for n, c in columns.items() if n not in self._only}, **keys}

    def check(self, columns: Mapping[str, Column], *, without: str | None = None) -> None:
        """Raise `StateFormatError` unless the columns of a state are those of stored rows.

        Args:
            columns: The columns sorted by name, with keys as `made` returns them.
            without: A column that the rows lack, e.g. the label; ``None`` if they lack none.
        """
        names, needed = list(columns), (self._needed | self.titles) - {without}
        allowed = (self._read | self.titles) - {without}
        if names != sorted(names) or not needed <= set(names) <= allowed:
            raise StateFormatError(f"rows of the state have columns {names}, not {sorted(needed)}")
        for cut in self._cuts:
            keys = columns[cut.title]
            if keys.vocabulary is None or keys.nulls is not None or OTHER in keys.vocabulary:
                raise StateFormatError(f"rows of the state have no keys as text {cut.title}")
            checked(keys.vocabulary.tolist(), len(cut.titles))

    def named(self, columns: Iterable[str]) -> set[str]:
        """Return the user's names of columns, also of those that `made` replaced by keys."""
        return (set(columns) - self.titles) | self._only

    def shown(self, state: State, by: By = None) -> Any:
        """Return a set or metric at a state, of all rows or, with `by`, of the slices of one kind.

        Raises:
            ValueError: There are no slices by these columns.
        """
        if by is None:
            return self.inner._at(self.whole(state))
        if isinstance(self._suite, Slices):
            try:
                return self._suite._of_kind(state, by)
            except KeyError as error:
                raise ValueError(f"by={by!r}: {error.args[0]}") from None
        raise ValueError(f'by={by!r}: nothing is sliced here; Live(..., by=[["country"]]) would be')

    def whole(self, state: State) -> State:
        """Return the state of all rows, across slices."""
        if not isinstance(self._suite, Slices):
            return state
        return whole_of(self._suite._finest(state))


def is_made(columns: Mapping[str, object], suite: Mergeable) -> bool:
    """Return whether columns already have the keys that `SliceKeys.made` adds."""
    return isinstance(suite, Slices) and isinstance(columns.get(suite._cuts[0].title), Column)
