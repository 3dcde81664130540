"""Shards as columns: names, attempts, kinds, digests, and states."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.feeding.many import StateTable
from streammetrics.ledger.names import ordered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.feeding.states import State
    from streammetrics.core.types import Array, Bools, Ints, Places
    from streammetrics.ledger.names import ShardId

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
