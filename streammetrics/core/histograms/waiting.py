"""Rows of a histogram that wait to be counted: gathered, cut into parts, measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.core import tuning
from streammetrics.core.chunks import piled
from streammetrics.core.histograms.keys import ScoredRows, concatenated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


MANY = 64  # chunks of rows that may wait in a merged histogram


def size_of(chunks: Sequence[ScoredRows]) -> int:
    """Return how many rows there are in all chunks."""
    return sum([rows.scores.size for rows in chunks])


def appended(chunks: tuple[ScoredRows, ...], last: ScoredRows) -> tuple[ScoredRows, ...]:
    """Return the chunks and one more, joined with small ones before it that are as weighted."""
    first = len(chunks)
    while first and (chunks[first - 1].weight is None) == (last.weight is None):
        first -= 1
    alike = piled(chunks[first:], last, size=_size, join=concatenated, small=tuning.JOINED_ROWS)
    return (*chunks[:first], *alike)


def _size(rows: ScoredRows) -> int:
    return rows.scores.size


def gathered(chunks: Sequence[ScoredRows]) -> tuple[ScoredRows, ...]:
    """Return the same chunks while they are few, else two at most: rows of weight 1, and others.

    Merging adds up the chunks of all: a state merged with itself over and over would double them.
    """
    if len(chunks) <= MANY:
        return tuple(chunks)
    plain = [rows for rows in chunks if rows.weight is None]
    others = [rows for rows in chunks if rows.weight is not None]
    return tuple(concatenated(group) for group in (plain, others) if group)


def parts(chunks: Sequence[ScoredRows], first: int, size: int) -> Iterator[list[ScoredRows]]:
    """Yield all rows, those of weight 1 first, in parts of `first` rows and then of `size`.

    The parts bound the memory that counting them takes.
    """
    for weighted in (False, True):
        part: list[ScoredRows] = []
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
