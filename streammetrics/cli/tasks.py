"""The tasks of `evaluate`: which columns and options each takes, and its metrics by default.

A task is one entry in `TASKS`; a new input or option of one also needs its line in `app.evaluate`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streammetrics.cli.errors import CommandError, near
from streammetrics.cli.specs import Spec, construct
from streammetrics.core.metric_set import MetricSet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WEIGHT = "sample_weight"
FLAGS = {WEIGHT: "--weight"}  # where a flag is not the input's name


@dataclass(frozen=True)
class Task:
    """What a task reads and reports.

    Attributes:
        required: Inputs it cannot do without.
        either: Inputs of which it needs at least one.
        numeric: Those of its inputs that are numbers, not labels.
        defaults: The metrics by default for every input they read, besides the required ones.
        options: The parameters of metrics that can be set for all of them at once.
        parameters: Those that are set where the user says nothing.
        argmax: An input that scores in several columns stand in for, if there is none.
    """

    required: tuple[str, ...]
    either: tuple[str, ...]
    numeric: frozenset[str]
    defaults: Mapping[str, tuple[str, ...]]
    options: frozenset[str]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    argmax: str = ""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Every input it takes."""
        return (*self.required, *self.either, WEIGHT)


TASKS = {
    "binary": Task(
        required=("y_true",),
        either=("y_score", "y_pred"),
        numeric=frozenset({"y_score", WEIGHT}),
        defaults={
            "y_score": (
                "ROCAUC", "AveragePrecision", "LogLoss", "BrierScore", "CalibrationError",
                "KolmogorovSmirnov",
            ),
            "y_pred": ("Accuracy", "Precision", "Recall", "F1", "MatthewsCorrcoef"),
        },
        options=frozenset(
            {"threshold", "max_bins", "nan_policy", "labels", "pos_label", "average"}
        ),
    ),
    "multiclass": Task(
        required=("y_true",),
        either=("y_score", "y_pred"),
        numeric=frozenset({"y_score", WEIGHT}),
        defaults={
            "y_pred": ("Accuracy", "BalancedAccuracy", "F1", "MatthewsCorrcoef", "CohenKappa"),
            "y_score": ("ROCAUC", "LogLoss"),
        },
        options=frozenset({"max_bins", "nan_policy", "labels", "average"}),
        parameters={"average": "macro"},
        argmax="y_pred",
    ),
    "regression": Task(
        required=("y_true", "y_pred"),
        either=(),
        numeric=frozenset({"y_true", "y_pred", WEIGHT}),
        defaults={
            "": (
                "MAE", "RMSE", "R2", "ExplainedVariance",
                "MedianAbsoluteError", "MaxError", "MeanError",
            )
        },
        options=frozenset({"max_bins", "nan_policy"}),
    ),
}  # fmt: skip

# Metrics whose scores are probabilities; others only need their order.
PROBABILITIES = frozenset({"LogLoss", "BrierScore", "CalibrationError", "CalibrationCurve"})


@dataclass(frozen=True)
class Plan:
    """A task with its columns and metrics chosen."""

    task: str
    asked: Mapping[str, str]  # for each input, what the user wrote
    parameters: Mapping[str, Any]  # those set for all metrics at once
    suite: MetricSet

    @property
    def numeric(self) -> frozenset[str]:
        """The inputs that are numbers."""
        return TASKS[self.task].numeric


def flag(name: str) -> str:
    """Return the flag of an input or an option."""
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


def plan(
    name: str,
    columns: Mapping[str, str],
    options: Mapping[str, Any],
    metrics: Sequence[Spec] | None,
) -> Plan:
    """Choose what to compute.

    Args:
        name: The task.
        columns: For each input that was given, the columns.
        options: Parameters that were given, for all metrics that take them.
        metrics: What was asked for; ``None``: the task's default for these inputs.

    Raises:
        CommandError: What was given contradicts itself or does not suffice.
    """
    task = _task(name)
    _check_given(name, task, columns, options)
    asked, parameters = dict(columns), {**task.parameters, **options}
    if parameters.get("average") == "none":
        parameters["average"] = None
    if task.argmax and "y_score" in asked:
        asked.setdefault(task.argmax, asked["y_score"])
    if "threshold" in task.options and "y_pred" not in asked:
        parameters.setdefault("threshold", 0.5)
    chosen = metrics or _defaults(task, asked, parameters)
    built = construct(chosen, parameters, strict=set(options))
    suite = MetricSet(built, columns={})
    read = {*suite.inputs, WEIGHT}
    for title, metric in built.items():
        missing = [flag(i) for i in metric.inputs if i not in asked]
        if missing:
            raise CommandError(f"{title} needs {' and '.join(missing)}")
    for key in columns:
        if key not in read:
            raise CommandError(
                f"{flag(key)} is read by none of the metrics ({', '.join(built)}): leave it "
                "out, or ask for one that reads it with --metrics"
            )
    asked = {key: text for key, text in asked.items() if key in read}
    return Plan(name, asked, parameters, MetricSet(built, columns=asked))


def _task(name: str) -> Task:
    if name not in TASKS:
        raise CommandError(f"no task {name!r}{near(name, TASKS)}")
    return TASKS[name]


def _check_given(
    name: str, task: Task, columns: Mapping[str, str], options: Mapping[str, Any]
) -> None:
    strange = [
        *(c for c in columns if c not in task.inputs),
        *(o for o in options if o not in task.options),
    ]
    if strange:
        raise CommandError(f"{flag(strange[0])} is not for --task {name}")
    missing = [flag(key) for key in task.required if key not in columns]
    if missing:
        raise CommandError(f"--task {name} needs {' and '.join(missing)}")
    if task.either and not any(key in columns for key in task.either):
        raise CommandError(f"--task {name} needs {' or '.join(map(flag, task.either))}")
    if "threshold" in options and "y_pred" in columns:
        raise CommandError(
            "--threshold makes labels of scores, but --y-pred has the labels: give one of them"
        )


def _defaults(task: Task, asked: Mapping[str, str], parameters: Mapping[str, Any]) -> list[Spec]:
    cut = "threshold" in parameters  # scores make labels
    return [
        Spec(metric)
        for key, names in task.defaults.items()
        if key in asked or not key or (key == "y_pred" and cut)
        for metric in names
    ]
