"""All figures, next to the peers in one process: python tests/benchmarks/run.py [NAME...].

A ratio is the peer's time divided by ours; `memory` is our time divided by that of ``np.sum`` over
the same columns, the speed at which this machine can read them. Names select benchmarks by what
their titles contain; --scale 0.1 runs a tenth of the rows.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

sys.path.insert(0, str(Path(__file__).parent))

MODULES = (
    "classification",
    "scores",
    "regression",
    "ranking",
    "clustering",
    "memory",
    "files",
    "states",
    "reads",
    "slices",
    "compare",
    "confidence",
    "engines",
)


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
    notes: list[str] = field(default_factory=list)


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


def best(call: Callable[[], Any], calls: int) -> float:
    """Return the seconds of one call, over several in a row."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def measured(case: Case) -> tuple[float, dict[str, float], float]:
    """Return our seconds, the peers' and those of np.sum: the best of interleaved rounds."""
    contenders = {"": case.ours, **case.peers}
    seconds = dict.fromkeys(contenders, float("inf"))
    floor = float("inf")
    for _ in range(case.repeats):
        for name, call in contenders.items():
            seconds[name] = min(seconds[name], best(call, case.calls))
        if case.columns:
            floor = min(floor, best(lambda: [column.sum() for column in case.columns], 1))
    return seconds.pop(""), seconds, floor


def readable(seconds: float) -> str:
    """Return a duration with a unit a person would choose."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def main() -> None:
    """Run the benchmarks chosen and print their table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of titles")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(width=120)
    table = Table(title=f"streammetrics benchmarks, {platform.machine()}, NumPy {np.__version__}")
    for name, justify in (
        ("work", "left"), ("ours", "right"), ("peer", "left"), ("time", "right"),
        ("ratio", "right"), ("goal", "right"), ("memory", "right"),
    ):  # fmt: skip
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for module in MODULES:
        for title, make in importlib.import_module(f"bench_{module}").BENCHMARKS.items():
            if options.names and not any(part.lower() in title.lower() for part in options.names):
                continue
            console.print(f"[dim]{title} ...[/dim]")
            for row in rows_of(make(options.scale)):
                table.add_row(*row)
            table.add_section()
    console.print(table)


def rows_of(result: Case | list[Figure]) -> list[tuple[str, ...]]:
    """Return the table's rows of one benchmark."""
    if isinstance(result, list):
        marks = {True: "", False: "[red]missed[/red]", None: ""}
        return [
            (figure.title, figure.measured, marks[figure.met], "", "", figure.goal, "")
            for figure in result
        ]
    ours, peers, floor = measured(result)
    rows = []
    for name, seconds in peers.items():
        ratio, goal = seconds / ours, result.goals.get(name)
        shown = f"{ratio:.1f}x" if goal is None or ratio >= goal else f"[red]{ratio:.1f}x[/red]"
        first = not rows
        rows.append(
            (
                result.title if first else "",
                readable(ours) if first else "",
                name,
                readable(seconds),
                shown,
                "" if goal is None else f"{goal:g}x",
                f"{ours / floor:.1f}" if first and floor < float("inf") else "",
            )
        )
    return rows


if __name__ == "__main__":
    main()
