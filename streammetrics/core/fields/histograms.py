"""Sorted histograms as fields, with squares of weights."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import numpy as np

from streammetrics.core.arithmetic.cells import Cells, read_joined
from streammetrics.core.arithmetic.histogram import SortedHistogram
from streammetrics.core.columns.nested import within
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.field import StateField, not_among
from streammetrics.core.fields.weights import have_weights, split_squares
from streammetrics.core.kernels import kernels
from streammetrics.core.state.arrays import (
    laid_out,
    nested,
    part,
    take_array,
    take_sizes,
    taken_apart,
)
from streammetrics.core.state.arrays import parted as parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.configured import Configured
    from streammetrics.core.types import Array, Arrays, Floats, Ints, Places

    # Levels, how many cells groups have, and ids, scores and counts of these.
    _Room = tuple[Ints, Ints, Ints | None, Floats, Array]
    Added = tuple[Floats, NDArray[np.uint8] | None, Floats | None, Floats | None]


# One for each column of numbers, all of the same rows.
ColumnHistograms: TypeAlias = tuple[SortedHistogram, ...]

_MOST = (1 << 20) - 1
_MOST_ROWS = 1 << 22  # of a group that a kernel counts at once


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

    def empty(self, of: Configured) -> ColumnHistograms:
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
            raise IncompatibleMetricsError(f"expected {len(value)} {self._of}, got {width}")

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
            raise StateFormatError(f"the array {name!r} does not give the number of histograms")
        count = int(head[0])
        if count != len(parts) or count > _MOST or parts.keys() != set(map(str, range(count))):
            raise StateFormatError(f"expected arrays of {count} {self._of}, got {sorted(arrays)}")
        cells, classes = self._cells(of), self._classes
        histograms = [
            SortedHistogram.from_arrays(cells, classes, parts[str(k)]) for k in range(count)
        ]
        return head.tolist(), tuple(histograms)

    def nbytes(self, value: ColumnHistograms) -> int:
        """Bytes held now."""
        return sum(histogram.nbytes for histogram in value)

    def groups_arrays(self, value: Sequence[ColumnHistograms], size: int) -> dict[str, Array]:
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

    def grouped_of(self, arrays: Arrays, size: int, of: Configured) -> GroupedHistograms | None:
        """Return the same as one object; ``None`` if it is not possible, or a check fails."""
        return GroupedHistograms.taken_from(self._cells(of), self._classes, arrays, size)

    def no_groups_of(self, of: Configured, size: int) -> GroupedHistograms:
        """Return the histograms of groups without rows."""
        return GroupedHistograms.none(self._cells(of), self._classes, size)

    def scaled(self, value: ColumnHistograms, weight: float) -> ColumnHistograms:
        """Return the same rows with as many times the weight."""
        return tuple([histogram.scaled(weight) for histogram in value])

    def minus(self, value: ColumnHistograms, other: ColumnHistograms) -> ColumnHistograms:
        """Return what is left; only histograms within their budget can tell."""
        if not other:
            return value
        self._check_width(value, len(other))
        return tuple([mine.minus(theirs) for mine, theirs in zip(value, other, strict=True)])


class GroupedHistograms(NamedTuple):
    """The histograms of groups whose rows all weigh one; there are fewer than 2**31 rows.

    Attributes:
        max_cells: The budget of each histogram.
        starts: Where the cells of each group begin, and where the last ones end.
        levels: The level of each group (groups,).
        ids: The ids of cells above level 0; ``None`` if there are none.
        scores: The score of each cell, ascending in a group; NaN for several (cells,).
        counts: The number of rows of each class in a cell (cells, classes).
    """

    max_cells: int
    starts: Places
    levels: Ints
    ids: Ints | None
    scores: Floats
    counts: Array

    @classmethod
    def none(cls, max_cells: int, classes: int, size: int) -> Self:
        """Return the histograms of groups without rows."""
        counts = np.empty((0, classes), np.int32)
        starts, levels = np.zeros(size + 1, np.int64), np.zeros(size, np.int64)
        return cls(max_cells, starts, levels, None, np.empty(0), counts)

    @classmethod
    def of_rows(
        cls,
        max_cells: int,
        n: int,
        pieces: Iterable[tuple[Places, tuple[Array | None, object], Array | None]],
    ) -> Self | None:
        """Return the histograms of `n` rows in the pieces that `by_sorted_group` is given.

        ``None`` if rows have weights, several scores or tails.
        """
        parts: list[Self] = []
        for starts, (codes, scores), weight in pieces:
            plain = weight is None and isinstance(scores, np.ndarray) and scores.ndim == 1
            if not plain or n >= 1 << 31 or np.diff(starts).max(initial=0) > _MOST_ROWS:
                return None
            found = cls._with_room(max_cells, np.diff(starts), 1 if codes is None else 2)
            labels = None if codes is None else np.ascontiguousarray(codes).view(np.uint8)
            given = starts, np.ascontiguousarray(scores, np.float64), labels, max_cells
            levels, sizes, *cells = found
            total = kernels.segments_count(*given, levels, sizes, *cells)
            parts.append(cls._of(max_cells, found, total))
        if len(parts) == 1:
            return parts[0]
        # No group is in several pieces.
        sizes = np.sum([np.diff(part.starts) for part in parts], axis=0)
        levels = np.max([part.levels for part in parts], axis=0)
        ids = None
        if levels.any():
            ids = np.concatenate([_ids_of(part.ids, part.scores.size) for part in parts])
        scores, counts = (
            np.concatenate([part[place] for part in parts]) for place in (_SCORES, _COUNTS)
        )
        return cls(max_cells, _starts(sizes), levels, ids, scores, counts)

    @classmethod
    def of_columns(
        cls, max_cells: int, classes: int, every: Sequence[ColumnHistograms]
    ) -> Self | None:
        """Return the histograms of all groups; ``None`` if a group has several, or weights."""
        if any(len(columns) > 1 for columns in every):
            return None
        cells = [columns[0].plain_cells() if columns else None for columns in every]
        some = [one for one in cells if one is not None]
        if len(some) < sum(map(len, every)):
            return None
        none = np.empty((0, classes), np.int32)
        counts = np.concatenate([none, *(np.asarray(one.mass) for one in some)])
        if int(counts.sum()) >= 1 << 31:
            return None
        levels = np.array([0 if one is None else one.level for one in cells], np.int64)
        ids = None
        if levels.any():
            ids = np.concatenate([_ids_of(one.ids, one.size) for one in some])
        starts = _starts(np.array([0 if one is None else one.size for one in cells], np.int64))
        scores = np.concatenate([np.empty(0), *(one.scores for one in some)])
        return cls(max_cells, starts, levels, ids, scores, counts)

    @classmethod
    def taken_from(cls, max_cells: int, classes: int, arrays: Arrays, size: int) -> Self | None:
        """Return the histograms of what `Histograms.groups_arrays` returns.

        ``None`` if a group has several, or weights, or if a check fails; `Histograms.groups_taken`
        reports which.
        """
        widths, plain = take_array(arrays, "widths", "int64"), take_array(arrays, "plain", "bool")
        heads, others = ("widths", "plain"), part(arrays, "others")
        own = {k: a for k, a in arrays.items() if k not in heads and not k.startswith("others/")}
        found = read_joined(max_cells, classes, own)
        one_each = widths.shape == (size,) and set(widths.tolist()) <= {0, 1} and plain.all()
        if found is None or not one_each or not widths.sum() == len(plain) == len(found[0]):
            return None
        if int(found[-1].sum()) >= 1 << 31:
            return None
        taken_apart(others, 0)
        every = np.zeros((2, size), np.int64)  # levels and sizes
        every[:, widths > 0] = found[:2]
        ids, scores, counts = found[2:]
        return cls(max_cells, _starts(every[1]), every[0], ids, scores, counts)

    def arrays(self) -> dict[str, Array]:
        """Return what `Histograms.groups_arrays` returns for these histograms."""
        sizes = np.diff(self.starts)
        seen = sizes > 0
        past = np.repeat(self.levels > 0, sizes)
        return {
            "widths": seen.astype(np.int64),
            "plain": np.ones(np.count_nonzero(seen), np.bool_),
            "levels": self.levels[seen],
            "sizes": sizes[seen],
            "cells": np.empty(0, np.int64) if self.ids is None else self.ids[past],
            "scores": self.scores,
            "counts": self.counts.reshape(-1).astype(np.int64),
            **nested("others", laid_out([])),
        }

    @staticmethod
    def _with_room(max_cells: int, sizes: Ints, classes: int, *, past: bool = False) -> _Room:
        """Return arrays for the cells of groups of these sizes, some of them `past` level 0."""
        room = int(np.minimum(sizes, max_cells).sum())
        past = past or bool(sizes.max(initial=0) > max_cells)
        ids = np.empty(room, np.int64) if past else None
        counts = np.empty((room, classes), np.int32)
        zeros = np.zeros((2, sizes.size), np.int64)
        return zeros[0], zeros[1], ids, np.empty(room), counts

    @classmethod
    def _of(cls, max_cells: int, found: _Room, total: int) -> Self:
        """Return the histograms of arrays that hold `total` cells."""
        levels, sizes, ids, scores, counts = found
        if total < scores.size:
            scores, counts = scores[:total].copy(), counts[:total].copy()
            ids = None if ids is None else ids[:total].copy()
        return cls(max_cells, _starts(sizes), levels, ids if levels.any() else None, scores, counts)

    def at(self, group: int) -> Weighed:
        """Return the histogram of a group, none if it has no rows."""
        part = slice(self.starts[group], self.starts[group + 1])
        if part.start == part.stop:
            return Weighed()
        level = int(self.levels[group])
        ids = None if self.ids is None or not level else self.ids[part]
        cells = Cells(level, ids, self.scores[part], self.counts[part])
        return Weighed((SortedHistogram.of_cells(self.max_cells, cells),))

    def taken(self, groups: Places) -> Self:
        """Return some of the groups, in any order; -1 is a group without rows."""
        sizes = np.diff(self.starts, append=self.starts[-1])[groups]  # the last one is empty
        rows = within(self.starts[groups], sizes)
        levels = np.append(self.levels, 0)[groups]
        ids = None if self.ids is None else self.ids[rows]
        cells = self.scores[rows], self.counts.take(rows, axis=0)
        return type(self)(self.max_cells, _starts(sizes), levels, ids, *cells)

    def regrouped(self, places: Places, size: int) -> Self:
        """Return `size` groups: group ``i`` is added to group ``places[i]``; -1 drops it."""
        groups = np.flatnonzero((places >= 0) & (np.diff(self.starts) > 0))
        groups = groups[np.argsort(places[groups], kind="stable")]
        mine, to = self, places[groups]
        if groups.size > 2 * np.unique(to).size and len(self.scores) > _LONG * groups.size:
            return self._folded(groups, to, size)
        while to.size and (to[1:] == to[:-1]).any():  # every second one is added to that before
            first = np.searchsorted(to, to)
            odd = (np.arange(to.size) - first) % 2 > 0
            others = np.full(to.size + 1, -1)
            others[np.flatnonzero(odd) - 1] = groups[odd]
            both = mine.taken(groups[~odd]).groups_plus(mine.taken(others[:-1][~odd]))
            assert both is not None  # there are as many rows as before
            mine, to = both, to[~odd]
            groups = np.arange(to.size)
        at = np.full(size, -1)
        at[to] = groups
        return mine.taken(at)

    def _folded(self, groups: Places, to: Places, size: int) -> Self:
        """Return `size` groups: many long histograms are merged at once, place by place."""
        every: list[ColumnHistograms] = [()] * size
        for run in np.split(np.arange(to.size), np.flatnonzero(np.diff(to)) + 1):
            (first,), *others = [self.at(group).columns for group in groups[run].tolist()]
            first.merge(*[other for (other,) in others])  # nobody else has it
            every[to[run[0]]] = (first,)
        found = self.of_columns(self.max_cells, self.counts.shape[1], every)
        assert found is not None  # there are as many rows as before
        return found

    def groups_plus(self, other: Self) -> Self | None:
        """Return the rows of both; ``None`` if there are too many."""
        if not len(self.scores) or not len(other.scores):
            return self if len(self.scores) else other
        if int(self.counts.sum()) + int(other.counts.sum()) >= 1 << 31:
            return None
        sizes = np.diff(self.starts) + np.diff(other.starts)
        past = self.ids is not None or other.ids is not None
        found = self._with_room(self.max_cells, sizes, self.counts.shape[1], past=past)
        levels, merged, *cells = found
        total = kernels.segments_merge(
            *(*self[1:], *other[1:], self.max_cells, levels, merged, *cells)
        )
        return self._of(self.max_cells, found, total)

    def areas(self) -> tuple[Ints, Ints, Ints]:
        """Return twice the pairs of a negative and a higher positive row in each group.

        Also returns the negatives and the positives, whose product must be below 2**62.
        """
        sums = np.zeros((3, len(self.starts) - 1), np.int64)
        kernels.segments_area(sums[0], sums[1], self.starts, self.scores, self.counts)
        sums[1] = 0
        seen = np.flatnonzero(np.diff(self.starts))
        if seen.size:  # both classes at once, as each is below 2**31
            both = np.add.reduceat(self.counts.view(np.int64).reshape(-1), self.starts[seen])
            sums[1:, seen] = both.view(np.int32).reshape(-1, 2).T
        return sums[0], sums[1], sums[2]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum([array.nbytes for array in self[1:] if isinstance(array, np.ndarray)])


_LONG = 64  # cells per histogram from which merging many at once is faster than in pairs
_SCORES, _COUNTS = 4, 5  # places of fields above


def _starts(sizes: Ints) -> Places:
    """Return where segments of these sizes begin and end."""
    starts = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def _ids_of(ids: Ints | None, size: int) -> Ints:
    return np.zeros(size, np.int64) if ids is None else ids


CELLS = 1 << 12  # of squares: what rows of neighbouring cells add differs by little
_LIGHTEST, _HEAVIEST = 2.0**-400, 2.0**400  # weights whose squares are sums of two float64


class Weighed(NamedTuple):
    """Histograms of weights, and of their squares: ``None`` where these are not held.

    Then every row weighs one, or it is not `known` what they weigh. Only fields that keep it say
    whether every weight is a `whole` number.
    """

    columns: ColumnHistograms = ()
    squares: ColumnHistograms | None = None
    known: bool = True
    whole: bool = True


class WeighedHistograms(StateField[Weighed]):
    """As `Histograms`, with the squares of weights; groups are `GroupedHistograms` if they can be.

    They are not known of integers beyond 2**53 and weights beyond 2**±400, which is written.
    """

    def __init__(
        self, cells: Callable[[Any], int], classes: int, of: str, *, inline: bool = False
    ) -> None:
        super().__init__(inline=inline)
        self.columns = Histograms(cells, classes, of)
        self._squares = Histograms(lambda of: min(cells(of), CELLS), classes, of)

    def empty(self, of: Configured) -> Weighed:
        """Return no histogram."""
        return Weighed()

    def added(self, value: Weighed, rows: Sequence[Added], of: Configured) -> Weighed:
        """Return the value after rows, of which those of each column are given."""
        columns = self.columns.forks(value.columns, len(rows), of)
        for column, (scores, codes, weight, tails) in zip(columns, rows, strict=True):
            if scores.size:
                column.add(scores, codes, weight, tails)
        weights = [weight for _, _, weight, _ in rows if have_weights(weight) and weight.size]
        ones = all((weight == 1.0).all() for weight in weights)
        if not value.known or (value.squares is None and ones):
            return Weighed(columns, None, value.known)
        if not all(column.plain for column in columns) or not all(
            weight.min() > _LIGHTEST and weight.max() < _HEAVIEST for weight in weights
        ):
            return Weighed(columns, None, known=False)
        squares = self._squares.forks(_squared(value), len(rows), of)
        for column, (scores, codes, weight, _) in zip(squares, rows, strict=True):
            if scores.size:
                if have_weights(weight):
                    weight = None if ones else weight[:, None]  # noqa: PLW2901 - for its square
                column.add(scores, codes, weight)
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
        """Return the arrays of the histograms of squares, none where every row weighs one."""
        if not value.known:
            return nested("squares", {"unknown": np.ones(1, np.bool_)})
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
        if "unknown" in arrays:
            shape = take_array(arrays, "unknown", "bool").shape
            if shape != (1,) or len(arrays) > 1 or not columns:
                raise StateFormatError("squared weights that are not known are in the state")
            return Weighed(columns, known=False)
        return self._beside(columns, self._squares.taken(arrays, of))

    def _beside(self, columns: ColumnHistograms, squares: ColumnHistograms) -> Weighed:
        places = [[_places(each) for each in _narrow(side)] for side in (columns, squares)]
        if not columns or places[0] != places[1]:
            raise StateFormatError("the squared weights are in other cells than the weights")
        return Weighed(columns, squares)

    def no_groups(self, of: Configured, size: int) -> GroupedHistograms:
        """Return no histograms."""
        return self.columns.no_groups_of(of, size)

    def groups_arrays(self, value: Any, size: int) -> dict[str, Array]:
        """Return the arrays of the histograms, and of those of squares where these are held."""
        if isinstance(value, GroupedHistograms):
            return value.arrays()
        squares = [each.squares for each in value if each.squares is not None]
        held: dict[str, Array] = {}
        if squares:
            held["there"] = np.array([each.squares is not None for each in value], np.bool_)
            held |= self._squares.groups_arrays(squares, len(squares))
        if not all(each.known for each in value):
            held["unknown"] = np.array([not each.known for each in value], np.bool_)
        columns = self.columns.groups_arrays([each.columns for each in value], size)
        return columns | nested("squares", held)

    def groups_taken(self, arrays: Arrays, size: int, of: Configured) -> object:
        """Return the histograms of every group, each of them checked."""
        own, held = split_squares(arrays)
        if not held and (found := self.columns.grouped_of(own, size, of)) is not None:
            return found
        columns = self.columns.groups_taken(own, size, of)
        if not held:
            return tuple(map(Weighed, columns))
        there, unknown = (_marked(held, name, size) for name in ("there", "unknown"))
        seen = np.array([bool(each) for each in columns], np.bool_)
        if (unknown & (there | ~seen)).any():
            raise StateFormatError("squared weights that are not known are in the state")
        squares: Iterator[Any] = iter(())
        if there.any():
            squares = iter(self._squares.groups_taken(held, int(np.count_nonzero(there)), of))
        elif held:
            raise StateFormatError("the squared weights do not name their groups")
        return tuple(
            [
                self._beside(mine, next(squares)) if has else Weighed(mine, known=not lost)
                for mine, has, lost in zip(columns, there.tolist(), unknown.tolist(), strict=True)
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
                raise not_among("no row in this state has a weight")
            return Weighed(left, None, known or not left)
        squares = self._squares.minus(value.squares, _squared(other))
        pairs = zip(squares, _narrow(left), strict=True)
        ones = all(one.is_same(other) for one, other in pairs)
        return Weighed(left, None if ones else squares)


def _marked(arrays: dict[str, Array], name: str, size: int) -> NDArray[np.bool_]:
    """Take the array that marks some groups, which is absent if there are none."""
    if name not in arrays:
        return np.zeros(size, np.bool_)
    marked = take_array(arrays, name, "bool")
    del arrays[name]
    if marked.shape != (size,) or not marked.any():
        raise StateFormatError("the squared weights do not name their groups")
    return marked


def _squared(value: Weighed) -> ColumnHistograms:
    """Return the squares, which of rows of weight one are their weights."""
    return _narrow(value.columns) if value.squares is None else value.squares


def _narrow(columns: ColumnHistograms) -> ColumnHistograms:
    return tuple([column.narrowed(min(column.max_cells, CELLS)) for column in columns])


def _places(column: SortedHistogram) -> list[object]:
    """Return where there are rows of each class."""
    blocks = [(low.tolist(), (counts > 0).tolist()) for low, _, _, counts in column.cells()]
    return [column.level, blocks]
