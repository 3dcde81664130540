"""The gate: exit codes, and what it writes for CI."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import numpy as np
import pytest

import streammetrics as sm

METRICS = {"accuracy": sm.Accuracy(), "recall": sm.Recall()}


def saved(path, right, unit="question", suite=None):
    rows = {"y_true": np.ones(right.size, int), "y_pred": right.astype(int)}
    made = sm.MetricSet(METRICS, unit=unit) if suite is None else suite
    made.update({**rows, "question": np.arange(right.size) // 4}).save(path)
    return path


@pytest.fixture
def gate(command, tmp_path):
    """Return what runs the gate on models that have a row right with some probability."""

    def run(skill, *options, unit="question", n=2000):
        draws = np.random.default_rng(0).random(n)
        base = saved(tmp_path / "base.state", draws < 0.8, unit)
        new = saved(tmp_path / "new.state", draws < skill, unit)
        return command("gate", base, new, *options)

    return run


@pytest.mark.parametrize(
    ("skill", "margin", "code", "verdict"),
    [
        (0.85, "0.01", 0, "better"),
        (0.795, "0.03", 0, "not worse"),
        (0.7, "0.01", 1, "worse"),
        (0.7, "0.5", 0, "not worse"),
        (0.8, "0", 3, "undecided"),
    ],
)
def test_the_exit_code_is_the_verdict(gate, tmp_path, skill, margin, code, verdict):
    options = ("--margin", f"accuracy={margin}", "--junit", tmp_path / "gate.xml")
    found = gate(skill, *options, "--markdown", tmp_path / "gate.md")
    assert found.code == code, found.err
    assert verdict in found.out
    suite = ElementTree.parse(tmp_path / "gate.xml").getroot()
    (case,) = suite
    assert (case.get("name"), case.get("classname")) == ("accuracy", "new.state against base.state")
    kinds = {"worse": ["failure"], "undecided": ["error"]}.get(verdict, [])
    assert [each.tag for each in case] == kinds
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == (
        "1", str(int(verdict == "worse")), str(int(verdict == "undecided")),
    )  # fmt: skip
    assert f"| {verdict}" in (tmp_path / "gate.md").read_text()


def test_one_margin_is_for_all_metrics_and_json_has_the_lines(gate):
    found = gate(0.85, "--margin", "0.01", "--json", "-")
    lines = json.loads(found.out)["comparison"]["differences"]
    assert [(line["metric"], line["margin"], line["verdict"]) for line in lines] == [
        ("accuracy", 0.01, "better"),
        ("recall", 0.01, "better"),
    ]
    only = gate(0.85, "--margin", "recall=0.01", "--json", "-", "--force")
    assert len(json.loads(only.out)["comparison"]["differences"]) == 1


def test_what_is_worse_of_one_metric_but_not_after_holm_is_undecided(gate):
    alone = gate(0.795, "--margin", "accuracy=0", "--confidence", "0.97", "--json", "-")
    (line,) = json.loads(alone.out)["comparison"]["differences"]
    assert (alone.code, line["verdict"]) == (1, "worse")
    both = gate(0.795, "--margin", "0", "--confidence", "0.97", "--json", "-")
    lines = json.loads(both.out)["comparison"]["differences"]
    assert (both.code, {line["verdict"] for line in lines}) == (3, {"undecided"})
    assert lines[0]["p_adjusted"] == 2 * line["p"] > 0.03 > line["p"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "Missing option '--margin'"),
        (("--margin", "acuracy=0.1"), "no metric 'acuracy'; did you mean 'accuracy'"),
        (("--margin", "accuracy=x"), "expected METRIC=NUMBER"),
        (("--margin", "accuracy=-1"), "expected a number >= 0"),
        (("--margin", "0.1", "--margin", "0.2"), "expected one number, or one for each metric"),
    ],
)
def test_mistakes_exit_2(gate, options, message):
    found = gate(0.8, *options)
    assert (found.code, found.out) == (2, "")
    assert message in found.err


def test_states_without_units_exit_2_unless_unpaired(gate):
    found = gate(0.85, "--margin", "0.01", unit=None)
    assert found.code == 2
    assert "keeps no values of units" in found.err
    found = gate(0.85, "--margin", "0.01", "--unpaired", unit=None)
    assert (found.code, found.err) == (0, "")
    assert "the weaker test" in found.out


def test_units_with_other_rows_exit_2_unless_unpaired(command, tmp_path):
    base = saved(tmp_path / "base.state", np.arange(2000) % 5 > 0)
    new = saved(tmp_path / "new.state", np.arange(1990) % 5 > 0)
    found = command("gate", base, new, "--margin", "0.05")
    assert found.code == 2
    assert "other rows in new.state (1,990) than in base.state (2,000)" in found.err
    assert command("gate", base, new, "--margin", "0.05", "--unpaired").code == 0


def test_states_without_rows_exit_2(command, tmp_path):
    paths = [tmp_path / f"{name}.state" for name in ("base", "new")]
    for path in paths:
        sm.MetricSet(METRICS, unit="question").save(path)
    assert command("gate", *paths, "--margin", "0.05").code == 2


def test_runs_of_attempts_are_gated_by_question(command, tmp_path):
    rng = np.random.default_rng(0)
    hard = rng.random((80, 1))
    for name, skill in (("base", 0.0), ("new", 0.2)):
        solved = rng.random((80, 5)) < hard + skill
        suite = sm.MetricSet({"pass@2": sm.PassAtK(k=2)})
        suite.update(unit=np.repeat(np.arange(80), 5), y_true=solved.ravel())
        suite.save(tmp_path / name)
    run = ("gate", tmp_path / "base", tmp_path / "new", "--margin")
    found = command(*run, "pass@2=0.01")
    assert found.code == 0
    assert "sign flips" in found.out


def test_units_are_paired_one_by_one_or_in_the_same_64_groups(gate):
    """500 questions have a state each, and 5,000 do not."""
    found = gate(0.85, "--margin", "accuracy=0.01")
    assert "500 units, sign flips" in found.out
    found = gate(0.85, "--margin", "accuracy=0.01", n=20_000)
    assert (found.code, "64 groups of units, sign flips" in found.out) == (0, True)
