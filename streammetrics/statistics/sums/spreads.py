"""What rows add beside sums, for limits; sums of rows that others define."""

from __future__ import annotations

from abc import ABC, abstractmethod
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
from streammetrics.core.fields.sums import SquaredWeight, SquareWeighted, Sum, each_plus
from streammetrics.core.fields.weights import Weight, WeightedCount
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.sums.formulas import squared_losses
from streammetrics.statistics.sums.losses import LossSum, Moments, as_outputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from streammetrics.core.columns.long import LongNumbers
    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Columns, Floats, ReadColumn


Powers = dict[str, ExactSum]


class SpreadSums(NamedTuple):
    """What numbers x of rows of weight w add: Σ w x, their powers, Σ w and Σ w²."""

    total: ExactSum
    powers: Powers
    rows: WeightedCount
    squared: WeightedCount


class Spreading(ABC):
    """What is added to a statistic of sums: Σ w² x², Σ w² x and Σ w² of the numbers that it sums.

    They are exact, once x² is rounded as float64. The first two are of a shape ``()``, or ``(d,)``
    for d outputs.
    """

    powers = SquareWeighted(lambda _: ("squares", "values"))
    squared_weight = SquaredWeight()
    _key: tuple[object, ...]  # of the statistic

    @abstractmethod
    def numbers(self, *columns: object) -> Floats:
        """Return the number of each row that is summed, (n,) or (n, d)."""

    def sums_among(
        self,
        peers: Sequence[Statistic],
        found: dict[object, ReadColumn],
        columns: Columns,
        weight: Floats | None,
    ) -> SpreadSums:
        """Return what rows add; where they have weights those of peers are summed beside."""
        alike = [peer for peer in peers if isinstance(peer, type(self))]
        if weight is not None and len(alike) > 1 and columns[0].ndim == 1:
            try:
                if self._key not in found:
                    every = weighted_sums([peer.numbers(*columns) for peer in alike], weight)
                    found.update(zip([peer._key for peer in alike], every, strict=True))
                sums: SpreadSums = found[self._key]
            except FloatingPointError:  # of a square of one of them
                pass
            else:
                return sums
        return sums_of(self.numbers, columns, weight)

    def spread_by(self, powers: Powers, squared: WeightedCount) -> None:
        """Add the powers of rows, and the squares of their weights."""
        self.powers = each_plus(self.powers, powers)
        self.squared_weight += squared

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

    def add_powers(
        self, columns: Columns, rows: WeightedCount, sums: Mapping[int, ExactSum]
    ) -> None:
        """Add rows of weight one, of which these are the sums of powers."""
        super().add_powers(columns, rows, sums)
        power, squared = self.exponents
        powers = {"values": sums[power], "squares": sums[squared]}
        self.spread_by(powers, rows)

    def add_whole(
        self,
        columns: Columns,
        weight: Floats | None,
        peers: Sequence[Statistic],
        found: dict[object, ReadColumn],
    ) -> None:
        """Add rows that have weights, which those of peers share, or squares beyond the floats."""
        try:
            sums = self.sums_among(peers, found, columns, weight)
        except FloatingPointError:  # of a square
            super().add_whole(columns, weight, peers, found)
            self.spread_by(*powers_of(self._clipped, columns, weight))
            return
        self.add(columns, sums.rows, {"loss": sums.total})
        self.spread_by(sums.powers, sums.squared)

    by_group = LossSum.by_group  # with what `terms_by_group` adds

    def terms_by_group(
        self, group: GroupCodes, terms: Floats, weight: Array | None
    ) -> dict[str, Any]:
        """Return what rows with these losses add to each group, squares included."""
        total, spread = sums_by_group(group, terms, weight)
        return self.fields_by_group(group, (terms,), {"loss": total}, weight) | spread

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return the losses."""
        losses: Floats = self.terms(*columns)
        return losses

    def _clipped(self, y: Floats, p: Floats) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return np.minimum(squared_losses(self.loss, y, p), LARGEST)


class MomentSpread(Spreading, Moments):
    """The sum of values, or of targets and predictions, and the squares of their differences."""

    in_kernels = True

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Add the rows."""
        if self.names == ("x",) and columns[0] is nearest(columns[0]):  # summed once for both
            found = sums_of(self.numbers, columns, weight)
            self.add(columns, found.rows, {"x": found.total})
            self.spread_by(found.powers, found.squared)
            return
        super().update(*columns, weight=weight)
        self.spread_by(*powers_of(self.numbers, columns, weight))

    def by_group(
        self, group: GroupCodes, columns: tuple[Any, ...], weight: Array | None
    ) -> dict[str, object] | None:
        """Return the sums of each group, and how far their numbers spread."""
        fields: dict[str, Any] | None = super().by_group(group, columns, weight)
        if fields is None:
            return None
        numbers = self.numbers(*as_outputs(columns))
        total = None if self.of == "pair" else fields["sums"].get(self.letters)
        return fields | spread_by_group(group, numbers, weight, total)

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return the values, or predictions less targets."""
        return columns[1] - columns[0] if self.of == "pair" else nearest(columns[0])


def sums_by_group(
    group: GroupCodes, numbers: Floats, weight: Array | None
) -> tuple[ExactSum, dict[str, Any]]:
    """Return the sum of the numbers (n,) or (n, d) by group, and the fields of `Spreading`."""
    if weight is None and numbers.ndim == 1:
        total, squares = ExactSum.grouped_squares(group.index, group.size, numbers)
        powers = {"values": total, "squares": squares}
        return total, {"powers": powers, "squared_weight": WeightedCount.by_group(group, None)}
    total = ExactSum.grouped(group.index, group.size, numbers, weight)
    return total, spread_by_group(group, numbers, weight, total)


def spread_by_group(
    group: GroupCodes, numbers: Floats, weight: Array | None, total: ExactSum | None = None
) -> dict[str, Any]:
    """Return the fields of `Spreading` of the numbers (n,) or (n, d) of each group.

    The total of the numbers is that of their powers where there is no weight.
    """
    if weight is None:
        twice, squared = None, WeightedCount.by_group(group, None)
    else:
        twice = np.repeat(weight, numbers[:1].size).reshape(numbers.shape)  # beside each number
        squares = ExactSum.grouped(group.index, group.size, weight, weight)
        squared, total = WeightedCount.of_weights(squares), None

    def summed(terms: Floats) -> ExactSum:
        return ExactSum.grouped(group.index, group.size, terms, weight, times=twice)

    values = summed(numbers) if total is None else total
    powers = {"values": values, "squares": summed(squares_of(numbers))}
    return {"powers": powers, "squared_weight": squared}


def powers_of(
    terms: Callable[..., Floats], columns: Columns, weight: Floats | None
) -> tuple[Powers, WeightedCount]:
    """Return Σ w² x² and Σ w² x of ``terms(*columns)``, (n,) or (n, d), of each row, and Σ w²."""
    if weight is None:
        found, _, _ = ExactSum.of_powers(terms, columns, (1, 2))
        powers = {"values": found[1], "squares": found[2]}
        return powers, WeightedCount.of_rows(len(columns[0]), None)
    sums = sums_of(terms, columns, weight)
    return sums.powers, sums.squared


def sums_of(terms: Callable[..., Floats], columns: Columns, weight: Floats | None) -> SpreadSums:
    """Return what ``terms(*columns)``, (n,) or (n, d), add."""
    if weight is None:
        powers, rows = powers_of(terms, columns, None)
        return SpreadSums(powers["values"], powers, rows, rows)
    numbers = terms(*columns)
    if numbers.ndim == 1:
        return weighted_sums([numbers], weight)[0]
    every = weighted_sums([numbers[:, k] for k in range(numbers.shape[1])], weight)
    first = every[0]
    if len(every) == 1:
        return first
    powers = {name: ExactSum.row_of([each.powers[name] for each in every]) for name in first.powers}
    total = ExactSum.row_of([each.total for each in every])
    return SpreadSums(total, powers, first.rows, first.squared)


def weighted_sums(every: Sequence[Floats | LongNumbers], weight: Floats) -> list[SpreadSums]:
    """Return what each of several numbers (n,) of the same rows adds."""
    rows = WeightedCount.of_weights(ExactSum.of(weight))
    squared = WeightedCount.of_weights(ExactSum.product(weight, weight))
    sums = []
    for numbers in every:
        values = ExactSum.product(numbers, weight, weight)
        squares = ExactSum.product(squares_of(nearest(numbers)), weight, weight)
        powers = {"values": values, "squares": squares}
        sums.append(SpreadSums(ExactSum.of(numbers, weight), powers, rows, squared))
    return sums


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

    total = Sum()
    rows = Weight()

    @abstractmethod
    def numbers(self, *columns: object) -> Floats:
        """Return the number of each row, (n,)."""

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Add the numbers of rows, and their squares."""
        found = sums_of(self.numbers, columns, weight)
        self.total += found.total
        self.rows += found.rows
        self.spread_by(found.powers, found.squared)

    def by_group(
        self, group: GroupCodes, columns: tuple[Any, ...], weight: Array | None
    ) -> dict[str, object]:
        """Return the sums of each group."""
        numbers = self.numbers(*columns)
        total, spread = sums_by_group(group, numbers, weight)
        return {"total": total, "rows": WeightedCount.by_group(group, weight), **spread}

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
