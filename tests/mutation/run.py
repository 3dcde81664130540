"""Changes lines of the core and the statistics, and asks whether the tests notice.

    python tests/mutation/run.py --seconds 300 --seed 1

All tests are collected once. Each mutant is put in place of the functions that it changes, in a
process forked from there, and runs the tests of its room, then those of states, kinds and oracles;
other tests may notice more. The seed draws the places. A mutant that no test notices is listed;
`equivalent.toml` has those that compute the same, each with its reason. A control without a change
has to pass; a mutant that takes four times the processor's time that it took counts as noticed,
and how many did is told. Fails where fewer than 95 % die.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from itertools import islice
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, NamedTuple

import pytest
from mutants import ROOT, Mutant, equivalents, inner, sample

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKERS = 2
PATIENCE = 4  # times as long as the control: a mutant that loops for ever is noticed as well
IDLE = 8  # the same by the clock, which goes faster where others compute as well
MEMORY = 12 << 30
GOAL = 0.95
BROKEN = 3
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
    "statistics": ("inference", *SUMS),
}  # fmt: skip
EVERYWHERE = ("test_golden.py", "test_oracles.py", "kinds")


def nearby(module: str) -> tuple[str, ...]:
    """Return paths of tests, in the order in which they are likely to notice a module's change."""
    room = module.removeprefix("streammetrics.")
    return (*next(NEAR[n] for n in sorted(NEAR, reverse=True) if room.startswith(n)), *EVERYWHERE)


def put_in_place(mutant: Mutant) -> None:
    """Let the functions of a module do what the mutant's do."""
    path = str(ROOT.joinpath(*mutant.module.split(".")).with_suffix(".py"))
    if not os.path.exists(path):
        path = str(ROOT.joinpath(*mutant.module.split("."), "__init__.py"))
    # Both have the same functions in the same order; lines may be others, and names stand twice.
    before, after = (
        inner(compile(source, path, "exec")) for source in (Path(path).read_text(), mutant.code)
    )
    places = {
        (old.co_qualname, old.co_firstlineno): new for old, new in zip(before, after, strict=True)
    }
    for function in [thing for thing in gc.get_objects() if isinstance(thing, FunctionType)]:
        code = function.__code__
        if code.co_filename == path and not code.co_name.startswith("<"):
            function.__code__ = places[code.co_qualname, code.co_firstlineno]


class Cost(NamedTuple):
    """Seconds of a processor, and by the clock."""

    cpu: float
    clock: float


class Tried(NamedTuple):
    """What became of mutants."""

    lived: int
    late: int  # were stopped by a limit
    all: int


class Trial:
    """A plugin of pytest that has everything collected once, and tries mutants instead."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.code = 2  # as long as the control has not passed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try a sample of mutants."""
        self.session = session
        took = self.control()
        if took is None:
            print("the tests fail as they are, so they can tell nothing about mutants")
            return True
        print(f"the control took {took.cpu:.0f} s of a processor, {took.clock:.0f} s", flush=True)
        known = equivalents()
        drawn = (
            mutant
            for mutant in sample(self.options.seed, self.options.part)
            if (mutant.module, mutant.before, mutant.after) not in known
        )
        limit = Cost(PATIENCE * took.cpu, IDLE * took.clock)
        found = self.tried(islice(drawn, self.options.most), limit)
        share = 1 - found.lived / max(found.all, 1)
        print(
            f"{found.all - found.lived} of {found.all} mutants died: {share:.1%}, {found.late} of "
            f"them stopped after {PATIENCE} times the control's time; {len(known)} known as "
            "equivalent were not tried"
        )
        self.code = int(found.all == 0 or share < GOAL)
        return True

    def tests(self, module: str) -> list[pytest.Item]:
        """Return the tests that a change of a module has to pass, in order."""
        places = [ROOT / "tests" / name for name in nearby(module)]
        return [i for place in places for i in self.session.items if i.path.is_relative_to(place)]

    def fork(self, mutant: Mutant, limit: Cost, output: str = os.devnull) -> int:
        """Run the tests against a mutant in a process of its own; return its id."""
        pid = os.fork()
        if pid:
            return pid
        code = BROKEN
        failures = os.fdopen(os.dup(2), "w")
        try:
            signal.alarm(round(limit.clock))
            seconds = round(limit.cpu)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            told = os.open(output, os.O_RDWR)
            for stream in range(3):
                os.dup2(told, stream)
            put_in_place(mutant)
            code = 1  # whatever is raised from here on, the mutant did it
            code = self.noticed(mutant.module)
        finally:
            if code == BROKEN:
                traceback.print_exc(file=failures)
                failures.flush()
            os._exit(code)

    def noticed(self, module: str) -> int:
        """Return whether a test of a module fails, and stop there."""
        tests = self.tests(module)
        for item, following in zip(tests, [*tests[1:], None], strict=True):
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.session.testsfailed:
                print(f"failed: {item.nodeid}", flush=True)
                return 1
        return 0

    def control(self) -> Cost | None:
        """Run the tests against a change of nothing; return what it took, unless they fail."""
        path = ROOT / "streammetrics" / "core" / "errors.py"
        nothing = Mutant("streammetrics.core.errors", path.read_text(), "nothing", "nothing")
        start = time.monotonic()
        with tempfile.NamedTemporaryFile() as output:
            _, status, used = os.wait4(self.fork(nothing, Cost(3600, 3600), output.name), 0)
            if status:
                print(Path(output.name).read_text()[-4000:])
                return None
        return Cost(used.ru_utime + used.ru_stime, time.monotonic() - start)

    def tried(self, mutants: Iterator[Mutant], limit: Cost) -> Tried:
        """Try mutants for some time."""
        running = dict[int, Mutant]()
        lived, late, done, end = 0, 0, 0, time.monotonic() + self.options.seconds
        while True:
            while len(running) < WORKERS and time.monotonic() < end:
                if (mutant := next(mutants, None)) is None:
                    break
                running[self.fork(mutant, limit)] = mutant
            if not running:
                return Tried(lived, late, done)
            pid, status, used = os.wait4(-1, 0)
            mutant, done = running.pop(pid), done + 1
            code = os.waitstatus_to_exitcode(status)
            if code == BROKEN:
                raise RuntimeError(f"cannot be put in place: {mutant}")
            is_late = code in {-signal.SIGALRM, -signal.SIGXCPU, -signal.SIGKILL}
            late, lived = late + is_late, lived + (code == 0)
            fate = "lived" if code == 0 else "stopped" if is_late else "died"
            print(f"{fate} in {used.ru_utime + used.ru_stime:.1f} s: {mutant}", flush=True)


def main() -> int:
    """Try a sample of mutants; return 1 where too many live."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300, help="when to start no more")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the sample")
    parser.add_argument("--most", type=int, help="when to start no more, by their number")
    parser.add_argument("--part", default="", help="only modules with this in their path")
    trial = Trial(parser.parse_args())
    print(f"seed {trial.options.seed}", flush=True)
    os.chdir(ROOT)
    os.environ["CI"] = "true"  # the same examples every time
    paths = sorted(
        {str(ROOT / "tests" / n) for names in (*NEAR.values(), EVERYWHERE) for n in names}
    )
    quick = ("-q", "-s", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist")
    code = pytest.main([*quick, "--hypothesis-profile=mutants", *paths], plugins=[trial])
    return trial.code if code in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED} else 2


if __name__ == "__main__":
    sys.exit(main())
