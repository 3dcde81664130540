"""Saved states merged: all into one, or each as a shard of a ledger."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from streammetrics.cli.errors import CommandError
from streammetrics.cli.outputs import Output, check_places, is_state
from streammetrics.cli.running import state_of
from streammetrics.core.errors import IncompatibleMetricsError
from streammetrics.core.state.files import locked
from streammetrics.ledger.ledger import Ledger
from streammetrics.ledger.shards import contradiction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ATTEMPT = re.compile(r"(.+)@(\d+)")


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
    return merged


def in_ledger(paths: Sequence[str]) -> Ledger:
    """Return a ledger of all states, and of the shards of those that are ledgers."""
    ledger = Ledger()
    for path in paths:
        state = state_of(path)
        try:
            if isinstance(state, Ledger):
                ledger.merge(state)
            else:
                name, attempt = shard_of(path)
                ledger.add(name, state, attempt)
        except IncompatibleMetricsError as error:
            raise CommandError(f"{path} does not go with the others: {error}") from error
    for shard in ledger.contradicted:
        raise CommandError(str(contradiction(shard, ledger.attempts[shard])))
    return ledger


@contextmanager
def held(path: str) -> Iterator[None]:
    """Keep other commands from the ledger in a file while it is read, changed and written."""
    check_places([Output("-o", path, is_state)])
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
