"""What a tap adds to a pass of rows from Parquet to Parquet, with Dask, Spark and Ray.

    python tests/benchmarks/taps.py [dask] [spark] [ray] [--rows 10000000] [--rounds 3] [--model]

The rows have an id, a country, a label, a score and two features; the metrics of a tap are F1,
accuracy, log loss and ROC AUC. With ``--model``, 100 boosted trees of scikit-learn predict the
scores in the pass, as in a job that writes predictions. Passes with and without the tap take turns
in two workers, and the best of each counts: by the clock, and by the processors' time of all
processes of the engine, which depends less on what else the machine does.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import streammetrics as sm

if TYPE_CHECKING:
    from collections.abc import Callable

    Model = Callable[[pd.DataFrame], pd.DataFrame]
    Pass = Callable[[str, str, bool], Any]  # from a folder to another, with a tap or without one

FILES = 20


def suite() -> sm.MetricSet:
    """Return the metrics of a tap."""
    metrics = {
        "f1": sm.F1(threshold=0.5),
        "accuracy": sm.Accuracy(threshold=0.5),
        "loss": sm.LogLoss(),
        "auc": sm.ROCAUC(),
    }
    return sm.MetricSet(metrics, columns={"y_true": "label", "y_score": "score"})


def write(folder: str, rows: int) -> None:
    """Write the rows as files of Parquet."""
    rng = np.random.default_rng(0)
    n = rows // FILES
    for part in range(FILES):
        label = rng.integers(0, 2, n)
        columns = {
            "id": np.arange(part * n, (part + 1) * n),
            "country": pa.array(rng.choice(["DE", "FR", "IT", "US"], n)),
            "label": label,
            "score": np.clip(0.3 * label + 0.7 * rng.random(n), 0.0, 1.0),
            "age": rng.integers(18, 90, n),
            "income": rng.lognormal(10, 1, n),
        }
        pq.write_table(pa.table(columns), Path(folder, f"part-{part:02}.parquet"))


def trained(folder: str) -> Model:
    """Return a function that replaces the scores of a frame by those of a model."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    inputs = ["score", "age", "income"]
    rows = pd.read_parquet(Path(folder, "part-00.parquet")).head(20_000)
    trees = HistGradientBoostingClassifier(early_stopping=False).fit(rows[inputs], rows["label"])

    def predict(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(score=trees.predict_proba(frame[inputs])[:, 1])

    return predict


def on_dask(model: Model | None) -> Pass:
    """Return a pass with the threads of Dask."""
    import dask
    import dask.dataframe as dd

    from streammetrics.engines.dask import tap

    dask.config.set(scheduler="threads", num_workers=2)

    def run(source: str, sink: str, tapped: bool) -> Any:
        frame = dd.read_parquet(source)
        frame = frame.map_partitions(model, meta=frame._meta) if model else frame
        if not tapped:
            return frame.to_parquet(sink)
        frame, ledger = tap(frame, suite())
        return dask.compute(frame.to_parquet(sink, compute=False), ledger)[1]

    return run


def on_spark(model: Model | None) -> Pass:
    """Return a pass with Spark's local mode."""
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    from pyspark.sql import SparkSession

    from streammetrics.engines.spark import tap

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = spark.config("spark.driver.memory", "4g").getOrCreate()
    session.sparkContext.setLogLevel("OFF")

    def run(source: str, sink: str, tapped: bool) -> Any:
        frame, ledger = session.read.parquet(source), None
        if model:
            predict = model  # a frame after the other
            frame = frame.mapInPandas(lambda frames: map(predict, frames), frame.schema)
        if tapped:
            frame, ledger = tap(frame, suite())
        frame.write.parquet(sink)
        return ledger

    return run


def on_ray(model: Model | None) -> Pass:
    """Return a pass with Ray Data."""
    import ray

    from streammetrics.engines.ray import tap

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray").setLevel("ERROR")

    def run(source: str, sink: str, tapped: bool) -> Any:
        dataset, ledger = ray.data.read_parquet(source), None
        if model:
            dataset = dataset.map_batches(model, batch_format="pandas")
        if tapped:
            dataset, ledger = tap(dataset, suite())
        dataset.write_parquet(sink)
        return ledger and ledger()

    return run


ENGINES = {"dask": on_dask, "spark": on_spark, "ray": on_ray}


def processors() -> float:
    """Return the processors' seconds so far of this process and of all that it started."""
    own = psutil.Process()
    total = 0.0
    for process in (own, *own.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:  # it has ended
            continue
        total += times.user + times.system
        if process != own:
            total += times.children_user + times.children_system
    return total


def main() -> None:
    """Run the engines and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("engines", nargs="*", default=list(ENGINES), help="dask, spark, ray")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", action="store_true", help="predict the scores in the pass")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        source = str(Path(folder, "source"))
        Path(source).mkdir()
        write(source, options.rows)
        model = trained(source) if options.model else None
        for name in options.engines:
            run = ENGINES[name](model)
            best = {tapped: (float("inf"),) * 2 for tapped in (False, True)}
            for turn in range(options.rounds + 1):  # the first one warms up
                for tapped in (False, True):
                    sink = str(Path(folder, f"{name}-{turn}-{tapped}"))
                    start = time.perf_counter(), processors()
                    ledger = run(source, sink, tapped)
                    taken = time.perf_counter() - start[0], processors() - start[1]
                    assert not tapped or ledger.n_rows == options.rows
                    if turn:
                        best[tapped] = tuple(map(min, best[tapped], taken))
            for place, clock in enumerate(("by the clock", "of processors")):
                plain, tapped = best[False][place], best[True][place]
                added = f"{tapped / plain - 1:+.1%}"
                print(
                    f"{name:6} {plain:6.2f} s alone, {tapped:6.2f} s, {added} {clock}", flush=True
                )


if __name__ == "__main__":
    main()
