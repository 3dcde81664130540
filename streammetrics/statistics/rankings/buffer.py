"""Ranked results and judgments by query: what ranking metrics read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from streammetrics.core.columns.schema import Schema
from streammetrics.core.errors import StateFormatError
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.rankings.held import RankedField
from streammetrics.statistics.rankings.ids import coded_ids, coded_relevances
from streammetrics.statistics.rankings.rows import RankingRows
from streammetrics.statistics.rankings.table import lifted

if TYPE_CHECKING:
    from streammetrics.core.columns.schema import Rows
    from streammetrics.core.types import Floats, ReadColumn
    from streammetrics.statistics.rankings.table import RankingTable


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

    rows = RankedField(inline=True)

    @property
    def schema(self) -> Schema:
        """Query, relevance, score, document and weight, all but the query optional."""
        field = RankingRows(self.named, self.highest, self.nan_policy == "omit")
        return Schema((field,), self.nan_policy, unweighted="ranking metrics")

    def may_refuse(self, rows: Rows) -> bool:
        """Whether rows may contradict others, which the update that brings them has to refuse."""
        return not rows.facts.keys().isdisjoint(("doc ids", "query weights"))

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:  # noqa: ARG002 - the schema refuses weights
        """Take rows; raise where a document or a weight contradicts what is held."""
        query, relevance, score, doc, weights = columns
        if not len(score):  # all rows of the batch are of other runs
            return
        ids, docs = coded_ids(query), coded_ids(doc)
        rows = lifted(ids, docs, coded_relevances(relevance), score, weights)
        self.rows = self.rows.taking(rows, len(score))

    @property
    def table(self) -> RankingTable:
        """All rows in canonical form."""
        return self.rows.table

    def check_fields(self) -> None:
        """Check that the rows are such as the schema takes."""
        table = self.table
        if self.highest is not None and table.levels.max(initial=-np.inf) > self.highest:
            raise StateFormatError(f"a relevance is above max_grade={self.highest:g}")
        if self.named and (table.results.doc < 0).any():
            raise StateFormatError("a result has no document")
