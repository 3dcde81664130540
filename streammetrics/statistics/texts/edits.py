"""Edits that make a prediction of a reference: words or characters replaced, left out, put in."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

from streammetrics.statistics.texts.base import TextCounts

if TYPE_CHECKING:
    from streammetrics.core.types import Foreign


class EditCounts(TextCounts):
    """Hits, substitutions, deletions and insertions of shortest edits, summed over rows."""

    of: Literal["words", "characters"]

    @property
    def size(self) -> int:
        """Four."""
        return 4

    def countable(self, rows: int, *counts: int) -> bool:  # noqa: ARG002 - any four numbers
        """Whether there may be so many: texts may be of any length, and empty."""
        return True

    def counted(self, reference: str, prediction: str) -> list[int]:
        """Return the edits of one row."""
        split = str.split if self.of == "words" else str.strip
        true, pred = split(reference), split(prediction)
        tags = Counter(edit.tag for edit in _levenshtein().editops(true, pred))
        replaced, left_out, put_in = (tags[tag] for tag in ("replace", "delete", "insert"))
        return [len(true) - replaced - left_out, replaced, left_out, put_in]


def _levenshtein() -> Foreign:
    try:
        from rapidfuzz.distance import Levenshtein  # noqa: PLC0415 - an extra
    except ImportError:
        raise ImportError(
            "edits are found by rapidfuzz: pip install 'streammetrics[text]'"
        ) from None
    return Levenshtein
