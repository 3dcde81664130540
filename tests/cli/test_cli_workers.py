"""Several processes: the same bytes, the same errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prediction_files import store
from scripts import started

from streammetrics.readers import formats

BINARY = ("--task", "binary", "--y-true", "label", "--y-score", "score")


@pytest.fixture
def folder(tmp_path, binary, monkeypatch):
    monkeypatch.setattr(formats, "PIECE_ROWS", 500)
    path = tmp_path / "data"
    path.mkdir()
    for index, name in enumerate(["a.parquet", "b.arrow", "c.csv.gz"]):
        store(binary.slice(index * 1000, 1000), path / name, rows=200)
    return path


@pytest.mark.long
def test_the_result_is_the_same_to_the_last_bit(command, tmp_path, folder):
    sliced = ("--by", "text", "--metrics", "F1,ROCAUC,LogLoss,BrierScore")
    for extra in ((), ("--param", "max_bins=64", "--weight", "weight"), sliced):
        states, outputs = set(), set()
        for workers in (1, 2, 3):
            args = (folder, *BINARY, *extra, "--workers", workers, "--save", tmp_path / "s")
            result = command("evaluate", *args, "--force", "--json", "-")
            assert (result.code, result.err) == (0, "")
            states.add((tmp_path / "s").read_bytes())
            outputs.add(result.out)
        assert len(states) == len(outputs) == 1
        assert '"n_rows": 3000' in outputs.pop()


@pytest.mark.long
def test_the_first_piece_that_fails_is_told(mistake, folder, binary):
    score = binary["score"].to_numpy().copy()
    score[[1234, 2750]] = np.nan
    table = binary.set_column(1, "score", pa.array(score))
    store(table.slice(0, 2000), folder / "b.parquet", rows=250)
    store(table.slice(2000), folder / "d.csv")
    told = {mistake("evaluate", folder, *BINARY, "--workers", workers) for workers in (1, 2, 3)}
    assert len(told) == 1
    line = told.pop()
    assert line.startswith(f"{folder / 'b.parquet'}: ")
    assert "in 1 row, first in row 1234 of the file" in line


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_of_another_kind_of_labels_is_told(command, tmp_path, workers):
    for name, labels in (("a", [0, 1]), ("b", ["no", "yes"])):
        pq.write_table(pa.table({"true": labels, "pred": labels}), tmp_path / f"{name}.parquet")
    columns = ("--y-true", "true", "--y-pred", "pred", "--workers", workers)
    found = command("evaluate", tmp_path, "--task", "multiclass", *columns)
    assert found.code == 2
    assert "b.parquet: labels: 'strings' here, 'integers' in rows seen before" in found.err


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_control_c_ends_a_command(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    columns = ("--task", "regression", "--y-true", "a", "--y-pred", "b", "--metrics", "MAE")
    process = started("-m", "streammetrics", "evaluate", tmp_path / "a.csv", *columns)
    with open(tmp_path / "a.csv", "w"):  # returns when the command waits for the file's first line
        time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        told = process.communicate(timeout=20)
        assert told == ("", "interrupted\n")
    assert process.returncode == 130


@pytest.mark.long
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="children as Linux has them")
@pytest.mark.parametrize("tell", [os.kill, os.killpg])
def test_sigterm_ends_a_command_and_its_workers(tmp_path, folder, tell):
    words = ("--by", "text", "--workers", "2", "--json", tmp_path / "o.json")
    process = started("-m", "streammetrics", "evaluate", folder, *BINARY, *words)
    children = f"/proc/{process.pid}/task/{process.pid}/children"
    mine = []
    while len(mine) < 3:  # and one that looks after what they share
        assert process.poll() is None, process.communicate()
        with open(children) as file:
            mine = file.read().split()
        time.sleep(0.01)
    begun = time.monotonic()
    tell(process.pid, signal.SIGTERM)
    assert process.communicate(timeout=20) == ("", "terminated\n")
    assert process.returncode == 143
    assert time.monotonic() - begun < 10  # far from what the rest would take
    while any(os.path.exists(f"/proc/{each}") for each in mine):
        assert time.monotonic() - begun < 20
        time.sleep(0.01)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.long
def test_pandas_is_not_imported_to_read_numbers(tmp_path, binary):
    path = store(binary.select(["label", "score"]), tmp_path / "t.parquet")
    arguments = ["evaluate", str(path), *BINARY, "--json", str(tmp_path / "j")]
    script = (
        "import sys; from streammetrics.cli import main; "
        f"assert main({arguments}) == 0; assert 'pandas' not in sys.modules"
    )
    run = [sys.executable, "-c", script]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
