"""What is printed, on a terminal and in a pipe, and what is written."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from prediction_files import store

import streammetrics as sm
from streammetrics.cli import main, states
from streammetrics.cli.outputs import write
from streammetrics.core.state.files import locked
from streammetrics.show.formats import as_json, cells, plain
from streammetrics.show.report import MetricRow, ModelReports, report

BINARY = ("--task", "binary", "--y-true", "label", "--y-score", "score")


@pytest.fixture
def path(tmp_path, binary):
    return store(binary, tmp_path / "t.parquet")


@pytest.mark.long
def test_a_pipe_gets_plain_text(path):
    run = [sys.executable, "-m", "streammetrics", "evaluate", path, *BINARY]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0] == "task=binary  y_true=label  y_score=score  threshold=0.5"
    assert lines[1].split() == ["Metric", "Value", "Rows", "Omitted"]
    assert [line.split()[0] for line in lines[2:-1]] == [
        "ROCAUC", "AveragePrecision", "LogLoss", "BrierScore", "CalibrationError",
        "KolmogorovSmirnov", "Accuracy", "Precision", "Recall", "F1", "MatthewsCorrcoef",
    ]  # fmt: skip
    assert lines[-1] == "every value is exact"


def test_a_terminal_gets_a_table_and_a_bar(command, path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    result = command("evaluate", path, *BINARY)
    assert "\x1b[1m" in result.out
    assert "ROCAUC" in result.out
    assert "3,000 rows" in result.err
    assert "rows/s" in result.err


def test_json_has_every_bit_and_no_nan(command, tmp_path, path, binary):
    metrics = "ROCAUC,ROCCurve,ConfusionMatrix,ClassificationReport,FBeta(beta=2)"
    base = ("evaluate", path, *BINARY, "--metrics", metrics)
    result = command(*base, "--json", tmp_path / "r.json")
    assert "points, see --json" in result.out
    text = (tmp_path / "r.json").read_text()
    assert command(*base, "--json", "-").out == text
    found = json.loads(text, parse_constant=pytest.fail)
    label, score = binary["label"].to_numpy(), binary["score"].to_numpy()
    auc = found["metrics"]["ROCAUC"]
    assert auc["value"] == auc["low"] == auc["high"] == sm.ROCAUC().update(label, score).compute()
    assert (auc["exact"], auc["n_rows"], auc["n_omitted"]) == (True, 3000, 0)
    assert found["metrics"]["FBeta(beta=2)"]["parameters"]["beta"] == 2.0
    matrix = sm.ConfusionMatrix(threshold=0.5).update(label, score).compute()
    assert found["metrics"]["ConfusionMatrix"]["value"] == matrix.tolist()
    curve = found["metrics"]["ROCCurve"]["value"]
    assert curve["thresholds"][0] == "Infinity"
    assert len(curve["fpr"]) == len(curve["tpr"]) == len(curve["thresholds"])


def test_undefined_is_a_note_and_null(command, tmp_path):
    path = store(pa.table({"label": [1, 1], "score": [0.5, 0.7]}), tmp_path / "t.parquet")
    result = command("evaluate", path, *BINARY, "--metrics", "ROCAUC", "--json", tmp_path / "j")
    assert (result.code, result.err) == (0, "")
    assert "undefined" in result.out
    said = "note: ROCAUC is nan: only one class was seen, as every row is positive"
    assert result.out.splitlines()[-1] == said
    assert json.loads((tmp_path / "j").read_text())["metrics"]["ROCAUC"]["value"] is None


def test_an_interval_is_shown_so_that_it_still_holds(command, path):
    result = command("evaluate", path, *BINARY, "--metrics", "ROCAUC,F1", "--param", "max_bins=16")
    assert "Certainly within" in result.out
    assert "exact" in result.out
    rng = np.random.default_rng(3)
    for width in (1e-15, 1e-9, 3e-4, 0.2, 40.0):
        low = float(rng.normal())
        high = low + width
        _, text = cells(MetricRow("x", {}, (low + high) / 2, low, high, False, 1, 0))
        shown = [float(part) for part in text.partition("  (")[0].split(" .. ")]
        assert shown[0] <= low
        assert high <= shown[1]
        assert shown[1] - shown[0] <= 1.3 * width + 1e-15
    assert cells(MetricRow("x", {}, 1.0, -math.inf, math.inf, False, 1, 0))[1] == "-inf .. inf"


def test_plain_values():
    found = report(sm.Accuracy().update([1], [1]), {})
    value = {"a": np.float64("nan"), 1: (np.inf, -np.inf), "b": np.array([[1, 2]]), "c": None}
    assert plain(value) == {"a": None, "1": ["Infinity", "-Infinity"], "b": [[1, 2]], "c": None}
    assert json.loads(as_json(ModelReports({"": found})))["n_rows"] == 1


def saved(folder, shards):
    folder.mkdir()
    for name, rows in shards.items():
        metric = sm.MetricSet({"acc": sm.Accuracy()}).update({"y_true": rows, "y_pred": rows})
        (folder / f"{name}.state").write_bytes(metric.to_bytes())
    return folder


def test_a_ledger_counts_a_retried_shard_once(command, mistake, tmp_path):
    first = saved(tmp_path / "first", {"a": [1], "b": [1, 2], "c@1": [3]})
    again = saved(tmp_path / "again", {"a": [1], "b@2": [1, 2, 3, 4]})
    ledger = tmp_path / "day.ledger"
    states = [*sorted(first.iterdir()), *sorted(again.iterdir())]
    result = command("merge", "--ledger", *states, "-o", ledger)
    assert result.out == f"merged 5 states into 3 shards of 6 rows into {ledger}\n"
    assert sm.from_bytes(ledger.read_bytes()).attempts == {"a": 1, "b": 2, "c": 1}
    before = ledger.read_bytes()
    for more in ([ledger, *states], [*states[::-1], ledger, ledger]):
        assert command("merge", "--ledger", *more, "-o", ledger).code == 0
        assert ledger.read_bytes() == before
    shown = command("show", ledger)
    assert "3 shards, 0 of them sealed" in shown.out
    assert json.loads(command("show", ledger, "--json", "-").out)["shards"] == ["a", "b", "c"]
    line = mistake("merge", ledger, "-o", ledger)
    assert line == f"-o would overwrite {ledger}, which is read: name another file"
    assert ledger.read_bytes() == before
    assert command("merge", "--ledger", ledger, "-o", ledger, "--seal").code == 0
    assert "3 shards, 3 of them sealed" in command("show", ledger).out
    late = first / "a.state"
    sealed = ledger.read_bytes()
    assert command("merge", "--ledger", late, "-o", ledger).code == 0  # a retry changes nothing
    assert ledger.read_bytes() == sealed
    other = saved(tmp_path / "other", {"a": [1, 5]})
    line = mistake("merge", "--ledger", other / "a.state", "-o", ledger)
    assert "a.state does not fit the others: shard 'a' " in line
    assert ledger.read_bytes() == sealed


def test_a_ledger_that_is_there_keeps_its_shards(command, mistake, tmp_path):
    days = saved(tmp_path / "days", {"mon": [1], "tue": [1, 2]})
    week = tmp_path / "week.ledger"
    for day in ("mon", "tue", "tue"):
        assert command("merge", "--ledger", days / f"{day}.state", "-o", week).code == 0
    assert sm.load(week).ids == ["mon", "tue"]
    again = command("merge", "--ledger", days / "mon.state", "-o", week)
    assert again.err == f"note: {week} exists and keeps its 2 shards\n"
    before = week.read_bytes()
    line = mistake("merge", "--ledger", days / "mon.state", "-o", days / "tue.state")
    assert "add --force to overwrite it" in line
    assert command("merge", "--ledger", days / "mon.state", "-o", week, "--force").code == 0
    assert sm.load(week).ids == ["mon"]
    assert week.read_bytes() != before
    assert "1 shard, 0 of them sealed" in command("show", week).out


def test_the_first_update_of_a_ledger_makes_it(command, tmp_path):
    days = saved(tmp_path / "days", {"mon": [1], "tue": [1, 2]})
    week = tmp_path / "week.ledger"
    result = command("merge", "--ledger", week, f"{days}/*.state", "-o", week)
    assert (result.code, result.err) == (0, f"note: {week} does not exist yet and is created\n")
    assert sm.load(week).ids == ["mon", "tue"]


def test_a_state_named_twice_would_count_twice(command, mistake, tmp_path):
    days = saved(tmp_path / "days", {"mon": [1], "tue": [1, 2]})
    (tmp_path / "link").symlink_to(days / "mon.state")
    for more in (days / "mon.state", tmp_path / "link", f"{days}/m*"):
        line = mistake("merge", days / "mon.state", more, "-o", tmp_path / "c")
        assert "is named twice, and its rows would count twice: name it once, or write a" in line
    assert mistake("merge", f"{days}/x*", "-o", tmp_path / "c") == f"{days}/x*: no file matches"
    result = command("merge", f"{days}/*.state", "-o", tmp_path / "c")
    assert result.out == f"merged 2 states of 3 rows into {tmp_path / 'c'}\n"


def test_mistakes_with_ledgers(mistake, tmp_path):
    folder = saved(tmp_path / "first", {"a": [1]})
    other = saved(tmp_path / "other", {"a": [2]})
    line = mistake("merge", "--ledger", folder / "a.state", other / "a.state", "-o", tmp_path / "l")
    assert "shard 'a' has two different states at attempt 1: a retry needs a higher" in line
    assert not (tmp_path / "l").exists()
    line = mistake("merge", folder / "a.state", "-o", tmp_path / "l", "--seal")
    assert line == "--seal requires --ledger"
    (tmp_path / "l").write_bytes(sm.Ledger(sm.Mean()).to_bytes())
    line = mistake("merge", folder / "a.state", tmp_path / "l", "-o", tmp_path / "m")
    assert line.endswith("is a ledger: add --ledger")
    line = mistake("merge", "--ledger", folder / "a.state", tmp_path / "l", "-o", tmp_path / "m")
    assert "configurations differ" in line
    (tmp_path / "n").write_bytes(sm.Ledger().to_bytes())
    assert "the ledger has no shard" in mistake("show", tmp_path / "n")


def test_states_are_shown_and_merged(command, mistake, tmp_path, path, binary):
    halves = [store(binary.slice(i * 1500, 1500), tmp_path / f"{i}.csv") for i in (0, 1)]
    for half in halves:
        assert command("evaluate", half, *BINARY, "--save", f"{half}.state").code == 0
    whole = command("evaluate", path, *BINARY, "--save", tmp_path / "whole")
    result = command("merge", *(f"{half}.state" for half in halves), "-o", tmp_path / "merged")
    assert result.out == f"merged 2 states of 3,000 rows into {tmp_path / 'merged'}\n"
    assert (tmp_path / "merged").read_bytes() == (tmp_path / "whole").read_bytes()
    shown = command("show", tmp_path / "merged")
    assert shown.out.splitlines()[1:] == whole.out.splitlines()[1:]
    values = json.loads(command("show", tmp_path / "merged", "--json", "-").out)
    assert values["columns"] == {"y_true": "label", "y_score": "score"}

    other = command("evaluate", path, *BINARY, "--metrics", "F1", "--save", tmp_path / "other")
    assert other.code == 0
    line = mistake("merge", tmp_path / "whole", tmp_path / "other", "-o", tmp_path / "new")
    assert line.startswith(f"{tmp_path / 'other'} does not fit {tmp_path / 'whole'}: ")
    cut = tmp_path / "cut"
    cut.write_bytes((tmp_path / "whole").read_bytes()[:-7])
    assert mistake("show", cut).startswith(f"{cut}: ")
    (tmp_path / "mean").write_bytes(sm.Accuracy().update([1, 0], [1, 1]).to_bytes())
    assert "0.500000" in command("show", tmp_path / "mean").out


def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "state"
    write(str(target), b"old")
    assert os.stat(target).st_mode & 0o777 == 0o666 & ~_umask()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(sm.StreamMetricsError, match="state: cannot be written: No space left"):
        write(str(target), b"new")
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["state"]


def test_ledgers_updated_at_once_keep_every_shard(tmp_path):
    folder = saved(tmp_path / "states", {f"part-{i}": [i] for i in range(8)})
    ledger = tmp_path / "day.ledger"
    first, *others = sorted(folder.iterdir())
    assert main(["merge", "--ledger", str(first), "-o", str(ledger)]) == 0

    def update(state):
        return main(["merge", "--ledger", str(ledger), str(state), "-o", str(ledger)])

    with ThreadPoolExecutor(len(others)) as pool:
        assert set(pool.map(update, others)) == {0}
    assert sm.load(ledger).ids == [f"part-{i}" for i in range(8)]
    assert sorted(os.listdir(tmp_path)) == ["day.ledger", "states"]


def test_a_ledger_that_somebody_holds_is_told(mistake, tmp_path, monkeypatch):
    folder = saved(tmp_path / "states", {"a": [1]})
    monkeypatch.setattr(states, "locked", lambda path: locked(path, timeout=0.05))
    with locked(tmp_path / "l"):
        line = mistake("merge", "--ledger", folder / "a.state", "-o", tmp_path / "l")
    assert line == f"{tmp_path / 'l'}: locked by another process for 0.05 s: try again"


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_pipe_can_be_written_to(command, path):
    reader, writer = os.pipe()
    args = ("evaluate", path, *BINARY, "--metrics", "F1", "--json", f"/dev/fd/{writer}")
    result = command(*args)
    os.close(writer)
    with open(reader) as pipe:
        assert json.load(pipe)["n_rows"] == 3000
    assert result.code == 0


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_labels_averages_and_thresholds(command, path, tmp_path, binary):
    words = pa.array(np.where(binary["label"].to_numpy() == 1, "yes", "no"))
    table = binary.set_column(0, "label", words).append_column("pred", words)
    named = store(table, tmp_path / "n.parquet")
    args = ("--task", "binary", "--y-true", "label", "--y-pred", "pred", "--param", "pos_label=yes")
    assert "1.000000" in command("evaluate", named, *args, "--param", "labels=no,yes").out
    args = (named, "--task", "multiclass", "--y-true", "label", "--y-pred", "pred")
    result = command("evaluate", *args, "--param", "average=none", "--metrics", "F1")
    assert result.out.splitlines()[-3:] == [
        "Class        F1", "no     1.000000", "yes    1.000000"
    ]  # fmt: skip
    result = command(
        "evaluate", path, *BINARY, "--param", "threshold=0.8", "--metrics", "Recall", "--json", "-"
    )
    found = json.loads(result.out)["metrics"]["Recall"]["value"]
    recall = sm.Recall(threshold=0.8)
    assert found == recall.update(binary["label"], binary["score"]).compute()


def test_regression(command, tmp_path):
    rng = np.random.default_rng(1)
    y = rng.normal(size=500)
    path = store(pa.table({"y": y, "p": y + rng.normal(size=500)}), tmp_path / "t.parquet")
    result = command("evaluate", path, "--task", "regression", "--y-true", "y", "--y-pred", "p")
    names = [line.split()[0] for line in result.out.splitlines()[2:-1]]
    assert names == [
        "MAE", "RMSE", "R2", "ExplainedVariance", "MedianAbsoluteError", "MaxError", "MeanError",
    ]  # fmt: skip


def test_a_copy_of_a_state_is_told_where_it_counts_twice(command, tmp_path):
    sm.F1().update([0, 1], [0, 1]).save(tmp_path / "a")
    sm.F1().update([1, 1], [0, 1]).save(tmp_path / "b")  # as long, and of other rows
    sm.F1().save(tmp_path / "empty")
    sm.F1().save(tmp_path / "none")
    (tmp_path / "copy").write_bytes((tmp_path / "a").read_bytes())
    merged = command("merge", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "ab")
    assert (merged.code, merged.err) == (0, "")
    merged = command(
        "merge", tmp_path / "a", tmp_path / "b", tmp_path / "copy", "-o", tmp_path / "m"
    )
    told = f"note: {tmp_path / 'copy'} is identical to {tmp_path / 'a'}; if it is a copy, its rows"
    assert merged.code == 0
    assert merged.err.startswith(told)
    assert command("merge", tmp_path / "empty", tmp_path / "none", "-o", tmp_path / "e").err == ""


def test_names_of_classes_break_no_line_and_command_no_terminal(command, tmp_path):
    odd = ["a\nb", "\x1b[2Jc", "d|e"]
    store(pa.table({"y|1": odd}), tmp_path / "t.parquet")
    run = ("evaluate", tmp_path / "t.parquet", "--task", "multiclass", "--y-true", "y|1")
    run += ("--y-pred", "y|1", "--metrics", "F1(average=none),ConfusionMatrix")
    table, markdown = command(*run).out, command(*run, "--markdown", "-").out
    assert "\x1b" not in table + markdown + command(*run[:5], "nope").err
    assert [line.split()[0] for line in table.splitlines()[7:10]] == [r"\x1b[2Jc", r"a\nb", "d|e"]
    widths = {line.replace(r"\|", "").count("|") for line in markdown.splitlines() if "|" in line}
    assert widths == {5, 3}  # of four and of two cells, none of them torn
