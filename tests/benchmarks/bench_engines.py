"""One machine with two workers, and what each engine costs beside a local pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench_states import binary_rows
from measuring import Figure

FILES = 20

SUITE = """
import json, logging, sys, time, warnings
warnings.simplefilter("ignore")
import streammetrics as sm
from streammetrics.cli.inputs import plan

folder = sys.argv[1]
columns = {"y_true": "label", "y_score": "score"}
suite = plan("binary", columns, {"max_bins": 1 << 16}, None).suite

def timed(call):
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start
"""

LOCAL = """
def best(workers):
    return min(timed(lambda: sm.evaluate(suite, folder, workers=workers))[1] for _ in range(3))

if __name__ == "__main__":
    print(json.dumps([best(1), best(2)]))
"""

# Each ends with how long the engine's own start took, and a pass with everything warm.
ENGINES = {
    "dask": """
from dask.distributed import Client, LocalCluster
from streammetrics.engines.dask import evaluate
import dask.dataframe as dd

def start():
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    return Client(cluster)

def run(client):
    return evaluate(suite, dd.read_parquet(folder))

def stop(client):
    client.close()
    client.cluster.close()
""",
    "spark": """
import os
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
from streammetrics.engines.spark import evaluate

def start():
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = spark.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark

def run(spark):
    return evaluate(suite, spark.read.parquet(folder))

def stop(spark):
    spark.stop()
""",
    "ray": """
import ray
from streammetrics.engines.ray import evaluate

def start():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray").setLevel("ERROR")

def run(_):
    return evaluate(suite, ray.data.read_parquet(folder))

def stop(_):
    ray.shutdown()
""",
    "beam": """
import glob, os
import apache_beam as beam
import pyarrow.parquet as pq
from streammetrics.engines.beam import CombineMetrics

def start():
    pass

def tables(path):
    yield pq.read_table(path, columns=["label", "score"])

def save(state):
    with open(f"{folder}.state", "wb") as file:
        file.write(state.to_bytes())

def run(_):
    with beam.Pipeline(runner="BundleBasedDirectRunner") as pipeline:
        paths = pipeline | beam.Create(sorted(glob.glob(f"{folder}/*")))
        total = paths | beam.FlatMap(tables) | beam.CombineGlobally(CombineMetrics(suite))
        total | beam.Map(save)
    with open(f"{folder}.state", "rb") as file:
        return sm.from_bytes(file.read())

def stop(_):
    os.unlink(f"{folder}.state")
""",
    "torch": """
import glob, tempfile
import torch.distributed as dist
import torch.multiprocessing as mp
from streammetrics.engines.torch import all_reduce

def rank(index, init, queue):
    dist.init_process_group("gloo", init_method=init, rank=index, world_size=2)
    paths = sorted(glob.glob(f"{folder}/*"))[index::2]
    for _ in range(2):
        dist.barrier()
        _, seconds = timed(lambda: all_reduce(sm.evaluate(suite, paths)))
    if index == 0:
        queue.put(seconds)
    dist.barrier()
    dist.destroy_process_group()

def measure():
    with tempfile.TemporaryDirectory() as where:
        queue = mp.get_context("spawn").SimpleQueue()
        _, whole = timed(lambda: mp.spawn(rank, (f"file://{where}/init", queue), nprocs=2))
        seconds = queue.get()
    return whole - 2 * seconds, seconds
""",
}

MEASURE = """
def measure():
    engine, began = timed(start)
    run(engine)
    state, seconds = timed(lambda: run(engine))
    stop(engine)
    assert state == sm.evaluate(suite, folder)
    return began, seconds
"""

MAIN = """
if __name__ == "__main__":
    print(json.dumps(measure()))
"""

NEEDS = {"dask": "dask", "spark": "pyspark", "ray": "ray", "beam": "apache_beam", "torch": "torch"}


def write(folder, rows):
    """Write the rows as files of Parquet, with a column that nobody reads."""
    rng = np.random.default_rng(11)
    for part in range(FILES):
        columns = binary_rows(rng, rows // FILES)
        columns = {"label": columns["y_true"], "score": columns["y_score"]}
        table = pa.table({**columns, "extra": rng.random(rows // FILES)})
        pq.write_table(table, Path(folder, f"part-{part:02}.parquet"))


def run(folder, data, script):
    """Run a script, which spawns processes and therefore is a file."""
    path = Path(folder, "script.py")
    path.write_text(SUITE + script)
    command = [sys.executable, str(path), str(data)]
    # Python keeps the bytecode of what is installed; a process that compiles all starts late.
    env = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return json.loads(done.stdout.splitlines()[-1])


def workers(scale):
    """`sm.evaluate` of 20 Parquet files with one worker and with two."""
    rows = int(50_000_000 * scale)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as data:
        write(data, rows)
        one, two = run(folder, data, LOCAL)
    title = f"sm.evaluate, {FILES} files, {rows:,} rows, one worker"
    met = one / two >= 1.7
    return [
        Figure(title, f"{one:.2f} s", "", None),
        Figure("  two workers", f"{two:.2f} s, {one / two:.2f}x as fast", "1.7x", met),
    ]


def engines(scale):
    """Every engine that is installed, with two workers where it can, next to one local pass."""
    rows = int(10_000_000 * scale)
    figures = []
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as data:
        write(data, rows)
        local = run(folder, data, LOCAL)[0]
        title = f"one local pass over {rows:,} rows in {FILES} files"
        figures.append(Figure(title, f"{local:.2f} s", "", None))
        for name, script in ENGINES.items():
            if find_spec(NEEDS[name]) is None:
                text = "not installed: pip install 'streammetrics[engines]'"
            else:
                tail = MAIN if "def measure" in script else MEASURE + MAIN
                began, seconds = run(folder, data, script + tail)
                text = f"{seconds:.2f} s, {seconds / local:.1f} times; start {began:.1f} s"
            where = "in one process" if name == "beam" else "two workers"
            figures.append(Figure(f"  {name}, {where}", text, "", None))
    return figures


BENCHMARKS = {"sm.evaluate, two workers": workers, "engines": engines}
