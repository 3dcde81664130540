"""Alerts: what the moments of a rule, one after the other, come to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from streammetrics.core.results.result import Result
from streammetrics.core.results.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streammetrics.live.alerts.rule import Moment, Rule

State = Literal["ok", "firing", "no data"]
_TIMES = ("since", "until")
_PLAIN = ("name", "state", "value", "low", "high", "rows", "why")


@dataclass(frozen=True)
class Alert:
    """A rule as it stands, and why.

    Attributes:
        name: What the alert is called.
        state: ``"ok"``, ``"firing"`` or ``"no data"``.
        since: When that state began, as far back as panes are kept; ``None`` if there never was
            any data.
        until: The end of the last window that was judged.
        value: What was compared, of that window; `low` and `high` certainly hold the exact one.
        low: See `value`.
        high: See `value`.
        rows: Of how many rows.
        why: That in a sentence, with the threshold; where it fires, of the window that made it fire
            and of the last one.
        changes: When it was in which state, the oldest first.
        rule: The rule.
    """

    name: str
    state: State
    since: datetime | None
    until: datetime | None
    value: float
    low: float
    high: float
    rows: int
    why: str
    changes: tuple[tuple[datetime, State], ...]
    rule: Rule

    @property
    def firing(self) -> bool:
        """Whether it fires."""
        return self.state == "firing"

    @classmethod
    def from_dict(cls, told: Mapping[str, Any], rule: Rule) -> Alert:
        """Return the alert that `to_dict` has told of.

        Raises:
            KeyError: Something is not told.
            ValueError: A time is none.
        """
        rest: dict[str, Any] = {name: told[name] for name in _PLAIN}
        rest |= {name: told[name] and datetime.fromisoformat(told[name]) for name in _TIMES}
        changes = [
            (datetime.fromisoformat(each["time"]), each["state"]) for each in told["changes"]
        ]
        return cls(**rest, changes=tuple(changes), rule=rule)

    def to_dict(self) -> dict[str, Any]:
        """Return what there is to say in plain Python, times as text of ISO 8601."""
        times = {name: getattr(self, name) for name in _TIMES}
        return {
            "name": self.name,
            "state": self.state,
            **{name: time and time.isoformat() for name, time in times.items()},
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "rows": self.rows,
            "why": self.why,
            "changes": [{"time": time.isoformat(), "state": to} for time, to in self.changes],
            "rule": repr(self.rule),
        }


class Alerts(tuple[Alert, ...], Result):
    """Alerts in the order of their rules; those that fire are `firing`."""

    __slots__ = ()

    @property
    def firing(self) -> Alerts:
        """Those that fire."""
        return Alerts(alert for alert in self if alert.firing)

    def to_dict(self) -> dict[Any, Any]:
        """Return each alert in plain Python by its name."""
        return {alert.name: alert.to_dict() for alert in self}

    def _table(self) -> Table:
        columns = ("state", "since", "value", "low", "high", "rows", "why")
        return Table(
            {"alert": [alert.name for alert in self]},
            {name: [getattr(alert, name) for alert in self] for name in columns},
        )

    def __repr__(self) -> str:
        titles = ("alert", "state", "since", "why")
        lines = [titles, *((a.name, a.state, _short(a.since), a.why) for a in self)]
        widths = [max(len(line[place]) for line in lines) for place in range(3)]
        return "\n".join(
            "  ".join([*(text.ljust(w) for text, w in zip(line, widths, strict=False)), line[3]])
            for line in lines
        )


def alert_of(rule: Rule, moments: Iterable[Moment], reach: int) -> Alert:
    """Return what moments come to, the oldest first; `reach` is how long it has to be bad.

    An alert that fires goes on until all is good again, or there is no data.
    """
    state: State = "no data"
    changes: list[tuple[datetime, State]] = []
    began: int | None = None  # when it began to be bad
    last: Moment | None = None
    why = "nothing was judged yet"
    for moment in moments:
        before = state
        if moment.verdict == "bad":
            began = moment.end if began is None else began
            if moment.end - began >= reach:
                state = "firing"
            elif state == "no data":
                state = "ok"
        else:
            began = None
            if moment.verdict == "no data":
                state = "no data"
            elif moment.verdict == "good" or state != "firing":
                state = "ok"
        if state != before:
            changes.append((_time(moment.end), state))
        if state != before or state != "firing":
            why = moment.told
        last = moment
    if state == "firing" and last is not None and last.told != why:
        why = f"{why}; now {last.told}"
    since = changes[-1][0] if changes else None
    if last is None:
        nan = math.nan
        return Alert(rule.title, state, None, None, nan, nan, nan, 0, why, (), rule)
    end, _, value, low, high, rows, _ = last
    return Alert(
        rule.title, state, since, _time(end), value, low, high, rows, why, tuple(changes), rule
    )


def _time(nanoseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1000)


def _short(time: datetime | None) -> str:
    return "" if time is None else f"{time:%Y-%m-%d %H:%M:%S}Z"
