"""A metric over time: its value, what certainly holds it, and how many labels are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.results.pictures import Drawing, drawn
from streammetrics.live.series import Series
from streammetrics.show.pictures.canvas import (
    COLOURS,
    GREY,
    axes,
    chosen,
    column,
    empty,
    legend,
    library,
    plainly,
    titled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from streammetrics.core.types import Array

_WIDE = (7.6, 4.4)
_SHARED = {"time", "n_rows", "coverage", "start"}


@drawn.register(Series)
def draw_series(series: Series, ax: object, drawing: Drawing) -> Axes:
    """Draw one metric of a series, with the share of rows whose label is known beneath."""
    chosen(drawing, "a series", ("series",))
    name = column(drawing, metrics_of(series))
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
    if alone.any():  # of which no line is seen
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
    """Draw the share of known labels beneath, and return its axes."""
    ax.tick_params(labelbottom=False)
    beneath = ax.inset_axes((0, -0.34, 1, 0.24), sharex=ax)
    beneath.spines[["top", "right"]].set_visible(False)
    beneath.fill_between(times, 0, covered, color=GREY, alpha=0.5, linewidth=0)
    beneath.set_ylim(0, 105)
    beneath.set_yticks([0, 50, 100])
    beneath.set_ylabel("labels\nknown (%)", fontsize="small")
    return beneath


def metrics_of(series: Series) -> list[str]:
    """Return the columns that are values of metrics."""
    titles = set(series)
    return [
        title
        for title in series
        if title not in _SHARED
        and not any(title == f"{other}_{end}" for other in titles for end in ("low", "high"))
        and title not in {"low", "high"}
    ]
