"""The commands with their examples, and the list of metrics."""

from __future__ import annotations

import inspect
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from streammetrics.cli import options as typed
from streammetrics.cli.evaluate import evaluate
from streammetrics.cli.live_store import live
from streammetrics.cli.result import CommandError, CommandResult
from streammetrics.cli.states import (
    compare_states,
    gate,
    merge,
    show_state,
    verify,
    write_report,
)
from streammetrics.cli.tasks import TASKS
from streammetrics.core.columns.batch import near
from streammetrics.core.kernels.active import kernels
from streammetrics.core.registry import VERSION, catalogue
from streammetrics.metrics.specs import known_as
from streammetrics.show.formats import console

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.metric import Metric

app = typer.Typer(
    cls=typed.CommandGroup,
    help="Exact metrics of prediction files of any size.",
    rich_markup_mode=None,
    context_settings=typed.WIDTH,
    epilog="""
    streammetrics evaluate data.csv --task binary --y-true label --y-score score
    streammetrics metrics --task ranking
    streammetrics evaluate --help
    """,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"streammetrics {VERSION}, {kernels()}")
        raise typer.Exit


@app.callback()
def _every_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """Exact metrics of prediction files of any size."""


def list_metrics(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="METRIC",
            help="Metrics to document: parameters, formula, example.",
            autocompletion=typed.complete_metrics,
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help=f"Only the metrics of one task: {', '.join(TASKS)}.",
            metavar="TASK",
            autocompletion=typed.complete_task,
        ),
    ] = None,
) -> CommandResult:
    """List metrics and inputs by task. With names: document these metrics.

    Examples:
        streammetrics metrics
        streammetrics metrics --task forecasting
        streammetrics metrics FBeta ROCAUC
    """
    if task is not None and task not in TASKS:
        raise CommandError(f"no task {task!r}{near(task, TASKS)}")
    if names:
        return CommandResult("".join(_documented(known_as(name, catalogue())) for name in names))
    width, parts = console().width, []
    for heading, rooms in _headings(task).items():
        found = {name: cls for name, cls in catalogue().items() if _room(cls) in rooms}
        wide = max(map(len, found))
        lines = [f"  {name:<{wide}}  {typed.summary(cls)}" for name, cls in sorted(found.items())]
        shown = [line if len(line) <= width else f"{line[: width - 1].rstrip()}…" for line in lines]
        parts.append("\n".join([textwrap.fill(heading, width), *shown, ""]))
    return CommandResult("\n".join(parts))


# Packages of the metrics of a task, unless the package has the task's name.
_ROOMS = {
    **dict.fromkeys(("binary", "multiclass", "multilabel"), ("classification", "scores")),
    **dict.fromkeys(("boxes", "masks"), ("detection",)),
    "spans": ("text",),
}


def _headings(task: str | None) -> dict[str, tuple[str, ...]]:
    """Return the packages under each heading; tasks with the same metrics share one."""
    tasks: dict[tuple[str, ...], list[str]] = {}
    for name in TASKS:
        tasks.setdefault(_ROOMS.get(name, (name,)), []).append(name)
    found = {}
    for rooms, names in tasks.items():
        if task is None or task in names:
            inputs = dict.fromkeys(each for name in names for each in TASKS[name].inputs)
            found[f"--task {'|'.join(names)}, inputs {', '.join(inputs)}:"] = rooms
    if task is None:
        read = {room for rooms in tasks for room in rooms}
        found["from Python:"] = tuple({*map(_room, catalogue().values())} - read)
    return found


def _room(cls: type[Metric]) -> str:
    return cls.__module__.split(".")[2]


def _documented(name: str) -> str:
    """Return the signature and the docstring of a metric."""
    cls = catalogue()[name]
    parameters = ", ".join(
        p.name if p.default is p.empty else f"{p.name}={p.default!r}"
        for p in inspect.signature(cls).parameters.values()
    )
    return f"{name}({parameters})\n\n{inspect.getdoc(cls)}\n\n"


_COMMANDS: dict[str, Callable[..., CommandResult]] = {
    "evaluate": evaluate,
    "metrics": list_metrics,
    "merge": merge,
    "show": show_state,
    "report": write_report,
    "compare": compare_states,
    "verify": verify,
    "gate": gate,
}
for _name, _command in _COMMANDS.items():
    typed.command(app, _name)(_command)
app.add_typer(live, name="live")
