"""How time and memory are measured: in turns, the best of a few rounds."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peers import Missing, MissingPeer

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np


LONG = 10.0  # seconds


@dataclass
class Case:
    """One piece of work, done by us and by the peers, on the same columns."""

    title: str
    ours: Callable[[], Any]
    peers: dict[str, Callable[[], Any]]
    goals: dict[str, float]
    columns: tuple[np.ndarray, ...] = ()
    repeats: int = 3
    calls: int = 1


@dataclass
class Figure:
    """A figure that is not a ratio of two times in this process."""

    title: str
    measured: str
    goal: str
    met: bool | None


WATCHED = """
import json, sys, threading, time
import numpy as np, psutil
import streammetrics as sm

rows, found = int(sys.argv[1]), {}
process, before, peak, done = psutil.Process(), 0, 0, False

def begin():
    global before, peak
    before = peak = process.memory_info().rss

def watch():
    global peak
    while not done:
        peak = max(peak, process.memory_info().rss)
        time.sleep(0.001)

threading.Thread(target=watch, daemon=True).start()
"""


def growth_of(work: str, rows: int) -> dict[str, Any]:
    """Run work in a process of its own; return the growth of its resident set after `begin()`.

    The work knows `rows`, and what it puts into `found` is returned as well.
    """
    script = f"{WATCHED}{work}\ndone = True\nprint(json.dumps(found | dict(growth=peak - before)))"
    done = subprocess.run(
        [sys.executable, "-c", script, str(rows)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def best(
    call: Callable[[], Any], calls: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the seconds of one call, over several in a row."""
    result, start = None, clock()
    for _ in range(calls):
        result = call()
    seconds = (clock() - start) / calls
    if isinstance(result, Missing):
        raise MissingPeer(result.reason)
    return seconds


def measured(
    case: Case, long: float = LONG, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, dict[str, float | str], float]:
    """Return our seconds, the peers' or why one is missing, and those of np.sum.

    All of them are the best of interleaved rounds, and of one round where that takes `long`: noise
    is a small share of it.
    """
    contenders = {"": case.ours, **case.peers}
    seconds: dict[str, float | str] = dict.fromkeys(contenders, float("inf"))
    floor = float("inf")
    for _ in range(case.repeats):
        for name, call in contenders.items():
            before = seconds[name]
            if isinstance(before, str) or long <= before < float("inf"):
                continue
            try:
                seconds[name] = min(before, best(call, case.calls, clock))
            except MissingPeer as error:
                seconds[name] = str(error)
        if case.columns:
            floor = min(floor, best(lambda: [column.sum() for column in case.columns], 1))
    ours = seconds.pop("")
    if isinstance(ours, str):
        raise MissingPeer(ours)
    return ours, seconds, floor


def readable(seconds: float) -> str:
    """Return a duration with a unit a person would choose."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
