"""Files that change while they are read: one error that names them, never two halves."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading

import numpy as np
import pyarrow.parquet as pq
import pytest
from prediction_files import store
from reading import fed, rows, suite

import streammetrics as sm
from streammetrics.readers import paths
from streammetrics.readers.formats import pieces_of
from streammetrics.readers.paths import ReadError, find

TABLE = rows(3000)
NAMES = ["t.parquet", "t.arrow", "t.arrows", "t.csv", "t.csv.gz", "t.jsonl"]


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def empty(path):
    os.truncate(path, 0)


def grow(path):
    with open(path, "ab") as file:
        file.write(b"1,0.5\n")


def write_over(path):
    """Change bytes in place, as a download that goes on does."""
    os.utime(path, ns=(1, 1))


def replace(path):
    other = path.with_name("other-" + path.name)
    os.replace(store(rows(3000, 1), other), path)


def remove(path):
    path.unlink()


CHANGES = [cut, empty, grow, write_over, replace, remove]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_while_it_is_read(tmp_path, name, change):
    path = store(TABLE, tmp_path / name)
    calls = []

    def progress(n):  # after the first batch
        if not calls:
            change(path)
        calls.append(n)

    template = suite()
    with pytest.raises(ReadError, match=rf"{name} (changed while it was read: |was there, and is)"):
        sm.evaluate(template, path, batch_rows=500, progress=progress)
    assert calls
    assert template == suite()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_before_it_is_opened_again(tmp_path, name, change):
    path = store(TABLE, tmp_path / name)
    (piece, *_) = pieces_of(find([str(path)]).sources, suite()._asked, suite()._kinds).pieces
    change(path)
    with pytest.raises(ReadError, match=rf"{name} (changed while it was read: |was there, and is)"):
        list(piece.tables(500))


def test_a_change_names_what_is_other(tmp_path):
    for change, what in (
        (cut, r"it had [\d,]+ bytes and has [\d,]+; nothing of it is kept"),
        (write_over, "it was written to"),
        (replace, "another file is in its place"),
        (remove, "was there, and is gone: No such file"),
    ):
        path = store(TABLE, tmp_path / "t.parquet")
        source = find([str(path)]).sources[0]
        source.check()
        change(path)
        with pytest.raises(ReadError, match=what):
            source.check()


CUT = """
import os, sys
import streammetrics as sm

columns = {"y_true": "label", "y_score": "score"}
suite = sm.MetricSet({"auc": sm.ROCAUC()}, columns=columns)
for path in sys.argv[1:]:
    try:
        sm.evaluate(suite, path, batch_rows=1000, progress=lambda n: os.truncate(path, 4096))
    except sm.StreamMetricsError as error:
        print(error)
"""


def test_a_cut_file_does_not_kill_the_process(tmp_path):
    table = rows(400_000)  # more pages than are read ahead
    paths = [store(table, tmp_path / name, rows=40_000) for name in ("t.parquet", "t.arrow")]
    run = [sys.executable, "-c", CUT, *map(str, paths)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for line, path in zip(done.stdout.splitlines(), paths, strict=True):
        assert line.startswith(f"{path} changed while it was read: it had ")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", NAMES)
def test_attacks_at_any_time(tmp_path, monkeypatch, name, seed):
    """What is returned is of one content, whenever the file changes after it was found."""
    path = tmp_path / name
    chance = random.Random(f"{name} {seed}")
    old, new = rows(60_000, 1), rows(60_000, 2)
    whole = {fed(old).to_bytes(), fed(new).to_bytes()}
    first = store(old, tmp_path / f"old-{name}", rows=5000)
    second = store(new, tmp_path / f"new-{name}", rows=5000)

    def swap(path):
        os.replace(shutil.copy(second, f"{path}.next"), path)

    def overwrite(path):
        with open(path, "r+b") as file:
            file.write(second.read_bytes())

    for workers in (1, 1, 1, 2):
        shutil.copy(first, path)
        change = chance.choice([cut, empty, grow, overwrite, swap])
        attack = threading.Timer(chance.random() * 0.1, change, [path])

        def found_then_attacked(*arguments, attack=attack, **named):
            found = find(*arguments, **named)
            attack.start()
            return found

        monkeypatch.setattr(paths, "find", found_then_attacked)
        try:
            state = sm.evaluate(suite(), path, batch_rows=2000, workers=workers)
        except ReadError as error:
            assert "changed while it was read" in str(error)  # noqa: PT017 - it may also end well
        else:
            assert state.to_bytes() in whole
        attack.join()


def test_flipped_bits_of_pages_with_checksums_are_told(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path, write_page_checksum=True, compression="none", use_dictionary=False)
    assert sm.evaluate(suite(), path) == fed(TABLE)
    data, rng = bytearray(path.read_bytes()), np.random.default_rng(0)
    # Of what lies between pages, which depends on Arrow's version, there are no checksums.
    group = pq.read_metadata(path).row_group(0)
    ends = [
        group.column(at).data_page_offset + group.column(at).total_compressed_size
        for at in range(group.num_columns)
    ]
    for place in [end - back for end in ends for back in rng.integers(1, 20_000, 10).tolist()]:
        data[place] ^= 1 << 3
        path.write_bytes(data)
        with pytest.raises(ReadError, match=r"t.parquet: cannot be read as Parquet: "):
            sm.evaluate(suite(), path)
        data[place] ^= 1 << 3
