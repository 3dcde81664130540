"""Where a curve runs in each kind of picture, what certainly holds it, and why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.inference.distributions import normal_quantile
from streammetrics.metrics.scores.curves import PRPoints, ROCPoints
from streammetrics.metrics.scores.errors import DETPoints
from streammetrics.metrics.scores.gains import GainPoints, LiftPoints
from streammetrics.show.pictures.outlines import (
    around,
    certain_gains,
    certain_pr,
    certain_roc,
    logits,
    stepped,
)
from streammetrics.show.pictures.thinning import thinned

if TYPE_CHECKING:
    from streammetrics.core.results.curves import Points
    from streammetrics.core.types import Floats
    from streammetrics.show.pictures.outlines import Outline

Rates = ROCPoints | PRPoints | DETPoints | GainPoints | LiftPoints


def path(curve: Any, kind: str) -> Outline:
    """Return the points of a picture of a curve, thinned."""
    match kind:
        case "pr":  # as scikit-learn draws it: precision holds until the next recall is reached
            x, y = stepped(curve.recall, curve.precision)
        case "det":
            return _det(*_errors(curve))
        case "gains":
            x, y = _gains(curve)
        case "lift":
            x, y = _lift(curve)
        case _:
            x, y = curve.fpr, curve.tpr
    at = thinned(x, y)
    return x[at], y[at]


def certain(curve: Any, kind: str) -> Outline:
    """Return what certainly holds a curve that has cells of several scores."""
    match kind:
        case "pr":
            return certain_pr(curve)
        case "det":
            x, y = _errors(curve)
            sides = certain_roc(x, 1 - y)
            best, worst = ((logits(across), logits(1 - up)) for across, up in sides)
            x, y = around(best, worst)
            return deviates(x), deviates(y)
        case "gains":
            return around(*certain_gains(*_gains(curve), _prevalence(curve)))
        case "lift":
            sides = certain_gains(*_gains(curve), _prevalence(curve), fine=True)
            most, least = ((x[x > 0], y[x > 0] / x[x > 0]) for x, y in sides)
            return around(most, least)
    return around(*certain_roc(curve.fpr, curve.tpr))


def why_not(curve: Rates) -> str:
    """Return why a curve cannot be drawn, nothing where it can."""
    if isinstance(curve, PRPoints):
        rates, none = {"positives": curve.recall}, not len(curve.thresholds)
    elif isinstance(curve, ROCPoints):
        rates, none = {"positives": curve.tpr, "negatives": curve.fpr}, len(curve.thresholds) < 2
    elif isinstance(curve, DETPoints):
        rates, none = {"positives": curve.fnr, "negatives": curve.fpr}, not len(curve.thresholds)
    else:
        height = curve.gain if isinstance(curve, GainPoints) else curve.lift
        rates, none = {"positives": height}, not len(curve.depth) or bool(np.isnan(curve.depth[-1]))
    missing = [name for name, rate in rates.items() if np.isnan(rate).any()]
    if none or len(missing) == 2:
        return "no rows were seen"
    return f"there are no {missing[0]}, all rows are of one class" if missing else ""


def why_no_errors(curve: ROCPoints | DETPoints) -> str:
    """Return why no part of a curve is on the scale of error rates, nothing where some is."""
    some = [((rate > 0) & (rate < 1)).any() for rate in _errors(curve)]
    return "" if any(some) else "all rates are 0 or 1,\nwhich its scale does not reach"


def area(curve: Rates) -> float:
    """Return how good a curve is: the area below it, of errors that above it."""
    if isinstance(curve, ROCPoints):
        return float(np.trapezoid(curve.tpr, curve.fpr))
    if isinstance(curve, PRPoints):
        return float(-np.sum(np.diff(curve.recall) * curve.precision[:-1]))
    if isinstance(curve, DETPoints):
        return float(1 + np.trapezoid(curve.fnr, curve.fpr))
    return float(np.trapezoid(*reversed(curve[:2])))


def deviates(places: Floats) -> Floats:
    """Return where logits of shares stand on scales of the normal distribution."""
    return np.array([normal_quantile(1 / (1 + np.exp(-place))) for place in places])


def _errors(curve: ROCPoints | DETPoints) -> Outline:
    return curve.fpr, curve.fnr if isinstance(curve, DETPoints) else 1 - curve.tpr


def _det(x: Floats, y: Floats) -> Outline:
    inside = (x > 0) & (x < 1) & (y > 0) & (y < 1)
    x, y = logits(x[inside]), logits(y[inside])
    at = thinned(x, y) if len(x) else np.zeros(0, np.intp)
    return deviates(x[at]), deviates(y[at])


def _gains(curve: ROCPoints | GainPoints | LiftPoints) -> Outline:
    """Return the share of rows at or above each threshold, and that of the positives."""
    if isinstance(curve, GainPoints):
        return curve.depth, curve.gain
    if isinstance(curve, LiftPoints):
        return np.append(0.0, curve.depth), np.append(0.0, curve.lift * curve.depth)
    share = _prevalence(curve)
    return curve.tpr * share + curve.fpr * (1 - share), curve.tpr


def _lift(curve: ROCPoints | GainPoints | LiftPoints) -> Outline:
    if isinstance(curve, LiftPoints):
        return curve.depth, curve.lift
    depth, gain = _gains(curve)
    return depth[depth > 0], gain[depth > 0] / depth[depth > 0]


def _prevalence(curve: Points) -> float:
    if curve.positives is None or curve.negatives is None:
        raise TypeError("gains and lift need the counts of a curve that a metric computed")
    return float(curve.positives / (curve.positives + curve.negatives))
