"""Calibration: the fraction of positives over the mean score, and how many rows each bin holds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.confidence import ConfidenceInterval
from streammetrics.core.results.curves import Curves
from streammetrics.core.results.pictures import Drawing, drawn
from streammetrics.core.results.values import Interval
from streammetrics.metrics.scores.calibration import CalibrationPoints
from streammetrics.show.pictures.canvas import (
    COLOURS,
    DASHES,
    GREY,
    axes,
    chosen,
    counted,
    empty,
    legend,
    percent,
    short,
    titled,
    worst_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SQUARE = (5.6, 5.4)


@drawn.register(CalibrationPoints)
def draw_calibration_points(curve: Any, ax: object, drawing: Drawing) -> Axes:
    """Draw the calibration of one class."""
    return draw_calibration(Curves([curve], [""]), ax, drawing)


def draw_calibration(curves: Curves, ax: object, drawing: Drawing) -> Axes:
    """Draw the calibration of classes, with the histogram of the scores beneath."""
    chosen(drawing, "a calibration curve", ("calibration",))
    ax = axes(ax, _SQUARE)
    ax.set_ylabel("fraction of positives")
    ax.set_xlim(-0.01, 1.01)
    ax.set_ylim(-0.01, 1.01)
    known = [
        place
        for place, curve in enumerate(curves)
        if not np.isnan(curve._named()["prob_true"]).any()
    ]
    rows = float(sum(curve.rows.sum() for curve in curves[:1] if curve.rows is not None))
    weighs = not rows.is_integer()
    titled(
        ax, "Calibration", counted(drawing) or (f"n = {rows:,.0f}" if rows and not weighs else "")
    )
    if not known:
        ax.set_xlabel("mean score")
        return empty(ax, "no rows were seen")
    ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1.0, label="calibrated")
    beneath = ax.inset_axes((0, -0.30, 1, 0.24), sharex=ax)
    beneath.spines[["top", "right"]].set_visible(False)
    coloured = worst_of(known, lambda place: -_error(curves[place]))
    for place in set(known) - set(coloured):
        far: Any = curves[place]
        ax.plot(far.prob_pred, far.prob_true, color=GREY, alpha=0.4, linewidth=0.7)
    for number, place in enumerate(coloured):
        colour = COLOURS[number]
        curve: Any = curves[place]
        name = short(str(curves.labels[place]), 28)
        style = {
            "color": colour, "marker": "o", "markersize": 4,
            "linestyle": DASHES[number % len(DASHES)], "label": name or "measured",
        }  # fmt: skip
        _limits(ax, curve, _of_one(drawing, place, len(curves)), colour)
        ax.plot(curve.prob_pred, curve.prob_true, **{**style, **drawing.style})
        _bars(beneath, curve, colour, filled=len(known) == 1)
    ax.tick_params(labelbottom=False)
    beneath.set_xlabel("mean score")
    beneath.set_ylabel("weight" if weighs else "rows")
    beneath.set_ylim(bottom=0)
    beneath.yaxis.set_major_formatter("{x:,.0f}")
    more = len(known) - len(coloured)
    legend(ax, title=f"the worst 3, {more} more in grey" if more else None)
    return ax


def _error(curve: Any) -> float:
    """Return how far a curve is from a calibrated one, in the mean over its rows."""
    rows = np.ones(len(curve.prob_true)) if curve.rows is None else curve.rows
    return float(np.average(abs(curve.prob_true - curve.prob_pred), weights=rows))


def _of_one(drawing: Drawing, place: int, several: int) -> Drawing:
    """Return what is to be drawn of one of several classes."""
    if several == 1:
        return drawing
    sure, certain = drawing.sure, drawing.certain
    if isinstance(certain, Interval):
        certain = Interval(certain.low[place], certain.high[place])
    if sure is not None:
        sure = ConfidenceInterval(sure.low[place], sure.high[place], sure.level, sure.method)
    return replace(drawing, certain=certain, sure=sure)


def _limits(ax: Axes, curve: Any, drawing: Drawing, colour: str) -> None:
    """Draw a box for what is certain of each point, and a bar for its confidence."""
    if isinstance(drawing.certain, Interval):
        low, high = drawing.certain
        ax.bar(
            low.prob_pred, high.prob_true - low.prob_true,
            width=np.maximum(high.prob_pred - low.prob_pred, 0.004), bottom=low.prob_true,
            align="edge", color=colour, alpha=0.45, linewidth=0, label="certain bounds",
        )  # fmt: skip
    if drawing.sure is not None:
        low, high = drawing.sure
        ax.vlines(
            curve.prob_pred, low.prob_true, high.prob_true, color=colour, alpha=0.4, linewidth=3,
            label=f"{percent(drawing.sure.level)} confidence",
        )  # fmt: skip


def _bars(ax: Axes, curve: Any, colour: str, *, filled: bool) -> None:
    x = curve.prob_pred
    width = min(0.05, 0.7 * float(np.diff(x).min(initial=1.0)))
    if filled:
        ax.bar(x, curve.rows, width=max(width, 0.008), color=colour, alpha=0.6)
    else:
        ax.plot(x, curve.rows, color=colour, linewidth=1.0, drawstyle="steps-mid")
