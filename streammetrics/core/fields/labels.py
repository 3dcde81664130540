"""Sets of labels as statistics hold them: sorted, distinct, integers or strings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.columns.column import unique
from streammetrics.core.counting import extent
from streammetrics.core.errors import StateFormatError
from streammetrics.core.state.arrays import take_array

if TYPE_CHECKING:
    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.types import Array, Arrays, Places

    Labelled = tuple[Array, Places]  # sorted labels, and places among them

_NEAR = 1 << 16  # integers this near to each other are placed by subtraction


def coded_labels(column: Column) -> tuple[Array, Array]:
    """Return each row's place among labels, in order, some of which may not occur.

    Places are integers of any width.
    """
    values = column.values
    if values.dtype == np.bool_:
        values = values.view(np.uint8)  # booleans as places would be a mask
    if column.vocabulary is not None:
        return values, column.vocabulary
    if not values.size:
        return values, np.empty(0, np.int64)
    low, high = map(int, extent(values))
    if high - low >= max(_NEAR, values.size):
        labels, places = unique(values.astype(np.int64, copy=False))
        return places, labels
    if not 0 <= low <= high - low:
        # In the values' own type the difference could overflow.
        return values.astype(np.int64) - low, np.arange(low, high + 1, dtype=np.int64)
    return values, np.arange(high + 1)


def used_labels(labels: Array, places: Array) -> Labelled:
    """Return the labels that occur among the places, and the places among them."""
    seen = np.zeros(len(labels), np.bool_)
    seen[places] = True
    if seen.all():
        return labels, places.astype(np.int64, copy=False)
    return labels[seen], (np.cumsum(seen) - 1)[places]


def packed_labels(labels: Array) -> Array:
    """Return labels as an array of a state: integers as they are, strings as JSON in bytes."""
    if labels.dtype.kind != "U":
        return labels
    text = json.dumps(labels.tolist(), ensure_ascii=False, separators=(",", ":"))
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


def unpacked_labels(arrays: Arrays, name: str) -> Array:
    """Return the labels that `packed_labels` made an array of."""
    if name in arrays and arrays[name].dtype == np.uint8:
        packed = take_array(arrays, name, "uint8").tobytes()
        try:
            texts = json.loads(packed.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError) as error:
            raise StateFormatError(f"labels of a state cannot be read: {error}") from None
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise StateFormatError("labels of a state are neither integers nor text")
        return np.array(texts, dtype=np.str_)
    return take_array(arrays, name, "int64")
