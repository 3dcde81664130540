"""Slots of rows by the hash of their key: a table of buckets, worked on in columns.

A bucket has eight slots. Each holds the number of a row and, in the bits that this leaves, a part
of the hash of its key, so that a batch of keys is mostly found in one step, in which one row is
looked at for each. If a bucket is full, further keys go one bucket on, then two more, then three.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.live.hashes import HashedKeys, Hashes, Rows

_GONE, _FIRST = 1, 2  # what a slot holds of a row that went, and of the first one
_SHIFT = 3  # bits of a place in a bucket
_WIDTH = 1 << _SHIFT  # slots of a bucket: half a line of the cache
_ONES, _LAST = np.uint64(0x0101010101010101), np.uint64(56)  # by which eight bytes are summed
LEAST = 11  # bits of the number of slots
_FULL = 3, 4  # the part of the slots that are taken before there are twice as many
_BITS_AT_ONCE = 16  # of a place among the rows
AT_ONCE = 1 << _BITS_AT_ONCE  # rows that are put or found at a time


class Slots:
    """Buckets of slots, of a size: 0, or a row from 2 on below some bits of the hash of its key.

    1 stands for a row that went. A bucket that was full stays so: where the last slot is 0, no key
    is in the next one for it.
    """

    def __init__(self, bits: int) -> None:
        self._bits = bits  # of a row, and so many slots
        self.lost = 0  # slots of rows that went
        self._buckets = np.zeros((1 << bits >> 3, _WIDTH), np.uint32)

    @classmethod
    def of(cls, n: int) -> Slots:
        """Return empty slots for so many rows."""
        part, whole = _FULL
        return cls(max((n * whole // part).bit_length(), LEAST))

    @property
    def room(self) -> int:
        """For how many rows there are slots."""
        part, whole = _FULL
        return (1 << self._bits) // whole * part

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._buckets.nbytes

    def copy(self) -> Slots:
        """Return independent slots."""
        twin = Slots(LEAST)
        twin._bits, twin._buckets, twin.lost = self._bits, self._buckets.copy(), self.lost
        return twin

    def _places(self, hashes: Hashes) -> tuple[Rows, NDArray[np.uint32]]:
        """Return the first bucket of each key, and the bits of its hash that stand in a slot."""
        places = (hashes & np.uint64(len(self._buckets) - 1)).view(np.int64)
        marks = (hashes >> np.uint64(32 + self._bits)).astype(np.uint32)
        return places, marks << np.uint32(self._bits)

    def find(self, table: HashedKeys, keys: NDArray[np.uint64], hashes: Hashes, rows: Rows) -> None:
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
        order &= AT_ONCE - 1
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
