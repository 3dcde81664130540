"""What a ledger knows at one moment, and the least that is above two such states."""

from __future__ import annotations

import hashlib
import operator
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.state.arrays import take_array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    from streammetrics.core.mergeable import Mergeable

ShardId = str | int

_DIGEST = re.compile("[0-9a-f]{64}")


class Shard(NamedTuple):
    """What is known of one shard, and its state as long as it is not sealed."""

    attempt: int
    digest: str  # of the bytes of the state
    state: Mergeable | None

    @classmethod
    def of(cls, attempt: int, metric: Mergeable) -> Shard:
        """Return a shard that is not sealed."""
        return cls(attempt, digest(metric.to_bytes()), metric.copy())

    @property
    def is_sealed(self) -> bool:
        """Whether the state is part of the base."""
        return self.state is None


class Known(NamedTuple):
    """The whole state of a ledger."""

    empty: Mergeable | None  # the metric without rows; unknown until there is one
    shards: dict[ShardId, Shard]
    base: Mergeable | None  # of the sealed shards together

    @property
    def sealed(self) -> set[ShardId]:
        """The names of the sealed shards."""
        return {name for name, shard in self.shards.items() if shard.is_sealed}

    @property
    def states(self) -> dict[ShardId, Mergeable]:
        """The states of the others."""
        shards = self.shards.items()
        return {name: shard.state for name, shard in shards if shard.state is not None}


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
    if mine is not None and theirs is not None and not mine._alike(theirs):
        raise IncompatibleMetricsError(
            f"cannot merge {shown(theirs)} into a ledger of {shown(mine)}: "
            "the configurations differ"
        )


def later(name: ShardId, mine: Shard, theirs: Shard) -> Shard:
    """Return the sealed one, or the one of the later attempt; raise where they contradict."""
    if mine[:2] == theirs[:2]:
        return mine if mine.is_sealed else theirs
    low, high = sorted((mine, theirs), key=operator.attrgetter("attempt"))
    if low.attempt == high.attempt:
        raise IncompatibleMetricsError(
            f"shard {name!r} has two different states at attempt {low.attempt}: "
            "a retry needs a higher attempt"
        )
    if low.is_sealed:
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


def total(known: Known, states: Mapping[ShardId, Mergeable]) -> Mergeable:
    """Return what has seen the rows of all sealed shards and of these states of others."""
    if known.empty is None:
        raise ValueError("the ledger has no shards, and was not told of which metric")
    result = (known.empty if known.base is None else known.base).copy()
    try:
        return result.merge(*states.values())
    except IncompatibleMetricsError:
        for name, state in states.items():
            try:
                result.merge(state)
            except IncompatibleMetricsError as error:
                raise IncompatibleMetricsError(f"shard {name!r}: {error}") from None
        raise


# --- as bytes ------------------------------------------------------------------------------------


def parts(known: Known) -> tuple[list[Any], dict[str, NDArray[np.uint8]]]:
    """Return what a file says of the shards, and the states as arrays of bytes."""
    names = sorted(known.shards, key=order)
    rows = [[name, known.shards[name].attempt, known.shards[name].digest] for name in names]
    states = {"empty": known.empty, "base": known.base}
    states |= {f"shard/{index}": known.shards[name].state for index, name in enumerate(names)}
    blobs = {name: state.to_bytes() for name, state in states.items() if state is not None}
    return rows, {name: np.frombuffer(blob, np.uint8) for name, blob in blobs.items()}


def of_parts(rows: Any, arrays: Mapping[str, NDArray[Any]], read: Callable[[bytes], Any]) -> Known:
    """Return what `parts` was made of; raise `StateFormatError` where it cannot have been."""
    if not isinstance(rows, tuple) or not all(map(_is_row, rows)):
        raise StateFormatError("the ledger does not say which shards it has")
    blobs = {name: take_array(arrays, name, "uint8").tobytes() for name in arrays}
    metrics = {name: read(blob) for name, blob in blobs.items()}
    shards: dict[ShardId, Shard] = {}
    fits = True
    for index, (name, attempt, told) in enumerate(rows):
        blob = blobs.get(f"shard/{index}")
        shards[as_id(name)] = Shard(attempt, told, metrics.get(f"shard/{index}"))
        fits &= attempt >= 0 and bool(_DIGEST.fullmatch(told))
        fits &= blob is None or told == digest(blob)
    known = Known(metrics.get("empty"), shards, metrics.get("base"))
    empty, base, states = known.empty, known.base, known.states
    fits = (
        fits
        and all(empty is not None and empty._alike(metric) for metric in metrics.values())
        and (empty is None or empty == empty.copy().reset())
        and (empty is not None or not shards)
        and (base is not None) == bool(known.sealed)
        and len(shards) == len(rows)
        and list(shards) == sorted(shards, key=order)
        and len(blobs) == len(states) + (empty is not None) + (base is not None)
    )
    if not fits:
        raise StateFormatError("the shards of the ledger do not fit each other")
    return known


def _is_row(row: Any) -> bool:
    return isinstance(row, tuple) and [type(cell) for cell in row] in (
        [str, int, str],
        [int, int, str],
    )


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
