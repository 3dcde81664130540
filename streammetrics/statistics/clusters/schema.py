"""Points and the cluster of each: the columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streammetrics.core.columns.labels import Labels
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import Schema
from streammetrics.core.errors import InvalidBatchError
from streammetrics.statistics.tables.contingency import UNWEIGHTED

if TYPE_CHECKING:
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Finished
    from streammetrics.core.types import Columns, Places


@dataclass(frozen=True)
class PointMatrix(Numbers):
    """A matrix of finite coordinates; with `width`, of that many columns."""

    name: str = "X"
    wide: bool = True
    width: int | None = None

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return (n, d) coordinates."""
        ((points,), facts) = super().finish(batch, taken, rows)
        points = points.reshape(len(points), math.prod(points.shape[1:]))
        if self.width not in {None, points.shape[1]}:
            raise InvalidBatchError(
                f"{batch.title(self.name)} has {points.shape[1]} columns, "
                f"the centroids {self.width}"
            )
        return (points,), facts


def points_schema(nan_policy: str) -> Schema:
    """Return the schema of points and the label of the cluster of each."""
    return Schema((PointMatrix(), Labels("labels")), nan_policy, UNWEIGHTED)
