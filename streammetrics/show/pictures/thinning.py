"""Curves of many points as a picture can show them: few points, and every extreme.

First each of some thousand columns keeps its first, last, lowest and highest point; then those go
that lie within half a pixel of the line between others (Douglas and Peucker 1973).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Bools, Floats, Places

_COLUMNS = 1 << 10
_NEAR = 1 / 1500  # of the picture's width: half a pixel of a large one
_MOST = 360  # points, some 7 KB of SVG


def thinned(x: Array, y: Array) -> Places:
    """Return the places of the points to draw, ascending.

    Args:
        x: Finite numbers (m,), ascending or descending.
        y: Finite numbers (m,).
    """
    places = np.arange(len(x))
    if len(x) <= _MOST // 2:
        return places
    across, up = _scaled(np.asarray(x, float)), _scaled(np.asarray(y, float))
    places = _extremes(across, up)
    near = _NEAR
    kept = _simple(across[places], up[places], near)
    while kept.sum() > _MOST:
        near *= 1.5
        kept = _simple(across[places], up[places], near)
    kept[[up[places].argmin(), up[places].argmax()]] = True
    return np.asarray(places[kept])


def _scaled(values: Floats) -> Floats:
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros_like(values)


def _extremes(x: Floats, y: Floats) -> Places:
    """Return the first, last, lowest and highest place of each column."""
    if len(x) <= 4 * _COLUMNS:
        return np.arange(len(x))
    column = np.minimum((x * _COLUMNS).astype(np.int64), _COLUMNS - 1)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    ends = np.append(starts[1:], len(x))
    counts = ends - starts
    found = [starts, ends - 1]
    for least in (np.minimum, np.maximum):
        reached = np.flatnonzero(y == np.repeat(least.reduceat(y, starts), counts))
        found.append(reached[np.searchsorted(reached, starts)])
    return np.unique(np.concatenate(found))


def _simple(x: Floats, y: Floats, near: float) -> Bools:
    """Tell which points are needed so that all lie near the line."""
    kept = np.zeros(len(x), np.bool_)
    kept[[0, -1]] = True
    waiting = [(0, len(x) - 1)]
    while waiting:
        first, last = waiting.pop()
        if last - first < 2:
            continue
        dx, dy = x[last] - x[first], y[last] - y[first]
        inner = slice(first + 1, last)
        across, up = x[inner] - x[first], y[inner] - y[first]
        length = float(np.hypot(dx, dy))
        away = np.abs(dx * up - dy * across) / length if length else np.hypot(across, up)
        far = int(away.argmax())
        if away[far] > near:
            middle = first + 1 + far
            kept[middle] = True
            waiting += [(first, middle), (middle, last)]
    return kept
