"""The metrics that there are, by name."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

from streammetrics.core.by_name.elsewhere import ELSEWHERE
from streammetrics.core.columns.naming import meant
from streammetrics.core.metric import Metric
from streammetrics.core.stateful import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Collection

_KIND = re.compile("^(binary|multiclass|multilabel)")  # how torchmetrics begins names


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


def meant_metric(name: str, names: Collection[str], near: Collection[str] = ()) -> str:
    """Return which of our `names` is called so elsewhere, or which of them, or of `near`, is meant.

    >>> meant_metric("BinaryAUROC", ["ROCAUC", "ROCCurve"])
    "; did you mean 'ROCAUC'?"
    """
    key = re.sub(r"[\W_]", "", name.lower()).removesuffix("score")
    known = {letters(each): each for each in names} | ELSEWHERE
    ours = known.get(key) or known.get(_KIND.sub("", key), "")
    found = [repr(each) for each in ours.split(", ") if each in names]
    return f"; did you mean {' or '.join(found)}?" if found else meant(name, near or names)
