"""Write the golden states of a version when it is released: python tests/states/write.py."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from oracles.table import ORACLES  # noqa: E402 - found through the line above
from vectors.write import containers, value  # noqa: E402

import streammetrics as sm  # noqa: E402


def main() -> None:
    """Write a state of each metric and container, with their values as text."""
    folder = HERE / sm.__version__
    folder.mkdir(exist_ok=True)
    filled: dict[str, Any] = {**containers(), "Ledger": ledger(), "Comparison": comparison()}
    for name in sorted({type(oracle.metric).__name__ for oracle in ORACLES}):
        oracle = next(o for o in ORACLES if type(o.metric).__name__ == name)
        filled[name] = oracle.metric.copy().update(**oracle.rows(np.random.default_rng(0), 24))
    values = {}
    for name, what in sorted(filled.items()):
        (folder / f"{name}.state").write_bytes(what.to_bytes())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sm.UndefinedMetricWarning)
            values[name] = repr(value(what))
    (folder / "values.json").write_text(json.dumps(values, indent=1) + "\n")


def ledger() -> sm.Ledger:
    """Return a ledger with every kind of shard: by number, by name, retried, sealed."""
    made = sm.Ledger()
    for shard_id, attempt in ((1, 1), ("a", 1), ("b", 2), ("c", 1)):
        made.add(shard_id, sm.Mean().update([1.0 / (len(made) + 3)] * attempt), attempt)
    return made.seal(["a", "c"])


def comparison() -> sm.Comparison:
    """Return a comparison with every kind of joint statistic."""
    metrics = {"f1": sm.F1(threshold=0.5), "auc": sm.ROCAUC(), "loss": sm.LogLoss()}
    made = sm.Comparison(metrics, {"a": "a", "b": "b", "c": "c"}, baseline="a")
    rng = np.random.default_rng(0)
    return made.update(y_true=rng.integers(0, 2, 24), **{m: rng.random(24) for m in "abc"})


if __name__ == "__main__":
    main()
