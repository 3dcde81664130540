"""Live beside river, in one process: microseconds an event, windows, memory.

Each figure is the best of some rounds in the processor's time. Ratios are what to look at: each is
the median of rounds in which both take turns, so that what else the machine does falls on both.
"""

from __future__ import annotations

import random
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

import numpy as np
from measuring import Figure, readable
from peers import MissingPeer, peer

import streammetrics as sm
from streammetrics.live.pipeline import Pipeline
from streammetrics.live.serialization import pipeline_of

metrics, utils = peer("river.metrics"), peer("river.utils")

N = 20_000
LONG = 300_000
ROUNDS = 5
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


def rivers(rows, wrap=None, *, timed=False, full=0):
    """Return the seconds that the rows take; of a window, once it is `full`, so many of them."""
    parts = [metrics.Accuracy(), metrics.ROCAUC(), metrics.LogLoss()]
    if wrap is not None:
        parts = [wrap(part) for part in parts]
    accuracy, *curves = parts
    when, step = datetime(2026, 1, 1), timedelta(milliseconds=10)
    for place, (label, score) in enumerate(rows):
        if place == full:
            start = time.process_time()
        extra = {"t": when + place * step} if timed else {}
        accuracy.update(bool(label), score >= 0.5, **extra)
        for part in curves:
            part.update(bool(label), {True: score, False: 1 - score}, **extra)
    return (time.process_time() - start) / (len(rows) - full)


def rolling(size):
    return lambda part: utils.Rolling(part, window_size=size)


def timed(size):
    return lambda part: utils.TimeRolling(part, period=timedelta(milliseconds=10 * size))


def speed(scale):
    """Seconds an event, beside those of river."""
    rows = events(int(N * scale))
    cases = {
        "river, no window": (rivers, 5),
        "river, Rolling of 1,000": (lambda r: rivers(r, rolling(1000), full=1000), None),
        "river, TimeRolling of 1,000": (
            lambda r: rivers(r, timed(1000), timed=True, full=1000),
            20,
        ),
        "river, TimeRolling of 10,000": (
            lambda r: rivers((r * 10)[:11_000], timed(10_000), timed=True, full=10_000),
            100,
        ),
    }
    pair = min(joined(rows) for _ in range(ROUNDS)) / len(rows)
    title = "  Live.predict and label, a pair"
    figures, mine = [Figure(title, readable(pair), "3 µs", pair <= 3e-6)], list[float]()
    for name, (run, goal) in cases.items():
        if reason := getattr(metrics, "reason", None):
            raise MissingPeer(reason)
        turns = [(ours(rows) / len(rows), run(rows)) for _ in range(ROUNDS)]
        mine += [own for own, _ in turns]
        ratio = median(taken / own for own, taken in turns)
        text = f"{readable(min(taken for _, taken in turns))}, {ratio:.2g}x Live.observe"
        met = None if goal is None else ratio >= goal
        figures.append(Figure(f"  {name}", text, "" if goal is None else f"{goal}x", met))
    title = "Live.observe, an event of three metrics in panes"
    return [Figure(title, readable(min(mine)), "", None), *figures]


def slowest(scale):
    """The slowest call among many."""
    live, rows = sm.Live(sm.MetricSet(_SEVEN)), events(N)
    begin, calls, n = time.time() - 4000, [], int(LONG * scale)
    for place in range(n):
        label, score = rows[place % N]
        start = time.process_time()
        live.observe(time=begin + place / 300, y_true=label, y_score=score)
        calls.append(time.process_time() - start)
    calls.sort()
    text = f"{readable(calls[-1])}, of all but 10 {readable(calls[-11])}"
    return [Figure(f"slowest of {n:,} calls of Live.observe", text, "2 ms", calls[-1] <= 2e-3)]


def windows(scale):
    """What a window takes, cold and cached, and what panes take."""
    dice = np.random.default_rng(0)
    n = int(180 * 1024 * scale)
    times = time.time() - 180 * 60 + np.arange(n) * 180 * 60 / n
    scores = dice.random(n)
    columns = {"time": times, "y_true": dice.random(n) < scores, "y_score": scores}
    blob = sm.Live(sm.MetricSet(_SEVEN)).observe(**columns).to_bytes()
    cold, cached = [], []
    for _ in range(ROUNDS):
        live = sm.from_bytes(blob)
        cold.append(_reading(live))
        cached += [_reading(live) for _ in range(20)]
    cases = {"nothing cached": (min(cold), 5e-3), "cached": (median(cached), 50e-6)}
    return [
        Figure(f'Live.window("1h"), {name}', readable(taken), readable(goal), taken <= goal)
        for name, (taken, goal) in cases.items()
    ]


def _reading(live):
    start = time.process_time()
    live.window("1h")
    return time.process_time() - start


def waiting(scale):
    """What a row that waits takes; ten million at a scale of 10."""
    n = int(1_000_000 * scale)
    live = sm.Live(sm.MetricSet(_SUITE))
    times, ids = time.time() - 3600 + np.arange(n) * 3600 / n, np.arange(n)
    for first in range(0, n, 1024):
        part = slice(first, first + 1024)
        live.predict(id=ids[part], time=times[part], y_score=np.full(ids[part].size, 0.5))
    held = live._shared.current.join.table.nbytes
    text = f"{held / n:.1f} bytes, {held / 1e6:,.0f} MB"
    return [Figure(f"a row that waits, of {n:,}", text, "45 bytes", held / n <= 45)]


def kept(scale):
    """What the panes of the default tiers take, all of them full, and how soon they are open."""
    each = max(int(1500 * scale), 1)
    ends = [(60, 180), (3600, 360), (86_400, 400)]
    now = time.time() // 86_400 * 86_400
    times = [now - place * length - 1 for length, count in ends for place in range(count)]
    columns = {"time": np.repeat(times, each) - np.tile(np.arange(each) / each, len(times))}
    dice = np.random.default_rng(0)
    columns["y_score"] = dice.random(len(columns["time"]))
    columns["y_true"] = dice.random(len(columns["time"])) < columns["y_score"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "live.db"
        with sm.Live(sm.MetricSet(_SEVEN), store=path) as live:
            live.observe(**columns).flush()
            held, panes = (
                live.nbytes,
                sum(len(row.states) for row in live._shared.current.panes.rows),
            )
        taken = []
        for _ in range(3):
            start = time.process_time()
            with sm.Live(sm.MetricSet(_SEVEN), store=path):
                taken.append(time.process_time() - start)
        size = path.stat().st_size
    return [
        Figure(f"{panes} panes of 7 metrics", f"{held / 1e6:.1f} MB", "32 MB", held <= 32e6),
        Figure(
            f"  opened from a store of {size / 1e6:.1f} MB",
            readable(min(taken)),
            "0.5 s",
            min(taken) <= 0.5,
        ),
    ]


def merges(scale):
    """What a service takes to read the states of three replicas and to merge them.

    Each has 30 days of panes of three metrics by 50 slices, a row a second in all: first when none
    is known, then each time after ten more seconds of rows, half of them of the last hour.
    """
    end, days = 1_760_000_000 // 86_400 * 86_400, 30
    blobs = [[blob] for blob in (_replica(end, days, place, scale) for place in range(3))]
    for place, versions in enumerate(blobs):
        dice, live = np.random.default_rng(10 + place), sm.from_bytes(versions[0])
        for step in range(ROUNDS):
            times = end + 10 * step + dice.integers(0, 10, 4)
            late = end - dice.integers(0, 3600, 4)
            live.observe(**_sliced(np.concatenate([late, times]), dice))
            versions.append(live.to_bytes())
    taken, made = [], {}
    for versions in zip(*blobs, strict=True):
        start = time.process_time()
        pipelines = [*map(pipeline_of, versions)]
        merged = Pipeline(pipelines[0].suite, pipelines[0].config)
        merged.merge(pipelines, made)
        taken.append(time.process_time() - start)
    size, least = sum(len(versions[0]) for versions in blobs) / 1e6, min(taken[1:])
    title = f"3 replicas with 50 slices, {size:.0f} MB: read and merged"
    again = f"{readable(median(taken[1:]))}, at best {readable(least)}"
    return [
        Figure(f"{title} for the first time", readable(taken[0]), "", None),
        Figure("  again, after ten seconds", again, "1 s", least <= 1),
    ]


def _replica(end, days, place, scale):
    dice = np.random.default_rng(place)
    live = sm.Live(sm.MetricSet(_SUITE | {"auc": _SEVEN["auc"]}), by=[["country"]])
    times = np.sort(end - dice.integers(0, days * 86_400, int(days * 86_400 // 3 * scale)))
    for part in np.array_split(times, max(1, len(times) // 100_000)):
        live.observe(**_sliced(part, dice))
    return live.to_bytes()


def _sliced(times, dice):
    scores = dice.random(len(times))
    return {
        "time": times,
        "y_true": (dice.random(len(times)) < scores).astype(int),
        "y_score": scores,
        "country": np.array([f"country {n}" for n in range(50)])[dice.integers(0, 50, len(times))],
    }


BENCHMARKS = {
    "live merge": merges,
    "live events": speed,
    "live windows": windows,
    "live waiting": waiting,
    "live panes": kept,
    "live slowest": slowest,
}
