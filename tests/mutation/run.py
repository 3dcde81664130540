"""Changes lines of the core and the statistics, and asks whether the tests notice.

    python tests/mutation/run.py --seed 1 --most 60

All tests are collected once. Which functions each test calls, and how long it takes, is measured
by running all of them, and kept in pytest's cache; later only new ones are, `--measure` does it
anew for all. Each mutant is put in
place of the functions that it changes, in a process forked from there, and runs the default tests
that call one of them, fastest first, up to the first that fails. The seed draws the places.
A mutant that no test notices is listed; `equivalent.toml` has those that compute the same, each
with its reason. As a control every test that noticed something has to pass in the same order
without a change. A mutant that makes a test take eight times the processor's time that it took
counts as noticed, and how many did is told. Fails where fewer than 95 % die.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import signal
import sys
import time
import traceback
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from mutants import ROOT, Mutant, equivalents, inner, parts_of, sample
from reach import Reach, Warm, key_of, measured, run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import CodeType

WORKERS = 2
PATIENCE = 8  # times as long as it took: a test that loops for ever has noticed as well
IDLE = 40  # the same by the clock, which goes faster where others compute as well
MEMORY = 12 << 30
GOAL = 0.95
BROKEN = 3
# What is tested in other processes or above the statistics, or is no test.
ASIDE = (
    "benchmarks", "cli", "engines", "exporting", "fuzz", "live", "mutation", "peers", "pictures",
    "readers", "service", "states", "typing", "test_docs.py", "test_examples.py",
    "test_migrating.py", "test_reference.py", "test_rooms.py",
)  # fmt: skip


def changes(mutant: Mutant) -> list[tuple[CodeType, CodeType]]:
    """Return the functions of a mutant's module, before and after, in one order."""
    path = str(ROOT.joinpath(*mutant.module.split(".")).with_suffix(".py"))
    if not os.path.exists(path):
        path = str(ROOT.joinpath(*mutant.module.split("."), "__init__.py"))
    # Both have the same functions in the same order; lines may be others, and names stand twice.
    before, after = (
        inner(compile(source, path, "exec")) for source in (Path(path).read_text(), mutant.code)
    )
    return list(zip(before, after, strict=True))


def changed(mutant: Mutant) -> list[str]:
    """Return the functions that a mutant changes."""
    return [key_of(old) for old, new in changes(mutant) if parts_of(old) != parts_of(new)]


def put_in_place(mutant: Mutant, warm: Warm) -> None:
    """Let the functions of a module do what the mutant's do."""
    places = {
        (old.co_filename, old.co_qualname, old.co_firstlineno): new for old, new in changes(mutant)
    }
    for path in {path for path, *_ in places}:
        for function in warm.functions.get(path, ()):
            code = function.__code__
            if not code.co_name.startswith("<"):
                function.__code__ = places[path, code.co_qualname, code.co_firstlineno]
    warm.forget()


class Tried(NamedTuple):
    """What became of mutants."""

    lived: int
    late: int  # were stopped by a limit
    all: int
    killers: dict[str, int]  # how many each test noticed


class Trial:
    """A plugin of pytest that has everything collected once, and tries mutants instead."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.code = 2  # as long as the control has not passed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try a sample of mutants."""
        self.items, self.warm = session.items, Warm()
        gc.collect()
        gc.freeze()  # processes that are forked share what there is
        self.reach = self.measured(session.config.cache)
        known = equivalents()
        drawn = (
            mutant
            for mutant in islice(sample(self.options.seed, self.options.part), self.options.most)
            if (mutant.module, mutant.before, mutant.after) not in known
            and any(text in str(mutant) for text in self.options.only)
        )
        found = self.tried(drawn)
        wrong = self.control(found)
        lived = found.lived + sum(found.killers[name] for name in wrong)
        share = 1 - lived / max(found.all, 1)
        print(
            f"{found.all - lived} of {found.all} mutants died: {share:.1%}, {found.late} of them "
            f"as a test took {PATIENCE} times as long; {len(known)} known as equivalent were not "
            "tried"
        )
        self.code = int(found.all == 0 or share < self.options.goal)
        return True

    def measured(self, cache: pytest.Cache) -> Reach:
        """Return what tests reach, from the cache if it is there."""
        nothing = Reach({}, {})
        reach = nothing if self.options.measure else Reach(*cache.get("mutation/reach", nothing))
        new = [item for item in self.items if item.nodeid not in reach.seconds]
        if new:
            reach = reach.plus(measured(new, self.warm, WORKERS))
            cache.set("mutation/reach", reach)
        failed = [item.nodeid for item in new if item.nodeid not in reach.seconds]
        took = sum(reach.seconds.values())
        print(f"{len(new)} tests measured, in all {took:.0f} s; left out, as they fail: {failed}")
        return reach

    def fork(self, mutant: Mutant | None, tests: Sequence[pytest.Item]) -> tuple[int, int]:
        """Run tests against a mutant in a process of its own; return its id and what it tells."""
        told, telling = os.pipe()
        pid = os.fork()
        if pid:
            os.close(telling)
            return pid, told
        code = BROKEN
        failures = os.fdopen(os.dup(2), "w")
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            quiet = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(quiet, stream)
            if mutant is not None:
                put_in_place(mutant, self.warm)
            code = 1  # whatever is raised from here on, the mutant did it
            code = self.noticed(tests, telling, keep_on=mutant is None)
        finally:
            if code == BROKEN:
                traceback.print_exc(file=failures)
                failures.flush()
            os._exit(code)

    def noticed(self, tests: Sequence[pytest.Item], telling: int, *, keep_on: bool) -> int:
        """Return whether a test fails, and stop there unless told to go on; tell which."""
        code = 0
        for item, following in zip(tests, [*tests[1:], None], strict=True):
            took = self.reach.seconds[item.nodeid]
            signal.setitimer(signal.ITIMER_PROF, 2 + PATIENCE * took)
            signal.alarm(300 + round(IDLE * took))
            if not run(item, following):
                os.write(telling, f"{item.nodeid}\n".encode())
                code = 1
                if not keep_on:
                    break
        return code

    def control(self, found: Tried) -> list[str]:
        """Return which of the tests that noticed something fail without a change as well."""
        tests = [item for item in self.items if item.nodeid in found.killers]
        tests.sort(key=lambda item: self.reach.seconds[item.nodeid])
        pid, told = self.fork(None, tests)
        os.waitpid(pid, 0)
        wrong = _told(told)
        print(f"control: {len(wrong)} of the {len(tests)} tests that failed fail anyway: {wrong}")
        return wrong

    def tried(self, mutants: Iterator[Mutant]) -> Tried:
        """Try mutants for some time."""
        running = dict[int, tuple[Mutant, int]]()
        lived, late, done, end = 0, 0, 0, time.monotonic() + self.options.seconds
        killers: dict[str, int] = {}
        while True:
            while len(running) < WORKERS and time.monotonic() < end:
                if (mutant := next(mutants, None)) is None:
                    break
                pid, told = self.fork(mutant, self.reach.tests(self.items, changed(mutant)))
                running[pid] = mutant, told
            if not running:
                return Tried(lived, late, done, killers)
            pid, status, used = os.wait4(-1, 0)
            (mutant, told), done = running.pop(pid), done + 1
            by = _told(told)
            for name in by:
                killers[name] = killers.get(name, 0) + 1
            code = os.waitstatus_to_exitcode(status)
            if code == BROKEN:
                raise RuntimeError(f"cannot be put in place: {mutant}")
            is_late = code in {-signal.SIGALRM, -signal.SIGPROF, -signal.SIGKILL}
            late, lived = late + is_late, lived + (code == 0)
            fate = "lived" if code == 0 else "stopped" if is_late else "died"
            seconds = used.ru_utime + used.ru_stime
            print(f"{fate} in {seconds:.1f} s: {mutant}\n    {' '.join(by)}", flush=True)


def _told(pipe: int) -> list[str]:
    """Return the lines that a process which has ended wrote."""
    with os.fdopen(pipe) as lines:
        return lines.read().split("\n")[:-1]


def main() -> int:
    """Try a sample of mutants; return 1 where too many live."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600, help="when to start no more")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the sample")
    parser.add_argument("--most", type=int, default=60, help="how many are drawn")
    parser.add_argument("--part", default="", help="only modules with this in their path")
    parser.add_argument("--only", nargs="+", default=[""], help="of those drawn, with this in them")
    parser.add_argument("--goal", type=float, default=GOAL, help="fail where a smaller share dies")
    parser.add_argument("--measure", action="store_true", help="measure anew what tests call")
    trial = Trial(parser.parse_args())
    print(f"seed {trial.options.seed}", flush=True)
    os.chdir(ROOT)
    os.environ["CI"] = "true"  # the same examples every time
    aside = [f"--ignore={ROOT / 'tests' / name}" for name in ASIDE]
    quick = ("-q", "-s", "--tb=no", "-p", "no:xdist", "--hypothesis-profile=mutants")
    code = pytest.main([*quick, *aside, str(ROOT / "tests")], plugins=[trial])
    return trial.code if code in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED} else 2


if __name__ == "__main__":
    sys.exit(main())
