"""Columns of numbers, with limits on their values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.columns.long import LongNumbers
from streammetrics.core.columns.schema import Field, Kind, present, reject
from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Finished, Taken
    from streammetrics.core.types import Bools, Columns, Floats, Places

_INF = math.inf


@dataclass(frozen=True)
class Numbers(Field):
    """A column of numbers in ``[low, high]``: (n,), or with `wide` also (n, d).

    All batches of a wide column must have the same d. Integers that float64 cannot represent are
    refused, or with `long` returned as `LongNumbers`.
    """

    name: str
    low: float = -math.inf
    high: float = math.inf
    above: float = -math.inf  # an open lower limit
    ordered: bool = False  # values are only compared, so infinities are valid
    wide: bool = False
    long: bool = False

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]  # read-only; the base class declares it
        """The column."""
        return (self.name,)

    @property
    def kinds(self) -> dict[str, Kind]:
        """A number."""
        return {self.name: "number"}

    @property
    def plain(self) -> Field:
        """The same column, without limits."""
        inf = math.inf
        return replace(self, low=-inf, high=inf, above=-inf, ordered=True, long=True)

    def take(self, batch: Batch) -> Taken:
        """Return the column as float64, or as `LongNumbers`."""
        numbers = batch.numeric(self.name)
        values = numbers.values
        if values.ndim > 1 and not self.wide:
            title = batch.title(self.name)
            raise InvalidBatchError(
                f"{title} has shape {values.shape}; one number a row is needed", title
            )
        column: Floats | LongNumbers = values
        if numbers.residual is not None:
            column = LongNumbers(values, numbers.residual)
        if numbers.low == numbers.low:
            return (column,), None
        missing: Bools = np.isnan(values)
        return (column,), missing if missing.ndim == 1 else np.logical_or.reduce(missing, axis=1)

    def whole(self, batch: Batch) -> Finished | None:
        """Return an array (n,) of floats if all of them are in the domain, else ``None``."""
        numbers = batch.floats(self.name)
        if numbers is None or not (
            self.above < numbers.low >= self.low and numbers.high <= self.high
        ):
            return None
        if not (self.ordered or (numbers.low > -_INF and numbers.high < _INF)):
            return None
        return self.finish(batch, (numbers.values,), None)

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:
        """Raise if a value that is not missing is outside the domain."""
        if not self.long:
            batch.refuse_long(self.name, "what is computed here")
        if self.ordered:
            return
        numbers = batch.numeric(self.name)
        low, high = numbers.low, numbers.high
        if self.above < low >= self.low and low > -_INF and high <= self.high and high < _INF:
            return
        values = numbers.values
        wrong = present(~self._inside(values), missing)
        if wrong.any():
            reject(batch.title(self.name), self._complaint(values, wrong), wrong, values)

    def _inside(self, values: Floats) -> Bools:
        inside: Bools = (values >= self.low) & (values <= self.high) & (values > self.above)
        inside &= np.abs(values) < math.inf
        return inside

    def _complaint(self, values: Floats, wrong: Bools) -> str:
        if np.isinf(values[wrong]).any():
            return "is infinite"
        bracket, low = ("(", self.above) if self.above > self.low else ("[", self.low)
        if self.high == math.inf:
            return f"is not {'above' if bracket == '(' else 'at least'} {low:g}"
        return f"is outside {bracket}{low:g}, {self.high:g}]"

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return numbers (n,), or with `wide` (n, d) where d is at least 2."""
        (values,) = taken
        if rows is not None:
            values = values[rows]
        if not self.wide:
            return (values,), {}
        width = 1 if values.ndim == 1 else values.shape[1]
        if width == 0:
            raise InvalidBatchError(f"{batch.title(self.name)} has no columns")
        return (values,), {"columns of numbers": width}
