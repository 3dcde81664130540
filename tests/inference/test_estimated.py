"""Prediction-powered estimates against their formulas row by row, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.few_labels import POPULATIONS, Population, classes, scored, simulate, targets
from thinning import some

import streammetrics as sm
from streammetrics.cli import main

UNTOLD = {"mse": 1, "rmse": 1, "loss": 15, "auc": 8, "mean": 1}
BINARY = {
    "accuracy": sm.Accuracy(threshold=0.5),
    "f1": sm.F1(threshold=0.5),
    "loss": sm.LogLoss(),
    "auc": sm.ROCAUC(),
}
REGRESSION = {"mse": sm.MSE(), "rmse": sm.RMSE()}


def binary(seed=0, n=800, share=0.25):
    """Rows with scores in steps, so that there are ties, of which some have a label."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    score = np.round(1 / (1 + np.exp(-(2 * y - 1 + 1.5 * rng.standard_normal(n)))), 2)
    judge = np.where(rng.random(n) < 0.85, y, 1 - y)
    chance = np.where(score > 0.5, 1.5, 0.5) * share
    drawn = rng.random(n) < chance
    rows = {"y_true": np.where(drawn, y, np.nan), "y_score": np.clip(score, 0.01, 0.99)}
    return {**rows, "judge": judge, "chance": chance}


def regression(seed=0, n=800):
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(n)
    drawn, chance = rng.random(n) < 0.25, np.full(n, 0.25)
    judge, pred = (y + scale * rng.standard_normal(n) for scale in (0.3, 0.6))
    return {"y_true": np.where(drawn, y, np.nan), "y_pred": pred, "judge": judge, "chance": chance}


def influences(name, y, p, w):
    """Return the value of weighted rows, and its derivative with respect to each row's weight."""
    if name == "f1":
        called = p >= 0.5
        value = 2 * (w @ (called * y)) / (w @ called + w @ y)
        return value, (2 * called * y - value * (called + y)) / (w @ called + w @ y)
    if name == "auc":
        above = (p[:, None] > p) + 0.5 * (p[:, None] == p)
        positive, negative = w * y, w * (1 - y)
        beats, beaten = above @ negative / negative.sum(), above.T @ positive / positive.sum()
        value = positive @ beats / positive.sum()
        each = (beats - value) / positive.sum(), (beaten - value) / negative.sum()
        return value, np.where(y == 1, *each)
    losses = {
        "accuracy": lambda: ((p >= 0.5) == y) * 1.0,
        "loss": lambda: -np.log(np.where(y == 1, p, 1 - p)),
        "mse": lambda: (y - p) ** 2,
        "rmse": lambda: (y - p) ** 2,
    }[name]()
    mean = w @ losses / w.sum()
    value, slope = (mean**0.5, 0.5 / mean**0.5) if name == "rmse" else (mean, 1.0)
    return value, slope * (losses - mean) / w.sum()


def telling(psi, w, *cell):
    """Return the number of rows of equal influence; the weights in a cell count as alike."""
    amount, squares, slope = np.zeros((3, 8))
    at = np.array([4, 2, 1]) @ np.array(cell, int)
    np.add.at(amount, at, w)
    np.add.at(squares, at, w**2)
    slope[at] = psi
    seen = amount > 0
    amount, squares, slope = amount[seen], squares[seen], slope[seen]
    return (squares @ slope**2) ** 2 / (squares * (squares / amount) ** 2 @ slope**4)


def expected(name, rows, *, by_chance):
    """Return the estimate, λ, and the share of the standard error, from the rows."""
    y, p, judge = rows["y_true"], rows.get("y_score", rows.get("y_pred")), rows["judge"]
    has = ~np.isnan(y)
    n, total = int(has.sum()), len(y)
    w = 1 / rows["chance"][has] if by_chance else np.ones(n)
    value, psi = influences(name, y[has], p[has], w)
    judged, phi = influences(name, judge[has], p[has], w)
    whole, _ = influences(name, judge, p, np.ones(total))
    rows_part = w if by_chance else w**2 * n / total
    drawn = w**2 - rows_part
    told = telling(psi, w, p[has] >= 0.5, y[has], judge[has]) if name in {"accuracy", "f1"} else n
    both = drawn @ (psi * phi) * told / (told + UNTOLD.get(name, 1))
    slope = np.clip(both / (drawn @ phi**2), 0, 1 / (1 - n / total))
    rest = drawn @ psi**2 - 2 * slope * both + slope**2 * (drawn @ phi**2)
    alone = (drawn + rows_part) @ psi**2
    ratio = np.sqrt((rows_part @ psi**2 + rest) / alone)
    return value + slope * (whole - judged), slope * (1 - n / total), ratio


@pytest.mark.parametrize("by_chance", [False, True])
@pytest.mark.parametrize(
    ("metrics", "rows"), [(BINARY, binary()), (REGRESSION, regression())], ids=["scores", "targets"]
)
def test_estimates_are_those_of_the_formulas(metrics, rows, by_chance):
    rows = {name: column for name, column in rows.items() if by_chance or name != "chance"}
    estimated = sm.Estimated(metrics, proxy="judge", propensity="chance" if by_chance else None)
    estimated.update(rows)
    values, limits = estimated.compute(), estimated.confidence()
    own = estimated["labels"].confidence()
    for name in metrics:
        value, weight, ratio = expected(name, rows, by_chance=by_chance)
        assert values[name] == pytest.approx(value, rel=1e-8), name
        assert f"λ = {weight:.2f}," in limits[name].method
        scale = np.log if name in {"loss", "mse", "rmse"} else lambda x: np.log(x / (1 - x))
        sides = np.array([limits[name], own[name]])
        if np.divide(*np.diff(sides)) < 1.0199:  # the most, in widths of labels alone
            assert np.divide(*np.diff(scale(sides))) == pytest.approx(ratio, rel=1e-6), name


def test_equal_weights_change_nothing():
    del (rows := binary())["chance"]
    plain, weighted = (
        sm.Estimated(BINARY, proxy="judge").update(**rows, sample_weight=weight)
        for weight in (None, np.full(800, 2.0))
    )
    assert weighted.compute() == pytest.approx(plain.compute(), rel=1e-9)
    for name, limits in weighted.confidence().items():
        assert tuple(limits) == pytest.approx(tuple(plain.confidence()[name]), rel=5e-3)


@pytest.mark.parametrize("power", [-400, 400])
def test_the_unit_of_weights_changes_nothing(power):
    del (rows := binary())["chance"]
    weight = np.where(np.arange(800) % 5, 1.0, 0.0)
    plain, scaled = (
        sm.Estimated(sm.MetricSet({"f1": sm.F1(threshold=0.5)}), proxy="judge").update(
            **{k: rows[k] for k in ("y_true", "y_score", "judge")}, sample_weight=each
        )
        for each in (weight, np.ldexp(weight, power))
    )
    assert scaled.compute() == pytest.approx(plain.compute(), rel=1e-12)
    limits = scaled.confidence()["f1"]
    assert tuple(limits) == pytest.approx(tuple(plain.confidence()["f1"]), rel=1e-12)
    assert "λ = 0.00" not in limits.method


def test_equal_propensities_weigh_nothing():
    rows = binary()
    rows["chance"] = np.full(800, np.count_nonzero(~np.isnan(rows["y_true"])) / 800)
    drawn = sm.Estimated(BINARY, proxy="judge", propensity="chance").update(rows)
    plain = sm.Estimated(BINARY, proxy="judge").update(
        {name: rows[name] for name in ("y_true", "y_score", "judge")}
    )
    for name, (low, high) in drawn.confidence().items():
        assert (low, high) == pytest.approx(tuple(plain.confidence()[name]), rel=1e-3)
    assert drawn.compute() == pytest.approx(plain.compute(), rel=1e-9)


@pytest.mark.parametrize("propensity", [None, "chance"])
def test_any_batches_and_shards_give_the_same_bytes(propensity):
    rows = binary()
    order = np.random.default_rng(1).permutation(800)
    empty = sm.Estimated(BINARY, proxy="judge", propensity=propensity)
    rows = {name: rows[name] for name in empty._needed}

    def of(places):
        return empty.copy().update({name: column[places] for name, column in rows.items()})

    whole = of(order[::-1])
    single, parts = empty.copy(), [of(part) for part in np.array_split(order, 7)]
    for place in order:
        single.update({name: column[[place]] for name, column in rows.items()})
    repeated = of(np.tile(order, 200))  # a batch that is read in slices
    assert single.to_bytes() == sm.merge(parts).to_bytes() == whole.to_bytes()
    assert sm.merge([whole] * 200) == repeated
    assert sm.from_bytes(whole.to_bytes()).confidence() == whole.confidence()
    with pytest.raises(sm.IncompatibleMetricsError, match="columns are"):
        whole.merge(sm.Estimated(BINARY, proxy="other"))


@pytest.mark.parametrize("judge", ["chance", "opposite", "constant"])
@pytest.mark.parametrize("seed", range(20))
def test_limits_are_not_wider_than_those_of_labels_alone(judge, seed):
    rng = np.random.default_rng(seed)
    rows = binary(seed, 1000, 0.1)
    rows["judge"] = {
        "chance": rng.integers(0, 2, 1000),
        "opposite": 1 - rows["judge"],
        "constant": np.ones(1000, int),
    }[judge]
    del rows["chance"]
    estimated = sm.Estimated(BINARY, proxy="judge").update(rows)
    alone = estimated["labels"].confidence()
    for name, (low, high) in estimated.confidence().items():
        assert high - low <= 1.02 * (alone[name].high - alone[name].low) * (1 + 1e-9)
        if judge == "opposite" and name in {"accuracy", "f1", "loss"}:
            assert estimated.compute()[name] == estimated["labels"][name].compute()


def test_rows_that_all_have_a_label_give_the_value_by_labels():
    rows = {"y_true": [1, 0, 1, 1, 0, 1], "y_pred": [1, 0, 0, 1, 1, 1], "judge": [0, 0, 1, 1, 0, 1]}
    estimated = sm.Estimated({"f1": sm.F1()}, proxy="judge").update(rows)
    assert estimated.compute() == {"f1": sm.F1().update(rows["y_true"], rows["y_pred"]).compute()}
    assert tuple(estimated.confidence()["f1"]) == tuple(estimated["labels"]["f1"].confidence())


@pytest.mark.parametrize("propensity", [None, "chance"])
def test_labels_without_any_error_have_their_own_limits(propensity):
    """Their variance is 0, which says nothing of the rows without a label."""
    y = np.r_[np.zeros(15), np.ones(15), np.full(70, np.nan)]
    rows = {"y_true": y, "y_pred": np.r_[np.zeros(15), np.ones(80), np.zeros(5)]}
    rows |= {"judge": np.r_[np.zeros(15), np.ones(85)], "chance": np.full(100, 0.3)}
    suite = {"accuracy": sm.Accuracy(), "f1": sm.F1(), "mcc": sm.MatthewsCorrcoef()}
    estimated = sm.Estimated(suite, proxy="judge", propensity=propensity).update(rows)
    for name, limits in estimated.confidence().items():
        assert tuple(limits) == tuple(estimated["labels"][name].confidence())
        assert limits.low < limits.high == 1.0


def test_a_judgment_that_is_the_label_gives_the_value_of_all_rows():
    rows = binary()
    rows["judge"] = np.where(np.isnan(rows["y_true"]), rows["judge"], rows["y_true"])
    every = sm.Accuracy(threshold=0.5).update(rows["judge"].astype(int), rows["y_score"])
    del rows["chance"]
    found = sm.Estimated({"accuracy": BINARY["accuracy"]}, proxy="judge").update(rows)
    assert found.compute()["accuracy"] == pytest.approx(every.compute(), abs=5e-3)


def test_labels_and_judgments_are_of_any_kind():
    words = {"y_true": ["a", None, "b", "a"], "y_pred": ["a", "b", "b", "b"], "judge": list("abba")}
    macro = sm.Estimated({"f1": sm.F1(average="macro")}, proxy="judge").update(words)
    assert macro["labels"].n_rows == 3
    assert (macro.n_rows, macro.n_omitted) == (4, 0)
    ratings = sm.Estimated({"mean": sm.Mean()}, proxy="judge")
    ratings.update(values=[4.0, None, 5.0, None, 3.0], judge=[4.0, 4.0, 4.5, 2.0, 3.0])
    assert 3.0 < ratings.compute()["mean"] < 4.0
    empty = sm.Estimated({"mean": sm.Mean()}, proxy="judge")
    with pytest.warns(sm.UndefinedMetricWarning, match="no rows were seen"):
        assert np.isnan(empty.compute()["mean"])


def test_missing_predictions_are_left_out_if_asked():
    rows = {"y_true": [1.0, np.nan, 2.0, 4.0], "y_pred": [1.0, 2.0, np.nan, 3.0]}
    empty = sm.Estimated({"mse": sm.MSE(nan_policy="omit")}, proxy="judge")
    estimated = empty.update(**rows, judge=[1.0, 2.0, 2.0, 3.5])
    assert (estimated.n_rows, estimated.n_omitted, estimated["labels"].n_rows) == (3, 1, 2)


GOOD = {"y_true": [1, 0, None, 1], "y_pred": [1, 0, 0, 0], "judge": [1, 0, 1, 1], "p": [0.5] * 4}


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ({"judge": [1, None, 1, None]}, "judge is missing .* in 2 rows, first in row 1"),
        ({"judge": None}, "judge is None"),
        ({"y_true": None}, "y_true is None"),
        ({"y_true": ["a", "b", None, "a"]}, "y_true holds strings"),
        ({"p": [0.5, 1.5, 2.0, 0.5]}, r"p is not in \(0, 1\] in 2 rows, first in row 1 \(1.5\)"),
        ({"p": [0.5, 0.5, 0.5, 0.0]}, r"p is not in \(0, 1\] in 1 row, first in row 3 \(0.0\)"),
        ({"p": [0.5, -0.5, 0.5, 0.5]}, r"p is not in \(0, 1\] in 1 row, first in row 1"),
        ({"p": [0.5, 0.5, np.nan, None]}, "p is missing .* in 2 rows, first in row 2"),
        ({"p": ["a", "b", "c", "d"]}, "p"),
        ({"p": [0.5]}, "columns differ in length"),
        ({"sample_weight": [1.0] * 4}, "sample_weight is given, but rows weigh the inverse of p"),
    ],
)
def test_bad_rows_are_refused_and_change_nothing(bad, match):
    estimated = sm.Estimated({"accuracy": sm.Accuracy()}, proxy="judge", propensity="p")
    before = estimated.update(**GOOD).to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=match):
        estimated.update(**{**GOOD, **bad})
    assert estimated.to_bytes() == before


def test_reading_needs_a_label():
    estimated = sm.Estimated(
        sm.MetricSet({"accuracy": sm.Accuracy()}, columns={"y_true": "label"}), proxy="judge"
    )
    estimated.update(label=[None] * 3, y_pred=[1, 0, 1], judge=[1, 1, 1])
    for read in (estimated.compute, estimated.confidence):
        with pytest.raises(sm.InvalidBatchError, match=r"label is missing .* in 3 rows, .* row 0"):
            read()
    assert estimated.update(label=[1], y_pred=[1], judge=[1]).compute() == {"accuracy": 1.0}


@pytest.mark.parametrize(
    ("metric", "match"),
    [
        (sm.ROCAUC(max_fpr=0.1), "cannot be estimated"),
        (sm.AveragePrecision(), "cannot be estimated"),
        (sm.R2(), "cannot be estimated"),
        (sm.NDCG(), "cannot be estimated"),
        (sm.F1(average=None), "several numbers"),
        (sm.MSE(multioutput=(0.5, 0.5)), "cannot be estimated"),
        (sm.Sum(), "says nothing of how sure"),
    ],
    ids=repr,
)
def test_metrics_without_estimates_are_refused_by_name(metric, match):
    with pytest.raises(ValueError, match=f"'mine', .*{match}"):
        sm.Estimated({"mine": metric}, proxy="judge")


def test_scores_of_several_classes_are_refused():
    estimated = sm.Estimated({"auc": sm.ROCAUC()}, proxy="judge")
    score = np.full((3, 3), 1 / 3)
    with pytest.raises(sm.InvalidBatchError, match="y_score"):
        estimated.update(y_true=[0, 1, 2], y_score=score, judge=[0, 1, 2])


def test_what_is_no_plain_set_or_column_is_refused():
    with pytest.raises(TypeError, match="plain set"):
        sm.Estimated(sm.MetricSet(BINARY, unit="user"), proxy="judge")
    with pytest.raises(ValueError, match="proxy=''"):
        sm.Estimated(BINARY, proxy="")
    estimated = sm.Estimated(BINARY, proxy="judge")
    for options in ({"anytime": True}, {"method": "wilson"}, {"unit": "user"}):
        with pytest.raises(ValueError, match="one method"):
            estimated.confidence(**options)
    with pytest.raises(KeyError, match="no side 'label'"):
        estimated["label"]
    refusals = {
        lambda: sm.Live(estimated): "an Estimated is not for Live",
        lambda: sm.compare(estimated, estimated): "an Estimated cannot be compared",
        lambda: sm.Slices(estimated, by=["city"]): "cannot be sliced",
    }
    for refused, match in refusals.items():
        with pytest.raises(TypeError, match=match):
            refused()


def test_rows_can_be_grouped_in_a_database():
    suite = sm.MetricSet({"f1": sm.F1()}, columns={"y_true": "label"}, counts="n")
    estimated = sm.Estimated(suite, proxy="judge", propensity="share")
    assert set(sm.group_by(estimated).columns) == {"label", "y_pred", "judge", "share"}


def test_the_command_line_shows_estimates(tmp_path, capsys):
    path = tmp_path / "estimated.state"
    del (rows := binary())["chance"]
    sm.Estimated(BINARY, proxy="judge").update(rows).save(path)
    assert main(["show", str(path), "--confidence", "0.95"]) == 0
    assert "accuracy  0.764420" in capsys.readouterr().out
    assert main(["report", str(path), "-o", str(tmp_path / "page.html")]) != 0
    assert "an Estimated has no page" in capsys.readouterr().err


DRAWS = [
    *((scored, False), (scored, True), (classes, True)),
    *((classes, False), (targets, False), (targets, True)),
]


def outcomes(draw, n, samples, *, uneven=False):
    population = Population(draw, 0.9, POPULATIONS[draw])
    return dict(simulate(population, n, 3_000, samples, float("inf"), uneven=uneven))


@pytest.mark.parametrize(
    ("metric", "positive", "agreement"),
    some(
        [(sm.Specificity, 0.3, 0.98), (sm.FalsePositiveRate, 0.1, 0.95), (sm.Precision, 0.1, 0.9)]
    ),
)
def test_limits_hold_where_few_labelled_rows_are_wrong(metric, positive, agreement):
    dice = np.random.default_rng(1)
    held, samples, n = 0, 200, 200
    for _ in range(samples):
        y = (dice.random(4000) < positive).astype(int)
        pred, judge = (np.where(dice.random(4000) < p, y, 1 - y) for p in (0.99, agreement))
        estimated = sm.Estimated(sm.MetricSet({"m": metric()}), proxy="judge")
        labels = np.where(np.arange(4000) < n, y, np.nan)
        limits = estimated.update(y_true=labels, y_pred=pred, judge=judge).confidence()["m"]
        right = 0.99 * positive
        truth = {
            sm.Specificity: 0.99,
            sm.FalsePositiveRate: 0.01,
            sm.Precision: right / (right + 0.01 * (1 - positive)),
        }[metric]
        held += limits.low <= truth <= limits.high
    assert held >= 0.9 * samples  # three standard errors of 0.95 are 0.046


@pytest.mark.parametrize(("draw", "uneven"), some(DRAWS, every=6))
def test_limits_hold_as_often_as_they_say(draw, uneven):
    for name, line in outcomes(draw, 300, 100, uneven=uneven).items():
        assert line.held >= 0.88, name  # three standard errors of 0.95 are 0.065
        if not uneven:
            assert 0.8 <= line.spread <= 1.2, name
            assert 0.95 <= line.width <= 1.05, name
        assert line.widest <= 1.02 * (1 + 1e-9), name
