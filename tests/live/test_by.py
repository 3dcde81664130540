"""Slices over time: a pane is a grouped statistic, by time and by key."""

from __future__ import annotations

import datetime
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from live.events import START, SUITE, TIERS, rows
from thinning import drawn

import streammetrics as sm
from streammetrics.live.pipeline import merged
from streammetrics.live.queries import Wholes

BY = [["country"], ["country", "new"], [sm.Bins("age", [18, 50])]]
COUNTRIES = ["DE", "FR", None, "ES"]


def sliced(**parameters):
    types = {} if "by" in parameters else {"types": {"new": "booleans"}}
    return sm.Live(sm.MetricSet(SUITE), **{"tiers": TIERS, "by": BY, **types, **parameters})


def expected(events, by, **parameters):
    slices = sm.Slices(sm.MetricSet(SUITE), by=[by], overflow="other", **parameters)
    return slices.update(events) if len(events["y_true"]) else slices


def some(data, kept):
    return {name: np.asarray(column)[kept] for name, column in data.items() if name != "time"}


def with_keys(n, seed=0):
    dice = np.random.default_rng(seed + 1000)
    keys = {
        "country": np.array(COUNTRIES, object)[dice.integers(0, 4, n)],
        "new": dice.integers(0, 2, n) == 1,
        "age": dice.integers(10, 70, n).astype(float),
    }
    return {**rows(n, seed), **keys}


def one_by_one(into, data):
    for row in zip(*[np.asarray(column).tolist() for column in data.values()], strict=True):
        into.observe(**dict(zip(data, row, strict=True)))
    return into


def test_a_window_by_key_is_the_slices_of_its_rows():
    data = with_keys(800)
    state = sliced().observe(**data)
    newest = int(data["time"].max()) // 60 * 60 + 60
    inside = some(data, data["time"] >= newest - 300)
    for by, kind in [("country", "country"), (["new", "country"], ["country", "new"])]:
        found = state.window("5min", by=by)
        assert isinstance(found, sm.Slices)
        assert found.to_bytes() == expected(inside, kind).to_bytes()
    ages = state.window("5min", by="age")
    assert ages.to_bytes() == expected(inside, [sm.Bins("age", [18, 50])]).to_bytes()
    whole = sm.MetricSet(SUITE).update(y_true=inside["y_true"], y_score=inside["y_score"])
    assert state.window("5min").to_bytes() == whole.to_bytes()
    assert state.decayed("1h").keys() == whole.keys()
    assert state.n_rows > whole.n_rows


def test_events_one_by_one_are_those_of_columns():
    data = with_keys(300)
    state = one_by_one(sliced(), data)
    assert state._ingest.observed.waiting  # they have waited
    assert state == sliced().observe(**data)
    assert sm.from_bytes(state.to_bytes()) == state
    assert repr(state).startswith("Live(Slices(")


@drawn(5, 20, st.integers(0, 25), st.integers(1, 5), st.randoms(use_true_random=False))
def test_any_order_and_merge_tree_gives_one_state_however_many_keys(n, most, random):
    data = with_keys(n, seed=n)
    whole = sliced(max_slices=most).observe(**data)
    order = random.sample(range(n), n)
    states = [sliced(max_slices=most) for _ in range(3)]
    for place in order:
        part = {name: np.asarray(column)[[place]] for name, column in data.items()}
        random.choice(states).observe(**part)
    first, second, third = states
    second = sm.from_bytes(second.to_bytes())
    assert first.merge(second.merge(third)).to_bytes() == whole.to_bytes()
    newest = int(data["time"].max()) // 60 * 60 + 60 if n else 0
    inside = some(data, data["time"] >= newest - 360)
    mine = whole.window("6min", by="country")
    assert mine.to_bytes() == expected(inside, "country", max_slices=most).to_bytes()


def test_predictions_bring_the_keys_and_labels_come_to_them(tmp_path):
    data = with_keys(200)
    day = [datetime.date(2026, 1, 1 + place % 3) for place in range(200)]
    by = [["country", "day"]]
    columns = {"country": data["country"], "day": day, "y_score": data["y_score"]}
    opened = partial(
        sliced,
        by=by,
        label_ttl="1h",
        label_lateness="1h",
        store=tmp_path / "live.db",
        types={"day": "dates"},
    )
    state = opened()
    state.predict(
        id=np.arange(100), time=data["time"][:100], **{k: v[:100] for k, v in columns.items()}
    )
    for place in range(100, 200):
        row = {name: column[place] for name, column in columns.items()}
        state.predict(id=place, time=data["time"][place], **row)
    state.label(id=np.arange(0, 200, 2), time=data["time"][::2] + 9, y_true=data["y_true"][::2])
    newest = int(data["time"].max()) // 60 * 60 + 60
    kept = (data["time"] >= newest - 300) & (np.arange(200) % 2 == 0)
    rows_kept = {"y_true": data["y_true"][kept], "y_score": data["y_score"][kept]}
    keys = {name: [columns[name][k] for k in np.flatnonzero(kept)] for name in ("country", "day")}
    slices = sm.Slices(sm.MetricSet(SUITE), by=by, overflow="other").update(**rows_kept, **keys)
    for one in (state, sm.from_bytes(state.to_bytes())):
        assert one.window("5min", by=["country", "day"]).to_bytes() == slices.to_bytes()
    assert state.possible("5min")["accuracy"].low <= state.window("5min").compute()["accuracy"]
    state.close()
    again = opened()
    assert again == state
    again.close()


def test_the_newest_rows_and_a_series_by_key():
    data = {name: c for name, c in with_keys(500).items() if name not in {"new", "age"}}
    state = sliced(by="country", keep_rows=100).observe(**data)
    slices = state.last(100, by="country")
    assert slices.n_rows == 100
    assert slices[{"country": "DE"}].n_rows > 0
    assert state.last(100) == slices[{}]
    series = state.series("5min", every="1min", by="country")
    assert list(series)[:3] == ["time", "country", "n_rows"]
    last = series["time"] == series["time"][-1]
    table = state.window("5min", by="country").compute()
    assert series["auc"][last].tolist() == table["auc"].tolist()
    assert (series["auc_low"] <= series["auc_high"]).all()


def test_windows_of_a_series_are_those_of_all_rows_across_slices():
    state, data = sliced(label_ttl="5min", label_lateness="5min"), with_keys(300)
    data = {name: np.asarray(column)[np.argsort(data["time"])] for name, column in data.items()}
    data["id"] = np.arange(300)
    for first in range(0, 300, 10):
        few = {name: column[first : first + 10] for name, column in data.items()}
        labels = {name: few[name][::2] for name in ("id", "time", "y_true")}
        del few["y_true"]
        state.predict(**few).label(**labels)
    queries = state._queries
    wholes, windows = Wholes(queries.suite), [*queries.windows(queries.spans("5min", "1min"))]
    assert len(windows) > 2
    for window in windows:
        found = queries.shown(merged(queries.suite, window.parts)).to_bytes()
        assert wholes.shown(window.parts).to_bytes() == found
    assert state.window("5min").to_bytes() == found


def test_what_is_no_slice_is_refused():
    with pytest.raises(TypeError, match=r"Live\(suite, by=...\)"):
        sm.Live(sm.Slices(sm.MetricSet(SUITE), by="country"))
    with pytest.raises(TypeError, match="Slices are of a MetricSet"):
        sm.Live(sm.Mean(), by="country")
    with pytest.raises(ValueError, match="nothing is sliced here"):
        sm.Live(sm.MetricSet(SUITE)).window("1h", by="country")
    state = sliced().observe(**with_keys(20))
    before = state.to_bytes()
    with pytest.raises(ValueError, match="no slices by"):
        state.window("5min", by="device")
    for call, columns, message in [
        (state.observe, {"y_true": 1, "y_score": 0.5}, "no column 'country'"),
        (state.predict, {"id": 1, "y_score": 0.5, "country": "DE", "new": True}, "'age'"),
        (
            state.observe,
            {"y_true": 1, "y_score": 0.5, "country": 1.5, "new": True, "age": 3},
            "is not a key to slice by",
        ),
        (
            state.observe,
            {"y_true": 1, "y_score": 0.5, "country": 3, "new": True, "age": 3},
            "country has integers, .* declared to have text: types={'country': 'integers'}",
        ),
    ]:
        with pytest.raises(sm.InvalidBatchError, match=message):
            call(time=START, **columns)
    assert state.to_bytes() == before
    with pytest.raises(sm.IncompatibleMetricsError, match="by"):
        state.merge(sliced(by="country"))


def test_a_date_without_a_time_is_text_and_the_error_says_how_to_write_it():
    state = sm.Live(sm.MetricSet({"a": sm.Accuracy()}), by="day", types={"day": "dates"})
    with pytest.raises(sm.InvalidBatchError, match="a date is written 2000-01-31T00:00:00, and ty"):
        state.observe(time=START, y_true=1, y_pred=1, day="2026-01-02")
    state.observe(time=START, y_true=1, y_pred=1, day="2026-01-02T00:00:00")
    state.observe(time=START, y_true=1, y_pred=1, day=datetime.date(2026, 1, 2))
    assert state.window("5min", by="day").n_slices == 1


def test_keys_in_columns_of_arrow_go_with_labels_that_follow():
    state = sliced(by=[["country"]])
    country = pa.array(["DE", None]).dictionary_encode()
    state.predict(id=[1, 2], time=[START, START], y_score=[0.25, 0.75], country=country)
    state.label(id=[1, 2], time=[START + 5] * 2, y_true=[0, 1])
    assert state.window("5min", by="country").n_rows == 2
