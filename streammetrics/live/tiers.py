"""Tiers: how long a pane is, how many are kept, and which pane a time falls into."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from streammetrics.live.time import DAY, LATEST, SECOND, duration, shown_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Ints

DEFAULT = (("1min", "3h"), ("1h", "15d"), ("1d", "400d"))
QUARTER = 900 * SECOND  # of which midnights of all zones are whole numbers
_MOST = 1_000_000  # panes of a tier
_LAST_DAY = LATEST * SECOND // DAY + 1


@dataclass(frozen=True)
class Tier:
    """Panes of one length, of which the newest `count` are kept.

    With a zone, panes are calendar days there, of 23 and 25 hours too.
    """

    length: int  # nanoseconds
    count: int
    zone: str = ""

    def numbers(self, times: Ints) -> Ints:
        """Return the number of the pane that each time falls into."""
        if not self.zone or not len(times):
            return times // self.length
        first = max(int(times.min()) // DAY - 1, 0)
        days = range(first, int(times.max()) // DAY + 3)
        starts = np.array([self.start(day) for day in days], np.int64)
        starts[0] = min(starts[0], 0) if first == 0 else starts[0]
        return first - 1 + np.searchsorted(starts, times, side="right")

    def number(self, time: int) -> int:
        """Return the number of the pane that a time falls into."""
        if not self.zone:
            return time // self.length
        return int(self.numbers(np.array([time], np.int64))[0])

    def start(self, number: int) -> int:
        """Return the time at which a pane begins, in nanoseconds."""
        return _midnight(self.zone, number) if self.zone else number * self.length

    def oldest(self, newest: int) -> int:
        """Return the number of the oldest pane that is kept where `newest` is the newest time."""
        return self.number(newest) - self.count + 1

    @property
    def shown(self) -> str:
        """The tier as a person would say it."""
        reach = shown_duration(self.length * self.count)
        zone = f" of {self.zone}" if self.zone else ""
        return f"panes of {shown_duration(self.length)}{zone} for {reach}"


def tiers_of(given: Sequence[Sequence[object]]) -> tuple[Tier, ...]:
    """Return the tiers that somebody asked for, the finest first.

    Raises:
        ValueError: They are no tiers; the message says what is wrong.
    """
    if isinstance(given, str) or not given:
        raise ValueError(f'tiers={given!r}: expected pairs such as ("1min", "3h")')
    tiers = tuple(_tier(one) for one in given)
    for fine, coarse in pairwise(tiers):
        if coarse.length <= fine.length or coarse.length % fine.length:
            raise ValueError(f"{coarse.shown}: a multiple of {shown_duration(fine.length)} is due")
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
            f"the tier {tuple(given)!r} reaches back {shown_duration(reach)}, which is no whole "
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
        raise ValueError(f"there is no time zone {name!r}, as Europe/Berlin is one") from error


@lru_cache(maxsize=4096)
def _midnight(zone: str, day: int) -> int:
    """Return when a day begins in a zone: the first instant that it has."""
    day = min(max(day, 0), _LAST_DAY)
    local = datetime(1970, 1, 1, tzinfo=_zone(zone)) + timedelta(days=day)
    since = local.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * SECOND
