"""Curves over thresholds: ROC, DET, gains, lift, precision over recall, all of it by threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.results.curves import Curves
from streammetrics.core.results.pictures import Drawing, drawn
from streammetrics.inference.distributions import normal_quantile
from streammetrics.metrics.scores.calibration import CalibrationPoints
from streammetrics.metrics.scores.curves import PRPoints, ROCPoints
from streammetrics.show.pictures.calibration import draw_calibration
from streammetrics.show.pictures.canvas import (
    COLOURS,
    DASHES,
    GREY,
    MOST,
    axes,
    certain_band,
    chosen,
    counted,
    empty,
    figure,
    legend,
    short,
    sure_band,
    titled,
)
from streammetrics.show.pictures.outlines import (
    certain_pr,
    certain_roc,
    sure_det,
    sure_pr,
    sure_roc,
)
from streammetrics.show.pictures.thinning import thinned
from streammetrics.show.pictures.thresholds import draw_thresholds

if TYPE_CHECKING:
    from streammetrics.core.types import Floats

    Rates = ROCPoints | PRPoints

_TICKS = (0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999)  # of error rates, on DET axes
_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

TITLES = {
    "roc": ("ROC", "false positive rate", "true positive rate"),
    "det": ("Detection error tradeoff", "false positive rate", "false negative rate"),
    "gains": ("Cumulative gains", "share of rows, highest scores first", "share of positives"),
    "lift": ("Lift", "share of rows, highest scores first", "times the positives of a random pick"),
    "pr": ("Precision and recall", "recall", "precision"),
}


@drawn.register(ROCPoints)
def draw_roc(curve: ROCPoints, ax: Any, drawing: Drawing) -> Any:
    """Draw a ROC curve, or what else its rates tell: DET, gains, lift."""
    kind = chosen(drawing, "a ROC curve", ("roc", "det", "gains", "lift"))
    if kind in {"gains", "lift"} and drawing.sure is not None:
        raise TypeError(
            f"plot(kind={kind!r}, confidence=...): limits of a ROC curve are not those of {kind}; "
            "CumulativeGains().plot(confidence=0.95) has its own, and lift has none"
        )
    return _alone(curve, ax, drawing, kind)


@drawn.register(PRPoints)
def draw_pr(curve: PRPoints, ax: Any, drawing: Drawing) -> Any:
    """Draw precision over recall, or both over the threshold."""
    kind = chosen(drawing, "a precision-recall curve", ("pr", "thresholds"))
    if kind == "thresholds":
        return draw_thresholds(curve, ax, drawing)
    return _alone(curve, ax, drawing, kind)


@drawn.register(Curves)
def draw_curves(curves: Curves, ax: Any, drawing: Drawing) -> Any:
    """Draw the curves of several classes on the same axes."""
    if not curves:
        return empty(axes(ax), "there are no classes")
    first = curves[0]
    if isinstance(first, CalibrationPoints):
        return draw_calibration(curves, ax, drawing)
    rates = [curve for curve in curves if isinstance(curve, ROCPoints | PRPoints)]
    if not rates:
        return drawn(first, ax, drawing)
    kinds = ("roc", "det", "gains", "lift") if isinstance(first, ROCPoints) else ("pr",)
    kind = chosen(drawing, "curves of several classes", kinds)
    ax = _framed(axes(ax), kind)
    known = [place for place, curve in enumerate(rates) if not _why_not(curve)]
    if not known:
        return empty(ax, _why_not(rates[0]))
    order = sorted(known, key=lambda place: _area(rates[place]))
    coloured = known if len(known) <= MOST else order[:3]
    for place in known:
        if place not in coloured:
            ax.plot(*_path(rates[place], kind), color=GREY, alpha=0.4, linewidth=0.7)
    for number, place in enumerate(coloured):
        curve = rates[place]
        style = {"color": COLOURS[number], "linestyle": DASHES[number % len(DASHES)]}
        label = ": ".join(filter(None, (short(str(curves.labels[place]), 28), _told(curve, kind))))
        ax.plot(*_path(curve, kind), **{**style, "label": label, **drawing.style})
    if kind != "pr":  # where chance differs from class to class
        reference(ax, kind)
    more = len(known) - len(coloured)
    totals = {(curve.positives or 0) + (curve.negatives or 0) for curve in rates}
    told = f"n = {max(totals):,}" if len(totals) == 1 and max(totals) else counted(drawing)
    titled(ax, f"{TITLES[kind][0]} of {len(rates)} classes", told)
    legend(ax, title=f"the lowest 3, {more} more in grey" if more else None)
    return ax


def _alone(curve: Rates, ax: Any, drawing: Drawing, kind: str) -> Any:
    ax = _framed(axes(ax), kind)
    titled(ax, TITLES[kind][0], _count(curve, drawing))
    why = _why_not(curve)
    if why:
        return empty(ax, why)
    if kind in {"roc", "pr"}:
        _bands(ax, curve, drawing, kind)
    elif kind == "det" and drawing.sure is not None:
        x, y = (_deviates(logits) for logits in sure_det(drawing.sure))
        sure_band(ax, x, y, COLOURS[0], drawing.sure.level)
    style = {"color": COLOURS[0], "label": _told(curve, kind) or "measured", **drawing.style}
    ax.plot(*_path(curve, kind), **style)
    reference(ax, kind, curve)
    legend(ax)
    return ax


def _bands(ax: Any, curve: Rates, drawing: Drawing, kind: str) -> None:
    sure, certain = (sure_roc, certain_roc) if kind == "roc" else (sure_pr, certain_pr)
    if drawing.sure is not None:
        sure_band(ax, *sure(drawing.sure), COLOURS[0], drawing.sure.level)
    if not curve.exact:
        certain_band(ax, *certain(curve), COLOURS[0])


def _framed(ax: Any, kind: str) -> Any:
    _, x, y = TITLES[kind]
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    if kind == "det":
        places = [normal_quantile(share) for share in _TICKS]
        names = [f"{100 * share:g} %" for share in _TICKS]
        ax.set_xticks(places, names)
        ax.set_yticks(places, names)
        ax.set_xlim(places[0], places[-1])
        ax.set_ylim(places[0], places[-1])
        ax.grid(alpha=0.25)
    else:
        ax.set_xlim(-0.01, 1.01)
        ax.set_xticks(_SHARES)
        if kind != "lift":
            ax.set_ylim(-0.01, 1.01)
            ax.set_yticks(_SHARES)
    return ax


def _why_not(curve: Rates) -> str:
    """Return why a curve cannot be drawn, nothing where it can."""
    size = len(curve.thresholds)
    if isinstance(curve, PRPoints):
        rates, none = {"positives": curve.recall}, not size
    else:
        rates, none = {"positives": curve.tpr, "negatives": curve.fpr}, size < 2
    missing = [name for name, rate in rates.items() if np.isnan(rate).any()]
    if size and not missing:
        return ""
    if none or len(missing) == 2:
        return "no rows were seen"
    return f"there are no {missing[0]}, all rows are of one class"


def _count(curve: Rates, drawing: Drawing) -> str:
    if curve.positives is None or curve.negatives is None:
        return counted(drawing)
    return f"n = {curve.positives + curve.negatives:,}, {curve.positives:,} positive"


def _area(curve: Rates) -> float:
    if isinstance(curve, ROCPoints):
        return float(np.trapezoid(curve.tpr, curve.fpr))
    return float(-np.sum(np.diff(curve.recall) * curve.precision[:-1]))


def _told(curve: Rates, kind: str) -> str:
    if kind not in {"roc", "pr"}:
        return ""
    about = "" if curve.exact else "about "
    what = "area" if isinstance(curve, ROCPoints) else "average precision"
    return f"{what} {about}{figure(_area(curve))}"


def _path(curve: Any, kind: str) -> tuple[Floats, Floats]:
    """Return the points of a picture of a curve, thinned."""
    if kind == "pr":
        # As scikit-learn draws it: precision holds until the next recall is reached.
        x, y = curve.recall, curve.precision
        at = thinned(x, y)
        return x[at], y[at]
    fpr, tpr = curve.fpr, curve.tpr
    if kind == "roc":
        at = thinned(fpr, tpr)
        return fpr[at], tpr[at]
    if kind == "det":
        return _det(fpr, 1 - tpr)
    share = _targeted(curve)
    if kind == "gains":
        at = thinned(share, tpr)
        return share[at], tpr[at]
    some = share > 0
    x, y = share[some], tpr[some] / share[some]
    at = thinned(x, y)
    return x[at], y[at]


def _targeted(curve: Any) -> Floats:
    """Return the share of rows at or above each threshold."""
    positives, negatives = curve.positives, curve.negatives
    if positives is None or negatives is None:
        raise TypeError("gains and lift need the counts of a curve that a metric computed")
    found: Floats = (curve.tpr * positives + curve.fpr * negatives) / (positives + negatives)
    return found


def _det(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    inside = (x > 0) & (x < 1) & (y > 0) & (y < 1)
    x, y = x[inside], y[inside]
    if not len(x):
        return x, y
    at = thinned(np.log(x / (1 - x)), np.log(y / (1 - y)))
    x, y = (np.array([normal_quantile(p) for p in side[at]]) for side in (x, y))
    return x, y


def _deviates(logits: Floats) -> Floats:
    """Return where shares stand on scales of the normal distribution."""
    return np.array([normal_quantile(1 / (1 + np.exp(-logit))) for logit in logits])


def reference(ax: Any, kind: str, curve: Rates | None = None) -> None:
    """Draw what chance alone would give."""
    style = {"color": GREY, "linestyle": ":", "linewidth": 1.0, "label": "chance"}
    if kind in {"roc", "gains"}:
        ax.plot([0, 1], [0, 1], **style)
    elif kind == "lift":
        ax.axhline(1.0, **style)
        ax.set_ylim(bottom=0)
    elif kind == "pr" and curve is not None and curve.positives is not None:
        ax.axhline(curve.positives / (curve.positives + (curve.negatives or 0)), **style)
