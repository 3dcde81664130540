"""The commands: their arguments, and what is done with them."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import typer

from streammetrics.cli import options as typed
from streammetrics.cli.comparing import of_comparison, of_states
from streammetrics.cli.errors import CommandError
from streammetrics.cli.evaluating import Asked, measured, opened, reported
from streammetrics.cli.listing import listing
from streammetrics.cli.live import live
from streammetrics.cli.merging import as_ledger, as_one, found
from streammetrics.cli.outcome import Outcome, say
from streammetrics.cli.outputs import Output, check_outputs, check_places, is_like, write
from streammetrics.cli.reporting import ReportAsked, reported_in_one
from streammetrics.cli.running import finish, outputs_of, state_of
from streammetrics.cli.slicing import MOST, slices_of
from streammetrics.cli.specs import character, depths, literal, literals, parse, shares
from streammetrics.cli.tasks import TASKS
from streammetrics.core.metric_set import MetricSet
from streammetrics.inference.comparing.comparison import Comparison
from streammetrics.ledger.ledger import Ledger
from streammetrics.metrics.specs import WORDS
from streammetrics.readers.pieces import BATCH_ROWS
from streammetrics.show.report import Results, report
from streammetrics.show.terminal import console

app = typer.Typer(help="Exact metrics of prediction files of any size.", rich_markup_mode=None)
app.add_typer(live, name="live")


def _print_version(wanted: bool) -> None:
    if wanted:
        try:
            typer.echo(f"streammetrics {version('streammetrics')}")
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


@app.command(cls=typed.Once)
def evaluate(
    task: typed.Task,
    paths: typed.Paths = None,
    y_true: typed.YTrue = None,
    y_score: typed.YScore = None,
    y_pred: typed.YPred = None,
    values: typed.Values = None,
    weight: typed.Weight = None,
    query: typed.Query = None,
    relevance: typed.Relevance = None,
    score: typed.Score = None,
    doc: typed.Doc = None,
    query_weight: typed.QueryWeight = None,
    qrels: typed.Qrels = None,
    run: typed.Run = None,
    labels_true: typed.LabelsTrue = None,
    labels_pred: typed.LabelsPred = None,
    features: typed.Features = None,
    labels: typed.Labels = None,
    scale: typed.Scale = None,
    y_low: typed.YLow = None,
    y_high: typed.YHigh = None,
    y_mean: typed.YMean = None,
    y_std: typed.YStd = None,
    y_ensemble: typed.YEnsemble = None,
    y_quantiles: typed.YQuantiles = None,
    levels: typed.Levels = None,
    pit: typed.Pit = None,
    ratings: typed.Ratings = None,
    item: typed.Item = None,
    category: typed.Category = None,
    popularity: typed.Popularity = None,
    time: typed.Time = None,
    event: typed.Event = None,
    reference: typed.Reference = None,
    prediction: typed.Prediction = None,
    true_boxes: typed.TrueBoxes = None,
    true_labels: typed.TrueLabels = None,
    true_crowd: typed.TrueCrowd = None,
    true_areas: typed.TrueAreas = None,
    pred_boxes: typed.PredBoxes = None,
    pred_labels: typed.PredLabels = None,
    pred_scores: typed.PredScores = None,
    annotations: typed.Annotations = None,
    results: typed.ResultsFiles = None,
    metrics: typed.Metrics = None,
    threshold: typed.Threshold = None,
    max_bins: typed.MaxBins = None,
    nan_policy: typed.NanPolicy = None,
    from_logits: typed.FromLogits = False,
    ignore_index: typed.IgnoreIndex = None,
    pos_label: typed.PosLabel = None,
    average: typed.Average = None,
    box_format: typed.BoxFormat = None,
    k: typed.K = None,
    preset: typed.Preset = None,
    ties: typed.Ties = None,
    relevant_at: typed.RelevantAt = None,
    no_relevant: typed.NoRelevant = None,
    unretrieved: typed.Unretrieved = None,
    per_query: typed.PerQuery = False,
    by: typed.By = None,
    min_rows: typed.MinRows = 0,
    worst: typed.Worst = None,
    max_slices: typed.MaxSlices = MOST,
    confidence: typed.Confidence = None,
    unit: typed.Unit = None,
    input_format: typed.InputFormat = None,
    format: typed.OldFormat = None,  # noqa: A002, ARG001 - the option's name; it is refused
    delimiter: typed.Delimiter = None,
    batch_rows: typed.BatchRows = BATCH_ROWS,
    workers: typed.Workers = 1,
    json: typed.Json = None,
    csv: typed.Csv = None,
    markdown: typed.Markdown = None,
    save: typed.Save = None,
    force: typed.Force = False,
) -> Outcome:
    """Compute metrics of files of predictions."""
    columns = {
        "y_true": y_true, "y_score": y_score, "y_pred": y_pred, "values": values,
        "sample_weight": weight, "query": query, "relevance": relevance, "score": score,
        "doc": doc, "query_weight": query_weight, "labels_true": labels_true,
        "labels_pred": labels_pred, "X": features,
        "scale": scale, "y_low": y_low, "y_high": y_high, "y_mean": y_mean, "y_std": y_std,
        "y_ensemble": y_ensemble, "y_quantiles": y_quantiles, "pit": pit, "ratings": ratings,
        "item": item, "category": category, "popularity": popularity, "time": time,
        "event": event, "reference": reference, "prediction": prediction,
        "true_boxes": true_boxes, "true_labels": true_labels, "true_crowd": true_crowd,
        "true_areas": true_areas, "pred_boxes": pred_boxes, "pred_labels": pred_labels,
        "pred_scores": pred_scores,
    }  # fmt: skip
    options: dict[str, Any] = {
        "threshold": threshold,
        "max_bins": max_bins,
        "nan_policy": nan_policy,
        "from_logits": from_logits or None,
        "ignore_index": ignore_index,
        "pos_label": None if pos_label is None else literal(pos_label),
        "average": average,
        "box_format": box_format,
        "k": depths(k) if k else None,
        "preset": preset,
        "ties": ties,
        "relevant_at": relevant_at,
        "no_relevant": no_relevant,
        "unretrieved": unretrieved,
        "levels": None if levels is None else shares(levels),
    }
    if task in TASKS and "labels" in TASKS[task].inputs:
        columns["labels"] = labels
    else:
        options["labels"] = None if labels is None else literals(labels)
    options = {key: value for key, value in options.items() if value is not None}
    if average is not None and WORDS.get(average.lower(), average) is None:
        options["average"] = None
    if per_query and task != "ranking":
        raise CommandError(f"--per-query is not for --task {task}")
    asked = Asked(
        task=task,
        columns={key: _each(given) for key, given in columns.items() if given},
        options=options,
        specs=parse(metrics) if metrics else None,
        paths=paths or (),
        qrels=qrels,
        runs=run or (),
        annotations=annotations,
        results=results or (),
        format=input_format,
        delimiter=None if delimiter is None else character(delimiter),
        by=by or (),
        max_slices=max_slices,
        min_rows=min_rows,
        worst=worst,
        confidence=confidence,
        unit=unit,
    )
    outputs = outputs_of(json, csv, markdown)
    saved = [] if save is None else [save]
    check_places([*outputs, *(Output("--save", path, bool) for path in saved)])
    work = opened(asked)
    like = is_like(work.to_save() if saved else None)
    outputs += [Output("--save", path, like) for path in saved]
    check_outputs(outputs, work.files, force=force, asked=asked.patterns, fmt=asked.format)
    for note in work.notes:
        say(f"note: {note}")
    found = measured(work, workers=workers, batch_rows=batch_rows)
    told = reported(work, found, asked, per_query=per_query)
    if save is not None:
        (state, *_) = found.states.values()
        write(save, (found.comparison or state).to_bytes())
    return finish(told, outputs)


def _each(given: str | list[str]) -> list[str]:
    return [given] if isinstance(given, str) else given


@app.command(name="metrics", cls=typed.Once)
def list_metrics(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[METRIC]...",
            help="Show all about these: parameters, formula, an example.",
            autocompletion=typed.complete_metrics,
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="Only those of one task.",
            metavar="|".join(TASKS),
            autocompletion=typed.complete_task,
        ),
    ] = None,
) -> Outcome:
    """List the metrics there are, a line each, by task."""
    return Outcome(listing(names or (), task, console().width))


@app.command(cls=typed.Once)
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


@app.command(name="show", cls=typed.Once)
def show_state(
    state: Annotated[str, typer.Argument(metavar="STATE", help="A saved state.")],
    json: typed.Json = None,
    csv: typed.Csv = None,
    markdown: typed.Markdown = None,
    per_query: typed.PerQuery = False,
    min_rows: typed.MinRows = 0,
    worst: typed.Worst = None,
    confidence: typed.Confidence = None,
    force: typed.Force = False,
) -> Outcome:
    """Show the values of a saved state."""
    outputs = outputs_of(json, csv, markdown)
    check_outputs(outputs, [state], force=force)
    what = state_of(state)
    about: dict[str, Any] = {"state": state}
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
    slices = slices_of(what, min_rows, worst, confidence) if isinstance(what, MetricSet) else None
    if slices is None and worst is not None:
        raise CommandError(f"--worst is of slices, and {state} has none")
    read_all = report(what, about, notes, per_query=per_query, slices=slices, confidence=confidence)
    return finish(Results({"": read_all}), outputs)


@app.command(name="report", cls=typed.Once)
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
        float, typer.Option(help="The level of the limits.", metavar="SHARE", callback=typed.share)
    ] = 0.95,
    min_rows: typed.MinRows = 0,
    json: typed.Json = None,
    force: typed.Force = False,
) -> Outcome:
    """Write what states say as one page. It is for people, has pictures and needs no network."""
    asked = ReportAsked(states, output, json, merge, title, confidence, min_rows, force)
    return reported_in_one(asked)


@app.command(name="compare", cls=typed.Once)
def compare_states(
    one: Annotated[str, typer.Argument(metavar="STATE", help="A saved state, or a ledger.")],
    other: Annotated[str, typer.Argument(metavar="STATE", help="Another one, of other rows.")],
    confidence: Annotated[
        float, typer.Option(help="The level of the limits.", metavar="SHARE")
    ] = 0.95,
    json: typed.Json = None,
    markdown: typed.Markdown = None,
    force: typed.Force = False,
) -> Outcome:
    """Compare two saved states of different rows. It says which is better, and how sure that is."""
    outputs = outputs_of(json, None, markdown)
    check_outputs(outputs, [one, other], force=force)
    return finish(of_states([one, other], confidence), outputs)
