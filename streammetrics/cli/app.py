"""The commands: their arguments, and one line for every mistake."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streammetrics.cli.errors import CommandError
from streammetrics.cli.merging import in_ledger, in_one
from streammetrics.cli.planning import plan
from streammetrics.cli.running import (
    advice,
    finish,
    opened,
    progress_bar,
    state_of,
)
from streammetrics.cli.specs import Spec, character, depths, literal, literals, parse
from streammetrics.cli.tasks import OF_TREC_FILES, TASKS, flag
from streammetrics.cli.writing import check_writable, write
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.metric_set import MetricSet
from streammetrics.engines.local import evaluate as evaluate_data
from streammetrics.ledger.ledger import Ledger
from streammetrics.readers import trec
from streammetrics.readers.paths import FORMATS, find
from streammetrics.readers.pieces import BATCH_ROWS
from streammetrics.readers.sources import STDIN
from streammetrics.show.terminal import console

if TYPE_CHECKING:
    from collections.abc import Sequence

app = typer.Typer(
    help="Exact metrics of prediction files of any size.",
    add_completion=False,
    rich_markup_mode=None,
)

_INTERRUPTED = 130  # 128 and the number of the signal, as shells have it


def _option(text: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, **more)


JsonOption = Annotated[
    str | None, _option("Write the results as JSON.", "--json", metavar="FILE|-")
]
PerQueryOption = Annotated[bool, _option("Show the value of each query too.", "--per-query")]


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run a command; every mistake is one line on standard error and exit code 2."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = app(args=words or ["--help"], standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED  # some versions of the parser return this code, others raise
    except StreamMetricsError as error:
        return _mistake(str(error))
    except MemoryError:
        return _mistake("not enough memory: try fewer --workers or --max-bins")
    except Exception as error:
        told = getattr(error, "format_message", None)  # how the parser's errors are known
        if told is None:
            raise
        return _mistake(f"{told()}; see streammetrics --help")
    if code == _INTERRUPTED:
        print("interrupted", file=sys.stderr)
    return int(code or 0)


def _mistake(message: str) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return 2


@app.command()
def evaluate(
    task: Annotated[
        str, _option("What is predicted.", metavar="|".join(TASKS), show_default=False)
    ],
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...",
            help="Parquet, Arrow, CSV or JSON lines: files, folders, globs; - is standard input.",
        ),
    ] = None,
    y_true: Annotated[str | None, _option("The column of true labels or values.")] = None,
    y_score: Annotated[
        str | None,
        _option("The column of scores; for several classes a list p0,p1,p2 or a glob 'p*'."),
    ] = None,
    y_pred: Annotated[str | None, _option("The column of predicted labels or values.")] = None,
    weight: Annotated[str | None, _option("The column of row weights.")] = None,
    query: Annotated[str | None, _option("ranking: the column of query ids.")] = None,
    relevance: Annotated[
        str | None, _option("ranking: the column of relevances; null where not judged.")
    ] = None,
    score: Annotated[
        str | None, _option("ranking: the column of scores; null where not retrieved.")
    ] = None,
    doc: Annotated[str | None, _option("ranking: the column of document ids.")] = None,
    qrels: Annotated[
        str | None, _option("ranking: a TREC file of judgments, instead of PATH.", metavar="FILE")
    ] = None,
    run: Annotated[
        str | None, _option("ranking: a TREC file of results, with --qrels.", metavar="FILE")
    ] = None,
    labels_true: Annotated[str | None, _option("clustering: the column of true labels.")] = None,
    labels_pred: Annotated[
        str | None, _option("clustering: the column of predicted clusters.")
    ] = None,
    features: Annotated[
        str | None, _option("clustering: the columns of coordinates, a list or a glob 'x*'.")
    ] = None,
    labels: Annotated[
        str | None,
        _option(
            "The classes, as 0,1,2 or cat,dog: any other label is a mistake; clustering: the "
            "column of the clusters of --features."
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        _option("What to compute, such as 'F1,FBeta(beta=2),ROCAUC', instead of the default."),
    ] = None,
    threshold: Annotated[
        float | None,
        _option("Scores from here on are positive; 0.5 if there is no --y-pred."),
    ] = None,
    max_bins: Annotated[
        int | None,
        _option("Distinct scores kept apart; past them values are certified intervals."),
    ] = None,
    nan_policy: Annotated[
        str | None,
        _option("What to do with rows that lack a value; raise by default.", metavar="raise|omit"),
    ] = None,
    pos_label: Annotated[str | None, _option("The positive class; 1 by default.")] = None,
    average: Annotated[
        str | None,
        _option(
            "How classes are averaged; metrics that lack an average (ROCAUC has no micro) keep "
            "their own default, which --json shows.",
            metavar="binary|micro|macro|weighted|none",
        ),
    ] = None,
    k: Annotated[
        str | None,
        _option(
            "ranking: how many results count, such as 5,10,100, in every metric that takes k and "
            "does not say its own; 10 by default in the default metrics."
        ),
    ] = None,
    preset: Annotated[
        str | None,
        _option(
            "ranking: another tool's conventions; trec_eval by default with --qrels.",
            metavar="trec_eval|sklearn",
        ),
    ] = None,
    ties: Annotated[
        str | None,
        _option(
            "ranking: equal scores in expectation, or by descending document.",
            metavar="average|doc",
        ),
    ] = None,
    relevant_at: Annotated[
        float | None, _option("ranking: the least relevance that is one.")
    ] = None,
    no_relevant: Annotated[
        str | None,
        _option("ranking: queries without a relevant document.", metavar="zero|skip"),
    ] = None,
    unretrieved: Annotated[
        str | None,
        _option(
            "ranking: judged queries without results; zero is trec_eval's -c.", metavar="zero|skip"
        ),
    ] = None,
    per_query: PerQueryOption = False,
    format: Annotated[  # noqa: A002 - the option's name
        str | None,
        _option("The files' format, where their endings do not say it.", metavar="|".join(FORMATS)),
    ] = None,
    delimiter: Annotated[
        str | None,
        _option(
            "What is between the fields of CSV, such as ';' or tab; by default what the first "
            "rows of each file say."
        ),
    ] = None,
    batch_rows: Annotated[int, _option("Rows read at a time.", min=1)] = BATCH_ROWS,
    workers: Annotated[
        int, _option("Processes that read; the result is the same to the last bit.", min=1)
    ] = 1,
    json: JsonOption = None,
    save: Annotated[
        str | None, _option("Save the state, for show, merge or Python.", metavar="STATE")
    ] = None,
) -> None:
    """Compute metrics of files of predictions."""
    columns = {
        "y_true": y_true, "y_score": y_score, "y_pred": y_pred, "sample_weight": weight,
        "query": query, "relevance": relevance, "score": score, "doc": doc,
        "labels_true": labels_true, "labels_pred": labels_pred, "X": features,
    }  # fmt: skip
    options = {
        "threshold": threshold,
        "max_bins": max_bins,
        "nan_policy": nan_policy,
        "pos_label": None if pos_label is None else literal(pos_label),
        "average": average,
        "k": None if k is None else depths(k),
        "preset": preset,
        "ties": ties,
        "relevant_at": relevant_at,
        "no_relevant": no_relevant,
        "unretrieved": unretrieved,
    }
    if task in TASKS and "labels" in TASKS[task].inputs:
        columns["labels"] = labels
    else:
        options["labels"] = None if labels is None else literals(labels)
    given = {key: text for key, text in columns.items() if text is not None}
    options = {key: value for key, value in options.items() if value is not None}
    specs = None if metrics is None else parse(metrics)
    for path in (save, json):
        if path not in {None, STDIN}:
            check_writable(str(path))
    if qrels is not None or run is not None:
        _check_trec(task, [*(paths or ()), *map(flag, given)], qrels, run)
        options = {"preset": "trec_eval", **options}
        what = plan(task, trec.INPUTS, options, specs, tuple(map(Spec, OF_TREC_FILES)))
        pieces = trec.pieces(str(qrels), str(run))
        about: dict[str, Any] = {"qrels": qrels, "run": run}
    else:
        what = plan(task, given, options, specs)
        if not paths:
            raise CommandError("which files are to be read? PATH... is missing")
        found = find(paths, format, None if delimiter is None else character(delimiter))
        names, pieces, said = opened(found, what)
        files = [str(source) for source in found.sources]
        about = {"columns": names, "files": files, "left_out": said}
    if per_query and task != "ranking":
        raise CommandError(f"--per-query is not for --task {task}")
    with progress_bar(pieces) as progress, advice(what):
        suite = evaluate_data(
            what.suite, pieces, workers=workers, batch_rows=batch_rows, progress=progress
        )
    about = {"task": task, **about, "options": dict(what.options)}
    finish(suite, about, (), json, save=save, per_query=per_query)


def _check_trec(task: str, others: Sequence[str], qrels: str | None, run: str | None) -> None:
    if task != "ranking":
        raise CommandError(f"--qrels and --run are not for --task {task}")
    if qrels is None or run is None:
        raise CommandError("--qrels and --run need each other")
    if others:
        raise CommandError(f"--qrels and --run are all that is read: leave out {others[0]}")


@app.command()
def merge(
    states: Annotated[
        list[str], typer.Argument(metavar="STATE...", help="Saved states, or ledgers.")
    ],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="STATE", help="Where to save the merged state.")
    ],
    ledger: Annotated[
        bool,
        _option(
            "Make a ledger, in which each shard counts once. A state is of the shard that its "
            "file is named for; shard@2.state is of its second attempt.",
            "--ledger",
        ),
    ] = False,
    seal: Annotated[
        bool, _option("Fold all shards of the ledger into one state, for good.", "--seal")
    ] = False,
) -> None:
    """Merge saved states into one: as if one worker had seen all their rows."""
    check_writable(output)
    merged = in_ledger(states) if ledger else in_one(states)
    if seal:
        if not isinstance(merged, Ledger):
            raise CommandError("--seal is for ledgers: add --ledger")
        merged.seal(merged.ids)
    write(output, merged.to_bytes())
    count = f"{len(states)} state{'s' * (len(states) != 1)}"
    if isinstance(merged, Ledger):
        count += f" into {len(merged):,} shard{'s' * (len(merged) != 1)}"
    console().print(f"merged {count} of {merged.n_rows:,} rows into {output}")


@app.command(name="show")
def show_state(
    state: Annotated[str, typer.Argument(metavar="STATE", help="A saved state.")],
    json: JsonOption = None,
    per_query: PerQueryOption = False,
) -> None:
    """Show the values of a saved state."""
    if json not in {None, STDIN}:
        check_writable(str(json))
    what = state_of(state)
    about: dict[str, Any] = {"state": state}
    notes = []
    if isinstance(what, Ledger):
        if not what.ids:
            raise CommandError(f"{state}: a ledger without any shard")
        about["shards"] = what.ids
        notes.append(f"{len(what):,} shards, {len(what.sealed):,} of them sealed")
        what = what.merged()
    if isinstance(what, MetricSet):
        about["columns"] = what.columns
    finish(what, about, notes, json, per_query=per_query)
