"""The state of statistics at one moment: what they hold, what waits, and what is known of the rows.

A state is never changed: `Layout` makes new ones of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from streammetrics.core.columns.schema import joined_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.columns.schema import Facts
    from streammetrics.core.feeding.staging import Staged
    from streammetrics.core.statistic import Statistic


class Feed(NamedTuple):
    """What is known of the rows read for one schema."""

    facts: Facts
    n_rows: int
    n_omitted: int

    def with_all(self, others: Sequence[Feed]) -> Feed:
        """Return the feed after the rows of others."""
        facts, n_rows, n_omitted = self
        for other in others:
            if other.facts != facts:
                facts = joined_facts(facts, other.facts)
            n_rows += other.n_rows
            n_omitted += other.n_omitted
        return Feed(facts, n_rows, n_omitted)


class State(NamedTuple):
    """The whole state at one moment."""

    feeds: tuple[Feed, ...]  # of the rows in the statistics; those of one reading are equal
    statistics: tuple[Statistic, ...]
    staged: Staged | None = None  # batches that the statistics have yet to take
    agreed: tuple[Feed, ...] = ()  # `feeds` with the facts of staged rows

    @property
    def pending(self) -> int:
        """About how many rows are staged."""
        return 0 if self.staged is None else self.staged.size


class RefusedRows(NamedTuple):
    """Rows that a statistic refused although its schema had accepted them."""

    n: int
    update: int
    of: int
    error: Exception

    def __str__(self) -> str:
        return (
            f"{self.n:,} rows were dropped, those of update {self.update} of the {self.of} since "
            f"the state was last read: a statistic raised {self.error!r} on rows that its schema "
            "had accepted, and must leave refusing to its schema"
        )
