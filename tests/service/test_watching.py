"""Rules that take long: who asks is told what is known, and is not kept waiting."""

from __future__ import annotations

import json
import threading
import time
import warnings

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.live.service import monitoring as watching
from streammetrics.live.service.app import application

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what the client asks its own dependencies
    from starlette.testclient import TestClient

RULE = sm.Below("value", 0.5, window="5min", name="low")


@pytest.fixture
def held(monkeypatch):
    """Let rules judge nothing until they may."""
    go_on, compare = threading.Event(), sm.Below.compare

    def slow(*args):
        assert go_on.wait(60)
        return compare(*args)

    monkeypatch.setattr(sm.Below, "compare", slow)
    monkeypatch.setattr(watching, "PATIENCE", 0.05)
    monkeypatch.setattr(watching, "FIRST", 0.05)
    yield go_on
    go_on.set()


def live(value=0.25, **options):
    times = time.time() - 3000 + 10 * np.arange(300)
    return sm.Live(sm.Mean(), **options).observe(time=times.tolist(), values=[value] * 300)


def firing(client):
    lines = client.get("/metrics").text.splitlines()
    found = [line[-3:] for line in lines if line.startswith("streammetrics_alert_firing{")]
    assert any(line.startswith("streammetrics_rows{") for line in lines)
    return found


def test_a_worker_that_has_judged_nothing_tells_what_another_has_stored(held, tmp_path):
    held.set()
    judged = live().alerts([RULE])
    held.clear()
    with live(0.75, store=tmp_path / "live.db") as own:
        slow = watching.Watching(own._queries, [RULE])
        assert not slow.alerts()
        told = json.dumps({alert.name: alert.to_dict() for alert in judged})
        own._queries.ingest.journal.exchange(lambda _: {"judged": told})
        (alert,) = slow.alerts()
        assert (alert.name, alert.state) == ("low", "firing")
        held.set()
        until = time.monotonic() + 30
        while slow.alerts()[0].state == "firing":  # until the rules are judged here
            assert time.monotonic() < until


def test_a_scrape_does_not_wait_for_rules_that_take_long(held):
    with TestClient(application(live(), rules=[RULE]), base_url="http://localhost") as client:
        assert firing(client) == []  # and no state of which rules would tell somebody
        (alert,) = client.get("/api/alerts").json()["alerts"]
        assert (alert["state"], alert["why"]) == ("no data", "nothing was judged yet")
        assert client.get("/api/now").json()["n_rows"] > 290
        held.set()
        until = time.monotonic() + 30
        while firing(client) != ["1.0"]:
            assert time.monotonic() < until


def test_a_stored_state_is_judged_before_requests_are_answered(monkeypatch, tmp_path):
    stored(tmp_path / "live.db").close()
    compare = sm.Below.compare

    def slow(*args):
        time.sleep(0.01)  # 50 windows and more take longer than a request waits
        return compare(*args)

    monkeypatch.setattr(sm.Below, "compare", slow)
    monkeypatch.setattr(watching, "PATIENCE", 0.0)
    again = application(sm.Live(sm.Mean(), store=tmp_path / "live.db"), rules=[RULE], owned=True)
    with TestClient(again, base_url="http://localhost") as client:
        (alert,) = client.get("/api/alerts").json()["alerts"]
        assert (alert["state"], alert["value"]) == ("firing", 0.25)


def test_what_was_judged_is_known_while_it_is_judged_again(held):
    state = live()
    watched = watching.Watching(state._queries, [RULE])
    held.set()
    until = time.monotonic() + 30
    while not watched.alerts().firing:
        assert time.monotonic() < until
    held.clear()
    state.observe(time=time.time() - 1800, values=99.0)
    (before,) = watched.alerts()
    assert (before.firing, before.value) == (True, 0.25)
    held.set()
    while watched.alerts() == (before,):
        assert time.monotonic() < until


def test_what_goes_wrong_with_a_rule_is_told_each_time():
    watched = watching.Watching(live()._queries, [sm.Below("missing", 0.5)])
    for _ in range(2):
        with pytest.raises(ValueError, match="no metric 'missing'"):
            watched.alerts()


def stored(path, n=300):
    now = time.time() - 3000
    times = [now + 10 * i for i in range(n)]
    return sm.Live(sm.Mean(), store=path).observe(time=times, values=[0.25] * n)


def test_no_alert_ends_by_a_restart(held, tmp_path):
    held.set()
    with stored(tmp_path / "live.db") as state:
        watched, until = watching.Watching(state._queries, [RULE]), time.monotonic() + 30
        while not watched.alerts().firing:
            assert time.monotonic() < until
        (before,) = watched.alerts()
    held.clear()  # a first look at all the past takes long
    with sm.Live(sm.Mean(), store=tmp_path / "live.db") as again:
        assert watching.Watching(again._queries, [RULE]).alerts() == (before,)
        other = sm.Below("value", 0.25, window="5min", name="low")
        assert watching.Watching(again._queries, [other]).alerts() == ()  # which is another rule
        asked = TestClient(application(again, rules=[RULE]), base_url="http://localhost")
        until = time.monotonic() + 30
        while asked.get("/metrics").status_code == 503:
            assert time.monotonic() < until
        assert firing(asked) == ["1.0"]
        held.set()
