"""A ledger of many shards that are not sealed: added, written, read, and read as a value."""

from __future__ import annotations

import time

import numpy as np
from measuring import Figure, readable

import streammetrics as sm

_SHARDS = 100_000


def unsealed(scale):
    """A hundred thousand shards of 20 rows."""
    count, rng = int(_SHARDS * scale), np.random.default_rng(15)
    some = [sm.F1(threshold=0.5).update(rng.integers(0, 2, 20), rng.random(20)) for _ in range(64)]
    ledger = sm.Ledger(sm.F1(threshold=0.5))

    def add():
        for name in range(count):
            ledger.add(name, some[name % 64])

    figures = []

    def timed(title, call, goal):
        start = time.perf_counter()
        result = call()
        taken = time.perf_counter() - start
        figures.append(Figure(title, readable(taken), f"{goal * scale:g} s", taken <= goal * scale))
        return result

    timed(f"{count:,} shards of F1 added to a ledger", add, 0.3)
    blob = timed("  its to_bytes()", ledger.to_bytes, 0.3)
    read = timed("  from_bytes() of it", lambda: sm.from_bytes(blob), 0.3)
    value = timed("  compute() of what was read", read.compute, 0.3)
    assert value == ledger.compute()
    return figures


BENCHMARKS = {"ledger of unsealed shards": unsealed}
