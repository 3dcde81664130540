"""Weights of queries: one a query, said by any of its rows, in whatever batches these come."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fuzz.forging import arrays_of
from sklearn.metrics import dcg_score, label_ranking_average_precision_score, ndcg_score

import streammetrics as sm
from streammetrics.cli import main

QUERIES, DOCS = 12, 8
SKLEARN = sm.ranking_preset("sklearn")


@pytest.fixture
def tables():
    """Return grades, scores and weights of queries, and their rows."""
    rng = np.random.default_rng(5)
    grades = rng.integers(0, 4, (QUERIES, DOCS))
    scores = rng.permutation(QUERIES * DOCS).reshape(QUERIES, DOCS) / 100
    weights = rng.integers(1, 9, QUERIES) / 4
    rows = {
        "query": np.repeat(np.arange(QUERIES), DOCS),
        "relevance": grades.ravel(),
        "score": scores.ravel(),
        "doc": np.tile(np.arange(DOCS), QUERIES),
        "query_weight": np.repeat(weights, DOCS),
    }
    return grades, scores, weights, rows


def apart(rows):
    """Yield judgments with weights and results without, in many batches."""
    order = np.random.default_rng(1).permutation(QUERIES * DOCS)
    for some in np.array_split(order, 7):
        for names in (("relevance", "query_weight"), ("score",)):
            yield {name: rows[name][some] for name in ("query", "doc", *names)}


def test_means_are_those_of_scikit_learn(tables):
    grades, scores, weights, rows = tables
    for metric, expected in (
        (sm.NDCG(k=5, **SKLEARN), ndcg_score(grades, scores, k=5, sample_weight=weights)),
        (sm.DCG(**SKLEARN), dcg_score(grades, scores, sample_weight=weights)),
        (
            sm.MAP(relevant_at=2),
            label_ranking_average_precision_score(grades >= 2, scores, sample_weight=weights),
        ),
    ):
        whole = metric.copy().update(**rows)
        assert whole.compute() == pytest.approx(expected, rel=1e-12)
        shards = [metric.copy().update(**batch) for batch in apart(rows)]
        merged = sm.merge(shards[::-1])
        assert merged.compute() == whole.compute()
        in_turn = metric.copy()
        for batch in apart(rows):
            in_turn.update(**batch)
        assert merged.to_bytes() == in_turn.to_bytes()
        assert sm.from_bytes(merged.to_bytes()) == merged


def test_a_weight_is_known_once_a_row_says_it():
    metric = sm.MRR().update([1, 1, 2], [1, 0, 0], [0.5, 0.4, 0.3])
    assert metric.compute() == 0.5
    assert metric.update([2, 1], [0, 0], [0.1, 0.2], query_weight=[3.0, None]).compute() == 0.25


def test_queries_of_weight_0_are_as_if_absent():
    metric = sm.MRR().update([1, 2], [1, 0], [0.5, 0.4], query_weight=[2, 0])
    assert (metric.compute(), metric.n_queries, dict(metric.per_query())) == (1.0, 1, {1: 1.0})
    alone = sm.MRR().update([2], [1], [0.4], query_weight=[0])
    with pytest.warns(sm.UndefinedMetricWarning, match="MRR"):
        assert np.isnan(alone.compute())


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2, 1], "query_weight is not the one weight of its query in 1 row, first in row 1"),
        (
            [1, -1, 1],
            "query_weight is not a weight, finite and 0 or more, in 1 row, first in row 1",
        ),
        ([np.inf, 1, 1], "query_weight is not a weight, .* first in row 0"),
        ([np.nan, 1, 1], "query_weight is NaN in 1 row, first in row 0, query 7"),
        ([0, 2, 1], "query_weight is not the one weight of its query in 1 row, first in row 1"),
        (["a", "b", "c"], "query_weight holds"),
    ],
)
def test_bad_weights_are_named(weights, message):
    metric = sm.NDCG(k=2)
    before = metric.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=message):
        metric.update([7, 7, 8], [1, 0, 1], [0.3, 0.2, 0.1], query_weight=weights)
    assert metric.to_bytes() == before


@pytest.mark.parametrize("query", [[7, 8], ["seven", "eight"]])
def test_two_weights_of_a_query_are_refused_whenever_they_come(query):
    metric = sm.NDCG(k=2).update(query, [1, 1], [0.3, 0.2], query_weight=[1, 2])
    other = sm.NDCG(k=2).update(query[1:], [1], [0.1], query_weight=[3])
    before, message = metric.to_bytes(), f"query {query[1]!r} has two weights: 2 and 3"
    with pytest.raises(sm.InvalidBatchError, match=message):
        metric.update(query[1:], [0], [0.1], query_weight=[3])
    with pytest.raises(sm.InvalidBatchError, match=message):
        metric.merge(other)
    with pytest.raises(sm.InvalidBatchError, match=message):
        sm.merge([other, metric])
    assert metric.to_bytes() == before


def test_rows_with_a_missing_weight_may_be_omitted():
    metric = sm.MRR(nan_policy="omit")
    metric.update([1, 1, 2], [1, 0, 1], [0.1, 0.9, 0.5], query_weight=[3, np.nan, 1])
    assert (metric.compute(), metric.n_omitted) == (1.0, 1)


@pytest.mark.parametrize(
    "weights",
    [[1.0], [-1.0, 2.0], [-0.0, 1.0], [np.nan, np.nan], [np.inf, 1.0], [-np.nan, 1.0]],
    ids=str,
)
def test_weights_that_no_rows_have_are_no_state(weights):
    metric = sm.NDCG().update([1, 2], [1, 1], [0.5, 0.4], query_weight=[1, 2])
    (statistic,), arrays = metric.statistics(), arrays_of(metric.to_bytes())
    assert arrays["weights"].tolist() == [1.0, 2.0]
    with pytest.raises(sm.StateFormatError, match="ranking state"):
        statistic.restored({**arrays, "weights": np.array(weights)})


def test_limits_are_those_of_a_weighted_mean(tables):
    *_, weights, rows = tables
    metric = sm.NDCG(k=3).update(**rows)
    values = np.array(list(metric.per_query().values()))
    mean = np.average(values, weights=weights)
    error = np.sqrt((weights**2 * (values - mean) ** 2).sum() * QUERIES / (QUERIES - 1))
    low, high = metric.confidence()
    assert (high - low) / 2 == pytest.approx(2.2009852 * error / weights.sum(), rel=1e-6)
    ones = {**rows, "query_weight": np.ones(QUERIES * DOCS)}
    plain = {name: rows[name] for name in rows if name != "query_weight"}
    assert sm.NDCG().update(**ones).confidence() == sm.NDCG().update(**plain).confidence()


def test_runs_are_compared_by_the_weights(tables):
    *_, weights, rows = tables
    other = np.random.default_rng(2).permutation(rows["score"])
    duel = sm.Comparison({"ndcg": sm.NDCG(k=3)}, {"one": "one", "two": "two"})
    shared = {name: rows[name] for name in rows if name != "score"}
    duel.update(**shared, one=rows["score"], two=other)
    (found,) = duel.compute()
    gaps = [
        np.array(list(sm.NDCG(k=3).update(**{**rows, "score": score}).per_query().values()))
        for score in (rows["score"], other)
    ]
    gaps = gaps[0] - gaps[1]
    assert found.difference == pytest.approx(np.average(gaps, weights=weights), rel=1e-12)
    half = (found.high - found.low) / 2
    error = np.sqrt((weights**2 * (gaps - found.difference) ** 2).sum() * QUERIES / (QUERIES - 1))
    assert half == pytest.approx(2.2009852 * error / weights.sum(), rel=1e-6)


def test_the_command_line_reads_weights(tables, tmp_path, capsys):
    *_, rows = tables
    path = tmp_path / "rows.csv"
    lines = [",".join(rows), *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    path.write_text("\n".join(lines))
    flags = [text for name in rows for text in ("--column", f"{name}={name}")]
    assert (
        main(["evaluate", str(path), "--task", "ranking", *flags, "--param", "k=3", "--json", "-"])
        == 0
    )
    told = json.loads(capsys.readouterr().out)["metrics"]["NDCG(k=3)"]["value"]
    assert told == sm.NDCG(k=3).update(**rows).compute()
