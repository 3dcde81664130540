"""How a statistic's columns are validated: before this module data is raw, after it canonical."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import numpy as np

from streammetrics.core.columns.batch import WEIGHT
from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.conversion import Column

# What a column holds, which tells how text is read: a label may spell an integer or a boolean, an
# id is the text that it is. A column read as several is of the last of its kinds.
Kind = Literal["label", "id", "number"]
KINDS: tuple[Kind, ...] = ("label", "id", "number")

_SHOWN = 6

Facts = dict[str, Any]  # what all rows of one metric must agree on: kind of labels, width, ...


class Rows(NamedTuple):
    """Validated rows: what statistics are updated with."""

    columns: tuple[Any, ...]
    weight: NDArray[np.float64] | None
    n: int
    omitted: int
    facts: Facts


NO_ROWS = Rows((), None, 0, 0, {})


class Field(ABC):
    """One input of a schema, or several that only make sense together."""

    names: tuple[str, ...]
    optional: frozenset[str] = frozenset()  # those of the names that a batch may leave out
    leader: str = ""  # labels whose shape (B, T...) the columns beside them follow

    @property
    def kinds(self) -> dict[str, Kind]:
        """What each of the columns holds."""
        return dict.fromkeys(self.names, "label")

    @abstractmethod
    def take(self, batch: Batch) -> tuple[tuple[Any, ...], NDArray[np.bool_] | None]:
        """Return the converted columns and a mask of the rows where a value is missing."""

    def ignored(self, taken: tuple[Any, ...]) -> NDArray[np.bool_] | None:  # noqa: ARG002 - most fields ignore none
        """Return a mask of rows to be left out whatever else they hold, ``None`` for none."""
        return None

    def validate(self, batch: Batch, taken: tuple[Any, ...], missing: Any) -> None:  # noqa: B027 - most fields have nothing to add
        """Raise where a value that is not missing lies outside the domain."""

    @abstractmethod
    def finish(
        self, batch: Batch, taken: tuple[Any, ...], rows: NDArray[np.intp] | None
    ) -> tuple[tuple[Any, ...], Facts]:
        """Return the canonical columns of the kept `rows` (all if ``None``) and their facts."""


@dataclass(frozen=True)
class Schema:
    """The fields of a statistic, what to do with missing values, and who refuses weights."""

    fields: tuple[Field, ...]
    nan_policy: str = "raise"
    unweighted: str = ""  # what the metrics are called whose rows weigh one each

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the columns, in the documented order."""
        return tuple(name for field in self.fields for name in field.names)

    @property
    def kinds(self) -> dict[str, Kind]:
        """What each of the columns holds."""
        return {name: kind for field in self.fields for name, kind in field.kinds.items()}

    @property
    def optional(self) -> frozenset[str]:
        """Those of the inputs that a batch may leave out."""
        return frozenset().union(*(field.optional for field in self.fields))

    def read(self, batch: Batch) -> Rows:
        """Return the validated rows of a batch, without those ignored and those of weight zero."""
        taken, weight, missing = self._taken(batch)
        if batch.n_rows == 0:
            return NO_ROWS
        for field, columns in zip(self.fields, taken, strict=True):
            field.validate(batch, columns, missing)
        rows, n, omitted = None, batch.n_rows, 0
        if weight is not None or missing is not None:
            rows = _kept(batch, weight, missing)
            omitted = 0 if missing is None else int(np.count_nonzero(missing))
            if rows is not None:
                n = rows.size
                weight = None if weight is None else weight[rows]
                if n == 0:
                    return Rows((), None, 0, omitted, {})
        if len(self.fields) == 1:
            finished, facts = self.fields[0].finish(batch, taken[0], rows)
            return Rows(finished, weight, n, omitted, facts)
        every: list[Any] = []
        facts = {}
        for field, columns in zip(self.fields, taken, strict=True):
            finished, more = field.finish(batch, columns, rows)
            every += finished
            if facts != more and "strings" in (kinds := (facts.get("labels"), more.get("labels"))):
                self._refuse_kinds(batch, *kinds)
            facts = joined(facts, more)
        return Rows(tuple(every), weight, n, omitted, facts)

    def _taken(self, batch: Batch) -> tuple[list[tuple[Any, ...]], Any, Any]:
        """Return the columns of each field, the weight, and the mask of rows to be left out."""
        taken, absences, missing = [], [], None
        for field in self.fields:
            columns, absent = field.take(batch)
            taken.append(columns)
            if absent is not None:
                absences.append((field.names, absent))
            if (ignored := field.ignored(columns)) is not None:
                missing = ignored if missing is None else missing | ignored
        weight = batch.weight()
        if weight is not None:
            if self.unweighted:
                title = batch.title(WEIGHT)
                raise InvalidBatchError(f"{title} is given, but {self.unweighted} take no weights")
            if math.isnan(batch.extent(WEIGHT)[0]):
                absences.append(((WEIGHT,), np.isnan(weight)))
        for names, absent in absences:
            missing = self._missing(batch, names, absent, missing)
        return taken, weight, missing

    def _refuse_kinds(self, batch: Batch, one: Any, other: Any) -> None:
        """Raise where two columns that are to hold the same labels hold other kinds of them."""
        if one is None or other is None:
            return
        first, second = (batch.title(field.names[0]) for field in self.fields)
        raise InvalidBatchError(
            f"{first} holds {one}, {second} holds {other}: pass both as one kind of labels, such "
            "as names[codes], where names is the array of the classes' names"
        )

    def _missing(
        self, batch: Batch, names: tuple[str, ...], absent: NDArray[np.bool_], before: Any
    ) -> NDArray[np.bool_]:
        if self.nan_policy != "omit":
            for name in names:
                if batch.has(name) and (mask := _absent(batch.column(name), before)) is not None:
                    advice = 'nan_policy="omit" leaves such rows out'
                    reject(batch.title(name), "is missing (NaN or null)", mask, advice=advice)
        return absent if before is None else absent | before


def _absent(column: Column, before: Any) -> Any:
    """Return the mask of what is missing of rows that are not left out already."""
    mask: Any = np.isnan(column.values) if column.values.dtype.kind == "f" else None
    if column.nulls is not None:
        mask = column.nulls if mask is None else mask | column.nulls
    if mask is not None and before is not None:
        mask = mask & ~before.reshape(-1, *[1] * (mask.ndim - 1))
    return mask if mask is not None and mask.any() else None


def _kept(batch: Batch, weight: Any, missing: Any) -> NDArray[np.intp] | None:
    """Return the rows that are neither missing nor of weight zero, ``None`` for all."""
    keep = None if missing is None else ~missing
    if weight is not None:
        _check_weight(batch, weight, missing)
        if not batch.extent(WEIGHT)[0] > 0:
            keep = weight > 0 if keep is None else keep & (weight > 0)
    return None if keep is None else np.flatnonzero(keep)


def _check_weight(batch: Batch, weight: NDArray[np.float64], missing: Any) -> None:
    low, high = batch.extent(WEIGHT)
    if low >= 0 and high < math.inf:
        return
    wrong: Any = ~((weight >= 0) & (weight < math.inf))
    if missing is not None:
        wrong &= ~missing
    if wrong.any():
        reject(batch.title(WEIGHT), "is negative or infinite", wrong, weight)


def reject(
    title: str,
    what: str,
    wrong: NDArray[np.bool_],
    values: NDArray[Any] | None = None,
    *,
    rows: NDArray[np.intp] | None = None,
    advice: str = "",
) -> NoReturn:
    """Raise `InvalidBatchError` naming the column, the count and the first offending row."""
    marked: Any = wrong.any(axis=tuple(range(1, wrong.ndim))) if wrong.ndim > 1 else wrong
    first = int(np.argmax(marked))
    value = "" if values is None else f" ({shown(values[first])})"
    row = first if rows is None else int(rows[first])
    count = int(np.count_nonzero(marked))
    message = f"{title} {what} in {count} row{'s' * (count != 1)}, first in row {row}{value}"
    raise InvalidBatchError(f"{message}; {advice}" if advice else message, title, row)


def shown(value: Any) -> str:
    """Return a value as a person would write it, and the first few of a long row."""
    if isinstance(value, np.generic):
        return repr(value.item())
    items = np.asarray(value).tolist()
    if isinstance(items, list) and len(items) > _SHOWN:
        return f"[{', '.join(map(repr, items[:_SHOWN]))}, ... {len(items)} of them]"
    return repr(items)


def joined(facts: Facts, more: Facts) -> Facts:
    """Return what both agree on; raise where they contradict each other."""
    if facts == more or not more:
        return facts
    result = dict(facts)
    for name, value in more.items():
        known = result.setdefault(name, value)
        if known != value or type(known) is not type(value):
            if {known, value} == {"booleans", "integers"}:
                result[name] = "integers"
            else:
                advice = _ADVICE.get(name, "all batches must agree")
                raise InvalidBatchError(
                    f"{name}: {value!r} here, {known!r} in rows seen before; {advice}"
                )
    return result


_ADVICE = {
    "labels": "convert them to one kind",
    "negative label": "pos_label= says which is positive, and all others have one label",
    "columns of scores": "pass (n,) or (n, K) in every batch (0 stands for (n,))",
}
