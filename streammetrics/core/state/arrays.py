"""Named arrays of a state: nesting, checked access, packing of many states into few arrays."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from streammetrics.core.errors import StateFormatError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streammetrics.core.types import Array, Arrays

T = TypeVar("T")

MOST_DIMENSIONS = 32  # most dimensions of an array
LONGEST_EMPTY = 1 << 16  # largest side of an array without elements

_NARROW = (np.dtype(np.int8), np.dtype(np.int16), np.dtype(np.int32))
_LIMITS = tuple([(narrow, 1 << 8 * narrow.itemsize - 1) for narrow in _NARROW])


def take_array(arrays: Arrays, name: str, dtype: str, ndim: int = 1) -> Array:
    """Return an array of a state after checking its dtype and number of dimensions."""
    if name not in arrays:
        raise StateFormatError(f"the state lacks the array {name!r}")
    array = arrays[name]
    if array.dtype != dtype or array.ndim != ndim:
        raise StateFormatError(
            f"the array {name!r} is {array.dtype} with {array.ndim} dimensions, "
            f"not {dtype} with {ndim}"
        )
    if dtype == "bool" and array.view(np.uint8).max(initial=0) > 1:
        raise StateFormatError(f"the array {name!r} holds bytes that are neither 0 nor 1")
    return array


def nested(name: str, arrays: Arrays) -> dict[str, Array]:
    """Prefix the names of a part's arrays with the name of the part: ``"name/key"``."""
    return {f"{name}/{key}": array for key, array in arrays.items()}


def parted(arrays: Mapping[str, T]) -> dict[str, dict[str, T]]:
    """Undo `nested`: return the arrays of each part, by its name."""
    parts: dict[str, dict[str, T]] = {}
    for name, array in arrays.items():
        head, _, key = name.partition("/")
        parts.setdefault(head, {})[key] = array
    return parts


def part(arrays: Arrays, name: str) -> dict[str, Array]:
    """Undo `nested` for one part: return its arrays."""
    prefix = f"{name}/"
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def same(arrays: Arrays, others: Arrays) -> bool:
    """Whether two states have the same arrays, byte for byte."""
    return arrays.keys() == others.keys() and all(
        (array.dtype, array.shape) == (others[name].dtype, others[name].shape)
        and array.tobytes() == others[name].tobytes()
        for name, array in arrays.items()
    )


# ---- arrays of many states ----


def laid_out(every: Sequence[Arrays]) -> dict[str, Array]:
    """Pack the arrays of many states; arrays of the same name and type are concatenated.

    >>> parts = laid_out([{"x": np.array([1, 2])}, {"x": np.array([3])}])
    >>> parts["0/values"].tolist(), parts["0/shapes"].tolist()
    ([1, 2, 3], [[2], [1]])
    """
    found: dict[tuple[str, str, int], list[tuple[int, Array]]] = {}
    for place, arrays in enumerate(every):
        for name, array in arrays.items():
            found.setdefault((name, array.dtype.str, array.ndim), []).append((place, array))
    entries = sorted(found)
    result = {"names": json_array([list(entry) for entry in entries])}
    for number, entry in enumerate(entries):
        places, parts = zip(*found[entry], strict=True)
        shapes = np.array([part.shape for part in parts], np.int64)
        result |= nested(
            str(number),
            {
                "values": np.concatenate([part.reshape(-1) for part in parts]),
                "places": np.array(places, np.int64),
                "shapes": shapes.reshape(len(parts), entry[2]),
            },
        )
    return result


def taken_apart(arrays: Arrays, size: int) -> list[dict[str, Array]]:
    """Undo `laid_out`: return the arrays of each of `size` states, or raise `StateFormatError`."""
    entries = json_of(take_array(arrays, "names", "uint8"))
    every: list[dict[str, Array]] = [{} for _ in range(size)]
    parts = parted({name: array for name, array in arrays.items() if name != "names"})
    if not isinstance(entries, list) or len(entries) != len(parts):
        raise StateFormatError("the arrays of groups do not fit their names")
    for number, entry in enumerate(entries):
        if not isinstance(entry, list) or [type(x) for x in entry] != [str, str, int]:
            raise StateFormatError("an array of groups has no name, type and dimensions")
        name, dtype, ndim = entry
        part = parts.get(str(number), {})
        places, shapes = take_array(part, "places", "int64"), take_array(part, "shapes", "int64", 2)
        values = _of_type(part.get("values"), dtype)
        if values is None or values.ndim != 1:
            raise StateFormatError(f"the arrays {name!r} of groups do not lie end to end")
        if shapes.shape != (places.size, ndim) or shapes.min(initial=0) < 0:
            raise StateFormatError(f"the arrays {name!r} of groups have no shapes")
        if places.size and not 0 <= places.min() <= places.max() < size:
            raise StateFormatError(f"an array {name!r} belongs to no group")
        start = 0
        for place, shape in zip(places.tolist(), shapes.tolist(), strict=True):
            end = start + math.prod(shape)
            if end > values.size or max(shape, default=0) > values.size + LONGEST_EMPTY:
                raise StateFormatError(f"the arrays {name!r} of groups are cut short")
            every[place][name] = values[start:end].reshape(shape)
            start = end
        if start != values.size:
            raise StateFormatError(f"there are values that belong to no array {name!r} of a group")
    return every


def _of_type(values: Array | None, dtype: str) -> Array | None:
    """Return values as the dtype named in a file; ``None`` if they do not fit it."""
    if values is None or values.dtype.str == dtype:
        return values
    narrow = [each for each in _NARROW if each.str == dtype]
    if not narrow or values.dtype != np.int64:
        return None
    found = values.astype(narrow[0])
    return found if (found == values).all() else None


def narrowed(arrays: Arrays) -> dict[str, Array]:
    """Store 64-bit integers in the smallest type that holds the whole array: most counts are small.

    >>> narrowed({"x": np.array([1, -129])})["x"].dtype
    dtype('int16')
    """
    return {name: _narrowed(array) for name, array in arrays.items()}


def _narrowed(values: Array) -> Array:
    if values.dtype != np.int64 or not values.size:
        return values
    low, high = int(values.min()), int(values.max())
    for narrow, limit in _LIMITS:
        if -limit <= low and high < limit:
            return values.astype(narrow)
    return values


def widened(arrays: Arrays) -> dict[str, Array]:
    """Undo `narrowed`."""
    return {
        name: array.astype(np.int64) if array.dtype in _NARROW else array
        for name, array in arrays.items()
    }


def take_sizes(arrays: Arrays, name: str, size: int, total: int) -> Array:
    """Return the number of entries of each of `size` groups, which must add up to `total`."""
    sizes = take_array(arrays, name, "int64")
    fits = sizes.shape == (size,) and 0 <= sizes.min(initial=0) <= sizes.max(initial=0) <= total
    if not fits or int(sizes.sum()) != total:
        raise StateFormatError(f"the {name} of groups are not those of {total:,} entries")
    return sizes


# Serializes a value as JSON; equal values give equal text.
json_text = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def json_array(value: object) -> Array:
    """Serialize a value as JSON into an array of bytes."""
    return np.frombuffer(json_text(value).encode(), np.uint8)


def json_of(array: Array) -> object:
    """Undo `json_array`."""
    try:
        return json.loads(array.tobytes())
    except (ValueError, RecursionError) as error:
        raise StateFormatError(f"text of a state cannot be read: {error}") from None
