"""A ledger as it stands in a file: shards spelled out where they are few, in columns else.

The first form is that of every version. It holds each state as a file of its own, which people can
read and which costs a hundred times what the second takes for each: there names, attempts and
digests are columns, and so are the arrays of all states, to be opened when they are read.
"""

from __future__ import annotations

import re
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.errors import StateFormatError
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.state.arrays import take_array
from streammetrics.core.stateful import from_bytes
from streammetrics.ledger.held import Held, digest
from streammetrics.ledger.kinds import kinds_of
from streammetrics.ledger.kinds import written as of_kinds
from streammetrics.ledger.rows import rows_of
from streammetrics.ledger.shards import LAST, Known, SealedShards, Shard, as_id, order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Arrays, Document
    from streammetrics.ledger.shards import ShardId

COLUMNS = 2  # the format of the second form
FEW = 256  # shards that are spelled out

_HELD, _SEALED, _CONTRADICTED = range(3)
_DIGEST = re.compile("[0-9a-f]{64}")
_NUMBER = re.compile("0|-?[1-9][0-9]{0,38}")


def written(known: Known) -> tuple[Document, dict[str, Array]]:
    """Return what a file says of a ledger, and its arrays."""
    names = sorted(known.shards, key=order)
    arrays: dict[str, Array] = {} if known.empty is None else {"empty": _of(known.empty.to_bytes())}
    if len(known.blocks) == 1:
        arrays["base"] = _of(known.blocks[0].state.to_bytes())
    if len(names) > FEW or known.contradicted or known.blocks[1:]:
        said, more = _in_columns(known, names)
    else:
        said, more = _spelled(known, names)
    return said, arrays | more


def read(said: Mapping[str, object], arrays: Arrays) -> Known:
    """Return the state of a ledger from what `written` gave, after checking it."""
    empty, base = _metric(arrays, "empty"), _metric(arrays, "base")
    in_columns = said["format"] == COLUMNS
    shards = _from_columns(said, arrays, empty) if in_columns else _from_rows(said, arrays, empty)
    known = Known(empty, shards)
    sealed = frozenset(known.sealed)
    blocks = _several(arrays, list(shards)) if base is None else (SealedShards(sealed, base),)
    fits = (
        (empty is not None or not shards)
        and (empty is None or empty == empty.copy().reset())
        and all(empty is not None and empty._alike(block.state) for block in blocks)
        and sealed == frozenset().union(*(block.names for block in blocks))
        and all(block.names for block in blocks)
        and (not known._replace(blocks=blocks).overlapping or not _nested(blocks))
    )
    if not fits:
        raise StateFormatError("the shards of the ledger do not fit each other")
    return known._replace(blocks=blocks)


# --- spelled out ---------------------------------------------------------------------------------


def _spelled(known: Known, names: Sequence[ShardId]) -> tuple[Document, dict[str, Array]]:
    rows, arrays = [], {}
    for index, name in enumerate(names):
        shard = known.shards[name]
        digested = shard.digest
        if shard.state is not None:
            blob = shard.state.metric.to_bytes()
            arrays[f"shard/{index}"], digested = _of(blob), digest(blob)
        rows.append([name, shard.attempt, digested])
    return {"shards": rows}, arrays


def _from_rows(
    said: Mapping[str, object], arrays: Arrays, empty: Mergeable | None
) -> dict[ShardId, Shard]:
    rows = said.get("shards")
    if not isinstance(rows, tuple) or not all(map(_is_row, rows)):
        raise StateFormatError("the ledger does not say which shards it has")
    shards: dict[ShardId, Shard] = {}
    for index, (name, attempt, told) in enumerate(rows):
        metric = _metric(arrays, f"shard/{index}")
        if metric is None:
            shards[_id(name)] = Shard(attempt, None, told)
        elif empty is None or not empty._alike(metric):
            raise StateFormatError("the shards of the ledger do not fit each other")
        else:
            shards[_id(name)] = Shard(attempt, Held.of(empty, metric))
    return shards


def _is_row(row: object) -> bool:
    if not isinstance(row, tuple) or len(row) != 3:
        return False
    name, attempt, told = row
    return (
        type(name) in {str, int}
        and type(attempt) is int
        and 0 <= attempt <= LAST
        and isinstance(told, str)
        and bool(_DIGEST.fullmatch(told))
    )


# --- in columns ----------------------------------------------------------------------------------


def _in_columns(known: Known, names: Sequence[ShardId]) -> tuple[Document, dict[str, Array]]:
    shards = [known.shards[name] for name in names]
    kinds = [
        _HELD if s.state is not None else _SEALED if s.digest else _CONTRADICTED for s in shards
    ]
    digests = bytes.fromhex("".join([shard.digest for shard in shards]))
    arrays: dict[str, Array] = {
        "attempts": np.array([shard.attempt for shard in shards], np.int64),
        "kinds": np.array(kinds, np.uint8),
        "digests": _of(digests).reshape(-1, 32),
        **_chain("names", [str(name).encode(errors="surrogatepass") for name in names]),
    }
    states, index = kinds_of([shard.state.form for shard in shards if shard.state is not None])
    said, columns = of_kinds(states)
    numbers = sum(isinstance(name, int) for name in names)
    more = {"states": index, **columns, **_blocks(known.blocks, names)}
    return {"format": COLUMNS, "numbers": numbers, "kinds": said}, arrays | more


def _from_columns(
    said: Mapping[str, object], arrays: Arrays, empty: Mergeable | None
) -> dict[ShardId, Shard]:
    attempts, kinds = take_array(arrays, "attempts", "int64"), take_array(arrays, "kinds", "uint8")
    digests, numbers = take_array(arrays, "digests", "uint8", 2), said.get("numbers")
    names, index = _links(arrays, "names"), take_array(arrays, "states", "int64")
    n = len(names)
    counts = np.bincount(kinds, minlength=3).tolist()
    if (
        empty is None
        or len(counts) != 3
        or counts[:2] != [len(index), len(digests)]
        or not len(attempts) == len(kinds) == n
        or digests.shape[1] != 32
        or attempts.min(initial=0) < 0
        or type(numbers) is not int
        or not 0 <= numbers <= n
    ):
        raise StateFormatError("the columns of the ledger do not fit each other")
    states = rows_of(said.get("kinds"), arrays, index, empty._layout)
    of_kind = (
        ((Held(empty, row), "") for row in states),
        ((None, text) for text in _hexes(digests)),
        ((None, "") for _ in range(counts[_CONTRADICTED])),
    )
    ids = [*map(_number, names[:numbers]), *map(_text, names[numbers:])]
    return {
        name: Shard(attempt, *next(of_kind[kind]))
        for name, attempt, kind in zip(ids, attempts.tolist(), kinds.tolist(), strict=True)
    }


def _blocks(blocks: Sequence[SealedShards], names: Sequence[ShardId]) -> dict[str, Array]:
    """Return several blocks, in the order of the places of their shards."""
    if len(blocks) < 2:
        return {}
    places = {name: place for place, name in enumerate(names)}
    each = sorted((sorted(map(places.__getitem__, block.names)), block.state) for block in blocks)
    members = [place for mine, _ in each for place in mine]
    return {
        **_chain("blocks", [state.to_bytes() for _, state in each]),
        "members": np.array(members, np.int64),
        "members/ends": np.cumsum([len(mine) for mine, _ in each]),
    }


def _nested(blocks: Sequence[SealedShards]) -> bool:
    return any(one.names <= other.names for one, other in permutations(blocks, 2))


def _several(arrays: Arrays, names: Sequence[ShardId]) -> tuple[SealedShards, ...]:
    """Return what `_blocks` wrote."""
    if "blocks" not in arrays:
        return ()
    states, members = _links(arrays, "blocks"), take_array(arrays, "members", "int64")
    ends = take_array(arrays, "members/ends", "int64")
    if members.min(initial=0) < 0 or members.max(initial=-1) >= len(names):
        raise StateFormatError("the blocks of the ledger are of no shards")
    if len(ends) != len(states) or len(ends) < 2:
        raise StateFormatError("the blocks of the ledger do not fit each other")
    parts = np.split(members, ends[:-1])
    return tuple(
        SealedShards(frozenset(map(names.__getitem__, part.tolist())), _read(state))
        for part, state in zip(parts, states, strict=True)
    )


def _hexes(digests: Array) -> list[str]:
    text = digests.tobytes().hex()
    return [text[start : start + 64] for start in range(0, len(text), 64)]


def _number(name: bytes) -> ShardId:
    text = name.decode("ascii", errors="replace")
    if not _NUMBER.fullmatch(text):
        raise StateFormatError("the number of a shard is not one")
    return _id(int(text))


def _text(name: bytes) -> ShardId:
    try:
        return _id(name.decode(errors="surrogatepass"))
    except UnicodeDecodeError as error:
        raise StateFormatError("the name of a shard is no text") from error


def _id(name: ShardId) -> ShardId:
    try:
        return as_id(name)
    except ValueError as error:
        raise StateFormatError(str(error)) from error


def _chain(name: str, links: Sequence[bytes]) -> dict[str, Array]:
    """Return bytes one after the other, and where each ends."""
    ends = np.cumsum(np.fromiter(map(len, links), np.int64, len(links)))
    return {name: _of(b"".join(links)), f"{name}/ends": ends}


def _links(arrays: Arrays, name: str) -> list[bytes]:
    """Return what `_chain` put together."""
    blob = take_array(arrays, name, "uint8").tobytes()
    ends = take_array(arrays, f"{name}/ends", "int64")
    starts = np.append(0, ends[:-1]) if len(ends) else ends
    if (ends < starts).any() or ends.max(initial=0) != len(blob):
        raise StateFormatError(f"the {name} of the ledger do not fill their place")
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    return [blob[start:end] for start, end in pairs]


# --- both ----------------------------------------------------------------------------------------


def _of(blob: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(blob, np.uint8)


def _metric(arrays: Arrays, name: str) -> Mergeable | None:
    return _read(take_array(arrays, name, "uint8").tobytes()) if name in arrays else None


def _read(blob: bytes) -> Mergeable:
    metric = from_bytes(blob)
    if not isinstance(metric, Mergeable):
        raise StateFormatError("a ledger holds metrics and sets")
    return metric
