"""Logarithms and powers to twice the digits of a float64, for sums whose difference is small.

A number is ``head + tail``. Arguments are divided, or subtracted, by entries of three tables until
what is left is below 2**-18, where a few terms of the series do. The relative error is below
2**-95. It needs no function of the platform's mathematical library.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.columns.long import LongNumbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.types import Floats

DIGITS = Context(prec=60)
_STEPS = (64.0, 4096.0, 262144.0)  # of the tables
_MOST = 96  # entries of a table on either side of the middle one
_BLOCK = 2**13  # rows at a time, whose arrays stay in the cache
Pair = tuple["Floats", "Floats"]


def log_terms(y: Floats) -> LongNumbers:
    """Return log y for y > 0."""
    return _in_blocks(_log, y)


def y_log_terms(y: Floats) -> LongNumbers:
    """Return y log y for y >= 0."""

    def terms(y: Floats) -> Pair:
        head, tail = _times(_log(np.where(y > 0, y, 1.0)), y)
        return head, tail

    return _in_blocks(terms, y)


def power_terms(y: Floats, exponent: float, factor: float) -> LongNumbers:
    """Return y**exponent / factor for y > 0, and 0 for others."""

    def terms(y: Floats) -> Pair:
        head, tail = _exp(_times(_log(np.where(y > 0, y, 1.0)), exponent))
        quotient = head / factor
        product, rest = product_and_error(quotient, factor)
        tail = ((head - product) - rest + tail) / factor
        return np.where(y > 0, quotient, 0.0), np.where((y > 0) & np.isfinite(tail), tail, 0.0)

    return _in_blocks(terms, y)


@np.errstate(all="ignore")
def softmax_and_error(logits: Floats) -> Pair:
    """Return the softmax of each row (n, K), rounded, and what was rounded off."""
    odds = _exp(_sum(logits, -logits.max(axis=1, keepdims=True)))
    total = [np.zeros((len(logits), 1))] * 2
    for k in range(logits.shape[1]):
        head, tail = _sum(total[0], odds[0][:, k : k + 1])
        total = [head, tail + total[1] + odds[1][:, k : k + 1]]
    whole, rest = _sum(*total)
    share = odds[0] / whole
    product, error = product_and_error(share, whole)
    return _sum(share, (((odds[0] - product) - error) + odds[1] - share * rest) / whole)


@np.errstate(all="ignore")
def _in_blocks(terms: Callable[[Floats], Pair], y: Floats) -> LongNumbers:
    flat = y.reshape(-1)
    head, tail = np.empty(y.shape), np.empty(y.shape)
    for start in range(0, flat.size, _BLOCK):
        rows = slice(start, start + _BLOCK)
        found = _sum(*terms(flat[rows]))
        head.reshape(-1)[rows], tail.reshape(-1)[rows] = found
    return LongNumbers(head, np.where(np.isfinite(head), tail, 0.0))


def _sum(x: Floats, y: Floats | float) -> Pair:
    """Return the rounded sum, and its error (Knuth)."""
    total = x + y
    other = total - x
    return total, (x - (total - other)) + (y - other)


def product_and_error(x: Floats, y: Floats | float) -> Pair:
    """Return the rounded product, and its error (Dekker)."""
    product = x * y
    (xh, xl), (yh, yl) = _halves(x), _halves(y)
    return product, ((xh * yh - product) + xh * yl + xl * yh) + xl * yl


def _halves(x: Floats | float) -> tuple[Floats, Floats]:
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    return np.asarray(high), np.asarray(x - high)


def _times(x: Pair, y: Floats | float) -> Pair:
    head, tail = product_and_error(x[0], y)
    return head, tail + x[1] * y


def _added(parts: list[Floats], tail: Floats) -> Pair:
    """Return the sum of parts, and of small ones that are a tail already."""
    total = parts[0]
    for part in parts[1:]:
        total, error = _sum(total, part)
        tail = tail + error
    return _sum(total, tail)


def _log(y: Floats) -> Pair:
    rest, exponent = np.frexp(y)
    low = rest < math.sqrt(0.5)
    rest = np.where(low, rest * 2, rest)
    e = exponent - low.astype(np.float64)
    log_2, _ = _constants()
    parts, tail = [e * log_2[0], e * log_2[1]], e * log_2[2]
    divisor = np.ones_like(rest)
    for level, step in enumerate(_STEPS):
        place = np.rint((rest / divisor - 1.0) * step)
        divisor = divisor * (1.0 + place / step)
        heads, tails = _table(level, "ln")
        at = place.astype(np.intp) + _MOST
        parts.append(heads[at])
        tail = tail + tails[at]
    apart = rest - divisor  # exact, as are divisors
    z = apart / divisor
    product, error = product_and_error(z, divisor)
    fine = ((apart - product) - error) / divisor
    square, error = product_and_error(z, z)
    small = z * square * (1 / 3 - z * (1 / 4 - z / 5))
    parts += [z, square * -0.5]
    return _added(parts, tail + (small + fine - (error * 0.5 + z * fine)))


def _exp(x: Pair) -> Pair:
    log_2, per = _constants()
    e = np.rint(np.clip(x[0] * per, -1100.0, 1100.0))
    rest, tail = _added([x[0], -e * log_2[0], -e * log_2[1]], x[1] - e * log_2[2])
    found: list[Pair] = []
    for level, step in enumerate(_STEPS):
        place = np.rint(np.clip(rest * step, -_MOST, _MOST))
        at = place.astype(np.intp) + _MOST
        heads, tails = _table(level, "exp")
        found.append((heads[at], tails[at]))
        rest, error = _sum(rest, place / -step)
        tail = tail + error
    rest, tail = _sum(rest, tail)
    square, error = product_and_error(rest, rest)
    small = rest * square * (1 / 6 + rest * (1 / 24 + rest / 120))
    one = np.ones_like(rest)
    head, tail = _added([one, rest, square * 0.5], tail + rest * tail + error * 0.5 + small)
    for factor, rest in found:
        product, error = product_and_error(head, factor)
        head, tail = _sum(product, error + (head * rest + tail * factor))
    scale = e.astype(np.int64)
    return np.ldexp(head, scale), np.ldexp(tail, scale)


@cache
def _constants() -> tuple[tuple[float, float, float], float]:
    """Return log 2 in three parts, of which two times an exponent are exact, and its inverse."""
    exact = DIGITS.ln(Decimal(2))
    first = math.floor(float(exact) * 2**40) / 2**40
    second = math.floor(float(DIGITS.subtract(exact, Decimal(first))) * 2.0**80) / 2.0**80
    rest = DIGITS.subtract(DIGITS.subtract(exact, Decimal(first)), Decimal(second))
    return (first, second, float(rest)), 1 / float(exact)


@cache
def _table(level: int, function: str) -> Pair:
    """Return log(1 + k / step), or exp(k / step), for k on either side of 0."""
    step = int(_STEPS[level])
    heads, tails = np.zeros(2 * _MOST + 1), np.zeros(2 * _MOST + 1)
    for k in range(-_MOST, _MOST + 1):
        at = DIGITS.divide(Decimal(k), Decimal(step))
        if function == "ln" and k <= -step:
            continue  # no argument is so small
        exact = DIGITS.ln(1 + at) if function == "ln" else DIGITS.exp(at)
        heads[k + _MOST] = head = float(exact)
        tails[k + _MOST] = float(DIGITS.subtract(exact, Decimal(head)))
    return heads, tails
