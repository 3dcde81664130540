"""Keys as text: what a group is named by, of several columns and of any kind, in one string.

A key is a JSON list with an entry for each column: a string, an integer, true or false, ``null``
where the value is missing, ``{"date": "2026-11-22"}``, or for a bin its two edges,
``{"bin": [18, 30]}``, the outer ones null. Equal keys are equal text, so they can be
sorted, joined and written as labels are; for people they are sorted by their values.

Units of a sample have integers as keys: their hashes with the highest bit set. If there are too
many, they are united in groups 0 to 63.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from dataclasses import dataclass, field
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.batch import COUNTS
from streammetrics.core.columns.conversion import Column, encoded_texts
from streammetrics.core.columns.schema import (
    NEGATIVE,
    NO_ROWS,
    Facts,
    Field,
    Rows,
    Schema,
    SharedReading,
)
from streammetrics.core.counting import are_moved, rows_by_group
from streammetrics.core.errors import Hint, InvalidBatchError, StateFormatError
from streammetrics.core.feeding.plan import Plan
from streammetrics.core.state.arrays import json_text
from streammetrics.statistics.points import label_hashes, text_hashes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Finished, Taken
    from streammetrics.core.types import Array, Bools, Columns, Floats, Ints, Places

GROUPS = 64  # of units, by the lowest bits of their hashes
OTHER = ""  # the key of what was folded away, which is no list

_RANKS = {bool: 0, int: 1, str: 3}


class Bin(NamedTuple):
    """A range of numbers, ``low <= x < high``; an edge that is None is infinitely far."""

    low: float | None
    high: float | None

    def __str__(self) -> str:
        if self.low is None:
            return f"< {self.high}"
        return f">= {self.low}" if self.high is None else f"[{self.low}, {self.high})"


Part = str | int | bool | datetime.date | Bin | None


def encoded(part: Part) -> str:
    """Return one part of a key as JSON."""
    if type(part) is str:
        return encode_basestring_ascii(part)
    if type(part) is int:
        return str(part)
    if isinstance(part, Bin):
        return f'{{"bin":[{_edge(part.low)},{_edge(part.high)}]}}'
    if isinstance(part, datetime.date):
        return f'{{"date":"{part.isoformat()}"}}'
    if isinstance(part, str):
        return encode_basestring_ascii(part)
    return "null" if part is None else str(part).lower()  # true or false


def _edge(edge: float | None) -> str:
    return "null" if edge is None else json.dumps(edge)


def text_of(parts: Iterable[str]) -> str:
    """Return the key whose parts are `encoded` so."""
    return f"[{','.join(parts)}]"


def parts_of(text: str) -> tuple[Part, ...] | None:
    """Return the parts of a key, None of `OTHER`."""
    if text == OTHER:
        return None
    return tuple(map(_part, json.loads(text)))


def parts_of_each(texts: Sequence[str]) -> list[tuple[Part, ...] | None]:
    """Return the parts of many keys, which are read as one list.

    >>> parts_of_each(['["a",1]', OTHER])
    [('a', 1), None]
    """
    text = f"[{','.join([text or 'null' for text in texts])}]"
    found = json.loads(text)
    if "{" not in text:
        return [None if parts is None else tuple(parts) for parts in found]
    return [None if parts is None else tuple(map(_part, parts)) for parts in found]


def _part(value: Any) -> Part:
    if isinstance(value, dict):
        if "date" in value:
            return datetime.date.fromisoformat(value["date"])
        return Bin(*value["bin"])
    part: Part = value
    return part


def checked(texts: Sequence[str], width: int) -> None:
    """Raise `StateFormatError` where a text of a state is no key of so many columns."""
    for text in texts:
        if not _is_key(text, width):
            raise StateFormatError(f"{str(text)[:60]!r} is not a key of {width} columns")


@lru_cache(maxsize=1 << 14)  # a live state has the same keys in each of its panes
def _is_key(text: str, width: int) -> bool:
    try:
        parts = parts_of(text)
        return parts is None or (
            len(parts) == width and text == text_of(map(encoded, parts)) and _sound(parts)
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False


def _sound(parts: tuple[Part, ...]) -> bool:
    return all(
        math.isfinite(edge)
        for part in parts
        if isinstance(part, Bin)
        for edge in part
        if edge is not None
    )


def order(part: Part) -> tuple[object, ...]:
    """Return what parts are sorted by: values of one kind by size, the missing one last."""
    if part is None:
        return (9,)
    if isinstance(part, Bin):
        return (2, -math.inf if part.low is None else part.low)
    if isinstance(part, datetime.date):
        return (4, part.isoformat())
    return (_RANKS[type(part)], part)


def lowest(texts: Array, most: int) -> Bools:
    """Return a mask of those `most` keys whose hashes are lowest; `OTHER` is not among them.

    A key among the lowest of all is among the lowest of any part of them, so that parts can be
    cut before they are joined.
    """
    keep = texts != OTHER if texts.dtype.kind == "U" else np.ones(len(texts), np.bool_)
    places = np.flatnonzero(keep)
    if places.size > most:
        hashes = [
            int.from_bytes(hashlib.blake2b(str(text).encode(), digest_size=8).digest(), "little")
            for text in texts[places].tolist()
        ]
        kept = places[np.argsort(np.array(hashes, np.uint64), kind="stable")[:most]]
        keep = np.zeros(len(texts), np.bool_)
        keep[kept] = True
    return keep


def unit_keys(units: Array) -> Ints:
    """Return a key of each unit, its hash, which is negative; that of a group is not."""
    return _negative(label_hashes(units, 0))


def text_keys(units: object) -> tuple[Ints, Array | None, Literal["text"]] | None:
    """Return the key of each row's unit, or of labels and the label of each row, of plain strings.

    A key is a hash of the text, so that texts need not be compared. Returns ``None`` for any other
    column.
    """
    if isinstance(units, np.ndarray) and units.ndim == 1 and units.dtype.kind == "U":
        return (unit_keys(units), None, "text") if units.dtype.isnative and units.size else None
    texts = encoded_texts(units)
    hashes = None if texts is None else text_hashes(texts[0], 0)
    return None if texts is None or hashes is None else (_negative(hashes), texts[1], "text")


def _negative(hashes: NDArray[np.uint64]) -> Ints:
    return (hashes | np.uint64(1 << 63)).view(np.int64)


def united(keys: Ints) -> tuple[Ints, Places]:
    """Return the groups of units, sorted, and the place of each key among them.

    >>> united(np.array([-3, -1, 0, 63]))
    (array([ 0, 61, 63]), array([1, 2, 0, 2]))
    """
    return np.unique(keys & (GROUPS - 1), return_inverse=True)


def too_many(texts: Sequence[str], titles: Sequence[str], most: int) -> InvalidBatchError:
    """Return the error of too many groups, which names the column they come from."""
    columns = list(zip(*(parts for text in texts if (parts := parts_of(text))), strict=True))
    counts = {title: len(set(values)) for title, values in zip(titles, columns, strict=True)}
    worst = max(counts, key=lambda title: counts[title])
    return InvalidBatchError(
        f"by {', '.join(map(repr, titles))} there are {len(texts):,} slices and more, beyond the "
        f"limit of {most:,}: {worst!r} alone has {counts[worst]:,} values",
        hint=Hint(
            "leave it out, bin it with {bins}, or raise the limit, as {max_slices}",
            bins=worst,
            max_slices=10 * most,
        ),
    )


KEY = "by"  # the canonical name of the column of keys
_RUN = 24  # average number of rows per key from which rows are ordered


@dataclass(slots=True)
class KeyColumn(Column):
    """Keys with what all rows must agree on, such as the kind of each part of the keys."""

    facts: Facts | None = None

    def __getitem__(self, rows: slice | Array) -> KeyColumn:
        """Return some of the rows; the vocabulary and the facts stay whole."""
        owned = self.owned or not isinstance(rows, slice)
        return KeyColumn(self.values[rows], None, owned, self.vocabulary, self.facts)


@dataclass(frozen=True)
class Key(Field):
    """A column of keys, integers or text, none of them missing."""

    name: str = KEY

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]  # read-only where the base only declares
        """The one column."""
        return (self.name,)

    def take(self, batch: Batch) -> Taken:
        """Return the keys."""
        column = batch.column(self.name)
        text = column.vocabulary is not None
        if column.nulls is not None or column.values.ndim > 1 or column.values.dtype.kind != "i":
            found = "text with nulls" if text else f"{column.values.dtype}{column.values.shape}"
            raise InvalidBatchError(
                f"{batch.title(self.name)} is {found}; keys are integers or text"
            )
        return (column,), None

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return the keys of the kept rows, and whether they are text or what their facts say."""
        (column,) = taken
        facts = column.facts if isinstance(column, KeyColumn) else None
        if facts is None:
            facts = {"keys": "integers" if column.vocabulary is None else "text"}
        kept = column if rows is None else column[rows]
        return (Column(kept.values, None, kept.owned, kept.vocabulary),), dict(facts)


@dataclass(frozen=True)
class KeyedSchema(Schema):
    """The rows that a schema keeps, each with its key and with the facts that it is party to.

    What all rows of a metric must agree on (the kind of labels, say) is said of a batch; the rows
    of a key may be party to less of it: to no negative label, where they have only positive ones.
    """

    of: Schema = field(kw_only=True)

    def present(self, columns: Columns) -> Columns:
        """Return keys, facts, and the columns as the statistics take them."""
        return (columns[0], columns[-1], *self.of.present(columns[1:-1]))


@dataclass(frozen=True)
class LeftOutSchema(Schema):
    """The keys of the rows that a schema leaves out, and counts as omitted."""

    @property
    def plain(self) -> Schema:
        """What is read: not what the schema keeps."""
        return LeftOutSchema(super().plain.fields, self.nan_policy, models=self.models)

    def present(self, columns: Columns) -> Columns:
        """Return keys and facts."""
        return columns


class KeyedReading(SharedReading):
    """Reads rows with their keys and facts."""

    __slots__ = ()

    def read(self, batch: Batch) -> Rows:
        """Return keys, columns and facts of the kept rows."""
        columns, weight, n, omitted, facts = super().read(batch)
        if not n:
            return Rows((), None, n, omitted, facts)
        if self._models:  # each of which has the keys again
            width = len(columns) // len(self._models)
            columns = (columns[0], *[c for place, c in enumerate(columns) if place % width])
        if not batch.has(COUNTS):  # which are in the order of the batch
            columns, weight = _by_key(columns, weight)
        mine = _of_values(batch, self._fields[0].names[0], facts)
        party = _parties(mine, columns[1], n)
        return Rows((*columns, party), weight, n, omitted, facts)


class LeftOutReading(SharedReading):
    """Reads the keys of the rows that are left out."""

    __slots__ = ()

    def read(self, batch: Batch) -> Rows:
        """Return the keys of the rows left out, and no facts."""
        (first, *_), _, missing = self._taken(batch)
        if missing is None or not (rows := np.flatnonzero(missing)).size:
            return NO_ROWS
        view, taken = first
        (column,), facts = self._fields[0].finish(view, taken[0], rows)
        return Rows((column, _parties({}, None, rows.size)), None, rows.size, 0, facts)


class GroupedPlan(Plan):
    """A plan of statistics by key."""

    __slots__ = ()

    def _slice_rows(self, batch: Batch) -> int:
        """Return more rows where there are more keys, each of which costs something each time."""
        columns = [batch.column(schema.fields[0].names[0]) for schema in self.schemas]
        texts = [column.vocabulary for column in columns if column.vocabulary is not None]
        keys = max(map(len, texts), default=0)
        return max(tuning.KEYED_ROWS, tuning.KEYED_EACH * keys)

    def _reading(self, schemas: Sequence[Schema]) -> SharedReading:
        left_out = isinstance(schemas[0], LeftOutSchema)
        return LeftOutReading(schemas) if left_out else KeyedReading(schemas)


def _by_key(columns: Columns, weight: Floats | None) -> tuple[Columns, Floats | None]:
    """Return rows ordered by key if each key has many: sums then add runs of rows."""
    key, *others = columns
    values, vocabulary = key.values, key.vocabulary
    given = others if weight is None else [*others, weight]
    if vocabulary is None or not are_moved(given) or len(values) < _RUN * len(vocabulary):
        return columns, weight
    _, (codes, *moved) = rows_by_group(values, len(vocabulary), [values, *given])
    if weight is not None:
        weight = moved.pop()
    return (Column(codes, None, True, vocabulary), *moved), weight


def _of_values(batch: Batch, key: str, facts: Facts) -> Facts:
    """Return the facts that are not about keys."""
    column = batch.column(key)
    told = column.facts if isinstance(column, KeyColumn) else None
    about = {"keys"} if told is None else told.keys()
    return {name: fact for name, fact in facts.items() if name not in about}


def leaves_out(schema: Schema) -> bool:
    """Whether a schema may leave rows out."""
    return schema.nan_policy == "omit" or schema.ignores


def keyed(schema: Schema, name: str = KEY, *, left_out: bool = False) -> Schema:
    """Return the schema of the rows of another with their keys, or of those it leaves out."""
    given = (Key(name), *schema.fields), schema.nan_policy, schema.unweighted, schema.conditions
    if left_out:
        return LeftOutSchema(*given, models=schema.models)
    return KeyedSchema(*given, models=schema.models, of=schema)


def _parties(facts: Facts, codes: Any, n: int) -> Column:
    """Return the facts of each row, as text."""
    if NEGATIVE not in facts:
        return Column(np.zeros(n, np.int8), None, True, np.array([json_text(facts)]))
    # Only of one score a row is there such a fact, and codes 0 and 1 of its labels.
    less = {name: fact for name, fact in facts.items() if name != NEGATIVE}
    texts = [json_text(less), json_text(facts)]
    negative = (codes.values if isinstance(codes, Column) else codes) == 0
    if texts[0] > texts[1]:
        texts.reverse()
        negative = ~negative
    return Column(negative.view(np.int8), None, True, np.array(texts))
