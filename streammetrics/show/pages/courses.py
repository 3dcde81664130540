"""A live state over time, as a report tells it: newest windows, a series, labels, alerts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streammetrics.live.coverage import TOLD
from streammetrics.live.reading import numbers_of
from streammetrics.live.time import duration, shown_duration
from streammetrics.show.grids import Grid
from streammetrics.show.report import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from streammetrics.core.results.values import Interval
    from streammetrics.core.types import Document
    from streammetrics.live.alerts.rule import Rule
    from streammetrics.live.alerts.states import Alerts
    from streammetrics.live.coverage import Coverage
    from streammetrics.live.live import Live
    from streammetrics.live.series import Series
    from streammetrics.live.tiers import Tier

_WINDOWS = ("1h", "1d", "7d", "28d")  # that are told of, where they are kept
_STEPS = ("1min", "5min", "15min", "1h", "3h", "6h", "12h", "1d", "7d", "28d")
_POINTS = 60  # of a series, at most about so many


@dataclass(frozen=True)
class Window:
    """A window that ends now: its numbers, what they may be with all labels, and its labels."""

    n_rows: int
    values: Mapping[str, tuple[float, float, float]]
    possible: Mapping[str, Interval | None]
    coverage: Coverage


@dataclass(frozen=True)
class Course:
    """What a live state went through.

    Attributes:
        every: How long each window of the series is.
        series: All windows since the first event that is kept.
        windows: Those that end now, by their length.
        alerts: How the rules stand that there are.
    """

    every: str
    series: Series
    windows: Mapping[str, Window]
    alerts: Alerts

    def grids(self, of: str) -> Iterator[Grid]:
        """Yield what there is to say as tables."""
        names = list(dict.fromkeys(name for each in self.windows.values() for name in each.values))
        values = [
            (length, f"{each.n_rows:,}", *(number(each.values[name][0]) for name in names))
            for length, each in self.windows.items()
        ]
        yield Grid(f"Newest windows{of}", ("Window", "Rows", *names), values)
        if any(each.coverage.predicted for each in self.windows.values()):
            yield from self._labels(of, names)
        if self.alerts:
            lines: list[tuple[str, ...]] = [
                (each.name, each.state, _moment(each.since), each.why) for each in self.alerts
            ]
            header = ("Alert", "State", "Since (UTC)", "Why")
            yield Grid(f"Alerts{of}", header, lines, frozenset(range(4)))

    def _labels(self, of: str, names: Sequence[str]) -> Iterator[Grid]:
        header = tuple(f"Last {length}" for length in self.windows)
        found = [each.coverage for each in self.windows.values()]
        counts: list[tuple[str, ...]] = [
            (kind, *(f"{getattr(each, kind):,}" for each in found))
            for kind in TOLD
            if any(getattr(each, kind) for each in found)
        ]
        share = ("share labelled", *(f"{each.coverage:.1%}" for each in found))
        yield Grid(f"Labels of predictions{of}", ("Predictions", *header), [*counts, share])
        some = {n: each.possible for n, each in self.windows.items() if any(each.possible.values())}
        if some:
            lines: list[tuple[str, ...]] = [
                (name, *(_between(possible[name]) for possible in some.values())) for name in names
            ]
            title = f"What values may be once all labels are there{of}"
            yield Grid(title, ("Metric", *(f"Last {length}" for length in some)), lines)

    def document(self) -> Document:
        """Return the same for machines, in full."""
        windows = {
            length: {
                "n_rows": each.n_rows,
                "metrics": {
                    name: {
                        "value": value,
                        "low": low,
                        "high": high,
                        "possible": each.possible[name],
                    }
                    for name, (value, low, high) in each.values.items()
                },
                "coverage": each.coverage._asdict(),
            }
            for length, each in self.windows.items()
        }
        alerts = [each.to_dict() for each in self.alerts]
        return {"windows": windows, "every": self.every, "series": self.series, "alerts": alerts}


def course_of(live: Live, rules: Sequence[Rule]) -> Course:
    """Read the windows of a live state, and how its rules stand."""
    begin, end = live._since()
    place, panes = _step(live._config.tiers, begin, end)
    every = shown_duration(panes * live._config.tiers[place].length)
    series = live._course(place, panes, begin)
    return Course(every, series, dict(_windows(live, end - begin)), live.alerts(rules))


def _windows(live: Live, lasted: int) -> Iterator[tuple[str, Window]]:
    """Yield the windows that are kept, up to the first one that holds all there is."""
    for length in _WINDOWS:
        try:
            window = live.window(length)
        except ValueError:  # no tier has it
            continue
        values = numbers_of(window)
        possible = live.possible(length)
        if not isinstance(possible, dict):
            possible = dict.fromkeys(values, possible)
        yield length, Window(window.n_rows, values, possible, live.coverage(length))
        if duration(length, "window") >= lasted:
            return


def _step(tiers: Sequence[Tier], begin: int, end: int) -> tuple[int, int]:
    """Return the tier of a series and how many panes a window is, so that its points are few."""
    reaching = [at for at, tier in enumerate(tiers) if tier.start(tier.oldest(end)) <= begin]
    place = min(reaching, default=len(tiers) - 1)
    length = tiers[place].length
    steps = sorted({length, *(duration(step, "every") for step in _STEPS)})
    fitting = [step for step in steps if step % length == 0]
    few = [step for step in fitting if end - begin <= _POINTS * step]
    return place, (few or fitting[-1:])[0] // length


def _moment(time: datetime | None) -> str:
    return f"{time:%Y-%m-%d %H:%M}" if time else ""


def _between(limits: Interval | None) -> str:
    return "" if limits is None else f"{number(limits.low)} .. {number(limits.high)}"
