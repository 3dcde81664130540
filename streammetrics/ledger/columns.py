"""States in columns: those whose arrays are alike stand array by array, one after the other.

All shards of a ledger have one configuration, so that their states have mostly the same arrays, of
other lengths. Those that do, and that saw rows of the same facts, are of one *kind*: for each array
of it there is one that holds the data of all its states, and the shapes where they are not equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np

from streammetrics.core.errors import StateFormatError
from streammetrics.core.layout import Feed
from streammetrics.core.mergeable import described, each_described, each_filled, filled
from streammetrics.core.state.arrays import Stack, part, same, take_array

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.layout import Layout, State

Arrays = dict[str, "NDArray[Any]"]
Told = tuple[tuple[Feed, ...], Arrays]  # what a state knows of its rows, and its arrays

_LAST = (1 << 63) - 1  # the largest count that stands in a column
_DEPTH = 32  # dimensions
_EMPTY = 1 << 16  # longest side of an array that holds nothing
_TOGETHER = 4  # rows from which on it is cheaper to open them together


class StateColumn(NamedTuple):
    """The same array of many states."""

    data: NDArray[Any]  # (n, *shape) where all have one shape, else flat
    shapes: NDArray[np.int64] | None = None  # (n, d)
    ends: NDArray[np.int64] | None = None  # (n,)

    @classmethod
    def of(cls, arrays: Sequence[NDArray[Any]]) -> StateColumn:
        """Return the column of arrays of one type and one number of dimensions."""
        first, n = arrays[0].shape, len(arrays)
        flat = np.concatenate([array.ravel() for array in arrays])
        if all(array.shape == first for array in arrays):
            return cls(flat.reshape(n, *first))
        return cls.shaped(flat, np.array([array.shape for array in arrays], np.int64))

    @classmethod
    def shaped(cls, flat: NDArray[Any], shapes: NDArray[np.int64]) -> StateColumn:
        """Return the column of the data and the shapes, in the one form that is written."""
        if (shapes == shapes[0]).all():
            return cls(flat.reshape(len(shapes), *shapes[0].tolist()))
        return cls(flat, shapes, np.cumsum(shapes.prod(axis=1)))

    def at(self, index: int) -> NDArray[Any]:
        """Return the array of one state."""
        if self.shapes is None or self.ends is None:
            return self.data[index, ...]
        start = self.ends[index - 1] if index else 0
        return self.data[start : self.ends[index]].reshape(self.shapes[index])

    def take(self, places: NDArray[np.intp]) -> StateColumn:
        """Return the column of some states."""
        if self.shapes is None or self.ends is None:
            return StateColumn(self.data[places])
        shapes, ends = self.shapes[places], self.ends[places]
        sizes = shapes.prod(axis=1)
        back = ends - np.cumsum(sizes)  # how far each was moved
        return self.shaped(self.data[np.repeat(back, sizes) + np.arange(sizes.sum())], shapes)

    @property
    def stack(self) -> Stack:
        """The column with the shape of each array, also where all have one."""
        if self.shapes is None:
            return Stack.equal(self.data, self.data.shape[1:])
        return Stack(self.data, self.shapes)

    @property
    def ndim(self) -> int:
        """Dimensions of the array of one state."""
        return self.data.ndim - 1 if self.shapes is None else self.shapes.shape[1]


class Kind(NamedTuple):
    """States of one kind: what each of their feeds is said to be, their counts and arrays."""

    said: tuple[Any, ...]  # for each feed its facts, and the counts that fit no column
    counts: NDArray[np.int64]  # (n, feeds, 2): rows and rows left out
    columns: dict[str, StateColumn]

    @property
    def key(self) -> Hashable:
        """What is equal in states of one kind."""
        facts = tuple((_typed(facts), n, omitted) for facts, n, omitted in self.said)
        of = self.columns.items()
        return facts, tuple(_form(name, column.data, column.ndim) for name, column in sorted(of))

    def feeds(self, index: int) -> tuple[Feed, ...]:
        """Return what one state knows of the rows of each schema."""
        return self._feeds(self.counts[index].tolist())

    def every_feeds(self) -> list[tuple[Feed, ...]]:
        """Return what each state knows of the rows of each schema."""
        return list(map(self._feeds, self.counts.tolist()))

    def _feeds(self, counts: list[list[int]]) -> tuple[Feed, ...]:
        return tuple(
            [
                Feed(facts, n if far is None else far, omitted if out is None else out)
                for (facts, far, out), (n, omitted) in zip(self.said, counts, strict=True)
            ]
        )

    def arrays(self, index: int) -> Arrays:
        """Return the arrays of one state."""
        return {name: column.at(index) for name, column in self.columns.items()}

    def take(self, places: NDArray[np.intp]) -> Kind:
        """Return some of the states, or these where they are all."""
        if np.array_equal(places, np.arange(len(self.counts))):
            return self
        columns = {name: column.take(places) for name, column in self.columns.items()}
        return Kind(self.said, self.counts[places], columns)


class Row(NamedTuple):
    """One state of a kind, of which nothing is known yet but that its bytes are there."""

    kind: Kind
    key: Hashable  # of the kind
    place: int

    def opened(self, layout: Layout) -> State:
        """Return the state, or raise `StateFormatError` where these are not its arrays."""
        feeds, arrays = self.told
        state = filled(layout, feeds, arrays)
        if not same(described(state)[1], arrays):
            raise StateFormatError("the state of a shard is not one that is written")
        return state

    @property
    def told(self) -> Told:
        """What is said of the rows, and the arrays."""
        return self.kind.feeds(self.place), self.kind.arrays(self.place)


def opened(rows: Sequence[Row], layout: Layout) -> list[State]:
    """Return the states of rows; those of one kind are opened together."""
    kinds: dict[int, list[int]] = {}
    for index, row in enumerate(rows):
        kinds.setdefault(id(row.kind), []).append(index)
    states: dict[int, State] = {}
    for mine in kinds.values():
        kind = rows[mine[0]].kind.take(np.array([rows[index].place for index in mine]))
        if len(mine) < _TOGETHER:
            states |= {index: rows[index].opened(layout) for index in mine}
        else:
            stacks = {name: column.stack for name, column in kind.columns.items()}
            found = each_filled(layout, kind.every_feeds(), stacks)
            states |= zip(mine, found, strict=True)
    return [states[index] for index in range(len(rows))]


def told(form: State | Row) -> Told:
    """Return what a state knows of its rows, and its arrays."""
    return form.told if isinstance(form, Row) else (form.feeds, described(form)[1])


def alike(one: State | Row, other: State | Row) -> bool:
    """Whether two states have the same bytes."""
    (feeds, arrays), (others, theirs) = told(one), told(other)
    return feeds == others and _key(feeds, arrays) == _key(others, theirs) and same(arrays, theirs)


# --- written -------------------------------------------------------------------------------------


def kinds_of(states: Sequence[State | Row]) -> tuple[list[Kind], NDArray[np.int64]]:
    """Return the kinds of states in the order of their first, and the kind of each state."""
    return _kinds_together(states) or _kinds_one_by_one(states)


def _kinds_together(
    states: Sequence[State | Row],
) -> tuple[list[Kind], NDArray[np.int64]] | None:
    """The same of states that are described many at a time, ``None`` where some are not."""
    groups: dict[Hashable, tuple[int, list[State]]] = {}
    index = []
    for state in states:
        if isinstance(state, Row):
            return None
        facts, seen = _facts(state.feeds), any(feed.n_rows for feed in state.feeds)
        place, mine = groups.setdefault((facts, seen), (len(groups), []))
        mine.append(state)
        index.append(place)
    kinds = []
    for _, mine in groups.values():
        stacks = each_described(mine)
        if stacks is None:
            return None
        columns = {name: StateColumn.shaped(*stack) for name, stack in sorted(stacks.items())}
        kinds.append(_of_columns([state.feeds for state in mine], columns))
    if len({kind.key for kind in kinds}) < len(kinds):
        return None
    return kinds, np.array(index, np.int64)


def _kinds_one_by_one(
    states: Iterable[State | Row],
) -> tuple[list[Kind], NDArray[np.int64]]:
    places: dict[Hashable, int] = {}
    groups: list[list[Row | Told]] = []
    index = []
    for form in states:
        member = form if isinstance(form, Row) else told(form)
        key = member.key if isinstance(member, Row) else _key(*member)
        place = places.setdefault(key, len(groups))
        if place == len(groups):
            groups.append([])
        groups[place].append(member)
        index.append(place)
    return list(map(_kind, groups)), np.array(index, np.int64)


def _kind(group: list[Row | Told]) -> Kind:
    """Return the kind of states that are alike, of which there is one at least."""
    if _of_one_file(group):
        return group[0].kind.take(np.array([row.place for row in group]))
    every = [member.told if isinstance(member, Row) else member for member in group]
    names = sorted(every[0][1])
    columns = {name: StateColumn.of([mine[name] for _, mine in every]) for name in names}
    return _of_columns([feeds for feeds, _ in every], columns)


def _of_columns(every: Sequence[tuple[Feed, ...]], columns: dict[str, StateColumn]) -> Kind:
    """Return the kind of states of which all feeds are said to be the same."""
    said = tuple((dict(sorted(facts.items())), _far(n), _far(out)) for facts, n, out in every[0])
    counts = [[[_near(n), _near(out)] for _, n, out in feeds] for feeds in every]
    return Kind(said, np.array(counts, np.int64).reshape(len(every), len(said), 2), columns)


def _of_one_file(group: list[Any]) -> TypeGuard[list[Row]]:
    """Whether all are rows that were read together."""
    first = group[0]
    return isinstance(first, Row) and all(
        isinstance(row, Row) and row.kind is first.kind for row in group
    )


def _facts(feeds: tuple[Feed, ...]) -> Hashable:
    return tuple([(_typed(facts), _far(n), _far(out)) for facts, n, out in feeds])


def _key(feeds: tuple[Feed, ...], arrays: Arrays) -> Hashable:
    return _facts(feeds), tuple(
        [_form(name, array, array.ndim) for name, array in sorted(arrays.items())]
    )


def _typed(facts: Mapping[str, Any]) -> Hashable:
    return tuple([(name, type(fact), fact) for name, fact in sorted(facts.items())])


def _form(name: str, array: NDArray[Any], ndim: int) -> Hashable:
    return name, array.dtype.kind, array.dtype.itemsize, ndim


def _far(count: int) -> int | None:
    return count if count > _LAST else None


def _near(count: int) -> int:
    return 0 if count > _LAST else count


def written(kinds: Sequence[Kind]) -> tuple[list[Any], Arrays]:
    """Return what a file says of kinds of states, and the arrays of all."""
    arrays: Arrays = {}
    for index, kind in enumerate(kinds):
        arrays[f"kind/{index}/rows"] = kind.counts
        for name, column in kind.columns.items():
            arrays[f"kind/{index}/data/{name}"] = column.data
            if column.shapes is not None:
                arrays[f"kind/{index}/shapes/{name}"] = column.shapes
    return [kind.said for kind in kinds], arrays


# --- read ----------------------------------------------------------------------------------------


def rows_of(
    said: Any, arrays: Mapping[str, NDArray[Any]], index: NDArray[np.int64], layout: Layout
) -> list[Row]:
    """Return the states of which `index` has the kinds that `written` gave.

    That the kinds are as few as can be, and in order, is seen when they are written again.
    """
    if not isinstance(said, tuple):
        raise StateFormatError("the ledger does not say which kinds of states it has")
    if len(index) and not 0 <= index.min() <= index.max() < len(said):
        raise StateFormatError("a state of the ledger is of no kind")
    counts = np.bincount(index, minlength=len(said)).tolist()
    each = zip(said, _by_kind(arrays, len(said)), counts, strict=True)
    kinds = [_read(told, mine, n, len(layout.schemas)) for told, mine, n in each]
    following = [(kind, kind.key, iter(range(n))) for kind, n in zip(kinds, counts, strict=True)]
    return [
        Row(kind, key, next(row)) for kind, key, row in map(following.__getitem__, index.tolist())
    ]


def _by_kind(arrays: Mapping[str, NDArray[Any]], n: int) -> list[Arrays]:
    """Return the arrays of each kind, in one pass over all."""
    every: list[Arrays] = [{} for _ in range(n)]
    places = {str(place): mine for place, mine in enumerate(every)}
    for name, array in arrays.items():
        head, _, rest = name.partition("/")
        place, _, inner = rest.partition("/")
        if head == "kind" and place in places:
            places[place][inner] = array
    return every


def _read(said: Any, arrays: Arrays, n: int, feeds: int) -> Kind:
    counts = take_array(arrays, "rows", "int64", 3)
    fits = (
        isinstance(said, tuple)
        and len(said) == feeds
        and all(map(_is_feed, said))
        and counts.shape == (n, feeds, 2)
        and n > 0
        and counts.min(initial=0) >= 0
    )
    if not fits:
        raise StateFormatError("the ledger does not say what rows its shards saw")
    far = np.array([[count is not None for count in feed[1:]] for feed in said]).reshape(feeds, 2)
    if counts[:, far].any():
        raise StateFormatError("the ledger counts the rows of its shards twice")
    shapes = part(arrays, "shapes")
    data = part(arrays, "data")
    return Kind(said, counts, {name: _column(data[name], shapes.get(name), n) for name in data})


def _is_feed(told: Any) -> bool:
    if not isinstance(told, tuple) or len(told) != 3 or not isinstance(told[0], dict):
        return False
    facts, *counts = told
    return (
        list(facts) == sorted(facts)
        and all(type(fact) in {str, int, bool} for fact in facts.values())
        and all(count is None or (type(count) is int and count > _LAST) for count in counts)
    )


def _column(data: NDArray[Any], shapes: NDArray[Any] | None, n: int) -> StateColumn:
    if shapes is None:
        if data.ndim and len(data) == n:
            return StateColumn(data)
    elif data.ndim == 1 and shapes.dtype == np.int64 and shapes.ndim == 2 and len(shapes) == n:
        few = shapes.shape[1] <= _DEPTH and shapes.min(initial=0) >= 0
        sides = few and shapes.max(initial=0) <= data.size + _EMPTY
        # Of floats, as a product of integers that anyone wrote could wrap.
        if sides and shapes.prod(axis=1, dtype=np.float64).sum() == data.size:
            return StateColumn.shaped(data, shapes)
    raise StateFormatError("the states of the ledger do not fill their place")
