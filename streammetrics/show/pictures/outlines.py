"""The outlines of bands around curves: what certainly holds them, and what does with confidence."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from streammetrics.core.types import Floats
from streammetrics.show.pictures.thinning import thinned

Outline: TypeAlias = tuple[Floats, Floats]


_LEAST = 1e-4  # share of errors, below all that scales of them show


def certain_roc(curve: Any) -> Outline:
    """Return what the curve lies in, whatever the order of rows within a cell is.

    Between two points the exact curve goes up and to the right, at worst along either side of the
    box around them.
    """
    x, y = curve.fpr, curve.tpr
    return around(
        (np.repeat(x, 2)[:-1], np.repeat(y, 2)[1:]), (np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1])
    )


def certain_pr(curve: Any) -> Outline:
    """Return what precision over recall lies in, whatever the order of rows within a cell is.

    Of a cell's rows the positives come first at best, and last at worst. Precision then rises with
    recall along a hyperbola, which lies below the step to its end and above the line to it.
    """
    recall, precision = curve.recall[::-1], curve.precision[::-1]
    tp = recall * (curve.positives or 1.0)
    fp = np.divide(tp, precision, out=tp.copy(), where=precision > 0) - tp
    best, worst = _share(tp[1:], fp[:-1]), _share(tp[:-1], fp[1:])
    top = np.column_stack([precision[:-1], best, best, precision[1:]]).ravel()
    upper = np.column_stack([recall[:-1], recall[:-1], recall[1:], recall[1:]]).ravel()
    bottom = np.column_stack([precision[:-1], worst, precision[1:]]).ravel()
    lower = np.column_stack([recall[:-1], recall[:-1], recall[1:]]).ravel()
    return around((upper, top), (lower, bottom))


def _share(tp: Floats, fp: Floats) -> Floats:
    return np.divide(tp, tp + fp, out=np.zeros_like(tp), where=tp + fp > 0)


def sure_roc(limits: Any) -> Outline:
    """Return what lies between the best and the worst rates at each threshold."""
    low, high = limits
    return around((low.fpr, high.tpr), (high.fpr, low.tpr))


def sure_det(limits: Any) -> Outline:
    """Return what lies between the best and the worst rates of errors, as logits."""
    low, high = limits
    if hasattr(low, "tpr"):
        sides = (low.fpr, 1 - high.tpr), (high.fpr, 1 - low.tpr)
    else:
        sides = (low.fpr, low.fnr), (high.fpr, high.fnr)
    best, worst = ((_logits(across), _logits(up)) for across, up in sides)
    return around(best, worst)


def _logits(shares: Floats) -> Floats:
    inside = np.clip(shares, _LEAST, 1 - _LEAST)
    return np.asarray(np.log(inside / (1 - inside)))


def sure_pr(limits: Any) -> Outline:
    """Return what lies between the best and the worst shares at each threshold."""
    low, high = limits
    return around(
        (high.recall[::-1], high.precision[::-1]), (low.recall[::-1], low.precision[::-1])
    )


def around(upper: Outline, lower: Outline) -> Outline:
    """Return what lies between two lines, thinned."""
    up, down = thinned(*upper), thinned(*lower)[::-1]
    return (
        np.concatenate([upper[0][up], lower[0][down]]),
        np.concatenate([upper[1][up], lower[1][down]]),
    )
