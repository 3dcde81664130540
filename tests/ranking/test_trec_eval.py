"""trec_eval's printed figures of a real run, however the rows arrive."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from thinning import some

import streammetrics as sm
from streammetrics.readers.paths import ReadError
from streammetrics.readers.trec import read_qrels, read_run

DATA = Path(__file__).parents[1] / "data" / "trec"
METRICS = {
    "map": sm.MAP, "Rprec": sm.RPrecision, "bpref": sm.BPref, "recip_rank": sm.MRR,
    "P": sm.PrecisionAtK, "recall": sm.RecallAtK, "ndcg": sm.NDCG, "ndcg_cut": sm.NDCG,
    "map_cut": sm.MAP, "success": sm.HitRateAtK,
}  # fmt: skip


def expected(name):
    """Return {(measure, topic): printed figure}."""
    rows = [line.split() for line in (DATA / name).read_text().splitlines()]
    return {(measure, topic): figure for measure, topic, figure in rows}


def made(name, complete):
    """Return the metric of a measure's name."""
    stem, _, k = name.rpartition("_") if name[-1].isdigit() else (name, "", "")
    preset = sm.ranking_preset("trec_eval") | ({"unretrieved": "zero"} if complete else {})
    return METRICS[stem](**preset, **({"k": int(k)} if k else {}))


def whole():
    return [*read_qrels(DATA / "rag24.qrels"), *read_run(DATA / "rag24.run.gz")]


def in_batches():
    run = read_run(DATA / "rag24.run.gz", batch_rows=37)
    return [*run, *read_qrels(DATA / "rag24.qrels", batch_rows=501)]


def one_table():
    qrels, run = whole()
    none = [None]
    n, m = len(qrels["query"]), len(run["query"])
    order = np.random.default_rng(0).permutation(n + m)
    columns = {
        "query": qrels["query"] + run["query"],
        "doc": qrels["doc"] + run["doc"],
        "relevance": [*qrels["relevance"], *none * m],
        "score": [*none * n, *run["score"]],
    }
    return [{name: [column[i] for i in order] for name, column in columns.items()}]


def rows_of_both():
    """Return judgments of unretrieved documents, and results with what was judged of them."""
    qrels, run = whole()
    judged = dict(
        zip(zip(qrels["query"], qrels["doc"], strict=True), qrels["relevance"], strict=True)
    )
    pairs = list(zip(run["query"], run["doc"], strict=True))
    rest = [pair for pair in judged if pair not in set(pairs)]
    return [
        {**run, "relevance": [judged.get(pair) for pair in pairs]},
        {
            "query": [q for q, _ in rest],
            "doc": [d for _, d in rest],
            "relevance": [judged[pair] for pair in rest],
        },
    ]


@pytest.mark.parametrize(
    ("name", "feed"),
    some(
        product(
            ["rag24.expected", "rag24.expected_complete"],
            [whole, in_batches, one_table, rows_of_both],
        ),
        every=5,
    ),
)
def test_figures_are_trec_evals(name, feed):
    figures = expected(name)
    measures = [m for m, topic in figures if topic == "all" and not m.startswith("num_")]
    assert len(measures) == 20
    suite = sm.MetricSet({m: made(m, "complete" in name) for m in measures})
    for table in feed():
        suite.update(table)
    for measure, value in suite.compute().items():
        assert f"{value:.4f}" == figures[measure, "all"], measure
        per_query = suite[measure].per_query()
        topics = {topic for m, topic in figures if m == measure and topic != "all"}
        assert {q for q in per_query if q in topics} == topics
        for topic, figure in per_query.items():
            assert f"{figure:.4f}" == figures.get((measure, topic), "0.0000"), (measure, topic)
    assert suite["map"].n_queries == int(figures["num_q", "all"])
    assert suite["map"].n_unjudged == 19


@pytest.mark.parametrize("measure", ["map", "ndcg_cut_10", "recip_rank", "bpref"])
def test_judgments_and_results_on_other_shards_give_the_same_bytes(measure):
    qrels, run = whole()
    reference = made(measure, True).update(**qrels).update(**run)
    shards = [made(measure, True) for _ in range(5)]
    for number, table in enumerate(in_batches()):
        shards[number % 5].update(**table)
    merged = sm.merge(shards)
    states = {
        (made(measure, True).update(**table).update(**other)).to_bytes()
        for table, other in ((qrels, run), (run, qrels))
    }
    assert merged.compute() == reference.compute()
    assert {merged.to_bytes(), *states} == {reference.to_bytes()}


QRELS, RUN = "topic iteration document relevance", "topic Q0 document rank score tag"


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("q.qrels", "1 0 d", f"expected 4 fields ({QRELS}), found 3"),
        ("q.qrels", "1 0 d x", "expected an integer relevance, found 'x'"),
        ("r.run", "1 Q0 d 1 nan t", "expected a number as score, found 'nan'"),
        ("r.run", "1 Q0 d 1 1e400 t", "expected a number as score, found '1e400'"),
        ("r.run", "1 Q0 d 1 0.5", f"expected 6 fields ({RUN}), found 5"),
    ],
)
def test_malformed_line_is_named(tmp_path, name, line, expected):
    good = "1 0 d 1" if name == "q.qrels" else "1 Q0 d 1 0.5 t"
    path = tmp_path / name
    path.write_text(f"{good}\n\n{line}\n{good}\n")
    read = read_qrels if name == "q.qrels" else read_run
    with pytest.raises(sm.InvalidBatchError, match="line 3: ") as caught:
        list(read(path))
    assert str(caught.value) == f"{path}, line 3: {expected}"


def test_broken_gzip_and_other_text_are_named(tmp_path):
    path = tmp_path / "cut.run.gz"
    path.write_bytes((DATA / "rag24.run.gz").read_bytes()[:5000])
    with pytest.raises(ReadError, match=r"cut.run.gz: cannot be read as TREC: Truncated"):
        list(read_run(path))
    path = tmp_path / "latin.qrels"
    path.write_bytes(b"1 0 d\xff 1\n")
    with pytest.raises(ReadError, match=r"latin.qrels: cannot be read as TREC: 'utf-8' codec"):
        list(read_qrels(path))


def test_scores_are_32_bit_floats_and_blank_lines_are_nothing(tmp_path):
    path = tmp_path / "r.run"
    path.write_text("\n1 Q0 d 1 0.1 t\n\n1 Q0 e 2 1e-60 t\n")
    (table,) = read_run(path)
    assert table["score"].tolist() == [float(np.float32(0.1)), 0.0]
    assert table["doc"] == ["d", "e"]
