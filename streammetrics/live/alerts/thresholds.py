"""Rules that compare a metric with a number: below it, above it, and budgets that burn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streammetrics.core.configured import require
from streammetrics.live.alerts.rule import MetricRule, Moment, Reading, metric_of, reading_of
from streammetrics.live.time import duration

if TYPE_CHECKING:
    from datetime import timedelta

    from streammetrics.core.mergeable import Mergeable
    from streammetrics.live.alerts.rule import Verdict

__all__ = ["Above", "Below", "BurnRate"]


class _Threshold(MetricRule):
    """A metric on the wrong side of a threshold, over one window."""

    metric: str
    threshold: float
    window: str = "1h"
    clear: float | None = None

    def __init__(
        self,
        metric: str,
        threshold: float,
        *,
        window: str | timedelta = "1h",
        min_rows: int = 1,
        for_: str | timedelta | None = None,
        clear: float | None = None,
        after: str | timedelta | None = None,
        name: str = "",
    ) -> None:
        self._configure(
            metric=metric,
            threshold=threshold,
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

    def _moment(self, end: int, reading: Reading, bad: bool, good: bool) -> Moment:
        verdict: Verdict = "bad" if bad else "good" if good else "between"
        told = f"{self.metric} {reading.value:.6g} of {reading.rows:,} rows"
        if reading.low < reading.high:
            told += f", certainly in [{reading.low:.6g}, {reading.high:.6g}]"
        told += f", the threshold is {self.threshold:g}"
        if reading.rows < self.min_rows or not reading.known:
            verdict, told = "no data", f"{reading.rows:,} rows"
        return Moment(end, verdict, *reading, told)


class Below(_Threshold):
    """Fires where a metric certainly is below a threshold.

    It goes by `bounds`, not by the value: where memory was too short for the exact one, the whole
    interval has to be below. Chance is another matter: a metric of few rows is below often, so
    ask for many (`min_rows`) or for a time (`for_`), or use `Change`.

    Args:
        metric: Its name in the set; ``"value"`` where there is one metric only.
        threshold: The number.
        window: Over how long the metric is read.
        min_rows: Of fewer rows nothing is said: the state is "no data".
        for_: How long it has to be so before the alert fires.
        clear: What the metric has to reach for the alert to end; without it, the threshold.
        after: How long after its end a window is judged, see `Live.alerts`.
        name: What the alert is called.

    Example:
        >>> import streammetrics as sm
        >>> live = sm.Live(sm.MetricSet({"accuracy": sm.Accuracy()}))
        >>> _ = live.observe(time=range(0, 7200, 60), y_true=[1, 0] * 60, y_pred=[1, 1] * 60)
        >>> (alert,) = live.alerts([sm.Below("accuracy", 0.8, window="1h", min_rows=50)])
        >>> alert.state, alert.value, alert.rows
        ('firing', 0.5, 60)
    """

    def check_parameters(self) -> None:
        """Check that an alert that cleared does not fire at once."""
        super().check_parameters()
        require(self, "clear", self.clear is None or self.clear >= self.threshold, "no less")

    def compare(self, end: int, readings: tuple[Reading, ...]) -> Moment:
        """Compare the upper bound with the threshold, the lower one with what clears."""
        (reading,) = readings
        clear = self.threshold if self.clear is None else self.clear
        return self._moment(end, reading, reading.high < self.threshold, reading.low >= clear)

    def _says(self) -> str:
        return f"{self.metric} below {self.threshold:g} over {self.window}"


class Above(_Threshold):
    """Fires where a metric certainly is above a threshold: `Below` the other way round.

    Parameters are those of `Below`.

    Example:
        >>> import streammetrics as sm
        >>> live = sm.Live(sm.Mean())
        >>> _ = live.observe(time=range(0, 7200, 60), values=range(120))
        >>> live.alerts([sm.Above("value", 50, window="10min")]).firing[0].name
        'value above 50 over 10min'
    """

    def check_parameters(self) -> None:
        """Check that an alert that cleared does not fire at once."""
        super().check_parameters()
        require(self, "clear", self.clear is None or self.clear <= self.threshold, "no more")

    def compare(self, end: int, readings: tuple[Reading, ...]) -> Moment:
        """Compare the lower bound with the threshold, the upper one with what clears."""
        (reading,) = readings
        clear = self.threshold if self.clear is None else self.clear
        return self._moment(end, reading, reading.low > self.threshold, reading.high <= clear)

    def _says(self) -> str:
        return f"{self.metric} above {self.threshold:g} over {self.window}"


# The SRE workbook's: the share of a 30 days' budget that is gone once the long window is full.
_FACTORS = {"1h": 14.4, "6h": 6.0, "1d": 3.0, "3d": 1.0}


class BurnRate(MetricRule):
    """Fires where errors burn their budget too fast, over a long window and a short one.

    With an objective of 0.95, 0.05 of the rows may be wrong; an error rate of 0.10 burns this
    budget at a rate of 2. The long window says that it matters, the short one that it still goes
    on: the alert ends soon after the errors do.

    Args:
        metric: A share of rows that are right (accuracy, recall), or wrong, as the metric's
            `higher_is_better` says.
        objective: The share that should be right.
        windows: The long window and the short one.
        factor: The rate that is too fast. By default the workbook's, for long windows of ``"1h"``
            (14.4: 2 % of a month's budget), ``"6h"`` (6: 5 %), ``"1d"`` (3: 10 %) and ``"3d"``
            (1: 10 %).
        min_rows: Of fewer rows in either window nothing is said.
        for_: How long it has to be so before the alert fires.
        after: How long after their end windows are judged, see `Live.alerts`.
        name: What the alert is called.

    Reference: Beyer et al., The Site Reliability Workbook (2018), chapter 5.

    Example:
        >>> import streammetrics as sm
        >>> live = sm.Live(sm.MetricSet({"accuracy": sm.Accuracy()}))
        >>> _ = live.observe(time=range(0, 7200, 60), y_true=[1, 0] * 60, y_pred=[1, 1] * 60)
        >>> rule = sm.BurnRate("accuracy", objective=0.99, windows=("1h", "5min"))
        >>> live.alerts([rule])[0].value  # times as fast as the budget allows
        50.0
    """

    metric: str
    objective: float
    windows: Any = ("1h", "5min")
    factor: float | None = None

    def __init__(
        self,
        metric: str,
        objective: float,
        *,
        windows: tuple[str | timedelta, str | timedelta] = ("1h", "5min"),
        factor: float | None = None,
        min_rows: int = 1,
        for_: str | timedelta | None = None,
        after: str | timedelta | None = None,
        name: str = "",
    ) -> None:
        if isinstance(windows, str) or len(windows) != 2:
            raise ValueError(
                f'windows={windows!r}: expected a long and a short one, ("1h", "5min")'
            )
        self._configure(
            metric=metric,
            objective=objective,
            windows=windows,
            factor=factor,
            min_rows=min_rows,
            for_=for_,
            after=after,
            name=name,
        )

    def check_parameters(self) -> None:
        """Check that there is a budget, and a rate."""
        super().check_parameters()
        require(self, "objective", 0 < self.objective < 1, "a share between 0 and 1")
        long, short = self.lengths
        require(self, "windows", long > short, "the long window first")
        require(self, "factor", self.factor is None or self.factor > 0, "a rate above 0")
        known = self.windows[0] in _FACTORS
        require(self, "factor", known or self.factor is not None, "a rate, for such a long window")

    @property
    def lengths(self) -> tuple[int, ...]:
        """The long window and the short one."""
        return tuple(duration(window, "windows") for window in self.windows)

    def check(self, suite: Mergeable) -> None:
        """Check that the metric says what is an error."""
        if metric_of(suite, self.metric).higher_is_better is None:
            raise ValueError(f"{self.metric} is no share of rows that are right, or wrong")

    def judge(self, end: int, windows: tuple[Any, ...]) -> Moment:
        """Read how fast the budget burns."""
        right = windows[0].higher_is_better
        every = (self.burnt(reading_of(window, self.metric), right=right) for window in windows)
        return self.compare(end, tuple(every))

    def compare(self, end: int, readings: tuple[Reading, ...]) -> Moment:
        """Compare the rates at which both windows burn the budget with the factor."""
        long, short = readings
        if any(r.rows < self.min_rows or not r.known for r in readings):
            return Moment(end, "no data", rows=long.rows, told=f"{short.rows:,} rows")
        factor = self.factor or _FACTORS[self.windows[0]]
        bad = all(burn.low >= factor for burn in readings)
        good = any(burn.high < factor for burn in readings)
        rates = " and ".join(
            f"{burn.value:.3g} over {window}"
            for burn, window in zip(readings, self.windows, strict=True)
        )
        told = f"burns {rates} times as fast as allowed, {factor:g} is too fast"
        return Moment(end, "bad" if bad else "good" if good else "between", *long, told)

    def burnt(self, reading: Reading, *, right: bool) -> Reading:
        """Return how many times as fast as allowed a share of rows, right or wrong, burns."""
        budget = 1 - self.objective
        value, low, high, rows = reading
        if right:
            value, low, high = 1 - value, 1 - high, 1 - low
        rate = [round(side / budget, 12) for side in (value, low, high)]
        return Reading(rate[0], rate[1], rate[2], rows)

    def _says(self) -> str:
        return f"{self.metric} burns the budget of {self.objective:g} over {self.windows[0]}"
