"""False alarms and delays of alerts, in a simulation: the tables of docs/alerts.md.

    python tests/benchmarks/alerts.py

An error rate of 0.10, 20 rows a minute, looked at every minute. False alarms are counted over some
weeks in which nothing happens; delays are those until the first alarm after the rate has moved, at
the end of a quiet day. Beside the rules of the library: a 95 % interval (Wilson's) of the last hour
that does not hold the rate, three standard deviations of the last hour, and ADWIN and Page-Hinkley
of river with their defaults, row by row, once they are reset by an alarm as river does.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np
import river.drift

import streammetrics as sm
from streammetrics.live.alerts.rule import Moment, Reading, alert_of
from streammetrics.live.events import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

RATE, ROWS, HOUR, DAY = 0.10, 20, 60, 1440


def over(wrong: np.ndarray, minutes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return wrong rows and all rows of the last minutes, at the end of each."""
    sums = np.concatenate([[0], np.cumsum(wrong.sum(axis=1))])
    ends = np.arange(1, len(wrong) + 1)
    starts = np.maximum(ends - minutes, 0)
    return sums[ends] - sums[starts], (ends - starts) * ROWS


def edges(fires: np.ndarray) -> list[int]:
    """Return where something begins to be true."""
    return np.flatnonzero(fires & ~np.concatenate([[False], fires[:-1]])).tolist()


def interval(wrong: np.ndarray) -> list[int]:
    s, n = over(wrong, HOUR)
    z, p = 1.959964, s / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return edges(np.abs(RATE - centre) > half)


def three_sigma(wrong: np.ndarray) -> list[int]:
    s, n = over(wrong, HOUR)
    return edges(np.abs(s / n - RATE) > 3 * np.sqrt(RATE * (1 - RATE) / n))


def of_moments(rule: Any, moments: list[Moment], reach: int = 0) -> list[int]:
    """Return the minutes at which an alert of the library begins to fire."""
    alert = alert_of(rule, moments, reach)
    return [int(time.timestamp()) // 60 - 1 for time, state in alert.changes if state == "firing"]


def ends_of(wrong: np.ndarray) -> list[int]:
    return [60 * SECOND * minute for minute in range(1, len(wrong) + 1)]


def change(wrong: np.ndarray) -> list[int]:
    rule = sm.Change("errors", RATE, false_alarms="1 a year", direction="both")
    trials = np.stack([wrong.sum(axis=1), np.full(len(wrong), ROWS)], axis=1).astype(float)
    limit = [rule.limit(60 * SECOND)] * len(wrong)
    return of_moments(rule, rule.follow(ends_of(wrong), trials, limit, (1, -1)))


def readings(wrong: np.ndarray, minutes: int) -> list[Reading]:
    s, n = over(wrong, minutes)
    return [Reading(p, p, p, rows) for p, rows in zip((s / n).tolist(), n.tolist(), strict=True)]


def threshold(rule: Any) -> Callable[[np.ndarray], list[int]]:
    def alarms(wrong: np.ndarray) -> list[int]:
        every = zip(ends_of(wrong), readings(wrong, HOUR), strict=True)
        return of_moments(rule, [rule.compare(end, (one,)) for end, one in every], rule.reach)

    return alarms


def burning(wrong: np.ndarray) -> list[int]:
    rule = sm.BurnRate("errors", 1 - RATE, windows=("1h", "5min"), factor=1.5)
    windows = [
        [rule.burnt(one, right=False) for one in readings(wrong, minutes)] for minutes in (HOUR, 5)
    ]
    every = zip(ends_of(wrong), zip(*windows, strict=True), strict=True)
    return of_moments(rule, [rule.compare(end, burns) for end, burns in every])


def of_river(make: Callable[[], Any]) -> Callable[[np.ndarray], list[int]]:
    def alarms(wrong: np.ndarray) -> list[int]:
        detector, found = make(), []
        for minute, rows in enumerate(wrong.tolist()):
            for row in rows:
                detector.update(row)
                if detector.drift_detected:
                    found.append(minute)
        return found

    return alarms


ABOVE = {"window": "1h", "min_rows": 500}
RULES: dict[str, Callable[[np.ndarray], list[int]]] = {
    "95 % interval of the last hour": interval,
    "three sigma of the last hour": three_sigma,
    "river ADWIN": of_river(river.drift.ADWIN),
    "river Page-Hinkley": of_river(river.drift.PageHinkley),
    '`Above("errors", 0.13)`, 1h': threshold(sm.Above("errors", 0.13, **ABOVE)),
    '`Above("errors", 0.13)`, 1h, `for_="10min"`': threshold(
        sm.Above("errors", 0.13, for_="10min", **ABOVE)
    ),
    "`BurnRate(0.90)`, 1h and 5min, factor 1.5": burning,
    '`Change("errors", 0.10)`, 1 a year': change,
}


def rates(weeks: int, runs: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    quiet = [rng.random((7 * DAY, ROWS)) < RATE for _ in range(weeks)]
    moved = {
        to: [
            np.concatenate([rng.random((DAY, ROWS)) < RATE, rng.random((DAY, ROWS)) < to])
            for _ in range(runs)
        ]
        for to in (0.12, 0.15, 0.20)
    }
    print(f"| rule | false alarms a week | {' | '.join(f'to {to:.2f}' for to in moved)} |")
    print(f"| --- | --- |{' --- |' * len(moved)}")
    for name, alarms in RULES.items():
        wrong = sum(len(alarms(week)) for week in quiet) / weeks
        delays = [median([first(alarms(run)) for run in every]) for every in moved.values()]
        print(f"| {name} | {wrong:.2g} | {' | '.join(delays)} |", flush=True)


def first(alarms: list[int]) -> float:
    """Return how many minutes after the change the first alarm began."""
    return min((minute - DAY + 1 for minute in alarms if minute >= DAY), default=np.inf)


def median(delays: list[float]) -> str:
    middle = float(np.median(delays))
    return f"{middle:.0f} min" if np.isfinite(middle) else "not in a day"


def drifts(runs: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    reference = sm.Quantile(q=0.5, max_bins=4096).update(rng.normal(size=20_000))
    rules = [
        sm.Drift(reference, "values", method=method, window="1h", threshold=threshold)
        for method, threshold in (("ks", None), ("wasserstein", 0.15), ("psi", None), ("js", None))
    ]
    print("| rule | false alarms a week | by 0.2 sd | by 0.5 sd |\n| --- | --- | --- | --- |")
    shown: list[list[str]] = [[f"`Drift`, {rule.method}"] for rule in rules]
    for shift in (0.0, 0.2, 0.5):
        found: list[list[float]] = [[] for _ in rules]
        for _ in range(runs):
            live = sm.Live(sm.Quantile(q=0.5, max_bins=4096), tiers=[("15min", "8d")])
            days = 7 if not shift else 2
            times = np.arange(0, days * 86_400, 60 / ROWS)
            values = rng.normal(size=times.size) + shift * (times >= 86_400)
            live.observe(time=times, values=values)
            for alert, of_rule in zip(live.alerts(rules), found, strict=True):
                times_of = [t.timestamp() / 60 for t, to in alert.changes if to == "firing"]
                late = [minute - DAY for minute in times_of if minute > DAY]
                of_rule.append(min(late, default=np.inf) if shift else len(times_of))
        for line, of_rule in zip(shown, found, strict=True):
            line.append(median(of_rule) if shift else f"{np.mean(of_rule):.2g}")
    for line in shown:
        print(f"| {' | '.join(line)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--weeks", type=int, default=10)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rates(options.weeks, options.runs, options.seed)
    print()
    drifts(max(options.runs // 10, 1), options.seed)
