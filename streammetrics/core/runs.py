"""Lists of row chunks that stay short, however small the batches are."""

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
    """Append a chunk; join it with the preceding chunks that are small and no larger than it.

    Chunk sizes therefore double, like the digits of a binary counter: each row is copied a few
    times, and few chunks of each size below `small` remain.

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
