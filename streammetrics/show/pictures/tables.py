"""Tables of classes: confusion matrices, reports, and a number for each class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.results.labelled import LabelledArray
from streammetrics.core.results.pictures import Drawing, drawn
from streammetrics.core.results.values import Report
from streammetrics.show.pictures.canvas import (
    COLOURS,
    GREY,
    INK,
    axes,
    chosen,
    counted,
    empty,
    legend,
    lined,
    ranges,
    short,
    titled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from streammetrics.core.types import Array

_COUNTED = 10  # classes of a matrix whose cells have room for counts and shares
_WRITTEN = 40  # classes of one whose cells have room for shares
_LINES = 40  # classes of a report that are drawn
_UPRIGHT = 2  # characters of a class that stand side by side, however many classes there are
_AVERAGES = ("macro avg", "weighted avg")


@drawn.register(LabelledArray)
def draw_array(array: LabelledArray, ax: object, drawing: Drawing) -> Axes:
    """Draw a matrix of true by predicted classes, or a number for each class."""
    axes_of = array._known()
    if len(axes_of) > 2:
        raise TypeError("an array of more than two axes has no picture: draw its parts")
    if len(axes_of) == 2:
        chosen(drawing, "a matrix", ("matrix",))
        return _matrix(array, ax, drawing)
    chosen(drawing, "a number for each class", ("values",))
    return _vector(array, ax, drawing)


def _matrix(array: LabelledArray, ax: object, drawing: Drawing) -> Axes:
    (down, labels), (across, titles) = array._known()
    values = np.asarray(array, float)
    size = max(4.4, min(2.2 + 0.36 * len(labels), 13.5))
    ax = axes(ax, (size + 0.6, size))
    ax.set_xlabel(_spoken(across))
    ofcounts = array.dtype.kind in "iu" or bool((values > 1).any())
    ax.set_ylabel(_spoken(down) + " (rows)" * ofcounts)
    told = f"n = {values.sum():,.10g}" if ofcounts else counted(drawing)
    if not ofcounts:
        told = ", ".join(filter(None, (told, "shares")))
    elif len(labels) > _COUNTED:
        what = "cells in %" if len(labels) <= _WRITTEN else "shades are shares"
        told += f", {what} of the true class"
    titled(ax, "Confusion matrix", told)
    if not values.size or not np.nansum(values):
        return empty(ax, "no rows were seen")
    whole = values.sum(axis=1, keepdims=True)
    shares = np.divide(values, whole, out=np.full_like(values, np.nan), where=whole > 0)
    shares = shares if ofcounts else values
    style = {"cmap": "Blues", "vmin": 0.0, "vmax": 1.0, "aspect": "equal", **drawing.style}
    ax.imshow(np.nan_to_num(shares), **style)
    ax.spines[:].set_visible(False)
    rows = [f" ({n:,.10g})" if ofcounts else "" for n in whole[:, 0]]
    small = "small" if len(labels) <= _COUNTED else "x-small"
    step = 1 if len(labels) <= _WRITTEN else -(-len(labels) // _WRITTEN)
    places = range(0, len(labels), step)
    names = [_short(titles[at]) for at in places]
    rotation = 0 if max(map(len, names), default=0) <= _UPRIGHT else 90
    ax.set_xticks(places, names, fontsize=small, rotation=rotation)
    ax.set_yticks(places, [f"{_short(labels[at])}{rows[at]}" for at in places], fontsize=small)
    if len(labels) <= _WRITTEN:
        _write(ax, values, shares, counted=ofcounts)
    return ax


def _write(ax: Axes, values: Array, shares: Array, *, counted: bool) -> None:
    """Write in each cell the count and its share of the true class, or the share alone."""
    large = len(values) <= _COUNTED
    # Of few classes an empty cell is told as well.
    cells = np.isfinite(shares) if large else np.nan_to_num(values) > 0
    for i, j in zip(*np.nonzero(cells), strict=True):
        share = f"{100 * shares[i, j]:.0f}"
        share = f"{share} %" if large else ("<1" if share == "0" else share)
        text = f"{values[i, j]:,.10g}\n{share}" if large and counted else share
        colour = "white" if shares[i, j] > 0.5 else INK
        ax.text(
            j, i, text, ha="center", va="center", color=colour,
            fontsize="small" if large else 6.5,
        )  # fmt: skip


@drawn.register(Report)
def draw_report(report: Report, ax: object, drawing: Drawing) -> Axes:
    """Draw precision, recall and F1 of every class, and their averages."""
    chosen(drawing, "a report", ("report",))
    lines = {name: line for name, line in report.items() if isinstance(line, dict)}
    classes = [name for name in lines if name not in _AVERAGES]
    most = _LINES if len(classes) > _LINES else len(classes)
    kept = sorted(classes, key=lambda name: np.nan_to_num(lines[name]["f1-score"]))[:most]
    shown = [*(name for name in classes if name in kept), *(n for n in _AVERAGES if n in lines)]
    ax = axes(ax, (7.4, 1.6 + 0.27 * max(len(shown), 3)))
    ax.set_xlabel("share")
    rows = lines["macro avg"]["support"] if "macro avg" in lines else 0
    more = f", the {most} of lowest F1 of {len(classes)} classes" if most < len(classes) else ""
    titled(ax, "Classification report", f"n = {rows:,.10g}{more}", stacked=True)
    if not rows:
        return empty(ax, "no rows were seen")
    places = np.arange(len(shown))[::-1] + np.array([0.4 * (n in classes) for n in shown])
    for number, name in enumerate(("precision", "recall", "f1-score")):
        values = [lines[line][name] for line in shown]
        style = {"color": COLOURS[number], "label": name.replace("f1-score", "F1"), "markersize": 5}
        # One below the other, as they are often alike.
        ax.plot(values, places + 0.2 * (1 - number), "osD"[number], **{**style, **drawing.style})
    if "accuracy" in report:
        text = f"accuracy {report['accuracy']:.4g}"
        ax.axvline(report["accuracy"], color=GREY, linestyle=":", linewidth=1, label=text)
    names = [f"{_short(n)} ({lines[n]['support']:,.10g})" if n in classes else n for n in shown]
    ax.set_yticks(places, names, fontsize="small")
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.6, places[0] + 0.6)
    ax.grid(axis="both", alpha=0.2)
    legend(ax, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def _vector(array: LabelledArray, ax: object, drawing: Drawing) -> Axes:
    ((name, labels),) = array._known()
    values = np.asarray(array, float)
    known = np.flatnonzero(np.isfinite(values))
    # Bins have an order of their own; of other values the lowest come first.
    order = known if name == "bin" else known[np.argsort(values[known], kind="stable")]
    order = order[:_LINES][::-1]
    ax = axes(ax, (6.0, 1.4 + 0.25 * max(len(order), 3)))
    which = "first" if name == "bin" else "lowest"
    more = f"the {which} {len(order)} of {len(known)}" if len(order) < len(known) else ""
    told = ", ".join(filter(None, (more, counted(drawing))))
    titled(ax, f"{drawing.name or 'Value'} by {name}", told)
    ax.set_xlabel(drawing.name or "value")
    if not len(order):
        return empty(ax, "no value is defined")
    places = np.arange(len(order))
    for limits in (drawing.sure, drawing.certain):
        if limits is not None:
            low, high = (np.asarray(side, float)[order] for side in limits)
            ranges(ax, low, high, places, level=getattr(limits, "level", None))
    ax.plot(values[order], places, "o", **{"color": COLOURS[0], **drawing.style})
    ax.set_yticks(places, [_short(labels[at]) for at in order], fontsize="small")
    ax.set_ylim(-0.7, len(order) - 0.3)
    lined(ax)
    legend(ax)
    return ax


def _spoken(name: str) -> str:
    return {"y_true": "true class", "y_pred": "predicted class"}.get(name, name)


def _short(label: object) -> str:
    return short(str(label), 28)
