"""Real processes: ended by a signal, and killed."""

from __future__ import annotations

import signal
import time

import pytest
from service.serving import Service, until

from streammetrics.live.service.config import settings

pytestmark = pytest.mark.long


def observed(n, at=None):
    start = time.time() if at is None else at
    return [
        {"kind": "observe", "time": start, "label": i % 2, "score": (i * 7 % 10) / 10}
        for i in range(n)
    ]


def stored(path):
    with settings(path).live() as live:
        return live.n_rows


def test_what_was_taken_is_there_after_an_end_by_signal(config):
    path = config()
    for number, rows in ((signal.SIGTERM, 70), (signal.SIGINT, 140)):
        with Service(path) as service:
            service.post(observed(70))
            told = service.end(number)
            assert "Traceback" not in told
            assert service.process.returncode == 0
        assert stored(path) == rows


def test_a_killed_service_loses_at_most_its_last_second(config):
    path = config()
    with Service(path) as service:
        service.post(observed(50))
        until(lambda: service.get("/api/now")["n_rows"] == 50)
        time.sleep(3)  # in which it has written
        service.post(observed(7))
        service.end(signal.SIGKILL)
        service.start()
        assert service.get("/api/now")["n_rows"] in {50, 57}
        service.post(observed(3))
        until(lambda: service.get("/api/now")["n_rows"] in {53, 60})
