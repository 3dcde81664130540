"""DyadicHistogram: the canonical sorted histogram of scores, exact until its budget is used up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streammetrics.core.errors import IncompatibleMetricsError
from streammetrics.core.exact.scaling import times
from streammetrics.core.histograms.cells import (
    CellBlock,
    Cells,
    exact_mass,
    fitting_level,
    normal_mass,
)
from streammetrics.core.histograms.counting import counted, counted_parts
from streammetrics.core.histograms.keys import Rows, sorted_rows
from streammetrics.core.histograms.long import LongCells, split
from streammetrics.core.histograms.lookup import CellIndex, Tally, placed, tallied
from streammetrics.core.histograms.merging import merged as united
from streammetrics.core.histograms.removal import long_without, strangers, without
from streammetrics.core.histograms.restoring import read_cells
from streammetrics.core.histograms.waiting import SMALL, appended, checked, gathered, parts, size_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.histograms.keys import Codes, Floats

_SLICE = 1 << 20  # rows counted at a time: bounds the scratch memory of an add
_FEWEST = 1 << 16  # rows worth a pass over the cells
_TOO_MANY_CELLS = 1 << 29


class DyadicHistogram:
    """Sorted histogram of scores with the exact weight of each class in each cell.

    One cell per distinct score while there are at most ``max_cells``; past that, cells are ``key
    >> level`` for the order-preserving keys of :mod:`streammetrics.core.histograms.keys`, at the
    smallest level whose occupied cells fit. A cell keeps its score while it holds only one.
    Occupied cells only grow with data and only shrink with the level, so the level of a part never
    exceeds that of the whole: the state is a function of the multiset of rows.

    Integers beyond 2**53 come as a float64 and a tail. They are told apart as long as all scores
    have a cell of their own; past that they are in cells, from level 1 on, that do not keep them.

    Parameters
    ----------
    max_cells
        Budget of occupied cells, from 2 to 2**29.
    classes
        1 for plain values, 2 for scores with a label.

    Rows wait until enough of them have gathered or the state is read: as they are while there are
    no wider cells, then as the place of their cell. Memory: 9 bytes per row that waits without a
    cell, of which there are at most twice ``max_cells``, and 4 bytes per row with one, at most
    twice the cells, or 12 of each weighted row, up to five times the cells; then 16 to 32 bytes
    per cell (40 to 80 with fractional weights) and up to 16 for the table that finds it. An add
    takes about as much again. Cost: a vectorised sort while exact, or one of positions where
    there are weights, then about twenty passes over blocks in the cache.

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
        self._late: tuple[Rows, ...] = ()  # rows that were found to have no cell yet
        self._tally = Tally()
        self._index: CellIndex | None = None
        self._scattered = False  # whether the cells are known not to fit an index
        self._settled = True
        # True while the state is one sorted run of at most max_cells unweighted rows: cells of
        # millions of scores that occur once would take three times its memory.
        self._is_run = False
        self._long: tuple[LongCells, ...] = ()  # of rows whose scores have tails
        self._tailed = False  # whether there ever were such

    def add(
        self,
        scores: Floats,
        codes: Codes | None = None,
        weight: Floats | None = None,
        tails: Floats | None = None,
    ) -> None:
        """Add rows: scores (n,) float64 without nan, codes (n,) below ``classes``, weights (n,).

        ``codes`` are needed where there are two classes. Weights are positive and finite; None
        means 1 each. ``tails`` are those of `LongNumbers`, of which the scores are the heads.
        Raises ``InvalidBatchError`` and leaves the state as it was otherwise.
        """
        rows = checked(self.classes, scores, codes, weight)
        work = self.fork()
        if tails is not None and tails.any():
            long = tails != 0
            work._take_long(rows.part(long), tails[long])
            rows = rows.part(~long)
        if rows.scores.size:
            work._take(rows)
        self._become(work)

    def merge(self, *others: DyadicHistogram) -> None:
        """Add the rows of other histograms of the same configuration, which are not changed."""
        for other in others:
            if (self.max_cells, self.classes) != (other.max_cells, other.classes):
                raise IncompatibleMetricsError(
                    f"cannot merge histograms with max_cells={other.max_cells}, "
                    f"classes={other.classes} into max_cells={self.max_cells}, "
                    f"classes={self.classes}"
                )
        every = [histogram.fork() for histogram in (self, *others)]
        for work in every:
            work._count_tally()
        merged = type(self)(self.max_cells, self.classes)
        first, *rest = (work._cells for work in every)
        merged._cells, merged._settled = united(first, rest, self.max_cells), False
        waiting = tuple(rows for work in every for rows in (*work._waiting, *work._late))
        if size_of(waiting) > merged._room:
            merged._count(waiting)
        else:
            merged._waiting = gathered(waiting)
        merged._tailed = any(work._tailed for work in every)
        merged._add_long([long for work in every for long in work._long])
        self._become(merged)

    def scaled(self, weight: float) -> Self:
        """The same rows, each of them weighing so many times as much, exactly."""
        cells, tails = self._canonical()
        mass = normal_mass(times(exact_mass(cells.mass), weight))
        return self._of(cells._replace(mass=mass), tails)

    def minus(self, other: DyadicHistogram) -> Self:
        """The rows that are left without those of another, all of which must be here.

        Raises ``IncompatibleMetricsError`` where they are not, or where cells hold several scores.
        """
        cells, theirs = self._read(), other._read()
        if cells.level:
            raise IncompatibleMetricsError(
                f"a histogram of more than {self.max_cells} distinct scores does not tell them "
                "apart, so that none can be taken out: merge the states that are to stay"
            )
        if theirs.level:
            raise strangers()
        cells, long = self._plain(), self._long_cells()
        twin = type(self)(self.max_cells, self.classes)
        twin._cells = without(cells, other._plain())
        long = long_without(long, other._long_cells())
        twin._long, twin._tailed = ((long,), True) if long.size else ((), False)
        return twin

    def fork(self) -> Self:
        """A snapshot that shares the arrays, none of which is ever written to again."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def _become(self, work: DyadicHistogram) -> None:
        # In one assignment: a reader in another thread sees the rows before or after, and since
        # reads change how rows are held but not which, several may settle the same ones.
        self.__dict__ = work.__dict__

    @property
    def level(self) -> int:
        """0 with one cell per distinct score, else the binary logarithm of the cells' width."""
        return self._read().level

    @property
    def exact(self) -> bool:
        """Whether no cell holds several distinct scores."""
        cells = self._read()
        return cells.level == 0 or not bool(np.isnan(cells.scores).any())

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        held = self.fork()  # another thread may settle this one
        waiting = sum(rows.nbytes for rows in (*held._waiting, *held._late))
        index = held._index.nbytes if held._index else 0
        long = sum(cells.nbytes for cells in held._long)
        return held._cells.nbytes + waiting + held._tally.nbytes + index + long

    def totals(self) -> tuple[float, ...]:
        """What each class weighs over all cells: Python integers where all weights add up to such.

        Fractional totals are correctly rounded.
        """
        cells = self._read()
        if self._is_run:
            rows = self._waiting[0]
            ones = 0 if rows.codes is None else int(np.count_nonzero(rows.codes))
            return (rows.scores.size - ones, ones)[: self.classes]
        return self._whole(cells)[0].totals()

    @property
    def unit(self) -> int:
        """The power of two in which `cells` tells weights: 0 unless float64 could not hold them."""
        return self._whole(self._read())[0].unit

    def cells(self) -> Iterator[CellBlock]:
        """Blocks of occupied cells in ascending order, some 2**16 cells each.

        Counts are int64 where every one is an integer up to 2**53, as they are without weights;
        otherwise float64, correctly rounded, in units of ``2**unit``.
        """
        parts: Iterable[Cells] = [self._whole(self._read())[0]]
        if self._is_run:
            parts = counted_parts(self._waiting[0], 0, self.classes)
        for cells in parts:
            yield from cells.blocks()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Canonical state: ``level`` (1,), ``cells``, ``scores`` and ``counts`` or ``mass.*``.

        ``cells`` is empty at level 0, where the scores say it; a cell of several scores has nan.
        Where any score ever had a tail there are ``tails`` as well, empty past level 0.
        """
        cells, tails = self._canonical()
        return cells.arrays() | ({"tails": tails} if self._tailed else {})

    @classmethod
    def from_arrays(cls, max_cells: int, classes: int, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Rebuild a histogram from its :meth:`arrays`; ``StateFormatError`` where they are not."""
        histogram = cls(max_cells, classes)
        histogram._cells, long = read_cells(max_cells, classes, arrays)
        histogram._tailed = long is not None
        histogram._long = (long,) if long is not None and long.size else ()
        return histogram

    def check(self) -> None:
        """Verify every invariant of the state; ``StateFormatError`` names one that is broken."""
        read_cells(self.max_cells, self.classes, self.arrays())

    # What follows changes the state step by step: on a fork, which then takes the place of `self`.

    def _take(self, rows: Rows) -> None:
        """Take rows whose arrays are the caller's: count them, or keep copies."""
        size, fresh = rows.scores.size, not self._waiting and not self._cells.ids.size
        self._settled = False
        if self._index and size >= SMALL:
            self._place([rows])
        elif fresh and rows.weight is None and _FEWEST <= size <= self.max_cells:
            self._waiting, self._is_run = (sorted_rows([rows]),), True
        elif size_of(self._waiting) + size > self._room:
            waiting, self._waiting, self._is_run = (*self._waiting, rows), (), False
            self._count(waiting)
        else:
            self._waiting, self._is_run = appended(self._waiting, rows.copy()), False

    def _take_long(self, rows: Rows, tails: Floats) -> None:
        """Take rows whose scores have tails."""
        self._settled, self._tailed = False, True
        self._add_long([LongCells.of(rows, tails, self.classes)])

    def _add_long(self, more: Sequence[LongCells]) -> None:
        for cells in more:
            last = cells
            while self._long and self._long[-1].size <= last.size:
                last = LongCells.union([self._long[-1], last])
                self._long = self._long[:-1]
            self._long += (last,)
        if sum(cells.size for cells in self._long) > max(_FEWEST, 2 * self.max_cells):
            self._settle()

    @property
    def _room(self) -> int:
        """Rows that may wait without having looked for their cells."""
        if not self._cells.ids.size:
            return max(_FEWEST, 2 * self.max_cells)
        if self._cells.level and not self._scattered:
            return max(_FEWEST, self._cells.ids.size // 4)
        return self._batch

    @property
    def _batch(self) -> int:
        """Rows that are counted at a time."""
        return max(_FEWEST, min(16 * self.max_cells, _SLICE), self.max_cells)

    def _read(self) -> Cells:
        """Cells of all rows but those with tails, unless the former are one sorted run."""
        if not self._settled and (self._long or not self._is_run):
            work = self.fork()
            work._settle()
            # One call of C, as is the one in `fork`: no thread sees or takes a half of it.
            self.__dict__.update(work.__dict__)
        return self._cells

    def _plain(self) -> Cells:
        """Cells of all rows but those with tails, also where these are one sorted run."""
        cells = self._read()
        return counted(self._waiting[0], 0, self.classes) if self._is_run else cells

    def _long_cells(self) -> LongCells:
        """Cells of the rows with tails."""
        self._read()
        return self._long[0] if self._long else LongCells.empty(self.classes)

    def _canonical(self) -> tuple[Cells, Floats]:
        """The cells of all rows, and the tails of their scores where these are told apart."""
        return self._whole(self._plain())

    def _of(self, cells: Cells, tails: Floats) -> Self:
        """A histogram of what `_canonical` gives, which has seen tails where this one has."""
        twin = type(self)(self.max_cells, self.classes)
        twin._cells, twin._tailed = cells, self._tailed
        if tails.size:
            twin._cells, long = split(cells, tails)
            twin._long = (long,)
        return twin

    def _whole(self, cells: Cells) -> tuple[Cells, Floats]:
        """The cells of all rows, and the tails of their scores where these are told apart."""
        return self._long[0].beside(cells) if self._long else (cells, np.empty(0))

    def _settle(self) -> None:
        """Leave no row uncounted, or only those of one sorted run."""
        waiting, self._waiting, self._is_run = self._waiting, (), False
        size = size_of(waiting)
        plain = not any(rows.weight is not None for rows in waiting)
        if plain and 0 < size <= self.max_cells and not self._cells.ids.size:
            run = sorted_rows(waiting)
            distinct = 1 + int(np.count_nonzero(run.scores[1:] != run.scores[:-1]))
            self._is_run = 2 * distinct > size and not self._long
            if self._is_run:
                self._waiting = (run,)
            else:
                self._cells = counted(run, 0, self.classes)
        else:
            self._count(waiting)
            self._count_tally()
            if self._late:
                self._insert(())
        if self._long:
            self._settle_long()
        self._cells = self._cells.normal()
        self._settled = True

    def _settle_long(self) -> None:
        """Tell scores apart by their tails, or where there is no room put them in wider cells.

        From then on the level is at least 1, where cells can say that they hold several scores.
        """
        long = LongCells.union(self._long)
        self._long = (long,)
        if self._cells.level or self._cells.ids.size + long.size > self.max_cells:
            self._long, self._index, self._scattered = (), None, False
            wide = long.widened(self.max_cells)
            self._cells = united(self._cells, [wide], self.max_cells)

    def _count(self, waiting: Sequence[Rows]) -> None:
        """Find the cells of rows, or make them."""
        # Twice the budget shows the level in one sort; later rows mostly have their cells.
        first = self._batch if self._cells.level else max(_FEWEST, 2 * self.max_cells)
        total = size_of(waiting)
        first = total if total <= first + _FEWEST else first
        for chunks in parts(waiting, first, self._batch):
            worthwhile = 4 * size_of(chunks) >= self._cells.ids.size
            if self._cells.level and not self._index and worthwhile:
                self._index = None if self._scattered else CellIndex.of(self._cells)
                self._scattered = self._index is None
            if self._index:
                self._place(chunks)
            else:
                self._insert(chunks)

    def _place(self, chunks: Sequence[Rows]) -> None:
        """Find the cells of rows."""
        assert self._index is not None
        self._tally, late = placed(self._cells, self._index, chunks, self._tally)
        if late.scores.size:
            self._late = appended(self._late, late)
        # To count weights costs a pass over all digits of the cells, and one over counts is cheap.
        passes = 4 if chunks[0].weight is not None else 1
        if self._tally.size > max(8 * _FEWEST, passes * self._cells.ids.size):
            self._count_tally()
        if size_of(self._late) > max(_FEWEST, self._cells.ids.size // 2):
            self._insert(())

    def _count_tally(self) -> None:
        """Count the rows whose cells were found."""
        tally, self._tally = self._tally, Tally()
        self._cells = tallied(self._cells, tally)
        strays = sum(mixed.size for mixed in tally.mixed)
        if self._index and 16 * strays > min(tally.size, self._cells.ids.size):
            self._index = self._index.refreshed(self._cells, tally)

    def _insert(self, chunks: Sequence[Rows]) -> None:
        """Count rows by sorting them, and with them those that had no cell."""
        self._count_tally()
        rows = (*chunks, *self._late)
        self._late, self._index, self._scattered = (), None, False
        for weighted in (False, True):
            group = [chunk for chunk in rows if (chunk.weight is not None) == weighted]
            if group:
                self._cells = united(self._cells, [self._cells_of(group)], self.max_cells)

    def _cells_of(self, chunks: Sequence[Rows]) -> Cells:
        rows = sorted_rows(chunks)
        # A part never needs a higher level than the whole, so that cells which the budget cannot
        # hold are not even made.
        level = self._cells.level or fitting_level(rows.scores, 0, self.max_cells)
        return counted(rows, level, self.classes)
