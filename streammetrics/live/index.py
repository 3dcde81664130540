"""The rows of a table by the keys of their ids: hash tables that are worked on in columns.

A table of slots has them in buckets of eight, each with the number of a row and, in the bits that
this leaves, a part of the hash of its key; so a batch of keys is mostly found in one step, in which
one row is looked at for each. A key whose bucket is full is in the next but one, and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.live.cells import with_room

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Hashes = NDArray[np.uint64]
    Rows = NDArray[np.int64]

_GONE, _FIRST = 1, 2  # what a slot holds of a row that went, and of the first one
_SHIFT = 3  # bits of a place in a bucket
_WIDTH = 1 << _SHIFT  # slots of a bucket: half a line of the cache
_ONES, _LAST = np.uint64(0x0101010101010101), np.uint64(56)  # by which eight bytes are summed
_LEAST = 11  # bits of the number of slots
_FULL = 3, 4  # the part of the slots that are taken before there are twice as many
_BITS_AT_ONCE = 16  # of a place among the rows
_AT_ONCE = 1 << _BITS_AT_ONCE  # that are moved at a time
_LOST = 4  # one of so many rows may have left a slot that is lost, before all is made again
_SMALL = 1 << 14  # rows for which there is room up to which a table grows at once to eight times
_MOVED = 2  # rows that move to a larger table for each that comes, so that no call waits for all


def hashes_of(keys: NDArray[np.uint64]) -> Hashes:
    """Return a hash of each key (n, 2)."""
    mixed = keys[:, 0] * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= keys[:, 1] * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(32)
    return mixed


class Keys:
    """The keys of a table: 16 bytes each, or 8 as long as the second half of all is the same."""

    def __init__(self) -> None:
        self._first = np.empty(0, np.uint64)
        self._second = np.empty(0, np.uint64)  # of all rows, or a single one
        self._n = 0

    def __getitem__(self, rows: Rows | slice) -> NDArray[np.uint64]:
        """Return the keys of some rows, (m, 2)."""
        first = self._first[: self._n][rows]
        keys = np.empty((len(first), 2), np.uint64)
        keys[:, 0] = first
        keys[:, 1] = self._second if len(self._second) == 1 else self._second[: self._n][rows]
        return keys

    def are(self, rows: Rows, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return whether rows have these keys, each its own."""
        same: NDArray[np.bool_] = self._first[rows] == keys[:, 0]
        second = self._second if len(self._second) == 1 else self._second[rows]
        same &= second == keys[:, 1]
        return same

    def append(self, keys: NDArray[np.uint64]) -> None:
        """Take the keys of more rows."""
        start, self._n = self._n, self._n + len(keys)
        self._first = with_room(self._first, start, self._n)
        self._first[start : self._n] = keys[:, 0]
        if not start:
            self._second = keys[:1, 1].copy()
        if len(self._second) == 1 and not (keys[:, 1] != self._second[0]).any():
            return
        if len(self._second) == 1:
            self._second = np.full(max(start, 2), self._second[0])
        self._second = with_room(self._second, start, self._n)
        self._second[start : self._n] = keys[:, 1]

    def drop(self, gone: Rows, last: Rows) -> None:
        """Let rows go, into the places of which the last ones move."""
        self._n -= len(gone)
        holes = gone[: len(last)]
        self._first[holes] = self._first[last]
        if len(self._second) > 1:
            self._second[holes] = self._second[last]

    def keep(self, rows: Rows) -> None:
        """Keep some rows, in the order given."""
        self._first, self._n = self._first[rows], len(rows)
        if len(self._second) > 1:
            self._second = self._second[rows]

    def copy(self) -> Keys:
        """Return independent keys of the same rows."""
        twin = Keys()
        twin._first, twin._n = self._first[: self._n].copy(), self._n
        twin._second = self._second[: max(self._n, 1)].copy()
        return twin

    @property
    def nbytes(self) -> int:
        """Bytes of the keys."""
        return self._first[: self._n].nbytes + self._second[: self._n].nbytes


class Index:
    """The rows of a table by their keys, which stay in the table.

    It takes 4 bytes a slot, of which a quarter at least is free. When there are too few, rows move
    to a larger table of slots some at a time, while the others are looked up in the old one.
    """

    def __init__(self) -> None:
        self._slots = _Slots(_LEAST)
        self._old: _Slots | None = None
        self._moved, self._before = 0, 0  # rows that have moved, and that were there to be moved
        self._n = 0

    @classmethod
    def of(cls, table: Keys, n: int) -> Index:
        """Return the index of the `n` rows of a table."""
        index = cls()
        index._slots, index._n, index._before = _Slots.of(n), n, n
        index._move(table, n)
        return index

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        return self._slots.nbytes + (0 if self._old is None else self._old.nbytes)

    def copy(self) -> Index:
        """Return an independent index of the same rows."""
        twin = Index()
        twin.__dict__.update(self.__dict__)
        twin._slots = self._slots.copy()
        return twin

    def find(self, table: Keys, keys: NDArray[np.uint64], hashes: Hashes) -> Rows:
        """Return the row of each key in a table, -1 where there is none."""
        rows = np.full(len(keys), -1, np.int64)
        for start in range(0, len(keys) if self._n else 0, _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            self._slots.find(table, keys[part], hashes[part], rows[part])
            if self._old is not None:
                others = start + (rows[part] < 0).nonzero()[0]
                found = rows[others]
                self._old.find(table, keys[others], hashes[others], found)
                rows[others] = found
        return rows

    def add(self, table: Keys, hashes: Hashes) -> None:
        """Take the next rows of a table, whose keys are not in it yet and all different."""
        first, self._n = self._n, self._n + len(hashes)
        room = self._slots.room
        if self._n + self._slots.lost > room:
            self._move(table, self._before)
            self._old, self._moved, self._before = self._slots, 0, first
            self._slots = _Slots.of(max(self._n, (room if room > _SMALL else 4 * room) + 1))
        for start in range(0, len(hashes), _AT_ONCE):
            part = hashes[start : start + _AT_ONCE]
            self._slots.put(part, np.arange(first + start, first + start + len(part)))
        if self._old is not None:
            self._move(table, self._moved + _MOVED * len(hashes))

    def drop(self, table: Keys, gone: Rows, last: Rows) -> bool:
        """Forget rows that are about to go, into the places of which the last ones move.

        Return whether it can: too many slots would be lost by it, and all is to be made again.
        """
        self._move(table, self._before)
        if self._slots.lost + len(gone) > self._n // _LOST:
            return False
        self._slots.drop(hashes_of(table[gone]), gone)
        self._slots.change(hashes_of(table[last]), last, gone[: len(last)])
        self._n -= len(gone)
        return True

    def _move(self, table: Keys, end: int) -> None:
        """Move the rows before one from the old slots."""
        for start in range(self._moved, min(end, self._before), _AT_ONCE):
            last = min(start + _AT_ONCE, end, self._before)
            self._slots.put(hashes_of(table[start:last]), np.arange(start, last))
            self._moved = last
        if self._moved >= self._before:
            self._old = None


class _Slots:
    """Buckets of slots, of a size: 0, or a row from 2 on below some bits of the hash of its key.

    1 stands for a row that went. A bucket that was full stays so: where the last slot is 0, no key
    is in the next one for it.
    """

    def __init__(self, bits: int) -> None:
        self._bits = bits  # of a row, and so many slots
        self.lost = 0  # slots of rows that went
        self._buckets = np.zeros((1 << bits >> 3, _WIDTH), np.uint32)

    @classmethod
    def of(cls, n: int) -> _Slots:
        """Return empty slots for so many rows."""
        part, whole = _FULL
        return cls(max((n * whole // part).bit_length(), _LEAST))

    @property
    def room(self) -> int:
        """For how many rows there are slots."""
        part, whole = _FULL
        return (1 << self._bits) // whole * part

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._buckets.nbytes

    def copy(self) -> _Slots:
        """Return independent slots."""
        twin = _Slots(_LEAST)
        twin._bits, twin._buckets, twin.lost = self._bits, self._buckets.copy(), self.lost
        return twin

    def _places(self, hashes: Hashes) -> tuple[Rows, NDArray[np.uint32]]:
        """Return the first bucket of each key, and the bits of its hash that stand in a slot."""
        places = (hashes & np.uint64(len(self._buckets) - 1)).view(np.int64)
        marks = (hashes >> np.uint64(32 + self._bits)).astype(np.uint32)
        return places, marks << np.uint32(self._bits)

    def find(self, table: Keys, keys: NDArray[np.uint64], hashes: Hashes, rows: Rows) -> None:
        """Write the rows of those keys that are here."""
        places, marks = self._places(hashes)
        waiting, step, low = np.arange(len(keys)), 0, np.uint32((1 << self._bits) - 1)
        while waiting.size:
            held = self._buckets.take(places, axis=0)
            full = (held[:, -1] > 0).nonzero()[0]
            # What differs from the mark is the row alone, and that is above 1 where there is one:
            # what is no row wraps around.
            held ^= marks[:, None]
            held -= np.uint32(_FIRST)
            every = held.ravel()
            hits = (every <= low - np.uint32(_FIRST)).nonzero()[0]
            if hits.size:
                found = every.take(hits).astype(np.int64)
                asked = waiting.take(hits >> _SHIFT)
                same = table.are(found, keys.take(asked, axis=0)).nonzero()[0]
                rows[asked.take(same)] = found.take(same)
            step += 1
            on = full[rows[waiting[full]] < 0]
            waiting, marks = waiting[on], marks[on]
            places = (places[on] + step) & (len(self._buckets) - 1)

    def _slots_of(self, hashes: Hashes, rows: Rows) -> Rows:
        """Return where the slots are of rows that are here."""
        places, marks = self._places(hashes)
        values, slots = marks | (rows + _FIRST).astype(np.uint32), np.empty(len(rows), np.int64)
        waiting, step = np.arange(len(rows)), 0
        while waiting.size:
            same = self._buckets.take(places, axis=0) == values[waiting, None]
            found = same.any(axis=1)
            slots[waiting[found]] = places[found] * _WIDTH + same[found].argmax(axis=1)
            step += 1
            waiting = waiting[~found]
            places = (places[~found] + step) & (len(self._buckets) - 1)
        return slots

    def drop(self, hashes: Hashes, rows: Rows) -> None:
        """Forget rows that are here."""
        slots = self._slots_of(hashes, rows)
        buckets = slots // _WIDTH
        full = self._buckets[buckets, -1] > 0
        every = self._buckets.reshape(-1)
        every[slots] = np.where(full, np.uint32(_GONE), np.uint32(0))
        self.lost += int(np.count_nonzero(full))
        some = buckets[~full]
        held = self._buckets[some]
        held.sort(axis=1)
        self._buckets[some] = held[:, ::-1]  # free slots last

    def change(self, hashes: Hashes, rows: Rows, places: Rows) -> None:
        """Learn that rows have moved to other places."""
        slots, every = self._slots_of(hashes, rows), self._buckets.reshape(-1)
        every[slots] += (places - rows).astype(np.uint32)

    def put(self, hashes: Hashes, rows: Rows) -> None:
        """Take rows, for which there is room."""
        places, marks = self._places(hashes)
        values, step = marks | (rows + _FIRST).astype(np.uint32), 0
        while values.size:
            others = self._fill(places, values)
            step += 1  # places of a power of two are all reached by steps of 1, 2, 3 ...
            values, places = values[others], (places[others] + step) & (len(self._buckets) - 1)

    def _fill(self, places: Rows, values: NDArray[np.uint32]) -> Rows:
        """Put values, all different, into buckets; return which of them find theirs full.

        Those that come to one bucket get its free slots, one after the other.
        """
        order = np.arange(len(values))
        order |= places << _BITS_AT_ONCE
        order.sort()
        asked = order >> _BITS_AT_ONCE
        order &= _AT_ONCE - 1
        turns = np.arange(len(values))
        first = np.append(True, asked[1:] != asked[:-1])
        turns -= np.maximum.accumulate(np.where(first, turns, 0))
        free = self._free(asked, turns)
        fit = free < _WIDTH
        slots, every = (asked * _WIDTH + free)[fit], self._buckets.reshape(-1)
        if self.lost:
            self.lost -= int(np.count_nonzero(every[slots]))
        every[slots] = values[order[fit]]
        return order[~fit]

    def _free(self, places: Rows, turns: Rows) -> Rows:
        """Return a free slot of each bucket, after so many that are, from `_WIDTH` on for none."""
        held = self._buckets.take(places, axis=0)
        if not self.lost:  # free slots are the last ones, and the bytes of the others are summed
            counts = ((held > 0).view(np.uint64)[:, 0] * _ONES) >> _LAST
            return counts.view(np.int64) + turns
        free = held <= _GONE
        mine = free & (free.cumsum(axis=1) == turns[:, None] + 1)
        return np.where(mine.any(axis=1), mine.argmax(axis=1), _WIDTH)
