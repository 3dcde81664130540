"""States put into columns: which are of one kind, and what a file says of the kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from streammetrics.core.feeding.described import each_described
from streammetrics.ledger.columns import LAST, Kind, StateColumn, facts_of, far, key_of
from streammetrics.ledger.rows import StateRow, contents

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from streammetrics.core.feeding.states import Feed, State
    from streammetrics.core.types import Array, Ints, Json
    from streammetrics.ledger.columns import Contents


def kinds_of(states: Sequence[State | StateRow]) -> tuple[list[Kind], Ints]:
    """Return the kinds of states in the order of their first, and the kind of each state."""
    return _kinds_together(states) or _kinds_one_by_one(states)


def _kinds_together(
    states: Sequence[State | StateRow],
) -> tuple[list[Kind], Ints] | None:
    """The same of states that are described many at a time, ``None`` where some are not."""
    groups: dict[Hashable, tuple[int, list[State]]] = {}
    index = []
    for state in states:
        if isinstance(state, StateRow):
            return None
        facts, seen = facts_of(state.feeds), any(feed.n_rows for feed in state.feeds)
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
    states: Iterable[State | StateRow],
) -> tuple[list[Kind], Ints]:
    places: dict[Hashable, int] = {}
    groups: list[list[StateRow | Contents]] = []
    index = []
    for form in states:
        member = form if isinstance(form, StateRow) else contents(form)
        key = member.key if isinstance(member, StateRow) else key_of(*member)
        place = places.setdefault(key, len(groups))
        if place == len(groups):
            groups.append([])
        groups[place].append(member)
        index.append(place)
    return list(map(_kind, groups)), np.array(index, np.int64)


def _kind(group: list[StateRow | Contents]) -> Kind:
    """Return the kind of states that are alike, of which there is one at least."""
    if _of_one_file(group):
        return group[0].kind.take(np.array([row.place for row in group]))
    every = [member.contents if isinstance(member, StateRow) else member for member in group]
    names = sorted(every[0][1])
    columns = {name: StateColumn.of([mine[name] for _, mine in every]) for name in names}
    return _of_columns([feeds for feeds, _ in every], columns)


def _of_columns(every: Sequence[tuple[Feed, ...]], columns: dict[str, StateColumn]) -> Kind:
    """Return the kind of states of which all feeds are said to be the same."""
    said = tuple((dict(sorted(facts.items())), far(n), far(out)) for facts, n, out in every[0])
    counts = [_near(count) for feeds in every for _, *both in feeds for count in both]
    return Kind(said, np.array(counts, np.int64).reshape(len(every), len(said), 2), columns)


def _of_one_file(group: Sequence[object]) -> TypeGuard[list[StateRow]]:
    """Whether all are rows that were read together."""
    first = group[0]
    return isinstance(first, StateRow) and all(
        isinstance(row, StateRow) and row.kind is first.kind for row in group
    )


def written(kinds: Sequence[Kind]) -> tuple[list[Json], dict[str, Array]]:
    """Return what a file says of kinds of states, and the arrays of all."""
    arrays: dict[str, Array] = {}
    for index, kind in enumerate(kinds):
        arrays[f"kind/{index}/rows"] = kind.counts
        for name, column in kind.columns.items():
            arrays[f"kind/{index}/data/{name}"] = column.data
            if column.shapes is not None:
                arrays[f"kind/{index}/shapes/{name}"] = column.shapes
    return [kind.said for kind in kinds], arrays


def _near(count: int) -> int:
    return 0 if count > LAST else count
