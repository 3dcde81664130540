"""Histories of ledgers beside a model that forgets nothing: the same bytes or refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streammetrics as sm

if TYPE_CHECKING:
    import numpy as np

NAMES = [0, 7, "0", "a", "b", "c"]
STATES = [sm.Mean().update([float(i), 0.1]) for i in range(3)]


class Model:
    """All that was ever said of shards, and what is sealed."""

    def __init__(self) -> None:
        self.said: set[tuple[Any, int, int]] = set()
        self.sealed: dict[Any, tuple[int, int]] = {}
        self.blocks: set[frozenset[Any]] = set()  # of all that were ever sealed together

    def copy(self) -> Model:
        """Return another one that knows the same."""
        twin = Model()
        twin.said, twin.sealed, twin.blocks = set(self.said), dict(self.sealed), set(self.blocks)
        return twin

    @property
    def largest(self) -> list[frozenset[Any]]:
        """The blocks that are within no other, which are all that counts."""
        return [one for one in self.blocks if not any(one < other for other in self.blocks)]

    def last(self, name: Any) -> tuple[int, set[int]]:
        """Return the last attempt of a shard and the states that claim to be it."""
        attempt = max(number for other, number, _ in self.said if other == name)
        return attempt, {s for other, number, s in self.said if (other, number) == (name, attempt)}

    def __contains__(self, name: object) -> bool:
        return any(other == name for other, _, _ in self.said)

    def merge(self, other: Model) -> bool:
        """Take what another knows, or return False and be as before."""
        union = self.copy()
        union.said |= other.said
        union.blocks |= other.blocks
        for name, (attempt, state) in [*self.sealed.items(), *other.sealed.items()]:
            if union.last(name) != (attempt, {state}):
                return False
            union.sealed[name] = attempt, state
        self.said, self.sealed, self.blocks = union.said, union.sealed, union.blocks
        return True

    def add(self, name: Any, attempt: int, state: int) -> bool:
        """Take a state, or return False where the shard is sealed."""
        if name in self.sealed:
            return False
        self.said.add((name, attempt, state))
        return True

    def seal(self, names: list[Any]) -> bool:
        """Seal shards, or return False where one is not there or contradicted, or two overlap."""
        if not all(name in self and len(self.last(name)[1]) == 1 for name in names):
            return False
        together = frozenset(names).union(self.sealed)
        if set(names) <= self.sealed.keys() and (len(self.largest) < 2 or not names):
            return True
        if sum(map(len, self.largest)) > len(self.sealed):
            return False
        self.blocks.add(together)
        for name in names:
            attempt, (state,) = self.last(name)
            self.sealed[name] = attempt, state
        return True

    def ledger(self) -> sm.Ledger:
        """Return the ledger that knows this, in the plainest way."""
        made = sm.Ledger()
        for name in NAMES:
            if name in self and name not in self.sealed:
                attempt, states = self.last(name)
                for state in states:
                    made.add(name, STATES[state], attempt)
        for block in self.largest:
            part = sm.Ledger()
            for name in block:
                attempt, state = self.sealed[name]
                part.add(name, STATES[state], attempt)
            made.merge(part.seal(block))
        return made


def attempt(rng: np.random.Generator) -> int:
    """Do random things to some ledgers and their models; return how many were refused."""
    ledgers, models = [sm.Ledger() for _ in range(4)], [Model() for _ in range(4)]
    refused = 0
    for _ in range(int(rng.integers(5, 40))):
        i, j = (int(k) for k in rng.integers(4, size=2))
        action = rng.random()
        if action < 0.5:
            name, number, state = NAMES[rng.integers(6)], int(rng.integers(3)), int(rng.integers(3))
            state = number if rng.random() < 0.7 else state
            told = models[i].add(name, number, state)
            done = tried(lambda: ledgers[i].add(name, STATES[state], number))  # noqa: B023
        elif action < 0.75:
            told = models[i].merge(models[j])
            done = tried(lambda: ledgers[i].merge(ledgers[j]))  # noqa: B023
        elif action < 0.85:
            names = [NAMES[k] for k in rng.permutation(6)[: rng.integers(4)]]
            told = models[i].seal(names)
            done = tried(lambda: ledgers[i].seal(names))  # noqa: B023
        else:
            told = done = True
            ledgers[i] = [sm.from_bytes(ledgers[i].to_bytes()), ledgers[i].copy()][rng.integers(2)]
        assert told == done, "the ledger refused what the model took, or the other way round"
        refused += not done
        assert ledgers[i].to_bytes() == models[i].ledger().to_bytes(), "the state differs"
    outcomes = {merged([ledgers[i] for i in rng.permutation(4)], rng) for _ in range(4)}
    assert len(outcomes) == 1, "the order of merging decides"
    return refused


def tried(call: Any) -> bool:
    """Return whether a call was not refused."""
    try:
        call()
    except (sm.IncompatibleMetricsError, ValueError):
        return False
    return True


def merged(ledgers: list[sm.Ledger], rng: np.random.Generator) -> bytes:
    """Return the bytes of all, merged in a random tree, or nothing where that is refused."""
    ledgers = [ledger.copy() for ledger in ledgers]
    while len(ledgers) > 1:
        one = ledgers.pop(int(rng.integers(len(ledgers))))
        if not tried(lambda: ledgers[int(rng.integers(len(ledgers)))].merge(one)):  # noqa: B023
            return b""
    return ledgers[0].to_bytes()
