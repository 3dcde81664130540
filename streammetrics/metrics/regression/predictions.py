"""Targets beside their predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.core.confidence import Refusal
from streammetrics.core.results.values import Interval
from streammetrics.metrics.correlation import NumberPairs, PredictionPairs
from streammetrics.metrics.families import SEVERAL

if TYPE_CHECKING:
    from streammetrics.statistics.pairs import PairHistogram


class PredictionError(NumberPairs[PredictionPairs]):
    """Targets beside their predictions, to plot predicted against actual values, or residuals.

    Formula: n(y, p), the number of rows with target y and prediction p

    The value has the arrays `y_true`, `y_pred` and `n_rows`. ``plot()`` draws the targets over the
    predictions, and ``plot(kind="residuals")`` what is left of each target.

    Exact for up to `max_pairs` (2**20) distinct pairs. Beyond that, a value is the middle of its
    cell, and `bounds()` has both ends.

    Parameters are those of `NumberPairs`.

    Raises:
        InvalidBatchError: From `update`, if weights are given or a value is nan.

    Memory and cost: that of a `PairHistogram`, which rank correlations with the same parameters
    share; `compute` takes about 20 ns per pair.

    Reference: ``numpy.unique(rows, axis=0, return_counts=True)``;
    ``sklearn.metrics.PredictionErrorDisplay``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PredictionError().update([1.0, 3.0, 1.0], [2.0, 3.0, 2.0]).compute().to_dict()
        {'y_true': [1.0, 3.0], 'y_pred': [2.0, 3.0], 'n_rows': [2, 1]}
    """

    family = Refusal("counts of pairs grow with the rows; MAE and RMSE have one")
    _incomparable = SEVERAL

    def readout(self, pairs: PairHistogram) -> PredictionPairs:
        """Return the distinct pairs."""
        return self._shape(pairs)

    def interval(self, pairs: PairHistogram) -> Interval[PredictionPairs]:
        """Return the pairs at the lower and at the upper ends of their cells."""
        cells = pairs.cells()
        return Interval(PredictionPairs.of(cells, "low"), PredictionPairs.of(cells, "high"))
