"""Repeated attempts at units, such as several sampled answers to each question."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.labels import label_column
from streammetrics.core.columns.schema import Facts, Field, Schema, reject, reject_present
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.counting import Union, moved
from streammetrics.core.errors import (
    Hint,
    IncompatibleMetricsError,
    InvalidBatchError,
    StateFormatError,
)
from streammetrics.core.field import StateField, not_among, piled
from streammetrics.core.fields.keyed import (
    coded_labels,
    packed_labels,
    unpacked_labels,
    used_labels,
)
from streammetrics.core.state.arrays import take_array
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.ranking_rows import id_column, id_kind, run_starts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Finished, Kind, Rows, Taken
    from streammetrics.core.configured import Configured
    from streammetrics.core.types import Array, Arrays, Bools, Columns, Floats, Ints, Places


_MOST = 1 << 52  # attempts: sums of counts are exact in float64
_WITHOUT = "none"  # the kind of attempt ids that are not given


class _ContradictionError(Exception):
    """An attempt has two results."""


class AttemptTable(NamedTuple):
    """Results of attempts, and the number of attempts of a unit with each result.

    Labels of units, attempts and answers are sorted, and all are in use. A code is ``unit * ids +
    attempt`` (indices into the labels), or the index of the unit if attempts have no ids; a result
    is ``2 * answer + solved``. Rows are sorted by code, then result. An attempt with an id has one
    row.
    """

    units: Array
    ids: Array
    answers: Array
    codes: Ints
    results: Ints
    times: Ints

    @classmethod
    def empty(cls) -> AttemptTable:
        """Return the table of no attempts."""
        return cls(*[np.empty(0, np.int64)] * 6)

    @classmethod
    def of(
        cls, units: Array, ids: Array, answers: Array, codes: Ints, results: Ints, times: Ints
    ) -> AttemptTable:
        """Return the table of rows in any order.

        Raises:
            _ContradictionError: An attempt has two results; it is named.
        """
        order = np.lexsort((results, codes))
        codes, results = codes[order], results[order]
        starts = run_starts(codes, results)
        if not starts.size:
            return cls.empty()
        if not len(ids):
            times = np.add.reduceat(times[order], starts)
        else:
            times = np.ones(starts.size, np.int64)
        table = cls(units, ids, answers, codes[starts], results[starts], times)
        if len(ids):
            twice = np.flatnonzero(table.codes[1:] == table.codes[:-1])
            if twice.size:
                raise _ContradictionError(table.named(int(twice[0])))
        return table

    @classmethod
    def joined(cls, tables: Sequence[AttemptTable]) -> AttemptTable:
        """Return the attempts of all tables."""
        return reduce(cls.plus, tables, cls.empty())

    def named(self, row: int) -> str:
        """Return the name of an attempt for errors."""
        unit, attempt = divmod(int(self.codes[row]), max(len(self.ids), 1))
        return f"unit {self.units[unit].item()!r}, attempt {self.ids[attempt].item()!r}"

    @property
    def unit(self) -> Ints:
        """Index of the unit of each row."""
        return self.codes // max(len(self.ids), 1)

    @property
    def rows(self) -> int:
        """Number of attempts."""
        return len(self.codes) if len(self.ids) else int(self.times.sum())

    def plus(self, other: AttemptTable) -> AttemptTable:
        """Return the attempts of both tables; an attempt with an id counts once.

        Raises:
            _ContradictionError: An attempt has two results.
        """
        if not len(self.codes) or not len(other.codes):
            return self if len(self.codes) else other
        unions = [_united(*labels) for labels in zip(self[:3], other[:3], strict=True)]
        units, ids, answers = (union.keys for union in unions)
        if len(units) > _MOST // max(len(ids), 1):
            raise IncompatibleMetricsError("there are too many units and attempts to number them")
        width = max(len(ids), 1)
        mine = self._recoded([union.mine for union in unions], width)
        theirs = other._recoded([union.theirs for union in unions], width)
        pairs = zip((*mine, self.times), (*theirs, other.times), strict=True)
        return AttemptTable.of(units, ids, answers, *map(np.concatenate, pairs))

    def _recoded(self, places: Sequence[Places | None], width: int) -> tuple[Ints, Ints]:
        """Return codes and results for other labels, `width` of them of attempts."""
        unit, attempt = np.divmod(self.codes, max(len(self.ids), 1))
        answer, solved = np.divmod(self.results, 2)
        codes = moved(places[0], unit) * width + moved(places[1], attempt)
        return codes, 2 * moved(places[2], answer) + solved

    def without(self, known: AttemptTable) -> AttemptTable:
        """Return the attempts that are not in another table.

        Raises:
            _ContradictionError: The other table has another result of an attempt.
        """
        unit, attempt = np.divmod(self.codes, max(len(self.ids), 1))
        answer, solved = np.divmod(self.results, 2)
        unit = _places(self.units, known.units)[unit]
        attempt = _places(self.ids, known.ids)[attempt]
        keys = np.where((unit >= 0) & (attempt >= 0), unit * len(known.ids) + attempt, -1)
        at = np.minimum(np.searchsorted(known.codes, keys), len(known.codes) - 1)
        there = known.codes[at] == keys
        if not there.any():
            return self
        if len(self.answers):
            answer = _places(self.answers, known.answers)[answer]
        wrong = there & (known.results[at] != 2 * answer + solved)
        if wrong.any():
            raise _ContradictionError(self.named(int(np.argmax(wrong))))
        return self.at(np.flatnonzero(~there))

    def at(self, rows: Places) -> AttemptTable:
        """Return some of the attempts."""
        unit, attempt = np.divmod(self.codes[rows], max(len(self.ids), 1))
        answer, solved = np.divmod(self.results[rows], 2)
        units, unit = used_labels(self.units, unit)
        ids, answers = self.ids, self.answers
        if len(ids):
            ids, attempt = used_labels(ids, attempt)
        if len(answers):
            answers, answer = used_labels(answers, answer)
        codes, results = unit * max(len(ids), 1) + attempt, 2 * answer + solved
        return AttemptTable.of(units, ids, answers, codes, results, self.times[rows])


def _united(mine: Array, theirs: Array) -> Union:
    """Unite labels of one kind, none or some on both sides."""
    return Union.of(mine, theirs) if len(mine) else Union(mine, None, None)


def _places(labels: Array, among: Array) -> Places:
    """Return the index of each label among sorted ones, -1 if it is missing."""
    at = np.minimum(np.searchsorted(among, labels), len(among) - 1)
    return np.where(among[at] == labels, at, -1)


class Attempts:
    """Attempts as tables of decreasing size, which keeps updates with small batches cheap.

    Immutable, except that a read joins the tables, in one assignment.
    """

    __slots__ = ("_tables", "rows")

    def __init__(self, tables: tuple[AttemptTable, ...] = ()) -> None:
        self._tables = tables
        self.rows = sum(table.rows for table in tables)

    @property
    def table(self) -> AttemptTable:
        """All attempts in canonical form."""
        if len(self._tables) != 1:
            self._tables = (AttemptTable.joined(self._tables),)
        return self._tables[0]

    def taking(self, more: AttemptTable) -> Attempts:
        """Return these attempts and those of a batch.

        Raises:
            _ContradictionError: An attempt has another result here.
        """
        if len(more.ids):
            for table in self._tables:
                more = more.without(table) if len(table.codes) and len(more.codes) else more
        if not len(more.codes):
            return self
        size, join = lambda table: len(table.codes), AttemptTable.joined
        return Attempts(piled(self._tables, more, size=size, join=join, small=_MOST))

    def plus(self, others: Sequence[Attempts]) -> Attempts:
        """Return the attempts of all."""
        tables = [table for each in (self, *others) for table in each._tables]
        rows = sum(table.rows for table in tables)
        if rows > _MOST and not any(len(table.ids) for table in tables):
            raise IncompatibleMetricsError(
                f"the merged state would have {rows} attempts; at most 2**52 are counted"
            )
        try:
            return Attempts((AttemptTable.joined(tables),))
        except _ContradictionError as error:
            raise IncompatibleMetricsError(f"{error} has two different results") from None

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        return sum(column.nbytes for table in self._tables for column in table)


class AttemptField(StateField[Attempts]):
    """Attempts by unit; rows have no weights."""

    def empty(self, of: Configured) -> Attempts:
        """Return no attempts."""
        return Attempts()

    def plus(self, mine: Attempts, other: Attempts) -> Attempts:
        """Return the attempts of both."""
        return mine.plus([other])

    def merged(self, mine: Attempts, others: Sequence[Attempts]) -> Attempts:
        """Return the attempts of all."""
        return mine.plus(others)

    def minus(self, value: Attempts, other: Attempts) -> Attempts:
        """Return the other attempts; one with an id counts once, however often it came."""
        if len(value.table.ids):
            raise IncompatibleMetricsError(
                "attempts with ids cannot be computed without some of their rows, because an "
                "attempt counts once: merge the states to keep instead"
            )
        table = value.table.plus(other.table._replace(times=-other.table.times))
        if (table.times < 0).any():
            raise not_among("some results of units are not here, or not as often")
        return Attempts((table.at(np.flatnonzero(table.times)),))

    def arrays(self, value: Attempts) -> dict[str, Array]:
        """Return the canonical table."""
        units, ids, answers, *columns = value.table
        labels = {"units": units, "ids": ids, "answers": answers}
        arrays = {name: packed_labels(each) for name, each in labels.items()}
        return arrays | dict(zip(("codes", "results", "times"), columns, strict=True))

    def taken(self, arrays: Arrays, of: Configured) -> Attempts:
        """Return the attempts of a table, after checking all of it."""
        if arrays.keys() != set(AttemptTable._fields):
            raise StateFormatError(f"{sorted(arrays)} are not the arrays of attempts")
        labels = [unpacked_labels(arrays, name) for name in ("units", "ids", "answers")]
        columns = [take_array(arrays, name, "int64") for name in ("codes", "results", "times")]
        table = AttemptTable(*labels, *columns)
        if not _sound(table):
            raise StateFormatError("the table of attempts is not canonical")
        return Attempts((table,))

    def nbytes(self, value: Attempts) -> int:
        """Bytes held now."""
        return value.nbytes


def _sound(table: AttemptTable) -> bool:
    """Whether a table is what `AttemptTable.of` returns, with all labels in use."""
    units, ids, answers, codes, results, times = table
    if not len(codes) == len(results) == len(times):
        return False
    if not len(codes):
        return not any(map(len, table)) and all(each.dtype == np.int64 for each in table)
    unit, attempt = np.divmod(codes, max(len(ids), 1))
    places = ((units, unit), (ids, attempt), (answers, results // 2))
    once = bool((times == 1).all() and (codes[1:] > codes[:-1]).all())
    return (
        all(_in_use(labels, place) for labels, place in places)
        and len(units) > 0
        and (once or not len(ids))
        and bool((times > 0).all())
        and float(times.sum(dtype=np.float64)) <= _MOST
        and np.array_equal(run_starts(codes, results), np.arange(len(codes)))
        and np.array_equal(np.lexsort((results, codes)), np.arange(len(codes)))
    )


def _in_use(labels: Array, places: Ints) -> bool:
    """Whether labels ascend and the places are just those of them; of none, all are 0."""
    used, every = np.unique(places), np.arange(max(len(labels), 1))
    return bool((labels[1:] > labels[:-1]).all()) and bool(np.array_equal(used, every))


@dataclass(frozen=True)
class AttemptRows(Field):
    """Rows of attempts: unit, outcome, id of the attempt, and with `answers` the answer.

    The finished column `y_true` is ``2 * row + solved``, with the row number in the batch.
    """

    answers: bool = False

    optional = frozenset({"attempt"})

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]  # read-only where the base only declares
        """The columns."""
        return ("unit", "y_true", *(["answer"] if self.answers else []), "attempt")

    @property
    def kinds(self) -> dict[str, Kind]:
        """Ids, except the outcome."""
        return {name: "label" if name == "y_true" else "id" for name in self.names}

    def take(self, batch: Batch) -> Taken:
        """Return the columns and a mask of missing outcomes and answers."""
        unit = id_column(batch, "unit")
        attempt = id_column(batch, "attempt") if batch.has("attempt") else None
        for name, column in (("unit", unit), ("attempt", attempt)):
            if column is not None and column.nulls is not None:
                reject(batch.title(name), "is missing (NaN or null)", column.nulls)
        outcome, missing = label_column(batch, "y_true")
        columns: list[object] = [unit, outcome]
        if self.answers:
            answer, unknown = label_column(batch, "answer")
            columns.append(answer)
            if unknown is not None:
                missing = unknown if missing is None else missing | unknown
        return (*columns, attempt), missing

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:
        """Check that outcomes are 0 and 1."""
        outcome, title = taken[1], batch.title("y_true")
        if outcome.vocabulary is not None:
            known = ", ".join(map(repr, outcome.vocabulary[:3].tolist()))
            raise InvalidBatchError(
                f"{title} holds text ({known}); 1 is solved and 0 is not", title
            )
        wrong = (outcome.values != 0) & (outcome.values != 1)
        reject_present(title, "is neither 0 nor 1", wrong, missing, outcome.values)

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return the columns, and the kinds of ids."""
        unit, outcome, *rest = taken
        answers, attempt = rest[:-1], rest[-1]
        facts: Facts = {"units": id_kind(unit)}
        facts["attempts"] = _WITHOUT if attempt is None else id_kind(attempt)
        if answers:
            facts["answers"] = id_kind(answers[0])
        n = len(outcome.values)
        if attempt is None:
            attempt = Column(np.zeros(n, np.int64), np.ones(n, np.bool_), True)
        numbered = 2 * (np.arange(n) + batch.first) + (outcome.values != 0)
        columns = (unit, numbered, *answers, attempt)
        return (columns if rows is None else tuple(c[rows] for c in columns)), facts


class AttemptCounts(Statistic):
    """Counts of the results of each unit; with attempt ids, the result of each attempt.

    An attempt with an id counts once, even if its row is repeated. A result that contradicts an
    earlier one of the same unit and id is refused. With `answers`, answers are kept.

    Memory: 24 bytes for each attempt with an id, or, without ids, for each distinct result of a
    unit; plus the distinct ids and answers.
    """

    uncounted = "a row of attempts is part of a unit, whose attempts count once"

    answers: bool = False
    nan_policy: NanPolicy = "raise"

    held = AttemptField(inline=True)

    @property
    def schema(self) -> Schema:
        """Unit and outcome, the answer where they are kept, and the id of the attempt."""
        field = AttemptRows(answers=self.answers)
        return Schema((field,), self.nan_policy, unweighted="metrics of attempts")

    @property
    def table(self) -> AttemptTable:
        """All attempts."""
        return self.held.table

    @property
    def own_rows(self) -> int:
        """Number of attempts; one with an id counts once."""
        return self.held.rows

    def may_refuse(self, rows: Rows) -> bool:
        """Whether attempts have ids, so that they can contradict others."""
        return bool(rows.facts.get("attempts", _WITHOUT) != _WITHOUT)

    def update(self, *columns: Column, weight: Floats | None) -> None:
        """Take attempts; raise where one contradicts what is held."""
        unit, numbered, *answers, attempt = columns
        results = np.asarray(numbered) & 1
        units, codes = _coded(unit)
        ids = texts = np.empty(0, np.int64)
        if attempt.nulls is None:
            ids, attempt_codes = _coded(attempt)
            codes = codes * len(ids) + attempt_codes
        if answers:
            texts, answer = _coded(answers[0])
            results = results + 2 * answer
        try:
            ones = np.ones(len(codes), np.int64)
            table = AttemptTable.of(units, ids, texts, codes, results, ones)
            self.held = self.held.taking(table)
        except _ContradictionError:
            self._refuse(np.asarray(numbered) >> 1, columns)

    def _refuse(self, rows: Ints, columns: Sequence[Column]) -> NoReturn:
        """Raise with the count and the first of the rows that contradict an earlier one."""
        unit, numbered, *answers, attempt = columns
        table = self.held.table
        at, place = np.divmod(table.codes, max(len(table.ids), 1))
        answer, solved = np.divmod(table.results, 2)
        said = [table.answers[answer].tolist()] if answers else []
        keys = zip(table.units[at].tolist(), table.ids[place].tolist(), strict=True)
        known = dict(zip(keys, zip(solved.tolist(), *said, strict=True), strict=True))
        ids = zip(*(_values(column) for column in (unit, attempt)), strict=True)
        results = zip((np.asarray(numbered) & 1).tolist(), *map(_values, answers), strict=True)
        wrong = []
        for row, key, result in zip(rows.tolist(), ids, results, strict=True):
            before = known.setdefault(key, result)
            if before != result:
                wrong.append((row, key, before, result))
        row, (unit_id, attempt_id), before, result = wrong[0]
        column = "y_true" if before[0] != result[0] else "answer"
        one, other = (side[column == "answer"] for side in (before, result))
        raise InvalidBatchError(
            f"{column} contradicts an earlier row of the same unit and attempt in {len(wrong)} "
            f"row{'s' * (len(wrong) != 1)}, first in row {row} (unit {unit_id!r}, attempt "
            f"{attempt_id!r}: {one!r} before, {other!r} here)",
            column,
            row,
            Hint("give each attempt at a unit an id of its own"),
        )

    def check_rows(self, n: int) -> None:
        """Check that there are no more attempts than rows."""
        if self.held.rows > n:
            raise StateFormatError(f"{self.held.rows} attempts are not those of {n} rows")

    def check_fields(self) -> None:
        """Check that there are answers where they are kept."""
        table = self.table
        if len(table.codes) and bool(len(table.answers)) != self.answers:
            raise StateFormatError("the answers of a table of attempts do not fit the metric")


def _coded(column: Column) -> tuple[Array, Ints]:
    places, labels = coded_labels(column)
    return used_labels(labels, places)


def _values(column: Column) -> list[object]:
    known = column.vocabulary
    values: list[object] = (column.values if known is None else known[column.values]).tolist()
    return values
