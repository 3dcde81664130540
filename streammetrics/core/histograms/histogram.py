"""DyadicHistogram: the canonical sorted histogram of scores, exact until its budget is used up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.exact.scaling import times
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.histograms.cells import CellBlock, Cells, exact_mass, normal_mass
from streammetrics.core.histograms.counting import counted, run_blocks
from streammetrics.core.histograms.forms import (
    Form,
    Limits,
    Run,
    Sorting,
    settled,
    taking,
    together,
)
from streammetrics.core.histograms.keys import ScoredRows
from streammetrics.core.histograms.long import LongCells, grown, split
from streammetrics.core.histograms.merging import merged, united
from streammetrics.core.histograms.removal import long_without, strangers, without
from streammetrics.core.histograms.restoring import read_cells
from streammetrics.core.histograms.stacked import each_written, plain_cells
from streammetrics.core.state.arrays import by_shapes, same

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.histograms.keys import Codes
    from streammetrics.core.state.arrays import Stack
    from streammetrics.core.types import Floats

_TOO_MANY_CELLS = 1 << 29


class _State(NamedTuple):
    """All rows, in one attribute: a reader in another thread finds them before or after a change.

    Reads change how rows are held but not which, so several may settle the same ones.
    """

    form: Form  # of the rows whose scores float64 holds
    long: tuple[LongCells, ...] = ()  # of the others, whose scores have tails
    tailed: bool = False  # whether there ever were such
    settled: bool = True  # no row waits, but in a run that there is no more to do for


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
    twice the cells, or 12 of each weighted row, up to three times the cells; then 16 to 32 bytes
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
        self._limits = Limits(max_cells, classes)
        self._state = _State(Sorting(Cells.empty(classes)))

    @property
    def max_cells(self) -> int:
        """The budget of occupied cells."""
        return self._limits.max_cells

    @property
    def classes(self) -> int:
        """How many classes of rows there are."""
        return self._limits.classes

    def add(
        self,
        scores: Floats,
        codes: Codes | None = None,
        weight: Floats | None = None,
        tails: Floats | None = None,
    ) -> None:
        """Add rows: scores (n,) float64 without nan, codes (n,) below ``classes``, and weights.

        ``codes`` are needed where there are two classes. Weights are positive and finite, (n,), or
        (n, 2), every time, of which those of a row are added up; None means 1 each. ``tails`` are
        those of `LongNumbers`, of which the scores are the heads. That all of this is so is the
        business of the schema; nothing here is looked at twice.
        """
        if weight is not None and (weight == 1.0).all():
            weight = None
        rows = ScoredRows(scores, codes, weight)
        form, long, tailed, _ = self._state
        if tails is not None and tails.any():
            told = tails != 0
            more = LongCells.of(rows.part(told), tails[told], self.classes)
            long, tailed, rows = grown(long, more), True, rows.part(~told)
        if rows.scores.size:
            form = taking(form, rows, self._limits)
        self._become(_State(form, long, tailed, settled=False))

    def merge(self, *others: DyadicHistogram) -> None:
        """Add the rows of other histograms of the same configuration, which are not changed."""
        for other in others:
            if self._limits != other._limits:
                raise IncompatibleMetricsError(
                    f"cannot merge histograms with max_cells={other.max_cells}, "
                    f"classes={other.classes} into max_cells={self.max_cells}, "
                    f"classes={self.classes}"
                )
        every = [histogram._state for histogram in (self, *others)]
        form: Form = together([state.form for state in every], self._limits)
        long: tuple[LongCells, ...] = ()
        for state in every:
            for cells in state.long:
                long = grown(long, cells)
        self._become(_State(form, long, any(state.tailed for state in every), settled=False))

    def scaled(self, weight: float) -> Self:
        """The same rows, each of them weighing so many times as much, exactly."""
        cells, tails = self._canonical()
        cells = cells._replace(mass=normal_mass(times(exact_mass(cells.mass), weight)))
        long = LongCells.empty(self.classes) if self._state.tailed else None
        if tails.size:
            cells, long = split(cells, tails)
        return self._of(cells, long)

    def minus(self, other: DyadicHistogram) -> Self:
        """The rows that are left without those of another, all of which must be here.

        Raises ``IncompatibleMetricsError`` where they are not, or where cells hold several scores.
        """
        if self.level:
            raise IncompatibleMetricsError(
                f"a histogram of more than {self.max_cells} distinct scores does not tell them "
                "apart, so that none can be taken out: merge the states that are to stay"
            )
        if other.level:
            raise strangers()
        long = long_without(self._long(), other._long())
        return self._of(without(self._plain(), other._plain()), long if long.size else None)

    def narrowed(self, max_cells: int) -> Self:
        """The same rows with a smaller budget of cells, but those whose scores have tails."""
        if max_cells == self.max_cells:
            return self.fork()
        twin = type(self)(max_cells, self.classes)
        twin._state = _State(Sorting(united([self._plain()], max_cells).normal()))
        return twin

    def is_same(self, other: DyadicHistogram) -> bool:
        """Whether it is of the same cells, to the byte."""
        mine, theirs = self.arrays(), other.arrays()
        return mine.keys() == theirs.keys() and all(
            np.array_equal(array, theirs[name], equal_nan=array.dtype.kind == "f")
            for name, array in mine.items()
        )

    def pooled(self, max_cells: int, code: int) -> DyadicHistogram:
        """The rows of all classes as those of one of two, in a histogram of another budget.

        Raises ``IncompatibleMetricsError`` where scores are integers that float64 does not hold.
        """
        cells, tails = self._canonical()
        if tails.size and tails.any():
            raise IncompatibleMetricsError("integers beyond 2**53 are not compared with others")
        if not isinstance(cells.mass, ExactSum):
            counts = np.zeros((len(cells.mass), 2), cells.mass.dtype)
            cells.mass.sum(axis=1, dtype=cells.mass.dtype, out=counts[:, code])
            return DyadicHistogram(max_cells, 2)._of(cells._replace(mass=counts, classes=2), None)
        mass = exact_mass(cells.mass)
        digits = mass.digits.reshape(*mass.shape, -1).astype(np.int64)
        both = np.zeros((len(digits), 2, digits.shape[2]), np.int64)
        both[:, code] = digits.sum(axis=1)
        pooled = cells._replace(mass=ExactSum.of_digits(both, mass.exponent), classes=2).normal()
        return DyadicHistogram(max_cells, 2)._of(pooled, None)

    def fork(self) -> Self:
        """A snapshot that shares the arrays, none of which is ever written to again."""
        twin = object.__new__(type(self))
        twin._limits, twin._state = self._limits, self._state
        return twin

    @property
    def level(self) -> int:
        """0 with one cell per distinct score, else the binary logarithm of the cells' width."""
        form = self._read().form
        return 0 if isinstance(form, Run) else form.cells.level

    @property
    def exact(self) -> bool:
        """Whether no cell holds several distinct scores."""
        form = self._read().form
        if isinstance(form, Run):
            return True
        return form.cells.level == 0 or not bool(np.isnan(form.cells.scores).any())

    @property
    def plain(self) -> bool:
        """Whether no score ever had a tail."""
        return not self._state.tailed

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        state = self._state
        return state.form.nbytes + sum(cells.nbytes for cells in state.long)

    def totals(self) -> tuple[float, ...]:
        """What each class weighs over all cells: Python integers where all weights add up to such.

        Fractional totals are correctly rounded.
        """
        form = self._read().form
        if isinstance(form, Run):
            rows = form.rows
            ones = 0 if rows.codes is None else int(np.count_nonzero(rows.codes))
            return (rows.scores.size - ones, ones)[: self.classes]
        return self._whole(form.cells)[0].totals()

    @property
    def unit(self) -> int:
        """The power of two in which `cells` tells weights: 0 unless float64 could not hold them."""
        form = self._read().form
        return 0 if isinstance(form, Run) else self._whole(form.cells)[0].unit

    def cells(self) -> Iterator[CellBlock]:
        """Blocks of occupied cells in ascending order, some 2**16 cells each.

        Counts are int64 where every one is an integer up to 2**53, as they are without weights;
        otherwise float64, correctly rounded, in units of ``2**unit``.
        """
        form = self._read().form
        if isinstance(form, Run):
            return run_blocks(form.rows, self.classes)
        return self._whole(form.cells)[0].blocks()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Canonical state: ``level`` (1,), ``cells``, ``scores`` and ``counts`` or ``mass.*``.

        ``cells`` is empty at level 0, where the scores say it; a cell of several scores has nan.
        Where any score ever had a tail there are ``tails`` as well, empty past level 0.
        """
        cells, tails = self._canonical()
        return cells.arrays() | ({"tails": tails} if self._state.tailed else {})

    @classmethod
    def from_arrays(cls, max_cells: int, classes: int, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Rebuild a histogram from its :meth:`arrays`; ``StateFormatError`` where they are not."""
        return cls(max_cells, classes)._of(*read_cells(max_cells, classes, arrays))

    @staticmethod
    def each_arrays(every: Sequence[DyadicHistogram]) -> dict[str, Stack] | None:
        """The arrays of many, or ``None`` unless all of them hold counts of plain scores."""
        if not all(histogram.plain for histogram in every):
            return None
        return each_written([histogram._plain() for histogram in every])

    @classmethod
    def each_of_arrays(
        cls, max_cells: int, classes: int, stacks: Mapping[str, Stack], n: int
    ) -> list[Self]:
        """Rebuild histograms of the arrays of each."""
        cells = plain_cells(max_cells, classes, stacks)
        if cells is not None:
            empty = cls(max_cells, classes)
            return [empty._of(mine, None) for mine in cells]

        def of_arrays(every: Mapping[str, NDArray[Any]], m: int) -> list[Self]:
            return [
                cls._of_arrays(max_cells, classes, {key: a[k, ...] for key, a in every.items()})
                for k in range(m)
            ]

        return by_shapes(stacks, n, of_arrays)

    @classmethod
    def _of_arrays(cls, max_cells: int, classes: int, arrays: Mapping[str, NDArray[Any]]) -> Self:
        histogram = cls.from_arrays(max_cells, classes, arrays)
        if not same(histogram.arrays(), arrays):
            raise StateFormatError("the arrays of a histogram are not such as are written")
        return histogram

    def check(self) -> None:
        """Verify every invariant of the state; ``StateFormatError`` names one that is broken."""
        read_cells(self.max_cells, self.classes, self.arrays())

    def _become(self, state: _State) -> None:
        """Take a state in one assignment, with its long cells counted if they are too many."""
        if sum(cells.size for cells in state.long) > self._limits.first:
            state = self._settle(state)
        self._state = state

    def _of(self, cells: Cells, long: LongCells | None) -> Self:
        """A histogram of counted cells; None for long ones where there have never been any."""
        twin = self.fork()
        held = () if long is None or not long.size else (long,)
        twin._state = _State(Sorting(cells), held, long is not None)
        return twin

    def _read(self) -> _State:
        """The state with every row counted, but where it is one sorted run."""
        state = self._state
        if not state.settled and (state.long or not isinstance(state.form, Run)):
            state = self._state = self._settle(state)
        return state

    def _settle(self, state: _State) -> _State:
        """Leave no row uncounted, or only those of one sorted run.

        Scores are told apart by their tails, or where there is no room put in wider cells. From
        then on the level is at least 1, where cells can say that they hold several scores.
        """
        form = settled(state.form, self._limits, counted_whole=bool(state.long))
        if not state.long or isinstance(form, Run):
            return _State(form, state.long, state.tailed)
        long = LongCells.union(state.long)
        if form.cells.level or form.cells.ids.size + long.size > self.max_cells:
            wide = long.widened(self.max_cells)
            cells = merged(form.cells, [wide], self.max_cells).normal()
            return _State(Sorting(cells), (), state.tailed)
        return _State(form, (long,), state.tailed)

    def _plain(self) -> Cells:
        """Cells of the rows without tails, also where these are one sorted run."""
        form = self._read().form
        return counted(form.rows, 0, self.classes) if isinstance(form, Run) else form.cells

    def _long(self) -> LongCells:
        """Cells of the rows with tails."""
        long = self._read().long
        return long[0] if long else LongCells.empty(self.classes)

    def _canonical(self) -> tuple[Cells, Floats]:
        """The cells of all rows, and the tails of their scores where these are told apart."""
        return self._whole(self._plain())

    def _whole(self, cells: Cells) -> tuple[Cells, Floats]:
        """The cells of all rows, of those without tails."""
        long = self._read().long
        return long[0].beside(cells) if long else (cells, np.empty(0))
