"""Criteria computed from a 2x2 confusion table: for many tables in floats, for one in integers."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.metrics.averages import beta_weights
from streammetrics.statistics.sums.formulas import product_and_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.types import Floats


def _fbeta(tp: Floats, fp: Floats, fn: Floats, tn: Floats, beta: float) -> Floats:  # noqa: ARG001 - same signature as the others
    recall, precision = beta_weights(beta)
    right = (recall + precision) * tp
    return right / (right + recall * fn + precision * fp)


def _rates(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> tuple[Floats, Floats]:
    return tp / (tp + fn), tn / (tn + fp)


def _scaled(*counts: Floats) -> tuple[Floats, ...]:
    """Return counts divided by a power of two, so that products of four do not overflow."""
    _, exponent = np.frexp(np.max(counts))
    return tuple(np.ldexp(each, -exponent) for each in counts)


def _determinant(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return tp tn - fp fn, including the rounding errors of both products."""
    (one, lost), (other, more) = product_and_error(tp, tn), product_and_error(fp, fn)
    return (one - other) + (lost - more)


def _informedness(tp: Floats, fp: Floats, fn: Floats, tn: Floats, _: float) -> Floats:
    tp, fp, fn, tn = _scaled(tp, fp, fn, tn)
    return _determinant(tp, fp, fn, tn) / ((tp + fn) * (fp + tn))


def _correlation(tp: Floats, fp: Floats, fn: Floats, tn: Floats, _: float) -> Floats:
    tp, fp, fn, tn = _scaled(tp, fp, fn, tn)
    sides = np.sqrt((tp + fn) * (fp + tn)) * np.sqrt((tp + fp) * (fn + tn))
    correlation: Floats = np.clip(_determinant(tp, fp, fn, tn) / sides, -1.0, 1.0)
    return correlation


def _kappa(tp: Floats, fp: Floats, fn: Floats, tn: Floats, _: float) -> Floats:
    tp, fp, fn, tn = _scaled(tp, fp, fn, tn)
    chance = (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn)
    return 2 * _determinant(tp, fp, fn, tn) / chance


VALUES: dict[str, Callable[[Floats, Floats, Floats, Floats, float], Floats]] = {
    "f1": lambda tp, fp, fn, tn, _: _fbeta(tp, fp, fn, tn, 1.0),
    "fbeta": _fbeta,
    "jaccard": lambda tp, fp, fn, tn, _: tp / (tp + fp + fn),  # noqa: ARG005 - same signature as the others
    "accuracy": lambda tp, fp, fn, tn, _: (tp + tn) / (tp + fp + fn + tn),
    "balanced_accuracy": lambda tp, fp, fn, tn, _: np.mean(_rates(tp, fp, fn, tn), axis=0),
    "informedness": _informedness,
    "g_mean": lambda tp, fp, fn, tn, _: np.sqrt(np.prod(_rates(tp, fp, fn, tn), axis=0)),
    "matthews_corrcoef": _correlation,
    "cohen_kappa": _kappa,
}


def _exact_fbeta(tp: int, fp: int, fn: int, tn: int, beta: float) -> Fraction:  # noqa: ARG001 - same signature as the others
    recall, precision = map(Fraction, beta_weights(beta))
    right = (recall + precision) * tp
    return right / (right + recall * fn + precision * fp)


def _exact_correlation(tp: int, fp: int, fn: int, tn: int, _: float) -> Fraction:
    apart = tp * tn - fp * fn
    return Fraction(apart * abs(apart), (tp + fn) * (fp + tn) * (tp + fp) * (fn + tn))


def _exact_kappa(tp: int, fp: int, fn: int, tn: int, _: float) -> Fraction:
    chance = (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn)
    return Fraction(2 * (tp * tn - fp * fn), chance)


def _exact_informedness(tp: int, fp: int, fn: int, tn: int, _: float) -> Fraction:
    return Fraction(tp * tn - fp * fn, (tp + fn) * (fp + tn))


# The same in exact arithmetic, for tables where the functions above are defined.
EXACTLY: dict[str, Callable[[int, int, int, int, float], Fraction]] = {
    "f1": lambda tp, fp, fn, tn, _: _exact_fbeta(tp, fp, fn, tn, 1.0),
    "fbeta": _exact_fbeta,
    "jaccard": lambda tp, fp, fn, tn, _: Fraction(tp, tp + fp + fn),  # noqa: ARG005 - same signature as the others
    "accuracy": lambda tp, fp, fn, tn, _: Fraction(tp + tn, tp + fp + fn + tn),
    "balanced_accuracy": lambda *table: (1 + _exact_informedness(*table)) / 2,
    "informedness": _exact_informedness,
    "g_mean": lambda tp, fp, fn, tn, _: Fraction(tp * tn, (tp + fn) * (tn + fp)),
    "matthews_corrcoef": _exact_correlation,
    "cohen_kappa": _exact_kappa,
}
SQUARED = ("g_mean", "matthews_corrcoef")  # squared with their sign, which keeps their order
