"""Forged states: arrays that a state may not have, and what reading them raises."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.feeding.plan import described, filled
from streammetrics.core.state.arrays import same

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Array, Arrays


def forged_states(metric: Metric) -> Iterator[tuple[str, Exception]]:
    """Yield the forgeries that raise another error than a refusal, when they are read."""
    plan = metric._plan
    told, arrays = described(metric._accumulator.flush())
    rows = tuple(map(tuple, told))
    for what, forged in _forgeries(arrays):
        try:
            state = filled(plan, rows, forged)
            if not same(described(state)[1], forged):
                continue  # from_bytes refuses what is written otherwise
            twin = metric._over(Accumulator(plan, state))
            with warnings.catch_warnings(action="ignore"):
                twin.compute(), twin.bounds(), twin.exact
                twin.copy().merge(metric)
        except StreamMetricsError:
            continue
        except Exception as error:
            yield what, error


def _forgeries(arrays: Arrays) -> Iterator[tuple[str, dict[str, Array]]]:
    for name, array in arrays.items():
        short = name.partition("/")[2]
        yield f"a state without {short}", {k: a for k, a in arrays.items() if k != name}
        for what, other in _changed(array):
            yield f"{short} {what}", {**arrays, name: other}
    yield "an array of no field", {**arrays, "0/what is this": np.zeros(1)}


def _changed(array: Array) -> Iterator[tuple[str, Any]]:
    """Yield an array changed in one way each."""
    kind = array.dtype.kind
    yield "in one more dimension", array[None]
    if array.ndim and len(array):
        yield "without rows", array[:0]
        yield "without its last item", array[:-1]
        yield "twice", np.concatenate([array, array])
        yield "in reverse", array[::-1].copy()
    yield "of another type", array.astype(np.float32 if kind == "f" else np.float64)
    if not array.size:
        return
    first = array.copy()
    for number in {"f": (np.nan, np.inf, -1.0, 0.0)}.get(kind, (-1, 0, 1 << 62)):
        if kind in "if" and (kind == "f" or abs(number) <= np.iinfo(array.dtype).max):
            first.reshape(-1)[0] = number
            yield f"with {number} in it", first.copy()
