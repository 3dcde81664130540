"""Forgetting: rows of some ids leave the state, and what holds them still is named."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import numpy as np

from streammetrics.live.events import keys_of
from streammetrics.live.join import inputs_of_rows, judged_rows, resolve, unlabelled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from streammetrics.core.types import Ints
    from streammetrics.live.join import Join
    from streammetrics.live.pipeline import Pipeline

Span = tuple[int, int]  # start and end of a pane in nanoseconds


class Forgotten(NamedTuple):
    """What `forget` has done.

    Attributes:
        waiting: The number of waiting rows and labels that are removed.
        newest: The number of rows removed from those kept one by one.
        taken_back: The number of rows taken back from panes.
        kept: The panes that still hold known rows, because these cannot be taken back exactly.
        anonymous: The start of the oldest pane, and the time before which rows have left the join:
            between them, rows that are not known may be in panes. ``None`` if nothing has left.
    """

    waiting: int
    newest: int
    taken_back: int
    kept: tuple[Span, ...]
    anonymous: Span | None


def keys_named(ids: Sequence[str]) -> NDArray[np.uint64]:
    """Return the keys that texts may stand for: of text, and of an integer or a UUID."""
    found: list[object] = list(ids)
    for text in ids:
        for convert in (int, UUID):
            with suppress(ValueError):
                found.append(convert(text))
    return keys_of(found)


def forget(pipeline: Pipeline, keys: NDArray[np.uint64], known: Pipeline | None) -> Forgotten:
    """Remove the rows of some ids from a settled pipeline.

    Args:
        pipeline: The pipeline.
        keys: The keys of the ids.
        known: Holds the events of these ids in its joins, as they were sent. Rows that have left
            the joins of `pipeline` are taken back from the panes where this is exact; without their
            values, nothing can be taken back.
    """
    joins = (pipeline.join, pipeline.identified)
    clock = pipeline.join.newest
    taken_back, kept = 0, set[Span]()
    for mine, theirs in zip(joins, (known.join, known.identified) if known else (), strict=False):
        gone = _left(mine, theirs, keys)
        found = resolve(pipeline.suite, theirs, gone, clock)
        refused = () if found.batch is None else pipeline.panes.take_back(found.times, found.batch)
        kept |= {span for span, _ in refused}
        taken_back += len(found.times) - sum(n for _, n in refused)
        for times, batch in judged_rows(theirs, gone, found):
            kept |= {span for span, _ in pipeline.judged.take_back(times, batch)}
        if (inputs := inputs_of_rows(theirs, gone)) is not None:
            times = theirs.table.times.values[gone]
            kept |= {span for span, _ in pipeline.watched.take_back(times, inputs)}
        if mine.label and (without := unlabelled(theirs, gone, clock)).size:
            tier = pipeline.config.tiers[0]
            numbers = np.unique(tier.numbers(theirs.table.times.values[without])).tolist()
            kept |= {(tier.start(n), tier.start(n + 1)) for n in numbers}
    waiting = sum(join.forget(keys) for join in joins)
    newest = pipeline.newest.forget(keys)
    pipeline.restart()
    floor = max(join.floor for join in joins)
    oldest = pipeline.panes.start
    anonymous = None if oldest is None or oldest >= floor else (oldest, floor)
    return Forgotten(waiting, newest, taken_back, tuple(sorted(kept)), anonymous)


def _left(mine: Join, theirs: Join, keys: NDArray[np.uint64]) -> Ints:
    """Return the rows of another join that have left this one."""
    rows = theirs.table.find(keys)
    rows = np.unique(rows[rows >= 0])
    has_left = theirs.table.times.values[rows] < mine.floor
    still = mine.table.find(theirs.table.keys[rows]) >= 0
    return rows[has_left & ~still]
