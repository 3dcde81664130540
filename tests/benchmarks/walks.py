"""How far a reader of the code walks: calls of Python functions, and the files that they are in.

    python tests/benchmarks/walks.py [NAME...] [--calls]

Each walk is an update and a read of 64 rows by a new object, after others have done the same, so
that nothing is loaded or cached on the way; `evaluate` is of a CSV file of 64 rows. Functions of
the package alone are counted, without comprehensions, which newer interpreters do not call. With
`--calls` each call is printed, indented by its depth.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import streammetrics as sm

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

ROOT = str(Path(sm.__file__).parent)
N = 64


def walked(call: Callable[[], object], *, shown: bool = False) -> tuple[int, int]:
    """Return how many functions of the package a call calls, and in how many files."""
    calls: Counter[str] = Counter()
    depth = 0

    def seen(frame: FrameType, event: str, _: object) -> None:
        nonlocal depth
        file = frame.f_code.co_filename
        name = frame.f_code.co_name
        if not file.startswith(ROOT) or (name[0] == "<" and name != "<lambda>"):
            return
        if event == "call":
            calls[file] += 1
            if shown:
                print("  " * depth + f"{file[len(ROOT) + 1 :]}:{frame.f_code.co_qualname}")
            depth += 1
        elif event == "return":
            depth -= 1

    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
    return sum(calls.values()), len(calls)


def walks() -> dict[str, Callable[[], object]]:
    """Return what is walked by name."""
    rng = np.random.default_rng(0)
    truth, score = rng.integers(0, 2, N), rng.random(N)
    called, target = (score > 0.5).astype(np.int64), rng.random(N)
    query = np.repeat(np.arange(8), 8)
    key = rng.integers(0, 4, N)

    def of(metric: Any, **rows: object) -> Callable[[], object]:
        twins = iter([metric.copy() for _ in range(3)])
        return lambda: next(twins).update(**rows).compute()

    four = {"acc": sm.Accuracy(threshold=0.5), "f1": sm.F1(threshold=0.5), "auc": sm.ROCAUC(),
            "loss": sm.LogLoss()}  # fmt: skip
    two = {"acc": sm.Accuracy(), "f1": sm.F1()}
    labels = {"y_true": truth, "y_pred": called}
    stores = iter([sm.Live(sm.MetricSet(two)) for _ in range(3)])
    ids = np.arange(N)

    def live() -> object:
        store = next(stores)
        store.predict(id=ids, time=np.full(N, 1e9), y_pred=called)
        store.label(id=ids, time=np.full(N, 1e9), y_true=truth)
        return store.window("1h").compute()

    folder = Path(tempfile.mkdtemp())
    path = folder / "rows.csv"
    lines = [f"{y},{p}" for y, p in zip(truth, score, strict=True)]
    path.write_text("\n".join(["y_true,y_score", *lines]) + "\n")

    def evaluated() -> object:
        suite = sm.MetricSet({"auc": sm.ROCAUC(), "loss": sm.LogLoss()})
        return sm.evaluate(suite, path)

    return {
        "MSE": of(sm.MSE(), y_true=target, y_pred=score),
        "F1": of(sm.F1(), **labels),
        "ROC AUC": of(sm.ROCAUC(), y_true=truth, y_score=score),
        "nDCG": of(sm.NDCG(), query=query, relevance=key, score=score),
        "a set of four": of(sm.MetricSet(four), y_true=truth, y_score=score),
        "four slices of two metrics": of(sm.Slices(sm.MetricSet(two), by="key"), **labels, key=key),
        "live: predict, label, window": live,
        "evaluate of a CSV": evaluated,
        "a comparison of two models": of(
            sm.Comparison(four, ["a", "b"]), y_true=truth, a=score, b=1 - score
        ),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of names")
    parser.add_argument("--calls", action="store_true", help="print each call")
    options = parser.parse_args()
    print("| walk | calls | files |\n| --- | ---: | ---: |")
    for name, call in walks().items():
        if options.names and not any(part.lower() in name.lower() for part in options.names):
            continue
        call()
        call()
        calls, files = walked(call, shown=options.calls)
        print(f"| {name} | {calls} | {files} |")


if __name__ == "__main__":
    main()
