"""The rule of changes: an e-detector of a share of rows, of all of them or by slice."""

from __future__ import annotations

import math
import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.constraints import Share
from streammetrics.core.errors import NoConfidenceError, undefined_expected
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
    from streammetrics.core.metric import Metric
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


def check_limits(metric: Metric, name: str) -> None:
    """Raise `ValueError` if a metric has no confidence limits."""
    try:
        with undefined_expected():
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
    metric: Metric = slices[name]
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
    metric: Metric = slices[name]
    with own_arithmetic():
        return {one.title: trials_of(metric, *metric._chosen(one.state)) for one in _each(slices)}


def _trials_of(metric: Any) -> tuple[float, float]:
    """Return the successes and rows of a share of rows; raise `TypeError` for other metrics."""
    trials = metric.trials if isinstance(metric, InputShare) else partial(trials_of, metric)
    return trials(*metric._read())


def _each(slices: Slices) -> Iterator[Slice]:
    (kind,) = slices._specs
    return iter(kind.kept(slices._accumulator.flush()).slices())


# Windows that overlap often have the same counts.
_exact_limits = lru_cache(maxsize=4096)(clopper_pearson)


def _limits(one: Slice, metric: Metric, name: str, value: float, tail: float) -> SliceLimits:
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
    While the mean of each row, given the rows before it, is at the baseline or better, M_t - t has
    no upward drift. The mean time to a false alarm is therefore at least 1 / alpha panes of the
    finest tier, however often the rule is evaluated and however many rows a pane has. Panes kept
    only by a coarser tier count as a single start time, which makes M smaller.

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
        known: Followed | None = view.seen.made
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
        found = self.follow(ends, trials, limit, ways, known)
        view.seen = LastLook(lines, found)
        return found.moments

    def _trials(self, reads: Reads, parts: Parts) -> dict[str, tuple[float, float]]:
        """Return the successes and rows of each slice of a pane; all rows are one called ""."""
        if not parts:
            return {}
        found = reads.of(parts)
        if self.by is not None:
            return trials_by_slice(found, self.metric)
        return {"": _trials_of(found)}

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
        trials: list[dict[str, tuple[float, float]]],
        limit: float,
        ways: tuple[int, ...],
        known: Followed | None = None,
    ) -> Followed:
        """Return the evidence after each pane, from successes and rows by slice.

        The limit of a pane is multiplied by the number of slices seen until then. Results in
        `known`, which have the same limit, are reused up to the first pane that has changed.
        """
        titles: dict[str, int] = {}  # in order of appearance
        seen = np.ones(len(trials), np.int64)
        for place, pane in enumerate(trials):
            for title in pane:
                titles.setdefault(title, len(titles))
            seen[place] = max(len(titles), 1)
        table = np.zeros((len(trials), len(titles), 2))
        for place, pane in enumerate(trials):
            for title, counts in pane.items():
                table[place, titles[title]] = counts
        limits = limit * seen.astype(np.float64)
        found = Followed(ends, trials, [*titles], table, seen, limits, ways)
        found.resume(self, known)
        return found

    def _says(self) -> str:
        return f"{self.metric} changed from {self.baseline:g}{by_title(self.by)}"


class Followed:
    """The evidence of each slice after each pane, and the moments of a rule.

    Args:
        ends: The end of each pane.
        trials: Successes and rows in each pane, by slice.
        titles: The slices, in order of appearance.
        table: `trials` as an array (panes, slices, 2).
        seen: The number of slices seen until each pane.
        limits: The evidence that a slice has to reach in each pane.
    """

    def __init__(
        self,
        ends: list[int],
        trials: list[dict[str, tuple[float, float]]],
        titles: list[str],
        table: Floats,
        seen: Ints,
        limits: Floats,
        ways: tuple[int, ...],
    ) -> None:
        self.ends, self.trials, self.titles, self.table = ends, trials, titles, table
        self.seen, self.limits, self._ways = seen, limits, ways
        self.moments: list[Moment] = []

    def resume(self, rule: Change, known: Followed | None) -> None:
        """Compute the evidence (M for each shift) and moments from the first changed pane on."""
        start = self._same_as(known)
        table, limits = self.table, self.limits
        evidence = _logs(rule.baseline, rule.tolerance, table, self._ways)
        sizes = evidence.shape[2]
        self.sums, self.totals = np.zeros(evidence.shape), np.zeros(evidence.shape[:2])
        if known is not None and start:
            self.sums[:start, : len(known.titles)] = known.sums[:start]
            self.totals[:start, : len(known.titles)] = known.totals[:start]
            self.moments = known.moments[:start]
        with np.errstate(over="ignore"):
            factors = np.exp(evidence[start:])
        begins = (table[start:, :, 1:] > 0).astype(np.float64)  # no change starts without rows
        last = self.sums[start - 1] if start else np.zeros(evidence.shape[1:])
        for place, begin, factor in zip(range(start, len(table)), begins, factors, strict=True):
            last = np.multiply(last + begin, factor, out=self.sums[place])
            total = np.divide(last.sum(axis=1), sizes, out=self.totals[place])
            high = total > limits[place]
            if high.any():
                capped = np.minimum(last[high], limits[place] * sizes)
                last[high] = capped * (limits[place] * sizes / capped.sum(axis=1, keepdims=True))
                total[high] = limits[place]
        self.moments += self._moments(rule, evidence, start) if self.titles else []
        self.moments += [Moment(end, "no data") for end in self.ends[len(self.moments) :]]

    def _same_as(self, known: Followed | None) -> int:
        """Return the number of leading panes that have not changed."""
        if known is None or self.titles[: len(known.titles)] != known.titles:
            return 0
        n, k = min(len(self.ends), len(known.ends)), len(known.titles)
        other = (self.table[:n, :k] != known.table[:n]).any(axis=(1, 2))
        other |= (self.table[:n, k:] != 0).any(axis=(1, 2))  # slices that were not known
        other |= self.seen[:n] != known.seen[:n]
        other |= np.array(self.ends[:n], np.int64) != np.array(known.ends[:n], np.int64)
        return int(other.argmax()) if other.any() else n

    def _moments(self, rule: Change, evidence: Floats, start: int) -> list[Moment]:
        """Return the moment of each pane from `start` on: that of the slice with most evidence.

        A slice without rows in a pane is judged as in its last pane with rows.
        """
        panes = len(evidence)
        each = zip(np.moveaxis(evidence, 1, 0), np.moveaxis(self.table, 1, 0), strict=True)
        since = np.stack([_likeliest(*one) for one in each], axis=1)
        places = np.where(self.table[:, :, 1] > 0, np.arange(panes)[:, None], -1)
        newest = np.maximum.accumulate(places, axis=0)[start:]
        judged = np.take_along_axis(self.totals, np.maximum(newest, 0), axis=0)
        limits = self.limits[newest]
        bad = (newest >= 0) & (judged >= limits)
        between = (newest >= 0) & ~bad & (judged > np.sqrt(limits))
        counts = bad.sum(axis=1)
        verdict = np.select(
            [counts > 0, between.any(axis=1), (newest >= 0).any(axis=1)], [0, 1, 2], 3
        )
        worst = np.argmax(np.where(newest >= 0, judged, 0.0), axis=1)
        rows = np.arange(panes - start)
        columns = (worst, newest[rows, worst], judged[rows, worst], limits[rows, worst], counts)
        lists = [one.tolist() for one in (verdict, *columns)]
        found: list[Moment] = []
        for row, (of, slice_, pane, total, limit, bads) in enumerate(zip(*lists, strict=True)):
            end = self.ends[start + row]
            if pane < 0:
                found.append(Moment(end, _VERDICTS[of]))
                continue
            success, n = since[pane, slice_].tolist()
            rate = success / n
            told = (
                f"{rule.metric} {rate:.4g} of the last {n:,.0f} rows, not {rule.baseline:g}: "
                f"evidence {total:.3g} of {limit:,.0f}"
            )
            if rule.by is not None:
                told = (
                    f"in {self.titles[slice_]}, {told}; changed: {bads:,} of "
                    f"{self.seen[start + row]:,} slices"
                )
            found.append(Moment(end, _VERDICTS[of], rate, rate, rate, int(n), told))
        return found


_VERDICTS: tuple[Verdict, ...] = ("bad", "between", "good", "no data")


def _likeliest(evidence: Floats, trials: Floats) -> Floats:
    """Return for each pane the successes and rows since the likeliest start of a change."""
    sums = np.zeros((len(evidence) + 1, evidence.shape[1]))
    np.cumsum(evidence, axis=0, out=sums[1:])
    lowest = np.minimum.accumulate(sums, axis=0)
    places = np.where(sums <= lowest, np.arange(len(sums))[:, None], 0)
    begins = np.maximum.accumulate(places, axis=0)[:-1]
    best = np.argmax(sums[1:] - lowest[:-1], axis=1)
    begin = begins[np.arange(len(evidence)), best]
    counted = np.concatenate([np.zeros((1, 2)), np.cumsum(trials, axis=0)])
    found: Floats = counted[1:] - counted[begin]
    return found


def _logs(baseline: float, tolerance: float, trials: Floats, ways: tuple[int, ...]) -> Floats:
    """Return log-likelihood ratios (..., shifts) of shifted shares against the baseline.

    The ratio of a number in [0, 1] is convex in that number. If the mean of the numbers is the
    baseline, or lies on the other side of it, the mean ratio is therefore at most 1.
    """
    success, rows = trials[..., :1], trials[..., 1:]
    found = []
    for way in ways:
        p = baseline + way * tolerance
        odds = p / (1 - p) * np.exp(way * _SHIFTS)
        moved = odds / (1 + odds)
        up, down = np.log(moved / p), np.log((1 - moved) / (1 - p))
        found.append(success * up + (rows - success) * down)
    return np.concatenate(found, axis=-1)
