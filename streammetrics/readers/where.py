"""Filters of rows, written as text: ``column OP value [and column OP value ...]``.

OP is ``=``, ``!=``, ``<``, ``<=``, ``>`` or ``>=``. A value is a number, ``true``, ``false``, a
word, or text in single quotes, in which two quotes stand for one. Text and booleans are only equal
or not. A column whose name is not a word is written in double quotes. A row with a missing value
fulfils no condition on it.
"""

from __future__ import annotations

import math
import operator
import re
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from streammetrics.core.errors import InvalidBatchError
from streammetrics.readers.files import FilteredTable, WrappedPiece
from streammetrics.readers.selection import WantedColumn, spelled

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Sequence

    from streammetrics.core.columns.schema import Kind
    from streammetrics.core.types import Array, Bools, Foreign

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_WORD = re.compile(r"[^\W\d][\w.-]*")
_CONDITION = re.compile(
    rf"""\s*(?:"(?P<quoted>[^"]+)"|(?P<name>{_WORD.pattern}))\s*(?P<operator>==?|!=|<=?|>=?)\s*"""
    r"""(?:'(?P<text>(?:[^']|'')*)'|(?P<bare>[^\s'"=!<>]+))(?P<more>\s+and\s+|\s*$)""",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NAMED = {"true": True, "false": False}
_RESERVED = {"null", "none", "nan", "and", "or", "not", "in", "is"}
_KINDS = {"b": "booleans", "i": "numbers", "u": "numbers", "f": "numbers", "O": "text"}


@dataclass(frozen=True)
class RowCondition:
    """A condition on the values of one column; text and booleans are only equal or not."""

    column: str
    operator: str
    value: bool | int | Decimal | str

    def __str__(self) -> str:
        value = repr(self.value) if isinstance(self.value, str) else str(self.value).lower()
        return f"{self.column} {self.operator} {value}"

    @property
    def kind(self) -> str:
        """What the column has to hold."""
        if isinstance(self.value, str):
            return "text"
        return "booleans" if isinstance(self.value, bool) else "numbers"

    @property
    def _spells(self) -> bool:
        """Whether the value is text that spells a number or a boolean."""
        texts = pa.array([str(self.value)])
        return spelled(texts) is not texts

    def wanted(self, columns: Collection[WantedColumn]) -> WantedColumn:
        """Return the column to read: as an input reads it, otherwise as the value says.

        Raises:
            InvalidBatchError: The value is text such as '1', and an input reads such text of the
                column as numbers.
        """
        read: dict[str, Kind] = {"text": "id", "booleans": "label", "numbers": "number"}
        kind = next((c.kind for c in columns if self.column in c.names), read[self.kind])
        if kind == "label" and self.kind == "text" and self._spells:
            raise InvalidBatchError(
                f"--where {self}: an input reads {self.column}, too, and reads such text as a "
                f"number or boolean: write {self.column} {self.operator} {self.value}"
            )
        return WantedColumn(self.column, (self.column,), kind)

    def holds(self, column: Foreign) -> Bools:
        """Return the mask of the rows that fulfil the condition.

        Raises:
            InvalidBatchError: The column holds values of another kind.
        """
        if not isinstance(column, pa.DictionaryArray):
            return self._compared(column, labels=False)
        found = np.append(self._compared(column.dictionary, labels=True), False)
        places = column.indices.fill_null(len(found) - 1)
        return np.asarray(found[np.asarray(places)], np.bool_)

    def _compared(self, column: Foreign, *, labels: bool) -> Bools:
        values, missing = _values(column)
        if missing.all():
            return np.zeros(len(values), np.bool_)
        kind = _KINDS.get(values.dtype.kind, f"values of type {getattr(column, 'type', '')}")
        if labels and kind != "text" and self.kind == "text" and not self._spells:
            return np.full(len(values), self.operator == "!=") & ~missing  # other batches have text
        if kind != self.kind:
            raise InvalidBatchError(
                f"--where {self}: {self.column} holds {kind}, which {self.value!r} is not: write "
                "numbers as 5, booleans as true, and text in single quotes"
            )
        found = _OPERATORS[self.operator](values, self._threshold(values.dtype.kind))
        return np.asarray(found & ~missing, np.bool_)

    def _threshold(self, kind: str) -> bool | int | float | str:
        """Return the value to compare with: for integers the next one that decides the same."""
        if not isinstance(self.value, Decimal):
            return self.value
        number = float(self.value)
        if kind not in "iu" or math.isinf(number):
            return number
        below, above = math.floor(self.value), math.ceil(self.value)
        if below < above and self.operator in {"=", "==", "!="}:
            return math.inf  # which no integer equals
        return above if self.operator in {"<", ">="} else below


def _values(column: Foreign) -> tuple[Array, Bools]:
    """Return a column as an array, and the mask of missing values."""
    if isinstance(column, np.ndarray):
        values, missing = column, np.zeros(len(column), np.bool_)
    else:
        missing, types, kind = np.asarray(column.is_null()), pa.types, column.type
        fill: object = "" if types.is_string(kind) or types.is_large_string(kind) else 0
        if types.is_boolean(kind):
            fill = False
        elif fill == 0 and not (types.is_integer(kind) or types.is_floating(kind)):
            return np.zeros(len(column), "V"), missing  # dates, decimals, lists
        values = (column.fill_null(fill) if column.null_count else column).to_numpy(
            zero_copy_only=False
        )
    return values, missing | np.isnan(values) if values.dtype.kind == "f" else missing


def conditions(text: str) -> tuple[RowCondition, ...]:
    """Parse the text of a filter.

    Raises:
        ValueError: The text has another form, or may mean several things.
    """
    found, place = [], 0
    while True:
        match = _CONDITION.match(text, place)
        if match is None:
            raise ValueError(
                f"expected column OP value [and ...], e.g. age >= 18 and city = 'New York', at "
                f"{text[place:] or 'the end'!r}"
            )
        column, value = match["quoted"] or match["name"], match["text"]
        value = _value(match["bare"]) if value is None else value.replace("''", "'")
        condition = RowCondition(column, match["operator"], value)
        if condition.kind != "numbers" and condition.operator not in {"=", "==", "!="}:
            raise ValueError(f"{condition.operator} is of numbers: {value!r} is only equal or not")
        found.append(condition)
        place = match.end()
        if not match["more"].strip():
            return tuple(found)


def _value(text: str) -> bool | int | Decimal | str:
    """Return what a value without quotes means."""
    if text.lower() in _RESERVED:
        raise ValueError(
            f"{text} is not a value: write text in quotes; no comparison is true of a missing value"
        )
    if text in _NAMED:
        return _NAMED[text]
    if _NUMBER.fullmatch(text):
        return Decimal(text) if {*text} & {*".eE"} else int(text)
    if not _WORD.fullmatch(text):
        raise ValueError(f"{text} is not a number or a word: write text in single quotes")
    return text


@dataclass(frozen=True)
class FilteredPiece(WrappedPiece):
    """The rows of a piece that fulfil all conditions.

    Attributes:
        piece: The piece, whose tables have the columns of the conditions.
        filters: The conditions.
        kept: The columns that are read beyond the conditions, by title.
    """

    filters: tuple[RowCondition, ...]
    kept: frozenset[str]

    def tables(self, batch_rows: int) -> Generator[tuple[int, Foreign], None, None]:
        """Yield the number of rows before they are filtered, and the columns of the rest."""
        with closing(self.piece.tables(batch_rows)) as tables:
            for rows, table in tables:
                mask = np.ones(rows, np.bool_)
                for each in self.filters:
                    mask &= each.holds(table[each.column])
                columns = {title: table[title] for title in table if title in self.kept}
                if not mask.all():
                    columns = {title: _filtered(column, mask) for title, column in columns.items()}
                yield rows, FilteredTable(columns, np.flatnonzero(mask))


def _filtered(column: Foreign, mask: Bools) -> Foreign:
    return column[mask] if isinstance(column, np.ndarray) else column.filter(pa.array(mask))


def of_conditions(
    columns: dict[str, WantedColumn], filters: Sequence[RowCondition]
) -> dict[str, WantedColumn]:
    """Return the columns with those of the conditions."""
    more = {f"where {each.column}": each.wanted(columns.values()) for each in filters}
    return {**columns, **more}
