"""Spark: executors feed the partitions of a DataFrame, and only states leave them.

Executors merge the states too, so the driver gets one, however many partitions there are.
"""

from __future__ import annotations

from collections.abc import Iterator  # noqa: TC003 - Spark reads the types of what it calls
from typing import TYPE_CHECKING, Any, cast

from streammetrics.core.errors import needs
from streammetrics.core.loading import from_bytes
from streammetrics.engines.committed import Committed
from streammetrics.engines.shards import blank, fed, located, packed, unpacked
from streammetrics.ledger import Ledger

with needs("pyspark[sql]"):
    import pyarrow as pa
    from pyspark import AccumulatorParam, TaskContext
    from pyspark.cloudpickle import dumps
    from pyspark.sql.functions import arrow_udf, col, spark_partition_id

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from streammetrics.core.metric_set import MetricSet
    from streammetrics.live.live import Live

_STATE = "state"
_SCHEMA = f"{_STATE} binary"
_PARTITION = "streammetrics partition"


def evaluate(suite: MetricSet, frame: DataFrame) -> MetricSet:
    """Feed a DataFrame to a set of metrics, one task a partition.

    Only the columns that the metrics take are read, where the source can leave columns out. Rows
    stay in the task that reads them; between executors, and at last to the driver, go states. Only
    what a successful attempt returned is merged, so nothing counts twice after a retry or with
    speculative execution.

    Args:
        suite: The metrics, not yet fed; they stay so. Executors need streammetrics installed. The
            module of a metric of your own must be importable there, as with ``sc.addPyFile``, or
            be the main script or notebook, with the class at its top level.
        frame: Foreign batch DataFrame. A column of ``array<double>`` is a matrix of scores; one of
            vectors becomes that by ``pyspark.ml.functions.vector_to_array``.

    Raises:
        IncompatibleMetricsError: The set has already been fed; nothing runs.
        InvalidBatchError: The frame has not the columns; nothing runs.
        pyspark.errors.PythonException: A partition cannot be taken, once Spark has tried it
            ``spark.task.maxFailures`` times. The message says which column and row of which
            partition; or which module an executor cannot import.

    Memory and cost:
        A state and one Arrow batch per task, which Spark bounds by
        ``spark.sql.execution.arrow.maxRecordsPerBatch`` and ``maxBytesPerBatch``; one state on the
        driver. Two small shuffles, of one state per partition and of one per merging task.

    Example::

        frame = spark.read.parquet("s3://bucket/predictions/")
        result = evaluate(suite, frame)
        result.compute()
    """
    result = blank(suite)
    columns = result._reads(frame.columns)

    def feed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None  # only the driver has none
        tables = (batch.rename_columns(columns) for batch in batches)
        yield _row(fed(result, tables, f"partition {task.partitionId()}"))

    def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        merged = result.copy()
        for batch in batches:
            for state in batch[_STATE]:
                merged.merge(cast("MetricSet", from_bytes(state.as_py())))
        yield _row(merged)

    # Spark cannot find columns with odd names again, so they go by numbers to the tasks.
    rows = frame.select(*(col(_quoted(name)).alias(f"_{i}") for i, name in enumerate(columns)))
    states = rows.mapInArrow(feed, _SCHEMA)
    # DataFrames throughout: `rdd.treeReduce` would turn states into Python rows, needs the number
    # of partitions, which adaptive execution only knows afterwards, and is not in Spark Connect.
    # No number of tasks is given either: adaptive execution joins partitions of a shuffle by their
    # bytes, so small states take one task, and large ones many. GroupCodes would hold the states of
    # a group together; here they come in bounded batches and each is merged and forgotten.
    partly = states.repartition(spark_partition_id()).mapInArrow(merge, _SCHEMA)
    for row in partly.repartition(1).mapInArrow(merge, _SCHEMA).collect():
        result.merge(cast("MetricSet", from_bytes(row[_STATE])))
    return result


def tap(frame: DataFrame, suite: MetricSet) -> tuple[DataFrame, Ledger]:
    """Feed the rows of a DataFrame on their way to wherever they go.

    The first of the results is the same DataFrame. Whatever action runs on it, a write for
    example, also fills the second one, a ledger of the partitions, on the driver. A task that is
    retried, run speculatively or computed again by a later stage or action replaces its partition
    in the ledger: each counts once. So the ledger has all rows once an action has gone through all
    partitions to their end.

    Args:
        frame: As for `evaluate`; no DataFrame of Spark Connect, which has no accumulators. Its
            partitions must be the same in each action: give it to one, or `cache` the result.
        suite: As for `evaluate`.

    Raises:
        IncompatibleMetricsError: The set has already been fed; nothing runs.
        InvalidBatchError: The frame has not the columns; nothing runs.
        pyspark.errors.PythonException: As for `evaluate`, from the action.

    Memory and cost:
        The columns that the metrics take go to Python, no others; what comes back is a Boolean a
        row. A state per task, and on the driver one per partition.

    Example::

        tapped, ledger = tap(frame, suite)
        tapped.write.parquet("s3://bucket/accepted/")
        ledger.compute()
    """
    empty = blank(suite)
    names = empty._reads(frame.columns)
    ledger = Ledger(empty)
    context = frame.sparkSession.sparkContext
    found = context.accumulator(ledger, _Merged(empty))

    def passes(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:  # type: ignore[type-arg]  # at run time it has none
        state, row, place = empty.copy(), 0, -1
        for partition, *columns in batches:
            rows, place = len(partition), partition[0].as_py()
            with located(f"partition {place}", row, "shard"):
                state.update(pa.RecordBatch.from_arrays(columns, names))
            row += rows
            yield pa.repeat(True, rows)
        task = TaskContext.get()
        assert task is not None  # only the driver has none
        if row:
            found.add([(place, task.taskAttemptId(), packed(state, dumps))])

    # A filter that no optimisation moves, removes or reads columns for. The number is that of the
    # partition of this frame, also where a task computes several, as after `coalesce`.
    columns = [col(_quoted(name)) for name in (_PARTITION, *names)]
    keeps = arrow_udf(passes, "boolean").asNondeterministic()
    numbered = frame.withColumn(_PARTITION, spark_partition_id())
    return numbered.filter(keeps(*columns)).drop(_PARTITION), ledger


_Found = list[tuple[int, int, bytes]]  # partitions, attempts and statistics


class _Merged(AccumulatorParam[Any]):  # type: ignore[misc]  # Spark need not be there
    """What tasks found, in a list; on the driver, in a ledger."""

    def __init__(self, empty: MetricSet) -> None:
        self._empty = empty

    def zero(self, _: object) -> _Found:
        """Return what a task starts with."""
        return []

    def addInPlace(self, value1: Ledger | _Found, value2: _Found) -> Ledger | _Found:  # noqa: N802 - Spark's name
        """Take what another task found."""
        if not isinstance(value1, Ledger):
            return value1 + value2
        for place, attempt, state in value2:
            value1.add(place, unpacked(self._empty, state), attempt=attempt)
        return value1


def into(
    live: Live, folder: str | os.PathLike[str], time: str = "time"
) -> Callable[[DataFrame, int], None]:
    """Return what a streaming query's `foreachBatch` takes: it keeps a live state in a folder.

    Executors observe the rows of a micro-batch, and only panes of states leave them; the driver
    merges them and writes the state under the batch's id. Spark tries a batch again whose end is
    not in its checkpoint: the same rows under the same id, which then change nothing. So each row
    counts once, whoever is killed at whatever moment, as long as checkpoint and folder stay
    together, and the source can be read again (files, Kafka).

    Args:
        live: An empty live state; its `max_ahead` should be ``None``, as old rows may be read.
        folder: Where the state is kept, on the driver: `Committed` reads it, and `load` its files.
        time: The column of times: timestamps, which without a zone are UTC, or POSIX seconds.

    Example::

        query = (
            frame.writeStream.foreachBatch(into(live, "states"))
            .option("checkpointLocation", "checkpoint").start()
        )
        Committed(live, "states").live.window("1h").compute()
    """
    held = Committed(live, folder)
    suite = blank(cast("MetricSet", live._suite))
    empty = live.to_bytes()

    def batch(frame: DataFrame, number: int) -> None:
        if number <= held.number:
            return
        names = suite._reads(frame.columns)

        def feed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            state = cast("Live", from_bytes(empty))
            for rows in batches:
                columns = {name: rows.column(place) for place, name in enumerate(names)}
                state.observe(
                    time=rows.column(len(names)).to_numpy(zero_copy_only=False), **columns
                )
            yield _row(state)

        rows = frame.select(*(col(_quoted(name)) for name in (*names, time)))
        found = rows.mapInArrow(feed, _SCHEMA).collect()
        held.take(number, [cast("Live", from_bytes(row[_STATE])) for row in found])

    return batch


def _row(state: MetricSet | Live) -> pa.RecordBatch:
    return pa.record_batch({_STATE: pa.array([state.to_bytes()], pa.binary())})


def _quoted(name: str) -> str:
    # Bare names may not hold dots, which look inside of a struct.
    return "`" + name.replace("`", "``") + "`"
