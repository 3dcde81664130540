"""What metrics of texts share: a reference and a prediction in each row."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Self

from streammetrics.core.constraints import NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.metrics.families import Family
from streammetrics.metrics.rowwise import RowMean

if TYPE_CHECKING:
    from streammetrics.core.types import ArrayLike
    from streammetrics.statistics.texts.base import TextCounts


class TextMetric(Metric[float]):
    """Base of the metrics of a whole corpus, from counts summed over its rows.

    Args:
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing text are left out.
    """

    _formula: ClassVar[tuple[str, ...]] = ("readout", "read")
    family: ClassVar[str | None] = Family.CORPUS

    nan_policy: NanPolicy = "raise"

    def readout(self, held: TextCounts) -> float:
        """Return the value, ``nan`` without rows."""
        rows, *counts = held.counts.tolist()
        return self.read(counts) if rows else math.nan

    @abstractmethod
    def read(self, counts: list[int]) -> float:
        """Return the value from the counts of at least one row."""

    def update(self, reference: ArrayLike, prediction: ArrayLike) -> Self:
        """Add a batch of rows: the references and the predictions, each (n,) strings.

        Raises:
            InvalidBatchError: A column is not text; the state is unchanged.
        """
        return self.feed({"reference": reference, "prediction": prediction})


class TextMean(RowMean):
    """Base of the metrics that are a mean over rows of a comparison of two texts, from 0 to 1."""

    higher_is_better = True

    def update(
        self, reference: ArrayLike, prediction: ArrayLike, *, sample_weight: ArrayLike = None
    ) -> Self:
        """Add a batch of rows: the references and the predictions, each (n,) strings.

        Raises:
            InvalidBatchError: A column is not text; the state is unchanged.
        """
        columns = {"reference": reference, "prediction": prediction}
        return self.feed({**columns, "sample_weight": sample_weight})
