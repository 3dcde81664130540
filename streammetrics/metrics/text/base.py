"""What metrics of texts share: a reference and a prediction in each row."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

from streammetrics.core.constraints import NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.metrics.rowwise import RowMean

if TYPE_CHECKING:
    from streammetrics.core.types import ArrayLike
    from streammetrics.statistics.texts.base import TextCounts


class TextMetric(Metric[float]):
    """A metric of the whole corpus, read of integers that are summed over its rows.

    Args:
        nan_policy: ``"omit"`` leaves rows with a missing text out.
    """

    nan_policy: NanPolicy = "raise"

    def readout(self, held: TextCounts) -> float:
        """Return the value, ``nan`` without rows."""
        rows, *counts = held.counts.tolist()
        return self.read(counts) if rows else math.nan

    @abstractmethod
    def read(self, counts: list[Any]) -> float:
        """Return the value of what was counted in some rows."""

    def update(self, reference: ArrayLike, prediction: ArrayLike) -> Self:
        """Take rows: the true texts and the predicted ones, each (n,) strings.

        Raises:
            InvalidBatchError: A column is no text, or of an error rate a reference is empty.
        """
        return self.feed({"reference": reference, "prediction": prediction})


class TextMean(RowMean):
    """The mean over rows of a number of two texts, from 0 to 1."""

    higher_is_better = True

    def update(
        self, reference: ArrayLike, prediction: ArrayLike, *, sample_weight: ArrayLike = None
    ) -> Self:
        """Take rows: the true texts and the predicted ones, each (n,) strings.

        Raises:
            InvalidBatchError: A column is no text.
        """
        columns = {"reference": reference, "prediction": prediction}
        return self.feed({**columns, "sample_weight": sample_weight})
