"""Dispatch of results to plots, and of states to reports; other modules register these."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from streammetrics.core.errors import an
from streammetrics.core.registry import load

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from streammetrics.core.types import Options


@dataclass(frozen=True)
class ReadNumber:
    """The number that a metric reads from what is drawn, with its bounds and confidence limits."""

    value: float
    bounds: Any = None
    sure: Any = None


@dataclass(frozen=True)
class Drawing:
    """What to draw with a value, and how.

    Attributes:
        kind: Which of several plots of a result; ``None`` for the default one.
        certain: Guaranteed bounds of the exact value, if it is not known exactly.
        sure: Confidence limits of the value, if requested.
        read: The number read from what is drawn, if the metric's value is a single number.
        n_rows: Number of rows behind the value, if known.
        name: Name of the value in the legend.
        options: Options of this kind of plot.
        style: Keyword arguments of Matplotlib for the main line or mark.
    """

    kind: str | None = None
    certain: Any = None
    sure: Any = None
    read: ReadNumber | None = None
    n_rows: int | None = None
    name: str = ""
    options: Options = field(default_factory=dict)
    style: Options = field(default_factory=dict)


@singledispatch
def drawn(value: object, ax: object, drawing: Drawing) -> Axes:
    """Plot a value, dispatching on its type; return Matplotlib's axes."""
    if has_picture(type(value)):
        return drawn.dispatch(type(value))(value, ax, drawing)
    what = drawing.name or type(value).__name__
    raise TypeError(f"{what} has no picture: its value is one number, or of no known kind")


def has_picture(of: type) -> bool:
    """Whether values of a type can be plotted."""
    load("pictures")
    return drawn.dispatch(of) is not drawn.dispatch(object)


@singledispatch
def drawn_together(state: object, names: tuple[str, ...], level: float | None) -> dict[str, Axes]:
    """Plot the metrics of a set in one figure; return Matplotlib's axes by metric."""
    load("pictures")
    draw = drawn_together.dispatch(type(state))
    if draw is not drawn_together.dispatch(object):
        return draw(state, names, level)
    raise TypeError(f"there is no plot of {an(type(state).__name__)}")


@singledispatch
def reported(state: object, path: object, **options: object) -> None:
    """Write the report of a state to a file, dispatching on the type of the state."""
    load("reports")
    write = reported.dispatch(type(state))
    if write is not reported.dispatch(object):
        return write(state, path, **options)
    raise TypeError(f"no report exists for {an(type(state).__name__)}")
