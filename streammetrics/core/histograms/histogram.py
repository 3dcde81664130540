"""DyadicHistogram: the canonical sorted histogram of scores, exact until its budget is used up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.exact.scaling import times
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.histograms.cells import exact_mass, normal_mass
from streammetrics.core.histograms.counting import run_blocks
from streammetrics.core.histograms.forms import Run
from streammetrics.core.histograms.held import HeldRows
from streammetrics.core.histograms.long import LongCells, split
from streammetrics.core.histograms.merging import united
from streammetrics.core.histograms.removal import long_without, never_added, without
from streammetrics.core.histograms.restoring import read_cells
from streammetrics.core.histograms.stacked import each_written, plain_cells
from streammetrics.core.state.arrays import by_shapes, same

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streammetrics.core.histograms.cells import CellBlock
    from streammetrics.core.state.arrays import Stack
    from streammetrics.core.types import Array, Arrays


class DyadicHistogram(HeldRows):
    """Sorted histogram of scores with the exact weight of each class in each cell.

    Every distinct score has a cell of its own while there are at most `max_cells` of them. Past
    that, the cell of a score is ``key >> level``, for the order-preserving integer keys of
    `streammetrics.core.histograms.keys`, at the lowest level whose occupied cells fit the budget.
    A cell keeps its score as long as it holds only one.

    The state is a function of the multiset of rows, whatever their order and however they were
    merged: more rows only ever occupy more cells and a higher level only ever fewer, so that a
    part of the rows never needs a higher level than all of them.

    An integer beyond 2**53 comes as its nearest float64, the head, and what this lacks, the tail.
    Such scores are told apart as long as every score has a cell of its own; from level 1 on, tails
    are dropped.

    Memory: rows wait until enough have gathered or somebody reads the state. While there are no
    wider cells a waiting row takes 9 bytes, and at most ``2 * max_cells`` of them wait. Then a row
    waits as the place of its cell: in 4 bytes, as many as twice the cells, or with a weight in 12,
    up to three times the cells. A cell takes 16 to 32 bytes (40 to 80 with fractional weights),
    and up to 16 in the table that finds it. Adding rows takes about as much again for a moment.

    Cost: one vectorised sort while every score has its cell (weighted rows sort positions, which is
    slower), then about twenty passes over blocks in the cache.

    Args:
        max_cells: Budget of occupied cells, from 2 to 2**29.
        classes: 1 for plain values, 2 for scores with a label.

    Examples:
        >>> import numpy as np
        >>> histogram = DyadicHistogram(max_cells=4, classes=2)
        >>> histogram.add(np.array([0.1, 0.7, 0.7]), np.array([0, 0, 1], np.uint8))
        >>> for block in histogram.cells():
        ...     print(block.low, block.counts.tolist())
        [0.1 0.7] [[1, 1], [0, 1]]
    """

    @property
    def level(self) -> int:
        """0 while every distinct score has its own cell, else how far the keys are shifted."""
        form = self._read().form
        return 0 if isinstance(form, Run) else form.cells.level

    @property
    def exact(self) -> bool:
        """Whether no cell holds several distinct scores."""
        form = self._read().form
        if isinstance(form, Run):
            return True
        return form.cells.level == 0 or not bool(np.isnan(form.cells.scores).any())

    def totals(self) -> tuple[float, ...]:
        """Return what each class weighs: Python integers if what every cell weighs is one.

        Other totals are floats, correctly rounded.
        """
        form = self._read().form
        if isinstance(form, Run):
            rows = form.rows
            ones = 0 if rows.codes is None else int(np.count_nonzero(rows.codes))
            return (rows.scores.size - ones, ones)[: self.classes]
        return self._whole(form.cells)[0].totals()

    @property
    def unit(self) -> int:
        """The exponent of the unit ``2**unit`` of counts: 0 unless float64 could not hold them."""
        form = self._read().form
        return 0 if isinstance(form, Run) else self._whole(form.cells)[0].unit

    def cells(self) -> Iterator[CellBlock]:
        """Return the occupied cells in ascending order, in blocks of some 2**16.

        Counts are int64 if all weights are integers and add up to less than 2**53, as without
        weights; otherwise they are float64, correctly rounded, in units of ``2**unit``.
        """
        form = self._read().form
        if isinstance(form, Run):
            return run_blocks(form.rows, self.classes)
        return self._whole(form.cells)[0].blocks()

    def scaled(self, weight: float) -> Self:
        """Return the same rows, each of them `weight` times as heavy, exactly."""
        cells, tails = self._canonical()
        cells = cells._replace(mass=normal_mass(times(exact_mass(cells.mass), weight)))
        long = LongCells.empty(self.classes) if self._state.tailed else None
        if tails.size:
            cells, long = split(cells, tails)
        return self._of(cells, long)

    def minus(self, other: DyadicHistogram) -> Self:
        """Return the rows that are left once those of `other` are taken out.

        Raises `IncompatibleMetricsError` if some of them are not here, or if either histogram is
        past level 0, where cells may hold several scores.
        """
        if self.level:
            raise IncompatibleMetricsError(
                f"a histogram of more than {self.max_cells} distinct scores does not tell them "
                "apart, so that none can be taken out: merge the states that are to stay"
            )
        if other.level:
            raise never_added()
        long = long_without(self._long(), other._long())
        return self._of(without(self._plain(), other._plain()), long if long.size else None)

    def narrowed(self, max_cells: int) -> Self:
        """Return the rows without tails under a smaller budget of cells."""
        if max_cells == self.max_cells:
            return self.fork()
        cells = united([self._plain()], max_cells).normal()
        return type(self)(max_cells, self.classes)._of(cells, None)

    def pooled(self, max_cells: int, code: int) -> DyadicHistogram:
        """Return the rows of all classes as class `code` of two, under another budget.

        Raises `IncompatibleMetricsError` if there are integer scores that float64 does not hold.
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

    def is_same(self, other: DyadicHistogram) -> bool:
        """Whether both have the same cells, to the byte."""
        mine, theirs = self.arrays(), other.arrays()
        return mine.keys() == theirs.keys() and all(
            np.array_equal(array, theirs[name], equal_nan=array.dtype.kind == "f")
            for name, array in mine.items()
        )

    def arrays(self) -> dict[str, Array]:
        """Return the canonical state, equal for equal rows.

        - ``level`` (1,);
        - ``cells``: the ids of the cells, empty at level 0, where the scores are the ids;
        - ``scores``: the score of each cell, nan if it holds several;
        - ``counts`` or ``mass.*``: what each class weighs in each cell, integers or exact sums;
        - ``tails``, if any score ever had one: those of the scores, empty past level 0.
        """
        cells, tails = self._canonical()
        return cells.arrays() | ({"tails": tails} if self._state.tailed else {})

    @classmethod
    def from_arrays(cls, max_cells: int, classes: int, arrays: Arrays) -> Self:
        """Return the histogram of `arrays`; raises `StateFormatError` if they are of none."""
        return cls(max_cells, classes)._of(*read_cells(max_cells, classes, arrays))

    @staticmethod
    def each_arrays(every: Sequence[DyadicHistogram]) -> dict[str, Stack] | None:
        """Return the arrays of many; ``None`` unless all hold counts of scores without tails."""
        if not all(histogram.plain for histogram in every):
            return None
        return each_written([histogram._plain() for histogram in every])

    @classmethod
    def each_of_arrays(
        cls, max_cells: int, classes: int, stacks: Mapping[str, Stack], n: int
    ) -> list[Self]:
        """Return the histogram of each of `n` states, of all their arrays at once."""
        cells = plain_cells(max_cells, classes, stacks)
        if cells is not None:
            empty = cls(max_cells, classes)
            return [empty._of(mine, None) for mine in cells]

        def of_arrays(every: Arrays, m: int) -> list[Self]:
            return [
                cls._of_arrays(max_cells, classes, {key: a[k, ...] for key, a in every.items()})
                for k in range(m)
            ]

        return by_shapes(stacks, n, of_arrays)

    @classmethod
    def _of_arrays(cls, max_cells: int, classes: int, arrays: Arrays) -> Self:
        histogram = cls.from_arrays(max_cells, classes, arrays)
        if not same(histogram.arrays(), arrays):
            raise StateFormatError("the arrays of a histogram are not such as are written")
        return histogram

    def check(self) -> None:
        """Verify every invariant of the state; `StateFormatError` names one that is broken."""
        read_cells(self.max_cells, self.classes, self.arrays())
