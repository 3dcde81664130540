"""Values of two samples, a reference and a current one: what drift is read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streammetrics.core.columns.schema import Schema
from streammetrics.core.columns.scored import Pair, ScoredLabels
from streammetrics.core.columns.scores import Scores
from streammetrics.statistics.scores.histogram import ScoreHistogram

if TYPE_CHECKING:
    from streammetrics.core.columns.schema import Field

SAMPLES = Pair("current", "current", "two samples are compared: leave out the rows of others")


@dataclass(frozen=True)
class SampleValues(Scores):
    """A column of values, one a row, which may be infinite."""

    name: str = "values"

    @property
    def plain(self) -> Scores:
        """The same column, of any numbers."""
        return SampleValues(long=True)


class SampleHistogram(ScoreHistogram):
    """Weight of two samples at each value: a `ScoreHistogram` whose label says which sample.

    The positive class is the current sample.
    """

    @property
    def schema(self) -> Schema:
        """The sample that each row is of, and its value."""
        field: Field = ScoredLabels(SampleValues(), self.pos_label, truth="sample", pair=SAMPLES)
        return Schema((field,), self.nan_policy)
