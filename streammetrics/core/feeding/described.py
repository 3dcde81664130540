"""The state of a metric or a set in a file: information about its rows, and its arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.core.errors import StateFormatError
from streammetrics.core.feeding.states import RowInfo, State
from streammetrics.core.state.arrays import nested, parted

if TYPE_CHECKING:
    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.types import Array, Arrays, Json


def described(state: State) -> tuple[list[Json], dict[str, Array]]:
    """Return the row information of a state as JSON, and the arrays of its statistics."""
    arrays: dict[str, Array] = {}
    for index, statistic in enumerate(state.statistics):
        arrays |= nested(str(index), statistic.arrays())
    rows = [[dict(sorted(facts.items())), n, omitted] for facts, n, omitted in state.infos]
    return rows, arrays


def filled(plan: Plan, told: object, arrays: Arrays) -> State:
    """Restore a state from the row information and arrays of a file.

    The caller must compare `described` of the result with the file.
    """
    parts = parted(arrays)
    statistics = tuple(
        [
            statistic.restored(parts.pop(str(index), {}))
            for index, statistic in enumerate(plan.start.statistics)
        ]
    )
    if not isinstance(told, tuple) or len(told) != len(plan.schemas):
        raise StateFormatError("the counts of rows do not fit the metric")
    infos = tuple(map(_feed, told))
    if not plan.agree(infos):
        raise StateFormatError("metrics that read the same columns saw different rows")
    if parts:
        raise StateFormatError("there are arrays that belong to no statistic")
    return _of_rows(plan, State(infos, statistics))


def _of_rows(plan: Plan, state: State) -> State:
    """Tell the statistics of a restored state how many rows they hold; return the state."""
    for statistic, source in zip(state.statistics, plan.sources, strict=True):
        statistic.of_rows(state.infos[source].n_rows)
    return plan.counted(state)


def _feed(told: object) -> RowInfo:
    """Parse the row information of one schema: facts, number of rows, number of omitted rows."""
    if isinstance(told, tuple) and len(told) == 3 and isinstance(told[0], dict):
        facts, *counts = told
        known = all(type(fact) in {str, int, bool} for fact in facts.values())
        if known and all(type(count) is int and count >= 0 for count in counts):
            return RowInfo(dict(facts), *counts)
    raise StateFormatError("the state does not say what rows it saw")
