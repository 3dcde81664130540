"""Overlap of n-grams of words or characters, as sacrebleu counts them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from operator import le
from typing import TYPE_CHECKING, Any, Literal

from streammetrics.statistics.texts.base import TextCounts
from streammetrics.statistics.texts.tokens import mteval

if TYPE_CHECKING:
    from collections.abc import Sequence


class BleuCounts(TextCounts):
    """Lengths of predictions and references, and matching and all n-grams of each order."""

    order: int = 4
    tokenize: Literal["13a", "none"] = "13a"
    lowercase: bool = False

    @property
    def size(self) -> int:
        """Two lengths, and two for each order."""
        return 2 + 2 * self.order

    def countable(self, rows: int, *counts: int) -> bool:  # noqa: ARG002 - for any number of rows
        """Whether no n-gram is without the shorter ones in it."""
        predicted, referred, *grams = counts
        matches, totals = grams[: self.order], grams[self.order :]
        shortest = totals[0] == predicted and matches[0] <= referred
        longer = all(n <= m for some in (matches, totals) for m, n in pairwise(some))
        return shortest and longer and all(map(le, matches, totals))

    def counted(self, reference: str, prediction: str) -> list[int]:
        """Return the counts of one row."""
        true, pred = (self._tokens(text) for text in (reference, prediction))
        matches, totals = [], []
        for n in range(1, self.order + 1):
            mine, others = grams(pred, n), grams(true, n)
            matches.append(common(mine, others))
            totals.append(max(len(pred) - n + 1, 0))
        return [len(pred), len(true), *matches, *totals]

    def _tokens(self, text: str) -> list[str]:
        text = text.lower() if self.lowercase else text
        return mteval(text) if self.tokenize == "13a" else text.split()


def grams(items: Sequence[str], n: int) -> Counter[tuple[str, ...] | str]:
    """Return how often each run of n words, or of n characters, occurs."""
    if isinstance(items, str):
        return Counter(items[at : at + n] for at in range(len(items) - n + 1))
    return Counter(zip(*[items[at:] for at in range(n)], strict=False))


def common(one: Counter[Any], other: Counter[Any]) -> int:
    """Return how many items both have, each as often as the one that has fewer of them."""
    return sum([min(one[item], other[item]) for item in one.keys() & other.keys()])


class ChrfCounts(TextCounts):
    """N-grams of characters of each order: those of predictions, of references, and in both."""

    order: int = 6

    @property
    def size(self) -> int:
        """Three for each order."""
        return 3 * self.order

    def countable(self, rows: int, *counts: int) -> bool:  # noqa: ARG002 - for any number of rows
        """Whether no more n-grams are in both texts than in either."""
        predicted, referred, both = counts[::3], counts[1::3], counts[2::3]
        return all(map(le, both, predicted)) and all(map(le, both, referred))

    def counted(self, reference: str, prediction: str) -> list[int]:
        """Return the counts of one row."""
        true, pred = ("".join(text.split()) for text in (reference, prediction))
        found: list[int] = []
        for n in range(1, self.order + 1):
            mine, others = grams(pred, n), grams(true, n)
            total = sum(mine.values()) if others else 0
            found += [total, sum(others.values()), common(mine, others)]
        return found
