"""Saved states merged: all into one, or each as a shard of a ledger that keeps what it has."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from streammetrics.cli.errors import CommandError
from streammetrics.cli.outcome import say
from streammetrics.cli.outputs import Output, check_outputs, identity, is_like, state_in, write
from streammetrics.cli.running import state_of
from streammetrics.core.errors import IncompatibleMetricsError
from streammetrics.core.state.files import locked
from streammetrics.ledger.ledger import Ledger
from streammetrics.ledger.shards import contradiction
from streammetrics.readers.paths import matching

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
