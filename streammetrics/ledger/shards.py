"""What a ledger knows at one moment, and the least that is above two such states."""

from __future__ import annotations

import operator
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.errors import IncompatibleMetricsError
from streammetrics.ledger.held import states_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from streammetrics.core.mergeable import Mergeable
    from streammetrics.ledger.held import Held

ShardId = str | int

LONGEST = 4096  # characters of a name
LARGEST = 1 << 128  # beyond the integers that are names
LAST = (1 << 63) - 1  # attempt


class Shard(NamedTuple):
    """What is known of one shard: its state, or the digest of a sealed one, or a contradiction."""

    attempt: int
    state: Held | None
    digest: str = ""  # of the bytes of the state that was sealed

    @property
    def is_sealed(self) -> bool:
        """Whether the state is part of a block."""
        return bool(self.digest)

    @property
    def is_contradicted(self) -> bool:
        """Whether two states claim to be of this attempt."""
        return self.state is None and not self.digest


class SealedShards(NamedTuple):
    """Shards that were sealed together, and their one state."""

    names: frozenset[ShardId]
    state: Mergeable


class Known(NamedTuple):
    """The whole state of a ledger."""

    empty: Mergeable | None  # the metric without rows; unknown until there is one
    shards: dict[ShardId, Shard]
    blocks: tuple[SealedShards, ...] = ()  # of the sealed shards: none is within another

    @property
    def sealed(self) -> set[ShardId]:
        """The names of the sealed shards."""
        return {name for name, shard in self.shards.items() if shard.digest}

    @property
    def overlapping(self) -> list[ShardId]:
        """The names of shards in more than one block, sorted, integers first."""
        if len(self.blocks) < 2:
            return []
        counts = Counter(name for block in self.blocks for name in block.names)
        return sorted((name for name, count in counts.items() if count > 1), key=order)

    @property
    def states(self) -> dict[ShardId, Held]:
        """The states of the others."""
        shards = self.shards.items()
        return {name: shard.state for name, shard in shards if shard.state is not None}

    @property
    def contradicted(self) -> list[ShardId]:
        """The names of shards of which two states claim to be one, sorted, integers first."""
        names = (name for name, shard in self.shards.items() if shard.is_contradicted)
        return sorted(names, key=order)


def known_to_both(mine: Known, theirs: Known) -> Known:
    """Return what both know, or raise `IncompatibleMetricsError` where that cannot be."""
    check_alike(mine.empty, theirs.empty)
    shards = dict(mine.shards)
    for name, shard in theirs.shards.items():
        shards[name] = later(name, shards[name], shard) if name in shards else shard
    empty = theirs.empty if mine.empty is None else mine.empty
    return Known(empty, shards, _blocks(mine.blocks, theirs.blocks))


def check_alike(mine: Mergeable | None, theirs: Mergeable | None) -> None:
    """Raise where both are known and differ."""
    if mine is not None and theirs is not None and not mine._alike(theirs):
        raise IncompatibleMetricsError(
            f"cannot merge {shown(theirs)} into a ledger of {shown(mine)}: "
            "the configurations differ"
        )


def later(name: ShardId, mine: Shard, theirs: Shard) -> Shard:
    """Return what is known of a shard of which both are known.

    The later attempt counts. Two states of one attempt are a contradiction, which is kept until a
    later attempt replaces it. A sealed shard cannot be taken out of its block, so that what is
    later than it, or contradicts it, raises: whichever of three is merged first, the last raises.
    """
    low, high = sorted((mine, theirs), key=operator.attrgetter("attempt"))
    if low.attempt < high.attempt:
        if low.is_sealed:
            raise IncompatibleMetricsError(
                f"shard {name!r} is sealed at attempt {low.attempt}: "
                f"it takes no attempt {high.attempt}"
            )
        return high
    if not (mine.is_sealed or theirs.is_sealed):
        return mine if _same(mine, theirs) else Shard(mine.attempt, None)
    if _digest(mine) != _digest(theirs):
        raise contradiction(name, mine.attempt)
    return mine if mine.is_sealed else theirs


def _same(mine: Shard, theirs: Shard) -> bool:
    if mine.state is None or theirs.state is None:
        return mine.state is theirs.state
    return mine.state.equals(theirs.state)


def _digest(shard: Shard) -> str:
    return shard.digest if shard.state is None else shard.state.digest


def contradiction(name: ShardId, attempt: int) -> IncompatibleMetricsError:
    """Return what is raised where the state of a contradicted shard is needed."""
    return IncompatibleMetricsError(
        f"shard {name!r} has two different states at attempt {attempt}: "
        "a retry needs a higher attempt"
    )


def _blocks(
    mine: tuple[SealedShards, ...], theirs: tuple[SealedShards, ...]
) -> tuple[SealedShards, ...]:
    """Return the blocks of both that are not within another.

    What is sealed cannot be taken apart, so blocks that share some shards stay beside each other,
    which raises where the value is read, until one comes that holds them all.
    """
    kept = [block for block in mine if not any(block.names < other.names for other in theirs)]
    more = [block for block in theirs if not any(block.names <= other.names for other in mine)]
    return (*kept, *more)


def apart(names: Sequence[ShardId]) -> IncompatibleMetricsError:
    """Return what is raised where shards that were sealed in two places are read."""
    return IncompatibleMetricsError(
        f"{listed(names)} {'were' if names[1:] else 'was'} sealed in two places, each time with "
        "shards that the other has not, which cannot be taken apart: merge a ledger that sealed "
        "them all"
    )


def total(known: Known, states: Mapping[ShardId, Held]) -> Mergeable:
    """Return what has seen the rows of all sealed shards and of these states of others."""
    if known.empty is None:
        raise ValueError("the ledger has no shards, and was not told of which metric")
    if names := known.overlapping:
        raise apart(names)
    result = known.empty.copy()
    layout = result._layout
    sealed = [block.state._accumulator.part(layout) for block in known.blocks]
    try:
        found, every = layout.merged(layout.start, sealed), [*states.values()]
        for start in range(0, len(every), tuning.OPENED_STATES):
            some = states_of(every[start : start + tuning.OPENED_STATES])
            found = layout.merged(found, some)  # of one configuration, as was checked
        return result._at(found)
    except IncompatibleMetricsError:
        _merge_each(result, {listed(block.names): block.state for block in known.blocks})
        _merge_each(result, {f"shard {name!r}": held.metric for name, held in states.items()})
        raise


def _merge_each(result: Mergeable, states: Mapping[str, Mergeable]) -> None:
    """Merge one after the other, to raise with the name of the first that does not go along."""
    for title, state in states.items():
        try:
            result.merge(state)
        except IncompatibleMetricsError as error:
            raise IncompatibleMetricsError(f"{title}: {error}") from None


def as_id(value: object) -> ShardId:
    """Return a shard's name as a string or an integer of Python's own."""
    if isinstance(value, str):
        if len(value) > LONGEST:
            raise ValueError(f"the name of a shard has {len(value):,} characters, of {LONGEST:,}")
        return str(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        if abs(int(value)) >= LARGEST:
            raise ValueError("the number of a shard takes more than 128 bits")
        return int(value)
    raise TypeError(f"a shard is named by a string or an integer, not by {value!r}")


def as_ids(values: Iterable[ShardId]) -> list[ShardId]:
    """Return the names of shards, each once, in their order."""
    if isinstance(values, str):
        raise TypeError(f"{values!r} is one name; pass a list of names")
    return list(dict.fromkeys(map(as_id, values)))


def as_attempt(value: object) -> int:
    """Return the number of an attempt."""
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise TypeError(f"attempt={value!r} is not an integer")
    number = operator.index(value)
    if number < 0:
        raise ValueError(f"attempt={number} is negative")
    if number > LAST:
        raise ValueError("the number of an attempt takes more than 63 bits")
    return number


def order(name: ShardId) -> tuple[bool, ShardId]:
    """Return the key that sorts names, integers first."""
    return isinstance(name, str), name


def listed(names: Collection[ShardId]) -> str:
    """Return some of the names, for a message."""
    some = ", ".join(map(repr, islice(names, 5)))
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return f"shard{'s' * (len(names) != 1)} {some}{more}"


def shown(metric: Mergeable) -> str:
    """Return a metric as it is written, without its rows."""
    return repr(metric).rpartition(" <")[0]
