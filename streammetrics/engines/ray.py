"""Ray Data: the tasks that read the blocks of a dataset feed them, and only states leave the tasks.

Tasks merge the states as well, so that the driver takes one for every 32 blocks. When a worker
dies, Ray runs its tasks again, and only what one attempt returned is merged: no row counts twice.
"""

from __future__ import annotations

import time
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from streammetrics.core.columns.batch import n_rows
from streammetrics.core.errors import InvalidBatchError, an, needs
from streammetrics.core.loading import from_bytes
from streammetrics.engines.shards import blank, located, packed, unpacked
from streammetrics.ledger import Ledger

with needs("ray[data]"):
    import pyarrow as pa
    import ray
    from ray.cloudpickle import dumps
    from ray.data import Dataset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from streammetrics.core.metric_set import MetricSet
    from streammetrics.core.types import Foreign

_FAN_IN = 32  # states a task merges


def evaluate(suite: MetricSet, dataset: Dataset) -> MetricSet:
    """Feed a dataset to a set of metrics, a block at a time.

    Only the columns that the metrics take are read, where the source can leave columns out. A
    state per block goes through the object store, never a row. A task holds one block and its
    state, or 32 states.

    Args:
        suite: The metrics, not yet fed; they stay so. A metric of your own must be importable on
            the workers, or defined in the main script or a notebook.
        dataset: Any dataset. Where Ray does not know its columns, as after `map_batches`, it runs
            the first block to see them.

    Returns:
        The filled set. Where ``DataContext.max_errored_blocks`` lets Ray drop blocks that fail,
        their rows are missing in it, and `n_rows` tells.

    Raises:
        IncompatibleMetricsError: The set has already been fed; nothing runs.
        InvalidBatchError: A column is missing; nothing runs.
        ray.exceptions.RayTaskError: A block cannot be taken; the message says which column and
            row. Under ``DataContext.raise_original_map_exception`` it is an InvalidBatchError too.

    Example::

        dataset = ray.data.read_parquet("s3://bucket/predictions/")
        evaluate(suite, dataset).compute()
    """
    result = blank(suite)
    return _evaluated(result, dataset, None).get(None, result)


def evaluate_groups(suite: MetricSet, dataset: Dataset, by: str) -> dict[Any, MetricSet]:
    """Feed each group of a dataset to a set of its own, without a shuffle of the rows.

    As `evaluate`, with a state for each group in a block instead of one: for groups that are many
    fewer than rows.

    Args:
        suite: As for `evaluate`.
        dataset: As for `evaluate`.
        by: The column of the groups, of numbers or strings.

    Returns:
        The filled sets by group, in ascending order; rows where it is null come last, as ``None``.

    Raises:
        IncompatibleMetricsError: The set has already been fed; nothing runs.
        InvalidBatchError: A column is missing; nothing runs.
        ray.exceptions.RayTaskError: As for `evaluate`; the message names the group.

    Example::

        for country, metrics in evaluate_groups(suite, dataset, by="country").items():
            print(country, metrics.compute())
    """
    groups = _evaluated(blank(suite), dataset, by)
    return dict(sorted(groups.items(), key=lambda group: (group[0] is None, group[0])))


def tap(dataset: Dataset, suite: MetricSet) -> tuple[Dataset, Callable[[], Ledger]]:
    """Feed the rows of a dataset on their way to wherever they go.

    The first of the results is the same dataset. When it is consumed, written for example, tasks
    send their states to an actor, from which the second one, a function, gets the ledger of the
    tasks. A task that is run again, as its worker died or its blocks were lost, replaces what its
    earlier attempt sent: each counts once. Consuming the dataset again begins anew; the ledger is
    that of the last pass, with the tasks that have run.

    Args:
        dataset: As for `evaluate`.
        suite: As for `evaluate`.

    Raises:
        IncompatibleMetricsError: The set has already been fed; nothing runs.
        InvalidBatchError: A column is missing from a dataset whose columns are known; nothing runs.
        ray.exceptions.RayTaskError: As for `evaluate`, from whatever consumes the dataset; also if
            a column is missing from what an earlier step of the dataset makes.

    Memory and cost:
        Blocks stay as they are and where they are. With each block its task sends the state of
        what it has seen to the actor, which keeps one for every task.

    Example::

        tapped, ledger = tap(dataset, suite)
        tapped.write_parquet("s3://bucket/accepted/")
        ledger().compute()
    """
    empty = blank(suite)
    names = _columns(dataset, run=False)
    actor = ray.remote(num_cpus=0)(_Kept).remote()
    feed = _Tap(empty, None if names is None else empty._reads(names), actor)

    def ledger() -> Ledger:
        made = Ledger(empty)
        for task, (attempt, state) in ray.get(actor.states.remote()).items():
            made.add(task, unpacked(empty, state), attempt=attempt)
        return made

    return dataset.map_batches(feed, batch_format=None, batch_size=None), ledger


class _Tap:
    """Feeds the blocks of a task to a state, and sends it to an actor after each."""

    def __init__(
        self, suite: MetricSet, names: list[str] | None, actor: Foreign, began: int = 0
    ) -> None:
        self._suite, self._names, self._actor, self._began = suite, names, actor, began
        self._task: str | None = None

    def __reduce__(self) -> tuple[object, ...]:
        # Ray pickles it once for all tasks of a pass, so that this is when the pass began.
        return _Tap, (self._suite, self._names, self._actor, time.time_ns())

    def __call__(self, block: Foreign) -> Foreign:
        """Return the block."""
        task = ray.get_runtime_context().get_task_id()  # the same for each attempt
        if self._task != task:
            self._task, self._attempt, self._state = task, uuid.uuid4().hex, self._suite.copy()
        rows = n_rows(block)
        if rows:
            with located(f"a block of {rows:,} rows", 0, "block"):
                if self._names is None:
                    columns = block.column_names if isinstance(block, pa.Table) else block.columns
                    self._names = self._suite._reads(columns)
                self._state.update({name: block[name] for name in self._names})
        sent = self._actor.keep.remote(self._began, task, self._attempt, packed(self._state, dumps))
        ray.get(sent)
        return block


class _Kept:
    """The last state of each task in the last pass; an actor."""

    def __init__(self) -> None:
        self._began = 0  # nanoseconds
        self._attempts: dict[str, int] = {}  # by when they were first heard of
        self._states: dict[str, tuple[int, bytes]] = {}

    def keep(self, began: int, task: str, attempt: str, state: bytes) -> None:
        """Take the state of a task, unless a later attempt or pass is known."""
        if began > self._began:
            self._began, self._attempts, self._states = began, {}, {}
        number = self._attempts.setdefault(attempt, len(self._attempts))
        if began == self._began and number >= self._states.get(task, (0, b""))[0]:
            self._states[task] = number, state

    def states(self) -> dict[str, tuple[int, bytes]]:
        """Return the attempt and the state of each task."""
        return self._states


def _columns(dataset: object, *, run: bool = True) -> list[str] | None:
    """Return the columns of a dataset; None where it has no block at all.

    Where only a run tells them, a first block is made; without `run`, the result is None.
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(
            f"{an(type(dataset).__name__)} is not a Ray dataset: pass one, such as "
            "ray.data.read_parquet(path) or ray.data.from_pandas(frame)"
        )
    names: list[str] | None = dataset.columns(fetch_if_missing=run)
    return names


def _evaluated(suite: MetricSet, dataset: Dataset, by: str | None) -> dict[object, MetricSet]:
    names = _columns(dataset)
    if names is None:
        return {}
    columns = suite._reads(names)
    if by is not None and by not in names:
        raise InvalidBatchError(f"no column {by!r}; there are: {', '.join(map(repr, names))}")
    # Not `Dataset.aggregate`: there the rows would first go through the object store, the column
    # that an aggregation declares is the only one it gets, and Ray 2.60 does not say of each of its
    # shuffles that a shard sent again by a second attempt counts once.
    feed, merge = partial(_feed, suite=suite, by=by), partial(_merge, suite=suite)
    states = (
        dataset.select_columns(list(dict.fromkeys([*columns, by] if by else columns)))
        .map_batches(feed, batch_format="pyarrow", batch_size=None)
        .repartition(target_num_rows_per_block=_FAN_IN, strict=True)
        .map_batches(merge, batch_format="pyarrow", batch_size=None)
    )
    return _merged(states.iter_batches(batch_format="pyarrow", batch_size=None), suite)


def _feed(block: Foreign, suite: MetricSet, by: str | None) -> Foreign:
    """Return the state of a block, or of each group in it."""
    if by is None:
        with located(f"a block of {block.num_rows:,} rows", 0, "block"):
            return _table(pa.nulls(1), [suite.copy().update(block)])
    numbered = pa.table({"group": block[by], "row": range(block.num_rows)})
    groups = numbered.group_by("group").aggregate([("row", "list")])
    states = []
    for group, rows in zip(groups["group"], groups["row_list"], strict=True):
        with located(f"{by} {group} in a block of {block.num_rows:,} rows", 0, "group"):
            states.append(suite.copy().update(block.take(rows.values)))
    return _table(groups["group"], states)


def _merge(states: Foreign, suite: MetricSet) -> Foreign:
    """Return one state for each group."""
    groups = _merged([states], suite)
    return _table(pa.array(list(groups), states["group"].type), groups.values())


def _merged(tables: Iterable[Foreign], suite: MetricSet) -> dict[object, MetricSet]:
    groups: dict[object, MetricSet] = {}
    for table in tables:
        for group, blob in zip(table["group"].to_pylist(), table["state"], strict=True):
            state = cast("MetricSet", from_bytes(blob.as_py()))
            name = group if group == group else None  # noqa: PLR0124 - nan is no group
            groups.setdefault(name, suite.copy()).merge(state)
    return groups


def _table(groups: Foreign, states: Iterable[MetricSet]) -> Foreign:
    blobs = pa.array([state.to_bytes() for state in states], pa.large_binary())
    return pa.table({"group": groups, "state": blobs})
