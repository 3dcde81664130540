"""The worst slices and how far apart they are, against plain arithmetic and simulation."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import streammetrics as sm
from streammetrics.slices.keyed import GroupView


def table(n=4000, seed=0, effect=0.0):
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c", "d"], n, p=[0.6, 0.3, 0.09, 0.01])
    wrong = rng.random(n) < 0.2 + effect * (group == "c")
    y = rng.integers(0, 2, n)
    return {"y_true": y, "y_pred": np.where(wrong, 1 - y, y), "group": group}


def audited(**given):
    suite = sm.MetricSet(
        {"acc": sm.Accuracy(), "recall": sm.Recall(), "macro": sm.F1(average=None)}
    )
    return sm.Slices(suite, by=[[], ["group"]]).update(table(**given))


def test_gap_and_ratio_are_those_of_fairlearn():
    slices = audited()
    frame = pd.DataFrame(table())
    each = (frame.y_true == frame.y_pred).groupby(frame.group).mean()
    overall = (frame.y_true == frame.y_pred).mean()
    gap, ratio = slices.gap("acc"), slices.ratio("acc")
    assert gap.value == pytest.approx(each.max() - each.min(), rel=1e-14)
    assert ratio.value == pytest.approx(each.min() / each.max(), rel=1e-14)
    assert gap.lowest == f"group={each.idxmin()}"
    assert gap.highest == f"group={each.idxmax()}"
    apart = slices.gap("acc", method="to_overall").value
    assert apart == pytest.approx((each - overall).abs().max(), rel=1e-12)
    folded = np.minimum(each / overall, overall / each).min()
    assert slices.ratio("acc", method="to_overall").value == pytest.approx(folded, rel=1e-12)
    for reading in (gap, ratio):
        assert reading.bounds == (reading.value, reading.value)
        low, high = reading.confidence
        assert low <= reading.value <= high
        assert float(reading) == reading.to_dict()["value"]


def test_certain_limits_hold_what_more_bins_say():
    rng = np.random.default_rng(3)
    rows = {
        "y_true": rng.integers(0, 2, 3000),
        "y_score": rng.random(3000),
        "k": rng.integers(0, 5, 3000),
    }
    coarse, fine = (
        sm.Slices(sm.MetricSet({"auc": sm.ROCAUC(max_bins=bins)}), by="k").update(rows)
        for bins in (16, 1 << 20)
    )
    for method in ("between_groups", "to_overall"):
        for name in ("gap", "ratio"):
            low, high = getattr(coarse, name)("auc", method=method, confidence=None).bounds
            exact = getattr(fine, name)("auc", method=method, confidence=None)
            assert low <= exact.value <= high
            assert exact.bounds.low == pytest.approx(exact.bounds.high, abs=1e-15)


def test_the_worst_slice_is_surely_bad_and_not_only_small():
    slices = audited(effect=0.3)
    worst = slices.worst("acc", k=10)
    assert worst["group"][0] == "c"
    assert worst["p_adjusted"][0] < 1e-6
    assert worst["acc_high"].tolist() == sorted(worst["acc_high"])
    assert (worst["p_adjusted"] >= worst["p"]).all()
    assert "d" not in slices.worst("acc", min_rows=200)["group"]
    assert len(slices.worst("acc", k=2)) == 2
    best = slices.worst("acc", k=1, lowest=False)
    assert best["group"][0] in {"a", "b"}
    plain = slices.worst("acc", confidence=None)
    assert list(plain) == ["group", "n_rows", "acc"]
    nothing = slices.worst("acc", min_rows=10**6)
    assert list(nothing) == list(worst)
    assert len(nothing) == 0
    assert plain["acc"].tolist() == sorted(plain["acc"])


def test_p_is_that_of_two_samples():
    rows = table(effect=0.1)
    worst = audited(effect=0.1).worst("acc")
    for group, p, rest in zip(worst["group"], worst["p"], worst["acc_rest"], strict=True):
        mask = rows["group"] == group
        right = rows["y_true"] == rows["y_pred"]
        assert rest == right[~mask].mean()
        counts = [[right[m].sum(), (~right[m]).sum()] for m in (mask, ~mask)]
        expected = stats.chi2_contingency(counts, correction=False).pvalue
        assert p == pytest.approx(expected, rel=0.25, abs=0.02)


AT_ONCE = {
    "f1": sm.F1(),
    "f2": sm.FBeta(beta=2.0),
    "precision": sm.Precision(zero_division=0.0),
    "specificity": sm.Specificity(),
    "negative": sm.Recall(pos_label=0, labels=(1, 0)),
    "micro": sm.F1(average="micro"),
    "acc": sm.Accuracy(),
    "error": sm.ZeroOneLoss(),
}


@pytest.mark.parametrize("name", AT_ONCE)
@pytest.mark.parametrize("keys", [1, 2, 60])
def test_slices_read_at_once_are_as_those_read_in_turn(name, keys, monkeypatch):
    rng = np.random.default_rng(4)
    n = 500
    y = rng.integers(0, 2, n)
    key = rng.integers(0, keys, n)
    y[key == 1] = 0  # of one class alone
    rows = {"y_true": y, "y_pred": np.where(rng.random(n) < 0.7, y, 1 - y), "key": key}
    slices = sm.Slices(sm.MetricSet({name: AT_ONCE[name]}), by="key").update(**rows)
    given = {"k": keys, "min_rows": 6}
    found = [slices.worst(name, lowest=low, **given).to_dict() for low in (True, False)]
    monkeypatch.setattr(GroupView, "beside_rest", lambda *_: None)
    turns = [slices.worst(name, lowest=low, **given).to_dict() for low in (True, False)]
    assert str(found) == str(turns)


def test_p_values_of_no_difference_are_uniform():
    found = np.concatenate(
        [
            audited(n=1500, seed=seed).worst("acc", lowest=lowest)["p"]
            for seed in range(60)
            for lowest in (True, False)  # a slice is worse, or better, than the rest
        ]
    )
    assert found.size == 240
    assert 0.02 <= (found < 0.1).mean() <= 0.19
    assert 0.35 <= (found < 0.5).mean() <= 0.65


def test_confidence_of_the_gap_holds_for_the_population():
    held = 0
    for seed in range(40):
        low, high = audited(n=2000, seed=seed, effect=0.2).gap("acc", min_rows=50).confidence
        held += low <= 0.2 <= high
    assert held >= 38


def test_what_has_no_answer_says_why():
    slices = audited()
    with pytest.raises(KeyError, match="no metric 'accu'; did you mean 'acc'"):
        slices.worst("accu")
    with pytest.raises(ValueError, match="'macro' is several numbers"):
        slices.worst("macro")
    with pytest.raises(KeyError, match=r"no slices by \['country'\]"):
        slices.gap("acc", by="country")
    with pytest.raises(ValueError, match="method='range'"):
        slices.gap("acc", method="range")
    several = sm.Slices(sm.MetricSet({"acc": sm.Accuracy()}), by=["a", "b"])
    with pytest.raises(ValueError, match=r"by is required: pass by=\['a'\]"):
        several.gap("acc")
    with pytest.warns(sm.UndefinedMetricWarning, match="gap of 0 slices: none has 1 rows"):
        nothing = several.gap("acc", by="a")
    assert math.isnan(nothing.value)
    ranked = sm.Slices(sm.MetricSet({"max": sm.MaxError()}), by="k")
    ranked.update(y_true=[1.0, 2.0], y_pred=[1.0, 1.0], k=[1, 2])
    with pytest.raises(sm.NoConfidenceError, match="'max': MaxError .*confidence=None goes by the"):
        ranked.worst("max")
    assert ranked.worst("max", confidence=None)["k"].tolist() == [2, 1]
    assert ranked.worst("max", confidence=None, lowest=True)["k"].tolist() == [1, 2]
    plain = sm.Slices(sm.MetricSet({"mean": sm.Mean()}), by="k").update(values=[1.0], k=[1])
    with pytest.raises(ValueError, match="'mean' has no better direction"):
        plain.worst("mean")
    curves = sm.Slices(sm.MetricSet({"roc": sm.ROCCurve()}), by="k")
    curves.update(y_true=[0, 1], y_score=[0.1, 0.2], k=[1, 1])
    with pytest.raises(ValueError, match="'roc' is several numbers, and slices are ranked by one"):
        curves.worst("roc")


def test_one_slice_alone_is_not_apart_from_anything():
    """It was 0, as fairlearn says, with limits as far as those of two such slices."""
    slices = means([0.1, 8.0, 2.0, 3.0], ["a"] * 4)
    for reading, name in ((slices.gap, "gap"), (slices.ratio, "ratio")):
        for method in ("between_groups", "to_overall"):
            told = f"{name} is nan: it takes two slices, and only k=a is there"
            with pytest.warns(sm.UndefinedMetricWarning, match=told):
                found = reading("mean", method=method)
            assert math.isnan(found.value)
            assert math.isnan(found.bounds.high)
            assert found.confidence is None
    two = means([0.1, 8.0, 2.0, 3.0], ["a", "a", "a", "b"])
    with pytest.warns(sm.UndefinedMetricWarning, match="only k=a is there"):
        assert math.isnan(two.gap("mean", min_rows=2).value)
    apart = two.gap("mean", method="to_overall", min_rows=2)  # the others are in all rows
    assert apart.value == pytest.approx(10.1 / 3 - 13.1 / 4)
    assert apart.confidence.low <= apart.value <= apart.confidence.high


def test_a_gap_is_printed_in_one_line():
    slices = means([1.0, 2.0, 4.0, 6.0], [1, 1, 2, 2])
    plain = slices.gap("mean", confidence=None)
    assert str(plain) == "3.5; lowest k=1, highest k=2"
    sure = slices.gap("mean", confidence=0.9)
    low, high = sure.confidence
    assert str(sure) == f"3.5; {low:.6g} .. {high:.6g} (90 %); lowest k=1, highest k=2"
    rows = {"y_true": [0, 1] * 40, "y_score": np.linspace(0, 1, 80), "k": [0, 1, 1, 0] * 20}
    suite = sm.MetricSet({"auc": sm.ROCAUC(max_bins=4)})
    wide = sm.Slices(suite, by="k").update(rows).gap("auc", confidence=None)
    assert f"; certainly {wide.bounds.low:.6g} .. {wide.bounds.high:.6g}; lowest" in str(wide)


def means(values, key):
    suite = sm.MetricSet({"mean": sm.Mean()})
    return sm.Slices(suite, by="k").update(values=values, k=key)


def test_limits_of_a_ratio_of_what_may_be_below_zero_hold_it():
    slices = means([-1.0, 2.0, 4.0, 5.0], [1, 2, 1, 2])
    for method in ("between_groups", "to_overall"):
        found = slices.ratio("mean", method=method)
        assert (found.confidence.low, found.confidence.high) == (-math.inf, 1.0)
        assert found.bounds.low <= found.value <= found.bounds.high


def test_a_ratio_of_values_below_zero_is_undefined():
    slices = means([-1.0, 2.0, -4.0, 5.0], [1, 2, 1, 2])
    for method in ("between_groups", "to_overall"):
        with pytest.warns(sm.UndefinedMetricWarning, match=r"ratio .* 'mean' is below 0 in k=1"):
            found = slices.ratio("mean", method=method)
        assert math.isnan(found.value)
        assert slices.gap("mean", method=method).value > 0


@pytest.mark.parametrize("turn", [1, -1])
def test_where_one_slice_has_no_limits_there_are_none_of_all(turn):
    """One row has no limits: in one order of slices these went lost, in the other they did not."""
    slices = means([1.0, 2.0, 3.0, 2.5, 9.0], [turn * 1, turn * 1, turn * 2, turn * 2, turn * 3])
    with pytest.warns(sm.UndefinedMetricWarning, match="limits that are nan: k=-?3 has none"):
        found = slices.gap("mean")
    assert math.isnan(found.confidence.low)
    assert math.isnan(found.confidence.high)
    assert not math.isnan(slices.gap("mean", min_rows=2).confidence.low)


def test_between_which_slices_may_be_said_by_their_bins():
    suite = sm.MetricSet({"mean": sm.Mean()})
    bins = sm.Bins("age", [30])
    slices = sm.Slices(suite, by=[[bins], ["k", bins]])
    slices.update(values=[1.0, 2.0, 4.0, 6.0], age=[20, 40, 20, 40], k=[1, 1, 2, 2])
    for by in (bins, [bins], "age", ["age"]):
        assert slices.gap("mean", by=by).value == 1.5
        assert len(slices.worst("mean", by=by, lowest=True)) == 1  # the other is better
