"""Times at which changes of alerts are not delivered."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from streammetrics.live.service.delivery.matching import Match, match_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.live.exporting.files import Notice
    from streammetrics.live.service.toml import Section

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY = 24 * 60  # minutes
_WEEK = 7 * _DAY
_MONDAY = 4 * _DAY  # minutes from the beginning of POSIX time to a Monday
_WEEKLY = re.compile(r"([a-z]{3}(?:[,-][a-z]{3})*) +(\d\d):(\d\d) *- *(\d\d):(\d\d)")


class MuteInterval(NamedTuple):
    """When changes of some rules are not delivered.

    Attributes:
        match: The rules.
        start: The beginning, in POSIX seconds.
        end: The end, in POSIX seconds.
        weekly: Times of each week, as the first minute after Monday, 0:00 UTC, and the number of
            minutes; if empty, all times from `start` to `end`.
        reason: Why they are silenced.
    """

    match: Match
    start: float = -math.inf
    end: float = math.inf
    weekly: tuple[tuple[int, int], ...] = ()
    reason: str = ""

    def mutes(self, notice: Notice, now: float) -> bool:
        """Return whether a change of a rule is not delivered at a time in POSIX seconds."""
        if not (self.start <= now < self.end and self.match.fits(notice)):
            return False
        minute = now / 60 - _MONDAY
        return not self.weekly or any((minute - first) % _WEEK < n for first, n in self.weekly)


def silence_of(table: Section, notices: Sequence[Notice]) -> MuteInterval:
    """Return the silence in a table of the configuration."""
    match, reason = match_of(table, notices), table.take("reason", str, "")
    start, end = _time(table, "start", -math.inf), _time(table, "end", math.inf)
    if start >= end:
        table.fail("end", "end is not after start")
    found: object = table.take("weekly", object, [])
    weekly = [
        each
        for text in (found if isinstance(found, list) else [found])
        for each in _weekly(table, text)
    ]
    if end == math.inf and not weekly:
        table.fail("", 'a silence has an end: write end = 2026-12-01T06:00:00Z, or weekly = "..."')
    table.end()
    return MuteInterval(match, start, end, tuple(weekly), reason)


def _time(table: Section, key: str, default: float) -> float:
    found: object = table.take(key, object)
    if found is None:
        return default
    if not isinstance(found, datetime) or found.tzinfo is None:
        table.fail(
            key, f"expected a time with its zone, without quotes: {key} = 2026-12-01T06:00:00Z"
        )
    return found.timestamp()


def _weekly(table: Section, text: object) -> list[tuple[int, int]]:
    """Return the first minute and the number of minutes of ``"sat,sun 22:00-06:00"``, by day."""
    found = _WEEKLY.fullmatch(text.strip().lower()) if isinstance(text, str) else None
    if found is None:
        table.fail("weekly", f'{text!r}: expected days and times in UTC: "mon-fri 22:00-06:00"')
    hours, minutes = ([int(found[n]) for n in places] for places in ((2, 4), (3, 5)))
    first, last = (60 * hour + minute for hour, minute in zip(hours, minutes, strict=True))
    if max(first, last) > _DAY or max(minutes) > 59 or first in {last, _DAY}:
        table.fail("weekly", f'{text!r}: times are from 00:00 to 24:00, as in "sun 00:00-24:00"')
    days: list[int] = []
    for part in found[1].split(","):
        ends = part.split("-")
        if len(ends) > 2 or not {*ends} <= {*_DAYS}:
            table.fail("weekly", f"{part!r} is not a day or a range of days: write mon or mon-fri")
        begin, n = _DAYS.index(ends[0]), (_DAYS.index(ends[-1]) - _DAYS.index(ends[0])) % 7 + 1
        days += [(begin + day) % 7 for day in range(n)]
    return [(day * _DAY + first, (last - first) % _DAY or _DAY) for day in days]
