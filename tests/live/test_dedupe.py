"""Observations with ids: copies count once, in any order, at any worker, across restarts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from live.events import START, SUITE, live, observe, observed, rows

import streammetrics as sm
from streammetrics.live import journal as journal_module
from streammetrics.live.ingest import EventColumns

MINUTE = 60


def ids(n):
    return [f"r{number}" for number in range(n)]


def test_a_repeated_observation_counts_once():
    once, twice = live(), live()
    for state, times in ((once, 1), (twice, 3)):
        for _ in range(times):
            state.observe(id="a", time=START, y_true=1, y_score=0.75)
            state.observe(id=["b", "c"], time=[START, START + 1], y_true=[0, 1], y_score=[0.5, 1.0])
    assert once.to_bytes() == twice.to_bytes()
    assert twice.window("5min").n_rows == twice.n_rows == 3
    assert twice.window("5min").compute() == once.window("5min").compute()
    assert twice.coverage("5min").predicted == 0


@given(
    st.lists(st.tuples(st.integers(0, 12), observed), max_size=40),
    st.randoms(use_true_random=False),
)
def test_any_order_copies_and_merge_tree_give_one_state(events, random):
    """A dozen ids, so that events of one id contradict each other: the earliest counts."""
    parameters = {"dedupe": "30min", "keep_rows": 8}
    whole, anonymous = live(**parameters), [event for number, event in events if not number]

    def take(into, number, event):
        second, label, score = event
        if number:
            into.observe(id=number, time=START + second, y_true=label, y_score=score)
        else:
            observe(into, event)

    for number, event in sorted(events, key=lambda one: one[1]):
        take(whole, number, event)
    copies = [*events, *((n, event) for n, event in events if n and random.random() < 0.5)]
    states = [live(**parameters) for _ in range(random.randint(1, 4))]
    for number, event in random.sample(copies, len(copies)):
        into = random.choice(states)
        take(into, number, event)
        if random.random() < 0.1:
            into.window("5min")
        if random.random() < 0.1:
            states[states.index(into)] = sm.from_bytes(into.to_bytes())
    while len(states) > 1:
        first, second = states.pop(), states.pop()
        states.append(first.merge(second))
    assert states[0].to_bytes() == whole.to_bytes()
    assert states[0].last(8).to_bytes() == whole.last(8).to_bytes()
    first = {n: min(event for m, event in events if m == n) for n, _ in events if n}
    expected = sm.MetricSet(SUITE)
    for _, label, score in [*anonymous, *first.values()]:
        expected.update(y_true=[label], y_score=[score])
    longest = live(tiers=[("1min", "40min")], **parameters)
    for number, event in copies:
        take(longest, number, event)
    assert longest.window("40min").to_bytes() == expected.to_bytes()


def test_memory_is_bounded_by_dedupe_and_later_copies_are_refused():
    state = live(dedupe="1min", tiers=[("1min", "3h")])
    for minute in range(120):
        state.observe(
            id=[f"{minute}-{n}" for n in range(100)],
            time=np.full(100, START + minute * MINUTE),
            y_true=np.zeros(100, int),
            y_score=np.full(100, 0.25),
        )
    assert len(state._shared.current.identified.table) < 400
    late = state._ingest.take_all([_columns("0-1", START)])
    assert late == [1]
    assert state.coverage("1h").observations_refused == 1
    assert state.n_rows == 12_000
    state.observe(time=START + 200 * MINUTE, y_true=1, y_score=0.5)  # all others leave
    other = sm.from_bytes(state.to_bytes())
    assert other._ingest.take_all([_columns("119-1", START + 119 * MINUTE)]) == [1]
    assert other.to_bytes() == state.to_bytes()


def test_beyond_max_pending_the_oldest_leave_and_nothing_counts_twice():
    state = live(tiers=[("1min", "3h")], max_pending=50)
    with pytest.warns(UserWarning, match="max_pending=50 observations with ids"):
        _observe_each_twice(state, 200)
    assert state.n_rows == 200
    assert len(state._shared.current.identified.table) <= 51
    state.observe(id=0, time=START, y_true=1, y_score=0.5)
    assert state.n_rows == 200
    assert sm.from_bytes(state.to_bytes()).to_bytes() == state.to_bytes()


def _observe_each_twice(state, n):
    for second in range(n):
        for _ in range(2):
            state.observe(id=second, time=START + second, y_true=1, y_score=0.5)
    state.flush()


def _columns(name, time):
    columns = {"y_true": [1], "y_score": [0.5]}
    return EventColumns("observe", [time], ([name],), columns)


@pytest.mark.parametrize("durable", [False, True])
def test_copies_at_other_workers_and_after_a_restart_count_once(tmp_path, monkeypatch, durable):
    monkeypatch.setattr(journal_module, "_run", lambda *_: None)
    path = tmp_path / "live.db"
    columns = rows(100)
    first, second = (live(store=path, durable=durable) for _ in range(2))
    first.observe(id=ids(100), **columns)
    second.observe(id=ids(100), **columns)
    for _ in range(3):
        for one in (first, second):
            one._ingest.journal.tick()
    expected = live().observe(id=ids(100), **columns)
    assert first.window("20min").to_bytes() == second.window("20min").to_bytes()
    assert first.to_bytes() == expected.to_bytes()
    first.close()
    second.close()
    with live(store=path) as third:
        third.observe(id=ids(100), **columns)
        assert third.to_bytes() == expected.to_bytes()


def test_workers_hours_apart_count_each_observation_once(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "_run", lambda *_: None)
    tiers, path = [("1min", "1d")], tmp_path / "live.db"
    services = [live(store=path, tiers=tiers, dedupe="5min") for _ in range(2)]
    slow, fast = services

    def tick():
        for one in services:
            one._ingest.journal.tick()

    for hour in range(20):  # each takes all events, the second one an hour later
        for one, late in ((fast, 0), (slow, 1)):
            if hour >= late:
                times = START + (hour - late) * 3600.0 + np.arange(60) * 60
                names = [f"{time}" for time in times]
                one.observe(id=names, time=times, y_true=[1] * 60, y_score=[0.5] * 60)
            tick()
    for _ in range(3):
        tick()
    assert fast.n_rows == slow.n_rows == 20 * 60


def test_an_id_needs_whole_rows_of_one_form():
    state = live()
    state.observe(id="a", time=START, y_true=1, y_score=0.5)
    before = state.to_bytes()
    for columns, message in [
        ({"id": "b", "y_true": 1, "y_score": float("nan")}, "y_score"),
        ({"id": 1.5, "y_true": 1, "y_score": 0.5}, "id is 1.5"),
        ({"id": "b", "y_true": 1, "y_score": 0.5, "sample_weight": 2.0}, "weight"),
        ({"id": "b", "y_true": 7, "y_score": 0.5}, "7"),
    ]:
        with pytest.raises(sm.InvalidBatchError, match=message):
            state.observe(time=START, **columns)
    with pytest.raises(sm.InvalidBatchError, match="differ in length"):
        state.observe(id=["a"], time=[START] * 2, y_true=[1, 1], y_score=[0.5, 0.5])
    with pytest.raises(sm.InvalidBatchError, match="an id a row"):
        state.observe(id="a", time=[START] * 2, y_true=[1, 1], y_score=[0.5, 0.5])
    assert state.to_bytes() == before
    labels = sm.Live(sm.BoxAveragePrecision())
    box = {"pred_boxes": [[[0.0, 0, 1, 1]]], "pred_scores": [[0.5]], "pred_labels": [[1]]}
    truth = {"true_boxes": [[[0.0, 0, 1, 1]]], "true_labels": [[1]]}
    with pytest.raises(sm.InvalidBatchError, match="without ids"):
        labels.observe(id=["a"], time=[START], **box, **truth)


def test_metrics_without_labels_slices_and_a_column_called_id():
    plain = sm.Live(sm.Mean())
    for _ in range(2):
        plain.observe(id=1, time=START, values=2.0)
    assert plain.window("1h").n_rows == 1
    sliced = sm.Live(sm.MetricSet({"a": sm.Accuracy()}), by=["country"])
    for _ in range(2):
        sliced.observe(
            id=[1, 2], time=[START] * 2, y_true=[0, 1], y_pred=[1, 1], country=["DE", None]
        )
    found = sliced.window("1h", by="country").compute().to_dict()
    assert found["n_rows"] == [1, 1]
    own = sm.Live(sm.MetricSet({"a": sm.Accuracy()}), by=["id"])
    for _ in range(2):
        own.observe(id="a", time=START, y_true=0, y_pred=1)
    assert own.n_rows == 2


def test_the_default_is_not_written_and_another_one_is_compared():
    assert live().to_bytes() == live(dedupe="1h").to_bytes() != live(dedupe="2h").to_bytes()
    assert sm.from_bytes(live(dedupe="2h").to_bytes()) == live(dedupe="2h")
    with pytest.raises(sm.IncompatibleMetricsError, match="dedupe"):
        live().merge(live(dedupe="2h"))
    with pytest.raises(ValueError, match="dedupe"):
        live(dedupe="0s")


def test_alerts_do_not_wait_for_copies():
    rule = sm.Above("error", 0.5, window="10min")
    found = []
    for named in (False, True):
        state = sm.Live(sm.MetricSet({"error": sm.ZeroOneLoss()}))
        more = {"id": ids(120)} if named else {}
        state.observe(
            time=START + np.arange(120) * 60,
            y_true=[1] * 120,
            y_pred=[1] * 60 + [0] * 60,
            **more,
        )
        (alert,) = state.alerts([rule])
        found.append((alert.state, alert.since))
    assert found[0] == found[1]
    assert found[0][0] == "firing"
