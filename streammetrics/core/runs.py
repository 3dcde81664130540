"""Chunks of rows that a statistic keeps as they came: few, however small the batches are."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

C = TypeVar("C")


def piled(
    chunks: tuple[C, ...],
    last: C,
    *,
    size: Callable[[C], int],
    join: Callable[[Sequence[C]], C],
    small: int,
) -> tuple[C, ...]:
    """Return chunks and one more, joined with those before it while they are small.

    A chunk is joined only with one that is no larger, so that sizes double: a row is copied a few
    times at most, and few chunks remain, a few of each power of two below `small` and the rest.

    >>> piled(([1, 2], [3]), [4], size=len, join=lambda both: sum(both, []), small=8)
    ([1, 2, 3, 4],)
    """
    first = len(chunks)
    n = size(last)
    while first and size(chunks[first - 1]) <= min(n, small):
        first -= 1
        n += size(chunks[first])
    if first == len(chunks):
        return (*chunks, last)
    return (*chunks[:first], join([*chunks[first:], last]))
