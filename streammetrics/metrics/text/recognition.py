"""Error rates of speech and character recognition, by shortest edits."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Literal, NamedTuple

from streammetrics.core.confidence import Refusal
from streammetrics.metrics.families import GROWS
from streammetrics.metrics.text.base import TextMetric
from streammetrics.statistics.texts.edits import EditCounts

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic

__all__ = ["CER", "MER", "WER", "WIL", "EditDistance"]


class Edits(NamedTuple):
    """Hits and edits of the words or characters of references, summed over rows."""

    hits: int
    replaced: int
    left_out: int
    put_in: int

    @property
    def number(self) -> int:
        """How many edits there are."""
        return self.replaced + self.left_out + self.put_in

    @property
    def referred(self) -> int:
        """The length of all references."""
        return self.hits + self.replaced + self.left_out

    @property
    def predicted(self) -> int:
        """The length of all predictions."""
        return self.hits + self.replaced + self.put_in

    @property
    def per_reference(self) -> float:
        """Edits over the length of the references, which counts as 1 where all are empty."""
        return self.number / (self.referred or 1)


class ErrorRate(TextMetric):
    """Base of the ratios of hits H, substitutions S, deletions D and insertions I over all rows.

    An empty reference, as of silence, is a row whose predicted words are all insertions. Edits are
    found by rapidfuzz, which is in the extra `text`.

    Memory and cost: 120 bytes; about 10 µs per row of 20 words.
    """

    _formula = ("readout", "read", "_rate")

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the edits of words."""
        return (EditCounts(of="words", nan_policy=self.nan_policy),)

    def read(self, counts: list[int]) -> float:
        """Return the rate."""
        return self._rate(Edits(*counts))

    @abstractmethod
    def _rate(self, edits: Edits) -> float:
        """Return the rate from the counts of at least one row."""


class WER(ErrorRate):
    """Word error rate (WER): edits over the words of all references.

    Formula: (S + D + I) / (H + S + D), with S substituted, D deleted, I inserted and H right words.

    Where all references are empty it is the number of insertions, as in jiwer 4.

    Words are parted by white space of any kind, as a no-break space; jiwer parts them by spaces.

    Parameters are those of `TextMetric`.

    Reference: ``jiwer.wer``; ``torchmetrics.text.WordErrorRate``.

    Example:
        >>> import streammetrics as sm
        >>> sm.WER().update(["the cat sat", "a dog"], ["the cat sat", "dog"]).compute()
        0.2
    """

    higher_is_better = False
    value_range = (0.0, math.inf)

    def _rate(self, edits: Edits) -> float:
        """Return edits over the length of the references."""
        return edits.per_reference


class CER(ErrorRate):
    """Character error rate (CER): edits over the characters of all references, spaces included.

    Formula: (S + D + I) / (H + S + D), with S substituted, D deleted, I inserted and H right
    characters.

    Where all references are empty it is the number of insertions, as in jiwer 4.

    Parameters are those of `TextMetric`.

    Reference: ``jiwer.cer``; ``torchmetrics.text.CharErrorRate``.

    Example:
        >>> import streammetrics as sm
        >>> sm.CER().update(["abcd"], ["abxde"]).compute()
        0.5
    """

    higher_is_better = False
    value_range = (0.0, math.inf)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the edits of characters."""
        return (EditCounts(of="characters", nan_policy=self.nan_policy),)

    def _rate(self, edits: Edits) -> float:
        """Return edits over the length of the references."""
        return edits.per_reference


class MER(ErrorRate):
    """Match error rate (MER): edits over hits and edits.

    Formula: (S + D + I) / (H + S + D + I), with S substituted, D deleted, I inserted and H right
    words.

    0 where all references and predictions are empty.

    Words are parted by white space of any kind, as a no-break space; jiwer parts them by spaces.

    Parameters are those of `TextMetric`.

    Reference: Morris, Maier and Green, "From WER and RIL to MER and WIL", Interspeech 2004;
    ``jiwer.mer``; ``torchmetrics.text.MatchErrorRate``.

    Example:
        >>> import streammetrics as sm
        >>> sm.MER().update(["the cat sat"], ["the cat sat down"]).compute()
        0.25
    """

    higher_is_better = False
    value_range = (0.0, 1.0)

    def _rate(self, edits: Edits) -> float:
        """Return edits over hits and edits."""
        return edits.number / ((edits.hits + edits.number) or 1)


class WIL(ErrorRate):
    """Word information lost (WIL).

    Formula: 1 - (H / (H + S + D)) (H / (H + S + I)), with S substituted, D deleted, I inserted and
    H right words.

    0 where all references and predictions are empty.

    Words are parted by white space of any kind, as a no-break space; jiwer parts them by spaces.

    Parameters are those of `TextMetric`.

    Reference: Morris, Maier and Green, "From WER and RIL to MER and WIL", Interspeech 2004;
    ``jiwer.wil``; ``torchmetrics.text.WordInfoLost``.

    Example:
        >>> import streammetrics as sm
        >>> sm.WIL().update(["the cat sat"], ["the cat sat down"]).compute()
        0.25
    """

    higher_is_better = False
    value_range = (0.0, 1.0)

    def _rate(self, edits: Edits) -> float:
        """Return the information lost."""
        if not edits.predicted and not edits.referred:
            return 0.0
        return 1 - edits.hits / (edits.referred or 1) * (edits.hits / (edits.predicted or 1))


class EditDistance(ErrorRate):
    """Edit distance (Levenshtein): the number of edits, summed over rows.

    Formula: S + D + I, with S substitutions, D deletions and I insertions.

    The other parameters are those of `TextMetric`.

    Args:
        of: What is edited, ``"characters"`` or ``"words"``.

    Reference: ``rapidfuzz.distance.Levenshtein.distance``;
    ``torchmetrics.text.EditDistance(reduction="sum")``.

    Example:
        >>> import streammetrics as sm
        >>> sm.EditDistance().update(["abcd"], ["abxde"]).compute()
        2.0
    """

    higher_is_better = False
    family = Refusal(GROWS.format("a rate, such as CER,"))

    of: Literal["words", "characters"] = "characters"

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the edits."""
        return (EditCounts(of=self.of, nan_policy=self.nan_policy),)

    def _rate(self, edits: Edits) -> float:
        """Return the edits."""
        return float(edits.number)
