"""Whole rows of targets and predictions, up to a budget: how a ratio of moments varies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import Schema
from streammetrics.statistics.joint.sample import RowSample
from streammetrics.statistics.sums.targets import PRED, TRUE, regression_schema

if TYPE_CHECKING:
    from streammetrics.core.types import Floats, ReadColumn


class MomentSample(RowSample):
    """A canonical sample of rows, of which the variance of what moments say is made.

    How a variance varies takes fourth moments, and sums of these cancel; a sample by hash does not.
    Some 50 bytes a row of it.
    """

    max_rows: int = 4096
    of: Literal["values", "pair"] = "pair"
    nan_policy: Literal["raise", "omit"] = "raise"

    @property
    def schema(self) -> Schema:
        """Values, or a target and a prediction: those that the moments are of, not rounded."""
        if self.of == "values":
            return Schema((Numbers("values"),), self.nan_policy)
        true, pred = Numbers(TRUE, wide=True), Numbers(PRED, wide=True)
        return regression_schema(self.nan_policy, true=true, pred=pred)

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Take the rows among those kept."""
        tables = [column.reshape(len(column), -1) for column in columns]
        super().update(*tables, weight=weight)
