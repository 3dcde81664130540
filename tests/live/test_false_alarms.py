"""Rules raise no more false alarms than they promise, in simulated weeks of a fixed seed."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from benchmarks import alerts
from benchmarks.alerts import DAY, ROWS, SLICE_ROWS, SLICES, Events, Floors, Rates, Sliced, Streams

import streammetrics as sm


class Daily(Rates):
    """The rule with most false alarms, so that a few weeks show whether there are too many."""

    name = '`Change("errors", 0.10)`, 1 a day'
    thresholds: ClassVar = {}
    burns: ClassVar = {}
    shifts: ClassVar = {name: Rates.shifts[name]}
    promises: ClassVar = {name: Rates.promises[name]}


@pytest.mark.long
@pytest.mark.parametrize(
    ("table", "weeks"),
    [(Daily, 20), (Streams, 4), (Sliced, 3), (Floors, 3), (Events, 4)],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_promises_are_kept(table, weeks):
    rngs = [np.random.default_rng((20, week)) for week in range(weeks)]
    quiet, _ = alerts.counted(
        (alerts.Job("", None, ()), alerts.quiet_week(table(), rng)) for rng in rngs
    )
    assert alerts.broken(table(), quiet) == []
    assert {one.weeks for one in quiet.values()} == {weeks}


@pytest.mark.parametrize(
    ("quiet", "promise", "broken"),
    [
        (alerts.Quiet(10, 10.0, 14), alerts.Promise(1.0), False),
        (alerts.Quiet(10, 10.0, 30), alerts.Promise(1.0), True),
        (alerts.Quiet(10, 3.0, 14), alerts.Promise(1.0), True),
        (alerts.Quiet(10, 9.0, 90, 1000, 14), alerts.Promise(0.01, of_windows=True), False),
        (alerts.Quiet(10, 10.0, 0, 1000, 30), alerts.Promise(0.01, of_windows=True), True),
    ],
)
def test_a_promise_is_broken_beyond_chance(quiet, promise, broken):
    assert quiet.breaks(promise) is broken


def test_limits_are_those_of_poisson():
    low, high = alerts.Quiet(2, 2.0, 10).limits
    assert (2 * low, 2 * high) == pytest.approx((4.7954, 18.3904), abs=1e-4)
    assert alerts.Quiet(1, 1.0).limits == pytest.approx((0, 3.6889), abs=1e-4)


@pytest.mark.long
def test_rates_fire_as_they_do_in_live():
    minutes, change = DAY + 120, 0.15
    told = Rates().fires(np.random.default_rng(3), minutes, change)
    wrong = alerts.rows_of(np.random.default_rng(3), minutes, change).ravel()
    suite = sm.MetricSet({"errors": sm.ZeroOneLoss(), "accuracy": sm.Accuracy()})
    live = sm.Live(suite, tiers=[("1min", "3d")])
    ones = np.ones(wrong.size, np.int64)
    live.observe(time=np.arange(wrong.size) * 60 / ROWS, y_true=ones, y_pred=1 - wrong)
    rules = {**Rates.thresholds, **Rates.burns, **Rates.shifts}
    found = alerts.alerts_of(live, rules, minutes, 1)
    assert {name: fires.tolist() for name, fires in found.items()} == {
        name: told[name].tolist() for name in rules
    }
    assert sum(fires.any() for fires in found.values()) > 5


@pytest.mark.long
def test_slices_fire_as_they_do_in_live():
    panes = 330
    counts = Sliced().stream(np.random.default_rng(4), panes, 0.7)
    told = Sliced().fires(np.random.default_rng(4), 5 * panes, 0.7)
    places = np.tile(np.arange(SLICE_ROWS), (panes, SLICES, 1))
    who = np.broadcast_to(np.arange(SLICES)[None, :, None], places.shape).ravel()
    times = np.repeat(300.0 * np.arange(panes), SLICES * SLICE_ROWS)
    live = sm.Live(sm.MetricSet({"accuracy": sm.Accuracy()}), tiers=[("5min", "3d")], by="who")
    right = (places < counts[:, :, None]).ravel().astype(np.int64)
    live.observe(time=times, y_true=np.ones_like(right), y_pred=right, who=who.astype(str))
    full = {"by": "who", "min_rows": alerts.HOUR_ROWS}
    rules = {
        '`Below("accuracy", 0.90, by="who")`, 1h': sm.Below("accuracy", 0.90, **full),
        '`Below("accuracy", 0.90, by="who", level=0.9)`, 1h': sm.Below(
            "accuracy", 0.90, level=0.9, **full
        ),
        '`Change("accuracy", 0.90, by="who")`, 1 a year': sm.Change("accuracy", 0.90, by="who"),
    }
    found = alerts.alerts_of(live, rules, panes, 5)
    for name, fires in found.items():
        assert fires.any()
        assert fires.tolist() == told[name].tolist(), name
