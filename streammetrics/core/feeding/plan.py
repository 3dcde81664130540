"""A plan: distinct statistics, the schemas through which they read rows, and updates of state.

States are immutable. Every method returns a new state with the whole change, or raises. A state can
therefore be read while others are being computed from it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.batch import COUNTS, WEIGHT
from streammetrics.core.columns.schema import Rows, SharedReading, joined_facts, read_counts
from streammetrics.core.counting import GroupCodes, are_moved, rows_by_group
from streammetrics.core.errors import (
    IncompatibleMetricsError,
    InvalidBatchError,
    StateFormatError,
)
from streammetrics.core.feeding.states import BufferedBatch, RefusedRows, RowInfo, State
from streammetrics.core.floating import check_arithmetic, own_arithmetic, quiet
from streammetrics.core.state.arrays import nested, parted
from streammetrics.core.statistic import GroupedStates, SharedColumns

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Schema
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, Arrays, Columns, Floats, Ints, Json


class Plan:
    """Distinct statistics, their schemas, and the readings shared by several schemas."""

    __slots__ = (
        "_alone",
        "_firsts",
        "_objects",
        "_readers",
        "_readings",
        "_recounted",
        "_sets",
        "_shown",
        "can_refuse",
        "leader",
        "nested",
        "optional",
        "places",
        "required",
        "schemas",
        "sources",
        "start",
    )

    def __init__(
        self, statistics: Iterable[Statistic], schemas: Iterable[Schema] | None = None
    ) -> None:
        """Deduplicate statistics; `schemas` are one for each of them, by default their own."""
        every = list(statistics)
        read = [statistic.schema for statistic in every] if schemas is None else list(schemas)
        distinct = {(s._key, schema): s for s, schema in zip(every, read, strict=True)}
        self.places = {key: place for place, key in enumerate(distinct)}
        schemas = [schema for _, schema in distinct]
        self.schemas: tuple[Schema, ...] = tuple(dict.fromkeys(schemas))
        self.sources = tuple(map(self.schemas.index, schemas))
        alike: dict[Schema, list[Schema]] = {}
        for schema in self.schemas:
            alike.setdefault(schema.plain, []).append(schema)
        self._readings = tuple(map(self._reading, alike.values()))
        plain = list(alike)
        self._readers = tuple([plain.index(schema.plain) for schema in self.schemas])
        self._firsts = tuple(map(self._readers.index, range(len(plain))))
        self._alone = len(plain) == len(self.schemas)  # every schema has its own reading
        optional = {WEIGHT}.union(*(schema.optional for schema in self.schemas))
        inputs = dict.fromkeys(name for schema in self.schemas for name in schema.inputs)
        self.required = tuple(name for name in inputs if name not in optional)
        self.optional = tuple(name for name in (*inputs, WEIGHT) if name in optional)
        fields = [named for schema in self.schemas for named in schema.named]
        self.leader = next((own.get(f.leader, f.leader) for f, own in fields if f.leader), "")
        sets = {own.get(name, name): f.labels for f, own in fields for name in f.sets}
        self._sets = tuple(sets.items())
        nested = [(own.get(name, name), each) for f, own in fields for name, each in f.nested]
        self.nested = tuple(dict.fromkeys(nested))
        converted = {own.get(n, n) for f, own in fields if not f.preparation for n in f.names}
        prepared = [own.get(n, n) for f, own in fields if f.preparation for n in f.names]
        self._objects = tuple(name for name in dict.fromkeys(prepared) if name not in converted)
        self.start = State(tuple(RowInfo({}, 0, 0) for _ in self.schemas), tuple(distinct.values()))
        peers: list[list[Statistic]] = [[] for _ in self.schemas]
        for statistic, source in zip(self.start.statistics, self.sources, strict=True):
            peers[source].append(statistic)
        # How the columns of each schema are made of those read, if they are not the same.
        presents = [schema.present if schema.makes else None for schema in self.schemas]
        self._shown = tuple(zip(presents, self._readers, map(tuple, peers), strict=True))
        # A cheap check, but not compared with a batch of 64 rows.
        self.can_refuse = any(s.can_refuse for s in self.start.statistics)
        self._recounted = tuple(
            (place, source)
            for place, source in enumerate(self.sources)
            if self.start.statistics[place].own_rows is not None
        )

    @classmethod
    def known(cls, key: Hashable, statistics: Callable[[], Iterable[Statistic]]) -> Plan:
        """Return the cached plan of a configuration; make it on first use.

        A plan never changes, so that all objects of a configuration can share it.
        """
        plan = _KNOWN.get(key)
        if plan is None:
            plan = cls(statistics())
            if len(_KNOWN) >= tuning.KNOWN_LAYOUTS:
                _KNOWN.clear()
            _KNOWN[key] = plan
        return plan

    @property
    def read_schemas(self) -> list[Schema]:
        """The schema of each statistic."""
        return [self.schemas[source] for source in self.sources]

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.start.statistics, self.read_schemas)

    def _slice_rows(self, batch: Batch) -> int:
        """Return how many rows of a long batch are processed at a time."""
        return tuning.BATCH_ROWS

    def _reading(self, schemas: Sequence[Schema]) -> SharedReading:
        """Return the reading of schemas that read the same columns."""
        return SharedReading(schemas)

    def prepare(self, batch: Batch) -> None:
        """Convert columns with several values a row: labels at positions, sets of labels, lists."""
        if self.leader:
            batch.spread(self.leader)
        for name, labels in self._sets:
            batch.mark(name, labels)
        for name, each in self.nested:
            batch.nest(name, each)
        for name in self._objects:
            batch.keep_objects(name)

    def whole(self, batch: Batch) -> Rows | None:
        """Fast path: return the rows if a single reading can read the batch whole.

        Returns ``None`` if the rows must be read the usual way.
        """
        readings = self._readings
        rows = readings[0].whole(batch) if len(readings) == 1 else None
        if rows is None:
            batch.known.clear()  # numbers cached by the attempt
        return rows

    def read(self, batch: Batch) -> tuple[Rows, ...]:
        """Return the validated rows of a batch, one for each reading."""
        return tuple([reading.read(batch) for reading in self._readings])

    def agree(self, infos: Sequence[RowInfo]) -> bool:
        """Whether schemas that share a reading have equal row information."""
        if self._alone:
            return True
        shared = zip(self._readers, infos, strict=True)
        return all(feed == infos[self._firsts[reader]] for reader, feed in shared)

    def may_refuse(self, state: State, rows: Sequence[Rows]) -> bool:
        """Whether a statistic could refuse the rows, so that they cannot be buffered."""
        read = (rows[self._readers[source]] for source in self.sources)
        pairs = zip(state.statistics, read, strict=True)
        return any(statistic.may_refuse(part) for statistic, part in pairs)

    def with_buffered(self, state: State, rows: tuple[Rows, ...], n: int) -> State:
        """Return the state that buffers a small batch, whose arrays nobody else can write to."""
        infos, statistics, before, agreed = state
        agreed = agreed or infos
        if len(rows) > 1 or rows[0].facts != agreed[0].facts:
            agreed = self.agreed(agreed, rows)
        size = n if n > tuning.STAGED_LEAST else tuning.STAGED_LEAST
        if before is not None:
            size += before.size
        return State(infos, statistics, BufferedBatch(rows, before, size), agreed)

    def with_rows(self, state: State, rows: Sequence[Rows]) -> State:
        """Return the state after the statistics are updated with rows immediately."""
        infos, statistics = self.fed(state)[:2]
        return self.counted(self._after(infos, statistics, rows))

    def repeated(self, batch: Batch) -> State:
        """Return the state of a batch of which each row stands for as many rows as its count."""
        for statistic in self.start.statistics:
            if statistic.uncounted:
                raise InvalidBatchError(
                    f"{batch.title(COUNTS)} is given, but {statistic.uncounted}: pass each row"
                )
        whole, step = self.whole(batch), self._slice_rows(batch)
        if whole is None:
            self.prepare(batch)
        counts, least, most = read_counts(batch)
        if whole is not None:
            if least and whole.n == len(counts) <= step:
                return self._repeated(batch, (whole,), counts, most)
            batch.known.clear()  # numbers cached by the attempt
            self.prepare(batch)
        rows = self.read(batch)  # validates all rows, also those that count 0
        if 0 < len(counts) <= step and least:
            return self._repeated(batch, rows, counts, most)
        kept = np.flatnonzero(counts)
        state, batch, counts = self.start, batch.take(kept), counts[kept]
        for start in range(0, len(counts), step):
            part = batch.slice(start, start + step)
            more = self._repeated(part, self.read(part), counts[start : start + step], most)
            state = self.merged(state, [more])
        return state

    @quiet
    def _repeated(self, batch: Batch, rows: Sequence[Rows], counts: Ints, most: int) -> State:
        """Return the state of the rows of a batch, each as often as its count, at most `most`."""
        state = self.start
        if any(read.n < len(counts) for read in rows):  # some rows are left out
            for bit in _bits(counts):
                state = self.merged(state, [state])
                part = batch.take(np.flatnonzero((counts >> bit) & 1))
                state = self.with_rows(state, self.read(part)) if part.n_rows else state
            return state
        safe = most * counts.size < 1 << 63
        total = int(counts.sum()) if safe else sum(counts.tolist())
        infos = self._grown(state.infos, [read._replace(n=total) for read in rows])
        statistics: list[Statistic] = []
        given = self._given(rows)
        for statistic, source in zip(state.statistics, self.sources, strict=True):
            columns, weight = given[source], rows[self._readers[source]].weight
            if statistic.takes_counts and weight is None and total < _EXACT:
                statistics.append(statistic._after(columns, counts))
            else:
                statistics.append(_repeated(statistic, columns, weight, counts))
        return self.counted(State(infos, tuple(statistics)))

    def with_slices(self, state: State, batch: Batch) -> State:
        """Return the state after a long batch, whose columns are already converted."""
        infos, statistics = self.fed(state)[:2]
        found = None
        if len(statistics) == 1 and self.schemas[0] == statistics[0].schema:
            found = statistics[0].take_whole(batch)
        if found is not None:
            statistic, facts = found
            return State(self._grown(infos, [Rows((), None, batch.n_rows, 0, facts)]), (statistic,))
        try:
            state, step = State(infos, statistics), self._slice_rows(batch)
            for start in range(0, batch.n_rows, step):
                rows = self.read(batch.slice(start, start + step))
                state = self._after(state.infos, state.statistics, rows)
        except InvalidBatchError:
            self.read(batch)  # raises with counts over the whole batch and its first bad row
            raise
        return self.counted(state)

    def fed(self, state: State) -> State:
        """Return the state after the statistics are updated with its buffered rows."""
        buffered = state.buffered
        if buffered is None:
            return state
        rows = buffered.rows if buffered.before is None else buffered.together()
        return self.counted(self._after(state.agreed, state.statistics, rows))

    def sifted(self, state: State) -> tuple[State, list[RefusedRows]]:
        """Return the state with the buffered rows that the statistics accept, and the refused rows.

        Rows are refused if they fail twice: a single failure may come from a signal handler.
        """
        refused = []
        batches = state.buffered.batches() if state.buffered else []
        for place, rows in enumerate(batches, 1):
            taken = self._tried(state, rows)
            if isinstance(taken, Exception):
                taken = self._tried(state, rows)
            if isinstance(taken, State):
                state = taken
            else:
                n = max(read.n for read in rows)
                refused.append(RefusedRows(n, place, len(batches), taken))
        return self.counted(State(state.infos, state.statistics)), refused

    def _tried(self, state: State, rows: Sequence[Rows]) -> State | Exception:
        try:
            return self._after(state.infos, state.statistics, rows)
        except MemoryError:  # not an error in the rows
            raise
        except Exception as error:  # a user's statistic may raise anything
            return error

    @quiet
    def _after(
        self, infos: tuple[RowInfo, ...], statistics: tuple[Statistic, ...], rows: Sequence[Rows]
    ) -> State:
        """Return the state after statistics are updated with rows."""
        check_arithmetic()
        infos = self._grown(infos, rows)
        given, readers = self._given(rows), self._readers
        updated = []
        for statistic, source in zip(statistics, self.sources, strict=True):
            read = rows[readers[source]]
            updated.append(statistic._after(given[source], read.weight) if read.n else statistic)
        return State(infos, tuple(updated))

    def _given(self, rows: Sequence[Rows]) -> list[Columns]:
        """Return the columns that the statistics of each schema are given."""
        given = []
        for present, reader, peers in self._shown:
            read = rows[reader]
            columns = read.columns if present is None or not read.n else present(read.columns)
            given.append(SharedColumns.of(columns, peers) if len(peers) > 1 else columns)
        return given

    def _grown(self, infos: tuple[RowInfo, ...], rows: Sequence[Rows]) -> tuple[RowInfo, ...]:
        grown = []
        for first, (_, _, n, omitted, facts) in zip(self._firsts, rows, strict=True):
            before, n_before, omitted_before = infos[first]
            if before and facts != before:
                facts = joined_facts(before, facts)  # noqa: PLW2901 - now those of all rows
            grown.append(RowInfo(facts, n_before + n, omitted_before + omitted))
        return tuple(grown if self._alone else [grown[reader] for reader in self._readers])

    def agreed(self, infos: tuple[RowInfo, ...], rows: Sequence[Rows]) -> tuple[RowInfo, ...]:
        """Return the row information with the facts of buffered rows, which are not counted yet."""
        for first, read in zip(self._firsts, rows, strict=True):
            if read[4] != infos[first][0]:  # their facts
                return self._grown(infos, [Rows((), None, 0, 0, read.facts) for read in rows])
        return infos

    def merged(self, state: State, others: Sequence[State]) -> State:
        """Merge a state with others, which must have no buffered rows."""
        infos, statistics = self.fed(state)[:2]
        try:
            columns = zip(*[other.infos for other in others], strict=True)
            if others:
                infos = tuple(map(RowInfo.with_all, infos, columns))
        except InvalidBatchError as error:
            raise IncompatibleMetricsError(
                f"the states saw different kinds of rows: {error.problem}", error.hint
            ) from None
        forks = tuple(statistic.fork() for statistic in statistics)
        with own_arithmetic():
            for index, fork in enumerate(forks):
                fork.merge_all([other.statistics[index] for other in others])
        return self.counted(State(infos, forks))

    def without(self, state: State, other: State) -> State:
        """Return the state without the rows of another; both must have no buffered rows."""
        infos = tuple(map(RowInfo.without, state.infos, other.infos))
        left = []
        pairs = zip(state.statistics, other.statistics, self.sources, strict=True)
        with own_arithmetic():
            for mine, theirs, source in pairs:
                taken = other.infos[source].n_rows > 0
                left.append(mine.left(theirs, infos[source].n_rows) if taken else mine)
        absent: list[set[str]] = [set() for _ in self._readings]
        for statistic, source in zip(left, self.sources, strict=True):
            absent[self._readers[source]] |= statistic.absent_facts
        facts = [
            {name: fact for name, fact in info.facts.items() if name not in absent[reader]}
            for info, reader in zip(infos, self._readers, strict=True)
        ]
        infos = tuple([i._replace(facts=each) for i, each in zip(infos, facts, strict=True)])
        return self.counted(State(infos, tuple(left)))

    def counted(self, state: State) -> State:
        """Return a state with the row counts of statistics that count repeated rows once."""
        if not self._recounted:
            return state
        infos = list(state.infos)
        for place, source in self._recounted:
            n = state.statistics[place].own_rows
            assert n is not None
            infos[source] = infos[source]._replace(n_rows=n)
        return state._replace(infos=tuple(infos))

    def joined(self, state: State, added: State) -> State:
        """Apply one change to a state, given as the state that it made of an empty one."""
        if added is self.start:
            return state
        if added.buffered is None:
            return self.merged(state, [added])
        return self.with_buffered(state, added.buffered.rows, added.buffered.size)

    def part(self, state: State, part: Plan) -> State:
        """Return the state of some of the statistics, without buffered rows; arrays are shared.

        Sharing is safe because nothing writes to the arrays and statistics of a state.
        """
        return state if part is self else self.parting(part)(state)

    def parting(self, part: Plan) -> Callable[[State], State]:
        """Return `part` as a function, to apply it to many states."""
        if part is self:
            return lambda state: state
        sources = [self.schemas.index(schema) for schema in part.schemas]
        places = [self.places[key] for key in part.places]

        def parted(state: State) -> State:
            infos, statistics = state[:2]
            return State(
                tuple([infos[source] for source in sources]),
                tuple([statistics[place] for place in places]),
            )

        return parted


_COUNTS = 1 << 12  # largest count of rows that are grouped by it
_TOGETHER = 1 << 12  # rows for each count from which on they are sorted by it
_EXACT = 1 << 53  # counts below are float64


def _bits(counts: Ints) -> range:
    """Return the bits of the counts, from the highest."""
    return range(int(counts.max(initial=0)).bit_length())[::-1]


def _repeated(
    statistic: Statistic, columns: Columns, weight: Floats | None, counts: Ints
) -> Statistic:
    """Return an empty statistic after rows, each as often as its count.

    For each bit of the counts, from the highest: all rows so far count twice, and those with the
    bit are added. So the state is that of the repeated rows, byte for byte, by the laws of `merge`,
    and none is ever repeated. Many rows of small counts are first ordered by count, as updates are
    fast over rows that stand together; fewer are grouped by it, if the statistic can do so.
    """
    state, groups = statistic.fork(), None
    parts: dict[int, Statistic] = {}
    size = int(counts.max()) + 1
    if size <= min(_COUNTS, len(counts) // _TOGETHER) and are_moved(columns):
        parts = _by_count(statistic, columns, weight, counts, size)
    elif size <= min(_COUNTS, len(counts) // 8):
        by_count = GroupCodes(counts, size)
        groups = GroupedStates.of_batch(statistic, columns, weight, by_count)
    for bit in _bits(counts):
        state.merge(state.fork())
        if parts:
            for count, part in parts.items():
                if (count >> bit) & 1:
                    state.merge(part)
        elif groups is not None:
            places = ((np.arange(size) >> bit) & 1) - 1
            state.merge(groups.regrouped(places, 1).at(0))
        else:
            rows = np.flatnonzero((counts >> bit) & 1)
            own = None if weight is None else weight[rows]
            if rows.size:
                state.update(*[column[rows] for column in columns], weight=own)
    return state


def _by_count(
    statistic: Statistic,
    columns: Columns,
    weight: Floats | None,
    counts: Ints,
    size: int,
) -> dict[int, Statistic]:
    """Return, by count, an empty statistic after the rows of that count, each of them once."""
    own = [] if weight is None else [weight]
    starts, moved = rows_by_group(counts, size, [*columns, *own])
    found: dict[int, Statistic] = {}
    for count, (first, last) in enumerate(pairwise(starts.tolist())):
        if first < last:
            *some, own_weight = [column[first:last] for column in moved] + [None] * (not own)
            found[count] = statistic.fork()
            found[count].update(*some, weight=own_weight)
    return found


_KNOWN: dict[Hashable, Plan] = {}


# ---- states in files ----


def described(state: State) -> tuple[list[Json], dict[str, Array]]:
    """Return the row information of a state as JSON, and the arrays of its statistics."""
    arrays: dict[str, Array] = {}
    for index, statistic in enumerate(state.statistics):
        arrays |= nested(str(index), statistic.arrays())
    rows = [[dict(sorted(facts.items())), n, omitted] for facts, n, omitted in state.infos]
    return rows, arrays


def filled(plan: Plan, told: object, arrays: Arrays) -> State:
    """Restore a state from the row information and arrays of a file.

    The caller must compare `described` of the result with the file.
    """
    parts = parted(arrays)
    statistics = tuple(
        [
            statistic.restored(parts.pop(str(index), {}))
            for index, statistic in enumerate(plan.start.statistics)
        ]
    )
    if not isinstance(told, tuple) or len(told) != len(plan.schemas):
        raise StateFormatError("the counts of rows do not fit the metric")
    infos = tuple(map(_row_info, told))
    if not plan.agree(infos):
        raise StateFormatError("metrics that read the same columns saw different rows")
    if parts:
        raise StateFormatError("there are arrays that belong to no statistic")
    for one, source in zip(statistics, plan.sources, strict=True):
        one.check_rows(infos[source].n_rows)
    return plan.counted(State(infos, statistics))


def _row_info(told: object) -> RowInfo:
    """Parse the row information of one schema: facts, number of rows, number of omitted rows."""
    if isinstance(told, tuple) and len(told) == 3 and isinstance(told[0], dict):
        facts, *counts = told
        known = all(type(fact) in {str, int, bool} for fact in facts.values())
        if known and all(type(count) is int and count >= 0 for count in counts):
            return RowInfo(dict(facts), *counts)
    raise StateFormatError("the state does not say what rows it saw")
