"""Answers and summaries: how well each agrees with its reference, in the mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from streammetrics.core.constraints import Between
from streammetrics.metrics.text.base import TextMean
from streammetrics.statistics.texts.answers import AnswerAgreement, RougeAgreement

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic

__all__ = ["ExactMatch", "RougeL", "RougeN", "TokenF1"]


class ExactMatch(TextMean):
    """Share of answers that are their reference, as SQuAD compares them.

    Formula: Σ w [answer = reference] / Σ w

    Case, punctuation, the articles a, an and the, and spaces do not matter.

    Parameters are those of `RowMean`.

    Reference: Rajpurkar et al., EMNLP 2016; ``torchmetrics.text.SQuAD``, which gives percent.

    Example:
        >>> import streammetrics as sm
        >>> sm.ExactMatch().update(["The cat.", "a dog"], ["cat", "two dogs"]).compute()
        0.5
    """

    _ends = (0.0, 1.0)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the number of answers that match."""
        return (AnswerAgreement(of="whole", nan_policy=self.nan_policy),)


class TokenF1(TextMean):
    """Mean F1 of the tokens of answers and references, as SQuAD compares them.

    Formula: mean (2 m / (a + b)), with m tokens in common of a and b.

    Answers are normalised as in `ExactMatch`, which it is where either is empty.

    Parameters are those of `RowMean`.

    Reference: Rajpurkar et al., EMNLP 2016; ``torchmetrics.text.SQuAD``, which gives percent.

    Example:
        >>> import streammetrics as sm
        >>> sm.TokenF1().update(["the black cat"], ["A cat!"]).compute()
        0.6666666666666666
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of F1 scores."""
        return (AnswerAgreement(of="tokens", nan_policy=self.nan_policy),)


class RougeN(TextMean):
    """ROUGE-N: mean F1 of the n-grams of words that prediction and reference share.

    Formula: mean (2 m / (a + b)), with m n-grams in common of a and b.

    Words are runs of a to z and digits, in any case; there is no stemming.

    The other parameters are those of `RowMean`.

    Args:
        n: How many words; 1 and 2 are the usual ones.

    Reference: Lin, "ROUGE", ACL 2004; ``rouge_score.rouge_scorer.RougeScorer``.

    Example:
        >>> import streammetrics as sm
        >>> sm.RougeN(n=1).update(["the cat sat"], ["The cat slept."]).compute()
        0.6666666666666666
    """

    n: Annotated[int, Between(1, 64)] = 1

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of F1 scores."""
        return (RougeAgreement(n=self.n, nan_policy=self.nan_policy),)


class RougeL(TextMean):
    """ROUGE-L: mean F1 of the longest subsequence of words that both texts have.

    Formula: mean (2 LCS / (a + b)), with a and b the numbers of words of the two texts.

    Words are those of `RougeN`.

    Parameters are those of `RowMean`.

    Reference: Lin, "ROUGE", ACL 2004; ``rouge_score.rouge_scorer.RougeScorer``.

    Example:
        >>> import streammetrics as sm
        >>> sm.RougeL().update(["the cat sat here"], ["The here cat slept."]).compute()
        0.5
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of F1 scores."""
        return (RougeAgreement(n=0, nan_policy=self.nan_policy),)
