"""The worst slices and how far apart they are, where rows of one user hang together."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import streammetrics as sm


def rows(n=2000, seed=0, effect=0.0, users=200):
    """Rows of users who are easy or hard, each with rows in every group."""
    rng = np.random.default_rng(seed)
    user, group = rng.integers(0, users, n), rng.integers(0, 3, n)
    easy = rng.beta(2, 1, users)[user] - effect * (group == 1)
    right = (rng.random(n) < easy).astype(int)
    return {"y_true": np.ones(n, int), "y_pred": right, "user": user, "group": group}


def sliced(data, by=(("group",),), **metrics):
    suite = sm.MetricSet(metrics or {"acc": sm.Accuracy()})
    return sm.Slices(suite, by=[list(spec) for spec in by], unit="user").update(data)


def test_limits_of_the_worst_are_those_of_units_and_not_of_rows():
    data = rows(effect=0.2)
    slices = sliced(data)
    by_row, by_user = slices.worst("acc", unit=None), slices.worst("acc", unit="user")
    told = slices.confidence(unit="user").to_dict()
    for place, group in enumerate(by_user["group"].tolist()):
        at = told["group"].index(group)
        assert by_user["acc_low"][place] == told["acc_low"][at]
        assert by_user["acc_high"][place] == told["acc_high"][at]
    assert (by_user["acc_high"] - by_user["acc_low"] > by_row["acc_high"] - by_row["acc_low"]).all()
    assert by_user["group"][0] == 1
    assert by_user["acc_rest"].tolist() == by_row["acc_rest"].tolist()
    assert (by_user["p_adjusted"] >= by_user["p"]).all()


def test_p_by_unit_is_that_of_a_jackknife_of_the_difference():
    data = rows(n=300, effect=0.2, users=12)
    slices = sliced(data)
    hashes = slices.worst("acc", unit="user").to_dict()
    right = data["y_pred"]
    # Each group of users is one user here, unless two share a hash.
    groups = {
        user: sm.Slices(sm.MetricSet({"n": sm.Count()}), by=[[]], unit="user")
        .update(values=[1.0], user=[user])
        .to_bytes()
        for user in range(12)
    }
    kinds = sorted(set(groups.values()))
    group_of = np.array([kinds.index(groups[user]) for user in data["user"].tolist()])
    for place, group in enumerate(hashes["group"]):
        inside = data["group"] == group

        def apart(kept, inside=inside):
            return right[kept & inside].mean() - right[kept & ~inside].mean()

        without = [apart(group_of != each) for each in range(len(kinds))]
        error = math.sqrt((len(kinds) - 1) * np.var(without))
        t = abs(apart(np.ones(300, bool))) / error
        assert hashes["p"][place] == pytest.approx(2 * stats.t.sf(t, len(kinds) - 1), rel=1e-9)


@pytest.mark.long
def test_users_that_are_in_one_slice_alone_are_not_taken_for_as_many_rows():
    """By rows equal groups of users look different; by users they do in one of twenty cases."""
    found = {None: 0, "user": 0}
    for seed in range(60):
        data = rows(n=900, seed=seed, users=90)
        data["group"] = data["user"] % 2
        slices = sliced(data)
        for unit in found:
            found[unit] += slices.worst("acc", k=1, unit=unit)["p"][0] < 0.05
    assert found[None] > 8
    assert found["user"] <= 8


def test_gap_and_ratio_by_unit_are_wider():
    slices = sliced(rows(effect=0.2))
    for name in ("gap", "ratio"):
        for method in ("between_groups", "to_overall"):
            read = getattr(slices, name)
            by_row, by_user = (read("acc", method=method, unit=unit) for unit in (None, "user"))
            assert by_user.value == by_row.value
            assert by_user.bounds == by_row.bounds
            narrow, wide = by_row.confidence, by_user.confidence
            assert wide.high - wide.low > narrow.high - narrow.low
            assert "groups of units" in wide.method


def test_a_metric_without_limits_by_row_has_them_here():
    rng = np.random.default_rng(3)
    data = rows()
    data["y_true"] = rng.normal(size=2000)
    data["y_pred"] = data["y_true"] + rng.normal(size=2000) * (1 + data["group"])
    slices = sliced(data, r2=sm.R2())
    with pytest.raises(sm.NoConfidenceError, match="R2 has no confidence interval"):
        slices.worst("r2", unit=None)
    worst = slices.worst("r2", unit="user")
    assert worst["group"].tolist() == [2]  # the others are better than the rest
    assert worst["p"][0] < 1e-6


def test_another_unit_than_is_kept_is_refused():
    slices = sliced(rows(n=50))
    with pytest.raises(ValueError, match="units are kept by 'user'"):
        slices.worst("acc", unit="usr")
    with pytest.raises(ValueError, match="units are kept by 'user'"):
        slices.gap("acc", unit="usr")
    plain = sm.Slices(sm.MetricSet({"acc": sm.Accuracy()}), by="group")
    with pytest.raises(ValueError, match="no units are kept"):
        plain.ratio("acc", unit="user")


def test_a_slice_of_one_user_has_no_limits_by_unit():
    data = rows(n=200)
    data["group"] = np.where(np.arange(200) < 5, 7, data["group"])
    data["user"] = np.where(np.arange(200) < 5, 1, data["user"])
    slices = sliced(data)
    worst = slices.worst("acc", unit="user")
    assert np.isnan(worst["acc_low"][-1])
    with pytest.warns(sm.UndefinedMetricWarning, match=r"limits that are nan: group=7 has none"):
        gap = slices.gap("acc", unit="user")
    assert np.isnan(gap.confidence.low)
    assert np.isnan(gap.confidence.high)
    assert slices.gap("acc", unit="user", min_rows=20).confidence.low >= 0
