"""Answers and summaries: the mean agreement of each with its reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from streammetrics.core.constraints import Between
from streammetrics.metrics.text.base import TextMean
from streammetrics.statistics.texts.answers import AnswerAgreement, RougeAgreement

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic

__all__ = ["ExactMatch", "RougeL", "RougeN", "TokenF1"]


class ExactMatch(TextMean):
    """Exact match: the share of answers equal to their reference, as SQuAD compares them.

    Formula: Σ w [answer = reference] / Σ w

    Both are normalized first: case, punctuation, the articles a, an and the, and extra spaces are
    ignored.

    Parameters are those of `RowMean`.

    Reference: Rajpurkar et al., "SQuAD", EMNLP 2016; ``torchmetrics.text.SQuAD``, as a percentage
    there.

    Example:
        >>> import streammetrics as sm
        >>> sm.ExactMatch().update(["The cat.", "a dog"], ["cat", "two dogs"]).compute()
        0.5
    """

    value_range = (0.0, 1.0)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the number of answers that match."""
        return (AnswerAgreement(of="whole", nan_policy=self.nan_policy),)


class TokenF1(TextMean):
    """Token F1: the mean F1 of the tokens of answers and references, as SQuAD compares them.

    Formula: mean (2 m / (a + b)), with m common tokens of a and b tokens.

    Texts are normalized as in `ExactMatch`. Where one of them is then empty, the value is that of
    `ExactMatch`.

    Parameters are those of `RowMean`.

    Reference: Rajpurkar et al., "SQuAD", EMNLP 2016; ``torchmetrics.text.SQuAD``, as a percentage
    there.

    Example:
        >>> import streammetrics as sm
        >>> sm.TokenF1().update(["the black cat"], ["A cat!"]).compute()
        0.6666666666666666
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of F1 scores."""
        return (AnswerAgreement(of="tokens", nan_policy=self.nan_policy),)


class RougeN(TextMean):
    """ROUGE-N: the mean F1 of the n-grams of words in predictions and references.

    Formula: mean (2 m / (a + b)), with m common n-grams of a and b.

    Words are runs of the letters a to z, in any case, and digits; they are not stemmed.

    The other parameters are those of `RowMean`.

    Args:
        n: How many words an n-gram has, usually 1 or 2.

    Reference: Lin, "ROUGE: a package for automatic evaluation of summaries", ACL 2004;
    ``rouge_score.rouge_scorer.RougeScorer``.

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
    """ROUGE-L: the mean F1 of the longest common subsequence of words.

    Formula: mean (2 LCS / (a + b)), with LCS its length, and a and b the words of both texts.

    Words are as in `RougeN`.

    Parameters are those of `RowMean`.

    Reference: Lin, "ROUGE: a package for automatic evaluation of summaries", ACL 2004;
    ``rouge_score.rouge_scorer.RougeScorer``.

    Example:
        >>> import streammetrics as sm
        >>> sm.RougeL().update(["the cat sat here"], ["The here cat slept."]).compute()
        0.5
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of F1 scores."""
        return (RougeAgreement(n=0, nan_policy=self.nan_policy),)
