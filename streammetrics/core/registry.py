"""The registry of public names and their modules, of classes with states, and of hooks.

A module is imported when something in it is first used, so that ``import streammetrics`` loads
almost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

VERSION = "0.1.0"

_PACKAGE = __name__.partition(".")[0]

# The public names of each module. `streammetrics/__init__.pyi` declares the same for type checkers.
_NAMES = {
    "core.errors": (
        "EstimateWarning FloatingPointModeError IncompatibleMetricsError InvalidBatchError "
        "NoConfidenceError StateFormatError StreamMetricsError UndefinedMetricWarning"
    ),
    "core.kernels.active": "kernels",
    "core.mergeable": "merge",
    "core.metric": "Metric",
    "core.metric_set": "MetricSet",
    "core.names": "score",
    "core.results.values": "Interval",
    "core.loading": "from_bytes load",
    "engines.local": "evaluate",
    "inference.comparison": "Comparison compare units_needed",
    "inference.estimated": "Estimated",
    "ledger": "Ledger",
    "live.alerts.change": "Change",
    "live.alerts.rules": "Above Below BurnRate Coverage Drift Silence",
    "live.live": "Live",
    "metrics.aggregation": "Count Maximum Mean Minimum Sum Variance",
    "metrics.agreement": (
        "CramersV FleissKappa GwetAC1 KrippendorffAlpha PearsonsContingencyCoefficient TheilsU "
        "TschuprowsT"
    ),
    "metrics.arena": "BradleyTerry",
    "metrics.attempts": "AttemptSpread MajorityAtK MeanAtK PassAtK PassHatK",
    "metrics.classification.multilabel": "HammingLoss MultilabelConfusionMatrix SubsetAccuracy",
    "metrics.classification.overall": (
        "Accuracy BalancedAccuracy ClassificationReport CohenKappa ConfusionMatrix ExpectedCost "
        "GMean MatthewsCorrcoef TopKAccuracy ZeroOneLoss"
    ),
    "metrics.classification.rates": (
        "DiagnosticOddsRatio F1 FBeta FalseDiscoveryRate FalseNegativeRate FalseOmissionRate "
        "FalsePositiveRate Informedness Jaccard LabelAccuracy Markedness "
        "NegativeLikelihoodRatio NegativePredictiveValue PositiveLikelihoodRatio Precision "
        "Prevalence Recall SelectionRate Specificity"
    ),
    "metrics.clustering.information": (
        "AdjustedMutualInfo Completeness Homogeneity MutualInfo NormalizedMutualInfo VMeasure"
    ),
    "metrics.clustering.internal": "CalinskiHarabasz DaviesBouldin DunnIndex Silhouette",
    "metrics.clustering.pairs": (
        "AdjustedRandIndex ClusterAccuracy FowlkesMallows PairConfusionMatrix PairFBeta "
        "PairJaccard PairPrecision PairRecall Purity RandIndex"
    ),
    "metrics.correlation": "KendallTau SpearmanRho",
    "metrics.detection": (
        "BoxAveragePrecision BoxAverageRecall Dice MeanIoU ModifiedPanopticQuality PanopticQuality"
    ),
    "metrics.distributions": "Quantile",
    "metrics.drift": "JensenShannon KSDistance PopulationStability Wasserstein",
    "metrics.forecasting": (
        "CRPSEnsemble CRPSGaussian CRPSQuantiles IntervalCoverage IntervalWidth MASE PITHistogram "
        "RMSSE WinklerScore"
    ),
    "metrics.ranking.base": "ranking_preset",
    "metrics.ranking.binary": (
        "BPref ElevenPointAP InfAP InterpolatedPrecision MAP MRR RPrecision RankBiasedPrecision "
        "RankingCount RecallAtFixedPrecision SetAP"
    ),
    "metrics.ranking.cutoff": (
        "FBetaAtK FallOutAtK GroupedROCAUC HitRateAtK HitsAtK JudgedAtK PrecisionAtK RecallAtK "
        "SetF SetPrecision SetRecall"
    ),
    "metrics.ranking.graded": "DCG ExpectedReciprocalRank NDCG",
    "metrics.recommendation": (
        "CatalogueCoverage ExposureGini IntraListDiversity Novelty PopularityBias"
    ),
    "metrics.regression.losses": (
        "CosineSimilarity D2Tweedie GammaDeviance HuberLoss LogCoshError MAE MAPE MSE MSLE "
        "MeanError MinkowskiDistance NRMSE PinballLoss PoissonDeviance RMSE RMSLE SMAPE "
        "TweedieDeviance WAPE"
    ),
    "metrics.regression.moments": (
        "AdjustedR2 ConcordanceCorrelation D2AbsoluteError D2Pinball ExplainedVariance "
        "PearsonCorrelation R2 RelativeAbsoluteError RelativeSquaredError"
    ),
    "metrics.regression.predictions": "PredictionError",
    "metrics.regression.quantiles": "AbsoluteErrorQuantile MaxError MedianAbsoluteError",
    "metrics.scores.areas": (
        "AveragePrecision CumulativeGains Gini LiftCurve LogAUC PRAUC ROCAUC TopDecileLift auc"
    ),
    "metrics.scores.calibration": (
        "BrierDecomposition CalibrationCurve CalibrationError CalibrationIntercept CalibrationSlope"
    ),
    "metrics.scores.base": "DETCurve EqualErrorRate PrecisionRecallCurve ROCCurve",
    "metrics.scores.losses": (
        "BrierScore CalibrationInTheLarge CoverageError CrossEntropy D2Brier D2LogLoss FocalLoss "
        "HingeLoss KLDivergence LabelRankingAveragePrecision LabelRankingLoss LogLoss "
        "NormalizedEntropy Perplexity RankedProbabilityScore"
    ),
    "metrics.scores.thresholds": (
        "BestThreshold ConfusionAtThresholds KolmogorovSmirnov PrecisionAtRecall "
        "RecallAtPrecision SensitivityAtSpecificity SpecificityAtSensitivity"
    ),
    "metrics.survival": "ConcordanceIndex",
    "metrics.text": (
        "BLEU CER ChrF EditDistance ExactMatch ExtendedEditDistance MER RougeL RougeN SpanF1 "
        "SpanFBeta SpanPrecision SpanRecall TokenF1 TranslationEditRate WER WIL"
    ),
    "show.report": "model_index",
    "slices.bins": "Bins Periods",
    "slices.grouping": "group_by",
    "slices.slices": "Slices",
}
PUBLIC = {name: module for module, names in _NAMES.items() for name in names.split()}

# Modules outside `core` that register functions in it when they are imported.
HOOKS = {
    # Rules of confidence intervals, by family of metrics.
    "limits": "inference.labelings inference.means inference.methods inference.scores "
    "inference.tables",
    "pictures": "show.pictures.curves show.pictures.values",  # plots, by type
    "reports": "show.page",  # reports, by type of state
}
# Classes that are not public but occur in files.
_WRITTEN = {"UnitSet": "inference.units"}

# Classes whose states can be read, by their name in a file.
REGISTRY: dict[str, type] = {}


def public(name: str) -> Any:
    """Import the module of a public name, and return the object."""
    return getattr(import_module(f"{_PACKAGE}.{PUBLIC[name]}"), name)


def load(hook: str) -> None:
    """Import the modules that register functions for a hook; see `HOOKS`."""
    for module in HOOKS[hook].split():
        import_module(f"{_PACKAGE}.{module}")


def register(cls: type) -> None:
    """Register a class, so that its states can be read."""
    REGISTRY[registered_name(cls)] = cls


def class_named(name: str) -> type | None:
    """Return the class with this name in files; ``None`` if there is none.

    Only modules listed in this file are imported. No file names a base class of the package.
    """
    module = PUBLIC.get(name) or _WRITTEN.get(name)
    if name not in REGISTRY and module is not None:
        import_module(f"{_PACKAGE}.{module}")
    cls = REGISTRY.get(name) if module is not None or "." in name else None
    return None if getattr(cls, "__abstractmethods__", None) else cls


def registered_name(cls: type) -> str:
    """Return the name of a class in files: short for the package's own, else qualified."""
    module = cls.__module__
    if module.partition(".")[0] == _PACKAGE:
        return cls.__name__
    if module == "__mp_main__":  # a script's name in spawned processes
        module = "__main__"
    return f"{module}.{cls.__qualname__}"


def metric_names() -> list[str]:
    """Return the sorted names of the package's metrics, without functions."""
    metrics = [name for name, module in PUBLIC.items() if module.startswith("metrics.")]
    return sorted(name for name in metrics if name[0].isupper())


def catalogue() -> dict[str, type[Any]]:
    """Return the metrics of the package by name, sorted; imports all of them."""
    return {name: public(name) for name in metric_names()}
