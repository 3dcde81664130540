"""The rows of rankings as a field of a state: put in order when it is worth it, or at a read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from streammetrics.core import tuning
from streammetrics.core.chunks import piled
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.field import StateField
from streammetrics.statistics.rankings.combine import Cutoff, combined
from streammetrics.statistics.rankings.ids import union
from streammetrics.statistics.rankings.index import pair_hashes, seen_again, with_hashes
from streammetrics.statistics.rankings.restore import restored
from streammetrics.statistics.rankings.table import (
    MOST,
    RankingTable,
    empty_table,
    united_tables,
    united_weights,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.configured import Configured
    from streammetrics.core.types import Array, Arrays
    from streammetrics.statistics.rankings.index import Hashes


class _RankingRows(NamedTuple):
    """How rows are held."""

    table: RankingTable = empty_table()
    pending: tuple[RankingTable, ...] = ()  # batches not yet put in order
    rows: int = 0  # of them
    seen: tuple[Hashes, ...] | None = ()  # None: to be made from the table


def _rows(table: RankingTable) -> int:
    return table.rows


class Ranked:
    """Rows of rankings, of which those that `cut` drops are not kept.

    Never changed, but that a read puts the rows in order, in one assignment: a reader in another
    thread finds the same rows before and after.
    """

    __slots__ = ("_form", "cut")

    def __init__(self, cut: Cutoff, form: _RankingRows) -> None:
        self.cut, self._form = cut, form

    @classmethod
    def of(cls, cut: Cutoff, table: RankingTable | None = None) -> Ranked:
        """The rows of a canonical table, or none."""
        return cls(cut, _RankingRows() if table is None else _RankingRows(table, seen=None))

    def taking(self, more: RankingTable, n: int) -> Ranked:
        """These rows and the `n` of a batch; raises where a document contradicts what is held."""
        table, pending, rows, seen = self._form
        if more.weights is not None:
            _check_weights([*self._tables, more])
        if len(more.docs):
            seen = with_hashes((), pair_hashes(table)) if seen is None else seen
            hashes = pair_hashes(more)
            if seen_again(seen, hashes):
                return self._combined([more], distinct=False)
            seen = with_hashes(seen, hashes)
        waiting = piled(pending, more, size=_rows, join=united_tables, small=tuning.JOINED_ROWS)
        rows += n
        taken = Ranked(self.cut, _RankingRows(table, waiting, rows, seen))
        if rows >= max(tuning.PENDING_RANKINGS, table.rows // 4):
            return taken._combined([], distinct=True)
        return taken

    def plus(self, others: Sequence[Ranked]) -> Ranked:
        """The rows of all; raises where a document of one contradicts another's."""
        tables = [table for other in others for table in other._tables]
        grades = [table.grades.times for table in (*self._tables, *tables)]
        rows = sum(int(times.sum()) for times in grades)
        if rows > MOST:
            raise IncompatibleMetricsError(
                f"the states hold {rows} judgments without a document together; at most 2**52 "
                "are counted"
            )
        return self._combined(tables, distinct=False)

    def _combined(self, more: Sequence[RankingTable], *, distinct: bool) -> Ranked:
        tables = [*self._tables, *more]
        return Ranked.of(self.cut, combined(tables, self.cut, distinct=distinct))

    @property
    def _tables(self) -> tuple[RankingTable, ...]:
        return (self._form.table, *self._form.pending)

    @property
    def table(self) -> RankingTable:
        """All rows in canonical form."""
        if self._form.pending:
            self._form = self._combined([], distinct=True)._form
        return self._form.table

    @property
    def nbytes(self) -> int:
        """Bytes of rows held now, those not yet in order included."""
        form = self._form
        tables = (form.table, *form.pending)
        return sum(t.nbytes for t in tables) + sum(h.nbytes for h in form.seen or ())


def _check_weights(tables: Sequence[RankingTable]) -> None:
    """Raise where tables say two weights of a query."""
    weighed = [table for table in tables if table.weights is not None]
    united_weights(weighed, *union([table.queries for table in weighed]))


class RankedField(StateField[Ranked]):
    """Rows of rankings; what is kept is said by ``k`` and ``first_at`` of the statistic.

    Rows have no weights, and none can be taken out: a row that comes again with its document is
    counted once, and what has fallen below the cut is not known.
    """

    def empty(self, of: Configured) -> Ranked:
        """Return no rows."""
        return Ranked.of(_cut(of))

    def plus(self, mine: Ranked, other: Ranked) -> Ranked:
        """Return the rows of both."""
        return mine.plus([other])

    def merged(self, mine: Ranked, others: Sequence[Ranked]) -> Ranked:
        """Return the rows of all, joined and put in order at once."""
        return mine.plus(others)

    def arrays(self, value: Ranked) -> dict[str, Array]:
        """Return the canonical table."""
        return value.table.arrays()

    def taken(self, arrays: Arrays, of: Configured) -> Ranked:
        """Return the rows of a table, after checking all of it."""
        table = restored(arrays, _cut(of))
        if arrays.keys() != table.arrays().keys():
            raise StateFormatError(f"{sorted(arrays)} are not the arrays of a ranking state")
        return Ranked.of(_cut(of), table)

    def nbytes(self, value: Ranked) -> int:
        """Bytes of rows held now."""
        return value.nbytes


def _cut(of: Configured) -> Cutoff:
    return Cutoff(of.config["k"], of.config["first_at"])
