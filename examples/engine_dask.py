"""Dask workers evaluate the partitions of a Parquet file and merge; one state comes back.

The data frame is lazy: workers read the three columns that the metrics take, out of eight, and no
rows leave them. Then the same from a Bag, whose items a function of your own reads.

Run: python examples/engine_dask.py
"""

from __future__ import annotations

import warnings
from pathlib import Path

import dask.bag as db
import dask.dataframe as dd
import pyarrow as pa
import pyarrow.parquet as pq
from dask.distributed import Client, LocalCluster

import streammetrics as sm
from streammetrics.engines.dask import evaluate

# Dask calls pandas in a way that pandas 3.1 deprecates, on the workers, which import this file.
warnings.filterwarnings("ignore", message="The inplace keyword in DataFrame.reset_index")

PATH = Path(__file__).parent / "data" / "adult_income_predictions.parquet"
PARTS = 6


def part(number: int) -> pa.Table:
    """Read one part of the file: here a slice, elsewhere a query or a format of your own."""
    rows = pq.read_table(PATH, columns=["label", "score", "weight"])
    size = -(-rows.num_rows // PARTS)
    return rows.slice(number * size, size)


def main() -> None:
    """Evaluate on two worker processes and compare with one pass."""
    suite = sm.MetricSet(
        {"auc": sm.ROCAUC(), "ap": sm.AveragePrecision(), "loss": sm.LogLoss()},
        columns={"y_true": "label", "y_score": "score", "sample_weight": "weight"},
    )
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        frame = dd.read_parquet(PATH).repartition(npartitions=PARTS)
        by_frame = evaluate(suite, frame)
        by_bag = evaluate(suite, db.from_sequence(range(PARTS), npartitions=PARTS).map(part))

    for name, value in by_frame.compute().items():
        print(f"{name}: {value:.6f}")
    print(
        f"{by_frame.n_rows:,} rows of {PARTS} partitions, {len(by_frame.to_bytes()):,} bytes back"
    )
    alone = suite.copy().update(pq.read_table(PATH))
    assert by_frame.to_bytes() == by_bag.to_bytes() == alone.to_bytes()
    print("the same bytes as one worker, from the data frame and from the Bag")


if __name__ == "__main__":
    main()
