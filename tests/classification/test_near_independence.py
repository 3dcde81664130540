"""Large tables of nearly independent labels: small values are read from integers, not as 0."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import streammetrics as sm

K = 10**9
TABLES = [
    ((K, K - 1), (K + 1, K)),
    ((K, K + 1), (K - 1, K)),
    ((10**12 + 1, 10**6), (10**12, 10**6)),
    ((3 * 10**7 + 1, 10**8), (3 * 10**7, 10**8)),
    ((5, 5), (5, 5)),
    ((K, 0), (0, 3)),
]


def fed(metric, table):
    """Return the metric of a table that no array of rows could hold, doubled from single rows."""
    empty = metric.copy()
    for (true, pred), count in np.ndenumerate(np.array(table, object)):
        part = metric.copy().update([true], [pred])
        for bit in reversed(f"{int(count):b}"):
            if bit == "1":
                empty.merge(part)
            part = part.copy().merge(part)
    return empty


def parts(table):
    (tn, fp), (fn, tp) = [[Fraction(x) for x in row] for row in table]
    return tn, fp, fn, tp, tn + fp + fn + tp


def kappa(table):
    tn, fp, fn, tp, n = parts(table)
    chance = ((tn + fp) * (tn + fn) + (tp + fp) * (tp + fn)) / n**2
    return ((tn + tp) / n - chance) / (1 - chance)


def informedness(table):
    tn, fp, fn, tp, _ = parts(table)
    return tp / (tp + fn) + tn / (tn + fp) - 1


def markedness(table):
    tn, fp, fn, tp, _ = parts(table)
    return tp / (tp + fp) + tn / (tn + fn) - 1


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    ("metric", "exact"),
    [
        (sm.CohenKappa(), kappa),
        (sm.CohenKappa(weights="linear"), kappa),
        (sm.CohenKappa(weights="quadratic"), kappa),
        (sm.Informedness(), informedness),
        (sm.Markedness(), markedness),
        (sm.BalancedAccuracy(adjusted=True), informedness),
    ],
    ids=lambda value: repr(value).partition(" <")[0] if isinstance(value, sm.Metric) else "",
)
def test_small_values_are_read_from_integers(metric, exact, table):
    assert fed(metric, table).compute() == pytest.approx(float(exact(table)), rel=1e-15, abs=0)


@pytest.mark.parametrize("table", TABLES)
def test_of_three_classes(table):
    """A third class that is always right, and so as far above chance as can be."""
    (tn, fp), (fn, tp) = table
    counts = [[tn, fp, 0], [fn, tp, 0], [0, 0, 7]]
    value = fed(sm.BalancedAccuracy(adjusted=True), counts).compute()
    recalls = Fraction(tn, tn + fp) + Fraction(tp, fn + tp) + 1
    assert value == pytest.approx(float((recalls - 1) / 2), rel=1e-15, abs=0)
    each = fed(sm.Informedness(average=None), counts).compute()
    n = sum(map(sum, counts))
    first = Fraction(tn, tn + fp) - Fraction(fn, n - tn - fp)
    assert each[0] == pytest.approx(float(first), rel=1e-15, abs=0)


def test_chance_is_exactly_0():
    third = [[1, 1, 1], [1, 1, 1], [1, 1, 1]]
    for metric in (sm.BalancedAccuracy(adjusted=True), sm.CohenKappa(), sm.Informedness()):
        average = {"average": None} if isinstance(metric, sm.Informedness) else {}
        value = fed(type(metric)(**{**metric.config, **average}), third).compute()
        assert np.all(np.asarray(value) == 0.0)


@pytest.mark.parametrize("table", TABLES[:5])
def test_association(table):
    tn, fp, fn, tp, _ = parts(table)
    phi = (tn * tp - fp * fn) ** 2 / ((tn + fp) * (fn + tp) * (tn + fn) * (fp + tp))
    value = fed(sm.CramersV(), table).compute()
    assert value == pytest.approx(math.sqrt(phi), rel=1e-14, abs=0)


def scored(metric, table):
    """Return a metric of two scores, 0 for rows that are predicted negative and 1 for others."""
    (tn, fp), (fn, tp) = table
    rows = [(0, 0.0, tn), (0, 1.0, fp), (1, 0.0, fn), (1, 1.0, tp)]
    labels, scores, weights = (np.array(column) for column in zip(*rows, strict=True))
    return metric.update(labels, scores, sample_weight=weights)


@pytest.mark.parametrize("table", TABLES)
def test_gini_of_nearly_equal_scores(table):
    value = scored(sm.Gini(), table).compute()
    assert value == pytest.approx(float(informedness(table)), rel=1e-15, abs=0)


@pytest.mark.parametrize("table", [TABLES[0], TABLES[2], TABLES[3]])
@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("informedness", informedness),
        ("cohen_kappa", kappa),
        ("matthews_corrcoef", lambda of: math.sqrt(informedness(of) * markedness(of))),
    ],
    ids=["informedness", "kappa", "correlation"],
)
def test_best_thresholds(name, exact, table):
    value = scored(sm.BestThreshold(for_=name), table).compute().value
    assert value == pytest.approx(float(exact(table)), rel=1e-14, abs=0)
