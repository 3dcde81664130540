"""Arrays of a saved ledger: shards in the order of their names, one column for each field."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.errors import StateFormatError
from streammetrics.core.feeding.many import StateTable
from streammetrics.core.loading import from_bytes
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.state.arrays import (
    json_array,
    json_of,
    nested,
    part,
    take_array,
    take_sizes,
)
from streammetrics.ledger.names import as_id, ordered
from streammetrics.ledger.shards import Known, SealedShards
from streammetrics.ledger.table import CONTRADICTED, HELD, SEALED, ShardTable

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Arrays


def written(known: Known) -> dict[str, Array]:
    """Return the arrays of a ledger."""
    known = known.folded()
    if known.empty is None or known.table is None:
        return {}
    places, attempts, kinds, digests, states = known.table
    members = [sorted(map(places.__getitem__, block.names)) for block in known.blocks]
    blocks = sorted(zip(members, [b.state.to_bytes() for b in known.blocks], strict=True))
    return {
        "empty": np.frombuffer(known.empty.to_bytes(), np.uint8),
        "names": json_array(list(places)),
        "attempts": attempts,
        "kinds": kinds,
        "digests": digests,
        **nested("states", states.arrays()),
        "blocks": np.frombuffer(b"".join([blob for _, blob in blocks]), np.uint8),
        "blocks/sizes": np.array([len(blob) for _, blob in blocks], np.int64),
        "members": np.array([place for mine, _ in blocks for place in mine], np.int64),
        "members/sizes": np.array([len(mine) for mine, _ in blocks], np.int64),
    }


def read(arrays: Arrays) -> Known:
    """Return the state of a ledger from the arrays of `written`, after validating them."""
    if not arrays:
        return Known.of(None)
    empty = _metric(take_array(arrays, "empty", "uint8").tobytes())
    if empty.n_rows or empty.n_omitted:
        raise StateFormatError("the metric of the ledger has rows of its own")
    table = _table(arrays, empty)
    blocks = _blocks(arrays, table.names)
    known = Known(empty, table, {}, blocks)
    sealed = frozenset(table.having(SEALED))
    fits = (
        all(empty._alike(block.state) for block in blocks)
        and sealed == frozenset().union(*(block.names for block in blocks))
        and all(block.names for block in blocks)
        and not (known.overlapping and _nested(blocks))
    )
    if not fits:
        raise StateFormatError("the shards of the ledger do not fit each other")
    return known


def _table(arrays: Arrays, empty: Mergeable) -> ShardTable:
    attempts, kinds = take_array(arrays, "attempts", "int64"), take_array(arrays, "kinds", "uint8")
    digests, told = take_array(arrays, "digests", "uint8", 2), json_of(arrays.get("names", _NONE))
    if not isinstance(told, list) or not all(type(name) in {str, int} for name in told):
        raise StateFormatError("the ledger does not say which shards it has")
    try:
        names = list(map(as_id, told))
    except ValueError as error:
        raise StateFormatError(str(error)) from error
    places = dict(zip(names, range(len(names)), strict=True))
    counts = np.bincount(kinds, minlength=3).tolist()
    if (
        ordered(places) != names
        or len(counts) != 1 + CONTRADICTED
        or not len(attempts) == len(kinds) == len(names)
        or digests.shape != (counts[SEALED], 32)
        or attempts.min(initial=0) < 0
    ):
        raise StateFormatError("the columns of the ledger do not fit each other")
    states = StateTable.restored(empty._plan, part(arrays, "states"), counts[HELD])
    return ShardTable(places, attempts, kinds, digests, states)


_NONE = np.empty(0, np.uint8)


def _blocks(arrays: Arrays, names: list[int | str]) -> tuple[SealedShards, ...]:
    blob = take_array(arrays, "blocks", "uint8").tobytes()
    lengths = take_array(arrays, "blocks/sizes", "int64")
    take_sizes(arrays, "blocks/sizes", len(lengths), len(blob))
    members = take_array(arrays, "members", "int64")
    sizes = take_sizes(arrays, "members/sizes", len(lengths), len(members))
    if members.min(initial=0) < 0 or members.max(initial=-1) >= len(names):
        raise StateFormatError("the blocks of the ledger are of no shards")
    ends = np.cumsum(lengths).tolist()
    parts = np.split(members, np.cumsum(sizes)[:-1]) if sizes.size else []
    return tuple(
        SealedShards(frozenset(map(names.__getitem__, mine.tolist())), _metric(blob[start:end]))
        for mine, start, end in zip(parts, [0, *ends], ends, strict=False)
    )


def _nested(blocks: tuple[SealedShards, ...]) -> bool:
    return any(one.names <= other.names for one, other in permutations(blocks, 2))


def _metric(blob: bytes) -> Mergeable:
    metric = from_bytes(blob)
    if not isinstance(metric, Mergeable):
        raise StateFormatError("a ledger holds metrics and sets")
    return metric
