"""The outlines of bands around curves: what certainly holds them, and what does with confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from streammetrics.core.types import Floats
from streammetrics.show.pictures.thinning import thinned

if TYPE_CHECKING:
    from streammetrics.metrics.scores.curves import PRPoints, ROCPoints

Outline: TypeAlias = tuple[Floats, Floats]


_FEW = 1 << 12  # points, of which a line between two may be seen to bend
_LEAST = 1e-4  # share of errors, below all that scales of them show


def certain_roc(x: Floats, y: Floats) -> tuple[Outline, Outline]:
    """Return the lines that a ROC curve runs between, whatever the order within a cell is.

    Between two points the exact curve goes up and to the right, at worst along either side of the
    box around them.
    """
    return (
        (np.repeat(x, 2)[:-1], np.repeat(y, 2)[1:]), (np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1])
    )  # fmt: skip


def certain_gains(
    depth: Floats, gain: Floats, positives: float, *, fine: bool = False
) -> tuple[Outline, Outline]:
    """Return the lines that gains run between: of a cell the positives come first, or last.

    Args:
        depth: Shares (m,) of all rows, ascending.
        gain: Shares (m,) of the positives.
        positives: The share of all rows that are positive.
        fine: Whether lines of few points are to have more of them, which other scales bend.
    """
    found = positives * np.diff(gain)
    best = np.column_stack([depth[:-1], depth[:-1] + found]).ravel()
    worst = np.column_stack([depth[:-1], depth[1:] - found]).ravel()
    most = np.append(best, depth[-1]), np.append(np.repeat(gain, 2)[1:-1], gain[-1])
    least = np.append(worst, depth[-1]), np.append(np.repeat(gain[:-1], 2), gain[-1])
    if not fine or len(depth) > _FEW:
        return most, least
    steps = np.linspace(0, len(most[0]) - 1, 16 * len(most[0]))
    at = np.arange(len(most[0]))
    x, y = ([np.interp(steps, at, line) for line in side] for side in (most, least))
    return (x[0], x[1]), (y[0], y[1])


def stepped(x: Floats, y: Floats) -> Outline:
    """Return a line of steps: each height holds until the next place."""
    return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]


def certain_pr(curve: PRPoints) -> Outline:
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


def sure_roc(limits: tuple[ROCPoints, ROCPoints]) -> Outline:
    """Return what lies between the best and the worst rates at each threshold."""
    low, high = limits
    return around((low.fpr, high.tpr), (high.fpr, low.tpr))


def sure_det(limits: tuple[Any, Any]) -> Outline:
    """Return what lies between the best and the worst rates of errors, as logits."""
    low, high = limits
    if hasattr(low, "tpr"):
        sides = (low.fpr, 1 - high.tpr), (high.fpr, 1 - low.tpr)
    else:
        sides = (low.fpr, low.fnr), (high.fpr, high.fnr)
    best, worst = ((logits(across), logits(up)) for across, up in sides)
    return around(best, worst)


def logits(shares: Floats) -> Floats:
    """Return the logits of shares, of extreme ones those that scales of them still show."""
    inside = np.clip(shares, _LEAST, 1 - _LEAST)
    return np.asarray(np.log(inside / (1 - inside)))


def sure_pr(limits: tuple[PRPoints, PRPoints]) -> Outline:
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
