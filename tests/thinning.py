"""Parameters of tests of which a default run takes some, and `.ci/run` all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable


def some(values: Iterable[Any], every: int = 3) -> list[Any]:
    """Return the values as parameters, of which a default run takes one in `every`.

    A tuple is of several parameters.
    """
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=[pytest.mark.long] if place % every else [],
        )
        for place, value in enumerate(values)
    ]
