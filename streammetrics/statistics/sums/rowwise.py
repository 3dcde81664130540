"""The exact sum of a number of every row, and of its squares: what means are read of."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.amounts import Amount
from streammetrics.core.fields.sums import Sum
from streammetrics.core.fields.weights import Weight
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.sums.spreads import Spreading, spread_by_group, sums_of

if TYPE_CHECKING:
    from fractions import Fraction

    from streammetrics.core.counting import Grouping
    from streammetrics.core.types import Array, Floats, ReadColumn


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
        self, group: Grouping, columns: tuple[Any, ...], weight: Array | None
    ) -> dict[str, object]:
        """Return the sums of each group."""
        numbers = self.numbers(*columns)
        total = ExactSum.grouped(group.index, group.size, numbers, weight)
        spread = spread_by_group(group, numbers, weight, total)
        return {"total": total, "rows": Amount.by_group(group, weight), **spread}

    def check_fields(self) -> None:
        """Check that there is no sum without rows."""
        super().check_fields()
        if bool(self.rows) != bool(self.squared_weight) or (
            self.total.fraction() and not self.rows
        ):
            raise StateFormatError("the sums are not those of any rows")

    def exact_mean(self) -> Fraction | None:
        """Return the mean, ``None`` without rows."""
        rows = self.rows.fraction()
        return self.total.fraction() / rows if rows else None
