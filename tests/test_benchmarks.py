"""tests/benchmarks/by_commit.py keeps ratios by commit and names those that became worse."""

from __future__ import annotations

import sys

import pytest
from benchmarks import by_commit
from benchmarks.by_commit import lines_of, record, regressions

HERE = {"commit": "1234567", "machine": "this one"}


def test_more_than_a_quarter_below_the_median_is_a_regression():
    before = [{"ratios": {"auc": ratio}} for ratio in (8.0, 10.0, 30.0)]
    assert regressions(before, {"auc": 7.51, "new": 0.1}) == []
    assert regressions(before, {"auc": 7.49}) == ["regression: auc: 7.49x, 10x before"]
    assert regressions([], {"auc": 0.1}) == []


def test_lines_are_appended_and_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    file, asked = tmp_path / "some" / "ratios.jsonl", []

    def again(titles):
        asked.append(list(titles))
        return {"scores": {"auc": 4.0, "ap": 9.0}}

    first = {"scores": {"auc": 10.0, "ap": 8.0}, "labels": {"f1": 5.0}}
    assert record(file, HERE, first, again) == []
    assert asked == []  # there was nothing to compare with
    second = {"scores": {"auc": 3.0, "ap": 8.0}, "labels": {"f1": 5.0}}
    assert record(file, HERE, second, again) == ["regression: auc: 4x, 10x before"]
    assert asked == [["scores"], ["scores"]]
    assert lines_of(file)[1] == {**HERE, "ratios": {"auc": 4.0, "ap": 9.0, "f1": 5.0}}
    assert file.with_suffix(".svg").read_text("utf-8").count("1234567") == 2
    slow = {"scores": {"auc": 0.1, "ap": 0.1}}
    assert record(file, {**HERE, "machine": "another"}, slow, again) == []


def test_a_busy_machine_is_no_regression(tmp_path):
    pytest.importorskip("matplotlib")
    file = tmp_path / "ratios.jsonl"
    record(file, HERE, {"scores": {"auc": 10.0}}, dict)
    assert record(file, HERE, {"scores": {"auc": 5.0}}, lambda _: {"scores": {"auc": 9.0}}) == []


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["by_commit.py"])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit, match="^2$"):
        by_commit.main()
    assert "matplotlib" in (line := capsys.readouterr().err.splitlines()[-1])
    assert line.endswith(": pip install -e '.[test,plot]' --group bench")
