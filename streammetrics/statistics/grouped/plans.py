"""Layouts of statistics that are kept by key: what a set becomes that is read by slice or pane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from streammetrics.statistics.grouped.grouped import Grouped
from streammetrics.statistics.grouped.schema import KEY, GroupedPlan, keyed, leaves_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.columns.schema import Schema
    from streammetrics.core.feeding.plan import Plan

MOST_UNITS = 4096  # that have a state each


def grouped_plan(plan: Plan) -> Plan:
    """Return the statistics of a plan, each kept by the key of the row."""
    return GroupedPlan(grouped(plan))


def grouped(
    plan: Plan,
    *,
    name: str = KEY,
    titles: tuple[str, ...] = (),
    most: int | None = None,
    overflow: Literal["raise", "other", "groups"] = "raise",
) -> list[Grouped]:
    """Return the statistics of a plan, kept by key: a `Grouped` for each of its schemas.

    Schemas that may leave rows out have another one, which counts these.
    """
    every: list[Grouped] = []
    given: Any = {"name": name, "titles": titles, "most": most, "overflow": overflow}
    for source, schema in enumerate(plan.schemas):
        pairs = zip(plan.start.statistics, plan.sources, strict=True)
        of = tuple(statistic for statistic, place in pairs if place == source)
        every += [
            Grouped(of=of, left_out=left_out, **given)
            for left_out in (False, True)[: 1 + leaves_out(schema)]
        ]
    return every


def unit_plan(
    plan: Plan, sides: Sequence[Sequence[Schema]], name: str
) -> tuple[Plan, list[list[int]]]:
    """Return the statistics of a plan by unit, once for each side, and the places of each side's.

    A side has its own schemas in place of those of the plan.
    """
    every = grouped(plan, name=name, most=MOST_UNITS, overflow="groups")
    sources = [plan.schemas.index(each.of[0].schema) for each in every]
    schemas = [
        keyed(side[source], name, left_out=each.left_out)
        for side in sides
        for source, each in zip(sources, every, strict=True)
    ]
    found, size = GroupedPlan(every * len(sides), schemas), len(every)
    keys = zip([each._key for each in every] * len(sides), schemas, strict=True)
    places = [found.places[key] for key in keys]
    return found, [places[k * size : (k + 1) * size] for k in range(len(sides))]
