"""What is held of ranking rows: results, judgments and counts of grades, in canonical form.

- *results*: the rows with a score, in rank order, each with its grade where that is known;
- *judgments*: relevance by (query, document), whether the document is retrieved or not. A row with
  both relevance and score adds one only where the relevance is positive: a document that is not
  relevant and falls below the cut leaves nothing but the mark that its query is judged;
- *grades*: how often each relevance occurs among the rows that name no document.

A judgment that came on its own stays whatever it says, as its score may come later. So a document
may be seen any number of times, in parts or whole, and nothing depends on the order. So may the
weight of a query, which any of its rows may say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.errors import InvalidBatchError
from streammetrics.statistics.rankings.ids import decoded, moved, union
from streammetrics.statistics.rankings.order import Results, run_starts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.core.types import Array, Bools, Floats, Ints
    from streammetrics.statistics.rankings.ids import Coded, Codes, Values


MOST = 1 << 52  # judgments without a document: sums of counts are exact in float64


class Judgments(NamedTuple):
    """Judged documents: places of query, document and grade; by query, then document."""

    query: Array
    doc: Array
    grade: Array


class Grades(NamedTuple):
    """How often each grade was given to documents without a name; by query, then grade."""

    query: Array
    grade: Array
    times: Ints


@dataclass(frozen=True)
class RankingTable:
    """Ranking rows; all columns hold places in `queries`, `docs` and `levels`."""

    queries: Values
    judged: Bools  # whether any row of the query has a relevance
    docs: Values
    levels: Floats
    results: Results
    judgments: Judgments
    grades: Grades
    weights: Floats | None = None  # of queries, nan of those that none was said of

    @property
    def rows(self) -> int:
        """Rows held, of every kind."""
        return len(self.results.query) + len(self.judgments.query) + len(self.grades.query)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, Array]:
        """Return all arrays; ids that are strings as rows of bytes."""
        held: dict[str, Array] = {"judged": self.judged, "levels": self.levels}
        if self.weights is not None:
            held["weights"] = self.weights
        for name, ids in (("queries", self.queries), ("docs", self.docs)):
            text = ids.dtype.kind == "S"
            held[name] = ids.view(np.uint8).reshape(len(ids), -1) if text else ids
        for name, part in (
            ("results", self.results),
            ("judgments", self.judgments),
            ("grades", self.grades),
        ):
            for column, array in part._asdict().items():
                held[f"{name}/{column}"] = array
        return held

    def blocks(self, rows: int) -> Iterator[RankingTable]:
        """Yield tables of consecutive queries, of about so many rows each."""
        parts = (self.results, self.judgments, self.grades)
        sizes = sum(np.bincount(part.query, minlength=len(self.queries)) for part in parts)
        starts = run_starts(np.cumsum(sizes) // rows)
        for start, stop in pairwise([*starts.tolist(), len(self.queries)]):
            cut = [_between(part, start, stop) for part in parts]
            yield replace(
                self, queries=self.queries[start:stop], judged=self.judged[start:stop],
                weights=None if self.weights is None else self.weights[start:stop],
                results=Results(*cut[0]), judgments=Judgments(*cut[1]), grades=Grades(*cut[2]),
            )  # fmt: skip

    def name(self, query: int, doc: int) -> str:
        """Return how errors name a query and a document."""
        (shown,) = decoded(self.queries[query : query + 1])
        (document,) = decoded(self.docs[doc : doc + 1])
        return f"query {shown!r}, document {document!r}"


def _between(part: Results | Judgments | Grades, start: int, stop: int) -> tuple[Array, ...]:
    """Return the columns of the queries from `start` to `stop`, with places from 0."""
    low, high = np.searchsorted(part.query, [start, stop])
    query, *rest = (column[low:high] for column in part)
    return (query - start, *rest)


def empty_table() -> RankingTable:
    """Return the table of no rows."""
    none, ids, floats = np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0)
    small = np.empty(0, np.int8)
    results, judgments = Results(none, floats, none, small), Judgments(none, none, small)
    grades = Grades(none, small, ids)
    return RankingTable(ids, np.empty(0, np.bool_), ids, floats, results, judgments, grades)


def lifted(
    query: Coded,
    doc: Coded,
    grade: Coded,
    score: Floats,
    weight: Floats,
) -> RankingTable:
    """Return the rows of one batch as a table that `combined` has yet to put in order."""
    is_judged, named = grade.codes >= 0, doc.codes >= 0
    retrieved = score == score  # noqa: PLR0124 - nan is no score
    judged = np.zeros(len(query.values), np.bool_)
    judged[query.codes[is_judged]] = True
    # Adding 0.0 copies, and makes -0.0 what it equals.
    results = Results(query.codes, score + 0.0, doc.codes, grade.codes)
    results = results.at(retrieved) if not retrieved.all() else results
    lasting = np.append(grade.values > 0, False)[grade.codes]
    kept = np.flatnonzero(is_judged & named & (lasting | ~retrieved))
    judgments = Judgments(query.codes[kept], doc.codes[kept], grade.codes[kept])
    unnamed = is_judged & ~named
    columns = (query.codes, grade.codes)
    if not unnamed.all():
        columns = (query.codes[unnamed], grade.codes[unnamed])
    grades = Grades(*columns, np.ones(len(columns[0]), np.int64))
    parts = (results, judgments, grades, _weights(query, weight))
    return RankingTable(query.values, judged, doc.values, grade.values, *parts)


def _weights(query: Coded, weight: Floats) -> Floats | None:
    """Return the weight of each query, of rows that agree; ``None`` where none says one."""
    said = np.flatnonzero(weight == weight)  # noqa: PLR0124 - nan is no weight
    if not said.size:
        return None
    weights = np.full(len(query.values), np.nan)
    weights[query.codes[said]] = weight[said] + 0.0
    return weights


def united_weights(
    tables: Sequence[RankingTable], queries: Values, places: Sequence[Codes | None]
) -> Floats | None:
    """Return the weight of each of all queries.

    Raises:
        InvalidBatchError: Two tables say two weights of a query.
    """
    if all(table.weights is None for table in tables):
        return None
    united = np.full(len(queries), np.nan)
    for table, place in zip(tables, places, strict=True):
        if table.weights is None:
            continue
        said = np.flatnonzero(~np.isnan(table.weights))
        at, more = said if place is None else place[said], table.weights[said]
        known = united[at]
        differ = np.flatnonzero((known != more) & ~np.isnan(known))
        if differ.size:
            first = int(differ[np.argmin(at[differ])])
            (shown,) = decoded(queries[at[first] : at[first] + 1])
            low, high = sorted((float(known[first]), float(more[first])))
            raise InvalidBatchError(f"query {shown!r} has two weights: {low:g} and {high:g}")
        united[at] = more
    return united


def united_tables(tables: Sequence[RankingTable]) -> RankingTable:
    """Return the rows of all tables one after the other."""
    if len(tables) == 1:
        return tables[0]
    queries, in_queries = union([table.queries for table in tables])
    docs, in_docs = union([table.docs for table in tables])
    levels, in_levels = union([table.levels for table in tables])
    judged = np.zeros(len(queries), np.bool_)
    parts = []
    for table, query, doc, level in zip(tables, in_queries, in_docs, in_levels, strict=True):
        if query is None and len(table.judged):
            judged |= table.judged
        elif query is not None:
            judged[query] |= table.judged
        rows, given, grades = table.results, table.judgments, table.grades
        of_rows, of_grades = moved(rows.query, query), moved(rows.grade, level)
        results = Results(of_rows, rows.score, moved(rows.doc, doc), of_grades)
        judgments = Judgments(
            moved(given.query, query), moved(given.doc, doc), moved(given.grade, level)
        )
        if grades.query is not rows.query:  # a batch of whole rows without documents shares them
            of_rows, of_grades = moved(grades.query, query), moved(grades.grade, level)
        parts.append((results, judgments, Grades(of_rows, of_grades, grades.times)))
    chained: dict[tuple[int, ...], Array] = {}  # columns that are shared stay so

    def chain(*arrays: Array) -> Array:
        key = tuple(map(id, arrays))
        if key not in chained:
            chained[key] = np.concatenate(arrays)
        return chained[key]

    results, judgments, grades = (
        type(group[0])(*map(chain, *group)) for group in zip(*parts, strict=True)
    )
    weights = united_weights(tables, queries, in_queries)
    return RankingTable(queries, judged, docs, levels, results, judgments, grades, weights)
