"""Stores as files: backups while the service runs, restoring, compaction, and exports."""

from __future__ import annotations

import csv
import os
import shutil
import sqlite3
import threading
import time
from datetime import datetime

import pyarrow.parquet as pq
import pytest
from live.events import START, live, rows

from streammetrics.core.errors import StateFormatError, StreamMetricsError
from streammetrics.live import maintenance

CONFIG = """
[metrics]
accuracy = "Accuracy(threshold=0.5)"
[live]
store = "live.db"
[server]
clock = "events"
"""


@pytest.fixture
def store(tmp_path):
    return tmp_path / "live.db"


def filled(store, n=500):
    with live(store=store) as state:
        return state.observe(**rows(n)).to_bytes()


def test_a_backup_is_the_store_at_one_moment_while_it_is_used(store, tmp_path, run):
    copy = tmp_path / "copy.db"
    with live(store=store) as state:
        state.observe(**rows(100)).flush()
        written, stop = state.to_bytes(), threading.Event()

        def more():
            while not stop.wait(0.001):
                state.observe(time=START + 1700, y_true=1, y_score=0.5).flush()

        writing = threading.Thread(target=more)
        writing.start()
        code, out, _ = run("backup", store, copy)
        stop.set()
        writing.join()
    assert (code, out) == (0, f"wrote {copy}, {copy.stat().st_size:,} bytes\n")
    assert not os.path.exists(f"{copy}-wal")
    with live(store=copy) as found:
        expected = live().observe(**rows(100))
        n = found.n_rows - expected.n_rows
        assert n >= 0
        for _ in range(n):
            expected.observe(time=START + 1700, y_true=1, y_score=0.5)
        assert found.to_bytes() == expected.to_bytes()
    assert live().observe(**rows(100)).to_bytes() == written
    assert run("backup", store, copy)[0] == 2
    assert run("backup", store, copy, "--force")[0] == 0
    assert run("backup", store, store, "--force")[0] == 2


def test_a_backup_is_restored_where_no_service_runs(store, tmp_path, run):
    blob, copy = filled(store), tmp_path / "copy.db"
    maintenance.backup(store, copy)
    with live(store=store) as state:
        state.observe(**rows(50, seed=1)).flush()
        code, _, err = run("restore", copy, store, "--force")
        assert code == 2
        assert "a service used" in err
        assert "stop it" in err
    assert run("restore", copy, store)[0] == 2  # it exists
    assert run("restore", copy, store, "--force")[:2] == (0, f"wrote {store}\n")
    assert run("compact", store)[0] == 0  # the service of the original has never used the copy
    new = tmp_path / "new.db"
    assert run("restore", copy, new)[0] == 0
    for path in (store, new):
        with live(store=path) as found:
            assert found.to_bytes() == blob


def test_a_copy_keeps_what_it_replaces(store, tmp_path, run):
    """A device became a file, a link a copy, and a private file readable by all."""
    filled(store)
    pipe, private, link = (tmp_path / name for name in ("pipe", "private.db", "link.db"))
    os.mkfifo(pipe)
    code, _, err = run("backup", store, pipe, "--force")
    assert (code, err) == (2, f"error: {pipe} is no file, and a store is copied to a file alone\n")
    assert pipe.is_fifo()
    private.touch(0o600)
    link.symlink_to(private)
    assert run("backup", store, link, "--force")[0] == 0
    assert (link.is_symlink(), private.stat().st_mode & 0o777) == (True, 0o600)
    with live(store=private) as copy, live(store=store) as found:
        assert copy.to_bytes() == found.to_bytes()
    assert sorted(path.name for path in tmp_path.iterdir() if "tmp" in path.name) == []


@pytest.mark.parametrize("gone", [False, True])
def test_a_store_that_lost_all_but_its_log_is_refused_and_can_be_restored(
    store, tmp_path, run, gone
):
    """It was taken as new, and its log was deleted."""
    blob, copy = filled(store), tmp_path / "copy.db"
    maintenance.backup(store, copy)
    log = store.with_name(f"{store.name}-wal")
    log.write_bytes(b"frames")
    if gone:
        store.unlink()
    else:
        store.write_bytes(b"")
    with pytest.raises(StateFormatError, match="is empty or gone, and its log .*-wal is not"):
        live(store=store)
    assert log.read_bytes() == b"frames"
    assert run("restore", copy, store, "--force")[0] == 0
    with live(store=store) as found:
        assert found.to_bytes() == blob


def test_a_service_that_was_killed_a_minute_ago_is_no_hindrance(store, tmp_path):
    blob, copy = filled(store), tmp_path / "copy.db"
    with sqlite3.connect(store) as db:
        db.execute("insert into workers values ('w', 0, unixepoch() - 61, 0, 0)")
    db.close()
    maintenance.backup(store, copy)
    maintenance.restore(copy, store)
    maintenance.compact(store)
    with live(store=store) as found:
        assert found.to_bytes() == blob


def test_compaction_frees_what_is_unused(store, run):
    blob = filled(store)
    with sqlite3.connect(store) as db:
        db.execute("create table junk (blob)")
        db.execute("insert into junk values (zeroblob(5000000))")
        db.execute("drop table junk")
    db.close()
    code, out, _ = run("compact", store)
    assert (code, store.stat().st_size < 1_000_000) == (0, True)
    assert f"has {store.stat().st_size:,} bytes, 5," in out
    with live(store=store) as found:
        assert found.to_bytes() == blob
        with pytest.raises(StreamMetricsError, match="stop it"):
            maintenance.compact(store)


def test_what_is_no_store_is_named(store, tmp_path, run):
    filled(store)
    text, other = tmp_path / "text", tmp_path / "other.db"
    text.write_text("no database " * 100)
    with sqlite3.connect(other) as db:
        db.execute("create table a (b)")
    db.close()
    for path, why in (
        (text, "is not a streammetrics store"),
        (other, "is not a streammetrics store"),
        (tmp_path, "is not a file"),
    ):
        assert run("backup", path, tmp_path / "copy.db")[0] == 2
        with pytest.raises(StreamMetricsError, match=r"not a (streammetrics store|file)") as error:
            maintenance.restore(path, store)
        assert str(path) in str(error.value), why
    assert sorted(os.listdir(tmp_path)) == ["live.db", "other.db", "text"]
    gone = tmp_path / "no" / "copy.db"
    with pytest.raises(StreamMetricsError, match="copy.db"):
        maintenance.backup(store, gone)


def test_a_store_of_a_newer_format_says_what_to_do(store):
    filled(store)
    with sqlite3.connect(store) as db:
        db.execute("pragma user_version=7")
    db.close()
    for use in (lambda: live(store=store), lambda: maintenance.compact(store)):
        with pytest.raises(StateFormatError, match="format 7.*install the version that wrote it"):
            use()


def test_windows_are_exported(tmp_path, run):
    config = tmp_path / "live.toml"
    config.write_text(CONFIG)
    assert run("export", config, tmp_path / "a.csv")[0] == 2  # there is no store
    code, out, _ = run("export", config, tmp_path / "a.txt")
    assert code == 2
    from streammetrics.live.service.config import settings

    with settings(config).live() as state:
        state.observe(**rows(200))
    code, out, _ = run("export", config, "-")
    assert code == 0
    assert out.startswith("time,n_rows,coverage,start,accuracy,accuracy_low,accuracy_high\n")
    text, parquet = tmp_path / "a.csv", tmp_path / "a.parquet"
    assert run("export", config, text)[0] == 0
    assert text.read_text() == out
    assert run("export", config, parquet, "--window", "1min", "--every", "1min")[0] == 0
    table = pq.read_table(parquet)
    assert table.num_rows >= 29
    assert sum(table["n_rows"].to_pylist()) == 200
    code, _, err = run("export", config, text, "--force", "--window", "7s")
    assert (code, "7s" in err) == (2, True)


@pytest.mark.parametrize("crashed", [False, True])
def test_a_store_that_may_not_be_written_is_read(tmp_path, run, monkeypatch, crashed):
    folder = tmp_path / "shown"
    folder.mkdir()
    config, store = folder / "live.toml", folder / "live.db"
    config.write_text(CONFIG)
    from streammetrics.live.service.config import settings

    (tmp_path / "live.toml").write_text(CONFIG)
    with settings(tmp_path / "live.toml").live() as state:
        state.observe(**rows(200)).flush()
        if crashed:
            for end in ("", "-wal", "-shm"):
                shutil.copy(tmp_path / f"live.db{end}", f"{store}{end}")
    if not crashed:
        shutil.copy(tmp_path / "live.db", store)
    expected = run("export", tmp_path / "live.toml", "-")

    def contents():
        return {each: each.read_bytes() for each in folder.iterdir() if each.suffix != ".db-shm"}

    before = contents()
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).startswith(str(folder)))
    assert run("export", config, "-") == expected
    assert expected[0] == 0
    assert run("status", config)[0] == 0
    assert run("backup", store, tmp_path / "copy.db")[0] == 0
    assert contents() == before
    code, _, err = run("compact", store)
    why = "a service used" if crashed else "this user may not write it: copy it"
    assert (code, why in err) == (2, True)


def test_the_export_of_an_idle_store_ends_with_its_newest_event(tmp_path, run):
    config = tmp_path / "live.toml"
    config.write_text(CONFIG.replace('"events"', '"wall"'))
    from streammetrics.live.service.config import settings

    start = 60 * (int(time.time() - 7200) // 60)
    with settings(config).live() as state:
        state.observe(**{**rows(3), "time": [start, start + 60, start + 150]})
    code, out, _ = run("export", config, "-", "--window", "1min", "--every", "1min")
    table = list(csv.DictReader(out.splitlines()))
    assert code == 0
    assert [row["n_rows"] for row in table] == ["1", "1", "1"]
    for place, row in enumerate(table):
        begin = datetime.fromisoformat(row["start"]).timestamp()
        assert begin == start + 60 * place
