"""Rows by the keys of their ids: found while tables grow, in few bytes, whatever the ids are."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.core.columns.conversion import Column
from streammetrics.live.events import keys_of
from streammetrics.live.index import Index, Predictions, PredictionTable

KINDS = {
    "integers": lambda n: keys_of(np.arange(n)),
    "texts": lambda n: keys_of([f"r{k}" for k in range(n)]),
    "of several kinds": lambda n: keys_of([f"{k}" if k % 3 else k for k in range(n)]),
}


def filled(every, batch):
    """Return the index of keys that came some at a time."""
    index = Index()
    for start in range(0, len(every), batch):
        index.add(every[start : start + batch])
    return index


@pytest.mark.parametrize("batch", [1, 7, 1024, 30_000])
@pytest.mark.parametrize("kind", KINDS)
def test_keys_are_found_at_their_rows_and_others_nowhere(kind, batch):
    every = KINDS[kind](400 if batch == 1 else 30_000)
    known, strange = every[: len(every) // 2], every[len(every) // 2 :]
    index = filled(known, batch)
    assert (index.find(known) == np.arange(len(known))).all()
    assert (index.find(strange) == -1).all()
    assert (index[np.arange(len(known))] == known).all()
    rows = np.arange(len(known))[::-3]
    index.keep(rows)
    found = index.find(every)
    assert (found[rows] == np.arange(len(rows))).all()
    assert np.count_nonzero(found >= 0) == len(rows)


def test_a_table_that_grows_is_right_at_each_step():
    every, index = keys_of(np.arange(9000)), Index()
    for start in range(0, 9000, 300):
        index.add(every[start : start + 300])
        found = index.find(every)
        assert (found[: start + 300] == np.arange(start + 300)).all()
        assert (found[start + 300 :] == -1).all()


def test_an_index_and_its_copy_go_their_own_ways():
    every = keys_of(np.arange(4000))
    index = filled(every[:1600], 800)
    twin = index.copy()
    twin.add(every[1600:])
    assert (index.find(every[1600:]) == -1).all()
    assert (twin.find(every) == np.arange(4000)).all()


def test_ids_of_a_second_kind_come_later():
    numbers, texts = keys_of(np.arange(5000)), keys_of([f"{k}" for k in range(5000)])
    index = filled(numbers, 5000)
    assert (index.find(texts) == -1).all()
    index.add(texts)
    assert (index.find(numbers) == np.arange(5000)).all()
    assert (index.find(texts) == 5000 + np.arange(5000)).all()


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
