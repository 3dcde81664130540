"""Two models on the same rows, against tests of the same from other libraries."""

from __future__ import annotations

import numpy as np
from measuring import Case
from peers import peer
from scipy import stats

import streammetrics as sm
from streammetrics.inference.paired import sign_flips


def columns(scale):
    """Return labels and two scores that have much in common."""
    rng, n = np.random.default_rng(3), int(1_000_000 * scale)
    y, common = rng.integers(0, 2, n), rng.normal(size=n)
    a, b = (
        1 / (1 + np.exp(-(skill * (2 * y - 1) + common + rng.normal(size=n))))
        for skill in (1.0, 0.8)
    )
    return {"y_true": y, "a": a, "b": b}


def delong_by_midranks(rows):
    """Return the difference of two areas and its variance as Sun and Xu (2014) compute them."""
    y = rows["y_true"] == 1
    m, n = int(y.sum()), int((~y).sum())
    areas, parts = [], []
    for model in "ab":
        x, z = rows[model][y], rows[model][~y]
        both = stats.rankdata(np.concatenate([x, z]))
        v10 = (both[:m] - stats.rankdata(x)) / n
        v01 = 1 - (both[m:] - stats.rankdata(z)) / m
        areas.append(v10.mean())
        parts.append((v10, v01))
    gap = [one - other for one, other in zip(*parts, strict=True)]
    return areas[0] - areas[1], gap[0].var(ddof=1) / m + gap[1].var(ddof=1) / n


def duel(rows, metrics):
    """Compare two models in one pass."""
    return sm.Comparison(metrics, {"a": "a", "b": "b"}).update(rows).compute()


def delong(scale):
    """ROC AUC of two models, the difference and its limits."""
    rows = columns(scale)
    kit = peer("MLstatkit.stats")
    peers = {
        "midranks": lambda: delong_by_midranks(rows),
        "MLstatkit": lambda: kit.Delong_test(rows["y_true"], rows["a"], rows["b"]),
    }
    return Case(
        f"DeLong's test of two models, {len(rows['a']):,} rows",
        lambda: duel(rows, {"auc": sm.ROCAUC()}),
        peers,
        {"midranks": 3, "MLstatkit": 3},
        tuple(rows.values()),
        repeats=2,
    )


def several(scale):
    """Accuracy, F1 and log loss of two models, and of two sets that cannot be compared."""
    rows = columns(scale)
    metrics = {
        "accuracy": sm.Accuracy(threshold=0.5),
        "f1": sm.F1(threshold=0.5),
        "loss": sm.LogLoss(),
    }

    def apart():
        sets = [sm.MetricSet(metrics, columns={"y_score": model}) for model in "ab"]
        return [each.update(rows).compute() for each in sets]

    def by_scipy():
        y = rows["y_true"]
        hits = [(rows[m] >= 0.5) == y for m in "ab"]
        only, other = (hits[0] & ~hits[1]).sum(), (hits[1] & ~hits[0]).sum()
        losses = [-np.log(np.where(y == 1, rows[m], 1 - rows[m])) for m in "ab"]
        return stats.binomtest(int(only), int(only + other)), stats.ttest_rel(*losses)

    return Case(
        f"accuracy, F1, log loss of two models, {len(rows['a']):,} rows",
        lambda: duel(rows, metrics),
        {"scipy, without F1": by_scipy, "two sets": apart},
        {"scipy, without F1": 1, "two sets": 1 / 3},
        tuple(rows.values()),
        repeats=2,
    )


def by_unit(scale):
    """Two models whose rows are of a tenth as many units, and without units."""
    rows = columns(scale)
    n = len(rows["a"])
    units = rows | {"unit": np.random.default_rng(0).permutation(n) % max(n // 10, 1)}
    metrics = {"accuracy": sm.Accuracy(threshold=0.5), "loss": sm.LogLoss(), "auc": sm.ROCAUC()}
    models = ["a", "b"]
    return Case(
        f"accuracy, log loss, AUC of two models by unit, {n:,} rows",
        lambda: sm.Comparison(metrics, models, unit="unit").update(units).compute(),
        {"without units": lambda: duel(rows, metrics)},
        {"without units": 1 / 2},
        tuple(units.values()),
        repeats=2,
    )


def flips(scale):
    """Signs of the differences of queries flipped ten thousand times."""
    del scale
    gaps = np.random.default_rng(0).normal(0.1, 1, 200)

    def by_scipy():
        zeros = np.zeros_like(gaps)
        return stats.permutation_test(
            (gaps, zeros),
            lambda one, other, axis: np.mean(one - other, axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=9_999,
        )

    return Case(
        "sign flips of 200 queries, 9,999 times",
        lambda: sign_flips(gaps),
        {"scipy": by_scipy},
        {"scipy": 5},
        (gaps,),
    )


BENCHMARKS = {
    "DeLong of two models": delong,
    "two models": several,
    "by unit": by_unit,
    "sign flips": flips,
}
