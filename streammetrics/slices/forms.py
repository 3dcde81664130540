"""Forms of all groups: the statistics of each group, and what all others hold together."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.counting import is_dense
from streammetrics.core.fields.amounts import Amount
from streammetrics.core.fields.tables import GroupedCells
from streammetrics.statistics.grouped.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from streammetrics.core.field import GroupedField
    from streammetrics.core.statistic import Statistic
    from streammetrics.statistics.grouped.forms import Form


def states_of(forms: Sequence[Form]) -> Iterator[tuple[Statistic, ...]]:
    """Yield the statistics of each group in turn, one of each form."""
    return zip(*map(_states, forms), strict=True)


def _states(form: Form) -> Iterator[Statistic]:
    if not isinstance(form, Tables):
        yield from map(form.at, range(form.size))
        return
    fields: dict[str, Any] = form.of.fields
    columns = [_each(field, form.value(name), form.size) for name, field in fields.items()]
    for values in zip(*columns, strict=True):
        state = form.of.fork()
        state.__dict__.update(zip(fields, values, strict=True))
        yield state


def _each(field: GroupedField[Any, Any], value: Any, size: int) -> Iterable[Any]:
    """Return the value of a field of every group, as ``field.at`` of each."""
    if isinstance(value, ExactSum) and len(value.shape) == 1:
        integers, unit = value.integers()
        return [ExactSum.single(integer, unit) for integer in integers.tolist()]
    if isinstance(value, Amount) and value.weights is None and value.counts.ndim == 1:
        return map(Amount, value.counts.tolist())
    if isinstance(value, dict):
        columns = [_each(field, sums, size) for sums in value.values()]
        every = zip(*columns, strict=True) if columns else repeat((), size)
        return (dict(zip(value, sums, strict=True)) for sums in every)
    if isinstance(value, ExactSum):
        return (value[group] for group in range(size))
    if isinstance(value, int):
        return repeat(value, size)
    return map(field.at, repeat(value), range(size))


def rest_of(form: Form) -> Tables | None:
    """Return for each group of a form what all others hold; ``None`` where that takes too much."""
    if not isinstance(form, Tables):
        return None
    values = {name: _rest(form.value(name), form.size) for name in form.of.fields}
    return None if None in values.values() else Tables(form.of, form.size, values)


def _rest(value: Any, size: int) -> Any:
    """Return the same of the value of a field of all groups."""
    if isinstance(value, ExactSum):
        return value.regroup(np.zeros(size, np.intp), 1)[np.zeros(size, np.intp)] - value
    if isinstance(value, Amount):
        if value.weights is None:
            return Amount.of_counts(value.counts.sum(axis=0) - value.counts)
        squares = value.squared()
        left = None if squares is None else _rest(squares, size)
        return Amount.of_weights(_rest(value.exact(), size), left)
    if isinstance(value, dict):
        return {name: _rest(sums, size) for name, sums in value.items()}
    if isinstance(value, GroupedCells):
        return _rest_of_cells(value, size)
    return value if isinstance(value, int) else None


def _rest_of_cells(cells: GroupedCells, size: int) -> GroupedCells | None:
    if not is_dense(size * cells.area, cells.codes.size):
        return None
    amount = cells.amount.spread(cells.codes, size * cells.area)
    left = _rest(amount.shaped((size, cells.area)), size).shaped((size * cells.area,))
    found = np.flatnonzero(left.signs())
    return cells._replace(codes=found, amount=left.at(found))
