"""The alert rules: thresholds, error budgets, silence, label coverage and drift."""

from __future__ import annotations

import hashlib
import math
import os
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from streammetrics.core.configured import require
from streammetrics.core.constraints import Between, Share
from streammetrics.core.errors import an
from streammetrics.core.loading import from_bytes, load
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.metric_set import MetricSet
from streammetrics.live.alerts.change import (
    by_title,
    check_limits,
    columns_of,
    limits_by_slice,
)
from streammetrics.live.alerts.rule import (
    Moment,
    Reading,
    Rule,
    WindowRule,
    metric_of,
    reading_of,
)
from streammetrics.live.events import duration
from streammetrics.live.samples import (
    Method,
    chance_of,
    distance_of,
    statistic_in,
    together,
    values_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from streammetrics.core.types import Ints
    from streammetrics.live.alerts.rule import Verdict, View

    Ends = Ints
    from streammetrics.live.panes import Coverage as CoverageCounts


class _OneWindow(WindowRule):
    """A rule that judges windows of one length."""

    window: str = "1h"

    @property
    def lengths(self) -> tuple[int, ...]:
        """The length of the window."""
        return (duration(self.window, "window"),)


class _Threshold(_OneWindow):
    """Fires if a value is on the wrong side of a threshold."""

    clear: float | None = None

    def _moment(self, end: int, reading: Reading, bad: bool, good: bool, why: str) -> Moment:
        """Return the verdict on a window, "no data" if it has too few rows."""
        if reading.rows < self.min_rows or not reading.known:
            return Moment(end, "no data", *reading, f"{reading.rows:,} rows")
        verdict: Verdict = "bad" if bad else "good" if good else "between"
        return Moment(end, verdict, *reading, why)


class _MetricThreshold(_Threshold):
    """Fires if a metric is on the wrong side of a threshold."""

    side: ClassVar[Literal["below", "above"]]  # the wrong side

    metric: str
    threshold: float
    by: Any = None
    level: float = 0.999

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
        by: str | Sequence[str] | None = None,
        level: float = 0.999,
        name: str = "",
    ) -> None:
        by = columns_of(by)
        self._configure(locals())

    def check_parameters(self) -> None:
        """Check that the threshold is finite, and that `clear` is on its good side."""
        super().check_parameters()
        require(self, "threshold", math.isfinite(self.threshold), "a finite number")
        apart = 0.0 if self.clear is None else self.clear - self.threshold
        good, told = (apart >= 0, "no less") if self.side == "below" else (apart <= 0, "no more")
        require(self, "clear", good, told)
        require(self, "level", 0.5 <= self.level < 1, "a share from 0.5 to below 1")

    def check(self, suite: Mergeable) -> None:
        """Check that the metric exists, and has confidence limits if it is judged by slice."""
        metric = metric_of(suite, self.metric)
        if self.by is not None:
            check_limits(metric, self.metric)

    def line(self, suite: Mergeable) -> tuple[str, float]:
        """Return the metric and the threshold."""
        return self.metric, self.threshold

    def judge(self, end: int, windows: tuple[object, ...]) -> Moment:
        """Compute the metric and compare it."""
        if self.by is not None:
            return self._of_slices(end, windows[0])
        return self.compare(end, reading_of(windows[0], self.metric))

    def _of_slices(self, end: int, slices: Any) -> Moment:
        """Compare the limits of each slice with the threshold, and report the worst slice."""
        clear = self.threshold if self.clear is None else self.clear
        below = self.side == "below"
        every, n = limits_by_slice(
            slices, self.metric, self.min_rows, self.level, reach=clear, below=below
        )
        if not every:
            return Moment(end, "no data", told=f"no slice has {self.min_rows:,} rows and a value")
        worst = every[0]
        bad = sum(one.beyond(self.threshold, below=below) for one in every)
        good = not worst.beyond(clear, below=below)
        told = (
            f"{self.metric} {worst.value:.6g} of {worst.rows:,} rows in {worst.title}, in "
            f"[{worst.low:.4g}, {worst.high:.4g}] at {self.level:g} for all slices; "
            f"{self.side} {self.threshold:g}: {bad:,} of {n:,} slices"
        )
        verdict: Verdict = "bad" if bad else "good" if good else "between"
        return Moment(end, verdict, worst.value, worst.low, worst.high, worst.rows, told)

    def compare(self, end: int, reading: Reading) -> Moment:
        """Compare the bound on the good side with the threshold, and the other one with `clear`."""
        clear = self.threshold if self.clear is None else self.clear
        if self.side == "below":
            bad, good = reading.high < self.threshold, reading.low >= clear
        else:
            bad, good = reading.low > self.threshold, reading.high <= clear
        why = f"{self.metric} {reading.value:.6g} of {reading.rows:,} rows"
        if reading.low < reading.high:
            why += f", certainly in [{reading.low:.6g}, {reading.high:.6g}]"
        return self._moment(end, reading, bad, good, f"{why}, the threshold is {self.threshold:g}")

    def _says(self) -> str:
        return f"{self.metric} {self.side} {self.threshold:g} over {self.window}{by_title(self.by)}"


class Below(_MetricThreshold):
    """Fires if a metric is certainly below a threshold.

    Compares `bounds`, not the value: where memory limits make a value inexact, its whole interval
    has to be below the threshold. This does not account for chance. A metric of few rows is often
    below a threshold, so require many rows (`min_rows`) or a duration (`for_`), or use `Change`.

    Args:
        metric: The metric's name in the set; ``"value"`` for a single metric.
        threshold: The threshold.
        window: The window over which the metric is computed.
        min_rows: Minimum rows in a window; with fewer, the state is "no data".
        for_: How long the metric has to be below the threshold before the alert fires.
        clear: The value that the metric has to reach for the alert to end; defaults to the
            threshold.
        after: How long after its end a window is judged, see `Live.alerts`.
        by: The columns of a kind of slices, each of which is judged by its confidence limit.
        level: The level at which the limits of all slices of a window hold together (Bonferroni),
            with `by`.
        name: The name of the alert.

    Example:
        >>> import streammetrics as sm
        >>> live = sm.Live(sm.MetricSet({"accuracy": sm.Accuracy()}))
        >>> _ = live.observe(time=range(0, 7200, 60), y_true=[1, 0] * 60, y_pred=[1, 1] * 60)
        >>> (alert,) = live.alerts([sm.Below("accuracy", 0.8, window="1h", min_rows=50)])
        >>> alert.state, alert.value, alert.rows
        ('firing', 0.5, 60)
    """

    side = "below"
    __init__ = _MetricThreshold.__init__  # or type checkers derive one of keywords


class Above(_MetricThreshold):
    """Fires if a metric is certainly above a threshold; the mirror image of `Below`.

    Parameters are those of `Below`.

    Example:
        >>> import streammetrics as sm
        >>> live = sm.Live(sm.Mean())
        >>> _ = live.observe(time=range(0, 7200, 60), values=range(120))
        >>> live.alerts([sm.Above("value", 50, window="10min")]).firing[0].name
        'value above 50 over 10min'
    """

    side = "above"
    __init__ = _MetricThreshold.__init__  # or type checkers derive one of keywords


# From the SRE workbook: burn rates that alert after 2, 5, 10 and 10 % of a 30-day budget.
_FACTORS = {"1h": 14.4, "6h": 6.0, "1d": 3.0, "3d": 1.0}


class BurnRate(WindowRule):
    """Fires if errors use up their budget too fast, over both a long and a short window.

    With an objective of 0.95, 5 % of the rows may be wrong; an error rate of 0.10 burns this budget
    at a rate of 2. The long window shows that the burn matters, the short window that it continues,
    so that the alert ends soon after the errors do.

    Args:
        metric: The share of rows that are right (accuracy, recall) or wrong; the metric's
            `higher_is_better` says which.
        objective: The share of rows that should be right.
        windows: The long window and the short window.
        factor: The burn rate that is too fast. The default is the workbook's, for long windows of
            ``"1h"`` (14.4: 2 % of a month's budget), ``"6h"`` (6: 5 %), ``"1d"`` (3: 10 %) and
            ``"3d"`` (1: 10 %).
        min_rows: Minimum rows in each window; with fewer, the state is "no data".
        for_: How long the burn rate has to be too fast before the alert fires.
        after: How long after their end windows are judged, see `Live.alerts`.
        name: The name of the alert.

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
        self._configure(locals())

    def check_parameters(self) -> None:
        """Check the objective, the windows and the factor."""
        super().check_parameters()
        require(self, "objective", 0 < self.objective < 1, "a share between 0 and 1")
        long, short = self.lengths
        require(self, "windows", long > short, "the long window first")
        require(self, "factor", self.factor is None or self.factor > 0, "a rate above 0")
        known = self.windows[0] in _FACTORS
        require(self, "factor", known or self.factor is not None, "a rate, for a window this long")

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths of the long and the short window."""
        return tuple(duration(window, "windows") for window in self.windows)

    @property
    def limit(self) -> float:
        """The burn rate that is too fast."""
        return self.factor or _FACTORS[self.windows[0]]

    def line(self, suite: Mergeable) -> tuple[str, float]:
        """Return the metric, and its value at which the budget burns too fast."""
        wrong = self.limit * (1 - self.objective)
        return self.metric, 1 - wrong if metric_of(suite, self.metric).higher_is_better else wrong

    def check(self, suite: Mergeable) -> None:
        """Check that the metric defines which way is better."""
        if metric_of(suite, self.metric).higher_is_better is None:
            raise ValueError(f"{self.metric} is not the share of right or wrong rows")

    def judge(self, end: int, windows: tuple[Any, ...]) -> Moment:
        """Compute the burn rates and compare them."""
        right = windows[0].higher_is_better
        every = (self.burnt(reading_of(window, self.metric), right=right) for window in windows)
        return self.compare(end, tuple(every))

    def compare(self, end: int, readings: tuple[Reading, ...]) -> Moment:
        """Compare the burn rates of both windows with the factor."""
        long, short = readings
        if any(r.rows < self.min_rows or not r.known for r in readings):
            return Moment(end, "no data", rows=long.rows, told=f"{short.rows:,} rows")
        factor = self.limit
        bad = all(burn.low >= factor for burn in readings)
        good = any(burn.high < factor for burn in readings)
        rates = " and ".join(
            f"{burn.value:.3g} over {window}"
            for burn, window in zip(readings, self.windows, strict=True)
        )
        told = f"burns {rates} times as fast as allowed, {factor:g} is too fast"
        return Moment(end, "bad" if bad else "good" if good else "between", *long, told)

    def burnt(self, reading: Reading, *, right: bool) -> Reading:
        """Return the burn rate of a share of rows, which are right or wrong."""
        budget = 1 - self.objective
        value, low, high, rows = reading
        if right:
            value, low, high = 1 - value, 1 - high, 1 - low
        rate = [round(side / budget, 12) for side in (value, low, high)]
        return Reading(rate[0], rate[1], rate[2], rows)

    def _says(self) -> str:
        return f"{self.metric} burns the budget of {self.objective:g} over {self.windows[0]}"


class Coverage(_Threshold):
    """Fires if too small a share of the predictions has a label.

    Args:
        least: The minimum share of the predictions of a window that have a label.
        window: The window.
        min_rows: Minimum predictions in a window; with fewer, the state is "no data".
        for_: How long the share has to be too small before the alert fires.
        clear: The share at which the alert ends; defaults to `least`.
        after: How long after its end a window is judged; by default, once no label can arrive in
            time any more. A shorter time, within which most labels arrive, alerts earlier.
        name: The name of the alert.

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
    window = "1d"
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
        self._configure(locals())

    def judge(self, end: int, windows: tuple[Any, ...]) -> Moment:
        """Compare the share of labelled predictions."""
        counted: CoverageCounts = windows[0]
        share, rows = counted.coverage, counted.predicted
        why = f"{counted.labelled:,} of {rows:,} predictions have their label"
        clear = self.least if self.clear is None else self.clear
        return self._moment(
            end,
            Reading(share, share, share, rows),
            share < self.least,
            share >= clear,
            f"{why}, the least share is {self.least:g}",
        )

    def _says(self) -> str:
        return f"labels of less than {self.least:g} over {self.window}"


class Silence(Rule):
    """Fires if no prediction or observation has arrived for a given duration.

    The current time comes from `Live.now`. Without it, time is that of the newest event, and the
    rule never fires. For past times, only panes with events are known; the rule counts as firing
    where it certainly would have.

    Args:
        length: The maximum time without events.
        name: The name of the alert.

    Example:
        >>> import streammetrics as sm
        >>> live = sm.Live(sm.Mean()).observe(time=1_700_000_000, values=1.0)
        >>> live.now(1_700_000_900).alerts([sm.Silence("10min")])[0].state
        'firing'
    """

    length: str

    def __init__(self, length: str | timedelta, *, name: str = "") -> None:
        self._configure(locals())

    def moments(self, view: View) -> Callable[[], list[Moment]]:
        """Return when events arrived and when they stopped, as precisely as the panes show it."""
        newest, now, runs = view.newest, view.now or view.clock, view.busy()
        return partial(self._moments, newest, now, runs)

    def _moments(self, newest: int, now: int, runs: Sequence[tuple[int, int]]) -> list[Moment]:
        length, age = duration(self.length, "length"), (now - newest) / 1e9
        seconds = f"{abs(age):,.0f} second{'s' * (round(abs(age)) != 1)}"
        told = f"is {seconds} old" if round(age) >= 0 else f"lies {seconds} in the future"
        told = f"the newest event {told}, the limit is {self.length}"
        found: list[Moment] = []
        until = 0  # upper bound of event times in the runs so far
        for start, end in runs:
            if found and start - until > length:
                found.append(Moment(until + length, "bad", told=told))
            found.append(Moment(start, "good", told=told))
            until = max(until, end)
        if found and newest > found[-1].end:
            found.append(Moment(newest, "good", 0.0, 0.0, 0.0, 0, told))
        if found and now > newest + length:
            found.append(Moment(newest + length, "bad", age, age, age, 0, told))
        return found

    def _says(self) -> str:
        return f"no events for {self.length}"


_THRESHOLDS = {"ks": 0.1, "psi": 0.2, "js": 0.1}


class Drift(_OneWindow):
    """Fires if the values of a column in a window are far from those of a reference.

    The distance has to exceed both `threshold` and a noise floor. The noise floor is the distance
    that samples of this size from one distribution stay below in a share `level` of all windows. A
    PSI of 0.2 is meaningless for 200 rows in 10 bins, and a significant distance may still be too
    small to matter.

    The rule compares existing histograms: that of a declared input with a reference, of all rows;
    or those of a score metric, e.g. `ROCAUC`, or of a `Quantile`, of the rows of the window: if
    predictions wait for labels, only of labelled rows.

    Args:
        reference: A metric set that has seen the reference rows, or a single metric of any column;
            or its bytes, or the path of a saved one.
        column: The name of the column of scores or values in events.
        method: ``"ks"``: `KSDistance`; ``"wasserstein"``; ``"psi"``: `PopulationStability` with a
            pseudo-count of 0.5; ``"js"``: `JensenShannon`.
        threshold: The distance that matters; defaults to 0.1 (``"ks"``, ``"js"``) or 0.2
            (``"psi"``). For ``"wasserstein"`` it has the unit of the values and is required.
        bins: The number of bins of ``"psi"`` and ``"js"``.
        level: The share of windows in which chance alone stays below the noise floor.
        window: The window.
        min_rows: Minimum rows in a window; with fewer, the state is "no data".
        for_: How long the distance has to be too large before the alert fires.
        after: How long after its end a window is judged, see `Live.alerts`.
        name: The name of the alert.

    Example:
        >>> import numpy as np
        >>> import streammetrics as sm
        >>> reference = sm.Quantile(q=0.5).update(np.linspace(0, 1, 1000))
        >>> live = sm.Live(sm.Quantile(q=0.5))
        >>> _ = live.observe(time=range(0, 7200, 10), values=np.linspace(0, 1, 720) ** 2)
        >>> rule = sm.Drift(reference, "values", method="ks", window="1h", min_rows=100)
        >>> alert = live.alerts([rule])[0]
        >>> alert.state, round(alert.value, 2)
        ('firing', 0.23)
    """

    column: str
    method: Method = "ks"
    threshold: float | None = None
    bins: Annotated[int, Between(2, 1000)] = 10
    level: float = 0.999
    reference: str = ""  # the digest of its state

    def __init__(
        self,
        reference: Mergeable | bytes | str | os.PathLike[str],
        column: str,
        *,
        method: Method = "ks",
        threshold: float | None = None,
        bins: int = 10,
        level: float = 0.999,
        window: str | timedelta = "1h",
        min_rows: int = 100,
        for_: str | timedelta | None = None,
        after: str | timedelta | None = None,
        name: str = "",
    ) -> None:
        if isinstance(reference, bytes):
            reference = from_bytes(reference)
        elif isinstance(reference, str | os.PathLike):
            reference = load(reference)
        if not isinstance(reference, Mergeable):
            raise TypeError(
                f"the reference is {an(type(reference).__name__)}, no metric and no set"
            )
        alone = not isinstance(reference, MetricSet)  # a single metric, with only one histogram
        self._reference = values_in(reference, None if alone else column)
        if self._reference.histogram is None:
            raise ValueError(f"the reference has seen no rows of {column!r}")
        threshold = _THRESHOLDS.get(method) if threshold is None else threshold
        reference = hashlib.sha256(reference.to_bytes()).hexdigest()[:16]
        self._configure(locals())

    def check_parameters(self) -> None:
        """Check the threshold and the level."""
        super().check_parameters()
        known = self.threshold is not None and self.threshold >= 0
        require(self, "threshold", known, "a distance, 0 or above, in the unit of the values")
        require(self, "level", 0.5 <= self.level < 1, "a share from 0.5 to below 1")

    def check(self, suite: Mergeable) -> None:
        """Check that the suite has a histogram of the column, on the scale of the reference."""
        if values_in(suite, self.column).logits != self._reference.logits:
            raise ValueError(f"{self.column!r} holds logits in one of reference and stream only")

    def part(self, suite: Mergeable) -> Mergeable:
        """Return the metric with only the histogram, if there is one, otherwise the suite."""
        every: Any = suite.values() if isinstance(suite, MetricSet) else ()
        wanted = statistic_in(suite, self.column)
        key = wanted._key, wanted.schema
        return next((one for one in every if [*one._plan.places] == [key]), suite)

    def judge(self, end: int, windows: tuple[Any, ...]) -> Moment:
        """Compare the distance with the threshold and the noise floor."""
        several = isinstance(windows[0], MetricSet)
        current = values_in(windows[0], self.column if several else None).histogram
        rows = int(windows[0].n_rows)
        if current is None or rows < self.min_rows:
            return Moment(end, "no data", rows=rows, told=f"{rows:,} rows")
        reference: Any = self._reference.histogram  # not None, as the constructor has checked
        samples = together(reference, current)
        value, low, high = distance_of(samples, self.method, self.bins)
        floor = chance_of(samples, self.method, self.bins, self.level)
        threshold = float(self.threshold or 0.0)
        least = max(floor, threshold)
        verdict: Verdict = "bad" if low > least else "good" if high <= least else "between"
        told = (
            f"{self.method} {value:.4g} of {self.column} over {rows:,} rows; matters from "
            f"{threshold:g}, chance stays below {floor:.4g}"
        )
        return Moment(end, verdict, value, low, high, rows, told)

    def _says(self) -> str:
        return f"drift of {self.column} by {self.method} over {self.window}"
