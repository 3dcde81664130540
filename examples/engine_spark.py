"""Spark evaluates a folder of Parquet where it is read: states travel, and merge on executors.

A job has left its predictions in eight files. The task that reads a partition feeds it, three
columns of it; executors merge the states, and the driver gets one. It has the same bytes as if one
process had read every row, so anybody can check the figures without Spark.

Needs Java 17 or later. Run: python examples/engine_spark.py
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import streammetrics as sm
from streammetrics.engines.spark import evaluate

PATH = Path(__file__).parent / "data" / "adult_income_predictions.parquet"
FILES = 8


def session() -> SparkSession:
    """Return a session on this machine; on a cluster it is there already."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # where streammetrics is installed
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    spark = (
        SparkSession.builder.master("local[2]")
        # A job as short as this is done before optimised code pays.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main() -> None:
    """Evaluate on Spark, weighted by the census, and compare with one pass."""
    # PySpark wants pandas to be there and does not use it here, yet it warns of pandas 3.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    suite = sm.MetricSet(
        {"auc": sm.ROCAUC(max_bins=2**12), "brier": sm.BrierScore(), "f1": sm.F1(threshold=0.5)},
        columns={"y_true": "label", "y_score": "score", "sample_weight": "weight"},
    )
    table = pq.read_table(PATH)
    spark = session()
    with TemporaryDirectory() as folder:
        share = -(-table.num_rows // FILES)
        for part in range(FILES):
            pq.write_table(table.slice(part * share, share), f"{folder}/part-{part}.parquet")
        result = evaluate(suite, spark.read.parquet(folder))
    spark.stop()

    for name, value in result.compute().items():
        low, high = result[name].bounds()
        print(f"{name}: {value:.6f}, certainly in [{low:.6f}, {high:.6f}]")
    size = len(result.to_bytes())
    print(f"{result.n_rows:,} rows, of which the driver got a state of {size:,} bytes")
    assert result.to_bytes() == suite.update(table).to_bytes()
    print("the same bytes as one pass")


if __name__ == "__main__":
    main()
