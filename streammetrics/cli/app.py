"""The commands by name; `commands` says what each takes and does."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from streammetrics.cli.commands.evaluate import evaluate
from streammetrics.cli.commands.live import live
from streammetrics.cli.commands.states import compare_states, merge, show_state, write_report
from streammetrics.cli.listing import listing
from streammetrics.cli.outputs import Outcome
from streammetrics.cli.parsing import Once, complete_metrics, complete_task
from streammetrics.cli.tasks import TASKS
from streammetrics.core.kernels.active import kernels
from streammetrics.show.formats import console

app = typer.Typer(help="Exact metrics of prediction files of any size.", rich_markup_mode=None)


def _print_version(wanted: bool) -> None:
    if wanted:
        try:
            typer.echo(f"streammetrics {version('streammetrics')}, {kernels()}")
        except PackageNotFoundError:
            typer.echo("streammetrics, not installed: run from a checkout")
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
            metavar="[METRIC]...",
            help="Show all about these: parameters, formula, an example.",
            autocompletion=complete_metrics,
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="Only those of one task.",
            metavar="|".join(TASKS),
            autocompletion=complete_task,
        ),
    ] = None,
) -> Outcome:
    """List the metrics there are, a line each, by task."""
    return Outcome(listing(names or (), task, console().width))


app.command(name="evaluate", cls=Once)(evaluate)
app.command(name="metrics", cls=Once)(list_metrics)
app.command(name="merge", cls=Once)(merge)
app.command(name="show", cls=Once)(show_state)
app.command(name="report", cls=Once)(write_report)
app.command(name="compare", cls=Once)(compare_states)
app.add_typer(live, name="live")
