"""Changes lines of the core and the statistics, and asks whether the tests notice.

    python tests/mutation/run.py --seconds 300 --seed 1

Each mutant runs the tests of its room, then those of states, kinds and oracles, in a process forked
from one that has imported their libraries; other tests may notice more.
The seed draws the places. A mutant that no test notices is listed; `equivalent.toml` has those
that compute the same, each with its reason, and `tuning.py` the numbers of which none are made.
A control without a change has to pass; a mutant that takes four times the processor's time that it
took counts as noticed, and how many did is told. Fails where fewer than 95 % die.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.util
import os
import resource
import signal
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd  # noqa: F401 - imported here, once, and not by every fork
import pyarrow as pa  # noqa: F401
import pytest
import scipy.stats  # noqa: F401
import sklearn.metrics  # noqa: F401
from mutants import ROOT, Mutant, equivalents, sample

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKERS = 2
PATIENCE = 4  # times as long as the control: a mutant that loops for ever is noticed as well
IDLE = 8  # the same by the clock, which goes faster where others compute as well
MEMORY = 12 << 30
GOAL = 0.95
SUMS = ("regression", "test_extreme_weights.py", "test_doubling.py")
NEAR = {
    "core.columns": (
        "core/test_bad_input.py", "core/test_arrays.py", "core/test_reading.py",
        "core/test_no_warnings.py", "core/test_long_numbers.py", "classification",
    ),
    "core.exact": ("core/test_exact.py", *SUMS),
    "core.fields": ("core/test_fields.py", "core/test_state.py", *SUMS),
    "core.histograms": ("core/test_histogram.py", "probability", "correlation", *SUMS),
    "core.results": ("test_results.py",),
    "core.state": ("core/test_state.py", "core/test_container.py", "core/test_files.py"),
    "core": (
        "core/test_metric.py", "core/test_state.py", "core/test_batch.py",
        "core/test_bad_input.py", "core/test_constraints.py", "core/test_reading.py",
        "core/test_container.py", "core/test_ledger.py", "core/test_threads.py", "test_results.py",
        "test_law_kit.py", "classification/test_messages.py",
    ),
    "statistics.tables": ("classification", "clustering", *SUMS),
    "statistics.scores": ("probability", *SUMS),
    "statistics.sums": ("core/test_long_numbers.py", *SUMS),
    "statistics.rankings": ("ranking", *SUMS),
    "statistics.pairs": ("correlation", *SUMS),
    "statistics.clusters": ("clustering", *SUMS),
    "statistics.grouped": ("grouped", "slices"),
}  # fmt: skip
EVERYWHERE = ("test_golden.py", "test_oracles.py", "kinds")


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


def stages_for(module: str) -> list[list[str]]:
    """Return paths of tests, in the order in which they are likely to notice a module's change."""
    room = module.removeprefix("streammetrics.")
    near = next(NEAR[name] for name in sorted(NEAR, reverse=True) if room.startswith(name))
    return [[str(ROOT / "tests" / name) for name in stage] for stage in (near, EVERYWHERE)]


class Cost(NamedTuple):
    """Seconds of a processor, and by the clock."""

    cpu: float
    clock: float


def fork(mutant: Mutant, limit: Cost, output: str = os.devnull) -> int:
    """Run the tests against a mutant in a process of its own; return its id."""
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(round(limit.clock))
    seconds = round(limit.cpu)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    told = os.open(output, os.O_RDWR)
    for stream in range(3):
        os.dup2(told, stream)
    sys.meta_path.insert(0, Changed(mutant))
    os.chdir(ROOT)
    os.environ["CI"] = "true"  # the same examples every time
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    code = 100
    try:
        codes = (int(pytest.main([*options, *stage])) for stage in stages_for(mutant.module))
        code = min(next(filter(None, codes), 0), 100)
    finally:
        os._exit(code)


class Tried(NamedTuple):
    """What became of mutants."""

    lived: list[Mutant]
    late: int  # were stopped by a limit
    all: int


def tried(mutants: Iterator[Mutant], seconds: float, limit: Cost) -> Tried:
    """Try mutants for some time."""
    running, lived, late, done = dict[int, Mutant](), list[Mutant](), 0, 0
    end = time.monotonic() + seconds
    while True:
        while len(running) < WORKERS and time.monotonic() < end and (mutant := next(mutants, None)):
            running[fork(mutant, limit)] = mutant
        if not running:
            return Tried(lived, late, done)
        pid, status, used = os.wait4(-1, 0)
        mutant, done = running.pop(pid), done + 1
        code = os.waitstatus_to_exitcode(status)
        is_late = code in {-signal.SIGALRM, -signal.SIGXCPU, -signal.SIGKILL}
        late += is_late
        if code == 0:
            lived.append(mutant)
        fate = "lived" if code == 0 else "stopped" if is_late else "died"
        print(f"{fate} in {used.ru_utime + used.ru_stime:.1f} s: {mutant}", flush=True)


def control() -> Cost | None:
    """Run the tests against a change of nothing; return what it took, unless they fail."""
    path = ROOT / "streammetrics" / "core" / "errors.py"
    nothing = Mutant("streammetrics.core.errors", path.read_text(), "nothing", "nothing")
    start = time.monotonic()
    with tempfile.NamedTemporaryFile() as output:
        _, status, used = os.wait4(fork(nothing, Cost(3600, 3600), output.name), 0)
        if status:
            print(Path(output.name).read_text()[-4000:])
            return None
    return Cost(used.ru_utime + used.ru_stime, time.monotonic() - start)


def main() -> int:
    """Try a sample of mutants; return 1 where too many live."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300, help="when to start no more")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the sample")
    parser.add_argument("--most", type=int, help="when to start no more, by their number")
    parser.add_argument("--part", default="", help="only modules with this in their path")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    took = control()
    if took is None:
        print("the tests fail as they are, so they can tell nothing about mutants")
        return 2
    print(f"the control took {took.cpu:.0f} s of a processor, {took.clock:.0f} s", flush=True)
    known = equivalents()
    drawn = (
        mutant
        for mutant in sample(options.seed, options.part)
        if (mutant.module, mutant.before, mutant.after) not in known
    )
    limit = Cost(PATIENCE * took.cpu, IDLE * took.clock)
    found = tried(islice(drawn, options.most), options.seconds, limit)
    share = 1 - len(found.lived) / max(found.all, 1)
    print(
        f"{found.all - len(found.lived)} of {found.all} mutants died: {share:.1%}, {found.late} of "
        f"them stopped after {PATIENCE} times the control's time; {len(known)} known as equivalent "
        "were not tried"
    )
    return int(found.all == 0 or share < GOAL)


if __name__ == "__main__":
    sys.exit(main())
