"""Logits on the command line: an option, and errors that name it."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streammetrics as sm

RNG = np.random.default_rng(5)
LABEL = RNG.integers(0, 3, 400)
LOGITS = RNG.standard_normal((400, 3)) * 3
COLUMNS = {f"z{k}": LOGITS[:, k] for k in range(3)}
BINARY = ("--task", "binary", "--y-true", "positive", "--y-score", "z0")
CLASSES = ("--task", "multiclass", "--y-true", "label", "--y-score", "z*")


@pytest.fixture
def path(tmp_path):
    padded = np.where(np.arange(400) % 5 == 0, -100, LABEL)
    table = {"label": LABEL, "padded": padded, "positive": LABEL == 0, **COLUMNS}
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def values(result):
    assert result.code == 0, result.err
    return {name: metric["value"] for name, metric in json.loads(result.out)["metrics"].items()}


def test_logits_are_said_by_an_option(command, path):
    asked = ("--param", "from_logits=true", "--json", "-", "--metrics")
    found = values(
        command("evaluate", path, *BINARY, *asked, "ROCAUC,LogLoss,BrierScore,D2LogLoss")
    )
    metrics = {name: getattr(sm, name)(from_logits=True) for name in found}
    expected = sm.MetricSet(metrics).update(y_true=LABEL == 0, y_score=LOGITS[:, 0])
    assert found == pytest.approx(expected.compute())
    found = values(command("evaluate", path, *CLASSES, *asked, "ROCAUC,BrierScore"))
    metrics = {name: getattr(sm, name)(from_logits=True) for name in found}
    expected = sm.MetricSet(metrics).update(y_true=LABEL, y_score=LOGITS)
    assert found == pytest.approx(expected.compute())


def test_a_label_is_ignored_by_an_option(command, path):
    classes = ("--task", "multiclass", "--y-true", "padded", "--y-score", "z*")
    ignoring = (
        "--param",
        "ignore_index=-100",
        "--param",
        "from_logits=true",
        "--metrics",
        "LogLoss",
        "--json",
        "-",
    )
    found = values(command("evaluate", path, *classes, *ignoring))
    kept = np.arange(400) % 5 != 0
    expected = sm.LogLoss(from_logits=True).update(LABEL[kept], LOGITS[kept])
    assert found == {"LogLoss": pytest.approx(expected.compute())}


def test_the_metric_that_is_fine_is_not_blamed(mistake, path):
    error = mistake(
        "evaluate", path, *BINARY, "--metrics", "LogLoss(from_logits=True),BrierScore,ROCAUC"
    )
    assert "--param from_logits=true" in error
    assert "BrierScore needs probabilities: leave out with --metrics" in error
    assert "LogLoss" not in error.partition("leave out")[0]
    error = mistake("evaluate", path, *CLASSES, "--metrics", "ROCAUC")
    assert "z* is outside [0, 1]" in error
    assert "or say --param from_logits=true if these are logits" in error


def test_string_labels_name_the_option_of_the_positive_one(mistake, tmp_path):
    table = pa.table({"label": ["no", "yes", "no"], "score": [0.1, 0.7, 0.2]})
    pq.write_table(table, tmp_path / "s.parquet")
    asked = ("--task", "binary", "--y-true", "label", "--y-score", "score")
    assert "--param pos_label=yes" in mistake("evaluate", tmp_path / "s.parquet", *asked)
