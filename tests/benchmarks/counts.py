"""How long rows with counts take beside the same rows without: all metrics that take counts.

    python tests/benchmarks/counts.py [--rows 1000000] [--only METRIC] [--largest 9]

Each metric is updated with the rows of its oracle in tests/oracles, and read; the ways of doing so
take turns, and the best of three counts, by the time of the processor. Those of Sum and Mean have
the largest and the smallest numbers there are, whose products are slow. Counts are drawn from 1 to
`--largest`. A ratio is the time with counts by that of the same rows without them: plain rows, and
rows with weights. Metrics that need more than 0.2 s for 10,000 rows are measured on as many.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from measuring import best

import streammetrics as sm

sys.path.insert(0, str(Path(__file__).parent.parent))
from kinds.rows import FIRST, named, plain_rows

if TYPE_CHECKING:
    from collections.abc import Callable

FEW, LONG = 10_000, 0.2


def call_of(metric: Any, rows: dict[str, Any]) -> Callable[[], Any]:
    """Return a function that updates a copy with rows and reads it."""
    return lambda: metric.copy().update(**rows).compute()


def ratio(metric: Any, rows: dict[str, Any], counts: Any) -> str:
    """Return the milliseconds of rows without counts and the ratio, or a dash if refused."""
    calls = call_of(metric, rows), call_of(metric, {**rows, "counts": counts})
    try:
        rounds = [[best(call, 1, time.process_time) for call in calls] for _ in range(3)]
    except (sm.InvalidBatchError, TypeError):  # it takes no weights
        return "| | "
    plain, counted = map(min, zip(*rounds, strict=True))
    return f"| {1e3 * plain:.1f} | {counted / plain:.2f} "


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="metrics whose name contains this")
    parser.add_argument("--largest", type=int, default=9, help="the largest count")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| metric | rows | plain, ms | counts | weights, ms | counts |\n| --- |" + " ---: |" * 5)
    for oracle in FIRST:
        metric, name = oracle.metric.copy(), named(oracle)
        refused = any(statistic.uncounted for statistic in metric.statistics())
        if refused or options.only.lower() not in name.lower():
            continue
        n = min(options.rows, FEW)
        rows = plain_rows(oracle, n)
        if best(call_of(metric, rows), 1, time.process_time) < LONG:
            n = options.rows
            rows = plain_rows(oracle, n)
        size, rng = len(next(iter(rows.values()))), np.random.default_rng(1)
        counts, weights = rng.integers(1, options.largest + 1, size), 0.1 + rng.random(size)
        line = ratio(metric, rows, counts)
        line += ratio(metric, {**rows, "sample_weight": weights}, counts)
        print(f"| {name} | {size:,} {line}|", flush=True)


if __name__ == "__main__":
    main()
