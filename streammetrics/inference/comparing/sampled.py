"""Metrics without a formula for their variance: groups of a canonical sample left out in turn.

The values and their difference are of all rows. How far the difference is off by chance is read
from the sample: both models' metrics without each of 64 groups of its rows, which share all that
the models have in common, and Student's t of 63 degrees.

Distinct rows are dealt to groups in the order of their hashes. Equal rows share a hash, so the
copies of a row are dealt at random instead, by a seed made of the counts: which group a row is in
never depends on batches or shards, and groups vary as rows drawn one by one do.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.scored import ScoredLabels
from streammetrics.inference.bootstrap import GROUPS, seeded
from streammetrics.inference.comparing.base import Estimate, Joint, PairedTest, estimated
from streammetrics.statistics.joint.sample import RowSample, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Floats, Ints
    from streammetrics.inference.comparing.base import Side


JACKKNIFE = "jackknife, 64 groups"

_REPEATED = 1 << 16  # rows that stand for more where a statistic takes no weights


class SampledFamily(PairedTest):
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
        copies = self._thinned(rows.copies)
        values = []
        for group in dealt(copies):
            kept = np.flatnonzero(copies > group)
            points, times = rows.points[kept], (copies - group)[kept]
            values.append(self._value(one, points, times) - self._value(other, points, times))
        without, size = np.array(values), len(values)
        if size < 2:
            return estimated(difference, math.nan, level, JACKKNIFE, 1.0)
        spread = float(((without - without.mean()) ** 2).sum()) * (size - 1) / size
        # How many rows of one weight those of the sample are worth, and how many all rows are.
        total, squares = np.asarray(joint.sums.to_float())[0].tolist()
        weight = rows.points[:, -1]
        worth = float(copies @ weight) ** 2 * squares, total**2 * float(copies @ weight**2)
        variance = spread * worth[0] / worth[1] if worth[1] > 0 else math.nan
        return estimated(difference, variance, level, JACKKNIFE, size - 1)

    def _thinned(self, copies: Ints) -> Ints:
        """Return how often rows are repeated, where a statistic takes no weights: a random part."""
        most, total = max(_REPEATED, copies.size), int(copies.sum())
        weighted = not any(each.schema.unweighted for each in self.metric.statistics())
        if weighted or total <= most:
            return copies
        return seeded(copies).binomial(copies, most / total)

    def _value(self, side: Side, points: Floats, times: Ints) -> float:
        """Return a model's metric of some rows of the sample, each of them so many times."""
        columns = self._columns(side.place, points)
        weight = times * points[:, -1]
        read = []
        for statistic in self.metric.statistics():
            schema = statistic.schema
            taken = columns[len(columns) - len(schema.inputs) :]
            if schema.unweighted:
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


def dealt(copies: Ints) -> Iterator[Ints]:
    """Yield how many copies of each row are in each group, (rows,)."""
    size, rows = min(GROUPS, int(copies.sum())), np.arange(copies.size)
    if size < GROUPS:  # each row is a group
        for row in np.repeat(rows, copies):
            yield (rows == row).astype(np.int64)
        return
    generator, often = seeded(copies), np.flatnonzero(copies > 1)
    left = copies[often]
    for place in range(size):
        group = np.where(rows % size == place, copies, 0)
        group[often] = generator.binomial(left, 1 / (size - place))
        left = left - group[often]
        yield group
