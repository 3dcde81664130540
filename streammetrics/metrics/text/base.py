"""What metrics of texts share: a reference and a prediction in each row."""

from __future__ import annotations

from typing import Any, Self

from streammetrics.core.constraints import NanPolicy
from streammetrics.core.metric import Metric


class TextMetric(Metric[float]):
    """A metric of the whole corpus, read of integers that are summed over its rows.

    Args:
        nan_policy: ``"omit"`` leaves rows with a missing text out.
    """

    nan_policy: NanPolicy = "raise"

    def update(self, reference: Any, prediction: Any) -> Self:
        """Take rows: the true texts and the predicted ones, each (n,) strings.

        Raises:
            InvalidBatchError: A column is no text, or of an error rate a reference is empty.
        """
        return self.feed({"reference": reference, "prediction": prediction})
