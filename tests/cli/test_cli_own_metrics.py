"""Metrics of a user's module on the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

MODULE = '''
from streammetrics.authoring import Floats, Positives, QueryMean, RowMean, prepare
import numpy as np

class MeanRatio(RowMean):
    """Mean of p / y."""

    scale: float = 1.0

    def row(self, y_true: Positives, y_pred: Positives):
        return self.scale * y_pred / y_true

class Share(RowMean):
    """Mean of p over that of y."""

    higher_is_better = False

    def row(self, y_true: Positives, y_pred: Positives):
        return y_pred, y_true

    def of_mean(self, p: Floats, y: Floats):
        return p / y

class RootGain(QueryMean):
    """Discounted gain."""

    def of_query(self, gain, rank):
        return float((gain / np.sqrt(rank)).sum())

class Words(RowMean):
    """Mean number of words."""

    @prepare
    def count(self, text):
        return [len(one.split()) for one in text]

    def row(self, words: Floats):
        return words
'''
ROWS = "y,p,text\n1,2,to be\n2,2,or\n4,2,not to be\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "own_of_a_user.py").write_text(MODULE)
    (tmp_path / "rows.csv").write_text(ROWS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("own_of_a_user", None)


def test_each_k_makes_a_metric_of_an_authors(folder, command):
    (folder / "ranked.csv").write_text("q,gain,s\n1,1,0.9\n1,1,0.8\n")
    columns = ("--column", "query=q", "--column", "relevance=gain", "--column", "score=s")
    asked = ("evaluate", folder / "ranked.csv", "--task", "ranking", *columns, "--json", "-")
    of = "own_of_a_user:RootGain"
    found = command(*asked, "--metrics", f"{of},NDCG", "--param", "k=1,2")
    values = {name: each["value"] for name, each in json.loads(found.out)["metrics"].items()}
    assert values == {
        "RootGain(k=1)": 1.0, "RootGain(k=2)": 1 + 2**-0.5, "NDCG(k=1)": 1.0, "NDCG(k=2)": 1.0
    }  # fmt: skip
    whole = command(*asked, "--metrics", of)
    assert json.loads(whole.out)["metrics"]["RootGain"]["value"] == 1 + 2**-0.5


METRICS = "MAE,own_of_a_user:MeanRatio(scale=2),own_of_a_user:Words"
ASKED = ("--task", "regression", "--y-true", "y", "--y-pred", "p", "--column", "text=text")


def test_own_metrics_are_evaluated_saved_and_shown(folder, command):
    found = command("evaluate", "rows.csv", *ASKED, "--metrics", METRICS, "--save", "a.state")
    assert not found.code, found.err
    for line in ("MeanRatio(scale=2)  2.333333", "Words               2.000000"):
        assert line in found.out
    shown = subprocess.run(
        [sys.executable, "-m", "streammetrics", "show", "a.state", "--import", "own_of_a_user"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2.333333" in shown.stdout, shown.stderr
    words = [sys.executable, "-m", "streammetrics", "show", "a.state"]
    refused = subprocess.run(words, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "(on the command line: --import own_of_a_user)" in refused.stderr


def test_an_own_metric_alone_needs_no_other_columns(folder, command):
    own = ("--metrics", "own_of_a_user:Words", "--column", "text=text")
    found = command("evaluate", "rows.csv", "--task", "regression", *own)
    assert "Words" in found.out, found.err


def test_what_is_no_metric_of_a_module_is_refused(folder, command):
    for metrics, message in (
        ("own_of_a_user:Word", "no metric 'Word'; did you mean 'Words'?"),
        ("own_of_nobody:Words", "cannot import own_of_nobody"),
    ):
        found = command("evaluate", "rows.csv", *ASKED, "--metrics", metrics)
        assert found.code == 2
        assert message in found.err
    found = command("show", "a.state", "--import", "own_of_nobody")
    assert found.code == 2
    assert "--import: cannot import own_of_nobody" in found.err


def test_a_service_watches_own_metrics(folder, command):
    (folder / "live.toml").write_text('[metrics]\nratio = "own_of_a_user:MeanRatio(scale=2)"\n')
    found = command("live", "check", "live.toml")
    assert "MeanRatio(scale=2.0)" in found.out, found.err


def test_an_error_in_a_module_is_not_called_a_bug_of_the_package(folder, mistake):
    text = MODULE.replace("self.scale * y_pred / y_true", "self.scale.of(y_pred)")
    (folder / "own_of_a_user.py").write_text(text)
    line = mistake("evaluate", "rows.csv", *ASKED[:-2], "--metrics", "own_of_a_user:MeanRatio")
    assert "own_of_a_user.py, line 11: AttributeError: 'float' object has no attribute" in line


@pytest.fixture
def models(folder):
    """Write predictions of two models, of which `a` has the smaller ones."""
    lines = ["y,a,b,user"]
    lines += [f"{1 + i % 7},{2 + i % 5},{3 + i % 5},{i // 3}" for i in range(90)]
    (folder / "models.csv").write_text("\n".join(lines))
    return folder


def test_models_are_compared_by_own_metrics(models, command):
    asked = ("--task", "regression", "--y-true", "y", "--y-pred", "a", "--y-pred", "b")
    own = ("--metrics", "MAE,own_of_a_user:Share", "--save", "models.state")
    found = command("evaluate", "models.csv", *asked, *own)
    assert not found.code, found.err
    (line,) = [line for line in found.out.splitlines() if "Share" in line and ".." in line]
    assert "a better" in line
    assert "paired t" in line


def test_a_gate_is_of_own_metrics_too(models, command):
    asked = ("--task", "regression", "--y-true", "y", "--metrics", "own_of_a_user:Share")
    for model in "ab":
        options = ("--y-pred", model, "--unit", "user", "--save", f"{model}.state")
        found = command("evaluate", "models.csv", *asked, *options)
        assert not found.code, found.err
    options = ("--margin", "Share=0.01", "--import", "own_of_a_user")
    worse = command("gate", "a.state", "b.state", *options)
    assert worse.code == 1, worse.err
    assert "worse" in worse.out
    assert command("gate", "b.state", "a.state", *options).code == 0
