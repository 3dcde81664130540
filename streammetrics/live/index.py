"""The rows of a table by the keys of their ids, found while the table grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.kernels import kernels
from streammetrics.live.cells import with_room

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.types import Ints

    Keys = NDArray[np.uint64]  # (n, 2)
    Rows = Ints
    Slots = NDArray[np.uint32]

_LEAST = 11  # bits of the number of slots
_SMALL = 1 << 14  # rows for which there is room up to which slots grow at once to eight times
_MOVED = 2  # rows that move to more slots for each that comes, so that no call waits for all


class Index:
    """The keys of the rows of a table, and the row of each key.

    A key takes 16 bytes, or 8 as long as the second half of all is the same, and a slot 4; three
    quarters of the slots at most are in use. When there are too few, rows move to more of them
    some at a time, while the others are looked up in the old ones.
    """

    def __init__(self) -> None:
        self._keys: Keys = np.empty((0, 1), np.uint64)
        self._second = np.zeros(1, np.uint64)  # of all keys, where they are held by the first half
        self._n = 0
        self._slots: Slots = np.zeros(1 << _LEAST, np.uint32)
        self._old: Slots | None = None
        self._moved, self._before = 0, 0  # rows that have moved, and that were there to be moved

    def __getitem__(self, rows: Rows | slice) -> Keys:
        """Return the keys of some rows, (m, 2)."""
        some = self._keys[: self._n][rows]
        if self._width == 2:
            return some
        keys = np.empty((len(some), 2), np.uint64)
        keys[:, :1], keys[:, 1] = some, self._second
        return keys

    @property
    def _width(self) -> int:
        width: int = self._keys.shape[1]
        return width

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        slots = self._slots.nbytes + (0 if self._old is None else self._old.nbytes)
        return self._keys[: self._n].nbytes + slots

    def copy(self) -> Index:
        """Return an independent index of the same rows."""
        twin = Index()
        twin._keys, twin._second, twin._n = self._keys[: self._n].copy(), self._second, self._n
        twin._slots, twin._old = self._slots.copy(), self._old
        twin._moved, twin._before = self._moved, self._before
        return twin

    def find(self, keys: Keys) -> Rows:
        """Return the row of each key, -1 where there is none."""
        rows = np.full(len(keys), -1, np.int64)
        if not self._n:
            return rows
        words = np.ascontiguousarray(keys[:, : self._width])
        self._find(self._slots, words, rows)
        if self._old is not None and (others := np.flatnonzero(rows < 0)).size:
            found = rows[others]
            self._find(self._old, words[others], found)
            rows[others] = found
        if self._width == 1:
            rows[keys[:, 1] != self._second] = -1
        return rows

    def _find(self, slots: Slots, words: Keys, rows: Rows) -> None:
        width = 8 * self._width
        kernels.factorize(slots, self._keys, width, self._n, words, rows, False, None)

    def add(self, keys: Keys) -> None:
        """Take the keys of more rows, which are not here yet and all different."""
        if not len(keys):
            return
        if not self._n:
            self._second = keys[:1, 1].copy()
        if self._width == 1 and (keys[:, 1] != self._second).any():
            self._keys = self[:]
            self._remake(self._n)
        first, self._n = self._n, self._n + len(keys)
        self._keys = with_room(self._keys, first, self._n)
        self._keys[first : self._n] = keys[:, : self._width]
        room = len(self._slots) // 4 * 3
        if self._n > room:
            self._move(self._before)
            self._old, self._moved, self._before = self._slots, 0, first
            self._slots = _slots(max(self._n, (room if room > _SMALL else 4 * room) + 1))
        self._put(first, self._n)
        if self._old is not None:
            self._move(self._moved + _MOVED * len(keys))

    def drop(self, gone: Rows, last: Rows) -> None:
        """Forget rows, into the places of which the last ones move."""
        self._move(self._before)
        width, holes = 8 * self._width, gone[: len(last)]
        kernels.table_move(self._slots, self._keys, width, self._n, gone, None)
        kernels.table_move(self._slots, self._keys, width, self._n, last, holes)
        self._keys[holes] = self._keys[last]
        self._n -= len(gone)

    def keep(self, rows: Rows) -> None:
        """Keep some rows, in the order given, and give the place of the others back."""
        self._keys, self._n = self._keys[rows], len(rows)
        self._remake(self._n)

    def _remake(self, n: int) -> None:
        self._slots, self._old = _slots(n), None
        self._moved = self._before = 0
        self._put(0, n)

    def _put(self, start: int, stop: int) -> None:
        kernels.table_put(self._slots, self._keys, 8 * self._width, start, stop)

    def _move(self, end: int) -> None:
        """Move the rows before one from the old slots."""
        end = min(end, self._before)
        if self._old is not None and end > self._moved:
            self._put(self._moved, end)
            self._moved = end
        if self._moved >= self._before:
            self._old = None


def _slots(n: int) -> Slots:
    """Return empty slots for so many rows."""
    return np.zeros(1 << max((n * 4 // 3).bit_length(), _LEAST), np.uint32)
