"""Where a report of a state comes from: the room `show` registers how one is written."""

from __future__ import annotations

from functools import singledispatch

from streammetrics.core.errors import an
from streammetrics.core.registry import load


@singledispatch
def reported(state: object, path: object, **options: object) -> None:
    """Write the report of a state to a file."""
    load("reports")
    write = reported.dispatch(type(state))
    if write is not reported.dispatch(object):
        return write(state, path, **options)
    raise TypeError(f"there is no report of {an(type(state).__name__)}")
