"""States merged, shown and reported."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streammetrics.cli.errors import CommandError
from streammetrics.cli.evaluating import state_of
from streammetrics.cli.live import of_store
from streammetrics.cli.outputs import (
    Outcome,
    Output,
    check_outputs,
    identity,
    is_like,
    say,
    state_in,
    write,
)
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError, an
from streammetrics.core.metric import Metric
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.state.files import locked
from streammetrics.ledger.ledger import Ledger
from streammetrics.ledger.shards import contradiction
from streammetrics.live.live import Live
from streammetrics.live.service.config import settings as settings_of
from streammetrics.readers.paths import matching
from streammetrics.show.pages.page import MADE, as_document, as_page, findings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.live.service.config import Settings


_ATTEMPT = re.compile(r"(.+)@(\d+)")


def found(states: Sequence[str], output: str, *, ledger: bool) -> list[str]:
    """Return the files of the states, with those that match globs.

    Raises:
        StreamMetricsError: One is not there, or named twice where its rows would count twice.
    """
    paths: list[str] = []
    for path in states:
        if ledger and _is_new(path, output):
            say(f"note: {path} is not there yet: it is made")
        else:
            paths += matching(path)
    seen: dict[object, str] = {}
    for path in paths:
        key = identity(path) or path
        if not ledger and key in seen:
            other = seen[key]
            name = path if path == other else f"{path}, which is {other},"
            raise CommandError(
                f"{name} is named twice, and its rows would count twice: name it once, or make a "
                "ledger with --ledger, in which each shard counts once"
            )
        seen[key] = path
    return paths


def _is_new(path: str, output: str) -> bool:
    return not os.path.exists(path) and os.path.realpath(path) == os.path.realpath(output)


def as_one(paths: Sequence[str], output: str, *, asked: Sequence[str], force: bool) -> Any:
    """Write the state that has seen the rows of all states, and return it."""
    merged = in_one(paths)
    check_outputs([Output("-o", output, is_like(merged))], paths, force=force, asked=asked)
    write(output, merged.to_bytes())
    return merged


def as_ledger(paths: Sequence[str], output: str, *, seal: bool, force: bool) -> Ledger:
    """Write a ledger of all states, and of the shards that it has already, and return it."""
    kept = ""
    with _locked(output):
        before = state_in(output)
        is_ledger = isinstance(before, Ledger)
        named = identity(output) in map(identity, paths)
        inputs = [] if is_ledger else paths
        check_outputs([Output("-o", output, lambda _: is_ledger)], inputs, force=force)
        if isinstance(before, Ledger) and not named and not force:
            paths = [output, *paths]
            kept = f"{len(before):,} shard{'s' * (len(before) != 1)}"
        merged = _in_ledger(paths)
        if seal:
            merged.seal(merged.ids)
        _ = merged.n_rows  # raises where shards do not go together: that is not written
        write(output, merged.to_bytes())
    if kept:
        say(f"note: {output} is there and keeps what it has: {kept}")
    return merged


def in_one(paths: Sequence[str]) -> Any:
    """Return the state that has seen the rows of all states."""
    first, *others = paths
    merged: Any = state_of(first)
    for path in others:
        state = state_of(path)
        if isinstance(state, Ledger) != isinstance(merged, Ledger):
            raise CommandError(f"one of {first} and {path} is a ledger: add --ledger")
        try:
            merged.merge(state)
        except IncompatibleMetricsError as error:
            raise CommandError(f"{path} does not go with {first}: {error}") from error
    if merged.n_rows:
        _tell_copies([path for path in paths if os.path.isfile(path)])
    return merged


def _tell_copies(paths: Sequence[str]) -> None:
    """Say which files are, to the byte, one before them: a copy's rows count twice."""
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
            say(f"note: {path} is {first} to the byte; if it is a copy, its rows count twice")


def _in_ledger(paths: Sequence[str]) -> Ledger:
    """Return a ledger of all states, and of the shards of those that are ledgers."""
    ledger = Ledger()
    for path in paths:
        state = state_of(path)
        try:
            if isinstance(state, Ledger):
                ledger.merge(state)
            else:
                name, attempt = shard_of(path)
                # As a ledger, of which a shard that is sealed may come again.
                ledger.merge(Ledger().add(name, state, attempt))
        except IncompatibleMetricsError as error:
            raise CommandError(f"{path} does not go with the others: {error}") from error
    for shard in ledger.contradicted:
        raise CommandError(str(contradiction(shard, ledger.attempts[shard])))
    return ledger


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Keep other commands from the ledger in a file while it is read, changed and written."""
    try:
        with locked(path):
            yield
    except TimeoutError as error:
        raise CommandError(f"{path}: {error.strerror}: try again") from error


def shard_of(path: str) -> tuple[str, int]:
    """Return the shard and the attempt that a file is named for: ``shard@2.state``."""
    stem = os.path.splitext(os.path.basename(path))[0]
    found = _ATTEMPT.fullmatch(stem)
    return (found[1], int(found[2])) if found else (stem, 1)


NO_ROWS = 1
_KNOWN = 1 << 24  # bytes of a file that are looked at to know whether it is an earlier report


@dataclass(frozen=True)
class ReportOptions:
    """What was typed."""

    states: Sequence[str]
    output: str
    json: str | None
    merge: bool
    title: str
    confidence: float
    min_rows: int
    force: bool


def reported_in_one(asked: ReportOptions) -> Outcome:
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


def _models(asked: ReportOptions) -> dict[str, list[str]]:
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
