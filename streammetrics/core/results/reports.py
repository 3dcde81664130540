"""Where a report of a state comes from: the room `show` registers how one is written."""

from __future__ import annotations

from functools import singledispatch

from streammetrics.core.errors import an


@singledispatch
def reported(state: object, path: object, **options: object) -> None:  # noqa: ARG001 - what families take
    """Write the report of a state to a file."""
    raise TypeError(f"there is no report of {an(type(state).__name__)}")
