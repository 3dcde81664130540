"""What the missing labels could do is what enumerating all of them finds."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import strategies as st
from live.events import START
from thinning import drawn

import streammetrics as sm
from streammetrics.core.state.container import packed, unpacked

SUITE = {
    "auc": sm.ROCAUC(),
    "loss": sm.LogLoss(),
    "brier": sm.BrierScore(),
    "accuracy": sm.Accuracy(threshold=0.5),
    "precision": sm.Precision(threshold=0.5),
    "recall": sm.Recall(threshold=0.5),
    "f1": sm.F1(threshold=0.5),
    "fbeta": sm.FBeta(threshold=0.5, beta=2.0),
    "jaccard": sm.Jaccard(threshold=0.5),
    "specificity": sm.Specificity(threshold=0.5),
    "fpr": sm.FalsePositiveRate(threshold=0.5),
    "fnr": sm.FalseNegativeRate(threshold=0.5),
    "npv": sm.NegativePredictiveValue(threshold=0.5),
    "balanced": sm.BalancedAccuracy(threshold=0.5),
    "mcc": sm.MatthewsCorrcoef(threshold=0.5),
    "kappa": sm.CohenKappa(threshold=0.5),
    "gmean": sm.GMean(threshold=0.5),
    "wrong": sm.ZeroOneLoss(threshold=0.5),
    "fdr": sm.FalseDiscoveryRate(threshold=0.5),
    "informed": sm.Informedness(threshold=0.5),
    "ap": sm.AveragePrecision(),
    "ks": sm.KolmogorovSmirnov(),
    "ece": sm.CalibrationError(n_bins=4),
    "rmsce": sm.CalibrationError(n_bins=4, norm="l2"),
    "mce": sm.CalibrationError(n_bins=4, norm="max", strategy="quantile"),
    "table": sm.ConfusionMatrix(threshold=0.5),
    "area": sm.PRAUC(),
    "partial": sm.ROCAUC(max_fpr=0.5),
    "micro": sm.F1(threshold=0.5, average="micro"),
}
WITHOUT = {"table", "area", "partial", "micro"}


def values(suite):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sm.UndefinedMetricWarning)
        return suite.compute()


def agrees(interval, every, name):
    """Check an interval with the values of all labelings."""
    defined = [value for value in every if not math.isnan(value)]
    if not defined:
        assert interval is None, name
        return
    assert interval is not None, name
    assert interval.low == pytest.approx(min(defined), abs=1e-9), name
    assert interval.high == pytest.approx(max(defined), abs=1e-9), name
    assert interval.low <= min(defined), name
    assert max(defined) <= interval.high, name


LATER = {"wait": None, "some left": 1900, "left": 3400}  # when the newest prediction is
WINDOW = {"length": "1h", "end": START + 1560}


def served(metrics, scores, known, name="y_score", way="wait", **parameters):
    """Return rows half of which are 25 minutes younger; the last of them have no label."""
    live = sm.Live(metrics, label_ttl="5min", label_lateness="25min", **parameters)
    times = [START + 1500 * (place % 2) for place in range(len(scores))]
    live.predict(id=range(len(scores)), time=times, **{name: scores})
    if known:
        live.label(id=range(len(known)), time=times[: len(known)], y_true=known)
    if LATER[way]:
        live.predict(id="later", time=START + LATER[way], **{name: scores[0]})
        live.flush()
        assert len(live._shared.current.join.table) == {"left": 1}.get(way, 1 + len(scores) // 2)
    return live


def asked(metrics, scores, labels, name="y_score", declared=None, **parameters):
    """Return what is possible where the last rows have no label, which wait or have left."""
    found = []
    for way in LATER:
        live = served(metrics, scores, labels, name, way, **(declared or {}))
        found.append(live.possible(**WINDOW, **parameters))
    assert sm.from_bytes(live.to_bytes()).possible(**WINDOW, **parameters) == found[0]
    assert found[0] == found[1] == found[2]
    return found[0]


@pytest.mark.parametrize(
    "seed", [*range(5), *[pytest.param(n, marks=pytest.mark.long) for n in range(5, 40)]]
)
def test_intervals_are_those_of_all_labelings(seed):
    dice = np.random.default_rng(seed)
    known, missing = int(dice.integers(0, 7)), int(dice.integers(1, 6))
    scores = dice.integers(1, dice.choice([4, 8, 64]), known + missing) / 64
    if seed % 2:
        scores = 1 - scores
    labels = dice.integers(0, 2, known)
    found = asked(sm.MetricSet(SUITE), scores.tolist(), labels.tolist())
    every = []
    for rest in itertools.product([0, 1], repeat=missing):
        suite = sm.MetricSet(SUITE)
        every.append(values(suite.update(y_true=[*labels.tolist(), *rest], y_score=scores)))
    assert {name: found[name] for name in WITHOUT} == dict.fromkeys(WITHOUT)
    for name in SUITE.keys() - WITHOUT:
        agrees(found[name], [one[name] for one in every], name)


@pytest.mark.parametrize(
    "seed", [3, 67, *[pytest.param(n, marks=pytest.mark.long) for n in range(100, 400)]]
)
def test_calibration_errors_are_those_of_all_labelings_to_the_last_bit(seed):
    """Seed 67: the sum of scores of a bin lies between two counts by less than its rounding."""
    dice = np.random.default_rng(seed)
    known, missing = int(dice.integers(0, 7)), int(dice.integers(1, 7))
    ways = (
        dice.random,
        lambda n: dice.integers(1, 20, n) / 20,
        lambda n: np.round(dice.random(n), 2),
        lambda n: dice.integers(1, 10, n) / 10,
    )
    scores = ways[seed % 4](known + missing)
    labels = dice.integers(0, 2, known).tolist()
    metrics = {name: SUITE[name] for name in ("ece", "rmsce", "mce")}
    found = served(sm.MetricSet(metrics), scores.tolist(), labels).possible(**WINDOW)
    every = [
        sm.MetricSet(metrics).update(y_true=[*labels, *rest], y_score=scores).compute()
        for rest in itertools.product([0, 1], repeat=missing)
    ]
    for name, interval in found.items():
        each = [one[name] for one in every]
        assert interval == (min(each), max(each)), name


@pytest.mark.parametrize("two", [("no", "yes"), (7, 3), (0, 1), (1, 0)])
@pytest.mark.parametrize("seed", range(2))
def test_labels_may_be_any_two(two, seed):
    dice = np.random.default_rng(seed)
    metrics = {
        "auc": sm.ROCAUC(pos_label=two[1]),
        "loss": sm.LogLoss(pos_label=two[1], labels=two),
        "f1": sm.F1(threshold=0.5, pos_label=two[1]),
        "ks": sm.KolmogorovSmirnov(pos_label=two[1], labels=two),
        "ece": sm.CalibrationError(pos_label=two[1], n_bins=3),
    }
    scores = (dice.integers(1, 8, 8) / 8).tolist()
    labels = [two[n] for n in dice.integers(0, 2, 4)]
    found = asked(sm.MetricSet(metrics), scores, labels)
    every = [
        values(sm.MetricSet(metrics).update(y_true=[*labels, *rest], y_score=scores))
        for rest in itertools.product(two, repeat=4)
    ]
    for name, interval in found.items():
        agrees(interval, [one[name] for one in every], name)


@pytest.mark.parametrize("seed", range(6))
def test_predicted_classes(seed):
    dice = np.random.default_rng(seed)
    names = ["ant", "bee", "cat"][: 2 + seed % 2]
    metrics = {"accuracy": sm.Accuracy(), "wrong": sm.ZeroOneLoss(normalize=False)}
    if len(names) == 2:
        metrics["recall"] = sm.Recall(pos_label="bee")
        metrics["mcc"] = sm.MatthewsCorrcoef(labels=names, pos_label="bee")
    predicted = [names[n] for n in dice.integers(0, len(names), 6)]
    labels = [names[n] for n in dice.integers(0, len(names), 3)]
    declared = {"labels": names}
    found = asked(sm.MetricSet(metrics), predicted, labels, "y_pred", declared)
    every = [
        values(sm.MetricSet(metrics).update(y_true=[*labels, *rest], y_pred=predicted))
        for rest in itertools.product(names, repeat=3)
    ]
    for name, interval in found.items():
        agrees(interval, [one[name] for one in every], name)
    suite = sm.MetricSet({"f1": sm.F1(average="macro")})
    several = asked(suite, predicted, labels, "y_pred", declared)
    assert several == {"f1": None}


ERRORS = {
    "mae": sm.MAE(),
    "huber": sm.HuberLoss(delta=1.0),
    "logcosh": sm.LogCoshError(),
    "bias": sm.MeanError(),
    "pinball": sm.PinballLoss(alpha=0.8),
    "median": sm.MedianAbsoluteError(),
    "quantile": sm.AbsoluteErrorQuantile(q=0.9),
    "most": sm.MaxError(),
    "msle": sm.MSLE(),
    "rmsle": sm.RMSLE(),
    "mape": sm.MAPE(),
    "smape": sm.SMAPE(),
    "r2": sm.R2(),
    "wape": sm.WAPE(),
}


@pytest.mark.parametrize("seed", range(4))
def test_errors_over_all_targets_of_a_range(seed):
    dice = np.random.default_rng(seed)
    predicted, labels = dice.integers(1, 40, 6) / 4, dice.integers(1, 20, 3) / 2
    low, high = sorted((dice.integers(1, 20, 2) / 2 + [0.0, 0.25]).tolist())
    found = asked(
        sm.MetricSet(ERRORS), predicted.tolist(), labels.tolist(), "y_pred",
        target_range=(low, high),
    )  # fmt: skip
    grid = [
        sorted({low, (low + high) / 2, high, float(np.clip(guess, low, high))})
        for guess in predicted[3:]
    ]
    every = [
        values(sm.MetricSet(ERRORS).update(y_true=[*labels, *rest], y_pred=predicted))
        for rest in itertools.product(*grid)
    ]
    assert found["r2"] is found["wape"] is None
    for name in ERRORS.keys() - {"r2", "wape"}:
        agrees(found[name], [one[name] for one in every], name)


@pytest.mark.parametrize("seed", range(2))
def test_an_area_is_sought_among_all_numbers_of_positives(seed):
    dice = np.random.default_rng(seed)
    scores, labels = dice.integers(0, 5, 100) / 5, dice.integers(0, 2, 10)
    found = asked(sm.ROCAUC(), scores.tolist(), labels.tolist())
    order = 10 + np.argsort(scores[10:], kind="stable")
    areas = []
    for k in range(91):
        for positive in (order[:k], order[90 - k :]):
            every = np.zeros(100, int)
            every[:10], every[positive] = labels, 1
            areas.append(sm.ROCAUC().update(every, scores).compute())
    assert found.low == min(areas)
    assert found.high == max(areas)


def test_many_rows_have_certain_limits():
    dice = np.random.default_rng(0)
    scores = dice.random(30_000)
    labels = (dice.random(30_000) < scores).astype(int)
    metrics = {"ks": sm.KolmogorovSmirnov(), "auc": sm.ROCAUC(), "ap": sm.AveragePrecision()}
    live = sm.Live(sm.MetricSet(metrics)).predict(
        id=np.arange(30_000), time=np.full(30_000, START), y_score=scores
    )
    live.label(id=np.arange(15_000), time=np.full(15_000, START), y_true=labels[:15_000])
    found = live.possible("1min")
    whole = sm.MetricSet(metrics).update(y_true=labels, y_score=scores).compute()
    assert found["ap"] is None
    for name in ("ks", "auc"):
        assert found[name].low < whole[name] < found[name].high


def test_errors_need_a_range_of_targets():
    live = sm.Live(sm.MetricSet({"mae": sm.MAE(), "rmse": sm.RMSE(), "r2": sm.R2()}))
    live.observe(time=START, y_true=3.0, y_pred=2.0)
    live.predict(id=1, time=START, y_pred=1.0).predict(id=2, time=START, y_pred=7.0)
    assert live.possible("1min") == {"mae": None, "rmse": None, "r2": None}
    found = live.possible("1min", target_range=(0.0, 5.0))
    assert found["mae"] == sm.Interval((1 + 0 + 2) / 3, (1 + 4 + 7) / 3)
    assert found["rmse"].high == pytest.approx(math.sqrt((1 + 16 + 49) / 3))
    assert found["r2"] is None


def test_without_missing_labels_it_is_what_is_known():
    live = sm.Live(sm.ROCAUC()).observe(time=START, y_true=1, y_score=0.5)
    live.observe(time=START, y_true=0, y_score=0.25)
    assert live.possible("1min") == sm.Interval(1.0, 1.0)
    live.predict(id=1, time=START, y_score=0.75)
    assert live.possible("1min") == sm.Interval(0.5, 1.0)


def test_a_label_that_never_comes_is_none_where_it_has_a_default():
    live = sm.Live(sm.Accuracy(threshold=0.5), label_ttl="5min", default_label=0)
    live.predict(id=1, time=START, y_score=0.75)
    assert live.possible("1h") == sm.Interval(0.0, 1.0)
    assert live.now(START + 301).possible("1h") == sm.Interval(0.0, 0.0)


def test_rows_that_left_without_a_label_stay_possible_in_every_tier():
    live = sm.Live(
        sm.Accuracy(threshold=0.5),
        tiers=[("1min", "15min"), ("5min", "2h")],
        label_ttl="5min",
        label_lateness="5min",
    )
    live.predict(id=1, time=START, y_score=0.75).observe(time=START + 900, y_true=1, y_score=1.0)
    assert live.possible("1h") == sm.Interval(0.5, 1.0)
    assert live.possible("1min") == sm.Interval(1.0, 1.0)
    live.observe(time=START + 3600, y_true=1, y_score=1.0)
    assert live.possible("2h") == sm.Interval(2 / 3, 1.0)
    live.observe(time=START + 7200, y_true=1, y_score=1.0)  # its pane is kept no longer
    assert live.possible("2h") == sm.Interval(1.0, 1.0)


def test_displaced_rows_stay_possible():
    found = {}
    for most in (16, 1000):
        live = sm.Live(sm.MetricSet(SUITE), max_pending=most, default_label=0)
        for place in range(100):
            live.predict(id=place, time=START + place / 4, y_score=place % 7 / 7)
        live.label(id=99, time=START + 100, y_true=1)
        if most == 16:
            with pytest.warns(UserWarning, match="max_pending=16"):
                live.flush()
            assert live.coverage("1min").displaced > 80
        found[most] = live.possible("1min")
    assert found[16] == found[1000]
    assert found[16]["auc"].low < found[16]["auc"].high


def test_of_rows_that_left_before_states_remembered_them_nothing_is_certain():
    live = served(sm.MetricSet(SUITE), [0.25, 0.5, 0.75], [1], way="some left")
    file = unpacked(live.to_bytes())
    told = {name: value for name, value in file.meta.items() if name not in {"left", "checksum"}}
    arrays = {name: array for name, array in file.arrays.items() if not name.startswith("left/")}
    older = packed(told, arrays)  # as states were written then
    restored = sm.from_bytes(older)
    assert set(restored.possible(**WINDOW).values()) == {None}
    assert restored.to_bytes() == older
    assert live.possible(**WINDOW)["auc"] is not None


@pytest.mark.parametrize("way", LATER)
def test_of_rows_with_weights_or_with_several_scores_nothing_is_said(way):
    columns = {"y_true": "y_true", "y_score": "y_score", "sample_weight": "w"}
    suite = sm.MetricSet({"f1": sm.F1(threshold=0.5), "auc": sm.ROCAUC()}, columns=columns)
    live = sm.Live(suite, label_ttl="5min", label_lateness="25min")
    live.predict(id=1, time=START, y_score=0.5, w=2.0)
    live.predict(id=2, time=START + 1500, y_score=0.5, w=2.0)
    types = {"y_score": 2}
    wide = served(sm.ROCAUC(), [[0.25, 0.75], [0.5, 0.5]], [1], way=way, types=types)
    assert wide.possible(**WINDOW) is None
    if LATER[way]:
        live.predict(id=3, time=START + LATER[way], y_score=0.5, w=2.0)
    assert live.possible(**WINDOW) == {"f1": None, "auc": None}


ROUGH = {
    "auc": sm.ROCAUC(max_bins=3),
    "ap": sm.AveragePrecision(max_bins=3),
    "ks": sm.KolmogorovSmirnov(max_bins=3),
    "ece": sm.CalibrationError(n_bins=3, max_bins=3),
    "rmsce": sm.CalibrationError(n_bins=3, norm="l2", max_bins=3),
    "mce": sm.CalibrationError(n_bins=2, norm="max", strategy="quantile", max_bins=4),
    "loss": sm.LogLoss(),
    "f1": sm.F1(threshold=0.5),
}
FINE = {
    name: type(metric)(**{**metric.config, "max_bins": 1 << 20})
    if "max_bins" in metric.config
    else metric
    for name, metric in ROUGH.items()
}


@pytest.mark.parametrize(
    "seed", [*range(3), *[pytest.param(n, marks=pytest.mark.long) for n in range(3, 40)]]
)
def test_scores_that_share_cells_have_certain_limits(seed):
    dice = np.random.default_rng(seed)
    known, missing = int(dice.integers(0, 7)), int(dice.integers(2, 6))
    scores = dice.integers(1, 64, known + missing) / 64
    labels = dice.integers(0, 2, known).tolist()
    found = {
        way: served(sm.MetricSet(ROUGH), scores.tolist(), labels, way=way).possible(**WINDOW)
        for way in LATER
    }
    exact = served(sm.MetricSet(FINE), scores.tolist(), labels).possible(**WINDOW)
    for rest in itertools.product([0, 1], repeat=missing):
        suite = sm.MetricSet(FINE).update(y_true=[*labels, *rest], y_score=scores)
        for name, value in values(suite).items():
            for intervals in found.values():
                low, high = intervals[name]
                assert math.isnan(value) or low - 1e-12 <= value <= high + 1e-12, name
    for name in ("loss", "f1"):
        assert all(intervals[name] == exact[name] for intervals in found.values())


def test_predictions_that_share_cells_have_certain_limits(monkeypatch):
    monkeypatch.setattr("streammetrics.live.possible.targets._CELLS", 2)
    suite = {**ERRORS, "median": sm.MedianAbsoluteError(max_bins=2)}
    dice = np.random.default_rng(0)
    predicted, labels = (dice.integers(1, 40, 8) / 4).tolist(), [3.0, 5.0, 2.0]
    target = {"target_range": (2.0, 6.0)}
    rough = served(sm.MetricSet(suite), predicted, labels, "y_pred", "left")
    fine = served(sm.MetricSet(ERRORS), predicted, labels, "y_pred")
    rough, fine = rough.possible(**WINDOW, **target), fine.possible(**WINDOW, **target)
    for name in ERRORS.keys() - {"r2", "wape"}:
        assert rough[name].low <= fine[name].low <= fine[name].high <= rough[name].high, name
    assert rough["mae"] != fine["mae"]


@pytest.mark.parametrize("wrong", [(3, 0), (math.nan, 1), (0,), 5, ("a", 1)])
def test_a_range_of_targets_that_is_none_is_refused(wrong):
    state = sm.Live(sm.MAE()).predict(id=1, time=START, y_pred=1.0)
    with pytest.raises(ValueError, match="target_range=.*: expected the least and the largest"):
        state.possible("1min", target_range=wrong)


late = st.tuples(
    st.integers(0, 1500),  # when the prediction is made
    st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),
    st.none() | st.tuples(st.integers(0, 400), st.integers(0, 1)),  # its label
)


@drawn(
    6,
    40,
    st.lists(late, min_size=1, max_size=25),
    st.randoms(use_true_random=False),
    st.sampled_from([None, 0]),
)
def test_it_is_the_same_whether_rows_wait_or_have_left(rows, random, default):
    metrics = {name: SUITE[name] for name in ("auc", "loss", "f1", "ece")}

    def made(lateness):
        return sm.Live(
            sm.MetricSet(metrics),
            tiers=[("1min", "6min"), ("5min", "30min")],
            label_ttl="5min",
            label_lateness=lateness,
            default_label=default,
        )

    waiting, whole, *workers = made("1d"), made("10min"), *[made("10min") for _ in range(2)]
    events = [(time, "predict", place, score) for place, (time, score, _) in enumerate(rows)]
    events += [
        (time + label[0], "label", place, label[1])
        for place, (time, _, label) in enumerate(rows)
        if label is not None
    ]
    for second, kind, place, value in sorted(events):
        for into in (waiting, whole, workers[place % 2]):  # rows leave before workers meet
            if kind == "predict":
                into.predict(id=place, time=START + second, y_score=value)
            else:
                into.label(id=place, time=START + second, y_true=value)
        if random.random() < 0.2:
            whole.to_bytes()  # for which rows leave that are due to
            workers = [sm.from_bytes(worker.to_bytes()) for worker in workers]
    merged = workers[0].merge(workers[1])
    assert merged.to_bytes() == whole.to_bytes()
    for state in (waiting, whole, merged):
        state.now(START + 1900)
    assert len(waiting.flush()._shared.current.join.table) == len(rows)
    for window in ("30min", "5min"):
        found = [each.possible(window, end=START + 1560) for each in (waiting, merged, whole)]
        assert repr(found[0]) == repr(found[1]) == repr(found[2])  # also where it is nan
