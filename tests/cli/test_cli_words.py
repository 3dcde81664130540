"""What there is to type: names in any case, values as in Python or JSON, lists, completion."""

from __future__ import annotations

import re

import pytest

import streammetrics as sm
from streammetrics.cli.options import complete_metrics, complete_task
from streammetrics.cli.tasks import parameters_of, parse
from streammetrics.core.registry import catalogue
from streammetrics.metrics.specs import Spec


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rocauc", Spec("ROCAUC")),
        ("ROC_AUC", Spec("ROCAUC")),
        ("f1(average=none)", Spec("F1", {"average": None})),
        ("F1(average=null)", Spec("F1", {"average": None})),
        ("F1(average=None)", Spec("F1", {"average": None})),
        ("f1(average=macro)", Spec("F1", {"average": "macro"})),
        ("f1(average='macro')", Spec("F1", {"average": "macro"})),
        ("F1(pos_label=true)", Spec("F1", {"pos_label": True})),
        ("F1(pos_label=False)", Spec("F1", {"pos_label": False})),
        ("F1(labels=[cat, dog])", Spec("F1", {"labels": ("cat", "dog")})),
        ("F1(labels=(1, -1))", Spec("F1", {"labels": (1, -1)})),
    ],
)
def test_metrics_are_spelt_as_people_spell(text, expected):
    assert parse([text]) == [expected]


def test_lists_may_come_in_parts():
    assert parse(["F1,MAE", "mse"]) == [Spec("F1"), Spec("MAE"), Spec("MSE")]
    assert parameters_of(["k=5,10,100"]) == {"k": (5, 10, 100)}


def test_the_average_is_spelt_so_too(command, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n0,0\n1,0\n2,2\n")
    args = ("evaluate", path, "--task", "multiclass", "--y-true", "a", "--y-pred", "b")
    shown = {
        command(*args, "--metrics", "F1", "--param", f"average={word}").out
        for word in ("none", "None", "null", "NONE")
    }
    assert len(shown) == 1
    assert "undefined" not in shown.pop()


def test_every_metric_is_listed_once_with_its_summary(command):
    out = command("metrics").out
    listed = [line.split()[0] for line in out.splitlines() if line.startswith("  ")]
    assert sorted(listed) == sorted(catalogue())
    assert re.search(r"^  ROCAUC +Area under the ROC curve", out, re.MULTILINE)
    for task, names in {"ranking": {"NDCG"}, "aggregation": {"Mean"}, "binary": {"F1"}}.items():
        part = command("metrics", "--task", task).out
        assert names < {line.split()[0] for line in part.splitlines() if line}
        assert len(part) < len(out)


def test_one_metric_is_told_in_full(command, mistake):
    out = command("metrics", "fbeta").out
    assert out.startswith("FBeta(")
    assert "beta=1.0" in out
    assert sm.FBeta.__doc__.strip().splitlines()[0] in out
    assert "did you mean 'FBeta' or" in mistake("metrics", "fbetta")
    assert "did you mean 'ranking'?" in mistake("metrics", "--task", "rankin")


def test_the_version(command):
    code, out, err = command("--version")
    assert (code, err) == (0, "")
    assert out.split()[0] == "streammetrics"


def test_words_are_completed():
    assert [word for word, _ in complete_metrics("F1,rocc")] == ["F1,roccurve"]
    assert [word for word, _ in complete_metrics("ROCA")] == ["ROCAUC"]
    assert complete_task("reg") == ["regression"]


def test_the_shell_gets_the_completion(command, monkeypatch):
    monkeypatch.setenv("_STREAMMETRICS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "streammetrics evaluate --metrics F1,roca")
    monkeypatch.setenv("COMP_CWORD", "3")
    code, out, _ = command("evaluate")
    assert code == 0
    assert out.split() == ["F1,rocaUC"]


@pytest.mark.parametrize(
    ("option", "instead"),
    [
        ("--threshold", "write --param threshold=VALUE; see"),
        ("--max-bins", "write --param max_bins=VALUE"),
        ("--y-low", "write --column y_low=COLUMN"),
    ],
)
def test_a_parameter_written_as_an_option_is_told_how_to_be_given(mistake, option, instead):
    assert instead in mistake("evaluate", "x.csv", "--task", "binary", option, "1")
