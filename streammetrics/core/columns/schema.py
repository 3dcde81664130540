"""The inputs of statistics, and the reading and validation of a batch."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, TypeAlias

import numpy as np

from streammetrics.core.columns.batch import COUNTS, WEIGHT
from streammetrics.core.columns.column import either
from streammetrics.core.counting import extent
from streammetrics.core.errors import Hint, InvalidBatchError
from streammetrics.core.types import Columns

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.columns.objects import Preparation
    from streammetrics.core.types import Array, Bools, ClassLabel, Floats, Ints, Places, ReadColumn

    Mask = Bools


# What a column holds decides how text is read: a label may spell an integer or a boolean, an id
# stays text. A column with several uses takes the last of its kinds in this order.
Kind = Literal["label", "id", "number"]
KINDS: tuple[Kind, ...] = ("label", "id", "number")

_SHOWN = 6
_BEYOND = 2.0**63  # counts of a row

Facts = dict[str, Any]  # properties shared by all rows of a metric: kind of labels, width, ...

Taken: TypeAlias = "tuple[Columns, Bools | None]"  # converted columns, mask of missing rows
Finished: TypeAlias = tuple[Columns, Facts]  # canonical columns and their facts
Side: TypeAlias = "tuple[Batch, list[Columns]]"  # the batch of a model, the columns of each field


NEGATIVE = "negative label"  # a fact only of batches that hold such a label


class Rows(NamedTuple):
    """Validated rows, which statistics are updated with."""

    columns: Columns
    weight: Floats | None
    n: int
    omitted: int
    facts: Facts


NO_ROWS = Rows((), None, 0, 0, {})


class Field(ABC):
    """One input of a schema, or several that belong together."""

    names: tuple[str, ...]
    optional: frozenset[str] = frozenset()  # names that a batch may leave out
    leader: str = ""  # the labels whose shape (B, T...) the other columns follow
    sets: tuple[str, ...] = ()  # names of columns whose rows may be sets of `labels`
    labels: tuple[ClassLabel, ...] | None = None
    nested: tuple[tuple[str, str], ...] = ()  # (name, description of a list) of columns of lists
    preparation: Preparation | None = None  # makes the columns that are read of those in `names`

    @property
    def read(self) -> tuple[str, ...]:
        """The names of the columns that are read."""
        return self.names

    def source(self, batch: Batch) -> Batch:
        """Return the batch of the columns that are read."""
        return batch

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kind of each column."""
        return dict.fromkeys(self.names, "label")

    @abstractmethod
    def take(self, batch: Batch) -> Taken:
        """Return the converted columns and a mask of the rows with a missing value."""

    def ignored(self, taken: Columns) -> Bools | None:
        """Return a mask of rows to leave out whatever else they hold; ``None`` for none."""
        return None

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:  # noqa: B027 - most fields have nothing to check
        """Raise if a value that is not missing lies outside the domain."""

    @abstractmethod
    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return the canonical columns of the kept `rows` (all if ``None``) and their facts.

        There is one column for each of `names`, unless they are computed.
        """

    def whole(self, batch: Batch) -> Finished | None:
        """Fast path: return the result of `take`, `validate` and `finish` if every row is kept.

        Returns ``None`` unless it is quick to see that no value is missing or invalid; the caller
        then uses the other methods.
        """
        return None

    @property
    def plain(self) -> Field:
        """The field that reads the same columns without the checks of `validate`.

        Statistics that check the same columns differently share one reading of them.
        """
        return self

    def present(self, columns: Columns) -> Columns:
        """Return the columns in the form the statistic uses, computed row by row."""
        return columns


class Condition(ABC):
    """A requirement on rows beyond those of the fields; hashable."""

    @abstractmethod
    def check(self, batch: Batch, missing: Bools | None) -> None:
        """Raise if a row that is not missing violates the condition."""

    def holds(self, batch: Batch) -> bool:
        """Whether all rows are quickly seen to satisfy the condition; if not, `check` is called."""
        return False


Names: TypeAlias = tuple[tuple[str, str], ...]  # inputs, with their names in a batch


@dataclass(frozen=True)
class Bring:
    """How the columns of each model become the columns of a joint statistic.

    Two instances are equal if their `key` is equal: it identifies the conversion, and the statistic
    whose columns are converted.
    """

    key: Hashable
    columns: Callable[[list[Columns]], Columns] = field(compare=False)


@dataclass(frozen=True)
class Schema:
    """The fields of a statistic, its policy for missing values, and its conditions on rows.

    A row may have several models. The fields are then read once for each of the `models`, given as
    its own inputs with their names in a batch, and a row left out for one is left out for all. A
    statistic of one model gets the columns of the one that is `shown`; a joint statistic gets the
    columns that `bring` makes from those of the models that are.
    """

    fields: tuple[Field, ...]
    nan_policy: str = ""  # "raise" or "omit"; empty: missing values raise, and no parameter omits
    unweighted: str = ""  # name of the metrics in errors, if they take no weights
    conditions: tuple[Condition, ...] = ()
    models: tuple[Names, ...] = ()
    shown: tuple[int, ...] = ()
    bring: Bring | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.fields, tuple):
            raise TypeError(f"Schema({self.fields}): expected a tuple of columns, as in (column,)")

    @cached_property
    def named(self) -> list[tuple[Field, dict[str, str]]]:
        """The fields, of each model if there are several, and its own inputs' names in a batch."""
        return [(each, dict(names)) for names in self.models or ((),) for each in self.fields]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the columns, in the documented order."""
        every = [own.get(name, name) for each, own in self.named for name in each.names]
        return tuple(dict.fromkeys(every))

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kind of each column."""
        return {
            own.get(name, name): kind
            for each, own in self.named
            for name, kind in each.kinds.items()
        }

    @property
    def optional(self) -> frozenset[str]:
        """The inputs that a batch may leave out."""
        return frozenset(own.get(name, name) for each, own in self.named for name in each.optional)

    @property
    def ignores(self) -> bool:
        """Whether rows with some label are left out, or the label of a row."""
        return any(getattr(each, "ignore_index", None) is not None for each in self.fields)

    @cached_property
    def _of_one(self) -> Schema:
        return Schema(self.fields)

    @cached_property
    def makes(self) -> bool:
        """Whether `present` returns other columns than it is given."""
        own = type(self).present is not Schema.present or bool(self.models)
        return own or any(type(each).present is not Field.present for each in self.fields)

    @property
    def plain(self) -> Schema:
        """The schema without checks; equal for schemas that read the same rows."""
        fields = tuple([each.plain for each in self.fields])
        return Schema(fields, self.nan_policy or "raise", models=self.models)

    def present(self, columns: Columns) -> Columns:
        """Return the columns in the form the statistic uses."""
        if self.models:
            width = len(columns) // len(self.models)  # a formula may make others than the inputs
            starts = [width * model for model in self.shown]
            sides = [self._of_one.present(columns[start : start + width]) for start in starts]
            return sides[0] if self.bring is None else self.bring.columns(sides)
        if not self.makes:
            return columns
        if len(self.fields) == 1:
            return self.fields[0].present(columns)
        shown: list[object] = []
        for each in self.fields:
            first = len(shown)
            shown += each.present(columns[first : first + len(each.names)])
        return tuple(shown)


def reject(
    title: str,
    what: str,
    wrong: Bools,
    values: Array | None = None,
    *,
    rows: Places | None = None,
    advice: str | Hint = "",
) -> NoReturn:
    """Raise `InvalidBatchError` with the column, the count and the first offending row."""
    marked = wrong if wrong.ndim == 1 else wrong.reshape(len(wrong), -1).any(axis=1)
    first = int(np.argmax(marked))
    value = "" if values is None else f" ({shown(values[first])})"
    row = first if rows is None else int(rows[first])
    count = int(np.count_nonzero(marked))
    message = f"{title} {what} in {count} row{'s' * (count != 1)}, first in row {row}{value}"
    if isinstance(advice, Hint):
        raise InvalidBatchError(message, title, row, advice)
    raise InvalidBatchError(f"{message}; {advice}" if advice else message, title, row)


def reject_present(
    title: str,
    what: str,
    wrong: Bools,
    missing: Bools | None,
    values: Array | None = None,
    *,
    advice: str | Hint = "",
) -> None:
    """Call `reject` if a value of the mask `wrong` (n, ...) is in a row that is not missing."""
    wrong = present(wrong, missing)
    if wrong.any():
        reject(title, what, wrong, values, advice=advice)


def present(wrong: Bools, missing: Bools | None) -> Bools:
    """Return a mask (n, ...) without the rows that are missing."""
    return wrong if missing is None else wrong & ~missing.reshape(-1, *[1] * (wrong.ndim - 1))


def read_counts(batch: Batch) -> tuple[Ints, int, int]:
    """Return how many rows each row of a batch stands for, with the least and the largest count."""
    title, column = batch.title(COUNTS), batch.column(COUNTS)
    values = column.values
    if values.ndim > 1 or column.vocabulary is not None or values.dtype.kind == "b":
        raise InvalidBatchError(f"{title}: expected whole numbers (n,), such as COUNT(*)", title)
    missing = _absent(column, None)
    if missing is not None:
        reject(title, "is missing (NaN or null)", missing)
    if values.dtype.kind == "f":
        reject_present(title, "is not a whole number", np.rint(values) != values, None, values)
    low, high = extent(values)
    if low < 0:
        reject(title, "is negative", values < 0, values)
    if values.size and high >= _BEYOND:
        reject(title, "is beyond 64 signed bits", values >= _BEYOND, values)
    return values.astype(np.int64, copy=False), *(map(int, (low, high)) if values.size else (0, 0))


def shown(value: object) -> str:
    """Format a value as Python source; of a long sequence, only the first few items."""
    if isinstance(value, np.generic):
        return repr(value.item())
    items = np.asarray(value).tolist()
    if isinstance(items, list) and len(items) > _SHOWN:
        return f"[{', '.join(map(repr, items[:_SHOWN]))}, ... {len(items)} of them]"
    return repr(items)


def joined_facts(facts: Facts, more: Facts) -> Facts:
    """Merge facts; raise if they contradict each other."""
    if facts == more or not more:
        return facts
    result = dict(facts)
    for name, value in more.items():
        known = result.setdefault(name, value)
        if known != value or type(known) is not type(value):
            if {known, value} == {"booleans", "integers"}:
                result[name] = "integers"
            else:
                known_as = "keys" if name.startswith("by ") else name
                advice = ADVICE.get(known_as, Hint("all batches must agree"))
                raise InvalidBatchError(
                    f"{name}: {value!r} here, {known!r} in rows seen before", hint=advice
                )
    return result


ADVICE = {
    "keys": Hint(
        "write keys as one kind everywhere; a CSV column of integers alone holds integers, as "
        'JSON does without quotes, {{"u": 1}}, and any other holds text, as {{"u": "1"}}'
    ),
    "labels": Hint("convert them to one kind"),
    "attempts": Hint("pass the ids of attempts, of one kind, in every batch or in none"),
    "negative label": Hint(
        "{pos_label} says which is positive, and all others have one label", pos_label=...
    ),
    "columns of labels": Hint("pass a column for each label in every batch"),
    "ratings of an item": Hint(
        "codes (items x raters) take from_raters=True; counts (items x categories) of different "
        "sums take from_raters=False, except FleissKappa"
    ),
    "columns of scores": Hint("pass (n,) or (n, K) in every batch (0 stands for (n,))"),
}


class SharedReading:
    """One reading of the columns of several schemas; it applies the checks of all of them."""

    __slots__ = (
        "_can_omit", "_checks", "_conditions", "_fields", "_ignores", "_models", "_omits",
        "_unweighted", "_wholes",
    )  # fmt: skip

    def __init__(self, schemas: Sequence[Schema]) -> None:
        plain = schemas[0].plain
        self._fields = plain.fields
        self._models = tuple(map(dict, plain.models))
        self._ignores = plain.ignores
        self._omits = plain.nan_policy == "omit"
        self._can_omit = all(schema.nan_policy for schema in schemas)
        self._unweighted = next((s.unweighted for s in schemas if s.unweighted), "")
        fields = dict.fromkeys(
            (place, each) for s in schemas for place, each in enumerate(s.fields)
        )
        slow = plain.models or any(type(each).whole is Field.whole for each in self._fields)
        self._wholes = () if slow else tuple(fields)
        # (index into `_fields`, field with checks)
        self._checks = tuple(p for p in fields if type(p[1]).validate is not Field.validate)
        self._conditions = tuple(dict.fromkeys(each for s in schemas for each in s.conditions))

    def whole(self, batch: Batch) -> Rows | None:
        """Fast path: return the rows if every field can read them whole, else ``None``."""
        if not self._wholes or batch.has(WEIGHT):
            return None
        every: list[ReadColumn] = []
        facts: Facts = {}
        read = -1  # the last field whose columns are read; others only check the same
        for place, each in self._wholes:
            found = each.whole(batch)
            if found is None or (facts and found[1] != facts):
                return None
            if place > read:
                every += found[0]
                facts, read = found[1], place
        n = len(every[0])
        for column in every:
            if not n or len(column) != n:
                return None
        for condition in self._conditions:
            if not condition.holds(batch):
                return None
        return Rows(tuple(every), None, n, 0, facts)

    def read(self, batch: Batch) -> Rows:
        """Return the validated rows, without ignored rows, omitted rows and rows of weight zero."""
        sides, weight, missing = self._taken(batch)
        if batch.n_rows == 0:
            return NO_ROWS
        for view, taken in sides:
            for place, each in self._checks:
                each.validate(view, taken[place], missing)
            for condition in self._conditions:
                condition.check(view, missing)
        rows, n, omitted = None, batch.n_rows, 0
        if weight is not None or missing is not None:
            rows = _kept(batch, weight, missing)
            omitted = 0 if missing is None else int(np.count_nonzero(missing))
            if rows is not None:
                n = rows.size
                weight = None if weight is None else weight[rows]
                if n == 0:
                    return Rows((), None, 0, omitted, {})
        every: list[ReadColumn] = []
        facts: Facts = {}
        for view, taken in sides:
            for each, columns in zip(self._fields, taken, strict=True):
                finished, more = each.finish(view, columns, rows)
                every += finished
                if not facts:
                    facts = more
                elif facts != more:
                    self._refuse_kinds(view, each, facts, more)
                    facts = joined_facts(facts, more)
        return Rows(tuple(every), weight, n, omitted, facts)

    def _taken(self, batch: Batch) -> tuple[list[Side], Floats | None, Mask | None]:
        """Return the columns of each field, the weights, and the mask of rows to leave out.

        There is one side, or one for each model.
        """
        sides: list[Side] = []
        absences, missing = [], None
        for own in self._models or (None,):
            view = batch if own is None else batch.aliased(own)
            taken: list[Columns] = []
            for each in self._fields:
                columns, absent = each.take(view)
                taken.append(columns)
                if absent is not None:
                    absences.append((each.source(view), each.read, absent))
                if self._ignores and (ignored := each.ignored(columns)) is not None:
                    missing = either(missing, ignored)
            batch.n_rows = view.n_rows
            sides.append((view, taken))
        weight = batch.weight()
        if weight is not None:
            if self._unweighted:
                title = batch.title(WEIGHT)
                raise InvalidBatchError(
                    f"{title} is given, but {self._unweighted} do not accept weights"
                )
            if math.isnan(batch.extent(WEIGHT)[0]):
                absences.append((batch, (WEIGHT,), np.isnan(weight)))
        for source, names, absent in absences:
            if not self._omits:
                _refuse_missing(source, names, missing, can_omit=self._can_omit)
            missing = either(missing, absent)
        return sides, weight, missing

    def _refuse_kinds(self, batch: Batch, at: Field, facts: Facts, more: Facts) -> None:
        """Raise if one of two columns of the same labels holds strings and the other does not."""
        one, other = facts.get("labels"), more.get("labels")
        if one == other or one is None or other is None or "strings" not in {one, other}:
            return
        before = self._fields[self._fields.index(at) - 1]
        first, second = (batch.title(each.names[0]) for each in (before, at))
        raise InvalidBatchError(
            f"{first} holds {one}, {second} holds {other}: convert one of them, so that both hold "
            "the names of the classes"
        )


def _refuse_missing(
    batch: Batch, names: tuple[str, ...], before: Mask | None, *, can_omit: bool
) -> None:
    """Raise if a value is missing in a row that is not already left out."""
    for name in names:
        if batch.has(name) and (mask := _absent(batch.column(name), before)) is not None:
            omit = Hint("{nan_policy} leaves such rows out", nan_policy="omit")
            hint = omit if can_omit else ""
            reject(batch.title(name), "is missing (NaN or null)", mask, advice=hint)


def _absent(column: Column, before: Mask | None) -> Mask | None:
    """Return the mask of missing values in rows not already left out; ``None`` if all False."""
    nans = np.isnan(column.values) if column.values.dtype.kind == "f" else None
    mask = either(nans, column.nulls)
    mask = None if mask is None else present(mask, before)
    return mask if mask is not None and mask.any() else None


def _kept(batch: Batch, weight: Floats | None, missing: Mask | None) -> Places | None:
    """Return the rows that are neither missing nor of weight zero; ``None`` for all."""
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
    reject_present(batch.title(WEIGHT), "is negative or infinite", wrong, missing, weight)
