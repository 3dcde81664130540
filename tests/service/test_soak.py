"""5,000 events a second with labels, kills, restarts and scrapes: all counts right, memory flat."""

from __future__ import annotations

import os
import signal
import statistics
import threading
import time
import urllib.request
from contextlib import nullcontext

import pytest
from service.serving import Service, resident, until

from streammetrics.live.service.config import settings

pytestmark = pytest.mark.long

SECONDS = float(os.environ.get("STREAMMETRICS_SOAK", "30"))  # 20 minutes by hand: 1200
TICK, ROWS = 0.2, 500  # so many predictions, and labels of those before, each so many seconds
KILLS = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)  # all in the first half of the time
SETTLES = 10  # seconds until the first rows have left, and what they held is used again
WARM = 300  # seconds from which on a process is warm
COLD, LEAK = 10e6, 1e6  # bytes by which one may grow that is not yet, and a minute afterwards


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
                pid = self.service.process.pid
                self.held.append((pid, time.monotonic(), resident(pid)))
                self.scrapes += 1
            except OSError:
                pass  # it is being started again
            time.sleep(1)


def check_level(times, sizes):
    """Raise where memory in the last quarter of the time is more than in the second one."""
    assert len(sizes) >= 4, "too few scrapes to tell anything of memory"
    quarter = len(sizes) // 4
    early, late = slice(quarter, 2 * quarter), slice(-quarter, None)
    grown = statistics.median(sizes[late]) - statistics.median(sizes[early])
    minutes = (statistics.median(times[late]) - statistics.median(times[early])) / 60
    most = LEAK * minutes if times[-1] - times[0] >= WARM else COLD
    told = f"memory grew by {grown / 1e6:.1f} MB in {minutes:.1f} minutes"
    print(told)
    assert grown < most, told


@pytest.mark.parametrize(("leak", "is_seen"), [(0, False), (2e6, True)])
def test_a_leak_of_two_megabytes_a_minute_is_seen(leak, is_seen):
    times = [float(second) for second in range(600)]
    sawtooth = [4e6 * (time % 17 / 17) for time in times]  # between one fold and the next
    sizes = [120e6 + tooth + leak * t / 60 for t, tooth in zip(times, sawtooth, strict=True)]
    with pytest.raises(AssertionError, match="memory grew") if is_seen else nullcontext():
        check_level(times, sizes)


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


def test_soak(config, monkeypatch):
    # The C library gives each thread memory of its own that fills within a minute or two, some
    # 20 MB in all, which would hide a leak from a run of half a minute.
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
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
        calm = time.monotonic() + SETTLES + SECONDS / 2
        number = feed(service, start, number, lambda: time.monotonic() < calm)
        seconds = time.monotonic() - began
        service.end()
    sent = number * ROWS
    print(f"{2 * sent - ROWS:,} events in {seconds:.0f} s, {watch.scrapes} scrapes")
    last = [held for held in watch.held if held[0] == service.process.pid]
    settled = [held for held in last if held[1] >= last[0][1] + SETTLES]
    _, times, sizes = zip(*settled, strict=True)
    print(f"MB of the last process: {[round(size / 1e6) for size in sizes]}")
    check_level(times, sizes)
    with settings(path).live() as live:
        found, window = live.coverage("3h"), live.window("3h")
        assert (found.predicted, found.labelled) == (sent, sent - ROWS)
        right = sum((score >= 0.5) == label for score, label in map(row, range(sent - ROWS)))
        assert window["accuracy"].compute() == right / (sent - ROWS)
