"""A class with a formula of its own has no limits, range or direction of its parent."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pytest
from oracles.table import ORACLES
from thinning import some

import streammetrics as sm
from streammetrics.authoring import AveragedMetric, ClassScoreMetric, ContingencyMetric
from streammetrics.core.confidence import _RULES, Refusal
from streammetrics.inference.paired import refused
from streammetrics.inference.tables import trials_of
from streammetrics.live.possible.rules import rule_of
from streammetrics.metrics.families import Family

SEEN = {type(oracle.metric): oracle for oracle in reversed(ORACLES)}
# Their rules differentiate, or resample, whatever formula a class has.
OF_ANY = {
    None, Family.TABLE, Family.AVERAGES, Family.ROWS, Family.STAIRS, Family.LABELINGS,
    Family.QUERIES, Family.CORPUS, Family.UNITS,
}  # fmt: skip
FORMULAS = {"one less": lambda value: 1 - value, "ten times": lambda value: 10 * value}


def with_formula(parent: type, method: str, change) -> type:
    """Return a class whose method returns a changed value of its parent's."""

    def own(self, *args):
        return change(getattr(parent, method)(self, *args))

    return type(f"Own{parent.__name__}", (parent,), {method: own, "__doc__": parent.__doc__})


def methods_of(parent: type) -> list[str]:
    return [m for m in ("readout", "read") if m in parent._formula and hasattr(parent, m)]


def fed(cls: type, oracle, n: int = 60):
    rows = oracle.rows(np.random.default_rng(1), min(oracle.n, n))
    rows.pop("sample_weight", None)
    return cls(**oracle.metric.config).update(**rows)


WALK = [(parent, m, name) for parent in SEEN for m in methods_of(parent) for name in FORMULAS]


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.filterwarnings("ignore::streammetrics.EstimateWarning")
@pytest.mark.parametrize(("parent", "method", "name"), some(WALK))
def test_nothing_of_the_parent_holds_for_another_formula(parent, method, name):
    own = with_formula(parent, method, FORMULAS[name])
    assert own.higher_is_better is None
    assert own.value_range is None
    assert own._incomparable == ""
    assert own.family in OF_ANY or "refusal" in type(own.family).__name__.lower()
    parents = fed(parent, SEEN[parent]).compute()
    if not isinstance(parents, int | float | np.ndarray):
        return  # neither 1 less nor 10 times a curve or a report is defined
    metric = fed(own, SEEN[parent])
    value = metric.compute()
    # A cut-off is that of all queries together, so its value is none of each query's; a spread is
    # the root of what a unit has.
    if isinstance(value, int | float) and parent not in {
        sm.RankingCount,
        sm.RecallAtFixedPrecision,
        sm.AttemptSpread,
    }:
        assert value == pytest.approx(FORMULAS[name](parents), rel=1e-9, nan_ok=True)
    holds(metric.bounds(), value)
    with contextlib.suppress(sm.NoConfidenceError):
        holds(metric.confidence(), value)
    with pytest.raises(TypeError, match="is not a share of rows"):
        trials_of(metric)
    assert rule_of(metric, {}) is None


def holds(interval, value):
    low, high = (np.asarray(side, np.float64) for side in interval)
    if not np.isfinite(value).all():
        return
    room = 1e-9 * np.maximum(1.0, np.abs(value))
    inside = (low - room <= value) & (value <= high + room)
    assert np.all(inside | np.isnan(low) | np.isnan(high) | np.isnan(value)), (low, value, high)


BUDGETS = {"max_bins": 4, "max_pairs": 16, "max_points": 16}


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.filterwarnings("ignore::streammetrics.EstimateWarning")
@pytest.mark.parametrize(("parent", "method", "name"), some(WALK))
def test_bounds_of_an_approximation_are_those_of_the_formula(parent, method, name):
    config = SEEN[parent].metric.config
    tight = {key: size for key, size in BUDGETS.items() if key in config}
    if not tight:
        return
    oracle = SEEN[parent]
    rows = oracle.rows(np.random.default_rng(1), min(oracle.n, 60))
    rows.pop("sample_weight", None)
    own = with_formula(parent, method, FORMULAS[name])
    metric = own(**{**config, **tight}).update(**rows)
    exact = parent(**config).update(**rows).compute()
    if isinstance(exact, int | float):
        metric.compute()
        holds(metric.bounds(), FORMULAS[name](exact))


def test_facts_are_declared_again_beside_a_formula():
    class Errors(sm.Accuracy):
        higher_is_better = False
        value_range = (0.0, 1.0)
        family = Family.MISSES

        def read(self, table):
            return 1 - super().read(table)

    rows = [1] * 100, [1] * 90 + [0] * 10
    own, known = Errors().update(*rows), sm.ZeroOneLoss().update(*rows)
    assert own.confidence() == pytest.approx(known.confidence(), rel=1e-12)
    assert own.confidence().method == known.confidence().method

    class Same(Errors):
        """No formula of its own."""

    assert (Same.higher_is_better, Same.value_range, Same.family) == (False, (0, 1), Family.MISSES)


@pytest.mark.parametrize(
    ("family", "side", "known"),
    [(Family.HITS, "hits", sm.Accuracy), (Family.MISSES, "misses", sm.ZeroOneLoss)],
)
def test_a_share_of_rows_needs_no_parameter_normalize(family, side, known):
    class Own(ContingencyMetric):
        value_range = (0.0, 1.0)

        def read(self, table):
            return self.ratio(getattr(table, side), table.total)

    Own.family = family
    truth, one, other = [1] * 60 + [0] * 40, [1] * 50 + [0] * 50, [1] * 70 + [0] * 30
    own, same = Own().update(truth, one), known().update(truth, one)
    assert own.confidence() == same.confidence()
    assert own.confidence(anytime=True) == same.confidence(anytime=True)
    rows = {"y_true": truth, "one": one, "other": other}
    found = [
        sm.Comparison({"share": metric}, ["one", "other"]).update(rows).compute()["share"]
        for metric in (Own(), known())
    ]
    assert found[0] == found[1]


def test_a_formula_of_a_mixin_counts():
    class Ten:
        def read(self, table):
            return 10 * super().read(table)

    class Tenfold(Ten, sm.Precision):
        pass

    assert Tenfold.value_range is None
    assert Tenfold.family == Family.AVERAGES


def test_the_range_of_a_base_is_not_that_of_its_classes():
    class Lift(ClassScoreMetric):
        def read(self, stairs):
            return 3.0 + stairs.share

        def certain(self, stairs):
            return 3.5, self.read(stairs), 4.5

    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, 500), rng.normal(size=500)
    low, high = Lift(max_bins=4).update(*rows).bounds()
    assert (low, high) == pytest.approx((3.5 - 0.5 * (low < 3.49), 4.5))

    class Unsaid(ClassScoreMetric):
        def read(self, stairs):
            return 3.0 + stairs.share

    assert tuple(Unsaid(max_bins=4).update(*rows).bounds()) == (-np.inf, np.inf)

    class Ranged(Unsaid):
        value_range = (3.0, 4.0)

    assert tuple(Ranged(max_bins=4).update(*rows).bounds()) == (3.0, 4.0)


def test_a_value_that_is_said_in_readout_is_computed_in_a_set_and_by_slice():
    class Errors(sm.Accuracy):
        def readout(self, table):
            return 1 - super().readout(table)

    rows = {"y_true": [1, 1, 1, 0], "y_pred": [1, 1, 0, 0], "c": ["a", "a", "b", "b"]}
    assert Errors().update(rows["y_true"], rows["y_pred"]).compute() == 0.25
    slices = sm.Slices(sm.MetricSet({"e": Errors()}), by=[["c"]]).update(rows)
    assert slices.compute().to_dict()["e"] == [0.0, 0.5]
    with pytest.raises(sm.NoConfidenceError, match="MetricSet"):
        Errors().update([0, 1], [0, 1]).confidence()


def test_a_count_of_a_table_has_no_limits():
    class Hits(ContingencyMetric):
        def read(self, table):
            return table.hits

    with pytest.raises(sm.NoConfidenceError, match="grows with the rows"):
        Hits().update([0, 1, 1, 0], [0, 1, 0, 0]).confidence()


def test_a_comparison_says_higher_and_not_better():
    class Errors(sm.Accuracy):
        def read(self, table):
            return 1 - super().read(table)

    one = Errors().update([1] * 200, [1] * 190 + [0] * 10)
    other = Errors().update([1] * 200, [1] * 100 + [0] * 100)
    assert sm.compare(one, other)[0].verdict == "b higher"
    pair = sm.Comparison({"e": Errors()}, {"a": "a", "b": "b"})
    pair.update({"y_true": [1] * 200, "a": [1] * 190 + [0] * 10, "b": [1] * 100 + [0] * 100})
    line = pair.compute()["e"][0]
    assert (line.verdict, line.test) == ("b higher", "joint counts")
    assert line.difference == pytest.approx(-0.45)


def test_a_ranking_with_its_own_readout_is_not_compared_by_its_queries():
    class Tenfold(sm.MRR):
        def readout(self, buffer):
            return 10 * super().readout(buffer)

    assert refused(Tenfold())
    assert not refused(sm.MRR())


def test_every_family_has_a_rule():
    assert set(_RULES) == set(Family)
    for parent in SEEN:
        assert isinstance(parent.family, Family | Refusal), parent


def by_unit(metric, rows, user):
    suite = sm.MetricSet({"m": metric}, unit="user").update(**rows, user=user)
    return suite["m"].confidence(0.95, unit="user")


def test_limits_by_unit_clip_only_at_a_stated_range():
    """Each of these was clipped to 0 and 1, and nan or too narrow beyond."""
    rng = np.random.default_rng(0)
    y = rng.random(600) < 0.2
    rows, user = {"y_true": y, "y_score": rng.normal(size=600) + 2 * y}, np.arange(600) % 40
    for metric, value in ((sm.TopDecileLift(), 4.0), (sm.CalibrationSlope(from_logits=True), 1.5)):
        low, high = by_unit(metric, rows, user)
        assert low < metric.copy().update(**rows).compute() < high
        assert low > 1 or value == 1.5
    labels = {"labels_true": rng.integers(0, 3, 600), "labels_pred": rng.integers(0, 3, 600)}
    low, high = by_unit(sm.AdjustedRandIndex(), labels, user)
    assert -1 < low < 0 < high < 1
    wrong = {"reference": ["a b"] * 160, "prediction": ["a b"] * 152 + ["c"] * 8}
    low, high = by_unit(sm.ExactMatch(), wrong, np.arange(160) % 32)
    assert 0 < low < 0.95 < high < 1


def test_limits_by_unit_hold_the_bounds_of_an_approximation():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 4000)
    rows, user = {"y_true": y, "y_score": rng.normal(size=4000) + y}, np.arange(4000) % 100
    for metric in (sm.ROCAUC(max_bins=8), Somers(max_bins=8), sm.KendallTau(max_pairs=64)):
        if isinstance(metric, sm.KendallTau):
            rows = {"y_true": rng.normal(size=4000), "y_pred": rng.normal(size=4000)}
        bounds = metric.copy().update(**rows).bounds()
        limits = by_unit(metric, rows, user)
        assert bounds.low < bounds.high
        assert limits.low <= bounds.low
        assert bounds.high <= limits.high


def covered(build, draw, truth, times, level=0.95):
    """Return how often the limits hold the value of the population."""
    inside = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sm.UndefinedMetricWarning)
        for seed in range(times):
            low, high = build().update(*draw(np.random.default_rng(seed))).confidence(level)
            inside += low <= truth <= high
    return inside / times


def labels(rng, n=300):
    y = rng.integers(0, 2, n)
    return y, np.where(rng.random(n) < 0.85, y, 1 - y)


def scored(rng, n=250):
    y = rng.integers(0, 2, n)
    return y, rng.normal(size=n) + 1.2 * y


class ErrorShare(sm.Accuracy):
    def read(self, table):
        return 1 - super().read(table)


class Tenfold(sm.F1):
    def read(self, table):
        return 10 * super().read(table)


class Somers(sm.ROCAUC):
    def read(self, stairs):
        return 20 * super().read(stairs) - 10


class OddsOfHits(AveragedMetric):
    def read(self, table):
        return self.averaged(table, table.tp, table.fn)


# Φ(1.2 / √2) is the area of two normal distributions that are 1.2 apart.
AREA = 0.8019287
POPULATIONS = [
    (ErrorShare, labels, 0.15),
    (Tenfold, labels, 8.5),
    (Somers, scored, 20 * AREA - 10),
    (OddsOfHits, labels, 0.85 / 0.15),
]


@pytest.mark.parametrize(("metric", "draw", "truth"), POPULATIONS)
def test_limits_of_own_formulas_hold(metric, draw, truth):
    assert 0.89 <= covered(metric, draw, truth, 120) <= 0.995


@pytest.mark.long
@pytest.mark.parametrize(("metric", "draw", "truth"), POPULATIONS)
def test_limits_of_own_formulas_hold_as_often_as_they_say(metric, draw, truth):
    assert 0.935 <= covered(metric, draw, truth, 2000) <= 0.97
