"""A cache of intermediate results that several metrics of a set read from one statistic."""

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
    """Cache the results of `made_once` until the end of the block."""
    before = _MADE.set({})
    try:
        yield
    finally:
        _MADE.reset(before)


def made_once(make: Callable[[S], T], of: S) -> T:
    """Return ``make(of)``, computed once within `read_together`; `of` must not change there."""
    made = _MADE.get()
    if made is None:
        return make(of)
    if id(of) not in made:
        made[id(of)] = of, make(of)  # keeping `of` alive prevents reuse of its id
    found: T = made[id(of)][1]
    return found
