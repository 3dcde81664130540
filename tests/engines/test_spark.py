"""Spark: any partitions give the bytes of one pass; failures name theirs and leave no trace."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine_suites import prepared_rows, prepared_suite

import streammetrics as sm
from streammetrics.metrics.classification.base import ContingencyMetric

pytest.importorskip("pyspark", reason="needs pyspark: pip install 'streammetrics[engines]'")
if not (shutil.which("java") or "JAVA_HOME" in os.environ):
    pytest.skip(
        "needs Java: install a JRE 17+, such as openjdk-17-jre-headless", allow_module_level=True
    )

from pyspark import TaskContext, cloudpickle
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from streammetrics.engines import spark as engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

    from streammetrics.metrics.classification.view import Confusion

    Stages = Callable[[], list[int]]

pytestmark = [
    # PySpark wants pandas to be there, does not use it here, and says so every time.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

N = 1000
rng = np.random.default_rng(5)
TABLE = pa.table(
    {
        "label": rng.integers(0, 2, N),
        "score": rng.random(N).round(3),
        "weight": rng.integers(0, 4, N) / 2,
    }
)


class Hits(ContingencyMetric):
    """A user's own metric."""

    worth: float = 1.0

    def read(self, table: Confusion) -> np.ndarray:
        return self.worth * self.positive(table).tp


def suite() -> sm.MetricSet:
    return sm.MetricSet(
        {"auc": sm.ROCAUC(), "f1": sm.F1(threshold=0.5), "loss": sm.LogLoss()},
        columns={"y_true": "label", "y_score": "score", "sample_weight": "weight"},
    )


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = (
            SparkSession.builder.master("local[2, 2]")  # a task is tried twice
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "4")
            # Jobs as short as these are done before optimised code pays.
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")  # tests fail tasks on purpose
        yield session
        session.stop()


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(TABLE).cache()


@pytest.fixture
def stages(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[Stages]:
    """What tells the number of tasks of every stage that has run in the test."""
    name = request.node.name
    tracker = spark.sparkContext.statusTracker()

    def look() -> list[int]:
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(name)]
        infos = [tracker.getStageInfo(i) for i in sorted({i for job in jobs for i in job.stageIds})]
        return [info.numTasks for info in infos if info.numCompletedTasks]

    spark.sparkContext.setJobGroup(name, name)
    yield look
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


@pytest.mark.parametrize("partitions", [1, 7])
def test_partitions_do_not_matter(frame: DataFrame, partitions: int) -> None:
    empty = suite()
    result = engine.evaluate(empty, frame.repartition(partitions))
    assert result.to_bytes() == suite().update(TABLE).to_bytes()
    assert empty.to_bytes() == suite().to_bytes()


def test_objects_of_an_author_are_prepared_on_the_executors(spark: SparkSession) -> None:
    spark.sparkContext.addPyFile(str(Path(__file__).parent / "engine_suites.py"))
    frame = spark.createDataFrame(pa.table(prepared_rows())).repartition(3)
    result = engine.evaluate(prepared_suite(), frame)
    assert result.to_bytes() == prepared_suite().update(prepared_rows()).to_bytes()


def test_more_partitions_than_rows(spark: SparkSession) -> None:
    few = spark.createDataFrame(TABLE.slice(0, 3)).repartition(10)
    local = suite().update(TABLE.slice(0, 3))
    assert engine.evaluate(suite(), few).to_bytes() == local.to_bytes()


def test_no_rows_give_an_empty_set(spark: SparkSession, frame: DataFrame) -> None:
    nothing = spark.createDataFrame([], frame.schema)
    for empty in (nothing, frame.where("score > 2")):
        template = suite()
        result = engine.evaluate(template, empty)
        assert result is not template
        assert result.to_bytes() == template.to_bytes()


def test_executors_merge_and_the_driver_gets_one_state(
    spark: SparkSession, frame: DataFrame, stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    received = []

    def spied(blob: bytes) -> sm.Metric | sm.MetricSet:
        received.append(blob)
        return sm.from_bytes(blob)

    monkeypatch.setattr(engine, "from_bytes", spied)
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    try:
        result = engine.evaluate(suite(), frame.repartition(40))
    finally:
        spark.conf.unset("spark.sql.adaptive.coalescePartitions.enabled")
    assert stages()[-3:] == [40, 4, 1]
    assert received == [result.to_bytes()] == [suite().update(TABLE).to_bytes()]


def test_adaptive_execution_joins_small_states(frame: DataFrame, stages: Stages) -> None:
    result = engine.evaluate(suite(), frame.repartition(9))
    assert stages()[-3:] == [9, 1, 1]
    assert result.to_bytes() == suite().update(TABLE).to_bytes()


def test_other_columns_are_never_computed(frame: DataFrame) -> None:
    wide = frame.withColumn("note", fn.raise_error(fn.lit("was computed")))
    assert engine.evaluate(suite(), wide).to_bytes() == suite().update(TABLE).to_bytes()


def test_parquet_is_read_by_columns(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    wide = TABLE.append_column("note", pa.array(["unread"] * N)).append_column("id", [range(N)])
    for part in range(3):
        pq.write_table(wide.slice(part * 400, 400), tmp_path / f"{part}.parquet")
    frame = spark.read.parquet(str(tmp_path))
    collect = type(frame).collect

    def explained(merged: DataFrame) -> list[object]:
        merged.explain()
        return collect(merged)

    monkeypatch.setattr(type(frame), "collect", explained)
    result = engine.evaluate(suite(), frame)
    assert result.to_bytes() == suite().update(TABLE).to_bytes()
    read = re.findall(r"ReadSchema: struct<(.*)>", capsys.readouterr().out)
    assert read
    assert set(read) == {"label:bigint,score:double,weight:double"}


def test_odd_names_of_columns(spark: SparkSession) -> None:
    names = ["model.label", "the `score`", "weight in %"]
    odd = sm.MetricSet(
        {"auc": sm.ROCAUC()},
        columns=dict(zip(("y_true", "y_score", "sample_weight"), names, strict=True)),
    )
    table = TABLE.rename_columns(names)
    result = engine.evaluate(odd, spark.createDataFrame(table))
    assert result.to_bytes() == odd.copy().update(table).to_bytes()


def test_arrays_are_matrices_of_scores(spark: SparkSession) -> None:
    classes = sm.MetricSet({"auc": sm.ROCAUC(), "loss": sm.LogLoss()})
    scores = rng.dirichlet([1.0, 1.0, 1.0], N)
    labels = rng.integers(0, 3, N)
    table = pa.table({"y_true": labels, "y_score": pa.array(scores.tolist())})
    frame = spark.createDataFrame(table).repartition(3)
    local = classes.copy().update(y_true=labels, y_score=scores)
    assert engine.evaluate(classes, frame).to_bytes() == local.to_bytes()


def test_nulls_are_refused_or_left_out(spark: SparkSession) -> None:
    table = pa.table({"y_true": [1, 0, 0, 1, 0], "y_score": [0.5, None, None, 0.75, 0.125]})
    frame = spark.createDataFrame(table)
    with pytest.raises(PythonException, match=r"y_score is missing \(NaN or null\) in [12] row"):
        engine.evaluate(sm.MetricSet({"auc": sm.ROCAUC()}), frame)
    omitting = sm.MetricSet({"auc": sm.ROCAUC(nan_policy="omit")})
    result = engine.evaluate(omitting, frame)
    assert result.n_omitted == 2
    assert result.to_bytes() == omitting.copy().update(table).to_bytes()


def test_decimals_are_the_nearest_numbers(frame: DataFrame) -> None:
    decimal = frame.select("label", "weight", fn.col("score").cast("decimal(9, 3)"))
    rows = decimal.collect()
    table = {name: [row[name] for row in rows] for name in ("label", "weight")}
    table["score"] = [float(row["score"]) for row in rows]
    assert engine.evaluate(suite(), decimal) == suite().update(table)


def test_a_set_with_rows_is_refused_before_anything_runs(frame: DataFrame, stages: Stages) -> None:
    fed = suite().update(TABLE)
    before = fed.to_bytes()
    with pytest.raises(sm.IncompatibleMetricsError, match="already seen"):
        engine.evaluate(fed, frame)
    assert fed.to_bytes() == before
    assert stages() == []


def test_a_missing_column_is_refused_before_anything_runs(frame: DataFrame, stages: Stages) -> None:
    with pytest.raises(sm.InvalidBatchError, match="no column 'score'; there are: 'label', 'w"):
        engine.evaluate(suite(), frame.drop("score"))
    assert stages() == []


def test_a_bad_row_names_its_partition(spark: SparkSession) -> None:
    score = fn.when(fn.col("id") == 65, float("nan")).otherwise(fn.col("id") / 100)
    ids = spark.range(0, 100, 1, numPartitions=5)
    bad = ids.select(
        (fn.col("id") % 2).alias("label"), score.alias("score"), fn.lit(1.0).alias("weight")
    )
    template = suite()
    message = r"partition 3: score is missing \(NaN or null\) in 1 row, first in row 5 of the shard"
    with pytest.raises(PythonException, match=message):
        engine.evaluate(template, bad)
    assert template.to_bytes() == suite().to_bytes()


def test_what_a_failed_attempt_has_fed_does_not_count(frame: DataFrame, tmp_path: Path) -> None:
    failed = tmp_path / "failed"

    def fails_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        if TaskContext.get().partitionId() == 2 and not failed.exists():
            failed.touch()
            raise OSError("a disk failed after all rows were fed")

    flaky = frame.repartition(4).mapInArrow(fails_once, frame.schema)
    assert engine.evaluate(suite(), flaky).to_bytes() == suite().update(TABLE).to_bytes()
    assert failed.exists()


@pytest.mark.parametrize(
    "sink", ["write", "collect", "coalesce", "union", "join", "sort", "select"]
)
def test_a_tap_lets_all_rows_through_and_counts_them(
    frame: DataFrame, tmp_path: Path, sink: str
) -> None:
    source = frame.withColumn("a note", fn.lit("kept")).repartition(5)
    tapped, ledger = engine.tap(source, suite())
    assert tapped.schema == source.schema
    assert ledger.n_rows == 0
    if sink == "write":
        tapped.write.parquet(str(tmp_path / "rows"))
        came = pq.read_table(tmp_path / "rows")
    elif sink == "union":
        came = tapped.filter("score >= 0.5").union(tapped.filter("score < 0.5")).toArrow()
    elif sink == "join":
        came = tapped.join(source.select("score").distinct(), "score").toArrow()
    else:
        others = {"coalesce": tapped.coalesce(2), "sort": tapped.sort("score")}
        came = others.get(sink, tapped.select("a note") if sink == "select" else tapped).toArrow()
    assert len(came) == N
    if sink != "select":
        names = ["label", "score", "weight", "a note"]
        order = [(name, "ascending") for name in names]
        expected = TABLE.append_column("a note", pa.array(["kept"] * N))
        assert came.select(names).sort_by(order).to_pylist() == expected.sort_by(order).to_pylist()
    assert ledger.merged().to_bytes() == suite().update(TABLE).to_bytes()


def test_tapped_partitions_count_once_however_often_they_are_computed(frame: DataFrame) -> None:
    tapped, ledger = engine.tap(frame.repartition(4), suite())
    assert tapped.limit(1).count() == 1  # may end in the middle of a partition
    for again in (tapped, tapped.coalesce(1), tapped.union(tapped), tapped.repartition(3)):
        assert again.count() % N == 0
        assert ledger.merged().to_bytes() == suite().update(TABLE).to_bytes()


@pytest.mark.parametrize("how", ["raises", "is killed"])
def test_a_tapped_task_that_is_tried_again_counts_once(
    frame: DataFrame, tmp_path: Path, how: str
) -> None:
    failed = tmp_path / "failed"

    def fails_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        if TaskContext.get().partitionId() == 2 and not failed.exists():
            failed.touch()
            if how == "is killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError("a disk failed after all rows went through the tap")

    tapped, ledger = engine.tap(frame.repartition(4), suite())
    tapped.mapInArrow(fails_once, frame.schema).write.parquet(str(tmp_path / "rows"))
    assert failed.exists()
    assert len(pq.read_table(tmp_path / "rows")) == N
    assert ledger.merged().to_bytes() == suite().update(TABLE).to_bytes()
    assert len(ledger) == 4


def test_a_tap_names_the_partition_of_a_bad_row(spark: SparkSession) -> None:
    score = fn.when(fn.col("id") == 65, float("nan")).otherwise(fn.col("id") / 100)
    bad = spark.range(0, 100, 1, numPartitions=5).select(
        (fn.col("id") % 2).alias("label"), score.alias("score"), fn.lit(1.0).alias("weight")
    )
    tapped, ledger = engine.tap(bad, suite())
    message = r"partition 3: score is missing \(NaN or null\) in 1 row, first in row 5 of the shard"
    with pytest.raises(PythonException, match=message):
        tapped.count()
    assert ledger.n_rows <= 80


def test_a_tap_refuses_what_evaluate_refuses(frame: DataFrame, stages: Stages) -> None:
    with pytest.raises(sm.IncompatibleMetricsError, match="already seen"):
        engine.tap(frame, suite().update(TABLE))
    with pytest.raises(sm.InvalidBatchError, match="no column 'score'"):
        engine.tap(frame.drop("score"), suite())
    assert stages() == []


def test_a_metric_of_the_main_script_goes_along(frame: DataFrame) -> None:
    # Spark ships classes of the main script or notebook by value, as it now does this module's.
    module = sys.modules[__name__]
    own = sm.MetricSet(
        {"hits": Hits(threshold=0.5, worth=2.0), "auc": sm.ROCAUC()},
        columns={"y_true": "label", "y_score": "score"},
    )
    cloudpickle.register_pickle_by_value(module)
    try:
        result = engine.evaluate(own, frame.repartition(5))  # several tasks per Python worker
    finally:
        cloudpickle.unregister_pickle_by_value(module)
    assert result.to_bytes() == own.copy().update(TABLE).to_bytes()


def test_a_metric_of_a_module_is_imported(
    spark: SparkSession, frame: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "misses_of_a_user.py"
    source.write_text(
        "from streammetrics.metrics.classification.base import ContingencyMetric\n"
        "class Misses(ContingencyMetric):\n"
        "    def read(self, table):\n"
        "        return table.fn[:, 1]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    from misses_of_a_user import Misses

    spark.sparkContext.addPyFile(str(source))
    own = sm.MetricSet(
        {"misses": Misses(threshold=0.5)}, columns={"y_true": "label", "y_score": "score"}
    )
    result = engine.evaluate(own, frame.repartition(5))
    assert result.to_bytes() == own.copy().update(TABLE).to_bytes()


def test_without_spark_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.delitem(sys.modules, "streammetrics.engines.spark")
    with pytest.raises(ImportError, match=r"pip install 'pyspark\[sql\]'"):
        importlib.import_module("streammetrics.engines.spark")
