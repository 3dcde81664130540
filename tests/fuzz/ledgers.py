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

    def copy(self) -> Model:
        """Return another one that knows the same."""
        twin = Model()
        twin.said, twin.sealed = set(self.said), dict(self.sealed)
        return twin

    def last(self, name: Any) -> tuple[int, set[int]]:
        """Return the last attempt of a shard and the states that claim to be it."""
        attempt = max(number for other, number, _ in self.said if other == name)
        return attempt, {s for other, number, s in self.said if (other, number) == (name, attempt)}

    def __contains__(self, name: object) -> bool:
        return any(other == name for other, _, _ in self.said)

    def merge(self, other: Model) -> bool:
        """Take what another knows, or return False and be as before."""
        mine, theirs = self.sealed.keys(), other.sealed.keys()
        if not (mine <= theirs or theirs <= mine or mine.isdisjoint(theirs)):
            return False
        union = self.copy()
        union.said |= other.said
        for name, (attempt, state) in [*self.sealed.items(), *other.sealed.items()]:
            if union.last(name) != (attempt, {state}):
                return False
            union.sealed[name] = attempt, state
        self.said, self.sealed = union.said, union.sealed
        return True

    def add(self, name: Any, attempt: int, state: int) -> bool:
        """Take a state, or return False where the shard is sealed."""
        if name in self.sealed:
            return False
        self.said.add((name, attempt, state))
        return True

    def seal(self, names: list[Any]) -> bool:
        """Seal shards, or return False where one is not there or contradicted."""
        if not all(name in self and len(self.last(name)[1]) == 1 for name in names):
            return False
        for name in names:
            attempt, (state,) = self.last(name)
            self.sealed[name] = attempt, state
        return True

    def ledger(self) -> sm.Ledger:
        """Return the ledger that knows this, in the plainest way."""
        made = sm.Ledger()
        for name in NAMES:
            if name in self:
                attempt, states = self.last(name)
                for state in states:
                    made.add(name, STATES[state], attempt)
        return made.seal(self.sealed)


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
        elif action < 0.85:  # one place seals, as more than one may not agree
            names = NAMES[: int(rng.integers(7))]
            told, i = models[0].seal(names), 0
            done = tried(lambda: ledgers[0].seal(names))  # noqa: B023
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
