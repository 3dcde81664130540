"""Which of several models is better, on the command line."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from prediction_files import store

import streammetrics as sm

BINARY = ("--task", "binary", "--y-true", "label")
MODELS = ("--y-score", "score", "--y-score", "other")


@pytest.fixture
def path(tmp_path, binary):
    rng = np.random.default_rng(0)
    other = np.clip(binary["score"].to_numpy() + rng.normal(0, 0.3, 3000), 0, 1)
    return store(binary.append_column("other", pa.array(other)), tmp_path / "t.parquet")


def test_several_scores_are_compared(command, path, binary):
    args = ("evaluate", path, *BINARY, *MODELS, "--metrics", "ROCAUC,F1,LogLoss")
    found = json.loads(command(*args, "--json", "-").out)["comparison"]
    suite = {"ROCAUC": sm.ROCAUC(), "F1": sm.F1(threshold=0.5), "LogLoss": sm.LogLoss()}
    duel = sm.Comparison(
        sm.MetricSet(suite, columns={"y_true": "label"}), {"score": "score", "other": "other"}
    )
    assert found == sm.evaluate(duel, path).compute().to_dict()
    out = command(*args).out
    assert "Which is better" in out
    assert "score better  DeLong, paired" in out


def test_metrics_that_cannot_be_compared_are_evaluated_all_the_same(command, path):
    args = ("evaluate", path, *BINARY, *MODELS, "--metrics", "ROCAUC,ConfusionMatrix")
    found = json.loads(command(*args, "--json", "-").out)
    assert found["models"]["other"]["metrics"].keys() == {"ROCAUC", "ConfusionMatrix"}
    assert [line["metric"] for line in found["comparison"]["differences"]] == ["ROCAUC"]
    only = ("evaluate", path, *BINARY, *MODELS, "--metrics", "ConfusionMatrix", "--json", "-")
    assert "comparison" not in json.loads(command(*only).out)


def test_weights_count_in_comparisons(command, path):
    args = ("evaluate", path, *BINARY, *MODELS, "--weight", "weight", "--metrics", "Accuracy")
    (line,) = json.loads(command(*args, "--json", "-").out)["comparison"]["differences"]
    assert line["test"] == "joint counts"


def test_runs_are_compared_by_query(command, tmp_path):
    rng = np.random.default_rng(0)
    qrels, runs = [], {"good": [], "bad": []}
    for query in range(30):
        relevant = rng.integers(0, 2, 10)
        qrels += [f"{query} 0 d{doc} {grade}" for doc, grade in enumerate(relevant)]
        for name, skill in (("good", 2.0), ("bad", 0.2)):
            scores = skill * relevant + rng.normal(size=10)
            runs[name] += [
                f"{query} Q0 d{doc} 0 {score} {name}" for doc, score in enumerate(scores)
            ]
    (tmp_path / "q").write_text("\n".join(qrels))
    for name, lines in runs.items():
        (tmp_path / name).write_text("\n".join(lines))
    args = ("--task", "ranking", "--qrels", tmp_path / "q", "--metrics", "NDCG", "--json", "-")
    both = ("--run", tmp_path / "good", "--run", tmp_path / "bad")
    found = json.loads(command("evaluate", *args, *both).out)
    (line,) = found["comparison"]["differences"]
    assert (line["verdict"], line["test"]) == ("good better", "sign flips")
    assert line["value"] == found["models"]["good"]["metrics"]["NDCG"]["value"]
    assert line["other"] == found["models"]["bad"]["metrics"]["NDCG"]["value"]


@pytest.fixture
def states(tmp_path):
    paths = []
    for name, hits in (("monday", 180), ("tuesday", 150)):
        suite = sm.MetricSet({"accuracy": sm.Accuracy(), "matrix": sm.ConfusionMatrix()})
        labels = {"y_true": [1] * 200, "y_pred": [1] * hits + [0] * (200 - hits)}
        paths.append(tmp_path / f"{name}.state")
        suite.update(labels).save(paths[-1])
    return paths


def test_saved_states_are_compared(command, states):
    found = json.loads(command("compare", *states, "--json", "-").out)
    (line,) = found["comparison"]["differences"]
    assert (line["model"], line["against"]) == ("monday.state", "tuesday.state")
    assert line["verdict"] == "monday.state better"
    assert found["models"]["monday.state"]["metrics"]["accuracy"]["value"] == 0.9
    out = command("compare", *states).out
    assert out.startswith("Metric ")
    assert "the weaker test" in out
    assert "left out: 'matrix'" in out


def test_saved_states_are_compared_by_unit(command, mistake, tmp_path):
    suite = sm.MetricSet({"accuracy": sm.Accuracy()}, unit="user")
    paths = [tmp_path / f"{name}.state" for name in ("a", "b")]
    for place, path in enumerate(paths):
        users = np.repeat(np.arange(50), 4) + 50 * place
        rows = {"y_true": [1] * 200, "y_pred": users % (3 + place) > 0, "user": users}
        suite.copy().update({**rows, "y_pred": rows["y_pred"].astype(int)}).save(path)
    done = command("compare", *paths, "--unit", "user", "--json", "-")
    found = json.loads(done.out)["comparison"]
    names = ("a.state", "b.state")
    assert found == sm.compare(*paths, names=names, unit="user").to_dict()
    assert "units are kept by 'user'" in mistake("compare", *paths, "--unit", "session")
    by_rows = command("compare", *paths, "--unit", "none", "--json", "-")
    found = json.loads(by_rows.out)["comparison"]
    assert found == sm.compare(*paths, names=names, unit=None).to_dict()


@pytest.mark.parametrize("by", [None, "country"])
def test_a_saved_state_is_shown_by_its_unit_or_by_rows(command, mistake, tmp_path, by):
    metrics = {"accuracy": sm.Accuracy()}
    suite = sm.Slices(metrics, by=by, unit="user") if by else sm.MetricSet(metrics, unit="user")
    users = np.repeat(np.arange(100), 4)
    rows = {"y_true": [1] * 400, "y_pred": (users % 3 > 0).astype(int), "user": users}
    if by:
        rows[by] = np.where(users % 2, "a", "b")
    suite.update(rows).save(path := tmp_path / "a.state")
    shown = {
        unit: command("show", path, "--confidence", "0.9", *unit, "--json", "-").out
        for unit in [(), ("--unit", "user"), ("--unit", "none")]
    }
    assert shown[()] == shown["--unit", "user"] != shown["--unit", "none"]
    if not by:
        found = json.loads(shown["--unit", "none"])["metrics"]["accuracy"]["confidence"]
        limits = suite["accuracy"].confidence(0.9, unit=None)
        assert [found["low"], found["high"]] == list(limits)
    heads = [
        command("show", path, "--confidence", "0.9", *unit).out.splitlines()[0]
        for unit in [(), ("--unit", "none")]
    ]
    assert ["unit=user" in head for head in heads] == [True, False]
    wrong = mistake("show", path, "--confidence", "0.9", "--unit", "session")
    assert "keeps the unit user; --unit none asks for rows" in wrong
    assert "--unit requires --confidence" in mistake("show", path, "--unit", "user")


def test_what_saved_states_cannot_be_compared(mistake, states, tmp_path):
    sm.Mean().update([1.0]).save(tmp_path / "mean.state")
    assert "only in" in mistake("compare", states[0], tmp_path / "mean.state")
    assert mistake("compare", states[0], states[0]).endswith("another model or time")
    told = mistake("compare", *states, "--confidence", "95")
    assert "--confidence 95: expected a level between 0 and 1, e.g. 0.95" in told
    assert "No such file" in mistake("compare", states[0], tmp_path / "none.state")


def test_a_saved_comparison_is_shown(command, tmp_path):
    duel = sm.Comparison({"mae": sm.MAE()}, {"a": "a", "b": "b"})
    duel.update(y_true=[1.0, 2.0, 3.0], a=[1.0, 2.5, 3.0], b=[2.0, 2.0, 1.0])
    duel.save(tmp_path / "duel.state")
    found = json.loads(command("show", tmp_path / "duel.state", "--json", "-").out)
    assert found["comparison"] == duel.compute().to_dict()
    assert found["models"]["a"]["metrics"]["mae"]["value"] == 0.5 / 3


def test_rows_missing_for_one_model_are_counted(command, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,a,b\n" + "0,0.1,0.2\n1,0.7,\n1,0.8,0.6\n0,0.4,0.5\n" * 5)
    args = ("evaluate", path, "--task", "binary", "--y-true", "y", "--y-score", "a")
    more = ("--y-score", "b", "--param", "nan_policy=omit", "--metrics", "LogLoss")
    out = command(*args, *more).out
    lines = [line.split() for line in out.splitlines()]
    assert ["Rows", "20", "15"] in lines
    assert "Which is better, values of the 15 rows that all models have" in out
    both = sm.LogLoss().update([0, 1, 0] * 5, [0.1, 0.8, 0.4] * 5).compute()
    (line,) = json.loads(command(*args, *more, "--json", "-").out)["comparison"]["differences"]
    assert (line["value"], line["n_rows"]) == (both, 15)
