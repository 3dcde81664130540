"""How far the numbers of rows spread, as a field: what the error of their mean is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.exact.scaling import times
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.fields.amounts import MOST
from streammetrics.core.fields.field import StateField, not_among
from streammetrics.core.state.arrays import nested, part, take_array

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from streammetrics.core.configured import Configured

    Floats = NDArray[np.float64]

LARGEST = 2.0**1023  # what a square is at most
_SUMS = ("squares", "values", "weights")


class Spread(NamedTuple):
    """Rows, and Σ w² x², Σ w² x and Σ w² over them: exact, once x² is rounded as float64.

    The first two are of a shape ``()``, or ``(d,)`` for d outputs; there are no sums without rows.
    """

    n: int
    squares: ExactSum
    values: ExactSum
    weights: ExactSum

    @classmethod
    def of(cls, values: Floats, weight: Floats | None) -> Spread:
        """Return the sums of rows ``(n,)`` or ``(n, d)``."""
        with np.errstate(over="ignore", under="ignore"):
            squares = np.minimum(values * values, LARGEST)
        n = len(values)
        if weight is None:
            ones = ExactSum.counts(np.array(n))
            return cls(n, ExactSum.of(squares), ExactSum.of(values), ones)
        each = weight if values.ndim == 1 else np.repeat(weight[:, None], values.shape[1], axis=1)
        return cls(
            n,
            ExactSum.product(squares, each, weight),
            ExactSum.product(values, each, weight),
            ExactSum.product(weight, weight),
        )


class Spreads(StateField["Spread | None"]):
    """What `Spread` says of the rows, ``None`` of no rows."""

    def empty(self, of: Configured) -> Spread | None:  # noqa: ARG002 - nothing depends on it
        """Return no rows."""
        return None

    def plus(self, mine: Spread | None, other: Spread | None) -> Spread | None:
        """Return the rows and the sums of both."""
        if mine is None or other is None:
            return other if mine is None else mine
        if mine.values.shape != other.values.shape:
            raise IncompatibleMetricsError(
                f"sums of {other.values.shape} outputs cannot join those of {mine.values.shape}"
            )
        sums = (a + b for a, b in zip(mine[1:], other[1:], strict=True))
        return Spread(mine.n + other.n, *sums)

    def arrays(self, value: Spread | None) -> dict[str, NDArray[Any]]:
        """Return the number of rows, and digits and exponent of each sum; nothing without rows."""
        if value is None:
            return {}
        arrays: dict[str, NDArray[Any]] = {"rows": np.array([value.n], np.int64)}
        for name, total in zip(_SUMS, value[1:], strict=True):
            arrays |= nested(name, total.arrays())
        return arrays

    def taken(self, arrays: Mapping[str, NDArray[Any]], of: Configured) -> Spread | None:  # noqa: ARG002
        """Return the sums, those of squares not negative."""
        if not arrays:
            return None
        n = take_array(arrays, "rows", "int64")
        digits = arrays.get("squares/digits", np.zeros(0))
        known = digits.ndim == 2 and len(digits) > 0 and len(arrays) == 7
        if n.shape != (1,) or not 0 < n[0] < MOST or not known:
            raise StateFormatError(f"sums of squares are not those of {n.tolist()} rows")
        shape = () if len(digits) == 1 else (len(digits),)
        squares, values = (ExactSum.from_arrays(shape, part(arrays, name)) for name in _SUMS[:2])
        weights = ExactSum.from_arrays((), part(arrays, "weights"))
        if (np.asarray(squares.to_float()) < 0).any() or weights.fraction() <= 0:
            raise StateFormatError("sums of squares are negative")
        return Spread(int(n[0]), squares, values, weights)

    def scaled(self, value: Spread | None, weight: float) -> Spread | None:
        """Return the products with the square of the weight, exactly."""
        if value is None:
            return None
        return Spread(value.n, *(times(times(total, weight), weight) for total in value[1:]))

    def minus(self, value: Spread | None, other: Spread | None) -> Spread | None:
        """Return the differences, exactly."""
        if other is None:
            return value
        if value is None or value.n < other.n or value.values.shape != other.values.shape:
            raise not_among("there are fewer of them here")
        left = [a - b for a, b in zip(value[1:], other[1:], strict=True)]
        if value.n == other.n:
            if any(total != total - total for total in left):
                raise not_among("their squares differ")
            return None
        return Spread(value.n - other.n, *left)
