"""Every mistake is one line on standard error, and exit code 2."""

from __future__ import annotations

import gzip
import io
import re
import shlex
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prediction_files import store, text

from streammetrics.cli import main

BINARY = ("--task", "binary", "--y-true", "label", "--y-score", "score")


@pytest.fixture
def path(tmp_path, binary):
    return store(binary, tmp_path / "t.parquet")


def changed(binary, name, row, value):
    values = binary[name].to_pylist()
    values[row] = value
    return binary.set_column(binary.column_names.index(name), name, pa.array(values))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("evaluate",), "Missing option '--task'"),
        (("evaluate", "{path}"), "Missing option '--task'"),
        (("evaluat", "{path}"), "No such command 'evaluat'"),
        (("evaluate", "{path}", "--nope"), "No such option"),
        (("evaluate", "{path}", *BINARY, "--workers", "0"), "--workers"),
        (("evaluate", "{path}", *BINARY, "--batch-rows", "many"), "--batch-rows"),
        (("evaluate", "{path}", "--task", "binery"), "no task 'binery'; did you mean 'binary'?"),
        (("evaluate", "{path}", "--task", "binary"), "--task binary needs --y-true"),
        (
            ("evaluate", "{path}", "--task", "binary", "--y-true", "label"),
            "--task binary needs --y-score or --y-pred",
        ),
        (
            (
                "evaluate",
                "{path}",
                "--task",
                "regression",
                "--y-true",
                "score",
                "--y-score",
                "score",
            ),
            "--y-score is not for --task regression",
        ),
        (
            ("evaluate", "{path}", *BINARY, "--param", "threshold=nan"),
            "threshold=nan): expected a number",
        ),
        (
            ("evaluate", "{path}", *BINARY, "--y-pred", "label", "--param", "threshold=0.5"),
            "--param threshold makes labels of scores, but --y-pred has labels",
        ),
        (("evaluate", "{path}", *BINARY, "--metrics", "ROCAUK"), "did you mean 'ROCAUC'"),
        (
            ("evaluate", "{path}", *BINARY, "--metrics", "ap"),
            "MAP needs --query; did you mean 'AveragePrecision'?",
        ),
        (("evaluate", "{path}", *BINARY, "--metrics", "F1(0.5)"), "expected names and parameters"),
        (("evaluate", "{path}", *BINARY, "--metrics", "F1("), "expected names and parameters"),
        (("evaluate", "{path}", *BINARY, "--metrics", ""), "expected names and parameters"),
        (("evaluate", "{path}", *BINARY, "--metrics", "F1(x=open('a'))"), "expected names and"),
        (("evaluate", "{path}", *BINARY, "--metrics", "F1(bata=2)"), "F1 has no parameter 'bata'"),
        (("evaluate", "{path}", *BINARY, "--metrics", "FBeta(beta='x')"), "FBeta(beta='x'): "),
        (("evaluate", "{path}", *BINARY, "--metrics", "F1,F1"), "F1 is given twice"),
        (("evaluate", "{path}", *BINARY, "--metrics", "MAE"), "MAE needs --y-pred"),
        (
            ("evaluate", "{path}", *BINARY, "--y-pred", "label", "--metrics", "F1"),
            "--y-score is not read by any of the metrics (F1)",
        ),
        (
            ("evaluate", "{path}", *BINARY, "--metrics", "F1", "--param", "max_bins=9"),
            "--param max_bins: none of the metrics has it (F1)",
        ),
        (
            ("evaluate", "{path}", *BINARY, "--param", "nan_policy=skip"),
            "expected 'raise' or 'omit'",
        ),
        (
            ("evaluate", "{path}", *BINARY, "--param", "max_bins=-1"),
            "ROCAUC(max_bins=-1): expected an",
        ),
        (("evaluate", "{path}", *BINARY, "--input-format", "excel"), "no format 'excel'"),
        (("evaluate", "{path}", *BINARY, "--json", "{tmp}/no/x.json"), "there is no folder"),
        (("evaluate", "{path}", *BINARY, "--save", "{tmp}"), "it is a folder"),
        (
            ("evaluate", "{tmp}/u.parquet", *BINARY),
            "no such file or folder; did you mean 't.parquet'",
        ),
        (("evaluate", "{tmp}/no/u.parquet", *BINARY), "there is no folder"),
        (("evaluate", "{tmp}/*.csv", *BINARY), "no file matches"),
        (("evaluate", "{path}", "{tmp}", *BINARY), "named twice"),
        (("evaluate", "-", *BINARY), "standard input needs --input-format"),
        (
            ("evaluate", "{path}", "--task", "binary", "--y-true", "label", "--y-score", "Scroe"),
            "no column 'Scroe'; did you mean 'score'? There are: label, score, weight, text",
        ),
        (
            ("evaluate", "{path}", "--task", "binary", "--y-true", "label", "--y-score", "q*"),
            "no column matches 'q*'",
        ),
        (
            ("evaluate", "{path}", "--task", "binary", "--y-true", "label", "--y-score", "text"),
            "t.parquet: text holds text; numbers are needed",
        ),
        (
            ("evaluate", "{path}", "--task", "binary", "--y-true", "text", "--y-score", "score"),
            "t.parquet: text",
        ),
        (("show", "{tmp}/none"), "none: No such file or directory"),
        (("show", "{path}"), "t.parquet: not a state of streammetrics"),
        (("merge", "{path}", "-o", "{tmp}/s"), "t.parquet: not a state of streammetrics"),
        (("merge", "-o", "{tmp}/s"), "Missing argument"),
        (("merge", "{path}"), "Missing option"),
    ],
)
def test_arguments(mistake, path, tmp_path, arguments, told):
    line = mistake(*(a.format(path=path, tmp=tmp_path) for a in arguments))
    assert told in line
    assert "\x1b" not in line


@pytest.mark.parametrize(
    "name", ["t.parquet", "t.arrow", "t.arrows", "t.csv", "t.csv.gz", "t.jsonl"]
)
@pytest.mark.parametrize("batch", [100, 5000])
def test_a_null_is_told_with_file_and_row(mistake, tmp_path, binary, name, batch):
    path = store(changed(binary, "score", 2345, None), tmp_path / name)
    line = mistake("evaluate", path, *BINARY, "--batch-rows", batch)
    told = "score is missing (NaN or null) in 1 row, first in row 2345 of the file; "
    assert line.startswith(f"{path}: {told}")
    assert "--param nan_policy=omit" in line


def test_text_among_numbers_is_told_with_its_row(mistake, tmp_path, binary):
    data = text(binary).decode().splitlines()
    data[778] = '1,"abc",0.5,x'
    (tmp_path / "t.csv").write_text("\n".join(data))
    assert mistake("evaluate", tmp_path / "t.csv", *BINARY) == (
        f"{tmp_path}/t.csv: score holds 'abc' in row 777; numbers are needed"
    )
    data = text(binary, lines=True).decode().splitlines()
    data[777] = '{"label": 1, "score": "0.5"}'
    (tmp_path / "t.jsonl").write_text("\n".join(data))
    assert mistake("evaluate", tmp_path / "t.jsonl", *BINARY) == (
        f'{tmp_path}/t.jsonl: score holds "0.5" in row 777; numbers are needed'
    )


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("x.parquet", b"", "cannot be read as Parquet"),
        ("x.parquet", b"PAR1 not really", "cannot be read as Parquet"),
        ("x.arrow", b"", "cannot be read as Arrow"),
        ("x.arrow", b"ARROW1 not really", "cannot be read as Arrow"),
        ("x.csv", b"", "is empty"),
        ("x.csv", b"label,score\n1,0.5\n0\n", "row 1 has 1 field, and the first line has 2 names"),
        ("x.csv", b"label,score\n1,0.5,7\n", "row 0 has 3 fields, and the first line has 2 names"),
        ("x.csv", b"\xff\xfe\x00,\n", "cannot be read as CSV"),
        ("x.csv", b"label,score,score\n1,0.5,0.5\n", "2 columns are called 'score'"),
        (
            "x.csv.gz",
            gzip.compress(b"label,score\n" + b"1,0.25\n" * 9999)[:-20],
            "cannot be read as CSV",
        ),
        ("x.csv.gz", b"\x1f\x8b nothing", "cannot be read as CSV"),
        ("x.jsonl", b"", "is empty"),
        ("x.jsonl", b'[1, {"label": 1}]', "row 0 is not a JSON object"),
        ("x.jsonl", b'{"label": 1, "score": 0.5}\n{"label": 1,\n', "row 1 is not a JSON object"),
        (
            "x.jsonl",
            b'{"label": 1, "score": 0.5}\n{"label": "a", "score": 1}\n',
            'label holds "a" in row 1',
        ),
        ("x.jsonl", b'{"label": 1, "scores": 0.5}\n', "no column 'score'; did you mean 'scores'?"),
    ],
)
def test_the_unreadable_file_among_many_is_named(mistake, tmp_path, path, name, content, told):
    bad = tmp_path / name
    bad.write_bytes(content)
    line = mistake("evaluate", tmp_path, *BINARY)
    assert line.startswith(f"{bad}: ")
    assert told in line


def test_a_file_damaged_in_the_middle_is_named(mistake, tmp_path, binary):
    path = store(binary, tmp_path / "t.parquet")
    data = bytearray(path.read_bytes())
    data[4 : len(data) // 2] = bytes(len(data) // 2 - 4)
    path.write_bytes(data)
    assert mistake("evaluate", path, *BINARY).startswith(f"{path}: cannot be read as Parquet")


def test_files_of_other_kinds_of_labels(mistake, tmp_path, binary):
    store(binary, tmp_path / "a.csv")
    words = pa.array(np.where(binary["label"].to_numpy() == 1, "yes", "no"))
    store(binary.set_column(0, "label", words), tmp_path / "b.csv")
    assert mistake("evaluate", tmp_path, *BINARY).startswith(f"{tmp_path}/b.csv: ")


def test_scores_that_are_no_probabilities_say_what_to_leave_out(mistake, command, tmp_path, binary):
    logits = pa.array(binary["score"].to_numpy() * 9 - 4)
    path = store(binary.set_column(1, "score", logits), tmp_path / "t.parquet")
    line = mistake("evaluate", path, *BINARY)
    assert "outside [0, 1]" in line
    advice = line.partition("leave out with --metrics ")[2].strip("'")
    assert "LogLoss, BrierScore, CalibrationError need probabilities" in line
    assert command("evaluate", path, *BINARY, "--metrics", advice).code == 0


def test_more_classes_than_the_task_has(mistake, tmp_path):
    table = pa.table({"label": [0, 1, 2], "score": [0.1, 0.2, 0.9]})
    path = store(table, tmp_path / "t.parquet")
    assert mistake("evaluate", path, *BINARY).startswith(f"{path}: label")
    line = mistake("evaluate", path, "--task", "binary", "--y-true", "label", "--y-pred", "label")
    assert "--param average=macro, micro, weighted or none" in line
    line = mistake(
        "evaluate", path, "--task", "multiclass", "--y-true", "label", "--y-score", "label"
    )
    assert line.endswith("--y-score needs a column for each class")


def test_advice_is_what_to_type_next(mistake, command, tmp_path):
    table = pa.table(
        {"label": ["yes", "no"], "p": [0.9, 0.2], "score": [3.5, -2.0], "pred": ["yes", "no"]}
    )
    path = store(table, tmp_path / "t.csv")
    binary = ("evaluate", path, "--task", "binary", "--y-true", "label")
    assert "--param pos_label=yes or another" in mistake(*binary, "--y-score", "p")
    assert "--param pos_label=yes or another" in mistake(*binary, "--y-pred", "pred")
    yes = (*binary, "--param", "pos_label=yes")
    assert "to cut scores, pass --y-score" in mistake(*yes, "--y-pred", "score")
    assert "say --param from_logits=true if these are logits" in mistake(*yes, "--y-score", "score")
    assert command(*yes, "--y-score", "score", "--param", "from_logits=true").code == 0
    several = ("evaluate", path, "--task", "multiclass", "--y-true", "label")
    line = mistake(*several, "--y-score", "score")
    assert line.endswith("--y-score needs a column for each class")
    three = store(pa.table({"label": ["a", "b", "c"]}), tmp_path / "three.csv")
    both = ("--y-true", "label", "--y-pred", "label", "--param", "pos_label=a")
    line = mistake("evaluate", three, "--task", "binary", *both)
    assert "--param average=macro, micro, weighted or none takes any number of classes" in line


def test_standard_input_that_is_no_table(mistake, monkeypatch):
    stdin = SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(b"")))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert mistake("evaluate", "-", "--input-format", "arrow", *BINARY).startswith(
        "standard input: "
    )


def test_missing_extras_are_named(monkeypatch, capsys):
    monkeypatch.setattr(
        "streammetrics.cli.find_spec", lambda name: None if name == "rich" else name
    )
    assert main(["--help"]) == 2
    assert capsys.readouterr().err == (
        "error: the command line needs rich: pip install 'streammetrics[cli]'\n"
    )


def test_the_largest_score_is_the_label_of_any_metric(command, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,p0,p1\n0,0.7,0.3\n1,0.4,0.6\n1,0.8,0.2\n")
    run = ("evaluate", path, "--task", "multiclass", "--y-true", "y", "--y-score", "p*")
    result = command(*run, "--metrics", "Accuracy", "--csv", "-")
    assert result.code == 0
    assert result.out.splitlines()[1].startswith("Accuracy,,0.666")


def test_text_labels_beside_scores_are_told_of_the_option(mistake, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,p0,p1\ncat,0.7,0.3\ndog,0.4,0.6\n")
    run = ("evaluate", path, "--task", "multiclass", "--y-true", "y", "--y-score", "p*")
    assert "with --param labels=cat,dog,eel in their order" in mistake(*run, "--metrics", "LogLoss")


def test_two_kinds_of_labels_are_told_without_a_line_of_python(mistake, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,p\n0,cat\n1,dog\n")
    line = mistake("evaluate", path, "--task", "multiclass", "--y-true", "y", "--y-pred", "p")
    assert "y holds integers, p holds strings: convert one of them, so that both hold" in line


def test_a_missing_task_is_told_with_the_tasks(mistake, path):
    line = mistake("evaluate", path)
    assert "Missing option '--task': one of binary, multiclass, " in line


def test_of_scores_of_classes_every_metric_needs_probabilities(mistake, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,p0,p1\n0,0.7,1.3\n1,0.4,0.6\n")
    run = ("evaluate", path, "--task", "multiclass", "--y-true", "y", "--y-score", "p[01]")
    line = mistake(*run, "--metrics", "Accuracy,ROCAUC,LogLoss")
    assert line.rstrip().endswith(
        "ROCAUC, LogLoss need probabilities: leave out with --metrics 'Accuracy'"
    )


def test_numbered_scores_and_a_label_are_no_matrix(mistake, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,p0,p1,predicted\n0,0.7,0.3,0\n1,0.4,0.6,1\n")
    run = ("evaluate", path, "--task", "multiclass", "--y-true", "y", "--y-score", "p*")
    line = mistake(*run, "--metrics", "Accuracy")
    assert "'p*' means 2 numbered columns, p0 to p1, and others: predicted" in line


def test_the_option_for_a_label_that_looks_like_a_number_can_be_typed(mistake, command, tmp_path):
    """It named the number, which is no label."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"y": ["0", "1", "1"], "s": [0.1, 0.6, 0.9]}), path)
    run = ("evaluate", path, "--task", "binary", "--y-true", "y", "--y-score", "s")
    run += ("--metrics", "ROCAUC")
    told = mistake(*run)
    option = re.search(r"--param (pos_label=\S+) or another", told)
    assert option is not None, told
    assert option[1] == "pos_label=\"'1'\""
    assert command(*run, "--param", *shlex.split(option[1])).code == 0
