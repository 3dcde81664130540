"""Rules: thresholds, budgets, changes, missing events and labels, drift."""

from __future__ import annotations

import hashlib
import math
import os
import re
from abc import abstractmethod
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.constraints import Between, Share
from streammetrics.core.errors import an
from streammetrics.core.fields.histograms import Weighed
from streammetrics.core.floating import own_arithmetic
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.stateful import from_bytes, load
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
from streammetrics.statistics.scores.histogram import Counted, ScoreHistogram
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
    """A value on the wrong side of a threshold."""

    clear: float | None = None

    def _moment(self, end: int, reading: Reading, bad: bool, good: bool, why: str) -> Moment:
        """Return the verdict on a window, "no data" where it has too few rows."""
        if reading.rows < self.min_rows or not reading.known:
            return Moment(end, "no data", *reading, f"{reading.rows:,} rows")
        verdict: Verdict = "bad" if bad else "good" if good else "between"
        return Moment(end, verdict, *reading, why)


class _MetricThreshold(_Threshold):
    """A metric on the wrong side of a threshold."""

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

    def part(self, suite: Mergeable) -> Mergeable:
        """Return the metric."""
        found: Mergeable = metric_of(suite, self.metric)
        return found

    def check(self, suite: Mergeable) -> None:
        """Check that there is such a metric."""
        metric_of(suite, self.metric)

    def judge(self, end: int, windows: tuple[object, ...]) -> Moment:
        """Read the metric, and compare it."""
        return self.compare(end, reading_of(windows[0], self.metric))

    @abstractmethod
    def compare(self, end: int, reading: Reading) -> Moment:
        """Compare the metric of a window with the threshold."""

    def _compared(self, end: int, reading: Reading, bad: bool, good: bool) -> Moment:
        why = f"{self.metric} {reading.value:.6g} of {reading.rows:,} rows"
        if reading.low < reading.high:
            why += f", certainly in [{reading.low:.6g}, {reading.high:.6g}]"
        return self._moment(end, reading, bad, good, f"{why}, the threshold is {self.threshold:g}")


class Below(_MetricThreshold):
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

    def compare(self, end: int, reading: Reading) -> Moment:
        """Compare the upper bound with the threshold, and the lower one with `clear`."""
        clear = self.threshold if self.clear is None else self.clear
        return self._compared(end, reading, reading.high < self.threshold, reading.low >= clear)

    def _says(self) -> str:
        return f"{self.metric} below {self.threshold:g} over {self.window}"


class Above(_MetricThreshold):
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

    def compare(self, end: int, reading: Reading) -> Moment:
        """Compare the lower bound with the threshold, and the upper one with `clear`."""
        clear = self.threshold if self.clear is None else self.clear
        return self._compared(end, reading, reading.low > self.threshold, reading.high <= clear)

    def _says(self) -> str:
        return f"{self.metric} above {self.threshold:g} over {self.window}"


# The SRE workbook's: the share of a 30 days' budget that is gone once the long window is full.
_FACTORS = {"1h": 14.4, "6h": 6.0, "1d": 3.0, "3d": 1.0}


class BurnRate(WindowRule):
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

    def part(self, suite: Mergeable) -> Mergeable:
        """Return the metric."""
        found: Mergeable = metric_of(suite, self.metric)
        return found

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


_PERIODS = {"day": DAY, "week": 7 * DAY, "month": 30 * DAY, "year": 365 * DAY}
_OFTEN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s+an?\s+(day|week|month|year)\s*")
# By how much the log-odds of the rate may have moved: of each there is a detector.
_SHIFTS = np.array([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2])


class Change(Rule):
    r"""Fires where a share of rows has left its baseline, with a stated rate of false alarms.

    An e-detector: with E_t the likelihood ratio of the rows of pane t for a moved share against
    the baseline, M_t = (M_{t-1} + 1) E_t sums the evidence of a change over all times at which it
    may have begun (Shiryaev-Roberts). The mean M over several sizes of a change fires at 1 / alpha.
    As long as the share is the baseline, or better, M_t less t has no drift upwards, so that the
    mean time to a false alarm is at least 1 / alpha panes of the finest tier: however often one
    looks, whatever the rows a pane. Panes that only a coarser tier still has count as one start
    instead of many, which makes M smaller.

    It goes on firing until M has fallen to the root of 1 / alpha, which it is capped at.

    Args:
        metric: The name of a share of rows (accuracy, recall, an error rate) in the set, or of a
            Brier score; its rows weigh 1 each.
        baseline: What it is when all is well.
        false_alarms: How many there may be, at most, on average: ``"1 a year"``, ``"2 a month"``.
        tolerance: How far off the baseline is still well. The baseline is never quite right, and
            with many rows that is found out.
        direction: ``"worse"``, as the metric's `higher_is_better` says, ``"up"``, ``"down"`` or
            ``"both"``.
        after: How long after its end a pane is judged, see `Live.alerts`.
        name: What the alert is called.

    Raises:
        ValueError: From `Live.alerts`: the metric is no share of rows.

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
        """Check that there is room on both sides of the baseline, and how often it may err."""
        low, high = self.baseline - self.tolerance, self.baseline + self.tolerance
        require(self, "baseline", 0 < low <= high < 1, "a share that is neither 0 nor 1")
        found = _OFTEN.fullmatch(self.false_alarms)
        often = 'how many on average, as "1 a year" or "2 a month"'
        require(self, "false_alarms", found is not None and float(found[1]) > 0, often)

    def check(self, suite: Mergeable) -> None:
        """Check that the metric is a share of rows, and which way is worse."""
        metric = metric_of(suite, self.metric)
        try:
            trials_of(metric, *metric._read())
        except TypeError as error:
            raise ValueError(str(error)) from None
        if self.direction == "worse" and metric.higher_is_better is None:
            raise ValueError(f'{self.metric}: no way is worse: say direction="up", "down", "both"')

    def moments(self, view: View) -> Callable[[], list[Moment]]:
        """Go through the panes that are over, from the oldest that is kept."""
        return partial(self._judged, view, view.lines(view.panes(self.after)))

    def _judged(self, view: View, runs: Sequence[tuple[Ends, PaneRun]]) -> list[Moment]:
        """Read the panes that are not as they were, and go on where they begin."""
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
        """Return in which directions a change is looked for."""
        if self.direction == "worse":
            better = metric_of(view.suite, self.metric).higher_is_better
            return (-1,) if better else (1,)
        return {"up": (1,), "down": (-1,), "both": (1, -1)}[self.direction]

    def limit(self, pane: int) -> float:
        """Return 1 / alpha: how many panes there have to be to a false alarm on average."""
        found = _OFTEN.fullmatch(self.false_alarms)
        assert found is not None  # as it was checked
        return max(_PERIODS[found[2]] / float(found[1]) / pane, 1.0)

    def follow(
        self,
        ends: list[int],
        trials: Floats,
        limit: float,
        ways: tuple[int, ...],
        known: Followed | None = None,
    ) -> Followed:
        """Return what is found at the end of each pane, of successes and rows (n, 2) in them.

        What is `known` is taken over up to the first pane that is another.
        """
        known = known or Followed([], np.empty((0, 2)), [], [])
        evidence = _logs(self.baseline, self.tolerance, trials, ways)
        start, sizes = known.same_as(ends, trials), evidence.shape[1]
        sums, moments = known.sums[:start], known.moments[:start]
        last, total = (sums[-1] if sums else [0.0] * sizes), 0.0  # M of each size, and its mean
        with np.errstate(over="ignore"):
            factors = np.exp(evidence[start:]).tolist()
        since = _likeliest(evidence, trials)[start:]
        for end, factor, rows in zip(ends[start:], factors, since, strict=True):
            if rows is not None:  # nothing may begin where there are no rows
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
        """Return what some evidence comes to."""
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
    """Return successes and rows of a pane."""
    if not parts:
        return 0.0, 0.0
    metric = reads.of(parts)
    return trials_of(metric, *metric._read())


class Followed(NamedTuple):
    """What was found pane after pane: their ends, trials (n, 2), the evidence, and moments."""

    ends: list[int]
    trials: Floats
    sums: list[list[float]]
    moments: list[Moment]

    def same_as(self, ends: list[int], trials: Floats) -> int:
        """Return how many panes come before the first one that is another."""
        n = min(len(ends), len(self.ends))
        other = (trials[:n] != self.trials[:n]).any(axis=1)
        other |= np.array(ends[:n], np.int64) != np.array(self.ends[:n], np.int64)
        return int(other.argmax()) if other.any() else n


class Since(NamedTuple):
    """The rows since a change is likeliest to have begun."""

    success: float
    rows: float


def _likeliest(evidence: Floats, trials: Floats) -> list[Since | None]:
    """Return at each pane the rows since the likeliest beginning; ``None`` in panes without any."""
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
    """Return logarithms of likelihood ratios (panes, sizes) of moved shares against the baseline.

    For numbers in [0, 1] of which the mean is the baseline each ratio has a mean of at most 1, as
    it is convex in the number; likewise where the mean is on the other side of it.
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


Method = Literal["ks", "wasserstein", "psi", "js"]

_THRESHOLDS = {"ks": 0.1, "psi": 0.2, "js": 0.1}


class Drift(_OneWindow):
    """Fires where the values of a column in a window are far from those of a reference.

    Far is what is both above `threshold` and above the noise floor: what chance alone keeps a
    distance of as many rows below, in a share `level` of all windows. A PSI of 0.2 means nothing of
    200 rows in 10 bins, and a distance that is certain may still be too small to matter.

    It compares histograms that are there already: those of a metric of scores, such as `ROCAUC`, or
    of a `Quantile`. So it sees the rows that the window has: where predictions wait for labels,
    those with one. To see all, and at once, observe the scores in a `Live` of their own.

    Args:
        reference: A set that has seen the reference's rows, or a metric of any column; its bytes,
            or the path of a saved one.
        column: The column of scores or of values, by its name in events.
        method: ``"ks"``: `KSDistance`; ``"wasserstein"``; ``"psi"``: `PopulationStability` with a
            pseudo-count of a half; ``"js"``: `JensenShannon`.
        threshold: The distance that matters: by default 0.1 (``"ks"``, ``"js"``) or 0.2
            (``"psi"``); that of ``"wasserstein"`` has the unit of the values, and has to be given.
        bins: Of ``"psi"`` and ``"js"``.
        level: In which share of windows chance alone stays below the noise floor.
        window: The window.
        min_rows: Of fewer rows nothing is said.
        for_: How long it has to be so before the alert fires.
        after: How long after its end a window is judged, see `Live.alerts`.
        name: What the alert is called.

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
    reference: str = ""  # its digest

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
        alone = not isinstance(reference, MetricSet)  # whose only histogram it is
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
        """Check that there is a threshold and a level."""
        super().check_parameters()
        known = self.threshold is not None and self.threshold >= 0
        require(self, "threshold", known, "a distance, 0 or above, in the unit of the values")
        require(self, "level", 0.5 <= self.level < 1, "a share from 0.5 to below 1")

    def check(self, suite: Mergeable) -> None:
        """Check that a histogram of the column is there, of what the reference has."""
        if values_in(suite, self.column).logits != self._reference.logits:
            raise ValueError(f"{self.column!r} holds logits in one of reference and stream only")

    def part(self, suite: Mergeable) -> Mergeable:
        """Return a metric that has the histogram, and no other, if there is one."""
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
        reference: Any = self._reference.histogram  # which has rows, as was checked
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
        """Return what distances of samples of one population exceed seldom, by their limit laws."""
        (histogram,) = samples.classes()
        n, m = histogram.totals()
        parts, tail = 1 / n + 1 / m, 1 - self.level
        if self.method == "ks":  # Smirnov's limit; ties only make it smaller
            return min(math.sqrt(-math.log(tail / 2) / 2 * parts), 1.0)
        if self.method == "wasserstein":
            # The integral of |B(F)|, B a Brownian bridge: its mean, and concentration around it.
            spread = gaps_of(samples).spread
            return (
                spread
                * math.sqrt(parts)
                * (math.sqrt(2 / math.pi) + math.sqrt(-2 * math.log(tail)))
            )
        free = self.bins - 1  # Pearson's chi-square, by Wilson and Hilferty
        cube = 1 - 2 / (9 * free) + normal_quantile(self.level) * math.sqrt(2 / (9 * free))
        stability = free * max(cube, 0.0) ** 3 * parts
        return stability if self.method == "psi" else math.sqrt(stability / 8)

    def _says(self) -> str:
        return f"drift of {self.column} by {self.method} over {self.window}"


class ColumnHistogram(NamedTuple):
    """The histogram of a column, ``None`` without rows, and whether it is one of logits."""

    histogram: SortedHistogram | None
    logits: bool


def values_in(what: Mergeable, column: str | None) -> ColumnHistogram:
    """Return the histogram of a column, or of any, in a set or a metric.

    Raises:
        ValueError: There is none.
    """
    held = _statistic(what, column)
    histograms = held.histograms
    if len(histograms) > 1:
        raise ValueError(f"{column!r} has {len(histograms)} columns of scores, not one")
    logits = isinstance(held, ScoreHistogram) and held.keeps_logits
    return ColumnHistogram(histograms[0] if histograms else None, logits)


def _statistic(what: Mergeable, column: str | None) -> Any:
    """Return what holds the histogram of a column, or of any, in a set or a metric."""
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
    """Return a reference, which nobody changes, as the one sample; it is compared often."""
    return reference.pooled(most, 0)


def _together(reference: SortedHistogram, current: SortedHistogram) -> SampleHistogram:
    """Return both as the two samples of one histogram."""
    most = max(reference.max_cells, current.max_cells)
    both = _pooled(reference, most).fork()
    both.merge(current.pooled(most, 1))
    samples = SampleHistogram(max_bins=most)
    samples.counted = Counted(
        Weighed((both,)), all(isinstance(total, int) for total in both.totals())
    )
    return samples
