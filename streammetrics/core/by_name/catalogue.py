"""The metrics that there are, by name."""

from __future__ import annotations

import inspect

from streammetrics.core.metric import Metric
from streammetrics.core.stateful import REGISTRY


def catalogue() -> dict[str, type[Metric]]:
    """Return the metrics of the package by name; those of others have a module before theirs."""
    return {
        name: cls
        for name, cls in sorted(REGISTRY.items())
        if "." not in name and issubclass(cls, Metric) and not inspect.isabstract(cls)
    }


def letters(name: str) -> str:
    """Return what two spellings of a name have in common: ``rocauc`` of ROCAUC and roc_auc."""
    return name.lower().replace("_", "")
