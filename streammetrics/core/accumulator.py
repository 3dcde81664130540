"""Statistics fed from one stream: each distinct one once, all of them or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from streammetrics.core.columns.batch import WEIGHT
from streammetrics.core.columns.conversion import Column, concatenate
from streammetrics.core.columns.long import joined_numbers
from streammetrics.core.columns.schema import NO_ROWS, Rows, joined
from streammetrics.core.errors import (
    IncompatibleMetricsError,
    InvalidBatchError,
    StreamMetricsError,
)
from streammetrics.core.statistic import Statistic

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Facts, Schema

SLICE = 1 << 16  # rows taken at a time: two columns of float64 stay in a 2 MB cache
STAGED = 1 << 14  # rows kept until they are worth a call of every statistic


class Feed(NamedTuple):
    """What is known of the rows read through one schema."""

    facts: Facts
    n_rows: int
    n_omitted: int

    def grown(self, facts: Facts, n_rows: int, n_omitted: int) -> Feed:
        """Return the feed after more rows."""
        return Feed(joined(self.facts, facts), self.n_rows + n_rows, self.n_omitted + n_omitted)


class State(NamedTuple):
    """The whole state at one moment; replaced in one assignment."""

    feeds: tuple[Feed, ...]
    statistics: tuple[Statistic, ...]
    staged: list[list[Rows]]  # one batch as each schema reads it; its arrays are our own


class Accumulator:
    """Distinct statistics, grouped by the schema through which they read rows.

    A small batch is validated and kept; its rows reach the statistics together with later ones,
    or when the state is read. Statistics are functions of the multiset of rows, so this cannot be
    seen, except in the time that a small update takes.
    """

    __slots__ = ("_pending", "_state", "_wary", "optional", "required", "schemas", "sources")

    def __init__(self, statistics: Iterable[Statistic]) -> None:
        distinct = tuple({statistic._key: statistic for statistic in statistics}.values())
        self.schemas: tuple[Schema, ...] = tuple(dict.fromkeys(s.schema for s in distinct))
        self.sources = tuple(self.schemas.index(s.schema) for s in distinct)
        optional = {WEIGHT}.union(*(schema.optional for schema in self.schemas))
        inputs = dict.fromkeys(name for schema in self.schemas for name in schema.inputs)
        self.required = tuple(name for name in inputs if name not in optional)
        self.optional = tuple(name for name in (*inputs, WEIGHT) if name in optional)
        self._state = State(tuple(Feed({}, 0, 0) for _ in self.schemas), distinct, [])
        self._pending = 0
        # Asking is cheap, but not next to a batch of 64 rows.
        self._wary = any(type(s).urgent is not Statistic.urgent for s in distinct)

    def update(self, batch: Batch) -> None:
        """Take a batch, or raise and be as before."""
        n = len(batch.column(self.required[0]).values)
        if n > STAGED or self._pending >= STAGED:
            self.flush()
        if n > SLICE:
            self._take_slices(batch)
            return
        rows = [schema.read(batch) for schema in self.schemas]
        feeds, statistics, staged = self._state
        if n > STAGED or (self._wary and self._urgent(statistics, rows)):
            self._state = State(_grown(feeds, rows), self._fed(statistics, rows), staged)
        else:
            feeds = _agreed(feeds, rows)
            self._pending += max(n, STAGED >> 9)  # a list of 512 single rows is long enough
            self._state = State(feeds, statistics, [*staged, [_owned(read) for read in rows]])

    def _urgent(self, statistics: tuple[Statistic, ...], rows: Sequence[Rows]) -> bool:
        read = (rows[source] for source in self.sources)
        return any(statistic.urgent(part) for statistic, part in zip(statistics, read, strict=True))

    def _take_slices(self, batch: Batch) -> None:
        for name in (*self.required, *self.optional):
            if name in self.required or batch.has(name):
                batch.column(name)
        feeds, statistics, _ = self._state
        try:
            for start in range(0, batch.n_rows, SLICE):
                part = batch.slice(start, start + SLICE)
                rows = [schema.read(part) for schema in self.schemas]
                feeds, statistics = _grown(feeds, rows), self._fed(statistics, rows)
        except InvalidBatchError:
            for schema in self.schemas:
                schema.read(batch)  # counts over the whole batch, and names its first bad row
            raise
        self._state = State(feeds, statistics, [])

    def _fed(
        self, statistics: tuple[Statistic, ...], rows: Sequence[Rows]
    ) -> tuple[Statistic, ...]:
        fed = []
        for statistic, source in zip(statistics, self.sources, strict=True):
            read = rows[source]
            if read.n:
                statistic = statistic.fork()  # noqa: PLW2901 - the loop's own copy from here on
                statistic.update(*read.columns, weight=read.weight)
            fed.append(statistic)
        return tuple(fed)

    def flush(self) -> State:
        """Bring kept rows to the statistics; return the state."""
        state = self._state
        if state.staged:
            rows = [_concatenated(batches) for batches in zip(*state.staged, strict=True)]
            self._state = State(_grown(state.feeds, rows), self._fed(state.statistics, rows), [])
            self._pending = 0
        return self._state

    def merge(self, others: Sequence[Accumulator | ReadOnly]) -> None:
        """Take what the others have seen, or raise and be as before."""
        feeds, statistics, _ = self.flush()
        theirs = [other.flush() for other in others]
        try:
            for state in theirs:
                feeds = tuple(
                    mine.grown(*feed) for mine, feed in zip(feeds, state.feeds, strict=True)
                )
        except InvalidBatchError as error:
            raise IncompatibleMetricsError(
                f"the states saw different kinds of rows: {error}"
            ) from None
        merged = tuple(statistic.fork() for statistic in statistics)
        for index, fork in enumerate(merged):
            fork.merge_all([state.statistics[index] for state in theirs])
        self._state = State(feeds, merged, [])

    def clear(self) -> None:
        """Forget all rows."""
        blank = [statistic.fork() for statistic in self._state.statistics]
        for statistic in blank:
            statistic.clear()
        self._state = State(tuple(Feed({}, 0, 0) for _ in self.schemas), tuple(blank), [])

    def part(self, statistics: Iterable[Statistic]) -> Accumulator:
        """Return an independent accumulator of some statistics, in the state they have here.

        Arrays are shared, as none is ever written to.
        """
        part = Accumulator(statistics)
        feeds, mine, _ = self.flush()
        held = {statistic._key: statistic.fork() for statistic in mine}
        part.put(
            tuple(feeds[self.schemas.index(schema)] for schema in part.schemas),
            tuple(held[statistic._key] for statistic in part.flush().statistics),
        )
        return part

    def put(self, feeds: tuple[Feed, ...], statistics: tuple[Statistic, ...]) -> None:
        """Replace the state."""
        self._state = State(feeds, statistics, [])

    @property
    def feeds(self) -> tuple[Feed, ...]:
        """What each schema has read."""
        return self.flush().feeds


def _grown(feeds: tuple[Feed, ...], rows: Sequence[Rows]) -> tuple[Feed, ...]:
    return tuple(
        [
            feed.grown(facts, n, omitted)
            for feed, (_, _, n, omitted, facts) in zip(feeds, rows, strict=True)
        ]
    )


def _agreed(feeds: tuple[Feed, ...], rows: Sequence[Rows]) -> tuple[Feed, ...]:
    """Return the feeds with the facts of rows whose number is counted when they are fed."""
    if all(read.facts == feed.facts for feed, read in zip(feeds, rows, strict=True)):
        return feeds
    return tuple([feed.grown(read.facts, 0, 0) for feed, read in zip(feeds, rows, strict=True)])


def _owned(rows: Rows) -> Rows:
    columns, weight, n, omitted, facts = rows
    copies = tuple([column.copy() for column in columns])
    return Rows(copies, None if weight is None else weight.copy(), n, omitted, facts)


def _concatenated(batches: Sequence[Rows]) -> Rows:
    omitted = sum(rows.omitted for rows in batches)
    parts = [rows for rows in batches if rows.n]
    if len(parts) <= 1:
        return (parts[0] if parts else NO_ROWS)._replace(omitted=omitted)
    columns = tuple(
        concatenate(group) if isinstance(group[0], Column) else joined_numbers(group)
        for group in zip(*(rows.columns for rows in parts), strict=True)
    )
    weight: Any = None
    if any(rows.weight is not None for rows in parts):
        weight = np.concatenate([np.ones(r.n) if r.weight is None else r.weight for r in parts])
    return Rows(columns, weight, sum(rows.n for rows in parts), omitted, {})


class ReadOnly:
    """An accumulator that belongs to a set: it can be read, only the set can feed it."""

    __slots__ = ("_of", "flush", "part")

    def __init__(self, of: Accumulator) -> None:
        self._of = of
        self.flush, self.part = of.flush, of.part

    @property
    def schemas(self) -> tuple[Schema, ...]:
        """The schemas of the set."""
        return self._of.schemas

    @property
    def sources(self) -> tuple[int, ...]:
        """Which schema feeds which statistic."""
        return self._of.sources

    @property
    def required(self) -> tuple[str, ...]:
        """The inputs that a batch of the set needs."""
        return self._of.required

    @property
    def feeds(self) -> tuple[Feed, ...]:
        """What each schema has read."""
        return self._of.feeds

    def _refuse(self, *_: Any) -> NoReturn:
        raise StreamMetricsError(
            "this metric is a view into a MetricSet: update, merge and reset the set, "
            "or take a copy()"
        )

    update = merge = clear = _refuse
