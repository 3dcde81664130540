"""Four processes each evaluate a shard and send back bytes; merged, they are one worker's bytes.

Run: python examples/shards.py
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow.parquet as pq

import streammetrics as sm

PATH = Path(__file__).parent / "data" / "adult_income_predictions.parquet"
WORKERS = 4


def suite() -> sm.MetricSet:
    """Return what every worker computes: the configuration is the same, or merging raises."""
    return sm.MetricSet(
        {"auc": sm.ROCAUC(), "ap": sm.AveragePrecision(), "loss": sm.LogLoss()},
        columns={"y_true": "label", "y_score": "score", "sample_weight": "weight"},
    )


def work(shard: int) -> bytes:
    """Evaluate every fourth row of the file and return the state."""
    table = pq.read_table(PATH, columns=["label", "score", "weight"])
    rows = list(range(shard, table.num_rows, WORKERS))
    return suite().update(table.take(rows)).to_bytes()


def main() -> None:
    """Merge the workers' states and compare with one pass."""
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        blobs = list(pool.map(work, range(WORKERS)))
    print(f"states of {', '.join(f'{len(blob):,}' for blob in blobs)} bytes")
    merged = sm.merge([sm.from_bytes(blob) for blob in blobs])

    alone = suite().update(pq.read_table(PATH))
    for name, value in merged.compute().items():
        print(f"{name}: {value:.6f}")
    assert merged.to_bytes() == alone.to_bytes()
    print("the same bytes as one worker")


if __name__ == "__main__":
    main()
