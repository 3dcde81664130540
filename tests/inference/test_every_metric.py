"""Every public metric has a confidence interval, or says in a sentence why it has none."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from oracles.table import ORACLES

import streammetrics as sm
from streammetrics.inference.refusals import REFUSALS

# What has no interval in a default configuration, and a word of the reason.
WITHOUT = {
    "Count": "grows with the rows",
    "Sum": "grows with the rows",
    "Minimum": "smallest value",
    "Maximum": "largest value",
    "MaxError": "largest value",
    "CalibrationError": "chance alone moves every bin",
    "BrierDecomposition": "chance alone moves every bin",
    "FleissKappa": "single items",
    "GwetAC1": "single items",
    "KrippendorffAlpha": "single items",
    "CatalogueCoverage": "grows with the rows",
    "ExposureGini": "of the same list",
    "IntraListDiversity": "of the same list",
    "ConcordanceIndex": "pairs share their rows",
    "BoxAveragePrecision": "how much images differ",
    "BoxAverageRecall": "how much images differ",
    "Dice": "pixels of an image",
    "LogAUC": "first few false positives",
    "MeanIoU": "pixels of an image",
    "ModifiedPanopticQuality": "how much images differ",
    "PanopticQuality": "how much images differ",
    "EditDistance": "grows with the rows",
    "SpanF1": "it is of the corpus",
    "SpanPrecision": "it is of the corpus",
    "SpanRecall": "it is of the corpus",
    "D2AbsoluteError": "of the same rows",
    "D2Pinball": "of the same rows",
    "D2Tweedie": "of the same rows",
    "RelativeAbsoluteError": "of the same rows",
    "NRMSE": "of the same rows",
    "AdjustedR2": r"R2\(spread=True\) has limits",
    "MinkowskiDistance": "grows with the rows",
    "RankingCount": "grows with the rows",
    "RecallAtFixedPrecision": "of these queries only",
    "D2LogLoss": "of the same rows",
    "D2Brier": "of the same rows",
    "Variance": "fourth moments",
    "R2": "fourth moments",
    "ExplainedVariance": "fourth moments",
    "RelativeSquaredError": "fourth moments",
    "PearsonCorrelation": "fourth moments",
    "ConcordanceCorrelation": "fourth moments",
    "MultilabelConfusionMatrix": "grow with the rows",
    "PairConfusionMatrix": "grows with the rows",
    "ConfusionAtThresholds": "grows with the rows",
    "BestThreshold": "unlike any mean",
    "LiftCurve": "quotients of shares",
    "NormalizedEntropy": "how both vary together",
    "CalinskiHarabasz": "places of all others",
    "DaviesBouldin": "places of all others",
    "Silhouette": "places of all others",
    "DunnIndex": "places of all others",
    "KSDistance": "by chance alone",
    "Wasserstein": "by chance alone",
    "PopulationStability": "by chance alone",
    "JensenShannon": "by chance alone",
    "ConfusionMatrix": "counts grow with the rows",
    "ClassificationReport": "its entries have",
}
METRICS = {
    name: thing
    for name, thing in ((name, getattr(sm, name)) for name in sm.__all__)
    if inspect.isclass(thing) and issubclass(thing, sm.Metric) and thing is not sm.Metric
}


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_limits_or_says_in_a_sentence_why_not(name):
    every = [o for o in ORACLES if type(o.metric) is METRICS[name]]
    oracle = every[name == "Mean"]  # the first of which has values that differ by nothing in them
    rows = oracle.rows(np.random.default_rng(0), oracle.n)
    rows.pop("sample_weight", None)
    config = oracle.metric.config
    metric = METRICS[name](**config).update(**rows)
    if name in WITHOUT and not (name == "ConfusionMatrix" and metric.normalize):
        with pytest.raises(sm.NoConfidenceError, match=WITHOUT[name]) as refused:
            metric.confidence()
        assert str(refused.value).startswith(f"{name} has no confidence interval: ")
    else:
        interval = metric.confidence()
        assert interval.level == 0.95
        assert interval.method


def test_refusals_are_of_public_metrics():
    assert {cls.__name__ for cls in REFUSALS} <= WITHOUT.keys()
