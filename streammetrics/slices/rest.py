"""What all other groups hold together, for each group: the total of all, less its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.counting import is_dense
from streammetrics.core.fields.amounts import Amount
from streammetrics.core.fields.tables import GroupedCells
from streammetrics.statistics.grouped.tables import Tables


def rest_of(form: object) -> Tables | None:
    """Return for each group of a form what all others hold; ``None`` where that takes too much."""
    if not isinstance(form, Tables):
        return None
    values = {name: _rest(form.value(name), form.size) for name in form.of.fields}
    return None if None in values.values() else Tables(form.of, form.size, values)


def _rest(value: Any, size: int) -> Any:
    """Return the same of the value of a field of all groups."""
    if isinstance(value, ExactSum):
        total = value.sum(axis=0)
        whole = ExactSum.row_of([total]) if total.shape == () else total.reshaped((1, *total.shape))
        return whole[np.zeros(size, np.intp)] - value
    if isinstance(value, Amount):
        return (
            None
            if value.weights is not None
            else Amount.of_counts(value.counts.sum(axis=0) - value.counts)
        )
    if isinstance(value, dict):
        return {name: _rest(each, size) for name, each in value.items()}
    if isinstance(value, GroupedCells):
        return _rest_of_cells(value, size)
    return value if isinstance(value, int) else None


def _rest_of_cells(cells: GroupedCells, size: int) -> GroupedCells | None:
    if cells.amount.weights is not None or not is_dense(size * cells.area, cells.codes.size):
        return None
    counts = np.zeros((size, cells.area), np.int64)
    counts.reshape(-1)[cells.codes] = cells.amount.counts
    left = (counts.sum(axis=0) - counts).reshape(-1)
    found = np.flatnonzero(left)
    return cells._replace(codes=found, amount=Amount.of_counts(left[found]))
