"""Rows of the join as metrics read them: by the pane, as long as they wait, and when they leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.columns.conversion import Column, concatenate
from streammetrics.core.errors import InvalidBatchError
from streammetrics.live.coverage import (
    DISPLACED,
    EXPIRED,
    KNOWN,
    PENDING,
    REFUSED,
    batch_of_rows,
)
from streammetrics.live.coverage import SUITE as COVERAGE
from streammetrics.live.newest import kept_rows
from streammetrics.live.panes import grown
from streammetrics.live.rows import batch_of, columns_of, pieces, taken
from streammetrics.live.table import LABELLED
from streammetrics.live.tiers import Tier
from streammetrics.live.windows import PaneTree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.feeding.layout import Layout
    from streammetrics.core.feeding.states import State
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.types import Ints
    from streammetrics.live.join import Join
    from streammetrics.live.newest import Newest, Some
    from streammetrics.live.panes import Panes
    from streammetrics.live.possible.unlabelled import Left
    from streammetrics.live.windows import Node


class Read(NamedTuple):
    """Rows with their label, and all rows by what became of them."""

    rows: Ints  # those with a label
    times: Ints
    batch: Batch | None
    all_times: Ints
    counted: Batch | None


def read(suite: Mergeable, join: Join, rows: Ints, clock: int) -> Read:
    """Return rows of a join as they are at a time."""
    table, config = join.table, join.config
    times, flags = table.times.values[rows], table.flags.values[rows]
    labelled = flags & LABELLED > 0
    over = times + config.label_ttl < clock
    status = np.where(labelled, KNOWN, np.where(over, EXPIRED, PENDING))
    status[(status == PENDING) & (times <= join.displaced)] = DISPLACED
    delays = np.where(labelled, table.label_times.values[rows] - times, 0)
    kept = np.flatnonzero(labelled)
    labels = [table.labels.at(rows[kept])] if kept.size else []
    if config.default_label is not None:
        expired = np.flatnonzero(status == EXPIRED)
        if expired.size:
            labels.append(_repeated(config.default_label, expired.size))
            kept = np.concatenate([kept, expired])
    batch = None
    if kept.size:
        columns = named_columns(join, rows[kept])
        columns[join.label] = concatenate(labels, join.label)
        batch = batch_of(suite, columns, checked=True)
        bad = _refused(suite._layout, batch, 0, kept.size)
        if bad:  # label and prediction were each checked without the other
            status[kept[bad]] = REFUSED
            good = np.delete(np.arange(kept.size), bad)
            kept, batch = kept[good], taken(batch, good) if good.size else None
    counted = batch_of_rows(status, flags, delays) if len(rows) else None
    return Read(rows[kept], times[kept], batch, times, counted)


def _repeated(label: object, n: int) -> Column:
    if isinstance(label, str):
        return Column(np.zeros(n, np.intp), None, True, np.array([label]))
    return Column(np.full(n, int(label) if isinstance(label, bool) else label), None, True)


def _refused(layout: Layout, batch: Batch, first: int, last: int) -> list[int]:
    """Return the rows of a part of a batch that are refused, each by itself."""
    try:
        layout.read(batch.slice(first, last))
    except InvalidBatchError:
        if last - first == 1:
            return [first]
        middle = (first + last) // 2
        return _refused(layout, batch, first, middle) + _refused(layout, batch, middle, last)
    return []


class Waiting:
    """The states of rows that wait, by the pane; brought up to date when they are read."""

    def __init__(self, suite: Mergeable, join: Join) -> None:
        most = join.config.horizon // join.unit + 2
        self._suite, self._unit = suite, join.unit
        self._rows = PaneTree(suite._layout, most)
        self._counted = PaneTree(COVERAGE._layout, most)
        self._clock = 0

    def update(self, join: Join, first: int, last: int, clock: int) -> None:
        """Bring the panes `first` to `last` to what the join holds at a time."""
        join.match()
        self._turn(join, clock)
        due = np.array(sorted(n for n in join.changed if first <= n <= last), np.int64)
        if not due.size:
            return
        numbers = join.table.times.values // self._unit
        rows = np.flatnonzero((numbers >= due[0]) & (numbers <= due[-1]))
        rows = rows[np.isin(numbers[rows], due)]
        found = read(self._suite, join, rows, clock)
        self._put(self._rows, due, found.times, found.batch)
        self._put(self._counted, due, found.all_times, found.counted)
        join.changed.difference_update(due.tolist())

    def _turn(self, join: Join, clock: int) -> None:
        """Learn of the time: the panes in which labels have come to be due meanwhile are others."""
        low, high = sorted((self._clock, clock))
        ttl = join.config.label_ttl
        first, last = (low - ttl) // self._unit, (high - ttl) // self._unit
        join.changed.update(self._counted.states.irange(first, last))
        self._clock = clock

    def _put(self, row: PaneTree, due: Ints, times: Ints, batch: Batch | None) -> None:
        states: dict[int, State] = {}
        if batch is not None:
            layout = row.layout
            for (number,), rows, n in pieces(layout, [Tier(self._unit, 1)], times, batch):
                states[number] = grown(layout, states.get(number, layout.start), rows, n)
        row.drop(n for n in due.tolist() if n in row.states and n not in states)
        row.put(states)

    def over(self, first: int, last: int) -> list[State]:
        """Return states that have seen the labelled rows of panes."""
        return self._rows.over(first, last)

    def unmerged(self, first: int, last: int) -> Iterator[tuple[PaneTree, Node]]:
        """Yield the nodes that `over` has to merge first, and their tree."""
        yield from ((self._rows, node) for node in self._rows.unmerged(first, last))

    def counted(self, first: int, last: int) -> list[State]:
        """Return states that have counted the rows of panes by what became of them."""
        return self._counted.over(first, last)

    def oldest(self) -> int | None:
        """Return the first pane that has rows, ``None`` where none has."""
        states = self._counted.states
        return states.keys()[0] if states else None

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        return self._rows.nbytes + self._counted.nbytes


def newest_labelled(suite: Mergeable, join: Join, n: int, clock: int) -> Some | None:
    """Return the newest n rows of a join that have a label, and some more."""
    join.match()
    times, config = join.table.times.values, join.config
    known = join.table.flags.values & LABELLED > 0
    if config.default_label is not None:
        known |= times + config.label_ttl < clock
    rows = np.flatnonzero(known)
    young = rows
    if rows.size > n:
        young = rows[times[rows] >= np.partition(times[rows], rows.size - n)[rows.size - n]]
    found = read(suite, join, young, clock)
    if len(found.rows) < min(n, rows.size):  # some of them are refused
        found = read(suite, join, rows, clock)
    return labelled_rows(join, found)


def labelled_rows(join: Join, found: Read) -> Some | None:
    """Return rows that were read, as they are kept one by one."""
    if found.batch is None:
        return None
    return kept_rows(found.times, join.table.keys[found.rows], columns_of(found.batch))


def unlabelled(join: Join, rows: Ints, clock: int) -> Ints:
    """Return those of some rows that have no label, nor one that stands for it."""
    missing = join.table.flags.values[rows] & LABELLED == 0
    if join.config.default_label is not None:
        missing &= join.table.times.values[rows] + join.config.label_ttl >= clock
    found: Ints = rows[missing]
    return found


def named_columns(join: Join, rows: Ints) -> dict[str, Column]:
    """Return the columns of some rows by their names."""
    return dict(zip(join.names, join.table.at(rows).columns, strict=True))


def settle(
    suite: Mergeable, join: Join, panes: Panes, counted: Panes, left: Left, newest: Newest
) -> None:
    """Bring rows that no label in time can reach to the panes.

    Rows that have to leave for want of room are the oldest, and a few more, so that it is seldom.
    """
    join.match()
    table, most = join.table, join.config.max_pending
    if len(table) > most:
        times, over = table.times.values, len(table) - most + most // 16
        join.displaced = max(join.displaced, int(np.partition(times, over - 1)[over - 1]))
    floor = join.left = join.floor
    leaving = table.times.values < floor
    if leaving.any():
        rows = np.flatnonzero(leaving)
        found = read(suite, join, rows, join.newest)
        if found.batch is not None:
            panes.add(found.times, found.batch, known=True)
        if newest.most and (known := labelled_rows(join, found)) is not None:
            newest.add(known)
        if found.counted is not None:
            counted.add(found.all_times, found.counted, known=True)
        without = unlabelled(join, rows, join.newest)
        if without.size:
            left.add(table.times.values[without], named_columns(join, without))
        join.changed.update(np.unique(table.times.values[leaving] // join.unit).tolist())
        table.drop(rows)
    join.orphans()
