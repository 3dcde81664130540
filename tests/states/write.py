"""Write the golden states of a version when it is released: python tests/states/write.py."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from oracles.table import ORACLES  # noqa: E402 - found through the line above

import streammetrics as sm  # noqa: E402


def main() -> None:
    """Write one state per metric, with its value as text."""
    folder = HERE / sm.__version__
    folder.mkdir(exist_ok=True)
    values = {}
    for name in sorted({type(oracle.metric).__name__ for oracle in ORACLES}):
        oracle = next(o for o in ORACLES if type(o.metric).__name__ == name)
        metric = oracle.metric.copy().update(**oracle.rows(np.random.default_rng(0), 24))
        (folder / f"{name}.state").write_bytes(metric.to_bytes())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sm.UndefinedMetricWarning)
            values[name] = repr(metric.compute())
    (folder / "values.json").write_text(json.dumps(values, indent=1) + "\n")


if __name__ == "__main__":
    main()
