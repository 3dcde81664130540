"""Pairs of numbers: counts for rank correlation and survival."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.arithmetic.keys import MAX_LEVEL, cell_edges, cell_id_range, cell_ids
from streammetrics.core.arithmetic.pairs import Axis, PairCells
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import Condition, Schema, reject_present
from streammetrics.core.constraints import MaxPairs, NanPolicy
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.field import StateField, not_among, piled
from streammetrics.core.state.arrays import take_array
from streammetrics.core.statistic import Statistic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.configured import Configured
    from streammetrics.core.types import Array, Arrays, Bools, Floats, Ints


MAX_PAIRS = 1 << 20
_MOST = 1 << 52  # rows; ranks are exact in float64 below twice this number
_NAMES = {"level", "x_cells", "x_values", "y_cells", "y_values", "pairs", "counts"}


class _Rows(NamedTuple):
    """Rows that are not counted yet, each of which stands for as many as its count, or for one."""

    x: Floats
    y: Floats
    counts: Ints | None


class _PairForm(NamedTuple):
    """The state of `CountedPairs`: counted cells and rows not counted yet."""

    cells: PairCells
    waiting: tuple[_Rows, ...] = ()
    length: int = 0  # length of the columns in `waiting`
    rows: int = 0  # number of rows they stand for


def _size(rows: _Rows) -> int:
    return rows.x.size


def _joined(chunks: Sequence[_Rows]) -> _Rows:
    xs, ys, counts = zip(*chunks, strict=True)
    own = None
    if any(each is not None for each in counts):
        own = np.concatenate(
            [np.ones(x.size, np.int64) if c is None else c for x, c in zip(xs, counts, strict=True)]
        )
    return _Rows(np.concatenate(xs), np.concatenate(ys), own)


class CountedPairs:
    """Counts of pairs of numbers, in at most `most` occupied pairs of cells.

    Instances are immutable except that a read counts the pending rows and stores the result in one
    assignment, so a concurrent reader sees the same rows before and after.
    """

    __slots__ = ("_form", "most")

    def __init__(self, most: int, form: _PairForm) -> None:
        self.most, self._form = most, form
        if self.size > _MOST:
            raise IncompatibleMetricsError(
                f"the merged state would have {self.size} rows; rank correlations count at most "
                "2**52"
            )
        if form.length > max(most, tuning.PASS_ROWS):
            self.cells()

    def taking(self, x: Floats, y: Floats, counts: Ints | None) -> CountedPairs:
        """Return these pairs and the given rows; keeps references to the arrays."""
        cells, waiting, length, rows = self._form
        more = _Rows(x, y, counts)
        waiting = piled(waiting, more, size=_size, join=_joined, small=tuning.JOINED_ROWS)
        rows += x.size if counts is None else int(counts.sum())
        return CountedPairs(self.most, _PairForm(cells, waiting, length + x.size, rows))

    def plus(self, other: CountedPairs) -> CountedPairs:
        """Return the pairs of both."""
        mine, theirs = self._form, other._form
        cells = mine.cells.union(theirs.cells).fitted(self.most)
        waiting = mine.waiting + theirs.waiting
        length, rows = mine.length + theirs.length, mine.rows + theirs.rows
        return CountedPairs(self.most, _PairForm(cells, waiting, length, rows))

    @property
    def size(self) -> int:
        """The number of rows."""
        return self._form.cells.size + self._form.rows

    def cells(self) -> PairCells:
        """Return the cells of all rows."""
        cells, waiting, _, _ = self._form
        if waiting:
            more = PairCells.of(*_joined(waiting)).at_level(cells.level)
            cells = cells.union(more).fitted(self.most)
            self._form = _PairForm(cells)
        return cells

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        held = [column for rows in self._form.waiting for column in rows if column is not None]
        return self._form.cells.nbytes + sum(column.nbytes for column in held)


class PairsField(StateField[CountedPairs]):
    """Counted pairs of numbers, without weights; the statistic's `max_pairs` is the limit."""

    def empty(self, of: Configured) -> CountedPairs:
        """Return no pairs."""
        return CountedPairs(of.config["max_pairs"], _PairForm(PairCells.empty()))

    def plus(self, mine: CountedPairs, other: CountedPairs) -> CountedPairs:
        """Return the pairs of both."""
        return mine.plus(other)

    def arrays(self, value: CountedPairs) -> dict[str, Array]:
        """Return the level, both axes (without ids at level 0), pair codes, and counts."""
        cells = value.cells()
        none = np.empty(0, np.int64)
        return {
            "level": np.array([cells.level], np.int64),
            "x_cells": cells.x.ids if cells.level else none,
            "x_values": cells.x.values,
            "y_cells": cells.y.ids if cells.level else none,
            "y_values": cells.y.values,
            "pairs": cells.codes,
            "counts": cells.counts,
        }

    def taken(self, arrays: Arrays, of: Configured) -> CountedPairs:
        """Return the pairs after checking that the cells are canonical."""
        most = of.config["max_pairs"]
        return CountedPairs(most, _PairForm(_read_cells(arrays, most)))

    def nbytes(self, value: CountedPairs) -> int:
        """Bytes held now."""
        return value.nbytes

    def minus(self, value: CountedPairs, other: CountedPairs) -> CountedPairs:
        """Return the difference; requires that every distinct pair has its own cell (level 0)."""
        cells, theirs = value.cells(), other.cells()
        if cells.level:
            raise IncompatibleMetricsError(
                f"past {value.most} distinct pairs, pairs share cells and cannot be "
                "subtracted: merge the states to keep instead"
            )
        left = None if theirs.level else cells.without(theirs)
        if left is None:
            raise not_among("some pairs of numbers are not in this state")
        return CountedPairs(value.most, _PairForm(left))


class PairHistogram(Statistic):
    """Count of each distinct pair (y_true, y_pred), or of each pair of cells beyond `max_pairs`.

    Each distinct pair has its own cell while there are at most `max_pairs`. Beyond that, both
    coordinates are binned into the cells ``key >> level`` of
    :mod:`streammetrics.core.arithmetic.keys`, at the lowest level at which the number of occupied
    pairs of cells is within the limit. A cell of one coordinate keeps its value while it holds only
    one. The number of occupied pairs never decreases with more data and never increases with the
    level, so the level of a part never exceeds that of the whole: the state is a function of the
    multiset of rows.

    Memory: 16 bytes a pair, up to 16 bytes a cell of either coordinate, and 16 bytes for each row
    not counted yet, of which there are up to `max_pairs`; counting takes some 200 bytes for each
    pair and row. Cost: about 120 ns a row at level 0, otherwise 200 to 350 ns, all of it sorting.
    """

    max_pairs: MaxPairs = MAX_PAIRS
    nan_policy: NanPolicy = "raise"

    takes_counts = True

    held = PairsField(inline=True)

    @property
    def schema(self) -> Schema:
        """Two numeric columns, of which only the order is used."""
        fields = Numbers("y_true", ordered=True), Numbers("y_pred", ordered=True)
        return Schema(fields, self.nan_policy, unweighted="rank correlations")

    def update(self, *columns: Floats, weight: Ints | None) -> None:
        """Append rows; they are counted once enough are pending, or when the state is read."""
        x, y = columns
        own = None if weight is None else weight.copy()
        self.held = self.held.taking(x.copy(), y.copy(), own)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.held.size

    def cells(self) -> PairCells:
        """Return the cells of all rows."""
        return self.held.cells()

    @property
    def exact(self) -> bool:
        """Whether every distinct pair has a cell of its own."""
        return self.cells().level == 0


def _read_cells(arrays: Arrays, max_pairs: int) -> PairCells:
    if set(arrays) != _NAMES:
        raise StateFormatError(f"expected the arrays of pairs, got {sorted(arrays)}")
    levels = take_array(arrays, "level", "int64").tolist()
    if len(levels) != 1 or not 0 <= levels[0] <= MAX_LEVEL:
        raise StateFormatError(f"invalid level of pairs: {levels}")
    level = levels[0]
    x, y = (_read_axis(arrays, name, level) for name in "xy")
    codes, counts = take_array(arrays, "pairs", "int64"), take_array(arrays, "counts", "int64")
    if codes.size != counts.size or codes.size > max_pairs:
        raise StateFormatError(f"{codes.size} pairs and {counts.size} counts, of {max_pairs}")
    if not (codes[1:] > codes[:-1]).all() or (codes.size and codes[0] < 0):
        raise StateFormatError("pairs are not in ascending order")
    if not (counts > 0).all() or counts.sum(dtype=np.float64) >= 2 * _MOST:
        raise StateFormatError("a count of pairs is not positive, or there are too many")
    cells = PairCells(level, x, y, codes, counts)
    for axis, places in ((x, cells.rows), (y, cells.columns)):
        if places.size and places.max() >= axis.ids.size:
            raise StateFormatError("a pair refers to a cell that does not exist")
        held = np.bincount(places, np.minimum(counts, 2), axis.ids.size)
        if not (held > np.isnan(axis.values)).all():
            raise StateFormatError("a cell of pairs holds fewer rows than values")
    if level:
        # One level below, a cell with several values becomes at most two cells, so a pair of cells
        # becomes at most four.
        halves = (1 + np.isnan(x.values))[cells.rows] * (1 + np.isnan(y.values))[cells.columns]
        if np.minimum(halves, counts).sum() <= max_pairs:
            raise StateFormatError(f"the pairs fit a level below {level}")
    return cells


def _read_axis(arrays: Arrays, name: str, level: int) -> Axis:
    ids = take_array(arrays, f"{name}_cells", "int64")
    values = take_array(arrays, f"{name}_values", "float64")
    mixed = np.isnan(values)
    plain = np.where(mixed, np.nan, values) + 0.0
    if plain.tobytes() != values.tobytes():
        raise StateFormatError("values of pairs contain -0.0 or a non-canonical nan")
    if ids.size != (values.size if level else 0):
        raise StateFormatError(f"{ids.size} cells and {values.size} values of pairs")
    axis = Axis(ids.copy(), plain) if level else Axis(plain, plain)
    if not (axis.ids[1:] > axis.ids[:-1]).all() or (mixed.any() and not level):
        raise StateFormatError("cells of pairs are not in ascending order")
    if level and ids.size:
        low, high = cell_id_range(level)
        if not low <= ids[0] <= ids[-1] <= high:
            raise StateFormatError("a cell of pairs is outside the range of float64")
        first, last = cell_edges(ids[mixed], level)
        if (cell_ids(plain[~mixed], level) != ids[~mixed]).any() or not (first < last).all():
            raise StateFormatError("the values of a cell of pairs are not in its range")
    return axis


@dataclass(frozen=True)
class Seen(Condition):
    """Condition that every event is 0 or 1."""

    def check(self, batch: Batch, missing: Bools | None) -> None:
        """Raise if an event is neither 0 nor 1."""
        event = batch.numbers("event")
        wrong = (event != 0) & (event != 1)
        reject_present(batch.title("event"), "is neither 0 nor 1", wrong, missing, event)


class SurvivalPairs(Statistic):
    """Counts of the distinct pairs (time, score), separately for events and censored rows.

    Each of the two tables is as in `PairHistogram`, with up to `max_pairs` pairs.
    """

    max_pairs: MaxPairs = MAX_PAIRS
    nan_policy: NanPolicy = "raise"

    takes_counts = True

    events = PairsField()
    censored = PairsField()

    @property
    def schema(self) -> Schema:
        """A non-negative time, an event indicator (0 or 1), and a score."""
        fields = (
            Numbers("time", low=0.0),
            Numbers("event"),
            Numbers("score", ordered=True),
        )
        return Schema(fields, self.nan_policy, "concordance indices", (Seen(),))

    def update(self, *columns: Floats, weight: Ints | None) -> None:
        """Append rows."""
        time, event, score = columns
        seen = event == 1
        counts = (None, None) if weight is None else (weight[seen], weight[~seen])
        self.events = self.events.taking(time[seen], score[seen], counts[0])
        self.censored = self.censored.taking(time[~seen], score[~seen], counts[1])
