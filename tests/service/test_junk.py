"""Junk as fast as it goes, beside a good client: no 5xx, all counts right, memory flat."""

from __future__ import annotations

import collections
import contextlib
import os
import random
import socket
import threading
import time

import pytest
from service.serving import Service, resident

pytestmark = pytest.mark.long

SECONDS = float(os.environ.get("STREAMMETRICS_JUNK", "4"))  # ten minutes by hand: 600
VALUES = (
    b"1", b"0.5", b"-1", b"1e999", b"NaN", b'"x"', b"null", b"[1]", b"{}", b"9" * 5000, b"true",
    b"[" * 5000, b'"\\ud800"', b"\xff", b'"' + b"a" * 900 + b'"', b"", b'{"a":' * 900,
)  # fmt: skip
KINDS = (b"observe", b"predict", b"label", b"junk", b"", b"\\u006fbserve")
TYPES = (
    b"",
    b"application/x-ndjson",
    b"text/html",
    b"application/vnd.apache.arrow.stream",
    b"\x01",
)
PATHS = (
    b"/events", b"/events", b"/events", b"/events?kind=observe", b"/events?kind=junk", b"/nothing",
    b"/api/now?window=" + b"9" * 3000 + b"h", b"/api/series?window=x&every=%00", b"*", b"/\xff",
    b"/metrics", b"/api/alerts", b"/api/series?every=1ns", b"/api/coverage?window=-1h", b"/health",
)  # fmt: skip
METHODS = (b"POST", b"POST", b"POST", b"POST", b"GET", b"HEAD", b"PUT", b"OPTIONS", b"PRI", b"G\0T")
HEADERS = (
    b"X-Long: " + b"y" * 40_000, b"Expect: 100-continue", b"Content-Encoding: gzip",
    b"Origin: http://[evil", b"Upgrade: websocket\r\nConnection: Upgrade", b"Host: evil.example",
    b"\r\n".join(b"H%d: v" % place for place in range(900)), b"Transfer-Encoding: gzip",
)  # fmt: skip


def row(dice):
    kind, value, other = dice.choice(KINDS), dice.choice(VALUES), dice.choice(VALUES)
    at = b"%d" % dice.choice([time.time(), time.time() * 1000, -5, 0, 10**300])
    line = b'{"kind":"%s","time":%s,"id":%s,"label":%s,"score":%s}'
    junk = line % (kind, at, value, other, value)
    return dice.choice([junk, junk[: dice.randrange(len(junk))], dice.randbytes(90), b"\n" * 99])


def request(dice):
    body = b"\n".join(row(dice) for _ in range(dice.choice([1, 2, 9])))
    length = dice.choice([len(body)] * 9 + [-1, len(body) + 9, 10**9])
    head = [b"%s %s HTTP/1.1" % (dice.choice(METHODS), dice.choice(PATHS)), b"Host: localhost"]
    head += [b"Content-Type: " + dice.choice(TYPES)]
    head += [dice.choice(HEADERS)] if dice.random() < 0.2 else []
    if dice.random() < 0.2:
        head, body = [*head, b"Transfer-Encoding: chunked"], b"%x\r\n%s\r\nzz\r\n" % (9, body)
    else:
        head += [b"Content-Length: %d" % length]
    whole = b"\r\n".join(head) + b"\r\n\r\n" + body
    return whole if dice.random() < 0.9 else whole[: dice.randrange(len(whole))]


def attack(port, seed, until, seen):
    dice = random.Random(seed)
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as client:
            client.settimeout(0.5)
            for _ in range(dice.choice([1, 1, 5])):
                client.sendall(request(dice))
                answer = client.recv(1 << 16)
                if not answer.startswith(b"HTTP/1.1 "):
                    break
                seen[int(answer[9:12])] += 1


def test_junk_leaves_it_answering_and_counting(config):
    rules = ("[alerts]", 'low = \'Below("accuracy", 0.9, window="5min", after="1min")\'')
    waits = 'label_ttl = "10s"\nlabel_lateness = "10s"'
    path = config(*rules, live=f'store = "live.db"\n{waits}', server='timeout = "2s"')
    seen, sent = collections.Counter(), 0
    with Service(path) as service:
        until = time.monotonic() + SECONDS
        attackers = [
            threading.Thread(target=attack, args=(service.port, seed, until, seen))
            for seed in range(4)
        ]
        for each in attackers:
            each.start()
        held = []
        while time.monotonic() < until:
            head = {"time": time.time(), "id": f"r{sent}"}
            prediction, label = {**head, "score": 0.7}, {**head, "label": 1}
            service.post([{"kind": "predict", **prediction}, {"kind": "label", **label}])
            sent += 1
            assert service.get("/api/alerts") is not None
            held.append(resident(service.process.pid))
            time.sleep(0.05)
        for each in attackers:
            each.join()
        found = service.get("/api/coverage?window=1h")
        assert (found["predicted"], found["labelled"]) == (sent, sent)
        assert service.end() == ""
    assert len(seen) >= 5, seen
    assert max(seen) < 500, seen
    assert held[-1] - held[len(held) // 2] < 30e6
