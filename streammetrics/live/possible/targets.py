"""Extremes of regression errors over missing targets within a range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.live.possible.remembered import ScoreCells, ends_of, extremes, with_columns
from streammetrics.metrics.regression.losses import (
    MAE,
    MAPE,
    MSE,
    MSLE,
    RMSE,
    RMSLE,
    SMAPE,
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
from streammetrics.statistics.formulas import LOSSES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Floats

    Numbers = Floats


def _apart(_: object, target: Numbers, predicted: Numbers) -> Numbers:
    return np.abs(target - predicted)


def _apart_by_logs(_: object, target: Numbers, predicted: Numbers) -> Numbers:
    loss: Numbers = LOSSES["squared_log"].terms(target, predicted, 0.0)
    return loss


def _relative(_: object, target: Numbers, predicted: Numbers) -> Numbers:
    return np.abs(target - predicted) / np.abs(target)


def _relative_to_both(_: object, target: Numbers, predicted: Numbers) -> Numbers:
    loss: Numbers = np.abs(target - predicted) / (np.abs(target) + np.abs(predicted))
    return loss


def _tilted(metric: PinballLoss, target: Numbers, predicted: Numbers) -> Numbers:
    over = target - predicted
    return np.where(over >= 0, metric.alpha * over, (metric.alpha - 1.0) * over)


# Losses that decrease in the target up to the prediction and increase after it. They are smallest
# at the nearest target and largest at an end of the range. Quantiles and the maximum of the rows'
# losses are monotone in each loss.
_LOSSES: dict[type, Callable[[Any, Numbers, Numbers], Numbers]] = {
    MAE: _apart, MSE: _apart, RMSE: _apart, HuberLoss: _apart, LogCoshError: _apart,
    MaxError: _apart, MedianAbsoluteError: _apart, AbsoluteErrorQuantile: _apart,
    MSLE: _apart_by_logs, RMSLE: _apart_by_logs, MAPE: _relative, SMAPE: _relative_to_both,
    PinballLoss: _tilted,
}  # fmt: skip
_POSITIVE = (MSLE, RMSLE, MAPE, SMAPE)  # holds only if no number is negative or 0


_CELLS = 1024  # cells of predictions per pane, if the metric has no `max_bins`


def check_range(target_range: Any) -> None:
    """Raise unless the range is None or a pair of the smallest and the largest possible target."""
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


def asks(metric: Metric, titles: Mapping[str, str]) -> ScoreCells | None:
    """Return the predictions to remember, or None if there is no rule for the metric."""
    if type(metric) not in _LOSSES and type(metric) is not MeanError:
        return None
    config = metric.config
    return ScoreCells(
        of=titles.get("y_pred", "y_pred"),
        nan_policy=config["nan_policy"],
        max_bins=config.get("max_bins", _CELLS),
    )


def interval(known: Metric, held: ScoreCells, target_range: tuple[float, float] | None) -> Any:
    """Return the values at which each row has its smallest, and its largest, possible loss.

    Predictions in a cell may lie anywhere in it; each extreme takes them where their loss is
    extreme.
    """
    low, high, counts = ends_of(held.histogram)
    if not len(counts):  # all rows are omitted, because their prediction is missing
        return known.bounds()
    if target_range is None or (type(known) in _POSITIVE and min(target_range[0], low[0]) <= 0):
        return None
    found = _extremes(known, low, high, *map(float, target_range))
    return extremes([with_columns(known, "y_pred", *columns, counts) for columns in found])


def _extremes(
    known: Metric, low: Numbers, high: Numbers, least: float, most: float
) -> list[tuple[Numbers, Numbers]]:
    """Return the targets and predictions of the smallest and of the largest losses."""
    ends = np.full(len(low), least), np.full(len(low), most)
    if type(known) is MeanError:
        return [(ends[0], high), (ends[1], low)]
    target = np.clip(high, least, most)  # the nearest target, if none lies in the cell
    near = target, np.clip(target, low, high)
    corners = [(end, side) for end in ends for side in (low, high)]
    loss = _LOSSES[type(known)]
    worst = np.argmax([loss(known, *corner) for corner in corners], axis=0)
    far = tuple([np.choose(worst, each) for each in zip(*corners, strict=True)])
    return [near, (far[0], far[1])]
