"""Targets at which errors are as small, and as large, as a range of targets allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.metrics.regression.losses import (
    MAE,
    MSE,
    RMSE,
    HuberLoss,
    LogCoshError,
    MeanError,
    PinballLoss,
)
from streammetrics.metrics.regression.quantiles import (
    AbsoluteErrorQuantile,
    MaxError,
    MedianAbsoluteError,
)
from streammetrics.metrics.regression.relative import MAPE, MSLE, RMSLE, SMAPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from streammetrics.core.metric import Metric
    from streammetrics.live.possible.unlabelled import Unlabelled

    Numbers = NDArray[np.float64]


def _apart(_: Any, target: Numbers, predicted: Numbers) -> Numbers:
    loss: Numbers = np.abs(target - predicted)
    return loss


def _apart_by_logs(_: Any, target: Numbers, predicted: Numbers) -> Numbers:
    loss: Numbers = np.abs(np.log1p(target) - np.log1p(predicted))
    return loss


def _relative(_: Any, target: Numbers, predicted: Numbers) -> Numbers:
    loss: Numbers = np.abs(target - predicted) / np.abs(target)
    return loss


def _relative_to_both(_: Any, target: Numbers, predicted: Numbers) -> Numbers:
    loss: Numbers = np.abs(target - predicted) / (np.abs(target) + np.abs(predicted))
    return loss


def _tilted(metric: Any, target: Numbers, predicted: Numbers) -> Numbers:
    over = target - predicted
    loss: Numbers = np.where(over >= 0, metric.alpha * over, (metric.alpha - 1.0) * over)
    return loss


# Losses of one row that fall until its target is the prediction and rise after it: so they are
# least at the target next to it, and largest at one of the ends. Quantiles and the maximum of
# rows' losses grow with each of them.
_LOSSES: dict[type, Callable[[Any, Numbers, Numbers], Numbers]] = {
    MAE: _apart, MSE: _apart, RMSE: _apart, HuberLoss: _apart, LogCoshError: _apart,
    MaxError: _apart, MedianAbsoluteError: _apart, AbsoluteErrorQuantile: _apart,
    MSLE: _apart_by_logs, RMSLE: _apart_by_logs, MAPE: _relative, SMAPE: _relative_to_both,
    PinballLoss: _tilted,
}  # fmt: skip
_POSITIVE = (MSLE, RMSLE, MAPE, SMAPE)  # of which that is so where nothing is negative, or 0


def check_range(target_range: Any) -> None:
    """Raise unless it says what the least and the largest target may be, or nothing."""
    if target_range is None:
        return
    try:
        low, high = target_range
        good = bool(low <= high)
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(
            f"target_range={target_range!r}: expected the least and the largest target, as (0, 100)"
        )


def has(metric: Metric) -> bool:
    """Whether there is such a rule for a metric."""
    return type(metric) in _LOSSES or type(metric) is MeanError


def labels(
    metric: Metric, rows: Unlabelled, target_range: tuple[float, float] | None
) -> Iterator[Numbers]:
    """Yield the targets of the extremes, none where nothing bounds them."""
    predicted = rows.of("y_pred")
    if target_range is None or predicted is None:
        return
    low, high = target_range
    if type(metric) in _POSITIVE and (low <= 0 or predicted.min() <= 0):
        return
    ends = np.full(len(predicted), float(low)), np.full(len(predicted), float(high))
    if type(metric) is MeanError:
        yield from ends
        return
    loss = _LOSSES[type(metric)]
    yield np.clip(predicted, low, high)
    yield np.where(loss(metric, ends[0], predicted) > loss(metric, ends[1], predicted), *ends)
