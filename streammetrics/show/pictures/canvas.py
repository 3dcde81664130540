"""What all pictures share: axes, colours, bands, and what stands where there is nothing to draw."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.naming import near

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from streammetrics.core.results.pictures import Drawing
    from streammetrics.core.types import Array, Foreign, Options

# Okabe and Ito's colours, which colour-blind readers tell apart, the darker ones first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GREY = "#808080"
INK = "#222222"
DASHES = ("-", "--", "-.", ":")
MOST = 6  # lines of one picture that are told apart; of more, the worst ones are named

_CERTAIN, _SURE = 0.45, 0.18  # how dense bands are
SIZE = (6.0, 4.2)  # inches


class Sheet:
    """A figure of its own, which no window will show; a picture says how large it is to be."""

    figure: Figure

    def opened(self, size: tuple[float, float]) -> Axes:
        """Return the axes of the figure."""
        self.figure = _text_figure()(figsize=size, layout="constrained")
        return self.figure.subplots()


def library(name: str = "pyplot") -> Foreign:
    """Return a module of Matplotlib, or all of it.

    Raises:
        ImportError: It is not installed; the message names the extra.
    """
    try:
        return importlib.import_module(f"matplotlib.{name}".rstrip("."))
    except ImportError as error:
        raise ImportError(
            "plot() needs matplotlib: pip install 'streammetrics[plot]', or draw what to_dict() "
            "or to_frame() returns"
        ) from error


def axes(ax: Any, size: tuple[float, float] = SIZE) -> Axes:
    """Return the axes that were given, or those of a new figure, without a box around them."""
    if ax is None:
        ax = library().subplots(figsize=size, layout="constrained", FigureClass=_text_figure())[1]
        _apart(ax)
    elif isinstance(ax, str):
        raise TypeError(f"plot({ax!r}): expected Matplotlib's axes first; say metric={ax!r}")
    elif isinstance(ax, Sheet):
        ax = ax.opened(size)
        _apart(ax)
    drawn_on: Axes = ax
    drawn_on.spines[["top", "right"]].set_visible(False)
    return drawn_on


def _text_figure() -> type[Figure]:
    """Return the class of figures that are opened here; its module needs Matplotlib."""
    library("figure")  # or the error that names the extra
    found: type[Figure] = importlib.import_module("streammetrics.show.pictures.figure").TextFigure
    return found


def _apart(ax: Axes) -> None:
    """Leave room at the edges: axes within axes are not seen by the layout."""
    engine: Foreign = ax.figure.get_layout_engine()  # a constrained one, which has these
    engine.set(h_pad=0.1, w_pad=0.1)


def titled(ax: Axes, left: str, right: str = "", *, stacked: bool = False) -> None:
    """Write what is drawn above it, and of how many rows; in two lines where axes are narrow."""
    if stacked and right:
        left, right = f"{left}\n{right}", ""
    ax.set_title(left, loc="left", fontsize="medium")
    if right:
        ax.set_title(right, loc="right", fontsize="small", color=GREY)


def empty(ax: Axes, why: str) -> Axes:
    """Draw a frame that says why there is nothing in it."""
    ax.text(
        0.5, 0.5, f"nothing to draw:\n{why}", transform=ax.transAxes, ha="center", va="center",
        color=GREY, fontsize="medium",
    )  # fmt: skip
    ax.set_xticks([])
    ax.set_yticks([])
    return ax


def certain_band(ax: Axes, x: Array, y: Array, colour: str, label: str = "certain bounds") -> None:
    """Fill what certainly holds the exact values: the outline (m,) of a polygon."""
    ax.fill(x, y, color=colour, alpha=_dense(ax, _CERTAIN), linewidth=0, label=label, zorder=1.5)


def sure_band(ax: Axes, x: Array, y: Array, colour: str, level: float) -> None:
    """Fill between confidence limits, lightly."""
    ax.fill(
        x, y, color=colour, alpha=_dense(ax, _SURE), linewidth=0,
        label=f"{percent(level)} confidence", zorder=1.4,
    )  # fmt: skip


def _dense(ax: Axes, alpha: float) -> float:
    """Return how dense a band is to be seen: more on axes that are dark."""
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
    """Draw horizontal ranges: certain ones thick and solid, those of confidence thin and light."""
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
    """Draw lines behind values that stand one below the other, few enough to read their places."""
    ax.locator_params(axis="x", nbins=7)
    ax.grid(axis="x", alpha=0.25)


def counted(drawing: Drawing) -> str:
    """Return of how many rows a picture is, nothing where that is not known."""
    return "" if drawing.n_rows is None else f"n = {drawing.n_rows:,}"


def short(name: str, most: int) -> str:
    """Return a name as it stands on axes: not too long, and its end kept."""
    name = " ".join(name.split())
    if len(name) > most:  # names that are long often begin alike
        end = (most - 1) // 2
        name = f"{name[: most - 1 - end]}…{name[-end:]}"
    return plainly(name)


def worst_of(known: Sequence[int], goodness: Callable[[int], float]) -> Sequence[int]:
    """Return which of several curves have a colour: all of them, or of many the three worst."""
    return known if len(known) <= MOST else sorted(known, key=goodness)[:3]


def plainly(name: str) -> str:
    """Return a name as Matplotlib writes it as it is, in legends too."""
    name = name.replace("$", r"\$")  # else it is mathematics between two of them
    return f" {name}" if name.startswith("_") else name  # else no legend tells it


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:.10g} %"


def figure(value: float) -> str:
    """Return a value in the digits that a legend has room for."""
    return "undefined" if np.isnan(value) else f"{value:.4g}"


def between(bounds: Any, sure: Any) -> str:
    """Return what holds a number, in the words of a legend, each in a line."""
    certain = "" if bounds is None else f"certainly {figure(bounds[0])} to {figure(bounds[1])}"
    likely = ""
    if sure is not None and not np.isnan(sure.low):
        likely = f"{percent(sure.level)}: {figure(sure.low)} to {figure(sure.high)}"
    return "".join(f"\n{told}" for told in (certain, likely) if told)


def legend(ax: Axes, **options: Any) -> None:
    """Explain what has a label, if anything has one."""
    handles, labels = ax.get_legend_handles_labels()
    unique: Options = {}
    for label, handle in zip(labels, handles, strict=True):
        unique.setdefault(label, handle)  # a band of several curves is told once
    if unique:
        style = {"framealpha": 0.7, "edgecolor": "none", "fontsize": "small", **options}
        style.setdefault("title_fontsize", "small")
        ax.legend(unique.values(), unique.keys(), **style).set_zorder(5)


def chosen(drawing: Drawing, of: str, kinds: Sequence[str]) -> str:
    """Return the kind of picture that was asked for, by default the first one.

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
    """Return the metric that was asked for of those in a table, by default the first one.

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
    """Return what a picture takes besides the style, wherever it was passed."""
    given = drawing.options.get(name)
    return drawing.style.pop(name, default) if given is None else given
