"""What was merged into any statistic is taken out of it again, to the byte, or that is refused."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.table import thinned

import streammetrics as sm
from kinds.rows import FIRST, plain_rows, plan_of, state_of, taken
from streammetrics.core.state.arrays import same
from streammetrics.statistics.rankings import RankingBuffer

N = 24


def without(whole, part):
    """Return what is left of a statistic, or why that cannot be."""
    try:
        return whole.minus(part)
    except sm.IncompatibleMetricsError as error:
        return str(error)


@pytest.mark.parametrize("oracle", thinned(FIRST, columns=False))
def test_what_was_merged_is_taken_out_again_or_refused(oracle):
    plan, rows = plan_of(oracle.metric), plain_rows(oracle, N)
    n = len(next(iter(rows.values())))
    first, rest = (
        state_of(plan, taken(rows, part)) for part in (np.arange(n // 4), np.arange(n // 4, n))
    )
    both = plan.merged(first, [rest])
    for whole, less, left in zip(both.statistics, first.statistics, rest.statistics, strict=True):
        found = without(whole, less)
        if isinstance(found, str):
            assert "cannot be computed" in found
        elif whole.arrays():
            assert same(found.arrays(), left.arrays())
            assert "not among" in without(less, whole)


def test_outcomes_of_boxes_that_are_not_there_are_not_taken_out():
    one = {"true_boxes": [[[0, 0, 1, 1]]], "true_labels": [[1]], "pred_boxes": [[[0, 0, 1, 1]]],
           "pred_scores": [[0.5]]}  # fmt: skip
    plan = plan_of(sm.BoxAveragePrecision())
    seen = [state_of(plan, {**one, "pred_labels": [[label]]}) for label in (1, 2)]
    held, other = (state.statistics[0].outcomes for state in seen)
    field = type(seen[0].statistics[0]).outcomes
    both = field.plus(held, other)
    assert field.minus(both, other).keys() == held.keys()
    for wrong in (both, other):
        with pytest.raises(sm.IncompatibleMetricsError, match="outcomes of boxes are not"):
            field.minus(held, wrong)


def refuses(metric):
    """Whether no rows can be taken back: documents count once, or they set an extreme."""
    ranked = any(isinstance(each, RankingBuffer) for each in metric.statistics())
    return ranked or metric == sm.NRMSE(normalization="range")


def halves(oracle, n=N):
    """Return a metric of all rows, of the first quarter, and of the others."""
    rows = plain_rows(oracle, n)
    n = len(next(iter(rows.values())))
    parts = (np.arange(n), np.arange(n // 4), np.arange(n // 4, n))
    return [oracle.metric.copy().update(**taken(rows, part)) for part in parts]


@pytest.mark.parametrize("oracle", thinned(FIRST, columns=False))
def test_a_metric_without_rows_is_as_if_it_had_never_seen_them(oracle):
    whole, first, rest = halves(oracle)
    before = [each.to_bytes() for each in (whole, first)]
    if refuses(oracle.metric):
        with pytest.raises(sm.IncompatibleMetricsError, match="cannot be computed without"):
            whole.without(first)
    else:
        assert whole.without(first).to_bytes() == rest.to_bytes()
    assert whole.without(whole).to_bytes() == whole.copy().reset().to_bytes()
    assert whole.without(whole.copy().reset()).to_bytes() == whole.to_bytes()
    with pytest.raises(sm.IncompatibleMetricsError, match="not among"):
        first.without(whole)
    assert [each.to_bytes() for each in (whole, first)] == before


def rows_of(n, seed=0):
    """Return scored labels with a country, a user, and two models."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    score = np.round(rng.random(n), 2)
    return {
        "y_true": y, "y_score": score, "other": np.round(rng.random(n), 2),
        "country": rng.choice(["DE", "FR", "Nederland"], n), "user": rng.integers(0, 30, n),
        "judge": rng.integers(0, 2, n), "share": rng.uniform(0.1, 1.0, n),
    }  # fmt: skip


def suite(**options):
    metrics = {"auc": sm.ROCAUC(), "f1": sm.F1(threshold=0.5), "loss": sm.LogLoss()}
    return sm.MetricSet(metrics, **options)


SETS = {
    "set": suite,
    "by unit": lambda: suite(unit="user"),
    "slices": lambda: sm.Slices(suite(), by=[[], ["country"], ["country", "user"]]),
    "slices by unit": lambda: sm.Slices(suite(), by=[[], ["country"]], unit="user"),
    "comparison": lambda: sm.Comparison(
        {"auc": sm.ROCAUC(), "f1": sm.F1(threshold=0.5)}, {"a": "y_score", "b": "other"}
    ),
    "estimated": lambda: sm.Estimated(suite(), proxy="judge"),
    "estimated, drawn": lambda: sm.Estimated(suite(), proxy="judge", propensity="share"),
}


def seen(make, rows):
    """Return a new set that has seen the rows, with the columns that it reads."""
    made = make()
    return made.update({name: column for name, column in rows.items() if name in made._needed})


@pytest.mark.parametrize("make", SETS.values(), ids=SETS)
def test_a_users_rows_are_taken_back_from_any_set(make):
    rows = rows_of(400)
    own = rows["user"] % 10 == 3
    whole, less, rest = (seen(make, taken(rows, part)) for part in (slice(None), own, ~own))
    before = whole.to_bytes()
    assert whole.without(less).to_bytes() == rest.to_bytes()
    assert whole.without(rest).to_bytes() == less.to_bytes()
    assert whole.without(whole) == whole.copy().reset()
    assert sm.merge([whole.without(less), less]) == whole
    other = seen(make, rows_of(40, seed=5))
    for wrong in (other, sm.merge([whole, less])):
        with pytest.raises(sm.IncompatibleMetricsError, match="not among"):
            whole.without(wrong)
    assert whole.to_bytes() == before


def test_a_whole_slice_is_taken_back_with_its_key():
    rows = rows_of(400)
    own = rows["country"] == "Nederland"
    make = SETS["slices"]
    whole, less, rest = (seen(make, taken(rows, part)) for part in (slice(None), own, ~own))
    assert whole.without(less).to_bytes() == rest.to_bytes()
    with pytest.raises(sm.IncompatibleMetricsError, match="keys are not here"):
        rest.without(less)


def test_rows_left_out_are_taken_back_too():
    rows = {"y_true": [1.0, np.nan, 3.0, np.nan], "y_pred": [1.0, 2.0, 2.0, 2.0]}
    whole = sm.MAE(nan_policy="omit").update(**rows)
    less = sm.MAE(nan_policy="omit").update([np.nan], [1.0])
    left = whole.without(less)
    assert (left.n_rows, left.n_omitted) == (2, 1)
    with pytest.raises(sm.IncompatibleMetricsError, match="0 omitted rows here, and 1"):
        left.without(less).without(less)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sm.ROCAUC(max_bins=64),
        lambda: sm.KendallTau(max_pairs=64),
        lambda: sm.MedianAbsoluteError(max_bins=64),
        lambda: sm.Silhouette(max_points=64),
        lambda: sm.Slices(suite(), by=[["user"]], max_slices=5, overflow="other"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_past_a_budget_rows_cannot_be_taken_back_and_the_error_says_why(make):
    rng = np.random.default_rng(0)
    rows = {**rows_of(500), "y_score": rng.random(500), "labels": rng.integers(0, 3, 500)}
    rows |= {"y_pred": rng.random(500), "X": rng.random((500, 2))}
    names = make()._needed if isinstance(make(), sm.Slices) else make().inputs
    if "y_pred" in names:
        rows["y_true"] = rng.random(500)
    whole, less = (
        make().update(**{name: rows[name][part] for name in names})
        for part in (slice(None), slice(0, 5))
    )
    before = whole.to_bytes()
    with pytest.raises(sm.IncompatibleMetricsError, match=r"(more than|past) (64|5)"):
        whole.without(less)
    assert whole.to_bytes() == before


def test_an_extreme_is_kept_where_the_rows_taken_back_cannot_have_set_it():
    whole = sm.Maximum().update([1.0, 5.0, 3.0])
    assert whole.without(sm.Maximum().update([3.0])).compute() == 5.0
    for values, match in ([5.0], "cannot be computed"), ([7.0], "not among"):
        with pytest.raises(sm.IncompatibleMetricsError, match=match):
            whole.without(sm.Maximum().update(values))


def test_another_configuration_is_refused():
    with pytest.raises(sm.IncompatibleMetricsError, match=r"out of .*beta"):
        sm.FBeta(beta=1.0).without(sm.FBeta(beta=2.0))
    with pytest.raises(sm.IncompatibleMetricsError, match="Mean"):
        sm.Mean().without(3)


def without_loss(**options):
    return sm.MetricSet({"auc": sm.ROCAUC(), "f1": sm.F1(threshold=0.5)}, **options)


@pytest.mark.parametrize("kept", ["positive", "some"])
@pytest.mark.parametrize(
    "make",
    [
        without_loss,
        lambda: without_loss(unit="user"),
        lambda: sm.Slices(without_loss(), by=[[], ["country"], ["country", "user"]]),
        sm.ROCAUC,
        lambda: sm.F1(threshold=0.5),
        sm.AveragePrecision,
    ],
)
def test_the_negative_label_is_taken_back_with_the_last_row_of_it(make, kept):
    rows = rows_of(200)
    own = rows["y_true"] == 0
    if kept == "some":
        own &= (rows["country"] != "DE") & (rows["user"] != 7)
    names = make()._needed if isinstance(make(), sm.MetricSet) else make().inputs
    whole, less, rest = (
        make().update(**{name: rows[name][part] for name in names})
        for part in (slice(None), own, ~own)
    )
    assert whole.without(less).to_bytes() == rest.to_bytes()


@pytest.mark.parametrize(
    "metric",
    [
        sm.F1(average="macro", multilabel=True, ignore_index=-1),
        sm.MultilabelConfusionMatrix(ignore_index=-1),
        sm.SubsetAccuracy(ignore_index=-1),
        sm.ROCAUC(multilabel=True, ignore_index=-1),
        sm.CalibrationError(multilabel=True, ignore_index=-1),
    ],
    ids=repr,
)
def test_rows_without_a_known_label_are_left(metric):
    truth, judged = [[1, 0], [-1, -1]], [[1, 0], [0, 1]]
    both, known, unknown = (
        metric.copy().update(truth[part], judged[part])
        for part in (slice(2), slice(1), slice(1, 2))
    )
    assert both.without(known).to_bytes() == unknown.to_bytes()
    assert both.without(unknown).to_bytes() == known.to_bytes()
    assert both.without(both).n_rows == 0
