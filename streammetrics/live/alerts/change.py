"""The rule of changes: an e-detector of a share of rows, of all of them or by slice."""

from __future__ import annotations

import math
import re
import warnings
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.constraints import Share
from streammetrics.core.errors import NoConfidenceError, UndefinedMetricWarning
from streammetrics.core.floating import own_arithmetic
from streammetrics.inference.distributions import clopper_pearson
from streammetrics.inference.tables import trials_of
from streammetrics.live.alerts.rule import LastLook, Moment, Rule, metric_of
from streammetrics.live.events import DAY
from streammetrics.live.inputs import InputShare
from streammetrics.slices.fairness import value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import timedelta

    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.types import Floats, Ints
    from streammetrics.live.alerts.rule import PaneRun, Parts, Reads, Verdict, View
    from streammetrics.slices.fairness import Slice
    from streammetrics.slices.slices import Slices

    Ends = Ints


def columns_of(by: str | Sequence[str] | None) -> str | tuple[str, ...] | None:
    """Return the columns of a kind of slices in canonical form."""
    return by if by is None or isinstance(by, str) else tuple(by)


def by_title(by: str | Sequence[str] | None) -> str:
    """Return the end of a rule's description, empty without slices."""
    columns = (by,) if isinstance(by, str) else by or ()
    return f" by {', '.join(columns)}" if columns else ""


class SliceLimits(NamedTuple):
    """A metric of a slice with its confidence limits, widened by its certain bounds."""

    title: str
    value: float
    low: float
    high: float
    rows: int

    def beyond(self, threshold: float, *, below: bool) -> bool:
        """Return whether the limit on the good side is beyond a threshold."""
        return self.high < threshold if below else self.low > threshold


def check_limits(metric: Any, name: str) -> None:
    """Raise `ValueError` if a metric has no confidence limits."""
    try:
        with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
            metric.confidence(0.95)
    except NoConfidenceError as error:
        raise ValueError(f"{name} cannot be judged by slice: {error}") from None


def limits_by_slice(
    slices: Slices, name: str, min_rows: int, level: float, *, reach: float, below: bool
) -> tuple[list[SliceLimits], int]:
    """Return the limits of slices that have some rows, the worst first, and how many there are.

    All limits hold together at a level (Bonferroni): each is at ``1 - (1 - level) / slices``. A
    slice whose value is on the good side of `reach` has no limit beyond it; except for the one with
    the worst value, such slices are left out, because exact limits are slow.

    Args:
        slices: Slices of one kind.
        name: The metric's name.
        min_rows: Slices with fewer rows are left out, and not counted.
        level: The level of all limits together.
        reach: The value that limits are compared with.
        below: Whether low values are bad.
    """
    metric: Any = slices[name]
    some = [one for one in _each(slices) if one.n_rows >= min_rows]
    values = [value_of(name, metric, one.state) for one in some]
    way = 1 if below else -1
    known = [pair for pair in zip(values, some, strict=True) if not math.isnan(pair[0])]
    known.sort(key=lambda pair: way * pair[0])
    asked = [pair for n, pair in enumerate(known) if not n or way * pair[0] < way * reach]
    tail = (1 - level) / max(len(some), 1)
    found = [_limits(one, metric, name, value, tail) for value, one in asked]
    found = [one for one in found if not (math.isnan(one.low) or math.isnan(one.high))]
    return sorted(found, key=lambda one: way * (one.high if below else one.low)), len(some)


def trials_by_slice(slices: Slices, name: str) -> dict[str, tuple[float, float]]:
    """Return the successes and rows of a share of rows for each slice, by its title."""
    metric: Any = slices[name]
    with own_arithmetic():
        return {one.title: trials_of(metric, *metric._chosen(one.state)) for one in _each(slices)}


def _trials_of(metric: Any) -> tuple[float, float]:
    """Return the successes and rows of a share of rows; raise `TypeError` for other metrics."""
    trials = metric.trials if isinstance(metric, InputShare) else partial(trials_of, metric)
    found: tuple[float, float] = trials(*metric._read())
    return found


def _each(slices: Slices) -> Iterator[Slice]:
    (kind,) = slices._specs
    return iter(kind.kept(slices._accumulator.flush()).slices())


# Windows that overlap often have the same counts.
_exact_limits = lru_cache(maxsize=4096)(clopper_pearson)


def _limits(one: Slice, metric: Any, name: str, value: float, tail: float) -> SliceLimits:
    try:
        with own_arithmetic():
            trials = trials_of(metric, *metric._chosen(one.state))
        return SliceLimits(one.title, value, *_exact_limits(*trials, tail / 2), one.n_rows)
    except TypeError:  # it is no share of rows
        found: Any = one.measured(name, metric, 1 - tail)
    low = found.confidence.low - (value - found.certain.low)
    high = found.confidence.high + (found.certain.high - value)
    return SliceLimits(one.title, value, float(low), float(high), one.n_rows)


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
            the set, whose rows must have no weights; or of a share of an input, ``"age/nulls"``.
        baseline: The value of the metric under normal conditions.
        false_alarms: The maximum mean rate of false alarms: ``"1 a year"``, ``"2 a month"``.
        tolerance: The deviation from the baseline that is acceptable. A baseline is never exact,
            and with many rows even a small error in it is detected.
        direction: ``"worse"``, by the metric's `higher_is_better`, ``"up"``, ``"down"`` or
            ``"both"``.
        after: How long after its end a pane is judged, see `Live.alerts`.
        by: The columns of a kind of slices. Each slice is compared with the baseline, and its
            evidence has to reach 1 / alpha times the number of slices seen until then, so that
            `false_alarms` holds for all slices together.
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
    by: Any = None

    def __init__(
        self,
        metric: str,
        baseline: float,
        *,
        false_alarms: str = "1 a year",
        tolerance: float = 0.0,
        direction: str = "worse",
        after: str | timedelta | None = None,
        by: str | Sequence[str] | None = None,
        name: str = "",
    ) -> None:
        by = columns_of(by)
        self._configure(locals())

    def check_parameters(self) -> None:
        """Check the baseline with its tolerance, and the rate of false alarms."""
        low, high = self.baseline - self.tolerance, self.baseline + self.tolerance
        require(self, "baseline", 0 < low <= high < 1, "a share that is neither 0 nor 1")
        found = _OFTEN.fullmatch(self.false_alarms)
        often = 'how many on average, as "1 a year" or "2 a month"'
        require(self, "false_alarms", found is not None and float(found[1]) > 0, often)

    def line(self, suite: Mergeable) -> tuple[str, float]:
        """Return the metric and the baseline."""
        return self.metric, self.baseline

    def check(self, suite: Mergeable) -> None:
        """Check that the metric is a share of rows, and defines which way is worse if needed."""
        metric = metric_of(suite, self.metric)
        try:
            _trials_of(metric)
        except TypeError as error:
            raise ValueError(str(error)) from None
        if self.direction == "worse" and metric.higher_is_better is None:
            raise ValueError(f'{self.metric}: no way is worse: say direction="up", "down", "both"')

    def moments(self, view: View) -> Callable[[], list[Moment]]:
        """Judge the complete panes, starting with the oldest."""
        return partial(self._judged, view, view.lines(view.panes(self.after)))

    def _judged(self, view: View, runs: Sequence[tuple[Ends, PaneRun]]) -> list[Moment]:
        """Read the panes that have changed, and resume at the first of them."""
        reads = view.reads(self.part(view.suite), self.by)
        lines = tuple(line for _, line in runs)
        before: Sequence[PaneRun | None] = view.seen.lines
        known: EverySlice | None = view.seen.made
        if known is None or len(before) != len(lines):
            before, known = [None] * len(lines), None
        read = {} if known is None else dict(zip(known.ends, known.trials, strict=True))
        ends: list[int] = []
        for (some, line), old in zip(runs, before, strict=True):
            changed = line.changed(old).tolist()
            for end, pane, other in zip(some.tolist(), line.panes, changed, strict=True):
                ends.append(end)
                if other or end not in read:
                    read[end] = self._trials(reads, pane)
        trials = [read[end] for end in ends]
        limit, ways = self.limit(view.tiers[0].length), self._ways(view)
        found = self.follow_slices(ends, trials, limit, ways, known)
        view.seen = LastLook(lines, found)
        return self.together(found)

    def _trials(self, reads: Reads, parts: Parts) -> dict[str, tuple[float, float]]:
        """Return the successes and rows of each slice of a pane; all rows are one called ""."""
        if not parts:
            return {}
        found = reads.of(parts)
        if self.by is not None:
            return trials_by_slice(found, self.metric)
        return {"": _trials_of(found)}

    def follow_slices(
        self,
        ends: list[int],
        trials: list[dict[str, tuple[float, float]]],
        limit: float,
        ways: tuple[int, ...],
        known: EverySlice | None = None,
    ) -> EverySlice:
        """Return the evidence of each slice, from its successes and rows in each pane by title.

        The limit of a pane is multiplied by the number of slices seen until then.
        """
        titles: dict[str, None] = {}  # in order of appearance
        seen: list[int] = []
        for pane in trials:
            titles.update(dict.fromkeys(pane))
            seen.append(max(len(titles), 1))
        limits = [limit * n for n in seen]
        old = {} if known is None or not known.counts_as(seen) else known.every
        every = {}
        for title in titles:
            table = np.array([pane.get(title, (0.0, 0.0)) for pane in trials], np.float64)
            every[title] = self.follow(ends, table, limits, ways, old.get(title))
        return EverySlice(ends, trials, seen, every)

    def together(self, found: EverySlice) -> list[Moment]:
        """Return the moment of each pane: that of the slice with the most evidence."""
        if not found.every:
            return [Moment(end, "no data") for end in found.ends]
        if self.by is None:
            return found.every[""].moments
        moments = []
        for place, n in enumerate(found.seen):
            each = [
                (title, one.sums[place], one.moments[place]) for title, one in found.every.items()
            ]
            title, _, worst = max(each, key=lambda one: math.fsum(one[1]))
            verdicts = [moment.verdict for _, _, moment in each]
            verdict = min(verdicts, key=_ORDER.index)
            told = f"in {title}, {worst.told}; changed: {verdicts.count('bad'):,} of {n:,} slices"
            moments.append(worst._replace(verdict=verdict, told=told if worst.told else ""))
        return moments

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
        limits: Sequence[float],
        ways: tuple[int, ...],
        known: Followed | None = None,
    ) -> Followed:
        """Return the evidence and the moment after each pane, from its successes and rows (n, 2).

        Results in `known`, which have the same limits, are reused up to the first pane that has
        changed.
        """
        known = known or Followed([], np.empty((0, 2)), [], [])
        evidence = _logs(self.baseline, self.tolerance, trials, ways)
        start, sizes = known.same_as(ends, trials), evidence.shape[1]
        sums, moments = known.sums[:start], known.moments[:start]
        last, total = (sums[-1] if sums else [0.0] * sizes), 0.0  # M for each shift, and their mean
        with np.errstate(over="ignore"):
            factors = np.exp(evidence[start:]).tolist()
        since = _likeliest(evidence, trials)[start:]
        rest = zip(ends[start:], limits[start:], factors, since, strict=True)
        for end, limit, factor, rows in rest:
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
        return f"{self.metric} changed from {self.baseline:g}{by_title(self.by)}"


_ORDER: tuple[Verdict, ...] = ("bad", "between", "good", "no data")  # the worst first


class EverySlice(NamedTuple):
    """Results per pane: end, trials by slice, slices seen until then; and those of each slice."""

    ends: list[int]
    trials: list[dict[str, tuple[float, float]]]
    seen: list[int]
    every: dict[str, Followed]

    def counts_as(self, seen: list[int]) -> bool:
        """Return whether as many slices were seen until each pane, so that limits are the same."""
        return all(a == b for a, b in zip(self.seen, seen, strict=False))


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
