"""Fields for authors: counts by key, the largest values with their ids, and a sketch by hash.

What an author's statistic assigns to its attribute is `Any`: pyright takes the assignment for
another declaration of the field, which would otherwise lose its methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.columns.column import Column
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.field import StateField
from streammetrics.core.fields.entries import Weights
from streammetrics.core.fields.keyed import LabelledEntries, LabelTable
from streammetrics.core.fields.labels import (
    coded_labels,
    packed_labels,
    unpacked_labels,
    used_labels,
)
from streammetrics.core.fields.weights import WeightedCount
from streammetrics.core.state.arrays import take_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.configured import Configured
    from streammetrics.core.types import Array, Arrays, Floats, Places


def _keys(keys: Any) -> tuple[Array, Places]:
    """Return the distinct keys of a column, integers or text, and the place of each row's key."""
    if isinstance(keys, Column):
        codes, labels = coded_labels(keys)
        return used_labels(labels, codes)
    found, places = np.unique(np.asarray(keys), return_inverse=True)
    return (found if found.dtype.kind == "U" else found.astype(np.int64)), places


class KeyCounts(LabelTable):
    """How many rows each key has, or what they weigh; keys are integers or text."""

    def __init__(self, *, inline: bool = False) -> None:
        super().__init__(inline=inline, amount=Weights())

    def added(self, value: LabelledEntries, keys: Any, weight: Floats | None = None) -> Any:
        """Return the counts with those of more rows: an array of keys, or a column of `Labels`."""
        labels, places = _keys(keys)
        amount = WeightedCount.at_places(places, len(labels), weight)
        return self.plus(value, LabelledEntries(labels, {"amount": amount}))

    def counts(self, value: LabelledEntries) -> dict[Any, float]:
        """Return the count of each key, in the order of the keys."""
        amounts = np.atleast_1d(value.columns["amount"].exact().to_float())
        return dict(zip(value.labels.tolist(), amounts.tolist(), strict=True))


class RankedIds(NamedTuple):
    """Ids with their values, the largest value first and equal ones by id."""

    ids: Array
    values: Floats


class Largest(StateField[RankedIds]):
    """The `k` ids with the largest values; an id that occurs several times has its largest."""

    def __init__(self, k: int, *, inline: bool = False) -> None:
        super().__init__(inline=inline)
        self._k = k

    def empty(self, of: Configured) -> RankedIds:  # noqa: ARG002 - nothing depends on it
        """Return no ids."""
        return RankedIds(np.empty(0, np.int64), np.empty(0))

    def added(self, value: RankedIds, ids: Any, values: Floats) -> Any:
        """Return the largest of these and of more rows: ids, and a finite number for each."""
        labels, places = _keys(ids)
        return self.plus(value, self._first(labels[places], np.asarray(values, np.float64)))

    def plus(self, mine: RankedIds, other: RankedIds) -> RankedIds:
        """Return the largest of both."""
        if not len(mine.ids) or not len(other.ids):
            return mine if len(mine.ids) else other
        if mine.ids.dtype.kind != other.ids.dtype.kind:
            raise IncompatibleMetricsError(f"{self.name}: text cannot join integers as ids")
        pairs = zip(mine, other, strict=True)
        return self._first(*map(np.concatenate, pairs))

    def _first(self, ids: Array, values: Floats) -> RankedIds:
        values = values + 0.0  # -0.0 is 0.0
        order = np.lexsort((ids, -values))
        _, first = np.unique(ids[order], return_index=True)
        kept = order[np.sort(first)[: self._k]]
        return RankedIds(ids[kept], values[kept])

    def arrays(self, value: RankedIds) -> dict[str, Array]:
        """Return the ids and the values."""
        ids = value.ids
        width = max(map(len, ids.tolist()), default=1) if ids.dtype.kind == "U" else 0
        return {"ids": packed_labels(ids.astype(f"U{width}") if width else ids), "values": value[1]}

    def taken(self, arrays: Arrays, of: Configured) -> RankedIds:  # noqa: ARG002 - nothing depends on it
        """Return ids and values that are in order and not too many."""
        ids, values = unpacked_labels(arrays, "ids"), take_array(arrays, "values", "float64")
        if len(arrays) != 2 or len(ids) != len(values) or not np.isfinite(values).all():
            raise StateFormatError("they are not ids with a finite value for each")
        again = self._first(ids, values)
        same = len(again.ids) == len(ids) and bool((again.ids == ids).all())
        if not same or again.values.tobytes() != values.tobytes():
            raise StateFormatError(f"they are not the {self._k} largest values, in order")
        return again


class HashSketch(StateField["NDArray[np.uint64]"]):
    """The `k` smallest distinct hashes of 64 bits: how many different things there were."""

    def __init__(self, k: int, *, inline: bool = False) -> None:
        super().__init__(inline=inline)
        self._k = k

    def empty(self, of: Configured) -> NDArray[np.uint64]:  # noqa: ARG002 - nothing depends on it
        """Return no hashes."""
        return np.empty(0, np.uint64)

    def plus(self, mine: NDArray[np.uint64], other: NDArray[np.uint64]) -> Any:
        """Return the smallest hashes of both."""
        return np.union1d(mine, other)[: self._k]

    def arrays(self, value: NDArray[np.uint64]) -> dict[str, Array]:
        """Return the hashes, ascending."""
        return {"": value}

    def taken(self, arrays: Arrays, of: Configured) -> NDArray[np.uint64]:  # noqa: ARG002 - nothing depends on it
        """Return hashes that are distinct, ascending and not too many."""
        hashes = self.the_array(arrays, "uint64")
        if len(hashes) > self._k or not (hashes[1:] > hashes[:-1]).all():
            raise StateFormatError(f"they are not the {self._k} smallest hashes, ascending")
        return hashes.copy()

    def scaled(self, value: NDArray[np.uint64], weight: float) -> NDArray[np.uint64]:  # noqa: ARG002 - weights do not matter
        """Return the same hashes."""
        return value

    def distinct(self, value: NDArray[np.uint64]) -> float:
        """Return the number of distinct hashes: exact below `k`, else estimated."""
        if len(value) < self._k:
            return float(len(value))
        return (self._k - 1) / (float(value[-1]) + 1.0) * 2.0**64
