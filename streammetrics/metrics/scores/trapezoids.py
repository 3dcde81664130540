"""The area under given points, such as those of a curve."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["auc"]


def auc(x: object, y: object) -> float:
    """Return the area under the points (x, y) by the trapezoidal rule.

    For the area under the curve of a stream of rows use `ROCAUC` or `PRAUC`, which merge and have
    bounds.

    Args:
        x: Finite numbers (n,), ascending or descending, at least two.
        y: As many finite numbers.

    Raises:
        ValueError: The shapes or the values are not as above.

    Example:
        >>> import streammetrics as sm
        >>> curve = sm.ROCCurve().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        >>> sm.auc(curve.fpr, curve.tpr)
        0.75
    """
    sides = [np.asarray(side, np.float64) for side in (x, y)]
    for name, side in zip("xy", sides, strict=True):
        if side.ndim != 1 or len(side) < 2:
            raise ValueError(f"{name} has shape {side.shape}: at least two numbers are needed")
        if not np.isfinite(side).all():
            place = int(np.argmin(np.isfinite(side)))
            raise ValueError(f"{name} is {side[place]} at place {place}: numbers have to be finite")
    along, up = sides
    if len(along) != len(up):
        raise ValueError(f"x and y differ in length: {len(along)} and {len(up)}")
    steps = np.diff(along)
    if (steps < 0).any() and (steps > 0).any():
        turn = int(np.argmax(np.sign(steps) == -np.sign(steps[steps != 0][0])))
        raise ValueError(
            f"x neither ascends nor descends: it turns at place {turn + 1} ({along[turn + 1]:g}); "
            "sort the points by x"
        )
    return math.fsum(np.abs(steps) * (up[1:] / 2 + up[:-1] / 2))
