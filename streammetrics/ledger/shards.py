"""The immutable state of a ledger, the merge (join) of two states, and their arrays in a file."""

from __future__ import annotations

import hashlib
import operator
from collections import Counter
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.feeding.many import StateTable
from streammetrics.core.feeding.plan import described
from streammetrics.core.loading import from_bytes
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.state.arrays import (
    json_array,
    json_of,
    nested,
    part,
    same,
    take_array,
    take_sizes,
)
from streammetrics.ledger.table import (
    CONTRADICTED,
    HELD,
    SEALED,
    Shard,
    ShardTable,
    as_id,
    listed,
    ordered,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from streammetrics.core.feeding.states import State
    from streammetrics.core.types import Array, Arrays
    from streammetrics.ledger.table import ShardId


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
    blocks = _read_blocks(arrays, table.names)
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


def _read_blocks(arrays: Arrays, names: list[int | str]) -> tuple[SealedShards, ...]:
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
