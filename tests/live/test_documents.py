"""Panes of a store: read when a window needs them, and written when they have changed."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing as closing_of

import numpy as np
import pytest
from live.events import START

import streammetrics as sm
from streammetrics.live import journal as journal_module
from streammetrics.live.panes import Document

N = 200
COLUMNS = {
    "time": START + 60 * np.arange(N),
    "y_true": np.arange(N) % 3 % 2,
    "y_score": np.arange(N) % 101 / 100,
    "country": np.array(["DE", "FR", "IT"])[np.arange(N) % 3],
}


def live(**parameters):
    suite = sm.MetricSet({"accuracy": sm.Accuracy(threshold=0.5), "auc": sm.ROCAUC(max_bins=64)})
    tiers = (("1min", "1d"), ("1h", "15d"))
    return sm.Live(suite, tiers=tiers, by=[["country"]], **parameters)


def some(start, stop):
    return {name: column[start:stop] for name, column in COLUMNS.items()}


def documents(path):
    with closing_of(sqlite3.connect(path)) as db:
        return dict(db.execute("select name, through from documents"))


def unread(state):
    """Return how many documents of metrics have not been read."""
    return sum(len(row._unread) for row in state._shared.current.panes.rows)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "live.db"


@pytest.fixture
def stored(path):
    with live(store=path) as state:
        state.observe(**COLUMNS)
    return path


def test_a_window_reads_the_panes_that_it_needs_and_no_others(stored):
    whole = live().observe(**COLUMNS)
    with live(store=stored) as state:
        every = unread(state)
        assert every > N // 16
        assert state.nbytes > 0
        assert unread(state) == every
        assert state.window("5min").to_bytes() == whole.window("5min").to_bytes()
        assert every - 2 <= unread(state) < every
        assert state.window("1h", by="country").to_bytes() == (
            whole.window("1h", by="country").to_bytes()
        )
        assert unread(state) > 0
        assert state.window("1d").to_bytes() == whole.window("1d").to_bytes()
        assert unread(state) == 0
        assert state.to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("reads", [(), ("5min",), ("1h", "1d")])
def test_a_fold_writes_the_panes_that_have_changed(path, reads):
    with live(store=path) as state:
        state.observe(**some(0, 190))
    before = documents(path)
    with live(store=path) as state:
        for length in reads:
            state.window(length)
        state.observe(**some(190, N))
    after = documents(path)
    kept = before.keys() & after.keys()
    assert len(before) - 2 <= len(kept) < len(before)
    assert all(after[name] == before[name] for name in kept)
    assert all(after[name] > max(before.values()) for name in after.keys() - kept)
    with live(store=path) as state:
        assert state.to_bytes() == live().observe(**COLUMNS).to_bytes()


@pytest.mark.parametrize("minutes", [1, 1000, 40_000])
def test_panes_that_expire_unread_are_folded_as_others(stored, minutes):
    whole = live().observe(**COLUMNS)
    for step in range(2):  # then from what was written
        later = {name: column[-1:] for name, column in COLUMNS.items()}
        later["time"] = later["time"] + 60 * (minutes + step)
        whole.observe(**later)
        with live(store=stored) as state:
            state.observe(**later)
            assert state.to_bytes() == whole.to_bytes()
            assert state.copy().to_bytes() == whole.to_bytes()


def test_a_document_that_no_panes_give_is_refused():
    state = live().observe(**COLUMNS)
    row = state._shared.current.panes.rows[0]
    number = row.states.keys()[0]
    found = Document.of(row.plan, {number: row.settled(number)})
    (read,) = found.states().values()
    assert Document.of(row.plan, {number: read}).blob == found.blob
    with pytest.raises(sm.StateFormatError, match="checksum"):
        Document(row.plan, found.blob[:-1] + b"\7", found.name, [number]).states()
    with pytest.raises(sm.StateFormatError, match="cannot have shape"):
        Document(row.plan, found.blob, found.name, [number, number + 1]).states()


def test_a_store_that_lacks_panes_is_damaged(stored):
    with closing_of(sqlite3.connect(stored)) as db:
        db.execute("delete from documents where rowid = 1")
        db.commit()
    with pytest.raises(
        sm.StateFormatError, match=r"live.db is damaged: rows of its tables base or doc"
    ):
        live(store=stored)


def test_events_are_read_and_written_while_a_state_is_folded(path, monkeypatch):
    made, counts = journal_module.base_of, []

    def slow(*given):
        thread = threading.Thread(target=use)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
        return made(*given)

    def use():
        state.observe(**some(190, N))
        counts.append(state.window("1d").n_rows)

    monkeypatch.setattr(journal_module, "base_of", slow)
    with live(store=path, durable=True) as state:
        state.observe(**some(0, 190))
        state._ingest.journal._fold(lambda: not counts)
        assert counts == [N]
        monkeypatch.undo()
    with live(store=path) as state:
        assert state.to_bytes() == live().observe(**COLUMNS).to_bytes()


def test_closing_waits_for_a_fold_of_another_thread(path, monkeypatch):
    made, begun, go_on = journal_module.base_of, threading.Event(), threading.Event()

    def slow(*given):
        begun.set()
        assert go_on.wait(60)
        return made(*given)

    monkeypatch.setattr(journal_module, "base_of", slow)
    state = live(store=path).observe(**COLUMNS).flush()
    folding = threading.Thread(target=state._ingest.journal._fold, args=(lambda: True,))
    folding.start()
    assert begun.wait(60)
    closing = threading.Thread(target=state.close)
    closing.start()
    closing.join(0.5)
    assert closing.is_alive()
    go_on.set()
    for thread in (folding, closing):
        thread.join(60)
    with closing_of(sqlite3.connect(path)) as db:
        query = "select through = (select max(seq) from journal) from base"
        assert db.execute(query).fetchone() == (1,)
