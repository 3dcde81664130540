"""Rows with their keys: the schema of statistics, with a column of keys before the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.batch import COUNTS
from streammetrics.core.columns.conversion import Column
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
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.feeding.many import facts_text
from streammetrics.core.feeding.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Finished, Taken
    from streammetrics.core.types import Array, Columns, Floats, Places

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

    def finish(
        self,
        batch: Batch,  # noqa: ARG002 - the column says all
        taken: Columns,
        rows: Places | None,
    ) -> Finished:
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
        return LeftOutSchema(super().plain.fields, self.nan_policy)

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
        taken, _, missing = self._taken(batch)
        if missing is None or not (rows := np.flatnonzero(missing)).size:
            return NO_ROWS
        (column,), facts = self._fields[0].finish(batch, taken[0], rows)
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
    return schema.nan_policy == "omit" or any(
        getattr(field, "ignore_index", None) is not None for field in schema.fields
    )


def keyed(schema: Schema, name: str = KEY, *, left_out: bool = False) -> Schema:
    """Return the schema of the rows of another with their keys, or of those it leaves out."""
    given: Any = (
        (Key(name), *schema.fields),
        schema.nan_policy,
        schema.unweighted,
        schema.conditions,
    )
    return LeftOutSchema(*given) if left_out else KeyedSchema(*given, of=schema)


def _parties(facts: Facts, codes: Any, n: int) -> Column:
    """Return the facts of each row, as text."""
    if NEGATIVE not in facts:
        return Column(np.zeros(n, np.int8), None, True, np.array([facts_text(facts)]))
    # Only of one score a row is there such a fact, and codes 0 and 1 of its labels.
    less = {name: fact for name, fact in facts.items() if name != NEGATIVE}
    texts = [facts_text(less), facts_text(facts)]
    negative = (codes.values if isinstance(codes, Column) else codes) == 0
    if texts[0] > texts[1]:
        texts.reverse()
        negative = ~negative
    return Column(negative.view(np.int8), None, True, np.array(texts))
