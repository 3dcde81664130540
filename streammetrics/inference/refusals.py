"""Metrics that have no confidence interval, and why: a sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from streammetrics.core.confidence import Asked, confidence_of, without
from streammetrics.metrics import aggregation
from streammetrics.metrics.agreement import raters
from streammetrics.metrics.clustering import dispersion, distances, pairs
from streammetrics.metrics.detection import boxes, masks, panoptic
from streammetrics.metrics.drift import bins
from streammetrics.metrics.drift import distances as of_samples
from streammetrics.metrics.ranking import counted
from streammetrics.metrics.recommendation import lists
from streammetrics.metrics.regression import deviances, norms, quantiles
from streammetrics.metrics.regression import shares as targets
from streammetrics.metrics.scores import calibration, decisions, early, gains, reliability, shares
from streammetrics.metrics.survival import concordance
from streammetrics.metrics.text import recognition, spans

if TYPE_CHECKING:
    from streammetrics.core.metric import Metric

_GROWS = "it grows with the rows and estimates nothing of a population; {} does"
_EXTREME = "the {} value of a sample says little of that of the population; {} near it does"
_BY = "MetricSet(..., unit={0!r}) has limits, by a jackknife of what the column {0!r} tells apart"
_POINTS = (
    "every point is judged by the places of all others, and clusters were made of them, so rows "
    "are no sample of its parts"
)
_APART = (
    "two samples of one population are apart by chance alone, so that it is too large by what is "
    "not known"
)

_LISTS = (
    f"items were chosen with those of the same list, so rows are no sample; {_BY.format('list')}"
)

_CORPUS = f"it is of the corpus, and how much its texts differ is not kept; {_BY.format('text')}"

_IMAGES = f"how much images differ is not kept; {_BY.format('image')}"

_PIXELS = f"pixels of an image hang together, so rows are no sample; {_BY.format('image')}"

_ITEMS = (
    f"how much single items agree is not kept, of which its spread is made; {_BY.format('item')}"
)

_BASELINE = (
    "the loss that it is relative to is of the same rows, and how both vary together is not kept; "
    f"{{}} has limits, and {_BY.format('id')}"
)

REFUSALS: dict[type[Metric], str] = {
    aggregation.Count: _GROWS.format("a rate, such as Accuracy,"),
    aggregation.Sum: _GROWS.format("Mean"),
    aggregation.Minimum: _EXTREME.format("smallest", "Quantile(q=0.01)"),
    aggregation.Maximum: _EXTREME.format("largest", "Quantile(q=0.99)"),
    quantiles.MaxError: _EXTREME.format("largest", "AbsoluteErrorQuantile(q=0.99)"),
    counted.RankingCount: _GROWS.format("a mean over queries, such as HitsAtK,"),
    counted.RecallAtFixedPrecision: (
        "its cut-off is the best of these queries only; RecallAtK at that k, on other queries, has "
        "limits"
    ),
    calibration.CalibrationError: (
        "chance alone moves every bin off its score, so that it is too large by what is not known; "
        "CalibrationCurve has limits for each bin, and BrierScore has them"
    ),
    pairs.PairConfusionMatrix: _GROWS.format("a share of pairs, such as RandIndex,"),
    reliability.BrierDecomposition: (
        "chance alone moves every bin off its score and off the mean, so that two of its parts are "
        "too large by what is not known; BrierScore has limits"
    ),
    lists.CatalogueCoverage: _GROWS.format("a mean over lists, such as IntraListDiversity,"),
    lists.ExposureGini: _LISTS,
    lists.IntraListDiversity: _LISTS,
    concordance.ConcordanceIndex: (
        "pairs share their rows, and how many of its pairs each row has right is not kept; "
        f"{_BY.format('id')}"
    ),
    recognition.EditDistance: _GROWS.format("a rate, such as CER,"),
    spans.SpanF1: _CORPUS,
    spans.SpanPrecision: _CORPUS,
    spans.SpanRecall: _CORPUS,
    boxes.BoxAveragePrecision: _IMAGES,
    boxes.BoxAverageRecall: _IMAGES,
    masks.Dice: _PIXELS,
    panoptic.ModifiedPanopticQuality: _IMAGES,
    panoptic.PanopticQuality: _IMAGES,
    masks.MeanIoU: _PIXELS,
    raters.FleissKappa: _ITEMS,
    raters.GwetAC1: _ITEMS,
    raters.KrippendorffAlpha: _ITEMS,
    targets.D2AbsoluteError: _BASELINE.format("MAE"),
    targets.D2Pinball: _BASELINE.format("PinballLoss"),
    deviances.D2Tweedie: _BASELINE.format("TweedieDeviance"),
    targets.RelativeAbsoluteError: _BASELINE.format("MAE"),
    targets.AdjustedR2: "it takes off what R2 is too large by; R2(spread=True) has limits",
    norms.NRMSE: _BASELINE.format("RMSE").replace("loss", "size", 1),
    norms.MinkowskiDistance: _GROWS.format("a mean, such as MAE,"),
    shares.D2LogLoss: _BASELINE.format("LogLoss"),
    shares.D2Brier: _BASELINE.format("BrierScore"),
    decisions.ConfusionAtThresholds: _GROWS.format("ROCCurve, of rates,"),
    decisions.BestThreshold: (
        "where a value is best varies unlike any mean, and the value there is best of these rows "
        "only; the same metric at that threshold, on other rows, has one"
    ),
    early.LogAUC: (
        "how the first few false positives vary makes most of it, which is unlike any mean; "
        "ROCAUC(max_fpr=0.1), which asks nearly the same, has limits"
    ),
    gains.LiftCurve: (
        "its points are quotients of shares of the same rows; CumulativeGains has limits for each "
        "point, and TopDecileLift at one depth"
    ),
    shares.NormalizedEntropy: _BASELINE.format("LogLoss"),
    dispersion.CalinskiHarabasz: _POINTS,
    dispersion.DaviesBouldin: _POINTS,
    distances.Silhouette: _POINTS,
    distances.DunnIndex: _POINTS,
    of_samples.KSDistance: _APART,
    of_samples.Wasserstein: _APART,
    bins.PopulationStability: _APART,
    bins.JensenShannon: _APART,
}


def _refuse(metric: Metric[object], asked: Asked, *statistics: object) -> NoReturn:  # noqa: ARG001 - as others
    raise without(metric, next(REFUSALS[cls] for cls in type(metric).__mro__ if cls in REFUSALS))


for _metric in REFUSALS:
    confidence_of.register(_metric, _refuse)
