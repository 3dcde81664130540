"""False alarms and delays of rules by slice, in a simulation: the table of docs/alerts.md.

    python tests/benchmarks/alerts_by_slice.py

Twenty slices, each right in 90 % of its rows, 15 rows in five minutes, for some weeks; every rule
is evaluated every five minutes. Delays are those until the first alarm after one slice has fallen
to 0.80, at the end of a quiet day. Beside the rules of the library: the values of slices without
limits, and the same rules without a correction for the number of slices.
"""

from __future__ import annotations

import argparse

import numpy as np

import streammetrics as sm
from streammetrics.inference.distributions import clopper_pearson
from streammetrics.live.alerts.rule import alert_of
from streammetrics.live.events import SECOND

RATE, MOVED, SLICES, ROWS, PANE, HOUR, DAY = 0.90, 0.80, 20, 15, 300, 12, 288
LEVEL = 0.999
CHANGES = {
    '`Change("accuracy", 0.90)` of each slice, 1 a month, uncorrected': f"{SLICES} a month",
    '`Change("accuracy", 0.90, by="who")`, 1 a month': "1 a month",
    '`Change("accuracy", 0.90, by="who")`, 1 a year': "1 a year",
}
NAMES = [
    "a slice's value below 0.85, 1h",
    "exact limits of each slice at 0.999 below 0.90, 1h, uncorrected",
    '`Below("accuracy", 0.90, by="who")`, 1h',
    *CHANGES,
]


def quiet(rng: np.random.Generator, panes: int) -> np.ndarray:
    """Return whether rows are right: of each pane, slice and row."""
    return rng.random((panes, SLICES, ROWS)) < RATE


def edges(fires: np.ndarray) -> list[int]:
    """Return where something begins to be true."""
    return np.flatnonzero(fires & ~np.concatenate([[False], fires[:-1]])).tolist()


def highs(tail: float) -> np.ndarray:
    """Return the upper limit of each number of right rows in an hour."""
    return np.array([clopper_pearson(s, ROWS * HOUR, tail)[1] for s in range(ROWS * HOUR + 1)])


TAIL = (1 - LEVEL) / 2
APART, TOGETHER = highs(TAIL), highs(TAIL / SLICES)


def alarms(right: np.ndarray) -> dict[str, list[int]]:
    """Return for each rule the panes at which an alert begins to fire."""
    counts = right.sum(axis=2)
    sums = np.concatenate([np.zeros((1, SLICES), np.int64), np.cumsum(counts, axis=0)])
    hours = np.zeros_like(counts) + ROWS * HOUR  # no alarm before the first hour is over
    hours[HOUR - 1 :] = sums[HOUR:] - sums[:-HOUR]
    found = [
        edges((hours < 0.85 * ROWS * HOUR).any(axis=1)),
        *(edges((high[hours] < RATE).any(axis=1)) for high in (APART, TOGETHER)),
        *(changes(counts, often) for often in CHANGES.values()),
    ]
    return dict(zip(NAMES, found, strict=True))


def changes(counts: np.ndarray, often: str) -> list[int]:
    """Return the panes at which a `Change` by slice begins to fire."""
    rule = sm.Change("accuracy", RATE, by="who", false_alarms=often)
    trials = [{str(n): (float(s), float(ROWS)) for n, s in enumerate(row)} for row in counts]
    ends = [PANE * SECOND * pane for pane in range(1, len(counts) + 1)]
    moments = rule.follow_slices(ends, trials, rule.limit(PANE * SECOND), (-1,))
    alert = alert_of(rule, rule.together(moments), 0)
    firing = [time.timestamp() for time, state in alert.changes if state == "firing"]
    return [int(seconds) // PANE - 1 for seconds in firing]


def rates(weeks: int, seed: int) -> dict[str, float]:
    """Return the false alarms a week of each rule."""
    rng = np.random.default_rng(seed)
    counts = dict.fromkeys(NAMES, 0)
    for _ in range(weeks):
        for name, found in alarms(quiet(rng, 7 * DAY)).items():
            counts[name] += len(found)
    return {name: count / weeks for name, count in counts.items()}


def delays(runs: int, seed: int) -> dict[str, float]:
    """Return the median minutes from the change of a slice to the next alarm."""
    rng = np.random.default_rng(seed)
    every: dict[str, list[float]] = {name: [] for name in NAMES}
    for _ in range(runs):
        right = quiet(rng, 2 * DAY)
        right[DAY:, 0] = rng.random((DAY, ROWS)) < MOVED
        for name, found in alarms(right).items():
            after = [(pane - DAY + 1) * PANE / 60 for pane in found if pane >= DAY]
            every[name].append(min(after, default=np.inf))
    return {name: float(np.median(found)) for name, found in every.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weeks", type=int, default=50)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    wrong, late = rates(given.weeks, given.seed), delays(given.runs, given.seed + 1)
    print("| rule | false alarms a week | to a slice at 0.80 |\n| --- | --- | --- |")
    for name, rate in wrong.items():
        told = f"{late[name]:.0f} min" if np.isfinite(late[name]) else "not in a day"
        print(f"| {name} | {rate:.2g} | {told} |")


if __name__ == "__main__":
    main()
