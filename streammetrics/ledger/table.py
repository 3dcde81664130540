"""Shards as columns: names, attempts, what is known of each, and their states over all."""

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
    """What is known of one shard: its state, or the digest of a sealed one, or a contradiction."""

    attempt: int
    state: State | None
    digest: bytes = b""  # of the bytes of the state that was sealed

    @property
    def kind(self) -> int:
        """Whether the shard has a state, is sealed, or has two states of one attempt."""
        return HELD if self.state is not None else SEALED if self.digest else CONTRADICTED


class ShardTable(NamedTuple):
    """Shards in the order of their names. It never changes.

    The states and the digests are those of the shards that have one, in the same order.
    """

    places: dict[ShardId, int]  # of each name, in order
    attempts: Ints
    kinds: NDArray[np.uint8]
    digests: NDArray[np.uint8]  # (sealed, 32)
    states: StateTable

    @classmethod
    def of(cls, plan: Plan, shards: Mapping[ShardId, Shard]) -> ShardTable:
        """Return the table of single shards."""
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
        """Return the place of each shard among those of its kind, for those of this one."""
        ranks: Places = np.cumsum(self.kinds == kind) - 1
        return ranks

    def at(self, place: int) -> Shard:
        """Return one shard."""
        attempt, kind = int(self.attempts[place]), int(self.kinds[place])
        rank = int(np.count_nonzero(self.kinds[:place] == kind))
        if kind == HELD:
            return Shard(attempt, self.states.at(rank))
        return Shard(attempt, None, self.digests[rank].tobytes() if kind == SEALED else b"")

    def states_at(self, places: Places) -> StateTable:
        """Return the states of some shards, all of which have one."""
        return self.states.take(self.ranks(HELD)[places])

    def beside(self, mine: Bools, other: ShardTable, theirs: Bools) -> ShardTable:
        """Return those shards of both tables that are kept; no name is kept in both."""
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
        names = 64 * len(self.places)  # about what is held of each
        return names + sum([column.nbytes for column in columns]) + self.states.nbytes
