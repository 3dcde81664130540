"""Targets at which errors are as small, and as large, as a range of targets allows."""

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
from streammetrics.statistics.sums.formulas import LOSSES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Floats

    Numbers = Floats


def _apart(_: object, target: Numbers, predicted: Numbers) -> Numbers:
    loss: Numbers = np.abs(target - predicted)
    return loss


def _apart_by_logs(_: object, target: Numbers, predicted: Numbers) -> Numbers:
    loss: Numbers = LOSSES["squared_log"].terms(target, predicted, 0.0)
    return loss


def _relative(_: object, target: Numbers, predicted: Numbers) -> Numbers:
    loss: Numbers = np.abs(target - predicted) / np.abs(target)
    return loss


def _relative_to_both(_: object, target: Numbers, predicted: Numbers) -> Numbers:
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


_CELLS = 1024  # of predictions in a pane, where the metric has no budget of its own


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


def asks(metric: Metric, titles: Mapping[str, str]) -> ScoreCells | None:
    """Return the predicted numbers."""
    if type(metric) not in _LOSSES and type(metric) is not MeanError:
        return None
    config = metric.config
    return ScoreCells(
        of=titles.get("y_pred", "y_pred"),
        nan_policy=config["nan_policy"],
        max_bins=config.get("max_bins", _CELLS),
    )


def interval(known: Metric, held: ScoreCells, target_range: tuple[float, float] | None) -> Any:
    """Return the value where each row loses as little, and as much, as its target can make it.

    Predictions that share a cell may be anywhere in it: they are taken where they lose least, and
    most.
    """
    low, high, counts = ends_of(held.histogram)
    if not len(counts):  # each of the rows is left out, as its prediction is missing
        return known.bounds()
    if target_range is None or (type(known) in _POSITIVE and min(target_range[0], low[0]) <= 0):
        return None
    found = _extremes(known, low, high, *map(float, target_range))
    return extremes([with_columns(known, "y_pred", *columns, counts) for columns in found])


def _extremes(
    known: Metric, low: Numbers, high: Numbers, least: float, most: float
) -> list[tuple[Numbers, Numbers]]:
    """Return the targets and the predictions of either extreme, of cells and a range of targets."""
    ends = np.full(len(low), least), np.full(len(low), most)
    if type(known) is MeanError:
        return [(ends[0], high), (ends[1], low)]
    target = np.clip(high, least, most)  # as near as can be, where no target is in the cell
    near = target, np.clip(target, low, high)
    corners = [(end, side) for end in ends for side in (low, high)]
    loss = _LOSSES[type(known)]
    worst = np.argmax([loss(known, *corner) for corner in corners], axis=0)
    far = tuple([np.choose(worst, each) for each in zip(*corners, strict=True)])
    return [near, (far[0], far[1])]
