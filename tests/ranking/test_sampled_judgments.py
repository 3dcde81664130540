"""Judgments of which a third was left out, as TREC files say by -1: trec_eval's own figures."""

from __future__ import annotations

from pathlib import Path

import pytest

import streammetrics as sm
from streammetrics.readers.trec import read_qrels, read_run

DATA = Path(__file__).parents[1] / "data" / "trec"
TREC = sm.ranking_preset("trec_eval")
METRICS = {
    "infAP": sm.InfAP(**TREC),
    "bpref": sm.BPref(**TREC),
    "set_map": sm.SetAP(**TREC),
    "num_rel": sm.RankingCount(of="relevant", **TREC),
    "num_ret": sm.RankingCount(of="results", **TREC),
    "num_rel_ret": sm.RankingCount(of="hits", **TREC),
}


def test_figures_are_those_of_trec_eval():
    expected = [line.split() for line in (DATA / "rag24.sampled").read_text().splitlines()]
    suite = sm.MetricSet(METRICS)
    for table in read_qrels(DATA / "rag24.qrels"):
        judged = [-1 if i % 3 == 0 else g for i, g in enumerate(table["relevance"])]
        suite.update({**table, "relevance": judged})
    for table in read_run(DATA / "rag24.run.gz", batch_rows=997):
        suite.update(table)
    found = {name: suite[name].per_query() for name in METRICS}
    for name, topic, figure in expected:
        assert found[name][topic] == pytest.approx(float(figure), rel=1e-12), (name, topic)
    assert len(expected) == sum(map(len, found.values()))


def test_ties_of_many_results_cost_blocks_and_not_memory(monkeypatch):
    rows = {"query": [1] * 60, "relevance": [1, 0, -1] * 20, "score": [1.0] * 60}
    whole = sm.InfAP().update(**rows).compute()
    monkeypatch.setattr("streammetrics.metrics.ranking.binary._AT_ONCE", 7)
    assert sm.InfAP().update(**rows).compute() == whole


def test_counts_and_the_best_recall_say_that_they_have_no_limits():
    with pytest.raises(sm.NoConfidenceError, match="grows with the rows .* HitsAtK"):
        sm.RankingCount().update([1], [1], [0.5]).confidence()
    with pytest.raises(sm.NoConfidenceError, match="RecallAtK at that k, on other queries"):
        sm.RecallAtFixedPrecision(precision=0.5, k=2).update([1], [1], [0.5]).confidence()


def test_no_query_counts_as_one_result_because_it_has_no_relevant_document():
    with pytest.raises(ValueError, match="1 is a perfect score and not a count"):
        sm.RankingCount(no_relevant="one")
    rows = {"query": [1, 1], "relevance": [0, None], "score": [1.0, 0.5]}
    assert sm.RankingCount(of="results").update(**rows).compute() == 2.0
    assert sm.RankingCount(of="results", no_relevant="skip").update(**rows).compute() == 0.0
