"""The rule that finds a change of a rate, and says how often it will be wrong."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.constraints import Share
from streammetrics.inference.trials import trials_of
from streammetrics.live.alerts.rule import Moment, Rule, metric_of
from streammetrics.live.alerts.sliding import LastLook
from streammetrics.live.time import DAY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.types import Floats, Ints
    from streammetrics.live.alerts.rule import Verdict
    from streammetrics.live.alerts.sliding import PaneRun, Parts, Reads
    from streammetrics.live.alerts.view import View

    Ends = Ints

__all__ = ["Change"]

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
