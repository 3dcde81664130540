"""Every format, whole or in pieces, gives the state that its table gives in Python."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from prediction_files import store, text

import streammetrics as sm

BINARY = ("--task", "binary", "--y-true", "label", "--y-score", "score")
NAMES = [
    "t.parquet", "t.arrow", "t.feather", "t.arrows", "t.csv", "t.csv.gz", "t.tsv", "t.tsv.gz",
    "t.jsonl", "t.ndjson.gz", "t.json",
]  # fmt: skip


def expected(*tables, **columns):
    columns = columns or {"y_true": "label", "y_score": "score"}
    suite = sm.MetricSet({"ROCAUC": sm.ROCAUC(), "F1": sm.F1(threshold=0.5)}, columns=columns)
    for table in tables:
        suite.update(table)
    return suite.to_bytes()


def state(command, tmp_path, *arguments):
    save = ("--save", tmp_path / "s", "--force")
    result = command("evaluate", *arguments, "--metrics", "ROCAUC,F1", *save)
    assert result.code == 0, result.err
    assert result.err == ""
    return (tmp_path / "s").read_bytes()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("batch", [("--batch-rows", 77), ()])
def test_every_format_gives_the_state_of_the_table(command, tmp_path, binary, name, batch):
    path = store(binary, tmp_path / name)
    assert state(command, tmp_path, path, *BINARY, *batch) == expected(binary)


@pytest.mark.parametrize(
    "name", ["t.parquet", "t.arrow", "t.arrows", "t.csv", "t.csv.gz", "t.jsonl"]
)
def test_standard_input(command, tmp_path, binary, name, monkeypatch):
    data = store(binary, tmp_path / name).read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(data))))
    fmt = {"t.arrows": "arrow", "t.csv.gz": "csv"}.get(name, name[2:])
    got = state(command, tmp_path, "-", "--input-format", fmt, *BINARY, "--workers", 2)
    assert got == expected(binary)


def test_folders_globs_and_lists_of_files(command, tmp_path, binary):
    data = tmp_path / "data"
    (data / "deep" / "er").mkdir(parents=True)
    (data / "_temporary").mkdir()
    store(binary.slice(0, 1000), data / "a.parquet")
    store(binary.slice(1000, 1000), data / "deep" / "b.csv.gz")
    store(binary.slice(2000), data / "deep" / "er" / "c.jsonl")
    store(binary, data / "_temporary" / "half.parquet")
    (data / "README.md").write_text("not data")
    (data / "_SUCCESS").write_text("")
    whole = expected(binary)
    said = command("evaluate", data, *BINARY, "--metrics", "ROCAUC,F1", "--save", tmp_path / "s")
    assert (tmp_path / "s").read_bytes() == whole
    assert said.err.splitlines() == [
        f"note: 1 left out, of other kinds: {data / 'README.md'}",
        f"note: 2 left out, hidden (the name begins with . or _): {data / '_SUCCESS'}, "
        f"{data / '_temporary'}",
    ]
    assert state(command, tmp_path, data / "*.parquet", data / "deep", *BINARY) == whole
    assert state(command, tmp_path, data / "**" / "[abc].*", *BINARY) == whole


def test_format_says_what_endings_do_not(command, tmp_path, binary):
    (tmp_path / "part-00000").write_bytes(text(binary))
    assert state(
        command, tmp_path, tmp_path / "part-00000", "--input-format", "csv", *BINARY
    ) == expected(binary)


def test_types_do_not_hang_on_the_first_rows_of_text(command, tmp_path):
    # The first block holds whole scores, no score at all, and labels that look like numbers.
    rows = [("1", "1"), ("0", "0")] * 300_000 + [("1.0", "0.25")]
    body = "label,score\n" + "".join(f"{a},{b}\n" for a, b in rows)
    (tmp_path / "t.csv").write_text(body)
    table = {"label": [int(float(a)) for a, _ in rows], "score": [float(b) for _, b in rows]}
    assert state(command, tmp_path, tmp_path / "t.csv", *BINARY) == expected(table)


def test_labels_of_text_booleans_and_dictionaries(command, tmp_path):
    names = ["cat", "dog", "NA,x", "cat"] * 50
    for kind in (
        pa.array(names),
        pa.array(names).dictionary_encode(),
        pa.array(names, pa.large_string()),
    ):
        table = pa.table({"a": kind, "b": kind})
        for name in ("t.parquet", "t.arrow"):
            path = store(table, tmp_path / name)
            args = (
                path,
                "--task",
                "multiclass",
                "--y-true",
                "a",
                "--y-pred",
                "b",
                "--metrics",
                "Accuracy",
            )
            result = command("evaluate", *args, "--save", tmp_path / "s", "--force")
            assert result.code == 0, result.err
            assert sm.from_bytes((tmp_path / "s").read_bytes())["Accuracy"].compute() == 1.0
    flags = pa.table({"label": [True, False, True], "score": [0.9, 0.1, 0.2]})
    for name in NAMES:
        got = state(command, tmp_path, store(flags, tmp_path / name), *BINARY)
        assert sm.from_bytes(got).compute() == {"ROCAUC": 1.0, "F1": 2 / 3}


def test_quoted_text_may_hold_line_breaks(command, tmp_path):
    body = '"la\nbel",note,score\n' + '1,"two\nlines, and a comma",0.75\n0,x,0.25\n' * 200_000
    (tmp_path / "t.csv").write_text(body)
    args = ("--task", "binary", "--y-true", "la\nbel", "--y-score", "score", "--metrics", "ROCAUC")
    got = command("evaluate", tmp_path / "t.csv", *args, "--json", "-")
    assert got.code == 0, got.err
    assert '"n_rows": 400000' in got.out


def test_weights_and_nulls_left_out(command, tmp_path, binary):
    score = pa.array(
        [None if i % 10 == 0 else s for i, s in enumerate(binary["score"].to_pylist())]
    )
    table = binary.set_column(1, "score", score)
    suite = sm.MetricSet(
        {"ROCAUC": sm.ROCAUC(nan_policy="omit"), "F1": sm.F1(threshold=0.5, nan_policy="omit")},
        columns={"y_true": "label", "y_score": "score", "sample_weight": "weight"},
    )
    suite.update(table)
    assert suite.n_omitted == 300
    for name in NAMES:
        args = (
            store(table, tmp_path / name),
            *BINARY,
            "--weight",
            "weight",
            "--param",
            "nan_policy=omit",
        )
        assert state(command, tmp_path, *args) == suite.to_bytes(), name


def test_score_columns_by_glob_and_by_list(command, tmp_path, binary):
    even = pa.array(np.full(len(binary), 1 / 11))
    columns = {f"p{i}": even for i in range(11)}
    table = pa.table({"predicted": binary["label"], "label": binary["label"], **columns})
    path = store(table, tmp_path / "t.parquet")
    base = (
        "evaluate",
        path,
        "--task",
        "multiclass",
        "--y-true",
        "label",
        "--json",
        "-",
        "--metrics",
    )
    glob = command(*base, "Accuracy,LogLoss", "--y-score", "p[0-9]*")
    assert '"p9",\n      "p10"\n' in glob.out, glob.err
    both = command(*base, "Accuracy,LogLoss", "--y-score", "p*", "--y-pred", "predicted")
    assert '"y_pred": "predicted"' in both.out, both.err  # and not among the scores
    listed = command(*base, "LogLoss", "--y-score", ",".join(columns))
    assert listed.out.partition('"n_rows"')[2].partition('"notes"')[0] in both.out + listed.out


def test_files_of_no_rows_are_told(command, tmp_path, binary):
    for name in NAMES[:8]:  # a JSON line is what names the columns
        result = command("evaluate", store(binary.slice(0, 0), tmp_path / name), *BINARY)
        assert result == (1, "", "error: no rows: nothing was measured\n"), name
