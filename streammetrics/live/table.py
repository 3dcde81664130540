"""The rows that wait for labels and corrections, in columns, each once by its id."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.columns.conversion import Column
from streammetrics.live.cells import GrowingColumn
from streammetrics.live.index import Index
from streammetrics.live.present import Present

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from streammetrics.core.types import Ints

    Rows = Ints

_MANY = 4  # one of so many rows that leave, and the others are moved to arrays of their own
LABELLED, CORRECTED, CONFLICT, LATE, REPEATED = 1, 2, 4, 8, 16  # what is known of a row


class Predictions(NamedTuple):
    """Predictions that come: ids, times, and the columns that metrics read beside the label."""

    keys: NDArray[np.uint64]
    times: Ints
    columns: tuple[Column, ...]

    def take(self, rows: Ints) -> Predictions:
        """Return some of them."""
        columns = tuple([column[rows] for column in self.columns])
        return Predictions(self.keys[rows], self.times[rows], columns)


class LabelRows(NamedTuple):
    """Labels that come: ids, times, versions and what they are."""

    keys: NDArray[np.uint64]
    times: Ints
    versions: Ints
    values: Column

    def take(self, rows: Ints) -> LabelRows:
        """Return some of them."""
        return LabelRows(self.keys[rows], self.times[rows], self.versions[rows], self.values[rows])


class PredictionTable:
    """Predictions with the label that counts, if there is one yet.

    A row takes 8 bytes for its time and each number, 1 for the flags, 5 to 11 in the index, and 16
    for the id, or 8 where all ids are integers. Once there is a label, a row takes 8 bytes for the
    time of its own, and 1 to 8 each for label and version.
    """

    def __init__(self, names: Sequence[str], label: str, unit: int) -> None:
        self.columns = tuple([GrowingColumn(name) for name in names])
        self.times, self.label_times = (
            GrowingColumn("time", np.int64),
            GrowingColumn("label_time", np.int64),
        )
        self.versions, self.flags, self.labels = (
            GrowingColumn("version"),
            GrowingColumn("flags"),
            GrowingColumn(label),
        )
        self.keys, self.present = Index(), Present(unit)
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def _cells(self) -> tuple[GrowingColumn, ...]:
        times = (self.times, self.label_times, self.versions, self.flags)
        return (*times, self.labels, *self.columns)

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        return self.keys.nbytes + sum(cells.nbytes for cells in self._cells)

    def find(self, keys: NDArray[np.uint64]) -> Rows:
        """Return the row of each id, -1 where there is none."""
        return self.keys.find(keys)

    def append(self, new: Predictions) -> None:
        """Take predictions whose ids are new, all different."""
        n = len(new.keys)
        self._n += n
        self.keys.add(new.keys)
        self.times.append(Column(new.times))
        self.flags.append(Column(np.zeros(n, np.int8)))
        for cells in (self.label_times, self.versions, self.labels):
            cells.append_blank(n)
        for cells, column in zip(self.columns, new.columns, strict=True):
            cells.append(column)
        self.present.add(new.times)

    def replace(self, rows: Rows, new: Predictions) -> None:
        """Set the times and the columns of some rows again."""
        self.present.remove(self.times.values[rows])
        self.present.add(new.times)
        self.times.put(rows, Column(new.times))
        for cells, column in zip(self.columns, new.columns, strict=True):
            cells.put(rows, column)

    def mark(self, rows: Rows, flag: int) -> None:
        """Set a flag of some rows."""
        flags = self.flags.values
        flags[rows] |= flag

    def label(self, rows: Rows, labels: LabelRows) -> None:
        """Set the labels of some rows."""
        self.label_times.put(rows, Column(labels.times))
        self.versions.put(rows, Column(labels.versions))
        self.labels.put(rows, labels.values)
        self.mark(rows, LABELLED)

    def labels_at(self, rows: Rows) -> LabelRows:
        """Return the labels of some rows that have one."""
        times, versions = self.label_times.values[rows], self.versions.values[rows]
        values = self.labels.at(rows)
        return LabelRows(self.keys[rows], times, versions.astype(np.int64), values)

    def at(self, rows: Rows) -> Predictions:
        """Return some rows as predictions that come."""
        columns = tuple([cells.at(rows) for cells in self.columns])
        return Predictions(self.keys[rows], self.times.values[rows], columns)

    def drop(self, gone: Rows) -> None:
        """Let some rows go, in ascending order; of few, others of the last rows take the places."""
        self.present.remove(self.times.values[gone])
        n = self._n - len(gone)
        stay = np.ones(len(gone), bool)
        stay[gone[gone >= n] - n] = False
        last = n + np.flatnonzero(stay)
        if len(gone) > self._n // _MANY:
            every = np.ones(self._n, bool)
            every[gone] = False
            self._keep(np.flatnonzero(every))
            return
        self._n = n
        self.keys.drop(gone, last)
        for cells in self._cells:
            cells.drop(gone, last)

    def _keep(self, rows: Rows) -> None:
        """Keep some rows, in the order given."""
        self._n = len(rows)
        self.keys.keep(rows)
        for cells in self._cells:
            cells.keep(rows)

    def copy(self) -> PredictionTable:
        """Return an independent table of the same rows."""
        twin = object.__new__(PredictionTable)
        twin.keys, twin._n = self.keys.copy(), self._n
        twin.columns = tuple([cells.copy() for cells in self.columns])
        for name in ("times", "label_times", "versions", "flags", "labels"):
            setattr(twin, name, getattr(self, name).copy())
        twin.present = self.present.copy()
        return twin
