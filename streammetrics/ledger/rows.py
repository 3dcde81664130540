"""States that are rows of columns: opened when they are needed, many together where they can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.errors import StateFormatError
from streammetrics.core.feeding.described import described, each_filled, filled
from streammetrics.core.state.arrays import LONGEST_EMPTY, MOST_DIMENSIONS, part, same, take_array
from streammetrics.ledger.columns import LAST, Kind, StateColumn, key_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from streammetrics.core.feeding.layout import Layout
    from streammetrics.core.feeding.states import State
    from streammetrics.core.types import Array, Arrays, Ints, Json
    from streammetrics.ledger.columns import Contents

_TOGETHER = 4  # rows from which on it is cheaper to open them together


class StateRow(NamedTuple):
    """One state of a kind, of which nothing is known yet but that its bytes are there."""

    kind: Kind
    key: Hashable  # of the kind
    place: int

    def opened(self, layout: Layout) -> State:
        """Return the state, or raise `StateFormatError` where these are not its arrays."""
        feeds, arrays = self.contents
        state = filled(layout, feeds, arrays)
        if not same(described(state)[1], arrays):
            raise StateFormatError("the state of a shard is not one that is written")
        return state

    @property
    def contents(self) -> Contents:
        """What is said of the rows, and the arrays."""
        return self.kind.feeds(self.place), self.kind.arrays(self.place)


def opened(rows: Sequence[StateRow], layout: Layout) -> list[State]:
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


def contents(form: State | StateRow) -> Contents:
    """Return what a state knows of its rows, and its arrays."""
    return form.contents if isinstance(form, StateRow) else (form.feeds, described(form)[1])


def alike(one: State | StateRow, other: State | StateRow) -> bool:
    """Whether two states have the same bytes."""
    (feeds, arrays), (others, theirs) = contents(one), contents(other)
    return (
        feeds == others and key_of(feeds, arrays) == key_of(others, theirs) and same(arrays, theirs)
    )


def rows_of(said: object, arrays: Arrays, index: Ints, layout: Layout) -> list[StateRow]:
    """Return the states of which `index` has the kinds that `written` gave.

    That the kinds are as few as can be, and in order, is seen when they are written again.
    """
    if not isinstance(said, tuple):
        raise StateFormatError("the ledger does not say which kinds of states it has")
    if len(index) and not 0 <= index.min() <= index.max() < len(said):
        raise StateFormatError("a state of the ledger is of no kind")
    counts = np.bincount(index, minlength=len(said)).tolist()
    each = zip(said, _by_kind(arrays, len(said)), counts, strict=True)
    kinds = [_read(feeds, mine, n, len(layout.schemas)) for feeds, mine, n in each]
    following = [(kind, kind.key, iter(range(n))) for kind, n in zip(kinds, counts, strict=True)]
    return [
        StateRow(kind, key, next(row))
        for kind, key, row in map(following.__getitem__, index.tolist())
    ]


def _by_kind(arrays: Arrays, n: int) -> list[dict[str, Array]]:
    """Return the arrays of each kind, in one pass over all."""
    every: list[dict[str, Array]] = [{} for _ in range(n)]
    places = {str(place): mine for place, mine in enumerate(every)}
    for name, array in arrays.items():
        head, _, rest = name.partition("/")
        place, _, inner = rest.partition("/")
        if head == "kind" and place in places:
            places[place][inner] = array
    return every


def _read(said: Json, arrays: Arrays, n: int, feeds: int) -> Kind:
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


def _is_feed(told: object) -> bool:
    if not isinstance(told, tuple) or len(told) != 3 or not isinstance(told[0], dict):
        return False
    facts, *counts = told
    return (
        list(facts) == sorted(facts)
        and all(type(fact) in {str, int, bool} for fact in facts.values())
        and all(count is None or (type(count) is int and count > LAST) for count in counts)
    )


def _column(data: Array, shapes: Array | None, n: int) -> StateColumn:
    if shapes is None:
        if data.ndim and len(data) == n:
            return StateColumn(data)
    elif data.ndim == 1 and shapes.dtype == np.int64 and shapes.ndim == 2 and len(shapes) == n:
        are_shapes = (
            shapes.shape[1] <= MOST_DIMENSIONS
            and shapes.min(initial=0) >= 0
            and shapes.max(initial=0) <= data.size + LONGEST_EMPTY
        )
        # Of floats, as a product of integers that anyone wrote could wrap.
        if are_shapes and shapes.prod(axis=1, dtype=np.float64).sum() == data.size:
            return StateColumn.shaped(data, shapes)
    raise StateFormatError("the states of the ledger do not fill their place")
