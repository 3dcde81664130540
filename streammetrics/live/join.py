"""The join of predictions and labels by id; also of observations and their copies."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from streammetrics.core.columns.column import distinct
from streammetrics.core.columns.conversion import Column, concatenate
from streammetrics.core.errors import InvalidBatchError
from streammetrics.live.events import Tier
from streammetrics.live.index import (
    CONFLICT,
    CORRECTED,
    EARLY,
    LABELLED,
    LATE,
    REPEATED,
    LabelRows,
    Predictions,
    PredictionTable,
)
from streammetrics.live.panes import (
    DISPLACED,
    EXPIRED,
    KNOWN,
    PENDING,
    REFUSED,
    PaneTree,
    batch_of_rows,
    grown,
)
from streammetrics.live.panes import SUITE as COVERAGE
from streammetrics.live.possible.judged import judged_batch
from streammetrics.live.rows import batch_of, columns_of, pieces, taken

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.feeding.states import State
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.types import Array, Bools, Ints, Places
    from streammetrics.live.config import Config
    from streammetrics.live.panes import Node, Panes
    from streammetrics.live.possible.unlabelled import UnlabelledPanes


Content = Literal["metrics", "coverage", "judgments", "inputs"]  # of panes

NO_LIMIT = np.iinfo(np.int64).max  # any time
_WORTH = 4096  # predictions after which waiting labels are matched


class Join:
    """Rows that wait for labels and corrections, and labels that wait for their predictions.

    Without the name of a label, rows are complete observations, which wait for copies.
    """

    def __init__(self, config: Config, names: Sequence[str], label: str) -> None:
        self.config = config
        self.names, self.label = tuple(names), label
        self.table = PredictionTable(names, label, config.unit)
        self.newest = -1  # newest time of any event
        self.left = 0  # rows before this time have left
        self.closed = 0  # predictions before this time are refused
        self.final = 0  # labels of rows before this time are refused
        self.limit = NO_LIMIT  # rows from this time on stay, as other workers may refer to them
        self.evicted_until = -1  # rows up to this time were evicted: they left early
        self.changed: set[int] = set()  # panes whose rows have changed since they were read
        self.unit = config.unit
        self.unmatched = 0  # labels whose prediction never arrived; not part of the state
        self._unmatched: list[LabelRows] = []
        self._others: list[LabelRows] = []  # labels of rows that hold a better one, see `_keep`
        self._since = 0  # predictions since waiting labels were last matched

    def name(self, names: Iterable[str]) -> None:
        """Set the columns of predictions, before the first one."""
        self.names = tuple(sorted(names))
        labels, self.table = self.table.labels, PredictionTable(self.names, self.label, self.unit)
        self.table.labels = labels

    @property
    def columns(self) -> dict[str, Column]:
        """The columns of all rows."""
        return named_columns(self, np.arange(len(self.table)))

    @property
    def floor(self) -> int:
        """The time before which rows leave."""
        return max(min(self.oldest, self.limit), self.evicted_until + 1, 0)

    @property
    def oldest(self) -> int:
        """The time before which a row no longer waits, by the newest event."""
        return self.newest - self.config.horizon

    def late_predictions(self, times: Ints, keys: NDArray[np.uint64]) -> Bools:
        """Return which predictions come too late."""
        late = times < self.closed
        if self.final > self.left:  # the rows between are as good as gone
            late |= self._is_final(self.table.find(keys))
        return late

    def late_labels(self, times: Ints, keys: NDArray[np.uint64]) -> Bools:
        """Return which labels come too late."""
        late = times < self.final + self.config.label_ttl  # others are of younger rows, or of none
        some = np.flatnonzero(late)
        if some.size:
            rows = self.table.find(keys[some])
            old = times[some] < self.final - self.config.label_lateness
            late[some] = np.where(rows < 0, old, self._is_final(rows))
        return late

    def _is_final(self, rows: Ints) -> Bools:
        """Return which rows of the table, -1 for none, take no more labels."""
        final = rows >= 0
        final[final] = self.table.times.values[rows[final]] < self.final
        return final

    def put(self, new: Predictions) -> None:
        """Add predictions regardless of their age."""
        if not len(new.keys):
            return
        if len(distinct(new.keys)[1]) < len(new.keys):
            chosen, differ = _of_each_id(new)
            self.put(new.take(chosen))
            self.table.mark(self.table.find(new.keys[differ]), REPEATED)
            self._touch(new.times)
            return
        self.newest = max(self.newest, int(new.times.max()))
        self._touch(new.times)
        rows = self.table.find(new.keys)
        again = rows >= 0
        if again.any():
            self._repeat(rows[again], new.take(np.flatnonzero(again)))
            new = new.take(np.flatnonzero(~again))
        self.table.append(new)
        self._since += len(new.keys)

    def _touch(self, times: Ints) -> None:
        """Mark the panes of some times, at least one, as changed."""
        first, last = int(times.min()) // self.unit, int(times.max()) // self.unit
        if first == last:
            self.changed.add(first)
        else:
            self.changed.update(np.unique(times // self.unit).tolist())

    def _repeat(self, rows: Ints, new: Predictions) -> None:
        """Handle predictions with known ids, one for each; the earlier of two counts.

        At equal times, the one with the smaller values counts.
        """
        held = self.table.at(rows)
        smaller, differ = new.times < held.times, new.times != held.times
        for mine, theirs in zip(held.columns, new.columns, strict=True):
            one, other = _ranks(mine, theirs)
            smaller |= ~differ & (other < one)
            differ |= other != one
        self._touch(held.times)
        self.table.mark(rows[differ], REPEATED)
        places = np.flatnonzero(smaller)
        if places.size:
            self.table.replace(rows[places], new.take(places))
            self._judge_again(rows[places])

    def _judge_again(self, rows: Ints) -> None:
        """Judge all labels of rows by the earlier times that the rows have now."""
        table, flags = self.table, self.table.flags.values
        held = rows[flags[rows] & LABELLED > 0]
        labels = [table.labels_at(held)] if held.size else []
        if self._others and (flags[rows] & (CORRECTED | EARLY)).any():
            others = _together(self._others)
            theirs = np.isin(table.find(others.keys), rows)
            self._others = [others.take(np.flatnonzero(~theirs))]
            labels.append(others.take(np.flatnonzero(theirs)))
        flags[rows] &= ~(LABELLED | CONFLICT | CORRECTED | EARLY)
        if labels:
            every = _together(labels)
            self._apply(table.find(every.keys), every)

    def put_labels(self, new: LabelRows) -> None:
        """Take labels, however old."""
        if not len(new.keys):
            return
        rows = self.table.find(new.keys)
        self.newest = max(self.newest, int(new.times.max()))
        found, alone = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
        if found.size:
            self._apply(rows[found], new.take(found))
        if alone.size:
            self._unmatched.append(new.take(alone))

    def _apply(self, rows: Ints, new: LabelRows) -> None:
        """Apply labels to their rows; a row may get several."""
        table, config = self.table, self.config
        self._touch(table.times.values[rows])
        delays = new.times - table.times.values[rows]
        late, early = delays > config.label_ttl, delays < -config.label_lateness
        if late.any() or early.any():
            table.mark(rows[late], LATE)
            table.mark(rows[early], EARLY)
            self._keep(new.take(np.flatnonzero(early)))
            places = np.flatnonzero(~(late | early))
            rows, new = rows[places], new.take(places)
            if not len(rows):
                return
        touched = np.sort(rows)
        if (touched[1:] == touched[:-1]).any():
            touched = np.unique(touched)
        before = touched[table.flags.values[touched] & LABELLED > 0]
        if not before.size and len(touched) == len(rows):  # a single, first label for each row
            table.label(rows, new)
            return
        held = table.labels_at(before)
        had = table.flags.values[before] & CONFLICT > 0
        every = np.concatenate([before, rows])
        labels = _together([held, new]) if len(before) else new
        order, same_row, same_version, same = _compared(every, labels)
        last = np.append(~same_row, True)
        beaten = order[:-1][same_row & ~same]
        table.mark(every[beaten], CORRECTED)
        self._keep(labels.take(beaten))
        # A later version resolves a conflict between earlier ones.
        split = np.concatenate([had, np.zeros(len(rows), bool)])[order]
        split[1:] |= same_version & ~same
        winners = order[last]
        group = np.cumsum(np.append(True, ~(same_row & same_version))) - 1
        torn = np.bincount(group, split, group[-1] + 1)[group[last]] > 0
        table.label(every[winners], labels.take(winners))
        flags = table.flags.values
        flags[every[winners]] &= ~CONFLICT
        table.mark(every[winners[torn]], CONFLICT)

    def _keep(self, labels: LabelRows) -> None:
        """Keep labels of rows that count only if an earlier prediction arrives.

        They are beaten by a label that would then be too late, or are too early until then.
        """
        if not len(labels.keys):
            return
        parts = self._others
        parts.append(labels)
        while len(parts) > 1 and len(parts[-2].keys) < 2 * len(parts[-1].keys):
            parts[-2:] = [_distinct(parts[-2:])]

    @property
    def size(self) -> int:
        """The number of rows, and of labels that rows have beside the one that counts."""
        return len(self.table) + sum(len(part.keys) for part in self._others)

    def put_alone(self, new: LabelRows) -> None:
        """Add labels that no row holds."""
        self.table.labels.begin(new.values)
        self._unmatched.append(new)
        self._match()

    def match(self) -> None:
        """Apply waiting labels to rows that arrived after them."""
        if self._since:
            self._match()

    def _match(self) -> None:
        self._since = 0
        if not self._unmatched:
            return
        alone = _together(self._unmatched)
        rows = self.table.find(alone.keys)
        found, others = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
        if found.size:
            self._apply(rows[found], alone.take(found))
        self._unmatched = [alone.take(others)] if others.size else []

    @property
    def due(self) -> bool:
        """Whether enough predictions have arrived to match the waiting labels again."""
        return self._since > max(_WORTH, self.n_unmatched)

    @property
    def n_labelled(self) -> int:
        """Number of predictions that wait although they have a label."""
        return int(np.count_nonzero(self.table.flags.values & LABELLED))

    @property
    def n_unmatched(self) -> int:
        """The number of labels that wait for their prediction, duplicates included."""
        return sum(len(part.keys) for part in self._unmatched)

    def unmatched_labels(self) -> LabelRows | None:
        """Return the distinct labels whose prediction has not arrived, sorted by time and id."""
        self.match()
        if not self._unmatched:
            return None
        every = _distinct(self._unmatched)
        kept = every.take(np.flatnonzero(every.times >= self.floor - self.config.label_lateness))
        self.unmatched += len(every.keys) - len(kept.keys)
        self._unmatched = [kept] if len(kept.keys) else []
        return kept if self._unmatched else None

    def other_labels(self) -> LabelRows | None:
        """Return the distinct labels that no row holds, sorted by time and id."""
        self.unmatched_labels()
        parts = [part for part in [*self._unmatched, *self._others] if len(part.keys)]
        return _distinct(parts) if parts else None

    def drop(self, rows: Ints) -> None:
        """Drop rows and their labels."""
        self.table.drop(rows)
        if self._others:
            every = _distinct(self._others)
            self._others = [every.take(np.flatnonzero(self.table.find(every.keys) >= 0))]

    def forget(self, keys: NDArray[np.uint64]) -> int:
        """Remove the rows and labels of some ids; return how many there were."""
        before = self.size + self.n_unmatched
        for parts in (self._unmatched, self._others):
            parts[:] = [part.take(np.flatnonzero(~_among(part.keys, keys))) for part in parts]
        rows = self.table.find(keys)
        rows = np.unique(rows[rows >= 0])
        if rows.size:
            self.drop(rows)
        return before - self.size - self.n_unmatched

    def merge(self, other: Join) -> None:
        """Add the rows and labels of another join, which stays unchanged."""
        every = np.arange(len(other.table))
        self.put(other.table.at(every))
        rows = self.table.find(other.table.keys[: len(other.table)])
        flags = other.table.flags.values
        for flag in (LATE, REPEATED):  # the other flags follow from the labels
            self.table.mark(rows[flags & flag > 0], flag)
        labelled = every[flags & LABELLED > 0]
        if labelled.size:
            self._apply(rows[labelled], other.table.labels_at(labelled))
        self._unmatched += other._unmatched + other._others
        self.newest = max(self.newest, other.newest)
        self.evicted_until = max(self.evicted_until, other.evicted_until)
        self.unmatched += other.unmatched
        self._match()

    def copy(self) -> Join:
        """Return an independent copy."""
        twin = Join(self.config, self.names, self.label)
        twin.table, twin._unmatched = self.table.copy(), list(self._unmatched)
        twin._others = list(self._others)
        twin.newest, twin.evicted_until, twin.unmatched = (
            self.newest,
            self.evicted_until,
            self.unmatched,
        )
        twin.changed, twin._since, twin.left = set(self.changed), self._since, self.left
        twin.closed, twin.final, twin.limit = self.closed, self.final, self.limit
        return twin


def _among(keys: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> Bools:
    """Return which keys are among a few others."""
    found = np.zeros(len(keys), bool)
    for key in wanted:
        found |= (keys == key).all(axis=1)
    return found


def _of_each_id(new: Predictions) -> tuple[Places, Places]:
    """Return where the row of each id is that counts, and where those ids are whose rows differ.

    The earliest row counts, of several the one with the smallest values, as in `Join._repeat`.
    """
    ranks = [new.times, *map(_codes, new.columns)]
    order = np.lexsort((*ranks[::-1], new.keys[:, 1], new.keys[:, 0]))
    same = (new.keys[order[1:]] == new.keys[order[:-1]]).all(axis=1)
    differ = same & np.any([r[order[1:]] != r[order[:-1]] for r in ranks], axis=0)
    return np.sort(order[np.append(True, ~same)]), order[1:][differ]


def _compared(rows: Ints, labels: LabelRows) -> tuple[Places, Bools, Bools, Bools]:
    """Return the order by row and precedence, and masks of labels equal to their predecessor.

    The masks compare row; row, version and time; and these with the value.
    """
    ranks = _codes(labels.values)
    order = np.lexsort((ranks, labels.times, labels.versions, rows))
    row, version, time, rank = (x[order] for x in (rows, labels.versions, labels.times, ranks))
    same_row = row[1:] == row[:-1]
    same_version = same_row & (version[1:] == version[:-1]) & (time[1:] == time[:-1])
    return order, same_row, same_version, same_version & (rank[1:] == rank[:-1])


def _together(parts: Sequence[LabelRows]) -> LabelRows:
    if len(parts) == 1:
        return parts[0]
    keys, times, versions, values = zip(*parts, strict=True)
    joined = (np.concatenate(keys), np.concatenate(times), np.concatenate(versions))
    return LabelRows(*joined, concatenate(list(values), "label"))


def _distinct(parts: Sequence[LabelRows]) -> LabelRows:
    """Return the distinct labels of some parts, sorted by time and id."""
    every = _together(parts)
    ranks = _codes(every.values)
    order = np.lexsort((ranks, every.versions, every.keys[:, 1], every.keys[:, 0], every.times))
    columns = (every.times, every.versions, every.keys[:, 0], every.keys[:, 1], ranks)
    same = np.all([c[order[1:]] == c[order[:-1]] for c in columns], axis=0)
    return every.take(order[np.append(True, ~same)[: len(order)]])


def _codes(column: Column) -> Array:
    """Return numbers that sort like the rows of a column; its vocabulary is sorted."""
    if column.values.ndim > 1:
        return np.unique(column.values, axis=0, return_inverse=True)[1].reshape(-1)
    return column.values


def _ranks(one: Column, other: Column) -> tuple[Array, Array]:
    """Return numbers that sort like the rows of two columns together."""
    both = concatenate([one, other], "the column").values
    if both.ndim > 1:
        both = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    return both[: len(one)], both[len(one) :]


_SLACK = 1024  # rows beyond twice `keep_rows` at which older ones are removed

Form = tuple[tuple[str, str], ...]  # name and type of each column


class RowBlock(NamedTuple):
    """Rows with the same columns and types."""

    form: Form
    times: Ints
    keys: NDArray[np.uint64]  # of the ids; zeros for rows without ids
    columns: tuple[Column, ...]

    def __len__(self) -> int:
        return len(self.times)

    def take(self, rows: Array) -> RowBlock:
        """Return some of the rows."""
        columns = tuple([column[rows] for column in self.columns])
        return RowBlock(self.form, self.times[rows], self.keys[rows], columns)

    @property
    def named(self) -> dict[str, Column]:
        """The columns by name."""
        return {name: column for (name, _), column in zip(self.form, self.columns, strict=True)}

    @property
    def nbytes(self) -> int:
        """Bytes used."""
        parts = [part for c in self.columns for part in (c.values, c.nulls, c.vocabulary)]
        return sum(part.nbytes for part in (self.times, self.keys, *parts) if part is not None)


def kept_rows(
    times: Ints, keys: NDArray[np.uint64] | None, columns: Mapping[str, Column]
) -> RowBlock:
    """Return rows as a block, with columns sorted by name."""
    names = sorted(columns)
    if keys is None:
        keys = np.zeros((len(times), 2), np.uint64)
    form = tuple((name, _type(columns[name])) for name in names)
    return RowBlock(form, times, keys, tuple([_own(columns[name]) for name in names]))


def _own(column: Column) -> Column:
    """Return a column with its own memory, and with a mask only if values are missing.

    Integers are converted to 64 bits.
    """
    values, nulls = column.values, column.nulls
    if values.dtype.kind in "iu" and column.vocabulary is None:
        values = values.astype(np.int64)
    elif not column.owned:
        values = values.copy()
    return Column(
        values, nulls if nulls is not None and nulls.any() else None, True, column.vocabulary
    )


def _type(column: Column) -> str:
    if column.vocabulary is not None:
        return "text"
    dtype = column.values.dtype
    return "integers" if dtype.kind in "iu" else f"{dtype.name}{list(column.values.shape[1:])}"


class NewestRows:
    """The newest `most` of all added rows."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._parts: list[RowBlock] = []
        self._n = 0
        self._cut = -1  # no row before this time is among the newest

    def add(self, rows: RowBlock) -> None:
        """Add rows; their arrays must not be modified afterwards."""
        if not self.most:
            return
        young = rows.times >= self._cut
        some = rows if young.all() else rows.take(np.flatnonzero(young))
        if len(some):
            self._parts.append(some)
            self._n += len(some)
            if self._n > 2 * self.most + _SLACK:
                self._trim()

    def _trim(self) -> None:
        """Remove rows that are not among the newest."""
        times = np.concatenate([part.times for part in self._parts])
        last = self._n - self.most
        self._cut = max(self._cut, int(np.partition(times, last)[last]))
        self._keep([part.take(np.flatnonzero(part.times >= self._cut)) for part in self._parts])
        if self._n > 2 * self.most + _SLACK:  # too many rows have equal times
            self._keep(self.rows(self.most))

    def _keep(self, parts: Sequence[RowBlock]) -> None:
        self._parts = [part for part in parts if len(part)]
        self._n = sum(map(len, self._parts))

    def rows(self, n: int) -> list[RowBlock]:
        """Return the newest n rows as blocks, each sorted from oldest to newest."""
        parts = sorted(self._parts, key=lambda part: part.form)
        forms = [_ordered(list(group)) for _, group in groupby(parts, lambda part: part.form)]
        if not forms:
            return []
        place = np.concatenate([np.arange(len(form)) for form in forms])
        which = np.repeat(np.arange(len(forms)), [len(form) for form in forms])
        keys = np.concatenate([form.keys for form in forms])
        times = np.concatenate([form.times for form in forms])
        order = np.lexsort((place, which, keys[:, 1], keys[:, 0], times))[-n:]
        kept = [form.take(np.sort(place[order[which[order] == k]])) for k, form in enumerate(forms)]
        return [kept_rows(form.times, form.keys, form.named) for form in kept if len(form)]

    def forget(self, keys: NDArray[np.uint64]) -> int:
        """Remove the rows of some ids; return how many there were."""
        before = self._n
        self._keep([part.take(np.flatnonzero(~_among(part.keys, keys))) for part in self._parts])
        return before - self._n

    def settled(self) -> list[RowBlock]:
        """Return all kept rows, sorted."""
        self._keep(self.rows(self.most) if self.most else [])
        return list(self._parts)

    def merge(self, other: NewestRows) -> None:
        """Add the rows of another, which stays unchanged."""
        for part in other._parts:
            self.add(part)

    def copy(self) -> NewestRows:
        """Return an independent copy."""
        twin = NewestRows(self.most)
        twin._parts, twin._n, twin._cut = list(self._parts), self._n, self._cut
        return twin

    @property
    def nbytes(self) -> int:
        """Bytes used."""
        return sum(part.nbytes for part in self._parts)


def _ordered(parts: Sequence[RowBlock]) -> RowBlock:
    """Concatenate blocks of equal form, in an order that depends only on the rows."""
    form, *_ = parts[0]
    columns = tuple(
        [
            concatenate(list(each), name)
            for (name, _), each in zip(
                form, zip(*[p.columns for p in parts], strict=True), strict=True
            )
        ]
    )
    times = np.concatenate([part.times for part in parts])
    keys = np.concatenate([part.keys for part in parts])
    ranks = [rank for column in columns for rank in _newest_ranks(column)]
    order = np.lexsort((*ranks, keys[:, 1], keys[:, 0], times))
    return RowBlock(form, times, keys, columns).take(order)


def _newest_ranks(column: Column) -> list[Array]:
    """Return numbers that sort rows; floats sort by their bits, so that 0.0 differs from -0.0."""
    values = column.values
    parts = [values] if column.nulls is None else [values, column.nulls]
    if values.ndim > 1:
        every = np.concatenate([part.view(np.uint8) for part in parts], axis=1)
        rows = np.ascontiguousarray(every).view(np.dtype((np.void, every.shape[1]))).reshape(-1)
        return [np.unique(rows, return_inverse=True)[1].reshape(-1)]
    return [part.view(f"i{part.itemsize}") for part in parts]


class ResolvedRows(NamedTuple):
    """The labelled rows among some rows, and the coverage of all of them."""

    rows: Ints  # the labelled ones
    times: Ints
    batch: Batch | None
    all_times: Ints
    counted: Batch | None


def resolve(suite: Mergeable, join: Join, rows: Ints, clock: int) -> ResolvedRows:
    """Return the labels and the status of rows of a join at a time, or at its newest event."""
    table, config, clock = join.table, join.config, max(clock, join.newest)
    times, flags = table.times.values[rows], table.flags.values[rows]
    if not join.label:
        whole = batch_of(suite, named_columns(join, rows), checked=True) if len(rows) else None
        return ResolvedRows(rows, times, whole, times, None)
    flags = flags & ~EARLY | np.where(flags & EARLY > 0, LATE, 0).astype(np.int8)
    labelled = flags & LABELLED > 0
    over = times + config.label_ttl < clock
    status = np.where(labelled, KNOWN, np.where(over, EXPIRED, PENDING))
    status[(status == PENDING) & (times <= join.evicted_until)] = DISPLACED
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
        bad = _refused(suite._plan, batch, 0, kept.size)
        if bad:  # label and prediction were validated separately
            status[kept[bad]] = REFUSED
            good = np.delete(np.arange(kept.size), bad)
            kept, batch = kept[good], taken(batch, good) if good.size else None
    counted = batch_of_rows(status, flags, delays) if len(rows) else None
    return ResolvedRows(rows[kept], times[kept], batch, times, counted)


def _repeated(label: object, n: int) -> Column:
    if isinstance(label, str):
        return Column(np.zeros(n, np.intp), None, True, np.array([label]))
    return Column(np.full(n, int(label) if isinstance(label, bool) else label), None, True)


def _refused(plan: Plan, batch: Batch, first: int, last: int) -> list[int]:
    """Return the invalid rows of a part of a batch, by bisection."""
    try:
        plan.read(batch.slice(first, last))
    except InvalidBatchError:
        if last - first == 1:
            return [first]
        middle = (first + last) // 2
        return _refused(plan, batch, first, middle) + _refused(plan, batch, middle, last)
    return []


class Waiting:
    """The states of waiting rows by pane, updated lazily on reads."""

    def __init__(self, suite: Mergeable, join: Join) -> None:
        most = join.config.horizon // join.unit + 2
        self._suite, self._unit = suite, join.unit
        self._rows = PaneTree(suite._plan, most)
        self._counted = PaneTree(COVERAGE._plan, most)
        self._inputs = PaneTree(join.config.declared.inputs.plan, most)
        self._trees = {"metrics": self._rows, "coverage": self._counted, "inputs": self._inputs}
        self._clock = 0
        self._expired: set[int] = set()  # panes of which only the coverage has changed

    def update(self, join: Join, first: int, last: int, clock: int) -> None:
        """Update the panes `first` to `last` from the join at a given time."""
        self._turn(join, clock)
        self._expired -= join.changed
        for changed in (join.changed, self._expired):
            due = np.array(sorted(n for n in changed if first <= n <= last), np.int64)
            if due.size:
                self._update(join, due, clock, whole=changed is join.changed)
                changed.difference_update(due.tolist())

    def _update(self, join: Join, due: Ints, clock: int, *, whole: bool) -> None:
        """Update some panes, or only their coverage."""
        numbers = join.table.times.values // self._unit
        rows = np.flatnonzero((numbers >= due[0]) & (numbers <= due[-1]))
        rows = rows[np.isin(numbers[rows], due)]
        found = resolve(self._suite, join, rows, clock)
        self._put(self._counted, due, found.all_times, found.counted)
        if not whole:
            return
        self._put(self._rows, due, found.times, found.batch)
        if (inputs := inputs_of_rows(join, rows)) is not None:
            self._put(self._inputs, due, join.table.times.values[rows], inputs)

    def _turn(self, join: Join, clock: int) -> None:
        """Set the time, and mark the panes of rows whose label has expired since.

        Other panes keep their state objects, so that readers know that they are unchanged.
        """
        ttl = join.config.label_ttl
        first, last = sorted((self._clock - ttl, clock - ttl))
        self._clock = clock
        panes = self._counted.states.irange(first // self._unit, last // self._unit)
        if first == last or next(panes, None) is None:
            return
        times = join.table.times.values
        over = (times >= first) & (times < last) & (join.table.flags.values & LABELLED == 0)
        changed = self._expired if join.config.default_label is None else join.changed
        changed.update(np.unique(times[over] // self._unit).tolist())

    def _put(self, row: PaneTree, due: Ints, times: Ints, batch: Batch | None) -> None:
        states: dict[int, State] = {}
        if batch is not None:
            plan = row.plan
            for (number,), rows, n in pieces(plan, [Tier(self._unit, 1)], times, batch):
                states[number] = grown(plan, states.get(number, plan.start), rows, n)
        row.drop(n for n in due.tolist() if n in row.states and n not in states)
        row.put(states)

    def over(self, first: int, last: int, of: Content = "metrics") -> list[State]:
        """Return states whose merge is that of panes: of the labelled rows, or of all rows."""
        return self._trees[of].over(first, last)

    def unmerged(self, first: int, last: int, of: Content) -> Iterator[tuple[PaneTree, Node]]:
        """Yield the nodes that `over` has to merge first, with their tree."""
        tree = self._trees[of]
        yield from ((tree, node) for node in tree.unmerged(first, last))

    def oldest(self) -> int | None:
        """Return the first pane with rows, ``None`` if there is none."""
        states = self._counted.states or self._rows.states
        return states.keys()[0] if states else None

    @property
    def nbytes(self) -> int:
        """Bytes used by states."""
        return sum(tree.nbytes for tree in self._trees.values())


def newest_labelled(suite: Mergeable, join: Join, n: int, clock: int) -> RowBlock | None:
    """Return at least the newest n labelled rows, or observations, of a join."""
    times, config = join.table.times.values, join.config
    known = (join.table.flags.values & LABELLED > 0) | (not join.label)
    if config.default_label is not None:
        known |= times + config.label_ttl < clock
    rows = np.flatnonzero(known)
    young = rows
    if rows.size > n:
        young = rows[times[rows] >= np.partition(times[rows], rows.size - n)[rows.size - n]]
    found = resolve(suite, join, young, clock)
    if len(found.rows) < min(n, rows.size):  # some of them are rejected
        found = resolve(suite, join, rows, clock)
    return labelled_rows(join, found)


def labelled_rows(join: Join, found: ResolvedRows) -> RowBlock | None:
    """Return resolved rows as a block."""
    if found.batch is None:
        return None
    return kept_rows(found.times, join.table.keys[found.rows], columns_of(found.batch))


def unlabelled(join: Join, rows: Ints, clock: int) -> Ints:
    """Return the rows that have neither a label nor a default label."""
    missing = join.table.flags.values[rows] & LABELLED == 0
    if join.config.default_label is not None:
        missing &= join.table.times.values[rows] + join.config.label_ttl >= clock
    found: Ints = rows[missing]
    return found


def named_columns(join: Join, rows: Ints) -> dict[str, Column]:
    """Return the columns of some rows by name."""
    return dict(zip(join.names, join.table.at(rows).columns, strict=True))


def judged_rows(join: Join, rows: Ints, found: ResolvedRows) -> Iterator[tuple[Ints, Batch]]:
    """Yield resolved rows with their judgments: those with a label, and those without one."""
    estimator = join.config.declared.estimator
    if estimator is None:
        return
    if found.batch is not None:
        columns = {**named_columns(join, found.rows), **columns_of(found.batch)}
        yield found.times, judged_batch(estimator, columns)
    others = np.setdiff1d(rows, found.rows)
    if others.size:
        yield (
            join.table.times.values[others],
            judged_batch(estimator, named_columns(join, others)),
        )


def inputs_of_rows(join: Join, rows: Ints) -> Batch | None:
    """Return the inputs of some rows; ``None`` if there are none."""
    inputs = join.config.declared.inputs
    return inputs.batch(named_columns(join, rows)) if inputs and len(rows) else None


class Settled(NamedTuple):
    """The panes of rows that wait no longer."""

    metrics: Panes
    coverage: Panes
    unlabelled: UnlabelledPanes
    judgments: Panes
    inputs: Panes


def settle(suite: Mergeable, join: Join, panes: Settled, newest: NewestRows) -> None:
    """Move rows whose labels can no longer arrive in time to the panes.

    If more than `max_pending` rows wait, the oldest are evicted, and another sixteenth of
    `max_pending` so that evictions are rare.
    """
    join.match()
    table, most = join.table, join.config.max_pending
    if join.size > most:
        times, over = table.times.values, min(join.size - most + most // 16, len(table))
        join.evicted_until = max(join.evicted_until, int(np.partition(times, over - 1)[over - 1]))
    floor = join.left = join.floor
    join.closed, join.final = max(join.closed, floor), max(join.final, floor)
    leaving = table.times.values < floor
    if leaving.any():
        rows = np.flatnonzero(leaving)
        found = resolve(suite, join, rows, join.newest)
        if found.batch is not None:
            panes.metrics.add(found.times, found.batch, known=True)
        for times, batch in judged_rows(join, rows, found):
            panes.judgments.add(times, batch, known=True)
        if (inputs := inputs_of_rows(join, rows)) is not None:
            panes.inputs.add(table.times.values[rows], inputs, known=True)
        if newest.most and (known := labelled_rows(join, found)) is not None:
            newest.add(known)
        if found.counted is not None:
            panes.coverage.add(found.all_times, found.counted, known=True)
        without = unlabelled(join, rows, join.newest)
        if join.label and without.size:
            panes.unlabelled.add(table.times.values[without], named_columns(join, without))
        join.changed.update(np.unique(table.times.values[leaving] // join.unit).tolist())
        join.drop(rows)
    join.unmatched_labels()
