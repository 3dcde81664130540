"""The alert rules: thresholds, error budgets, changes, silence, label coverage and drift."""

from __future__ import annotations

import hashlib
import math
import os
import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.constraints import Between, Share
from streammetrics.core.errors import an
from streammetrics.core.fields.histograms import Weighed
from streammetrics.core.floating import own_arithmetic
from streammetrics.core.loading import from_bytes, load
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.metric_set import MetricSet
from streammetrics.inference.distributions import normal_quantile
from streammetrics.inference.tables import trials_of
from streammetrics.live.alerts.rule import (
    LastLook,
    Moment,
    Reading,
    Rule,
    WindowRule,
    metric_of,
    reading_of,
)
from streammetrics.live.events import DAY, duration
from streammetrics.metrics.drift import (
    JensenShannon,
    KSDistance,
    PopulationStability,
    Wasserstein,
    gaps_of,
)
from streammetrics.statistics.scores.histogram import ScoreHistogram
from streammetrics.statistics.scores.losses import SampleHistogram
from streammetrics.statistics.sums.values import ValueHistogram

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from streammetrics.core.types import Floats, Ints
    from streammetrics.live.alerts.rule import PaneRun, Parts, Reads, Verdict, View

    Ends = Ints
    from streammetrics.core.arithmetic.histogram import SortedHistogram
    from streammetrics.live.panes import Coverage as CoverageCounts
    from streammetrics.metrics.drift import SampleDistance


__all__ = [
    "Above",
    "Below",
    "BurnRate",
    "Change",
    "Coverage",
    "Drift",
    "Silence",
]


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

    def check_parameters(self) -> None:
        """Check that the threshold is finite, and that `clear` is on its good side."""
        super().check_parameters()
        require(self, "threshold", math.isfinite(self.threshold), "a finite number")
        apart = 0.0 if self.clear is None else self.clear - self.threshold
        good, told = (apart >= 0, "no less") if self.side == "below" else (apart <= 0, "no more")
        require(self, "clear", good, told)

    def part(self, suite: Mergeable) -> Mergeable:
        """Return the metric."""
        found: Mergeable = metric_of(suite, self.metric)
        return found

    def check(self, suite: Mergeable) -> None:
        """Check that the metric exists."""
        metric_of(suite, self.metric)

    def line(self, suite: Mergeable) -> tuple[str, float]:  # noqa: ARG002 - BurnRate reads it
        """Return the metric and the threshold."""
        return self.metric, self.threshold

    def judge(self, end: int, windows: tuple[object, ...]) -> Moment:
        """Compute the metric and compare it."""
        return self.compare(end, reading_of(windows[0], self.metric))

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
        return f"{self.metric} {self.side} {self.threshold:g} over {self.window}"


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

    def part(self, suite: Mergeable) -> Mergeable:
        """Return the metric."""
        found: Mergeable = metric_of(suite, self.metric)
        return found

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


_PERIODS = {"day": DAY, "week": 7 * DAY, "month": 30 * DAY, "year": 365 * DAY}
_OFTEN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s+an?\s+(day|week|month|year)\s*")
# Shifts of the log-odds of the rate, with one detector for each.
_SHIFTS = np.array([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2])


class Change(Rule):
    r"""Fires if a share of rows has left its baseline, with a bounded rate of false alarms.

    An e-detector: E_t is the likelihood ratio of the rows of pane t for a shifted share against the
    baseline. M_t = (M_{t-1} + 1) E_t sums the evidence of a change over all possible start times
    (Shiryaev-Roberts). The alert fires when the mean of M over several shifts reaches 1 / alpha.
    While the share stays at the baseline or better, M_t - t has no upward drift. The mean time to a
    false alarm is therefore at least 1 / alpha panes of the finest tier, however often the rule is
    evaluated and however many rows a pane has. Panes kept only by a coarser tier count as a single
    start time, which makes M smaller.

    M is capped at 1 / alpha. The alert continues until M falls to the square root of 1 / alpha.

    Args:
        metric: The name of a share of rows (accuracy, recall, an error rate) or of a Brier score in
            the set; its rows must have no weights.
        baseline: The value of the metric under normal conditions.
        false_alarms: The maximum mean rate of false alarms: ``"1 a year"``, ``"2 a month"``.
        tolerance: The deviation from the baseline that is acceptable. A baseline is never exact,
            and with many rows even a small error in it is detected.
        direction: ``"worse"``, by the metric's `higher_is_better`, ``"up"``, ``"down"`` or
            ``"both"``.
        after: How long after its end a pane is judged, see `Live.alerts`.
        name: The name of the alert.

    Raises:
        ValueError: Raised by `Live.alerts` if the metric is not a share of rows.

    Reference: Shin, Ramdas, Rinaldo, E-detectors: a nonparametric framework for sequential change
        detection (2024).

    Example:
        >>> import streammetrics as sm
        >>> live = sm.Live(sm.MetricSet({"accuracy": sm.Accuracy()}))
        >>> times = range(0, 7200, 2)
        >>> right = [int(time % 10 > 0 and (time < 3600 or time % 6 > 0)) for time in times]
        >>> _ = live.observe(time=times, y_true=[1] * 3600, y_pred=right)
        >>> (alert,) = live.alerts([sm.Change("accuracy", baseline=0.8, false_alarms="1 a year")])
        >>> alert.state, f"{alert.since:%H:%M}"
        ('firing', '01:03')
    """

    metric: str
    baseline: float
    false_alarms: str = "1 a year"
    tolerance: Share = 0.0
    direction: Literal["worse", "up", "down", "both"] = "worse"
    after: str | None = None

    def __init__(
        self,
        metric: str,
        baseline: float,
        *,
        false_alarms: str = "1 a year",
        tolerance: float = 0.0,
        direction: str = "worse",
        after: str | timedelta | None = None,
        name: str = "",
    ) -> None:
        self._configure(
            metric=metric,
            baseline=baseline,
            false_alarms=false_alarms,
            tolerance=tolerance,
            direction=direction,
            after=after,
            name=name,
        )

    def check_parameters(self) -> None:
        """Check the baseline with its tolerance, and the rate of false alarms."""
        low, high = self.baseline - self.tolerance, self.baseline + self.tolerance
        require(self, "baseline", 0 < low <= high < 1, "a share that is neither 0 nor 1")
        found = _OFTEN.fullmatch(self.false_alarms)
        often = 'how many on average, as "1 a year" or "2 a month"'
        require(self, "false_alarms", found is not None and float(found[1]) > 0, often)

    def line(self, suite: Mergeable) -> tuple[str, float]:  # noqa: ARG002 - BurnRate reads it
        """Return the metric and the baseline."""
        return self.metric, self.baseline

    def check(self, suite: Mergeable) -> None:
        """Check that the metric is a share of rows, and defines which way is worse if needed."""
        metric = metric_of(suite, self.metric)
        try:
            trials_of(metric, *metric._read())
        except TypeError as error:
            raise ValueError(str(error)) from None
        if self.direction == "worse" and metric.higher_is_better is None:
            raise ValueError(f'{self.metric}: no way is worse: say direction="up", "down", "both"')

    def moments(self, view: View) -> Callable[[], list[Moment]]:
        """Judge the complete panes, starting with the oldest."""
        return partial(self._judged, view, view.lines(view.panes(self.after)))

    def _judged(self, view: View, runs: Sequence[tuple[Ends, PaneRun]]) -> list[Moment]:
        """Read the panes that have changed, and resume at the first of them."""
        reads = view.reads(metric_of(view.suite, self.metric))
        lines = tuple(line for _, line in runs)
        before: Sequence[PaneRun | None] = view.seen.lines
        known: Followed | None = view.seen.made
        if known is None or len(before) != len(lines):
            before, known = [None] * len(lines), None
        read = {} if known is None else dict(zip(known.ends, known.trials.tolist(), strict=True))
        ends: list[int] = []
        for (some, line), old in zip(runs, before, strict=True):
            changed = line.changed(old).tolist()
            for end, pane, other in zip(some.tolist(), line.panes, changed, strict=True):
                ends.append(end)
                if other or end not in read:
                    read[end] = _trials(reads, pane)
        table = np.array([read[end] for end in ends], np.float64).reshape(-1, 2)
        found = self.follow(ends, table, self.limit(view.tiers[0].length), self._ways(view), known)
        view.seen = LastLook(lines, found)
        return found.moments

    def _ways(self, view: View) -> tuple[int, ...]:
        """Return the directions of change to detect: 1 for up, -1 for down."""
        if self.direction == "worse":
            better = metric_of(view.suite, self.metric).higher_is_better
            return (-1,) if better else (1,)
        return {"up": (1,), "down": (-1,), "both": (1, -1)}[self.direction]

    def limit(self, pane: int) -> float:
        """Return 1 / alpha: the minimum mean number of panes until a false alarm."""
        found = _OFTEN.fullmatch(self.false_alarms)
        assert found is not None  # checked by check_parameters
        return max(_PERIODS[found[2]] / float(found[1]) / pane, 1.0)

    def follow(
        self,
        ends: list[int],
        trials: Floats,
        limit: float,
        ways: tuple[int, ...],
        known: Followed | None = None,
    ) -> Followed:
        """Return the evidence and the moment after each pane, from its successes and rows (n, 2).

        Results in `known` are reused up to the first pane that has changed.
        """
        known = known or Followed([], np.empty((0, 2)), [], [])
        evidence = _logs(self.baseline, self.tolerance, trials, ways)
        start, sizes = known.same_as(ends, trials), evidence.shape[1]
        sums, moments = known.sums[:start], known.moments[:start]
        last, total = (sums[-1] if sums else [0.0] * sizes), 0.0  # M for each shift, and their mean
        with np.errstate(over="ignore"):
            factors = np.exp(evidence[start:]).tolist()
        since = _likeliest(evidence, trials)[start:]
        for end, factor, rows in zip(ends[start:], factors, since, strict=True):
            if rows is not None:  # no change starts in a pane without rows
                last = [(m + 1) * f for m, f in zip(last, factor, strict=True)]
                total = math.fsum(last) / sizes
                if total > limit:
                    last = [min(m, limit * sizes) for m in last]
                    scale, total = limit * sizes / math.fsum(last), limit
                    last = [m * scale for m in last]
            moments.append(self._moment(end, total, limit, rows, moments))
            sums.append(last)
        return Followed(ends, trials, sums, moments)

    def _moment(
        self, end: int, total: float, limit: float, since: Since | None, before: list[Moment]
    ) -> Moment:
        """Return the moment for an amount of evidence."""
        if since is None:
            return before[-1]._replace(end=end) if before else Moment(end, "no data")
        verdict: Verdict = "good" if total <= math.sqrt(limit) else "between"
        if total >= limit:
            verdict = "bad"
        rate = since.success / since.rows
        told = (
            f"{self.metric} {rate:.4g} of the last {since.rows:,.0f} rows, not "
            f"{self.baseline:g}: evidence {total:.3g} of {limit:,.0f}"
        )
        return Moment(end, verdict, rate, rate, rate, int(since.rows), told)

    def _says(self) -> str:
        return f"{self.metric} changed from {self.baseline:g}"


def _trials(reads: Reads, parts: Parts) -> tuple[float, float]:
    """Return the successes and rows of a pane."""
    if not parts:
        return 0.0, 0.0
    metric = reads.of(parts)
    return trials_of(metric, *metric._read())


class Followed(NamedTuple):
    """Results per pane: end, trials (n, 2), evidence for each shift, and moment."""

    ends: list[int]
    trials: Floats
    sums: list[list[float]]
    moments: list[Moment]

    def same_as(self, ends: list[int], trials: Floats) -> int:
        """Return the number of leading panes that have not changed."""
        n = min(len(ends), len(self.ends))
        other = (trials[:n] != self.trials[:n]).any(axis=1)
        other |= np.array(ends[:n], np.int64) != np.array(self.ends[:n], np.int64)
        return int(other.argmax()) if other.any() else n


class Since(NamedTuple):
    """Successes and rows since the likeliest start of a change."""

    success: float
    rows: float


def _likeliest(evidence: Floats, trials: Floats) -> list[Since | None]:
    """Return for each pane the rows since the likeliest start; ``None`` if it has no rows."""
    sums = np.zeros((len(evidence) + 1, evidence.shape[1]))
    np.cumsum(evidence, axis=0, out=sums[1:])
    lowest = np.minimum.accumulate(sums, axis=0)
    places = np.where(sums <= lowest, np.arange(len(sums))[:, None], 0)
    begins = np.maximum.accumulate(places, axis=0)[:-1]
    best = np.argmax(sums[1:] - lowest[:-1], axis=1)
    begin = begins[np.arange(len(evidence)), best]
    counted = np.concatenate([np.zeros((1, 2)), np.cumsum(trials, axis=0)])
    found = counted[1:] - counted[begin]
    return [Since(*of) if n else None for of, n in zip(found.tolist(), trials[:, 1], strict=True)]


def _logs(baseline: float, tolerance: float, trials: Floats, ways: tuple[int, ...]) -> Floats:
    """Return log-likelihood ratios (panes, shifts) of shifted shares against the baseline.

    The ratio of a number in [0, 1] is convex in that number. If the mean of the numbers is the
    baseline, or lies on the other side of it, the mean ratio is therefore at most 1.
    """
    success, rows = trials[:, :1], trials[:, 1:]
    found = []
    for way in ways:
        p = baseline + way * tolerance
        odds = p / (1 - p) * np.exp(way * _SHIFTS)
        moved = odds / (1 + odds)
        up, down = np.log(moved / p), np.log((1 - moved) / (1 - p))
        found.append(success * up + (rows - success) * down)
    return np.concatenate(found, axis=1)


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
        self._configure(
            least=least,
            window=window,
            min_rows=min_rows,
            for_=for_,
            clear=clear,
            after=after,
            name=name,
        )

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
        self._configure(length=length, name=name)

    def moments(self, view: View) -> Callable[[], list[Moment]]:
        """Return when events arrived and when they stopped, as precisely as the panes show it."""
        newest, clock, runs = view.newest, view.clock, view.busy()
        return partial(self._moments, newest, clock, runs)

    def _moments(self, newest: int, clock: int, runs: Sequence[tuple[int, int]]) -> list[Moment]:
        length, age = duration(self.length, "length"), (clock - newest) / 1e9
        seconds = f"{age:,.0f} second{'s' * (round(age) != 1)}"
        told = f"the newest event is {seconds} old, the limit is {self.length}"
        found: list[Moment] = []
        until = 0  # upper bound of event times in the runs so far
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


Method = Literal["ks", "wasserstein", "psi", "js"]

_THRESHOLDS = {"ks": 0.1, "psi": 0.2, "js": 0.1}


class Drift(_OneWindow):
    """Fires if the values of a column in a window are far from those of a reference.

    The distance has to exceed both `threshold` and a noise floor. The noise floor is the distance
    that samples of this size from one distribution stay below in a share `level` of all windows. A
    PSI of 0.2 is meaningless for 200 rows in 10 bins, and a significant distance may still be too
    small to matter.

    The rule compares existing histograms: those of a score metric, e.g. `ROCAUC`, or of a
    `Quantile`. It therefore sees the rows of the window; if predictions wait for labels, only
    labelled rows. To monitor all rows at once, observe the scores in a separate `Live`.

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
        self._configure(
            column=column,
            method=method,
            threshold=_THRESHOLDS.get(method) if threshold is None else threshold,
            bins=bins,
            level=level,
            window=window,
            min_rows=min_rows,
            for_=for_,
            after=after,
            name=name,
            reference=hashlib.sha256(reference.to_bytes()).hexdigest()[:16],
        )

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
        wanted = _statistic(suite, self.column)
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
        samples = _together(reference, current)
        distance = self._distance(samples.max_bins)
        with own_arithmetic():
            value = distance.readout(samples)
            low, high = (value, value) if samples.exact else distance.interval(samples)
        floor, threshold = self._floor(samples), float(self.threshold or 0.0)
        least = max(floor, threshold)
        verdict: Verdict = "bad" if low > least else "good" if high <= least else "between"
        told = (
            f"{self.method} {value:.4g} of {self.column} over {rows:,} rows; matters from "
            f"{threshold:g}, chance stays below {floor:.4g}"
        )
        return Moment(end, verdict, value, low, high, rows, told)

    def _distance(self, max_bins: int) -> SampleDistance:
        if self.method == "ks":
            return KSDistance(max_bins=max_bins)
        if self.method == "wasserstein":
            return Wasserstein(max_bins=max_bins)
        if self.method == "psi":
            return PopulationStability(max_bins=max_bins, bins=self.bins, pseudo_count=0.5)
        return JensenShannon(max_bins=max_bins, bins=self.bins)

    def _floor(self, samples: SampleHistogram) -> float:
        """Return the noise floor: a bound on the `level` quantile of the drift-free distance."""
        (histogram,) = samples.classes()
        n, m = histogram.totals()
        parts, tail = 1 / n + 1 / m, 1 - self.level
        if self.method == "ks":  # Smirnov's limit law; conservative with ties
            return min(math.sqrt(-math.log(tail / 2) / 2 * parts), 1.0)
        if self.method == "wasserstein":
            # The integral of |B(F)| for a Brownian bridge B: its mean plus a concentration bound.
            spread = gaps_of(samples).spread
            return (
                spread
                * math.sqrt(parts)
                * (math.sqrt(2 / math.pi) + math.sqrt(-2 * math.log(tail)))
            )
        free = self.bins - 1  # Pearson's chi-squared, in the Wilson-Hilferty approximation
        cube = 1 - 2 / (9 * free) + normal_quantile(self.level) * math.sqrt(2 / (9 * free))
        stability = free * max(cube, 0.0) ** 3 * parts
        return stability if self.method == "psi" else math.sqrt(stability / 8)

    def _says(self) -> str:
        return f"drift of {self.column} by {self.method} over {self.window}"


class ColumnHistogram(NamedTuple):
    """The histogram of a column, ``None`` without rows, and whether it holds logits."""

    histogram: SortedHistogram | None
    logits: bool


def values_in(what: Mergeable, column: str | None) -> ColumnHistogram:
    """Return the histogram of a column in a set or a metric; with None, the first histogram.

    Raises:
        ValueError: There is no such histogram, or the column has several.
    """
    held = _statistic(what, column)
    histograms = held.histograms
    if len(histograms) > 1:
        raise ValueError(f"{column!r} has {len(histograms)} columns of scores, not one")
    logits = isinstance(held, ScoreHistogram) and held.keeps_logits
    return ColumnHistogram(histograms[0] if histograms else None, logits)


def _statistic(what: Mergeable, column: str | None) -> Any:
    """Return the statistic with the histogram of a column; with None, the first such statistic."""
    titles = getattr(what, "columns", {})
    for statistic in what._accumulator.flush().statistics:
        name = statistic.schema.inputs[-1]
        plain = isinstance(statistic, ValueHistogram) and statistic.of == "values"
        fits = column is None or titles.get(name, name) == column
        if fits and (plain or isinstance(statistic, ScoreHistogram)):
            return statistic
    raise ValueError(
        f"there is no histogram of {column or 'values'!r}: put a Quantile of it into the set, or a "
        "metric of scores such as ROCAUC"
    )


@lru_cache(maxsize=64)
def _pooled(reference: SortedHistogram, most: int) -> SortedHistogram:
    """Return an immutable reference as the first sample; cached, because it is used often."""
    return reference.pooled(most, 0)


def _together(reference: SortedHistogram, current: SortedHistogram) -> SampleHistogram:
    """Return both histograms as the two samples of one histogram."""
    most = max(reference.max_cells, current.max_cells)
    both = _pooled(reference, most).fork()
    both.merge(current.pooled(most, 1))
    samples = SampleHistogram(max_bins=most)
    whole = all(isinstance(total, int) for total in both.totals())
    samples.counted = Weighed((both,), whole=whole)
    return samples
