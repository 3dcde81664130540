"""Statistics kept by key, and what they hold of one key or of several.

Slices, panes of time and units are all read from these:

    from streammetrics.statistics.grouped import Grouped, Groups, grouped_plan

    inner = suite._layout                       # of a metric or a set, without keys
    outer = grouped_plan(inner)                 # the same statistics, each kept by key
    accumulator = Accumulator(outer)
    accumulator.update(Batch({**columns, KEY: keys}, renamed))    # integers or text, one a row

    groups = Groups.of(inner, accumulator.flush())
    groups.keys                                   # sorted; int64, or str
    groups.state(np.array([2]))                   # the State of one key, for `suite._at(state)`
    groups.state(np.array([0, 2, 5]))             # of several together, exactly
    groups.regrouped(places, keys)                # coarser groups: key i becomes keys[places[i]]

    state.statistics[0].only(np.array([1, 2]))    # a Grouped of some of its keys, without others

`Grouped` is a statistic as any other: laws, bytes, restore, fork, merge and nbytes hold. A state
of it is a function of the multiset of rows with their keys, and what it holds for a key is, to the
byte, what the statistics of a fresh metric hold that has seen the rows of this key alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from streammetrics.core.columns.schema import NEGATIVE
from streammetrics.core.counting import GroupCodes, Union, added_at, counts_of
from streammetrics.core.errors import (
    IncompatibleMetricsError,
    InvalidBatchError,
    StateFormatError,
)
from streammetrics.core.feeding.many import ColumnKinds, facts_of
from streammetrics.core.feeding.states import RowInfo, State
from streammetrics.core.field import in_pairs, not_among
from streammetrics.core.fields.keyed import coded_labels, packed_labels, unpacked_labels
from streammetrics.core.state.arrays import json_text, nested, part, same, take_array
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.buffered import BufferedStates
from streammetrics.statistics.keys import (
    GROUPS,
    KEY,
    OTHER,
    GroupedPlan,
    checked,
    keyed,
    leaves_out,
    lowest,
    too_many,
    united,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.columns.schema import Facts, Rows, Schema
    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.metric import Metric
    from streammetrics.core.statistic import GroupedStates
    from streammetrics.core.types import Array, Arrays, Floats, Ints, Options, Places

MOST_UNITS = 4096  # that have a state each


class _Places(NamedTuple):
    """A vocabulary of keys and the place of each among those held; `same` where it is its own."""

    labels: Any
    places: Places
    same: bool


_NO_PLACES = _Places(None, np.empty(0, np.intp), same=False)


def _without(facts: Facts, states: Sequence[Statistic]) -> Facts:
    """Return the facts that rows may still have."""
    absent = frozenset().union(*(state.absent_facts for state in states))
    return {name: fact for name, fact in facts.items() if name not in absent}


class Grouped(Statistic):
    """Statistics that read one schema, kept by key: their states for every key that occurs.

    Keys are integers, or text (see `keys`), sorted. Of each key are kept the rows seen, what they
    agree on, and a state of each statistic: a table of cells, an array of exact sums or a table of
    histograms where there is such a form, else one statistic for each key. Memory is that of the
    states, and some 50 bytes and the text for a key.

    The state is spelled here and not declared by fields: what it consists of, the fields of other
    statistics by key, follows from `of`, and keys, rows, facts and states move together.

    Attributes:
        of: The statistics, without rows; all have the same schema.
        name: The canonical name of the column of keys.
        titles: The columns that a key of text is made of, for messages.
        most: How many keys there may be; ``None`` is any number.
        overflow: What becomes of more: they raise, or those with the highest hashes are folded
            into the key `OTHER`, or, with ``"groups"``, all are united in 64 groups; for good and
            whatever the order. Keys are then hashes of units, see `keys`.
        left_out: Keep only how many rows the schema has left out, by key.
    """

    of: tuple[Any, ...]
    name: str = KEY
    titles: tuple[Any, ...] = ()
    most: int | None = None
    overflow: Literal["raise", "other", "groups"] = "raise"
    left_out: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        inner = tuple(statistic._key for statistic in self.of)
        given = (self.name, self.titles, self.most, self.overflow, self.left_out)
        self.__dict__["_key"] = (type(self), inner, *given)

    @property
    def schema(self) -> Schema:
        """The schema of the statistics, with a column of keys before the others."""
        return keyed(self.of[0].schema, self.name, left_out=self.left_out)

    def clear(self) -> None:
        """Forget all rows."""
        self.keys: Array = np.empty(0, np.int64)
        self.rows: Ints = np.empty(0, np.int64)
        self.kinds = ColumnKinds.none()
        kept = () if self.left_out else self.of
        self.states: tuple[BufferedStates, ...] = tuple(
            BufferedStates.empty(statistic) for statistic in kept
        )
        # The last vocabulary of text and the places of its keys; batches come with the same one.
        self._known = _NO_PLACES
        # The texts of facts to which all keys are party, while `kinds` is this one.
        self._agreed: tuple[ColumnKinds | None, frozenset[str]] = (None, frozenset())

    @property
    def size(self) -> int:
        """The number of keys."""
        return len(self.keys)

    @property
    def uncounted(self) -> str:  # type: ignore[override]  # that of the statistics
        """Why a row cannot stand for several; empty if it can."""
        return next((each.uncounted for each in self.of if each.uncounted), "")

    @property
    def absent_facts(self) -> frozenset[str]:
        """The negative label, if it is not among the facts of any key."""
        there = any(NEGATIVE in self.kinds.at(place) for place in range(self.size))
        return frozenset([] if there else [NEGATIVE])

    @property
    def can_refuse(self) -> bool:
        """Whether keys can be too many, or a statistic can refuse rows."""
        limited = self.most is not None and self.overflow == "raise"
        return limited or any(statistic.can_refuse for statistic in self.of)

    @property
    def own_rows(self) -> int | None:
        """Number of rows of all keys, if a statistic counts repeated rows once."""
        recounted = any(states.of.own_rows is not None for states in self.states)
        return int(self.rows.sum()) if recounted else None

    def may_refuse(self, rows: Rows) -> bool:
        """Whether rows bring a key that may be too many, or that a statistic may refuse."""
        if not rows.n:
            return False
        own = rows._replace(columns=rows.columns[1:-1])
        if any(statistic.may_refuse(own) for statistic in self.of):
            return True
        if self.most is None or self.overflow != "raise":
            return False
        codes, labels = coded_labels(rows.columns[0])
        found = labels[counts_of((len(labels),), codes) > 0]
        return not bool(np.isin(found, self.keys).all())

    def update(self, key: Column, party: Column, *columns: object, weight: Floats | None) -> None:
        """Take rows with their keys and what each is party to, as `KeyedSchema` has them."""
        labels = key.vocabulary
        codes, labels = coded_labels(key) if labels is None else (key.values, labels)
        texts = [json_text({})] if party.vocabulary is None else party.vocabulary.tolist()
        groups = self._known_groups(codes, labels, texts)
        if groups is None:
            groups = self._met(codes, labels, party.values, texts)
        by = GroupCodes(groups, self.size)
        self.states = tuple([states.updated(by, columns, weight) for states in self.states])
        self.rows = self._counted(self.rows + by.counts)

    def _counted(self, rows: Ints) -> Ints:
        """Return the rows of each key; a statistic may count repeated rows once."""
        for states in self.states:
            if states.of.own_rows is not None:
                return np.array([state.own_rows for state in states.states.each()], np.int64)
        return rows

    def _known_groups(self, codes: Array, labels: Array, texts: Sequence[str]) -> Array | None:
        """Return the place of each row's key, ``None`` where a key or a fact of it may be new."""
        known, places, same = self._known
        kinds, agreed = self._agreed
        if known is not labels or kinds is not self.kinds or not agreed.issuperset(texts):
            return None
        if same:
            return codes
        groups: Places = places.take(codes)
        return groups if int(groups.min(initial=0)) >= 0 else None

    def _met(
        self,
        codes: Array,
        labels: Array,
        which: Array,
        texts: Sequence[str],
    ) -> Places:
        """Return the place of each row's key, after making it one, party to its facts."""
        width = len(texts)
        sides = (codes,) if width == 1 else (codes, which)
        there = counts_of((len(labels), width)[: len(sides)], *sides).reshape(-1, width) > 0
        seen = np.flatnonzero(there.any(axis=1))
        places = self._places(labels, seen)
        for column, text in enumerate(texts):
            party = places[seen[there[seen, column]]]
            self.kinds = self.kinds.joined(party, facts_of(text))
        self._agreed = self.kinds, self.kinds.agreed(texts)
        return places[codes]

    def _places(self, labels: Array, seen: Places) -> Places:
        """Return the place of each label among the keys, after making room for those seen."""
        known, places, _ = self._known
        if known is labels and places[seen].min(initial=0) >= 0:
            return places
        before = places if known is labels else np.full(len(labels), -1, np.intp)
        seen = seen[before[seen] < 0]
        keys, mine, found = Union.of(self.keys, labels[seen])
        theirs = np.arange(len(keys)) if found is None else found
        if self.most is not None and (len(keys) > self.most or self._are_mixed(keys)):
            keys, cut = self._cut(keys)
            mine, theirs = cut[: self.size] if mine is None else cut[mine], cut[theirs]
            mine = None if np.array_equal(mine, np.arange(len(keys))) else mine
        self._move(keys, mine)
        if labels.dtype.kind != "U":
            places = np.full(len(labels), -1, np.intp)
            places[seen] = theirs
            return places
        # Keys of the vocabulary that come in other slices of the batch are known by then.
        if known is labels:
            places = before if mine is None else np.where(before < 0, -1, mine[before])
        else:
            places = np.full(len(labels), -1, np.intp)
            others = np.delete(np.arange(len(labels)), seen)
            found = np.minimum(np.searchsorted(keys, labels[others]), len(keys) - 1)
            places[others] = np.where(keys[found] == labels[others], found, -1)
        places[seen] = theirs
        same = len(labels) == len(keys) and bool((places == np.arange(len(keys))).all())
        self._known = _Places(labels, places, same)
        return places

    def _are_mixed(self, keys: Array) -> bool:
        """Whether sorted keys are of units and of groups of units, which they are united in."""
        return self.overflow == "groups" and len(keys) > 0 and bool(keys[0] < 0 <= keys[-1])

    def _cut(self, keys: Array) -> tuple[Array, Places]:
        """Return no more keys than there may be, and the place of each of the given ones."""
        assert self.most is not None
        if self.overflow == "groups":
            return united(keys)
        keep = lowest(keys, self.most)
        others = int(np.count_nonzero(~keep))
        if not others or (keys.dtype.kind == "U" and others == 1 and keys[0] == OTHER):
            return keys, np.arange(len(keys))
        if self.overflow == "raise":
            raise too_many(keys.tolist(), self.titles, self.most)
        # The text of `OTHER` is before every key.
        return np.concatenate([[OTHER], keys[keep]]), np.where(keep, np.cumsum(keep), 0)

    def _move(self, keys: Array, mine: Places | None) -> None:
        """Bring what is held to other keys: each old one's place among them, None for the same."""
        self._known = _NO_PLACES
        before = self.size
        if mine is None:
            if len(keys) == before:
                self.keys = keys
                return
            mine = np.arange(before)
        kept = np.flatnonzero(mine >= 0)
        moved = added_at(mine[kept], self.rows[kept], len(keys))
        self.kinds = self.kinds.moved(kept, mine[kept], len(keys))
        self.states = tuple([states.regrouped(mine, len(keys)) for states in self.states])
        self.keys, self.rows = keys, self._counted(moved)

    @property
    def are_groups(self) -> bool:
        """Whether the keys are of groups of units, which are more than `most`."""
        return self.overflow == "groups" and bool((self.keys[-1:] >= 0).any())

    def united(self) -> Grouped:
        """Return the states of groups of units; only with ``overflow="groups"``."""
        groups, places = united(self.keys)
        return self.regrouped(places, groups)

    def merge(self, other: Grouped) -> None:
        """Add what another has seen, key by key."""
        if not other.size:
            return
        if not self.size:
            self.keys, self.rows, self.kinds = other.keys, other.rows, other.kinds
            self.states, self._known = other.states, _NO_PLACES
            return
        if self.keys.dtype.kind != other.keys.dtype.kind:
            raise IncompatibleMetricsError("keys of text and integers cannot be joined")
        twin = other
        if not np.array_equal(self.keys, other.keys):
            try:
                labels, twin = other.keys, other.fork()
                places = self._places(labels, np.arange(len(labels)))
            except InvalidBatchError as error:
                raise IncompatibleMetricsError(str(error)) from None
            twin._move(self.keys, places)
        self.kinds = self.kinds.plus(twin.kinds)
        pairs = zip(self.states, twin.states, strict=True)
        self.states = tuple([mine.plus(theirs) for mine, theirs in pairs])
        self.rows = self._counted(self.rows + twin.rows)

    def merge_all(self, others: Sequence[Self]) -> None:
        """Add what several have seen."""

        def plus(one: Self, other: Self) -> Self:
            both = one.fork()
            both.merge(other)
            return both

        for other in in_pairs(others, plus):
            self.merge(other)

    def minus(self, other: Self) -> Self:
        """Return what is left without the rows of another, key by key."""
        if OTHER in self.keys.tolist():
            raise IncompatibleMetricsError(
                f"more than {self.most:,} keys are folded into one slice, so that none of their "
                "rows can be taken out: merge the states to keep instead"
            )
        union = Union.of(self.keys, other.keys)
        if len(union.keys) != self.size:
            raise not_among("some keys are not here")
        theirs = np.arange(self.size) if union.theirs is None else union.theirs
        kinds = self.kinds.plus(other.kinds.moved(np.arange(other.size), theirs, self.size))
        rows = self.rows.copy()
        rows[theirs] -= other.rows
        if (rows < 0).any() or not same(kinds.arrays(), self.kinds.arrays()):
            raise not_among("there are fewer of them of a key here, or of another kind")
        twin = self.fork()
        pairs = zip(self.states, other.states, strict=True)
        twin.states = tuple([mine.minus(theirs, less, rows) for mine, less in pairs])
        twin.rows = twin._counted(rows)
        twin.kinds = ColumnKinds.of(
            [
                _without(self.kinds.at(place), [states.at(place) for states in twin.states])
                for place in range(self.size)
            ]
        )
        if not twin.rows.any():
            twin.clear()
            return twin
        return twin.only(np.flatnonzero(twin.rows))

    def regrouped(self, places: Places, keys: Array) -> Self:
        """Return what coarser groups hold: key ``i`` goes to ``keys[places[i]]``, or -1: nowhere.

        Keys are sorted, and each is some key's place.
        """
        twin = self.fork()
        twin._move(keys, np.asarray(places, np.intp))
        return twin

    def only(self, kept: Places) -> Self:
        """Return some of the keys, by their places in order; the others are dropped."""
        places = np.full(self.size, -1, np.intp)
        places[kept] = np.arange(len(kept))
        return self.regrouped(places, self.keys[kept])

    def feed(self, place: int) -> RowInfo:
        """Return what is known of the rows of a key."""
        return RowInfo(self.kinds.at(place), int(self.rows[place]), 0)

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        own = self.keys.nbytes + self.rows.nbytes + self.kinds.which.nbytes
        return own + sum(states.nbytes for states in self.states)

    def arrays(self) -> dict[str, Array]:
        """Return keys, rows and facts, and of each statistic the arrays of every key."""
        arrays = {"keys": packed_labels(self.keys), "rows": self.rows, **self.kinds.arrays()}
        for number, states in enumerate(self.states):
            arrays |= nested(str(number), states.arrays())
        return arrays

    @property
    def _later(self) -> list[str]:
        """As those of the states of the keys."""
        each = enumerate(self.states)
        return [f"{number}/{name}" for number, states in each for name in states.of._later]

    def restore(self, arrays: Arrays) -> None:
        """Set keys, rows, facts and states, each of which must be one."""
        keys = unpacked_labels(arrays, "keys")
        rows = take_array(arrays, "rows", "int64")
        if not (keys[1:] > keys[:-1]).all():
            raise StateFormatError("the keys of groups are out of order")
        if self.overflow == "groups":
            if keys.dtype.kind != "i" or self._are_mixed(keys) or keys.max(initial=0) >= GROUPS:
                raise StateFormatError("the keys are neither those of units nor of their groups")
        elif self.titles:
            checked(keys.tolist(), len(self.titles))
        if self.most is not None and len(keys) - (OTHER in keys) > self.most:
            raise StateFormatError(f"there are {len(keys):,} keys, more than {self.most:,}")
        if rows.shape != keys.shape or rows.min(initial=1) < 1:
            raise StateFormatError("the rows of groups do not fit their keys")
        self.kinds = ColumnKinds.restored(arrays, len(keys))
        self.keys, self.rows = keys, rows
        self._known = _NO_PLACES
        self.states = tuple(
            BufferedStates.restored(states.of, part(arrays, str(number)), rows.tolist())
            for number, states in enumerate(self.states)
        )


def grouped_plan(plan: Plan) -> Plan:
    """Return the statistics of a plan, each kept by the key of the row."""
    return GroupedPlan(grouped(plan))


def grouped(
    plan: Plan,
    *,
    name: str = KEY,
    titles: tuple[str, ...] = (),
    most: int | None = None,
    overflow: Literal["raise", "other", "groups"] = "raise",
) -> list[Grouped]:
    """Return the statistics of a plan, kept by key: a `Grouped` for each of its schemas.

    Schemas that may leave rows out have another one, which counts these.
    """
    every: list[Grouped] = []
    given: Options = {"name": name, "titles": titles, "most": most, "overflow": overflow}
    for source, schema in enumerate(plan.schemas):
        pairs = zip(plan.start.statistics, plan.sources, strict=True)
        of = tuple(statistic for statistic, place in pairs if place == source)
        every += [
            Grouped(of=of, left_out=left_out, **given)
            for left_out in (False, True)[: 1 + leaves_out(schema)]
        ]
    return every


def unit_plan(
    plan: Plan, sides: Sequence[Sequence[Schema]], name: str
) -> tuple[Plan, list[list[int]]]:
    """Return the statistics of a plan by unit, once for each side, and the places of each side's.

    A side has its own schemas in place of those of the plan.
    """
    every = grouped(plan, name=name, most=MOST_UNITS, overflow="groups")
    sources = [plan.schemas.index(each.of[0].schema) for each in every]
    schemas = [
        keyed(side[source], name, left_out=each.left_out)
        for side in sides
        for source, each in zip(sources, every, strict=True)
    ]
    found, size = GroupedPlan(every * len(sides), schemas), len(every)
    keys = zip([each._key for each in every] * len(sides), schemas, strict=True)
    places = [found.places[key] for key in keys]
    return found, [places[k * size : (k + 1) * size] for k in range(len(sides))]


# ---- groups: ordinary states of one key or of several ----


@dataclass(frozen=True)
class _Part:
    """The statistics of one schema by key, and the rows that it left out."""

    kept: Grouped
    left: Grouped | None


@dataclass(frozen=True)
class Groups:
    """All that a state of `grouped_plan` holds, by key.

    Attributes:
        plan: Of the statistics without keys.
        keys: All keys, sorted: integers or text.
    """

    plan: Plan
    keys: Array
    _parts: tuple[_Part, ...]

    @classmethod
    def of(cls, plan: Plan, state: State) -> Groups:
        """Return the groups of a state of ``grouped_plan(plan)``, without buffered rows."""
        return cls.holding(plan, [s for s in state.statistics if isinstance(s, Grouped)])

    @classmethod
    def holding(cls, plan: Plan, every: Sequence[Grouped]) -> Groups:
        """Return the groups of grouped statistics, in the order of `grouped_plan`."""
        parts: list[_Part] = []
        if len({grouped.are_groups for grouped in every if grouped.size}) > 1:
            every = [grouped.united() for grouped in every]
        for grouped in every:
            if grouped.left_out:
                parts[-1] = _Part(parts[-1].kept, grouped)
            else:
                parts.append(_Part(grouped, None))
        seen = [grouped.keys for grouped in every if grouped.size]
        keys: Array = seen[0] if seen else np.empty(0, np.int64)
        if not all(np.array_equal(keys, more) for more in seen):
            keys = np.unique(np.concatenate(seen))
            keys = _within(keys, every[0])
        return cls(plan, keys, tuple(parts))

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def n_rows(self) -> Ints:
        """Rows seen of each key, as `MetricSet.n_rows` counts them."""
        return self._most_rows(each.kept for each in self._parts)

    def _most_rows(self, every: Iterable[Grouped | None]) -> Ints:
        """Return the most rows of each key that one of several statistics has."""
        rows: Ints = np.zeros(len(self), np.int64)
        for each in every:
            if each is not None:
                own = added_at(self._places(each), each.rows, len(self))
                rows = np.maximum(rows, own)
        return rows

    def _places(self, grouped: Grouped) -> Places:
        """Return where the keys of one statistic are among all; some are in `OTHER`."""
        if grouped.keys is self.keys or not grouped.size:
            return np.arange(grouped.size)
        found = np.minimum(np.searchsorted(self.keys, grouped.keys), len(self) - 1)
        return np.where(self.keys[found] == grouped.keys, found, 0)

    def regrouped(self, places: Places, keys: Array) -> Groups:
        """Return coarser groups: key ``i`` goes to ``keys[places[i]]``, or -1: nowhere."""

        def moved(grouped: Grouped) -> Grouped:
            mine = places[self._places(grouped)]
            there = np.unique(mine[mine >= 0])
            rank = np.full(len(keys) + 1, -1, np.intp)  # the last place is that of -1
            rank[there] = np.arange(there.size)
            return grouped.regrouped(rank[mine], keys[there])

        parts = [
            _Part(moved(p.kept), None if p.left is None else moved(p.left)) for p in self._parts
        ]
        return Groups(self.plan, keys, tuple(parts))

    def state(self, selected: Places) -> State:
        """Return the state of the rows of some keys, by their places, as one fresh metric's."""
        places = np.full(len(self), -1, np.intp)
        places[selected] = 0
        if len(selected) == 1:
            return self._state_at(int(selected[0]))
        return self.regrouped(places, self.keys[:1])._state_at(0)

    def forms(self, metric: Metric) -> tuple[GroupedStates, ...] | None:
        """Return what a metric reads, of all keys; ``None`` where some have none of it."""
        found = []
        for place, source in zip(metric._reads, metric._feeds, strict=True):
            kept = self._parts[source].kept
            if kept.size != len(self):
                return None
            found.append(kept.states[self.plan.sources[:place].count(source)].states)
        return tuple(found)

    def seen_by(self, metric: Metric) -> Groups:
        """Return the groups in which a metric has rows."""
        there = np.ones(len(self), np.bool_)
        for source in metric._feeds:
            there &= np.isin(self.keys, self._parts[source].kept.keys)
        if there.all():
            return self
        return self.regrouped(np.where(there, np.cumsum(there) - 1, -1), self.keys[there])

    def rows_of(self, metric: Metric) -> Ints:
        """Return how many rows of each key a metric has seen."""
        return self._most_rows(self._parts[source].kept for source in metric._feeds)

    def omitted_of(self, metric: Metric) -> Ints:
        """Return how many rows of each key were left out for a metric."""
        return self._most_rows(self._parts[source].left for source in metric._feeds)

    def _state_at(self, place: int) -> State:
        infos: list[RowInfo] = []
        found: dict[tuple[int, int], Statistic] = {}
        for source, each in enumerate(self._parts):
            feed = RowInfo({}, 0, 0)
            at = self._place_in(each.kept, place)
            for number, states in enumerate(each.kept.states):
                found[source, number] = states.of if at is None else states.at(at)
            if at is not None:
                feed = each.kept.feed(at)
            if each.left is not None and (out := self._place_in(each.left, place)) is not None:
                feed = feed._replace(n_omitted=int(each.left.rows[out]))
            infos.append(feed)
        turns = [0] * len(self._parts)
        statistics = []
        for source in self.plan.sources:
            statistics.append(found[source, turns[source]])
            turns[source] += 1
        return State(tuple(infos), tuple(statistics))

    def _place_in(self, grouped: Grouped, place: int) -> int | None:
        if grouped.keys is self.keys:
            return place
        if not grouped.size or not len(self):
            return None
        found = int(np.searchsorted(grouped.keys, self.keys[place]))
        return found if found < grouped.size and grouped.keys[found] == self.keys[place] else None


def _within(keys: Array, grouped: Grouped) -> Array:
    """Return the keys that there may be, where statistics that saw other rows hold others."""
    if grouped.overflow != "other" or grouped.most is None or len(keys) <= grouped.most:
        return keys
    kept = keys[lowest(keys, grouped.most)]
    return np.concatenate([[OTHER], kept]) if len(kept) < len(keys) else keys
