"""Rows of events: columns as a suite's `update` takes them, split into panes by time."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.errors import InvalidBatchError
from streammetrics.live.events import is_made
from streammetrics.slices.bins import read_keys
from streammetrics.statistics.grouped import Grouped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.columns.schema import Rows
    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.types import Ints, Places
    from streammetrics.live.events import Tier

AT_ONCE = 1 << 15  # rows of one piece: two columns of float64 fit the cache


class PaneRows(NamedTuple):
    """Rows of one pane in each tier, as read by each schema."""

    panes: tuple[int, ...]
    rows: tuple[Rows, ...]
    n: int


class _Catch:
    """Stands in for an accumulator of a plan, to capture the batch passed to it."""

    batch: Batch

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def update(self, batch: Batch) -> None:
        self.batch = batch


def batch_of(suite: Mergeable, columns: Mapping[str, object], *, checked: bool = False) -> Batch:
    """Return the validated batch that a suite's own `update` creates from columns."""
    plan = suite._plan
    catch = _Catch(plan)
    twin = suite._over(catch)  # type: ignore[arg-type]  # has what `update` needs of an accumulator
    if checked or is_made(columns, suite):
        twin.feed(columns, getattr(suite, "columns", {}))
    else:
        twin.update(**columns)
    batch = catch.batch
    plan.prepare(batch)
    for name in (*plan.required, *plan.optional):
        if name in plan.required or batch.has(name):
            batch.column(name)
    return batch


def columns_of(batch: Batch) -> dict[str, Column]:
    """Return the converted columns of a batch, by the names that `update` takes."""
    return dict(batch._columns)


def pieces(plan: Plan, tiers: Sequence[Tier], times: Ints, batch: Batch) -> Iterator[PaneRows]:
    """Split the rows of a batch into panes.

    Raises:
        InvalidBatchError: The number of times differs from the number of rows, or rows are invalid.
    """
    n = len(times)
    if n != batch.n_rows:
        raise InvalidBatchError(f"time has {n} rows, the other columns have {batch.n_rows}")
    if (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable")
        times, sorted_batch = times[order], taken(batch, order)
    else:
        sorted_batch = batch
    for start, end in pairwise(_cuts(tiers, times)):
        first_time = int(times[start])
        panes = tuple([tier.number(first_time) for tier in tiers])
        for first in range(start, end, AT_ONCE):
            last = min(first + AT_ONCE, end)
            part = sorted_batch
            if last - first < n:
                part = sorted_batch.slice(first, last)
                _tell_own_keys(plan, part)
            yield PaneRows(panes, _read(plan, part, batch), last - first)


def _cuts(tiers: Sequence[Tier], times: Ints) -> list[int]:
    """Return the start of each pane's rows, and the end of the last one."""
    n = len(times)
    first, last = int(times[0]), int(times[-1])
    if all(tier.number(first) == tier.number(last) for tier in tiers):
        return [0, n]
    numbers = np.array([tier.numbers(times) for tier in tiers])
    cuts = np.flatnonzero((numbers[:, 1:] != numbers[:, :-1]).any(axis=0)) + 1
    return [0, *cuts.tolist(), n]


def _tell_own_keys(plan: Plan, part: Batch) -> None:
    """Restrict the facts of the keys in a part to its own rows, instead of the whole batch."""
    for statistic in plan.start.statistics:
        if isinstance(statistic, Grouped):
            title = part.title(statistic.name)
            part._columns[title] = read_keys(part._columns[title], statistic.titles)


def _read(plan: Plan, part: Batch, whole: Batch) -> tuple[Rows, ...]:
    try:
        return plan.read(part)
    except InvalidBatchError:
        plan.read(whole)  # numbers rows over the whole batch, and names its first invalid row
        raise


def taken(batch: Batch, rows: Places) -> Batch:
    """Return some rows of a batch whose columns are all converted."""
    part = batch.slice(0, 0)
    part._columns = {title: column[rows] for title, column in batch._columns.items()}
    part.n_rows = len(rows)
    return part
