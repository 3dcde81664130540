"""Arrays of a state by name: nested, parted, and taken with checks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

import numpy as np

from streammetrics.core.columns.distinct import distinct
from streammetrics.core.counting import group_order
from streammetrics.core.errors import StateFormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from streammetrics.core.types import Array, Arrays, Ints, Places

T = TypeVar("T")

MOST_DIMENSIONS = 32  # of an array of a state
LONGEST_EMPTY = 1 << 16  # side of an array that holds nothing


class Stack(NamedTuple):
    """The same array of many states: what each holds, one after the other, and its shape."""

    data: Array  # flat
    shapes: Ints  # (n, d)

    @classmethod
    def equal(cls, data: Array, shape: tuple[int, ...]) -> Self:
        """Return the stack of arrays ``(n, ...)`` that all have a shape."""
        shapes = np.empty((len(data), len(shape)), np.int64)
        shapes[:] = shape
        return cls(data.reshape(-1), shapes)

    @classmethod
    def of(cls, parts: Sequence[Array], dtype: type[np.generic]) -> Self:
        """Return the stack of arrays of as many dimensions, brought to a type that holds them."""
        shapes = np.array([part.shape for part in parts], np.int64)
        return cls(np.concatenate([part.ravel() for part in parts], dtype=dtype), shapes)

    @property
    def starts(self) -> Ints:
        """Where each array begins."""
        sizes = self.shapes.prod(axis=1)
        starts: Ints = np.cumsum(sizes) - sizes
        return starts

    @property
    def first(self) -> Array:
        """The array of the first state."""
        shape = self.shapes[0].tolist()
        return self.data[: math.prod(shape)].reshape(shape)

    def take(self, places: Places, starts: Ints) -> Array:
        """Return some of the arrays, which have one shape, as one ``(m, ...)``."""
        shape = self.shapes[places[0]].tolist()
        if len(places) == len(self.shapes):
            return self.data.reshape(len(places), *shape)
        some: Array = self.data[starts[places, None] + np.arange(math.prod(shape))]
        return some.reshape(len(places), *shape)


def by_shapes(
    stacks: Mapping[str, Stack],
    n: int,
    taken: Callable[[dict[str, Array], int], Sequence[T]],
) -> list[T]:
    """Return what is made of `n` states, those whose arrays have the same shapes at once.

    `taken` makes it of their arrays, ``(m, ...)``, and of how many they are.
    """
    found: dict[int, T] = {}
    starts = {name: stack.starts for name, stack in stacks.items()}
    for places in _alike([stack.shapes for stack in stacks.values()], n):
        arrays = {name: stack.take(places, starts[name]) for name, stack in stacks.items()}
        found |= zip(places.tolist(), taken(arrays, len(places)), strict=True)
    return [found[place] for place in range(n)]


def _alike(shapes: Sequence[Ints], n: int) -> Iterator[Places]:
    """Yield the places of states whose arrays have the same shapes."""
    varied = [each for each in shapes if (each != each[0]).any()]
    if not varied:
        yield np.arange(n)
        return
    which, rows = distinct(np.concatenate(varied, axis=1))
    order, starts = group_order(which, len(rows))
    yield from np.split(order, starts[1:-1])


def take_array(arrays: Arrays, name: str, dtype: str, ndim: int = 1) -> Array:
    """Return one array of a state after checking its dtype and number of dimensions."""
    if name not in arrays:
        raise StateFormatError(f"the state lacks the array {name!r}")
    array = arrays[name]
    if array.dtype != dtype or array.ndim != ndim:
        raise StateFormatError(
            f"the array {name!r} is {array.dtype} with {array.ndim} dimensions, "
            f"not {dtype} with {ndim}"
        )
    return array


def nested(name: str, arrays: Arrays) -> dict[str, Array]:
    """Return the arrays of a part of a state, as arrays of the whole: ``"name/key"``."""
    return {f"{name}/{key}": array for key, array in arrays.items()}


def parted(arrays: Mapping[str, T]) -> dict[str, dict[str, T]]:
    """Return all that `nested` made of the parts of a state, by their names."""
    parts: dict[str, dict[str, T]] = {}
    for name, array in arrays.items():
        head, _, key = name.partition("/")
        parts.setdefault(head, {})[key] = array
    return parts


def part(arrays: Arrays, name: str) -> dict[str, Array]:
    """Return what `nested` made of a part of a state."""
    prefix = f"{name}/"
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def same(arrays: Arrays, others: Arrays) -> bool:
    """Whether two states have the same arrays, to the byte."""
    return arrays.keys() == others.keys() and all(
        (array.dtype, array.shape) == (others[name].dtype, others[name].shape)
        and array.tobytes() == others[name].tobytes()
        for name, array in arrays.items()
    )
