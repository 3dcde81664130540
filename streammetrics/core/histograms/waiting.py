"""Rows of a histogram that wait to be counted: checked, gathered, cut into parts, measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.histograms.keys import Rows, joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.core.histograms.keys import Codes, Floats

SMALL = 1 << 14  # rows of a chunk worth joining to the next
MANY = 64  # chunks that merged histograms may wait in


def checked(classes: int, scores: Floats, codes: Codes | None, weight: Floats | None) -> Rows:
    """Rows of a batch; ``InvalidBatchError`` where they are not such of a histogram."""
    if scores.dtype != np.float64 or scores.ndim != 1:
        raise InvalidBatchError(f"scores are {scores.dtype} {scores.shape}, not float64 (n,)")
    if (codes is None) != (classes == 1):
        raise InvalidBatchError(f"codes are for two classes, and there are {classes}")
    if np.isnan(scores.max(initial=-np.inf)):
        raise InvalidBatchError("a score is nan")
    if codes is not None:
        if codes.dtype != np.uint8 or codes.shape != scores.shape:
            raise InvalidBatchError(f"codes are {codes.dtype} {codes.shape}, not uint8 (n,)")
        if codes.max(initial=0) >= classes:
            raise InvalidBatchError(f"a code is {codes.max()}: codes are 0 and 1")
    if weight is not None:
        if weight.dtype != np.float64 or weight.shape != scores.shape:
            raise InvalidBatchError(f"weights are {weight.dtype}{weight.shape}, not float64")
        if not (weight.min(initial=1.0) > 0 and weight.max(initial=1.0) < np.inf):
            raise InvalidBatchError("a weight is not positive and finite")
        if (weight == 1.0).all():
            weight = None
    return Rows(scores, codes, weight)


def size_of(chunks: Sequence[Rows]) -> int:
    """Rows of all chunks."""
    return sum([rows.scores.size for rows in chunks])


def appended(chunks: tuple[Rows, ...], last: Rows) -> tuple[Rows, ...]:
    """Chunks and one more, joined with those before while both are small.

    Joining only what is as small doubles the chunks, so that a row is copied a few times at most.
    """
    while chunks and chunks[-1].scores.size <= min(last.scores.size, SMALL):
        if (chunks[-1].weight is None) != (last.weight is None):
            break
        last = joined([chunks[-1], last])
        chunks = chunks[:-1]
    return (*chunks, last)


def gathered(chunks: Sequence[Rows]) -> tuple[Rows, ...]:
    """The same chunks while they are few, else two at most: rows of weight 1, and the others.

    Merges add chunk to chunk, and a state merged with itself doubles them.
    """
    if len(chunks) <= MANY:
        return tuple(chunks)
    plain = [rows for rows in chunks if rows.weight is None]
    others = [rows for rows in chunks if rows.weight is not None]
    return tuple(joined(group) for group in (plain, others) if group)


def parts(chunks: Sequence[Rows], first: int, size: int) -> Iterator[list[Rows]]:
    """All rows in parts that bound the scratch memory, those of weight 1 first."""
    for weighted in (False, True):
        part: list[Rows] = []
        room = first
        for rows in chunks:
            start = 0 if (rows.weight is not None) == weighted else rows.scores.size
            while start < rows.scores.size:
                part.append(rows.part(slice(start, start + room)))
                start += room
                room -= part[-1].scores.size
                if not room:
                    yield part
                    part, room = [], size
        if part:
            yield part
