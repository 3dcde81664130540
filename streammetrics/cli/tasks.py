"""Tasks: the columns they read, their metrics, and how metrics are written."""

from __future__ import annotations

import ast
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streammetrics.cli.errors import CommandError
from streammetrics.metrics import specs as words
from streammetrics.metrics.specs import Spec, SpecError, parameters_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from streammetrics.core.metric import Metric


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


def parse(texts: Sequence[str]) -> list[Spec]:
    """Read what was typed behind ``--metrics``, once or several times.

    Raises:
        CommandError: A text is something else, or there is no such metric.
    """
    try:
        return [spec for text in texts for spec in words.parse(text)]
    except SpecError as error:
        raise CommandError(f"--metrics: {error}") from error


def literal(text: str) -> Any:
    """Read a label: an integer, a boolean, or text, which quotes make of anything."""
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return text.strip()
    return value if isinstance(value, bool | int | str) else text.strip()


def character(text: str) -> str:
    """Read a character, of which the tab has a name."""
    return {"tab": "\t", "\\t": "\t"}.get(text, text)


def depths(texts: Sequence[str]) -> tuple[int, ...]:
    """Read numbers of results, 5,10,100."""
    text = ",".join(texts)
    values = tuple(map(literal, text.split(",")))
    if not all(type(value) is int and value > 0 for value in values):
        raise CommandError(f"--k {text}: expected whole numbers from 1 up, such as 5,10,100")
    return values


def literals(text: str) -> tuple[Any, ...]:
    """Read labels with commas between them; one that is text makes all of them text."""
    parts = [part for part in text.split(",") if part.strip()]
    values = tuple(map(literal, parts))
    if any(isinstance(value, str) for value in values):
        return tuple(
            v if isinstance(v, str) else p.strip() for v, p in zip(values, parts, strict=True)
        )
    return values


def shares(text: str) -> tuple[float, ...]:
    """Read numbers with commas between them, 0.1,0.5,0.9."""
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        raise CommandError(f"--levels {text}: expected numbers, such as 0.1,0.5,0.9") from None


def at_each(specs: Sequence[Spec], depths: Sequence[object], *, strict: bool) -> list[Spec]:
    """Return the metrics with one for each of `depths` where it takes `k` and does not say it.

    Raises:
        CommandError: `depths` are for none, with `strict`.
        SpecError: A metric lacks a parameter.
    """
    found: list[Spec] = []
    for spec in specs:
        open_k = "k" in parameters_of(spec) and "k" not in spec.parameters
        each = [Spec(spec.name, {**spec.parameters, "k": k}) for k in depths]
        found += each if open_k else [spec]
    if strict and found == list(specs):
        shown = ", ".join(map(str, specs))
        raise CommandError(f"--k: none of the metrics takes it and leaves it open ({shown})")
    return found


def construct(
    specs: Sequence[Spec], shared: Mapping[str, object], strict: Collection[str]
) -> dict[str, Metric]:
    """Build the metrics.

    Args:
        specs: What to build.
        shared: Parameters for all that take them and do not say otherwise.
        strict: Those of them that at least one metric has to take.

    Raises:
        CommandError: A metric is asked for twice, or none takes a parameter.
        SpecError: There is no such parameter, or a value is not allowed.
    """
    built: dict[str, Metric] = {}
    unused = set(strict)
    for spec in specs:
        if str(spec) in built:
            raise CommandError(f"the metric {spec} is asked for twice")
        metric, taken = _built(spec, shared)
        built[str(spec)] = metric
        unused -= taken
    for name in sorted(unused):
        raise CommandError(
            f"--{name.replace('_', '-')} {shared[name]}: none of the metrics takes it "
            f"({', '.join(built)})"
        )
    return built


def _built(spec: Spec, shared: Mapping[str, object]) -> tuple[Metric, set[str]]:
    known = parameters_of(spec)
    common = {n: v for n, v in shared.items() if n in known and n not in spec.parameters}
    try:
        return words.construct(Spec(spec.name, {**common, **spec.parameters})), set(common)
    except SpecError as error:
        # One average of all metrics need not be known to each: ROCAUC has no "micro".
        rest = {n: v for n, v in common.items() if n != "average"}
        if rest != common:
            with contextlib.suppress(SpecError):
                metric = words.construct(Spec(spec.name, {**rest, **spec.parameters}))
                return metric, set(rest)
        if "k" in known and "k" not in {*common, *spec.parameters}:
            raise CommandError(f"{error} or --k 10") from None
        raise
