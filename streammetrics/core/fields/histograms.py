"""Sorted histograms as fields, with squares of weights."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import numpy as np

from streammetrics.core.arithmetic.histogram import SortedHistogram
from streammetrics.core.columns.nested import within
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.field import StateField, not_among
from streammetrics.core.fields.weights import split_squares
from streammetrics.core.kernels import kernels
from streammetrics.core.state.arrays import nested, take_array, take_sizes
from streammetrics.core.state.arrays import parted as parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.configured import Configured
    from streammetrics.core.types import Array, Arrays, Floats, Ints, Places

    Added = tuple[Floats, NDArray[np.uint8] | None, Floats | None, Floats | None]


# One for each column of numbers, all of the same rows.
ColumnHistograms: TypeAlias = tuple[SortedHistogram, ...]

_MOST = (1 << 20) - 1


class Histograms(StateField[ColumnHistograms]):
    """A `SortedHistogram` for each column, as many as rows turn out to have; none without rows.

    Args:
        cells: The budget of each, by the parameters of the statistic.
        classes: 1 for plain values, 2 for scores with a label.
        of: What a column is, for messages.
        inline: As of every field.

    Reading a histogram may change the form it is held in; rows are added to `forks` only.
    """

    def __init__(
        self, cells: Callable[[Any], int], classes: int, of: str, *, inline: bool = False
    ) -> None:
        super().__init__(inline=inline)
        self._cells, self._classes, self._of = cells, classes, of

    def empty(self, of: Configured) -> ColumnHistograms:  # noqa: ARG002 - nothing depends on it
        """Return no histogram."""
        return ()

    def forks(self, value: ColumnHistograms, width: int, of: Configured) -> ColumnHistograms:
        """Return as many histograms that may be added to, of the same rows."""
        if not value:
            return tuple([SortedHistogram(self._cells(of), self._classes) for _ in range(width)])
        self._check_width(value, width)
        return tuple([histogram.fork() for histogram in value])

    def _check_width(self, value: ColumnHistograms, width: int) -> None:
        if len(value) != width:
            raise IncompatibleMetricsError(f"{width} {self._of} cannot join {len(value)}")

    def plus(self, mine: ColumnHistograms, other: ColumnHistograms) -> ColumnHistograms:
        """Return the rows of both."""
        return self.merged(mine, [other])

    def merged(
        self, mine: ColumnHistograms, others: Sequence[ColumnHistograms]
    ) -> ColumnHistograms:
        """Return the rows of all: histograms are merged at once."""
        seen = [value for value in (mine, *others) if value]
        if not seen:
            return ()
        first, *rest = seen
        for other in rest:
            self._check_width(first, len(other))
        merged = tuple([histogram.fork() for histogram in first])
        for histogram, *more in zip(merged, *rest, strict=True):
            histogram.merge(*more)
        return merged

    def arrays(self, value: ColumnHistograms) -> dict[str, Array]:
        """Return the number of histograms as ``width``, and the arrays of each."""
        return self.headed("width", np.array([len(value)], np.int64), value)

    def headed(self, name: str, head: Ints, value: ColumnHistograms) -> dict[str, Array]:
        """Return an array that begins with the number of histograms, and the arrays of each."""
        arrays: dict[str, Array] = {name: head}
        for index, histogram in enumerate(value):
            arrays |= nested(str(index), histogram.arrays())
        return arrays

    def taken(self, arrays: Arrays, of: Configured) -> ColumnHistograms:
        """Return the histograms, each of them checked."""
        return self.taken_headed("width", 1, arrays, of)[1]

    def taken_headed(
        self, name: str, size: int, arrays: Arrays, of: Configured
    ) -> tuple[list[int], ColumnHistograms]:
        """Return the array at the head, which is of that size, and the histograms."""
        parts = parts_of({key: array for key, array in arrays.items() if key != name})
        head = arrays.get(name)
        if head is None or head.dtype != np.int64 or head.shape != (size,):
            raise StateFormatError(f"the array {name!r} does not say how many histograms there are")
        count = int(head[0])
        if count != len(parts) or count > _MOST or parts.keys() != set(map(str, range(count))):
            raise StateFormatError(
                f"the number of {self._of} is said to be {count}, and there are the arrays "
                f"{sorted(arrays)}"
            )
        cells, classes = self._cells(of), self._classes
        histograms = [
            SortedHistogram.from_arrays(cells, classes, parts[str(k)]) for k in range(count)
        ]
        return head.tolist(), tuple(histograms)

    def nbytes(self, value: ColumnHistograms) -> int:
        """Bytes held now."""
        return sum(histogram.nbytes for histogram in value)

    def groups_arrays(self, value: Sequence[ColumnHistograms], size: int) -> dict[str, Array]:  # noqa: ARG002 - the values say it
        """Return how many histograms each group has, and the arrays of all."""
        widths = np.array([len(columns) for columns in value], np.int64)
        every = [histogram for columns in value for histogram in columns]
        return {"widths": widths, **SortedHistogram.arrays_of_all(every)}

    def groups_taken(
        self, arrays: Arrays, size: int, of: Configured
    ) -> tuple[ColumnHistograms, ...]:
        """Return the histograms of every group, each of them checked."""
        own = {key: array for key, array in arrays.items() if key != "widths"}
        total = len(take_array(own, "plain", "bool"))
        widths = take_sizes(arrays, "widths", size, total)
        found = SortedHistogram.all_of_arrays(self._cells(of), self._classes, own, total)
        every = iter(found)
        return tuple([tuple(islice(every, width)) for width in widths.tolist()])

    def scaled(self, value: ColumnHistograms, weight: float) -> ColumnHistograms:
        """Return the same rows with as many times the weight."""
        return tuple([histogram.scaled(weight) for histogram in value])

    def minus(self, value: ColumnHistograms, other: ColumnHistograms) -> ColumnHistograms:
        """Return what is left; only histograms within their budget can tell."""
        if not other:
            return value
        self._check_width(value, len(other))
        left = [mine.minus(theirs) for mine, theirs in zip(value, other, strict=True)]
        return tuple(left) if any(any(histogram.totals()) for histogram in left) else ()


class GroupedHistograms(NamedTuple):
    """A histogram of each group that has rows, in which every score has a cell of its own.

    The rows weigh one each, and are fewer than 2**31.

    Attributes:
        max_cells: The budget of each.
        starts: Where the cells of each group begin, and where the last ones end.
        scores: Ascending in each group (cells,).
        counts: How many rows of each class a cell holds (cells, classes).
    """

    max_cells: int
    starts: Places
    scores: Floats
    counts: Array

    @classmethod
    def none(cls, max_cells: int, classes: int, size: int) -> Self:
        """Return those of groups without rows."""
        counts = np.empty((0, classes), np.int32)
        return cls(max_cells, np.zeros(size + 1, np.intp), np.empty(0), counts)

    @classmethod
    def of_rows(
        cls, max_cells: int, n: int, pieces: Iterable[tuple[Places, Any, Array | None]]
    ) -> Self | None:
        """Return those of `n` rows, of which classes and scores come as `by_sorted_group` has them.

        ``None`` where they have weights, several scores or tails, or one group may have more than
        `max_cells` scores.
        """
        cells, counts, start = np.empty(n), np.empty((n, 2), np.int32), 0
        starts: list[Places] = []
        sizes: list[Places] = []
        for ends, (codes, scores), weight in pieces:
            size = np.diff(ends)
            plain = weight is None and isinstance(scores, np.ndarray) and scores.ndim == 1
            if not plain or n >= 1 << 31 or size.max(initial=0) > max_cells:
                return None
            labels, every = codes.view(np.uint8), ends.tolist()
            to_cells, to_counts = (out[start : start + len(scores)] for out in (cells, counts))
            for group in np.flatnonzero(size).tolist():
                part = slice(every[group], every[group + 1])
                given = (scores[part], labels[part], None, None, max_cells, 0, None)
                of_group = to_cells[part], to_counts[part], 0, 1
                _, size[group], _ = kernels.cells_count(*given, *of_group)
            starts.append(ends)
            sizes.append(size)
            start += len(scores)
        found = cls(max_cells, np.sum(starts, axis=0), cells, counts)
        return found._packed(np.sum(sizes, axis=0))

    def _packed(self, sizes: Places) -> Self:
        """Return the first cells of each group, so many."""
        if int(sizes.sum()) == len(self.scores):
            return self
        kept = within(self.starts[:-1], sizes)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return type(self)(self.max_cells, starts, self.scores[kept], self.counts[kept])

    def at(self, group: int) -> ColumnHistograms:
        """Return the histogram of a group, none where it has no rows."""
        part = slice(self.starts[group], self.starts[group + 1])
        if part.start == part.stop:
            return ()
        scores, counts = self.scores[part], self.counts[part]
        return (SortedHistogram.of_level_0(self.max_cells, scores, counts),)

    def moved(self, places: Places, size: int) -> Self | None:
        """Return `size` groups, of which ``places[i]`` is group ``i``, and -1 none.

        ``None`` where two with rows go to one place.
        """
        sizes = np.diff(self.starts)
        kept = np.flatnonzero((places >= 0) & (sizes > 0))
        to = np.zeros(size, np.intp)
        to[places[kept]] = kept
        moved = np.zeros(size, np.intp)
        moved[places[kept]] = sizes[kept]
        if np.count_nonzero(moved) < kept.size:
            return None
        rows = within(self.starts[to], moved)
        starts = np.concatenate([[0], np.cumsum(moved)])
        return type(self)(self.max_cells, starts, self.scores[rows], self.counts[rows])

    def plus(self, other: Self) -> Self | None:
        """Return the rows of both; ``None`` where a group may need more than `max_cells` cells."""
        if not len(self.scores) or not len(other.scores):
            return self if len(self.scores) else other
        if int(self.counts.sum()) + int(other.counts.sum()) >= 1 << 31:
            return None
        mine, theirs = np.diff(self.starts), np.diff(other.starts)
        sizes = mine + theirs
        starts = np.concatenate([[0], np.cumsum(sizes)])
        n, classes = int(starts[-1]), self.counts.shape[1]
        counts = np.empty((n, classes), np.int32)
        both = type(self)(self.max_cells, starts, np.empty(n), counts)
        for part, has, others in ((self, mine, theirs), (other, theirs, mine)):
            alone = np.flatnonzero((has > 0) & (others == 0))
            to, rows = (within(at[alone], has[alone]) for at in (starts, part.starts))
            both.scores[to], both.counts[to] = part.scores[rows], part.counts[rows]
        for group in np.flatnonzero((mine > 0) & (theirs > 0)).tolist():
            places = (self.starts, other.starts, starts)
            one, two, at = (slice(each[group], each[group + 1]) for each in places)
            if at.stop - at.start > self.max_cells:
                return None
            _, sizes[group], _ = kernels.cells_merge(
                *(0, None, self.scores[one], self.counts[one], 0),
                *(None, other.scores[two], other.counts[two], 0),
                *(self.max_cells, None, both.scores[at], both.counts[at]),
            )
        return both._packed(sizes)

    def areas(self) -> tuple[Ints, Ints, Ints]:
        """Return twice the pairs of a negative and a higher positive row in each group.

        Beside are the negatives and the positives, whose product is to be below 2**62.
        """
        sums, ends = np.zeros((3, len(self.starts) - 1), np.int64), self.starts.tolist()
        seen = np.flatnonzero(np.diff(self.starts))
        for group in seen.tolist():
            part = slice(ends[group], ends[group + 1])
            sums[0, group], _ = kernels.cells_area(None, self.counts[part])
        if seen.size:  # both classes at once, as each is below 2**31
            both = np.add.reduceat(self.counts.view(np.int64).reshape(-1), self.starts[seen])
            sums[1:, seen] = both.view(np.int32).reshape(-1, 2).T
        return sums[0], sums[1], sums[2]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.starts.nbytes + self.scores.nbytes + self.counts.nbytes


CELLS = 1 << 12  # of squares: what rows of neighbouring cells add differs by little
_LIGHTEST, _HEAVIEST = 2.0**-400, 2.0**400  # weights whose squares are sums of two float64


class Weighed(NamedTuple):
    """Histograms of weights, and of their squares: ``None`` where these are not held.

    Then every row weighs one, or it is not `known` what they weigh.
    """

    columns: ColumnHistograms = ()
    squares: ColumnHistograms | None = None
    known: bool = True

    def of_ones(self, ones: bool) -> Weighed:
        """Return the value, which was read, told whether every row weighs one."""
        known = self.squares is not None or self.known == ones
        return self if known else self._replace(known=ones)


class WeighedHistograms(StateField[Weighed]):
    """As `Histograms`, with the squares of weights.

    They are not known of states that were written without, nor of integers beyond 2**53 and
    weights beyond 2**±400.
    """

    def __init__(
        self, cells: Callable[[Any], int], classes: int, of: str, *, inline: bool = False
    ) -> None:
        super().__init__(inline=inline)
        self.columns = Histograms(cells, classes, of)
        self._squares = Histograms(lambda of: min(cells(of), CELLS), classes, of)

    def empty(self, of: Configured) -> Weighed:  # noqa: ARG002 - nothing depends on it
        """Return no histogram."""
        return Weighed()

    def added(self, value: Weighed, rows: Sequence[Added], of: Configured) -> Weighed:
        """Return the value after rows, of which those of each column are given."""
        columns = self.columns.forks(value.columns, len(rows), of)
        for column, (scores, codes, weight, tails) in zip(columns, rows, strict=True):
            if scores.size:
                column.add(scores, codes, weight, tails)
        weights = [weight for _, _, weight, _ in rows if weight is not None and weight.size]
        ones = all((weight == 1.0).all() for weight in weights)
        if not value.known or (value.squares is None and ones):
            return Weighed(columns, None, value.known)
        if not all(column.plain for column in columns) or not all(map(_can_be_squared, weights)):
            return Weighed(columns, None, known=False)
        squares = self._squares.forks(_squared(value), len(rows), of)
        for column, (scores, codes, weight, _) in zip(squares, rows, strict=True):
            if scores.size:
                _add_squares(column, scores, codes, None if ones else weight)
        return Weighed(columns, squares)

    def plus(self, mine: Weighed, other: Weighed) -> Weighed:
        """Return the rows of both."""
        return self.merged(mine, [other])

    def merged(self, mine: Weighed, others: Sequence[Weighed]) -> Weighed:
        """Return the rows of all."""
        every = [mine, *others]
        columns = self.columns.merged(mine.columns, [other.columns for other in others])
        known = all(value.known for value in every)
        if not known or all(value.squares is None for value in every):
            return Weighed(columns, None, known)
        if not all(column.plain for column in columns):
            return Weighed(columns, None, known=False)
        first, *rest = map(_squared, every)
        return Weighed(columns, self._squares.merged(first, rest))

    def arrays(self, value: Weighed) -> dict[str, Array]:
        """Return the arrays of the histograms, and of those of squares where these are held."""
        return self.columns.arrays(value.columns) | self.of_squares(value)

    def of_squares(self, value: Weighed) -> dict[str, Array]:
        """Return the arrays of the histograms of squares, none where these are not held."""
        arrays = {} if value.squares is None else self._squares.arrays(value.squares)
        return nested("squares", arrays)

    def taken(self, arrays: Arrays, of: Configured) -> Weighed:
        """Return the histograms, each of them checked."""
        own, squares = split_squares(arrays)
        return self.with_squares(self.columns.taken(own, of), squares, of)

    def with_squares(self, columns: ColumnHistograms, arrays: Arrays, of: Configured) -> Weighed:
        """Return histograms, and those of squares of the `arrays`, which must be in their cells."""
        if not arrays:
            return Weighed(columns)
        return self._beside(columns, self._squares.taken(arrays, of))

    def _beside(self, columns: ColumnHistograms, squares: ColumnHistograms) -> Weighed:
        places = [[_places(each) for each in _narrow(side)] for side in (columns, squares)]
        if not columns or places[0] != places[1]:
            raise StateFormatError("the squares of weights are not where the weights are")
        return Weighed(columns, squares)

    def groups_arrays(self, value: Sequence[Weighed], size: int) -> dict[str, Array]:
        """Return the arrays of the histograms, and of those of squares where these are held."""
        there = np.array([each.squares is not None for each in value], np.bool_)
        squares = [each.squares for each in value if each.squares is not None]
        columns = self.columns.groups_arrays([each.columns for each in value], size)
        if not squares:
            return columns
        held = {"there": there, **self._squares.groups_arrays(squares, len(squares))}
        return columns | nested("squares", held)

    def groups_taken(self, arrays: Arrays, size: int, of: Configured) -> tuple[Weighed, ...]:
        """Return the histograms of every group, each of them checked."""
        own, held = split_squares(arrays)
        columns = self.columns.groups_taken(own, size, of)
        if not held:
            return tuple(map(Weighed, columns))
        there = take_array(held, "there", "bool")
        if there.shape != (size,) or not there.any():
            raise StateFormatError("the squares of weights do not say whose they are")
        del held["there"]
        squares = iter(self._squares.groups_taken(held, int(np.count_nonzero(there)), of))
        return tuple(
            [
                self._beside(mine, next(squares)) if has else Weighed(mine)
                for mine, has in zip(columns, there.tolist(), strict=True)
            ]
        )

    def nbytes(self, value: Weighed) -> int:
        """Bytes held now."""
        return self.columns.nbytes(value.columns) + self.columns.nbytes(value.squares or ())

    def scaled(self, value: Weighed, weight: float) -> Weighed:
        """Return the same rows with as many times the weight."""
        if weight == 1:
            return value
        columns = self.columns.scaled(value.columns, weight)
        if not value.known or not columns:
            return Weighed(columns, None, value.known)
        if not all(column.plain for column in columns) or not _LIGHTEST < weight < _HEAVIEST:
            return Weighed(columns, None, known=False)
        once = self._squares.scaled(_squared(value), weight)
        return Weighed(columns, self._squares.scaled(once, weight))

    def minus(self, value: Weighed, other: Weighed) -> Weighed:
        """Return what is left; only histograms within their budget can tell."""
        if not other.columns:
            return value
        left = self.columns.minus(value.columns, other.columns)
        known = value.known and other.known
        if not left or not known or value.squares is None:
            if left and known and other.squares is not None:
                raise not_among("no row here has a weight")
            return Weighed(left, None, known or not left)
        squares = self._squares.minus(value.squares, _squared(other))
        pairs = zip(squares, _narrow(left), strict=True)
        ones = all(one.is_same(other) for one, other in pairs)
        return Weighed(left, None if ones else squares)


def _squared(value: Weighed) -> ColumnHistograms:
    """Return the squares, which of rows of weight one are their weights."""
    return _narrow(value.columns) if value.squares is None else value.squares


def _narrow(columns: ColumnHistograms) -> ColumnHistograms:
    return tuple([column.narrowed(min(column.max_cells, CELLS)) for column in columns])


def _places(column: SortedHistogram) -> list[object]:
    """Return where there are rows of each class."""
    blocks = [(low.tolist(), (counts > 0).tolist()) for low, _, _, counts in column.cells()]
    return [column.level, blocks]


def _can_be_squared(weight: Floats) -> bool:
    return bool(weight.min() > _LIGHTEST and weight.max() < _HEAVIEST)


def _add_squares(
    column: SortedHistogram, scores: Floats, codes: NDArray[np.uint8] | None, weight: Floats | None
) -> None:
    """Add the squares of weights."""
    if weight is None:
        column.add(scores, codes)
        return
    column.add(scores, codes, weight[:, None])
