"""Keys of rows, as the ids of events have them, and their hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.live.cells import with_room

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.types import Bools, Ints

    Hashes = NDArray[np.uint64]
    Rows = Ints


def hashes_of(keys: NDArray[np.uint64]) -> Hashes:
    """Return a hash of each key (n, 2)."""
    mixed = keys[:, 0] * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= keys[:, 1] * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(32)
    return mixed


class HashedKeys:
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

    def are(self, rows: Rows, keys: NDArray[np.uint64]) -> Bools:
        """Return whether rows have these keys, each its own."""
        same: Bools = self._first[rows] == keys[:, 0]
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

    def copy(self) -> HashedKeys:
        """Return independent keys of the same rows."""
        twin = HashedKeys()
        twin._first, twin._n = self._first[: self._n].copy(), self._n
        twin._second = self._second[: max(self._n, 1)].copy()
        return twin

    @property
    def nbytes(self) -> int:
        """Bytes of the keys."""
        return self._first[: self._n].nbytes + self._second[: self._n].nbytes
