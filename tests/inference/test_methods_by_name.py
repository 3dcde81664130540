"""Intervals by name: figures printed in papers, and formulas of other programs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import streammetrics as sm

# Newcombe, "Two-sided confidence intervals for the single proportion", Stat. Med. 17 (1998): I.
NEWCOMBE = {
    (81, 263): {
        "wald": (0.2522, 0.3638), "wilson": (0.2553, 0.3662), "clopper-pearson": (0.2527, 0.3676),
    },
    (15, 148): {
        "wald": (0.0527, 0.1500), "wilson": (0.0624, 0.1605), "clopper-pearson": (0.0578, 0.1617),
    },
    (0, 20): {
        "wald": (0.0, 0.0), "wilson": (0.0, 0.1611), "clopper-pearson": (0.0, 0.1684),
    },
    (1, 29): {
        "wald": (0.0, 0.1009), "wilson": (0.0061, 0.1718), "clopper-pearson": (0.0009, 0.1776),
    },
}  # fmt: skip
SHARES = {
    "accuracy": lambda s, n: sm.Accuracy().update([1] * n, [1] * s + [0] * (n - s)),
    "recall": lambda s, n: sm.Recall().update([1] * n + [0], [1] * s + [0] * (n - s) + [1]),
    "precision": lambda s, n: sm.Precision().update([1] * s + [0] * (n - s) + [1], [1] * n + [0]),
    "top 1": lambda s, n: sm.TopKAccuracy(k=1).update(
        [1] * n, [[0.0, 1.0]] * s + [[1.0, 0.0]] * (n - s)
    ),
}


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("counts", NEWCOMBE, ids=str)
def test_shares_have_the_limits_of_newcombes_table(share, counts):
    metric = SHARES[share](*counts)
    for method, limits in NEWCOMBE[counts].items():
        found = metric.confidence(0.95, method=method)
        assert tuple(round(limit, 4) for limit in found) == limits, method
        assert f"{counts[0]} of {counts[1]}" in found.method


def delong(y, x):
    """Return the area and its standard error from the structural components."""
    over = (x[y == 1][:, None] > x[y == 0]) + 0.5 * (x[y == 1][:, None] == x[y == 0])
    variance = sum(over.mean(axis).var(ddof=1) / over.shape[1 - axis] for axis in (0, 1))
    return over.mean(), np.sqrt(variance)


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("shift", [0.0, 1.0, 3.0])
def test_delong_is_the_variance_of_the_components(level, shift):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    x = np.round(shift * y + rng.normal(size=80), 1)
    area, error = delong(y, x)
    z = stats.norm.ppf((1 + level) / 2)
    metric = sm.ROCAUC().update(y, x)
    plain = metric.confidence(level, method="delong")
    expected = np.clip([area - z * error, area + z * error], 0, 1)
    np.testing.assert_allclose(plain, expected, rtol=1e-9)
    logit, width = np.log(area / (1 - area)), z * error / (area * (1 - area))
    expected = [1 / (1 + np.exp(-(logit + side))) for side in (-width, width)]
    np.testing.assert_allclose(metric.confidence(level, method="delong-logit"), expected, rtol=1e-9)


def test_the_bootstrap_is_of_the_rows_and_always_the_same():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 3, 400), rng.integers(0, 3, 400)
    p = np.where(rng.random(400) < 0.6, y, p)
    metric = sm.F1(average="macro").update(y, p)
    found = metric.confidence(method="bootstrap")
    order = rng.permutation(400)
    assert found == sm.F1(average="macro").update(y[order], p[order]).confidence(method="bootstrap")
    draws = [rng.integers(0, 400, 400) for _ in range(2000)]
    values = [sm.score(sm.F1(average="macro"), y[rows], p[rows]) for rows in draws[:500]]
    np.testing.assert_allclose(found, np.quantile(values, [0.025, 0.975]), atol=0.015)


@pytest.mark.parametrize(
    ("metric", "method", "message"),
    [
        (sm.ROCAUC().update([0, 1], [0.1, 0.2]), "wilson", "is for shares of rows"),
        (sm.F1().update([0, 1], [0, 1]), "wald", "is for shares of rows"),
        (sm.Accuracy(normalize=False).update([0], [0]), "wilson", "is for shares of rows"),
        (sm.BrierScore().update([0, 1], [0.1, 0.9]), "clopper-pearson", "is for shares of rows"),
        (sm.Accuracy().update([0, 1], [0, 1], sample_weight=[1, 2]), "wilson", "have weights"),
        (sm.Accuracy().update([0, 1], [0, 1], sample_weight=[1, 2]), "bootstrap", "have weights"),
        (sm.ROCAUC(max_fpr=0.5).update([0, 1], [0.1, 0.2]), "delong", "without max_fpr"),
        (sm.Accuracy().update([0], [0]), "delong", "exact ROCAUC of two classes"),
        (sm.MAE().update([0.0], [1.0]), "bootstrap", "read from a table of counts"),
        (sm.F1(average=None).update([0, 1], [0, 1]), "bootstrap", "one number"),
    ],
    ids=repr,
)
def test_a_method_that_does_not_fit_is_refused(metric, method, message):
    with pytest.raises(sm.NoConfidenceError, match=message):
        metric.confidence(method=method)


def test_names_and_what_they_go_with():
    accuracy = sm.Accuracy().update([0, 1], [0, 1])
    with pytest.raises(ValueError, match="expected one of 'wilson'"):
        accuracy.confidence(method="wilsons")
    with pytest.raises(ValueError, match="anytime=True has its own method"):
        accuracy.confidence(method="wilson", anytime=True)
    suite = sm.MetricSet({"a": sm.Accuracy()}, unit="u").update(y_true=[1], y_pred=[1], u=[1])
    with pytest.raises(ValueError, match="unit=None treats the rows as the sample"):
        suite["a"].confidence(method="wilson")
    assert suite["a"].confidence(method="wilson", unit=None).method == "Wilson, 1 of 1"
    for method in ("wilson", "wald", "clopper-pearson"):
        with pytest.warns(sm.UndefinedMetricWarning, match="no rows were seen"):
            assert np.isnan(sm.Accuracy().confidence(method=method)).all()


def test_a_set_takes_one_method_or_one_by_metric():
    suite = sm.MetricSet({"accuracy": sm.Accuracy(threshold=0.5), "auc": sm.ROCAUC()})
    suite.update(y_true=[0, 1, 1, 0], y_score=[0.1, 0.4, 0.8, 0.3])
    found = suite.confidence(method={"accuracy": "wald", "auc": "delong"})
    assert found["accuracy"] == suite["accuracy"].confidence(method="wald")
    assert found["auc"] == suite["auc"].confidence(method="delong")
    assert suite.confidence(method={"auc": "delong"})["accuracy"] == suite["accuracy"].confidence()
    with pytest.warns(sm.UndefinedMetricWarning, match="'auc': .* is for shares of rows"):
        found = suite.confidence(method="wald")
    assert found["accuracy"] == suite["accuracy"].confidence(method="wald")
    assert np.isnan(found["auc"]).all()
    with pytest.raises(ValueError, match="no metric 'ac'; did you mean 'auc'"):
        suite.confidence(method={"ac": "wald"})
    with pytest.raises(ValueError, match="expected one of 'wilson'"):
        suite.confidence(method={"auc": "delongs"})
    with pytest.raises(ValueError, match="anytime=True has its own method"):
        suite.confidence(method="wald", anytime=True)
    units = sm.MetricSet({"a": sm.Accuracy()}, unit="u").update(y_true=[1], y_pred=[1], u=[1])
    with pytest.raises(ValueError, match="unit=None treats the rows as the sample"):
        units.confidence(method="wilson")
    assert units.confidence(method="wilson", unit=None)["a"].method == "Wilson, 1 of 1"


# DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988): albumin, total protein, K-G score and
# whether surgery helped, of the 43 patients with all three tests. The figures are those of the
# example of ROCCONTRAST in the SAS/STAT manual, which has the same data.
PATIENTS = """
3.0 5.8 10 0  3.2 6.3  5 1  3.9 6.8  3 1  2.8 4.8  6 0  3.2 5.8  3 1  0.9 4.0  5 0  2.5 5.7  8 0
1.6 5.6  5 1  3.8 5.7  5 1  3.7 6.7  6 1  3.2 5.4  4 1  3.8 6.6  6 1  4.1 6.6  5 1  3.6 5.7  5 1
4.3 7.0  4 1  3.6 6.7  4 0  2.3 4.4  6 1  4.2 7.6  4 0  4.0 6.6  6 0  3.5 5.8  6 1  3.8 6.8  7 1
3.0 4.7  8 0  4.5 7.4  5 1  3.7 7.4  5 1  3.1 6.6  6 1  4.1 8.2  6 1  4.3 7.0  5 1  4.3 6.5  4 1
3.2 5.1  5 1  2.6 4.7  6 1  3.3 6.8  6 0  1.7 4.0  7 0  3.7 6.1  5 1  3.3 6.3  7 1  4.2 7.7  6 1
3.5 6.2  5 1  2.9 5.7  9 0  2.1 4.8  7 1  2.8 6.2  8 0  4.0 7.0  7 1  3.3 5.7  6 1  3.7 6.9  5 1
3.6 6.6  5 1
"""


def test_delong_1988():
    albumin, protein, score, helped = np.array(PATIENTS.split(), float).reshape(-1, 4).T
    rows = {"y_true": helped.astype(int), "albumin": albumin, "protein": protein, "kg": 10 - score}
    models = ["albumin", "protein", "kg"]
    duel = sm.Comparison({"auc": sm.ROCAUC()}, models, baseline="kg").update(rows)
    published = {
        "albumin": (0.7366, 0.5549, 0.9182),
        "protein": (0.6478, 0.4518, 0.8439),
        "kg": (0.7258, 0.5243, 0.9273),
    }
    for model, figures in published.items():
        auc = duel[model]["auc"]
        found = (auc.compute(), *auc.confidence(method="delong"))
        assert tuple(round(each, 4) for each in found) == figures
    lines = [(n.difference, n.low, n.high, n.p) for n in duel.compute()]
    assert [tuple(round(each, 4) for each in line) for line in lines] == [
        (0.0108, -0.1761, 0.1976, 0.9102),
        (-0.078, -0.283, 0.1271, 0.4561),
    ]


# Miller, "Adding error bars to evals", arXiv 2411.00640 (2024). Its tables are of fictional models;
# these are the figures that follow from others that it prints. HumanEval's do not: 83.6 % of 164
# questions is no whole number, and 3.2 % is more than the standard error of any shares near it.


def standard_error(limits):
    return (limits[1] - limits[0]) / 2 / stats.norm.ppf(0.975)


@pytest.mark.parametrize(
    ("right", "questions", "printed"),
    [(3275, 5000, 0.007), (3150, 5000, 0.007), (1882, 2500, 0.009)],
    ids=["MATH, Galleon", "MATH, Dreadnought", "MGSM, Galleon"],
)
def test_standard_errors_of_millers_table_2(right, questions, printed):
    found = SHARES["accuracy"](right, questions).confidence(0.95, method="wald")
    assert round(standard_error(found), 3) == printed


def test_math_of_millers_table_5():
    """Scores of 65.5 % and 63.0 % of 5,000 questions with a correlation of 0.50."""
    both, one, other = 2637, 3275, 3150
    rows = {"y_true": [1] * 5000, "galleon": [1] * one + [0] * (5000 - one)}
    rows["dreadnought"] = [1] * both + [0] * (one - both)
    rows["dreadnought"] += [1] * (other - both) + [0] * (5000 - one - other + both)
    assert round(np.corrcoef(rows["galleon"], rows["dreadnought"])[0, 1], 2) == 0.5
    models = ["galleon", "dreadnought"]
    units = {"question": np.arange(5000)}
    for duel in (
        sm.Comparison({"accuracy": sm.Accuracy()}, models).update(rows),
        sm.Comparison({"accuracy": sm.Accuracy()}, models, unit="question").update(rows | units),
    ):
        (line,) = duel.compute()
        assert round(line.difference, 3) == 0.025
        assert line.verdict == "galleon better"
        if duel.unit is None:
            assert round(standard_error(line[6:8]), 3) == 0.007
            assert [round(limit, 3) for limit in (line.low, line.high)] == [0.012, 0.038]


def test_mgsm_of_millers_tables_3_and_5():
    """250 clusters of 10 questions; standard errors of 1.6 % and 1.5 %, and a correlation of 0.37.

    The scores are fractional; their means by cluster have these standard errors and correlation.
    """
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(2, 250))
    drawn -= drawn.mean(axis=1, keepdims=True)
    white = np.linalg.solve(np.linalg.cholesky(np.cov(drawn)), drawn)  # no correlation left
    one, other = white[0], 0.37 * white[0] + np.sqrt(1 - 0.37**2) * white[1]
    scale = np.sqrt(250)
    scores = {
        name: np.repeat(mean + error * scale * parts, 10)
        for name, mean, error, parts in (
            ("galleon", 0.753, 0.016, one),
            ("dreadnought", 0.780, 0.015, other),
        )
    }
    rows = scores | {"y_true": np.zeros(2500), "problem": np.repeat(np.arange(250), 10)}
    metric = sm.MeanError()  # the mean of predictions, as the truth is 0
    duel = sm.Comparison({"score": metric}, list(scores), unit="problem").update(rows)
    (line,) = duel.compute()
    t = stats.t.ppf(0.975, 249)
    errors = [
        (high - low) / 2 / t for low, high in (duel[m]["score"].confidence() for m in duel.models)
    ]
    np.testing.assert_allclose(errors, [0.016, 0.015])
    assert round((line.high - line.low) / 2 / t, 3) == 0.017
    found = [round(abs(each), 3) for each in (line.difference, line.low, line.high)]
    assert sorted(found) == [0.007, 0.027, 0.061]


def pilot(variance, n):
    """Return a comparison whose differences of `n` questions have this variance."""
    apart = np.sqrt(variance * (n - 1) / n) * np.where(np.arange(n) % 2, 1, -1)
    rows = {"y_true": np.zeros(n), "one": 5 + apart, "other": np.full(n, 5.0)}
    return sm.Comparison({"score": sm.MAE()}, ["one", "other"]).update(rows)


def test_the_power_of_millers_section_5():
    """969 questions to detect 0.03; from 13.2 % to 7.5 % with 10 answers instead of 1.

    Miller's quantiles are normal and his percentages cut off; ours are Student's.
    """
    z = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert round(z**2 / 9 / 0.03**2) == 969
    needed = sm.units_needed(pilot(1 / 9, 4000), 0.03)["score"]
    assert needed == 971
    for answers, printed in ((1, 0.132), (10, 0.075)):
        variance = 1 / 9 + 2 / 6 / answers
        t = stats.t.ppf(0.975, 197) + stats.t.ppf(0.8, 197)
        found = pilot(variance, 198).detectable(0.8)["score"]
        assert found == pytest.approx(t * np.sqrt(variance / 198))
        assert found == pytest.approx(printed, abs=0.002)
