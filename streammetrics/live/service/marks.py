"""Marks on the charts, such as deployments."""

from __future__ import annotations

import json
from bisect import insort
from typing import TYPE_CHECKING, NamedTuple

from streammetrics.core.errors import InvalidBatchError, StreamMetricsError
from streammetrics.live.events import instant, shown_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streammetrics.core.types import Document
    from streammetrics.live.journal import Journal

_MOST = 1000  # maximum number of marks; the newest are kept
_LONGEST = 200  # maximum characters of a text


class MarkError(StreamMetricsError, ValueError):
    """A body is not a mark."""


class Mark(NamedTuple):
    """A time in nanoseconds and a text."""

    time: int
    text: str

    def to_dict(self) -> Document:
        """Return the mark as JSON values."""
        return {"time": shown_time(self.time), "text": self.text}


def mark_of(body: bytes, now: float) -> Mark:
    """Return the mark in a body; without a time, it is now.

    Raises:
        MarkError: The body is not a mark.
    """
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or not told.keys() <= {"time", "text"}:
        raise MarkError('expected a JSON object, as {"text": "version 2", "time": 1790000000}')
    text = told.get("text")
    if not isinstance(text, str) or not 1 <= len(text) <= _LONGEST:
        raise MarkError(f"text is not a text of 1 to {_LONGEST} characters")
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise MarkError("text holds half a character (a lone surrogate)")
    try:
        return Mark(instant(told.get("time", now)), text)
    except InvalidBatchError as error:
        raise MarkError(error.problem) from error


class Marks:
    """The marks of a service, kept in its store if it has one. The same mark again is ignored."""

    def __init__(self, journal: Journal | None) -> None:
        self._journal = journal
        self._memory: dict[str, str] = {}

    def read(self) -> list[Mark]:
        """Return all marks, oldest first."""
        if self._journal is not None:  # while it cannot be read, the last marks stay
            self._memory = self._journal.texts() or self._memory
        return _marks_in(self._memory)

    def put(self, mark: Mark) -> bool:
        """Add a mark; return whether it is kept."""

        def change(texts: Mapping[str, str]) -> dict[str, str]:
            marks = _marks_in(texts)
            if mark not in marks:
                insort(marks, mark)
            return {"marks": json.dumps(marks[-_MOST:])}

        if self._journal is not None:
            return self._journal.exchange(change)
        self._memory = change(self._memory)
        return True


def _marks_in(texts: Mapping[str, str]) -> list[Mark]:
    return [Mark(*pair) for pair in json.loads(texts.get("marks", "[]"))]
