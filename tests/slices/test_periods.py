"""Slices of times: the same of any library and of text, whatever the batches."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import streammetrics as sm
from streammetrics.testing import laws

TIMES = [
    "2025-12-31 23:59:59", "2026-01-01 00:00:00", "2026-01-04 23:00:00", "2026-01-05 00:30:00",
    None, "1969-12-31 12:00:00", "2024-02-29 08:00:00", "2026-01-05 00:31:00",
    "2026-03-31 10:00:00.250000",
]  # fmt: skip
KEYS = {
    "hour": lambda time: f"{time:%Y-%m-%d %H}:00",
    "day": lambda time: time.date(),
    "week": lambda time: time.date() - datetime.timedelta(time.weekday()),
    "month": lambda time: f"{time:%Y-%m}",
}
MOMENTS = [None if text is None else datetime.datetime.fromisoformat(text) for text in TIMES]
COLUMNS = {
    "text": TIMES,
    "text with T": [None if text is None else text.replace(" ", "T") for text in TIMES],
    "text of UTC": [None if text is None else f"{text}Z" for text in TIMES],
    "Python": MOMENTS,
    "NumPy": np.array(MOMENTS, "datetime64[us]"),
    "pandas": pd.Series(MOMENTS, dtype="datetime64[ns]"),
    "polars": pl.Series(MOMENTS),
    "Arrow": pa.array(MOMENTS),
    "Arrow of UTC": pa.array(MOMENTS, pa.timestamp("us", "UTC")),
    "dictionary": pa.array(TIMES).dictionary_encode(),
}


def slices(period, **options):
    by = [[], [sm.Periods("when", period)]]
    return sm.Slices(sm.MetricSet({"n": sm.Count()}), by=by, **options)


def fed(column, period):
    return slices(period).update({"values": np.ones(len(TIMES)), "when": column})


@pytest.mark.parametrize("period", KEYS)
@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_periods_are_those_of_the_calendar(column, period):
    state = fed(column, period)
    assert state.to_bytes() == fed(TIMES, period).to_bytes()
    keys = [None if moment is None else KEYS[period](moment) for moment in MOMENTS]
    table = state.compute()
    found = dict(zip(table["when"].tolist()[1:], table["n_rows"].tolist()[1:], strict=True))
    assert found == {key: keys.count(key) for key in keys}


@pytest.mark.parametrize("period", KEYS)
def test_laws_hold(period):
    table = {"values": np.arange(9.0), "when": np.array(TIMES, object)}
    case = laws.Case(slices(period), table)
    for law in (laws.splits, laws.monoid, laws.travels):
        law(case)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["2026-01-01", "soon"], r"when holds 'soon', first in row 1: expected times, as text"),
        ([1, 2], "when holds numbers; Periods need times"),
        (["2026-01-01T00:00:00+02:00"], r"times of the zone UTC\+02:00, first in row 0"),
    ],
)
def test_what_is_no_time_is_refused(column, message):
    with pytest.raises(sm.InvalidBatchError, match=message):
        slices("day").update({"values": np.ones(len(column)), "when": column})


def test_periods_are_refused_in_words():
    with pytest.raises(ValueError, match=r"expected 'hour', 'day', 'week' or 'month'"):
        sm.Periods("when", "year")
    with pytest.raises(TypeError, match="expected the name of a column first"):
        sm.Periods(3, "day")
    with pytest.raises(ValueError, match="'when' in two ways"):
        sm.Slices(
            sm.MetricSet({"n": sm.Count()}),
            by=[[sm.Periods("when", "day")], [sm.Periods("when", "hour"), "x"]],
        )
    assert slices("day") != slices("week")
    assert repr(sm.Periods("when", "day")) == "Periods('when', 'day')"


def written(tmp_path, column):
    """Return a CSV and a Parquet file of a column of times."""
    table = pa.table({"v": np.ones(len(column)), "when": column})
    pq.write_table(table, tmp_path / "t.parquet")
    pa.csv.write_csv(table, tmp_path / "t.csv")
    return [tmp_path / "t.csv", tmp_path / "t.parquet"]


def plain():
    return sm.Slices(sm.MetricSet({"n": sm.Count()}, columns={"values": "v"}), by="when")


@pytest.mark.parametrize("period", KEYS)
def test_csv_and_parquet_give_one_state(tmp_path, period):
    suite = sm.MetricSet({"n": sm.Count()}, columns={"values": "v"})
    empty = sm.Slices(suite, by=[[sm.Periods("when", period)]])
    states = {
        sm.evaluate(empty, path).to_bytes()
        for path in written(tmp_path, pa.array(MOMENTS, pa.timestamp("us")))
    }
    assert len(states) == 1


def test_times_alone_are_alike_in_csv_and_parquet(tmp_path):
    days = [None if moment is None else datetime.datetime(*KEYS["day"](moment).timetuple()[:3])
            for moment in MOMENTS]  # fmt: skip
    states = {
        sm.evaluate(plain(), path).to_bytes()
        for path in written(tmp_path, pa.array(days, pa.timestamp("s")))
    }
    assert len(states) == 1
    for path in written(tmp_path, pa.array(MOMENTS, pa.timestamp("us"))):
        with pytest.raises(sm.InvalidBatchError, match="times of day, first in row 0 .*Periods"):
            sm.evaluate(plain(), path)
    mixed = {"v": np.ones(2), "when": ["2026-01-01 00:00:00", "never"]}
    with pytest.raises(sm.InvalidBatchError, match="holds the time .* and other text"):
        plain().update(mixed)
