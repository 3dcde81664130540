"""The state of a plan at one moment, and buffered batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from streammetrics.core.columns.nested import joined, joined_weights
from streammetrics.core.columns.schema import NO_ROWS, Rows, joined_facts
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.field import not_among

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.columns.schema import Facts
    from streammetrics.core.statistic import Statistic


class RowInfo(NamedTuple):
    """Facts and counts of the rows read for one schema."""

    facts: Facts
    n_rows: int
    n_omitted: int

    def with_all(self, others: Sequence[RowInfo]) -> RowInfo:
        """Return the sum with others; raise if their facts contradict each other."""
        facts, n_rows, n_omitted = self
        for other in others:
            if other.facts != facts:
                facts = joined_facts(facts, other.facts)
            n_rows += other.n_rows
            n_omitted += other.n_omitted
        return RowInfo(facts, n_rows, n_omitted)

    def without(self, other: RowInfo) -> RowInfo:
        """Return the counts without the rows of another; raise if they are not among these."""
        n_rows, n_omitted = self.n_rows - other.n_rows, self.n_omitted - other.n_omitted
        if n_rows < 0 or n_omitted < 0:
            what = ("rows", self.n_rows, other.n_rows)
            if n_rows >= 0:
                what = ("omitted rows", self.n_omitted, other.n_omitted)
            raise not_among("there are {1:,} {0} here, and {2:,} there".format(*what))
        try:
            known = joined_facts(self.facts, other.facts)
        except InvalidBatchError as error:
            raise not_among(error.problem) from None
        if known != self.facts:
            raise not_among(f"they are rows of {other.facts}, and these of {self.facts}")
        return RowInfo(self.facts if n_rows else {}, n_rows, n_omitted)


class State(NamedTuple):
    """The whole state of a plan at one moment; immutable."""

    infos: tuple[RowInfo, ...]  # of the rows in the statistics; equal for schemas of one reading
    statistics: tuple[Statistic, ...]
    buffered: BufferedBatch | None = None  # batches not yet in the statistics
    agreed: tuple[RowInfo, ...] = ()  # `infos` with the facts of buffered rows, if any

    @property
    def pending(self) -> int:
        """The approximate number of buffered rows."""
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
            "had accepted. Its author should refuse such rows in the schema"
        )


class BufferedBatch(NamedTuple):
    """The last buffered batch, one `Rows` for each reading, linked to the earlier ones."""

    rows: tuple[Rows, ...]  # nobody else can write to their arrays
    before: BufferedBatch | None
    size: int  # approximate number of buffered rows

    def batches(self) -> list[tuple[Rows, ...]]:
        """Return all batches in order of arrival."""
        found: list[tuple[Rows, ...]] = []
        batch: BufferedBatch | None = self
        while batch is not None:
            found.append(batch.rows)
            batch = batch.before
        return found[::-1]

    def together(self) -> tuple[Rows, ...]:
        """Concatenate all batches into one; the facts of several are kept in the state instead."""
        if self.before is None:
            return self.rows
        return tuple([_concatenated(each) for each in zip(*self.batches(), strict=True)])


def owned(rows: Rows) -> Rows:
    """Return a copy of rows whose arrays nobody else can write to."""
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
