"""One registry: public names and their modules, classes that states are read into, and hooks.

A module is imported when something in it is used, so that ``import streammetrics`` loads almost
nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PACKAGE = __name__.partition(".")[0]

# The public names of each module. `streammetrics/__init__.pyi` tells type checkers the same.
_NAMES = {
    "core.by_name.shortcuts": "score",
    "core.errors": (
        "EstimateWarning FloatingPointModeError IncompatibleMetricsError InvalidBatchError "
        "NoConfidenceError StateFormatError StreamMetricsError UndefinedMetricWarning"
    ),
    "core.kernels.active": "kernels",
    "core.mergeable": "merge",
    "core.metric": "Metric",
    "core.metric_set": "MetricSet",
    "core.results.values": "Interval",
    "core.stateful": "from_bytes load",
    "engines.local": "evaluate",
    "inference.comparing.comparison": "Comparison",
    "inference.comparing.states": "compare",
    "ledger.ledger": "Ledger",
    "live.alerts.change": "Change",
    "live.alerts.drift": "Drift",
    "live.alerts.missing": "Coverage Silence",
    "live.alerts.thresholds": "Above Below BurnRate",
    "live.live": "Live",
    "metrics.aggregation": "Count Maximum Mean Minimum Sum Variance",
    "metrics.agreement.association": "CramersV PearsonsContingencyCoefficient TheilsU TschuprowsT",
    "metrics.agreement.raters": "FleissKappa GwetAC1 KrippendorffAlpha",
    "metrics.classification.multilabel": "HammingLoss MultilabelConfusionMatrix SubsetAccuracy",
    "metrics.classification.overall": (
        "Accuracy BalancedAccuracy CohenKappa ExpectedCost GMean MatthewsCorrcoef ZeroOneLoss"
    ),
    "metrics.classification.rates": (
        "DiagnosticOddsRatio FalseDiscoveryRate FalseOmissionRate Informedness Markedness "
        "NegativeLikelihoodRatio PositiveLikelihoodRatio Prevalence"
    ),
    "metrics.classification.ratios": (
        "F1 FBeta FalseNegativeRate FalsePositiveRate Jaccard NegativePredictiveValue Precision "
        "Recall Specificity"
    ),
    "metrics.classification.reports": "ClassificationReport ConfusionMatrix",
    "metrics.classification.topk": "TopKAccuracy",
    "metrics.clustering.dispersion": "CalinskiHarabasz DaviesBouldin",
    "metrics.clustering.distances": "DunnIndex Silhouette",
    "metrics.clustering.entropy": (
        "AdjustedMutualInfo Completeness Homogeneity MutualInfo NormalizedMutualInfo VMeasure"
    ),
    "metrics.clustering.matching": "ClusterAccuracy Purity",
    "metrics.clustering.pairs": (
        "AdjustedRandIndex FowlkesMallows PairConfusionMatrix PairFBeta PairJaccard PairPrecision "
        "PairRecall RandIndex"
    ),
    "metrics.correlation.rank": "KendallTau SpearmanRho",
    "metrics.detection.boxes": "BoxAveragePrecision BoxAverageRecall",
    "metrics.detection.masks": "Dice MeanIoU",
    "metrics.detection.panoptic": "ModifiedPanopticQuality PanopticQuality",
    "metrics.distributions": "Quantile",
    "metrics.drift.bins": "JensenShannon PopulationStability",
    "metrics.drift.distances": "KSDistance Wasserstein",
    "metrics.forecasting.intervals": "IntervalCoverage IntervalWidth WinklerScore",
    "metrics.forecasting.predictive": "CRPSEnsemble CRPSGaussian CRPSQuantiles PITHistogram",
    "metrics.forecasting.scaled": "MASE RMSSE",
    "metrics.ranking.base": "ranking_preset",
    "metrics.ranking.binary": "BPref MAP MRR RPrecision RankBiasedPrecision",
    "metrics.ranking.counted": "RankingCount RecallAtFixedPrecision SetAP",
    "metrics.ranking.cutoff": "FBetaAtK HitRateAtK PrecisionAtK RecallAtK",
    "metrics.ranking.graded": "DCG ExpectedReciprocalRank NDCG",
    "metrics.ranking.inferred": "InfAP",
    "metrics.ranking.interpolated": "ElevenPointAP InterpolatedPrecision",
    "metrics.ranking.sets": (
        "FallOutAtK GroupedROCAUC HitsAtK JudgedAtK SetF SetPrecision SetRecall"
    ),
    "metrics.recommendation.lists": (
        "CatalogueCoverage ExposureGini IntraListDiversity Novelty PopularityBias"
    ),
    "metrics.regression.deviances": "D2Tweedie GammaDeviance PoissonDeviance TweedieDeviance",
    "metrics.regression.losses": "HuberLoss LogCoshError MAE MSE MeanError PinballLoss RMSE",
    "metrics.regression.moments": (
        "ConcordanceCorrelation ExplainedVariance PearsonCorrelation R2 RelativeSquaredError"
    ),
    "metrics.regression.norms": "CosineSimilarity MinkowskiDistance NRMSE",
    "metrics.regression.quantiles": "AbsoluteErrorQuantile MaxError MedianAbsoluteError",
    "metrics.regression.relative": "MAPE MSLE RMSLE SMAPE WAPE",
    "metrics.regression.shares": "AdjustedR2 D2AbsoluteError D2Pinball RelativeAbsoluteError",
    "metrics.scores.calibration": "CalibrationCurve CalibrationError",
    "metrics.scores.curves": "PrecisionRecallCurve ROCCurve",
    "metrics.scores.decisions": "BestThreshold ConfusionAtThresholds",
    "metrics.scores.distributions": "CrossEntropy KLDivergence",
    "metrics.scores.early": "LogAUC",
    "metrics.scores.errors": "DETCurve EqualErrorRate",
    "metrics.scores.gains": "CumulativeGains Gini LiftCurve TopDecileLift",
    "metrics.scores.labels": "CoverageError LabelRankingAveragePrecision LabelRankingLoss",
    "metrics.scores.losses": (
        "BrierScore CalibrationInTheLarge FocalLoss LogLoss Perplexity RankedProbabilityScore"
    ),
    "metrics.scores.margins": "HingeLoss",
    "metrics.scores.precision_area": "AveragePrecision PRAUC",
    "metrics.scores.reliability": "BrierDecomposition CalibrationIntercept CalibrationSlope",
    "metrics.scores.roc_area": "ROCAUC",
    "metrics.scores.shares": "D2Brier D2LogLoss NormalizedEntropy",
    "metrics.scores.thresholds": (
        "KolmogorovSmirnov PrecisionAtRecall RecallAtPrecision SensitivityAtSpecificity "
        "SpecificityAtSensitivity"
    ),
    "metrics.scores.trapezoids": "auc",
    "metrics.survival.concordance": "ConcordanceIndex",
    "metrics.text.answers": "ExactMatch RougeL RougeN TokenF1",
    "metrics.text.distances": "ExtendedEditDistance TranslationEditRate",
    "metrics.text.recognition": "CER EditDistance MER WER WIL",
    "metrics.text.spans": "SpanF1 SpanPrecision SpanRecall",
    "metrics.text.translation": "BLEU ChrF",
    "show.cards": "model_index",
    "slices.bins": "Bins Periods",
    "slices.slices": "Slices",
}
PUBLIC = {name: module for module, names in _NAMES.items() for name in names.split()}

# Modules of the rooms above `core` that register functions there when they are imported.
HOOKS = {
    "limits": "inference.families",  # a rule for each family of metrics
    "pictures": "show.pictures.families",  # how each kind of result is drawn
    "reports": "show.pages.written",  # how a report of a state is written
}
# Classes that are not public but stand in files.
_WRITTEN = {"UnitSet": "slices.unit_set"}

# The classes whose states can be read, by the name that stands in a file.
REGISTRY: dict[str, type[Any]] = {}


def public(name: str) -> Any:
    """Return what a public name stands for, after importing its module."""
    return getattr(import_module(f"{_PACKAGE}.{PUBLIC[name]}"), name)


def load(hook: str) -> None:
    """Import the module that registers functions for a hook, see `HOOKS`."""
    import_module(f"{_PACKAGE}.{HOOKS[hook]}")


def register(cls: type[Any]) -> None:
    """Let states of a class be read."""
    REGISTRY[registered_name(cls)] = cls


def class_named(name: str) -> type[Any] | None:
    """Return the class that states name so; ``None`` if there is none.

    Only modules of the static tables above are imported for it.
    """
    if name not in REGISTRY:
        module = PUBLIC.get(name) or _WRITTEN.get(name)
        if module is not None:
            import_module(f"{_PACKAGE}.{module}")
    return REGISTRY.get(name)


def registered_name(cls: type) -> str:
    """Return the name under which states name a class: short for the package's own."""
    module = cls.__module__
    if module.partition(".")[0] == _PACKAGE:
        return cls.__name__
    if module == "__mp_main__":  # a script, as processes that it spawns call it
        module = "__main__"
    return f"{module}.{cls.__qualname__}"


def metric_names() -> list[str]:
    """Return the names of the package's metrics, sorted; functions beside them are lower case."""
    metrics = [name for name, module in PUBLIC.items() if module.startswith("metrics.")]
    return sorted(name for name in metrics if name[0].isupper())


def catalogue() -> dict[str, type[Any]]:
    """Return the metrics of the package by name, sorted; this imports all of them."""
    return {name: public(name) for name in metric_names()}
