"""Many values: by query, alone or of two runs, and how values or errors are spread."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.results.pictures import Drawing, drawn
from streammetrics.core.results.values import KeyedValues
from streammetrics.metrics.distributions import Distribution
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
    lined,
    option,
    short,
    titled,
)
from streammetrics.show.pictures.outlines import around
from streammetrics.show.pictures.thinning import thinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from streammetrics.core.results.curves import Curves
    from streammetrics.core.types import Bools, Options

_BINS = 30
_NAMED = 30  # values other than queries', each of which has a line of its own
_FARTHEST = 1e300  # of values that axes and their margins hold
_MARKED = (0.5, 0.9, 0.99)  # quantiles that are told
_MANY = 2000  # points that become an image, as each would be a line of SVG


@drawn.register(KeyedValues)
def draw_keyed(values: KeyedValues, ax: object, drawing: Drawing) -> Axes:
    """Draw how values are spread over queries, or, with `against`, two runs query by query."""
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
    ends = (0.0, 1.0) if numbers.min() >= 0 and numbers.max() <= 1 else None
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


def _each(values: KeyedValues, ax: object, drawing: Drawing, what: str) -> Axes:
    """Draw a line for each of a few values that have names: parts of a score, clusters."""
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


@drawn.register(Distribution)
def draw_distribution(cells: Distribution, ax: object, drawing: Drawing) -> Axes:
    """Draw all quantiles, or a histogram."""
    kind, ax = _spread(ax, drawing)
    inside = _inside(cells)
    if not inside.any():
        return empty(ax, "no rows were seen")
    if max(abs(cells.low[inside]).max(), abs(cells.high[inside]).max()) > _FARTHEST:
        return empty(ax, "values are beyond what Matplotlib can draw")
    (_quantiles if kind == "quantiles" else _histogram)(ax, cells, drawing)
    return ax


def draw_distributions(several: Curves, ax: object, drawing: Drawing) -> Axes:
    """Draw all quantiles of several outputs on the same axes."""
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
    """Return which picture of a distribution is asked for, and its axes, named."""
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
    """Draw the quantiles: those of a cell's rows lie between its edges, wherever in it they are."""
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
    # The outermost thousandth would leave the rest no room.
    share = cells.share[inside]
    left = middle[np.searchsorted(share, 0.0005)]
    right = middle[min(int(np.searchsorted(share, 0.9995)), len(share) - 1)]
    ends = (left, right) if left < right else None
    counts, edges = np.histogram(middle, bins=_BINS, range=ends, weights=mass)
    style = {"color": COLOURS[0], "alpha": 0.7, **drawing.style}
    ax.bar(edges[:-1], 100 * counts, width=np.diff(edges), align="edge", **style)
    outside = 1 - counts.sum()
    at = min(int(np.searchsorted(share, 0.5)), len(share) - 1)
    ax.axvline(middle[at], color=COLOURS[1], label=f"median {figure(float(middle[at]))}")
    if not cells.exact:
        ax.plot([], [], " ", label="cells of several values stand at their middle")
    if outside > 1e-9:
        ax.plot([], [], " ", label=f"{100 * outside:.2g} % lie farther out")
    legend(ax)
