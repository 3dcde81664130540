"""The client of a service: batches, retries that count once, back-pressure, and nothing lost."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
import uuid
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from service.serving import Service, until

import streammetrics as sm

NOW = time.time() - 60


class Fake:
    """A service that answers as told, and keeps what it was sent."""

    def __init__(self, *answers):
        every, self.requests = itertools.chain(answers, itertools.repeat((202, {}))), []
        self.judge = lambda _: next(every)
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                events = [json.loads(line) for line in body.splitlines()]
                fake.requests.append((dict(self.headers), events))
                status, told = fake.judge(events)
                if callable(told):
                    told = told(events)
                if status == 0:  # the answer is lost
                    self.close_connection = True
                    return
                text = json.dumps(told or {"taken": len(events)}).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @property
    def events(self):
        return [event for _, events in self.requests for event in events]


def test_events_are_sent_in_order_in_batches_and_in_forms_of_json():
    with Fake() as fake, sm.live.Client(fake.url, rows=10, token="t", every=0.05) as client:
        for n in range(25):
            client.observe(time=NOW + n, label=np.int64(n % 2), score=np.float64(n))
        moment, name = datetime.now(UTC), uuid.uuid4()
        client.predict(id=name, time=moment, score=[0.1, 0.2]).label(id="a", time=1, label=True)
        client.flush()
        assert (client.taken, client.waiting) == (27, 0)
        with pytest.raises(TypeError, match="has no form in JSON"):
            client.observe(time=b"1")
        with pytest.raises(ValueError, match="needs its zone"):
            client.observe(time=datetime(2026, 1, 1))
        with pytest.raises(ValueError, match="JSON compliant"):
            client.observe(time=1, score=float("nan"))
    assert [event["time"] for event in fake.events[:25]] == [NOW + n for n in range(25)]
    assert fake.events[25]["id"] == str(name)
    assert max(len(events) for _, events in fake.requests) == 10
    assert {headers["authorization"] for headers, _ in fake.requests} == {"Bearer t"}
    with pytest.raises(sm.live.ClientError, match="closed"):
        client.observe(time=1)


def test_a_batch_is_sent_again_with_its_key_until_it_is_taken():
    troubles = [(503, {"error": "full"}), (0, {}), (429, {}), (507, {})]
    with Fake(*troubles) as fake, sm.live.Client(fake.url, every=0) as client:
        client.observe(time=1)
        client.flush(timeout=30)
        client.observe(time=2)
    keys = [headers["idempotency-key"] for headers, _ in fake.requests]
    assert len(keys) == 6
    assert len({*keys[:5]}) == 1
    assert keys[5] != keys[0]
    assert client.trouble == ""
    with Fake() as fake, sm.live.Client(fake.url, idempotent=False) as client:
        client.observe(time=1)
    assert "idempotency-key" not in fake.requests[0][0]


def test_a_refused_event_is_reported_and_the_others_are_sent():
    def refusal(events):
        row = next(n for n, event in enumerate(events) if event["score"] < 0)
        return {"error": f"row {row} is bad", "row": row}

    found = []
    with (
        Fake((422, refusal), (422, refusal)) as fake,
        sm.live.Client(fake.url, refused=lambda *told: found.append(told)) as client,
    ):
        for score in (1, -1, 2, -2, 3):
            client.observe(time=1, score=score)
    assert [event["score"] for event, _ in found] == [-1, -2]
    assert [event["score"] for event in fake.requests[-1][1]] == [1, 2, 3]
    assert (client.taken, client.n_refused, client.waiting) == (3, 2, 0)


def test_a_body_that_is_too_large_is_halved_and_forms_are_apart():
    with Fake((413, {})) as fake, sm.live.Client(fake.url) as client:
        for n in range(4):
            client.observe(time=n, score=1)
        client.observe(time=5, weight=2)
    sizes = [len(events) for _, events in fake.requests]
    assert sizes == [4, 2, 2, 1]
    assert [event["time"] for event in fake.events[4:]] == [0, 1, 2, 3, 5]


def test_one_of_several_is_found_where_no_row_is_named():
    found = []
    for status in (413, 422):
        with Fake() as fake:
            fake.judge = lambda events, status=status: (
                (status, {"error": "bad"})
                if any(each["score"] < 0 for each in events)
                else (202, {})
            )
            with sm.live.Client(fake.url, refused=lambda *told: found.append(told)) as client:
                for score in (1, -1, 2, 3, -2):
                    client.observe(time=1, score=score)
            assert (client.taken, client.n_refused, client.waiting) == (3, 2, 0)
    assert [event["score"] for event, _ in found] == [-1, -2] * 2


@pytest.mark.parametrize("where", [0, 2])
def test_a_bad_event_does_not_end_the_client(config, where):
    events = [{"time": NOW, "label": 1, "score": 0.5} for _ in range(3)]
    bad = [{"zzz": 3}, {"score": "x"}, {"time": [NOW]}, {"label": []}]
    refused = []
    with (
        Service(config()) as service,
        sm.live.Client(
            service.url, every=0.05, refused=lambda *told: refused.append(told)
        ) as client,
    ):
        for change in bad:
            for event in [*events[:where], {**events[0], **change}, *events[where:]]:
                client.observe(**event)
        client.flush(timeout=60)
        assert (client.taken, client.n_refused) == (12, 4)
        assert service.get("/api/now")["n_rows"] == 12
    assert [told | change for (told, _), change in zip(refused, bad, strict=True)] == [
        told for told, _ in refused
    ]


def test_a_full_queue_blocks_or_raises():
    with Fake() as fake:
        gone = fake.url
    client = sm.live.Client(gone, rows=2, queue=4, full="raise", every=0)
    for n in range(4):
        client.observe(time=n)
    with pytest.raises(sm.live.ClientError, match="4 events wait, the limit"):
        client.observe(time=5)
    with pytest.raises(sm.live.ClientError, match="4 events are not sent: the service cannot be"):
        client.close(timeout=0.2)
    slow = sm.live.Client(gone, rows=2, queue=4, every=0)
    for n in range(4):
        slow.observe(time=n)
    blocked = threading.Thread(target=lambda: slow.observe(time=5), daemon=True)
    blocked.start()
    blocked.join(0.3)
    assert blocked.is_alive()
    with Fake() as fake:
        slow._connect = sm.live.Client(fake.url)._connect
        slow.flush(timeout=60)
        blocked.join(10)
        slow.close()
    assert slow.taken == 5


def test_a_service_that_refuses_the_client_is_an_error_of_the_next_call():
    with Fake((401, {"error": "a token is needed"})) as fake:
        client = sm.live.Client(fake.url, every=0)
        client.observe(time=1)
        until(lambda: client._failure is not None)
        for call in (lambda: client.observe(time=2), client.flush, client.close):
            with pytest.raises(sm.live.ClientError, match="status 401: a token is needed"):
                call()


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://a", "unix:", "http://"])
def test_an_address_has_a_form(url):
    with pytest.raises(ValueError, match="is not an address"):
        sm.live.Client(url)


def test_what_waits_is_sent_when_the_process_ends():
    with Fake() as fake:
        code = f"import streammetrics as sm; sm.live.Client({fake.url!r}, every=60).observe(time=1)"
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert len(fake.events) == 1


def test_no_row_is_lost_and_none_counts_twice_when_the_service_restarts(config):
    path = config()
    with Service(path) as service, sm.live.Client(service.url, rows=50, every=0.01) as client:

        def restart():
            for _ in range(2):
                time.sleep(0.3)
                service.end()
                service.start()

        restarting = threading.Thread(target=restart)
        restarting.start()
        n = 0
        while restarting.is_alive():
            client.observe(time=NOW + n / 1000, label=n % 2, score=(n % 7) / 7)
            n += 1
            time.sleep(0.002)
        client.flush(timeout=60)
        assert service.get("/api/now")["n_rows"] == client.taken == n
