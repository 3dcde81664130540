"""Every public metric has a confidence interval, or says in a sentence why it has none."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest
from oracles.table import ORACLES, thinned
from scipy import optimize

import streammetrics as sm
from streammetrics.core.confidence import Refusal

# What has no interval in a default configuration, and a word of the reason.
WITHOUT = {
    "Count": "grows with the rows",
    "Sum": "grows with the rows",
    "Minimum": "smallest value",
    "Maximum": "largest value",
    "MaxError": "largest value",
    "CalibrationError": "chance alone moves every bin",
    "BrierDecomposition": "chance alone moves every bin",
    "FleissKappa": "single items",
    "GwetAC1": "single items",
    "KrippendorffAlpha": "single items",
    "CatalogueCoverage": "grows with the rows",
    "ExposureGini": "of the same list",
    "IntraListDiversity": "of the same list",
    "ConcordanceIndex": "pairs share their rows",
    "BoxAveragePrecision": "how much images differ",
    "BoxAverageRecall": "how much images differ",
    "Dice": "pixels of an image",
    "LogAUC": "first few false positives",
    "MeanIoU": "pixels of an image",
    "ModifiedPanopticQuality": "how much images differ",
    "PanopticQuality": "how much images differ",
    "EditDistance": "grows with the rows",
    "SpanF1": "it is of the corpus",
    "SpanFBeta": "it is of the corpus",
    "SpanPrecision": "it is of the corpus",
    "SpanRecall": "it is of the corpus",
    "D2AbsoluteError": "of the same rows",
    "D2Pinball": "of the same rows",
    "D2Tweedie": "of the same rows",
    "RelativeAbsoluteError": "of the same rows",
    "NRMSE": "of the same rows",
    "AdjustedR2": r"R2\(spread=True\) has limits",
    "MinkowskiDistance": "grows with the rows",
    "RankingCount": "grows with the rows",
    "RecallAtFixedPrecision": "of these queries only",
    "D2LogLoss": "of the same rows",
    "D2Brier": "of the same rows",
    "Variance": "fourth moments",
    "R2": "fourth moments",
    "ExplainedVariance": "fourth moments",
    "RelativeSquaredError": "fourth moments",
    "PearsonCorrelation": "fourth moments",
    "ConcordanceCorrelation": "fourth moments",
    "MultilabelConfusionMatrix": "grow with the rows",
    "PairConfusionMatrix": "grows with the rows",
    "PredictionError": "grow with the rows",
    "ConfusionAtThresholds": "grows with the rows",
    "BestThreshold": "unlike any mean",
    "LiftCurve": "quotients of shares",
    "NormalizedEntropy": "how both vary together",
    "CalinskiHarabasz": "places of all others",
    "DaviesBouldin": "places of all others",
    "Silhouette": "places of all others",
    "DunnIndex": "places of all others",
    "KSDistance": "by chance alone",
    "Wasserstein": "by chance alone",
    "PopulationStability": "by chance alone",
    "JensenShannon": "by chance alone",
    "ConfusionMatrix": "counts grow with the rows",
    "ClassificationReport": "its entries have",
}
METRICS = {
    name: thing
    for name, thing in ((name, getattr(sm, name)) for name in sm.__all__)
    if inspect.isclass(thing) and issubclass(thing, sm.Metric) and thing is not sm.Metric
}


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_limits_or_says_in_a_sentence_why_not(name):
    every = [o for o in ORACLES if type(o.metric) is METRICS[name]]
    oracle = every[name == "Mean"]  # the first of which has values that differ by nothing in them
    rows = oracle.rows(np.random.default_rng(0), oracle.n)
    rows.pop("sample_weight", None)
    config = oracle.metric.config
    metric = METRICS[name](**config).update(**rows)
    if name in WITHOUT and not (name == "ConfusionMatrix" and metric.normalize):
        with pytest.raises(sm.NoConfidenceError, match=WITHOUT[name]) as refused:
            metric.confidence()
        assert str(refused.value).startswith(f"{name} has no confidence interval: ")
    else:
        interval = metric.confidence()
        assert interval.level == 0.95
        assert interval.method


def test_refusals_are_of_public_metrics():
    refused = {name for name, cls in METRICS.items() if isinstance(cls.family, Refusal)}
    assert refused <= WITHOUT.keys()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: repr(oracle.metric))
def test_limits_of_few_rows_hold_the_value(oracle):
    for n in (3, 7):
        rows = oracle.rows(np.random.default_rng(n), n)
        for columns in (rows, {name: rows[name] for name in rows if name != "sample_weight"}):
            metric = oracle.metric.copy().update(**columns)
            value = metric.compute()
            for level in (0.01, 0.95):
                try:
                    low, high = metric.confidence(level)
                except sm.NoConfidenceError:
                    break
                if isinstance(value, (float, np.ndarray)):
                    room = 1e-12 * np.maximum(1.0, np.abs(value))
                    inside = (low - room <= value) & (value <= high + room)
                    assert np.all(inside | np.isnan(low) | np.isnan(high)), (level, low, high)


def hostile(rows, rng):
    """Yield rows at other magnitudes, nearly equal, mixed, and with weights far apart."""
    n = len(next(iter(rows.values())))
    plain = {name: rows[name] for name in rows if name != "sample_weight"}
    names = {"y_true", "y_pred", "values", "x", "y", "prediction"}
    floats = [
        name
        for name, column in plain.items()
        if name in names and isinstance(column, np.ndarray) and column.dtype.kind == "f"
    ]
    for factor in (1e-108, 1e-160, 1e-300, 1e120, 1e160, 1e300) if floats else ():
        yield {**plain, **{name: plain[name] * factor for name in floats}}
    if floats:
        shapes = {name: plain[name].shape for name in floats}
        near = {name: 1 + rng.integers(0, 3, shape) * 2.0**-52 for name, shape in shapes.items()}
        yield {**plain, **near}
        wide = {name: 10.0 ** rng.integers(-300, 300, shape) for name, shape in shapes.items()}
        yield {**plain, **{name: plain[name] * factor for name, factor in wide.items()}}
    for weight in (np.full(n, 1e-300), 10.0 ** rng.uniform(-150, 150, n), rng.integers(0, 2, n)):
        yield {**plain, "sample_weight": weight}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("oracle", thinned(ORACLES), ids=lambda oracle: repr(oracle.metric))
def test_limits_of_hostile_rows_hold_the_value(oracle):
    """Limits of rows 1e-108 apart had no width and lay beside the value."""
    config = oracle.metric.config
    spread = {"spread": True} if "spread" in config else {}
    for n in (2, 3, 7):
        rng = np.random.default_rng(n)
        try:
            plain = oracle.rows(rng, n)
        except ValueError:  # clusters of some points need more of them
            continue
        for rows in hostile(plain, rng):
            metric = type(oracle.metric)(**{**config, **spread})
            try:
                value = metric.update(**rows).compute()
                limits = metric.confidence(0.01)
            except (sm.StreamMetricsError, TypeError):  # rows or weights that it does not take
                continue
            if isinstance(value, (float, np.ndarray)):
                least, most = metric.value_range or (-np.inf, np.inf)
                assert not (np.asarray(limits.low) < least).any(), (rows, value, limits)
                assert not (np.asarray(limits.high) > most).any(), (rows, value, limits)
                assert not (np.asarray(limits.low) > value).any(), (rows, value, limits)
                assert not (np.asarray(limits.high) < value).any(), (rows, value, limits)


SIX, ONE = [[1, 0, 0]] * 6, [[0.9, 0.1, 0.2], *[[0.1, 0.9, 0.2]] * 5]
NEAR_AN_END = [
    (sm.SMAPE(), [1.0, 2.0, 3.0], [-1.0, 2.0, -3.0]),
    (sm.RougeL(), ["a b c d"] * 19 + ["q"], ["a b c d"] * 19 + ["z"]),
    (sm.TokenF1(), ["a b c"] * 9 + ["q"], ["a b"] * 9 + ["z"]),
    (sm.ExtendedEditDistance(), ["this is it", "b c"] * 3, ["x", "b c"] * 3),
    (sm.LabelRankingAveragePrecision(), SIX, ONE),
    (sm.LabelRankingLoss(), SIX, ONE),
    (sm.RankedProbabilityScore(normalize=True), [0, 2, 0], [[0, 0, 1], [1, 0, 0], [0.9, 0.1, 0]]),
    (sm.CalibrationInTheLarge(), [0] * 30, [0.999] * 28 + [0.5, 0.4]),
    (sm.ExpectedCost(cost=((0, 1), (5, 0))), [1, 1, 1, 0], [0, 0, 0, 0]),
]


@pytest.mark.filterwarnings("ignore:.*fewer than")
@pytest.mark.parametrize(
    ("metric", "true", "said"), NEAR_AN_END, ids=[type(case[0]).__name__ for case in NEAR_AN_END]
)
def test_limits_near_the_end_of_a_range_stay_within_it(metric, true, said):
    rows = dict(zip(metric.inputs, (true, said), strict=True))
    by_unit = sm.MetricSet({"m": metric.copy()}, unit="u")
    by_unit.update(**rows, u=np.arange(len(true)))
    least, most = metric.value_range
    value = metric.copy().update(**rows).compute()
    for limits in (metric.copy().update(**rows).confidence(), by_unit.confidence()["m"]):
        assert least <= limits.low <= value <= limits.high <= most


@pytest.mark.parametrize(("right", "wrong"), [(198, 2), (0, 5), (20, 0), (3, 3)])
def test_the_limits_of_costs_of_0_and_1_are_those_of_a_share(right, wrong):
    true, pred = [0] * (right + wrong), [0] * right + [1] * wrong
    for weight in (None, np.full(right + wrong, 0.1)):
        for low, high in ((0, 1), (-3, 5)):
            cost = sm.ExpectedCost(cost=((low, high), (high, low)))
            limits = cost.update(true, pred, sample_weight=weight).confidence()
            share = sm.ZeroOneLoss().update(true, pred, sample_weight=weight).confidence()
            both = low + (high - low) * np.array(share[:2])
            assert list(limits[:2]) == pytest.approx(both.tolist(), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_limits_of_costs_hold_the_value_whatever_the_weights(seed):
    rng = np.random.default_rng(seed)
    true, pred = rng.integers(0, 2, (2, 5))
    metric = sm.ExpectedCost(cost=((0, 1), (5, -2)))
    metric.update(true, pred, sample_weight=10.0 ** -rng.integers(0, 12, 5))
    limits = metric.confidence()
    assert -2 <= limits.low <= metric.compute() <= limits.high <= 5
    assert limits.high - limits.low > 1e-3  # rows that weigh little say little


def test_the_limits_of_costs_are_where_a_score_test_begins_to_reject():
    """The probabilities of most likelihood for a mean are searched, not found by a formula."""
    costs, counts = np.array([0.0, 1.0, 5.0]), np.array([40, 6, 2])
    true, pred = np.repeat([0, 0, 1], counts), np.repeat([0, 1, 0], counts)
    metric = sm.ExpectedCost(cost=((0, 1), (5, 0))).update(true, pred)
    value, n = metric.compute(), counts.sum()
    for limit in metric.confidence()[:2]:

        def chances(p, mean=limit):  # that have this mean, given that of the highest cost
            return np.array([1 - mean + 4 * p, mean - 5 * p, p])

        ends = (max(0.0, (limit - 1) / 4) + 1e-12, limit / 5 - 1e-12)
        found = optimize.minimize_scalar(
            lambda p: -counts @ np.log(chances(p)),
            bounds=ends,
            method="bounded",
            options={"xatol": 1e-12},
        )
        variance = chances(found.x) @ (costs - limit) ** 2
        assert abs(limit - value) / np.sqrt(variance / n) == pytest.approx(1.959964, rel=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("cost", [((0, 1), (1, 0)), ((0, 1), (5, 0)), ((-2, 1), (8, 0))])
@pytest.mark.parametrize(("p", "n"), [(0.01, 200), (0.03, 100), (0.05, 200)])
def test_limits_of_costs_of_rare_errors_hold_as_often_as_they_say(cost, p, n):
    """The delta method's held in 79 to 87 % of samples, and missed on the unsafe side."""
    chances = np.array([(1 - p) / 2, p / 2, p / 2, (1 - p) / 2])
    truth, rng, held = chances @ np.ravel(cost), np.random.default_rng(1), 0
    for _ in range(600):
        rows = rng.multinomial(n, chances)
        metric = sm.ExpectedCost(cost=cost)
        limits = metric.update([0, 0, 1, 1], [0, 1, 0, 1], counts=rows).confidence()
        held += limits.low <= truth <= limits.high
    assert 0.924 <= held / 600 <= 0.99  # three standard errors of 0.95 are 0.027


OF_RECALLS = [
    sm.BalancedAccuracy(), sm.Informedness(), sm.GMean(), sm.Recall(average="macro"),
    sm.CohenKappa(),
]  # fmt: skip


def test_few_rows_of_a_class_that_are_all_right_are_not_certain():
    """One wrong row of the other class made limits of four right ones ten times narrower."""
    true = [1] * 4 + [0] * 196
    for metric in OF_RECALLS:
        metric = metric.copy().update(true, [1] * 4 + [0] * 190 + [1] * 6)  # noqa: PLW2901
        assert metric.confidence().high - metric.confidence().low > 0.15
    both = sm.BalancedAccuracy().update(true, [1] * 4 + [0] * 190 + [1] * 6)
    sides = [sm.Recall(pos_label=k).update(true, [1] * 4 + [0] * 190 + [1] * 6) for k in (0, 1)]
    down, up = (
        np.hypot(*[getattr(side.confidence(), end) - side.compute() for side in sides]) / 2
        for end in ("low", "high")
    )
    found = both.confidence()
    assert found.low == pytest.approx(both.compute() - down, rel=1e-9)  # MOVER, as written
    assert found.high >= both.compute() + up - 1e-12


@pytest.mark.long
@pytest.mark.parametrize(("n", "positive"), [(200, 0.02), (1000, 0.005), (1000, 0.02)])
def test_limits_hold_as_often_as_they_say_where_a_class_is_rare(n, positive):
    """They held in 30 to 80 % of samples."""
    rng, held = np.random.default_rng(8), np.zeros(3)
    truth = [0.935, 0.87, np.sqrt(0.9 * 0.97)]
    for _ in range(300):
        true = (rng.random(n) < positive).astype(int)
        true[0] = 1
        pred = np.where(true == 1, rng.random(n) < 0.9, rng.random(n) > 0.97).astype(int)
        for place, metric in enumerate(OF_RECALLS[:3]):
            limits = metric.copy().update(true, pred).confidence()
            held[place] += limits.low <= truth[place] <= limits.high
    assert (held / 300 >= 0.912).all()  # three standard errors of 0.95 are 0.038


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
def test_two_rows_do_not_tell_how_a_variance_varies():
    """Rounding decided between NaN and limits beside the value."""
    for rows in np.random.default_rng(0).random((50, 2)):
        assert np.isnan(sm.Variance(spread=True).update(rows).confidence()[:2]).all()


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
def test_limits_where_no_class_counts_are_nan():
    scores = [[0.5, 0.25, 0.25]]
    for metric in (
        sm.F1(labels=[4, 1], average="micro").update([2], [1]),
        sm.Precision(labels=[4, 1], average="macro").update([2], [1]),
        sm.Recall(average="macro", multilabel=True).update([[0, 0]], [[1, 1]]),
        sm.Gini(average="weighted").update([0], scores),
        sm.ROCAUC(average="weighted", multilabel=True).update([[1, 1, 1]], scores),
        sm.ROCAUC(multi_class="ovo").update([0], scores, sample_weight=[0.75]),
    ):
        assert np.isnan(metric.confidence()).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("oracle", thinned(ORACLES), ids=lambda oracle: repr(oracle.metric))
def test_limits_do_not_depend_on_the_unit_of_weights(oracle):
    """Products of three sums of weights overflowed in those of a weighted kappa."""
    rng = np.random.default_rng(5)
    rows = oracle.rows(rng, 40)
    config = oracle.metric.config
    spread = {"spread": True} if "spread" in config else {}
    metric = type(oracle.metric)(**{**config, **spread})
    n = len(next(iter(rows.values())))
    weight = rng.choice([0.5, 1.0, 2.0, 3.7], n)
    try:
        one = metric.copy().update(**{**rows, "sample_weight": weight}).confidence()
    except (sm.StreamMetricsError, TypeError):  # weights, or limits, that it does not have
        return
    if not isinstance(one.low, float | np.ndarray) or config.get("ddof"):
        return  # curves; and the unit of weights matters beside a number of rows
    room = 1e-6 * np.nan_to_num(np.abs(one.high - one.low), posinf=0.0)
    for power in (-290, -40, 40, 290):
        scaled = np.ldexp(weight, power)
        other = metric.copy().update(**{**rows, "sample_weight": scaled}).confidence()
        for side, expected in zip(other, one, strict=True):
            near = np.isclose(side, expected, rtol=1e-6, atol=0) | (np.abs(side - expected) <= room)
            assert np.all(near | np.isnan(expected)), (power, other, one)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("oracle", thinned(ORACLES), ids=lambda oracle: repr(oracle.metric))
def test_limits_of_a_higher_level_contain_those_of_a_lower_one(oracle):
    """Limits of averaged likelihood ratios at 50 % reached higher than those at 90 %."""
    config = oracle.metric.config
    spread = {"spread": True} if "spread" in config else {}
    metric = type(oracle.metric)(**{**config, **spread})
    for n in (3, 4, 6, 12, 25):
        try:
            metric.reset().update(**oracle.rows(np.random.default_rng(n), n))
            found = [metric.confidence(level) for level in (0.5, 0.8, 0.9, 0.95, 0.99)]
        except (sm.StreamMetricsError, TypeError):  # too few rows, or no limits
            continue
        if not isinstance(found[0].low, float | np.ndarray):
            continue  # curves
        value = np.asarray(metric.compute())
        for near, far in itertools.pairwise(found):
            room = 1e-9 * np.abs(near)  # limits of areas are found by iteration
            assert np.array_equal(np.isnan(near.low), np.isnan(far.low)), (n, near, far)
            assert not np.any(near.low < far.low - room[0]), (n, near, far)
            assert not np.any(near.high > far.high + room[1]), (n, near, far)
            assert not np.any(value < far.low - room[0]), (n, value, far)
            assert not np.any(value > far.high + room[1]), (n, value, far)
