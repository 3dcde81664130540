"""Distances that no matrix product gives: tiles of them, one coordinate after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from streammetrics.core.types import Floats


Tile = Callable[[Any, Any, Any], None]  # columns (d, n, 1) and (d, 1, m), and a tile (n, m) to fill


def _manhattan(one: Floats, other: Floats, out: Floats) -> None:
    out[:] = 0.0
    for x, y in zip(one, other, strict=True):
        out += np.abs(x - y)


def _chebyshev(one: Floats, other: Floats, out: Floats) -> None:
    out[:] = 0.0
    for x, y in zip(one, other, strict=True):
        np.maximum(out, np.abs(x - y), out=out)


def _canberra(one: Floats, other: Floats, out: Floats) -> None:
    out[:] = 0.0
    for x, y in zip(one, other, strict=True):
        out += _ratio(np.abs(x - y), np.abs(x) + np.abs(y))


def _braycurtis(one: Floats, other: Floats, out: Floats) -> None:
    out[:] = 0.0
    whole = np.zeros_like(out)
    for x, y in zip(one, other, strict=True):
        out += np.abs(x - y)
        whole += np.abs(x + y)
    out[:] = _ratio(out, whole)


def _hamming(one: Floats, other: Floats, out: Floats) -> None:
    out[:] = 0.0
    for x, y in zip(one, other, strict=True):
        out += x != y


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Return a quotient, 0 of nothing by nothing and infinite of something by nothing."""
    nothing = np.where(part > 0, np.inf, 0.0)
    quotient: Floats = np.divide(part, whole, out=nothing, where=whole > 0)
    return quotient


TILES: dict[str, Tile] = {
    "manhattan": _manhattan,
    "chebyshev": _chebyshev,
    "canberra": _canberra,
    "braycurtis": _braycurtis,
    "hamming": _hamming,
}


DIRECTED = frozenset({"cosine", "correlation"})  # distances of `directions`, squared


def directions(points: Floats, *, centred: bool) -> Floats:
    """Return points of length one, half of whose squared distances are 1 - cos of their angle.

    With `centred` the mean of a point's coordinates is taken off first, so that it is 1 minus
    their correlation. Points without a direction lie on an axis of their own, the last one, 1 from
    all others; `silhouettes` sees to it that they are 1 from each other too.
    """
    width = max(points.shape[1], 1)
    scale = np.abs(points).max(axis=1, initial=0.0, keepdims=True)
    points = np.divide(points, scale, out=np.zeros_like(points), where=scale > 0)
    if centred:
        points = points - points.sum(axis=1, keepdims=True) / width
    size = np.sqrt(np.einsum("ij,ij->i", points, points))[:, None]
    some = size > (width * 2.0**-50 if centred else 0.0)  # equal coordinates leave their rounding
    units = np.divide(points, size, out=np.zeros_like(points), where=some)
    return np.column_stack([units, (~some).astype(np.float64)])
