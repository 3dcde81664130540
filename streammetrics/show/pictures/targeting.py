"""Curves that are metrics of their own: DET, cumulative gains and lift."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.results.pictures import drawn
from streammetrics.metrics.scores.curves import ROCPoints
from streammetrics.metrics.scores.errors import DETPoints
from streammetrics.metrics.scores.gains import GainPoints, LiftPoints
from streammetrics.show.pictures.canvas import (
    COLOURS,
    axes,
    chosen,
    counted,
    empty,
    legend,
    sure_band,
    titled,
)
from streammetrics.show.pictures.curves import TITLES, draw_roc, reference
from streammetrics.show.pictures.outlines import around
from streammetrics.show.pictures.thinning import thinned

if TYPE_CHECKING:
    from streammetrics.core.results.pictures import Drawing


@drawn.register(DETPoints)
def draw_det(curve: DETPoints, ax: Any, drawing: Drawing) -> Any:
    """Draw the error rates on scales of the normal distribution."""
    chosen(drawing, "a DET curve", ("det",))
    rates = ROCPoints(curve.fpr, 1 - curve.fnr, curve.thresholds)
    return draw_roc(rates, ax, replace(drawing, kind="det", certain=None))


@drawn.register(GainPoints)
def draw_gains(curve: GainPoints, ax: Any, drawing: Drawing) -> Any:
    """Draw which share of the positives a share of the rows has."""
    chosen(drawing, "cumulative gains", ("gains",))
    ax = _drawn(curve.depth, curve.gain, ax, drawing, "gains")
    if drawing.sure is not None and ax.lines:
        sides = ((curve.depth, side.gain) for side in reversed(list(drawing.sure)))
        sure_band(ax, *around(*sides), COLOURS[0], drawing.sure.level)
        legend(ax)
    return ax


@drawn.register(LiftPoints)
def draw_lift(curve: LiftPoints, ax: Any, drawing: Drawing) -> Any:
    """Draw how many times the positives of a random pick a share of the rows has."""
    chosen(drawing, "a lift curve", ("lift",))
    return _drawn(curve.depth, curve.lift, ax, drawing, "lift")


def _drawn(x: Any, y: Any, ax: Any, drawing: Drawing, kind: str) -> Any:
    ax = axes(ax)
    title, across, up = TITLES[kind]
    titled(ax, title, counted(drawing))
    ax.set_xlabel(across)
    ax.set_ylabel(up)
    known = np.isfinite(x) & np.isfinite(y)
    if known.sum() < 2:
        return empty(ax, "no rows were seen, or none of one class")
    x, y = x[known], y[known]
    at = thinned(x, y)
    ax.plot(x[at], y[at], **{"color": COLOURS[0], "label": "measured", **drawing.style})
    reference(ax, kind)
    legend(ax)
    return ax
