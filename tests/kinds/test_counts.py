"""A row with a count is that many rows: the same bytes and limits as the rows expanded."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.table import thinned

import streammetrics as sm
from kinds.rows import FIRST, taken
from streammetrics.core import tuning
from streammetrics.core.feeding import plan

N = 24


def uncounted(metric):
    """Return why rows of a metric cannot be counted; empty if they can."""
    return next((s.uncounted for s in metric.statistics() if s.uncounted), "")


def arrays_of(oracle, n, seed=0):
    """Return rows of an oracle as arrays, with weights where it has them."""
    rows = oracle.rows(np.random.default_rng(seed), n)
    return {name: np.asarray(column) for name, column in rows.items()}


def limits_of(metric):
    try:
        return repr(metric.confidence())
    except sm.NoConfidenceError as error:
        return str(error)


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("oracle", thinned(FIRST, columns=False))
def test_counted_rows_are_the_expanded_rows(oracle):
    rows = arrays_of(oracle, N)
    n = len(next(iter(rows.values())))
    counts = np.random.default_rng(1).choice([0, 1, 1, 2, 3, 7, 20], n)
    metric = oracle.metric.copy()
    if why := uncounted(metric):
        with pytest.raises(sm.InvalidBatchError, match=why):
            metric.update(**rows, counts=counts)
        assert metric == oracle.metric
        return
    expanded = oracle.metric.copy().update(**taken(rows, np.repeat(np.arange(n), counts)))
    assert metric.update(**rows, counts=counts).to_bytes() == expanded.to_bytes()
    assert limits_of(metric) == limits_of(expanded)
    ones = oracle.metric.copy().update(**rows, counts=np.ones(n, np.int64))
    assert ones == oracle.metric.copy().update(**rows)
    nothing = oracle.metric.copy().update(**rows, counts=np.zeros(n, np.int64))
    assert nothing == oracle.metric


@pytest.mark.parametrize("oracle", thinned(FIRST, columns=False))
def test_many_rows_of_small_counts_are_the_expanded_rows(oracle, monkeypatch):
    if uncounted(oracle.metric):
        pytest.skip("its rows are refused with counts")
    monkeypatch.setattr(plan, "_TOGETHER", 1)  # as if there were thousands of rows for each count
    rows = arrays_of(oracle, 60)
    n = len(next(iter(rows.values())))
    dice = np.random.default_rng(1)
    counts, weights = dice.choice([0, 1, 2, 3, 6], n), dice.random(n)
    for given in (rows, {**rows, "sample_weight": weights}):
        try:
            expanded = oracle.metric.copy().update(**taken(given, np.repeat(np.arange(n), counts)))
        except (sm.InvalidBatchError, TypeError):
            assert given is not rows  # the metric takes no weights
            continue
        counted = oracle.metric.copy().update(**given, counts=counts)
        assert counted.to_bytes() == expanded.to_bytes()


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("oracle", thinned(FIRST, columns=False))
def test_counts_beyond_memory_are_never_expanded(oracle):
    if uncounted(oracle.metric):
        pytest.skip("its rows are refused with counts")
    rows = arrays_of(oracle, N)
    n = len(next(iter(rows.values())))
    metric = oracle.metric.copy()
    metric.update(**rows, counts=np.full(n, 3 << 36))
    once = oracle.metric.copy().update(**rows)
    assert metric.n_rows == once.n_rows * (3 << 36)
    assert sm.from_bytes(metric.to_bytes()) == metric
    half = oracle.metric.copy().update(**rows, counts=np.full(n, 3 << 35))
    assert sm.merge([half, half]) == metric


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("oracle", thinned(FIRST, columns=False))
def test_counted_rows_of_slices_are_the_expanded_rows(oracle):
    # So many rows for each key that they are ordered by key before they are summed.
    rows = arrays_of(oracle, 120)
    n = len(next(iter(rows.values())))
    if uncounted(oracle.metric) or not isinstance(oracle.metric, sm.Metric):
        pytest.skip("its rows are refused with counts")
    rng = np.random.default_rng(1)
    rows |= {"key": rng.integers(0, 2, n), "n": rng.choice([0, 1, 1, 2, 3, 7, 20], n)}
    weighed = {name: name for name in ("sample_weight",) if name in rows}
    suite = sm.MetricSet({"it": oracle.metric}, columns=weighed, counts="n")
    counted, expanded = (sm.Slices(suite, by=[[], ["key"]]) for _ in range(2))
    whole = taken(rows, np.repeat(np.arange(n), rows["n"])) | {"n": np.ones(rows["n"].sum(), int)}
    assert counted.update(rows).to_bytes() == expanded.update(whole).to_bytes()
    for key in (0, 1):
        own = taken(rows, np.flatnonzero(rows["key"] == key))
        alone = suite.copy().update(own)
        assert counted[{"key": key}]["it"] == alone["it"]


def rows_of(n, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "y_true": rng.integers(0, 2, n), "y_score": np.round(rng.random(n), 1),
        "other": np.round(rng.random(n), 1), "country": rng.choice(["DE", "FR"], n),
        "user": rng.integers(0, 30, n), "n": rng.integers(0, 9, n),
        "judge": rng.integers(0, 2, n), "share": rng.uniform(0.1, 1.0, n),
    }  # fmt: skip


METRICS = {"auc": sm.ROCAUC(), "f1": sm.F1(threshold=0.5), "loss": sm.BrierScore()}
SETS = {
    "set": lambda **options: sm.MetricSet(METRICS, **options),
    "by unit": lambda **options: sm.MetricSet(METRICS, unit="user", **options),
    "slices": lambda **options: sm.Slices(
        sm.MetricSet(METRICS), by=[[], ["country"], ["country", "user"]], **options
    ),
    "slices by unit": lambda **options: sm.Slices(
        sm.MetricSet(METRICS), by=[["country"]], unit="user", **options
    ),
    "comparison": lambda counts: sm.Comparison(
        sm.MetricSet({"auc": sm.ROCAUC(), "f1": sm.F1(threshold=0.5)}, counts=counts),
        {"a": "y_score", "b": "other"},
    ),
    "estimated": lambda counts: sm.Estimated(sm.MetricSet(METRICS, counts=counts), proxy="judge"),
    "estimated, drawn": lambda counts: sm.Estimated(
        sm.MetricSet(METRICS, counts=counts), proxy="judge", propensity="share"
    ),
}


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("make", SETS.values(), ids=SETS)
def test_sets_read_counts_from_a_column(make):
    rows = rows_of(300)
    counted, expanded = make(counts="n"), make(counts="n")
    table = {name: rows[name] for name in counted._needed}
    whole = taken(table, np.repeat(np.arange(300), rows["n"]))
    whole["n"] = np.ones(len(whole["n"]), np.int64)
    assert counted.update(table).to_bytes() == expanded.update(whole).to_bytes()
    assert str(counted.confidence()) == str(expanded.confidence())
    assert sm.from_bytes(counted.to_bytes()) == counted
    by_name = make(counts="n").update(**table)
    assert by_name == counted
    with pytest.raises(sm.InvalidBatchError, match="no column 'n'"):
        counted.update({name: column for name, column in table.items() if name != "n"})


def test_a_column_called_counts_is_read_only_if_said():
    rows = {"y_true": [1, 0], "y_pred": [1, 1], "counts": [2, 3]}
    assert sm.MetricSet({"f1": sm.F1()}).update(rows).n_rows == 2
    assert sm.MetricSet({"f1": sm.F1()}).update(**rows).n_rows == 5
    assert sm.MetricSet({"f1": sm.F1()}, columns={"counts": "counts"}).update(rows).n_rows == 5


@pytest.mark.parametrize(
    ("counts", "match"),
    [
        ([1, -1, 0, -2], r"counts is negative in 2 rows, first in row 1 \(-1\)"),
        ([1, 1.5, 0, 2], r"counts is not a whole number in 1 row, first in row 1 \(1.5\)"),
        ([1, np.nan, 0, 2], "counts is missing .* in 1 row, first in row 1"),
        ([1, None, 0, 2], "counts is missing .* in 1 row, first in row 1"),
        ([1, 2**63, 0, 2], "counts is beyond 64 signed bits in 1 row, first in row 1"),
        ([1, 2**70, 0, 2], "counts holds an integer beyond 64 bits in row 1"),
        ([1, 1e30, 0, 2], "counts is beyond 64 signed bits in 1 row, first in row 1"),
        ([1, 2, 3], "columns differ in length"),
        (["1", "2", "3", "4"], "counts: expected whole numbers"),
        ([True, True, True, True], "counts: expected whole numbers"),
        (np.ones((4, 2), int), "counts: expected whole numbers"),
    ],
)
def test_bad_counts_are_refused_and_nothing_changes(counts, match):
    metric = sm.F1().update([0, 1], [1, 1])
    before = metric.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=match):
        metric.update([0, 1, 1, 0], [1, 1, 0, 1], counts=counts)
    assert metric.to_bytes() == before


def test_rows_that_count_nothing_are_validated_all_the_same():
    with pytest.raises(sm.InvalidBatchError, match="y_score"):
        sm.ROCAUC().update([0, 1], [0.5, np.nan], counts=[1, 0])


def test_more_rows_than_can_be_counted_are_refused():
    labels = sm.RandIndex().update([0, 1], [0, 1])
    before = labels.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=r"at most 2\*\*61"):
        labels.update([0, 1], [0, 1], counts=[2**62, 1])
    assert labels.to_bytes() == before


def test_the_largest_count():
    most = 2**63 - 1
    assert sm.Accuracy().update([1], [1], counts=np.array([most])).n_rows == most
    assert sm.Sum().update([3], counts=[most]).compute() == float(3 * most)


def test_weights_stay_weights():
    one = sm.MSE().update([1.0, 2.0], [0.0, 0.5], sample_weight=[0.5, 2.0], counts=[3, 2])
    other = sm.MSE().update(
        np.repeat([1.0, 2.0], [3, 2]), np.repeat([0.0, 0.5], [3, 2]),
        sample_weight=np.repeat([0.5, 2.0], [3, 2]),
    )  # fmt: skip
    assert one == other


def test_omitted_rows_are_counted_as_often():
    one = sm.MAE(nan_policy="omit").update([1.0, np.nan], [0.5, 1.0], counts=[2, 5])
    assert (one.n_rows, one.n_omitted) == (2, 5)


def test_long_batches_with_counts_are_read_in_slices(monkeypatch):
    rows = rows_of(500)
    whole = sm.ROCAUC().update(rows["y_true"], rows["y_score"], counts=rows["n"])
    monkeypatch.setattr(tuning, "BATCH_ROWS", 64)
    assert sm.ROCAUC().update(rows["y_true"], rows["y_score"], counts=rows["n"]) == whole


@pytest.mark.parametrize("most", [2, 9, 2**30, 2**50])
@pytest.mark.parametrize("n", [1, 400, 5000])
def test_scores_are_counted_in_cells_as_the_expanded_rows_are(n, most):
    rng = np.random.default_rng(n)
    labels, scores = rng.integers(0, 2, n), rng.random(n)
    counts = rng.integers(0, most + 1, n)
    for options in ({}, {"max_bins": 64}):
        counted = sm.ROCAUC(**options).update(labels, scores, counts=counts)
        merged = sm.ROCAUC(**options)
        for bit in range(51)[::-1]:
            merged.merge(merged.copy())
            some = (counts >> bit) & 1 == 1
            merged.update(labels[some], scores[some])
        assert counted.to_bytes() == merged.to_bytes()
        assert sm.merge([counted, counted]).to_bytes() == sm.merge([merged, merged]).to_bytes()


@pytest.mark.parametrize("make", SETS.values(), ids=SETS)
@pytest.mark.parametrize(
    "user", [np.zeros(0, np.int64), np.zeros(0, str), []], ids=["i", "s", "list"]
)
def test_an_empty_batch_changes_nothing(make, user):
    whole, nothing = rows_of(5), {name: column[:0] for name, column in rows_of(5).items()}
    found = make(counts="n")
    table = {name: nothing[name] for name in found._needed} | {"user": user}
    before = found.to_bytes()
    assert found.update(table).to_bytes() == before
    found.update({name: whole[name] for name in found._needed})
    before = found.to_bytes()
    assert found.update(table).to_bytes() == before
