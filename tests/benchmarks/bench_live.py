"""Live beside river, in one process: microseconds an event, windows, memory.

    python tests/benchmarks/bench_live.py [ROUNDS]

Each figure is the median of some rounds, taken in turns, in the processor's time, so that what else
the machine does matters less and falls on both alike; ratios are what to look at.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
import warnings
from datetime import datetime, timedelta

import streammetrics as sm

N = 20_000
LONG = 1_000_000
_SUITE = {"accuracy": sm.Accuracy(threshold=0.5), "auc": sm.ROCAUC(), "loss": sm.LogLoss()}
_SEVEN = {
    **_SUITE,
    "auc": sm.ROCAUC(max_bins=1024),
    "ap": sm.AveragePrecision(max_bins=1024),
    "brier": sm.BrierScore(),
    "f1": sm.F1(threshold=0.5),
    "recall": sm.Recall(threshold=0.5),
}


def events(n):
    """Return labels and scores of a model that is right four times in five."""
    dice = random.Random(0)
    scores = [dice.random() for _ in range(n)]
    return [(int(dice.random() < score), score) for score in scores]


def ours(rows):
    live = sm.Live(sm.MetricSet(_SUITE))
    begin = time.time() - len(rows) / 100
    start = time.process_time()
    for place, (label, score) in enumerate(rows):
        live.observe(time=begin + place / 100, y_true=label, y_score=score)
    live.flush()
    return time.process_time() - start


def joined(rows):
    live = sm.Live(sm.MetricSet(_SUITE))
    begin = time.time() - len(rows) / 100
    start = time.process_time()
    for place, (label, score) in enumerate(rows):
        live.predict(id=place, time=begin + place / 100, y_score=score)
        live.label(id=place, time=begin + place / 100, y_true=label)
    live.flush()
    return time.process_time() - start


def rivers(rows, wrap=None, *, timed=False):
    from river import metrics

    parts = [metrics.Accuracy(), metrics.ROCAUC(), metrics.LogLoss()]
    if wrap is not None:
        parts = [wrap(part) for part in parts]
    accuracy, *curves = parts
    when, step = datetime(2026, 1, 1), timedelta(milliseconds=10)
    start = time.process_time()
    for place, (label, score) in enumerate(rows):
        extra = {"t": when + place * step} if timed else {}
        accuracy.update(bool(label), score >= 0.5, **extra)
        for part in curves:
            part.update(bool(label), {True: score, False: 1 - score}, **extra)
    return time.process_time() - start


def speed(rounds):
    """Print microseconds an event beside those of river."""
    from river import utils

    def rolling(size):
        return lambda part: utils.Rolling(part, window_size=size)

    def timed(size):
        return lambda part: utils.TimeRolling(part, period=timedelta(milliseconds=10 * size))

    rows = events(N)
    cases = {
        "Live.observe, minute panes": (rows, ours),
        "Live.predict and label": (rows, joined),
        "river, no window": (rows, rivers),
        "river, Rolling of 1,000": (rows, lambda r: rivers(r, rolling(1000))),
        "river, TimeRolling of 1,000": (rows, lambda r: rivers(r, timed(1000), timed=True)),
        "river, TimeRolling of 10,000": (
            rows[:12_000],
            lambda r: rivers(r, timed(10_000), timed=True),
        ),
    }
    taken = {name: [] for name in cases}
    for _ in range(rounds):
        for name, (mine, run) in cases.items():
            taken[name].append(run(mine) / len(mine) * 1e6)
    base = statistics.median(taken["Live.observe, minute panes"])
    for name, times in taken.items():
        median = statistics.median(times)
        print(f"{name:32} {median:9.2f} us an event  {median / base:8.1f} x")


def slowest():
    """Print the slowest call among a million."""
    live, rows = sm.Live(sm.MetricSet(_SEVEN)), events(N)
    begin, calls = time.time() - 4000, []
    for place in range(LONG):
        label, score = rows[place % N]
        start = time.process_time()
        live.observe(time=begin + place / 300, y_true=label, y_score=score)
        calls.append(time.process_time() - start)
    calls.sort()
    most, next_most = calls[-1] * 1e3, calls[-11] * 1e3
    print(f"slowest of {LONG:,} calls: {most:.1f} ms, of all but 10 {next_most:.1f} ms")


def windows():
    """Print what a window takes, cold and cached, and what panes take."""
    import numpy as np

    dice = np.random.default_rng(0)
    n = 180 * 1024
    times = time.time() - 180 * 60 + np.arange(n) * 60 / 1024
    scores = dice.random(n)
    columns = {"time": times, "y_true": dice.random(n) < scores, "y_score": scores}
    live = sm.Live(sm.MetricSet(_SEVEN)).observe(**columns)
    blob = live.to_bytes()
    start = time.process_time()
    live = sm.from_bytes(blob)
    print(f"opened from bytes: {time.process_time() - start:.3f} s of {len(blob) / 2**20:.1f} MiB")
    for name in ("cold", "cached"):
        start = time.process_time()
        live.window("1h")
        print(f'window("1h") {name}: {(time.process_time() - start) * 1e3:.3f} ms')
    print(f"{live.nbytes / 2**20:.1f} MiB of panes")


def waiting():
    """Print what a row that waits takes."""
    import numpy as np

    n = 1_000_000
    live = sm.Live(sm.MetricSet(_SUITE))
    times = time.time() - 3600 + np.arange(n) * 3600 / n
    start = time.process_time()
    for first in range(0, n, 1024):
        part = slice(first, first + 1024)
        live.predict(id=np.arange(n)[part], time=times[part], y_score=np.full(n, 0.5)[part])
    taken = time.process_time() - start
    size = live._stream.join.table.nbytes
    each = f"{size / n:.1f} bytes each with the id, {taken / n * 1e6:.2f} us each"
    print(f"{n:,} pending rows: {each}")


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # of river, about how it is called
    speed(int(sys.argv[1]) if sys.argv[1:] else 3)
    windows()
    waiting()
    slowest()
