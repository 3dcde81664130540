"""Logarithms, exponentials and powers that return the same bits on every processor.

NumPy's own functions do not. Logarithms and exponentials do not warn: log(0) is -inf, log(-1) is
NaN, and overflow gives inf.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.kernels import kernels

if TYPE_CHECKING:
    from streammetrics.core.types import Floats, Numeric

LOG_2 = 0.6931471805599453


def log(x: Numeric, out: Floats | None = None) -> Floats:
    """Return the natural logarithm.

    >>> log(np.array([0.0, 1.0])).tolist()
    [-inf, 0.0]
    """
    return _apply(0, x, out)


def log2(x: Numeric) -> Floats:
    """Return the logarithm to base 2, exact for powers of two."""
    part, whole = np.frexp(x)
    part, whole = np.where(part < math.sqrt(0.5), (part * 2, whole - 1), (part, whole))
    return np.asarray(whole + log(part) / LOG_2)


def log1p(x: Numeric, out: Floats | None = None) -> Floats:
    """Return log(1 + x)."""
    return _apply(1, x, out)


def exp(x: Numeric, out: Floats | None = None) -> Floats:
    """Return e**x."""
    return _apply(2, x, out)


def expm1(x: Numeric, out: Floats | None = None) -> Floats:
    """Return e**x - 1."""
    return _apply(3, x, out)


def power(x: Numeric, exponent: float, out: Floats | None = None) -> Floats:
    """Return x**exponent for x >= 0; correctly rounded if the exponent is 1/2, 1 or 2."""
    rounded = {0.5: np.sqrt, 1.0: np.positive, 2.0: np.square}.get(exponent)
    return rounded(x, out=out) if rounded else _apply(4, x, out, exponent)


def _apply(function: int, x: Numeric, out: Floats | None, exponent: float = 0.0) -> Floats:
    numbers: Floats = np.asarray(x, np.float64, order="C")
    if out is None or not out.flags.c_contiguous:
        made = np.empty(numbers.shape)
        kernels.elementary(made, numbers, function, exponent)
        if out is None:
            return made
        out[...] = made
    else:
        kernels.elementary(out, numbers, function, exponent)
    return out
