"""Curves that are metrics of their own: DET, cumulative gains and lift."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.results.pictures import drawn
from streammetrics.metrics.scores.curves import ROCPoints
from streammetrics.metrics.scores.errors import DETPoints
from streammetrics.metrics.scores.gains import GainPoints, LiftPoints
from streammetrics.show.pictures.canvas import COLOURS, GREY, axes, chosen, empty, legend, titled
from streammetrics.show.pictures.curves import draw_roc
from streammetrics.show.pictures.thinning import thinned

if TYPE_CHECKING:
    from streammetrics.core.results.pictures import Drawing


@drawn.register(DETPoints)
def draw_det(curve: DETPoints, ax: Any, drawing: Drawing) -> Any:
    """Draw the error rates on scales of the normal distribution."""
    chosen(drawing, "a DET curve", ("det",))
    rates = ROCPoints(curve.fpr, 1 - curve.fnr, curve.thresholds)
    return draw_roc(rates, ax, replace(drawing, kind="det", certain=None, sure=None))


@drawn.register(GainPoints)
def draw_gains(curve: GainPoints, ax: Any, drawing: Drawing) -> Any:
    """Draw which share of the positives a share of the rows has."""
    chosen(drawing, "cumulative gains", ("gains",))
    ax = _drawn(curve.depth, curve.gain, ax, drawing, "Cumulative gains", "share of positives")
    if ax.lines:
        ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1, label="chance")
        legend(ax)
    return ax


@drawn.register(LiftPoints)
def draw_lift(curve: LiftPoints, ax: Any, drawing: Drawing) -> Any:
    """Draw how many times the positives of a random pick a share of the rows has."""
    chosen(drawing, "a lift curve", ("lift",))
    words = "times the positives of a random pick"
    ax = _drawn(curve.depth, curve.lift, ax, drawing, "Lift", words)
    if ax.lines:
        ax.axhline(1.0, color=GREY, linestyle=":", linewidth=1, label="chance")
        ax.set_ylim(bottom=0)
        legend(ax)
    return ax


def _drawn(x: Any, y: Any, ax: Any, drawing: Drawing, title: str, words: str) -> Any:
    ax = axes(ax)
    titled(ax, title, "" if drawing.n_rows is None else f"n = {drawing.n_rows:,}")
    ax.set_xlabel("share of rows, highest scores first")
    ax.set_ylabel(words)
    known = np.isfinite(x) & np.isfinite(y)
    if known.sum() < 2:
        return empty(ax, "no rows were seen, or none of one class")
    x, y = x[known], y[known]
    at = thinned(x, y)
    ax.plot(x[at], y[at], **{"color": COLOURS[0], "label": "measured", **drawing.style})
    return ax
