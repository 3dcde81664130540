"""What metrics of regression share: rows, exact readouts, and outputs averaged to a value."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from streammetrics.core.constraints import NanPolicy, Satisfies
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.exact.rounding import nearest
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import LabelledArray
from streammetrics.core.types import Floats
from streammetrics.statistics.sums.losses import LossSum
from streammetrics.statistics.sums.spreads import LossSpread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import ArrayLike
    from streammetrics.statistics.sums.formulas import LossName

    Number = Fraction | float | None

Value: TypeAlias = float | Floats


def are_weights(values: Any) -> bool:
    """Whether these are finite numbers, none of them negative, and not all 0."""
    numbers = all(type(x) in {int, float} and 0 <= x < math.inf for x in values)
    return numbers and any(values)


Weights = Annotated[tuple[float, ...], Satisfies(are_weights, "weights of the outputs")]


def check_outputs(n: int, multioutput: str | tuple[float, ...]) -> None:
    """Raise `InvalidBatchError` where there is not one weight for each of n outputs."""
    if n and isinstance(multioutput, tuple) and n != len(multioutput):
        raise InvalidBatchError(
            f"multioutput={multioutput!r} has {len(multioutput)} weights for {n} outputs"
        )


def averaged(values: Sequence[Number], multioutput: str | tuple[float, ...]) -> Value:
    """Return the outputs' values as they are or their mean; nan without rows."""
    check_outputs(len(values), multioutput)
    if isinstance(multioutput, tuple):
        pairs = list(zip(values, map(Fraction, multioutput), strict=bool(values)))
        used = [(v if isinstance(v, Fraction) else nearest(v), w) for v, w in pairs if w]
        floats = [value for value, _ in used if isinstance(value, float)]
        if not used or not all(map(math.isfinite, floats)):
            return sum(floats) if used else math.nan
        total = sum((Fraction(value) * w for value, w in used), Fraction(0))
        return nearest(total / sum(w for _, w in used))
    if multioutput == "raw_values" and values:
        outputs = [nearest(value) for value in values]
        return LabelledArray.of(outputs, range(len(outputs)), "output")
    if len(values) == 1:
        return nearest(values[0])
    exact = [value for value in values if isinstance(value, Fraction)]
    if values and len(exact) == len(values):
        return nearest(sum(exact, Fraction(0)) / len(exact))
    floats = [nearest(value) for value in values]
    if not floats or not all(map(math.isfinite, floats)):
        return sum(floats) if floats else math.nan
    return nearest(sum(map(Fraction, floats), Fraction(0)) / len(floats))


def ratio(above: Fraction, below: Fraction) -> Fraction | None:
    """Return the quotient, undefined over 0."""
    return above / below if below else None


class RegressionMetric(Metric[Value]):
    """A metric of targets and predictions, (n,) or (n, d) for d outputs; numbers are finite.

    Integers beyond 2**53 are taken whole: an error is the exact difference, rounded once.

    Args:
        multioutput: How the d outputs become one value: ``"uniform_average"`` is their mean and
            ``"raw_values"`` an array (d,); a sequence of d numbers are their weights in a mean.
            Where the metric is a ratio of variances,
            ``"variance_weighted"`` weighs each output by the variance of its target.
        spread: Of a metric made of means: whether to sum the squares of what is averaged too, which
            `confidence` needs; large batches then take half as long again to twice as long.
        nan_policy: ``"omit"`` leaves rows with a missing value out; `n_omitted` counts them.
    """

    nan_policy: NanPolicy = "raise"
    multioutput: Literal["uniform_average", "raw_values"] | Weights = "uniform_average"

    def update(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike = None
    ) -> Self:
        """Take rows.

        Args:
            y_true: Targets, (n,) or (n, d).
            y_pred: Predictions, of the same shape.
            sample_weight: Non-negative weights, (n,).

        Raises:
            InvalidBatchError: A column is not what it should be; nothing has changed.
        """
        return self.feed({"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight})


def summed(metric: Any, loss: LossName, parameter: float = 0.0) -> LossSum:
    """Return the sum of a loss, for a metric told to keep their spread with that of squares."""
    kind = LossSpread if metric.spread else LossSum
    return kind(loss=loss, parameter=parameter, nan_policy=metric.nan_policy)
