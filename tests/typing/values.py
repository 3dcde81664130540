"""What a type checker, and so an editor, knows of `compute` and `bounds`: mypy reads this file."""

from __future__ import annotations

from typing import Any, assert_type

import streammetrics as sm
from streammetrics.core.results.curves import Curves
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.core.results.values import Report
from streammetrics.core.types import Floats
from streammetrics.metrics.scores.calibration import CalibrationPoints
from streammetrics.metrics.scores.curves import PRPoints, ROCPoints

# Numbers.
assert_type(sm.Accuracy(threshold=0.5).compute(), float)
assert_type(sm.LogLoss().update([1], [0.5]).compute(), float)
assert_type(sm.Mean().batch([1.0, 2.0]), float)
assert_type(sm.Count().compute(), int | float)
assert_type(sm.NDCG(k=10).compute(), float)
assert_type(sm.KendallTau().bounds(), sm.Interval[float])
assert_type(sm.Silhouette().bounds().low, float)
assert_type(sm.AdjustedRandIndex().copy().merge().compute(), float)
assert_type(sm.merge([sm.Mean(), sm.Mean()]).compute(), float)

# A number, or one for each class or output where a parameter asks for that.
assert_type(sm.F1(average="macro").compute(), float | Floats)
assert_type(sm.ROCAUC().bounds(), sm.Interval[float | Floats])
assert_type(sm.R2().compute(), float | Floats)

# Tables and curves.
assert_type(sm.ConfusionMatrix().compute(), LabelledArray)
assert_type(sm.ClassificationReport().compute(), Report)
assert_type(sm.ROCCurve().compute(), ROCPoints | Curves)
assert_type(sm.PrecisionRecallCurve().compute(), PRPoints | Curves)
assert_type(sm.CalibrationCurve().compute(), CalibrationPoints | Curves)

# What slices hold: a set for each, a metric of all rows by its name.
sliced = sm.Slices(sm.MetricSet({"f1": sm.F1()}), by="country")
assert_type(sliced[{"country": "DE"}], sm.MetricSet)
assert_type(sliced["f1"], sm.Metric[Any])


class Half(sm.Metric[float]):
    """Whose value is said by who writes it; parameters complete, and are checked by their types."""

    factor: float = 0.5

    def readout(self, total: Any) -> float:
        """Return it."""
        return self.factor * float(total)


def value_of(metric: sm.Metric, half: Half) -> None:
    """Of some metric nothing is known; of one that says so, all."""
    assert_type(metric.compute(), Any)
    assert_type(half.compute(), float)
    assert_type(half.factor, float)
