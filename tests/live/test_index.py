"""Rows by the keys of their ids: found while tables grow, in few bytes, whatever the ids are."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.core.columns.conversion import Column
from streammetrics.live.hashes import HashedKeys, hashes_of
from streammetrics.live.ids import keys_of
from streammetrics.live.index import Index
from streammetrics.live.table import Predictions, PredictionTable

KINDS = {
    "integers": lambda n: keys_of(np.arange(n)),
    "texts": lambda n: keys_of([f"r{k}" for k in range(n)]),
    "of several kinds": lambda n: keys_of([f"{k}" if k % 3 else k for k in range(n)]),
}


def filled(every, batch):
    """Return keys and the index of them, which came some at a time."""
    keys, index = HashedKeys(), Index()
    for start in range(0, len(every), batch):
        part = every[start : start + batch]
        keys.append(part)
        index.add(keys, hashes_of(part))
    return keys, index


@pytest.mark.parametrize("batch", [1, 7, 1024, 30_000])
@pytest.mark.parametrize("kind", KINDS)
def test_keys_are_found_at_their_rows_and_others_nowhere(kind, batch):
    every = KINDS[kind](400 if batch == 1 else 30_000)
    known, strange = every[: len(every) // 2], every[len(every) // 2 :]
    keys, index = filled(known, batch)
    assert (index.find(keys, known, hashes_of(known)) == np.arange(len(known))).all()
    assert (index.find(keys, strange, hashes_of(strange)) == -1).all()
    assert (keys[np.arange(len(known))] == known).all()
    rows = np.arange(len(known))[::-3]
    keys.keep(rows)
    again = Index.of(keys, len(rows))
    found = again.find(keys, every, hashes_of(every))
    assert (found[rows] == np.arange(len(rows))).all()
    assert np.count_nonzero(found >= 0) == len(rows)


def test_a_table_that_grows_is_right_at_each_step():
    every = keys_of(np.arange(9000))
    keys, index = HashedKeys(), Index()
    for start in range(0, 9000, 300):
        keys.append(every[start : start + 300])
        index.add(keys, hashes_of(every[start : start + 300]))
        found = index.find(keys, every, hashes_of(every))
        assert (found[: start + 300] == np.arange(start + 300)).all()
        assert (found[start + 300 :] == -1).all()


def test_keys_of_one_hash_are_told_apart():
    keys, index = HashedKeys(), Index()
    every = keys_of(np.arange(40))
    keys.append(every)
    index.add(keys, np.zeros(40, np.uint64))  # five buckets of the same first one
    assert (index.find(keys, every, np.zeros(40, np.uint64)) == np.arange(40)).all()
    other = keys_of([99])
    assert (index.find(keys, other, np.zeros(1, np.uint64)) == -1).all()


def test_an_index_and_its_copy_go_their_own_ways():
    every = keys_of(np.arange(4000))
    keys, index = filled(every[:1600], 800)
    twin, theirs = index.copy(), keys.copy()
    theirs.append(every[1600:])
    twin.add(theirs, hashes_of(every[1600:]))
    assert (index.find(keys, every[1600:], hashes_of(every[1600:])) == -1).all()
    assert (twin.find(theirs, every, hashes_of(every)) == np.arange(4000)).all()


def test_a_pending_row_takes_no_room_for_a_label_and_integers_half_of_that_for_ids():
    held = {}
    for kind in ("integers", "texts"):
        table, every = PredictionTable((), "y", 10**9), KINDS[kind](90_000)
        for start in range(0, 90_000, 2000):
            part = every[start : start + 2000]
            table.append(Predictions(part, np.full(2000, start), ()))
        held[kind] = table.nbytes / 90_000
    assert held["integers"] < 8 + 8 + 1 + 6
    assert held["texts"] == pytest.approx(held["integers"] + 8, rel=0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_go_and_come_and_all_others_are_found(kind):
    dice = np.random.default_rng(0)
    every = KINDS[kind](12_000)
    table, held, come = PredictionTable(["s"], "y", 10), {}, 0
    for turn in range(40):
        n = int(dice.integers(1, 600))
        part = every[come : come + n]
        scores = dice.random(len(part))
        table.append(Predictions(part, np.full(len(part), turn), (Column(scores),)))
        held |= dict(zip(range(come, come + n), scores.tolist(), strict=False))
        come += len(part)
        gone = np.flatnonzero(dice.random(len(table)) < dice.choice([0.02, 0.1, 0.6]))
        keys = table.keys[gone]
        names = table.find(keys)
        assert (names == gone).all()
        which = np.flatnonzero(np.isin(every[:come].view("V16").ravel(), keys.view("V16").ravel()))
        table.drop(gone)
        panes = np.unique(table.times.values // 10) * 10
        assert np.sort(table.present.starts).tolist() == panes.tolist()
        for place in which.tolist():
            del held[place]
        rows = table.find(every[:come])
        assert np.flatnonzero(rows >= 0).tolist() == sorted(held)
        assert len(table) == len(held)
        there = rows[rows >= 0]
        assert table.at(there).columns[0].values.tolist() == [held[k] for k in sorted(held)]
        assert (table.find(every[come:]) == -1).all()


def test_keys_of_one_hash_go_one_by_one():
    keys, index, every = HashedKeys(), Index(), keys_of(np.arange(40))
    keys.append(every)
    index.add(keys, hashes_of(every))
    slots = index._slots
    slots._buckets[:] = 0
    slots.put(np.zeros(40, np.uint64), np.arange(40))
    slots.drop(np.zeros(3, np.uint64), np.array([2, 20, 39]))
    assert slots.lost == 3  # as all five buckets are full
    found = index.find(keys, every, np.zeros(40, np.uint64))
    assert (found[[2, 20, 39]] == -1).all()
    assert (np.delete(found, [2, 20, 39]) == np.delete(np.arange(40), [2, 20, 39])).all()
