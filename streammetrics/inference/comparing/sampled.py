"""Metrics without a formula for their variance: groups of a canonical sample left out in turn.

The values and their difference are of all rows. How far the difference is off by chance is read
from the sample: both models' metrics without each of 64 groups of its rows, which share all that
the models have in common, and Student's t of 63 degrees.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.scored import ScoredLabels
from streammetrics.inference.comparing.base import Estimate, Family, Joint, estimated
from streammetrics.statistics.joint.sample import RowSample, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Floats
    from streammetrics.inference.comparing.base import Side


GROUPS = 64
JACKKNIFE = "jackknife, 64 groups"

_REPEATED = 1 << 16  # rows that stand for those of a sample where a statistic takes no weights


class SampledFamily(Family):
    """Any metric of numbers whose value is one number, smooth in its rows."""

    def __init__(self, metric: Metric, models: int, max_rows: int) -> None:
        self.metric, self.models, self.max_rows = metric, models, max_rows

    def joints(self, models: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[Joint]:  # noqa: ARG002 - all pairs at once
        """Return a sample of the rows of all models."""
        schema = self.metric.statistics()[0].schema
        return [Joint(RowSample(max_rows=self.max_rows), tuple(models), *rows_of(schema))]

    def estimate(self, one: Side, other: Side, joint: Statistic | None, level: float) -> Estimate:
        """Return the jackknife of the difference."""
        assert isinstance(joint, RowSample)
        difference = one.value - other.value
        if not joint.strata or not math.isfinite(difference):
            return estimated(difference, math.nan, level, JACKKNIFE, GROUPS - 1)
        (rows,) = joint.strata
        group = np.arange(len(rows.points)) % GROUPS  # in the order of their hashes
        size = min(GROUPS, len(rows.points))
        weight = rows.copies * rows.points[:, -1]
        without = np.array(
            [
                self._value(one, rows.points[group != g], weight[group != g])
                - self._value(other, rows.points[group != g], weight[group != g])
                for g in range(size)
            ]
        )
        if size < 2:
            return estimated(difference, math.nan, level, JACKKNIFE, 1.0)
        spread = float(((without - without.mean()) ** 2).sum()) * (size - 1) / size
        # How many rows of one weight those of the sample are worth, and how many all rows are.
        total, squares = np.asarray(joint.sums.to_float())[0].tolist()
        held = float(np.dot(rows.copies, rows.points[:, -1] ** 2))
        worth = float(weight.sum()) ** 2 * squares, total**2 * held
        variance = spread * worth[0] / worth[1] if worth[1] > 0 else math.nan
        return estimated(difference, variance, level, JACKKNIFE, size - 1)

    def _value(self, side: Side, points: Floats, weight: Floats) -> float:
        """Return a model's metric of some rows of the sample."""
        columns = self._columns(side.place, points)
        read = []
        for statistic in self.metric.statistics():
            schema = statistic.schema
            taken = columns[len(columns) - len(schema.inputs) :]
            if schema.unweighted:
                scale = min(1.0, _REPEATED / float(weight.sum()))
                times = np.maximum(np.rint(weight * scale), 1).astype(np.intp)
                statistic.update(*(np.repeat(each, times, axis=0) for each in taken), weight=None)
            else:
                statistic.update(*taken, weight=None if (weight == 1).all() else weight)
            read.append(statistic)
        return float(self.metric.readout(*read))

    def _columns(self, place: int, points: Floats) -> list[Any]:
        """Return the columns of one model as the schema gave them: what all have, and its own."""
        scored = any(isinstance(f, ScoredLabels) for f in self.metric._layout.schemas[0].fields)
        width = points.shape[1] - 1  # without the weight
        width = (width - 1) // self.models if scored else width // (self.models + 1)
        start = (1 if scored else width) + place * width
        first, own = points[:, : 1 if scored else width], points[:, start : start + width]
        both = (first, own)
        columns = [np.ascontiguousarray(x[:, 0] if x.shape[1] == 1 else x) for x in both]
        if scored:
            columns[0] = columns[0].astype(np.uint8 if width == 1 else np.intp)
        return columns
