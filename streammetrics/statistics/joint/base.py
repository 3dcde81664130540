"""What joint statistics share: they are fed by a comparison, and by nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.core.statistic import Statistic

if TYPE_CHECKING:
    from streammetrics.core.columns.schema import Schema


class JointStatistic(Statistic):
    """What is remembered of several models together, read through a `ModelSchema`."""

    @property
    def schema(self) -> Schema:
        """Raise: the comparison that feeds it has the schema."""
        raise TypeError(
            "a Comparison feeds its joint statistics itself: it has no slices, and no decay; make "
            "one comparison for each slice"
        )
