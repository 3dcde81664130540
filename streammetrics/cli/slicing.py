"""What the options of slices say: columns, bins, and how many slices there may be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from streammetrics.cli.errors import CommandError
from streammetrics.core.columns.naming import near
from streammetrics.core.errors import NoConfidenceError, StreamMetricsError
from streammetrics.core.metric_set import MetricSet
from streammetrics.show.sliced import Sliced
from streammetrics.slices.bins import KeySpec, column_of, title_of
from streammetrics.slices.keyed import KeyedSet
from streammetrics.slices.slices import Slices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.cli.planning import Plan
    from streammetrics.core.confidence import Unit
    from streammetrics.core.types import Options

BY = "by "  # how the names of columns to slice by begin, beside those of inputs
MOST = 10_000


def sliced(
    what: Plan,
    asked_by: Sequence[str],
    most: int,
    worst: str | None,
    min_rows: int,
    unit: str | None = None,
) -> Plan:
    """Return the plan with its metrics by slice, and by all rows besides, in groups of units.

    Raises:
        CommandError: The options have no sense, or no slices are asked for and something of them.
    """
    if not asked_by:
        if worst is not None:
            raise CommandError("--worst is of slices: say by which columns, as --by country")
        if min_rows:
            raise CommandError("--min-rows is of slices: say by which columns, as --by country")
        if unit is None:
            return what
        suite = MetricSet(dict(what.suite.items()), columns=what.suite.columns, unit=unit)
        return replace(what, asked={**what.asked, f"{BY}{unit}": unit}, suite=suite)
    if worst is not None:
        named(worst, what.suite)
    specs = [[column(part) for part in text.split(",")] for text in asked_by]
    try:
        slices = Slices(what.suite, by=[[], *specs], max_slices=most, unit=unit)
    except ValueError as error:
        raise CommandError(f"--by {' --by '.join(asked_by)}: {error}") from error
    asked = {f"{BY}{title_of(part)}": title_of(part) for spec in specs for part in spec}
    if unit is not None:
        asked[f"{BY}{unit}"] = unit
    return replace(what, asked={**what.asked, **asked}, suite=slices)


def unit_of(text: str | None) -> Unit:
    """Return what ``--unit`` says: a column, ``None`` for rows, or without it the default."""
    if text is None:
        return ...
    return None if text == "none" else text


def by(what: Plan) -> Options:
    """Return what is told of the columns that rows are sliced by, and of their units."""
    told: Options = {}
    if isinstance(what.suite, Slices):
        told["by"] = [",".join(map(title_of, spec)) for spec in what.suite.by if spec]
    if isinstance(what.suite, KeyedSet) and what.suite.unit is not None:
        told["unit"] = what.suite.unit
    return told


def named(worst: str, suite: MetricSet) -> str:
    """Return the metric that ``--worst`` names, in any case as ``--metrics`` takes it.

    Raises:
        CommandError: There is none.
    """
    found = [name for name in suite if name.lower() == worst.lower()]
    if worst not in suite and len(found) != 1:
        raise CommandError(f"--worst {worst}: no such metric{near(worst, suite)}")
    return worst if worst in suite else found[0]


def column(text: str) -> KeySpec:
    """Return a column as it is written: its name, or with the edges of bins ``age:18:30``."""
    try:
        return column_of(text)
    except ValueError as error:
        raise CommandError(f"--by {error}") from error


def slices_of(
    state: MetricSet,
    min_rows: int,
    worst: str | None,
    confidence: float | None = None,
    unit: Unit = ...,
) -> Sliced | None:
    """Return the slices of a state as they are shown, ``None`` of a set without."""
    if not isinstance(state, Slices):
        return None
    ranked = None
    try:
        if worst is not None:
            worst = named(worst, state)
            level = 0.95 if confidence is None else confidence
            try:
                ranked = state.worst(worst, min_rows=min_rows, confidence=level, unit=unit)
            except NoConfidenceError:  # which a note tells where limits were asked for
                ranked = state.worst(worst, min_rows=min_rows, confidence=None)
    except (StreamMetricsError, ValueError) as error:
        raise CommandError(f"--worst {worst}: {error}") from error
    return Sliced.of(state, min_rows, worst, ranked, confidence, unit)
