"""SortedHistogram: the canonical sorted histogram of scores, exact within its budget of cells."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.arithmetic.cells import (
    CALL_ROWS,
    Cells,
    ScoredRows,
    arrays_of_all,
    batches,
    exact_mass,
    merged,
    merged_all,
    normal_mass,
    read_all,
    read_cells,
)
from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.arithmetic.keys import plain
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.kernels import kernels
from streammetrics.core.state.arrays import laid_out, nested, part, take_array, taken_apart

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.core.arithmetic.cells import CellBlock, Mass
    from streammetrics.core.types import Array, Arrays, Floats, Places

_TOO_MANY_CELLS = 1 << 29


class _State(NamedTuple):
    """All rows in one attribute, so that other threads see every change atomically."""

    cells: Cells
    pending: tuple[ScoredRows, ...] = ()  # rows not counted yet
    size: int = 0  # number of rows in `pending`

    @property
    def weighted(self) -> bool:
        """Whether any pending rows have weights."""
        return any(not rows.counted for rows in self.pending)


class SortedHistogram:
    """Sorted histogram of scores with the exact weight of each class in each cell.

    Every distinct score has its own cell while there are at most `max_cells`. Beyond that, the cell
    of a score is ``key >> level``, with the order-preserving integer keys of
    `streammetrics.core.arithmetic.keys`, at the lowest level at which the number of occupied cells
    is within the budget. A cell keeps its score as long as it holds only one.

    The state is a function of the multiset of rows, regardless of their order and of merges. More
    rows never occupy fewer cells, and a higher level never more, so part of the rows never needs a
    higher level than all of them.

    An integer beyond 2**53 is given as the nearest float64 (the head) and the difference (the
    tail). Tails distinguish scores at level 0, where every score has its own cell; from level 1 on,
    they are dropped.

    Rows are buffered. They are counted when the state is read, or when the buffer is full. Its size
    is four times the budget, at most 2**18 rows, or with weights twice the budget if that is more.
    At level 0 it grows to eight times the number of cells, while the budget has room for all rows.
    The counted state is stored in one assignment, so threads may read concurrently.

    Memory: 16 bytes a cell with two classes (12 with one), 8 more above level 0, and 40 to 80 with
    fractional weights; 9 bytes a buffered row, 17 with weights. Counting temporarily takes about as
    much again, and 10 bytes for each sorted row, 18 with weights. Large numbers of rows are sorted
    in parts of 2**22 rows, or of the budget if that is more.

    Cost: a radix sort of the rows if they are at most four times the budget, otherwise one addition
    to a table for each row. Merging many states above level 0 costs one addition for each cell if
    the range of ids is at most half the number of cells. Large inputs are split between two or more
    threads; the state is the same.

    Args:
        max_cells: Maximum number of occupied cells, from 2 to 2**29.
        classes: 1 for plain values, 2 for scores with a label.

    Examples:
        >>> import numpy as np
        >>> histogram = SortedHistogram(max_cells=4, classes=2)
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
        self.max_cells, self.classes = max_cells, classes
        self._state = _State(Cells.empty(classes))

    # ---- rows ----

    def add(
        self,
        scores: Floats,
        codes: Array | None = None,
        weight: Array | None = None,
        tails: Floats | None = None,
    ) -> None:
        """Add rows. The schema has validated them; they are not checked again.

        Args:
            scores: Float64 scores (n,) without nan.
            codes: The class of each row (n,), below `classes`; required for two classes.
            weight: Positive finite weights (n,); with shape (n, 1) a row weighs the square;
                int64 for rows that count several times; ``None`` for 1 each.
            tails: The differences between exact numbers and the scores, their heads, as in
                `LongNumbers`; ``None`` if the scores are exact.

        """
        rows = ScoredRows(scores, codes if self.classes == 2 else None, weight)
        if weight is not None and not rows.counted and (weight == 1.0).all():
            rows = rows._replace(weight=None)
        state = self._state
        if tails is not None and tails.any():
            long = tails != 0
            state = self._taking(state, rows._replace(tails=tails).part(long))
            rows = rows.part(~long)
        self._state = self._taking(state, rows)

    def add_unchecked(self, scores: Floats, labels: Array) -> bool:
        """Add rows of weight 1 that have not been validated.

        Args:
            scores: Float64 scores (n,).
            labels: Integers or booleans (n,).

        Returns:
            Whether no score is nan and each label is 0 or 1; otherwise nothing is added.

        """
        state, scores, codes = self._state, plain(scores, np.float64), plain(labels, labels.dtype)
        if state.size + scores.size <= self._room(state.cells, weighted=False):
            bits = np.empty(scores.shape, np.uint8)
            if kernels.bits(bits, codes) < 0 or math.isnan(kernels.extent(scores)[0]):
                return False
            codes = bits
        try:  # rows that are not buffered are validated while they are counted
            self.add(scores, codes)
        except ValueError:
            return False
        return True

    def merge(self, *others: Self) -> None:
        """Add the rows of other histograms of the same configuration, which are not changed."""
        for other in others:
            if (self.max_cells, self.classes) != (other.max_cells, other.classes):
                raise IncompatibleMetricsError(
                    f"cannot merge histograms with max_cells={other.max_cells}, "
                    f"classes={other.classes} into max_cells={self.max_cells}, "
                    f"classes={self.classes}"
                )
        states = [histogram._state for histogram in (self, *others)]
        if sum(state.size for state in states) > self._room(states[0].cells, weighted=False):
            # Large buffers are counted in their own histograms, once for all merges.
            for k, histogram in enumerate((self, *others)):
                if states[k].size >= tuning.PASS_ROWS and not states[k].weighted:
                    states[k] = _State(histogram._read())
        cells = merged_all([state.cells for state in states], self.max_cells)
        pending = tuple(rows for state in states for rows in state.pending)
        waiting = sum(state.size for state in states)
        self._state = self._buffered(_State(cells, pending, waiting))

    def _taking(self, state: _State, rows: ScoredRows) -> _State:
        """Return a state with more rows; the arrays remain the caller's and are copied."""
        cells, pending, waiting = state
        if not rows.scores.size:
            return state
        more = _State(cells, (*pending, rows), waiting + rows.scores.size)
        after = self._buffered(more)
        return after if after is not more else more._replace(pending=(*pending, rows.copy()))

    def _buffered(self, state: _State) -> _State:
        """Return the state; pending rows are counted if there are too many."""
        if (
            state.size > self._room(state.cells, state.weighted)
            or len(state.pending) > tuning.BUFFERS
        ):
            return _State(self._counted(state.cells, state.pending))
        return state

    def _room(self, cells: Cells, weighted: bool) -> int:
        """Return the capacity of the buffer; larger with weights, as exact sums merge slowly."""
        most = max(tuning.BUFFERED_ROWS, 2 * self.max_cells * weighted)
        few = min(most, 4 * self.max_cells)
        size = cells.scores.size
        return few if cells.level else max(few, min(8 * size, self.max_cells - size))

    def _counted(self, cells: Cells, pending: Sequence[ScoredRows]) -> Cells:
        """Return the cells with pending rows added."""
        for kind in {rows.kind for rows in pending}:
            some = (rows for rows in pending if rows.kind == kind)
            for rows in batches(some, max(CALL_ROWS, self.max_cells)):
                more = Cells.of(rows, self.classes, self.max_cells, cells.level)
                cells = merged(cells, more, self.max_cells)
        return cells

    def _read(self) -> Cells:
        """Return the cells of all rows."""
        cells, pending, _ = self._state
        if pending:
            cells = self._counted(cells, pending)
            self._state = _State(cells)
        return cells

    def _of(self, cells: Cells) -> Self:
        """Return a histogram with the given cells."""
        twin = self.fork()
        twin._state = _State(cells)
        return twin

    def fork(self) -> Self:
        """Return a snapshot. It shares the arrays, which are never modified."""
        twin = object.__new__(type(self))
        twin.max_cells, twin.classes, twin._state = self.max_cells, self.classes, self._state
        return twin

    @classmethod
    def of_cells(cls, max_cells: int, cells: Cells) -> Self:
        """Return the histogram of cells of the lowest level that fits."""
        return cls(max_cells, cells.mass.shape[1])._of(cells)

    # ---- properties and read-outs ----

    def plain_cells(self) -> Cells | None:
        """Return the cells; ``None`` where they are not counts of 32 bits of plain scores."""
        cells = self._read()
        narrow = not isinstance(cells.mass, ExactSum) and cells.mass.dtype == np.int32
        return cells if narrow and cells.tails is None else None

    @property
    def plain(self) -> bool:
        """Whether no score ever had a tail."""
        cells, pending, _ = self._state
        return cells.tails is None and all(rows.tails is None for rows in pending)

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        cells, pending, _ = self._state
        return cells.nbytes + sum([rows.nbytes for rows in pending])

    @property
    def level(self) -> int:
        """0 if every distinct score has its own cell, otherwise the shift of the keys."""
        return self._read().level

    @property
    def exact(self) -> bool:
        """Whether no cell holds several distinct scores."""
        cells = self._read()
        return cells.level == 0 or not bool(np.isnan(cells.scores).any())

    def totals(self) -> tuple[float, ...]:
        """Return the weight of each class.

        Python integers if all cells have integer weights, otherwise correctly rounded floats.
        """
        return self._read().totals()

    def area(self) -> tuple[int, int] | None:
        """Return twice the pairs of a negative and a higher positive row, and the uncertain part.

        Ties count once; those within cells of several scores may be in any order. ``None`` unless
        the weights are integers. The product of the numbers of negatives and positives must be
        below 2**62.
        """
        return self._read().area()

    @property
    def unit(self) -> int:
        """The exponent of the unit ``2**unit`` of counts: 0 unless float64 would overflow."""
        return self._read().unit

    def cells(self) -> Iterator[CellBlock]:
        """Return the occupied cells in ascending order, in blocks of about 2**16.

        Counts are int64 if all weights are integers with a sum below 2**53, as without weights.
        Otherwise they are correctly rounded float64 in units of ``2**unit``.
        """
        return self._read().blocks()

    def masses(self) -> Iterator[Mass]:
        """Return the exact weight of each class in each cell (m, classes), in the same blocks."""
        return self._read().masses()

    def sums_above(self, places: Places) -> tuple[Array, int]:
        """Return the exact weight of each class in all cells, and from each of `places` upwards.

        Args:
            places: Positions of cells, ascending (k,).

        Returns:
            Python integers (k + 1, classes) of a common unit, the first row for all cells, and the
            exponent of the unit.
        """
        cells = self._read()
        between = np.searchsorted(places, np.arange(cells.size), side="right")
        sums, exponent = exact_mass(cells.mass).regroup(between, places.size + 1).integers()
        return np.cumsum(np.asarray(sums)[::-1], axis=0)[::-1], exponent

    def parted(self, places: Places) -> tuple[Floats, Floats]:
        """Return each class's weight from each of `places` upwards, and below it, rounded once.

        Args:
            places: Positions of cells in any order (k,); the number of cells selects none above.

        Returns:
            The weights above and below, each (k, classes).
        """
        cells = self._read()
        cuts, which = np.unique(places, return_inverse=True)
        between = np.searchsorted(cuts, np.arange(cells.size), side="right")
        mass = exact_mass(cells.mass).regroup(between, cuts.size + 1)
        digits = mass.digits.reshape(cuts.size + 1, self.classes, -1)
        sums = np.cumsum(digits[:0:-1], axis=0)[::-1], np.cumsum(digits[:-1], axis=0)
        above, below = (
            np.asarray(ExactSum.of_digits(each, mass.exponent).to_float())[which] for each in sums
        )
        return above, below

    def shares_above(self) -> list[tuple[Floats, Floats, float, float]]:
        """Return the weight of each class from each cell upwards, with twice float64's precision.

        Returns:
            For each class the heads and tails for the cells (m,), and those for all cells, in a
            unit of the class in which the weight of all cells is from 1/2 to 2**32.
        """
        cells = self._read()
        mass = exact_mass(cells.mass)
        digits = mass.digits.reshape(cells.size, self.classes, -1)
        parts = []
        for code in range(self.classes):
            above = np.cumsum(digits[::-1, code], axis=0)[::-1]
            whole, unit = ExactSum.of_digits(above[:1], 0)[0].integers()
            bits = unit + int(whole).bit_length()
            sums = ExactSum.of_digits(above, -32 * (bits // 32))
            heads = np.asarray(sums.to_float())
            tails = sums - ExactSum.grouped(np.arange(cells.size), cells.size, heads)
            parts.append((heads, np.asarray(tails.to_float())))
        return [(heads, tails, float(heads[0]), float(tails[0])) for heads, tails in parts]

    # ---- histograms derived from these rows ----

    def scaled(self, weight: float) -> Self:
        """Return the same rows with weights multiplied by `weight`, exactly."""
        cells = self._read()
        return self._of(cells._replace(mass=normal_mass(exact_mass(cells.mass).times(weight))))

    def minus(self, other: SortedHistogram) -> Self:
        """Return the rows without those of `other`.

        Raises `IncompatibleMetricsError` if some of them are absent, or if either histogram is
        above level 0, where cells may hold several scores.
        """
        if self.level:
            raise IncompatibleMetricsError(
                f"a histogram of more than {self.max_cells} distinct scores does not tell them "
                "apart, so that none can be taken out: merge the states to keep instead"
            )
        return self._of(self._read().minus(other._read()))

    def narrowed(self, max_cells: int) -> Self:
        """Return the rows, which must not have tails, with a smaller budget of cells."""
        if max_cells == self.max_cells:
            return self.fork()
        cells = merged(self._read(), Cells.empty(self.classes), max_cells)
        return type(self)(max_cells, self.classes)._of(cells)

    def pooled(self, max_cells: int, code: int) -> SortedHistogram:
        """Return the rows of all classes as class `code` of two, with another budget of cells.

        Raises `IncompatibleMetricsError` if there are integer scores that float64 cannot represent.
        """
        cells = self._read()
        if cells.tails is not None and cells.tails.any():
            raise IncompatibleMetricsError("integers beyond 2**53 are not compared with others")
        if not isinstance(cells.mass, ExactSum):
            counts = np.zeros((cells.size, 2), cells.mass.dtype)
            cells.mass.sum(axis=1, dtype=cells.mass.dtype, out=counts[:, code])
            return SortedHistogram(max_cells, 2)._of(cells._replace(mass=counts, tails=None))
        digits = cells.mass.digits.reshape(*cells.mass.shape, -1).astype(np.int64)
        both = np.zeros((len(digits), 2, digits.shape[2]), np.int64)
        both[:, code] = digits.sum(axis=1)
        mass = normal_mass(ExactSum.of_digits(both, cells.mass.exponent))
        return SortedHistogram(max_cells, 2)._of(cells._replace(mass=mass, tails=None))

    def is_same(self, other: SortedHistogram) -> bool:
        """Whether both have the same cells, byte for byte."""
        mine, theirs = self.arrays(), other.arrays()
        return mine.keys() == theirs.keys() and all(
            np.array_equal(array, theirs[name], equal_nan=array.dtype.kind == "f")
            for name, array in mine.items()
        )

    # ---- states ----

    def arrays(self) -> dict[str, Array]:
        """Return the canonical state, which is equal for equal rows.

        - ``level`` (1,);
        - ``cells``: the ids of the cells; empty at level 0, where the scores are the ids;
        - ``scores``: the score of each cell, nan if it holds several;
        - ``counts`` or ``mass.*``: the weight of each class in each cell, as integers or exact
          sums;
        - ``tails``, if any score ever had one: the tails of the scores; empty above level 0.
        """
        return self._read().arrays()

    @classmethod
    def from_arrays(cls, max_cells: int, classes: int, arrays: Arrays) -> Self:
        """Return the histogram of `arrays`; raise `StateFormatError` if they are invalid."""
        return cls(max_cells, classes)._of(read_cells(max_cells, classes, arrays))

    @staticmethod
    def arrays_of_all(every: Sequence[SortedHistogram]) -> dict[str, Array]:
        """Return the arrays of many: integer counts without tails in columns, others separately."""
        cells = [histogram._read() for histogram in every]
        plain = [c.tails is None and not isinstance(c.mass, ExactSum) and c.size > 0 for c in cells]
        columns = arrays_of_all([one for one, of in zip(cells, plain, strict=True) if of])
        others = laid_out([one.arrays() for one, of in zip(cells, plain, strict=True) if not of])
        return {"plain": np.array(plain, np.bool_), **columns, **nested("others", others)}

    @classmethod
    def all_of_arrays(cls, max_cells: int, classes: int, arrays: Arrays, n: int) -> list[Self]:
        """Return the `n` histograms from the arrays of `arrays_of_all`, after validating them."""
        plain, others = take_array(arrays, "plain", "bool"), part(arrays, "others")
        if plain.shape != (n,):
            raise StateFormatError(f"these are not the arrays of {n} histograms")
        own = {k: a for k, a in arrays.items() if k != "plain" and not k.startswith("others/")}
        columns = iter(read_all(max_cells, classes, own))
        apart = taken_apart(others, int(np.count_nonzero(~plain)))
        rest = iter([read_cells(max_cells, classes, each) for each in apart])
        empty = cls(max_cells, classes)
        try:
            return [empty._of(next(columns if one else rest)) for one in plain.tolist()]
        except StopIteration:
            raise StateFormatError(f"these are not the arrays of {n} histograms") from None

    def check(self) -> None:
        """Verify every invariant of the state; raise `StateFormatError` for the first violated."""
        read_cells(self.max_cells, self.classes, self.arrays())
