"""A metric that cannot be read has no value; everything beside it stays."""

from __future__ import annotations

import re
import time
import warnings

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.core.errors import UndefinedMetricWarning
from streammetrics.live.exporting.families import Exported
from streammetrics.live.service.app import application
from streammetrics.live.service.server import PageView

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what the client asks its own dependencies
    from starlette.testclient import TestClient

WHY = "the weights lie more than 2**1300 apart; give the smallest ones the weight 0"
WEIGHTS = (2.0**1000, 2.0**-1000, 1.0, 3.0)
RULES = [
    sm.Above("calibration", 0.1, window="5min", after="1min"),
    sm.Above("accuracy", 0.9, window="5min", after="1min"),
    sm.Change("accuracy", baseline=0.9, after="1min"),
]


@pytest.fixture
def live():
    """Return a live state with a window in which one of two metrics cannot be read."""
    metrics = {"calibration": sm.CalibrationError(), "accuracy": sm.Accuracy(threshold=0.5)}
    suite = sm.MetricSet(metrics, columns={"sample_weight": "weight"})
    found = sm.Live(suite, by="country", proxy="judge")
    start = time.time() - 300
    for i, weight in enumerate(WEIGHTS):
        found.predict(
            id=i, time=start, y_score=(i + 1) / 10, weight=weight, country="DE", judge=i % 2
        )
        found.label(id=i, time=start + 1, y_true=i % 2)
    found.now(start + 120)
    return found


def answers(live):
    shown = PageView(exported=Exported(slices=5, confidence=True, possible=True))
    with TestClient(
        application(live, rules=RULES, view=shown), base_url="http://localhost"
    ) as client:
        while not client.get("/api/alerts").json()["alerts"][0]["until"]:
            time.sleep(0.05)  # the first evaluation is not complete
        paths = ("now", "series", "possible", "estimated", "slices", "alerts")
        found = {path: client.get(f"/api/{path}") for path in paths}
        assert {answer.status_code for answer in found.values()} == {200}
        scrape = client.get("/metrics")
        assert scrape.status_code == 200
    return {path: answer.json() for path, answer in found.items()}, scrape.text


def test_all_answers_have_the_other_metrics(live):
    found, scrape = answers(live)
    metrics = found["now"]["metrics"]
    assert metrics["calibration"]["why"] == WHY
    assert {metrics["calibration"][part] for part in ("value", "low", "sure_low")} == {None}
    expected = live.window("1h")["accuracy"].compute()
    assert (metrics["accuracy"]["value"], metrics["accuracy"]["why"]) == (expected, None)
    series = found["series"]["metrics"]
    assert WHY in series["calibration"]["why"]
    assert expected in series["accuracy"]["value"]
    assert found["possible"]["metrics"]["calibration"] is None
    assert found["possible"]["metrics"]["accuracy"] == [expected, expected]
    assert found["estimated"]["metrics"]["accuracy"] is not None
    (table,) = found["slices"]["slices"]
    assert table["rows"] == [["DE", 4, None, expected]]
    assert 'streammetrics_value{metric="calibration",window="1h"} NaN' in scrape
    assert 'streammetrics_unreadable{metric="calibration",window="1h"} 1.0' in scrape
    assert 'streammetrics_unreadable{metric="accuracy",window="1h"} 0.0' in scrape
    assert f'streammetrics_value{{metric="accuracy",window="1h"}} {expected}' in scrape


def test_its_alert_has_no_data_with_the_reason_and_others_judge(live):
    found, _ = answers(live)
    states = {alert["name"]: alert for alert in found["alerts"]["alerts"]}
    calibration, above, change = (states[rule.title] for rule in RULES)
    assert calibration["state"] == "no data"
    assert above["state"] == "firing"
    assert change["value"] is not None
    judged = live.alerts(RULES)
    assert [alert.state for alert in judged][:2] == ["no data", "firing"]
    assert WHY in judged[0].why


def test_a_series_is_nan_there_and_warns(live):
    with pytest.warns(UndefinedMetricWarning, match=f"calibration has no value.*{re.escape(WHY)}"):
        series = live.series("1h", every="1h")
    assert np.isnan(series["calibration"]).all()
    assert series["accuracy"].max() == live.window("1h")["accuracy"].compute()
