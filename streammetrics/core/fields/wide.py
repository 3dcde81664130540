"""Amounts of as many things as rows turn out to have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.field import StateField
from streammetrics.core.fields.amounts import Amount

if TYPE_CHECKING:
    from streammetrics.core.configured import Configured
    from streammetrics.core.types import Array, Arrays


class WideWeights(StateField[Amount]):
    """How much there is of each of L things, (k, L) and not negative; L is 0 without rows.

    Args:
        kinds: How many amounts there are of each thing, k.
        of: What the things are, for messages.
    """

    def __init__(self, kinds: int, of: str) -> None:
        super().__init__()
        self._kinds, self._of = kinds, of

    def empty(self, of: Configured) -> Amount:  # noqa: ARG002 - nothing depends on it
        """Return amounts of nothing."""
        return Amount.zero((self._kinds, 0))

    def plus(self, mine: Amount, other: Amount) -> Amount:
        """Return what there is of each together."""
        one, two = mine.counts.shape[1], other.counts.shape[1]
        if one and two and one != two:
            raise IncompatibleMetricsError(f"{two} {self._of} cannot join {one}")
        return mine + other if one and two else (mine if one else other)

    def arrays(self, value: Amount) -> dict[str, Array]:
        """Return those of exact sums, whether rows have weights or not."""
        return value.arrays()

    def taken(self, arrays: Arrays, of: Configured) -> Amount:  # noqa: ARG002 - nothing depends on it
        """Return the amounts, none of which is negative."""
        digits = arrays.get("digits")
        size = len(digits) if digits is not None and digits.ndim == 2 else 0
        if size % self._kinds:
            raise StateFormatError(f"{size} sums are not those of {self._kinds} for each thing")
        value = Amount.of_exact(ExactSum.from_arrays((self._kinds, size // self._kinds), arrays))
        if value.any_negative:
            raise StateFormatError(f"sums of {self.name} are negative, which no rows have")
        return value

    def nbytes(self, value: Amount) -> int:
        """Bytes held now."""
        return value.nbytes

    def scaled(self, value: Amount, weight: float) -> Amount:
        """Return the products, exactly."""
        return value.scaled(weight) if value.counts.shape[1] else value

    def minus(self, value: Amount, other: Amount) -> Amount:
        """Return the differences, where none is negative; of no rows there is nothing."""
        if not other.counts.shape[1]:
            return value
        if value.counts.shape != other.counts.shape:
            raise IncompatibleMetricsError(
                f"{other.counts.shape[1]} {self._of} are not among {value.counts.shape[1]}"
            )
        return value - other
