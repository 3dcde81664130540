"""Values for a model card of the Hugging Face Hub."""

from __future__ import annotations

import math
import re
import warnings
from typing import TYPE_CHECKING

from streammetrics.core.errors import UndefinedMetricWarning
from streammetrics.core.results.values import flat

if TYPE_CHECKING:
    from streammetrics.core.metric import Metric
    from streammetrics.core.metric_set import MetricSet

__all__ = ["model_index"]

# What the Hub calls a metric where it is not its name in small letters.
_TYPES = {
    "MatthewsCorrcoef": "matthews_correlation",
    "PearsonCorrelation": "pearsonr",
    "SpearmanRho": "spearmanr",
    "ROCAUC": "roc_auc",
    "R2": "r_squared",
}


def model_index(
    suite: MetricSet,
    *,
    model: str,
    task: str,
    dataset: str,
    dataset_name: str = "",
    split: str = "test",
    revision: str | None = None,
) -> dict[str, object]:
    """Return the ``model-index`` of a model card: what the Hub shows beside a model.

    Put into the YAML at the head of a README, or given to `huggingface_hub.ModelCardData` by
    ``eval_results=model_index_to_eval_results(...)``. Numbers that are not defined are left out.

    Args:
        suite: The metrics, of the rows of one split of one dataset.
        model: The model's name.
        task: The Hub's word for the task, as ``"text-classification"``.
        dataset: The dataset's id on the Hub.
        dataset_name: How people call it; by default its id.
        split: Which rows of it.
        revision: Which version of it.

    Example:
        >>> import streammetrics as sm
        >>> suite = sm.MetricSet({"acc": sm.Accuracy()}).update(y_true=[0, 1], y_pred=[0, 1])
        >>> card = sm.model_index(suite, model="tree", task="tabular-classification", dataset="u/d")
        >>> card["model-index"][0]["results"][0]["metrics"]
        [{'type': 'accuracy', 'value': 1.0, 'name': 'acc', 'args': {}}]
    """
    told = {"type": dataset, "name": dataset_name or dataset, "split": split}
    if revision is not None:
        told["revision"] = revision
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        metrics = [
            {"type": _type(metric), "value": value, "name": title, "args": _args(metric)}
            for name, metric in suite.items()
            for title, value in flat(name, metric.compute()).items()
            if math.isfinite(value)
        ]
    result = {"task": {"type": task, "name": task}, "dataset": told, "metrics": metrics}
    return {"model-index": [{"name": model, "results": [result]}]}


def _type(metric: Metric) -> str:
    name = type(metric).__name__
    return _TYPES.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _args(metric: Metric) -> dict[str, object]:
    """Return the parameters that are not the metric's defaults."""
    plain = (bool, int, float, str)
    known = metric._parameters
    return {
        name: value
        for name, value in metric.config.items()
        if isinstance(value, plain) and (known[name].required or value != known[name].default)
    }
