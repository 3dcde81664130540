"""The newest rows one by one: which they are does not depend on how they came."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st
from live.events import START, fresh, joined, live, observe, observed, rows
from thinning import drawn

import streammetrics as sm


def newest(events, n):
    """Return a set of the newest rows; those of one time are in order of label, then score."""
    return fresh(sorted(events)[-n:])


@drawn(
    12,
    60,
    st.lists(observed, max_size=40),
    st.integers(1, 12),
    st.randoms(use_true_random=False),
)
def test_any_order_and_merge_tree_keeps_the_same_rows(events, most, random):
    whole = live(keep_rows=most)
    for event in events:
        observe(whole, event)
    states = [live(keep_rows=most) for _ in range(3)]
    for event in random.sample(events, len(events)):
        observe(random.choice(states), event)
    restored = sm.from_bytes(states[0].merge(states[1]).to_bytes())
    assert restored.merge(states[2]).to_bytes() == whole.to_bytes()
    for n in {1, most}:
        found = whole.last(n)
        assert found.n_rows == min(n, len(events))
        assert restored.last(n).to_bytes() == found.to_bytes()
    times = sorted((event[0] for event in events), reverse=True)[:most]
    if len(set(times)) == len(times):
        assert whole.last(most).to_bytes() == newest(events, most).to_bytes()


def test_many_rows_leave_the_newest():
    data = rows(20_000, span=86_400)
    columns = list(zip(*(column.tolist() for column in data.values()), strict=True))
    state = live(keep_rows=500)
    for first in range(0, 20_000, 999):
        state.observe(**{name: c[first : first + 999] for name, c in data.items()})
    kept = sorted(columns)[-500:]
    expected = fresh([])
    expected.update(y_true=[row[1] for row in kept], y_score=[row[2] for row in kept])
    if kept[0][0] != sorted(columns)[-501][0]:
        assert state.last(500).to_bytes() == expected.to_bytes()
    assert state.last(499).n_rows == 499
    assert state == live(keep_rows=500).observe(**data)
    with pytest.raises(ValueError, match=r"last\(501\): keep_rows=500 rows"):
        state.last(501)
    with pytest.raises(ValueError, match=r"last\(1\): keep_rows=0 rows"):
        live().last(1)


def test_rows_whose_label_came_are_among_them_by_time_and_id():
    state = joined(keep_rows=4)
    for name in range(8):
        state.predict(id=name, time=START + name // 2, y_score=name / 8)
    for name in (0, 3, 4, 5, 7):
        state.label(id=name, time=START + 60, y_true=name % 2)
    assert state.last(2).to_bytes() == fresh([(0, 1, 5 / 8), (0, 1, 7 / 8)]).to_bytes()
    state.label(id=7, time=START + 61, y_true=0, version=2)
    expected = fresh([(0, 1, 3 / 8), (0, 0, 4 / 8), (0, 1, 5 / 8), (0, 0, 7 / 8)])
    assert state.last(4).to_bytes() == expected.to_bytes()
    state.observe(time=START + 3000, y_true=1, y_score=1.0)  # and so the others have left
    assert sm.from_bytes(state.to_bytes()) == state
    expected = fresh([(0, 0, 4 / 8), (0, 1, 5 / 8), (0, 0, 7 / 8), (0, 1, 1.0)])
    assert state.last(4).to_bytes() == expected.to_bytes()


@pytest.mark.parametrize(
    ("metric", "batches", "types"),
    [
        (
            sm.ConfusionMatrix(),
            [{"y_true": ["b", "a"], "y_pred": ["a", "ä"]}] * 2,
            {"y_true": "text", "y_pred": "text"},
        ),
        (
            sm.LogLoss(),
            [{"y_true": [1, 0], "y_score": np.float32([[0.3, 0.7], [0.9, 0.1]])}] * 2,
            {"y_score": 2},
        ),
        (sm.LogLoss(), [{"y_true": [1], "y_score": [[0.5, 0.5]]}] * 3, {"y_score": 2}),
        (sm.Mean(), [{"values": [1, 2]}, {"values": [2.5], "sample_weight": [3.0]}], {}),
        (sm.MAE(nan_policy="omit"), [{"y_true": [None, 1.5], "y_pred": [0.0, -0.0]}] * 2, {}),
        (
            sm.NDCG(),
            [{"query": [1, 2], "doc": ["a", "b"], "relevance": [1, 0], "score": [1.5, 2]}],
            {"query": "integers"},
        ),
    ],
)
def test_rows_of_every_kind_are_kept(metric, batches, types):
    state, expected = sm.Live(metric, keep_rows=100, types=types), metric.copy()
    other = state.copy()
    for place, columns in enumerate(batches):
        times = [START + place] * len(next(iter(columns.values())))
        state.observe(time=times, **columns)
        expected.update(**columns)
    for place, columns in reversed(list(enumerate(batches))):
        times = [START + place] * len(next(iter(columns.values())))
        other.observe(time=times, **columns)
    assert state.last(100).compute() == pytest.approx(expected.compute(), nan_ok=True)
    assert state.last(100).n_rows == expected.n_rows
    assert sm.from_bytes(state.to_bytes()) == state == other


def test_the_rows_that_are_kept_are_the_states_own():
    scores = np.array([0.25, 0.75])
    labels = np.array([0, 1])
    state = live(keep_rows=2).observe(time=[START, START], y_true=labels, y_score=scores)
    before = state.to_bytes()
    labels[:], scores[:] = 1, 0.5
    assert state.to_bytes() == before
    assert state.nbytes > live().nbytes
    with pytest.raises(sm.InvalidBatchError, match="beyond 2\\*\\*53"):
        sm.Live(sm.Sum(), keep_rows=1).observe(time=START, values=2**60 + 1)
