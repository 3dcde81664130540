"""Rows of rankings: dictionary-encoded ids, their unions, and the rank order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.column import either, unique
from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.labels import label_column
from streammetrics.core.columns.schema import Facts, Field
from streammetrics.core.errors import IncompatibleMetricsError, InvalidBatchError
from streammetrics.core.kernels.reference import mixed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Finished, Kind, Taken
    from streammetrics.core.types import Array, Bools, Columns, Floats, Ints, Places


Values: TypeAlias = "Array"  # sorted distinct ids (int64 or bytes) or relevances (float64)
Codes: TypeAlias = "NDArray[np.int32]"  # indices into `Values`; -1 for a missing value

_MOST = 2**31 - 1  # codes are 32 bits wide
_ODD = 0x9E3779B97F4A7C15  # 2**64 / golden ratio


class Coded(NamedTuple):
    """A dictionary-encoded column: ``values[codes]``; code -1 is a missing value."""

    values: Values
    codes: Codes


def coded_ids(column: Column) -> Coded:
    """Encode a column of integers or strings; nulls become -1."""
    if column.vocabulary is not None:
        values, codes = used(column.vocabulary, column.values)
        return Coded(_bytes(values), codes)
    if column.nulls is None:
        return coded_integers(column.values)
    codes = np.full(len(column.values), -1, np.int32)
    there = ~column.nulls
    if not there.any():
        return Coded(np.empty(0, np.int64), codes)
    values, codes[there] = coded_integers(column.values[there])
    return Coded(values, codes)


def coded_integers(values: Array) -> Coded:
    """Encode integers: by a lookup table if their range is small, otherwise by hashing."""
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * len(values):
        distinct, places = unique(values)
        return Coded(distinct.astype(np.int64), places.astype(np.int32))
    offsets = values if low == 0 else values.astype(np.int64) - low
    seen = np.zeros(high - low + 1, np.bool_)
    seen[offsets] = True
    distinct = np.flatnonzero(seen)
    table = np.cumsum(seen, dtype=np.int32)
    table -= 1
    return Coded(distinct + low, table.take(offsets))


def coded_relevances(relevance: Floats) -> Coded:
    """Encode finite relevances; nan becomes -1."""
    there = relevance == relevance  # noqa: PLR0124 - nan differs from itself
    if not there.all():
        codes = np.full(len(relevance), -1, np.int32)
        if not there.any():
            return Coded(np.empty(0), codes)
        values, codes[there] = coded_relevances(relevance[there])
        return Coded(values, codes)
    if abs(relevance).max() < 2**15:
        whole = relevance.astype(np.int64)
        if (whole == relevance).all():
            integers, codes = coded_integers(whole)
            return Coded(integers.astype(np.float64), codes)
    distinct, places = unique(relevance + 0.0)  # turns -0.0 into 0.0
    return Coded(distinct, places.astype(np.int32))


def used(values: Values, *columns: Array) -> tuple[Any, ...]:
    """Return the values that occur in any column of codes, and the columns re-encoded."""
    seen = np.zeros(len(values) + 1, np.bool_)
    for codes in columns:
        seen[codes] = True
    seen[-1] = False  # set by the code -1
    if seen[:-1].all():
        return (values, *(codes.astype(np.int32, copy=False) for codes in columns))
    table = np.cumsum(seen, dtype=np.int32)
    table -= 1
    table[-1] = -1
    return (values[seen[:-1]], *(table.take(codes) for codes in columns))


def union(parts: Sequence[Values]) -> tuple[Values, list[Codes | None]]:
    """Return the union of all values, and each part's places in it; ``None`` if unchanged."""
    some = [values for values in parts if len(values)]
    if not some:
        return parts[0], [None] * len(parts)
    kinds = {values.dtype.kind for values in some}
    if len(kinds) > 1:
        raise IncompatibleMetricsError("ids are integers on one side and strings on the other")
    largest = max(some, key=len)
    rest = [values for values in some if values is not largest]
    rest = [values for values in rest if not _same(values, largest)]
    merged = _with(largest, np.sort(np.concatenate(rest))) if rest else largest
    if len(merged) > _MOST:
        raise InvalidBatchError(f"there are more than {_MOST:,} distinct ids")
    places: list[Codes | None] = []
    for values in parts:
        if len(values) in {0, len(merged)}:  # a subset of the same size is the whole union
            places.append(None)
        else:
            places.append(np.searchsorted(merged, values).astype(np.int32))
    return merged, places


def moved(codes: Codes, places: Codes | None) -> Codes:
    """Return codes that refer to a union; -1 stays -1."""
    return codes if places is None else np.append(places, np.int32(-1)).take(codes)


def _same(values: Values, others: Values) -> bool:
    return len(values) == len(others) and bool((values == others).all())


def _with(values: Values, more: Values) -> Values:
    """Return the sorted union of two sorted arrays, of which the first has no duplicates."""
    more = more[np.append(True, more[1:] != more[:-1])]
    width = np.promote_types(values.dtype, more.dtype)
    values, more = values.astype(width, copy=False), more.astype(width, copy=False)
    at = np.searchsorted(values, more)
    new = values.take(at, mode="clip") != more
    return np.insert(values, at[new], more[new])


def narrowest(values: Values) -> Values:
    """Return bytes with the smallest sufficient width; an empty bytes array becomes int64."""
    if values.dtype.kind != "S":
        return values
    if not len(values):
        return np.empty(0, np.int64)
    return values.astype(f"S{max(1, int(np.strings.str_len(values).max()))}", copy=False)


def _bytes(texts: NDArray[np.str_]) -> Values:
    if not len(texts):
        return np.empty(0, np.int64)
    try:
        return narrowest(texts.astype("S"))
    except UnicodeEncodeError:  # not ASCII
        return narrowest(np.strings.encode(texts, "utf-8", "surrogatepass"))


def decoded(values: Values) -> list[int] | list[str]:
    """Return ids as Python integers or strings; raise `UnicodeDecodeError` for invalid UTF-8."""
    if values.dtype.kind == "S":
        return np.strings.decode(values, "utf-8", "surrogatepass").tolist()  # type: ignore[no-any-return]
    return values.tolist()  # type: ignore[no-any-return]


def hashed(values: Values) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each id, which depends only on the id."""
    if values.dtype.kind != "S":
        return mixed(values.astype(np.int64, copy=False).view(np.uint64))
    width = -(-values.dtype.itemsize // 8)
    words = values.astype(f"S{8 * width}").view("<u8").reshape(len(values), width)
    powers = np.multiply.accumulate(np.full(width, _ODD, np.uint64))
    return mixed(np.einsum("ij,j->i", words, powers))  # zero padding does not change the sum


_MAGNITUDE = np.int64((1 << 63) - 1)
Keys: TypeAlias = "NDArray[np.uint64]"


class Results(NamedTuple):
    """Retrieved rows: query index, score, document index and grade index (-1 if missing)."""

    query: Array
    score: Array
    doc: Array
    grade: Array

    def at(self, rows: Places | Bools) -> Results:
        """Return the selected rows."""
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        return Results(*(column.take(rows) for column in self))


def descending(score: Floats) -> Keys:
    """Return integers in the reverse order of the scores; there must be no -0.0."""
    bits = score.view(np.int64)
    bits = np.where(bits < 0, bits ^ _MAGNITUDE, bits) if bits.size and bits.min() < 0 else bits
    return (_MAGNITUDE - bits).view(np.uint64)  # intended wrap-around for negative scores


def ranked(results: Results, n_queries: int, k: int | None) -> Results:
    """Return results by query and rank: descending score, then document, then grade.

    With `k`, results that score less than the k-th best of their query are dropped; ties with it
    are kept. Queries are processed in blocks, so that scratch memory is small relative to the rows.
    """
    counts = np.bincount(results.query, minlength=n_queries)
    if len(results.query) <= tuning.RANKED_ROWS:
        return _ranked(results, counts, 0, k)
    block = np.cumsum(counts) // tuning.RANKED_ROWS
    starts = np.append(run_starts(block), n_queries)
    parts = []
    for start, stop in pairwise(starts.tolist()):
        rows = np.flatnonzero((results.query >= start) & (results.query < stop))
        parts.append(_ranked(results.at(rows), counts[start:stop], start, k))
    return Results(*map(np.concatenate, zip(*parts, strict=True)))


def _ranked(results: Results, counts: Ints, start: int, k: int | None) -> Results:
    """Rank the results of the queries from `start` on, which have `counts` results each."""
    places = results.query - start
    shift = np.uint64(max(1, (len(counts) - 1).bit_length()))
    packed = descending(results.score)
    packed >>= shift
    packed |= places.astype(np.uint64) << (np.uint64(64) - shift)
    if k is not None and counts.max(initial=0) > k:
        last = np.cumsum(counts) - counts + np.minimum(counts, k) - 1
        worst = np.sort(packed).take(last, mode="clip")  # clip: a query may have no results
        first = np.flatnonzero(packed <= worst.take(places))
        results, packed = results.at(first), packed.take(first)
    results = results.at(_order(results, packed))
    return results if k is None else _within(results, k)


def _order(results: Results, packed: Keys) -> Places:
    order = np.argsort(packed)
    packed = packed.take(order)
    same = packed[1:] == packed[:-1]
    if same.any():  # equal scores, or scores that differ only in the bits shifted out
        unsure = np.zeros(len(packed), np.bool_)
        unsure[1:] = same
        unsure[:-1] |= same
        places = np.flatnonzero(unsure)
        rows = order.take(places)
        sure = descending(results.score.take(rows))
        by = (-results.grade.take(rows), -results.doc.take(rows), sure, packed.take(places))
        order[places] = rows.take(np.lexsort(by))
    return order


def _within(results: Results, k: int) -> Results:
    """Return the first k results of each query and ties with the k-th, from ranked results."""
    starts = run_starts(results.query)
    counts = np.diff(starts, append=len(results.query))
    worst = results.score.take(starts + np.minimum(counts, k) - 1)
    kept = results.score >= np.repeat(worst, counts)
    return results if kept.all() else results.at(kept)


def run_starts(*columns: NDArray[np.generic]) -> Places:
    """Return where a row differs from the previous one in any of the columns."""
    new = np.ones(len(columns[0]), np.bool_)
    new[1:] = columns[0][1:] != columns[0][:-1]
    for column in columns[1:]:
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)


def counted(cells: Ints, times: Ints) -> tuple[Ints, Ints]:
    """Return the distinct non-negative cells, and the sum of `times` for each."""
    if int(cells.max(initial=-1)) < 2 * len(cells):
        sums = np.bincount(cells, weights=times)  # exact: counts of rows are below 2**53
        there = np.flatnonzero(sums)
        return there, sums.take(there).astype(np.int64)
    order = np.argsort(cells)
    cells = cells.take(order)
    starts = run_starts(cells)
    return cells.take(starts), np.add.reduceat(times.take(order), starts) if len(cells) else times


@dataclass(frozen=True)
class RankingRows(Field):
    """Rows that are a judgment (relevance), a result (score) or both, of a document for a query.

    A null is a missing value. With `named`, a result must have a document. A weight belongs to the
    query: all rows of a query that have one must agree.
    """

    named: bool = False
    highest: float | None = None  # maximum relevance
    omit: bool = False  # leave out rows whose relevance or score is nan
    partial: bool = False  # allow rows with neither; they belong to another run and are ignored

    names = ("query", "relevance", "score", "doc", "query_weight")
    optional = frozenset({"relevance", "score", "doc", "query_weight"})

    @property
    def kinds(self) -> dict[str, Kind]:
        """``"id"`` for ids, ``"number"`` for numbers."""
        numbers: dict[str, Kind] = dict.fromkeys(("relevance", "score", "query_weight"), "number")
        return {"query": "id", "doc": "id", **numbers}

    @property
    def plain(self) -> RankingRows:
        """The same rows without the metric's restrictions."""
        return replace(self, named=False, highest=None)

    def take(self, batch: Batch) -> Taken:
        """Return ids as columns and numbers as float64, and a mask of rows with a nan."""
        query = id_column(batch, "query")
        doc = id_column(batch, "doc") if batch.has("doc") else None
        if query.nulls is not None:
            _refuse(batch, "query", "is missing (NaN or null)", query.nulls, query, doc)
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
        """Check relevances, documents and weights, and that no row is empty."""
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

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return the columns; missing numbers are nan and missing documents null."""
        query, relevance, score, doc, weight = taken
        facts: Facts = {"query ids": id_kind(query)}
        if doc is None:
            n = len(query.values)
            doc = Column(np.zeros(n, np.int64), np.ones(n, np.bool_), True)
        elif doc.nulls is None or not doc.nulls.all():
            facts["doc ids"] = id_kind(doc)
        if not np.isnan(weight).all():
            facts["query weights"] = "numbers"
        columns = (query, relevance, score, doc, weight)
        return (columns if rows is None else tuple(c[rows] for c in columns)), facts

    def present(self, columns: Columns) -> Columns:
        """Return the rows that have a relevance or a score."""
        _, relevance, score, *_ = columns
        empty = np.isnan(relevance) & np.isnan(score) if self.partial else np.zeros(0, np.bool_)
        return tuple(column[~empty] for column in columns) if empty.any() else columns


def _differing(query: Column, weight: Floats, kept: object) -> Bools:
    """Return which rows have a different weight than the first weighted row of their query."""
    rows = np.flatnonzero(~np.isnan(weight) & kept)
    _, first, places = np.unique(query.values[rows], return_index=True, return_inverse=True)
    found = np.zeros(weight.size, np.bool_)
    found[rows] = weight[rows] != weight[rows[first]][places]
    return found


def id_column(batch: Batch, name: str) -> Column:
    """Return a column of ids, with its nulls."""
    column, missing = label_column(batch, name)
    if column.values.dtype.kind == "b":
        raise InvalidBatchError(f"{batch.title(name)} holds booleans; ids are integers or strings")
    return Column(column.values, missing, column.owned, column.vocabulary)


def id_kind(column: Column) -> str:
    """Return what kind of ids a column holds."""
    return "integers" if column.vocabulary is None else "strings"


def _numbers(batch: Batch, name: str) -> tuple[Floats, Bools | None] | None:
    """Return a column as float64 with nulls as nan, and a mask of the values that were nan."""
    if not batch.has(name):
        return None
    numbers = batch.numeric(name)
    values, nulls = numbers.values, batch.column(name).nulls
    if values.ndim > 1:
        raise InvalidBatchError(
            f"{batch.title(name)} has shape {values.shape}; one number a row is needed"
        )
    if numbers.residual is not None:
        batch.refuse_long(name, "a ranking")
    if numbers.low == numbers.low:  # it is nan where any value is
        return values, None
    wrong = np.isnan(values)
    if nulls is not None:
        wrong &= ~nulls
    return values, wrong if wrong.any() else None


def _refuse(batch: Batch, name: str, what: str, wrong: Bools, query: Column, doc: Any) -> NoReturn:
    """Raise `InvalidBatchError`, naming the first wrong row, its query and its document."""
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
