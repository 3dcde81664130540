"""The metrics there are, a line each, by task."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from streammetrics.cli.errors import CommandError
from streammetrics.cli.parsing import summary
from streammetrics.cli.tasks import TASKS
from streammetrics.core.columns.batch import near
from streammetrics.core.registry import catalogue
from streammetrics.metrics.specs import known_as

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.metric import Metric

# Where the metrics of a task are, if not in the room of its name.
_ROOMS = {
    **dict.fromkeys(("binary", "multiclass", "multilabel"), ("classification", "scores")),
    **dict.fromkeys(("boxes", "masks"), ("detection",)),
    "spans": ("text",),
}


def listing(names: Sequence[str], task: str | None, width: int) -> str:
    """Return the metrics named, or of a task, or all: names and what they are.

    Raises:
        CommandError: There is no such metric or task.
    """
    if task is not None and task not in TASKS:
        raise CommandError(f"no task {task!r}{near(task, TASKS)}")
    if names:
        return "".join(_described(known_as(name, catalogue())) for name in names)
    parts = []
    for heading, rooms in _headings(task).items():
        found = {n: cls for n, cls in catalogue().items() if _room(cls) in rooms}
        wide = max(map(len, found))
        lines = [_line(f"  {n:<{wide}}  {summary(cls)}", width) for n, cls in sorted(found.items())]
        parts.append("\n".join([heading, *lines, ""]))
    return "\n".join(parts)


def _headings(task: str | None) -> dict[str, tuple[str, ...]]:
    """Return the rooms under each heading; tasks that have the same metrics stand together."""
    tasks: dict[tuple[str, ...], list[str]] = {}
    for name in TASKS:
        tasks.setdefault(_ROOMS.get(name, (name,)), []).append(name)
    found = {
        f"--task {'|'.join(names)}": rooms
        for rooms, names in tasks.items()
        if task is None or task in names
    }
    if task is None:
        read = {room for rooms in tasks for room in rooms}
        found["from Python"] = tuple({*map(_room, catalogue().values())} - read)
    return found


def _room(cls: type[Metric]) -> str:
    return cls.__module__.split(".")[2]


def _line(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


def _described(name: str) -> str:
    """Return all that is said of one metric: its parameters and its documentation."""
    cls = catalogue()[name]
    parameters = inspect.signature(cls).parameters.values()
    written = ", ".join(
        p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters
    )
    return f"{name}({written})\n\n{inspect.getdoc(cls)}\n\n"
