"""Attack states and ledgers for some time: python tests/fuzz/run.py --seconds 60.

Prints the seed. A failure prints the line that repeats it alone.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz import ledgers, seedlings, states

MEMORY = 2 << 30  # bytes that a few kilobytes may take, beside what the libraries map
PATIENCE = 20  # seconds of a processor for everything that is done with one state
IDLE = 300  # and by the clock, for one that waits for ever


class TooLong(Exception):
    """One case took longer than a state of its size can."""


def one(kind: str, seed: int, case: int, grown: list[seedlings.Seedling]) -> str:
    """Try one case; return what became of it."""
    rng = np.random.default_rng([seed, case])
    if kind == "ledgers":
        return "refusals" if ledgers.attempt(rng) else "agreed"
    seedling = seedlings.drawn(grown, rng)
    blob = states.mutated(seedling.blobs[int(rng.integers(len(seedling.blobs)))], rng)
    return "taken" if states.attempt(blob, seedling) else "refused"


def limited() -> None:
    """Let no case take the machine with it."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    def over(*_: Any) -> None:
        raise TooLong(f"more than {PATIENCE} s of a processor, or {IDLE} s")

    signal.signal(signal.SIGPROF, over)
    signal.signal(signal.SIGALRM, over)


def be_patient(seconds: int = PATIENCE, idle: int = IDLE) -> None:
    """Let what follows take so long; 0 is for ever."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(idle)


def main() -> int:
    """Run until the time is up; return how many cases failed, at most 100."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("FUZZ_SEED", "-1")))
    parser.add_argument("--kind", choices=["states", "ledgers"])
    parser.add_argument("--case", type=int, help="only this one")
    told = parser.parse_args()
    seed = told.seed if told.seed >= 0 else int.from_bytes(os.urandom(4), "little")
    print(f"seed {seed}", flush=True)
    grown = seedlings.seedlings()
    limited()
    failures, counts, end = Counter[str](), Counter[str](), time.monotonic() + told.seconds
    case = told.case or 0
    while time.monotonic() < end:
        for kind in [told.kind] if told.kind else ["states"] * 9 + ["ledgers"]:
            be_patient()
            try:
                counts[f"{kind} {one(kind, seed, case, grown)}"] += 1
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                be_patient(0, 0)
                where = traceback.extract_tb(error.__traceback__)[-1]
                text = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
                if not failures[text]:
                    traceback.print_exc()
                    again = f"--seed {seed} --kind {kind} --case {case}"
                    print(f"FAILED: python tests/fuzz/run.py {again}", flush=True)
                failures[text] += 1
            be_patient(0, 0)
            if told.case is not None:
                end = 0
                break
            case += 1
    print(f"{case:,} cases: {dict(counts)}")
    for text, count in failures.most_common():
        print(f"{count:6,} x {text}")
    return min(100, sum(failures.values()))


if __name__ == "__main__":
    sys.exit(main())
