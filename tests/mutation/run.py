"""Changes lines of the core and the statistics, and asks whether the tests notice.

    python tests/mutation/run.py --seconds 300 --seed 1

Each mutant runs the tests of its room first, then all others but those of the command line, the
engines and the docs, in a process forked from one that has imported their libraries. The seed
draws the places. A mutant that no test notices is listed; `equivalent.toml` has those that
compute the same, each with its reason. Fails where fewer than 95 % of the others die.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.util
import os
import resource
import signal
import sys
import time
from typing import TYPE_CHECKING

import numpy as np  # noqa: F401 - imported here, once, and not by every fork
import pandas as pd  # noqa: F401
import pytest
import scipy.stats  # noqa: F401
import sklearn.metrics  # noqa: F401
from mutants import ROOT, Mutant, equivalents, sample

if TYPE_CHECKING:
    from collections.abc import Sequence

WORKERS = 2
LIMIT = 240  # seconds: a mutant that loops for ever is noticed as well
MEMORY = 12 << 30
GOAL = 0.95
NEAR = {
    "core.columns": ("core/test_arrays.py", "core/test_bad_input.py"),
    "core.exact": ("core/test_exact.py",),
    "core.histograms": ("core/test_histogram.py", "probability", "correlation"),
    "core.state": ("core/test_state.py", "core/test_container.py"),
    "core": ("core/test_metric.py", "core/test_state.py"),
    "statistics.tables": ("classification",),
    "statistics.scores": ("probability",),
    "statistics.sums": ("regression", "aggregation"),
    "statistics.rankings": ("ranking",),
    "statistics.pairs": ("correlation",),
    "statistics.clusters": ("clustering",),
}
ELSEWHERE = {"cli", "engines", "readers", "data", "states", "benchmarks", "mutation", "fuzz"}
ELSEWHERE |= {"test_docs.py", "test_examples.py", "test_rooms.py", "test_completeness.py"}


class Changed(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Loads one module from changed source, and leaves all others to those who know."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, name: str, path: object, target: object = None) -> object:
        if name != self.mutant.module:
            return None
        file = str(ROOT.joinpath(*name.split(".")).with_suffix(".py"))
        return importlib.util.spec_from_loader(name, self, origin=file)

    def get_source(self, _: str) -> str:
        return self.mutant.code


def tests_for(module: str) -> list[str]:
    """Return the paths of tests: those of the module's room before all others."""
    tests = ROOT / "tests"
    room = module.removeprefix("streammetrics.")
    near = next((NEAR[name] for name in sorted(NEAR, reverse=True) if room.startswith(name)), ())
    every = {p.name for p in tests.iterdir() if p.is_dir() or p.name.startswith("test_")}
    rest = sorted(every - ELSEWHERE - {"__pycache__"}, key=lambda name: name != "test_golden.py")
    order = [*near, "test_golden.py", "test_oracles.py", *rest]
    return [str(tests / name) for name in dict.fromkeys(order) if (tests / name).exists()]


def fork(mutant: Mutant) -> int:
    """Run the tests against a mutant in a process of its own; return its id."""
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(LIMIT)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    sys.meta_path.insert(0, Changed(mutant))
    os.chdir(ROOT)
    os.environ["CI"] = "true"  # the same examples every time
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    os._exit(min(int(pytest.main([*options, *tests_for(mutant.module)])), 100))


def survivors(mutants: Sequence[Mutant], seconds: float) -> tuple[list[Mutant], int]:
    """Return the mutants that no test noticed, and how many were tried in time."""
    left, running, lived, tried = list(mutants), dict[int, Mutant](), list[Mutant](), 0
    end = time.monotonic() + seconds
    while running or (left and time.monotonic() < end):
        while left and len(running) < WORKERS and time.monotonic() < end:
            mutant = left.pop(0)
            running[fork(mutant)] = mutant
        pid, status = os.wait()
        mutant, tried = running.pop(pid), tried + 1
        if os.waitstatus_to_exitcode(status) == 0:
            lived.append(mutant)
            print(f"lived: {mutant}", flush=True)
    return lived, tried


def unchanged() -> Mutant:
    """Return what every test has to let pass."""
    path = ROOT / "streammetrics" / "core" / "errors.py"
    return Mutant("streammetrics.core.errors", path.read_text(), "nothing", "nothing")


def main() -> int:
    """Try a sample of mutants; return 1 where too many live."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300, help="when to start no more")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the sample")
    parser.add_argument("--most", type=int, default=2000, help="how many mutants to draw")
    parser.add_argument("--part", default="", help="only modules with this in their path")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    if not survivors([unchanged()], 1)[0]:
        print("the tests fail as they are, so they can tell nothing about mutants")
        return 2
    known = equivalents()
    drawn = [
        mutant
        for mutant in sample(options.seed, options.most, options.part)
        if (mutant.module, mutant.before, mutant.after) not in known
    ]
    lived, tried = survivors(drawn, options.seconds)
    share = 1 - len(lived) / max(tried, 1)
    print(f"{tried - len(lived)} of {tried} mutants died: {share:.1%}; {len(known)} are equivalent")
    return int(tried == 0 or share < GOAL)


if __name__ == "__main__":
    sys.exit(main())
