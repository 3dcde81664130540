"""States in columns: those whose arrays are alike stand array by array, one after the other.

All shards of a ledger have one configuration, so that their states have mostly the same arrays, of
other lengths. Those that do, and that saw rows of the same facts, are of one *kind*: for each array
of it there is one that holds the data of all its states, and the shapes where they are not equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.feeding.states import Feed
from streammetrics.core.state.arrays import Stack

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from streammetrics.core.types import Array, Arrays, Ints, Json, Places

Contents = tuple[
    tuple[Feed, ...], dict[str, "Array"]
]  # what a state knows of its rows, and its arrays

LAST = (1 << 63) - 1  # the largest count that stands in a column


class StateColumn(NamedTuple):
    """The same array of many states."""

    data: Array  # (n, *shape) where all have one shape, else flat
    shapes: Ints | None = None  # (n, d)
    ends: Ints | None = None  # (n,)

    @classmethod
    def of(cls, arrays: Sequence[Array]) -> StateColumn:
        """Return the column of arrays of one type and one number of dimensions."""
        first, n = arrays[0].shape, len(arrays)
        flat = np.concatenate([array.ravel() for array in arrays])
        if all(array.shape == first for array in arrays):
            return cls(flat.reshape(n, *first))
        return cls.shaped(flat, np.array([array.shape for array in arrays], np.int64))

    @classmethod
    def shaped(cls, flat: Array, shapes: Ints) -> StateColumn:
        """Return the column of the data and the shapes, in the one form that is written."""
        if (shapes == shapes[0]).all():
            return cls(flat.reshape(len(shapes), *shapes[0].tolist()))
        return cls(flat, shapes, np.cumsum(shapes.prod(axis=1)))

    def at(self, index: int) -> Array:
        """Return the array of one state."""
        if self.shapes is None or self.ends is None:
            return self.data[index, ...]
        start = self.ends[index - 1] if index else 0
        return self.data[start : self.ends[index]].reshape(self.shapes[index])

    def take(self, places: Places) -> StateColumn:
        """Return the column of some states."""
        if self.shapes is None or self.ends is None:
            return StateColumn(self.data[places])
        shapes, ends = self.shapes[places], self.ends[places]
        sizes = shapes.prod(axis=1)
        back = ends - np.cumsum(sizes)  # how far each was moved
        return self.shaped(self.data[np.repeat(back, sizes) + np.arange(sizes.sum())], shapes)

    @property
    def stack(self) -> Stack:
        """The column with the shape of each array, also where all have one."""
        if self.shapes is None:
            return Stack.equal(self.data, self.data.shape[1:])
        return Stack(self.data, self.shapes)

    @property
    def ndim(self) -> int:
        """Dimensions of the array of one state."""
        return self.data.ndim - 1 if self.shapes is None else self.shapes.shape[1]


class Kind(NamedTuple):
    """States of one kind: what each of their feeds is said to be, their counts and arrays."""

    said: tuple[Json, ...]  # for each feed its facts, and the counts that fit no column
    counts: Ints  # (n, feeds, 2): rows and rows left out
    columns: dict[str, StateColumn]

    @property
    def key(self) -> Hashable:
        """What is equal in states of one kind."""
        facts = tuple((_typed(facts), n, omitted) for facts, n, omitted in self.said)
        of = self.columns.items()
        return facts, tuple(_form(name, column.data, column.ndim) for name, column in sorted(of))

    def feeds(self, index: int) -> tuple[Feed, ...]:
        """Return what one state knows of the rows of each schema."""
        (feeds,) = self._replace(counts=self.counts[index : index + 1]).every_feeds()
        return feeds

    def every_feeds(self) -> list[tuple[Feed, ...]]:
        """Return what each state knows of the rows of each schema."""
        columns = []
        for (facts, far, out), counts in zip(self.said, self.counts.swapaxes(0, 1), strict=True):
            n, omitted = (
                side.tolist() if told is None else [told] * len(side)
                for told, side in zip((far, out), counts.T, strict=True)
            )
            columns.append([Feed(facts, *each) for each in zip(n, omitted, strict=True)])
        return list(zip(*columns, strict=True)) if columns else [()] * len(self.counts)

    def arrays(self, index: int) -> dict[str, Array]:
        """Return the arrays of one state."""
        return {name: column.at(index) for name, column in self.columns.items()}

    def take(self, places: Places) -> Kind:
        """Return some of the states, or these where they are all."""
        if np.array_equal(places, np.arange(len(self.counts))):
            return self
        columns = {name: column.take(places) for name, column in self.columns.items()}
        return Kind(self.said, self.counts[places], columns)


def facts_of(feeds: tuple[Feed, ...]) -> Hashable:
    """Return what is equal in the feeds of states of one kind."""
    return tuple([(_typed(facts), far(n), far(out)) for facts, n, out in feeds])


def key_of(feeds: tuple[Feed, ...], arrays: Arrays) -> Hashable:
    """Return what is equal in states of one kind."""
    return facts_of(feeds), tuple(
        [_form(name, array, array.ndim) for name, array in sorted(arrays.items())]
    )


def _typed(facts: Mapping[str, object]) -> Hashable:
    return tuple([(name, type(fact), fact) for name, fact in sorted(facts.items())])


def _form(name: str, array: Array, ndim: int) -> Hashable:
    return name, array.dtype.kind, array.dtype.itemsize, ndim


def far(count: int) -> int | None:
    """Return a count that fits no column, ``None`` where it does."""
    return count if count > LAST else None
