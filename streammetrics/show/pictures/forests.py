"""Values with their limits, a line each: slices, the worst first, and differences of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.results.differences import Differences
from streammetrics.core.results.pictures import Drawing, drawn
from streammetrics.show.pictures.canvas import (
    COLOURS,
    GREY,
    axes,
    chosen,
    column,
    empty,
    legend,
    lined,
    option,
    plainly,
    ranges,
    short,
    titled,
)
from streammetrics.slices.table import MISSING, SliceTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

_MOST = 30  # slices that are drawn
_AROUND = 2.5  # lines that the title and the axis of one metric take
_ABOVE = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 2}
_ENDS = ("_low", "_high", "_rest")


@drawn.register(SliceTable)
def draw_slices(table: SliceTable, ax: object, drawing: Drawing) -> Axes:
    """Draw one metric of every slice, the worst at the top, and that of all rows as a line."""
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
    """Return how good a slice is at its best, as `Slices.worst` ranks it: small is bad."""
    side = f"{name}_{'high' if sign > 0 else 'low'}"
    limit = float(table[side][at]) if table.level is not None and side in table else np.nan
    # Without limits a value stands for itself; where only this slice has none, it comes last.
    if np.isnan(limit):
        return np.inf if table.level is not None and side in table else sign * table[name][at]
    return sign * limit


def metrics_of(table: SliceTable) -> list[str]:
    """Return the columns of values of metrics."""
    titles = list(table)
    after = titles[titles.index("n_rows") + 1 :] if "n_rows" in titles else []
    made = {f"{title}{end}" for title in after for end in _ENDS} | {"p", "p_adjusted"}
    return [title for title in after if title not in made]


def _named(table: SliceTable, place: int) -> str:
    values = {key: table[key][place] for key in table._sliced(place)}
    return short(", ".join(_told(key, value) for key, value in values.items()), 44)


def _told(key: str, value: object) -> str:
    """Return one part of a slice's name; bins are written as ranges."""
    text = MISSING if value is None else str(value)
    if text.startswith(("< ", ">= ")):
        return f"{key} {text}"
    return f"{key} in {text}" if text.startswith("[") else f"{key}={text}"


@drawn.register(Differences)
def draw_differences(found: Differences, ax: object, drawing: Drawing) -> Axes:
    """Draw the differences of models with their limits, each metric on a scale of its own."""
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
    # In lines of text: those of a metric, and what its title and axis take.
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
    """Return on how many rows models were compared: the same ones, or each on its own."""
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
