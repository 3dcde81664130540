"""Evaluate a Dask collection: workers feed and merge states, one state reaches the caller."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from streammetrics.core.errors import an, needs
from streammetrics.core.mergeable import merge
from streammetrics.engines import shards
from streammetrics.ledger import Ledger

with needs("dask[dataframe]"):
    import dask.bag as db
    import dask.dataframe as dd
    from dask.base import get_scheduler
    from dask.delayed import Delayed, delayed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streammetrics.core.metric_set import MetricSet
    from streammetrics.core.types import Foreign


def evaluate(
    suite: MetricSet, collection: dd.DataFrame | db.Bag | list[Delayed], *, split_every: int = 8
) -> MetricSet:
    """Return a set that has seen every row of a Dask collection.

    Each partition becomes a state, and states merge on the workers in a tree: the empty set and
    states are shipped, never rows. It runs where ``collection.compute()`` would: on the current
    client or scheduler, else on the collection's own. What a lost worker held, Dask computes
    again; a state depends on its rows alone, so the result has the same bytes.

    Args:
        suite: An empty set, which is left as it is. A metric class of your own must be defined in a
            module that the workers and the scheduler can import.
        collection: A DataFrame, of which only the columns that the set takes are read; a Bag whose
            items are tables, as `MetricSet.update` takes them; or a list of Delayed, each of one
            table or of a list of tables. Delayed keep their annotations, so Dask does not fuse
            them with the update and may balance its load by moving a table that they made.
        split_every: How many states are merged at a time, at least 2.

    Memory and cost: a worker holds one partition and `split_every` states at a time; tables that
    `Bag.map` makes are fed one by one. A merge costs as much as the state is large.

    Raises:
        TypeError: `suite` is not a set, or the collection is none of these.
        IncompatibleMetricsError: The set holds rows; or partitions hold labels of different kinds.
        InvalidBatchError: A column of the DataFrame is missing, before anything runs; or, out of
            the job, a table cannot be taken. Its message begins with the partition, counted as Dask
            runs them: it may have fused small Parquet files into one.

    Example::

        import dask.dataframe as dd
        import streammetrics as sm
        from streammetrics.engines.dask import evaluate

        suite = sm.MetricSet({"auc": sm.ROCAUC()}, columns={"y_true": "label", "y_score": "score"})
        evaluate(suite, dd.read_parquet("predictions/")).compute()
    """
    blank = shards.blank(suite)
    if split_every < 2:
        raise ValueError(f"split_every={split_every}, but a merge takes at least 2 states")
    states = _states(blank, collection)
    if not states.npartitions:
        return blank
    merged = states.reduction(merge, merge, split_every=split_every)
    # Optimised as a Bag, partitions are made and fed in one task, and items of a Bag stream; but
    # Delayed would lose their annotations.
    delays = isinstance(collection, list)
    tree = merged.to_delayed(optimize_graph=not delays)
    parts = collection if delays else [collection]
    result: MetricSet = tree.compute(scheduler=get_scheduler(collections=parts))
    return result


def tap(frame: dd.DataFrame, suite: MetricSet) -> tuple[dd.DataFrame, dd.Scalar]:
    """Feed the rows of a DataFrame on their way to wherever they go.

    The first of the results is the same DataFrame; the second is a Dask scalar, which computes to
    a ledger of the partitions. Computed together, they take one pass. Dask keeps the state of each
    partition by its key, so a task that is retried, or computed again after a worker was lost,
    counts once.

    Args:
        frame: A DataFrame; its optimisation ends here, so select columns and rows before.
        suite: As for `evaluate`.

    Raises:
        IncompatibleMetricsError: The set has already been fed; nothing runs.
        InvalidBatchError: A column is missing; nothing runs. Or, out of the job, as for `evaluate`.

    Memory and cost:
        A worker holds a partition until it has gone on and is counted. One task has the states of
        all partitions.

    Example::

        tapped, ledger = tap(frame, suite)
        _, ledger = dask.compute(tapped.to_parquet("accepted/", compute=False), ledger)
        ledger.compute()
    """
    blank = shards.blank(suite)
    names = blank._reads(frame.columns)
    node, feed = delayed(blank), delayed(_tapped, nout=2)
    pairs = [feed(part, names, node, number) for number, part in enumerate(frame.to_delayed())]
    # A collection of the same kind as the other, so that Dask computes both in one graph.
    ledgers = dd.from_delayed(
        [ledger for _, ledger in pairs], ("ledger", object), verify_meta=False
    )
    tapped = dd.from_delayed(
        [part for part, _ in pairs], frame._meta, frame.divisions, verify_meta=False
    )
    return tapped, ledgers.reduction(_same, merge, meta=0)  # no number, but one scalar


def _tapped(
    part: Foreign, names: list[str], suite: MetricSet, number: int
) -> tuple[Foreign, Ledger]:
    (state,) = _state([{name: part[name] for name in names}], [number], suite=suite)
    return part, Ledger(suite).add(number, state)


def _same(ledger: Ledger) -> Ledger:
    return ledger


def _states(suite: MetricSet, collection: object) -> db.Bag:
    """Return a Bag of states, one in each partition; the set is one node of its graph."""
    node = delayed(suite)
    if isinstance(collection, dd.DataFrame):
        frame = collection[suite._reads(collection.columns)].optimize()
        # To Dask the states are a column; it need not know better.
        states = partial(
            frame.map_partitions, _of_frame, meta=("state", object), enforce_metadata=False
        )
        column = states(node)
        # Dask cannot fuse a node with the only partition that takes it, which may be what it makes
        # of several small files; then that takes the set.
        if column.optimize().npartitions == 1:
            column = states(suite)
        return column.to_bag(format="frame")
    if isinstance(collection, db.Bag):
        if not collection.npartitions:
            return collection
        numbers = db.from_sequence(range(collection.npartitions), partition_size=1)
        return collection.map_partitions(_state, numbers, suite=node)
    if isinstance(collection, list) and all(isinstance(part, Delayed) for part in collection):
        state = delayed(_of_delayed)
        return db.from_delayed([state(part, node, i) for i, part in enumerate(collection)])
    raise TypeError(
        f"{an(type(collection).__name__)} is no Dask collection of tables: "
        "pass a Dask DataFrame, a Bag of tables or a list of Delayed"
    )


def _of_frame(frame: Foreign, suite: MetricSet, partition_info: Foreign = None) -> list[MetricSet]:
    return _state([frame], [partition_info["number"]], suite=suite)


def _of_delayed(part: object, suite: MetricSet, number: int) -> list[MetricSet]:
    return _state(part if isinstance(part, list) else [part], [number], suite=suite)


def _state(tables: Iterable[object], number: list[int], *, suite: MetricSet) -> list[MetricSet]:
    return [shards.fed(suite, tables, f"partition {number[0]}")]
