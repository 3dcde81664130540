"""What rows add beside sums, for limits; sums of rows that others define."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core import elementary
from streammetrics.core.arithmetic.exact import LARGEST, ExactSum
from streammetrics.core.columns.computed import (
    RowFormula,  # noqa: TC001 - needed at run time by type hints
)
from streammetrics.core.columns.long import nearest
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import Schema
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.sums import SquaredWeight, SquareWeighted, Sum
from streammetrics.core.fields.weights import Weight, WeightedCount, have_weights
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.sums.formulas import squared_losses
from streammetrics.statistics.sums.losses import (
    LossSum,
    Moments,
    as_outputs,
    has_long,
    summed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Columns, Floats, ReadColumn


Powers = dict[str, ExactSum]


class SpreadSums(NamedTuple):
    """What numbers x of rows of weight w add: Σ w x, their powers, Σ w and Σ w²."""

    total: ExactSum
    powers: Powers
    rows: WeightedCount
    squared: WeightedCount

    @property
    def spread(self) -> dict[str, Any]:
        """The fields of `Spreading`."""
        return {"powers": self.powers, "squared_weight": self.squared}


class Spreading:
    """What is added to a statistic of sums: Σ w² x², Σ w² x and Σ w² of the numbers that it sums.

    They are exact, once x² is rounded as float64. The first two are of a shape ``()``, or ``(d,)``
    for d outputs.
    """

    powers = SquareWeighted(lambda _: ("squares", "values"))
    squared_weight = SquaredWeight()

    def check_fields(self) -> None:
        """Check as well that the squares are those of as many outputs."""
        super().check_fields()  # type: ignore[misc]  # of the statistic
        width, shapes = getattr(self, "width", 1), {total.shape for total in self.powers.values()}
        seen = bool(self.squared_weight)
        if seen != bool(shapes) or (seen and shapes != {() if width == 1 else (width,)}):
            raise StateFormatError(f"there are no sums of squares of {width} outputs")
        if seen and self.powers["squares"].any_negative:
            raise StateFormatError("sums of squares are negative")


class LossSpread(Spreading, LossSum):
    """The sum of a loss, and of its squares."""

    @cached_property
    def exponents(self) -> tuple[int, ...]:
        """Those of the losses, and of their squares."""
        (power,) = super().exponents
        return power, 2 * power

    def lift_powers(
        self, columns: Columns, rows: WeightedCount, sums: Mapping[int, ExactSum]
    ) -> dict[str, Any]:
        """Return the fields of rows of weight one, of which these are the sums of powers."""
        power, squared = self.exponents
        powers = {"values": sums[power], "squares": sums[squared]}
        fields = super().lift_powers(columns, rows, sums)
        return fields | {"powers": powers, "squared_weight": rows}

    def lift_whole(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, Any]:
        """Return the fields of rows with weights, of groups, or beyond the normal floats."""
        try:
            sums = sums_of(self.terms, columns, weight, group)
        except FloatingPointError:  # of a square
            if group is not None:
                raise
            clipped = sums_of(self._clipped, columns, weight)
            return super().lift_whole(columns, weight) | clipped.spread
        return self.fields_of(columns, sums.rows, {"loss": sums.total}) | sums.spread

    def _clipped(self, y: Floats, p: Floats) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return np.minimum(squared_losses(self.loss, y, p), LARGEST)


class MomentSpread(Spreading, Moments):
    """The sum of values, or of targets and predictions, and the squares of their differences."""

    in_kernels = takes_counts = True

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, Any] | None:
        """Return the sums of the rows, and how far their numbers spread."""
        long = has_long(columns)
        if group is not None:
            if long:
                return None
            columns = as_outputs(columns)
        found = sums_of(self.numbers, columns, weight, group)
        if self.names == ("x",) and not long:  # summed once for both
            return self.fields_of(columns, found.rows, {"x": found.total}) | found.spread
        return (super().lift(columns, weight, group) or {}) | found.spread

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return the values, or predictions less targets."""
        return columns[1] - columns[0] if self.of == "pair" else nearest(columns[0])


def sums_of(
    terms: Callable[..., Floats],
    columns: Columns,
    weight: Floats | None,
    group: GroupCodes | None = None,
) -> SpreadSums:
    """Return what ``terms(*columns)``, (n,) or (n, d), add: if there are groups, to each of them.

    The terms are not one column of several.
    """
    if group is None and not have_weights(weight):
        found, _, _ = ExactSum.of_powers(terms, columns, (1, 2), weight=weight)
        rows = WeightedCount.of_rows(len(columns[0]), weight)
        return SpreadSums(found[1], {"values": found[1], "squares": found[2]}, rows, rows)
    numbers = terms(*columns)
    numbers = numbers[:, 0] if numbers.shape[1:] == (1,) else numbers
    rows = WeightedCount.of_rows(len(numbers), weight, group)
    if group is not None and weight is None:
        if numbers.ndim == 1:
            total, squares = ExactSum.grouped_squares(group.index, group.size, numbers)
        else:
            total, squares = (summed(x, None, group) for x in (numbers, squares_of(numbers)))
        return SpreadSums(total, {"values": total, "squares": squares}, rows, rows)
    assert weight is not None
    twice = np.repeat(weight, numbers[:1].size).reshape(numbers.shape)  # beside each number
    powers = {
        "values": summed(numbers, weight, group, twice),
        "squares": summed(squares_of(nearest(numbers)), weight, group, twice),
    }
    squared = WeightedCount.of_weights(summed(weight, weight, group))
    return SpreadSums(summed(numbers, weight, group), powers, rows, squared)


def squares_of(numbers: Floats) -> Floats:
    """Return squares as float64, none of them infinite."""
    with np.errstate(over="ignore", under="ignore"):
        squares = numbers * numbers
    return np.minimum(squares, LARGEST, out=squares)


class RowSum(Spreading, Statistic):
    """The exact sum of a number of each row, rounded row by row, of its squares and of weights.

    `numbers` says which it is; it must not depend on other rows, and be finite for all rows that
    the schema takes.
    """

    takes_counts = True

    total = Sum()
    rows = Weight()

    @abstractmethod
    def numbers(self, *columns: object) -> Floats:
        """Return the number of each row, (n,)."""

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, Any]:
        """Return the sums of the numbers of rows, and of their squares."""
        found = sums_of(self.numbers, columns, weight, group)
        return {"total": found.total, "rows": found.rows, **found.spread}

    def check_fields(self) -> None:
        """Check that there is no sum without rows."""
        super().check_fields()
        if bool(self.rows) != bool(self.squared_weight) or (
            self.total.digits.any() and not self.rows
        ):
            raise StateFormatError("the sums are not those of any rows")

    def exact_mean(self) -> Fraction | None:
        """Return the mean, ``None`` without rows."""
        rows = self.rows.fraction()
        return self.total.fraction() / rows if rows else None


class FormulaSum(RowSum):
    """The exact sums of the numbers that a metric's formula makes of each row.

    With `count` numbers x_1, x_2, ... the products x_i x_j, i < j, are summed after them: the
    variance of a function of several means needs them.
    """

    of: RowFormula
    read: Schema
    count: int = 1

    total = Sum(lambda of: () if of.count == 1 else (of.width,))

    @property
    def width(self) -> int:
        """How many numbers are summed, products included."""
        return self.count * (self.count + 1) // 2

    @property
    def schema(self) -> Schema:
        """The columns, of which only the numbers of the formula are read."""
        return self.read

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return the numbers of each row, and their products."""
        if self.count == 1:
            numbers: Floats = columns[0].copy()
            return numbers
        pairs = combinations(columns, 2)
        with np.errstate(over="ignore", under="ignore"):
            products = [np.clip(one * other, -LARGEST, LARGEST) for one, other in pairs]
        return np.stack([*columns, *products], axis=1)

    def products(self) -> list[list[Fraction]]:
        """Return Σ w² x_i x_j of every two numbers."""
        values, squares = self.powers["values"], self.powers["squares"]
        if self.count == 1:
            return [[squares.fraction()]]
        table = [[Fraction(0)] * self.count for _ in range(self.count)]
        for i in range(self.count):
            table[i][i] = squares[i].fraction()
        for place, (i, j) in enumerate(combinations(range(self.count), 2), self.count):
            table[i][j] = table[j][i] = values[place].fraction()
        return table

    def exact_means(self) -> list[Fraction]:
        """Return the mean of each number; none without rows."""
        rows = self.rows.fraction()
        if not rows:
            return []
        sums = [self.total] if self.count == 1 else [self.total[i] for i in range(self.count)]
        return [each.fraction() / rows for each in sums]


class Popularity(RowSum):
    """The popularity of items, or the bits of information in meeting one."""

    surprise: bool = False
    nan_policy: NanPolicy = "raise"

    @property
    def schema(self) -> Schema:
        """Shares above 0."""
        return Schema((Numbers("popularity", above=0.0, high=1.0),), self.nan_policy)

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return what each item has."""
        popularity: Floats = columns[0]
        return np.abs(elementary.log2(popularity)) if self.surprise else popularity.copy()
