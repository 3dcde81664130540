"""Where pictures and reports of results come from."""

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
    """The number that a metric reads from what is drawn, and what holds it, where it is known."""

    value: float
    bounds: Any = None
    sure: Any = None


@dataclass(frozen=True)
class Drawing:
    """What is to be drawn beside a value, and how.

    Attributes:
        kind: Which of several pictures of one result; ``None``: the one that it is known by.
        certain: What certainly holds the exact value, where that is not known.
        sure: Confidence limits of the value, where they were asked for.
        read: The number that is read from what is drawn, where the value is one.
        n_rows: How many rows the value is of, where that is known.
        name: What the value is called in the legend.
        options: What one kind of picture takes besides.
        style: What Matplotlib takes for the main line or mark.
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
    """Return Matplotlib's axes with the picture of a value, by its family."""
    if has_picture(type(value)):
        return drawn.dispatch(type(value))(value, ax, drawing)
    what = drawing.name or type(value).__name__
    raise TypeError(f"{what} has no picture: its value is one number, or of no known kind")


def has_picture(of: type) -> bool:
    """Whether values of a type can be drawn."""
    load("pictures")
    return drawn.dispatch(of) is not drawn.dispatch(object)


@singledispatch
def reported(state: object, path: object, **options: object) -> None:
    """Write the report of a state to a file."""
    load("reports")
    write = reported.dispatch(type(state))
    if write is not reported.dispatch(object):
        return write(state, path, **options)
    raise TypeError(f"there is no report of {an(type(state).__name__)}")
