"""Metrics and inputs by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from streammetrics.core.columns.batch import meant
from streammetrics.core.elsewhere import ELSEWHERE
from streammetrics.core.errors import StateFormatError, an
from streammetrics.core.mergeable import Mergeable, registered
from streammetrics.core.metric import Metric
from streammetrics.core.registry import metric_names, public

if TYPE_CHECKING:
    from collections.abc import Collection


_KIND = re.compile("^(binary|multiclass|multilabel)")  # prefixes in torchmetrics
_AVERAGES = ("micro", "macro", "weighted", "samples")

# Names used elsewhere, mostly by scikit-learn's scorers. Lookup ignores case and ``_score``.
_SCORERS: dict[str, tuple[str, dict[str, object]]] = {
    "adjusted_rand_score": ("AdjustedRandIndex", {}),
    "mean_absolute_error": ("MAE", {}),
    "mean_absolute_percentage_error": ("MAPE", {}),
    "mean_gamma_deviance": ("GammaDeviance", {}),
    "mean_pinball_loss": ("PinballLoss", {}),
    "mean_poisson_deviance": ("PoissonDeviance", {}),
    "mean_squared_error": ("MSE", {}),
    "mean_squared_log_error": ("MSLE", {}),
    "rand_score": ("RandIndex", {}),
    "roc_auc": ("ROCAUC", {}),
    "roc_auc_ovo": ("ROCAUC", {"multi_class": "ovo"}),
    "roc_auc_ovo_weighted": ("ROCAUC", {"multi_class": "ovo", "average": "weighted"}),
    "roc_auc_ovr": ("ROCAUC", {}),
    "roc_auc_ovr_weighted": ("ROCAUC", {"average": "weighted"}),
    "root_mean_squared_error": ("RMSE", {}),
    "root_mean_squared_log_error": ("RMSLE", {}),
    # COCO's names for numbers of boxes.
    "map_50": ("BoxAveragePrecision", {"iou": 0.5}),
    "map_75": ("BoxAveragePrecision", {"iou": 0.75}),
    **{
        f"{name}_{area}": (metric, {"area": area})
        for name, metric in (("map", "BoxAveragePrecision"), ("mar", "BoxAverageRecall"))
        for area in ("small", "medium", "large")
    },
    **{f"mar_{n}": ("BoxAverageRecall", {"max_detections": n}) for n in (1, 10, 100)},
    **{
        f"{name}_{average}": (metric, {"average": average})
        for name, metric in (
            ("f1", "F1"), ("jaccard", "Jaccard"), ("precision", "Precision"), ("recall", "Recall"),
        )
        for average in _AVERAGES
    },
}  # fmt: skip


def letters(name: str) -> str:
    """Normalize a name: ``rocauc`` for both ROCAUC and roc_auc."""
    return name.lower().replace("_", "")


def meant_metric(name: str, names: Collection[str], near: Collection[str] = ()) -> str:
    """Return "; did you mean ...?" for a name used elsewhere, or similar to `names` or `near`.

    >>> meant_metric("BinaryAUROC", ["ROCAUC", "ROCCurve"])
    "; did you mean 'ROCAUC'?"
    """
    key = re.sub(r"[\W_]", "", name.lower()).removesuffix("score")
    known = {letters(each): each for each in names} | ELSEWHERE
    ours = known.get(key) or known.get(_KIND.sub("", key), "")
    found = [repr(each) for each in ours.split(", ") if each in names]
    return f"; did you mean {' or '.join(found)}?" if found else meant(name, near or names)


def named_metric(name: str) -> Metric:
    """Return a metric by its name in any case (``roc_auc`` for ROCAUC), or by a scorer's name.

    Raises:
        ValueError: There is no such metric, it has required parameters, or the scorer negates it.
    """
    known = {letters(each): each for each in metric_names()}
    metric, parameters = _SCORERS.get(name, (name, {}))
    found = known.get(letters(metric)) or known.get(letters(metric.removesuffix("_score")))
    if found is None and name.startswith("neg_"):
        positive = name.removeprefix("neg_")
        raise ValueError(
            f"{name!r} is {positive!r} with its sign changed, and metrics here keep theirs: ask "
            f"for {positive!r}, whose higher_is_better is False"
        )
    if found is None:
        choice = [*map(_spelt, known.values()), *_SCORERS]
        told = meant_metric(name, known.values(), sorted(choice))
        advice = "; a metric by its name, in any case, or the name of a scorer of scikit-learn"
        raise ValueError(f"there is no metric {name!r}{told or advice}")
    cls = public(found)
    needed = [name for name, parameter in cls._parameters.items() if parameter.required]
    if needed:
        asked = ", ".join(f"{each}=..." for each in needed)
        raise ValueError(f"{name!r} needs parameters: pass sm.{cls.__name__}({asked}) by a name")
    made: Metric = cls(**parameters)
    return made


def by_name(metrics: object) -> dict[str, Metric] | None:
    """Return metrics by the given name or names; ``None`` if one of them is not a string."""
    listed = isinstance(metrics, Iterable) and not isinstance(metrics, str)
    names: list[Any] = list(metrics) if listed else [metrics]  # type: ignore[call-overload]  # `listed` implies that it is iterable
    if not names or not all(isinstance(name, str) for name in names):
        return None
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise ValueError(f"the metric {twice!r} is asked for twice")
    return {name: named_metric(name) for name in names}


def score(metric: object, *columns: object, **named: object) -> Any:
    """Return the value of a metric for some rows in one call, without using or changing its state.

    Args:
        metric: A metric, a set of metrics, or a metric's name as `MetricSet` takes it.
        columns: The rows, as its `update` takes them.
        named: Columns by name, such as ``sample_weight``.

    Example:
        >>> import streammetrics as sm
        >>> sm.score(sm.F1(average="macro"), [0, 1, 2, 2], [0, 2, 2, 2])
        0.6
        >>> sm.score("roc_auc", [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
        0.75
    """
    if isinstance(metric, str):
        return named_metric(metric).update(*columns, **named).compute()
    if not isinstance(metric, Mergeable):
        kind = (
            f"the class {metric.__name__}: {metric.__name__}() makes one"
            if isinstance(metric, type)
            else f"{an(type(metric).__name__)}"
        )
        raise TypeError(f"score() takes a metric, a set or a name, not {kind}")
    return metric.copy().reset().update(*columns, **named).compute()


def _spelt(name: str) -> str:
    """Spell a class name like a scorer: ``balanced_accuracy``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def members_of(metrics: object) -> Mapping[str, Metric]:
    """Validate the metrics of a new set, and return them by name.

    Raises:
        TypeError: The argument is not metrics by name, or a name is not a string.
        ValueError: A metric has seen rows, a name is unknown, or a name occurs twice.
    """
    given = metrics if isinstance(metrics, Mapping) else by_name(metrics)
    if given is None:
        raise TypeError(
            f"a set takes its metrics by name, not as {an(type(metrics).__name__)}: "
            f"MetricSet({{{_by_name(metrics)}}})"
        )
    for name, metric in given.items():
        if not isinstance(name, str):
            raise TypeError(f"a metric is named by a string, not by {name!r}: {str(name)!r}")
        if not isinstance(metric, Metric):
            raise TypeError(f"{name!r} is {_kind(metric)}")
        if metric.n_rows or metric.n_omitted:
            raise ValueError(
                f"{name!r} has already seen {metric.n_rows:,} rows, and a set starts empty: "
                "reset() it or make a new one"
            )
    return given


def told_apart(mine: Mapping[str, Metric], theirs: Mapping[str, Metric]) -> list[str]:
    """Describe the differences between two sets of metrics: names, classes and parameters."""
    parts = [f"{name!r} is only there" for name in theirs if name not in mine]
    parts += [f"{name!r} is only here" for name in mine if name not in theirs]
    for name in mine:
        if name in theirs and theirs[name]._key != mine[name]._key:
            alike = type(theirs[name]) is type(mine[name])
            parts.append(
                f"of {name!r}, {mine[name]._apart(theirs[name])}"
                if alike
                else f"{name!r} is {theirs[name]._titled()} there, {mine[name]._titled()} here"
            )
    return parts


def members_written(members: object) -> dict[str, Metric]:
    """Return the metrics of a set, as described in a file."""
    if not isinstance(members, tuple) or not all(isinstance(member, dict) for member in members):
        raise StateFormatError("the state does not say which metrics the set has")
    return {_name(member): _configured(member) for member in members}


def _configured(member: Mapping[str, object]) -> Metric:
    cls = registered(member.get("class"))
    if not issubclass(cls, Metric):
        raise StateFormatError(f"a set holds metrics, not {an(cls.__name__)}")
    return cls._configured(member)


def _name(member: Mapping[str, object]) -> str:
    name = member.get("name")
    if not isinstance(name, str):
        raise StateFormatError("a metric of the set has no name")
    return name


def _kind(value: object) -> str:
    if isinstance(value, type) and issubclass(value, Metric):
        return f"a class, not a metric: {value.__name__}() makes one"
    return f"{an(type(value).__name__)}, not a metric"


def _by_name(metrics: object) -> str:
    """Format the metrics as the entries of a dictionary; an example if there are none."""
    given = metrics if isinstance(metrics, Iterable) else [metrics]
    some = [metric for metric in given if isinstance(metric, Metric)]
    shown = (f"{type(metric).__name__.lower()!r}: sm.{metric._titled()}" for metric in some)
    return ", ".join(shown) or "'f1': sm.F1()"
