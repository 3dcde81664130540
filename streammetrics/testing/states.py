"""Laws of statistics: alone, and over groups, where a group's state is that of its rows alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.columns.batch import Batch
from streammetrics.core.errors import (
    IncompatibleMetricsError,
    InvalidBatchError,
    StateFormatError,
    StreamMetricsError,
    an,
)
from streammetrics.core.feeding.many import StateTable
from streammetrics.core.feeding.plan import described
from streammetrics.core.floating import own_arithmetic
from streammetrics.core.metric import Metric
from streammetrics.core.state.arrays import same
from streammetrics.statistics.grouped.grouped import Grouped, Groups, grouped_plan
from streammetrics.statistics.grouped.keys import KEY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streammetrics.core.feeding.states import State
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.statistic import Statistic


def broken_states(metric: Mergeable) -> Iterator[str]:
    """Yield the laws that do not hold for each statistic of a metric or a metric set."""
    for statistic in metric._accumulator.flush().statistics:
        name = type(statistic).__name__
        try:
            statistic.check()
        except StateFormatError as error:
            yield f"{an(name)} can be read again ({error})"
            continue
        twice = statistic.fork()
        twice.merge_all([statistic])
        if not _is_scaled(statistic, twice):
            yield f"scaling {an(name)} distributes over merge, and by 1 changes nothing"
        if not _is_taken_out(statistic, twice):
            yield f"what was merged into {an(name)} can be taken out again"


def _is_scaled(statistic: Statistic, twice: Statistic) -> bool:
    """Return whether scaling satisfies its laws; True if the statistic cannot be scaled."""
    try:
        half = statistic.scaled(0.375)
    except InvalidBatchError:
        return True
    half.check()
    both = half.fork()
    both.merge_all([half])
    return both.is_same(twice.scaled(0.375)) and statistic.scaled(1.0).is_same(statistic)


def _is_taken_out(statistic: Statistic, twice: Statistic) -> bool:
    """Return whether a doubled state minus itself is itself; True if it cannot be subtracted."""
    try:
        return twice.minus(statistic).is_same(statistic)
    except IncompatibleMetricsError:
        return True


_GROUPS = 5


def broken_groups(
    empty: Mergeable, rows: Mapping[str, Any], rng: np.random.Generator
) -> Iterator[str]:
    """Yield the laws that do not hold for the states of rows split into random groups.

    Sets with a unit and slices keep groups themselves, and are not split again.
    """
    plan, renamed = empty._plan, getattr(empty, "columns", None)
    if any(isinstance(statistic, Grouped) for statistic in plan.start.statistics):
        return
    n = len(next(iter(rows.values())))
    codes = rng.integers(0, _GROUPS - 1, n)  # the last group stays empty
    columns = {name: np.asarray(column) for name, column in rows.items()}
    states: list[State] = []
    for group in range(_GROUPS):
        alone = Accumulator(plan)
        if (codes == group).any():
            mine = {name: column[codes == group] for name, column in columns.items()}
            alone.update(Batch(mine, renamed))
        states.append(alone.flush())
    table = StateTable.of(plan, states)
    if not all(_is_same(table.at(group), state) for group, state in enumerate(states)):
        yield "a state among others is what it is alone"
    back = StateTable.restored(plan, table.arrays(), _GROUPS)
    if not same(back.arrays(), table.arrays()):
        yield "arrays over groups that are read are written again"
    if not _is_same(back.total(), plan.merged(plan.start, states)):
        yield "groups that are united are their states merged"
    order = rng.permutation(_GROUPS)[: _GROUPS - 2]
    some = StateTable.of(plan, [states[group] for group in order])
    if not same(back.take(order).arrays(), some.arrays()):
        yield "groups that are taken are those of their states"
    yield from _broken_keys(empty, {**columns, KEY: codes}, renamed, states)


def _broken_keys(
    empty: Mergeable, rows: Mapping[str, Any], renamed: Any, states: list[State]
) -> Iterator[str]:
    """Yield the laws that do not hold for rows fed together with their group codes."""
    plan = empty._plan
    keyed = Accumulator(grouped_plan(plan))
    half = len(rows[KEY]) // 2
    for part in (slice(None, half), slice(half, None)):
        if len(rows[KEY][part]):
            keyed.update(Batch({name: column[part] for name, column in rows.items()}, renamed))
    groups = Groups.of(plan, keyed.flush())
    keys = groups.keys.tolist()
    if not all(
        _is_same(groups.state(np.array([place])), states[key]) for place, key in enumerate(keys)
    ):
        yield "rows with the codes of their groups make what the rows of each group make"
    if isinstance(empty, Metric) and not _are_read_alike(empty, groups, [states[k] for k in keys]):
        yield "groups that are read at once have the values of each alone"
    places = np.arange(len(keys)) % 2
    for coarse in range(min(2, len(keys))):
        mine = [states[key] for key, place in zip(keys, places, strict=True) if place == coarse]
        found = groups.regrouped(places, np.arange(min(2, len(keys)))).state(np.array([coarse]))
        if not _is_same(found, plan.merged(plan.start, mine)):
            yield "a coarser group is the states of its groups merged"


def _are_read_alike(metric: Metric, groups: Groups, states: Sequence[State]) -> bool:
    forms = groups.forms(metric)
    with own_arithmetic():
        try:
            judged = [metric._judged(*state.statistics) for state in states]
        except StreamMetricsError:  # the value of a group is undefined
            return True
        found = None if forms is None or not states else metric._of_groups(*forms)
    if found is None or not isinstance(found.values, np.ndarray):
        return True
    values = np.array([value for value, _ in judged], np.float64)
    doubts = [bool(doubt) for _, doubt in judged]
    return found.values.tobytes() == values.tobytes() and found.doubtful.tolist() == doubts


def _is_same(one: State, other: State) -> bool:
    (told, arrays), (others, more) = described(one), described(other)
    return told == others and same(arrays, more)
