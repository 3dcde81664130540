"""The report command: which states are one model's, and where the page goes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streammetrics.cli.errors import CommandError
from streammetrics.cli.merging import in_one
from streammetrics.cli.outcome import Outcome
from streammetrics.cli.outputs import Output, check_outputs, write
from streammetrics.cli.standing import of_store
from streammetrics.core.errors import StateFormatError, an
from streammetrics.core.metric import Metric
from streammetrics.core.metric_set import MetricSet
from streammetrics.ledger.ledger import Ledger
from streammetrics.live.live import Live
from streammetrics.live.service.config import settings as settings_of
from streammetrics.readers.paths import matching
from streammetrics.show.pages.page import MADE, as_document, as_page
from streammetrics.show.pages.subjects import findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.live.service.config import Settings

NO_ROWS = 1
_KNOWN = 1 << 24  # bytes of a file that are looked at to know whether it is an earlier report


@dataclass(frozen=True)
class ReportAsked:
    """What was typed."""

    states: Sequence[str]
    output: str
    json: str | None
    merge: bool
    title: str
    confidence: float
    min_rows: int
    force: bool


def reported_in_one(asked: ReportAsked) -> Outcome:
    """Read the states, and write the page and its twin; nothing is written where one fails."""
    files = _models(asked)
    outputs = [Output("--output", asked.output, _is_page)]
    if asked.json is not None:
        outputs.append(Output("--json", asked.json, _is_twin))
    every = [path for paths in files.values() for path in paths]
    twice = _twice(every)
    if twice is not None:
        raise CommandError(f"{twice} is named twice, and its rows would count twice: name it once")
    check_outputs(outputs, every, force=asked.force, asked=asked.states)
    states, rules, title = {}, {}, asked.title
    for name, paths in files.items():
        settings = _settings(paths)
        states[name] = _read(paths) if settings is None else _stored(settings)
        rules[name] = settings.rules if settings is not None else ()
        title = title or (settings.view.title if settings is not None and len(files) == 1 else "")
    about = {name: _about(paths) for name, paths in files.items()}
    found = findings(
        states, about, confidence=asked.confidence, min_rows=asked.min_rows, rules=rules
    )
    texts = [as_page(found, title)]
    if asked.json is not None:
        texts.append(as_document(found, title))
    printed = ""
    for output, text in zip(outputs, texts, strict=True):
        if output.is_stdout:
            printed = text
        else:
            write(output.path, text)
    rows = sum(state.n_rows for state in states.values())
    if not rows:
        return Outcome(printed, NO_ROWS, "no rows: nothing was measured")
    return Outcome(printed or f"wrote {asked.output} of {rows:,} rows\n")


def _models(asked: ReportAsked) -> dict[str, list[str]]:
    """Return the files of each model, by its name."""
    found: dict[str, list[str]] = {}
    for pattern in asked.states:
        folder = os.path.isdir(pattern)
        paths = matching(os.path.join(pattern, "*") if folder else pattern)
        above, name = os.path.split(os.path.normpath(pattern))
        # Of `old/*.state` the folder tells which model it is.
        stem = os.path.splitext(name)[0].rstrip("*-_.") or os.path.basename(above) or name
        key = stem if stem not in found else pattern
        if key in found:
            raise CommandError(f"{pattern} is named twice: name each state once")
        found[key] = paths
    if asked.merge:
        return {next(iter(found)): [path for paths in found.values() for path in paths]}
    return found


def _twice(paths: Sequence[str]) -> str | None:
    """Return the first file that is among the others already, by whatever name."""
    seen: set[str] = set()
    for path in paths:
        real = os.path.realpath(path)
        if real in seen:
            return path
        seen.add(real)
    return None


def _settings(paths: Sequence[str]) -> Settings | None:
    """Return the settings of a live service, where its configuration is what was named."""
    alone = len(paths) == 1 and paths[0].endswith(".toml")
    return settings_of(paths[0]) if alone else None


def _stored(settings: Settings) -> Live:
    with of_store(settings) as live:
        return live.copy()


def _read(paths: Sequence[str]) -> Any:
    state = in_one(paths)
    if not isinstance(state, Metric | MetricSet | Ledger | Live):
        raise StateFormatError(f"{paths[0]}: there is no report of {an(type(state).__name__)}")
    if isinstance(state, Ledger) and not state.ids:
        raise CommandError(f"{paths[0]}: a ledger without any shard")
    return state


def _about(paths: Sequence[str]) -> dict[str, object]:
    first, *others = (os.path.basename(path) for path in paths)
    if not others:
        return {"state": first}
    return {"states": f"{len(paths):,}, {first} to {others[-1]}"}


def _is_page(path: str) -> bool:
    return f'data-made-by="{MADE}"' in _text(path)[:400]


def _is_twin(path: str) -> bool:
    try:
        found = json.loads(_text(path))
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("made_by") == MADE


def _text(path: str) -> str:
    with open(path, "rb") as file:
        return file.read(_KNOWN).decode(errors="replace")
