"""Merging with retries: states by shard, each of which counts once."""

from __future__ import annotations

import hashlib
import operator
from collections import Counter
from html import escape
from itertools import islice, permutations
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, cast

import numpy as np

from streammetrics.core.accumulator import Locked
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError, an
from streammetrics.core.feeding.many import StateTable
from streammetrics.core.feeding.plan import described
from streammetrics.core.loading import from_bytes
from streammetrics.core.mergeable import M_co, Mergeable, Stateful
from streammetrics.core.registry import registered_name
from streammetrics.core.state.arrays import (
    json_array,
    json_of,
    nested,
    part,
    same,
    take_array,
    take_sizes,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.feeding.states import State
    from streammetrics.core.mergeable import Description
    from streammetrics.core.types import Array, Arrays, Bools, Ints, Places, V_co


ShardId = str | int

LONGEST = 4096  # maximum length of a name, in characters
LARGEST = 1 << 128  # integer names must be smaller in magnitude
LAST = (1 << 63) - 1  # largest attempt number


def as_id(value: object) -> ShardId:
    """Return the name of a shard as a Python string or integer."""
    if isinstance(value, str):
        if len(value) > LONGEST:
            raise ValueError(f"the name of a shard has {len(value):,} characters, of {LONGEST:,}")
        return str(value)
    if type(value) is int and -LARGEST < value < LARGEST:
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        if abs(int(value)) >= LARGEST:
            raise ValueError("the number of a shard takes more than 128 bits")
        return int(value)
    raise TypeError(f"a shard is named by a string or an integer, not by {value!r}")


def as_ids(values: Iterable[ShardId]) -> list[ShardId]:
    """Return the distinct names of shards, in their order."""
    if isinstance(values, str):
        raise TypeError(f"{values!r} is one name; pass a list of names")
    return list(dict.fromkeys(map(as_id, values)))


def as_attempt(value: object) -> int:
    """Return an attempt number as a Python integer."""
    if type(value) is int and 0 <= value <= LAST:
        return value
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise TypeError(f"attempt={value!r} is not an integer")
    number = operator.index(value)
    if number < 0:
        raise ValueError(f"attempt={number} is negative")
    if number > LAST:
        raise ValueError("the number of an attempt takes more than 63 bits")
    return number


def ordered(names: Iterable[ShardId]) -> list[ShardId]:
    """Return names sorted, integers first."""
    numbers: list[int] = []
    texts: list[str] = []
    for name in names:
        if isinstance(name, str):
            texts.append(name)
        else:
            numbers.append(name)
    return [*sorted(numbers), *sorted(texts)]


def listed(names: Collection[ShardId]) -> str:
    """Return up to five of the names as text for a message."""
    some = ", ".join(map(repr, islice(names, 5)))
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return f"shard{'s' * (len(names) != 1)} {some}{more}"


HELD, SEALED, CONTRADICTED = range(3)


class Shard(NamedTuple):
    """One shard: a state, the digest of a sealed state, or neither for a contradiction."""

    attempt: int
    state: State | None
    digest: bytes = b""  # SHA-256 of the bytes of the sealed state

    @property
    def kind(self) -> int:
        """`HELD` with a state, `SEALED`, or `CONTRADICTED` with two states of one attempt."""
        return HELD if self.state is not None else SEALED if self.digest else CONTRADICTED


class ShardTable(NamedTuple):
    """An immutable table of shards in the order of their names.

    `digests` and `states` only have entries for sealed and held shards, in the same order.
    """

    places: dict[ShardId, int]  # the place of each name, in order
    attempts: Ints
    kinds: NDArray[np.uint8]
    digests: NDArray[np.uint8]  # (sealed, 32)
    states: StateTable

    @classmethod
    def of(cls, plan: Plan, shards: Mapping[ShardId, Shard]) -> ShardTable:
        """Return the table of the given shards."""
        names = ordered(shards)
        every = [shards[name] for name in names]
        kinds = np.array([shard.kind for shard in every], np.uint8)
        digests = b"".join([shard.digest for shard in every])
        return cls(
            dict(zip(names, range(len(names)), strict=True)),
            np.array([shard.attempt for shard in every], np.int64),
            kinds,
            np.frombuffer(digests, np.uint8).reshape(-1, 32),
            StateTable.of(plan, [shard.state for shard in every if shard.state is not None]),
        )

    @property
    def names(self) -> list[ShardId]:
        """The names, in order."""
        return list(self.places)

    def ranks(self, kind: int) -> Places:
        """Return the rank of each shard among those of `kind`; valid for shards of that kind."""
        return np.cumsum(self.kinds == kind) - 1

    def at(self, place: int) -> Shard:
        """Return the shard at a place."""
        attempt, kind = int(self.attempts[place]), int(self.kinds[place])
        rank = int(np.count_nonzero(self.kinds[:place] == kind))
        if kind == HELD:
            return Shard(attempt, self.states.at(rank))
        return Shard(attempt, None, self.digests[rank].tobytes() if kind == SEALED else b"")

    def states_at(self, places: Places) -> StateTable:
        """Return the states of the shards at places, all of which must be held."""
        return self.states.take(self.ranks(HELD)[places])

    def beside(self, mine: Bools, other: ShardTable, theirs: Bools) -> ShardTable:
        """Return the table of the selected shards of both tables, whose names must be disjoint."""
        own = [name for name, kept in zip(self.places, mine.tolist(), strict=True) if kept]
        more = [name for name, kept in zip(other.places, theirs.tolist(), strict=True) if kept]
        names = ordered([*own, *more])
        places = dict(zip(names, range(len(names)), strict=True))
        sides = [
            (self, np.flatnonzero(mine), np.array([places[name] for name in own], np.intp)),
            (other, np.flatnonzero(theirs), np.array([places[name] for name in more], np.intp)),
        ]
        attempts, kinds = np.zeros(len(names), np.int64), np.zeros(len(names), np.uint8)
        for table, kept, to in sides:
            attempts[to], kinds[to] = table.attempts[kept], table.kinds[kept]
        rank = {kind: np.cumsum(kinds == kind) - 1 for kind in (HELD, SEALED)}
        digests = np.zeros((int(np.count_nonzero(kinds == SEALED)), 32), np.uint8)
        moves = []
        for table, kept, to in sides:
            sealed = table.kinds[kept] == SEALED
            digests[rank[SEALED][to[sealed]]] = table.digests[table.ranks(SEALED)[kept[sealed]]]
            held = table.kinds[kept] == HELD
            move = np.full(table.states.size, -1)
            move[table.ranks(HELD)[kept[held]]] = rank[HELD][to[held]]
            moves.append(move)
        size = int(np.count_nonzero(kinds == HELD))
        states = self.states.beside(moves[0], other.states, moves[1], size)
        return ShardTable(places, attempts, kinds, digests, states)

    def having(self, kind: int) -> list[ShardId]:
        """Return the names of the shards of a kind."""
        flags = (self.kinds == kind).tolist()
        return [name for name, flag in zip(self.places, flags, strict=True) if flag]

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        columns: Sequence[Array] = (self.attempts, self.kinds, self.digests)
        names = 64 * len(self.places)  # estimate of the memory of each name
        return names + sum([column.nbytes for column in columns]) + self.states.nbytes


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


_CHEAP = 1 << 18  # bytes of state up to which the notebook display of a ledger shows the value


class Ledger(Stateful, Generic[M_co]):
    """The states of shards, stored separately until they are sealed, so that each counts once.

    If tasks are retried or run twice, a plain merge counts a shard as often as it arrives. A ledger
    identifies shards by name. Adding the same state again changes nothing, and the state of a later
    attempt replaces those of earlier ones. Two different states of one attempt are a contradiction.
    It persists until a later attempt replaces it; until then, reading the value or sealing the
    shard raises. `merge` of ledgers is idempotent, commutative and associative, byte for byte. Any
    number of threads may add, merge, seal and read concurrently.

    Args:
        metric: The metric or set of all shards, without rows; by default that of the first shard
            added.

    Raises:
        IncompatibleMetricsError: From `add` and `merge`, which leave the ledger unchanged: a state
            has another configuration, or a sealed shard gets a later attempt or a different state.
            From `compute`, `merged`, `bounds`, `n_rows` and `seal`: a shard is contradicted, or
            ledgers sealed it separately, each together with other shards. Seal in one place, or
            merge a ledger that sealed all of them.

    Memory and cost:
        The states of the shards that are not sealed, one state for all sealed shards, and some 250
        bytes for each name. `add` takes a snapshot, which costs next to nothing. The first read
        after a change converts the added states to columns over all shards, in which they are
        saved, merged and compared at once.

    Example:
        >>> import streammetrics as sm
        >>> ledger = sm.Ledger(sm.Mean())
        >>> monday, tuesday = sm.Mean().update([1.0, 2.0]), sm.Mean().update([6.0])
        >>> _ = ledger.add("monday", monday).add("tuesday", tuesday).add("monday", monday)
        >>> ledger.compute()
        3.0
        >>> _ = ledger.add("tuesday", sm.Mean().update([9.0]), attempt=2)
        >>> ledger.compute(), ledger.missing(["monday", "tuesday", "wednesday"])
        (4.0, ['wednesday'])
        >>> ledger.seal(["monday"])
        Ledger(Mean()) <2 shards, 1 sealed>
    """

    def __init__(self, metric: M_co | None = None) -> None:
        if metric is not None and (_mergeable(metric).n_rows or metric.n_omitted):
            raise ValueError(
                f"{shown(metric)} has already seen {metric.n_rows:,} rows: add() it as a shard"
            )
        self._guard = Locked()  # a separate object, because a class compared by state has no hash
        self._changes = 0
        self._put(Known.of(None if metric is None else metric.copy()))

    def _put(self, known: Known) -> None:
        self._known = known  # its dictionary `added` must not be shared with another ledger
        self._changed()

    def _changed(self) -> None:
        self._changes += 1
        self._total: Mergeable | None = None  # the cached result of `merged`

    def _seen(self) -> Known:
        """Return an immutable snapshot of the state, with all shards in the table."""
        with self._guard._lock:
            changes, known = self._changes, self._known
            known = known._replace(added=dict(known.added))
        if known.added:
            known = known.folded()
            with self._guard._lock:
                if self._changes == changes:
                    self._known = known._replace(added={})
        return known

    def add(self, shard_id: ShardId, metric: Mergeable, attempt: int = 1) -> Self:
        """Add the state of a shard and return this ledger; on an error, it is unchanged.

        Args:
            shard_id: The shard's name, a string or an integer; the same for every attempt.
            metric: The metric or set; its current state is added.
            attempt: A non-negative integer, larger for later attempts. A state of an earlier
                attempt than the stored one changes nothing. A different state of the same attempt
                is a contradiction, see `contradicted`.
        """
        name, number = as_id(shard_id), as_attempt(attempt)
        checked = self._known.empty
        if checked is None or not checked._alike(metric):
            check_alike(checked, _mergeable(metric))
        state = metric._accumulator.part(metric._plan)
        blank = metric.copy().reset() if checked is None else None
        with self._guard._lock:
            changes = before = None
            while changes != self._changes or before is not self._known:  # a signal handler ran
                changes, before = self._changes, self._known
                known = Known.of(blank) if before.empty is None else before
                empty = known.empty
                assert empty is not None
                if empty is not checked:
                    check_alike(empty, metric)
                shard, held = Shard(number, state), known.get(name)
                if held is not None:
                    if held.kind == SEALED:
                        raise IncompatibleMetricsError(
                            f"shard {name!r} is sealed: it takes no further state"
                        )
                    shard = later(name, held, shard, empty)
            # The dictionary belongs to this ledger; copying it would take time in all its shards.
            known.added[name] = shard
            self._known = known
            self._changed()
        return self

    def merge(self, *others: Ledger) -> Self:
        """Merge other ledgers into this one and return it; on an error, it is unchanged."""
        for other in others:
            if not isinstance(other, Ledger):
                raise IncompatibleMetricsError(
                    f"cannot merge {other!r} into {self!r}: add it as a shard, by name"
                )
        theirs = [other._seen() for other in others]  # before locking: no thread holds two locks
        with self._guard._lock:
            changes = before = None
            while changes != self._changes or before is not self._known:  # a signal handler ran
                changes, known = self._changes, self._known
                before = known
                for other_known in theirs:
                    known = known_to_both(known, other_known)
            self._known = known
            self._changed()
        return self

    def seal(self, ids: Iterable[ShardId]) -> Self:
        """Merge finished shards into one state that accepts no changes to them; return this ledger.

        Shards sealed earlier become part of the same state.

        Raises:
            ValueError: A shard was never added; the ledger is unchanged.
            IncompatibleMetricsError: A shard is contradicted, or shards were sealed in two places,
                see `merged`; the ledger is unchanged.
        """
        names = as_ids(ids)
        with self._guard._lock:
            changes = before = None
            while changes != self._changes or before is not self._known:  # a signal handler ran
                changes, after = self._changes, self._known
                before = after
                found = {name: after.get(name) for name in names}
                if unknown := [name for name in names if found[name] is None]:
                    raise ValueError(
                        f"no state was added for {listed(unknown)}: it cannot be sealed"
                    )
                shards = {name: shard for name, shard in found.items() if shard is not None}
                for name, shard in shards.items():
                    if shard.kind == CONTRADICTED:
                        raise contradiction(name, shard.attempt)
                fresh = {
                    name: (shard.attempt, shard.state)
                    for name, shard in shards.items()
                    if shard.state is not None
                }
                if after.empty is not None and (fresh or (names and len(after.blocks) > 1)):
                    after = after.folded()
                    assert after.empty is not None
                    sealed = {
                        name: Shard(attempt, None, digest(state, after.empty))
                        for name, (attempt, state) in fresh.items()
                    }
                    together = frozenset(fresh).union(*(block.names for block in after.blocks))
                    block = SealedShards(together, total(after, fresh))
                    after = after._replace(added=sealed, blocks=(block,)).folded()
            self._known = after
            self._changed()
        return self

    def missing(self, expected_ids: Iterable[ShardId]) -> list[ShardId]:
        """Return the expected names without a state, in their order."""
        known = self._known
        return [name for name in as_ids(expected_ids) if name not in known]

    def merged(self) -> M_co:
        """Return a new metric or set with the rows of all shards.

        Raises:
            ValueError: There are no shards, and the ledger was created without a metric.
            IncompatibleMetricsError: Shards have incompatible kinds of rows, a shard is
                contradicted, or shards were sealed in two places, each time together with others;
                the message names the shards.
        """
        with self._guard._lock:
            found, changes = self._total, self._changes
        if found is None:
            known = self._seen()
            for name in known.having(CONTRADICTED):
                raise contradiction(name, self.attempts[name])
            found = total(known)
            with self._guard._lock:
                if self._changes == changes:
                    self._total = found
        return cast("M_co", found.copy())

    def compute(self: Ledger[Mergeable[V_co]]) -> V_co:
        """Return the value over all shards, as the metric's own `compute` does."""
        return self.merged().compute()

    def bounds(self) -> Any:
        """Return certain limits of the exact value over all shards."""
        return self.merged().bounds()

    def copy(self) -> Self:
        """Return an independent ledger with the same state."""
        return self._of(self._seen())

    @property
    def ids(self) -> list[ShardId]:
        """The names of all shards, sorted, integers first."""
        table = self._seen().table
        return [] if table is None else table.names

    @property
    def attempts(self) -> dict[ShardId, int]:
        """The current attempt of each shard, in the order of `ids`."""
        table = self._seen().table
        return (
            {} if table is None else dict(zip(table.places, table.attempts.tolist(), strict=True))
        )

    @property
    def sealed(self) -> list[ShardId]:
        """The names of the sealed shards, sorted, integers first."""
        return self._seen().having(SEALED)

    @property
    def contradicted(self) -> list[ShardId]:
        """The names of shards with two states of their last attempt, sorted, integers first."""
        return self._seen().having(CONTRADICTED)

    def __len__(self) -> int:
        return self._known.size

    def __contains__(self, shard_id: object) -> bool:
        return shard_id in self._known

    @property
    def n_rows(self) -> int:
        """Number of rows of all shards."""
        return 0 if self._known.empty is None else int(self.merged().n_rows)

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        known = self._seen()
        own = 0 if known.table is None else known.table.nbytes
        return own + sum(block.state.nbytes for block in known.blocks)

    @property
    def _types(self) -> tuple[type, ...]:
        empty = self._known.empty
        return () if empty is None else empty._types

    def __repr__(self) -> str:
        known = self._seen()
        of = "" if known.empty is None else shown(known.empty)
        count, odd = known.size, len(known.having(CONTRADICTED))
        told = f"{count:,} shard{'s' * (count != 1)}, {len(known.having(SEALED)):,} sealed"
        return f"Ledger({of}) <{told}{f', {odd:,} contradicted' if odd else ''}>"

    def _repr_html_(self) -> str:
        line = f"<p>{escape(repr(self))}</p>"
        if self._known.empty is None or self.contradicted or self.nbytes > _CHEAP:
            return line
        try:
            merged: Any = self.merged()
            return line + str(merged._repr_html_())
        except IncompatibleMetricsError:  # `merged` reports it
            return line

    def _describe(self) -> Description:
        """Return the class name, and the shards as arrays."""
        return {"class": registered_name(type(self))}, written(self._seen()), ""

    @classmethod
    def _rebuild(cls, meta: Mapping[str, object], arrays: Arrays) -> Self:  # noqa: ARG003 - it holds only the class
        """Return the ledger from its description."""
        return cls._of(read(arrays))

    @classmethod
    def _of(cls, known: Known) -> Self:
        """Return a ledger with the given state."""
        ledger = cls()
        ledger._put(known)
        return ledger


def _mergeable(metric: object) -> Mergeable:
    if not isinstance(metric, Mergeable):
        raise TypeError(f"{an(type(metric).__name__)} is not a metric or a MetricSet")
    return metric
