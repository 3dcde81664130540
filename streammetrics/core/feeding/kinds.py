"""The facts (kinds of columns) that the rows of each group share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.columns.schema import joined_facts
from streammetrics.core.errors import StateFormatError
from streammetrics.core.state.arrays import json_array, json_of, take_array

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from streammetrics.core.columns.schema import Facts
    from streammetrics.core.types import Array, Arrays, Places


class ColumnKinds(NamedTuple):
    """The distinct facts that occur, and the index of the facts of each group.

    Immutable: joining returns a new object, or the same one if nothing changes. The first facts are
    empty, for groups without rows.
    """

    facts: tuple[Facts, ...]
    which: Places

    @classmethod
    def none(cls, size: int = 0) -> ColumnKinds:
        """Return `size` groups without rows."""
        return cls(({},), np.zeros(size, np.intp))

    @classmethod
    def of(cls, every: Sequence[Facts]) -> ColumnKinds:
        """Return the facts of every group."""
        places: dict[Hashable, int] = {(): 0}
        facts: list[Facts] = [{}]
        which = np.zeros(len(every), np.intp)
        for group, each in enumerate(every):
            if each:
                place = places.setdefault((*each.items(), *map(type, each.values())), len(facts))
                if place == len(facts):
                    facts.append(each)
                which[group] = place
        return cls(tuple(facts), which)

    def joined(self, places: Places, fact: Facts) -> ColumnKinds:
        """Add a fact to the groups at `places`; raise if it contradicts theirs."""
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
        return ColumnKinds(tuple(facts), moved)

    def plus(self, other: ColumnKinds) -> ColumnKinds:
        """Merge the facts of the same groups from two tables; raise if they disagree."""
        whole = self
        for which, fact in enumerate(other.facts):
            whole = whole.joined(np.flatnonzero(other.which == which), fact)
        return whole

    def moved(self, kept: Places, places: Places, size: int) -> ColumnKinds:
        """Return the facts of `size` groups, where the groups `kept` move to `places`."""
        whole = ColumnKinds(self.facts, np.zeros(size, np.intp))
        for which, fact in enumerate(self.facts):
            whole = whole.joined(places[self.which[kept] == which], fact)
        return whole

    def agreed(self, texts: Sequence[str]) -> frozenset[str]:
        """Return those of the facts, given as text, that every group agrees on."""
        known = [self.facts[which].items() for which in self._there]
        return frozenset(t for t in texts if all(facts_of(t).items() <= fact for fact in known))

    @property
    def _there(self) -> list[int]:
        """The indices of the facts that occur."""
        places: list[int] = np.flatnonzero(np.bincount(self.which)).tolist()
        return places

    def at(self, place: int) -> dict[str, Any]:
        """Return the facts of one group."""
        return dict(self.facts[self.which[place]])

    def arrays(self) -> dict[str, Array]:
        """Return the facts that occur as sorted texts, and the index of those of each group."""
        told = [facts_text(fact) for fact in self.facts]
        texts = sorted({told[which] for which in self._there})
        places = {text: place for place, text in enumerate(texts)}
        lookup = np.array([places.get(text, 0) for text in told], np.int64)
        return {"facts": json_array(texts), "party": lookup[self.which]}

    @classmethod
    def restored(cls, arrays: Arrays, size: int) -> ColumnKinds:
        """Restore `size` groups from `arrays`."""
        party = take_array(arrays, "party", "int64")
        texts = json_of(take_array(arrays, "facts", "uint8"))
        if party.shape != (size,):
            raise StateFormatError("the facts of groups do not fit their number")
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise StateFormatError("the facts of groups are not text")
        if size and not 0 <= party.min() <= party.max() < len(texts):
            raise StateFormatError("the rows of a group agree on no facts")
        facts = [facts_of(text) for text in texts]
        if not all(map(are_facts, facts)):
            raise StateFormatError("the facts of groups are not valid")
        return cls(({}, *facts), party + 1)

    def alike(self) -> Facts:
        """Return the facts of all groups merged, or raise `InvalidBatchError` if they disagree."""
        whole: Facts = {}
        for which in self._there:
            whole = joined_facts(whole, self.facts[which])
        return whole


def facts_text(facts: Mapping[str, object]) -> str:
    """Serialize facts as JSON; equal facts give equal text."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))


def facts_of(text: object) -> Any:
    """Parse facts from JSON."""
    return json_of(np.frombuffer(str(text).encode(), np.uint8))


def are_facts(facts: object) -> bool:
    """Whether parsed JSON is a valid set of facts: strings, integers and booleans by name."""
    return isinstance(facts, dict) and all(
        type(value) in {str, int, bool} for value in facts.values()
    )
