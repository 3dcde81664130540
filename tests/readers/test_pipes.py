"""What can be read only once is read once, from its start."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import threading

import pyarrow as pa
import pytest
from prediction_files import store, text
from reading import fed, rows, suite
from thinning import some

import streammetrics as sm
from streammetrics.cli import main
from streammetrics.readers.paths import ReadError
from streammetrics.readers.trec import pieces

TABLE = rows(5000)  # more than a pipe holds at a time
FORMATS = ["parquet", "arrow", "arrows", "csv", "tsv", "jsonl"]


def bytes_of(tmp_path, form):
    return store(TABLE, tmp_path / f"whole.{form}").read_bytes()


def zstd(data):
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(data)
    return out.getvalue().to_pybytes()


@contextlib.contextmanager
def fifo(path, data, piece=1 << 16):
    """Write bytes to a FIFO, a piece at a time, while it is read."""
    os.mkfifo(path)

    def write():
        with contextlib.suppress(BrokenPipeError), open(path, "wb", buffering=0) as file:
            for start in range(0, len(data), piece):
                file.write(data[start : start + piece])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):  # where nobody has opened it, so that the writer ends
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        writer.join(20)
        assert not writer.is_alive()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("packed", [bytes, gzip.compress, zstd])
def test_a_fifo_is_read_whole(tmp_path, form, packed):
    fmt = "arrow" if form == "arrows" else form
    with fifo(tmp_path / "pipe", packed(bytes_of(tmp_path, form))) as path:
        assert sm.evaluate(suite(), path, format=fmt, workers=2) == fed(TABLE)


def test_a_pipe_that_comes_in_drops(tmp_path):
    table = TABLE.slice(0, 300)
    with fifo(tmp_path / "pipe.csv", gzip.compress(text(table)), piece=7) as path:
        assert sm.evaluate(suite(), path) == fed(table)


def test_several_pipes_beside_a_file(tmp_path):
    first, second = rows(4000, 1), rows(4000, 2)
    file = store(TABLE, tmp_path / "t.parquet")
    with fifo(tmp_path / "a.csv", text(first)) as a, fifo(tmp_path / "b.csv", text(second)) as b:
        assert sm.evaluate(suite(), [a, file, b]) == fed(first, second, TABLE)


SCRIPT = """
import sys, streammetrics as sm
columns = {"y_true": "label", "y_score": "score"}
suite = sm.MetricSet({"auc": sm.ROCAUC(), "f1": sm.F1(threshold=0.5)}, columns=columns)
for path in sys.argv[1:]:
    form = "parquet" if path == sys.argv[-1] else "csv"
    print(sm.evaluate(suite, path, format=form).to_bytes().hex())
"""


@pytest.mark.parametrize("stdin", some(["<(zcat t.csv.gz)", "t.csv.gz"], every=2))
def test_the_shell_hands_over_pipes(tmp_path, stdin):
    store(TABLE, tmp_path / "t.csv.gz")
    store(TABLE, tmp_path / "t.parquet")
    (tmp_path / "script.py").write_text(SCRIPT)
    command = (
        f"{sys.executable} script.py <(zcat t.csv.gz) <(cat t.csv.gz) /dev/stdin /dev/fd/9 "
        f"<(cat t.parquet) < {stdin} 9< t.csv.gz"
    )
    run = ["bash", "-c", command]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [fed(TABLE).to_bytes().hex()] * 5


def test_a_compressed_pipe_that_ends_early(tmp_path):
    data = gzip.compress(text(TABLE))
    with (
        fifo(tmp_path / "a.csv.gz", data[: len(data) // 2]) as path,
        pytest.raises(ReadError, match=r"a.csv.gz: cannot be read as CSV: Truncated"),
    ):
        sm.evaluate(suite(), path)


def test_parquet_in_a_pipe_and_no_room_to_keep_it(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with (
        fifo(tmp_path / "pipe.parquet", bytes_of(tmp_path, "parquet")) as path,
        pytest.raises(ReadError, match=r"No space left on device; set TMPDIR to a folder"),
    ):
        sm.evaluate(suite(), path)


def test_nothing_is_left_of_what_was_kept(tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(kept))
    with fifo(tmp_path / "pipe.parquet", bytes_of(tmp_path, "parquet")) as path:
        assert sm.evaluate(suite(), path) == fed(TABLE)
    assert list(kept.iterdir()) == []


def test_trec_files_in_pipes(tmp_path):
    judged, run = tmp_path / "q", tmp_path / "r"
    judgments = "".join(f"{q} 0 d{d} {d % 2}\n" for q in range(50) for d in range(100))
    results = "".join(f"{q} Q0 d{d} 1 {d % 7} t\n" for q in range(50) for d in range(100))
    judged.write_text(judgments)
    run.write_text(results)
    metrics = sm.MetricSet({"ndcg": sm.NDCG(k=5)})
    expected = sm.evaluate(metrics, pieces(str(judged), str(run)))
    with (
        fifo(tmp_path / "a", zstd(judgments.encode())) as a,
        fifo(tmp_path / "b", gzip.compress(results.encode())) as b,
    ):
        assert sm.evaluate(metrics, pieces(str(a), str(b)), workers=2) == expected
    for path in (judged, run):
        found = pieces(str(judged), str(run))
        path.write_text(path.read_text() + "\n")
        with pytest.raises(ReadError, match=rf"{path.name} changed while it was read: it had"):
            sm.evaluate(metrics, found)


def test_a_pipe_serves_one_model(tmp_path, capsys):
    run = tmp_path / "r"
    run.write_text("1 Q0 d 1 0.5 t\n")
    (tmp_path / "s").write_text("1 Q0 d 1 0.5 t\n")
    with fifo(tmp_path / "q", b"1 0 d 1\n") as path:
        trec = ["--qrels", path, "--run", run, "--run", tmp_path / "s"]
        assert main(list(map(str, ["evaluate", "--task", "ranking", *trec]))) == 2
    assert "q can be read once, and there are 2 models: save it to" in capsys.readouterr().err


def test_one_pipe_by_two_names_is_a_mistake(tmp_path):
    with fifo(tmp_path / "a.csv", text(TABLE)) as path:
        os.symlink(path, tmp_path / "b.csv")
        with pytest.raises(ReadError, match=r"b.csv, which is .*a.csv, is named twice"):
            sm.evaluate(suite(), [path, tmp_path / "b.csv"])
