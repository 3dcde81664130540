"""A service that starts: it answers while its history is read, and says when that is over."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
import warnings
from types import SimpleNamespace

import pytest

import streammetrics as sm
from streammetrics.live.service import running
from streammetrics.live.service.app import application
from streammetrics.live.service.running import Opening, Workers

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what the client asks its own dependencies
    from starlette.testclient import TestClient


def until(is_so):
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_it_answers_before_its_history_is_read_and_says_when_it_is():
    go_on = threading.Event()

    def make():
        assert go_on.wait(60)
        return application(sm.Live(sm.Mean()))

    with TestClient(Opening(make, [].append, [].append), base_url="http://localhost") as asked:
        assert asked.get("/health").json() == {"status": "starting"}
        for path in ("/ready", "/metrics", "/api/now", "/"):
            answer = asked.get(path)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert asked.post("/events", content=b"").status_code == 503
        go_on.set()
        until(lambda: asked.get("/ready").status_code == 200)
        assert asked.get("/health").json()["status"] == "ok"
        assert asked.get("/api/now").status_code == 200


def test_it_is_ready_when_all_workers_are(tmp_path):
    workers = Workers(2, tmp_path)
    (tmp_path / "2147483647").touch()  # of a worker that was ready and has died since
    opening = Opening(lambda: application(sm.Live(sm.Mean())), [].append, [].append, workers)
    with TestClient(opening, base_url="http://localhost") as asked:
        until(lambda: asked.get("/api/now").status_code == 200)
        answer = asked.get("/ready")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        (tmp_path / str(os.getppid())).touch()
        assert asked.get("/ready").json() == {"status": "ready"}


@pytest.mark.parametrize("begins", [False, True])
def test_a_request_that_is_cancelled_at_the_end_is_answered_once(begins):
    async def slow(scope, receive, send):
        if begins:
            await send({"type": "http.response.start", "status": 200})
        await asyncio.sleep(60)

    async def ask():
        asked = asyncio.create_task(running._answered(slow, {"type": "http"}, None, send))
        await asyncio.sleep(0)
        asked.cancel()
        await asked

    async def send(message):
        sent.append(message.get("status"))

    sent = []
    asyncio.run(ask())
    assert sent == ([200] if begins else [503, None])


@pytest.mark.parametrize("another", [False, True])
def test_a_worker_that_cannot_start_ends_the_service_if_none_is_ready(
    tmp_path, monkeypatch, capsys, another
):
    monkeypatch.setenv(running._SHARED, str(tmp_path))
    ended, trouble = [], tmp_path / "trouble"
    monkeypatch.setattr(os, "kill", lambda *said: ended.append(said) if said[1] else None)
    trouble.write_bytes(bytes(64))
    (tmp_path / "ready").mkdir()
    workers = Workers(2, tmp_path / "ready")
    if another:
        (tmp_path / "ready" / str(os.getppid())).touch()
    parent = SimpleNamespace(pid=4_000_000)
    running._tell_failed(parent, workers, ValueError("the disk is full"))
    assert capsys.readouterr().err == "error: a worker cannot start: the disk is full\n"
    assert ended == ([] if another else [(parent.pid, signal.SIGTERM)])
    assert trouble.read_bytes().rstrip(b"\0") == (b"" if another else b"a worker cannot start")


def test_one_that_ends_before_waits_for_nothing():
    go_on = threading.Event()

    def make():
        go_on.wait(60)
        return application(sm.Live(sm.Mean()))

    with TestClient(Opening(make, [].append, [].append), base_url="http://localhost") as asked:
        assert asked.get("/ready").status_code == 503
    go_on.set()


def test_one_whose_history_cannot_be_read_ends(monkeypatch):
    ended = []
    monkeypatch.setattr(os, "kill", lambda *said: ended.append(said))

    def make():
        raise ValueError("no such store")

    failed = []
    with TestClient(Opening(make, [].append, failed.append), base_url="http://localhost"):
        until(lambda: ended)
    assert ended == [(os.getpid(), signal.SIGTERM)]
    assert [str(error) for error in failed] == ["no such store"]


def test_what_it_made_is_ended_with_it(tmp_path):
    live = sm.Live(sm.Mean(), store=tmp_path / "live.db")
    opening = Opening(lambda: application(live, owned=True), [].append, [].append)
    with TestClient(opening, base_url="http://localhost") as asked:
        until(lambda: asked.get("/ready").status_code == 200)
    assert live._ingest.closed


@pytest.mark.filterwarnings("ignore:the store cannot be used")  # which is told first
def test_one_that_ends_and_loses_events_hands_on_what_it_lost(tmp_path, monkeypatch):
    monkeypatch.setattr("streammetrics.live.journal.PATIENCE", 0.0)
    live, losses = sm.Live(sm.Mean(), store=tmp_path / "live.db"), []
    opening = Opening(lambda: application(live, owned=True), losses.append, [].append)
    with TestClient(opening, base_url="http://localhost") as asked:
        until(lambda: asked.get("/ready").status_code == 200)
        (tmp_path / "live.db").unlink()
        live.observe(time=time.time(), values=1.0)
    (error,) = losses
    assert str(error).startswith("the store cannot be written, 1 event is lost: the file was del")
