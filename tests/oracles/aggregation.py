"""Aggregation of values against NumPy and exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import streammetrics as sm
from oracles.base import Oracle


def values(rng, n):
    return {"values": rng.normal(100, 3, n)}


def weighted(rng, n):
    return {**values(rng, n), "sample_weight": rng.exponential(size=n)}


def repeated(rng, n):
    return {"values": rng.integers(0, 20, n), "sample_weight": rng.integers(0, 4, n)}


def cancelling(rng, n):
    return {"values": rng.choice([1e16, -1e16, 1.0, 1e-300, 1e300], n)}


def hostile(rng, n):
    return {"values": rng.choice([-np.inf, np.inf, -0.0, 5e-324, 1e308, -1e308, 1.0], n)}


def exactly(read):
    """Return the reference that reads exact values and weights."""

    def reference(values, sample_weight=None):
        weight = np.ones(len(values)) if sample_weight is None else sample_weight
        return read([Fraction(float(x)) for x in values], [Fraction(float(w)) for w in weight])

    return reference


def total(x, w):
    return float(sum(a * b for a, b in zip(x, w, strict=True)))


def mean(x, w):
    return float(sum(a * b for a, b in zip(x, w, strict=True)) / sum(w))


def variance(ddof):
    def read(x, w):
        middle = sum(a * b for a, b in zip(x, w, strict=True)) / sum(w)
        squares = sum(b * (a - middle) ** 2 for a, b in zip(x, w, strict=True))
        return float(squares / (sum(w) - ddof))

    return read


def quantile(q, method):
    def reference(values, sample_weight=None):
        if sample_weight is not None:
            values = np.repeat(values, sample_weight)
        return np.quantile(values, q, method=method)

    return reference


METHODS = ("linear", "averaged_inverted_cdf")

ORACLES = [
    Oracle(sm.Count(), values, lambda values: values.size, rel=0),
    Oracle(sm.Count(), repeated, lambda values, sample_weight: sample_weight.sum(), rel=0),
    Oracle(sm.Sum(), cancelling, exactly(total), rel=0, abs=0),
    Oracle(sm.Sum(), weighted, exactly(total), rel=0, abs=0),
    Oracle(sm.Mean(), cancelling, exactly(mean), rel=0, abs=0),
    Oracle(sm.Mean(), weighted, exactly(mean), rel=0, abs=0),
    Oracle(sm.Variance(), weighted, exactly(variance(0)), rel=0, abs=0),
    Oracle(sm.Variance(ddof=1), values, exactly(variance(1)), rel=0, abs=0),
    Oracle(sm.Minimum(), weighted, lambda values, sample_weight: values.min(), rel=0),
    Oracle(sm.Minimum(), hostile, lambda values: values.min(), rel=0),
    Oracle(sm.Maximum(), values, lambda values: values.max(), rel=0),
    Oracle(sm.Maximum(), hostile, lambda values: values.max(), rel=0),
    *(
        Oracle(sm.Quantile(q=q, method=method), rows, quantile(q, method))
        for q in (0, 0.1, 0.5, 0.99, 1)
        for method in METHODS
        for rows in (values, repeated)
    ),
    Oracle(sm.Quantile(q=[0.9, 0.5, 0.25]), values, quantile([0.9, 0.5, 0.25], "linear")),
    Oracle(
        sm.Quantile(q=0.3, max_bins=256),
        values,
        quantile(0.3, "linear"),
        n=2000,
        rel=1e-3,
        why="2000 values in 256 bins",
    ),
]
