"""Shared parts of regression metrics: inputs, exact means and ratios, averages over outputs."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from streammetrics.core.arithmetic.exact import nearest
from streammetrics.core.constraints import NanPolicy, Satisfies
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.metric import Metric, NumberOrArray
from streammetrics.core.results.values import LabelledArray
from streammetrics.core.types import FloatSequence, RawValues
from streammetrics.statistics.sums import LossSpread, LossSum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.metric import GroupValues
    from streammetrics.core.statistic import GroupedStates
    from streammetrics.core.types import ArrayLike
    from streammetrics.statistics.formulas import LossName

    Number = Fraction | float | None

Value: TypeAlias = float | LabelledArray


def are_weights(values: Sequence[float]) -> bool:
    """Whether the values are finite numbers, none negative and not all 0."""
    numbers = all(type(x) in {int, float} and 0 <= x < math.inf for x in values)
    return numbers and any(values)


Weights = Annotated[FloatSequence, Satisfies(are_weights, "weights of the outputs")]


def check_outputs(n: int, multioutput: str | FloatSequence) -> None:
    """Raise `InvalidBatchError` if `multioutput` is a sequence of weights, but not n of them."""
    if n and isinstance(multioutput, tuple) and n != len(multioutput):
        raise InvalidBatchError(
            f"multioutput={multioutput!r} has {len(multioutput)} weights for {n} outputs"
        )


def averaged(values: Sequence[Number], multioutput: str | FloatSequence) -> Value:
    """Return the values of the outputs, or their mean as configured; ``nan`` without rows."""
    if isinstance(multioutput, tuple):
        check_outputs(len(values), multioutput)
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


def where_zero(sizes: Sequence[Fraction | float], what: str) -> str:
    """Return text on the outputs for which something holds: those whose size is 0."""
    zero = [str(output) for output, size in enumerate(sizes) if not size]
    if not zero or len(zero) == len(sizes):
        return what if zero else ""
    more = f", ... ({len(zero)})" if len(zero) > 5 else ""
    return f"{what} in output{'s' * (len(zero) > 1)} {', '.join(zero[:5])}{more}"


def ratio_or_none(above: Fraction, below: Fraction) -> Fraction | None:
    """Return the quotient, or ``None`` (undefined) if the denominator is 0."""
    return above / below if below else None


class RegressionMetric(NumberOrArray[RawValues], Metric[Value]):
    """Base class of metrics of targets and predictions, (n,) or (n, d) for d outputs.

    Numbers are finite. Integers beyond 2**53 stay exact: an error is the exact difference, rounded
    once.

    Args:
        multioutput: How to combine the values of d outputs. ``"uniform_average"``: their mean.
            ``"raw_values"``: an array (d,). A sequence of d numbers: the mean with these weights.
            For ratios of variances also ``"variance_weighted"``: the mean weighted by the
            variances of the targets.
        spread: For metrics that are means: whether to also sum the squares of the averaged values,
            which `confidence` needs; large batches then take 1.5 to 2 times as long.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out; `n_omitted`
            counts them.
    """

    nan_policy: NanPolicy = "raise"
    multioutput: Literal["uniform_average"] | RawValues | Weights = "uniform_average"

    def update(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows.

        Args:
            y_true: Targets, (n,) or (n, d).
            y_pred: Predictions, of the same shape.
            sample_weight: Non-negative weights, (n,).
            counts: How many rows each row stands for, (n,); whole numbers.

        Raises:
            InvalidBatchError: A column has a wrong type or shape, or a missing or infinite value;
                the state is unchanged.
        """
        return self.feed(
            {"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight, "counts": counts}
        )

    def _of_groups(self, *forms: GroupedStates) -> GroupValues | None:
        return super()._of_groups(*forms) if self.multioutput == "uniform_average" else None


def summed(metric: Any, loss: LossName, parameter: float = 0.0) -> LossSum:
    """Return the sum of a loss, with the sum of squares if the metric has ``spread=True``."""
    kind = LossSpread if metric.spread else LossSum
    return kind(loss=loss, parameter=parameter, nan_policy=metric.nan_policy)
