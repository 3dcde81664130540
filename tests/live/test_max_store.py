"""`max_store`: a store that would be larger keeps less history; all workers keep the same."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest
from live.events import START, rows
from live.test_forged import forged, parts

import streammetrics as sm
from streammetrics.live import journal as journal_module
from streammetrics.live.store import StoreWarning

TIERS = (("1min", "3h"), ("1h", "10d"))
MOST = 16 << 20
HOUR = START // 3600 * 3600


def live(**parameters):
    suite = sm.MetricSet({"accuracy": sm.Accuracy(threshold=0.5), "auc": sm.ROCAUC()})
    return sm.Live(suite, tiers=TIERS, label_ttl="5min", label_lateness="5min", **parameters)


def day(n, seed=0):
    return rows(n, seed, span=86_400)


def some(columns, places):
    return {name: column[places] for name, column in columns.items()}


def evict(state, share):
    """Let panes expire as a store that is too large does."""
    state.flush()
    pipeline = state._shared.current
    pipeline.evict(pipeline.smaller(share))
    return state


@pytest.mark.parametrize("share", [0.95, 0.8, 0.4, 0.0])
def test_the_state_is_a_function_of_the_events_and_the_floors(share):
    columns, chance = day(6000), np.random.default_rng(1)
    whole = evict(live().observe(**columns), share)
    assert any(whole._shared.current.floors)
    assert sm.from_bytes(whole.to_bytes()).to_bytes() == whole.to_bytes()
    for twin in (whole.copy(), sm.from_bytes(whole.to_bytes())):
        assert twin.reset().to_bytes() == live().to_bytes()
    assert len(whole.to_bytes()) < len(live().observe(**columns).to_bytes())
    for _ in range(4):
        shards = chance.integers(0, 3, 6000)
        states = [live().observe(**some(columns, shards == k)) for k in range(3)]
        states[chance.integers(3)]._shared.current.evict(whole._shared.current.floors)
        first, *rest = (states[k] for k in chance.permutation(3))
        assert first.merge(*rest).to_bytes() == whole.to_bytes()
    late = live().observe(**some(columns, slice(1)))  # before all other rows
    late._shared.current.evict(whole._shared.current.floors)
    late.observe(**columns)
    late.observe(**some(columns, slice(1)))
    twice = whole.copy().observe(**some(columns, slice(1))).observe(**some(columns, slice(1)))
    assert late.to_bytes() == twice.to_bytes()


def test_windows_that_are_left_are_those_of_before_and_others_come_from_coarser_panes():
    columns = day(6000)
    whole, less = live().observe(**columns), live().observe(**columns)
    pipeline = less._shared.current
    minutes = pipeline.panes.rows[0].states.keys()
    pipeline.evict((minutes[-30], 0))  # half an hour of minutes is left
    assert less.window("30min").to_bytes() == whole.window("30min").to_bytes()
    end = columns["time"].max() // 3600 * 3600
    assert less.window("1h", end=end).to_bytes() == whole.window("1h", end=end).to_bytes()
    for twin in (less, less.copy(), sm.from_bytes(less.to_bytes())):
        with pytest.warns(UserWarning, match="finer panes are no longer kept"):
            hour = twin.window("1h", end=columns["time"].max() - 3600)
        assert hour.n_rows > 0
    assert less.n_rows == whole.n_rows
    with pytest.raises(ValueError, match="is no longer kept: its panes begin at"):
        less.window("5min", end=columns["time"].max() - 3600)
    (found,) = less._queries.expired_early.items()
    assert found[0] == "1min"


def test_the_coarsest_panes_go_last_and_each_tier_keeps_its_newest():
    state = live().observe(**day(6000))
    for _ in range(3):  # expired panes are folded into coarser ones, which go next
        nothing = evict(state, 0.0)._shared.current
    assert [len(row.states) for row in nothing.panes.rows] == [1, 1]
    assert state.window("1min").n_rows > 0


@pytest.mark.parametrize("told", [[0, 0], [1], [-1, 0], [1.5, 0], [10**40, 0], "ab", [True, 0]])
def test_floors_that_no_state_has_are_refused(told):
    meta, arrays = parts(evict(live().observe(**day(600)), 0.9).to_bytes())
    assert sm.from_bytes(forged(meta, arrays))
    with pytest.raises(sm.StateFormatError, match="no valid panes from which on"):
        sm.from_bytes(forged({**meta, "floors": told}, arrays))


def sizes(path):
    return sum(os.path.getsize(p) for p in (path, f"{path}-wal") if os.path.exists(p))


def test_a_store_stays_below_its_limit_and_keeps_the_newest_history(tmp_path):
    path, chance = tmp_path / "live.db", np.random.default_rng(0)
    n, flush = 20_000, 20_000 * 40  # rows of a flush, and their bytes at most
    with live(store=path, max_store=MOST) as state, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for hour in range(40):
            state.observe(
                time=HOUR + 3600 * hour + chance.integers(0, 3600, n),
                y_true=chance.integers(0, 2, n),
                y_score=chance.random(n),
            )
            state.flush()
            assert sizes(path) <= MOST + flush
        state._ingest.journal._fold(lambda: True)  # as closing does
        early = state._queries.expired_early
        blob, hours = state.to_bytes(), state.series("1h", every="1h")["n_rows"].size
    assert [str(w.message) for w in told if w.category is StoreWarning] == [
        f"the store has reached max_store, {MOST:,} bytes: from now on its oldest panes expire "
        "early, the finest first"
    ]
    assert early
    assert 3 < hours < 40
    with live(store=path, max_store=MOST) as again:
        assert again.to_bytes() == blob
        assert again._queries.expired_early == early
        assert again.window("1h", end=HOUR + 3600 * 39).n_rows == n
    assert len(blob) < MOST // 4


def test_workers_of_a_store_let_the_same_panes_expire(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "_STATES", 400)
    path = tmp_path / "live.db"
    with live(store=path, max_store=MOST) as one, live(store=path, max_store=MOST) as other:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoreWarning)
            for seed in range(8):
                (one, other)[seed % 2].observe(**day(20_000, seed)).flush()
        for state in (one, other):
            state._ingest.journal.tick()
        assert one._queries.expired_early == other._queries.expired_early != {}
        assert one.to_bytes() == other.to_bytes()


def test_what_does_not_fit_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "_STATES", 1 << 20)
    with live(store=tmp_path / "live.db", max_store=MOST) as state:
        journal = state._ingest.journal
        columns = {name: np.tile(column, 8) for name, column in day(20_000).items()}
        state.observe(**columns)
        with (
            pytest.warns(StoreWarning, match="although it has only the newest panes"),
            pytest.warns(StoreWarning, match="has reached max_store"),
        ):
            state.flush()
        assert journal.is_overfull


def test_a_limit_that_is_too_small_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least 16,777,216 bytes are needed"):
        live(store=tmp_path / "live.db", max_store=1000)
    with pytest.raises(ValueError, match="max_store='1kB': at least 16,777,216 bytes are needed"):
        live(store=tmp_path / "live.db", max_store="1kB")
    with pytest.raises(ValueError, match="max_store='2 gigs' is not a size: write \"64MB\""):
        live(store=tmp_path / "live.db", max_store="2 gigs")


def test_a_limit_may_be_a_text(tmp_path):
    with live(store=tmp_path / "live.db", max_store="2GB") as state:
        assert state._ingest.journal.most == 2 * 10**9
    with live(store=tmp_path / "live.db", max_store="16.8MB") as state:
        assert state._ingest.journal.most == 16_800_000
