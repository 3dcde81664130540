"""Outputs: no input and no stranger's file is overwritten, two never go to one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pyarrow as pa
import pytest
from prediction_files import store

BINARY = ("--task", "binary", "--y-true", "label", "--y-score", "score", "--metrics", "F1")
OPTIONS = ["--json", "--csv", "--markdown", "--save", "--receipt"]


@pytest.fixture
def path(tmp_path, binary):
    return store(binary, tmp_path / "victim.csv")


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_an_input_is_never_overwritten(mistake, tmp_path, path, option, link):
    before, output = path.read_bytes(), path
    if link is not None:
        output = tmp_path / "output"
        link(path, output)
    for force in ((), ("--force",)):
        line = mistake("evaluate", path, *BINARY, option, output, *force)
        assert line.startswith(f"{option} would overwrite {path}")
        assert line.endswith("which is read: name another file")
    assert path.read_bytes() == before


def test_what_a_folder_or_a_glob_brings_is_an_input_too(mistake, tmp_path, path):
    for inputs in (tmp_path, f"{tmp_path}/v*.csv"):
        line = mistake("evaluate", inputs, *BINARY, "--csv", path, "--force")
        assert line.startswith(f"--csv would overwrite {path}")
    line = mistake("evaluate", tmp_path, *BINARY, "--json", tmp_path / "new.json")
    assert f"lies in {tmp_path}, all of which is read, so the next run would read it too" in line
    assert not (tmp_path / "new.json").exists()


@pytest.mark.parametrize(
    ("read", "output", "more"),
    [
        ("{}", "new.csv.gz", ()),
        ("{}", "NEW.JSON", ()),
        ("{}", "sub/new.csv", ()),
        ("{}", "new.txt", ("--input-format", "csv")),
        ("{}/*.csv", "new.csv", ()),
        ("{}/*", "new.txt", ()),  # of no known format, so that the next run would end there
        ("{}/**", "sub/new.csv", ()),
        ("{}/**/*.csv", "sub/new.csv", ()),
        ("{}/su*", "sub/new.csv", ()),
        ("{}/s*b/*.csv", "sub/new.csv", ()),
    ],
)
def test_what_the_next_run_would_read_is_no_output(mistake, tmp_path, path, read, output, more):
    (tmp_path / "sub").mkdir()
    store(pa.table({"label": [1], "score": [0.5]}), tmp_path / "sub" / "b.csv")
    for option in OPTIONS:
        args = ("evaluate", read.format(tmp_path), *more, *BINARY, option, tmp_path / output)
        assert "so the next run would read it too: name a file elsewhere" in mistake(*args)
    assert not (tmp_path / output).exists()


@pytest.mark.parametrize(
    ("read", "output"),
    [
        ("{}", "result.txt"),
        ("{}", "_result.csv"),
        ("{}", ".sub/result.csv"),
        ("{}/*.csv", "result.json"),
        ("{}/v*", ".v.csv"),
        ("{}/*/*.csv", "result.csv"),
        ("{}/victim.csv", "other.csv"),
    ],
)
def test_what_no_run_would_read_may_lie_beside_its_input(command, tmp_path, path, read, output):
    for folder in ("sub", ".sub"):
        (tmp_path / folder).mkdir()
        shutil.copy(path, tmp_path / folder / "v.csv")
    assert (
        command("evaluate", read.format(tmp_path), *BINARY, "--json", tmp_path / output).code == 0
    )


def test_a_state_is_not_merged_into_the_glob_that_it_is_of(mistake, command, tmp_path, path):
    assert command("evaluate", path, *BINARY, "--save", tmp_path / "a.state").code == 0
    line = mistake("merge", tmp_path / "*.state", "-o", tmp_path / "all.state")
    assert line.startswith(f"-o {tmp_path}/all.state matches {tmp_path}/*.state")
    assert command("merge", tmp_path / "a*.state", "-o", tmp_path / "b.state").code == 0


def test_states_judgments_and_runs_are_inputs(mistake, command, tmp_path, path):
    state = tmp_path / "s"
    command("evaluate", path, *BINARY, "--save", state)
    assert mistake("show", state, "--json", state, "--force").startswith("--json would overwrite")
    assert mistake("merge", state, "-o", state).startswith("-o would overwrite")
    (tmp_path / "q").write_text("1 0 a 1\n")
    (tmp_path / "r").write_text("1 Q0 a 1 0.5 t\n")
    trec = ("--task", "ranking", "--qrels", tmp_path / "q", "--run", tmp_path / "r")
    for name in "qr":
        line = mistake("evaluate", *trec, "--save", tmp_path / name)
        assert line.startswith(f"--save would overwrite {tmp_path / name}")


@pytest.mark.long
def test_standard_output_is_an_output_too(path):
    before = path.read_bytes()
    run = [sys.executable, "-m", "streammetrics", "evaluate", path, *BINARY]
    with open(path, "ab") as file:
        done = subprocess.run(run, stdout=file, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: standard output would overwrite {path}")
    assert path.read_bytes() == before


@pytest.mark.long
def test_standard_output_by_its_other_name(path, tmp_path):
    run = [sys.executable, "-m", "streammetrics", "evaluate", path, *BINARY]
    with open(tmp_path / "out", "wb") as file:
        subprocess.run([*run, "--json", "/dev/stdout"], stdout=file, check=True)
    assert json.loads((tmp_path / "out").read_bytes())["n_rows"] == 3000


def test_two_outputs_are_two_files(mistake, tmp_path, path):
    out = tmp_path / "out"
    (tmp_path / "link").symlink_to(out)
    for first, second in ((out, out), (out, tmp_path / "." / "out"), (out, tmp_path / "link")):
        line = mistake("evaluate", path, *BINARY, "--json", first, "--save", second)
        assert line == f"--json and --save both write to {second}: name two files"
    line = mistake("evaluate", path, *BINARY, "--json", "-", "--csv", "-")
    assert line == "--json and --csv both write to -: name two files"
    assert not out.exists()


@pytest.mark.parametrize("option", OPTIONS)
def test_an_output_without_a_name_is_not_forgotten(mistake, path, option):
    assert mistake("evaluate", path, *BINARY, option, "") == f"{option} '' names no file"


@pytest.mark.parametrize("option", OPTIONS)
def test_an_existing_file_is_overwritten_with_force_only(mistake, command, tmp_path, path, option):
    out = tmp_path / "out"
    args = ("evaluate", path, *BINARY, option, out)
    out.touch()  # as mktemp leaves it
    assert command(*args).code == 0
    first = out.read_bytes()
    for content in (first, b"a letter", b"{}", path.read_bytes()):
        out.write_bytes(content)
        line = mistake(*args)
        assert line == f"{out} exists: add --force to overwrite it, or name another file"
        assert out.read_bytes() == content
    assert command(*args, "--force").code == 0
    assert out.read_bytes() == first


def test_states_and_ledgers_are_overwritten_with_force_only(command, mistake, tmp_path, path):
    state, ledger = tmp_path / "a.state", tmp_path / "w.ledger"
    assert command("evaluate", path, *BINARY, "--save", state).code == 0
    assert command("merge", "--ledger", state, "-o", ledger).code == 0
    other = ("evaluate", path, *BINARY, "--param", "threshold=0.2", "--save")
    for args in (
        (*other, state),
        (*other, ledger),
        ("evaluate", path, *BINARY, "--save", ledger),
        ("merge", state, "-o", ledger),
    ):
        before = state.read_bytes(), ledger.read_bytes()
        assert "exists: add --force to overwrite it" in mistake(*args)
        assert (state.read_bytes(), ledger.read_bytes()) == before
    assert command("merge", state, "-o", tmp_path / "b.state").code == 0
    assert command("merge", state, "-o", tmp_path / "b.state", "--force").code == 0


@pytest.mark.parametrize("out", ["-", "/dev/stdout"])
def test_a_state_is_not_printed(mistake, tmp_path, path, out, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("streammetrics.cli.outputs._is_open_as", lambda *_: True)
    line = mistake("evaluate", path, *BINARY, "--save", out)
    assert line == f"--save {out}: this is written to a file only: name one"
    line = mistake("merge", "a", "-o", out)
    assert line == f"-o {out}: this is written to a file only: name one"
    assert not (tmp_path / "-").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="names there are any bytes")
def test_a_name_that_is_not_utf8_is_escaped_where_it_is_written(command, tmp_path, path):
    name = os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.csv")
    shutil.copy(path, name)
    for option in OPTIONS[:3]:
        assert command("evaluate", name, *BINARY, option, tmp_path / "out").code == 0
        (tmp_path / "out").unlink()
    assert command("evaluate", name, *BINARY, "--json", tmp_path / "out").code == 0
    assert json.loads((tmp_path / "out").read_text("utf-8"))["files"] == [name]
