"""The immutable state of a ledger, and the merge (join) of two states."""

from __future__ import annotations

import hashlib
import operator
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.errors import IncompatibleMetricsError
from streammetrics.core.feeding.plan import described
from streammetrics.core.state.arrays import same
from streammetrics.ledger.names import listed, ordered
from streammetrics.ledger.table import HELD, SEALED, Shard, ShardTable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from streammetrics.core.feeding.states import State
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.ledger.names import ShardId


class SealedShards(NamedTuple):
    """Shards that were sealed together, and their merged state."""

    names: frozenset[ShardId]
    state: Mergeable


class Known(NamedTuple):
    """The whole state of a ledger.

    Shards added since the last read are in `added`, and take precedence over shards of the same
    name in the table; `folded` moves them into the table.
    """

    empty: Mergeable | None  # the metric without rows; None if not known yet
    table: ShardTable | None  # None if `empty` is None
    added: dict[ShardId, Shard]
    blocks: tuple[SealedShards, ...] = ()  # the sealed shards; no block is a subset of another

    @classmethod
    def of(cls, empty: Mergeable | None) -> Known:
        """Return the state without shards."""
        table = None if empty is None else ShardTable.of(empty._plan, {})
        return cls(empty, table, {})

    def __contains__(self, name: object) -> bool:
        return name in self.added or (self.table is not None and name in self.table.places)

    @property
    def size(self) -> int:
        """The number of shards."""
        if self.table is None:
            return 0
        places = self.table.places
        return len(places) + sum([name not in places for name in self.added])

    def get(self, name: ShardId) -> Shard | None:
        """Return the entry of a shard, or ``None`` if it is unknown."""
        found = self.added.get(name)
        if found is None and self.table is not None:
            place = self.table.places.get(name)
            found = None if place is None else self.table.at(place)
        return found

    def folded(self) -> Known:
        """Return the same state with all shards in the table."""
        added = dict(self.added)  # a copy: a signal handler may add to the original
        if not added or self.table is None:
            return self
        more = ShardTable.of(self.table.states.plan, added)
        if self.table.places:
            kept = np.array([name not in added for name in self.table.places], np.bool_)
            more = self.table.beside(kept, more, np.ones(len(more.kinds), np.bool_))
        return self._replace(table=more, added={})

    def having(self, kind: int) -> list[ShardId]:
        """Return the names of the shards of a kind, sorted, integers first."""
        table = self.folded().table
        return [] if table is None else table.having(kind)

    @property
    def overlapping(self) -> list[ShardId]:
        """The names of shards in more than one block, sorted, integers first."""
        if len(self.blocks) < 2:
            return []
        counts = Counter(name for block in self.blocks for name in block.names)
        return ordered(name for name, count in counts.items() if count > 1)


def known_to_both(mine: Known, theirs: Known) -> Known:
    """Return the join of two states; raise `IncompatibleMetricsError` if there is none."""
    check_alike(mine.empty, theirs.empty)
    mine, theirs = mine.folded(), theirs.folded()
    blocks = _blocks(mine.blocks, theirs.blocks)
    one, two, empty = mine.table, theirs.table, mine.empty
    if one is None or two is None or empty is None:
        return (theirs if mine.empty is None else mine)._replace(blocks=blocks)
    common = [name for name in two.places if name in one.places]
    here = np.array([one.places[name] for name in common], np.intp)
    there = np.array([two.places[name] for name in common], np.intp)
    kept, more = np.ones(len(one.kinds), np.bool_), np.ones(len(two.kinds), np.bool_)
    more[there] = False
    odd: dict[ShardId, Shard] = {}
    step = one.attempts[here] - two.attempts[there]
    plain = (one.kinds[here] != SEALED) & (two.kinds[there] != SEALED)
    newer = plain & (step < 0)
    kept[here[newer]], more[there[newer]] = False, True
    even = plain & (step == 0)
    both = even & (one.kinds[here] == HELD) & (two.kinds[there] == HELD)
    pairs = np.flatnonzero(both)
    if pairs.size:
        states, others = one.states_at(here[pairs]), two.states_at(there[pairs])
        for place in pairs[states.differing(others)].tolist():
            odd[common[place]] = Shard(int(one.attempts[here[place]]), None)
    for place in np.flatnonzero(even & ~both).tolist():
        odd[common[place]] = Shard(int(one.attempts[here[place]]), None)
    for place in np.flatnonzero(~plain).tolist():
        name = common[place]
        odd[name] = later(name, one.at(int(here[place])), two.at(int(there[place])), empty)
    return Known(empty, one.beside(kept, two, more), odd, blocks).folded()


def check_alike(mine: Mergeable | None, theirs: Mergeable | None) -> None:
    """Raise `IncompatibleMetricsError` if both are known and their configurations differ."""
    if mine is not None and theirs is not None and not mine._alike(theirs):
        raise IncompatibleMetricsError(
            f"cannot merge {shown(theirs)} into a ledger of {shown(mine)}: "
            "the configurations differ"
        )


def later(name: ShardId, mine: Shard, theirs: Shard, empty: Mergeable) -> Shard:
    """Return the join of two entries of the same shard.

    The later attempt wins. Two different states of one attempt are a contradiction, which persists
    until a later attempt replaces it. A sealed shard cannot be removed from its block, so a later
    attempt or a contradiction raises, regardless of the order in which ledgers are merged.
    """
    low, high = sorted((mine, theirs), key=operator.attrgetter("attempt"))
    if low.attempt < high.attempt:
        if low.kind == SEALED:
            raise IncompatibleMetricsError(
                f"shard {name!r} is sealed at attempt {low.attempt}: "
                f"it takes no attempt {high.attempt}"
            )
        return high
    if SEALED not in {mine.kind, theirs.kind}:
        return mine if _same(mine, theirs) else Shard(mine.attempt, None)
    if _digest(mine, empty) != _digest(theirs, empty):
        raise contradiction(name, mine.attempt)
    return mine if mine.kind == SEALED else theirs


def _same(mine: Shard, theirs: Shard) -> bool:
    if mine.state is None or theirs.state is None or mine.state is theirs.state:
        return mine.state is theirs.state
    if mine.state.infos != theirs.state.infos:
        return False
    (told, arrays), (others, more) = described(mine.state), described(theirs.state)
    return repr(told) == repr(others) and same(arrays, more)


def _digest(shard: Shard, empty: Mergeable) -> bytes:
    return shard.digest if shard.state is None else digest(shard.state, empty)


def digest(state: State, empty: Mergeable) -> bytes:
    """Return the digest that replaces a state once it is sealed."""
    return hashlib.sha256(empty._at(state).to_bytes()).digest()


def contradiction(name: ShardId, attempt: int) -> IncompatibleMetricsError:
    """Return the error for using the state of a contradicted shard."""
    return IncompatibleMetricsError(
        f"shard {name!r} has two different states at attempt {attempt}: "
        "a retry needs a higher attempt"
    )


def _blocks(
    mine: tuple[SealedShards, ...], theirs: tuple[SealedShards, ...]
) -> tuple[SealedShards, ...]:
    """Return the blocks of both that are not subsets of another.

    Sealed shards cannot be separated, so blocks that overlap are both kept. Reading the value then
    raises until a block that contains both is merged.
    """
    kept = [block for block in mine if not any(block.names < other.names for other in theirs)]
    more = [block for block in theirs if not any(block.names <= other.names for other in mine)]
    return (*kept, *more)


def total(known: Known, chosen: Collection[ShardId] | None = None) -> Mergeable:
    """Return the merge of all sealed shards, and of all unsealed ones or only those in `chosen`."""
    known = known.folded()
    empty, table = known.empty, known.table
    if empty is None or table is None:
        raise ValueError("the ledger has no shards and no metric")
    if names := known.overlapping:
        raise IncompatibleMetricsError(
            f"{listed(names)} {'were' if names[1:] else 'was'} sealed in two places, each time "
            "with shards that the other lacks: merge a ledger that "
            "sealed them all"
        )
    held = table.having(HELD) if chosen is None else ordered(chosen)
    states = table.states
    if chosen is not None:
        states = table.states_at(np.array([table.places[name] for name in held], np.intp))
    plan = empty._plan
    sealed = [block.state._accumulator.part(plan) for block in known.blocks]
    try:
        return empty._at(
            plan.merged(plan.start, [*sealed, *([states.total()] if states.size else [])])
        )
    except IncompatibleMetricsError:
        result = empty.copy()
        _merge_each(result, {listed(block.names): block.state for block in known.blocks})
        for place, name in enumerate(held):
            _merge_each(result, {f"shard {name!r}": empty._at(states.at(place))})
        raise


def _merge_each(result: Mergeable, states: Mapping[str, Mergeable]) -> None:
    """Merge states one by one, to name the first incompatible one in the error."""
    for title, state in states.items():
        try:
            result.merge(state)
        except IncompatibleMetricsError as error:
            raise IncompatibleMetricsError(f"{title}: {error}") from None


def shown(metric: Mergeable) -> str:
    """Return the repr of a metric without its number of rows."""
    return repr(metric).rpartition(" <")[0]
