"""Columns read once for all schemas: as the user passed them before, canonical after."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.columns.batch import WEIGHT
from streammetrics.core.columns.column import either
from streammetrics.core.columns.schema import NO_ROWS, Field, Rows, joined_facts, reject
from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.columns.schema import Facts, Schema
    from streammetrics.core.types import Bools, Columns, Floats, Places, ReadColumn

    Mask = Bools


class SharedReading:
    """One reading of columns for several schemas; it refuses what any of them refuses."""

    __slots__ = ("_alone", "_checks", "_conditions", "_fields", "_ignores", "_omits", "_unweighted")

    def __init__(self, schemas: Sequence[Schema]) -> None:
        plain = schemas[0].plain
        self._fields = plain.fields
        self._alone = schemas[0].fields if len(schemas) == 1 else ()
        self._ignores = any(type(field).ignored is not Field.ignored for field in self._fields)
        self._omits = plain.nan_policy == "omit"
        self._unweighted = next((s.unweighted for s in schemas if s.unweighted), "")
        fields = dict.fromkeys(
            (place, field) for s in schemas for place, field in enumerate(s.fields)
        )
        self._checks = tuple(fields)  # fields, each with the place of the one that reads for it
        self._conditions = tuple(dict.fromkeys(each for s in schemas for each in s.conditions))

    def whole(self, batch: Batch) -> Rows | None:
        """Return the rows of a batch whose fields see at once that all are kept, else ``None``."""
        if not self._alone or batch.has(WEIGHT):
            return None
        every: list[ReadColumn] = []
        facts: Facts = {}
        for field in self._alone:
            found = field.whole(batch)
            if found is None or (facts and found[1] != facts):
                return None
            every += found[0]
            facts = found[1]
        n = len(every[0])
        for column in every:
            if not n or len(column) != n:
                return None
        for condition in self._conditions:
            if not condition.holds(batch):
                return None
        return Rows(tuple(every), None, n, 0, facts)

    def read(self, batch: Batch) -> Rows:
        """Return the validated rows of a batch, without those ignored and those of weight zero."""
        taken, weight, missing = self._taken(batch)
        if batch.n_rows == 0:
            return NO_ROWS
        for place, field in self._checks:
            field.validate(batch, taken[place], missing)
        for condition in self._conditions:
            condition.check(batch, missing)
        rows, n, omitted = None, batch.n_rows, 0
        if weight is not None or missing is not None:
            rows = _kept(batch, weight, missing)
            omitted = 0 if missing is None else int(np.count_nonzero(missing))
            if rows is not None:
                n = rows.size
                weight = None if weight is None else weight[rows]
                if n == 0:
                    return Rows((), None, 0, omitted, {})
        if len(self._fields) == 1:
            finished, facts = self._fields[0].finish(batch, taken[0], rows)
            return Rows(finished, weight, n, omitted, facts)
        every: list[ReadColumn] = []
        facts = {}
        for field, columns in zip(self._fields, taken, strict=True):
            finished, more = field.finish(batch, columns, rows)
            every += finished
            if not facts:
                facts = more
            elif facts != more:
                self._refuse_kinds(batch, field, facts, more)
                facts = joined_facts(facts, more)
        return Rows(tuple(every), weight, n, omitted, facts)

    def _taken(self, batch: Batch) -> tuple[list[Columns], Floats | None, Mask | None]:
        """Return the columns of each field, the weight, and the mask of rows to be left out."""
        taken, absences, missing = [], [], None
        for field in self._fields:
            columns, absent = field.take(batch)
            taken.append(columns)
            if absent is not None:
                absences.append((field.names, absent))
            if self._ignores and (ignored := field.ignored(columns)) is not None:
                missing = either(missing, ignored)
        weight = batch.weight()
        if weight is not None:
            if self._unweighted:
                title = batch.title(WEIGHT)
                raise InvalidBatchError(f"{title} is given, but {self._unweighted} take no weights")
            if math.isnan(batch.extent(WEIGHT)[0]):
                absences.append(((WEIGHT,), np.isnan(weight)))
        for names, absent in absences:
            if not self._omits:
                _refuse_missing(batch, names, missing)
            missing = either(missing, absent)
        return taken, weight, missing

    def _refuse_kinds(self, batch: Batch, field: Field, facts: Facts, more: Facts) -> None:
        """Raise where two columns that are to hold the same labels hold other kinds of them."""
        one, other = facts.get("labels"), more.get("labels")
        if one == other or one is None or other is None or "strings" not in {one, other}:
            return
        before = self._fields[self._fields.index(field) - 1]
        first, second = (batch.title(each.names[0]) for each in (before, field))
        raise InvalidBatchError(
            f"{first} holds {one}, {second} holds {other}: pass both as one kind of labels, such "
            "as names[codes], where names is the array of the classes' names"
        )


def _refuse_missing(batch: Batch, names: tuple[str, ...], before: Mask | None) -> None:
    """Raise where a value is missing in rows that are not left out already."""
    for name in names:
        if batch.has(name) and (mask := _absent(batch.column(name), before)) is not None:
            advice = 'nan_policy="omit" leaves such rows out'
            reject(batch.title(name), "is missing (NaN or null)", mask, advice=advice)


def _absent(column: Column, before: Mask | None) -> Mask | None:
    """Return the mask of what is missing of rows that are not left out already."""
    nans = np.isnan(column.values) if column.values.dtype.kind == "f" else None
    mask = either(nans, column.nulls)
    if mask is not None and before is not None:
        mask = mask & ~before.reshape(-1, *[1] * (mask.ndim - 1))
    return mask if mask is not None and mask.any() else None


def _kept(batch: Batch, weight: Floats | None, missing: Mask | None) -> Places | None:
    """Return the rows that are neither missing nor of weight zero, ``None`` for all."""
    keep = None if missing is None else ~missing
    if weight is not None:
        _check_weight(batch, weight, missing)
        if not batch.extent(WEIGHT)[0] > 0:
            keep = weight > 0 if keep is None else keep & (weight > 0)
    return None if keep is None else np.flatnonzero(keep)


def _check_weight(batch: Batch, weight: Floats, missing: Mask | None) -> None:
    low, high = batch.extent(WEIGHT)
    if low >= 0 and high < math.inf:
        return
    wrong = ~((weight >= 0) & (weight < math.inf))
    if missing is not None:
        wrong &= ~missing
    if wrong.any():
        reject(batch.title(WEIGHT), "is negative or infinite", wrong, weight)
