"""Exact sums over rows: totals, and the first and second moments of one column or a pair.

Whatever subtracts (a variance, a covariance) is taken from exact integers and rounded once, so
targets of 1e9 with unit variance lose nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from functools import cache
from itertools import starmap
from typing import TYPE_CHECKING, Any, Literal

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.arithmetic.rounding import are_finite, quotient
from streammetrics.core.columns.long import LongNumbers
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import Schema
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.amounts import Amount
from streammetrics.core.fields.plain import Width
from streammetrics.core.fields.sums import NamedSums, each_plus
from streammetrics.core.fields.weights import Weight
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.sums.targets import regression_schema

if TYPE_CHECKING:
    from streammetrics.core.counting import Grouping
    from streammetrics.core.types import Array, Floats


class ExactSums(Statistic):
    """Named exact sums over the rows, one for each of ``width`` outputs, and the total weight.

    Rows weigh one where no weight is given, so the total weight is then their number. The width is
    0 until there are rows. Arrays: ``width`` (1,), and the digits of ``weight`` and of each sum.
    """

    in_kernels = True

    width = Width("outputs")
    weight = Weight()
    sums = NamedSums(lambda of: of.names, inline=True)

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names of the sums."""

    @abstractmethod
    def lift(self, columns: tuple[Floats, ...], weight: Floats | None) -> dict[str, ExactSum]:
        """Return the sums of rows: columns are (n,) for one output, else (n, d)."""

    def update(self, *columns: Floats, weight: Floats | None) -> None:
        """Add the sums of the rows."""
        rows = Amount.of_rows(len(columns[0]), weight)
        self.add(columns, rows, self.lift(columns, weight))

    def add(self, columns: tuple[Floats, ...], rows: Amount, sums: dict[str, ExactSum]) -> None:
        """Add rows, of which these are the sums, and what they weigh."""
        self.weight += rows
        self.sums = each_plus(self.sums, sums)
        self.width = 1 if columns[0].ndim == 1 else columns[0].shape[1]

    def fields_by_group(
        self,
        group: Grouping,
        columns: tuple[Floats, ...],
        sums: dict[str, ExactSum],
        weight: Array | None,
    ) -> dict[str, object]:
        """Return the fields of rows, of which these are the sums of each group."""
        width = 1 if columns[0].ndim == 1 else columns[0].shape[1]
        return {"width": width, "weight": Amount.by_group(group, weight), "sums": sums}

    def check_fields(self) -> None:
        """Check that there are sums of as many outputs, and rows, or neither."""
        shape = () if self.width == 1 else (self.width,)
        named = {*self.sums} == {*(self.names if self.width else ())}
        if not named or any(total.shape != shape for total in self.sums.values()):
            raise StateFormatError(f"{sorted(self.sums)} are not the sums of {self.width} outputs")
        if bool(self.weight) != (self.width > 0):
            raise StateFormatError("the total weight does not fit the sums")

    @property
    def total(self) -> Fraction:
        """The exact total weight."""
        return self.weight.fraction()

    def exact(self, name: str) -> list[Fraction]:
        """Return one sum exactly, an entry for each output, none without rows."""
        return list(starmap(Fraction, self.exact_ratios(name)))

    def exact_ratios(self, name: str) -> list[tuple[int, int]]:
        """Return the same as numerators and denominators, which may have factors in common."""
        if not self.width:
            return []
        integers, exponent = self._integers(name)
        above, below = 1 << max(exponent, 0), 1 << max(-exponent, 0)
        return [(integer * above, below) for integer in integers]

    def _integers(self, name: str) -> tuple[list[int], int]:
        """Return one sum as integers, and the power of two that is their unit."""
        integers, exponent = self.sums[name].integers()
        return [integers] if self.width == 1 else integers.tolist(), exponent

    def means(self, name: str) -> list[Fraction]:
        """Return the weighted mean for each output."""
        if not self.width:
            return []
        integers, exponent = self._integers(name)
        weight, parts = self.weight.ratio()
        above, below = parts << max(exponent, 0), weight << max(-exponent, 0)
        return [Fraction(integer * above, below) for integer in integers]

    def rounded_mean(self, name: str) -> float:
        """Return the weighted mean of one output as the nearest float."""
        integer, exponent = self.sums[name].integers()
        weight, parts = self.weight.ratio()
        if exponent < 0:
            return quotient(integer * parts, weight << -exponent)
        return quotient(integer * parts << exponent, weight)


def has_long(columns: tuple[object, ...]) -> bool:
    """Whether a column holds integers that no float64 does."""
    return any(isinstance(column, LongNumbers) for column in columns)


def as_outputs(columns: tuple[Floats, ...]) -> list[Floats]:
    """Return columns as (n,) where there is one output."""
    return [column.reshape(-1) if column.shape[1:] == (1,) else column for column in columns]


class Moments(ExactSums):
    """Sums of columns and, of the second `order`, of the products of every pair of them.

    Columns are plain values ``x``; the target ``y`` (of rows that have a prediction as well, so
    that it shares its rows with sums of losses); or the target ``y`` and the prediction ``p``.
    Of order ``"count"`` there is only the total weight.
    """

    of: Literal["values", "target", "pair"]
    order: Literal["count", "first", "second"] = "second"
    nan_policy: Literal["raise", "omit"] = "raise"

    @property
    def schema(self) -> Schema:
        """Values, infinite ones too where they are only counted, or a target and a prediction."""
        if self.of == "values":
            return Schema(
                (Numbers("values", ordered=self.order == "count", long=True),), self.nan_policy
            )
        return regression_schema(self.nan_policy)

    @property
    def letters(self) -> str:
        """What the columns are called."""
        return {"values": "x", "target": "y", "pair": "yp"}[self.of]

    @property
    def names(self) -> tuple[str, ...]:
        """The letters of the columns, then those of the products: ``y p yy yp pp``."""
        return _names(self.letters, self.order)

    def lift(self, columns: tuple[Floats, ...], weight: Floats | None) -> dict[str, ExactSum]:
        """Return the sums of columns and products."""
        by_letter = dict(zip(self.letters, columns, strict=False))
        sums = {}
        for name in self.names:
            y = by_letter[name[1]] if len(name) > 1 else None
            sums[name] = ExactSum.product(by_letter[name[0]], y, weight)
        return sums

    def by_group(
        self, group: Grouping, columns: tuple[Any, ...], weight: Array | None
    ) -> dict[str, object] | None:
        """Return the sums of each group."""
        if has_long(columns):
            return None
        by_letter = dict(zip(self.letters, as_outputs(columns), strict=False))
        sums = {}
        for name in self.names:
            first, *second = (by_letter[letter] for letter in name)
            times = second[0] if second else None
            sums[name] = ExactSum.grouped(group.index, group.size, first, weight, times=times)
        return self.fields_by_group(group, columns, sums, weight)

    def check_fields(self) -> None:
        """Check as well that means are finite, no variance negative, no |correlation| above 1."""
        super().check_fields()
        if self.order != "count" and self.width:
            each = [(*self._integers(letter), *self.weight.ratio()) for letter in self.letters]
            if not all(starmap(are_finite, each)):
                raise StateFormatError("the sums are beyond those of any finite numbers")
        if self.order != "second" or not self.width:
            return
        squares = [self.centred(a, a) for a in self.letters]
        products = self.centred(self.letters[0], self.letters[-1])
        for low, high, product in zip(squares[0], squares[-1], products, strict=True):
            if min(low, high) < 0 or product**2 > low * high:
                raise StateFormatError("the moments are not those of any rows")

    def centred(self, a: str, b: str) -> list[Fraction]:
        """Return Σ w (a - mean a)(b - mean b) for each output; 0 where one is constant."""
        return list(starmap(Fraction, self.centred_ratios(a, b)))

    def centred_ratios(self, a: str, b: str) -> list[tuple[int, int]]:
        """Return the same as numerators and denominators, which may have factors in common."""
        if not self.width:
            return []
        (xs, x_unit), (ys, y_unit) = self._integers(a), self._integers(b)
        products, unit = self._integers(a + b)
        weight, part = self.weight.ratio()
        # (W Σ w a b - Σ w a Σ w b) / W of integers.
        low = min(unit, x_unit + y_unit)
        left, right = weight << unit - low, part << x_unit + y_unit - low
        above, below = 1 << max(low, 0), weight << max(-low, 0)
        return [
            ((left * product - right * x * y) * above, below)
            for product, x, y in zip(products, xs, ys, strict=True)
        ]


@cache
def _names(letters: str, order: str) -> tuple[str, ...]:
    products = [a + b for i, a in enumerate(letters) for b in letters[i:]]
    return {"count": (), "first": (*letters,), "second": (*letters, *products)}[order]
