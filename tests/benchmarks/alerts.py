"""False alarms and delays of every alert rule in simulated weeks: the tables of docs/alerts.md.

    python tests/benchmarks/alerts.py

False alarms are counted in weeks in which nothing changes, with the exact 95 % limits of their mean
(Poisson). Delays are medians, from a change at the end of a quiet day to the next alarm. Beside the
rules of the library: limits that dashboards use, detectors of river, and rules by slice without a
correction. Exits with status 1 if a rule raises more alarms than it promises, beyond chance.

Windows of counts are judged by the rule itself, once for each count that occurs; scores, inputs and
events pass through `Live`.
"""

from __future__ import annotations

import argparse
import math
import sys
from abc import ABC, abstractmethod
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.stats import binom, chi2, poisson

import streammetrics as sm
from streammetrics.inference.distributions import clopper_pearson
from streammetrics.live.alerts.rule import Moment, Reading, alert_of
from streammetrics.live.events import SECOND
from streammetrics.live.panes import Coverage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Rows = np.ndarray
    Fires = dict[str, np.ndarray]  # whether each rule fires at the end of each step

DAY = 1440  # minutes
LEAD, WEEK = 360, 7 * DAY  # in the lead, the first windows fill
A_WEEK = {"day": 7.0, "week": 1.0, "month": 7 / 30, "year": 7 / 365}
CHANCE = 1e-4  # a promise is broken if chance has a smaller probability


class Promise(NamedTuple):
    """The most alarms in a week without one, or the largest share of windows that share no rows."""

    most: float
    of_windows: bool = False


def often(period: str) -> Promise:
    """Return the promise of a `Change` with one false alarm a period."""
    return Promise(A_WEEK[period])


class Table(ABC):
    """A quiet stream, changes of it, and the rules that watch it."""

    title: ClassVar[str]
    minutes: ClassVar[int] = 1  # of a step
    window: ClassVar[int] = 60  # minutes of the windows that promises are about
    changes: ClassVar[dict[str, Any]] = {}  # by the title of a column
    promises: ClassVar[dict[str, Promise]] = {}

    @abstractmethod
    def fires(self, rng: np.random.Generator, minutes: int, change: Any = None) -> Fires:
        """Return when each rule fires in a stream, changed after a day if there is a change."""


# --- rules judged by counts ----------------------------------------------------------------------


def firing(rule: Any, moments: Iterable[Moment], steps: int, minutes: int) -> np.ndarray:
    """Return at which steps the alert of some moments fires."""
    return marks(alert_of(rule, moments, rule.reach), steps, minutes)


def marks(alert: Any, steps: int, minutes: int) -> np.ndarray:
    """Return at which steps an alert fires."""
    found = np.zeros(steps, np.bool_)
    for time, state in alert.changes:
        found[math.ceil(time.timestamp() / (60 * minutes)) - 1 :] = state == "firing"
    return found


def ends_of(steps: int, minutes: int) -> list[int]:
    return [60 * SECOND * minutes * step for step in range(1, steps + 1)]


def over(counts: np.ndarray, steps: int) -> np.ndarray:
    """Return the sums over the last steps, or as many as there are."""
    sums = np.concatenate([np.zeros_like(counts[:1]), np.cumsum(counts, axis=0)])
    ends = np.arange(1, len(sums))
    return sums[ends] - sums[np.maximum(ends - steps, 0)]


def by_counts(
    rule: Any, judge: Callable[..., Moment], *columns: np.ndarray, minutes: int = 1
) -> np.ndarray:
    """Return when a rule fires whose windows are known by counts; equal ones are judged once."""
    unique, places = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    judged = [judge(*counts) for counts in unique.tolist()]
    each = zip(ends_of(len(places), minutes), places.ravel().tolist(), strict=True)
    moments = [Moment(end, *judged[place][1:]) for end, place in each]
    return firing(rule, moments, len(places), minutes)


def exactly(successes: int, rows: int) -> Reading:
    share = successes / rows if rows else math.nan
    return Reading(share, share, share, rows)


def threshold(rule: Any, wrong: np.ndarray, rows: np.ndarray, window: int = 60) -> np.ndarray:
    """Return when a threshold of the error rate fires, or of the accuracy."""

    def judge(some: int, n: int) -> Moment:
        return rule.compare(0, exactly(some if rule.metric == "errors" else n - some, n))

    return by_counts(rule, judge, over(wrong, window), over(rows, window))


def burning(rule: Any, wrong: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return when a burn rate of the error rate fires."""

    def judge(*counts: int) -> Moment:
        long, short = exactly(*counts[:2]), exactly(*counts[2:])
        return rule.compare(0, (rule.burnt(long, right=False), rule.burnt(short, right=False)))

    windows = [length // (60 * SECOND) for length in rule.lengths]
    columns = [over(each, window) for window in windows for each in (wrong, rows)]
    return by_counts(rule, judge, *columns)


def changing(rule: sm.Change, wrong: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return when a change of the error rate fires."""
    each = zip(wrong.tolist(), rows.tolist(), strict=True)
    trials = [{"": (float(some), float(n))} for some, n in each]
    ways = (1, -1) if rule.direction == "both" else (1,)
    found = rule.follow(ends_of(len(rows), 1), trials, rule.limit(60 * SECOND), ways)
    return firing(rule, found.moments, len(rows), 1)


# --- an error rate -------------------------------------------------------------------------------

RATE, ROWS = 0.10, 20
HOUR = {"window": "1h", "min_rows": 500}


def interval(wrong: np.ndarray, rows: np.ndarray) -> np.ndarray:
    s, n = over(wrong, 60), over(rows, 60)
    z, p = 1.959964, s / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return np.abs(RATE - centre) > half


def three_sigma(wrong: np.ndarray, rows: np.ndarray) -> np.ndarray:
    s, n = over(wrong, 60), over(rows, 60)
    return np.abs(s / n - RATE) > 3 * np.sqrt(RATE * (1 - RATE) / n)


def of_river(name: str, rows: np.ndarray) -> np.ndarray:
    """Return in which minutes a detector of river, with its defaults, finds a change."""
    import river.drift  # which the tests do without

    detector, found = getattr(river.drift, name)(), np.zeros(len(rows), np.bool_)
    for minute, some in enumerate(rows.tolist()):
        for row in some:
            detector.update(row)
            found[minute] |= detector.drift_detected
    return found


def rows_of(rng: np.random.Generator, minutes: int, change: float | None) -> np.ndarray:
    """Return whether rows are wrong, of each minute."""
    rates = np.full((minutes, 1), RATE)
    rates[DAY:] = RATE if change is None else change
    return rng.random((minutes, ROWS)) < rates


class Peers(Table):
    """The limits that dashboards use, and detectors of river with their defaults."""

    title = "An error rate of 0.10, 20 rows a minute, evaluated every minute: other software"
    changes: ClassVar = {"to 0.12": 0.12, "to 0.15": 0.15, "to 0.20": 0.20}

    def fires(self, rng: np.random.Generator, minutes: int, change: Any = None) -> Fires:
        each = rows_of(rng, minutes, change)
        wrong, rows = each.sum(axis=1), np.full(minutes, ROWS)
        return {
            "95 % interval of the last hour": interval(wrong, rows),
            "three sigma of the last hour": three_sigma(wrong, rows),
            "river ADWIN": of_river("ADWIN", each),
            "river Page-Hinkley": of_river("PageHinkley", each),
        }


class Rates(Table):
    """An error rate."""

    title = "An error rate of 0.10, 20 rows a minute, evaluated every minute"
    changes: ClassVar = Peers.changes
    thresholds: ClassVar = {
        '`Above("errors", 0.13)`, 1h': sm.Above("errors", 0.13, **HOUR),
        '`Below("accuracy", 0.87)`, 1h': sm.Below("accuracy", 0.87, **HOUR),
        '`Above("errors", 0.13, for_="10min")`, 1h': sm.Above("errors", 0.13, for_="10min", **HOUR),
        '`Above("errors", 0.13, clear=0.11)`, 1h': sm.Above("errors", 0.13, clear=0.11, **HOUR),
    }
    burns: ClassVar = {
        '`BurnRate("errors", 0.90)`, 1h and 5min, factor 1.5': sm.BurnRate(
            "errors", 0.90, factor=1.5
        ),
        '`BurnRate("errors", 0.98)`, 1h and 5min, factor 14.4': sm.BurnRate("errors", 0.98),
        '`BurnRate("errors", 0.98)`, 6h and 30min, factor 6': sm.BurnRate(
            "errors", 0.98, windows=("6h", "30min")
        ),
    }
    shifts: ClassVar = {
        f'`Change("errors", 0.10)`, 1 a {period}': sm.Change(
            "errors", RATE, false_alarms=f"1 a {period}"
        )
        for period in A_WEEK
    } | {
        '`Change("errors", 0.10, direction="both")`, 1 a year': sm.Change(
            "errors", RATE, direction="both"
        ),
        '`Change("errors", 0.09, tolerance=0.01)`, 1 a day': sm.Change(
            "errors", 0.09, tolerance=0.01, false_alarms="1 a day"
        ),
    }
    promises: ClassVar = {name: often(name.rpartition(" ")[2]) for name in shifts}

    def fires(self, rng: np.random.Generator, minutes: int, change: Any = None) -> Fires:
        wrong, rows = rows_of(rng, minutes, change).sum(axis=1), np.full(minutes, ROWS)
        found = {name: threshold(rule, wrong, rows) for name, rule in self.thresholds.items()}
        found |= {name: burning(rule, wrong, rows) for name, rule in self.burns.items()}
        return found | {name: changing(rule, wrong, rows) for name, rule in self.shifts.items()}


class Streams(Table):
    """`Change` on quiet streams of other kinds, of which the last do not keep to its condition."""

    title = '`Change("errors", 0.10)`, 1 a day, on other quiet streams'
    rule: ClassVar = sm.Change("errors", RATE, false_alarms="1 a day")
    tolerant: ClassVar = sm.Change("errors", RATE, false_alarms="1 a day", tolerance=0.02)
    kept: ClassVar = (
        "0 to 50 rows a minute",
        "rows in every other minute, and none for 8 hours of each day",
        "values in [0, 1] with a mean of 0.10",
        "a rate that wanders in 0.08 to 0.12, `tolerance=0.02`",
    )
    promises: ClassVar = dict.fromkeys(kept, often("day"))

    def fires(self, rng: np.random.Generator, minutes: int, change: Any = None) -> Fires:
        full = np.full(minutes, ROWS)
        some = rng.integers(0, 51, minutes)
        time = np.arange(minutes)
        gaps = np.where((time % 2 == 0) & (time % DAY >= 480), ROWS, 0)
        values = rng.beta(0.5, 4.5, (minutes, ROWS)).sum(axis=1)
        steps = 0.02 * math.sqrt(1 - 0.99**2) * rng.normal(size=minutes)
        for minute in range(1, minutes):  # an autoregression, of which an hour has forgotten half
            steps[minute] += 0.99 * steps[minute - 1]
        wandering = rng.binomial(ROWS, RATE + np.clip(steps, -0.02, 0.02))
        twice = 2 * rng.binomial(ROWS // 2, RATE, minutes)
        return {
            self.kept[0]: changing(self.rule, rng.binomial(some, RATE), some),
            self.kept[1]: changing(self.rule, rng.binomial(gaps, RATE), gaps),
            self.kept[2]: changing(self.rule, values, full),
            self.kept[3]: changing(self.tolerant, wandering, full),
            "the same, without `tolerance`": changing(self.rule, wandering, full),
            "every row twice": changing(self.rule, twice, full),
        }


# --- slices --------------------------------------------------------------------------------------

SLICES, SLICE_ROWS, SLICE_RATE = 20, 15, 0.90  # rows of five minutes
HOUR_ROWS = 12 * SLICE_ROWS


def highs(tail: float) -> np.ndarray:
    """Return the upper limit of each number of right rows in an hour."""
    every = [clopper_pearson(right, HOUR_ROWS, tail)[1] for right in range(HOUR_ROWS + 1)]
    return np.array(every)


class Sliced(Table):
    """Slices of one accuracy, one of which falls."""

    title = "Twenty slices with an accuracy of 0.90, three rows a minute each, every five minutes"
    minutes = 5
    changes: ClassVar = {"to a slice at 0.80": 0.80}
    level: ClassVar = 0.999
    limits: ClassVar = {
        "exact limits of each slice at 0.999 below 0.90, 1h, uncorrected": 0.001 / 2,
        '`Below("accuracy", 0.90, by="who")`, 1h': 0.001 / 2 / SLICES,
        '`Below("accuracy", 0.90, by="who", level=0.9)`, 1h': 0.1 / 2 / SLICES,
    }
    shifts: ClassVar = {
        '`Change("accuracy", 0.90)` of each slice, 1 a month, uncorrected': f"{SLICES} a month",
        '`Change("accuracy", 0.90, by="who")`, 1 a day': "1 a day",
        '`Change("accuracy", 0.90, by="who")`, 1 a month': "1 a month",
        '`Change("accuracy", 0.90, by="who")`, 1 a year': "1 a year",
    }
    promises: ClassVar = {
        '`Below("accuracy", 0.90, by="who")`, 1h': Promise(0.0005, of_windows=True),
        '`Below("accuracy", 0.90, by="who", level=0.9)`, 1h': Promise(0.05, of_windows=True),
    } | {name: often(period.rpartition(" ")[2]) for name, period in [*shifts.items()][1:]}

    def __init__(self) -> None:
        self.highs = {name: highs(tail) for name, tail in self.limits.items()}

    def stream(self, rng: np.random.Generator, panes: int, change: float | None) -> np.ndarray:
        """Return the right rows of each pane and slice."""
        rates = np.full((panes, SLICES), SLICE_RATE)
        rates[288:, 0] = SLICE_RATE if change is None else change
        return rng.binomial(SLICE_ROWS, rates)

    def fires(self, rng: np.random.Generator, minutes: int, change: Any = None) -> Fires:
        counts = self.stream(rng, minutes // 5, change)
        hours = over(counts, 12)
        hours[:11] = HOUR_ROWS  # no alarm before the first hour is over
        found = {"a slice's value below 0.85, 1h": (hours < 0.85 * HOUR_ROWS).any(axis=1)}
        found |= {name: (high[hours] < SLICE_RATE).any(axis=1) for name, high in self.highs.items()}
        return found | {name: self.changes_of(counts, some) for name, some in self.shifts.items()}

    def changes_of(self, counts: np.ndarray, period: str) -> np.ndarray:
        """Return when a `Change` by slice fires."""
        rule = sm.Change("accuracy", SLICE_RATE, by="who", false_alarms=period)
        rows = counts.astype(float).tolist()
        trials = [{str(n): (s, float(SLICE_ROWS)) for n, s in enumerate(row)} for row in rows]
        ends = ends_of(len(counts), 5)
        found = rule.follow(ends, trials, rule.limit(300 * SECOND), (-1,))
        return firing(rule, found.moments, len(counts), 5)


# --- scores, inputs and events -------------------------------------------------------------------

METHODS: tuple[Any, ...] = ("ks", "wasserstein", "psi", "js")


def alerts_of(live: sm.Live, rules: dict[str, Any], steps: int, minutes: int) -> Fires:
    """Return when some rules fire on a stream that has ended after some steps."""
    alerts = live.now(60 * minutes * (steps + 1)).alerts([*rules.values()])
    return {name: marks(alert, steps, minutes) for name, alert in zip(rules, alerts, strict=True)}


def regular(minutes: int) -> np.ndarray:
    """Return the seconds of 20 rows a minute."""
    return np.arange(0, 60 * minutes, 60 / ROWS)


class Scores(Table):
    """Scores compared with a reference, by the default thresholds."""

    title = "Normal scores, 20 a minute, against a reference of 20,000, over each hour"
    minutes = 60
    changes: ClassVar = {"by 0.2 sd": 0.2, "by 0.5 sd": 0.5}

    def fires(self, rng: np.random.Generator, minutes: int, change: Any = None) -> Fires:
        reference = sm.Quantile(q=0.5, max_bins=4096).update(rng.normal(size=20_000))
        rules = {
            f"`Drift`, {method}": sm.Drift(
                reference,
                "values",
                method=method,
                threshold=0.15 if method == "wasserstein" else None,
            )
            for method in METHODS
        }
        live = sm.Live(sm.Quantile(q=0.5, max_bins=4096), tiers=[("1h", "9d")])
        times = regular(minutes)
        values = rng.normal(size=times.size) + (change or 0.0) * (times >= 86_400)
        live.observe(time=times, values=values)
        return alerts_of(live, rules, minutes // 60, 60)


class Floors(Table):
    """The noise floor alone: a threshold of 0, in windows that share no rows."""

    title = "The noise floor of distances alone, in windows of 100 rows that no other window shares"
    minutes = 60
    rows: ClassVar = 100
    shares: ClassVar = 1 / np.arange(1, 21) / (1 / np.arange(1, 21)).sum()  # Zipf's
    promises: ClassVar = dict.fromkeys(
        [
            *(f"`Drift`, {method}, `threshold=0`" for method in METHODS),
            *(f"`chance` of an input of 20 categories, {method}" for method in METHODS[2:]),
        ],
        Promise(0.001, of_windows=True),
    )

    def fires(self, rng: np.random.Generator, minutes: int, change: Any = None) -> Fires:
        hours = minutes // 60
        found = []
        reference = sm.Quantile(q=0.5).update(rng.normal(size=20_000))
        rules = [sm.Drift(reference, "values", method=m, threshold=0.0) for m in METHODS]
        groups = {"type": "category", "reference": self.groups(rng, 20_000)}
        live = sm.Live(sm.Mean(), tiers=[("1h", "9d")], inputs={"group": groups})
        times = np.repeat(3600.0 * np.arange(hours), self.rows)
        group = self.groups(rng, times.size)
        live.observe(time=times, values=np.zeros(times.size), group=group)
        for hour in range(hours):
            sample = sm.Quantile(q=0.5).update(rng.normal(size=self.rows))
            (one,) = live.inputs("1h", end=3600 * (hour + 1))
            distances = [one.distances[method] for method in METHODS[2:]]
            found.append(
                [rule.judge(0, (sample,)).verdict == "bad" for rule in rules]
                + [distance.low > distance.chance for distance in distances]
            )
        return dict(zip(self.promises, np.array(found).T, strict=True))

    def groups(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.choice(20, n, p=self.shares).astype(str)


class Inputs(Table):
    """Declared inputs, which need no labels."""

    title = "Declared inputs, 20 rows a minute, evaluated every hour"
    minutes = 60
    changes: ClassVar = {"to the change": True}
    rules: ClassVar = {
        '`Above("age/nulls", 0.03)`, from 0.02 to 0.05': sm.Above("age/nulls", 0.03, **HOUR),
        '`BurnRate("age/nulls", 0.98)`, 6h and 1h, factor 1.5, from 0.02 to 0.05': sm.BurnRate(
            "age/nulls", 0.98, windows=("6h", "1h"), factor=1.5
        ),
        '`Above("age/outside", 0.025)`, from 0.014 to 0.036': sm.Above(
            "age/outside", 0.025, **HOUR
        ),
        '`Above("device/unseen", 0.01)`, from 0.002 to 0.02': sm.Above(
            "device/unseen", 0.01, **HOUR
        ),
        '`Above("age/ks", 0.1)`, by 0.4 sd': sm.Above("age/ks", 0.1, **HOUR),
        '`Above("age/psi", 0.2)`, by 0.4 sd': sm.Above("age/psi", 0.2, **HOUR),
        '`Above("age/wasserstein", 1.5)`, by 4, 0.4 sd': sm.Above("age/wasserstein", 1.5, **HOUR),
        '`Above("country/psi", 0.2)`, one of four from 0.05 to 0.25': sm.Above(
            "country/psi", 0.2, **HOUR
        ),
        '`Above("country/js", 0.1)`, one of four from 0.05 to 0.25': sm.Above(
            "country/js", 0.1, **HOUR
        ),
    }

    def fires(self, rng: np.random.Generator, minutes: int, change: Any = None) -> Fires:
        ages, places = rng.normal(40, 10, 5000), np.array(["DE", "FR", "IT", "AT"])
        quiet, moved = np.array([0.50, 0.30, 0.15, 0.05]), np.array([0.30, 0.30, 0.15, 0.25])
        inputs = {
            "age": {"type": "number", "range": [18, 100], "reference": ages},
            "country": {"type": "category", "reference": rng.choice(places, 5000, p=quiet)},
            "device": {"type": "category", "categories": ["phone", "desk"]},
        }
        live = sm.Live(sm.Mean(), tiers=[("1h", "9d")], inputs=inputs)
        times = regular(minutes)
        late = np.logical_and(times >= 86_400, bool(change))
        n = times.size
        cumulated = np.where(late[:, None], moved.cumsum(), quiet.cumsum())[:, :-1]
        live.observe(
            time=times,
            values=np.zeros(n),
            age=np.where(
                rng.random(n) < np.where(late, 0.05, 0.02), np.nan, rng.normal(40 - 4 * late, 10)
            ),
            country=places[(rng.random((n, 1)) > cumulated).sum(axis=1)],
            device=np.where(
                rng.random(n) < np.where(late, 0.02, 0.002),
                "watch",
                rng.choice(["phone", "desk"], n),
            ),
        )
        drift = sm.Drift(sm.Quantile(q=0.5).update(ages), "age")
        rules = {**self.rules, "`Drift` of the age, ks, by 0.4 sd": drift}
        return alerts_of(live, rules, minutes // 60, 60)


class Events(Table):
    """Events and labels that stop."""

    title = "Events at random times, and the share of them that get a label"
    changes: ClassVar = {"to none": 0.0, "to half": 0.5}
    silence: ClassVar = {
        f'`Silence("{length}min")`, one event a minute': sm.Silence(f"{length}min")
        for length in (5, 10)
    }
    covers: ClassVar = {
        '`Coverage(0.93, window="1h")`, 0.95 have one': sm.Coverage(0.93, **HOUR),
        '`Coverage(0.90, window="1h")`, 0.95 have one': sm.Coverage(0.90, **HOUR),
    }
    promises: ClassVar = {  # of the intervals between events, some are as long by chance
        name: Promise(WEEK * math.exp(-length))
        for name, length in zip(silence, (5, 10), strict=True)
    }

    def fires(self, rng: np.random.Generator, minutes: int, change: Any = None) -> Fires:
        times = np.cumsum(rng.exponential(60, int(1.2 * minutes) + 100))
        kept = (times < 86_400) | (change is None) | (rng.random(times.size) < (change or 0.0))
        times = times[kept & (times < 60 * minutes)]
        live = sm.Live(sm.Mean(), tiers=[("1min", "9d")])
        live.observe(time=times, values=np.zeros(times.size))
        found = alerts_of(live, self.silence, minutes, 1)
        share = np.full(minutes, 0.95)
        share[DAY:] *= 1 if change is None else change
        labelled, rows = rng.binomial(ROWS, share), np.full(minutes, ROWS)
        for name, rule in self.covers.items():

            def judge(some: int, n: int, rule: sm.Coverage = rule) -> Moment:
                return rule.judge(0, (Coverage(n, some, *[0] * 16),))

            found[name] = by_counts(rule, judge, over(labelled, 60), over(rows, 60))
        return found


TABLES: dict[str, Callable[[], Table]] = {
    "peers": Peers,
    "rates": Rates,
    "streams": Streams,
    "slices": Sliced,
    "scores": Scores,
    "floors": Floors,
    "inputs": Inputs,
    "events": Events,
}


# --- counting ------------------------------------------------------------------------------------


class Quiet(NamedTuple):
    """What a rule did in quiet weeks; windows share no rows."""

    weeks: int = 0
    ready: float = 0.0  # the weeks in which the alert did not fire, so that it could begin to
    alarms: int = 0
    windows: int = 0
    bad: int = 0

    def plus(self, other: Quiet) -> Quiet:
        return Quiet(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def limits(self) -> tuple[float, float]:
        """The exact 95 % limits of the mean number of alarms a week, of independent alarms."""
        low = chi2.ppf(0.025, 2 * self.alarms) / 2 if self.alarms else 0.0
        return low / self.weeks, chi2.ppf(0.975, 2 * self.alarms + 2) / 2 / self.weeks

    def breaks(self, promise: Promise) -> bool:
        """Return whether a promise is broken beyond chance."""
        if promise.of_windows:
            return bool(binom.sf(self.bad - 1, self.windows, promise.most) < CHANCE)
        return bool(poisson.sf(self.alarms - 1, promise.most * self.ready) < CHANCE)


def edges(fires: np.ndarray) -> np.ndarray:
    """Return where something begins to be true."""
    return np.flatnonzero(fires & ~np.concatenate([[False], fires[:-1]]))


def quiet_week(table: Table, rng: np.random.Generator) -> dict[str, Quiet]:
    """Return what each rule does in a week without a change."""
    found = {}
    for name, every in table.fires(rng, LEAD + WEEK).items():
        lead = LEAD // table.minutes
        assert len(every) == lead + WEEK // table.minutes
        fires = every[lead:]
        apart = fires[table.window // table.minutes - 1 :: table.window // table.minutes]
        alarms = int((edges(every) >= lead).sum())
        ready = 1 - float(fires.mean())
        found[name] = Quiet(1, ready, alarms, len(apart), int(apart.sum()))
    return found


def delay(table: Table, rng: np.random.Generator, change: Any) -> dict[str, float]:
    """Return the minutes from a change, after a day, to the next alarm of each rule."""
    found = {}
    for name, fires in table.fires(rng, 2 * DAY, change).items():
        ends = (edges(fires) + 1) * table.minutes - DAY
        found[name] = min(ends[ends > 0].tolist(), default=math.inf)
    return found


class Job(NamedTuple):
    """A week, or a run with a change, of a table."""

    table: str
    change: str | None
    seed: tuple[int, ...]


MADE: dict[str, Table] = {}  # of this process


def done(job: Job) -> tuple[Job, dict[str, Any]]:
    table = MADE.get(job.table) or MADE.setdefault(job.table, TABLES[job.table]())
    rng = np.random.default_rng(job.seed)
    if job.change is None:
        return job, quiet_week(table, rng)
    return job, delay(table, rng, table.changes[job.change])


def jobs_of(name: str, weeks: int, runs: int, seed: int) -> list[Job]:
    """Return the weeks and the runs of a table; each has its own seed."""
    place = [*TABLES].index(name)
    changes: Sequence[str | None] = [None, *TABLES[name]().changes]
    return [
        Job(name, change, (seed, place, column, n))
        for column, change in enumerate(changes)
        for n in range(runs if column else weeks)
    ]


def counted(
    results: Iterable[tuple[Job, dict[str, Any]]],
) -> tuple[dict[str, Quiet], dict[str, dict[str, list[float]]]]:
    """Return the sum of the weeks of each rule, and its delays by the title of the change."""
    quiet: dict[str, Quiet] = {}
    delays: dict[str, dict[str, list[float]]] = {}
    for job, found in results:
        for name, one in found.items():
            if job.change is None:
                quiet[name] = quiet.get(name, Quiet()).plus(one)
            else:
                delays.setdefault(name, {}).setdefault(job.change, []).append(one)
    return quiet, delays


def broken(table: Table, quiet: dict[str, Quiet]) -> list[str]:
    """Return the rules of a table that break their promise."""
    return [name for name, promise in table.promises.items() if quiet[name].breaks(promise)]


def shown(table: Table, quiet: dict[str, Quiet], delays: dict[str, dict[str, list[float]]]) -> str:
    """Return a table in Markdown."""
    promised = ["promised"] if table.promises else []
    titles = ["rule", "false alarms a week", *promised, *table.changes]
    lines = [titles, ["---"] * len(titles)]
    for name, one in quiet.items():
        low, high = one.limits
        line = [name, f"{one.alarms / one.weeks:.2g} ({low:.2g} to {high:.2g})"]
        promise = table.promises.get(name)
        if promise is None:
            line += [""] * len(promised)
        elif promise.of_windows:
            line.append(
                f"{promise.most:.2%} of windows; {one.bad / one.windows:.3%} of {one.windows:,}"
            )
        else:
            line.append(f"{promise.most:.2g}")
        middles = [float(np.median(delays[name][change])) for change in table.changes]
        line += [f"{m:.0f} min" if math.isfinite(m) else "not in a day" for m in middles]
        lines.append(line)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tables", nargs="*", help=f"some of {', '.join(TABLES)}; default: all")
    parser.add_argument("--weeks", type=int, default=200)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    if unknown := [name for name in given.tables if name not in TABLES]:
        parser.error(f"there is no table {unknown[0]!r}: there are {', '.join(TABLES)}")
    failed = 0
    with get_context("spawn").Pool(given.processes) as pool:
        for name in given.tables or TABLES:
            table = TABLES[name]()
            jobs = jobs_of(name, given.weeks, given.runs, given.seed)
            quiet, delays = counted(pool.imap(done, jobs))
            print(
                f"{table.title}; {given.weeks} weeks\n\n{shown(table, quiet, delays)}\n", flush=True
            )
            for rule in broken(table, quiet):
                print(f"{rule} breaks its promise: {quiet[rule]}", file=sys.stderr, flush=True)
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
