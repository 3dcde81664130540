"""5,000 events a second with labels, kills, restarts and scrapes: all counts right, memory flat."""

from __future__ import annotations

import os
import signal
import statistics
import threading
import time
import urllib.request

import pytest
from service.serving import Service, resident, until

from streammetrics.live.service.config import settings

pytestmark = pytest.mark.long

SECONDS = float(os.environ.get("STREAMMETRICS_SOAK", "30"))  # 20 minutes by hand: 1200
TICK, ROWS = 0.2, 500  # so many predictions, and labels of those before, each so many seconds
KILLS = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)  # all in the first half of the time
GROWTH = 10e6  # bytes that are no growth


class Watch:
    """Scrapes each second, and reads how much memory the service holds."""

    def __init__(self, service):
        self.service, self.held, self.scrapes, self.over = service, [], 0, False
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()

    def run(self):
        while not self.over:
            try:
                with urllib.request.urlopen(f"{self.service.url}/metrics", timeout=20) as answer:
                    assert b"streammetrics_value" in answer.read()
                self.held.append((self.service.process.pid, resident(self.service.process.pid)))
                self.scrapes += 1
            except OSError:
                pass  # it is being started again
            time.sleep(1)


def row(place):
    """Return the score and the label of a prediction."""
    return place % 10 / 10, place // 10 % 2


def block(number, start):
    """Return predictions, and the labels of those before them."""
    first = number * ROWS
    at = start + first * TICK / ROWS
    return [
        *({"kind": "predict", "id": f"r{place}", "time": at, "score": row(place)[0]}
          for place in range(first, first + ROWS)),
        *({"kind": "label", "id": f"r{place}", "time": at, "label": row(place)[1]}
          for place in range(max(0, first - ROWS), first)),
    ]  # fmt: skip


def send(service, events):
    """Post until somebody says that they are taken: who was killed may have taken them, too."""

    def taken():
        try:
            return service.post(events)["taken"] == len(events)
        except OSError:
            return False

    until(taken)


def feed(service, start, number, goes_on):
    """Post block after block from a number on, a block each tick; return the next number."""
    while goes_on():
        now = time.monotonic()
        send(service, block(number, start))
        number += 1
        time.sleep(max(0.0, TICK - (time.monotonic() - now)))
    return number


def trouble(service):
    """End the service and start it again, now and then, whatever it is doing."""
    for number in KILLS:
        time.sleep(SECONDS / 2 / len(KILLS))
        service.end(number)
        service.start()


def test_soak(config):
    # Rows leave after four seconds, so that as many wait in the early quarter as in the last.
    waits = 'label_ttl = "2s"\nlabel_lateness = "2s"'
    path = config(live=f'store = "live.db"\ndurable = true\ntiers = [["1min", "3h"]]\n{waits}')
    start = time.time() - 60
    with Service(path) as service, Watch(service) as watch:
        kills = threading.Thread(target=trouble, args=(service,))
        kills.start()
        began = time.monotonic()
        number = feed(service, start, 0, kills.is_alive)
        kills.join()
        calm = time.monotonic() + SECONDS / 2
        number = feed(service, start, number, lambda: time.monotonic() < calm)
        seconds = time.monotonic() - began
        service.end()
    sent = number * ROWS
    print(f"{2 * sent - ROWS:,} events in {seconds:.0f} s, {watch.scrapes} scrapes")
    held = [size for pid, size in watch.held if pid == service.process.pid]
    told = f"MB of the last process: {[round(size / 1e6) for size in held]}"
    print(told)
    assert len(held) >= 4, "too few scrapes to tell anything of memory"
    quarter = len(held) // 4
    early, late = held[quarter : 2 * quarter], held[-quarter:]
    assert statistics.median(late) - statistics.median(early) < GROWTH, told
    with settings(path).live() as live:
        found, window = live.coverage("3h"), live.window("3h")
        assert (found.predicted, found.labelled) == (sent, sent - ROWS)
        right = sum((score >= 0.5) == label for score, label in map(row, range(sent - ROWS)))
        assert window["accuracy"].compute() == right / (sent - ROWS)
