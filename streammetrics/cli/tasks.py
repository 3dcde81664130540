"""The tasks of `evaluate`: which columns and options each takes, and its metrics by default.

A task is one entry in `TASKS`; a new input or option of one also needs its line in `app.evaluate`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

WEIGHT = "sample_weight"
FLAGS = {WEIGHT: "--weight", "X": "--features"}  # where a flag is not the input's name


@dataclass(frozen=True)
class Task:
    """What a task reads and reports.

    Attributes:
        either: Groups of inputs of which it needs at least one whole.
        required: Inputs it cannot do without besides.
        extra: Inputs it can do without.
        defaults: The metrics by default for every input they read, besides the required ones.
        options: The parameters of metrics that can be set for all of them at once.
        parameters: Those that are set where the user says nothing.
        argmax: An input that scores in several columns stand in for, if there is none.
        instead: What else there is to name its inputs with, as the end of a message.
    """

    either: tuple[tuple[str, ...], ...]
    defaults: Mapping[str, tuple[str, ...]]
    options: frozenset[str]
    required: tuple[str, ...] = ()
    extra: tuple[str, ...] = (WEIGHT,)
    parameters: Mapping[str, object] = field(default_factory=dict)
    argmax: str = ""
    instead: str = ""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Every input it takes."""
        return (*self.required, *(name for group in self.either for name in group), *self.extra)


TASKS = {
    "binary": Task(
        required=("y_true",),
        either=(("y_score",), ("y_pred",)),
        defaults={
            "y_score": (
                "ROCAUC", "AveragePrecision", "LogLoss", "BrierScore", "CalibrationError",
                "KolmogorovSmirnov",
            ),
            "y_pred": ("Accuracy", "Precision", "Recall", "F1", "MatthewsCorrcoef"),
        },
        options=frozenset(
            {
                "threshold", "max_bins", "nan_policy", "labels", "pos_label", "average",
                "from_logits", "ignore_index",
            }
        ),
    ),
    "multiclass": Task(
        required=("y_true",),
        either=(("y_score",), ("y_pred",)),
        defaults={
            "y_pred": ("Accuracy", "BalancedAccuracy", "F1", "MatthewsCorrcoef", "CohenKappa"),
            "y_score": ("ROCAUC", "LogLoss"),
        },
        options=frozenset(
            {"max_bins", "nan_policy", "labels", "average", "from_logits", "ignore_index"}
        ),
        parameters={"average": "macro"},
        argmax="y_pred",
    ),
    "multilabel": Task(
        required=("y_true",),
        either=(("y_score",), ("y_pred",)),
        defaults={
            "y_pred": ("SubsetAccuracy", "HammingLoss", "Precision", "Recall", "F1", "Jaccard"),
            "y_score": (
                "ROCAUC", "AveragePrecision", "CoverageError", "LabelRankingAveragePrecision",
                "LabelRankingLoss",
            ),
        },
        options=frozenset(
            {"threshold", "max_bins", "nan_policy", "labels", "average", "from_logits"}
        ),
        parameters={"average": "macro", "multilabel": True},
    ),
    "regression": Task(
        either=(("y_true", "y_pred"),),
        defaults={
            "y_true": (
                "MAE", "RMSE", "R2", "ExplainedVariance",
                "MedianAbsoluteError", "MaxError", "MeanError",
            )
        },
        options=frozenset({"max_bins", "nan_policy"}),
    ),
    "ranking": Task(
        either=(("query", "relevance", "score"),),
        extra=("doc", "query_weight"),
        defaults={
            "query": ("NDCG", "MAP", "MRR", "PrecisionAtK", "RecallAtK", "HitRateAtK")
        },
        options=frozenset(
            {"k", "preset", "ties", "relevant_at", "no_relevant", "unretrieved", "nan_policy"}
        ),
        parameters={"k": (10,)},
        instead=", or --qrels and --run",
    ),
    "correlation": Task(
        either=(("y_true", "y_pred"),),
        extra=(),
        defaults={"y_true": ("KendallTau", "SpearmanRho", "PearsonCorrelation")},
        options=frozenset({"nan_policy"}),
    ),
    "aggregation": Task(
        either=(("values",),),
        defaults={"values": ("Count", "Sum", "Mean", "Variance", "Minimum", "Maximum")},
        options=frozenset({"max_bins", "nan_policy"}),
    ),
    "clustering": Task(
        either=(("labels_true", "labels_pred"), ("X", "labels")),
        extra=(),
        defaults={
            "labels_true": (
                "AdjustedRandIndex", "NormalizedMutualInfo", "AdjustedMutualInfo",
                "Homogeneity", "Completeness", "VMeasure", "FowlkesMallows", "Purity",
            ),
            "X": ("Silhouette", "DaviesBouldin", "CalinskiHarabasz", "DunnIndex"),
        },
        options=frozenset({"nan_policy"}),
    ),
    "agreement": Task(
        either=(("ratings",), ("labels_true", "labels_pred")),
        extra=(),
        defaults={
            "ratings": ("FleissKappa", "GwetAC1", "KrippendorffAlpha"),
            "labels_true": (
                "CramersV", "TschuprowsT", "PearsonsContingencyCoefficient", "TheilsU"
            ),
        },
        options=frozenset({"nan_policy"}),
    ),
    "forecasting": Task(
        either=(
            ("y_pred", "scale"), ("y_low", "y_high"), ("y_mean", "y_std"), ("y_ensemble",),
            ("y_quantiles",), ("pit",),
        ),
        extra=("y_true", WEIGHT),
        defaults={
            "scale": ("MASE", "RMSSE"),
            "y_low": ("IntervalCoverage", "IntervalWidth", "WinklerScore"),
            "y_mean": ("CRPSGaussian",),
            "y_ensemble": ("CRPSEnsemble",),
            "y_quantiles": ("CRPSQuantiles",),
            "pit": ("PITHistogram",),
        },
        options=frozenset({"nan_policy", "levels"}),
    ),
    "recommendation": Task(
        either=(("item",), ("category",), ("popularity",)),
        extra=("query", WEIGHT),
        defaults={
            "item": ("ExposureGini",),
            "category": ("IntraListDiversity",),
            "popularity": ("Novelty", "PopularityBias"),
        },
        options=frozenset({"nan_policy"}),
    ),
    "survival": Task(
        either=(("time", "event", "score"),),
        extra=(),
        defaults={"time": ("ConcordanceIndex",)},
        options=frozenset({"nan_policy"}),
    ),
    "text": Task(
        either=(("reference", "prediction"),),
        defaults={"reference": ("ExactMatch", "TokenF1", "RougeL", "BLEU", "ChrF")},
        options=frozenset({"nan_policy"}),
    ),
    "spans": Task(
        either=(("y_true", "y_pred"),),
        extra=(),
        defaults={"y_true": ("SpanPrecision", "SpanRecall", "SpanF1")},
        options=frozenset({"nan_policy", "average"}),
    ),
    "boxes": Task(
        either=(("true_boxes", "true_labels", "pred_boxes", "pred_labels", "pred_scores"),),
        extra=("true_crowd", "true_areas"),
        defaults={
            "true_boxes": (
                "BoxAveragePrecision", "BoxAveragePrecision(iou=0.5)",
                "BoxAveragePrecision(iou=0.75)", "BoxAveragePrecision(area=small)",
                "BoxAveragePrecision(area=medium)", "BoxAveragePrecision(area=large)",
                "BoxAverageRecall(max_detections=1)", "BoxAverageRecall(max_detections=10)",
                "BoxAverageRecall", "BoxAverageRecall(area=small)",
                "BoxAverageRecall(area=medium)", "BoxAverageRecall(area=large)",
            )
        },
        options=frozenset({"nan_policy", "average", "box_format", "max_bins"}),
        instead=", or --annotations and --results",
    ),
    "masks": Task(
        either=(("y_true", "y_pred"),),
        defaults={"y_true": ("MeanIoU", "Dice")},
        options=frozenset({"nan_policy", "average", "labels", "ignore_index"}),
    ),
}  # fmt: skip

# Inputs that a model gives: several columns for one of them, or several runs, are several models.
OF_MODELS = ("y_score", "y_pred", "score", "labels_pred", "prediction", "pred_boxes")

# Metrics of whole rankings, which a TREC file, small enough to be text, has by default besides.
OF_TREC_FILES = ("MAP", "MRR", "NDCG", "RPrecision", "BPref")

# Metrics whose scores are probabilities; others only need their order.
PROBABILITIES = frozenset(
    {
        "BrierDecomposition", "BrierScore", "CalibrationCurve", "CalibrationError",
        "CalibrationInTheLarge", "CalibrationIntercept", "CalibrationSlope", "D2Brier", "D2LogLoss",
        "FocalLoss", "LogLoss", "Perplexity", "RankedProbabilityScore",
    }
)  # fmt: skip


def flag(name: str) -> str:
    """Return the flag of an input or an option."""
    return FLAGS.get(name, f"--{name.replace('_', '-')}")
