"""The join: predictions and their labels by id, in any order of arrival, as a mergeable state.

Of several labels of a prediction one counts, by a rule on the labels alone: the largest version,
then the later time, then the larger label. Whether labels were corrected or contradict each other
is a flag of the row, and true when two of them differ; so duplicates change nothing, and every
order gives the same rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.columns.conversion import concatenate
from streammetrics.core.columns.distinct import distinct
from streammetrics.live.table import (
    CONFLICT,
    CORRECTED,
    LABELLED,
    LATE,
    REPEATED,
    LabelRows,
    Predictions,
    PredictionTable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.types import Array, Bools, Ints, Places
    from streammetrics.live.config import Config

_WORTH = 4096  # rows that are looked at together


class Join:
    """Rows that wait for their label and for corrections, and labels that wait for their row."""

    def __init__(self, config: Config, names: Sequence[str], label: str) -> None:
        self.config = config
        self.names, self.label = tuple(names), label
        self.table = PredictionTable(names, label, config.unit)
        self.newest = -1  # time of an event of either kind
        self.left = 0  # time before which rows have left
        self.displaced = -1  # up to which time rows had to leave early
        self.changed: set[int] = set()  # panes whose rows are no longer what they were
        self.unit = config.unit
        self.unmatched = 0  # labels whose prediction never came; of no state
        self._orphans: list[LabelRows] = []
        self._since = 0  # predictions that came since labels were last looked for

    def name(self, names: Iterable[str]) -> None:
        """Learn which columns predictions have, of which there are none yet."""
        self.names = tuple(sorted(names))
        labels, self.table = self.table.labels, PredictionTable(self.names, self.label, self.unit)
        self.table.labels = labels

    @property
    def floor(self) -> int:
        """The time before which rows leave; what is older than those that left is refused."""
        return max(self.newest - self.config.horizon, self.displaced + 1, 0)

    def predict(self, new: Predictions) -> int:
        """Take predictions; return how many came too late."""
        kept = np.flatnonzero(new.times >= self.left)
        late = len(new.times) - len(kept)
        self.put(new.take(kept) if late else new)
        return late

    def put(self, new: Predictions) -> None:
        """Take predictions, however old."""
        if not len(new.keys):
            return
        if (twice := _repeated(new.keys)) is not None:
            for part in twice:
                self.put(new.take(part))
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
        """Learn that rows of these times, of which there are some, are not what they were."""
        first, last = int(times.min()) // self.unit, int(times.max()) // self.unit
        if first == last:
            self.changed.add(first)
        else:
            self.changed.update(np.unique(times // self.unit).tolist())

    def _repeat(self, rows: Ints, new: Predictions) -> None:
        """Take predictions of ids that are there, one each: of two that differ the earlier counts.

        Of the same time, that with the smaller values does.
        """
        held = self.table.at(rows)
        smaller, differ = new.times < held.times, new.times != held.times
        for mine, theirs in zip(held.columns, new.columns, strict=True):
            one, other = _ranks(mine, theirs)
            smaller |= ~differ & (other < one)
            differ |= other != one
        self.table.mark(rows[differ], REPEATED)
        places = np.flatnonzero(smaller)
        if places.size:
            self._touch(held.times[places])
            self.table.replace(rows[places], new.take(places))

    def put_labels(self, new: LabelRows) -> int:
        """Take labels; return how many came too late."""
        if not len(new.keys):
            return 0
        rows = self.table.find(new.keys)
        there = rows >= 0
        old = np.zeros(len(rows), bool)
        old[~there] = new.times[~there] < self.left - self.config.label_lateness
        self.newest = max(self.newest, int(new.times.max()))
        found, alone = np.flatnonzero(there & ~old), np.flatnonzero(~there & ~old)
        if found.size:
            self._apply(rows[found], new.take(found))
        if alone.size:
            self._orphans.append(new.take(alone))
        return int(np.count_nonzero(old))

    def _apply(self, rows: Ints, new: LabelRows, conflict: Bools | None = None) -> None:
        """Bring labels to their rows, of which each may get several."""
        table, config = self.table, self.config
        delays = new.times - table.times.values[rows]
        counts = (delays <= config.label_ttl) & (delays >= -config.label_lateness)
        if not counts.all():
            table.mark(np.unique(rows[~counts]), LATE)
            places = np.flatnonzero(counts)
            rows, new = rows[places], new.take(places)
            conflict = None if conflict is None else conflict[places]
            if not len(rows):
                return
        touched = np.sort(rows)
        if (touched[1:] == touched[:-1]).any():
            touched = np.unique(touched)
        before = touched[table.flags.values[touched] & LABELLED > 0]
        if not before.size and len(touched) == len(rows):  # one each, and none before
            table.label(rows, new)
            if conflict is not None:
                table.mark(rows[conflict], CONFLICT)
            self._touch(table.times.values[rows])
            return
        held = table.labels_at(before)
        had = table.flags.values[before] & CONFLICT > 0
        every = np.concatenate([before, rows])
        doubt = np.concatenate([had, np.zeros(len(rows), bool) if conflict is None else conflict])
        labels = _together([held, new]) if len(before) else new
        order, same_row, same_version, same = _compared(every, labels)
        last = np.append(~same_row, True)
        table.mark(every[order[1:]][same_row & ~same], CORRECTED)
        # A conflict of earlier versions is one no more when a later version comes.
        split = doubt[order].copy()
        split[1:] |= same_version & ~same
        winners = order[last]
        group = np.cumsum(np.append(True, ~(same_row & same_version))) - 1
        torn = np.bincount(group, split, group[-1] + 1)[group[last]] > 0
        table.label(every[winners], labels.take(winners))
        flags = table.flags.values
        flags[every[winners]] &= ~CONFLICT
        table.mark(every[winners[torn]], CONFLICT)
        self._touch(table.times.values[touched])

    def put_alone(self, new: LabelRows) -> None:
        """Take labels whose prediction has not come."""
        self.table.labels.begin(new.values)
        self._orphans.append(new)

    def match(self) -> None:
        """Bring labels that wait to rows that came after them."""
        if not self._orphans:
            return
        alone = _together(self._orphans)
        rows = self.table.find(alone.keys)
        found, others = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
        if found.size:
            self._apply(rows[found], alone.take(found))
        self._orphans = [alone.take(others)] if others.size else []
        self._since = 0

    @property
    def due(self) -> bool:
        """Whether enough has come for labels that wait to be looked at."""
        return self._since > max(_WORTH, self.n_orphans)

    @property
    def n_orphans(self) -> int:
        """Labels that wait for their prediction, duplicates included."""
        return sum(len(part.keys) for part in self._orphans)

    def orphans(self) -> LabelRows | None:
        """Return the labels whose prediction has not come, each once, sorted by time and id."""
        self.match()
        if not self._orphans:
            return None
        every = _together(self._orphans)
        ranks = _codes(every.values)
        order = np.lexsort((ranks, every.versions, every.keys[:, 1], every.keys[:, 0], every.times))
        columns = (every.times, every.versions, every.keys[:, 0], every.keys[:, 1], ranks)
        same = np.all([c[order[1:]] == c[order[:-1]] for c in columns], axis=0)
        kept = every.take(order[np.append(True, ~same)])
        n = len(kept.keys)
        kept = kept.take(np.flatnonzero(kept.times >= self.floor - self.config.label_lateness))
        self.unmatched += n - len(kept.keys)
        self._orphans = [kept] if len(kept.keys) else []
        return kept if self._orphans else None

    def merge(self, other: Join) -> None:
        """Take the rows and the labels of another, which is untouched."""
        every = np.arange(len(other.table))
        self.put(other.table.at(every))
        rows = self.table.find(other.table.keys[: len(other.table)])
        flags = other.table.flags.values
        for flag in (CORRECTED, LATE, REPEATED):
            self.table.mark(rows[flags & flag > 0], flag)
        labelled = every[flags & LABELLED > 0]
        if labelled.size:
            conflict = flags[labelled] & CONFLICT > 0
            self._apply(rows[labelled], other.table.labels_at(labelled), conflict)
        self._orphans += other._orphans
        self.newest = max(self.newest, other.newest)
        self.displaced = max(self.displaced, other.displaced)
        self.unmatched += other.unmatched
        self.match()

    def copy(self) -> Join:
        """Return an independent join of the same state."""
        twin = Join(self.config, self.names, self.label)
        twin.table, twin._orphans = self.table.copy(), list(self._orphans)
        twin.newest, twin.displaced, twin.unmatched = self.newest, self.displaced, self.unmatched
        twin.changed, twin._since, twin.left = set(self.changed), self._since, self.left
        return twin


def _repeated(keys: NDArray[np.uint64]) -> tuple[Places, Places] | None:
    """Return the rows of the first of each key and of the others, ``None`` where all differ."""
    first = distinct(keys)[1]
    if len(first) == len(keys):
        return None
    return first, np.delete(np.arange(len(keys)), first)


def _compared(rows: Ints, labels: LabelRows) -> tuple[Places, Bools, Bools, Bools]:
    """Return the order by row and worth, and what each has in common with the one before."""
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


def _codes(column: Column) -> Array:
    """Return numbers that order the rows of a column; the vocabulary is sorted."""
    if column.values.ndim > 1:
        return np.unique(column.values, axis=0, return_inverse=True)[1].reshape(-1)
    return column.values


def _ranks(one: Column, other: Column) -> tuple[Array, Array]:
    """Return numbers that order the rows of two columns."""
    both = concatenate([one, other], "the column").values
    if both.ndim > 1:
        both = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    return both[: len(one)], both[len(one) :]
