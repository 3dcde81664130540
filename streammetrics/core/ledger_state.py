"""What a ledger knows at one moment, and the least that is above two such states."""

from __future__ import annotations

import hashlib
import operator
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.metric import Mergeable
from streammetrics.core.statistic import take_array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

ShardId = str | int

_DIGEST = re.compile("[0-9a-f]{64}")


class Shard(NamedTuple):
    """What is known of one shard, and its state as long as it is not sealed."""

    attempt: int
    digest: str
    blob: bytes | None

    @classmethod
    def of(cls, attempt: int, blob: bytes) -> Shard:
        """Return a shard that is not sealed."""
        return cls(attempt, digest(blob), blob)


class Known(NamedTuple):
    """The whole state of a ledger."""

    empty: Mergeable | None  # the metric without rows; unknown until there is one
    shards: dict[ShardId, Shard]
    base: Mergeable | None  # of the sealed shards together

    @property
    def sealed(self) -> set[ShardId]:
        """The names of the sealed shards."""
        return {name for name, shard in self.shards.items() if shard.blob is None}

    @property
    def unsealed(self) -> dict[ShardId, Shard]:
        """The others."""
        return {name: shard for name, shard in self.shards.items() if shard.blob is not None}


def joined(mine: Known, theirs: Known) -> Known:
    """Return what both know, or raise `IncompatibleMetricsError` where they contradict."""
    check_alike(mine.empty, theirs.empty)
    shards = dict(mine.shards)
    for name, shard in theirs.shards.items():
        shards[name] = later(name, shards[name], shard) if name in shards else shard
    empty = theirs.empty if mine.empty is None else mine.empty
    return Known(empty, shards, _base(mine, theirs))


def check_alike(mine: Mergeable | None, theirs: Mergeable | None) -> None:
    """Raise where both are known and differ."""
    if mine is not None and theirs is not None and not _alike(mine, theirs):
        raise IncompatibleMetricsError(
            f"cannot merge {shown(theirs)} into a ledger of {shown(mine)}: "
            "the configurations differ"
        )


def later(name: ShardId, mine: Shard, theirs: Shard) -> Shard:
    """Return the sealed one, or the one of the later attempt; raise where they contradict."""
    if mine[:2] == theirs[:2]:
        return mine if mine.blob is None else theirs
    low, high = sorted((mine, theirs), key=operator.attrgetter("attempt"))
    if low.attempt == high.attempt:
        raise IncompatibleMetricsError(
            f"shard {name!r} has two different states at attempt {low.attempt}: "
            "a retry needs a higher attempt"
        )
    if low.blob is None:
        raise IncompatibleMetricsError(
            f"shard {name!r} is sealed at attempt {low.attempt}: it takes no attempt {high.attempt}"
        )
    return high


def _base(mine: Known, theirs: Known) -> Mergeable | None:
    """Return the state of the shards that either has sealed."""
    here, there = mine.sealed, theirs.sealed
    if there <= here:
        return mine.base
    if here <= there:
        return theirs.base
    if here & there:
        raise IncompatibleMetricsError(
            f"both ledgers have sealed {listed(sorted(here & there, key=order))}, each with "
            "shards that the other has not: what they share cannot be taken apart"
        )
    assert mine.base is not None
    assert theirs.base is not None
    return mine.base.copy().merge(theirs.base)


def total(known: Known, shards: Mapping[ShardId, Shard]) -> Mergeable:
    """Return what has seen the rows of all sealed shards and of these unsealed ones."""
    from streammetrics.core.state import from_bytes  # noqa: PLC0415 - it builds ledgers in turn

    if known.empty is None:
        raise ValueError("the ledger has no shards, and was not told of which metric")
    result = (known.empty if known.base is None else known.base).copy()
    for name, shard in shards.items():
        assert shard.blob is not None
        state: Any = from_bytes(shard.blob)
        try:
            result.merge(state)
        except IncompatibleMetricsError as error:
            raise IncompatibleMetricsError(f"shard {name!r}: {error}") from None
    return result


# --- as bytes ------------------------------------------------------------------------------------


def parts(known: Known) -> tuple[list[Any], dict[str, NDArray[np.uint8]]]:
    """Return what a file says of the shards, and the states as arrays of bytes."""
    names = sorted(known.shards, key=order)
    rows = [[name, known.shards[name].attempt, known.shards[name].digest] for name in names]
    blobs = {f"shard/{index}": known.shards[name].blob for index, name in enumerate(names)}
    blobs |= {k: m.to_bytes() for k in ("empty", "base") if (m := getattr(known, k)) is not None}
    return rows, {k: np.frombuffer(b, np.uint8) for k, b in blobs.items() if b is not None}


def of_parts(
    rows: Iterable[Any], arrays: Mapping[str, NDArray[Any]], read: Callable[[bytes], Any]
) -> Known:
    """Return what `parts` was made of; raise `StateFormatError` where it cannot have been."""
    blobs = {name: take_array(arrays, name, "uint8").tobytes() for name in arrays}
    metrics = {name: read(blob) for name, blob in blobs.items()}
    shards = {
        as_id(name): Shard(attempt, told, blobs.get(f"shard/{index}"))
        for index, (name, attempt, told) in enumerate(rows)
    }
    known = Known(metrics.get("empty"), shards, metrics.get("base"))
    empty, unsealed = known.empty, known.unsealed
    fits = (
        all(isinstance(metric, Mergeable) and _alike(empty, metric) for metric in metrics.values())
        and (empty is None or empty == empty.copy().reset())
        and (empty is not None or not shards)
        and (known.base is not None) == bool(known.sealed)
        and all(type(shard.attempt) is int and shard.attempt >= 0 for shard in shards.values())
        and all(_DIGEST.fullmatch(shard.digest) for shard in shards.values())
        and all(shard.digest == digest(shard.blob or b"") for shard in unsealed.values())
        and list(shards) == sorted(shards, key=order)
        and len(blobs) == len(unsealed) + (empty is not None) + (known.base is not None)
    )
    if not fits:
        raise StateFormatError("the shards of the ledger do not fit each other")
    return known


# --- names ---------------------------------------------------------------------------------------


def as_id(value: Any) -> ShardId:
    """Return a shard's name as a string or an integer of Python's own."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    raise TypeError(f"a shard is named by a string or an integer, not by {value!r}")


def order(name: ShardId) -> tuple[bool, ShardId]:
    """Return the key that sorts names, integers first."""
    return isinstance(name, str), name


def listed(names: Iterable[ShardId]) -> str:
    """Return some of the names, for a message."""
    some = list(map(repr, names))
    more = f" and {len(some) - 5:,} more" if some[5:] else ""
    return f"shard{'s' * (len(some) != 1)} {', '.join(some[:5])}{more}"


def shown(metric: Mergeable) -> str:
    """Return a metric as it is written, without its rows."""
    return repr(metric).rpartition(" <")[0]


def digest(blob: bytes) -> str:
    """Return what stands for a state once it is sealed."""
    return hashlib.sha256(blob).hexdigest()


def _alike(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one._identity == other._identity
