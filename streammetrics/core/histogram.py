"""DyadicHistogram: the canonical sorted histogram of scores, exact until its budget is used up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streammetrics.core.cell_index import CellIndex, filled
from streammetrics.core.cells import (
    CellBlock,
    Cells,
    counted,
    counted_parts,
    fitting_level,
    read_cells,
)
from streammetrics.core.errors import IncompatibleMetricsError, InvalidBatchError
from streammetrics.core.keys import Rows, joined, sorted_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.keys import Codes, Floats

_SLICE = 1 << 20  # rows counted at a time: bounds the scratch memory of an add
_FEWEST = 1 << 16  # rows worth a pass over the cells
_SMALL = 1 << 14  # rows of a chunk worth joining to the next
_TOO_MANY_CELLS = 1 << 29


class DyadicHistogram:
    """Sorted histogram of scores with the exact weight of each class in each cell.

    One cell per distinct score while there are at most ``max_cells``; past that, cells are
    ``key >> level`` for the order-preserving keys of :mod:`streammetrics.core.keys`, at the
    smallest level whose occupied cells fit. A cell keeps its score while it holds only one.
    Occupied cells only grow with data and only shrink with the level, so the level of a part
    never exceeds that of the whole: the state is a function of the multiset of rows.

    Parameters
    ----------
    max_cells
        Budget of occupied cells, from 2 to 2**29.
    classes
        1 for plain values, 2 for scores with a label.

    Rows wait in raw form and are sorted or counted together, when enough of them have gathered
    or when the state is read. Memory: 9 bytes per waiting row, of which there are at most
    ``max_cells`` or 2**20, whichever is more; then 16 to 32 bytes per cell (more with
    fractional weights). An add takes about as much again, and some 30 bytes per row that it
    counts at a time, a million at most for budgets up to that. Cost: a vectorised sort while
    exact, then about twenty passes over blocks in the cache; weights cost a sort of positions.

    >>> import numpy as np
    >>> histogram = DyadicHistogram(max_cells=4, classes=2)
    >>> histogram.add(np.array([0.1, 0.7, 0.7]), np.array([0, 0, 1], np.uint8))
    >>> for block in histogram.cells():
    ...     print(block.low, block.counts.tolist())
    [0.1 0.7] [[1, 1], [0, 1]]
    """

    def __init__(self, max_cells: int, classes: int) -> None:
        if not 2 <= max_cells <= _TOO_MANY_CELLS:
            raise ValueError(f"max_cells must be from 2 to 2**29, not {max_cells}")
        if classes not in {1, 2}:
            raise ValueError(f"classes must be 1 or 2, not {classes}")
        self.max_cells = max_cells
        self.classes = classes
        self._cells = Cells.empty(classes)
        self._waiting: tuple[Rows, ...] = ()
        # True while the state is one sorted run of at most max_cells unweighted rows: cells of
        # millions of scores that occur once would take three times its memory.
        self._is_run = False

    def add(self, scores: Floats, codes: Codes | None = None, weight: Floats | None = None) -> None:
        """Add rows: scores (n,) float64 without nan, codes (n,) below ``classes``, weights (n,).

        ``codes`` are needed where there are two classes. Weights are positive and finite; None
        means 1 each. Raises ``InvalidBatchError`` and leaves the state as it was otherwise.
        """
        rows = self._checked(scores, codes, weight)
        if rows.scores.size:
            self._take(self._cells, (*self._waiting, rows), borrowed=rows)

    def merge(self, other: DyadicHistogram) -> None:
        """Add the rows of another histogram of the same configuration, which is not changed."""
        if (self.max_cells, self.classes) != (other.max_cells, other.classes):
            raise IncompatibleMetricsError(
                f"cannot merge histograms with max_cells={other.max_cells}, "
                f"classes={other.classes} into max_cells={self.max_cells}, classes={self.classes}"
            )
        cells = self._cells.union(other._cells).fitted(self.max_cells).normal()
        self._take(cells, (*self._waiting, *other._waiting))

    def fork(self) -> Self:
        """A snapshot that shares the arrays, none of which is ever written to again."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    @property
    def level(self) -> int:
        """0 with one cell per distinct score, else the binary logarithm of the cells' width."""
        return self._settled().level

    @property
    def exact(self) -> bool:
        """Whether no cell holds several distinct scores."""
        cells = self._settled()
        return cells.level == 0 or not bool(np.isnan(cells.scores).any())

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        return self._cells.nbytes + sum(rows.nbytes for rows in self._waiting)

    def totals(self) -> tuple[float, ...]:
        """What each class weighs over all cells: Python integers where all weights add up to such.

        Fractional totals are correctly rounded.
        """
        cells = self._settled()
        if self._is_run:
            rows = self._waiting[0]
            ones = 0 if rows.codes is None else int(np.count_nonzero(rows.codes))
            return (rows.scores.size - ones, ones)[: self.classes]
        return cells.totals()

    def cells(self) -> Iterator[CellBlock]:
        """Blocks of occupied cells in ascending order, some 2**16 cells each.

        Counts are int64 where every one is an integer up to 2**53, as they are without weights;
        otherwise float64, correctly rounded.
        """
        parts: Iterable[Cells] = [self._settled()]
        if self._is_run:
            parts = counted_parts(self._waiting[0], 0, self.classes)
        for cells in parts:
            yield from cells.blocks()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Canonical state: ``level`` (1,), ``cells``, ``scores`` and ``counts`` or ``mass.*``.

        ``cells`` is empty at level 0, where the scores say it; a cell of several scores has nan.
        """
        cells = self._settled()
        if self._is_run:
            cells = counted(self._waiting[0], 0, self.classes)
        return cells.arrays()

    @classmethod
    def from_arrays(cls, max_cells: int, classes: int, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Rebuild a histogram from its :meth:`arrays`; ``StateFormatError`` where they are not."""
        histogram = cls(max_cells, classes)
        histogram._cells = read_cells(max_cells, classes, arrays)
        return histogram

    def check(self) -> None:
        """Verify every invariant of the state; ``StateFormatError`` names one that is broken."""
        read_cells(self.max_cells, self.classes, self.arrays())

    @property
    def _batch(self) -> int:
        """Rows that may wait, and that are then counted at a time."""
        return max(_FEWEST, min(16 * self.max_cells, _SLICE), self.max_cells)

    def _checked(self, scores: Floats, codes: Codes | None, weight: Floats | None) -> Rows:
        if scores.dtype != np.float64 or scores.ndim != 1:
            raise InvalidBatchError(f"scores are {scores.dtype} {scores.shape}, not float64 (n,)")
        if (codes is None) != (self.classes == 1):
            raise InvalidBatchError(f"codes are for two classes, and there are {self.classes}")
        if np.isnan(scores.max(initial=-np.inf)):
            raise InvalidBatchError("a score is nan")
        if codes is not None:
            if codes.dtype != np.uint8 or codes.shape != scores.shape:
                raise InvalidBatchError(f"codes are {codes.dtype} {codes.shape}, not uint8 (n,)")
            if codes.max(initial=0) >= self.classes:
                raise InvalidBatchError(f"a code is {codes.max()}: codes are 0 and 1")
        if weight is not None:
            if weight.dtype != np.float64 or weight.shape != scores.shape:
                raise InvalidBatchError(f"weights are {weight.dtype}{weight.shape}, not float64")
            if not (weight.min(initial=1.0) > 0 and weight.max(initial=1.0) < np.inf):
                raise InvalidBatchError("a weight is not positive and finite")
            if (weight == 1.0).all():
                weight = None
        return Rows(scores, codes, weight)

    def _take(self, cells: Cells, waiting: tuple[Rows, ...], borrowed: Rows | None = None) -> None:
        """Make cells and rows the state, counting the rows first if they are too many to wait.

        ``borrowed`` is the last of the rows where its arrays are the caller's.
        """
        is_run = False
        if _size(waiting) > self._batch:
            cells, waiting = self._counted(cells, waiting, leave_few=True)
        elif borrowed is not None:
            is_run = len(waiting) == 1 and not cells.ids.size and borrowed.weight is None
            is_run = is_run and _FEWEST <= borrowed.scores.size <= self.max_cells
            waiting = (sorted_rows(waiting),) if is_run else _gathered(waiting)
        self._cells, self._waiting, self._is_run = cells, waiting, is_run

    def _settled(self) -> Cells:
        """Cells of all rows, unless these are one sorted run."""
        if self._is_run or not self._waiting:
            return self._cells
        cells, waiting, is_run = self._cells, self._waiting, False
        size = _size(waiting)
        if cells.ids.size or size > self.max_cells or any(r.weight is not None for r in waiting):
            cells, waiting = self._counted(cells, waiting, leave_few=False)
        else:
            run = sorted_rows(waiting)
            distinct = 1 + int(np.count_nonzero(run.scores[1:] != run.scores[:-1]))
            is_run = 2 * distinct > size
            cells, waiting = (cells, (run,)) if is_run else (counted(run, 0, self.classes), ())
        self._cells, self._waiting, self._is_run = cells, waiting, is_run
        return cells

    def _counted(
        self, cells: Cells, waiting: Sequence[Rows], leave_few: bool
    ) -> tuple[Cells, tuple[Rows, ...]]:
        """Cells with the waiting rows counted in, and the few rows not worth new cells yet."""
        index: CellIndex | None = None
        late: list[Rows] = []  # rows of cells that do not exist yet
        # Twice the budget shows the level in one sort; later rows mostly have their cells.
        first = self._batch if cells.level else max(_FEWEST, 2 * self.max_cells)
        for chunks in _slices(waiting, first, self._batch):
            if cells.level and chunks[0].weight is None and 4 * _size(chunks) >= cells.ids.size:
                index = index if index and index.ids is cells.ids else CellIndex.of(cells)
                if index:
                    cells, more = filled(cells, index, chunks)
                    if more.scores.size:
                        late.append(more)
                    if 8 * _size(late) >= cells.ids.size:
                        index = None
                        cells, late = self._inserted(cells, late), []
                    continue
            cells = self._inserted(cells, chunks)
        if late and not leave_few:
            cells, late = self._inserted(cells, late), []
        return cells.normal(), tuple(late)

    def _inserted(self, cells: Cells, chunks: Sequence[Rows]) -> Cells:
        """Cells with rows counted in by sorting them."""
        rows = sorted_rows(chunks)
        # A part never needs a higher level than the whole, so that cells which the budget cannot
        # hold are not even made.
        level = cells.level or fitting_level(rows.scores, 0, self.max_cells)
        return cells.union(counted(rows, level, self.classes)).fitted(self.max_cells)


def _slices(waiting: Sequence[Rows], first: int, size: int) -> Iterator[list[Rows]]:
    """All rows in parts that bound the scratch memory, those of weight 1 first."""
    for weighted in (False, True):
        part: list[Rows] = []
        room = max(size, _SLICE) if weighted else first
        for rows in waiting:
            start = 0 if (rows.weight is not None) == weighted else rows.scores.size
            while start < rows.scores.size:
                part.append(rows.part(slice(start, start + room)))
                start += room
                room -= part[-1].scores.size
                if not room:
                    yield part
                    part, room = [], size
        if part:
            yield part


def _gathered(waiting: tuple[Rows, ...]) -> tuple[Rows, ...]:
    """Rows that wait: the last chunk copied, and joined with the one before while both are small.

    Joining only what is as small doubles the chunks, so that a row is copied a few times at most.
    """
    *chunks, last = waiting
    last = last.copy()
    while chunks and chunks[-1].scores.size <= min(last.scores.size, _SMALL):
        if (chunks[-1].weight is None) != (last.weight is None):
            break
        last = joined([chunks.pop(), last])
    return (*chunks, last)


def _size(chunks: Sequence[Rows]) -> int:
    return sum(rows.scores.size for rows in chunks)
