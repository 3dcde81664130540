"""Rankings by query: judgments and results, joined by document."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn, TypeAlias

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.schema import Schema
from streammetrics.core.errors import IncompatibleMetricsError, InvalidBatchError, StateFormatError
from streammetrics.core.field import StateField, piled
from streammetrics.core.kernels.reference import mixed
from streammetrics.core.state.arrays import take_array
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.ranking_rows import (
    RankingRows,
    Results,
    coded_ids,
    coded_relevances,
    counted,
    decoded,
    hashed,
    moved,
    narrowest,
    ranked,
    run_starts,
    union,
    used,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.columns.schema import Rows
    from streammetrics.core.configured import Configured
    from streammetrics.core.types import Array, Arrays, Bools, Floats, Ints, ReadColumn
    from streammetrics.statistics.ranking_rows import Coded, Codes, Values


MOST = 1 << 52  # judgments without a document; sums of counts stay exact in float64


class Judgments(NamedTuple):
    """Judged documents: query, document and grade indices; by query, then document."""

    query: Array
    doc: Array
    grade: Array


class Grades(NamedTuple):
    """How often each grade was given to unnamed documents; by query, then grade."""

    query: Array
    grade: Array
    times: Ints


@dataclass(frozen=True)
class RankingTable:
    """Ranking rows; the columns hold indices into `queries`, `docs` and `levels`."""

    queries: Values
    judged: Bools  # whether any row of the query has a relevance
    docs: Values
    levels: Floats
    results: Results
    judgments: Judgments
    grades: Grades
    weights: Floats | None = None  # of queries; nan where none was given

    @property
    def rows(self) -> int:
        """Number of rows held, of every kind."""
        return len(self.results.query) + len(self.judgments.query) + len(self.grades.query)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, Array]:
        """Return all arrays; string ids as rows of bytes."""
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
        """Yield tables of consecutive queries, with about `rows` rows each."""
        if 0 < self.rows <= rows:
            yield self
            return
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
        """Return the text that identifies a query and a document in errors."""
        (shown,) = decoded(self.queries[query : query + 1])
        (document,) = decoded(self.docs[doc : doc + 1])
        return f"query {shown!r}, document {document!r}"


def _between(part: Results | Judgments | Grades, start: int, stop: int) -> tuple[Array, ...]:
    """Return the columns of the queries from `start` to `stop`, renumbered from 0."""
    low, high = np.searchsorted(part.query, [start, stop])
    query, *rest = (column[low:high] for column in part)
    return (query - start, *rest)


def empty_table() -> RankingTable:
    """Return a table without rows."""
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
    """Return the rows of one batch as a table, not yet in canonical order (see `combined`)."""
    is_judged, named = grade.codes >= 0, doc.codes >= 0
    retrieved = score == score  # noqa: PLR0124 - nan is no score
    judged = np.zeros(len(query.values), np.bool_)
    judged[query.codes[is_judged]] = True
    # Adding 0.0 copies, and turns -0.0 into 0.0.
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
    """Return the weight of each query from rows that agree; ``None`` if there are no weights."""
    said = np.flatnonzero(weight == weight)  # noqa: PLR0124 - nan is no weight
    if not said.size:
        return None
    weights = np.full(len(query.values), np.nan)
    weights[query.codes[said]] = weight[said] + 0.0
    return weights


def united_weights(
    tables: Sequence[RankingTable], queries: Values, places: Sequence[Codes | None]
) -> Floats | None:
    """Return the weight of each query of a union.

    Raises:
        InvalidBatchError: Two tables have different weights for a query.
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
    """Return the rows of all tables, concatenated."""
    tables = [table for table in tables if len(table.queries)] or tables[:1]
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
        if grades.query is not rows.query:  # complete rows without documents share these columns
            of_rows, of_grades = moved(grades.query, query), moved(grades.grade, level)
        parts.append((results, judgments, Grades(of_rows, of_grades, grades.times)))
    chained: dict[tuple[int, ...], Array] = {}  # shared columns stay shared

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


class Cutoff(NamedTuple):
    """Which results to keep: the first `k`, or those down to the best relevant one."""

    k: int | None
    first_at: float | None  # smallest relevance that counts as relevant


def combined(tables: Sequence[RankingTable], cut: Cutoff, *, distinct: bool) -> RankingTable:
    """Return the canonical table of all rows.

    `distinct` promises that no (query, document) has two judgments or two scores. Otherwise equal
    duplicates count once, and `InvalidBatchError` names the first contradiction.
    """
    table = _judged_once(united_tables(tables))
    if not distinct:
        table = _retrieved_once(table)
    if cut.first_at is not None:
        table = _with_known_grades(table)
        table = replace(table, results=_from_best_up(table, cut.first_at))
    results = ranked(table.results, len(table.queries), cut.k)
    table = _with_known_grades(replace(table, results=results))
    return _compact(replace(table, grades=_counted(table)))


def _counted(table: RankingTable) -> Grades:
    """Return the distinct (query, grade) of unnamed documents with summed counts."""
    query, grade, times = table.grades
    width = max(1, len(table.levels))
    cells, times = counted(query.astype(np.int64) * width + grade, times)
    query, grade = np.divmod(cells, width)
    return Grades(query.astype(np.int32), grade.astype(np.int32), times)


def keys(table: RankingTable, part: Results | Judgments) -> Ints:
    """Return one integer for each (query, document), which sorts like the pair."""
    return part.query.astype(np.int64) * len(table.docs) + part.doc


def _judged_once(table: RankingTable) -> RankingTable:
    given = table.judgments
    by = keys(table, given)
    order = np.argsort(by)
    by, grade = by.take(order), given.grade.take(order)
    again = np.flatnonzero(by[1:] == by[:-1])
    wrong = again[grade[again] != grade[again + 1]]
    if wrong.size:
        _contradict(
            table, by[wrong[0]], "relevances", *table.levels[grade[wrong[0] + np.arange(2)]]
        )
    order = np.delete(order, again + 1) if again.size else order
    return replace(table, judgments=Judgments(*(column.take(order) for column in given)))


def _retrieved_once(table: RankingTable) -> RankingTable:
    results = table.results
    by, (there, known) = keys(table, results), _known(table)
    named = results.doc >= 0
    differ = np.flatnonzero(there & (results.grade >= 0) & (known != results.grade))
    if differ.size:
        row = differ[0]
        two = table.levels[[known[row], results.grade[row]]]
        _contradict(table, by[row], "relevances", *two)
    order = np.lexsort((-results.grade, by))  # a duplicate with a grade sorts before one without
    order = order[named[order]]
    again = np.flatnonzero(by[order[1:]] == by[order[:-1]])
    if not again.size:
        return table
    first, second = results.at(order[again]), results.at(order[again + 1])
    for name, wrong in (
        ("scores", first.score != second.score),
        ("relevances", (second.grade >= 0) & (first.grade != second.grade)),
    ):
        if wrong.any():
            row = int(np.argmax(wrong))
            pair = [part.score[row] for part in (first, second)]
            if name == "relevances":
                pair = [table.levels[part.grade[row]] for part in (first, second)]
            _contradict(table, by[order[again[row]]], name, *pair)
    kept = np.ones(len(by), np.bool_)
    kept[order[again + 1]] = False
    return replace(table, results=results.at(kept))


def _contradict(table: RankingTable, key: int, what: str, one: float, other: float) -> NoReturn:
    query, doc = divmod(int(key), len(table.docs))
    low, high = sorted((float(one), float(other)))
    raise InvalidBatchError(f"{table.name(query, doc)} has two {what}: {low:g} and {high:g}")


def _known(table: RankingTable) -> tuple[Bools, Array]:
    """Return which results have a judgment, and its grade."""
    results, given = table.results, table.judgments
    if not len(given.query) or not len(results.query):
        return np.zeros(len(results.query), np.bool_), np.full(len(results.query), -1, np.int32)
    judged, wanted = keys(table, given), keys(table, results)
    at = np.searchsorted(judged, wanted)
    there = (judged.take(at, mode="clip") == wanted) & (results.doc >= 0)
    return there, given.grade.take(at, mode="clip")


def nonrelevant_alone(table: RankingTable, among: Bools | None = None) -> Array:
    """Return the queries of results whose grade is not among the judgments.

    With `among`, only results whose grade is True in it; its last entry stands for no grade.
    """
    results = table.results
    there, _ = _known(table)
    alone = (results.doc >= 0) & (results.grade >= 0) & ~there
    if among is not None:
        alone &= among[results.grade]
    return results.query[alone]


def _with_known_grades(table: RankingTable) -> RankingTable:
    results = table.results
    rows = np.flatnonzero((results.grade < 0) & (results.doc >= 0))
    if not rows.size or not len(table.judgments.query):
        return table
    there, known = _known(replace(table, results=results.at(rows)))
    grade = results.grade.astype(np.int32)
    grade[rows[there]] = known[there]
    return replace(table, results=results._replace(grade=grade))


def _from_best_up(table: RankingTable, first_at: float) -> Results:
    results = table.results
    relevant = np.append(table.levels >= first_at, False).take(results.grade)
    best = np.full(len(table.queries), -np.inf)
    np.maximum.at(best, results.query[relevant], results.score[relevant])
    kept = results.score >= best.take(results.query)
    return results if kept.all() else results.at(kept)


def _compact(table: RankingTable) -> RankingTable:
    """Drop unreferenced documents and levels, and use the narrowest dtypes."""
    results, given, grades = table.results, table.judgments, table.grades
    docs, of_results, of_given = used(table.docs, results.doc, given.doc)
    levels, *places = used(table.levels, results.grade, given.grade, grades.grade)
    narrow = next(t for t in (np.int8, np.int16, np.int32) if len(levels) <= np.iinfo(t).max)
    first, second, third = (column.astype(narrow) for column in places)
    judged = table.judged.copy()
    for query in (results.query[first >= 0], given.query, grades.query):
        judged[query] = True
    return RankingTable(
        narrowest(table.queries), judged, narrowest(docs), levels,
        Results(results.query, results.score, of_results, first),
        Judgments(given.query, of_given, second),
        Grades(grades.query, third, grades.times), table.weights,
    )  # fmt: skip


def restored(arrays: Arrays, cut: Cutoff) -> RankingTable:
    """Return the table of a saved state after checking that it is canonical."""
    levels = take_array(arrays, "levels", "float64")
    narrow = next(t for t in ("int8", "int16", "int32") if len(levels) <= np.iinfo(t).max)
    table = RankingTable(
        _ids(arrays, "queries"), take_array(arrays, "judged", "bool"), _ids(arrays, "docs"), levels,
        Results(
            *_part(arrays, "results", query="int32", score="float64", doc="int32", grade=narrow)
        ),
        Judgments(*_part(arrays, "judgments", query="int32", doc="int32", grade=narrow)),
        Grades(*_part(arrays, "grades", query="int32", grade=narrow, times="int64")),
        take_array(arrays, "weights", "float64") if "weights" in arrays else None,
    )  # fmt: skip
    results, given, grades = table.results, table.judgments, table.grades
    n_queries, n_docs, n_levels = len(table.queries), len(table.docs), len(levels)
    places = np.concatenate([results.query, given.query, grades.query])
    sound = (
        _inside(places, 0, n_queries)
        and np.unique(places).size == n_queries == len(table.judged)
        and _inside(results.doc, -1, n_docs)
        and _inside(given.doc, 0, n_docs)
        and _inside(results.grade, -1, n_levels)
        and _inside(np.concatenate([given.grade, grades.grade]), 0, n_levels)
        and bool(np.isfinite(levels).all() and (levels[1:] > levels[:-1]).all())
        and not np.isnan(results.score).any()
        and not (np.signbit(results.score) & (results.score == 0)).any()
        and bool((grades.times > 0).all())
        and (table.weights is None or _are_weights(table.weights, n_queries))
    )
    if not sound:
        raise StateFormatError("the places or the values of a ranking state are out of range")
    if grades.times.sum(dtype=np.float64) >= 2 * MOST:
        raise StateFormatError("there are more judgments than are counted")
    try:
        again = combined([table], cut, distinct=False).arrays()
        decoded(table.queries), decoded(table.docs)
    except (InvalidBatchError, UnicodeDecodeError) as error:
        raise StateFormatError(f"the rows of a ranking state are not sound: {error}") from error
    for name, array in table.arrays().items():
        if array.tobytes() != again[name].tobytes() or array.dtype != again[name].dtype:
            raise StateFormatError(f"the array {name!r} of a ranking state is not canonical")
    return table


def _part(arrays: Arrays, name: str, **dtypes: str) -> list[Array]:
    columns = [take_array(arrays, f"{name}/{key}", dtype) for key, dtype in dtypes.items()]
    if len({len(column) for column in columns}) > 1:
        raise StateFormatError(f"the columns of {name!r} differ in length")
    return columns


def _ids(arrays: Arrays, name: str) -> Values:
    if name in arrays and arrays[name].dtype == np.uint8:
        rows = np.ascontiguousarray(take_array(arrays, name, "uint8", 2))
        if not rows.size:
            raise StateFormatError(f"the strings {name!r} are empty")
        ids: Values = rows.view(f"S{rows.shape[1]}").reshape(-1)
        ends = bool(rows[:, -1].any()) or rows.shape[1] == 1
    else:
        ids, ends = take_array(arrays, name, "int64"), True
    if not ends or not (ids[1:] > ids[:-1]).all():
        raise StateFormatError(f"the ids {name!r} are not canonical")
    return ids


def _are_weights(weights: Floats, n_queries: int) -> bool:
    """Whether there is a weight or the canonical nan for each query, and at least one weight."""
    said = weights[~np.isnan(weights)]
    blank = weights[np.isnan(weights)].view(np.uint64)
    return (
        len(weights) == n_queries
        and bool(said.size)
        and bool((np.isfinite(said) & ~np.signbit(said)).all())
        and bool((blank == np.float64(np.nan).view(np.uint64)).all())
    )


def _inside(places: Array, low: int, high: int) -> bool:
    return not len(places) or (int(places.min()) >= low and int(places.max()) < high)


Hashes: TypeAlias = "NDArray[np.uint64]"

_JUDGED = np.uint64(0xD6E8FEB86659FD93)  # distinguishes judged from retrieved pairs


def pair_hashes(table: RankingTable) -> Hashes:
    """Return the sorted hashes of all judged and all retrieved pairs of a table."""
    queries, docs = mixed(hashed(table.queries)), hashed(table.docs)
    results, given = table.results, table.judgments
    named = results.doc >= 0
    graded = named & (results.grade >= 0)
    # Positive grades of results are among the judgments already; do not count them twice.
    graded &= ~np.append(table.levels > 0, False).take(results.grade)
    judged = [(given.query, given.doc), (results.query[graded], results.doc[graded])]
    parts = [mixed(queries.take(q) + docs.take(d)) ^ _JUDGED for q, d in judged]
    if named.any():
        rows = results.at(named)
        parts.append(mixed(queries.take(rows.query) + docs.take(rows.doc)))
    return np.sort(np.concatenate(parts))


def seen_again(levels: tuple[Hashes, ...], hashes: Hashes) -> bool:
    """Whether a hash occurs twice within `hashes`, or in both `hashes` and a level."""
    if (hashes[1:] == hashes[:-1]).any():
        return True
    for level in levels:
        if (level.take(np.searchsorted(level, hashes), mode="clip") == hashes).any():
            return True
    return False


def with_hashes(levels: tuple[Hashes, ...], hashes: Hashes) -> tuple[Hashes, ...]:
    """Return levels that include more hashes; each hash is merged about log n times in total."""
    if not len(hashes):
        return levels
    rest = list(levels)
    while rest and len(rest[-1]) <= 4 * len(hashes):
        hashes = np.sort(np.concatenate([rest.pop(), hashes]))
    return (*rest, hashes)


class _RankingRows(NamedTuple):
    """The state of `Ranked`: a canonical table and pending batches."""

    table: RankingTable = empty_table()
    pending: tuple[RankingTable, ...] = ()  # batches not in canonical order yet
    rows: int = 0  # number of rows in `pending`
    seen: tuple[Hashes, ...] | None = ()  # hashes of pairs; None: to be computed from the table


def _rows(table: RankingTable) -> int:
    return table.rows


class Ranked:
    """Rows of rankings without those that `cut` drops.

    Instances are immutable except that a read puts pending rows in order and stores the result in
    one assignment, so a concurrent reader sees the same rows before and after.
    """

    __slots__ = ("_form", "cut")

    def __init__(self, cut: Cutoff, form: _RankingRows) -> None:
        self.cut, self._form = cut, form

    @classmethod
    def of(cls, cut: Cutoff, table: RankingTable | None = None) -> Ranked:
        """Return the rows of a canonical table, or no rows."""
        return cls(cut, _RankingRows() if table is None else _RankingRows(table, seen=None))

    def taking(self, more: RankingTable, n: int) -> Ranked:
        """Return these rows and the `n` of a batch; raise if a document contradicts a held one."""
        table, pending, rows, seen = self._form
        if more.weights is not None:
            weighed = [each for each in (*self._tables, more) if each.weights is not None]
            united_weights(weighed, *union([each.queries for each in weighed]))
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
        """Return the rows of all; raise if documents contradict each other."""
        tables = [table for other in others for table in other._tables]
        grades = [table.grades.times for table in (*self._tables, *tables)]
        rows = sum(int(times.sum()) for times in grades)
        if rows > MOST:
            raise IncompatibleMetricsError(
                f"the merged state would have {rows} judgments without a document; at most 2**52 "
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
    def queries(self) -> Values:
        """The queries of all rows, also of pending ones, in ascending order."""
        return union([table.queries for table in self._tables])[0]

    @property
    def nbytes(self) -> int:
        """Bytes held now, including pending rows."""
        form = self._form
        tables = (form.table, *form.pending)
        return sum(t.nbytes for t in tables) + sum(h.nbytes for h in form.seen or ())


class RankedField(StateField[Ranked]):
    """Rows of rankings; the statistic's ``k`` and ``first_at`` determine which are kept.

    Rows have no weights. They cannot be subtracted: a document that occurs repeatedly counts once,
    and rows below the cut are lost.
    """

    def empty(self, of: Configured) -> Ranked:
        """Return no rows."""
        return Ranked.of(_cut(of))

    def plus(self, mine: Ranked, other: Ranked) -> Ranked:
        """Return the rows of both."""
        return mine.plus([other])

    def merged(self, mine: Ranked, others: Sequence[Ranked]) -> Ranked:
        """Return the rows of all, joined and ordered in one step."""
        return mine.plus(others)

    def arrays(self, value: Ranked) -> dict[str, Array]:
        """Return the canonical table."""
        return value.table.arrays()

    def taken(self, arrays: Arrays, of: Configured) -> Ranked:
        """Return the rows of a table after validating it."""
        table = restored(arrays, _cut(of))
        if arrays.keys() != table.arrays().keys():
            raise StateFormatError(f"{sorted(arrays)} are not the arrays of a ranking state")
        return Ranked.of(_cut(of), table)

    def minus(self, value: Ranked, other: Ranked) -> Ranked:
        """Refuse."""
        raise IncompatibleMetricsError(
            "a ranking cannot be computed without some of its rows, because a document counts once "
            "and rows below a cutoff are not kept: merge the states to keep instead"
        )

    def nbytes(self, value: Ranked) -> int:
        """Bytes of rows held now."""
        return value.nbytes


def _cut(of: Configured) -> Cutoff:
    return Cutoff(of.config["k"], of.config["first_at"])


class RankingBuffer(Statistic):
    """Rows of (query, relevance, score[, document]); judgments and results joined by document.

    With `k`, only the results that the top k of a query can need are kept: those that score at
    least as high as the k-th best, including ties. With `first_at`, only those that score at least
    as high as the best one whose relevance is at least `first_at`. Also kept are judgments of named
    documents that came without a score or are relevant, because their score may come later and they
    must count once, and the counts of grades of rows without a document.

    A row of a document is checked against later rows as long as it is kept. Without `k` and
    `first_at` that is always. With them, contradicting scores, and contradicting relevances if the
    first is not positive, go unnoticed once the row has dropped below the cut.

    Rows are appended, and put in order at a read or once the pending rows reach 2**20 and a quarter
    of the ordered rows. Memory: 17 bytes a result, 9 a judgment, 13 for each grade of a query, and
    the distinct ids (8 bytes, or the length of the longest string).
    """

    uncounted = "a row of a ranking is part of a query, whose documents count once"

    k: int | None = None
    first_at: float | None = None
    named: bool = False
    highest: float | None = None
    nan_policy: Literal["raise", "omit"] = "raise"

    rows = RankedField(inline=True)

    @property
    def schema(self) -> Schema:
        """Query, relevance, score, document and weight; only the query is required."""
        field = RankingRows(self.named, self.highest, self.nan_policy == "omit")
        return Schema((field,), self.nan_policy, unweighted="ranking metrics")

    def may_refuse(self, rows: Rows) -> bool:
        """Whether rows may contradict earlier rows, so that their update may have to raise."""
        return not rows.facts.keys().isdisjoint(("doc ids", "query weights"))

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Add rows; raise if a document or a weight contradicts a held one."""
        query, relevance, score, doc, weights = columns
        if not len(score):  # all rows of the batch belong to other runs
            return
        ids, docs = coded_ids(query), coded_ids(doc)
        rows = lifted(ids, docs, coded_relevances(relevance), score, weights)
        self.rows = self.rows.taking(rows, len(score))

    @property
    def table(self) -> RankingTable:
        """All rows in canonical form."""
        return self.rows.table

    def check_fields(self) -> None:
        """Check that the rows meet the schema's restrictions."""
        table = self.table
        if self.highest is not None and table.levels.max(initial=-np.inf) > self.highest:
            raise StateFormatError(f"a relevance is above max_grade={self.highest:g}")
        if self.named and (table.results.doc < 0).any():
            raise StateFormatError("a result has no document")
