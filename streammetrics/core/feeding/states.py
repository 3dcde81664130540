"""The state of a plan at one moment, and buffered batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from streammetrics.core.columns.nested import joined, joined_weights
from streammetrics.core.columns.schema import NO_ROWS, Rows, joined_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.columns.schema import Facts
    from streammetrics.core.statistic import Statistic


class RowInfo(NamedTuple):
    """What is known of the rows read for one schema."""

    facts: Facts
    n_rows: int
    n_omitted: int

    def with_all(self, others: Sequence[RowInfo]) -> RowInfo:
        """Return the feed after the rows of others."""
        facts, n_rows, n_omitted = self
        for other in others:
            if other.facts != facts:
                facts = joined_facts(facts, other.facts)
            n_rows += other.n_rows
            n_omitted += other.n_omitted
        return RowInfo(facts, n_rows, n_omitted)


class State(NamedTuple):
    """The whole state at one moment."""

    infos: tuple[RowInfo, ...]  # of the rows in the statistics; those of one reading are equal
    statistics: tuple[Statistic, ...]
    buffered: BufferedBatch | None = None  # batches that the statistics have yet to take
    agreed: tuple[RowInfo, ...] = ()  # `infos` with the facts of buffered rows

    @property
    def pending(self) -> int:
        """About how many rows are buffered."""
        return 0 if self.buffered is None else self.buffered.size


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


class BufferedBatch(NamedTuple):
    """The batch that came last, as each reading has it, and those that have come before it."""

    rows: tuple[Rows, ...]  # arrays are our own
    before: BufferedBatch | None
    size: int  # about how many rows wait

    def batches(self) -> list[tuple[Rows, ...]]:
        """Return all batches in the order in which they came."""
        found: list[tuple[Rows, ...]] = []
        batch: BufferedBatch | None = self
        while batch is not None:
            found.append(batch.rows)
            batch = batch.before
        return found[::-1]

    def together(self) -> tuple[Rows, ...]:
        """Return all rows as those of one batch, whose facts are agreed on already."""
        if self.before is None:
            return self.rows
        return tuple([_concatenated(each) for each in zip(*self.batches(), strict=True)])


def owned(rows: Rows) -> Rows:
    """Return rows whose arrays nobody else can write to."""
    columns, weight, n, omitted, facts = rows
    copies = tuple([column.copy() for column in columns])
    return Rows(copies, None if weight is None else weight.copy(), n, omitted, facts)


def _concatenated(batches: Sequence[Rows]) -> Rows:
    omitted = sum([rows.omitted for rows in batches])
    parts = [rows for rows in batches if rows.n]
    if len(parts) <= 1:
        return (parts[0] if parts else NO_ROWS)._replace(omitted=omitted)
    columns = tuple(map(joined, zip(*[rows.columns for rows in parts], strict=True)))
    weight = joined_weights([(rows.weight, rows.n) for rows in parts])
    return Rows(columns, weight, sum([rows.n for rows in parts]), omitted, {})
