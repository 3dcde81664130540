"""What the rows of each key are party to: the facts that they agree on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.columns.schema import joined_facts
from streammetrics.core.errors import StateFormatError
from streammetrics.core.state.arrays import take_array
from streammetrics.statistics.grouped.columns import as_bytes, from_bytes
from streammetrics.statistics.grouped.facts import are_facts, facts_of, facts_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.columns.schema import Facts
    from streammetrics.core.types import Array, Arrays, Places


class Parties(NamedTuple):
    """The facts that occur, none first, and which of them the rows of every key are party to.

    It never changes: what joins is another, and itself where there is nothing new.
    """

    facts: tuple[Facts, ...]
    which: Places

    @classmethod
    def none(cls, size: int = 0) -> Parties:
        """Return keys whose rows are party to nothing."""
        return cls(({},), np.zeros(size, np.intp))

    def joined(self, places: Places, fact: Facts) -> Parties:
        """Let the keys at some places be party to a fact as well."""
        if not fact or not places.size:
            return self
        first = self.which[places[0]]
        known = fact.items() <= self.facts[first].items()
        if known and (self.which[places] == first).all():
            return self
        facts, moved = list(self.facts), self.which.copy()
        for old in np.flatnonzero(np.bincount(moved[places])).tolist():
            more = joined_facts(facts[old], fact)
            if more not in facts:
                facts.append(more)
            if (new := facts.index(more)) != old:
                moved[places[self.which[places] == old]] = new
        return Parties(tuple(facts), moved)

    def plus(self, other: Parties) -> Parties:
        """Return what the rows of the same keys, here and there, are party to together."""
        whole = self
        for which, fact in enumerate(other.facts):
            whole = whole.joined(np.flatnonzero(other.which == which), fact)
        return whole

    def moved(self, kept: Places, places: Places, size: int) -> Parties:
        """Return what so many other keys are party to, of which those kept have their places."""
        whole = Parties(self.facts, np.zeros(size, np.intp))
        for which, fact in enumerate(self.facts):
            whole = whole.joined(places[self.which[kept] == which], fact)
        return whole

    def agreed(self, texts: Sequence[str]) -> frozenset[str]:
        """Return which of some facts, as texts, all keys are party to."""
        known = [
            self.facts[which].items() for which in np.flatnonzero(np.bincount(self.which)).tolist()
        ]
        return frozenset(t for t in texts if all(facts_of(t).items() <= fact for fact in known))

    def at(self, place: int) -> dict[str, Any]:
        """Return the facts that the rows of a key agree on."""
        return dict(self.facts[self.which[place]])

    def arrays(self) -> dict[str, Array]:
        """Return the facts that occur as text, in order, and the place of that of each key."""
        told = [facts_text(fact) for fact in self.facts]
        texts = sorted({told[which] for which in np.flatnonzero(np.bincount(self.which)).tolist()})
        places = {text: place for place, text in enumerate(texts)}
        lookup = np.array([places.get(text, 0) for text in told], np.int64)
        return {"facts": as_bytes(texts), "party": lookup[self.which]}

    @classmethod
    def restored(cls, arrays: Arrays, size: int) -> Parties:
        """Return what `arrays` wrote of so many keys."""
        party = take_array(arrays, "party", "int64")
        texts = from_bytes(take_array(arrays, "facts", "uint8"))
        if party.shape != (size,):
            raise StateFormatError("the rows of groups do not fit their keys")
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise StateFormatError("the facts of groups are no text")
        if size and not 0 <= party.min() <= party.max() < len(texts):
            raise StateFormatError("the rows of a group are party to no facts")
        facts = [facts_of(text) for text in texts]
        if not all(map(are_facts, facts)):
            raise StateFormatError("the facts of groups are none")
        return cls(({}, *facts), party + 1)
