"""How well single texts agree with their reference: a number from 0 to 1 of every row."""

from __future__ import annotations

import re
import string
from collections import Counter
from typing import Literal

from streammetrics.statistics.texts.base import TextScores
from streammetrics.statistics.texts.ngrams import common, grams

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_MARKS = str.maketrans("", "", string.punctuation)
_OTHERS = re.compile(r"[^a-z0-9]+")


class AnswerAgreement(TextScores):
    """Of answers as SQuAD normalises them: whether they are the same, or the F1 of their tokens."""

    of: Literal["whole", "tokens"]

    def score(self, reference: str, prediction: str) -> float:
        """Return 1 or 0 of the whole, or the share of tokens."""
        true, pred = _answer(reference), _answer(prediction)
        if self.of == "whole" or not true or not pred:
            return float(true == pred)
        return _f1(common(Counter(true), Counter(pred)), len(true), len(pred))


def _answer(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_MARKS)).split()


class RougeAgreement(TextScores):
    """The F1 of n-grams of words, or for `n` of 0 of their longest common subsequence."""

    n: int

    def score(self, reference: str, prediction: str) -> float:
        """Return the F1."""
        true, pred = (_OTHERS.sub(" ", text.lower()).split() for text in (reference, prediction))
        if not self.n:
            return _f1(_common(true, pred), len(true), len(pred))
        first, second = (grams(words, self.n) for words in (true, pred))
        both = common(first, second)
        return _f1(both, sum(first.values()), sum(second.values()))


def _common(one: list[str], other: list[str]) -> int:
    """Return the length of the longest common subsequence."""
    lengths = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for place, mine in enumerate(other, 1):
            above = lengths[place]
            lengths[place] = before + 1 if word == mine else max(above, lengths[place - 1])
            before = above
    return lengths[-1]


def _f1(both: int, true: int, pred: int) -> float:
    if not both:
        return 0.0
    precision, recall = both / pred, both / true
    return 2 * precision * recall / (precision + recall)
