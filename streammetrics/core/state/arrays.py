"""Arrays of a state by name: nested, parted, and taken with checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from streammetrics.core.errors import StateFormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


class Stack(NamedTuple):
    """The same array of many states: what each holds, one after the other, and its shape."""

    data: NDArray[Any]  # flat
    shapes: NDArray[np.int64]  # (n, d)

    @classmethod
    def equal(cls, data: NDArray[Any], shape: tuple[int, ...]) -> Self:
        """Return the stack of arrays ``(n, ...)`` that all have a shape."""
        shapes = np.empty((len(data), len(shape)), np.int64)
        shapes[:] = shape
        return cls(data.reshape(-1), shapes)


def take_array(
    arrays: Mapping[str, NDArray[Any]], name: str, dtype: str, ndim: int = 1
) -> NDArray[Any]:
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


def nested(name: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a part of a state, as arrays of the whole: ``"name/key"``."""
    return {f"{name}/{key}": array for key, array in arrays.items()}


def parted(arrays: Mapping[str, NDArray[Any]]) -> dict[str, dict[str, NDArray[Any]]]:
    """Return all that `nested` made of the parts of a state, by their names."""
    parts: dict[str, dict[str, NDArray[Any]]] = {}
    for name, array in arrays.items():
        head, _, key = name.partition("/")
        parts.setdefault(head, {})[key] = array
    return parts


def part(arrays: Mapping[str, NDArray[Any]], name: str) -> dict[str, NDArray[Any]]:
    """Return what `nested` made of a part of a state."""
    prefix = f"{name}/"
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def same(arrays: Mapping[str, NDArray[Any]], others: Mapping[str, NDArray[Any]]) -> bool:
    """Whether two states have the same arrays, to the byte."""
    return arrays.keys() == others.keys() and all(
        (array.dtype, array.shape) == (others[name].dtype, others[name].shape)
        and array.tobytes() == others[name].tobytes()
        for name, array in arrays.items()
    )
