"""The arrays of many states of one kind, laid end to end: a file holds few arrays.

Integers are written as narrow as they are: the counts of slices are mostly small.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.errors import StateFormatError
from streammetrics.core.state.arrays import nested, parted, take_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Arrays


def stacked(every: Sequence[Arrays]) -> dict[str, Array]:
    """Return the arrays of all states: of each name and type all values, whose, and their shapes.

    >>> parts = stacked([{"x": np.array([1, 2])}, {"x": np.array([3])}])
    >>> parts["0/values"].tolist(), parts["0/shapes"].tolist()
    ([1, 2, 3], [[2], [1]])
    """
    found: dict[tuple[str, str, int], list[tuple[int, Array]]] = {}
    for place, arrays in enumerate(every):
        for name, array in arrays.items():
            found.setdefault((name, array.dtype.str, array.ndim), []).append((place, array))
    entries = sorted(found)
    result = {"names": as_bytes([list(entry) for entry in entries])}
    for number, entry in enumerate(entries):
        places, parts = zip(*found[entry], strict=True)
        result |= nested(
            str(number),
            {
                "values": _narrowed(np.concatenate([part.reshape(-1) for part in parts])),
                "places": np.array(places, np.int64),
                "shapes": np.array([part.shape for part in parts], np.int64).reshape(
                    len(parts), entry[2]
                ),
            },
        )
    return result


def unstacked(arrays: Arrays, size: int) -> list[dict[str, Array]]:
    """Return the arrays of each of `size` states, or raise `StateFormatError`."""
    entries = from_bytes(take_array(arrays, "names", "uint8"))
    every: list[dict[str, Array]] = [{} for _ in range(size)]
    parts = parted({name: array for name, array in arrays.items() if name != "names"})
    if not isinstance(entries, list) or len(entries) != len(parts):
        raise StateFormatError("the arrays of groups do not fit their names")
    for number, entry in enumerate(entries):
        if not isinstance(entry, list) or [type(x) for x in entry] != [str, str, int]:
            raise StateFormatError("an array of groups has no name, type and dimensions")
        name, _, ndim = entry
        part = parts.get(str(number), {})
        places, shapes = take_array(part, "places", "int64"), take_array(part, "shapes", "int64", 2)
        values = _widened(part.get("values"), entry[1])
        if values is None or values.ndim != 1:
            raise StateFormatError(f"the arrays {name!r} of groups do not lie end to end")
        if shapes.shape != (places.size, ndim) or shapes.min(initial=0) < 0:
            raise StateFormatError(f"the arrays {name!r} of groups have no shapes")
        if places.size and not 0 <= places.min() <= places.max() < size:
            raise StateFormatError(f"an array {name!r} belongs to no group")
        start = 0
        for place, shape in zip(places.tolist(), shapes.tolist(), strict=True):
            length = 1
            for extent in shape:
                length *= extent
            if start + length > values.size:
                raise StateFormatError(f"the arrays {name!r} of groups are cut short")
            every[place][name] = values[start : start + length].reshape(shape)
            start += length
        if start != values.size:
            raise StateFormatError(f"there are values that belong to no array {name!r} of a group")
    return every


_NARROW = (np.int8, np.int16, np.int32)


def _narrowed(values: Array) -> Array:
    """Return integers of 64 bits in the fewest that hold them all."""
    if values.dtype != np.int64 or not values.size:
        return values
    low, high = values.min(), values.max()
    for narrow in _NARROW:
        limits = np.iinfo(narrow)
        if limits.min <= low and high <= limits.max:
            return values.astype(narrow)
    return values


def _widened(values: Array | None, dtype: str) -> Array | None:
    """Return what `_narrowed` was given, of a type."""
    narrow = values is not None and values.dtype in _NARROW and dtype == np.dtype(np.int64).str
    return values.astype(np.int64) if values is not None and narrow else values


def as_bytes(value: object) -> NDArray[np.uint8]:
    """Return what JSON can say as an array of a state."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return np.frombuffer(text.encode(), np.uint8)


def from_bytes(array: NDArray[np.uint8]) -> Any:
    """Return what `as_bytes` made an array of."""
    try:
        return json.loads(array.tobytes())
    except (ValueError, RecursionError) as error:
        raise StateFormatError(f"names of a grouped state cannot be read: {error}") from None
