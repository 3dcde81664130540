"""The command line on Parquet, against reading the same columns with pyarrow alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import Figure

READ = """
import sys, time
import pyarrow.dataset as ds
start = time.perf_counter()
rows = 0
for batch in ds.dataset(sys.argv[1]).to_batches(columns=["label", "score"], batch_size=1 << 20):
    rows += batch.num_rows
print(time.perf_counter() - start)
"""


def evaluate(scale):
    """`evaluate` with its default binary set on 50 M rows, two workers."""
    rows = int(50_000_000 * scale)
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(5)
        for part in range(10):
            n = rows // 10
            y = rng.integers(0, 2, n)
            score = 1 / (1 + np.exp(-rng.normal(2.0 * y - 1.0)))
            table = pa.table({"label": y, "score": score, "extra": rng.random(n)})
            pq.write_table(table, Path(folder, f"part-{part}.parquet"))
        alone = min(float(_run("-c", READ, folder)) for _ in range(2))
        command = ("-m", "streammetrics", "evaluate", folder, "--task", "binary")
        columns = ("--y-true", "label", "--y-score", "score", "--workers", "2", "--json", "-")
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            _run(*command, *columns)
            seconds.append(time.perf_counter() - start)
    ratio = min(seconds) / alone
    title = f"evaluate, {rows:,} rows of Parquet, two workers"
    return [
        Figure(title, f"{min(seconds):.2f} s, start of Python included", "", None),
        Figure("  pyarrow reading the columns alone", f"{alone:.2f} s", "", None),
        Figure("  ratio", f"{ratio:.2f} of its time", "5", ratio < 5),
    ]


def _run(*arguments):
    """Run Python as it is installed: modules are compiled once, not at every start."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return done.stdout


BENCHMARKS = {"evaluate Parquet": evaluate}
