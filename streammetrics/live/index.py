"""The rows of a table by the keys of their ids, found while the table grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.live.hashes import hashes_of
from streammetrics.live.slots import AT_ONCE, LEAST, Slots

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.live.hashes import HashedKeys, Hashes, Rows

_LOST = 4  # one of so many rows may have left a slot that is lost, before all is made again
_SMALL = 1 << 14  # rows for which there is room up to which a table grows at once to eight times
_MOVED = 2  # rows that move to a larger table for each that comes, so that no call waits for all


class Index:
    """The rows of a table by their keys, which stay in the table.

    It takes 4 bytes a slot, of which a quarter at least is free. When there are too few, rows move
    to a larger table of slots some at a time, while the others are looked up in the old one.
    """

    def __init__(self) -> None:
        self._slots = Slots(LEAST)
        self._old: Slots | None = None
        self._moved, self._before = 0, 0  # rows that have moved, and that were there to be moved
        self._n = 0

    @classmethod
    def of(cls, table: HashedKeys, n: int) -> Index:
        """Return the index of the `n` rows of a table."""
        index = cls()
        index._slots, index._n, index._before = Slots.of(n), n, n
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

    def find(self, table: HashedKeys, keys: NDArray[np.uint64], hashes: Hashes) -> Rows:
        """Return the row of each key in a table, -1 where there is none."""
        rows = np.full(len(keys), -1, np.int64)
        for start in range(0, len(keys) if self._n else 0, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            self._slots.find(table, keys[part], hashes[part], rows[part])
            if self._old is not None:
                others = start + (rows[part] < 0).nonzero()[0]
                found = rows[others]
                self._old.find(table, keys[others], hashes[others], found)
                rows[others] = found
        return rows

    def add(self, table: HashedKeys, hashes: Hashes) -> None:
        """Take the next rows of a table, whose keys are not in it yet and all different."""
        first, self._n = self._n, self._n + len(hashes)
        room = self._slots.room
        if self._n + self._slots.lost > room:
            self._move(table, self._before)
            self._old, self._moved, self._before = self._slots, 0, first
            self._slots = Slots.of(max(self._n, (room if room > _SMALL else 4 * room) + 1))
        for start in range(0, len(hashes), AT_ONCE):
            part = hashes[start : start + AT_ONCE]
            self._slots.put(part, np.arange(first + start, first + start + len(part)))
        if self._old is not None:
            self._move(table, self._moved + _MOVED * len(hashes))

    def drop(self, table: HashedKeys, gone: Rows, last: Rows) -> bool:
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

    def _move(self, table: HashedKeys, end: int) -> None:
        """Move the rows before one from the old slots."""
        for start in range(self._moved, min(end, self._before), AT_ONCE):
            last = min(start + AT_ONCE, end, self._before)
            self._slots.put(hashes_of(table[start:last]), np.arange(start, last))
            self._moved = last
        if self._moved >= self._before:
            self._old = None
