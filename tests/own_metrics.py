"""Metrics of an author, as the docs show how to write them."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from streammetrics.authoring import (
    Between,
    Floats,
    Positive,
    Positives,
    QueryMean,
    RowMean,
    SampleMetric,
    Shares,
    prepare,
)


class MeanLogRatio(RowMean):
    """Mean logarithm of the prediction over the target.

    >>> MeanLogRatio().update([1.0, 1.0], [1.0, 1.0]).compute()
    0.0
    """

    def row(self, y_true: Positives, y_pred: Positives) -> Any:
        return np.log(y_pred / y_true)


class Agreement(RowMean):
    """The share of rows in which two shares differ by at most `within`.

    Args:
        within: The largest difference.

    >>> Agreement().update([0.5, 0.5], [0.5, 1.0]).compute()
    0.5
    """

    within: Annotated[float, Positive] = 0.25
    higher_is_better = True
    value_range = (0.0, 1.0)

    def row(self, mine: Shares, theirs: Shares) -> Any:
        return np.abs(mine - theirs) <= self.within


class CostRatio(RowMean):
    """Cost by size, Σ c / Σ s.

    >>> CostRatio().update([1.0, 2.0], [2.0, 2.0]).compute()
    0.75
    """

    higher_is_better = False
    value_range = (0.0, np.inf)

    def row(self, cost: Positives, size: Positives) -> Any:
        return cost, size

    def of_mean(self, cost: Any, size: Any) -> Any:
        return cost / size


class GeometricMean(RowMean):
    """The exponential of the mean logarithm.

    >>> round(GeometricMean().update([1.0, 100.0]).compute(), 9)
    10.0
    """

    def row(self, values: Positives) -> Any:
        return np.log(values)

    def of_mean(self, mean: Any) -> Any:
        return np.exp(mean)


class Discounted(QueryMean):
    """Gain of the results of a query, discounted by the root of the rank.

    >>> Discounted().update(query=[1, 1], relevance=[1, 0], score=[0.9, 0.8]).compute()
    1.0
    """

    def of_query(self, gain: Any, rank: Any) -> float:
        return float((gain / np.sqrt(rank)).sum())


class MedianGap(SampleMetric):
    """The median of the absolute difference.

    >>> MedianGap().update([0.5, 1.0, -1.0], [0.5, 0.0, 0.0]).compute()
    1.0
    """

    value_range = (0.0, 2.0)

    def of_sample(
        self, y_true: Annotated[Floats, Between(-1, 1)], y_pred: Annotated[Floats, Between(-1, 1)]
    ) -> Any:
        return np.median(np.abs(y_true - y_pred))


class MeanWords(RowMean):
    """The mean number of words of a text.

    >>> MeanWords().update(["to be", "or not to be"]).compute()
    3.0
    """

    @prepare
    def count(self, text: list[Any]) -> Any:
        CALLS.append(len(text))
        return [len(words(one)) for one in text]

    def row(self, length: Floats) -> Any:
        return length


class LongTexts(MeanWords):
    """The share of texts of more than two words.

    >>> LongTexts().update(["to be", "or not to be"]).compute()
    0.5
    """

    value_range = (0.0, 1.0)

    def row(self, length: Floats) -> Any:
        return length > 2


class Message:
    """An object of a user."""

    def __init__(self, text: str) -> None:
        self.text = text


CALLS: list[int] = []  # the number of rows of each call of `count`


def words(one: Any) -> list[str]:
    return (one.text if isinstance(one, Message) else str(one)).split()


ALL = (
    MeanLogRatio,
    Agreement,
    CostRatio,
    GeometricMean,
    Discounted,
    MedianGap,
    MeanWords,
    LongTexts,
)
