"""Comparisons of models whose rows are clustered in units."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import streammetrics as sm
from streammetrics.inference.paired import sign_flips

METRICS = {
    "accuracy": sm.Accuracy(threshold=0.5),
    "loss": sm.LogLoss(),
    "f1": sm.F1(threshold=0.5),
    "auc": sm.ROCAUC(),
    "ap": sm.AveragePrecision(),
    "ks": sm.KolmogorovSmirnov(),
}


def rows(units=60, seed=0, most=12):
    rng = np.random.default_rng(seed)
    unit = np.repeat(np.arange(units), rng.integers(1, most + 1, units))
    easy, y = rng.normal(size=units)[unit], rng.integers(0, 2, unit.size)
    found = {"y_true": y, "question": unit}
    for model, skill in (("a", 1.0), ("b", 0.7)):
        logit = (2 * y - 1) * (skill + easy) + rng.normal(size=unit.size)
        found[model] = 1 / (1 + np.exp(-logit))
    return found


def duel(metrics=METRICS, models=("a", "b"), unit="question", **options):
    return sm.Comparison(metrics, list(models), unit=unit, **options)


def cr2(adds, size, difference, level=0.95):
    """Return limits and p from the influence of each unit, written out as a matrix."""
    n, share = size.sum(), size / size.sum()
    residual = np.eye(n) - 1 / n
    unit = np.repeat(np.arange(size.size), size)
    vectors = [residual[unit == g].sum(axis=0) / n / math.sqrt(1 - h) for g, h in enumerate(share)]
    gram = np.array(vectors) @ np.array(vectors).T
    df = np.trace(gram) ** 2 / np.trace(gram @ gram)
    error = math.sqrt((adds**2 / (1 - share)).sum())
    half = stats.t.ppf((1 + level) / 2, df) * error
    return difference - half, difference + half, sign_flips(adds + share * difference)


def by_unit(values, table):
    """Return the mean over rows, the influence of each unit on it, and the sizes of units."""
    size = np.bincount(table["question"])
    sums = np.bincount(table["question"], values - values.mean())
    return values.mean(), sums / size.sum(), size


def placements(y, score):
    """Return the influence of each row on the area under the ROC curve."""
    positive, negative = score[y == 1], score[y == 0]
    beats = (positive[:, None] > negative).astype(float) + 0.5 * (positive[:, None] == negative)
    adds = np.zeros(y.size)
    adds[y == 1] = (beats.mean(axis=1) - beats.mean()) / positive.size
    adds[y == 0] = (beats.mean(axis=0) - beats.mean()) / negative.size
    return adds


def test_means_have_limits_of_a_sample_of_units():
    table = rows()
    found = duel().update(table).compute()
    hits = [((table[m] >= 0.5) == table["y_true"]).astype(float) for m in "ab"]
    losses = [-np.log(np.where(table["y_true"] == 1, table[m], 1 - table[m])) for m in "ab"]
    for name, (one, other) in {"accuracy": hits, "loss": losses}.items():
        (line,) = found[name]
        difference, adds, size = by_unit(one - other, table)
        low, high, p = cr2(adds, size, difference)
        np.testing.assert_allclose([line.difference, line.low, line.high], [difference, low, high])
        assert line.p == pytest.approx(p, abs=0.01)
        assert line.test == "60 units, sign flips"


def test_the_clustered_standard_error_is_that_of_miller_2024():
    """The naive variance, and the products of all pairs of rows of a unit (arXiv 2411.00640).

    Miller divides by n, and here equal units are corrected by G / (G - 1).
    """
    rng = np.random.default_rng(0)
    score, unit = rng.random((40, 6)) + rng.random((40, 1)), np.repeat(np.arange(40), 6)
    suite = sm.MetricSet({"mean": sm.Mean()}, unit="unit").update(values=score.ravel(), unit=unit)
    apart, n = score - score.mean(), score.size
    pairs = apart[:, :, None] * apart[:, None, :]
    naive, cross = np.trace(pairs, axis1=1, axis2=2).sum(), pairs.sum()
    error = math.sqrt((naive + (cross - naive)) / n**2 * 40 / 39)
    low, high = suite["mean"].confidence()
    assert (high - low) / 2 == pytest.approx(error * stats.t.ppf(0.975, 39))


def test_areas_have_limits_from_the_placements_of_a_units_rows():
    table = rows()
    (line,) = duel().update(table).compute()["auc"]
    adds = placements(table["y_true"], table["a"]) - placements(table["y_true"], table["b"])
    of_units, size = np.bincount(table["question"], adds), np.bincount(table["question"])
    low, high, _ = cr2(of_units, size, line.difference)
    np.testing.assert_allclose([line.low, line.high], [low, high])


def test_a_ranking_has_limits_of_units_of_queries():
    rng = np.random.default_rng(3)
    query = np.repeat(np.arange(160), 8)
    table = {"query": query, "relevance": rng.integers(0, 3, query.size), "topic": query // 4}
    table |= {m: table["relevance"] + rng.normal(0, s, query.size) for m, s in (("a", 1), ("b", 2))}
    trial = duel({"ndcg": sm.NDCG(k=5)}, unit="topic").update(table)
    plain = duel({"ndcg": sm.NDCG(k=5)}, unit=None)
    plain.update({name: column for name, column in table.items() if name != "topic"})
    values = [np.array(list(plain[m]["ndcg"].per_query().values())) for m in "ab"]
    gaps = values[0] - values[1]
    (line,) = trial.compute()
    adds = (gaps - gaps.mean()).reshape(40, 4).sum(axis=1) / 160
    low, high, _ = cr2(adds, np.full(40, 4), gaps.mean())
    np.testing.assert_allclose([line.low, line.high], [low, high])
    assert line.test == "40 units, sign flips"


def test_queries_with_rows_of_several_units_are_left_out_row_by_row():
    rng = np.random.default_rng(5)
    query = np.repeat(np.arange(30), 8)
    table = {"query": query, "relevance": rng.integers(0, 3, query.size)}
    table |= {m: table["relevance"] + rng.normal(0, s, query.size) for m, s in (("a", 1), ("b", 2))}
    topic = rng.integers(0, 30, query.size)

    def difference(kept):
        plain = duel({"ndcg": sm.NDCG(k=5)}, unit=None)
        plain.update({name: column[kept] for name, column in table.items()})
        values = [plain[model].compute()["ndcg"] for model in "ab"]
        return values[0] - values[1]

    (line,) = duel({"ndcg": sm.NDCG(k=5)}, unit="topic").update(table | {"topic": topic}).compute()
    whole, size = difference(topic >= 0), np.bincount(topic)
    adds = [(whole - difference(topic != t)) * (1 - size[t] / topic.size) for t in range(30)]
    low, high, _ = cr2(np.array(adds), size, whole)
    np.testing.assert_allclose([line.low, line.high], [low, high])


def test_values_are_those_of_the_rows_and_limits_of_models_are_by_unit():
    table = rows()
    found = duel().update(table)
    plain = sm.Comparison(METRICS, ["a", "b"])
    plain.update({name: column for name, column in table.items() if name != "question"})
    for model in "ab":
        assert found[model].compute() == plain[model].compute()
        suite = sm.MetricSet(METRICS, columns={"y_score": model}, unit="question").update(table)
        assert found[model].confidence() == suite.confidence()
    assert found.n_rows == plain.n_rows
    assert found.compute(margin=0.5)[0].verdict in {"better", "not worse"}
    assert 0 < found.detectable()["accuracy"] < 0.2


@pytest.mark.parametrize("units", [60, 5000])
def test_the_state_is_a_function_of_the_rows(units):
    """Also of more units than have a state each, of which early shards know nothing."""
    metrics = {name: METRICS[name] for name in ("accuracy", "loss", "auc")}
    table = rows(units, most=3)
    whole, rng = duel(metrics).update(table), np.random.default_rng(1)
    n = table["question"].size
    cuts = np.sort(rng.integers(0, n, 4))
    shards = []
    for part in np.split(rng.permutation(n), cuts):
        shard = duel(metrics)
        for batch in np.array_split(part, 3):
            shard.update({name: column[batch] for name, column in table.items()})
        shards.append(shard)
    for merged in (sm.merge(shards), sm.merge(shards[::-1])):
        assert merged.to_bytes() == whole.to_bytes()
    back = sm.from_bytes(whole.to_bytes())
    assert back == whole
    assert back.compute() == whole.compute()
    test = "60 units" if units == 60 else "64 groups of units"
    assert whole.compute()[0].test == f"{test}, sign flips"
    assert sm.evaluate(duel(metrics), [table]) == whole


def test_a_thousand_rows_of_each_of_few_units_say_little():
    """Ten units: rows would tell the models apart, and units do not."""
    rng = np.random.default_rng(5)
    unit = np.repeat(np.arange(10), 1000)
    gap = rng.normal(0, 0.15, 10)[unit]
    hits = [rng.random(unit.size) < 0.7 + shift for shift in (gap, 0)]
    table = {"y_true": np.ones(unit.size, int), "question": unit}
    table |= dict(zip("ab", (h.astype(int) for h in hits), strict=True))
    metrics = {"accuracy": sm.Accuracy()}
    of_rows = sm.Comparison(metrics, ["a", "b"]).update({k: table[k] for k in ("y_true", "a", "b")})
    of_units = duel(metrics).update(table)
    with pytest.warns(UserWarning, match="limits of 10 units"):
        apart = [each.compute()[0] for each in (of_rows, of_units)]
    assert apart[1].high - apart[1].low > 5 * (apart[0].high - apart[0].low)


def test_bad_units_are_refused_and_nothing_changes():
    table = rows()
    found = duel().update(table)
    before = found.to_bytes()
    some = table["question"].tolist()
    some[7] = some[9] = None
    with pytest.raises(
        sm.InvalidBatchError, match=r"question is missing \(NaN or null\) in 2 rows, first in row 7"
    ):
        found.update({**table, "question": some})
    with pytest.raises(sm.InvalidBatchError, match="no column 'question'"):
        found.update({name: column for name, column in table.items() if name != "question"})
    with pytest.raises(
        sm.InvalidBatchError, match="units 'question': 'text' here, 'integers' in rows"
    ):
        found.update({**table, "question": table["question"].astype(str)})
    with pytest.raises(sm.InvalidBatchError, match="holds numbers that are not ids"):
        found.update({**table, "question": table["question"] + 0.5})
    with pytest.raises(ValueError, match="no metric 'acuracy'; did you mean 'accuracy'"):
        found.compute(margin={"acuracy": 0.1})
    with pytest.raises(ValueError, match="hold at one time only"):
        found.compute(anytime=True)
    assert found.to_bytes() == before
    with pytest.raises(sm.IncompatibleMetricsError, match="unit is None there and 'question' here"):
        found.merge(duel(unit=None))


def test_units_needed_are_units_and_not_rows():
    table = rows(200)
    pilot = duel({"loss": sm.LogLoss()}).update(table)
    (line,) = pilot.compute()
    needed = sm.units_needed(pilot, {"loss": 0.01})["loss"]
    error = (line.high - line.low) / 2 / 1.97
    assert needed == pytest.approx(200 * (error * 2.8 / 0.01) ** 2, rel=0.02)
    suite = sm.MetricSet({"loss": sm.LogLoss()}, columns={"y_score": "a"}, unit="question")
    suite.update(table)
    low, high = suite["loss"].confidence()
    error = math.sqrt(2) * (high - low) / 2 / 1.96
    needed = sm.units_needed(suite, 0.05)["loss"]
    assert needed == pytest.approx(200 * (error * 2.8 / 0.05) ** 2, rel=0.02)
    many = duel({"loss": sm.LogLoss()}).update(rows(5000, most=2))
    with pytest.raises(ValueError, match="groups of 'question' are kept, and not how many"):
        sm.units_needed(many, 0.01)


def test_quantiles_leave_out_groups_of_units():
    """Without a single unit a median hardly moves, or jumps."""
    rng = np.random.default_rng(0)
    y, unit = rng.normal(size=600), np.arange(600) // 3
    table = {"y_true": y, "a": y + rng.normal(size=600), "b": y + 2 * rng.normal(size=600)}
    metrics = {"median": sm.MedianAbsoluteError(), "mae": sm.MAE()}
    median, mae = duel(metrics).update({**table, "question": unit}).compute()
    assert (median.test, mae.test) == ("62 groups of units, sign flips", "200 units, sign flips")
    assert median.high < 0 > mae.high


def test_few_units_warn():
    with pytest.warns(UserWarning, match=r"LogLoss has limits of 29 units: of fewer than 30, they"):
        duel({"loss": sm.LogLoss()}).update(rows(29)).compute()
    duel({"loss": sm.LogLoss()}).update(rows(30)).compute()


@pytest.mark.parametrize("unit", [None, "question"])
def test_models_of_the_same_labels_and_weights_have_the_same_prevalence(unit):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        table = rows(40, seed)
        table["w"] = rng.choice([0.1, 0.7, 1.3], table["y_true"].size)
        suite = sm.MetricSet(
            {"prevalence": sm.Prevalence(threshold=0.5)}, columns={"sample_weight": "w"}
        )
        (line,) = sm.Comparison(suite, ["a", "b"], unit=unit).update(table).compute()
        assert (line.difference, line.p, line.verdict) == (0, 1, "no evidence")


def test_a_state_without_rows_is_read_again():
    assert sm.from_bytes(duel().to_bytes()) == duel()


def test_one_unit_has_no_limits():
    table = rows(1, most=30)
    (line, *_) = duel().update(table).compute()
    assert math.isnan(line.low)
    assert line.test == "1 units, t"


def test_a_ledger_takes_it():
    table = rows()
    ledger = sm.Ledger(duel())
    for shard in range(3):
        part = {name: column[shard::3] for name, column in table.items()}
        ledger.add(f"s{shard}", duel().update(part))
    assert ledger.merged() == duel().update(table)


@pytest.mark.parametrize("name", METRICS)
def test_limits_and_p_do_not_depend_on_how_units_are_named(name):
    table, every = rows(), []
    unit = table["question"]
    for ids in (unit, unit.astype(str), np.random.default_rng(5).permutation(60)[unit]):
        line = duel({name: METRICS[name]}).update({**table, "question": ids}).compute()[0]
        every.append((line.low, line.high, line.p))
    assert every[0] == every[1] == every[2]


@pytest.mark.parametrize("rows_of_a_unit", [1, 2])
@pytest.mark.parametrize(("units", "p"), [(3, 0.25), (10, 2.0**-9)])
def test_units_that_all_add_the_same_have_the_p_of_as_many_signs(rows_of_a_unit, units, p):
    """Rounding decided between NaN and limits without width."""
    n = units * rows_of_a_unit
    y = np.tile([1, 0], n)[:n]
    table = {"y_true": y, "a": np.where(y, 0.9, 0.1), "b": np.where(y, 0.8, 0.2)}
    table["question"] = np.repeat(np.arange(units), rows_of_a_unit)
    (line,) = duel({"loss": METRICS["loss"]}).update(table).compute()
    assert (line.p, line.test) == (p, "equal signs")
    assert math.isnan(line.low) if p > 0.05 else line.low == line.high == line.difference


STEPS = {
    "lift": sm.TopDecileLift(),
    "recall": sm.RecallAtPrecision(p=0.7),
    "eer": sm.EqualErrorRate(),
    "calibration": sm.CalibrationError(n_bins=10),
}


@pytest.mark.long
def test_equal_models_seldom_differ_in_values_that_move_in_steps():
    """Leaving units out moves such values by more or less than their parts of the difference.

    Of 20 lines one is expected below 0.05, and 5 or more with a probability below 0.003 if they
    were independent; flipping parts that have another sum gave 8.
    """
    rng = np.random.default_rng(0)
    found = []
    for _ in range(5):
        unit = np.repeat(np.arange(100), 5)
        y = rng.integers(0, 2, unit.size)
        both = rng.normal(0.4 + 0.2 * y, 0.2)
        table = {"y_true": y, "question": unit}
        for model in "ab":
            table[model] = np.clip(both + rng.normal(0, 0.08, unit.size), 0.001, 0.999)
        found += [line.p for line in duel(STEPS).update(table).compute()]
    assert len(found) == 20
    assert sum(p < 0.05 for p in found) < 5


def test_signs_and_bets_raise_no_floating_point_error():
    rng = np.random.default_rng(0)
    n = 20_000
    y, other = rng.integers(0, 2, n), rng.random(n)
    table = {"y_true": y, "a": np.clip(y + rng.normal(0, 0.4, n), 0, 1), "b": other}
    with np.errstate(all="raise"):
        trial = duel({"accuracy": sm.Accuracy(threshold=0.5)}, unit=None).update(table)
        (line,) = trial.compute(anytime=True)
        assert 0 < line.low < line.difference < line.high
        few = {name: column[:40] for name, column in table.items()} | {"y_true": np.ones(40, int)}
        (line,) = duel({"ap": sm.AveragePrecision()}, unit=None).update(few).compute()
        assert line.difference == 0
        assert math.isnan(line.low)
