"""Marks: what is taken and refused, and that workers and restarts share them."""

from __future__ import annotations

import json
import sqlite3
import time
import warnings
from datetime import datetime

import pytest

import streammetrics as sm
from streammetrics.live.service import app as module
from streammetrics.live.service.app import application
from streammetrics.live.service.server import Server

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what the client asks its own dependencies
    from starlette.testclient import TestClient


def client(live=None, **server):
    live = sm.Live(sm.Mean()) if live is None else live
    return TestClient(application(live, server=Server(**server)), base_url="http://localhost")


def marks(asked):
    return [(mark["time"], mark["text"]) for mark in asked.get("/api/marks").json()["marks"]]


def test_marks_are_in_the_order_of_their_times_and_once():
    asked = client()
    for text, at in (("v2", 1_790_000_060), ("v1", "2026-09-21T14:13:20Z"), ("v2", 1_790_000_060)):
        answer = asked.post("/marks", json={"text": text, "time": at})
        assert (answer.status_code, answer.json()["text"]) == (201, text)
    before = time.time()
    asked.post("/marks", json={"text": "<b>now</b>"})
    time.sleep(0.3)  # answers are kept for a moment
    *found, (at, text) = marks(asked)
    assert found == [("2026-09-21T14:13:20.000000Z", "v1"), ("2026-09-21T14:14:20.000000Z", "v2")]
    assert text == "<b>now</b>"
    assert before - 1 <= datetime.fromisoformat(at).timestamp() <= time.time()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "expected a JSON object"),
        (b"[" * 100_000, "expected a JSON object"),
        (b"\xff", "expected a JSON object"),
        (b"[]", "expected a JSON object"),
        (b'{"text": "x", "at": 1}', "expected a JSON object"),
        (b"{}", "text is not a text of 1 to 200"),
        (b'{"text": ""}', "text is not a text of 1 to 200"),
        (json.dumps({"text": "x" * 201}).encode(), "text is not a text of 1 to 200"),
        (b'{"text": "\\ud800"}', "text holds half a character"),
        (b'{"text": "x", "time": "yesterday"}', "time"),
        (b'{"text": "x", "time": null}', "time"),
        (b'{"text": "x", "time": NaN}', "time"),
        (b'{"text": "x", "time": 1790000000000}', "time"),
        (b'{"text": "x", "time": true}', "time"),
        (b'{"text": "x", "time": "2026-09-21T14:13:20"}', "zone"),
    ],
)
def test_what_is_no_mark_is_refused(body, why):
    asked = client()
    answer = asked.post("/marks", content=body)
    assert answer.status_code == 422
    assert why in answer.json()["error"]
    assert marks(asked) == []


def test_a_mark_keeps_to_the_limits_of_the_service():
    asked = client(token="secret", body=1000)
    assert asked.post("/marks", json={"text": "x"}).status_code == 401
    assert asked.get("/api/marks").status_code == 401
    key = {"Authorization": "Bearer secret"}
    assert asked.post("/marks", content=b"x" * 1001, headers=key).status_code == 413
    assert asked.post("/marks?kind=x", json={"text": "x"}, headers=key).status_code == 422
    assert asked.post("/marks", json={"text": "x"}, headers=key).status_code == 201
    other = {**key, "Origin": "https://other.org"}
    assert asked.post("/marks", json={"text": "x"}, headers=other).status_code == 403


def test_the_newest_are_kept(monkeypatch):
    monkeypatch.setattr(module, "_MOST_MARKS", 3)
    asked = client()
    for at in (5, 1, 4, 2, 3):
        asked.post("/marks", json={"text": str(at), "time": at})
    assert [text for _, text in marks(asked)] == ["3", "4", "5"]


def test_workers_and_restarts_share_marks(tmp_path):
    path = tmp_path / "live.db"
    with sm.Live(sm.Mean(), store=path) as one, sm.Live(sm.Mean(), store=path) as other:
        assert client(one).post("/marks", json={"text": "v1", "time": 1}).status_code == 201
        assert client(other).post("/marks", json={"text": "v2", "time": 2}).status_code == 201
        assert [text for _, text in marks(client(one))] == ["v1", "v2"]
    with sm.Live(sm.Mean(), store=path) as again:
        asked = client(again)
        assert [text for _, text in marks(asked)] == ["v1", "v2"]
        with sqlite3.connect(path) as lock:
            lock.execute("begin immediate")
            answer = asked.post("/marks", json={"text": "v3", "time": 3})
            lock.rollback()
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert asked.post("/marks", json={"text": "v3", "time": 3}).status_code == 201
        time.sleep(0.3)
        assert [text for _, text in marks(asked)] == ["v1", "v2", "v3"]
