"""Confidence of metrics of labels: against formulas, a brute-force jackknife, and at the ends."""

from __future__ import annotations

import itertools
import math
import pickle
from decimal import Decimal, localcontext

import numpy as np
import pytest
from kinds.rows import statistics_of
from scipy import stats

import streammetrics as sm
from streammetrics.inference.tables import trials_of

Z = 1.959963984540054


def rows(n=400, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, n)
    return true, np.where(rng.random(n) < 0.7, true, rng.integers(0, classes, n))


def brute(metric, true, pred):
    """Return the standard error from leaving out every row."""
    values, n = [], len(true)
    for row in range(n):
        keep = np.arange(n) != row
        values.append(metric.copy().update(true[keep], pred[keep]).compute())
    return np.sqrt((n - 1) * np.var(values, axis=0))


@pytest.mark.parametrize(
    ("metric", "ends"),
    [
        (sm.MatthewsCorrcoef(), (-1, 1)),
        (sm.CohenKappa(), (-1, 1)),
        (sm.CohenKappa(weights="linear"), (-1, 1)),
        (sm.CohenKappa(weights="quadratic"), (-1, 1)),
        (sm.BalancedAccuracy(), (0, 1)),
        (sm.BalancedAccuracy(adjusted=True), (-1, 1)),
        (sm.F1(average="macro"), (0, 1)),
        (sm.Precision(average="weighted"), (0, 1)),
        (sm.Specificity(average="micro"), (0, 1)),
    ],
    ids=lambda value: repr(value).partition(" ")[0] if isinstance(value, sm.Metric) else "",
)
def test_the_infinitesimal_jackknife_is_near_the_one_of_rows(metric, ends):
    true, pred = rows()
    error = brute(metric, true, pred)
    value = metric.copy().update(true, pred).compute()
    low, high = metric.copy().update(true, pred).confidence(0.95)
    a, b = ends

    def logit(x):
        return math.log((x - a) / (b - x))

    half = (logit(high) - logit(low)) / 2 / Z
    assert half == pytest.approx(error * (b - a) / ((value - a) * (b - value)), rel=0.02)
    assert (logit(high) + logit(low)) / 2 == pytest.approx(logit(value), rel=1e-9)


class Fourth(sm.Accuracy.__mro__[1]):
    """A user's readout of single cells: the odds of one corner."""

    def read(self, table):
        counts = np.zeros((table.groups, table.size, table.size))
        counts[table.group, table.rows, table.columns] = table.amount
        return counts[:, 0, 0] / counts[:, 1, 1]


def test_a_users_readout_of_cells_has_limits_too():
    true, pred = rows(classes=2)
    metric = Fourth().update(true, pred)
    low, high = metric.confidence()
    assert (high - low) / 2 / Z == pytest.approx(brute(Fourth(), true, pred), rel=0.05)
    assert (low + high) / 2 == pytest.approx(metric.compute())


def test_shares_are_wilsons():
    y, p = np.repeat([1, 0, 1, 0], [30, 15, 10, 45]), np.repeat([1, 1, 0, 0], [30, 15, 10, 45])
    suite = sm.MetricSet(
        {
            "precision": sm.Precision(),
            "recall": sm.Recall(),
            "fpr": sm.FalsePositiveRate(),
            "fnr": sm.FalseNegativeRate(),
            "npv": sm.NegativePredictiveValue(),
            "specificity": sm.Specificity(),
            "accuracy": sm.Accuracy(),
            "jaccard": sm.Jaccard(),
        }
    ).update(y_true=y, y_pred=p)
    shares = {
        "precision": (30, 45), "recall": (30, 40), "fpr": (15, 60), "fnr": (10, 40),
        "npv": (45, 55), "specificity": (45, 60), "accuracy": (75, 100), "jaccard": (30, 55),
    }  # fmt: skip
    for name, interval in suite.confidence(0.95).items():
        s, n = shares[name]
        centre = (s + Z * Z / 2) / (n + Z * Z)
        half = Z / (n + Z * Z) * math.sqrt(s * (n - s) / n + Z * Z / 4)
        assert tuple(interval) == pytest.approx((centre - half, centre + half), rel=1e-12)
        assert interval.method == "Wilson's score"


def test_f_beta_by_shares_is_near_the_jackknife():
    true, pred = rows(2000, 2)
    for beta in (0.5, 1.0, 2.0):
        metric = sm.FBeta(beta=beta).update(true, pred)
        low, high = metric.confidence()
        error = brute(sm.FBeta(beta=beta), true[::5], pred[::5]) / math.sqrt(5)
        assert (high - low) / 2 / Z == pytest.approx(error, rel=0.12)
        assert low < metric.compute() < high


def test_micro_averages_count_rows_and_not_classes():
    true, pred = rows()
    accuracy = sm.Accuracy().update(true, pred).confidence()
    for metric in (sm.F1(average="micro"), sm.Precision(average="micro")):
        assert tuple(metric.update(true, pred).confidence()) == pytest.approx(tuple(accuracy))
    wrong = sm.FalseNegativeRate(average="micro").update(true, pred).confidence()
    assert (1 - wrong.high, 1 - wrong.low) == pytest.approx(tuple(accuracy))


def test_values_of_classes_have_limits_each():
    true, pred = rows()
    low, high = sm.Recall(average=None).update(true, pred).confidence()
    for k in range(3):
        alone = sm.Recall().update(true == k, pred == k).confidence()
        assert (low[k], high[k]) == pytest.approx(tuple(alone))
    assert low.to_dict().keys() == {0, 1, 2}
    matrix = sm.ConfusionMatrix(normalize="true").update(true, pred).confidence()
    assert np.diag(matrix.low) == pytest.approx(low)
    assert np.diag(matrix.high) == pytest.approx(high)


def test_any_sharding_gives_the_same_limits_to_the_bit():
    true, pred = rows(999)
    for metric in (sm.F1(average="macro"), sm.MatthewsCorrcoef(), sm.Accuracy()):
        whole = metric.copy().update(true, pred).confidence()
        shards = [metric.copy().update(true[k::7], pred[k::7]) for k in (3, 0, 5, 1, 6, 2, 4)]
        merged = sm.merge(shards)
        assert merged.confidence() == whole
        assert sm.from_bytes(merged.to_bytes()).confidence() == whole


def test_an_interval_is_one_and_says_how_it_came_about():
    interval = sm.Accuracy().update([0, 1, 1], [0, 1, 0]).confidence(0.9)
    low, high = interval
    assert isinstance(interval, sm.Interval)
    assert (interval.low, interval.high, interval.level) == (low, high, 0.9)
    again = pickle.loads(pickle.dumps(interval))
    assert (again, again.level, again.method) == (interval, 0.9, "Wilson's score")
    assert interval.to_dict() == {"low": low, "high": high, "level": 0.9, "method": interval.method}
    assert repr(interval).startswith("ConfidenceInterval(low=0.2")


def test_a_view_of_a_set_is_asked_like_the_metric():
    true, pred = rows()
    suite = sm.MetricSet({"f1": sm.F1(average="macro"), "acc": sm.Accuracy()})
    suite.update(y_true=true, y_pred=pred)
    told = suite.confidence(0.9)
    assert told["acc"] == sm.Accuracy().update(true, pred).confidence(0.9)
    assert told["f1"] == suite["f1"].confidence(0.9)
    assert list(told.to_frame().columns) == ["low", "high"]


def test_all_right_falls_back_to_exact_limits_of_the_smallest_class_and_says_so():
    y = np.repeat([0, 1], [90, 10])
    for metric, ends in (
        (sm.MatthewsCorrcoef(), (-1, 1)),
        (sm.F1(average="macro"), (0, 1)),
        (sm.CohenKappa(weights="linear"), (-1, 1)),
    ):
        interval = metric.update(y, y).confidence()
        share = 0.025 ** (1 / 10)
        assert interval.low == pytest.approx(ends[0] + (ends[1] - ends[0]) * share)
        assert interval.high == 1.0
        assert "Clopper-Pearson of the 10 rows of the smallest class" in interval.method


def test_without_rows_limits_are_nan_with_a_warning():
    for metric in (sm.Accuracy(), sm.F1(average="macro"), sm.CohenKappa(weights="linear")):
        with pytest.warns(sm.UndefinedMetricWarning, match="no rows were seen"):
            assert np.isnan(metric.confidence()).all()


def test_a_value_that_no_row_varies_has_no_limits_and_warns():
    with pytest.warns(sm.UndefinedMetricWarning, match="do not tell how it varies"):
        assert np.isnan(sm.MSE().update([1], [2]).confidence()).all()


@pytest.mark.parametrize(
    ("metric", "high"),
    [
        (sm.BalancedAccuracy(), 0.7172), (sm.Recall(average="macro"), 0.7172),
        (sm.Informedness(), 0.4345), (sm.CohenKappa(), 0.6055),
    ],
    ids=repr,
)  # fmt: skip
def test_a_class_that_is_never_right_is_as_unsure_as_its_rows(metric, high):
    few = metric.copy().update([1, 0], [0, 0], counts=[5, 5000]).confidence()
    assert few.high == pytest.approx(high, abs=1e-4)  # a recall of 5 rows is at most 0.4345
    many = metric.copy().update([1, 0], [0, 0], counts=[5000, 5000]).confidence()
    assert many.low < metric.copy().update([1, 0], [0, 0]).compute() < many.high < few.high


def test_a_product_of_recalls_that_is_0_may_be_as_large_as_recalls_of_so_few_rows():
    one = sm.GMean().update([1, 0], [0, 0], counts=[3, 1000]).confidence()
    recall = 1 - 0.025 ** (1 / 3)
    assert tuple(one) == pytest.approx((0.0, np.sqrt(recall)))
    two = sm.GMean().update([1, 2, 0], [0, 0, 0], counts=[3, 3, 1000]).confidence()
    assert two.high == pytest.approx(recall ** (2 / 3))
    weighted = sm.GMean().update([1, 0], [0, 0], sample_weight=[1e-3, 1.0]).confidence()
    assert weighted.high == pytest.approx(np.sqrt(0.975))


def test_anytime_is_for_rates():
    true, pred = rows(classes=2)
    now = sm.Accuracy().update(true, pred).confidence()
    always = sm.Accuracy().update(true, pred).confidence(anytime=True)
    assert always.low < now.low < now.high < always.high
    assert "at all times" in always.method
    for metric in (sm.MatthewsCorrcoef(), sm.F1(average="macro"), sm.FBeta(beta=2.0)):
        with pytest.raises(sm.NoConfidenceError, match="anytime=True is for rates"):
            metric.update(true, pred).confidence(anytime=True)


def test_what_has_none_says_why_and_what_has():
    true, pred = rows()
    with pytest.raises(sm.NoConfidenceError, match="counts grow with the rows"):
        sm.ConfusionMatrix().update(true, pred).confidence()
    with pytest.raises(sm.NoConfidenceError, match="its entries have"):
        sm.ClassificationReport().update(true, pred).confidence()
    suite = sm.MetricSet({"m": sm.ConfusionMatrix(), "acc": sm.Accuracy()})
    suite.update(y_true=true, y_pred=pred)
    with pytest.warns(sm.UndefinedMetricWarning, match="'m': ConfusionMatrix has no confidence"):
        told = suite.confidence()
    assert math.isnan(told["m"].low)
    assert told["acc"].low > 0


@pytest.mark.parametrize("level", [95, 0, 1.0, True, math.nan])
def test_a_level_is_a_share(level):
    with pytest.raises(ValueError, match="expected a share such as 0.95"):
        sm.Accuracy().confidence(level)


def test_top_k():
    top = sm.TopKAccuracy(k=2).update([0, 2, 1], [[0.4, 0.5, 0.1], [0.3, 0.6, 0.1], [0, 1, 0]])
    assert tuple(top.confidence()) == tuple(sm.Accuracy().update([1, 0, 1], [1, 1, 1]).confidence())


def test_trials_are_those_of_the_value():
    true, pred = rows(classes=2)
    for metric in (
        sm.Precision(), sm.Recall(average="micro"), sm.FalseDiscoveryRate(), sm.Prevalence(),
        sm.SelectionRate(), sm.Accuracy(), sm.ZeroOneLoss(),
        sm.FBeta(beta=0.0), sm.FBeta(beta=math.inf),
    ):  # fmt: skip
        came, of = trials_of(metric, *statistics_of(metric.update(true, pred)))
        assert came / of == pytest.approx(metric.compute(), rel=1e-12)


@pytest.mark.parametrize("metric", [sm.Accuracy(normalize=False), sm.ZeroOneLoss(normalize=False)])
def test_numbers_of_rows_are_no_share(metric):
    with pytest.raises(TypeError, match="is not a share of rows"):
        trials_of(metric, *statistics_of(metric.update([1, 0, 1], [1, 1, 0])))


def test_a_class_of_nearly_all_rows_has_limits_as_well():
    true, pred = [2, 2, 1, 1, 1, 0, 2], [0, 1, 1, 1, 0, 0, 0]
    weight = [0.5, 1e6, 0.5, 3.25, 0.001, 0.5, 0.5]
    metric = sm.MatthewsCorrcoef().update(true, pred, sample_weight=weight)
    low, high = metric.confidence()
    assert -1 < low < metric.compute() < high < 1


def correlation(tn, fp, fn, tp):
    return (tp * tn - fp * fn) / ((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)).sqrt()


def kappa(tn, fp, fn, tp):
    return 2 * (tp * tn - fp * fn) / ((tp + fp) * (fp + tn) + (tp + fn) * (fn + tn))


RARE = [
    [284305, 10, 42, 450],
    [5000, 1, 1, 10],
    [10**6, 100, 100, 500],
    [10**12, 1, 3, 5],
    [3 * 10**15, 10, 5, 50],  # with fewer of a kind, Wilson's limits would be wider
]


@pytest.mark.parametrize("counts", RARE)
@pytest.mark.parametrize(
    ("metric", "formula"), [(sm.MatthewsCorrcoef(), correlation), (sm.CohenKappa(), kappa)]
)
def test_a_rare_class_has_the_limits_of_the_exact_derivatives(metric, formula, counts):
    with localcontext(prec=60):
        cells = list(map(Decimal, counts))
        value, variance = formula(*cells), Decimal(0)
        for place, cell in enumerate(cells):
            step = cell * Decimal("1e-20")
            moved = [[*cells[:place], cell + by, *cells[place + 1 :]] for by in (step, -step)]
            variance += cell * ((formula(*moved[0]) - formula(*moved[1])) / (2 * step)) ** 2
        value, error = float(value), float(variance.sqrt())
    sides = [math.tanh(math.atanh(value) + z * error / (1 - value**2)) for z in (-Z, Z)]
    found = metric.copy().update([0, 0, 1, 1], [0, 1, 0, 1], counts=counts)
    assert found.confidence() == pytest.approx(sides, rel=1e-4)


def reach(metric, true, pred, **counts):
    found = metric.update(true, pred, **counts)
    low, high = found.confidence()
    return low, high


@pytest.mark.parametrize("n", [400, 10**5, 10**7])
def test_a_class_that_is_all_right_is_as_unsure_beside_any_number_of_others(n):
    true, pred = [1, 0, 0], [1, 0, 1]
    counts = [8, n - n // 20, n // 20]
    low, high = reach(sm.Informedness(), true, pred, counts=counts)
    balanced = reach(sm.BalancedAccuracy(), true, pred, counts=counts)
    assert (low, high) == pytest.approx((2 * balanced[0] - 1, 2 * balanced[1] - 1), rel=1e-6)
    assert low < 0.63  # Wilson's limit of a recall of 8 rows is 0.6756
    for same in (sm.MatthewsCorrcoef(), sm.CohenKappa(), sm.Markedness()):
        assert "rare classes" in same.update(true, pred, counts=counts).confidence().method
    weights = reach(sm.Informedness(), [1] * 8 + [0] * 400, [1] * 8 + [0] * 380 + [1] * 20,
                    sample_weight=[1e-3] * 8 + [1.0] * 400)  # fmt: skip
    assert weights[0] < 0.63


@pytest.mark.parametrize(
    ("of_rows", "of_predictions"),
    [
        (sm.Recall(average="macro"), sm.Precision(average="macro")),
        (sm.F1(average="macro"), sm.F1(average="macro")),
        (sm.Jaccard(average="macro"), sm.Jaccard(average="macro")),
        (sm.MatthewsCorrcoef(), sm.MatthewsCorrcoef()),
        (sm.CohenKappa(), sm.CohenKappa()),
    ],
)
def test_rare_predictions_are_as_unsure_as_rare_classes(of_rows, of_predictions):
    true, pred = [0, 0, 1, 1, 2, 1], [0, 1, 0, 1, 2, 2]
    counts = [60000, 5000, 5000, 30000, 8, 3]
    one = reach(of_rows.copy(), true, pred, counts=counts)
    other = reach(of_predictions.copy(), pred, true, counts=counts)
    assert one == pytest.approx(other, rel=1e-9)


def test_a_rare_label_is_unsure_in_a_mean_over_labels():
    rng = np.random.default_rng(0)
    true = np.zeros((4000, 3), int)
    true[:, :2] = rng.random((4000, 2)) < 0.4
    pred = np.where(rng.random(true.shape) < 0.1, 1 - true, true)
    pred[:, 2] = 0
    true[:5, 2] = pred[:5, 2] = 1
    mean = sm.Recall(average="macro", multilabel=True).update(true, pred).confidence()
    each = sm.Recall(average=None, multilabel=True).update(true, pred).confidence()
    assert mean.high - mean.low > (each.high[2] - each.low[2]) / 3 > 0.14
    assert mean.method.endswith("rare labels by Wilson's score")


@pytest.mark.parametrize("counts", [[4, 4, 4, 4], [395, 5, 1, 7], [30, 2, 1, 40]])
def test_an_odds_ratio_of_few_rows_has_limits_on_the_scale_of_logarithms(counts):
    odds = sm.DiagnosticOddsRatio().update([0, 0, 1, 1], [0, 1, 0, 1], counts=counts)
    reach = 1.959964 * math.sqrt(sum(1 / count for count in counts))  # Woolf's
    low, high = odds.confidence()
    assert low <= odds.compute() * math.exp(-reach) * (1 + 1e-6)
    assert low > 0
    assert high >= odds.compute() * math.exp(reach) * (1 - 1e-6)


def test_uneven_weights_leave_a_value_one_that_does_not_grow():
    rng = np.random.default_rng(0)
    for _ in range(20):
        true = rng.random(200) < 0.2
        pred = np.where(rng.random(200) < 0.9, true, ~true)
        weights = rng.choice([1, 0.001, 1000], 200)
        for metric in (sm.MatthewsCorrcoef(), sm.CohenKappa(), sm.DiagnosticOddsRatio()):
            low, high = metric.update(true, pred, sample_weight=weights).confidence()
            assert not low > high


@pytest.mark.parametrize(
    "metric",
    [
        sm.HammingLoss(),
        sm.SubsetAccuracy(),
        sm.F1(average="micro", multilabel=True),
        sm.F1(average="samples", multilabel=True),
    ],
)
@pytest.mark.parametrize("weight", [[1, 1, 1], [1, 1, 0]])
def test_weights_of_one_leave_multilabel_limits(metric, weight):
    true, pred = [[0, 1, 1], [0, 1, 0], [1, 0, 0]], [[1, 1, 1], [0, 1, 0], [0, 0, 1]]
    weighed = metric.copy().update(true, pred, sample_weight=weight)
    kept = np.flatnonzero(weight)
    plain = metric.copy().update(np.array(true)[kept], np.array(pred)[kept])
    assert weighed.confidence() == plain.confidence()
    assert sm.from_bytes(weighed.to_bytes()).confidence() == plain.confidence()


def test_rows_of_equal_loss_have_no_variance():
    true, pred = [[0, 1, 1]] * 100 + [[0, 0, 0]] * 50, [[1, 0, 1]] * 100 + [[0, 1, 1]] * 50
    with pytest.warns(sm.UndefinedMetricWarning, match="do not tell how it varies"):
        found = sm.HammingLoss().update(true, pred).confidence()
    assert np.isnan(found.low)
    assert np.isnan(found.high)


@pytest.mark.parametrize("cls", [sm.Informedness, sm.Markedness])
@pytest.mark.parametrize("weighted", [False, True])
def test_limits_of_each_class_are_those_of_it_beside_all_others(cls, weighted):
    true, pred = [0, 0, 1, 1, 2, 3], [0, 1, 1, 0, 2, 3]
    counts = [40, 5, 60, 3, 7, 9]
    true, pred = np.repeat(true, counts), np.repeat(pred, counts)
    weights = {"sample_weight": np.where(true % 2, 0.3, 1.7)} if weighted else {}
    low, high = cls(average=None).update(true, pred, **weights).confidence()
    for place in range(4):
        alone = cls().update(true == place, pred == place, **weights).confidence()
        assert (low[place], high[place]) == tuple(alone)
        assert 0 < low[place] < high[place] <= 1


@pytest.mark.parametrize("weights", ["linear", "quadratic"])
def test_weighted_kappa_of_a_rare_class_is_as_unsure_as_plain_kappa(weights):
    table = {"y_true": [1, 1, 0, 0], "y_pred": [1, 0, 1, 0], "counts": [1, 2, 4, 29991]}
    plain = sm.CohenKappa().update(**table).confidence()
    weighted = sm.CohenKappa(weights=weights).update(**table).confidence()
    assert weighted.high == pytest.approx(plain.high, rel=1e-6)
    assert weighted.low == pytest.approx(plain.low, abs=5e-3)
    # Of three classes: 4 of the 6 rows of class 2 are right, and the limits of that are Wilson's.
    true, pred, n = [0, 0, 0, 1, 1, 2, 2], [0, 1, 2, 1, 0, 2, 1], [500, 20, 6, 300, 30, 4, 2]
    rows = {"y_true": true, "y_pred": pred}
    seen = sm.CohenKappa(weights=weights).update(**rows, counts=n).confidence()
    wilson = stats.binomtest(4, 6).proportion_ci(method="wilson")
    for side, share in enumerate(wilson):
        of_two = [int(6e6 * share), int(6e6 * (1 - share))]
        moved = [count * 10**6 for count in n[:5]] + of_two
        value = sm.CohenKappa(weights=weights).update(**rows, counts=moved).compute()
        assert value >= seen.low if side == 0 else value <= seen.high


@pytest.mark.parametrize("kind", [sm.Prevalence, sm.SelectionRate])
@pytest.mark.parametrize("multilabel", [False, True])
def test_shares_weighted_by_themselves_have_no_limits(kind, multilabel):
    rows = [[0, 1], [1, 0]] if multilabel else [0, 1]
    metric = kind(average="weighted", multilabel=multilabel).update(rows, rows)
    with pytest.raises(sm.NoConfidenceError, match="equally frequent"):
        metric.confidence()


def test_rounding_does_not_decide_whether_a_rate_of_a_class_is_defined():
    lows = []
    for weight in (1.0, 2.0, 3.0, 7.0, 1000.0, 3e30, 5e30):
        metric = sm.NegativePredictiveValue(average="macro", labels=[0, 1, 2, 7], zero_division=0.0)
        low, high = metric.update([0], [0], sample_weight=[weight]).confidence()
        assert high == metric.compute() == 0.75
        lows.append(low)
    assert lows == pytest.approx([lows[0]] * len(lows))


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize(
    "metric",
    [
        sm.PositiveLikelihoodRatio(average="macro"),
        sm.PositiveLikelihoodRatio(average="weighted", zero_division=1.0),
        sm.DiagnosticOddsRatio(average="macro"),
        sm.FalseDiscoveryRate(average="weighted"),
        sm.MutualInfo(),
        sm.VMeasure(),
        sm.TschuprowsT(),
    ],
    ids=repr,
)
def test_limits_of_few_rows_contain_those_of_a_lower_level(metric):
    """Values that do not move one way as a share grows were read at its end only."""
    rng = np.random.default_rng(4)
    for n in np.tile(np.arange(2, 17), 3):
        true, pred = rng.integers(0, 4, (2, n))
        pred = np.where(rng.random(n) < 0.7, true, pred)
        metric.reset().update(true, pred)
        found = [metric.confidence(level)[:2] for level in (0.5, 0.8, 0.9, 0.95, 0.99)]
        for near, far in itertools.pairwise(found):
            assert np.isnan(near).all() == np.isnan(far).all()
            assert not near[0] < far[0] * (1 - 1e-9)
            assert not near[1] > far[1] * (1 + 1e-9)


def test_limits_where_no_single_share_moves_the_value():
    """They were the value itself: as if a row of each class, or 200, left no doubt."""
    for n in (1, 200):
        wrong = [0] * n + [1] * n, [1] * n + [0] * n
        found = sm.DiagnosticOddsRatio().update(*wrong).confidence()
        most = 1 - 0.025 ** (1 / n)  # of a recall that is 0, by Clopper and Pearson
        assert found[:2] == pytest.approx((0.0, (most / (1 - most)) ** 2), rel=1e-9)
        with pytest.warns(sm.UndefinedMetricWarning, match="do not tell how it varies"):
            assert np.isnan(sm.CohenKappa().update([0] * n, [1] * n).confidence()[:2]).all()
