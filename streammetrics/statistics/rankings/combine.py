"""All rows of some tables in canonical form: joined by document, cut, in order, nothing unused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from streammetrics.core.errors import InvalidBatchError
from streammetrics.statistics.rankings.ids import narrowest, used
from streammetrics.statistics.rankings.order import Results, counted, ranked
from streammetrics.statistics.rankings.table import Grades, Judgments, RankingTable, united_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Array, Bools, Ints


class Cutoff(NamedTuple):
    """Which results can be needed: those of the first `k`, or from the best relevant one up."""

    k: int | None
    first_at: float | None  # what counts as relevant


def combined(tables: Sequence[RankingTable], cut: Cutoff, *, distinct: bool) -> RankingTable:
    """Return the canonical table of all rows.

    `distinct` promises that no (query, document) has two judgments or two scores; else those that
    are equal count once, and `InvalidBatchError` names the first that are not.
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
    """Return the counts of grades, each once."""
    query, grade, times = table.grades
    width = max(1, len(table.levels))
    cells, times = counted(query.astype(np.int64) * width + grade, times)
    query, grade = np.divmod(cells, width)
    return Grades(query.astype(np.int32), grade.astype(np.int32), times)


def keys(table: RankingTable, part: Results | Judgments) -> Ints:
    """Return one integer for each (query, document), in their order."""
    of_pair: Ints = part.query.astype(np.int64) * len(table.docs) + part.doc
    return of_pair


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
    order = np.lexsort((-results.grade, by))  # where only one of two knows its grade, it is first
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
    """Return the queries of those results whose grade is not among the judgments.

    With `among`, only of those grades for which it says so; its last is of none.
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
    """Leave out documents and levels that nothing refers to, and use the narrowest types."""
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
