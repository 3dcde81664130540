"""What type checkers, so editors, know of values, limits and states: mypy and pyright read this."""

from __future__ import annotations

from typing import Any, assert_type

import streammetrics as sm
from streammetrics.core.confidence import ConfidenceInterval
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.results.values import LabelledArray, Report
from streammetrics.metrics.scores.base import PRPoints, ROCPoints
from streammetrics.metrics.scores.calibration import CalibrationPoints

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

# A number, or one for each class, output or level where a parameter asks for that.
assert_type(sm.F1().compute(), float)
assert_type(sm.F1(average="macro").update([1], [1]).compute(), float)
assert_type(sm.F1(average=None).compute(), LabelledArray)
assert_type(sm.F1(average=None).batch([1], [1]), LabelledArray)
assert_type(sm.FBeta(beta=2.0, average=None).copy().compute(), LabelledArray)
assert_type(sm.merge([sm.Recall(average=None)]).compute(), LabelledArray)
assert_type(sm.ROCAUC().bounds(), sm.Interval[float])
assert_type(sm.ROCAUC(average=None, max_bins=1000).bounds().low, LabelledArray)
assert_type(sm.CalibrationError(average="top_label").compute(), float)
assert_type(sm.SpanF1(average=None).compute(), LabelledArray)
assert_type(sm.Dice(average=None).compute(), LabelledArray)
assert_type(sm.BoxAveragePrecision(average=None, iou=[0.5, 0.75]).compute(), LabelledArray)
assert_type(sm.PanopticQuality(things=(1,), average=None).compute(), LabelledArray)
assert_type(sm.R2().compute(), float)
assert_type(sm.R2(multioutput=[0.5, 0.5]).compute(), float)
assert_type(sm.R2(multioutput="raw_values").compute(), LabelledArray)
assert_type(sm.Quantile(q=0.5).compute(), float)
assert_type(sm.Quantile(q=[0.5, 0.9]).compute(), LabelledArray)

# Confidence limits are of the type of the value.
assert_type(sm.Accuracy().confidence(), ConfidenceInterval[float])
low, high = sm.Mean().confidence()
assert_type(low, float)
assert_type(sm.F1().confidence(0.9).high, float)
assert_type(sm.F1(average=None).confidence().low, LabelledArray)
assert_type(sm.MetricSet(["f1"]).confidence()["f1"], ConfidenceInterval[Any])
assert_type(sm.MetricSet(["f1"])["f1"].confidence(), ConfidenceInterval[Any])

# Tables and curves.
assert_type(sm.ConfusionMatrix().compute(), LabelledArray)
assert_type(sm.ClassificationReport().compute(), Report)
assert_type(sm.ROCCurve().compute(), ROCPoints | Any)
assert_type(sm.PrecisionRecallCurve().compute(), PRPoints | Any)
assert_type(sm.CalibrationCurve().compute(), CalibrationPoints | Any)

# What slices hold: a set for each, a metric of all rows by its name.
sliced = sm.Slices(sm.MetricSet({"f1": sm.F1()}), by="country")
assert_type(sliced[{"country": "DE"}], sm.MetricSet)
assert_type(sliced["f1"], sm.Metric[Any])
assert_type(sm.MetricSet({"f1": sm.F1()})["f1"], sm.Metric[Any])

# What ledgers and windows merge, and what files hold.
suite = sm.MetricSet({"f1": sm.F1()})
assert_type(sm.Ledger(suite).merged(), sm.MetricSet)
assert_type(sm.Ledger(sm.Mean()).compute(), float)
assert_type(sm.Ledger().merged(), Mergeable[Any])
assert_type(sm.Live(suite).window("1h"), sm.MetricSet)
assert_type(sm.Live(suite).window("1h", by="country"), sm.Slices)
assert_type(sm.Live(sm.Mean(), keep_rows=10).last(10).compute(), float)
assert_type(sm.Live(sm.Mean()).decayed("1h"), sm.Mean)
assert_type(sm.from_bytes(b""), Mergeable[Any])
assert_type(sm.load("state"), Mergeable[Any])
assert_type(sm.from_bytes(b"", kind=sm.MetricSet)["f1"], sm.Metric[Any])
assert_type(sm.load("state", kind=sm.Ledger).ids, list[str | int])


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
