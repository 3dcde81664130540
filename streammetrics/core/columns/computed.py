"""Columns computed from others, row by row, by the formula of a metric."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

import numpy as np

from streammetrics.core.columns.column import either
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.objects import (  # noqa: TC001 - needed at run time by type hints
    Configuration,
    Preparation,
)
from streammetrics.core.columns.schema import Field, joined_facts, reject
from streammetrics.core.constraints import Above, AtLeast, Between, Constraint
from streammetrics.core.kernels import kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Facts, Finished, Kind, Taken
    from streammetrics.core.types import Bools, Columns, Floats, Places, ReadColumn


@dataclass(frozen=True)
class RowFormula:
    """A method of a metric that computes `count` numbers for each row, from `low` to `high`."""

    of: Configuration
    name: str
    count: int
    low: float
    high: float

    def __call__(self, columns: Columns, titles: str, rows: Places | None) -> tuple[Floats, ...]:
        """Return the numbers of the rows; `rows` are their places in the batch."""
        given = [_read_only(column) for column in columns]
        with np.errstate(all="ignore"):
            found = getattr(self.of.metric, self.name)(*given)
        every = found if isinstance(found, tuple) else (found,)
        if len(every) != self.count:
            raise TypeError(
                f"{self._title} returned {len(every)} arrays; return {self.count}, one for each "
                "parameter of of_mean"
            )
        return tuple([self._checked(each, len(columns[0]), titles, rows) for each in every])

    @property
    def _title(self) -> str:
        return f"{self.of.cls.__name__}.{self.name}"

    def _checked(self, found: Any, n: int, titles: str, rows: Places | None) -> Floats:
        if (shape := np.shape(found)) != (n,):
            raise TypeError(
                f"{self._title} returned an array of shape {shape}; return one number for each row"
            )
        values = np.ascontiguousarray(found, np.float64)
        low, high = kernels.extent(values)
        if not (-math.inf < low and high < math.inf):
            wrong = ~np.isfinite(values)
            reject(f"{self._title} of {titles}", "is not finite", wrong, values, rows=rows)
        if not (self.low <= low and high <= self.high):
            wrong = (values < self.low) | (values > self.high)
            what = f"is outside of its value_range ({self.low:g}, {self.high:g})"
            reject(f"{self._title} of {titles}", what, wrong, values, rows=rows)
        return values


@dataclass(frozen=True)
class Computed(Field):
    """Other columns, or the numbers that a formula makes of them; they may need a preparation.

    The formula runs once for each batch. The statistic only gets its numbers.
    """

    fields: tuple[Field, ...]
    formula: RowFormula | None = None
    preparation: Preparation | None = None

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]  # read-only; the base class declares it
        """The arguments of `update`."""
        return self.preparation.names if self.preparation else self.read

    @property
    def read(self) -> tuple[str, ...]:
        """The columns of the fields."""
        return tuple(name for each in self.fields for name in each.names)

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kinds of the fields. A preparation gets its inputs as they are, or as floats."""
        if self.preparation:
            items = self.preparation.items
            return {name: "number" if items[name] is float else "id" for name in self.names}
        return {name: kind for each in self.fields for name, kind in each.kinds.items()}

    def source(self, batch: Batch) -> Batch:
        """Return the batch of the columns of the fields."""
        return batch.prepared(self.preparation) if self.preparation else batch

    def take(self, batch: Batch) -> Taken:
        """Return the columns of each field."""
        source = self.source(batch)
        every, missing = [], None
        for each in self.fields:
            taken, absent = each.take(source)
            every.append(taken)
            missing = either(missing, absent)
        return tuple(every), missing

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:
        """Check the columns of each field."""
        source = self.source(batch)
        for each, mine in zip(self.fields, taken, strict=True):
            each.validate(source, mine, missing)

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return the columns, or the numbers that the formula makes of them."""
        source = self.source(batch)
        columns: list[ReadColumn] = []
        facts: Facts = {}
        for each, mine in zip(self.fields, taken, strict=True):
            found, more = each.finish(source, mine, rows)
            columns += found
            facts = joined_facts(facts, more)
        return self._computed(source, tuple(columns), rows), facts

    def whole(self, batch: Batch) -> Finished | None:
        """Return the same if all fields can read the batch whole."""
        if self.preparation:
            return None
        columns: list[ReadColumn] = []
        for each in self.fields:
            found = each.whole(batch)
            if found is None or found[1]:
                return None
            columns += found[0]
        if len({len(column) for column in columns}) != 1 or not len(columns[0]):
            return None
        return self._computed(batch, tuple(columns), None), {}

    def _computed(self, source: Batch, columns: Columns, rows: Places | None) -> Columns:
        if self.formula is None:
            return columns
        return self.formula(columns, ", ".join(map(source.title, self.read)), rows)


def _read_only(column: ReadColumn) -> ReadColumn:
    """Return a view that a formula cannot write to: other metrics read the same array."""
    view = column.view() if isinstance(column, np.ndarray) else column
    if view is not column:
        view.flags.writeable = False
    return view


def fields_of(function: Callable[..., object]) -> tuple[Field, ...]:
    """Return a field for each parameter of a method, with the constraints of its annotation.

    Raises:
        TypeError: A parameter has no name, or its annotation is not that of a column of numbers.
    """
    title = function.__qualname__
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError as error:
        raise TypeError(
            f"{title} has an annotation that is not known at run time ({error}): import it outside "
            "of TYPE_CHECKING"
        ) from None
    _, *parameters = signature.parameters.values()
    return tuple([_field(title, parameter) for parameter in parameters])


_NO_COLUMN = {str, bytes, list, dict, set, tuple, object, Union, UnionType}


def _field(title: str, parameter: inspect.Parameter) -> Field:
    name, annotation = parameter.name, parameter.annotation
    if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD or parameter.default is not (
        parameter.empty
    ):
        raise TypeError(
            f"{title}: {name} is not a column: name each column, without a default or a *"
        )
    parts = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    low, high, above = -math.inf, math.inf, -math.inf
    for part in parts:
        if isinstance(part, Field):
            if part.names != (name,):
                raise TypeError(f"{title}: {name} is annotated with a field of {part.names}")
            return part
        if isinstance(part, Between) and not part.without:
            low, high = max(low, part.low), min(high, part.high)
        elif isinstance(part, AtLeast):
            low = max(low, part.low)
        elif isinstance(part, Above):
            above = max(above, part.low)
        elif isinstance(part, Constraint) or (get_origin(part) or part) in _NO_COLUMN:
            raise TypeError(
                f"{title}: {name} is annotated with {part!r}: a column of numbers is Floats, "
                "Annotated[Floats, Between(low, high)], AtLeast(low) or Above(low); make numbers "
                "of other objects with @prepare"
            )
    return Numbers(name, low, high, above)
