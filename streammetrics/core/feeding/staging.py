"""Small batches that wait until there are enough rows to be worth a call of every statistic."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from streammetrics.core.columns.nested import joined, joined_weights
from streammetrics.core.columns.schema import NO_ROWS, Rows

if TYPE_CHECKING:
    from collections.abc import Sequence


class Staged(NamedTuple):
    """The batch that came last, as each reading has it, and those that have come before it."""

    rows: tuple[Rows, ...]  # arrays are our own
    before: Staged | None
    size: int  # about how many rows wait

    def batches(self) -> list[tuple[Rows, ...]]:
        """Return all batches in the order in which they came."""
        found: list[tuple[Rows, ...]] = []
        batch: Staged | None = self
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
