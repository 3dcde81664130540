"""A day of predictions, labels of some up to a day late, by several processes into one store.

    python tests/benchmarks/replay_live.py [EVENTS] [PROCESSES]

Each process takes its part of the events, in an order of its own, and the store has in the end the
bytes of one process that took them all in order. Times and memory are told.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import streammetrics as sm

START, DAY = 1_700_000_000, 86_400
BATCH = 16_384  # events of a call
SUITE = {
    "accuracy": sm.Accuracy(threshold=0.5),
    "auc": sm.ROCAUC(max_bins=1024),
    "loss": sm.BrierScore(),
}


def live(**parameters):
    return sm.Live(sm.MetricSet(SUITE), label_ttl="1d", label_lateness="1d", **parameters)


def batches(n):
    """Yield predictions, and labels of three in ten of them, as arguments by the minute."""
    dice = np.random.default_rng(0)
    for first in range(0, n, BATCH):
        ids = np.arange(first, min(first + BATCH, n))
        scores = dice.integers(0, 1000, len(ids)) / 1000
        times = START + ids * (DAY / n)
        yield "predict", {"id": ids, "time": times, "y_score": scores}
        some = dice.random(len(ids)) < 0.3
        truth = (dice.random(len(ids)) < scores).astype(np.int64)[some]
        late = times[some] + dice.random(int(some.sum())) * DAY
        yield "label", {"id": ids[some], "time": late, "y_true": truth}


def send(into, batch):
    kind, columns = batch
    getattr(into, kind)(**columns)


def work(path, n, place, processes, seed):
    """Send every so manieth batch, in any order among some hundred of them."""
    with live(store=path) as service:
        mine = []
        dice = np.random.default_rng(seed)
        for number, batch in enumerate(batches(n)):
            if number % processes == place:
                mine.append(batch)
            if len(mine) == 64:
                for chosen in dice.permutation(64):
                    send(service, mine[chosen])
                mine.clear()
        for batch in mine:
            send(service, batch)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(f"process {place}: done, {most:,.0f} MiB at most", flush=True)


def digest(state):
    return hashlib.blake2b(state.to_bytes()).hexdigest()


def replayed(path, n, processes=4):
    """Return the digest of what several processes have written to a store together."""
    fork = multiprocessing.get_context("spawn")
    every = [
        fork.Process(target=work, args=(path, n, place, processes, place))
        for place in range(processes)
    ]
    for process in every:
        process.start()
    for process in every:
        process.join()
    assert [process.exitcode for process in every] == [0] * processes
    with live(store=path) as service:
        return digest(service)


def whole(n):
    """Return the digest of one process that took all events in order."""
    state = live()
    for batch in batches(n):
        send(state, batch)
    return digest(state)


def main(n, processes):
    with tempfile.TemporaryDirectory() as folder:
        path, start = Path(folder) / "live.db", time.perf_counter()
        together = replayed(path, n, processes)
        taken, size = time.perf_counter() - start, path.stat().st_size / 2**20
        print(f"{n:,} predictions and 3 in 10 labels by {processes} processes: {taken:.0f} s")
        print(f"the store has {size:,.0f} MiB")
    start = time.perf_counter()
    alone = whole(n)
    print(f"by one process in memory: {time.perf_counter() - start:.0f} s")
    print("the same bytes" if together == alone else "OTHER BYTES")
    return together == alone


if __name__ == "__main__":
    n, processes = [*map(int, sys.argv[1:]), *(10_000_000, 4)[len(sys.argv) - 1 :]]
    sys.exit(0 if main(n, processes) else 1)
