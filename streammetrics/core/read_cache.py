"""What several metrics read from one statistic, made once while a set is read."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

S = TypeVar("S")
T = TypeVar("T")

_MADE: ContextVar[dict[int, tuple[object, Any]] | None] = ContextVar("_MADE", default=None)


@contextmanager
def read_together() -> Iterator[None]:
    """Keep what `made_once` makes until the end of the block."""
    before = _MADE.set({})
    try:
        yield
    finally:
        _MADE.reset(before)


def made_once(make: Callable[[S], T], of: S) -> T:
    """Return what is made of a statistic, which is not changed while several are read together."""
    made = _MADE.get()
    if made is None:
        return make(of)
    if id(of) not in made:
        made[id(of)] = of, make(of)  # beside it, so that no other object takes its id
    found: T = made[id(of)][1]
    return found
