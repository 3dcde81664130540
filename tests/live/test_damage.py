"""A store that was damaged or changed by hand gives the same windows, or is refused by its name."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing

import pytest
from live.events import START

import streammetrics as sm
from streammetrics.live import maintenance
from streammetrics.live import store as store_module

TABLES = ("empty", "base", "parts", "documents", "journal", "sqlite_sequence")
REFUSED = r"the store .*live\.db is damaged: .*(restore an earlier backup|name a new file)"


def state(store=None):
    return sm.Live(sm.MetricSet({"auc": sm.ROCAUC()}), store=store, label_ttl="1h")


def send(live, number):
    live.predict(id=number, time=START + 60 * number, y_score=(number % 10) / 10)
    live.label(id=number, time=START + 60 * number + 1, y_true=number % 2)
    live.observe(time=START + 60 * number, y_true=number % 3 == 0, y_score=(number % 7) / 7)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a store with a base, parts in it that are kept, and later parts; and its state."""
    path = tmp_path_factory.mktemp("made") / "live.db"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store_module, "_LEAST", 1)
        live = state(path)
        for number in range(80):
            send(live, number)
            live.flush()
        patched.setattr(store_module, "_LEAST", 1 << 20)
        for number in range(80, 84):
            send(live, number)
            live.flush()
        copy = path.with_name("copy.db")
        maintenance.backup(path, copy)
        whole = live.to_bytes()
        live.close()
    with closing(sqlite3.connect(copy)) as db:
        db.execute("delete from workers")
        db.commit()
        for table in TABLES:
            assert db.execute(f"select count(*) from {table}").fetchone()[0], table
        through, kept = db.execute("select through, kept from base").fetchone()
        (last,) = db.execute("select max(seq) from journal").fetchone()
        assert 0 < kept < through < last
    return copy, whole


@pytest.fixture
def path(made, tmp_path):
    return shutil.copy(made[0], tmp_path / "live.db")


def read(path):
    with state(path) as live:
        return live.to_bytes()


def outcome(path):
    """Return the state of a store, or the message of the error."""
    try:
        return read(path), ""
    except sm.StreamMetricsError as error:
        return b"", str(error)


def copied(path):
    maintenance.backup(path, path.with_name("copy.db"))


def test_the_store_that_the_others_damage_is_whole(made, path):
    maintenance.backup(path, path.with_name("copy.db"))
    assert read(path) == read(path.with_name("copy.db")) == made[1]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("place", [0, 1, -1])
def test_a_deleted_row_is_noticed(path, table, place):
    with closing(sqlite3.connect(path)) as db:
        rows = [row for (row,) in db.execute(f"select rowid from {table} order by rowid")]
        if place >= len(rows):
            return
        db.execute(f"delete from {table} where rowid = ?", (rows[place],))
        db.commit()
    copy = path.with_name("copy.db")
    with pytest.raises(sm.StateFormatError, match=REFUSED):
        maintenance.backup(path, copy)
    assert not copy.exists()
    with pytest.raises(sm.StateFormatError, match=REFUSED):
        read(path)


@pytest.mark.parametrize("table", [table for table in TABLES if table != "documents"])
def test_a_table_without_rows_is_noticed(path, table):
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"delete from {table}")
        db.commit()
    for use in (read, copied, maintenance.check):
        with pytest.raises(sm.StateFormatError, match=REFUSED):
            use(path)


@pytest.mark.parametrize(
    "change",
    [
        "update base set through = through + 1",
        "update base set through = through - 1",
        "update base set kept = kept + 1",
        "update base set counters = '{}'",
        "update base set digest = ''",
        "update base set digest = x'ff'",
        "update base set counters = cast(x'ff' as text)",
        "update journal set seq = seq + 1000 where seq = (select max(seq) from journal)",
        "update journal set blob = cast(blob as text)",
        "update journal set worker = cast(x'ff' as text)",
        "update documents set name = upper(name)",
        "update sqlite_sequence set seq = seq + 1",
        "update sqlite_sequence set seq = 1 << 62",
        "insert into empty select * from empty",
        "insert into base select * from base",
        "insert into workers values ('w', 'x', 1.0, 0, 0)",
        "insert into workers values ('w', 1, 1.0, 'x', 0)",
        "pragma user_version = 0",
        "pragma user_version = -1",
    ],
)
def test_changed_rows_are_noticed(path, change):
    with closing(sqlite3.connect(path)) as db:
        db.execute(change)
        db.commit()
    for use in (read, copied, maintenance.check):
        with pytest.raises(sm.StateFormatError, match=REFUSED):
            use(path)


@pytest.mark.parametrize("flips", [20, pytest.param(2_000, marks=pytest.mark.long)])
def test_flipped_bytes_are_noticed_or_change_nothing(made, path, flips):
    whole, dice = path.read_bytes(), random.Random(0)
    for _ in range(flips):
        damaged = bytearray(whole)
        damaged[dice.randrange(len(whole))] ^= 1 << dice.randrange(8)
        path.write_bytes(damaged)
        found, told = outcome(path)
        assert found == made[1] or ("live.db" in told and "is locked" not in told)


def test_changed_bytes_of_folded_parts_are_noticed_by_whoever_reads_them(made, path):
    with closing(sqlite3.connect(path)) as db:
        folded = "from journal where seq <= (select through from base)"
        (blob,) = db.execute(f"select blob {folded} order by seq desc limit 1").fetchone()
        blob = blob[:-9] + bytes([blob[-9] ^ 1]) + blob[-8:]
        db.execute(f"update journal set blob = ? where seq = (select max(seq) {folded})", (blob,))
        db.commit()
    for use in (copied, maintenance.check):
        with pytest.raises(sm.StateFormatError, match=REFUSED):
            use(path)
    assert read(path) == made[1]


def test_parts_deleted_under_a_service_are_noticed(path):
    live, other = state(path), state(path)
    send(other, 84)
    other.flush()
    with closing(sqlite3.connect(path)) as db:
        db.execute("delete from journal where seq = (select max(seq) from journal)")
        db.commit()
    for use in (lambda: live.window("1h"), live.close, other.close):
        with pytest.raises(sm.StateFormatError, match=REFUSED):
            use()
    live.close()  # it was closed
