"""Windows: which rows are in them, what they are worth, and what is kept."""

from __future__ import annotations

import gc
import warnings
from datetime import timedelta

import numpy as np
import pytest
from live.events import START, SUITE, fresh, live, rows

import streammetrics as sm
from streammetrics.core import tuning
from streammetrics.core.feeding.states import State
from streammetrics.live.panes import Panes
from streammetrics.live.windows import PaneTree


def chosen(data, first, last):
    """Return a set fed with the rows of a time from `first` on and before `last`."""
    mask = (data["time"] >= first) & (data["time"] < last)
    suite = sm.MetricSet(SUITE)
    return suite.update(y_true=data["y_true"][mask], y_score=data["y_score"][mask])


def test_every_window_is_a_fresh_set_of_its_rows():
    data = rows(3000)
    state = live().observe(**data)
    newest = int(data["time"].max()) // 60 * 60 + 60
    for minutes in range(1, 7):
        for back in range(7 - minutes):
            end = newest - 60 * back
            expected = chosen(data, end - 60 * minutes, end)
            assert state.window(f"{minutes}min", end=end).to_bytes() == expected.to_bytes()
            inside = state.window(timedelta(minutes=minutes), end=end - 17.5)
            assert inside.to_bytes() == expected.to_bytes()
    assert state.window("6min").to_bytes() == chosen(data, newest - 360, newest).to_bytes()
    coarse = newest // 300 * 300 + 300
    assert state.window("20min").to_bytes() == chosen(data, coarse - 1200, coarse).to_bytes()
    assert state.window("10min").compute() == chosen(data, coarse - 600, coarse).compute()


def test_a_window_is_an_ordinary_set():
    state = live().observe(**rows(200))
    window = state.window("5min")
    before = state.to_bytes()
    assert isinstance(window, sm.MetricSet)
    window.update(y_true=[1], y_score=[0.5])
    assert sm.from_bytes(window.to_bytes()) == window
    assert state.to_bytes() == before
    one = sm.Live(sm.Mean()).observe(time=START, values=2.0).window("1min")
    assert isinstance(one, sm.Mean)
    assert one.compute() == 2.0


def test_a_window_follows_rows_that_come_after_it_was_read():
    data, state = rows(600, seed=3), live()
    for start in range(0, 600, 7):
        state.observe(**{name: column[start : start + 7] for name, column in data.items()})
        seen = {name: column[: start + 7] for name, column in data.items()}
        newest = int(seen["time"].max()) // 60 * 60 + 60
        expected = chosen(seen, newest - 300, newest)
        assert state.window("5min").to_bytes() == expected.to_bytes()


def test_what_is_no_window_names_those_that_are():
    state = live().observe(**rows(200))
    with pytest.raises(ValueError, match=r"90s is no whole number.* panes of 1min for 6min; panes"):
        state.window("90s")
    with pytest.raises(ValueError, match="longer than they are kept"):
        state.window("25min")
    with pytest.raises(ValueError, match=r"ends at 2023-11-14T22:\d\d:\d\d.* is no longer kept"):
        state.window("20min", end=START)
    with pytest.raises(ValueError, match="every=90s is no whole number of panes"):
        state.series("5min", every="90s")


def test_an_idle_stream_empties_when_it_is_said_what_time_it_is():
    state = live().observe(time=START, y_true=1, y_score=0.75)
    before = state.to_bytes()
    assert state.window("5min").n_rows == 1
    assert state.now(START + 299).window("5min").n_rows == 1
    assert state.now(START + 300).window("5min").n_rows == 0
    assert state.now(START - 3600).window("5min").n_rows == 1  # a clock that was set back
    assert state.now(START + 7200).window("20min").n_rows == 0
    assert state.now(None).window("5min").n_rows == 1
    assert state.to_bytes() == before


def test_an_idle_stream_keeps_no_windows_of_times_that_are_over():
    state = live().observe(**rows(200))

    def held(looks):
        for look in range(looks):
            state.now(START + 1800 + look / 64).window("5min")
        return sum(type(one) is State for one in gc.get_objects())  # `__class__` may warn

    gc.collect()  # what earlier tests left, which would go between the counts
    few = held(looks=2)
    assert held(looks=40) == few


def test_nothing_observed_is_an_empty_window():
    state = live()
    assert state.window("5min") == fresh([])
    assert state.n_rows == state.dropped == 0


@pytest.mark.parametrize("by", [None, "country"])
def test_a_series_of_nothing_at_no_time_has_columns_without_rows(by):
    state = live(by=by or ())
    some = {"y_true": [1, 0], "y_score": [0.5, 0.25], **({by: ["DE"] * 2} if by else {})}
    columns = state.copy().observe(time=[START] * 2, **some).series("5min", every="1min", by=by)
    empty = state.series("5min", every="1min", by=by)
    assert by or list(empty) == list(columns)  # of no slice there is no key, nor what is of one
    assert empty.keys() <= columns.keys()
    assert {len(column) for column in empty.values()} == {0}
    assert empty["time"].dtype == columns["time"].dtype


def test_no_window_of_a_series_ends_before_1970():
    state = sm.Live(sm.Mean(), tiers=[("1min", "5min")]).observe(time=90, values=1.0)
    assert state.series("1min", every="1min")["time"].astype("int64").tolist() == [
        60 * 10**9, 120 * 10**9,
    ]  # fmt: skip


def test_a_series_of_nothing_reaches_back_from_now_and_no_further():
    asked = live().now(START)
    assert len(asked.series("5min", every="1min")["time"]) == len(
        live().observe(time=START, y_true=1, y_score=0.5).series("5min", every="1min")["time"]
    )


def test_a_series_is_windows_one_after_the_other():
    data = rows(2000)
    state = live().observe(**data)
    series = state.series("3min", every="1min")
    newest = int(data["time"].max()) // 60 * 60 + 60
    ends = [newest - 180, newest - 120, newest - 60, newest]
    assert series["time"].astype(np.int64).tolist() == [end * 10**9 for end in ends]
    for place, end in enumerate(ends):
        window = chosen(data, end - 180, end)
        assert series["n_rows"][place] == window.n_rows
        for name, value in window.compute().items():
            low, high = window.bounds()[name]
            found = [series[column][place] for column in (name, f"{name}_low", f"{name}_high")]
            assert found == [value, low, high]
    single = sm.Live(sm.Mean()).observe(time=[START, START + 3600], values=[1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of the windows between, which are nan
        columns = single.series("1min", every="1min")
    assert list(columns) == ["time", "n_rows", "coverage", "value", "low", "high"]
    assert np.isnan(columns["value"]).sum() == len(columns["value"]) - 2


def test_rows_too_late_for_every_tier_are_counted_and_in_no_state():
    state = live().observe(time=START + 7200, y_true=1, y_score=0.25)
    before = state.to_bytes()
    state.observe(time=START, y_true=1, y_score=0.25)
    assert state.dropped == 1
    assert state.to_bytes() == before
    state.observe(time=START + 7200 - 600, y_true=0, y_score=0.25)  # of the coarser tier alone
    assert state.dropped == 1
    assert state.window("20min").n_rows == 2
    assert state.window("6min").n_rows == 1


@pytest.mark.parametrize("labels_come", [False, True])
def test_panes_that_are_over_take_the_room_of_their_scores_not_of_their_rows(labels_come):
    waits = {"label_ttl": "1min", "label_lateness": "10s"}
    state = sm.Live(sm.ROCAUC(), tiers=[("1min", "1h")], **waits)
    rows = 6000
    score, label = np.arange(rows) % 10 / 10, np.arange(rows) // 10 % 2
    held = []
    for minute in range(8):
        time = START + 60 * minute + np.arange(rows) * 60 / rows
        if labels_come:
            ids = [f"{minute}-{row}" for row in range(rows)]
            state.predict(id=ids, y_score=score, time=time)
            state.label(id=ids, y_true=label, time=time)
        else:
            state.observe(y_true=label, y_score=score, time=time)
        held.append(state.nbytes)
    assert held[-1] - held[3] < 4 * 1024  # four panes of ten scores; their rows have nine bytes
    assert state.window("1h").compute() == sm.score(sm.ROCAUC(), label, score)


def test_no_single_event_does_more_than_a_piece_of_what_rows_leave_to_do(monkeypatch):
    monkeypatch.setattr(tuning, "PANE_BYTES", 1 << 14)
    done = []
    for owner, name in ((PaneTree, "_make_small"), (PaneTree, "_fed"), (Panes, "add")):
        monkeypatch.setattr(owner, name, counting(getattr(owner, name), done))
    rng = np.random.default_rng(0)
    scores, state, pieces = rng.random(9000), live(), []
    labels = scores > rng.random(9000)
    for place in range(9000):  # three panes, each with more than wait in it
        before = len(done)
        state.observe(
            time=START + place / 50, y_true=bool(labels[place]), y_score=float(scores[place])
        )
        pieces.append(len(done) - before)
    assert max(pieces) == 1
    assert {*done} == {"_make_small", "_fed", "add"}
    columns = {"time": START + np.arange(9000) / 50, "y_true": labels, "y_score": scores}
    assert state.to_bytes() == live().observe(**columns).to_bytes()


def counting(method, done):
    def counted(*arguments, **named):
        done.append(method.__name__)
        return method(*arguments, **named)

    return counted
