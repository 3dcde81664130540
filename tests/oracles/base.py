"""One row of the oracle table: a metric, rows to feed it, and what they should give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics import Metric

    Rows = dict[str, Any]


@dataclass(frozen=True)
class Oracle:
    """`reference` gets the columns by keyword, `sample_weight` included where `rows` gives it.

    `rel` is the relative tolerance: by default what a reference in plain floating point can be
    off by over some hundred rows; a row that needs more says why in `why`.
    """

    metric: Metric
    rows: Callable[[np.random.Generator, int], Rows]
    reference: Callable[..., Any]
    rel: float = 1e-12
    abs: float = 1e-15
    n: int = 200
    why: str = ""

    @cached_property
    def id(self) -> str:
        """The metric and its parameters, and the columns it is fed."""
        return repr(self.metric).partition(" <")[0] + self.rows.__name__.replace("_", " ").rstrip()


def assert_close(value: Any, expected: Any, rel: float, absolute: float) -> None:
    """Compare numbers, arrays, dicts and named results, nan being equal to nan."""
    if isinstance(expected, dict):
        assert list(value) == list(expected)
        for key, item in expected.items():
            assert_close(value[key], item, rel, absolute)
    elif isinstance(expected, tuple):
        assert len(value) == len(expected)
        for one, other in zip(value, expected, strict=True):
            assert_close(one, other, rel, absolute)
    else:
        assert np.shape(value) == np.shape(expected)
        np.testing.assert_allclose(value, expected, rtol=rel, atol=absolute)
