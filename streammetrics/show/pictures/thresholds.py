"""Precision, recall, F1 and cost over the threshold, the best one marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.show.pictures.canvas import (
    COLOURS,
    DASHES,
    GREY,
    axes,
    empty,
    figure,
    legend,
    option,
    titled,
)
from streammetrics.show.pictures.thinning import thinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from streammetrics.core.results.pictures import Drawing
    from streammetrics.core.types import Floats
    from streammetrics.metrics.scores.curves import PRPoints


_WIDE = (8.4, 4.2)


def draw_thresholds(curve: PRPoints, ax: object, drawing: Drawing) -> Axes:
    """Draw what each threshold gives; the option `cost` is of a false positive and negative."""
    cost = option(drawing, "cost")
    ax = axes(ax, _WIDE)
    ax.set_xlabel("threshold: scores from here on are positive")
    ax.set_ylabel("share")
    rows = 0 if curve.positives is None else curve.positives + (curve.negatives or 0)
    told = f"n = {rows:,}, {curve.positives:,} positive" if rows else ""
    titled(ax, "Precision, recall, F1 and cost by threshold", told, stacked=True)
    finite = np.isfinite(curve.thresholds)
    precision, recall = curve.precision[:-1][finite], curve.recall[:-1][finite]
    at = curve.thresholds[finite]
    if not len(at) or np.isnan(recall).any():
        return empty(ax, "there are no positives" if len(at) else "no rows were seen")
    total = precision + recall
    f1 = np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total > 0)
    lines = {"precision": precision, "recall": recall, "F1": f1}
    best = {"F1": int(f1.argmax())}
    if rows and curve.positives:
        lines["cost"], name = _costs(curve, precision, recall, cost or (1.0, 1.0), rows)
        best["cost"] = int(lines["cost"].argmin())
    right = ax.twinx() if lines.get("cost", f1).max() > 1 else ax
    for number, (title, values) in enumerate(lines.items()):
        places = thinned(at, values)
        label = name if title == "cost" else title
        style = {"color": COLOURS[number], "linestyle": DASHES[number], "label": label}
        on = right if title == "cost" else ax
        on.plot(at[places], values[places], **{**style, **drawing.style})
    for title, place in best.items():
        colour = COLOURS[list(lines).index(title)]
        value, threshold = float(lines[title][place]), float(at[place])
        ax.axvline(threshold, color=colour, linewidth=0.8, alpha=0.6)
        word = "highest F1" if title == "F1" else "lowest cost"
        text = f"{word} {figure(value)} at {figure(threshold)}"
        on = right if title == "cost" else ax
        on.plot([threshold], [value], "o", color=colour, label=text)
    if right is not ax:
        right.set_ylim(bottom=0)
        right.set_ylabel("cost a row")
        right.spines[["top", "left"]].set_visible(False)
        for line in right.lines:  # explained beside the others
            ax.plot(
                [],
                [],
                color=line.get_color(),
                linestyle=line.get_linestyle(),
                marker=line.get_marker(),
                label=line.get_label(),
            )
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.25, color=GREY)
    legend(ax, loc="upper left", bbox_to_anchor=(1.12 if right is not ax else 1.01, 1.0))
    return ax


def _costs(
    curve: PRPoints, precision: Floats, recall: Floats, cost: tuple[float, float], rows: float
) -> tuple[Floats, str]:
    """Return the mean cost of a row, and what it is called."""
    positives = float(curve.positives or 0)
    tp = recall * positives
    called = np.divide(tp, precision, out=np.zeros_like(tp), where=precision > 0)
    # Where nothing above is positive, what is called so is not told by the shares.
    wrong, missed = cost
    fp = np.where(precision > 0, called - tp, 0.0)
    name = f"cost a row ({wrong:g} a false positive, {missed:g} a missed one)"
    return (wrong * fp + missed * (positives - tp)) / rows, name
