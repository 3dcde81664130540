"""Rows of a time and a score, apart by whether an event was seen then or the row was censored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import Condition, Schema, reject_present
from streammetrics.core.constraints import MaxPairs, NanPolicy
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.pairs.histogram import MAX_PAIRS, PairsField

if TYPE_CHECKING:
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.types import Bools, Floats


@dataclass(frozen=True)
class Seen(Condition):
    """Refuses events that are neither 0 nor 1."""

    def check(self, batch: Batch, missing: Bools | None) -> None:
        """Check the column."""
        event = batch.numbers("event")
        wrong = (event != 0) & (event != 1)
        reject_present(batch.title("event"), "is neither 0 nor 1", wrong, missing, event)


class SurvivalPairs(Statistic):
    """Counts of the distinct pairs (time, score) of rows with an event and of those without.

    Each of the two is held as in `PairHistogram`, up to `max_pairs` pairs.
    """

    max_pairs: MaxPairs = MAX_PAIRS
    nan_policy: NanPolicy = "raise"

    events = PairsField()
    censored = PairsField()

    @property
    def schema(self) -> Schema:
        """A time that is not negative, whether the event was seen at it, and a score."""
        fields = (
            Numbers("time", low=0.0),
            Numbers("event"),
            Numbers("score", ordered=True),
        )
        return Schema(fields, self.nan_policy, "concordance indices", (Seen(),))

    def update(self, *columns: Floats, weight: Floats | None) -> None:  # noqa: ARG002 - the schema refuses weights
        """Take rows."""
        time, event, score = columns
        seen = event == 1
        self.events = self.events.taking(time[seen], score[seen])
        self.censored = self.censored.taking(time[~seen], score[~seen])
