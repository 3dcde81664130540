"""Curves over thresholds: ROC, DET, gains, lift, precision over recall, all of it by threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from streammetrics.core.results.curves import Curves
from streammetrics.core.results.pictures import Drawing, drawn
from streammetrics.inference.distributions import normal_quantile
from streammetrics.metrics.scores.calibration import CalibrationPoints
from streammetrics.metrics.scores.curves import PRPoints, ROCPoints
from streammetrics.metrics.scores.errors import DETPoints
from streammetrics.metrics.scores.gains import GainPoints, LiftPoints
from streammetrics.show.pictures.calibration import draw_calibration
from streammetrics.show.pictures.canvas import (
    COLOURS,
    DASHES,
    GREY,
    axes,
    between,
    certain_band,
    chosen,
    counted,
    empty,
    figure,
    legend,
    short,
    sure_band,
    titled,
    worst_of,
)
from streammetrics.show.pictures.outlines import around, sure_det, sure_pr, sure_roc
from streammetrics.show.pictures.paths import area, certain, deviates, path, why_no_errors, why_not
from streammetrics.show.pictures.thresholds import draw_thresholds
from streammetrics.show.pictures.values import draw_distributions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from streammetrics.core.types import Options
    from streammetrics.show.pictures.paths import Rates

_TICKS = (0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999)  # of error rates, on DET axes
_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

_TITLES = {
    "roc": ("ROC", "false positive rate", "true positive rate"),
    "det": ("Detection error tradeoff", "false positive rate", "false negative rate"),
    "gains": ("Cumulative gains", "share of rows, highest scores first", "share of positives"),
    "lift": ("Lift", "share of rows, highest scores first", "times the positives of a random pick"),
    "pr": ("Precision and recall", "recall", "precision"),
}
_KINDS: dict[type, tuple[str, tuple[str, ...]]] = {
    ROCPoints: ("a ROC curve", ("roc", "det", "gains", "lift")),
    PRPoints: ("a precision-recall curve", ("pr", "thresholds")),
    DETPoints: ("a DET curve", ("det",)),
    GainPoints: ("cumulative gains", ("gains",)),
    LiftPoints: ("a lift curve", ("lift",)),
}


@drawn.register(ROCPoints)
@drawn.register(PRPoints)
@drawn.register(DETPoints)
@drawn.register(GainPoints)
@drawn.register(LiftPoints)
def draw_curve(curve: Rates, ax: object, drawing: Drawing) -> Axes:
    """Draw a curve, or what else its rates tell: of a ROC curve DET, gains and lift."""
    kind = _kind(curve, drawing)
    if kind == "thresholds":
        return draw_thresholds(cast("PRPoints", curve), ax, drawing)
    ax = _framed(axes(ax), kind)
    titled(ax, _TITLES[kind][0], _count(curve, drawing))
    why = why_not(curve) or (kind == "det" and why_no_errors(cast("ROCPoints", curve)))
    if why:
        return empty(ax, why)
    _bands(ax, curve, drawing.sure and tuple(drawing.sure), drawing, kind, COLOURS[0])
    label = "measured"
    if kind in {"roc", "pr"}:
        label = _read(drawing) or _told(curve, kind)
    ax.plot(*path(curve, kind), **{"color": COLOURS[0], "label": label, **drawing.style})
    _reference(ax, kind, curve)
    legend(ax)
    return ax


@drawn.register(Curves)
def draw_curves(curves: Curves, ax: object, drawing: Drawing) -> Axes:
    """Draw the curves of several classes on the same axes."""
    if not curves:
        return empty(axes(ax), "there are no classes")
    if isinstance(curves[0], CalibrationPoints):
        return draw_calibration(curves, ax, drawing)
    if type(curves[0]) not in _KINDS:
        return draw_distributions(curves, ax, drawing)
    rates = [cast("Rates", curve) for curve in curves]
    kind = _kind(rates[0], drawing)
    if kind == "thresholds":
        raise TypeError("plot(kind='thresholds'): of several classes draw one, as compute()[0]")
    ax = _framed(axes(ax), kind)
    known = [place for place, curve in enumerate(rates) if not why_not(curve)]
    totals = {(curve.positives or 0) + (curve.negatives or 0) for curve in rates}
    told = f"n = {max(totals):,}" if len(totals) == 1 and max(totals) else counted(drawing)
    titled(ax, f"{_TITLES[kind][0]} of {len(rates)} classes", told)
    if not known:
        return empty(ax, why_not(rates[0]))
    coloured = worst_of(known, lambda place: area(rates[place]))
    for place in set(known) - set(coloured):
        ax.plot(*path(rates[place], kind), color=GREY, alpha=0.4, linewidth=0.7)
    for number, place in enumerate(coloured):
        curve, colour = rates[place], COLOURS[number]
        sure = drawing.sure and tuple(side[place] for side in drawing.sure)
        _bands(ax, curve, sure, drawing, kind, colour)
        style = {"color": colour, "linestyle": DASHES[number % len(DASHES)]}
        label = ": ".join(filter(None, (short(str(curves.labels[place]), 28), _told(curve, kind))))
        ax.plot(*path(curve, kind), **{**style, "label": label, **drawing.style})
    if kind != "pr":  # where chance differs from class to class
        _reference(ax, kind, rates[0])
    more = len(known) - len(coloured)
    legend(ax, title=f"the lowest 3, {more} more in grey" if more else None)
    return ax


def _kind(curve: Rates, drawing: Drawing) -> str:
    kind = chosen(drawing, *_KINDS[type(curve)])
    if isinstance(curve, ROCPoints) and kind in {"gains", "lift"} and drawing.sure is not None:
        raise TypeError(
            f"plot(kind={kind!r}, confidence=...): limits of a ROC curve are not those of {kind}; "
            "CumulativeGains().plot(confidence=0.95) has its own, and lift has none"
        )
    return kind


def _bands(ax: Axes, curve: Rates, sure: Any, drawing: Drawing, kind: str, colour: str) -> None:
    """Draw what holds a curve with confidence, between two curves, and what does certainly."""
    if sure is not None:
        if kind == "gains":
            outline = around(*((curve[0], side.gain) for side in reversed(sure)))
        elif kind == "det":
            x, y = sure_det(sure)
            outline = deviates(x), deviates(y)
        else:
            outline = (sure_roc if kind == "roc" else sure_pr)(sure)
        sure_band(ax, *outline, colour, drawing.sure.level)
    countless = kind in {"gains", "lift"} and curve.positives is None
    if not curve.exact and not countless:
        certain_band(ax, *certain(curve, kind), colour)


def _framed(ax: Axes, kind: str) -> Axes:
    _, x, y = _TITLES[kind]
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


def _count(curve: Rates, drawing: Drawing) -> str:
    if curve.positives is None or curve.negatives is None:
        return counted(drawing)
    return f"n = {curve.positives + curve.negatives:,}, {curve.positives:,} positive"


def _read(drawing: Drawing) -> str:
    """Return the number that a metric reads from the curve, and what holds it."""
    if drawing.read is None:
        return ""
    limits = between(drawing.read.bounds, drawing.read.sure)
    return f"{drawing.name} {figure(drawing.read.value)}{limits}"


def _told(curve: Rates, kind: str) -> str:
    if kind not in {"roc", "pr"}:
        return ""
    about = "" if curve.exact else "about "
    what = "area" if isinstance(curve, ROCPoints) else "average precision"
    return f"{what} {about}{figure(area(curve))}"


def _reference(ax: Axes, kind: str, curve: Rates) -> None:
    """Draw what chance alone would give."""
    style: Options = {
        "color": GREY, "linestyle": ":", "linewidth": 1.0, "label": "chance",
    }  # fmt: skip
    if kind in {"roc", "gains"}:
        ax.plot([0, 1], [0, 1], **style)
    elif kind == "lift":
        ax.axhline(1.0, **style)
        ax.set_ylim(bottom=0)
    elif kind == "pr" and curve.positives is not None:
        ax.axhline(curve.positives / (curve.positives + (curve.negatives or 0)), **style)
