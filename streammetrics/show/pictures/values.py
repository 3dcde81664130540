"""Pictures of tables, values, distributions, time series, slices and differences."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.results.differences import Differences
from streammetrics.core.results.hooks import Drawing, drawn
from streammetrics.core.results.values import KeyedValues, LabelledArray, Points, Report
from streammetrics.live.queries import Series
from streammetrics.metrics.correlation import PredictionPairs
from streammetrics.metrics.distributions import Distribution
from streammetrics.metrics.scores.thresholds import BestPoint, ConfusionPoints
from streammetrics.show.pictures.canvas import (
    COLOURS,
    DASHES,
    GREY,
    INK,
    MOST,
    around,
    axes,
    certain_band,
    chosen,
    column,
    counted,
    empty,
    figure,
    legend,
    library,
    lined,
    option,
    plainly,
    ranges,
    short,
    thinned,
    titled,
)
from streammetrics.slices.table import SliceTable, key_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from streammetrics.core.results.values import Curves
    from streammetrics.core.types import Array, Bools, Options


_COUNTED = 10  # maximum classes of a matrix whose cells show counts and shares
_WRITTEN = 40  # maximum classes of a matrix whose cells show shares
_LINES = 40  # maximum classes of a report
_UPRIGHT = 2  # longest class name, in characters, that is not rotated
_AVERAGES = ("macro avg", "weighted avg")


@drawn.register(LabelledArray)
def draw_array(array: LabelledArray, ax: object, drawing: Drawing) -> Axes:
    """Draw a confusion matrix, or one number for each class."""
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
    """Write into each cell the count and its share of the true class, or only the share."""
    large = len(values) <= _COUNTED
    # With few classes, empty cells get a text too.
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
        # Offset vertically, because the three values are often alike.
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
    # Bins keep their order; other values are sorted, lowest first.
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


_BINS = 30
_NAMED = 30  # maximum number of values, other than those of queries, that get a line each
_FARTHEST = 1e300  # largest magnitude that axes with margins can hold
_MARKED = (0.5, 0.9, 0.99)  # quantiles to mark
_NOTHING = 1e-9  # a share of rows that is rounding
_FARTHER, _MIDDLE = "{:.2g} % lie farther out", "cells of several values stand at their middle"
_MANY = 2000  # from this number of points on, draw a raster image instead of SVG elements


@drawn.register(KeyedValues)
def draw_keyed(values: KeyedValues, ax: object, drawing: Drawing) -> Axes:
    """Draw a histogram of values over queries or, with `against`, a scatter plot of two runs."""
    against = option(drawing, "against")
    what = drawing.name or "value"
    if against is None and values.name != "query" and 0 < len(values) <= _NAMED:
        chosen(drawing, f"values by {values.name}", ("values",))
        return _each(values, ax, drawing, what)
    chosen(drawing, f"values by {values.name}", ("distribution",))
    if against is not None:
        return _against(values, against, ax, drawing, what)
    ax = axes(ax)
    of = {"query": "queries"}.get(values.name, f"{values.name}s")
    ax.set_xlabel(f"{what} of each {values.name}")
    ax.set_ylabel(of)
    numbers = np.array([value for value in values.values() if np.isfinite(value)])
    one = values.name if len(numbers) == 1 else of
    titled(ax, f"{what} by {values.name}", f"n = {len(numbers):,} {one}")
    if not len(numbers):
        return empty(ax, f"there are no {of}")
    low, high = float(numbers.min()), float(numbers.max())
    ends = (0.0, 1.0) if low >= 0 and high <= 1 else _ends(low, high)
    counts, edges = np.histogram(numbers, bins=_BINS, range=ends)
    style = {"color": COLOURS[0], "alpha": 0.7, **drawing.style}
    ax.bar(edges[:-1], counts, width=np.diff(edges), align="edge", **style)
    ax.locator_params(axis="y", integer=True)
    for place, value, name in ((1, numbers.mean(), "mean"), (2, np.median(numbers), "median")):
        ax.axvline(
            value, color=COLOURS[place], linestyle="-" if place == 1 else "--", linewidth=1.4,
            label=f"{name} {figure(float(value))}",
        )  # fmt: skip
    legend(ax)
    return ax


def _ends(low: float, high: float) -> tuple[float, float] | None:
    """Return the range of a histogram, wide enough that floats can tell its bins apart."""
    if low == high:
        return None  # NumPy's range around one value
    room = max(4 * _BINS * math.ulp(max(abs(low), abs(high))), 1e-290)
    return (low, high) if high - low > room else (low - room, high + room)


def _each(values: KeyedValues, ax: object, drawing: Drawing, what: str) -> Axes:
    """Draw a line for each of a few named values, e.g. parts of a score or clusters."""
    ax = axes(ax, (6.0, 1.6 + 0.26 * max(len(values), 3)))
    titled(ax, f"{what} by {values.name}", counted(drawing))
    places = np.arange(len(values))[::-1]
    style = {"color": COLOURS[0], "markersize": 5, **drawing.style}
    ax.plot(list(values.values()), places, "o", **style)
    ax.set_yticks(places, [short(str(name), 28) for name in values], fontsize="small")
    ax.set_ylim(-0.7, len(values) - 0.3)
    ax.set_xlabel(what)
    lined(ax)
    return ax


def _against(mine: KeyedValues, other: Any, ax: object, drawing: Drawing, what: str) -> Axes:
    ax = axes(ax, (5.2, 5.0))
    both = [key for key in mine if key in other]
    x = np.array([other[key] for key in both])
    y = np.array([mine[key] for key in both])
    ax.set_xlabel(f"{what}, the other run")
    ax.set_ylabel(f"{what}, this run")
    of = {"query": "queries"}.get(mine.name, f"{mine.name}s")
    titled(ax, f"{what}, {mine.name} by {mine.name}", f"n = {len(both):,} {of}")
    if not both:
        return empty(ax, f"no {mine.name} is in both runs")
    better, worse = int((y > x).sum()), int((y < x).sum())
    low, high = min(x.min(), y.min()), max(x.max(), y.max())
    ax.plot([low, high], [low, high], color=GREY, linestyle=":", linewidth=1, label="equal")
    label = f"{better:,} better, {worse:,} worse, {len(both) - better - worse:,} equal"
    style = {"color": COLOURS[0], "alpha": 0.5 if len(both) < _MANY else 0.15, "label": label}
    ax.plot(
        x, y, "o", markersize=4, rasterized=len(both) > _MANY, **{**style, **drawing.style}
    )  # fmt: skip
    ends = low - 0.03 * (high - low or 1.0), high + 0.03 * (high - low or 1.0)
    ax.set(xlim=ends, ylim=ends, aspect="equal")
    legend(ax)
    return ax


@drawn.register(Points)
def draw_points(points: Points, ax: object, drawing: Drawing) -> Axes:
    """Draw the points of an author: the second array over the first."""
    (across, x), (up, y) = list(points._named().items())[:2]
    chosen(drawing, f"{up} over {across}", ("points",))
    ax = axes(ax)
    titled(ax, drawing.name or type(points).__name__, counted(drawing))
    ax.set_xlabel(across)
    ax.set_ylabel(up)
    ax.plot(x, y, **{"color": COLOURS[0], **drawing.style})
    return ax


# Counts at each threshold, and a single point, have none.
drawn.register(ConfusionPoints, drawn.dispatch(object))
drawn.register(BestPoint, drawn.dispatch(object))


@drawn.register(Distribution)
def draw_distribution(cells: Distribution, ax: object, drawing: Drawing) -> Axes:
    """Draw the quantile function, or a histogram."""
    kind, ax = _spread(ax, drawing)
    inside = _inside(cells)
    if not inside.any():
        return empty(ax, "no rows were seen")
    if max(abs(cells.low[inside]).max(), abs(cells.high[inside]).max()) > _FARTHEST:
        return empty(ax, "values are beyond what Matplotlib can draw")
    (_quantiles if kind == "quantiles" else _histogram)(ax, cells, drawing)
    return ax


def draw_distributions(several: Curves, ax: object, drawing: Drawing) -> Axes:
    """Draw the quantile functions of several outputs on the same axes."""
    if drawing.kind == "histogram":
        raise TypeError("plot(kind='histogram'): of several outputs draw one, each alone")
    _, ax = _spread(ax, replace(drawing, kind="quantiles"))
    known = [at for at, cells in enumerate(several) if _inside(cells).any()]
    if not known:
        return empty(ax, "no rows were seen")
    for number, place in enumerate(known[:MOST]):
        style = {
            "color": COLOURS[number], "linestyle": DASHES[number % len(DASHES)],
            "label": short(f"output {several.labels[place]}", 28),
        }  # fmt: skip
        _line(ax, several[place], {**style, **drawing.style})
    if len(known) > MOST:
        ax.plot([], [], " ", label=f"{len(known) - MOST} more not drawn")
    legend(ax, loc="upper left")
    return ax


def _spread(ax: object, drawing: Drawing) -> tuple[str, Axes]:
    """Return the requested kind of picture of a distribution, and its labelled axes."""
    first = "quantiles" if "Error" in drawing.name else "histogram"
    kinds = (first, *{"quantiles", "histogram"} - {first})
    kind = chosen(drawing, "a distribution", kinds)
    what = "absolute error" if "Error" in drawing.name else "value"
    ax = axes(ax)
    share = "share of rows (%)"
    value = f"{what}, in units of the target" if what != "value" else what
    if kind == "quantiles":
        name, x, y = "Quantiles", share, value
        ax.set_xlim(0, 100)
        ax.grid(alpha=0.25)
    else:
        name, x, y = "Distribution", value, share
    titled(ax, f"{name} of the {what}", counted(drawing))
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    return kind, ax


def _inside(cells: Any) -> Bools:
    inside: Bools = np.isfinite(cells.low) & np.isfinite(cells.high)
    return inside


def _line(ax: Axes, cells: Any, style: Options) -> None:
    """Draw the quantile function; within a cell, quantiles lie anywhere between its edges."""
    inside = _inside(cells)
    low, high = cells.low[inside], cells.high[inside]
    share = np.append(0.0, 100 * cells.share)
    across = np.column_stack([share[:-1][inside], share[1:][inside]]).ravel()
    if not cells.exact:
        certain_band(
            ax, *around((across, np.repeat(high, 2)), (across, np.repeat(low, 2))), style["color"]
        )
    middle = np.repeat((low + high) / 2, 2)
    at = thinned(across, middle)
    ax.plot(across[at], middle[at], **style)


def _quantiles(ax: Axes, cells: Distribution, drawing: Drawing) -> None:
    _line(ax, cells, {"color": COLOURS[0], **drawing.style})
    share, high = cells.share, cells.high
    for number, level in enumerate(_MARKED):
        place = min(int(np.searchsorted(share, level)), len(share) - 1)
        if np.isfinite(high[place]):
            text = f"{100 * level:g} % at most {figure(float(high[place]))}"
            mark: Options = {"color": COLOURS[1 + number], "label": text, "clip_on": False}
            ax.plot([100 * level], [high[place]], "osD"[number], **mark)
    legend(ax, loc="upper left")


def _histogram(ax: Axes, cells: Distribution, drawing: Drawing) -> None:
    inside = _inside(cells)
    mass = np.diff(cells.share, prepend=0.0)[inside]
    middle = (cells.low[inside] + cells.high[inside]) / 2
    # Clip the outermost 0.05 % on each side, which would leave no room for the rest.
    share = cells.share[inside]
    left = middle[np.searchsorted(share, 0.0005)]
    right = middle[min(int(np.searchsorted(share, 0.9995)), len(share) - 1)]
    counts, edges = np.histogram(middle, bins=_BINS, range=_ends(left, right), weights=mass)
    style = {"color": COLOURS[0], "alpha": 0.7, **drawing.style}
    ax.bar(edges[:-1], 100 * counts, width=np.diff(edges), align="edge", **style)
    outside = 1 - counts.sum()
    at = min(int(np.searchsorted(share, 0.5)), len(share) - 1)
    ax.axvline(middle[at], color=COLOURS[1], label=f"median {figure(float(middle[at]))}")
    if not cells.exact:
        ax.plot([], [], " ", label=_MIDDLE)
    if outside > _NOTHING:
        ax.plot([], [], " ", label=_FARTHER.format(100 * outside))
    legend(ax)


_GRID = 80  # cells of a side where there are many pairs
_SHARES = np.arange(0.05, 0.99, 0.05)  # where rows are parted, by prediction, to draw means
_SQUARE = (6.0, 5.0)
_OUTSIDE = 0.0005  # share of the rows on each side that a grid leaves out


@drawn.register(PredictionPairs)
def draw_pairs(pairs: PredictionPairs, ax: object, drawing: Drawing) -> Axes:
    """Draw targets over predictions, or what is left of the targets."""
    kind = chosen(drawing, "predictions", ("actual", "residuals"))
    ax = axes(ax, _SQUARE)
    residuals = kind == "residuals"
    titled(ax, "Residuals" if residuals else "Actual and predicted", counted(drawing))
    ax.set_xlabel("prediction")
    ax.set_ylabel("actual less predicted" if residuals else "actual")
    finite = np.isfinite(pairs.y_true) & np.isfinite(pairs.y_pred)
    y, x, n = (column[finite] for column in pairs)
    if not len(x):
        return empty(ax, "no rows were seen" if not len(finite) else "no pair of rows is finite")
    if max(abs(x).max(), abs(y).max()) > _FARTHEST:
        return empty(ax, "values are beyond what Matplotlib can draw")
    y, outside = y - x if residuals else y, 0.0
    style: Options = {"color": COLOURS[0], "alpha": 0.5, "edgecolors": "none", **drawing.style}
    if len(x) <= _MANY:
        ax.scatter(x, y, s=12 * np.sqrt(n / n.min()), **style)
    else:
        outside = _grid(ax, x, y, n, drawing)
    style = {"color": GREY, "linestyle": ":", "linewidth": 1.4, "label": "perfect prediction"}
    ax.axline((x[0], 0.0 if residuals else x[0]), slope=float(not residuals), **style)
    ax.plot(*_means(x, y, n), color=COLOURS[1], linewidth=1.6, label="mean by prediction")
    if drawing.read is not None:
        ax.plot([], [], " ", label=f"{drawing.name} {figure(drawing.read.value)}")
    if outside > _NOTHING:
        ax.plot([], [], " ", label=_FARTHER.format(100 * outside))
    if not pairs.exact:
        ax.plot([], [], " ", label=_MIDDLE)
    legend(ax, loc="upper left")
    return ax


def _means(x: Array, y: Array, n: Array) -> list[list[float]]:
    """Return the means of both columns in parts of about as many rows, by x; ties stay together."""
    order = np.argsort(x)
    x, y, n = x[order], y[order], n[order]
    places = np.searchsorted(np.cumsum(n), n.sum() * _SHARES)
    places = np.unique(np.searchsorted(x, x[places]))
    parts = [np.array_split(column, places[places > 0]) for column in (x, y, n)]
    return [
        [np.average(v, weights=w) for v, w in zip(side, parts[2], strict=True)]
        for side in parts[:2]
    ]


def _grid(ax: Axes, x: Array, y: Array, n: Array, drawing: Drawing) -> float:
    """Draw how many rows are in each cell of a grid; return the share of the rows outside it."""
    edges = []
    for values in (x, y):
        order = np.argsort(values)
        share = np.cumsum(n[order]) / n.sum()
        places = np.minimum(np.searchsorted(share, (_OUTSIDE, 1 - _OUTSIDE)), len(x) - 1)
        low, high = values[order][places]
        size = max(abs(low), abs(high))
        room = 0.0 if high - low > 1e-9 * size else max(1e-6 * size, 0.5)  # nearly constant
        edges.append(np.linspace(low - room, high + room, _GRID + 1))
    counts, *_ = np.histogram2d(x, y, edges, weights=n)
    style = {"cmap": "viridis", "norm": library("colors").LogNorm(), "rasterized": True}
    mesh = ax.pcolormesh(
        *edges, np.where(counts > 0, counts, np.nan).T, **{**style, **drawing.style}
    )
    ax.figure.colorbar(mesh, ax=ax, label="rows", shrink=0.8)
    return float(1 - counts.sum() / n.sum())


_WIDE = (7.6, 4.4)
_SHARED = {"time", "n_rows", "coverage", "start"}


@drawn.register(Series)
def draw_series(series: Series, ax: object, drawing: Drawing) -> Axes:
    """Draw one metric of a series, with the share of labelled rows beneath."""
    chosen(drawing, "a series", ("series",))
    name = column(drawing, metrics_of_series(series))
    ax = axes(ax, _WIDE)
    title = plainly(name)
    ax.set_ylabel(title)
    times = series["time"].astype("datetime64[ms]")
    values = np.asarray(series.get(name, []), float)
    rows = series["n_rows"][series["n_rows"] > 0]
    told = f"median n = {int(np.median(rows)):,} a window" if len(rows) else ""
    titled(ax, f"{title} over time", told)
    if not np.isfinite(values).any():
        ax.set_xlabel("end of the window (UTC)")
        return empty(ax, "no window has a value")
    prefix = "" if name == "value" else f"{name}_"
    low, high = (np.asarray(series[f"{prefix}{end}"], float) for end in ("low", "high"))
    if (low < high).any():
        ax.fill_between(
            times, low, high, color=COLOURS[0], alpha=0.45, linewidth=0, label="certain bounds"
        )
    style = {"color": COLOURS[0], "label": title, **drawing.style}
    ax.plot(times, values, **style)
    known = np.pad(np.isfinite(values), 1)
    alone = known[1:-1] & ~known[:-2] & ~known[2:]
    covered = 100 * np.asarray(series["coverage"], float)
    seen = times[np.isfinite(values) | np.isfinite(covered)]
    aside = max((seen[-1] - seen[0]) // 50, np.timedelta64(30, "s"))
    ax.set_xlim(seen[0] - aside, seen[-1] + aside)
    if alone.any():  # isolated points, which a line does not show
        ax.plot(times[alone], values[alone], "o", **{**style, "markersize": 3, "label": None})
        ax.vlines(times[alone], low[alone], high[alone], color=COLOURS[0], alpha=0.45, linewidth=4)
    ax.grid(alpha=0.25)
    dates = library("dates")
    locator = dates.AutoDateLocator()
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    lowest = _labels(ax, times, covered) if np.isfinite(covered).any() else ax
    lowest.set_xlabel("end of the window (UTC)")
    legend(ax)
    return ax


def _labels(ax: Axes, times: Array, covered: Array) -> Axes:
    """Draw the share of labelled rows beneath, and return its axes."""
    ax.tick_params(labelbottom=False)
    beneath = ax.inset_axes((0, -0.34, 1, 0.24), sharex=ax)
    beneath.spines[["top", "right"]].set_visible(False)
    beneath.fill_between(times, 0, covered, color=GREY, alpha=0.5, linewidth=0)
    beneath.set_ylim(0, 105)
    beneath.set_yticks([0, 50, 100])
    beneath.set_ylabel("labels\nknown (%)", fontsize="small")
    return beneath


def metrics_of_series(series: Series) -> list[str]:
    """Return the columns that hold values of metrics."""
    titles = set(series)
    return [
        title
        for title in series
        if title not in _SHARED
        and not any(title == f"{other}_{end}" for other in titles for end in ("low", "high"))
        and title not in {"low", "high"}
    ]


_MOST = 30  # maximum number of slices drawn
_AROUND = 2.5  # text lines that the title and the axis of one metric take
_ABOVE = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 2}
_ENDS = ("_low", "_high", "_rest")


@drawn.register(SliceTable)
def draw_slices(table: SliceTable, ax: object, drawing: Drawing) -> Axes:
    """Draw one metric by slice, the worst at the top, with a line at the value of all rows."""
    chosen(drawing, "slices", ("forest",))
    most = option(drawing, "most", _MOST)
    name = column(drawing, metrics_of(table))
    whole = table._whole()
    values = np.asarray(table[name], float) if name in table else np.zeros(0)
    known = [at for at in range(len(table)) if at != whole and np.isfinite(values[at])]
    sign = -1 if table.better.get(name) is False else 1
    order = sorted(known, key=lambda at: (_best(table, name, at, sign), sign * values[at], at))[
        :most
    ]
    ax = axes(ax, (7.6, 1.9 + 0.26 * max(len(order), 3)))
    more = f"{len(order)} of {len(known):,} slices" if len(order) < len(known) else ""
    rows = table["n_rows"][whole] if whole is not None else None
    total = f"n = {rows:,}" if rows is not None else ""
    title = f"{plainly(name)} by slice, worst first"
    titled(ax, title, ", ".join(filter(None, (more, total))), stacked=True)
    ax.set_xlabel(plainly(name))
    if not order:
        return empty(ax, "no slice has a value")
    places = np.arange(len(order))[::-1]
    at = np.array(order)
    for source, level in ((table, table.level), (drawing.certain, None)):
        if source is not None and f"{name}_low" in source:
            low, high = (np.asarray(source[f"{name}{end}"], float)[at] for end in _ENDS[:2])
            ranges(ax, low, high, places, level=level)
    ax.plot(values[at], places, "o", **{"color": COLOURS[0], "markersize": 5, **drawing.style})
    if whole is not None and np.isfinite(values[whole]):
        text = f"all rows {values[whole]:.4g}"
        ax.axvline(values[whole], color=COLOURS[1], linewidth=1.2, label=text, zorder=1)
    titles = [f"{_named(table, place)}  ({table['n_rows'][place]:,})" for place in order]
    ax.set_yticks(places, titles, fontsize="small")
    ax.set_ylim(-0.7, len(order) - 0.3)
    lined(ax)
    legend(ax, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    return ax


def _best(table: SliceTable, name: str, at: int, sign: int) -> float:
    """Return a slice's limit at its best, as `Slices.worst` ranks it; smaller is worse."""
    side = f"{name}_{'high' if sign > 0 else 'low'}"
    limit = float(table[side][at]) if table.level is not None and side in table else np.nan
    # Without limits, rank by the value. If only this slice lacks limits, it comes last.
    if np.isnan(limit):
        return np.inf if table.level is not None and side in table else sign * table[name][at]
    return sign * limit


def metrics_of(table: SliceTable) -> list[str]:
    """Return the columns that hold values of metrics."""
    titles = list(table)
    after = titles[titles.index("n_rows") + 1 :] if "n_rows" in titles else []
    made = {f"{title}{end}" for title in after for end in _ENDS} | {"p", "p_adjusted"}
    return [title for title in after if title not in made]


def _named(table: SliceTable, place: int) -> str:
    values = {key: table[key][place] for key in table._sliced(place)}
    return short(", ".join(_told(key, value) for key, value in values.items()), 44)


def _told(key: str, value: object) -> str:
    """Return one part of a slice's name; bins are written as ranges."""
    text = key_text(value)
    if text.startswith(("< ", ">= ")):
        return f"{key} {text}"
    return f"{key} in {text}" if text.startswith("[") else f"{key}={text}"


@drawn.register(Differences)
def draw_differences(found: Differences, ax: object, drawing: Drawing) -> Axes:
    """Draw the differences between models with their limits, each metric on its own scale."""
    chosen(drawing, "differences", ("forest",))
    metrics = list(dict.fromkeys(line.metric for line in found))
    ax = axes(ax, (6.6, 0.9 * len(metrics) + 0.36 * max(len(found), 1) + 0.7))
    told = _rows(found.n_rows)
    if not found or all(np.isnan(line.difference) for line in found):
        titled(ax, "Differences of models")
        return empty(ax, "no rows were seen" if found else "nothing was compared")
    if len(metrics) == 1:
        _differences(ax, found, drawing)
        titled(ax, f"{plainly(metrics[0])}: differences of models", told, stacked=True)
        legend(ax, **_ABOVE)
        return ax
    ax.axis("off")
    titled(ax, "Differences of models", told)
    # Heights in lines of text: the rows of a metric plus its title and axis.
    sizes = [len(found[name]) + _AROUND for name in metrics]
    top = 1.0
    for name, size in zip(metrics, sizes, strict=True):
        height = size / sum(sizes)
        foot = top - height * (size - 0.9) / size
        part = ax.inset_axes((0, foot, 1, height * (size - _AROUND) / size))
        part.spines[["top", "right"]].set_visible(False)
        _differences(part, found[name], drawing)
        titled(part, plainly(name))
        top -= height
        if name == metrics[0]:
            legend(part, **_ABOVE)
    return ax


def _rows(rows: int | Mapping[str, int] | None) -> str:
    """Return the number of rows compared: shared by the models, or of each model."""
    if rows is None or isinstance(rows, int):
        return "" if rows is None else f"n = {rows:,}"
    sizes = sorted(set(rows.values()))
    if len(sizes) == 1:
        return f"n = {sizes[0]:,} each"
    if len(rows) == 2:
        return "n = " + ", ".join(f"{n:,} of {short(name, 14)}" for name, n in rows.items())
    return f"n = {sizes[0]:,} to {sizes[-1]:,} each"


def _differences(ax: Axes, lines: Differences, drawing: Drawing) -> None:
    places = np.arange(len(lines))[::-1]
    low, high, middle = (
        np.array([getattr(line, name) for line in lines]) for name in ("low", "high", "difference")
    )
    ranges(ax, low, high, places, level=lines.level)
    ax.plot(middle, places, "o", **{"color": COLOURS[0], "markersize": 5, **drawing.style})
    ax.axvline(0.0, color=GREY, linestyle=":", linewidth=1, label="no difference")
    names = [
        f"{short(line.model, 20)} − {short(line.against, 20)}\n{short(line.verdict, 40)}"
        for line in lines
    ]
    ax.set_yticks(places, names, fontsize="small")
    ax.set_ylim(-0.6, len(lines) - 0.4)
    ax.set_xlabel("difference", fontsize="small", labelpad=1)
    lined(ax)
