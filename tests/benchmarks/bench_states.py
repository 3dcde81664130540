"""How big states are, and what reading and merging them costs, metric by metric."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from measuring import Figure

sys.path.insert(0, str(Path(__file__).parents[1]))

from oracles.table import ORACLES

import streammetrics as sm
from streammetrics.cli.inputs import plan
from streammetrics.core.registry import catalogue


def binary_suite(max_bins=1 << 16):
    """The default set of the command line for scores."""
    asked = {"y_true": "y_true", "y_score": "y_score"}
    return plan("binary", asked, {"max_bins": max_bins}, None).suite


def binary_rows(rng, n):
    y = rng.integers(0, 2, n)
    return {"y_true": y, "y_score": 1 / (1 + np.exp(-rng.normal(2.0 * y - 1.0)))}


def class_rows(rng, n):
    return {"y_true": rng.integers(0, 100, n), "y_pred": rng.integers(0, 100, n)}


def grade_rows(rng, n):
    """Pairs of numbers of which there are few, as ranks and grades are."""
    return {"y_true": rng.integers(0, 200, n), "y_pred": rng.integers(0, 200, n)}


def ranking_rows(rng, n):
    """Queries of 100 documents, of which 5 in 100 are relevant."""
    first = int(rng.integers(0, 1 << 40))
    query = np.arange(n) // 100 + first
    relevance = (rng.random(n) < 0.05).astype(np.int64)
    return {
        "query": query,
        "doc": np.arange(n) % 100,
        "relevance": relevance,
        "score": rng.random(n),
    }


def label_rows(rng, n):
    return {"labels_true": rng.integers(0, 50, n), "labels_pred": rng.integers(0, 50, n)}


def point_rows(rng, n):
    return {"X": rng.normal(size=(n, 16)), "labels": rng.integers(0, 20, n)}


def value_rows(rng, n):
    return {"values": rng.normal(size=n)}


def loss_rows(rng, n):
    """Positive numbers, which every loss admits."""
    true = rng.gamma(2.0, size=n)
    return {"y_true": true, "y_pred": true * rng.gamma(5.0, 0.2, size=n)}


VARIANTS = {
    "ConfusionMatrix: 100 classes": (sm.ConfusionMatrix(), class_rows),
    "ROCAUC(max_bins=2**16)": (sm.ROCAUC(max_bins=1 << 16), binary_rows),
    "ROCAUC(max_bins=2**12)": (sm.ROCAUC(max_bins=1 << 12), binary_rows),
    "KendallTau: 200 x 200 grades": (sm.KendallTau(), grade_rows),
    "default binary set, max_bins=2**16": (binary_suite(), binary_rows),
}


def every_metric():
    """Return each public metric, and some variants, with rows that it takes."""
    found = {}
    for cls in catalogue().values():
        oracle = next(o for o in ORACLES if type(o.metric) is cls)
        try:
            metric = cls()
        except TypeError:  # it needs a parameter
            metric = oracle.metric
        schema = metric.statistics()[0].schema
        if cls is sm.TopKAccuracy:
            rows = wide_rows
        elif "y_pred" in schema.inputs:
            numbers = schema.kinds["y_true"] == "number"
            rows = loss_rows if numbers else two_class_rows
        else:
            known = (BY_INPUT[name] for name in schema.inputs if name in BY_INPUT)
            rows = next(known, oracle.rows)
        try:
            metric.copy().feed(rows(np.random.default_rng(0), 100)).compute()
        except sm.InvalidBatchError:  # it takes other rows
            metric, rows = oracle.metric, oracle.rows
        found[str(metric).partition(" <")[0]] = (metric, rows)
    return {**found, **VARIANTS}


def wide_rows(rng, n):
    return {"y_true": rng.integers(0, 10, n), "y_score": rng.random((n, 10))}


def two_class_rows(rng, n):
    return {"y_true": rng.integers(0, 2, n), "y_pred": rng.integers(0, 2, n)}


BY_INPUT = {
    "y_score": binary_rows,
    "doc": ranking_rows,
    "labels_pred": label_rows,
    "labels": point_rows,
    "values": value_rows,
}


def seconds(call, repeats=3):
    """Return the seconds of the fastest of some calls."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def sizes(scale):
    """State of a shard of a million rows: bytes, and the time to read it and to merge two."""
    figures = []
    rng = np.random.default_rng(9)
    for title, (empty, rows) in every_metric().items():
        blobs = [empty.copy().feed(rows(rng, int(1e6 * scale))).to_bytes() for _ in range(2)]
        read = seconds(lambda: sm.from_bytes(blobs[0]))  # noqa: B023
        one, other = map(sm.from_bytes, blobs)
        # Some states merge at leisure: the bytes are what the next one would be sent.
        merge = seconds(lambda: sm.merge([one, other]).to_bytes())  # noqa: B023
        text = f"{size(len(blobs[0]))}, read {ms(read)}, merge {ms(merge)}"
        figures.append(Figure(title, text, "", None))
    return figures


def size(count):
    """Return a number of bytes as a person would write it."""
    for unit, power in (("MB", 1e6), ("kB", 1e3)):
        if count >= power:
            return f"{count / power:.3g} {unit}"
    return f"{count} B"


def ms(duration):
    """Return a duration in milliseconds."""
    return f"{duration * 1e3:.3g} ms"


def thousand(scale):
    """Merge of 1,000 shards of the default binary set, as objects, as bytes and in a ledger."""
    count, rng = max(2, int(1000 * scale)), np.random.default_rng(10)
    suite = binary_suite()
    # 100 shards of 100,000 rows; ten times each makes 1,000, whose cost to merge is the same.
    some = [suite.copy().feed(binary_rows(rng, 100_000)) for _ in range(min(count, 100))]
    states = [some[i % len(some)] for i in range(count)]
    blobs = [state.to_bytes() for state in some]
    start = time.perf_counter()
    sm.merge(states)
    merged = time.perf_counter() - start
    start = time.perf_counter()
    total = suite.copy()
    for i in range(count):
        total.merge(sm.from_bytes(blobs[i % len(blobs)]))
    read = time.perf_counter() - start
    start = time.perf_counter()
    ledger = sm.Ledger()
    for i, state in enumerate(states):
        ledger.add(i, state)
    added = time.perf_counter() - start
    start = time.perf_counter()
    assert ledger.merged() == total
    taken = time.perf_counter() - start
    title = f"merge {count:,} states of the default binary set, 2^16 bins"
    goal = 2 * scale
    return [
        Figure(
            title, f"{merged:.2f} s, {ms(merged / count)} a merge", f"{goal:g} s", merged < goal
        ),
        Figure(
            "  one after the other, each read from bytes",
            f"{read:.2f} s, {ms(read / count)} each",
            "",
            None,
        ),
        Figure("  each added to a ledger", f"{added:.2f} s, {ms(added / count)} each", "", None),
        Figure("  the ledger's total", f"{taken:.2f} s, {ms(taken / count)} each", "", None),
    ]


BENCHMARKS = {"merge 1,000 states": thousand, "states of each metric": sizes}
