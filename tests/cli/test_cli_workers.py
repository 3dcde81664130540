"""Several processes: the same bytes, the same errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from prediction_files import store

import streammetrics as sm
from streammetrics.cli import columnar, evaluation
from streammetrics.cli.evaluation import evaluate
from streammetrics.core.errors import InvalidBatchError, StreamMetricsError

BINARY = ("--task", "binary", "--y-true", "label", "--y-score", "score")


@pytest.fixture
def folder(tmp_path, binary, monkeypatch):
    monkeypatch.setattr(columnar, "PIECE_ROWS", 500)
    path = tmp_path / "data"
    path.mkdir()
    for index, name in enumerate(["a.parquet", "b.arrow", "c.csv.gz"]):
        store(binary.slice(index * 1000, 1000), path / name, rows=200)
    return path


def test_the_result_is_the_same_to_the_last_bit(command, tmp_path, folder):
    for extra in ((), ("--max-bins", 64, "--weight", "weight")):
        states, outputs = set(), set()
        for workers in (1, 2, 3):
            args = (folder, *BINARY, *extra, "--workers", workers, "--save", tmp_path / "s")
            result = command("evaluate", *args, "--json", "-")
            assert (result.code, result.err) == (0, "")
            states.add((tmp_path / "s").read_bytes())
            outputs.add(result.out)
        assert len(states) == len(outputs) == 1
        assert json.loads(outputs.pop())["n_rows"] == 3000


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


class Rows:
    """A piece that needs no file."""

    once = False

    def __init__(self, *batches, die=False):
        self.rows, self.die = batches, die

    def __str__(self):
        return "memory"

    def first_row(self):
        return 100

    def tables(self, batch_rows, *, threads):
        if self.die and not threads:
            os._exit(9) if os.getppid() != self.die else time.sleep(0.5)
        for values in self.rows:
            yield len(values), {"y_true": values, "y_pred": [1] * len(values)}


def test_evaluation_does_not_need_the_command_line():
    suite = sm.MetricSet({"acc": sm.Accuracy(), "f1": sm.F1()})
    suite.update(y_true=[0], y_pred=[1])
    ticks = []
    pieces = [Rows([1, 0], [1]), Rows([1, 1, 1]), Rows([0])]
    evaluate(suite, pieces, batch_rows=10, workers=2, progress=ticks.append)
    assert suite["acc"].compute() == 5 / 8
    assert sum(ticks) == 7


def test_a_failure_leaves_the_set_as_it_was():
    suite = sm.MetricSet({"acc": sm.Accuracy()}).update(y_true=[0], y_pred=[1])
    before = suite.to_bytes()
    for workers in (1, 2):
        with pytest.raises(InvalidBatchError, match="memory: y_true .* row 104 of the file"):
            evaluate(suite, [Rows([1, 1, 1], [0, 0.5])] * 2, batch_rows=10, workers=workers)
        assert suite.to_bytes() == before


def test_a_worker_that_dies_is_told():
    suite = sm.MetricSet({"acc": sm.Accuracy()})
    pieces = [Rows([1], die=os.getppid())] * 8
    with pytest.raises(StreamMetricsError, match=r"worker process died \(exit code 9\)"):
        evaluate(suite, pieces, batch_rows=10, workers=2)


ENDLESS = """
import multiprocessing, sys, time
import streammetrics as sm
from streammetrics.cli.evaluation import evaluate

class Endless:
    once, rows = False, None
    def first_row(self):
        return 0
    def tables(self, batch_rows, *, threads):
        print("started", flush=True)
        while True:
            time.sleep(0.01)
            yield 1, {"y_true": [1], "y_pred": [1]}

if __name__ == "__main__":
    try:
        evaluate(sm.MetricSet({"acc": sm.Accuracy()}), [Endless()] * 4, batch_rows=1, workers=2)
    except KeyboardInterrupt:
        print(multiprocessing.active_children())
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_control_c_ends_all_workers_quietly(tmp_path):
    (tmp_path / "run.py").write_text(ENDLESS)
    process = started(tmp_path / "run.py")
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["started\n"] * 2
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=20) == ("[]\n", "")


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_control_c_ends_a_command(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    columns = ("--task", "regression", "--y-true", "a", "--y-pred", "b", "--metrics", "MAE")
    process = started("-m", "streammetrics.cli", "evaluate", tmp_path / "a.csv", *columns)
    with open(tmp_path / "a.csv", "w"):  # returns when the command waits for the file's first line
        time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=20) == ("", "interrupted\n")
    assert process.returncode == 130


def started(*arguments):
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_workers_have_no_threads_for_linear_algebra_unless_told(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with evaluation._one_thread():
        assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
        assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "OPENBLAS_NUM_THREADS" not in os.environ
    assert os.environ["OMP_NUM_THREADS"] == "3"


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
