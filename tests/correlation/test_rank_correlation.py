"""Bounds hold every arrangement that cells allow; the edges of what is defined."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from kinds.rows import statistics_of
from thinning import some

import streammetrics as sm
from streammetrics.metrics.correlation import KendallTau, SpearmanRho
from streammetrics.testing import check_laws

SPREAD = [-np.inf, -2.0, -1.5, 1e-300, 1e-3, 0.25, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 1e300]
METRICS = [
    *((f"tau-{variant}", KendallTau(max_pairs=4, variant=variant)) for variant in "abc"),
    ("rho", SpearmanRho(max_pairs=4)),
]


def weak_orders(size):
    """All ways to rank some rows, ties included, that are not all equal."""
    for ranks in itertools.product(range(size), repeat=size):
        if len(set(ranks)) == max(ranks) + 1 > 1:
            yield ranks


def arrangements(places, mixed):
    """All rankings of rows whose cells are known, and which cells hold several values."""
    options = []
    for cell in np.flatnonzero(mixed):
        rows = np.flatnonzero(places == cell)
        options.append([(rows, np.array(ranks)) for ranks in weak_orders(rows.size)])
    for choice in itertools.product(*options):
        ranks = places * 100
        for rows, within in choice:
            ranks[rows] += within
        yield ranks


def values_of(x, y):
    """All four correlations by their definitions, None where undefined."""
    n = x.size
    sign_x, sign_y = ((v[:, None] > v) * 1 - (v[:, None] < v) for v in (x, y))
    upper = np.triu_indices(n, 1)
    balance = int((sign_x * sign_y)[upper].sum())
    free_x, free_y = (int(np.abs(sign[upper]).sum()) for sign in (sign_x, sign_y))
    few = min(len(set(x.tolist())), len(set(y.tolist())))
    if few == 1:
        return {}
    r, s = (sign.sum(axis=1) for sign in (sign_x, sign_y))  # twice the centred average ranks
    return {
        "tau-a": Fraction(balance, n * (n - 1) // 2),
        "tau-b": balance / math.sqrt(free_x * free_y),
        "tau-c": Fraction(2 * balance * few, n * n * (few - 1)),
        "rho": int(r @ s) / math.sqrt(int(r @ r) * int(s @ s)),
    }


def expanded(cells):
    """The place on both axes of every row."""
    return np.repeat(cells.rows, cells.counts), np.repeat(cells.columns, cells.counts)


def enumerated(metric):
    cells = statistics_of(metric)[0].cells()
    rows, columns = expanded(cells)
    x_mixed, y_mixed = np.isnan(cells.x.values), np.isnan(cells.y.values)
    seen = []
    for x in arrangements(rows, x_mixed):
        for y in arrangements(columns, y_mixed):
            seen.append(values_of(x, y))
            if len(seen) > 800:
                return None
    return seen


@pytest.mark.parametrize("seed", some(range(30), every=10))
def test_bounds_hold_every_arrangement(seed):
    rng = np.random.default_rng(seed)
    every = None
    while every is None:  # few enough of them
        n = int(rng.integers(5, 9))
        values = rng.choice(SPREAD, int(rng.integers(3, 9)), replace=False)
        x, y = rng.choice(values, n), rng.choice(values, n)
        if seed % 3 == 0:
            x = rng.choice([-1.0, 2.0], n)
        if seed % 5 == 0:
            y = np.sort(y)[np.argsort(np.argsort(x))]
        every = enumerated(METRICS[0][1].copy().update(x, y))
    truth = values_of(x, y)
    for name, empty in METRICS:
        metric = empty.copy().update(x, y)
        if name not in truth:
            continue
        value, (low, high) = metric.compute(), metric.bounds()
        assert -1 <= low <= value <= high <= 1
        assert low - 1e-15 <= truth[name] <= high + 1e-15
        attained = [float(one[name]) for one in every if name in one]
        assert low - 1e-15 <= min(attained)
        assert max(attained) <= high + 1e-15
        if metric.exact:
            assert low == value == high


def test_the_bound_of_tau_a_is_attained():
    # Two rows of y known, x of one cell: every order of x is possible, and no more than that.
    x, y = np.array([4.0, 5.0, 6.0, 7.0, -1.0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    metric = KendallTau(max_pairs=4, variant="a").update(x, y)
    assert not metric.exact
    every = [float(one["tau-a"]) for one in enumerated(metric)]
    low, high = metric.bounds()
    assert math.nextafter(high, -1) == max(every) or high == 1
    assert math.nextafter(low, 1) == min(every) or low == -1


@pytest.mark.parametrize("empty", [metric for _, metric in METRICS], ids=[n for n, _ in METRICS])
@pytest.mark.parametrize("max_pairs", [4, 30])
def test_laws_past_the_budget(empty, max_pairs):
    rng = np.random.default_rng(1)
    x = rng.choice([*SPREAD, -0.0, 0.0, 5e-324, 1 - 2**-53], 90)
    metric = type(empty)(**{**empty.config, "max_pairs": max_pairs})
    check_laws(metric, {"y_true": x, "y_pred": rng.permutation(x) + x})


def test_many_rows_past_the_budget():
    rng = np.random.default_rng(2)
    x = rng.normal(size=60_000)
    y = x + rng.normal(size=60_000)
    for cls in (KendallTau, SpearmanRho):
        exact = cls().update(x, y)
        assert exact.exact
        truth = exact.compute()
        assert exact.bounds() == (truth, truth)
        bounded = cls(max_pairs=2**12).update(x, y)
        low, high = bounded.bounds()
        assert not bounded.exact
        assert low < truth < high
        assert high - low < 0.2
        assert abs(bounded.compute() - truth) < 0.01


def test_ratings_against_scores_past_the_budget():
    # Few distinct values of one column: its ties stay exact, so the interval stays narrow.
    rng = np.random.default_rng(3)
    stars = rng.integers(1, 6, 50_000)
    score = stars + rng.normal(size=50_000)
    for cls in (KendallTau, SpearmanRho):
        truth = cls().update(stars, score).compute()
        low, high = cls(max_pairs=2**12).update(stars, score).bounds()
        assert low <= truth <= high
        assert high - low < 0.01


@pytest.mark.parametrize(
    ("x", "y", "undefined"),
    [
        ([], [], "abcr"),
        ([1.0], [2.0], "abcr"),
        ([1.0, 1.0], [2.0, 3.0], "bcr"),
        ([1.0, 2.0], [3.0, 3.0], "bcr"),
        ([0.0, -0.0], [1.0, 2.0], "bcr"),
    ],
)
def test_undefined(x, y, undefined):
    metrics = [*(KendallTau(variant=variant) for variant in "abc"), SpearmanRho()]
    for metric, name in zip(metrics, "abcr", strict=True):
        metric.update(x, y)
        if name in undefined:
            why = "is constant" if len(x) else "no rows were seen"
            with pytest.warns(sm.UndefinedMetricWarning, match=why):
                assert math.isnan(metric.compute())
            assert math.isnan(metric.bounds().low)
        else:
            assert metric.compute() == 0.0


def test_a_tied_column_is_undefined_past_the_budget():
    x = np.ones(9)
    for metric in (KendallTau(max_pairs=4), SpearmanRho(max_pairs=4)):
        metric.update(x, np.arange(9.0))
        with pytest.warns(sm.UndefinedMetricWarning, match="is constant"):
            assert math.isnan(metric.compute())


def test_perfect_orders_are_one():
    x = np.arange(1000.0)
    for cls in (KendallTau, SpearmanRho):
        assert cls().update(x, x**3).compute() == 1.0
        assert cls().update(x, -x).compute() == -1.0


def test_repeated_rows_by_merging():
    # Thirty doublings: a billion rows of a thousand pairs, where counts have to be multiplied.
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 20, 1000), rng.integers(0, 20, 1000)
    for cls in (KendallTau, SpearmanRho):
        once = cls().update(x, y)
        many = once.copy()
        for _ in range(30):
            many.merge(many.copy())
        assert many.n_rows == 1000 << 30
        assert many.compute() == pytest.approx(once.compute(), rel=1e-12)


def test_weights_are_refused():
    suite = sm.MetricSet({"tau": KendallTau(), "rho": SpearmanRho()}, columns={"y_true": "t"})
    before = suite.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match="do not accept weights"):
        suite.update(t=[1, 2], y_pred=[1, 2], sample_weight=[1.0, 2.0])
    assert suite.to_bytes() == before
    with pytest.raises(sm.InvalidBatchError, match="do not accept weights"):
        KendallTau().update([1, 2], [1, 2], sample_weight=[1, 1])


def test_bad_input_is_refused():
    metric = KendallTau().update([1.0, 2.0], [1.0, 2.0])
    before = metric.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match="y_pred .* row 1"):
        metric.update([1.0, 2.0], [1.0, np.nan])
    with pytest.raises(sm.InvalidBatchError, match="one number a row"):
        metric.update([[1.0, 2.0]], [[1.0, 2.0]])
    with pytest.raises(sm.InvalidBatchError, match="text"):
        metric.update(["a"], ["b"])
    assert metric.to_bytes() == before
    omitting = SpearmanRho(nan_policy="omit").update([1.0, np.nan, 3.0], [1.0, 2.0, 3.0])
    assert (omitting.n_rows, omitting.n_omitted, omitting.compute()) == (2, 1, 1.0)
    with pytest.raises(ValueError, match="variant"):
        KendallTau(variant="d")
    with pytest.raises(ValueError, match="max_pairs"):
        KendallTau(max_pairs=1)
