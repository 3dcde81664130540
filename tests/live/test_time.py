"""Times, durations, tiers and calendar days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest

import streammetrics as sm
from streammetrics.live.events import (
    DAY,
    SECOND,
    Tier,
    duration,
    instant,
    instants,
    shown_duration,
    tiers_of,
)

AT = 1_700_000_000
WHEN = datetime.fromtimestamp(AT, UTC)


@pytest.mark.parametrize(
    "value",
    [
        AT,
        float(AT),
        np.float64(AT),
        np.int64(AT),
        WHEN,
        WHEN.astimezone(timezone(timedelta(hours=5, minutes=30))),
        np.datetime64(AT, "s"),
        np.datetime64(AT * 10**3, "ms"),
        pd.Timestamp(WHEN),
        "2023-11-14T22:13:20Z",
        "2023-11-14T23:13:20+01:00",
    ],
    ids=repr,
)
def test_every_way_to_say_when_is_the_same_time(value):
    assert instant(value) == AT * SECOND


@pytest.mark.parametrize(
    "column",
    [
        [AT, AT + 0.5],
        np.array([AT, AT + 0.5]),
        np.array([AT * 10**3, AT * 10**3 + 500], "datetime64[ms]"),
        [WHEN, WHEN + timedelta(milliseconds=500)],
        pd.Series([WHEN, WHEN + timedelta(milliseconds=500)]),
        pd.Series([WHEN, WHEN + timedelta(milliseconds=500)]).dt.tz_convert("Asia/Kolkata"),
        pd.Series([WHEN, WHEN + timedelta(milliseconds=500)]).dt.tz_localize(None),
        pl.Series([WHEN, WHEN + timedelta(milliseconds=500)]),
        pl.Series([WHEN, WHEN + timedelta(milliseconds=500)]).dt.replace_time_zone(None),
        pl.Series([WHEN, WHEN + timedelta(milliseconds=500)]).to_arrow(),
    ],
    ids=lambda column: type(column).__module__,
)
def test_columns_of_times(column):
    assert instants(column).tolist() == [AT * SECOND, AT * SECOND + SECOND // 2]


def test_seconds_are_cut_at_exact_places():
    below = np.nextafter(float(AT), 0)
    assert instants([below, AT])[0] // SECOND == AT - 1
    assert instant(below) == instants(np.array([below]))[0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (datetime(2026, 1, 1), r"time is naive, first in row 0 \('2026-01-01T00:00:00'\); a date"),
        (AT * 1000, r"not between 1970 and 2200, .*divide milliseconds by 1000"),
        (AT * 10**9, "divide milliseconds by 1000"),
        (-1.0, "not between 1970 and 2200"),
        (float("nan"), "time is missing"),
        (float("inf"), "not between 1970 and 2200"),
        ("2026-01-01", "time is naive"),
        ("yesterday", "not a time in ISO 8601"),
        (None, "time is missing"),
        (True, "time holds bool|time is not a time"),
        (np.datetime64("NaT"), "missing"),
        (np.datetime64("2300-01-01"), "not between"),
        (datetime(1969, 12, 31, tzinfo=UTC), "not between"),
        (datetime(2200, 1, 1, tzinfo=UTC), "not between"),
    ],
    ids=repr,
)
def test_what_is_no_time_is_refused_and_changes_nothing(value, message):
    live = sm.Live(sm.Mean(), max_ahead=None)
    before = live.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=message):
        live.observe(time=value, values=1.0)
    with pytest.raises(sm.InvalidBatchError, match=message.replace("row 0", "row 1")):
        live.observe(time=[WHEN, value], values=[1.0, 2.0])
    with pytest.raises(sm.InvalidBatchError, match=message.replace("row 0", "row 1")):
        live.observe(time=[float(AT), value], values=[1.0, 2.0])
    assert live.to_bytes() == before


def test_durations():
    assert duration("90s", "x") == duration("1.5min", "x") == 90 * SECOND
    assert duration(timedelta(hours=1), "x") == duration("1h", "x") == 3600 * SECOND
    assert duration("7d", "x") == duration("1w", "x") == 7 * DAY
    assert [shown_duration(duration(text, "x")) for text in ("90s", "5min", "48h")] == [
        "90s", "5min", "2d",
    ]  # fmt: skip
    for wrong in ("", "5", "min", "-1h", "0s", 60, None, "1 fortnight", timedelta(0), "0.3ns"):
        with pytest.raises(ValueError, match="is not a duration: write"):
            duration(wrong, "window")


@pytest.mark.parametrize(
    ("tiers", "message"),
    [
        ([], "expected pairs"),
        ("1min", "expected pairs"),
        ([("1min",)], "expected"),
        ([("1min", "90s")], "not a whole number of panes"),
        ([("1min", "1h"), ("90s", "3h")], "must be a multiple of 1min"),
        ([("1min", "3h"), ("1h", "2h")], "less far back"),
        ([("7min", "70min")], "do not divide a day"),
        ([("1h", "2d", "Europe/Berlin")], "only panes of 1d are of a zone"),
        ([("1d", "2d", "Europe/Atlantis")], "'Europe/Atlantis' is not a time zone"),
        ([("1s", "400d")], "more than"),
    ],
)
def test_what_are_no_tiers(tiers, message):
    with pytest.raises(ValueError, match=message):
        sm.Live(sm.Mean(), tiers=tiers)


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/Sao_Paulo", "America/Havana", "Asia/Kolkata", "Pacific/Apia"]
)
def test_calendar_days_begin_at_midnight_through_every_change_of_the_clock(zone):
    (tier,) = tiers_of([("1d", "400d", zone)])
    first = datetime(2011, 1, 1, tzinfo=UTC)
    times = np.array(
        [int((first + timedelta(hours=h)).timestamp()) for h in range(0, 24 * 3000, 7)]
    )
    epoch = datetime(1970, 1, 1).toordinal()
    local = [datetime.fromtimestamp(t, ZoneInfo(zone)).toordinal() - epoch for t in times.tolist()]
    numbers = tier.numbers(times * SECOND)
    assert numbers.tolist() == local
    assert all(
        tier.number(t * SECOND) == n for t, n in zip(times.tolist()[:50], local, strict=False)
    )
    assert all(tier.number(tier.start(n)) == n for n in local[::30])
    assert all(tier.number(tier.start(n) - 1) < n for n in local[::30])


def test_days_of_23_and_25_hours():
    tier = Tier(DAY, 400, "Europe/Berlin")
    spring, autumn = (
        tier.number(instant("2026-03-29T12:00Z")),
        tier.number(instant("2026-10-25T12:00Z")),
    )
    hours = [(tier.start(day + 1) - tier.start(day)) // (3600 * SECOND) for day in (spring, autumn)]
    assert hours == [23, 25]
    live = sm.Live(
        sm.Count(), tiers=[("1h", "2d"), ("1d", "400d", "Europe/Berlin")], max_ahead=None
    )
    start = instant("2026-10-24T22:00Z") // SECOND
    live.observe(time=start + 3600 * np.arange(26), values=np.ones(26))
    assert live.window("3d", end="2026-10-26T00:00+01:00").compute() == 25
    assert live.window("3d").compute() == 26


@pytest.mark.parametrize("name", ["label_ttl", "label_lateness", "tiers"])
def test_lengths_that_lead_past_all_times_are_refused(name):
    told = {name: "10001d" if name != "tiers" else [("10001d", "20002d")]}
    with pytest.raises(ValueError, match="is 10001d: at most 10000d"):
        sm.Live(sm.Mean(), **told)
    most = {"label_ttl": "10000d", "label_lateness": "10000d"}
    live = sm.Live(sm.MAE(), max_ahead=None, **most)
    live.predict(id=1, time="2199-12-31T00:00:00Z", y_pred=1.0)
    assert live.coverage("1h").pending == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2016-12-31T23:59:60Z", 1483228800),  # as the second that follows it, which POSIX counts
        ("2016-12-31T23:59:60.0+00:00", 1483228800),
        ("2017-01-01T00:59:60+01:00", 1483228800),
        ("2016-12-31T23:59:60.5Z", 1483228800.5),
        ("2016-12-31T24:00Z", 1483228800),
        ("2016-12-31 24:00:00+00:00", 1483228800),
        ("2016-12-31T24:00:00.000+02:00", 1483221600),
    ],
)
def test_the_ends_of_days_are_the_beginnings_of_the_next(text, seconds):
    assert instant(text) == seconds * SECOND


@pytest.mark.parametrize(
    "text",
    ["2016-12-31T23:58:60Z", "2016-12-31T24:01Z", "2016-12-31T23:59:61Z", "2016-12-31T24:00:01Z",
     "2016-12-31T23:59:60.5.5Z", "9999-12-31T24:00Z", "2016-12-31T25:00Z"],
)  # fmt: skip
def test_other_times_beyond_their_day_are_refused_by_row_and_value(text):
    with pytest.raises(sm.InvalidBatchError, match=f"first in row 1 .'{text}'"):
        instants(["2016-12-31T00:00Z", text])


def test_a_text_among_seconds_is_told_by_its_own_row():
    """A column of a text file is text if one value is no number, and the first row was blamed."""
    with pytest.raises(sm.InvalidBatchError, match=r"first in row 2 .'yesterday'"):
        instants(["1795866294.06", "1795866295", "yesterday"])
    with pytest.raises(sm.InvalidBatchError, match=r"ISO 8601, .* first in row 0 .'1'"):
        instants(["1", "2"])


@pytest.mark.parametrize("value", ["9" * 5000 + "h", "73001d", timedelta(days=80_000), "1" * 70])
def test_a_duration_that_is_too_long_is_refused_in_a_short_sentence(value):
    with pytest.raises(
        ValueError, match="window=.* is too long: the longest duration is 73000d"
    ) as found:
        duration(value, "window")
    assert len(str(found.value)) < 150


def test_the_longest_duration_is_read():
    assert duration("73000d", "window") == duration(timedelta(days=73_000), "window")
