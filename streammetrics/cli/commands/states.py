"""The commands on saved states: merge, show, report, compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from streammetrics.cli import options as typed
from streammetrics.cli.errors import CommandError
from streammetrics.cli.evaluating import (
    finish,
    of_comparison,
    of_states,
    outputs_of,
    slices_of,
    state_of,
    unit_of,
)
from streammetrics.cli.merging import ReportOptions, as_ledger, as_one, found, reported_in_one
from streammetrics.cli.outputs import Outcome, Output, check_outputs, check_places
from streammetrics.cli.parsing import share
from streammetrics.core.metric_set import MetricSet
from streammetrics.inference.comparing.comparison import Comparison
from streammetrics.ledger.ledger import Ledger
from streammetrics.show.report import ModelReports, report
from streammetrics.slices.keyed import KeyedSet

if TYPE_CHECKING:
    from streammetrics.core.types import Options


def merge(
    states: Annotated[
        list[str], typer.Argument(metavar="STATE...", help="Saved states, or ledgers; or globs.")
    ],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="STATE", help="Where to save the merged state.")
    ],
    ledger: Annotated[
        bool,
        typer.Option(
            "--ledger",
            help="Make a ledger, in which each shard counts once. A state is of the shard that "
            "its file is named for; shard@2.state is of its second attempt. A ledger that is "
            "there keeps its shards, and takes these as well.",
        ),
    ] = False,
    seal: Annotated[
        bool,
        typer.Option("--seal", help="Fold all shards of the ledger into one state, for good."),
    ] = False,
    force: typed.Force = False,
) -> Outcome:
    """Merge saved states into one. It is as if one worker had seen all their rows."""
    if seal and not ledger:
        raise CommandError("--seal is for ledgers: add --ledger")
    check_places([Output("-o", output, bool)])
    paths = found(states, output, ledger=ledger)
    if ledger:
        merged: Any = as_ledger(paths, output, seal=seal, force=force)
    else:
        merged = as_one(paths, output, asked=states, force=force)
    rows = merged.n_rows
    count = f"{len(paths)} state{'s' * (len(paths) != 1)}"
    if isinstance(merged, Ledger):
        count += f" into {len(merged):,} shard{'s' * (len(merged) != 1)}"
    return Outcome(f"merged {count} of {rows:,} rows into {output}\n")


def show_state(
    state: Annotated[str, typer.Argument(metavar="STATE", help="A saved state.")],
    json: typed.Json = None,
    csv: typed.Csv = None,
    markdown: typed.Markdown = None,
    per_query: typed.PerQuery = False,
    min_rows: typed.MinRows = 0,
    worst: typed.Worst = None,
    confidence: typed.Confidence = None,
    unit: typed.Unit = None,
    force: typed.Force = False,
) -> Outcome:
    """Show the values of a saved state."""
    outputs = outputs_of(json, csv, markdown)
    check_outputs(outputs, [state], force=force)
    what = state_of(state)
    about: Options = {"state": state}
    notes = []
    if isinstance(what, Ledger):
        if not what.ids:
            raise CommandError(f"{state}: a ledger without any shard")
        about["shards"] = what.ids
        count = f"{len(what):,} shard{'s' * (len(what) != 1)}"
        notes.append(f"{count}, {len(what.sealed):,} of them sealed")
        what = what.merged()
    if isinstance(what, MetricSet):
        about["columns"] = what.columns
    if isinstance(what, Comparison):
        return finish(of_comparison(what, about, notes), outputs)
    of = unit_of(unit)
    if isinstance(of, str) and confidence is None and worst is None:
        raise CommandError("--unit requires --confidence, e.g. --confidence 0.95")
    kept = what.unit if isinstance(what, KeyedSet) else None
    if isinstance(of, str) and of != kept:
        held = "no unit" if kept is None else f"the unit {kept}"
        raise CommandError(f"--unit {unit}: {state} keeps {held}; --unit none asks for rows")
    slices = (
        slices_of(what, min_rows, worst, confidence, of) if isinstance(what, MetricSet) else None
    )
    if slices is None and (worst is not None or min_rows):
        option = "--min-rows" if worst is None else "--worst"
        raise CommandError(f"{option} is of slices, and {state} has none")
    read_all = report(
        what, about, notes, per_query=per_query, slices=slices, confidence=confidence, unit=of
    )
    return finish(ModelReports({"": read_all}), outputs)


def write_report(
    states: Annotated[
        list[str],
        typer.Argument(
            metavar="STATE...",
            help="Saved states or ledgers, one a model; a glob in quotes, or a folder, is the "
            "shards of one model, which are merged.",
        ),
    ],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Where to write the page.")
    ],
    merge: Annotated[
        bool, typer.Option("--merge", help="All states are shards of one model.")
    ] = False,
    title: Annotated[str, typer.Option(help="What stands above the report.")] = "",
    confidence: Annotated[
        float, typer.Option(help="The level of the limits.", metavar="SHARE", callback=share)
    ] = 0.95,
    min_rows: typed.MinRows = 0,
    json: typed.Json = None,
    force: typed.Force = False,
) -> Outcome:
    """Write what states say as one page. It is for people, has pictures and needs no network."""
    asked = ReportOptions(states, output, json, merge, title, confidence, min_rows, force)
    return reported_in_one(asked)


def compare_states(
    one: Annotated[str, typer.Argument(metavar="STATE", help="A saved state, or a ledger.")],
    other: Annotated[str, typer.Argument(metavar="STATE", help="Another one, of other rows.")],
    confidence: Annotated[
        float, typer.Option(help="The level of the limits.", metavar="SHARE", callback=share)
    ] = 0.95,
    unit: typed.Unit = None,
    json: typed.Json = None,
    markdown: typed.Markdown = None,
    force: typed.Force = False,
) -> Outcome:
    """Compare two saved states of different rows. It says which is better, and how sure that is."""
    outputs = outputs_of(json, None, markdown)
    check_outputs(outputs, [one, other], force=force)
    return finish(of_states([one, other], confidence, unit), outputs)
