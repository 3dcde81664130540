"""States of all groups: what all others than each hold together."""

from __future__ import annotations

from typing import Any

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.counting import is_dense
from streammetrics.core.fields.sums import GroupedSums
from streammetrics.core.fields.tables import GroupedCells
from streammetrics.core.fields.weights import Amount
from streammetrics.core.groups import GroupedStates


def rest_of(states: GroupedStates) -> GroupedStates | None:
    """Return for each group what all others hold; ``None`` where that takes too much."""
    values = {name: _rest(value, states.size) for name, value in states.values.items()}
    if any(value is None for value in values.values()):
        return None
    return GroupedStates(states.of, states.size, values)


def _rest(value: Any, size: int) -> Any:
    """Return the same of the grouped value of a field."""
    if isinstance(value, ExactSum):
        return value.regroup(np.zeros(size, np.intp), 1)[np.zeros(size, np.intp)] - value
    if isinstance(value, Amount):
        if value.weights is None:
            return Amount.of_counts(value.counts.sum(axis=0) - value.counts)
        squares = value.squared()
        left = None if squares is None else _rest(squares, size)
        return Amount.of_weights(_rest(value.exact(), size), left)
    if isinstance(value, GroupedSums):
        left = {name: _rest(sums, size) for name, sums in value.sums.items()}
        return GroupedSums(np.count_nonzero(value.seen) > value.seen, left)
    if isinstance(value, GroupedCells):
        return _rest_of_cells(value, size)
    if isinstance(value, np.ndarray):  # of widths, which are the same in all groups with rows
        return np.where(np.count_nonzero(value) > (value > 0), value.max(initial=0), 0)
    return None


def _rest_of_cells(cells: GroupedCells, size: int) -> GroupedCells | None:
    if not is_dense(size * cells.area, cells.codes.size):
        return None
    amount = cells.amount.spread(cells.codes, size * cells.area)
    left = _rest(amount.shaped((size, cells.area)), size).shaped((size * cells.area,))
    found = np.flatnonzero(left.signs())
    return cells._replace(codes=found, amount=left.at(found))
