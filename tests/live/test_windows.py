"""Windows: which rows are in them, what they are worth, and what is kept."""

from __future__ import annotations

import gc
import threading
import warnings
from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from live.events import START, SUITE, fresh, joined, live, rows
from thinning import some

import streammetrics as sm
from streammetrics.core import tuning
from streammetrics.core.feeding.plan import Plan
from streammetrics.core.feeding.states import State
from streammetrics.live.panes import Panes, PaneTree, same


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
    with pytest.raises(
        ValueError, match=r"90s is not a whole number.* panes of 1min for 6min; panes"
    ):
        state.window("90s")
    with pytest.raises(ValueError, match="longer than they are kept"):
        state.window("25min")
    with pytest.raises(ValueError, match=r"ends at 2023-11-14T22:\d\d:\d\d.* is no longer kept"):
        state.window("20min", end=START)
    with pytest.raises(ValueError, match="every=90s is not a whole number of panes"):
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


@pytest.mark.parametrize("default", [None, 0])
def test_panes_change_at_a_later_time_only_where_a_label_has_expired(default):
    state = joined(default_label=default)
    for second in (0, 30, 90):
        state.predict(id=second, time=START + second, y_score=0.75)
    state.label(id=0, time=START + 100, y_true=1)
    (span,) = state._queries.spans("5min", "5min")[-1:]

    def at(second):
        pipeline, time = state._queries.pipeline, int((START + second) * 10**9)
        return [pipeline.each(span, time, of) for of in ("metrics", "coverage")]

    def changed(one, other):
        pairs = [zip(*panes, strict=True) for panes in zip(one, other, strict=True)]
        return [sum(not same(*pair) for pair in panes) for panes in pairs]

    found = [at(second) for second in (100, 300.5, 330, 330.5, 331, 390, 390.5, 330)]
    panes = [0, 0, 1, 0, 0, 1, 2]  # that change from each time to the next
    of_metrics = panes if default is not None else [0] * 7
    expected = [[*pair] for pair in zip(of_metrics, panes, strict=True)]
    assert [changed(*pair) for pair in pairwise(found)] == expected


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
    state = sm.Live(sm.Mean(), tiers=[("1min", "5min")]).observe(time=[10, 90], values=[1.0, 2.0])
    assert state.series("1min", every="1min")["time"].astype("int64").tolist() == [
        60 * 10**9, 120 * 10**9,
    ]  # fmt: skip


@pytest.mark.parametrize("every", ["1min", "2min", "5min"])
def test_a_series_begins_with_the_first_window_that_reaches_a_row(every):
    tiers = (("1min", "3h"), ("1h", "15d"), ("1d", "400d"))
    state = sm.Live(sm.Mean(), tiers=tiers).observe(time=[START, START + 300], values=[1.0, 2.0])
    series = state.series("2min", every=every)
    assert series["n_rows"][0] == 1
    assert seconds(series["start"])[0] <= START < seconds(series["time"])[0]
    state.now(START + 3600)  # an idle stream's windows are empty, those before its rows are none
    series = state.series("2min", every="1min")
    assert series["n_rows"][0] == 1
    assert series["n_rows"][-1] == 0


def test_a_series_begins_with_the_first_prediction_though_its_label_never_came():
    state = sm.Live(sm.Accuracy())
    state.predict(id=["a", "b"], time=[START, START + 60], y_pred=[1, 1])
    state.label(id="b", time=START + 90, y_true=1)
    series = state.series("1min", every="1min")
    assert series["n_rows"].tolist() == [0, 1]
    assert series["coverage"].tolist() == [0.0, 1.0]


def test_before_any_event_a_series_has_no_window():
    asked = live().now(START)
    assert not len(asked.series("5min", every="1min")["time"])
    asked.label(id="a", time=START, y_true=1)  # of a prediction that is not there
    assert not len(asked.series("5min", every="1min")["time"])


def test_a_series_is_windows_one_after_the_other():
    data = rows(2000)
    state = live().observe(**data)
    series = state.series("3min", every="1min")
    newest = int(data["time"].max()) // 60 * 60 + 60
    ends = [newest - 180, newest - 120, newest - 60, newest]
    fine = [(end - 180, end) for end in ends]
    begin = (newest - 180) // 300 * 300  # from where five minutes are a window, as they are kept
    begin = begin if begin < newest - 180 else begin - 300
    coarse = [(end - 300, end) for end in range(newest // 300 * 300 - 600, begin + 1, 300)]
    times = zip(series["start"].astype(np.int64), series["time"].astype(np.int64), strict=True)
    assert [(a // 10**9, b // 10**9) for a, b in times] == [*coarse, *fine]
    for place, (start, end) in enumerate([*coarse, *fine]):
        window = chosen(data, start, end)
        assert series["n_rows"][place] == window.n_rows
        for name, value in window.compute().items():
            low, high = window.bounds()[name]
            found = [series[column][place] for column in (name, f"{name}_low", f"{name}_high")]
            assert found == [value, low, high]
    single = sm.Live(sm.Mean()).observe(time=[START, START + 3600], values=[1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of the windows between, which are nan
        columns = single.series("1min", every="1min")
    assert list(columns) == ["time", "n_rows", "coverage", "start", "value", "low", "high"]
    assert np.isnan(columns["value"]).sum() == len(columns["value"]) - 2


# --- history is one line ----------------------------------------------------------------------

HISTORY = [
    [("1min", "3h"), ("1h", "5d"), ("1d", "40d")],
    [("1min", "3h"), ("1h", "5d"), ("1d", "40d", "Europe/Berlin")],
    [("5min", "3h"), ("1d", "40d", "Asia/Kolkata")],
    [("1h", "5d"), ("1d", "40d", "America/New_York")],
    [("10min", "1h"), ("20min", "1d"), ("2h", "10d"), ("1d", "40d")],
]
DAYS = 35
OCTOBER = 1_791_504_000  # 2026-10-09: the clock is changed in Berlin and New York in these weeks


def stored(tiers, **parameters):
    """Return a live state with a row each 10 minutes for weeks, the last one at some odd time."""
    state = sm.Live(sm.Mean(), tiers=tiers, max_ahead=None, **parameters)
    times = OCTOBER + 600 * np.arange(DAYS * 144 + 41) + 17
    return state.observe(time=times, values=np.arange(len(times)) % 7.0), times


def seconds(column):
    return column.astype("datetime64[s]").astype(np.int64)


@pytest.mark.parametrize(
    ("tiers", "window", "every"),
    some(
        [
            (tiers, *asked)
            for tiers in HISTORY
            for asked in (("1h", "1h"), ("1h", "20min"), ("2h", "1h"))
        ],
        every=2,
    ),
)
def test_a_line_reaches_as_far_back_as_there_are_rows(tiers, window, every):
    if (tiers[0][0], every) == ("1h", "20min"):
        every = "2h"
    state, times = stored(tiers)
    series = state.series(window, every=every)
    starts, ends = seconds(series["start"]), seconds(series["time"])
    assert starts[0] <= times[0]
    assert (np.diff(ends) > 0).all()
    held = [int(((times >= a) & (times < b)).sum()) for a, b in zip(starts, ends, strict=True)]
    assert series["n_rows"].tolist() == held
    values = [np.mean(np.arange(len(times))[(times >= a) & (times < b)] % 7) for a, b in
              zip(starts, ends, strict=True)]  # fmt: skip
    np.testing.assert_allclose(series["value"], values, rtol=1e-14)
    if every != "2h" and (
        len(tiers) > 2 or tiers[0][0] == "1h"
    ):  # else a day is longer than what there is of minutes
        assert (starts[1:] <= ends[:-1]).all()  # no row is in none


def test_a_long_history_with_few_panes_is_few_nodes():
    tree = PaneTree(Plan(()), 1 << 20)
    tree.states.update(dict.fromkeys((300, 303, 70_000)))
    assert [*tree._run(1, 1 << 20)] == [(8, 1), (16, 1)]
    assert [*tree._run(301, 70_000)] == [(0, 303), (0, 70_000)]
    assert [*tree._run(304, 69_999)] == []


def test_whole_days_of_a_line_are_those_of_the_calendar():
    zone = ZoneInfo("Europe/Berlin")
    state, times = stored([("1h", "20d"), ("1d", "60d", zone.key)])
    series = state.series("1d", every="1d")
    for start, end in zip(seconds(series["start"]), seconds(series["time"]), strict=True):
        first, last = (datetime.fromtimestamp(int(time), zone) for time in (start, end))
        assert (first.hour, last.hour, (last.date() - first.date()).days) == (0, 0, 1)
    lengths = (seconds(series["time"]) - seconds(series["start"])) // 3600
    assert {*lengths.tolist()} == {24, 25}
    assert series["n_rows"].sum() == len(times)
    # The day of 25 hours is one also where hours are kept.
    end = datetime(2026, 10, 26, tzinfo=zone)
    assert state.window("1d", end=end).n_rows == 150
    start, until = state.span("1d", end=end)
    assert (until - start, until) == (timedelta(hours=25), end)
    assert state.window("1d", end=end + timedelta(hours=1)).n_rows == 144


def test_a_line_by_key_reaches_as_far_back():
    data, state = rows(2000), live(by="country")
    state.observe(**data, country=["DE", "FR"] * 1000)
    alone, by = (state.series("1min", every="1min", by=by) for by in (None, "country"))
    assert [*dict.fromkeys(by["time"].tolist())] == alone["time"].tolist()
    assert list(by)[:4] == ["time", "country", "n_rows", "start"]
    assert by["n_rows"].sum() == alone["n_rows"].sum()


def test_an_old_window_says_which_span_it_is_of():
    state, times = stored([("1min", "3h"), ("1h", "5d"), ("1d", "40d")])
    newest = int(times[-1]) // 60 * 60 + 60
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state.window("1h", end=newest - 60)
        hour = (newest - 86_400) // 3600 * 3600
        whole = state.window("1h", end=hour)
    said = (
        r"of 1h that ends at .*:30:00.* is made of panes of 1h for 5d.*from .*:00:00.* to .*:00:00"
    )
    for read in (state.window, state.coverage, state.possible):
        with pytest.warns(UserWarning, match=said):
            read("1h", end=hour - 1800)
    with pytest.warns(UserWarning, match=said):
        assert state.window("1h", end=hour - 1800).to_bytes() == whole.to_bytes()
    start, end = state.span("1h", end=hour - 1800)
    assert (start.timestamp(), end.timestamp()) == (hour - 3600, hour)
    assert state.span("1h", end=newest - 60)[1].timestamp() == newest - 60


# --- others go on while a window is merged ----------------------------------------------------


def in_between(monkeypatch, state, call=None):
    """Call something in another thread whenever states are merged; return where each was.

    Of each merge of the suite in this thread it says whether the lock was held.
    """
    merged, main, held = Plan.merged, threading.get_ident(), []

    def watched(plan, *arguments):
        if threading.get_ident() == main and plan is state._suite._plan:
            held.append(state._shared._guard._lock._is_owned())
            if call is not None and not held[-1]:
                other = threading.Thread(target=call, daemon=True)
                other.start()
                other.join(60)
                assert not other.is_alive()
        return merged(plan, *arguments)

    monkeypatch.setattr(Plan, "merged", watched)
    return held


@pytest.mark.parametrize("labels_come", [False, True])
def test_nothing_of_a_window_is_merged_with_the_lock_held(monkeypatch, labels_come):
    tiers = [("1min", "3h"), ("1h", "5d"), ("1d", "40d")]
    state = sm.Live(sm.MAE(), tiers=tiers, max_ahead=None)
    times = OCTOBER + 600 * np.arange(3000)
    if labels_come:
        state.predict(id=times, time=times, y_pred=np.ones(3000))
        state.label(id=times[::2], time=times[::2] + 60, y_true=np.zeros(1500))
    else:
        state.observe(time=times, y_true=np.zeros(3000), y_pred=np.ones(3000))
    state.flush()
    held = in_between(monkeypatch, state)
    for read in (state.window, lambda window: state.possible(window, target_range=(0, 1))):
        read("3h")
        read("40d")
    state.series("2h", every="1h")
    assert len(held) > 20
    assert not any(held)


def test_events_come_in_while_a_long_history_is_merged(monkeypatch):
    state, times = stored([("1min", "3h"), ("1h", "5d"), ("1d", "40d")])
    came = []

    def observe():
        time = int(times[len(came) * 97 % len(times)])  # in panes of all tiers
        state.observe(time=[time], values=[1.0])
        came.append(time)

    in_between(monkeypatch, state, observe)
    before = state.window("40d").n_rows
    assert came
    assert len(times) <= before <= len(times) + len(came)
    series = state.series("1d", every="1d")
    state.series("1h", every="1h")
    assert series["n_rows"].sum() >= len(times)
    monkeypatch.undo()
    assert len(came) > 30
    again = sm.from_bytes(state.to_bytes())
    for window in ("1h", "3h", "5d", "40d"):  # nothing that was merged meanwhile is kept
        assert state.window(window).to_bytes() == again.window(window).to_bytes()
    assert state.window("40d").n_rows == len(times) + len(came)


def test_windows_whose_panes_leave_while_they_are_read_are_read_anew(monkeypatch):
    state, times = stored([("1min", "1h"), ("1h", "2d")])
    newest = [int(times[-1])]

    def observe():
        newest[0] += 1800
        state.observe(time=[newest[0]], values=[1.0])

    in_between(monkeypatch, state, observe)
    whole = state.window("1h")
    first = state.window("2d")
    series = state.series("1h", every="20min")
    monkeypatch.undo()
    assert whole.n_rows >= 1
    assert first.n_rows > 200
    every = np.append(times, np.arange(int(times[-1]) + 1800, newest[0] + 1, 1800))
    starts, ends = seconds(series["start"]), seconds(series["time"])
    for start, end, n in zip(starts, ends, series["n_rows"].tolist(), strict=True):
        assert n <= ((every >= start) & (every < end)).sum()
        if end <= times[-1]:  # what was there from the first is all there
            assert n == ((times >= start) & (times < end)).sum()


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


GAPS = [2 * 3600, 86400, 3 * 86400, 17 * 86400, 390 * 86400]
TIERS = [("1min", "1h"), ("1h", "2d"), ("1d", "400d")]


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("reads", [False, True])
def test_rows_before_a_gap_longer_than_a_tier_are_in_the_next_one(gap, reads):
    """Panes that expire from two tiers at once were dropped, though the third keeps them."""
    suite, old = sm.MetricSet({"accuracy": sm.Accuracy()}), START // 86400 * 86400
    first = {"time": [old + i for i in range(100)], "y_true": [1] * 100, "y_pred": [0, 1] * 50}
    live, turned = (sm.Live(suite, tiers=TIERS) for _ in range(2))
    live.observe(**first)
    if reads:
        assert live.window("1h").n_rows == 100
    live.observe(time=old + gap, y_true=1, y_pred=1)
    turned.observe(time=old + gap, y_true=1, y_pred=1).observe(**first)
    assert (live.window("400d").n_rows, live.dropped) == (101, 0)
    assert live.window("400d").compute()["accuracy"] == 51 / 101
    assert live.to_bytes() == turned.to_bytes()


def test_a_label_may_be_the_first_event_after_a_gap():
    suite = sm.MetricSet({"accuracy": sm.Accuracy(threshold=0.5)})
    live = sm.Live(suite, label_ttl="5min", label_lateness="5min", tiers=TIERS)
    ids, times = [f"r{i}" for i in range(100)], [START + i for i in range(100)]
    live.predict(id=ids, time=times, y_score=[0.75] * 100)
    live.label(id=ids, time=times, y_true=[i % 2 for i in range(100)])
    live.label(id="r99", time=START + 3 * 86400, y_true=0)
    assert live.window("10d").n_rows == 100
    live.predict(id="n", time=START + 3 * 86400 + 60, y_score=0.75)
    assert (live.window("10d").n_rows, live.dropped) == (100, 0)
