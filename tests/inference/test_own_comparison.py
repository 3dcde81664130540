"""Comparison of models by an author's means of rows, and by functions of them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from own_metrics import Discounted, GeometricMean, MeanLogRatio, MeanWords, Message
from scipy import stats

import streammetrics as sm
from streammetrics.authoring import Floats, RowMean

N = 300
RNG = np.random.default_rng(31)
Y = RNG.exponential(size=N) + 0.5
A, B = Y * RNG.exponential(size=(2, N)) + 0.5
W = RNG.integers(1, 4, N) / 2
UNIT = np.arange(N) // 3
TABLE = {"y_true": Y, "a": A, "b": B, "w": W, "unit": UNIT}


class Absolute(RowMean):
    """The mean absolute error."""

    higher_is_better = False

    def row(self, y_true: Floats, y_pred: Floats):
        return np.abs(y_true - y_pred)


class Relative(RowMean):
    """The sum of errors over that of targets."""

    higher_is_better = False

    def row(self, y_true: Floats, y_pred: Floats):
        return np.abs(y_true - y_pred), y_true

    def of_mean(self, error: Floats, size: Floats):
        return error / size


def compared(metric, *, weight=None, unit=None, models=("a", "b")):
    columns = {} if weight is None else {"sample_weight": weight}
    suite = sm.MetricSet({"own": metric}, columns=columns)
    return sm.Comparison(suite, list(models), unit=unit).update(TABLE)


def paired(adds_a, adds_b, difference, weight):
    """Return the difference with its limits and p, from what each row adds to either value."""
    gap = weight * (adds_a - adds_b - difference)
    error = np.sqrt((gap**2).sum() * N / (N - 1)) / weight.sum()
    df = weight.sum() ** 2 / (weight**2).sum() - 1
    half = stats.t.ppf(0.975, df) * error
    p = 2 * stats.t.sf(abs(difference) / error, df)
    return difference, difference - half, difference + half, p


def test_a_mean_of_rows_has_the_paired_t_test():
    (line,) = compared(MeanLogRatio()).compute()
    terms = np.log(A / Y), np.log(B / Y)
    expected = stats.ttest_rel(*terms)
    assert line.test == "paired t"
    assert line.difference == pytest.approx((terms[0] - terms[1]).mean(), rel=1e-12)
    assert line.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert [line.low, line.high] == pytest.approx([*expected.confidence_interval()], rel=1e-9)
    own, theirs = (compared(m).compute()[0] for m in (Absolute(), sm.MAE()))
    assert [own.difference, own.low, own.high, own.p] == [
        theirs.difference, theirs.low, theirs.high, theirs.p,
    ]  # fmt: skip
    assert own.verdict == theirs.verdict


@pytest.mark.parametrize("weighted", [False, True])
def test_a_function_of_means_has_the_paired_t_test_of_what_rows_add(weighted):
    weight = W if weighted else np.ones(N)
    found = compared(Relative(), weight="w" if weighted else None).compute()[0]
    values, adds = [], []
    for p in (A, B):
        error = np.abs(Y - p)
        value = (weight @ error) / (weight @ Y)
        values.append(value)
        adds.append(value + (error - value * Y) / np.average(Y, weights=weight))
    expected = paired(*adds, values[0] - values[1], weight)
    got = [found.difference, found.low, found.high, found.p]
    assert got == pytest.approx(expected, rel=1e-7)
    mean = compared(MeanLogRatio(), weight="w" if weighted else None).compute()[0]
    terms = np.log(A / Y), np.log(B / Y)
    expected = paired(*terms, np.average(terms[0] - terms[1], weights=weight), weight)
    got = [mean.difference, mean.low, mean.high, mean.p]
    assert got == pytest.approx(expected, rel=1e-9)


def test_units_are_the_sample_where_there_are_some():
    own, theirs = (compared(m, unit="unit").compute()[0] for m in (Absolute(), sm.MAE()))
    assert own.test == theirs.test == "100 units, sign flips"
    assert [own.low, own.high, own.p] == [theirs.low, theirs.high, theirs.p]
    ratio, wape = (compared(m, unit="unit").compute()[0] for m in (Relative(), sm.WAPE()))
    assert [ratio.low, ratio.high] == pytest.approx([wape.low, wape.high])
    assert ratio.p == pytest.approx(wape.p, abs=0.01)  # signs are drawn


def test_shards_merge_and_files_are_read_back(tmp_path):
    suite = {"own": Relative(), "log": MeanLogRatio(), "mae": sm.MAE()}
    whole = sm.Comparison(suite, ["a", "b"]).update(TABLE)
    parts = [
        sm.Comparison(suite, ["a", "b"]).update({k: v[i::3] for k, v in TABLE.items()})
        for i in (2, 0, 1)
    ]
    merged = sm.merge(parts)
    assert merged.to_bytes() == whole.to_bytes()
    assert sm.from_bytes(whole.to_bytes()) == pickle.loads(pickle.dumps(whole)) == whole
    whole.save(tmp_path / "duel.state")
    assert sm.load(tmp_path / "duel.state").compute() == whole.compute()
    assert whole["a"].compute()["own"] == Relative().update(Y, A).compute()


def test_models_may_have_inputs_of_an_author():
    texts = {"one": ["to be", "or"] * 20, "two": ["to be or not", "to be"] * 20}
    models = {"a": {"text": "one"}, "b": {"text": "two"}}
    duel = sm.Comparison({"words": MeanWords()}, models).update(texts)
    (line,) = duel.compute()
    assert (line.value, line.other, line.difference) == (1.5, 3.0, -1.5)
    expected = stats.ttest_rel([2, 1] * 20, [4, 2] * 20)
    assert line.p == pytest.approx(expected.pvalue, rel=1e-9)
    again = sm.from_bytes(duel.to_bytes())
    assert again.update(texts).compute()[0].n_rows == 80
    assert again.models == ("a", "b")
    models = {"a": {"values": "a"}, "b": {"values": "b"}}
    own = sm.Comparison({"mean": GeometricMean()}, models).update(TABLE).compute()[0]
    assert own.value == GeometricMean().update(A).compute()
    assert own.p < 1
    objects = {name: [Message(text) for text in column] for name, column in texts.items()}
    assert duel.copy().reset().update(objects) == duel


def test_only_means_can_compare_other_inputs_of_models():
    models = {"a": {"y_true": "t", "y_pred": "a"}, "b": {"y_true": "y_true", "y_pred": "b"}}
    rows = {**TABLE, "t": Y + 1}
    (line,) = sm.Comparison({"own": Absolute()}, models).update(rows).compute()
    expected = stats.ttest_rel(np.abs(Y + 1 - A), np.abs(Y - B))
    assert line.p == pytest.approx(expected.pvalue, rel=1e-9)
    with pytest.raises(ValueError, match="models have their own y_true, which only means of rows"):
        sm.Comparison({"r2": sm.R2()}, models)
    with pytest.raises(ValueError, match=r"name those that each model has, .*'text': 'text_a'"):
        sm.Comparison({"words": MeanWords()}, ["one", "two"])


def test_values_without_a_derivative_have_no_limits():
    class Logarithm(Absolute):
        def of_mean(self, error):
            return np.log(error)

    duel = sm.Comparison({"log": Logarithm()}, ["a", "b"])
    (line,) = duel.update(y_true=Y, a=Y, b=B).compute()
    assert np.isnan([line.low, line.high, line.p]).all()
    assert line.verdict == "no evidence"


def test_few_labels_are_enough_for_own_means():
    rows = {"y_true": np.where(np.arange(N) < 60, Y, np.nan), "y_pred": A, "judge": Y + 0.1 * B}
    own, theirs = (
        sm.Estimated({"m": m}, proxy="judge").update(rows) for m in (Absolute(), sm.MAE())
    )
    assert own.compute() == theirs.compute()
    half = [np.ptp([*each.confidence()["m"]]) for each in (own, theirs)]
    assert half[0] == pytest.approx(half[1], rel=0.1)  # that of losses is on the logarithm
    with pytest.raises(ValueError, match="cannot be estimated"):
        sm.Estimated({"m": Relative()}, proxy="judge")


def test_own_rankings_are_compared_by_query():
    rows = {
        "query": np.arange(N) // 10,
        "relevance": RNG.integers(0, 3, N),
        "a": RNG.random(N),
        "b": RNG.random(N),
    }
    (line,) = sm.Comparison({"gain": Discounted(k=5)}, ["a", "b"]).update(rows).compute()
    each = [
        [*Discounted(k=5).update(rows["query"], rows["relevance"], rows[m]).per_query().values()]
        for m in "ab"
    ]
    assert line.test == "sign flips"
    expected = stats.ttest_rel(*each).confidence_interval()
    assert [line.low, line.high] == pytest.approx([*expected], rel=1e-9)
