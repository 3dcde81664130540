"""Rows of a request by their kind, as whatever reads a body returns them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from streammetrics.core.errors import InvalidBatchError
from streammetrics.live.events import KINDS

if TYPE_CHECKING:
    from streammetrics.live.events import Kind


class BodyError(InvalidBatchError):
    """A request holds no events, or one that is refused; `row` is its number, from 0 on."""


class Group(NamedTuple):
    """Rows of one kind: their numbers in the request, and their columns."""

    kind: Kind
    rows: Any  # a sequence of integers
    columns: dict[str, Any]


def no_kind(which: object, row: int) -> NoReturn:
    """Raise about a row of a kind that there is not."""
    shown = "no kind" if which is None else f"the kind {which!r}"
    raise BodyError(f"row {row} has {shown}: say one of {', '.join(KINDS)} in it", "kind", row)
