"""Rules about what does not come: labels, and events."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from streammetrics.core.constraints import Share
from streammetrics.live.alerts.rule import Moment, Rule, WindowRule
from streammetrics.live.time import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from streammetrics.live.alerts.rule import Verdict
    from streammetrics.live.alerts.view import View
    from streammetrics.live.coverage import Coverage as Counted

__all__ = ["Coverage", "Silence"]


class Coverage(WindowRule):
    """Fires where less than a share of the predictions have their label.

    Args:
        least: The share of the predictions of a window that should have their label.
        window: The window.
        min_rows: Of fewer predictions nothing is said.
        for_: How long it has to be so before the alert fires.
        clear: The share at which the alert ends; without it, `least`.
        after: How long after its end a window is judged: by default once no label in time can
            still come. A shorter time, in which most labels come, tells earlier.
        name: What the alert is called.

    Example:
        >>> import streammetrics as sm
        >>> live = sm.Live(sm.MetricSet({"auc": sm.ROCAUC()}), label_ttl="1h", label_lateness="1h")
        >>> for second in range(0, 20_000, 20):
        ...     _ = live.predict(id=second, time=second, y_score=0.5)
        >>> live.alerts([sm.Coverage(0.9, window="1h")])[0].value
        0.0
    """

    counted = True

    least: Share
    window: str = "1d"
    clear: Share | None = None

    def __init__(
        self,
        least: float,
        *,
        window: str | timedelta = "1d",
        min_rows: int = 1,
        for_: str | timedelta | None = None,
        clear: float | None = None,
        after: str | timedelta | None = None,
        name: str = "",
    ) -> None:
        self._configure(
            least=least,
            window=window,
            min_rows=min_rows,
            for_=for_,
            clear=clear,
            after=after,
            name=name,
        )

    @property
    def lengths(self) -> tuple[int, ...]:
        """The one window."""
        return (duration(self.window, "window"),)

    def judge(self, end: int, windows: tuple[Any, ...]) -> Moment:
        """Compare the share of labelled predictions."""
        counted: Counted = windows[0]
        share, rows = counted.coverage, counted.predicted
        told = (
            f"{counted.labelled:,} of {rows:,} predictions have their label, {self.least:g} is due"
        )
        if rows < self.min_rows:
            return Moment(end, "no data", rows=rows, told=told)
        clear = self.least if self.clear is None else self.clear
        verdict: Verdict = "bad" if share < self.least else "good" if share >= clear else "between"
        return Moment(end, verdict, share, share, share, rows, told)

    def _says(self) -> str:
        return f"labels of less than {self.least:g} over {self.window}"


class Silence(Rule):
    """Fires where no prediction, nor observation, is younger than a duration.

    What time it is says `Live.now`; without it, the newest event does, and nothing is silent. Of
    the past it knows which panes have events: it was silent where it certainly was for so long.

    Args:
        length: How long nothing may come.
        name: What the alert is called.

    Example:
        >>> import streammetrics as sm
        >>> live = sm.Live(sm.Mean()).observe(time=1_700_000_000, values=1.0)
        >>> live.now(1_700_000_900).alerts([sm.Silence("10min")])[0].state
        'firing'
    """

    length: str

    def __init__(self, length: str | timedelta, *, name: str = "") -> None:
        self._configure(length=length, name=name)

    def moments(self, view: View) -> Callable[[], list[Moment]]:
        """Return when events came and when they did not, the past as far as panes tell it."""
        newest, clock, runs = view.newest, view.clock, view.busy()
        return partial(self._moments, newest, clock, runs)

    def _moments(self, newest: int, clock: int, runs: Sequence[tuple[int, int]]) -> list[Moment]:
        length, age = duration(self.length, "length"), (clock - newest) / 1e9
        seconds = f"{age:,.0f} second{'s' * (round(age) != 1)}"
        told = f"the newest event is {seconds} old, the limit is {self.length}"
        found: list[Moment] = []
        until = 0  # no event is later, of those of the runs before
        for start, end in runs:
            if found and start - until > length:
                found.append(Moment(until + length, "bad", told=told))
            found.append(Moment(start, "good", told=told))
            until = max(until, end)
        if found and newest > found[-1].end:
            found.append(Moment(newest, "good", 0.0, 0.0, 0.0, 0, told))
        if found and clock > newest + length:
            found.append(Moment(newest + length, "bad", age, age, age, 0, told))
        return found

    def _says(self) -> str:
        return f"no events for {self.length}"
