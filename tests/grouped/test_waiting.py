"""Rows that wait to be split by group: however they are cut, each group takes its own."""

from __future__ import annotations

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.core import tuning
from streammetrics.core.counting import GroupCodes
from streammetrics.core.fields import histograms
from streammetrics.core.fields.histograms import GroupedHistograms
from streammetrics.statistics import buffered
from streammetrics.statistics.buffered import (
    BufferedStates,
    GroupedRows,
    appended,
    in_order,
    rows_of,
)
from streammetrics.statistics.histograms import ScoreHistogram

GROUPS = 7


def rows(rng, n, *, weighted=False, groups=GROUPS):
    scores, codes = rng.random(n), rng.integers(0, 2, n).astype(np.uint8)
    weight = rng.random(n) + 0.5 if weighted else None
    return rng.integers(0, groups, n), (codes, scores), weight


def rows_kept(codes, columns, weight):
    return GroupedRows.of(GroupCodes(codes, GROUPS), columns, weight)


def told(chunks):
    """Return the rows of each group, sorted."""
    found = [
        (int(group), *(float(column[k]) for column in columns), 1.0 if w is None else w[k])
        for group_codes, columns, w in chunks
        for k, group in enumerate(group_codes)
    ]
    return sorted(found)


@pytest.mark.parametrize("piece", [1, 20, 1 << 20])
@pytest.mark.parametrize("sizes", [(50,), (3, 40, 0, 17), (1,) * 30])
@pytest.mark.parametrize("mixed", [False, True])
def test_rows_come_by_ascending_group_and_none_is_cut(sizes, piece, mixed, monkeypatch):
    monkeypatch.setattr(buffered, "_PIECE", piece)
    rng = np.random.default_rng(len(sizes))
    given = [rows(rng, n, weighted=mixed and k % 2 == 1) for k, n in enumerate(sizes)]
    pieces = []
    for starts, columns, weight in in_order([rows_kept(*g) for g in given], GROUPS):
        pieces.append((np.repeat(np.arange(GROUPS), np.diff(starts)), columns, weight))
    assert told(pieces) == told(given)
    groups = [int(group) for codes, *_ in pieces for group in np.unique(codes)]
    assert groups == sorted(set(groups))
    if piece == 1 and len(sizes) > 1:
        assert len(pieces) > 1


def test_small_chunks_are_joined(monkeypatch):
    monkeypatch.setattr(tuning, "JOINED_ROWS", 448)
    rng = np.random.default_rng(0)
    chunks: tuple[GroupedRows, ...] = ()
    given = [rows(rng, 5) for _ in range(64)]
    for one in given:
        chunks = appended(chunks, rows_kept(*one), GROUPS)
    assert len(chunks) < 20
    assert rows_of(chunks) == 5 * 64
    given.append(rows(rng, 500))
    chunks = appended(chunks, rows_kept(*given[-1]), GROUPS)
    assert told(chunks) == told(given)
    assert all((rows.codes[1:] >= rows.codes[:-1]).all() for rows in chunks)


def test_rows_that_wait_are_not_those_of_the_caller():
    codes, columns, _ = rows(np.random.default_rng(1), 40)
    codes = np.sort(codes)
    mine = rows_kept(codes, columns, np.ones(40))
    before = told([mine])
    columns[1][:] = 9.0
    codes[:] = 0
    assert told([mine]) == before


def test_rows_move_to_other_groups():
    given = rows(np.random.default_rng(2), 60)
    places = np.array([2, -1, 0, 0, 1, -1, 2])
    moved = rows_kept(*given).moved(places, 3)
    codes, columns, _ = given
    kept = places[codes] >= 0
    expected = (places[codes][kept], tuple(column[kept] for column in columns), None)
    assert told([moved]) == told([expected])


@pytest.mark.parametrize("max_bins", [16, 1 << 20])
@pytest.mark.parametrize("room", [1, 200, 1 << 26])
@pytest.mark.parametrize("digits", [1, 17])
def test_groups_hold_what_their_rows_give(max_bins, room, digits, monkeypatch):
    monkeypatch.setattr(buffered, "_ROWS", min(room, 1 << 16))
    monkeypatch.setattr(buffered, "_MOST", min(room, 1 << 20))
    monkeypatch.setattr(buffered, "_BYTES", room)
    rng = np.random.default_rng(3)
    empty = ScoreHistogram(max_bins=max_bins)
    states = BufferedStates.empty(empty, GROUPS)
    fresh = [ScoreHistogram(max_bins=max_bins) for _ in range(GROUPS)]
    for n in (90, 1, 400, 30):
        codes, (labels, scores), _ = rows(rng, n)
        columns = labels, np.round(scores, digits)
        states = states.updated(GroupCodes(codes, GROUPS), columns, None)
        for group in range(GROUPS):
            mine = codes == group
            if mine.any():
                fresh[group].update(*[column[mine] for column in columns], weight=None)
    assert states.nbytes > 0
    for group in range(GROUPS):
        arrays, expected = states.at(group).arrays(), fresh[group].arrays()
        assert arrays.keys() == expected.keys()
        assert all(arrays[name].tobytes() == expected[name].tobytes() for name in arrays)


def test_many_rows_of_few_bins_wait_no_longer_than_bins_take():
    rng = np.random.default_rng(4)
    suite = sm.MetricSet({"auc": sm.ROCAUC(max_bins=64)})
    slices = sm.Slices(suite, by="group")
    for _ in range(4):
        n = 1 << 17
        slices.update(
            y_true=rng.integers(0, 2, n), y_score=rng.random(n), group=rng.integers(0, 20, n)
        )
    assert slices.nbytes < 1 << 20


@pytest.mark.parametrize("max_cells", [32, 300, 5000])
def test_histograms_merged_in_pairs_and_at_once_are_the_same(max_cells, monkeypatch):
    rng = np.random.default_rng(max_cells)
    n, size = 6000, 20
    starts = np.searchsorted(np.sort(rng.integers(0, size, n)), np.arange(size + 1))
    columns = rng.integers(0, 2, n).astype(np.uint8), rng.random(n)
    held = GroupedHistograms.of_rows(max_cells, n, [(starts, columns, None)])
    places, found = rng.integers(-1, 3, size), []
    for long in (0, 1 << 40):
        monkeypatch.setattr(histograms, "_LONG", long)
        arrays = held.regrouped(places, 4).arrays()
        found.append({name: array.tobytes() for name, array in arrays.items()})
    assert found[0] == found[1]
