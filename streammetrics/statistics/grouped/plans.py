"""Layouts of statistics that are kept by key: what a set becomes that is read by slice or pane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from streammetrics.statistics.grouped.grouped import Grouped
from streammetrics.statistics.grouped.schema import KEY, GroupedPlan, leaves_out

if TYPE_CHECKING:
    from streammetrics.core.feeding.plan import Plan


def grouped_plan(plan: Plan) -> Plan:
    """Return the statistics of a plan, each kept by the key of the row."""
    return GroupedPlan(grouped(plan))


def grouped(
    plan: Plan,
    *,
    name: str = KEY,
    titles: tuple[str, ...] = (),
    most: int | None = None,
    overflow: Literal["raise", "other"] = "raise",
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
