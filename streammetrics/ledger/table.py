"""Shards as columns: names, attempts, kinds, digests, and states."""

from __future__ import annotations

import operator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.feeding.many import StateTable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.feeding.states import State
    from streammetrics.core.types import Array, Bools, Ints, Places


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
        ranks: Places = np.cumsum(self.kinds == kind) - 1
        return ranks

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
