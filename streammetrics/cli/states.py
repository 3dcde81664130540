"""Commands on saved states: merge, show, report, compare, verify."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streammetrics.cli import options as typed
from streammetrics.cli.inputs import named, slices_of, state_of, unit_of
from streammetrics.cli.live import open_store
from streammetrics.cli.outputs import (
    Output,
    check_outputs,
    check_places,
    finish,
    identity,
    outputs_of,
    write,
)
from streammetrics.cli.result import NO_ROWS, NOTHING, CommandError, CommandResult, blaming, say
from streammetrics.core.errors import (
    IncompatibleMetricsError,
    StateFormatError,
    StreamMetricsError,
    an,
)
from streammetrics.core.loading import load
from streammetrics.core.metric import Metric
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.receipts import circumstances, differences, read_receipt
from streammetrics.core.results.differences import Differences
from streammetrics.core.state.files import locked
from streammetrics.inference.comparison import Comparison, compare
from streammetrics.inference.decisions import UNDECIDED, WORSE
from streammetrics.inference.distributions import holm
from streammetrics.ledger import Ledger, contradiction
from streammetrics.live.live import Live
from streammetrics.live.service.config import settings as settings_of
from streammetrics.readers.paths import matching
from streammetrics.show.page import as_document, as_page, findings
from streammetrics.show.report import ModelReports, report
from streammetrics.slices.slices import Slices

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.types import Options
    from streammetrics.live.service.config import Settings


OTHER_STATE = 1  # the exit code of `verify` where the state is not that of the receipt

_COMMA = re.compile(r",(?![^(]*\))")  # outside of parentheses
_ATTEMPT = re.compile(r"(.+)@(\d+)")


def merge(
    states: Annotated[
        list[str], typer.Argument(metavar="STATE", help="Saved states or ledgers, or globs.")
    ],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="STATE", help="File of the merged state.")
    ],
    ledger: Annotated[
        bool,
        typer.Option(
            "--ledger",
            help="Write a ledger, in which every shard counts once. The shard of a state is named "
            "by its file: part-3.state, part-3@2.state for a second attempt. An existing ledger "
            "keeps its shards and takes these as well.",
        ),
    ] = False,
    seal: Annotated[
        bool,
        typer.Option("--seal", help="Fold all shards of the ledger into one state, for good."),
    ] = False,
    force: typed.Force = False,
) -> CommandResult:
    """Merge saved states. The result is that of one worker with all their rows.

    Examples:
        streammetrics merge monday.state tuesday.state -o week.state
        streammetrics merge 'shards/*.state' -o all.state --force
        streammetrics merge --ledger part-1.state part-2@2.state -o run.ledger
    """
    if seal and not ledger:
        raise CommandError("--seal requires --ledger")
    check_places([Output("-o", output)])
    paths = _paths(states, output, ledger=ledger)
    if ledger:
        merged: Ledger | Mergeable = _merged_ledger(paths, output, seal=seal, force=force)
    else:
        merged = _merged_state(paths, output, patterns=states, force=force)
    rows = merged.n_rows
    count = f"{len(paths)} state{'s' * (len(paths) != 1)}"
    if isinstance(merged, Ledger):
        count += f" into {len(merged):,} shard{'s' * (len(merged) != 1)}"
    return CommandResult(f"merged {count} of {rows:,} rows into {output}\n")


def show_state(
    state: Annotated[str, typer.Argument(metavar="STATE", help="A saved state or ledger.")],
    json: typed.Json = None,
    csv: typed.Csv = None,
    markdown: typed.Markdown = None,
    metrics: typed.ShownMetrics = None,
    by: typed.ShownBy = None,
    per_query: typed.PerQuery = False,
    min_rows: typed.MinRows = 0,
    worst: typed.Worst = None,
    confidence: typed.Confidence = None,
    unit: typed.Unit = None,
    force: typed.Force = False,
) -> CommandResult:
    """Show the values of a saved state.

    Examples:
        streammetrics show week.state
        streammetrics show week.state --confidence 0.95 --json week.json
        streammetrics show week.state --worst Recall --min-rows 500
    """
    outputs = outputs_of(json, csv, markdown)
    check_outputs(outputs, [state], force=force)
    what = state_of(state)
    if not isinstance(what, Metric | MetricSet | Ledger):
        kind = type(what).__name__
        raise CommandError(f"{state} is a saved {kind}: streammetrics report draws it")
    about: Options = {"state": state}
    notes = []
    if isinstance(what, Ledger):
        if not what.ids:
            raise CommandError(f"{state}: the ledger has no shard")
        about["shards"] = what.ids
        count = f"{len(what):,} shard{'s' * (len(what) != 1)}"
        notes.append(f"{count}, {len(what.sealed):,} of them sealed")
        what = what.merged()
    if isinstance(what, MetricSet):
        about["columns"] = what.columns
    names = _names(metrics or (), what, state)
    if by and not isinstance(what, Slices):
        raise CommandError(f"--by requires slices, and {state} has none")
    if isinstance(what, Comparison):
        return finish(_comparison(what, names, about, notes), outputs)
    if isinstance(what, MetricSet) and metrics:
        what = what._only(names)
    if isinstance(what, Slices) and by:
        with blaming(f"--by {' --by '.join(by)}", KeyError):
            what = what._only_by([text.split(",") for text in by])
    of = unit_of(unit)
    if isinstance(of, str) and confidence is None and worst is None:
        raise CommandError("--unit requires --confidence, e.g. --confidence 0.95")
    kept = what._kept_unit if isinstance(what, MetricSet) else None
    if kept is not None and of is not None and (confidence or worst) is not None:
        about["unit"] = kept
    if isinstance(of, str) and of != kept:
        held = "no unit" if kept is None else f"the unit {kept}"
        raise CommandError(f"--unit {unit}: {state} keeps {held}; --unit none asks for rows")
    slices = (
        slices_of(what, min_rows, worst, confidence, of) if isinstance(what, MetricSet) else None
    )
    if slices is None and (worst is not None or min_rows):
        option = "--min-rows" if worst is None else "--worst"
        raise CommandError(f"{option} requires slices, and {state} has none")
    read_all = report(
        what, about, notes, per_query=per_query, slices=slices, confidence=confidence, unit=of
    )
    return finish(ModelReports({"": read_all}), outputs)


def _names(texts: Sequence[str], what: Metric | MetricSet, path: str) -> Sequence[str]:
    """Return the metrics to show: those that ``--metrics`` names, by default all."""
    if isinstance(what, Metric | Live):
        if texts:
            raise CommandError(
                f"--metrics requires a set of metrics, and {path} is {an(type(what).__name__)}"
            )
        return ()
    known = what.of_metrics if isinstance(what, Comparison) else tuple(what)
    # A name may hold commas, as FBeta(beta=2, average=macro) does.
    every = [text for part in texts for text in _COMMA.split(part)]
    return list(dict.fromkeys(named(text.strip(), known, "--metrics") for text in every)) or known


def write_report(
    states: Annotated[
        list[str],
        typer.Argument(
            metavar="STATE",
            help="Saved states or ledgers, one per model. A folder, or a glob in quotes, holds the "
            "shards of one model.",
        ),
    ],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="File of the page.")
    ],
    merge: Annotated[
        bool, typer.Option("--merge", help="All states are shards of one model.")
    ] = False,
    title: Annotated[str, typer.Option(metavar="TEXT", help="Title of the report.")] = "",
    confidence: typed.Level = 0.95,
    min_rows: typed.MinRows = 0,
    json: typed.Json = None,
    force: typed.Force = False,
) -> CommandResult:
    """Write a report as one HTML page. It has tables and plots and needs no network.

    Examples:
        streammetrics report week.state -o report.html
        streammetrics report old.state new.state -o report.html --title "Old and new"
        streammetrics report 'shards/*.state' -o report.html --json report.json
    """
    files = _models(states, merge=merge)
    outputs = [Output("--output", output)]
    if json is not None:
        outputs.append(Output("--json", json))
    every = [path for paths in files.values() for path in paths]
    _check_once(every)
    check_outputs(outputs, every, force=force, patterns=states)
    read, rules = {}, {}
    for name, paths in files.items():
        settings = _settings(paths)
        read[name] = _read(paths) if settings is None else _stored(settings)
        rules[name] = settings.rules if settings is not None else ()
        title = title or (settings.view.title if settings is not None and len(files) == 1 else "")
    about = {name: _about(paths) for name, paths in files.items()}
    found = findings(read, about, confidence=confidence, min_rows=min_rows, rules=rules)
    printed = ""
    for each, form in zip(outputs, (as_page, as_document), strict=False):
        text = form(found, title)
        if each.is_stdout:
            printed = text
        else:
            write(each.path, text)
    rows = sum(state.n_rows for state in read.values())
    if not rows:
        return CommandResult(printed, NO_ROWS, NOTHING)
    return CommandResult(printed or f"wrote {output} of {rows:,} rows\n")


def compare_states(
    one: Annotated[str, typer.Argument(metavar="ONE", help="A saved state or ledger.")],
    other: Annotated[str, typer.Argument(metavar="OTHER", help="Another one, of other rows.")],
    confidence: typed.Level = 0.95,
    unit: typed.Unit = None,
    json: typed.Json = None,
    markdown: typed.Markdown = None,
    force: typed.Force = False,
) -> CommandResult:
    """Compare two saved states of different rows.

    Examples:
        streammetrics compare old.state new.state
        streammetrics compare old.state new.state --confidence 0.99 --unit user
        streammetrics compare old.state new.state --json - --markdown difference.md
    """
    outputs = outputs_of(json, None, markdown)
    check_outputs(outputs, [one, other], force=force)
    return finish(_compared([one, other], confidence, unit), outputs)


def verify(
    receipt: Annotated[
        str, typer.Argument(metavar="RECEIPT", help="A receipt that evaluate wrote.")
    ],
    state: Annotated[str, typer.Argument(metavar="STATE", help="A saved state or ledger.")],
) -> CommandResult:
    """Verify that a saved state is the one a receipt is of. Exit code 1: it is another.

    Examples:
        streammetrics verify receipt.json model.state
        streammetrics verify receipt.json week.ledger
        streammetrics verify receipt.json model.state && echo "the same"
    """
    with blaming(receipt, OSError, StreamMetricsError), open(receipt, "rb") as file:
        expected = read_receipt(file.read())
    found = _merged(state).receipt()
    differing = list(differences(expected, found))
    lines = "".join(f"  {line}\n" for line in [*differing, *circumstances(expected, found)])
    if differing:
        return CommandResult(f"{state} is not the state of {receipt}:\n{lines}", OTHER_STATE)
    what = f"{found['rows']:,} rows, SHA-256 {found['sha256']}"
    return CommandResult(f"verified: {state} is the state of {receipt}: {what}\n{lines}")


def gate(
    base: Annotated[str, typer.Argument(metavar="BASE", help="A saved state: the reference.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The saved state of the new model.")],
    margin: Annotated[
        list[str],
        typer.Option(
            "--margin",
            metavar="METRIC=NUMBER",
            help="Largest acceptable deterioration. NUMBER alone is for all metrics.",
        ),
    ],
    unpaired: Annotated[
        bool, typer.Option("--unpaired", help="The states have different units or rows.")
    ] = False,
    confidence: typed.Level = 0.95,
    json: typed.Json = None,
    markdown: typed.Markdown = None,
    junit: Annotated[
        str | None, typer.Option("--junit", metavar="FILE|-", help="Write JUnit XML.")
    ] = None,
    force: typed.Force = False,
) -> CommandResult:
    """Check that a new state is not worse than a base. Exit code 1: worse, 3: undecided.

    Examples:
        streammetrics gate base.state new.state --margin Accuracy=0.01
        streammetrics gate base.state new.state --margin 0.02 --unpaired
        streammetrics gate old.state new.state --margin ROCAUC=0.005 --junit gate.xml
    """
    outputs = outputs_of(json, None, markdown)
    outputs += [] if junit is None else [Output("--junit", junit)]
    check_outputs(outputs, [base, new], force=force)
    margins = _margins(margin)
    found = _compared([new, base], confidence, margin=margins, paired=not unpaired)
    for path, each in zip((new, base), found.models.values(), strict=True):
        if not each.n_rows:
            raise CommandError(f"{path} has no rows: nothing was measured")
    lines = [line for line in found.differences or () if line.margin is not None]
    names = {line.metric for line in lines}
    if isinstance(margins, dict) and (lacking := [name for name in margins if name not in names]):
        raise CommandError(f"--margin {lacking[0]}: it cannot be compared: {found.notes[0]}")
    if not lines:
        raise CommandError("--margin: none of the metrics has a better direction")
    # With many metrics one is worse by chance, so "worse" needs Holm's correction.
    adjusted = holm([line.p for line in lines])
    lines = [
        line._replace(
            p_adjusted=p,
            verdict=UNDECIDED if line.verdict == WORSE and not p < 1 - confidence else line.verdict,
        )
        for line, p in zip(lines, adjusted, strict=True)
    ]
    rows = {name: each.n_rows for name, each in found.models.items()}
    result = finish(replace(found, differences=Differences(lines, confidence, rows)), outputs)
    verdicts = {line.verdict for line in lines}
    code = 1 if WORSE in verdicts else 3 if UNDECIDED in verdicts else 0
    return replace(result, code=code)


def _margins(texts: Sequence[str]) -> dict[str, float] | float:
    """Parse ``--margin``: one number, or one for each metric."""
    found = [_margin(text) for text in texts]
    if len(found) == 1 and not found[0][0]:
        return found[0][1]
    margins = dict(found)
    if "" in margins or len(margins) < len(found):
        raise CommandError(f"--margin {texts[-1]}: expected one number, or one for each metric")
    return margins


def _margin(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        return name, float(number)
    except ValueError:
        raise CommandError(f"--margin {text}: expected METRIC=NUMBER, e.g. accuracy=0.01") from None


def _paths(states: Sequence[str], output: str, *, ledger: bool) -> list[str]:
    """Return the files of the states, including those that match globs.

    Raises:
        StreamMetricsError: A file is missing, or named twice, so that its rows would count twice.
    """
    paths: list[str] = []
    for path in states:
        if ledger and _is_new(path, output):
            say(f"note: {path} does not exist yet and is created")
        else:
            paths += matching(path)
    if not ledger:
        more = ", or write a ledger with --ledger, in which every shard counts once"
        _check_once(paths, more)
    return paths


def _check_once(paths: Sequence[str], more: str = "") -> None:
    """Raise if a file occurs twice, under any name."""
    seen: dict[object, str] = {}
    for path in paths:
        key = identity(path) or path
        if (other := seen.get(key)) is not None:
            name = path if path == other else f"{path}, which is {other},"
            raise CommandError(
                f"{name} is named twice, and its rows would count twice: name it once{more}"
            )
        seen[key] = path


def _is_new(path: str, output: str) -> bool:
    return not os.path.exists(path) and os.path.realpath(path) == os.path.realpath(output)


def _merged_state(
    paths: Sequence[str], output: str, *, patterns: Sequence[str], force: bool
) -> Mergeable:
    """Merge all states, write the result, and return it."""
    check_outputs([Output("-o", output)], paths, force=force, patterns=patterns)
    merged = _in_one(paths)
    write(output, merged.to_bytes())
    return merged


def _merged_ledger(paths: Sequence[str], output: str, *, seal: bool, force: bool) -> Ledger:
    """Write a ledger of all states and of its existing shards, and return it."""
    kept = ""
    with _locked(output):
        before = _ledger_in(output)
        if before is None:
            check_outputs([Output("-o", output)], paths, force=force)
        elif not force and identity(output) not in map(identity, paths):
            paths = [output, *paths]
            kept = f"{len(before):,} shard{'s' * (len(before) != 1)}"
        merged = _in_ledger(paths)
        if seal:
            merged.seal(merged.ids)
        _ = merged.n_rows  # raises before anything is written if shards are incompatible
        write(output, merged.to_bytes())
    if kept:
        say(f"note: {output} exists and keeps its {kept}")
    return merged


def _ledger_in(path: str) -> Ledger | None:
    """Return the ledger in a file, ``None`` if the file is missing or holds something else."""
    if not os.path.isfile(path):
        return None
    try:
        state = load(path)
    except StreamMetricsError:
        return None
    return state if isinstance(state, Ledger) else None


def _in_one(paths: Sequence[str]) -> Mergeable:
    """Return the merge of all states."""
    first, *others = paths
    merged = state_of(first)
    for path in others:
        state = state_of(path)
        if isinstance(state, Ledger) != isinstance(merged, Ledger):
            raise CommandError(f"one of {first} and {path} is a ledger: add --ledger")
        with blaming(f"{path} does not fit {first}", IncompatibleMetricsError):
            merged.merge(state)
    if merged.n_rows:
        _note_copies([path for path in paths if os.path.isfile(path)])
    return merged


def _note_copies(paths: Sequence[str]) -> None:
    """Print a note for each file identical to an earlier one, because its rows count twice."""
    sizes = {path: os.path.getsize(path) for path in paths}
    often = Counter(sizes.values())
    seen: dict[bytes, str] = {}
    for path in paths:
        if often[sizes[path]] == 1:
            continue
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
        first = seen.setdefault(digest, path)
        if first != path:
            say(f"note: {path} is identical to {first}; if it is a copy, its rows count twice")


def _in_ledger(paths: Sequence[str]) -> Ledger:
    """Return a ledger of all states, and of the shards of those that are ledgers."""
    ledger = Ledger()
    for path in paths:
        state = state_of(path)
        with blaming(f"{path} does not fit the others", IncompatibleMetricsError):
            if isinstance(state, Ledger):
                ledger.merge(state)
            else:
                name, attempt = _shard_of(path)
                # Merged as a ledger, because in one a sealed shard may occur again.
                ledger.merge(Ledger().add(name, state, attempt))
    for shard in ledger.contradicted:
        raise CommandError(str(contradiction(shard, ledger.attempts[shard])))
    return ledger


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Lock the ledger in a file while it is read, changed and written."""
    try:
        with locked(path):
            yield
    except TimeoutError as error:
        raise CommandError(f"{path}: {error.strerror}: try again") from error


def _shard_of(path: str) -> tuple[str, int]:
    """Return the shard and the attempt in a file name, e.g. ``shard@2.state``."""
    stem = os.path.splitext(os.path.basename(path))[0]
    match = _ATTEMPT.fullmatch(stem)
    return (match[1], int(match[2])) if match else (stem, 1)


def _models(states: Sequence[str], *, merge: bool) -> dict[str, list[str]]:
    """Return the files of each model by name; with `merge`, there is a single model."""
    found: dict[str, list[str]] = {}
    for pattern in states:
        folder = os.path.isdir(pattern)
        paths = matching(os.path.join(pattern, "*") if folder else pattern)
        above, name = os.path.split(os.path.normpath(pattern))
        # For `old/*.state`, the folder names the model.
        stem = os.path.splitext(name)[0].rstrip("*-_.") or os.path.basename(above) or name
        key = stem if stem not in found else pattern
        if key in found:
            raise CommandError(f"{pattern} is named twice: name each state once")
        found[key] = paths
    if merge:
        return {next(iter(found)): [path for paths in found.values() for path in paths]}
    return found


def _settings(paths: Sequence[str]) -> Settings | None:
    """Return the settings of a live service, if the path is its configuration."""
    alone = len(paths) == 1 and paths[0].endswith(".toml")
    return settings_of(paths[0]) if alone else None


def _stored(settings: Settings) -> Live:
    with open_store(settings) as live:
        return live.copy()


def _read(paths: Sequence[str]) -> Metric | MetricSet | Ledger | Live:
    state = _in_one(paths)
    if not isinstance(state, Metric | MetricSet | Ledger | Live):
        raise StateFormatError(f"{paths[0]}: no report exists for {an(type(state).__name__)}")
    if isinstance(state, Ledger) and not state.ids:
        raise CommandError(f"{paths[0]}: the ledger has no shard")
    return state


def _about(paths: Sequence[str]) -> dict[str, object]:
    first, *others = (os.path.basename(path) for path in paths)
    if not others:
        return {"state": first}
    return {"states": f"{len(paths):,}, {first} to {others[-1]}"}


def _comparison(
    what: Comparison, names: Sequence[str], about: Mapping[str, object], notes: Sequence[str]
) -> ModelReports:
    """Read the named metrics of a saved comparison: of every model, and the differences."""
    reports = {name: report(suite._only(names), about, notes) for name, suite in what.items()}
    differences = None
    if what.n_rows:
        every = what.compute()
        lines = [line for line in every if line.metric in names]
        differences = Differences(lines, every.level, every.n_rows)
    return ModelReports(reports, differences)


def _compared(
    paths: Sequence[str],
    confidence: float,
    unit: str | None = None,
    *,
    margin: Mapping[str, float] | float | None = None,
    paired: bool = False,
) -> ModelReports:
    """Compare two saved states, of different rows or of the same units."""
    names = [os.path.basename(path) for path in paths]
    if len({*names}) < 2:
        names = list(paths)
    if names[0] == names[1]:
        raise CommandError(f"{names[0]} is named twice: name the state of another model or time")
    states = [_merged(path) for path in paths]
    refused = blaming("", StreamMetricsError, TypeError, ValueError)
    with warnings.catch_warnings(record=True, action="always") as caught, refused:
        found = compare(
            *states,
            confidence=confidence,
            names=(names[0], names[1]),
            unit=unit_of(unit),
            margin=margin,
            paired=paired,
        )
    notes = list(dict.fromkeys(str(warning.message) for warning in caught))
    notes += [] if paired else [_UNPAIRED]
    reports = {
        name: report(state, {"state": path}, notes)
        for name, state, path in zip(names, states, paths, strict=True)
    }
    return ModelReports(reports, found)


_UNPAIRED = (
    "the states are of different rows, which is the weaker test: for models of the same rows, "
    "use evaluate with several --y-score or --run"
)


def _merged(path: str) -> Any:
    state = state_of(path)
    return state.merged() if isinstance(state, Ledger) else state
