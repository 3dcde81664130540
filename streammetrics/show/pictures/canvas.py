"""Axes, colours, legends and figures."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from streammetrics.core.columns.batch import near
from streammetrics.core.types import Floats

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from streammetrics.core.results.hooks import Drawing
    from streammetrics.core.types import Array, Bools, Foreign, Options, Places
    from streammetrics.metrics.scores.base import PRPoints, ROCPoints


_COLUMNS = 1 << 10
_NEAR = 1 / 1500  # share of the picture's width: half a pixel of a large one
_MOST = 360  # points, about 7 KB of SVG


def thinned(x: Array, y: Array) -> Places:
    """Return the ascending indices of the points to draw, simplified by Douglas-Peucker.

    Args:
        x: Finite numbers (m,), ascending or descending.
        y: Finite numbers (m,).
    """
    places = np.arange(len(x))
    if len(x) <= _MOST // 2:
        return places
    across, up = _scaled(np.asarray(x, float)), _scaled(np.asarray(y, float))
    places = _extremes(across, up)
    near = _NEAR
    kept = _simple(across[places], up[places], near)
    while kept.sum() > _MOST:
        near *= 1.5
        kept = _simple(across[places], up[places], near)
    kept[[up[places].argmin(), up[places].argmax()]] = True
    return np.asarray(places[kept])


def _scaled(values: Floats) -> Floats:
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros_like(values)


def _extremes(x: Floats, y: Floats) -> Places:
    """Return the indices of the first, last, lowest and highest point of each pixel column."""
    if len(x) <= 4 * _COLUMNS:
        return np.arange(len(x))
    column = np.minimum((x * _COLUMNS).astype(np.int64), _COLUMNS - 1)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    ends = np.append(starts[1:], len(x))
    counts = ends - starts
    found = [starts, ends - 1]
    for least in (np.minimum, np.maximum):
        reached = np.flatnonzero(y == np.repeat(least.reduceat(y, starts), counts))
        found.append(reached[np.searchsorted(reached, starts)])
    return np.unique(np.concatenate(found))


def _simple(x: Floats, y: Floats, near: float) -> Bools:
    """Return a mask of points such that all others lie within `near` of the line through them."""
    kept = np.zeros(len(x), np.bool_)
    kept[[0, -1]] = True
    waiting = [(0, len(x) - 1)]
    while waiting:
        first, last = waiting.pop()
        if last - first < 2:
            continue
        dx, dy = x[last] - x[first], y[last] - y[first]
        inner = slice(first + 1, last)
        across, up = x[inner] - x[first], y[inner] - y[first]
        length = float(np.hypot(dx, dy))
        away = np.abs(dx * up - dy * across) / length if length else np.hypot(across, up)
        far = int(away.argmax())
        if away[far] > near:
            middle = first + 1 + far
            kept[middle] = True
            waiting += [(first, middle), (middle, last)]
    return kept


Outline: TypeAlias = tuple[Floats, Floats]


_FEW = 1 << 12  # points; on longer lines the bend between two points is not visible
_LEAST = 1e-4  # smallest error rate to draw; the scales show no smaller one


def certain_roc(x: Floats, y: Floats) -> tuple[Outline, Outline]:
    """Return the upper and lower bound of a ROC curve for any order of rows within cells.

    Between two points the exact curve goes up and to the right. At its extremes it follows either
    side of the box between them.
    """
    return (
        (np.repeat(x, 2)[:-1], np.repeat(y, 2)[1:]), (np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1])
    )  # fmt: skip


def certain_gains(
    depth: Floats, gain: Floats, positives: float, *, fine: bool = False
) -> tuple[Outline, Outline]:
    """Return the upper and lower bound of gains: positives first, or last, within each cell.

    Args:
        depth: Cumulative shares (m,) of all rows, ascending.
        gain: Cumulative shares (m,) of the positives.
        positives: The share of all rows that are positive.
        fine: Whether to add points to short lines, because another scale bends them.
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
    """Return a step line: each height holds until the next x."""
    return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]


def certain_pr(curve: PRPoints) -> Outline:
    """Return the polygon that holds precision over recall for any order of rows within cells.

    At best the positives of a cell come first, at worst last. Precision then rises with recall
    along a hyperbola, which lies below the step to its end and above the straight line to it.
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
    """Return the polygon between the best and the worst rates at each threshold."""
    low, high = limits
    return around((low.fpr, high.tpr), (high.fpr, low.tpr))


def sure_det(limits: tuple[Any, Any]) -> Outline:
    """Return the polygon between the best and the worst error rates, as logits."""
    low, high = limits
    if hasattr(low, "tpr"):
        sides = (low.fpr, 1 - high.tpr), (high.fpr, 1 - low.tpr)
    else:
        sides = (low.fpr, low.fnr), (high.fpr, high.fnr)
    best, worst = ((logits(across), logits(up)) for across, up in sides)
    return around(best, worst)


def logits(shares: Floats) -> Floats:
    """Return the logits of shares, clipped to the range that the scales show."""
    inside = np.clip(shares, _LEAST, 1 - _LEAST)
    return np.asarray(np.log(inside / (1 - inside)))


def sure_pr(limits: tuple[PRPoints, PRPoints]) -> Outline:
    """Return the polygon between the best and the worst values at each threshold."""
    low, high = limits
    return around(
        (high.recall[::-1], high.precision[::-1]), (low.recall[::-1], low.precision[::-1])
    )


def around(upper: Outline, lower: Outline) -> Outline:
    """Return the polygon between two lines, thinned."""
    up, down = thinned(*upper), thinned(*lower)[::-1]
    return (
        np.concatenate([upper[0][up], lower[0][down]]),
        np.concatenate([upper[1][up], lower[1][down]]),
    )


# Okabe and Ito's colours, safe for colour-blind readers, darker ones first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GREY = "#808080"
INK = "#222222"
DASHES = ("-", "--", "-.", ":")
MOST = 6  # maximum number of coloured lines in a picture; beyond it only the worst are coloured

_CERTAIN, _SURE = 0.45, 0.18  # opacity of bands
SIZE = (6.0, 4.2)  # inches


class Sheet:
    """A placeholder for axes: the plot opens a figure of its size, which no window shows."""

    figure: Figure

    def opened(self, size: tuple[float, float]) -> Axes:
        """Create a figure of the given size and return its axes."""
        self.figure = _text_figure()(figsize=size, layout="constrained")
        return self.figure.subplots()


def library(name: str = "pyplot") -> Foreign:
    """Return a module of Matplotlib, or the package itself.

    Raises:
        ImportError: Matplotlib is not installed; the message names the extra.
    """
    try:
        return importlib.import_module(f"matplotlib.{name}".rstrip("."))
    except ImportError as error:
        raise ImportError(
            "plot() needs matplotlib: pip install 'streammetrics[plot]', or draw what to_dict() "
            "or to_frame() returns"
        ) from error


def axes(ax: Foreign, size: tuple[float, float] = SIZE) -> Axes:
    """Return the given axes or those of a new figure, without the top and right spines."""
    if ax is None:
        (ax,) = grid(1, 1, size)
    elif isinstance(ax, str):
        raise TypeError(f"plot({ax!r}): expected Matplotlib's axes first; say metric={ax!r}")
    elif isinstance(ax, Sheet):
        ax = ax.opened(size)
        _apart(ax)
    drawn_on: Axes = ax
    drawn_on.spines[["top", "right"]].set_visible(False)
    return drawn_on


def grid(down: int, across: int, size: tuple[float, float] = SIZE) -> list[Axes]:
    """Return the axes of a new figure, row by row, each of this size."""
    made: Foreign = library().figure(
        figsize=(size[0] * across, size[1] * down), layout="constrained", FigureClass=_text_figure()
    )
    every = list(made.subplots(down, across, squeeze=False).flat)
    _apart(every[0])
    return every


def _text_figure() -> type[Figure]:
    """Return the class of new figures; its module needs Matplotlib."""
    library("figure")  # raises the error that names the extra
    found: type[Figure] = importlib.import_module("streammetrics.show.pictures.figure").TextFigure
    return found


def _apart(ax: Axes) -> None:
    """Pad the edges, because the layout ignores axes within axes."""
    engine: Foreign = ax.figure.get_layout_engine()  # a constrained layout, which has these options
    engine.set(h_pad=0.1, w_pad=0.1)


def titled(ax: Axes, left: str, right: str = "", *, stacked: bool = False) -> None:
    """Set the title and the row count above the axes; on two lines if the axes are narrow."""
    if stacked and right:
        left, right = f"{left}\n{right}", ""
    ax.set_title(left, loc="left", fontsize="medium")
    if right:
        ax.set_title(right, loc="right", fontsize="small", color=GREY)


def empty(ax: Axes, why: str) -> Axes:
    """Draw an empty frame with the reason why there is nothing to draw."""
    ax.text(
        0.5, 0.5, f"nothing to draw:\n{why}", transform=ax.transAxes, ha="center", va="center",
        color=GREY, fontsize="medium",
    )  # fmt: skip
    ax.set_xticks([])
    ax.set_yticks([])
    return ax


def certain_band(ax: Axes, x: Array, y: Array, colour: str, label: str = "certain bounds") -> None:
    """Fill the region that certainly holds the exact values: a polygon with vertices (m,)."""
    ax.fill(x, y, color=colour, alpha=_dense(ax, _CERTAIN), linewidth=0, label=label, zorder=1.5)


def sure_band(ax: Axes, x: Array, y: Array, colour: str, level: float) -> None:
    """Fill the region between confidence limits, lightly."""
    ax.fill(
        x, y, color=colour, alpha=_dense(ax, _SURE), linewidth=0,
        label=f"{percent(level)} confidence", zorder=1.4,
    )  # fmt: skip


def _dense(ax: Axes, alpha: float) -> float:
    """Return the opacity of a band: higher on dark axes."""
    *colour, opaque = library("colors").to_rgba(ax.get_facecolor())
    return min(1.0, 0.15 + 1.3 * alpha) if opaque and sum(colour) < 1.5 else alpha


def ranges(
    ax: Axes,
    low: Array,
    high: Array,
    places: Sequence[float] | Array,
    *,
    level: float | None,
    colour: str = COLOURS[0],
) -> None:
    """Draw horizontal ranges: certain bounds thick and solid, confidence limits thin and light."""
    known = np.isfinite(low) & np.isfinite(high)
    if not known.any():
        return
    width, alpha = (5.0, _CERTAIN) if level is None else (2.0, 0.5)
    label = "certain bounds" if level is None else f"{percent(level)} confidence"
    ax.hlines(
        np.asarray(places)[known], low[known], high[known], color=colour, linewidth=width,
        alpha=_dense(ax, alpha), label=label, zorder=1.5,
    )  # fmt: skip


def lined(ax: Axes) -> None:
    """Draw vertical grid lines and limit the number of ticks on the x axis."""
    ax.locator_params(axis="x", nbins=7)
    ax.grid(axis="x", alpha=0.25)


def counted(drawing: Drawing) -> str:
    """Return the row count of a picture as text, "" if unknown."""
    return "" if drawing.n_rows is None else f"n = {drawing.n_rows:,}"


def short(name: str, most: int) -> str:
    """Return a name for an axis, shortened in the middle so that its end is kept."""
    name = " ".join(name.split())
    if len(name) > most:  # long names often begin alike
        end = (most - 1) // 2
        name = f"{name[: most - 1 - end]}…{name[-end:]}"
    return plainly(name)


def worst_of(known: Sequence[int], goodness: Callable[[int], float]) -> Sequence[int]:
    """Return the curves to draw in colour: all of them, or the three worst of more than `MOST`."""
    return known if len(known) <= MOST else sorted(known, key=goodness)[:3]


def plainly(name: str) -> str:
    """Escape a name so that Matplotlib shows it unchanged, also in legends."""
    name = name.replace("$", r"\$")  # otherwise text between two dollar signs is mathematics
    return f" {name}" if name.startswith("_") else name  # otherwise the legend skips it


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:.10g} %"


def figure(value: float) -> str:
    """Format a value for a legend."""
    return "undefined" if np.isnan(value) else f"{value:.4g}"


def between(bounds: Any, sure: Any) -> str:
    """Return the bounds and confidence limits of a number for a legend, one per line."""
    certain = "" if bounds is None else f"certainly {figure(bounds[0])} to {figure(bounds[1])}"
    likely = ""
    if sure is not None and not np.isnan(sure.low):
        likely = f"{percent(sure.level)}: {figure(sure.low)} to {figure(sure.high)}"
    return "".join(f"\n{told}" for told in (certain, likely) if told)


def legend(ax: Axes, **options: Any) -> None:
    """Add a legend if anything has a label."""
    handles, labels = ax.get_legend_handles_labels()
    unique: Options = {}
    for label, handle in zip(labels, handles, strict=True):
        unique.setdefault(label, handle)  # one entry for the bands of several curves
    if unique:
        style = {"framealpha": 0.7, "edgecolor": "none", "fontsize": "small", **options}
        style.setdefault("title_fontsize", "small")
        ax.legend(unique.values(), unique.keys(), **style).set_zorder(5)


def chosen(drawing: Drawing, of: str, kinds: Sequence[str]) -> str:
    """Return the requested kind of picture, by default the first one.

    Raises:
        TypeError: There is no such kind.
    """
    if drawing.kind is None:
        return kinds[0]
    if drawing.kind not in kinds:
        raise TypeError(
            f"plot(kind={drawing.kind!r}): pictures of {of} are {', '.join(map(repr, kinds))}"
        )
    return drawing.kind


def column(drawing: Drawing, found: Sequence[str]) -> str:
    """Return the requested metric of a table, by default the first one.

    Raises:
        TypeError: There is no such metric.
    """
    asked: str | None = option(drawing, "metric")
    if asked is None:
        return found[0] if found else "value"
    if asked not in found:
        raise TypeError(f"plot(metric={asked!r}): no such column{near(asked, found)}")
    return asked


def option(drawing: Drawing, name: str, default: object = None) -> Any:
    """Return an option of a picture, which may be passed in `options` or among the style."""
    given = drawing.options.get(name)
    return drawing.style.pop(name, default) if given is None else given
