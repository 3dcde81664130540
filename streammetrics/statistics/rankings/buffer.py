"""Ranked results and judgments by query: what ranking metrics read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from streammetrics.core.columns.schema import Schema
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.rankings.combine import Cut, combined
from streammetrics.statistics.rankings.ids import coded_ids, coded_relevances
from streammetrics.statistics.rankings.index import pair_hashes, seen_again, with_hashes
from streammetrics.statistics.rankings.restore import restored
from streammetrics.statistics.rankings.rows import RankingRows
from streammetrics.statistics.rankings.table import MOST, Table, empty_table, joined, lifted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.columns.schema import Rows
    from streammetrics.statistics.rankings.index import Hashes

_PENDING = 1 << 20  # rows kept unsorted at least, so that sorting is worth its overhead
_SMALL = 1 << 13  # pending batches below this are put together
_FEW = 64  # as soon as there are so many


class _Held(NamedTuple):
    """The state, replaced in one assignment."""

    table: Table = empty_table()
    pending: tuple[Table, ...] = ()  # batches not yet put in order
    rows: int = 0  # of them
    seen: tuple[Hashes, ...] | None = ()  # None: to be made from the table


class RankingBuffer(Statistic):
    """Rows of (query, relevance, score[, document]), judgments and results joined by document.

    With `k` only the results that the top k of a query can need are kept: those that score at
    least as high as the k-th best, ties included. With `first_at` only those that score at least
    as high as the best one whose relevance reaches it. Kept besides are the judgments of named
    documents that came without a score or are relevant (their score may come later, and they must
    count once however often they come), and the counts of grades of rows without a document.

    What a document's row said is checked against later rows as long as it is kept: without `k` and
    `first_at` always; else two scores, or a relevance that is not positive and another one, are
    not noticed once the row has fallen below the cut.

    Rows are taken as they come and put in order when there are as many new ones as old ones, or at
    a read. Memory: 17 bytes a result and 9 a judgment, 13 for each grade of a query, and the
    distinct ids (8 bytes, or the longest string's).
    """

    k: int | None = None
    first_at: float | None = None
    named: bool = False
    highest: float | None = None
    nan_policy: Literal["raise", "omit"] = "raise"

    @property
    def schema(self) -> Schema:
        """Query, relevance, score and document, all but the query optional."""
        field = RankingRows(self.named, self.highest, self.nan_policy == "omit")
        return Schema((field,), self.nan_policy, unweighted="ranking metrics")

    @property
    def _cut(self) -> Cut:
        return Cut(self.k, self.first_at)

    def urgent(self, rows: Rows) -> bool:
        """Whether rows may contradict others, which the update that brings them has to refuse."""
        return "doc ids" in rows.facts

    def clear(self) -> None:
        """Forget all rows."""
        self._held = _Held()

    def update(self, *columns: Any, weight: NDArray[np.float64] | None) -> None:  # noqa: ARG002 - the schema refuses weights
        """Take rows; raise where a document contradicts what is held."""
        query, relevance, score, doc = columns
        more = lifted(coded_ids(query), coded_ids(doc), coded_relevances(relevance), score)
        table, pending, rows, seen = self._held
        if len(more.docs):
            seen = with_hashes((), pair_hashes(table)) if seen is None else seen
            hashes = pair_hashes(more)
            if seen_again(seen, hashes):
                self._settle([more], distinct=False)
                return
            seen = with_hashes(seen, hashes)
        waiting = (*pending, more)
        small = sum(waiter.rows < _SMALL for waiter in waiting[-_FEW:])
        if small == _FEW:
            waiting = (*waiting[:-_FEW], joined(waiting[-_FEW:]))
        rows += len(score)
        self._held = _Held(table, waiting, rows, seen)
        if rows >= max(_PENDING, table.rows // 4):
            self._settle([], distinct=True)

    def _settle(self, more: Sequence[Table], *, distinct: bool) -> None:
        table, pending, _, _ = self._held
        if pending or more:
            table = combined([table, *pending, *more], self._cut, distinct=distinct)
            self._held = _Held(table, seen=None)

    @property
    def table(self) -> Table:
        """All rows in canonical form."""
        self._settle([], distinct=True)
        return self._held.table

    def merge(self, other: Self) -> None:
        """Take another buffer's rows; raise where a document contradicts what is held."""
        theirs = other._held
        mine = self._held
        tables = (mine.table, *mine.pending, theirs.table, *theirs.pending)
        rows = sum(int(table.grades.times.sum()) for table in tables)
        if rows > MOST:
            raise IncompatibleMetricsError(
                f"the states hold {rows} judgments without a document together; at most 2**52 "
                "are counted"
            )
        self._settle([theirs.table, *theirs.pending], distinct=False)

    @property
    def nbytes(self) -> int:
        """Bytes of rows held now, those not yet in order included."""
        table, pending, _, seen = self._held
        return sum(t.nbytes for t in (table, *pending)) + sum(h.nbytes for h in seen or ())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the canonical table."""
        return self.table.arrays()

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Set the table after checking it."""
        table = restored(arrays, self._cut)
        if self.highest is not None and table.levels.max(initial=-np.inf) > self.highest:
            raise StateFormatError(f"a relevance is above max_grade={self.highest:g}")
        if self.named and (table.results.doc < 0).any():
            raise StateFormatError("a result has no document")
        self._held = _Held(table, seen=None)
