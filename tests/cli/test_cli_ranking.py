"""Rankings, rank correlation and clusterings on the command line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from prediction_files import store

import streammetrics as sm

DATA = Path(__file__).parents[1] / "data" / "trec"
TREC = ("--task", "ranking", "--qrels", DATA / "rag24.qrels", "--run", DATA / "rag24.run.gz")
TITLES = {
    "map": "MAP", "Rprec": "RPrecision", "bpref": "BPref", "recip_rank": "MRR", "ndcg": "NDCG",
    "P": "PrecisionAtK(k={})", "recall": "RecallAtK(k={})", "ndcg_cut": "NDCG(k={})",
    "map_cut": "MAP(k={})", "success": "HitRateAtK(k={})",
}  # fmt: skip
RANKING = ("--task", "ranking", "--query", "q", "--relevance", "r", "--score", "s")


def title(measure):
    stem, _, k = measure.rpartition("_") if measure[-1].isdigit() else (measure, "", "")
    return TITLES[stem].format(k)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "extra"),
    [("rag24.expected", ()), ("rag24.expected_complete", ("--param", "unretrieved=zero"))],
)
@pytest.mark.parametrize("reading", [(), ("--batch-rows", 997, "--workers", 2)])
def test_figures_are_trec_evals(command, name, extra, reading):
    arguments = (*TREC, "--param", "k=1,5,10,100", "--per-query", *extra, *reading)
    result = command("evaluate", *arguments, "--json", "-")
    assert (result.code, result.err) == (0, "")
    metrics = json.loads(result.out)["metrics"]
    rows = [line.split() for line in (DATA / name).read_text().splitlines()]
    rows = [row for row in rows if not row[0].startswith("num_")]
    assert len({measure for measure, _, _ in rows}) == 20
    for measure, topic, figure in rows:
        found = metrics[title(measure)]
        value = found["value"] if topic == "all" else found["per_query"][topic]
        assert f"{value:.4f}" == figure, (measure, topic)
    assert {len(found["per_query"]) for found in metrics.values()} == {31 if extra else 29}


def test_values_of_queries_in_the_table(command, tmp_path):
    result = command("evaluate", *TREC, "--metrics", "MAP,NDCG", "--param", "k=10", "--per-query")
    lines = result.out.splitlines()
    assert "preset=trec_eval" in lines[0]
    assert "note: means over 29 queries; 19 without any judgment left out" in lines
    start = lines.index("") + 1
    assert lines[start].split() == ["Query", "MAP(k=10)", "NDCG(k=10)"]
    assert lines[start + 1].split() == ["2024-127266", "0.046296", "0.641751"]
    assert len(lines) == start + 30

    command("evaluate", *TREC, "--metrics", "MAP", "--save", tmp_path / "s")
    shown = json.loads(command("show", tmp_path / "s", "--per-query", "--json", "-").out)
    assert shown["metrics"]["MAP"]["per_query"]["2024-127266"] == pytest.approx(0.281396, abs=1e-6)


@pytest.fixture
def rankings():
    rng = np.random.default_rng(0)
    pairs = rng.permutation(600)
    score = np.round(rng.normal(size=600), 1)
    return pa.table(
        {
            "q": pairs // 20,
            "d": pa.array([f"d{i % 20:03}" for i in pairs]),
            "r": pa.array(rng.integers(0, 3, 600), mask=rng.random(600) < 0.2),
            "s": pa.array(score, mask=np.zeros(600, bool)),
        }
    )


def expected(table, **parameters):
    columns = {"query": "q", "relevance": "r", "score": "s", "doc": "d"}
    suite = sm.MetricSet(
        {"NDCG(k=5)": sm.NDCG(k=5, **parameters), "MRR(k=5)": sm.MRR(k=5, **parameters)},
        columns=columns,
    )
    return suite.update(table)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.jsonl"])
@pytest.mark.parametrize("preset", ["trec_eval", "sklearn"])
def test_tables_of_rankings(command, tmp_path, rankings, name, preset):
    path = store(rankings, tmp_path / name)
    arguments = (path, *RANKING, "--doc", "d", "--preset", preset, "--metrics", "NDCG,MRR")
    whole = expected(rankings, **sm.ranking_preset(preset))
    for more in ((), ("--workers", 2, "--batch-rows", 64)):
        save = ("--save", tmp_path / "s", "--force")
        result = command("evaluate", *arguments, "--param", "k=5", *more, *save)
        assert result.code == 0, result.err
        assert (tmp_path / "s").read_bytes() == whole.to_bytes()


def test_ids_in_csv_are_text(command, tmp_path, rankings):
    path = store(rankings, tmp_path / "t.csv.gz")
    arguments = (path, *RANKING, "--doc", "d", "--metrics", "NDCG,MRR", "--param", "k=5")
    result = command("evaluate", *arguments, "--per-query", "--json", "-")
    found = json.loads(result.out)["metrics"]["NDCG(k=5)"]
    whole = expected(rankings)["NDCG(k=5)"]
    assert found["value"] == whole.compute()
    assert found["per_query"] == {str(q): value for q, value in whole.per_query().items()}
    (tmp_path / "u.csv").write_text("q,r,s\n007,1,0.5\n7,0,0.5\nx,1,1\n")
    result = command("evaluate", tmp_path / "u.csv", *RANKING, "--per-query")
    assert [line.split()[0] for line in result.out.splitlines()[-3:]] == ["007", "7", "x"]


def test_the_default_of_tables_has_bounded_depth(command, tmp_path, rankings):
    path = store(rankings, tmp_path / "t.parquet")
    found = json.loads(command("evaluate", path, *RANKING, "--json", "-").out)
    assert found["options"] == {"k": [10]}
    assert list(found["metrics"]) == [
        f"{name}(k=10)"
        for name in ("NDCG", "MAP", "MRR", "PrecisionAtK", "RecallAtK", "HitRateAtK")
    ]


def test_correlation(command, tmp_path):
    rng = np.random.default_rng(1)
    x = rng.normal(size=500)
    y = x + rng.normal(size=500)
    path = store(pa.table({"a": x, "b": y}), tmp_path / "t.csv")
    columns = ("--task", "correlation", "--y-true", "a", "--y-pred", "b")
    found = json.loads(command("evaluate", path, *columns, "--json", "-").out)["metrics"]
    assert {name: each["value"] for name, each in found.items()} == {
        "KendallTau": sm.KendallTau().update(x, y).compute(),
        "SpearmanRho": sm.SpearmanRho().update(x, y).compute(),
        "PearsonCorrelation": sm.PearsonCorrelation().update(x, y).compute(),
    }


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.jsonl"])
def test_clustering(command, tmp_path, name):
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 3, 300)
    points = rng.normal(size=(300, 11)) + labels[:, None]
    words = np.array(["a", "b", "c"])[labels]
    columns = {f"x{i}": points[:, i] for i in range(11)}
    path = store(pa.table({"truth": words, "found": labels, **columns}), tmp_path / name)
    base = ("evaluate", path, "--task", "clustering", "--json", "-")
    result = command(*base, "--column", "labels_true=truth", "--column", "labels_pred=found")
    found = json.loads(result.out)["metrics"]
    assert list(found)[:2] == ["AdjustedRandIndex", "NormalizedMutualInfo"]
    assert {each["value"] for each in found.values()} == {1.0}
    for workers in (1, 2):
        extra = ("--workers", workers, "--batch-rows", 70)
        result = command(*base, "--column", "X=x*", "--column", "labels=found", *extra)
        found = json.loads(result.out)
        assert found["columns"]["X"] == [f"x{i}" for i in range(11)]
        values = {metric: each["value"] for metric, each in found["metrics"].items()}
        assert values == {
            kind: getattr(sm, kind)().update(points, labels).compute()
            for kind in ("Silhouette", "DaviesBouldin", "CalinskiHarabasz", "DunnIndex")
        }
    one = command(*base[:2], *base[2:4], "--column", "X=x1", "--column", "labels=found")
    assert one.code == 0, one.err
    estimate = command(
        *base[:4],
        "--column",
        "X=x*",
        "--column",
        "labels=found",
        "--metrics",
        "Silhouette(max_points=50)",
    )
    assert "note: Silhouette(max_points=50) is an estimate: " in estimate.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--task", "ranking"), "needs --query and --relevance and --score, or --qrels and --run"),
        (("--task", "ranking", "--query", "q"), "--query needs --relevance and --score beside it"),
        ((*RANKING, "--param", "ties=doc"), "ties=doc needs --doc"),
        ((*RANKING, "--preset", "trec_eval"), "ties=doc needs --doc"),
        ((*RANKING, "--preset", "trec"), "expected 'trec_eval' or 'sklearn'"),
        ((*RANKING, "--param", "ties=first"), "expected 'average' or 'doc'"),
        ((*RANKING, "--param", "k=5,x"), "--param k=5,x: expected integers from 1 up"),
        ((*RANKING, "--param", "k=0"), "--param k=0: expected integers from 1 up"),
        ((*RANKING, "--param", "k=5,5"), "NDCG(k=5) is given twice"),
        (
            (*RANKING, "--param", "k=5", "--metrics", "BPref"),
            "--param k: no metric has k without setting it",
        ),
        (
            (*RANKING, "--metrics", "RecallAtK"),
            "RecallAtK needs k, an integer, 1 or above: RecallAtK(k=...) or --param k=10",
        ),
        (
            (*RANKING, "--metrics", "NDCG(k=-2)"),
            "NDCG(k=-2): expected an integer, 1 or above or None",
        ),
        ((*RANKING, "--metrics", "F1"), "F1 needs --y-true and --y-pred"),
        ((*RANKING, "--weight", "s"), "--weight is not for --task ranking"),
        ((*RANKING[:-3], "d", *RANKING[-2:]), "d holds text; numbers are needed"),
        ((*RANKING, "--relevance", "d"), "Option --relevance is given twice"),
        ((*TREC, "--query", "q"), "--qrels and --run are all that is read: leave out"),
        (("--task", "binary", *TREC[2:]), "--qrels and --run are not for --task binary"),
        (
            ("--task", "clustering"),
            "needs --column labels_true=... and --column labels_pred=... or --column X=... and",
        ),
        (
            ("--task", "clustering", "--column", "X=s"),
            "--column X=... needs --column labels=... beside it",
        ),
        (("--task", "correlation", "--y-true", "s"), "--y-true needs --y-pred beside it"),
        (
            ("--task", "correlation", "--y-true", "s", "--y-pred", "s", "--per-query"),
            "--per-query is not for --task correlation",
        ),
    ],
)
def test_mistakes(mistake, tmp_path, rankings, arguments, told):
    path = store(rankings, tmp_path / "t.parquet")
    assert told in mistake("evaluate", path, *arguments)


@pytest.mark.long
def test_trec_mistakes(mistake, tmp_path):
    assert mistake("evaluate", *TREC[:4]) == "--qrels and --run need each other"
    for option, value in (("--delimiter", ";"), ("--input-format", "csv")):
        line = mistake("evaluate", *TREC, option, value)
        assert line == f"{option} is not for TREC files: leave it out"
    assert "did you mean 'rag24.qrels'" in mistake(
        "evaluate", "--task", "ranking", "--qrels", DATA / "rag24.qrel", "--run", DATA / "x"
    )
    assert mistake(
        "evaluate", "--task", "ranking", "--qrels", tmp_path, "--run", TREC[-1]
    ).endswith("is a folder; a file is needed")
    qrels, run = tmp_path / "a.qrels", tmp_path / "b.run.gz"
    arguments = ("evaluate", "--task", "ranking", "--qrels", qrels, "--run", run)
    qrels.write_text("1 0 d 1\n1 0 e\n")
    run.write_bytes(gzip.compress(b"1 Q0 d 1 0.5 x\n1 Q0 d 2 0.25 x\n"))
    for workers in (1, 2):
        assert mistake(*arguments, "--workers", workers) == (
            f"{qrels}, line 2: expected 4 fields (topic iteration document relevance), found 3"
        )
    qrels.write_text("1 0 d 1\n")
    line = mistake(*arguments)
    assert line.startswith(f"{run}: ")
    assert "document 'd'" in line
    run.write_bytes(gzip.compress(b"1 Q0 d 1 high x\n"))
    assert mistake(*arguments) == f"{run}, line 1: expected a number as score, found 'high'"
    run.write_bytes(gzip.compress(b"1 Q0 d 1 0.5 x\n")[:-1])
    assert mistake(*arguments) == f"{run}: cannot be read as TREC: Truncated compressed stream"


def test_the_first_bad_row_of_a_ranking_is_told(mistake, tmp_path, rankings):
    query = pa.array([None if i == 470 else q for i, q in enumerate(rankings["q"].to_pylist())])
    path = store(rankings.set_column(0, "q", query), tmp_path / "t.parquet", rows=100)
    line = mistake("evaluate", path, *RANKING, "--batch-rows", 64)
    assert line.startswith(f"{path}: q is missing (NaN or null) in 1 row, first in row ")
