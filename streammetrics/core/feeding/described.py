"""The state of a metric or a set as a file has it: what is said of its rows, and its arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.core.errors import StateFormatError
from streammetrics.core.feeding.states import Feed, State
from streammetrics.core.state.arrays import nested, parted

if TYPE_CHECKING:
    from streammetrics.core.feeding.layout import Layout
    from streammetrics.core.types import Array, Arrays, Json


def described(state: State) -> tuple[list[Json], dict[str, Array]]:
    """Return what a file says of the rows of a state, and the arrays of its statistics."""
    arrays: dict[str, Array] = {}
    for index, statistic in enumerate(state.statistics):
        arrays |= nested(str(index), statistic.arrays())
    rows = [[dict(sorted(facts.items())), n, omitted] for facts, n, omitted in state.feeds]
    return rows, arrays


def filled(layout: Layout, told: object, arrays: Arrays) -> State:
    """Return the state that a file describes.

    The caller has to compare what `described` says of it with the file.
    """
    parts = parted(arrays)
    statistics = tuple(
        [
            statistic.restored(parts.pop(str(index), {}))
            for index, statistic in enumerate(layout.start.statistics)
        ]
    )
    if not isinstance(told, tuple) or len(told) != len(layout.schemas):
        raise StateFormatError("the counts of rows do not fit the metric")
    feeds = tuple(map(_feed, told))
    if not layout.agree(feeds):
        raise StateFormatError("metrics that read the same columns saw different rows")
    if parts:
        raise StateFormatError("there are arrays that belong to no statistic")
    return _of_rows(layout, State(feeds, statistics))


def _of_rows(layout: Layout, state: State) -> State:
    """Return a state that was read, after telling its statistics how many rows they are of."""
    for statistic, source in zip(state.statistics, layout.sources, strict=True):
        statistic.of_rows(state.feeds[source].n_rows)
    return state


def _feed(told: object) -> Feed:
    """Return what a file says of the rows of one schema: facts, rows and rows left out."""
    if isinstance(told, tuple) and len(told) == 3 and isinstance(told[0], dict):
        facts, *counts = told
        known = all(type(fact) in {str, int, bool} for fact in facts.values())
        if known and all(type(count) is int and count >= 0 for count in counts):
            return Feed(dict(facts), *counts)
    raise StateFormatError("the state does not say what rows it saw")
