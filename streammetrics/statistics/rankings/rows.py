"""Ranking rows in: query, relevance, score, document and weight, most of which may be left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from streammetrics.core.columns.column import either
from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.labels import label_column
from streammetrics.core.columns.schema import Facts, Field
from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Finished, Kind, Taken
    from streammetrics.core.types import Bools, Columns, Floats, Places


@dataclass(frozen=True)
class RankingRows(Field):
    """One row is a judgment (relevance), a result (score) or both, of a document for a query.

    A null is a value left out. With `named`, a result must have a document. A weight is of the
    query: all rows that say one say the same.
    """

    named: bool = False
    highest: float | None = None  # the largest relevance there may be
    omit: bool = False  # leave rows out whose relevance or score is nan
    partial: bool = False  # a row with neither is another run's, and nothing to this one

    names = ("query", "relevance", "score", "doc", "query_weight")
    optional = frozenset({"relevance", "score", "doc", "query_weight"})

    @property
    def kinds(self) -> dict[str, Kind]:
        """Ids and numbers."""
        numbers: dict[str, Kind] = dict.fromkeys(("relevance", "score", "query_weight"), "number")
        return {"query": "id", "doc": "id", **numbers}

    @property
    def plain(self) -> RankingRows:
        """The same rows, whatever the metric asks of them."""
        return replace(self, named=False, highest=None)

    def take(self, batch: Batch) -> Taken:
        """Return ids as columns and numbers as float64, and where a number is nan."""
        query = _ids(batch, "query")
        doc = _ids(batch, "doc") if batch.has("doc") else None
        if query.nulls is not None:
            _refuse(batch, "query", "is missing", query.nulls, query, doc)
        found = {name: _numbers(batch, name) for name in ("relevance", "score", "query_weight")}
        if found["relevance"] is None and found["score"] is None and not self.partial:
            raise InvalidBatchError(
                f"a ranking needs {batch.title('relevance')}, {batch.title('score')} or both"
            )
        nothing = np.full(batch.n_rows, np.nan)
        taken = dict.fromkeys(found, nothing)
        missing = None
        for name, each in found.items():
            if each is None:
                continue
            taken[name], wrong = each
            if wrong is not None:
                if not self.omit:
                    _refuse(batch, name, "is NaN", wrong, query, doc)
                missing = either(missing, wrong)
        return (query, taken["relevance"], taken["score"], doc, taken["query_weight"]), missing

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:
        """Check that relevances are finite, that no row is empty and that documents are there."""
        query, relevance, score, doc, weight = taken
        kept = True if missing is None else ~missing
        judged, retrieved = ~np.isnan(relevance), ~np.isnan(score)
        checks = [
            (np.isinf(relevance), "relevance", "is infinite"),
        ]
        if not self.partial:
            neither = f"and {batch.title('score')} are both missing"
            checks.append((~judged & ~retrieved, "relevance", neither))
        if self.highest is not None:
            high = (relevance > self.highest) & judged
            checks.append((high, "relevance", f"is above max_grade={self.highest:g}"))
        if self.named:
            unnamed = True if doc is None else doc.nulls
            if unnamed is not None:
                what = 'is missing, and ties="doc" orders equal scores by it,'
                checks.append((retrieved & unnamed, "doc", what))
        if batch.has("query_weight"):
            bad = (weight < 0) | np.isinf(weight)
            checks.append((bad, "query_weight", "is not a weight, finite and 0 or more,"))
            what = "is not the one weight of its query"
            checks.append((_differing(query, weight, kept), "query_weight", what))
        for wrong, name, what in checks:
            if (wrong & kept).any():
                _refuse(batch, name, what, wrong & kept, query, doc)

    def finish(
        self,
        batch: Batch,  # noqa: ARG002 - the columns say all
        taken: Columns,
        rows: Places | None,
    ) -> Finished:
        """Return the columns, numbers nan and documents null where there is none."""
        query, relevance, score, doc, weight = taken
        facts: Facts = {"query ids": _kind(query)}
        if doc is None:
            n = len(query.values)
            doc = Column(np.zeros(n, np.int64), np.ones(n, np.bool_), True)
        elif doc.nulls is None or not doc.nulls.all():
            facts["doc ids"] = _kind(doc)
        if not np.isnan(weight).all():
            facts["query weights"] = "numbers"
        columns = (query, relevance, score, doc, weight)
        return (columns if rows is None else tuple(c[rows] for c in columns)), facts

    def present(self, columns: Columns) -> Columns:
        """Return the rows that say anything."""
        _, relevance, score, *_ = columns
        empty = np.isnan(relevance) & np.isnan(score) if self.partial else np.zeros(0, np.bool_)
        return tuple(column[~empty] for column in columns) if empty.any() else columns


def _differing(query: Column, weight: Floats, kept: object) -> Bools:
    """Return which rows say another weight than the first row of their query that says one."""
    rows = np.flatnonzero(~np.isnan(weight) & kept)
    _, first, places = np.unique(query.values[rows], return_index=True, return_inverse=True)
    found = np.zeros(weight.size, np.bool_)
    found[rows] = weight[rows] != weight[rows[first]][places]
    return found


def _ids(batch: Batch, name: str) -> Column:
    column, missing = label_column(batch, name)
    if column.values.dtype.kind == "b":
        raise InvalidBatchError(f"{batch.title(name)} holds booleans; ids are integers or strings")
    return Column(column.values, missing, column.owned, column.vocabulary)


def _kind(column: Column) -> str:
    return "integers" if column.vocabulary is None else "strings"


def _numbers(batch: Batch, name: str) -> tuple[Floats, Bools | None] | None:
    """Return a column as float64, nan where null, and where it was nan of its own."""
    if not batch.has(name):
        return None
    values, nulls = batch.numbers(name), batch.column(name).nulls
    if values.ndim > 1:
        raise InvalidBatchError(
            f"{batch.title(name)} has shape {values.shape}; one number a row is needed"
        )
    batch.refuse_long(name, "a ranking")
    wrong = values != values  # noqa: PLR0124 - nan differs from itself
    if nulls is not None:
        wrong &= ~nulls
    return values, wrong if wrong.any() else None


def _refuse(batch: Batch, name: str, what: str, wrong: Bools, query: Column, doc: Any) -> NoReturn:
    """Raise, naming the first row, its query and its document."""
    first, count = int(np.argmax(wrong)), int(np.count_nonzero(wrong))
    shown = [f"row {first}"]
    for title, column in (("query", query), ("document", doc)):
        if column is not None and (column.nulls is None or not column.nulls[first]):
            value = column.values[first]
            text = value if column.vocabulary is None else column.vocabulary[value]
            shown.append(f"{title} {text.item()!r}")
    title = batch.title(name)
    message = f"{title} {what} in {count} row{'s' * (count != 1)}, first in {', '.join(shown)}"
    raise InvalidBatchError(message, title, first)
