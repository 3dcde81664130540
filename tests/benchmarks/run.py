"""All figures, next to the peers in one process: python tests/benchmarks/run.py [NAME...].

A ratio is the peer's time divided by ours; `memory` is our time divided by that of ``np.sum`` over
the same columns, the speed at which this machine can read them. Names select benchmarks by what
their titles contain, and those of `ASKED` run only where they are named; --scale 0.1 runs a tenth
of the rows, and --write docs/benchmarks.md puts the tables into that page. A peer that cannot be
imported, or a benchmark that fails, is a line of the table.
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from measuring import Case, Figure, measured, readable
from peers import MissingPeer
from rich.console import Console
from tables import Row, markdown, show, write

if TYPE_CHECKING:
    from collections.abc import Callable

MODULES = (
    "classification",
    "scores",
    "regression",
    "ranking",
    "clustering",
    "detection",
    "texts",
    "memory",
    "files",
    "states",
    "ledger",
    "reads",
    "slices",
    "compare",
    "confidence",
    "live",
    "service",
    "engines",
)
ASKED = {"engines", "states of each metric"}  # take minutes, and have their own pages


def main() -> None:
    """Run the benchmarks chosen and print their table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of titles")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows")
    parser.add_argument("--write", type=Path, help="a page with marks around its figures")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    console, rows, start = Console(width=140), list[Row](), time.monotonic()
    for module in MODULES:
        for title, make in importlib.import_module(f"bench_{module}").BENCHMARKS.items():
            if chosen(title, options.names):
                began = time.monotonic()
                rows += tried(title, make, options.scale)
                console.print(f"[dim]{title}: {time.monotonic() - began:.0f} s[/dim]")
    show(console, rows)
    if options.write:
        write(options.write, markdown(rows, time.monotonic() - start))


def chosen(title: str, names: list[str]) -> bool:
    """Whether a benchmark is to run."""
    named = any(part.lower() in title.lower() for part in names)
    return named or (not names and title not in ASKED)


def tried(
    title: str, make: Callable[[float], Case | list[Case | Figure]], scale: float
) -> list[Row]:
    """Return the rows of a benchmark, or one that says why there are none."""
    try:
        return rows_of(make(scale))
    except MissingPeer as error:
        return [Row(title, str(error))]
    except Exception as error:  # the others are worth their time
        return [Row(title, f"failed: {type(error).__name__}: {error}", missed=True)]


def rows_of(result: Case | list[Case | Figure]) -> list[Row]:
    """Return the table's rows of one benchmark."""
    if isinstance(result, Case):
        return rows_of_case(result)
    rows: list[Row] = []
    for each in result:
        if isinstance(each, Case):
            rows += rows_of_case(each)
        else:
            missed = each.met is False
            row = Row(each.title, each.measured, goal=each.goal, missed=missed, is_figure=True)
            rows.append(row)
    return rows


def rows_of_case(case: Case) -> list[Row]:
    """Return a row for each peer, the first of them with our own figures."""
    ours, peers, floor = measured(case)
    memory = f"{ours / floor:.1f}" if floor < float("inf") else ""
    rows = []
    for name, seconds in (peers or {"": ""}).items():
        first = (case.title, readable(ours)) if not rows else ("", "")
        goal = case.goals.get(name)
        row = Row(*first, name, goal="" if goal is None else f"{goal:.2g}x")
        if isinstance(seconds, str):
            row = row._replace(time=seconds)
        else:
            ratio = seconds / ours
            missed = goal is not None and ratio < goal
            row = row._replace(time=readable(seconds), ratio=f"{ratio:.2g}x", missed=missed)
        rows.append(row if rows else row._replace(memory=memory))
    return rows


if __name__ == "__main__":
    main()
