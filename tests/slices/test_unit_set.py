"""A set with a unit: it reads as the set does, and has limits of a sample of units."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.inference.units import UnitInfluence


def rows(n=600, seed=0):
    rng = np.random.default_rng(seed)
    easy = np.repeat(rng.beta(2, 1, n // 10), 10)
    y = rng.integers(0, 2, n)
    score = np.clip(0.5 + (2 * y - 1) * (easy - 0.4) + 0.1 * rng.normal(size=n), 0, 1)
    return {"label": y, "score": score, "user": np.arange(n) // 10}


METRICS = {"f1": sm.F1(threshold=0.5), "auc": sm.ROCAUC(), "loss": sm.LogLoss()}
COLUMNS = {"y_true": "label", "y_score": "score"}


def suite(unit="user"):
    return sm.MetricSet(METRICS, columns=COLUMNS, unit=unit)


def test_it_reads_as_the_set_does():
    plain, by_user = suite(None).update(rows()), suite().update(rows())
    assert by_user.compute() == plain.compute()
    assert by_user.bounds() == plain.bounds()
    assert by_user.confidence(0.9, unit=None) == plain.confidence(0.9)
    assert by_user.n_rows == plain.n_rows
    assert by_user.exact
    assert {name: metric.compute() for name, metric in by_user.items()} == plain.compute()
    assert by_user["auc"].confidence(unit=None) == plain["auc"].confidence()
    assert list(by_user) == list(plain)
    assert suite().batch(rows()) == plain.compute()
    assert repr(by_user) == repr(plain).replace("})", "}, columns=X)").replace(
        "columns=X", "unit='user'"
    )


def test_its_limits_are_about_those_of_slices_of_all_rows():
    """The slices have 64 groups of users, and the set has the users."""
    by_user = suite().update(rows(30_000))
    slices = sm.Slices(suite(None), by=[[]], unit="user").update(rows(30_000))
    table = slices.confidence(0.9, unit="user")
    for name, interval in by_user.confidence(0.9, unit="user").items():
        groups = table[f"{name}_high"][0] - table[f"{name}_low"][0]
        assert interval.high - interval.low == pytest.approx(groups, rel=0.2)
        assert by_user[name].confidence(0.9, unit="user") == interval
        assert interval.method == "3,000 units, Student's t"
    by_user = suite().update(rows())
    low, high = by_user.confidence(0.9, unit=None)["f1"]
    wide = by_user.confidence(0.9, unit="user")["f1"]
    assert wide.high - wide.low > high - low


def test_its_state_is_that_of_the_rows_however_they_come():
    whole, data = suite().update(rows()), rows()
    rng = np.random.default_rng(1)
    parts = np.split(rng.permutation(600), [5, 100, 101, 450])
    shards = [suite().update({k: v[part] for k, v in data.items()}) for part in parts]
    for merged in (sm.merge(shards), sm.merge(shards[::-1])):
        assert merged.to_bytes() == whole.to_bytes()
    back = sm.from_bytes(whole.to_bytes())
    assert type(back) is type(whole)
    assert back.confidence(unit="user") == whole.confidence(unit="user")
    assert pickle.loads(pickle.dumps(whole)) == whole
    assert whole.copy().reset().update(data) == whole
    assert sm.evaluate(suite(), [data]).to_bytes() == whole.to_bytes()


def test_metrics_without_limits_by_row_have_them_by_unit():
    rng = np.random.default_rng(2)
    y = rng.normal(size=2000)
    data = {"y_true": y, "y_pred": y + 0.3 * rng.normal(size=2000), "row": np.arange(2000)}
    fit = sm.MetricSet({"r2": sm.R2(), "largest": sm.MaxError()}, unit="row").update(data)
    low, high = fit["r2"].confidence(unit="row")
    assert low < fit["r2"].compute() < high
    assert high - low < 0.1


def test_what_is_no_number_says_so():
    matrix = sm.MetricSet({"curve": sm.ROCCurve()}, columns=COLUMNS, unit="user").update(rows())
    with pytest.warns(sm.UndefinedMetricWarning, match="'curve': its value is not one number"):
        assert np.isnan(matrix.confidence(unit="user")["curve"].low)
    with pytest.raises(sm.NoConfidenceError, match="ROCCurve has no .* not one number"):
        matrix["curve"].confidence(unit="user")


def test_slices_of_what_is_no_number_say_so():
    metrics = {"report": sm.ClassificationReport(), "accuracy": sm.Accuracy()}
    rng = np.random.default_rng(0)
    data = {"y_true": rng.integers(0, 3, 90), "y_pred": rng.integers(0, 3, 90)}
    data |= {"g": rng.integers(0, 2, 90), "user": np.arange(90) % 15}
    slices = sm.Slices(metrics, by="g", unit="user").update(data)
    with pytest.warns(sm.UndefinedMetricWarning, match="'report': .* not one number"):
        found = slices[{"g": 1}].confidence()
    assert np.isnan(found["report"].low)
    assert found["accuracy"].low < slices[{"g": 1}]["accuracy"].compute()


def test_mistakes_say_what_is_kept():
    data = rows()
    with pytest.raises(ValueError, match=r"no units are kept; MetricSet\(.*unit='user'\)"):
        suite(None).confidence(unit="user")
    with pytest.raises(ValueError, match="no units are kept"):
        sm.Accuracy().confidence(unit="user")
    with pytest.raises(ValueError, match="units are kept by 'user'"):
        suite().confidence(unit="usr")
    with pytest.raises(ValueError, match="hold at one time only"):
        suite()["f1"].confidence(unit="user", anytime=True)
    by_user = suite().update(data)
    before = by_user.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match="user"):
        by_user.update({name: column for name, column in data.items() if name != "user"})
    with pytest.raises(
        sm.InvalidBatchError, match=r"is missing \(NaN or null\) in .*; every row needs a unit"
    ):
        by_user.update({**data, "user": [None, *data["user"][1:].tolist()]})
    assert by_user.to_bytes() == before
    with pytest.raises(sm.IncompatibleMetricsError, match="unit is 'other' there and 'user' here"):
        by_user.merge(suite("other"))
    with pytest.raises(sm.IncompatibleMetricsError, match="unit is None there and 'user' here"):
        by_user.merge(suite(None))
    with pytest.raises(sm.IncompatibleMetricsError, match="unit is 'user' there and None here"):
        suite(None).merge(by_user)
    with pytest.raises(TypeError, match="Slices are of a MetricSet, not of a UnitSet"):
        sm.Slices(suite(), by="label")
    with pytest.raises(ValueError, match="expected the name of a column"):
        sm.MetricSet(METRICS, unit=3)


def test_limits_of_one_unit_are_nan_and_warn():
    """As limits by row do; the set and its metrics said nothing."""
    one = sm.MetricSet({"acc": sm.Accuracy()}, unit="user")
    one.update(y_true=[1, 0], y_pred=[1, 1], user=[7, 7])
    with pytest.warns(sm.UndefinedMetricWarning, match="'acc' has limits that are nan: its units"):
        assert np.isnan(one.confidence(unit="user")["acc"].low)
    with pytest.warns(sm.UndefinedMetricWarning, match="Accuracy has limits that are nan"):
        assert np.isnan(one["acc"].confidence(unit="user").high)


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("metric", [sm.F1(), sm.F1(average=None, labels=[0, 1]), sm.ROCAUC()])
def test_no_rows_have_no_units(metric):
    limits = sm.MetricSet({"value": metric}, unit="user").confidence()["value"]
    assert limits.method == "0 units, Student's t"
    assert np.isnan(limits.low).all()


@pytest.mark.parametrize(
    "share",
    [
        np.full(8, 0.125),
        np.array([0.5, 0.25, 0.25]),
        np.array([*[2.0**-51] * 11, 1 - 11 * 2.0**-51]),  # one unit has almost all rows
        np.array([1e-300, 1e-12, 1 - 1e-12]),
    ],
)
def test_degrees_of_freedom_do_not_cancel(share):
    found = UnitInfluence(-1 - np.arange(len(share)), np.zeros(len(share)), share).df
    h = [Fraction(float(part)) for part in share]
    e = [part**2 / (1 - part) for part in h]
    exact = 1 / (sum(part**2 for part in h) + sum(e) ** 2 - sum(part**2 for part in e))
    assert found == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("metric", [sm.CalibrationError(), sm.KSDistance(), sm.Wasserstein()])
def test_values_that_chance_raises_have_no_limits_by_unit(metric):
    dice = np.random.default_rng(0)
    columns = {"y_score": "x", "values": "x", "y_true": "y", "sample": "y"}
    columns = {name: columns[name] for name in metric.inputs}
    rows = {"x": dice.random(200), "y": dice.integers(0, 2, 200), "u": np.arange(200) % 50}
    suite = sm.MetricSet({"m": metric}, columns=columns, unit="u").update(rows)
    with pytest.warns(sm.UndefinedMetricWarning, match=r"'m': .* too large by what is not known"):
        limits = suite.confidence()["m"]
    assert np.isnan([limits.low, limits.high]).all()
    with pytest.raises(sm.NoConfidenceError, match="too large by what is not known"):
        suite["m"].confidence(unit="u")
