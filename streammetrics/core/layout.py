"""Distinct statistics and the schemas through which they read rows, and how their state changes.

A state is never changed: every function here makes a new one of it, and either all of the change
is in it or it raises. So whoever holds a state may read it while others move on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.columns.batch import WEIGHT
from streammetrics.core.columns.conversion import Column, concatenate
from streammetrics.core.columns.long import joined_numbers
from streammetrics.core.columns.reading import Reading
from streammetrics.core.columns.schema import NO_ROWS, Rows, joined
from streammetrics.core.errors import IncompatibleMetricsError, InvalidBatchError
from streammetrics.core.statistic import Statistic

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Facts, Schema

SLICE = 1 << 16  # rows taken at a time: two columns of float64 stay in a 2 MB cache
STAGED = 1 << 14  # rows kept until they are worth a call of every statistic


class Feed(NamedTuple):
    """What is known of the rows read for one schema."""

    facts: Facts
    n_rows: int
    n_omitted: int

    def grown(self, facts: Facts, n_rows: int, n_omitted: int) -> Feed:
        """Return the feed after more rows."""
        return Feed(joined(self.facts, facts), self.n_rows + n_rows, self.n_omitted + n_omitted)


class State(NamedTuple):
    """The whole state at one moment."""

    feeds: tuple[Feed, ...]  # of the rows in the statistics; those of one reading are equal
    statistics: tuple[Statistic, ...]
    staged: tuple[tuple[Rows, ...], ...] = ()  # batches, once for each reading; arrays our own
    agreed: tuple[Feed, ...] = ()  # `feeds` with the facts of staged rows
    pending: int = 0  # about how many rows are staged


class Refused(NamedTuple):
    """Rows that a statistic refused although its schema had accepted them."""

    n: int
    update: int
    of: int
    error: Exception

    def __str__(self) -> str:
        return (
            f"{self.n:,} rows were dropped, those of update {self.update} of the {self.of} since "
            f"the state was last read: a statistic raised {self.error!r} on rows that its schema "
            "had accepted, and must leave refusing to its schema"
        )


class Layout:
    """Distinct statistics, their schemas, and the readings that serve several of these."""

    __slots__ = (
        "_firsts",
        "_readers",
        "_readings",
        "leader",
        "optional",
        "places",
        "required",
        "schemas",
        "sources",
        "start",
        "wary",
    )

    def __init__(self, statistics: Iterable[Statistic]) -> None:
        distinct = {statistic._key: statistic for statistic in statistics}
        self.places = {key: place for place, key in enumerate(distinct)}
        schemas = [statistic.schema for statistic in distinct.values()]
        self.schemas: tuple[Schema, ...] = tuple(dict.fromkeys(schemas))
        self.sources = tuple(map(self.schemas.index, schemas))
        alike: dict[Schema, list[Schema]] = {}
        for schema in self.schemas:
            alike.setdefault(schema.plain, []).append(schema)
        self._readings = tuple(map(self._reading, alike.values()))
        plain = list(alike)
        self._readers = tuple([plain.index(schema.plain) for schema in self.schemas])
        self._firsts = tuple(map(self._readers.index, range(len(plain))))
        optional = {WEIGHT}.union(*(schema.optional for schema in self.schemas))
        inputs = dict.fromkeys(name for schema in self.schemas for name in schema.inputs)
        self.required = tuple(name for name in inputs if name not in optional)
        self.optional = tuple(name for name in (*inputs, WEIGHT) if name in optional)
        leaders = (field.leader for schema in self.schemas for field in schema.fields)
        self.leader = next(filter(None, leaders), "")
        self.start = State(tuple(Feed({}, 0, 0) for _ in self.schemas), tuple(distinct.values()))
        # Asking is cheap, but not next to a batch of 64 rows.
        self.wary = any(type(s).urgent is not Statistic.urgent for s in self.start.statistics)

    @classmethod
    def known(cls, key: Hashable, statistics: Callable[[], Iterable[Statistic]]) -> Layout:
        """Return the layout of a configuration, made where there is none yet.

        A layout is never changed, so that all objects of a configuration can share it.
        """
        layout = _KNOWN.get(key)
        if layout is None:
            layout = cls(statistics())
            if len(_KNOWN) >= _MANY:
                _KNOWN.clear()
            _KNOWN[key] = layout
        return layout

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.start.statistics,)

    def _reading(self, schemas: Sequence[Schema]) -> Reading:
        """Return what reads for schemas that are alike."""
        return Reading(schemas)

    def read(self, batch: Batch) -> tuple[Rows, ...]:
        """Return the rows of a batch, once for each reading."""
        return tuple([reading.read(batch) for reading in self._readings])

    def agree(self, feeds: Sequence[Feed]) -> bool:
        """Whether schemas that have one reading are told the same of their rows."""
        shared = zip(self._readers, feeds, strict=True)
        return all(feed == feeds[self._firsts[reader]] for reader, feed in shared)

    def urgent(self, state: State, rows: Sequence[Rows]) -> bool:
        """Whether a statistic must take rows at once."""
        read = (rows[self._readers[source]] for source in self.sources)
        pairs = zip(state.statistics, read, strict=True)
        return any(statistic.urgent(part) for statistic, part in pairs)

    def with_staged(self, state: State, rows: Sequence[Rows], n: int) -> State:
        """Return the state that keeps the rows of a small batch."""
        feeds, statistics, staged, agreed, pending = state
        return State(
            feeds,
            statistics,
            (*staged, tuple([_owned(read) for read in rows])),
            self._agreed(agreed or feeds, rows),
            pending + max(n, STAGED >> 9),  # 512 single rows are long enough a list
        )

    def with_rows(self, state: State, rows: Sequence[Rows]) -> State:
        """Return the state after rows that the statistics take at once."""
        feeds, statistics = self.fed(state)[:2]
        return State(self._grown(feeds, rows), self._updated(statistics, rows))

    def with_slices(self, state: State, batch: Batch) -> State:
        """Return the state after a long batch, whose columns are converted already."""
        feeds, statistics = self.fed(state)[:2]
        try:
            for start in range(0, batch.n_rows, SLICE):
                rows = self.read(batch.slice(start, start + SLICE))
                feeds, statistics = self._grown(feeds, rows), self._updated(statistics, rows)
        except InvalidBatchError:
            self.read(batch)  # counts over the whole batch, and names its first bad row
            raise
        return State(feeds, statistics)

    def fed(self, state: State) -> State:
        """Return the state with staged rows brought to the statistics."""
        if not state.staged:
            return state
        rows = [_concatenated(batches) for batches in zip(*state.staged, strict=True)]
        return State(self._grown(state.agreed, rows), self._updated(state.statistics, rows))

    def sifted(self, state: State) -> tuple[State, list[Refused]]:
        """Return the state with those staged rows that the statistics take, and the others."""
        refused = []
        for place, rows in enumerate(state.staged, 1):
            try:
                state = state._replace(
                    feeds=self._grown(state.feeds, rows),
                    statistics=self._updated(state.statistics, rows),
                )
            except MemoryError:  # the rows are not to blame
                raise
            except Exception as error:  # of whatever kind: a user's statistic did it
                refused.append(
                    Refused(max(read.n for read in rows), place, len(state.staged), error)
                )
        return State(state.feeds, state.statistics), refused

    def _updated(
        self, statistics: tuple[Statistic, ...], rows: Sequence[Rows]
    ) -> tuple[Statistic, ...]:
        read = [rows[reader] for reader in self._readers]
        shown = [
            schema.present(mine.columns) if mine.n else ()
            for schema, mine in zip(self.schemas, read, strict=True)
        ]
        updated = []
        for statistic, source in zip(statistics, self.sources, strict=True):
            if read[source].n:
                statistic = statistic.fork()  # noqa: PLW2901 - the loop's own copy from here on
                statistic.update(*shown[source], weight=read[source].weight)
            updated.append(statistic)
        return tuple(updated)

    def _grown(self, feeds: tuple[Feed, ...], rows: Sequence[Rows]) -> tuple[Feed, ...]:
        grown = [
            feeds[first].grown(facts, n, omitted)
            for first, (_, _, n, omitted, facts) in zip(self._firsts, rows, strict=True)
        ]
        return tuple([grown[reader] for reader in self._readers])

    def _agreed(self, feeds: tuple[Feed, ...], rows: Sequence[Rows]) -> tuple[Feed, ...]:
        """Return the feeds with the facts of rows whose number is counted when they are fed."""
        for first, read in zip(self._firsts, rows, strict=True):
            if read.facts != feeds[first].facts:
                return self._grown(feeds, [read._replace(n=0, omitted=0) for read in rows])
        return feeds

    def merged(self, state: State, others: Sequence[State]) -> State:
        """Return what a state and others, none of them with staged rows, have seen together."""
        feeds, statistics = self.fed(state)[:2]
        try:
            for other in others:
                feeds = tuple(
                    mine.grown(*feed) for mine, feed in zip(feeds, other.feeds, strict=True)
                )
        except InvalidBatchError as error:
            raise IncompatibleMetricsError(
                f"the states saw different kinds of rows: {error}"
            ) from None
        forks = tuple(statistic.fork() for statistic in statistics)
        for index, fork in enumerate(forks):
            fork.merge_all([other.statistics[index] for other in others])
        return State(feeds, forks)

    def part(self, state: State, part: Layout) -> State:
        """Return the state of some of the statistics, which has no staged rows; arrays are shared.

        No array and no statistic in a state is ever written to.
        """
        if part is self:
            return state
        return State(
            tuple(state.feeds[self.schemas.index(schema)] for schema in part.schemas),
            tuple(state.statistics[self.places[key]] for key in part.places),
        )


_KNOWN: dict[Hashable, Layout] = {}
_MANY = 1024


def _owned(rows: Rows) -> Rows:
    columns, weight, n, omitted, facts = rows
    copies = tuple([column.copy() for column in columns])
    return Rows(copies, None if weight is None else weight.copy(), n, omitted, facts)


def _concatenated(batches: Sequence[Rows]) -> Rows:
    omitted = sum(rows.omitted for rows in batches)
    parts = [rows for rows in batches if rows.n]
    if len(parts) <= 1:
        # The facts are agreed on already.
        return (parts[0] if parts else NO_ROWS)._replace(omitted=omitted)
    columns = tuple(
        concatenate(group) if isinstance(group[0], Column) else joined_numbers(group)
        for group in zip(*(rows.columns for rows in parts), strict=True)
    )
    weight: Any = None
    if any(rows.weight is not None for rows in parts):
        weight = np.concatenate([np.ones(r.n) if r.weight is None else r.weight for r in parts])
    return Rows(columns, weight, sum(rows.n for rows in parts), omitted, {})
