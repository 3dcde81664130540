"""Distances of a translation from its reference in which whole blocks may be moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from streammetrics.core.constraints import Between
from streammetrics.metrics.text.base import TextMean, TextMetric
from streammetrics.statistics.texts.jumps import JumpScores
from streammetrics.statistics.texts.moves import MoveCounts

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic

__all__ = ["ExtendedEditDistance", "TranslationEditRate"]

Cost = Annotated[float, Between(0, 1e9)]


class TranslationEditRate(TextMetric):
    """Edits and moves of words over the words of all references, in percent, as sacrebleu has it.

    Formula: 100 Σ e_r / Σ w_r

    A row takes e_r edits to become its reference of w_r words: words are put in, left out or
    replaced, and blocks of words moved, each of which counts as one. The fewest are searched for as
    tercom does, by the move that saves most edits, again and again. Without a word in any reference
    it is 100, or 0 where nothing was predicted either.

    The other parameters are those of `TextMetric`.

    Args:
        normalized: Whether marks are words of their own, and entities of XML characters.
        no_punct: Whether periods, commas and the like are left out.
        asian_support: Whether the two treat Chinese and Japanese characters and marks too.
        case_sensitive: Whether case matters.

    Memory and cost: 50 bytes; about a millisecond per row of 20 words, two where many words are
    moved. For long texts the time grows as their length times the moves that are tried, at most a
    thousand.

    Reference: Snover et al., AMTA 2006; ``sacrebleu.corpus_ter``. What
    ``torchmetrics.text.TranslationEditRate`` gives is that of reference and prediction exchanged.

    Example:
        >>> import streammetrics as sm
        >>> rate = sm.TranslationEditRate()
        >>> rate.update(["on the mat the cat sat"], ["the cat sat on a mat"]).compute()
        33.33333333333333
    """

    higher_is_better = False

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the edits and the words."""
        counts = MoveCounts(
            normalized=self.normalized,
            no_punct=self.no_punct,
            asian_support=self.asian_support,
            case_sensitive=self.case_sensitive,
            nan_policy=self.nan_policy,
        )
        return (counts,)

    def read(self, counts: list[Any]) -> float:
        """Return the rate."""
        edits, words = counts
        return 100 * (edits / words if words else float(edits > 0))


class ExtendedEditDistance(TextMean):
    """Mean of the edit distances of characters in which one may jump, each from 0 to 1.

    Formula: mean min(1, (d + r v) / (n + r v)), with n the length of a reference.

    The distance d is the least cost of going through both texts, in which a character that is put
    in or replaced costs 1, one that is left out 0.2, and a jump from a space of the reference to
    any place of the prediction 2; v counts places of the prediction that were never the cheapest,
    and how often others were so again; r is `rho`.

    The other parameters are those of `RowMean`.

    Args:
        language: ``"en"`` sets marks apart from words; ``"ja"`` makes characters alike that look
            alike.
        alpha: What a jump costs.
        rho: How much places count that are left out or come again.
        deletion: What a character of the prediction costs that is left out.
        insertion: What one costs that is put in.

    Memory and cost: some exact sums, 200 bytes; a loop over pairs of characters: about 3
    milliseconds per row of 100 characters, four times that of 200.

    Reference: Stanchev, Wang and Ney, WMT 2019; ``torchmetrics.text.ExtendedEditDistance``.

    Example:
        >>> import streammetrics as sm
        >>> distance = sm.ExtendedEditDistance()
        >>> round(distance.update(["this is the example"], ["here is an example"]).compute(), 6)
        0.412698
    """

    higher_is_better = False

    language: Literal["en", "ja"] = "en"
    alpha: Cost = 2.0
    rho: Cost = 0.3
    deletion: Cost = 0.2
    insertion: Cost = 1.0

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of distances."""
        scores = JumpScores(
            language=self.language,
            alpha=self.alpha,
            rho=self.rho,
            deletion=self.deletion,
            insertion=self.insertion,
            nan_policy=self.nan_policy,
        )
        return (scores,)
