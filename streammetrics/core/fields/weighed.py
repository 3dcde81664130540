"""Histograms of rows that may have weights, and beside them wider ones of the weights' squares.

A row of weight w varies by w², so how sure a value is takes Σ w² where rows are. It takes it only
roughly there: squares are held in at most 2**12 cells, however many the scores have, and only from
the first row on that does not weigh one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.errors import StateFormatError
from streammetrics.core.field import StateField, not_among
from streammetrics.core.fields.histograms import ColumnHistograms, Histograms
from streammetrics.core.fields.restoring import split_squares
from streammetrics.core.state.arrays import nested, take_array

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.arithmetic.histogram import DyadicHistogram
    from streammetrics.core.configured import Configured
    from streammetrics.core.types import Array, Arrays, Floats

    # Scores, codes, weights and tails.
    Added = tuple[Floats, NDArray[np.uint8] | None, Floats | None, Floats | None]

CELLS = 1 << 12  # of squares: what rows of neighbouring cells add differs by little
_LEAST, _MOST = 2.0**-400, 2.0**400  # weights whose squares are sums of two float64


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
        if not all(column.plain for column in columns) or not _LEAST < weight < _MOST:
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


def _places(column: DyadicHistogram) -> list[object]:
    """Return where there are rows of each class."""
    blocks = [(low.tolist(), (counts > 0).tolist()) for low, _, _, counts in column.cells()]
    return [column.level, blocks]


def _can_be_squared(weight: Floats) -> bool:
    return bool(weight.min() > _LEAST and weight.max() < _MOST)


def _add_squares(
    column: DyadicHistogram, scores: Floats, codes: NDArray[np.uint8] | None, weight: Floats | None
) -> None:
    """Add the squares of weights."""
    if weight is None:
        column.add(scores, codes)
        return
    column.add(scores, codes, np.broadcast_to(weight[:, None], (weight.size, 2)))
