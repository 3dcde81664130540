"""Tasks: their inputs and default metrics, and metrics and parameters written as text."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streammetrics.cli.result import CommandError, blaming
from streammetrics.core.columns.batch import COUNTS, WEIGHT, near
from streammetrics.metrics import specs
from streammetrics.metrics.specs import Spec, SpecError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Options

_LISTS = ("k", "labels", "levels")  # parameters that are always lists, even with one value

# Inputs with their own option; --column names the columns of the others.
SHORTHANDS = {
    **{name: f"--{name.replace('_', '-')}" for name in ("y_true", "y_score", "y_pred")},
    WEIGHT: "--weight",
    COUNTS: "--counts",
    **{name: f"--{name}" for name in ("query", "doc", "relevance", "score")},
}
# Inputs that differ between models: several columns or runs for one of them are several models.
OF_MODELS = ("y_score", "y_pred", "score", "labels_pred", "prediction", "pred_boxes")
REPEATABLE = {*OF_MODELS, "pred_labels", "pred_scores", "values"}


@dataclass(frozen=True)
class Task:
    """The inputs and default metrics of a task.

    Attributes:
        either: Groups of inputs, at least one of which has to be given completely.
        required: Further required inputs.
        extra: Optional inputs.
        defaults: The default metrics for each input, which they read besides the required ones.
        parameters: Parameters of metrics that differ from the metrics' own defaults.
        argmax: The input that defaults to the argmax of scores in several columns.
        instead: What can be given instead of the inputs, as the end of a message.
    """

    either: tuple[tuple[str, ...], ...]
    defaults: Mapping[str, tuple[str, ...]]
    required: tuple[str, ...] = ()
    extra: tuple[str, ...] = (WEIGHT,)
    parameters: Mapping[str, object] = field(default_factory=dict)
    argmax: str = ""
    instead: str = ""

    @property
    def inputs(self) -> tuple[str, ...]:
        """All inputs of the task."""
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
        parameters={"threshold": 0.5},
    ),
    "multiclass": Task(
        required=("y_true",),
        either=(("y_score",), ("y_pred",)),
        defaults={
            "y_pred": ("Accuracy", "BalancedAccuracy", "F1", "MatthewsCorrcoef", "CohenKappa"),
            "y_score": ("ROCAUC", "LogLoss"),
        },
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
        parameters={"threshold": 0.5, "average": "macro", "multilabel": True},
    ),
    "regression": Task(
        either=(("y_true", "y_pred"),),
        defaults={
            "y_true": (
                "MAE", "RMSE", "R2", "ExplainedVariance",
                "MedianAbsoluteError", "MaxError", "MeanError",
            )
        },
    ),
    "ranking": Task(
        either=(("query", "relevance", "score"),),
        extra=("doc", "query_weight"),
        defaults={
            "query": ("NDCG", "MAP", "MRR", "PrecisionAtK", "RecallAtK", "HitRateAtK")
        },
        parameters={"k": (10,)},
        instead=", or --qrels and --run",
    ),
    "correlation": Task(
        either=(("y_true", "y_pred"),),
        extra=(),
        defaults={"y_true": ("KendallTau", "SpearmanRho", "PearsonCorrelation")},
    ),
    "drift": Task(
        either=(("sample", "values"),),
        defaults={
            "values": ("PopulationStability", "JensenShannon", "KSDistance", "Wasserstein"),
        },
        instead=", or --reference",
    ),
    "aggregation": Task(
        either=(("values",),),
        defaults={"values": ("Count", "Sum", "Mean", "Variance", "Minimum", "Maximum")},
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
    ),
    "recommendation": Task(
        either=(("item",), ("category",), ("popularity",)),
        extra=("query", WEIGHT),
        defaults={
            "item": ("ExposureGini",),
            "category": ("IntraListDiversity",),
            "popularity": ("Novelty", "PopularityBias"),
        },
    ),
    "survival": Task(
        either=(("time", "event", "score"),),
        extra=(),
        defaults={"time": ("ConcordanceIndex",)},
    ),
    "attempts": Task(
        either=(("unit", "y_true"),),
        extra=("attempt", "answer"),
        defaults={
            "unit": ("PassAtK", "PassHatK", "MeanAtK", "AttemptSpread"),
            "answer": ("MajorityAtK",),
        },
        parameters={"k": (1,)},
    ),
    "text": Task(
        either=(("reference", "prediction"),),
        defaults={"reference": ("ExactMatch", "TokenF1", "RougeL", "BLEU", "ChrF")},
    ),
    "spans": Task(
        either=(("y_true", "y_pred"),),
        extra=(),
        defaults={"y_true": ("SpanPrecision", "SpanRecall", "SpanF1")},
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
        instead=", or --annotations and --results",
    ),
    "masks": Task(
        either=(("y_true", "y_pred"),),
        defaults={"y_true": ("MeanIoU", "Dice")},
    ),
}  # fmt: skip

# Metrics of whole rankings, additional defaults for TREC files, which are small enough.
OF_TREC_FILES = ("MAP", "MRR", "NDCG", "RPrecision", "BPref")

# Metrics whose scores have to be probabilities; others only need their order.
PROBABILITIES = frozenset(
    {
        "BrierDecomposition", "BrierScore", "CalibrationCurve", "CalibrationError",
        "CalibrationInTheLarge", "CalibrationIntercept", "CalibrationSlope", "D2Brier", "D2LogLoss",
        "FocalLoss", "LogLoss", "Perplexity", "RankedProbabilityScore",
    }
)  # fmt: skip


def flag(name: str, value: str = "") -> str:
    """Return how an input and its column are given on the command line."""
    if name in SHORTHANDS:
        return f"{SHORTHANDS[name]} {value}".rstrip()
    return f"--column {name}={value or '...'}"


def pairs(option: str, texts: Sequence[str], expected: str) -> list[tuple[str, str]]:
    """Parse an option that takes NAME=VALUE.

    Raises:
        CommandError: A text has another form.
    """
    found = [(name.strip(), value) for name, _, value in (text.partition("=") for text in texts)]
    for (name, value), text in zip(found, texts, strict=True):
        if not name or not value:
            raise CommandError(f"{option} {text}: expected {expected}")
    return found


def columns_of(
    shorthands: Mapping[str, str | list[str] | None], texts: Sequence[str]
) -> dict[str, list[str]]:
    """Return the columns of each input; several models have several columns.

    Raises:
        CommandError: A text of ``--column`` has another form, or an input is given twice.
    """
    found = {
        name: [given] if isinstance(given, str) else list(given)
        for name, given in shorthands.items()
        if given
    }
    for name, column in pairs("--column", texts, "INPUT=COLUMN, e.g. y_low=lower"):
        found.setdefault(name, []).append(column)
    for name, columns in found.items():
        if len(columns) > 1 and name not in REPEATABLE:
            raise CommandError(f"{flag(name, columns[1])}: {name} is given twice")
    return found


def parse(texts: Sequence[str]) -> list[Spec]:
    """Parse the values of ``--metrics``.

    Raises:
        CommandError: A text has another form, or the metric does not exist.
    """
    with blaming("--metrics", SpecError):
        return [spec for text in texts for spec in specs.parse(text)]


def parameters_of(texts: Sequence[str]) -> Options:
    """Parse the values of ``--param``: values as in ``--metrics``, or comma-separated lists.

    Raises:
        CommandError: A text has another form, or a name is given twice.
    """
    found: Options = {}
    for name, text in pairs("--param", texts, "NAME=VALUE, e.g. threshold=0.5"):
        if name in found:
            raise CommandError(f"--param {name} is given twice")
        value = specs.value(text)
        found[name] = (value,) if name in _LISTS and not isinstance(value, tuple) else value
        if name == "k" and not all(type(k) is int and k >= 1 for k in found[name]):
            raise CommandError(f"--param k={text}: expected integers from 1 up, e.g. k=5,10,100")
    return found


def delimiter_of(text: str | None) -> str | None:
    """Return a delimiter; a tab may be given by name."""
    return "\t" if text in {"tab", "\\t"} else text


def at_each(chosen: Sequence[Spec], depths: Sequence[object], *, strict: bool) -> list[Spec]:
    """Replace each metric whose `k` is not set by one metric for each of `depths`.

    Raises:
        CommandError: With `strict`, no metric has an unset `k`.
        SpecError: A metric lacks a parameter.
    """
    found: list[Spec] = []
    for spec in chosen:
        open_k = "k" in specs.parameters_of(spec) and "k" not in spec.parameters
        each = [Spec(spec.name, {**spec.parameters, "k": k}) for k in depths]
        found += each if open_k else [spec]
    if strict and found == list(chosen):
        shown = ", ".join(map(str, chosen))
        raise CommandError(f"--param k: no metric has k without setting it ({shown})")
    return found


def construct(
    chosen: Sequence[Spec], shared: Mapping[str, object], strict: Collection[str]
) -> dict[str, Metric]:
    """Construct the metrics.

    Args:
        chosen: The metrics, with their own parameters.
        shared: Parameters for all metrics that have them and do not set them.
        strict: Names of shared parameters that at least one metric must use.

    Raises:
        CommandError: A metric is given twice, or no metric has a parameter.
        SpecError: A parameter does not exist, or a value is invalid.
    """
    built: dict[str, Metric] = {}
    unused = set(strict)
    for spec in chosen:
        if str(spec) in built:
            raise CommandError(f"the metric {spec} is given twice")
        metric, used = _built(spec, shared)
        built[str(spec)] = metric
        unused -= used
    for name in sorted(unused):
        known = dict.fromkeys(name for spec in chosen for name in specs.parameters_of(spec))
        why = f"none of the metrics has it ({', '.join(built)}){near(name, known)}"
        if name in known:
            why = f"each metric that has it sets it itself ({', '.join(built)})"
        raise CommandError(f"--param {name}: {why}")
    return built


def _built(spec: Spec, shared: Mapping[str, object]) -> tuple[Metric, set[str]]:
    known = specs.parameters_of(spec)
    common = {n: v for n, v in shared.items() if n in known and n not in spec.parameters}
    try:
        return specs.construct(Spec(spec.name, {**common, **spec.parameters})), set(common)
    except SpecError as error:
        # A metric may lack the average that is set for all, e.g. ROCAUC has no "micro".
        rest = {n: v for n, v in common.items() if n != "average"}
        if rest != common:
            with contextlib.suppress(SpecError):
                metric = specs.construct(Spec(spec.name, {**rest, **spec.parameters}))
                return metric, set(rest)
        if "k" in known and "k" not in {*common, *spec.parameters}:
            raise CommandError(f"{error} or --param k=10") from None
        raise
