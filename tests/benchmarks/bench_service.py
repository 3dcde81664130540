"""The live service as real processes: events in by HTTP, scrapes, the page, and how fresh it is.

A rate has two numbers: by the wall's clock, which counts all that the machine does beside, and by
the processor's time that the service itself took, which is what it could take were it alone.
"""

from __future__ import annotations

import io
import json
import statistics
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import psutil
from measuring import Figure, readable
from peers import MissingPeer, peer

from streammetrics.live.service.config import settings

sys.path.append(str(Path(__file__).parents[1]))  # where the tests of the service are

from service.serving import Service, until

looking = peer("service.looking")  # which needs Chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIG = """
[metrics]
auc = "ROCAUC"
loss = "LogLoss"
accuracy = "Accuracy(threshold=0.5)"
[columns]
y_true = "label"
y_score = "score"
[live]
store = "live.db"
tiers = [["1min", "3h"], ["1h", "15d"], ["1d", "400d"]]
[server]
workers = {workers}
"""
ROUNDS, SECONDS = 5, 1.5
BODIES = 100  # that each client sends, over and over
LINES, ARROW = "application/x-ndjson", "application/vnd.apache.arrow.stream"
RESTARTS = 1000
GOAL = 200_000  # events a second
PAGE = ("", "page.css", "page.js", "draw.js", "icon.svg")


@contextmanager
def serving(workers: int = 1) -> Iterator[Service]:
    """Run a service of its own configuration, with an empty store."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "live.toml")
        path.write_text(CONFIG.format(workers=workers))
        with Service(path) as service:
            yield service
            service.end()


# --- events in -------------------------------------------------------------------------------


def observed(n, place):
    """Yield events that have their label with them."""
    start = time.time() - 60
    for i in range(n):
        score = ((place * n + i) * 7919 % 10007 + 0.5) / 10008
        yield {"kind": "observe", "time": start + i / n, "label": i % 2, "score": score}


def joined(n, place):
    """Yield predictions, and the label of each after it."""
    start = time.time() - 60
    for i in range(n // 2):
        head, score = {"id": f"{place}-{i}", "time": start + i / n}, (i * 7919 % 10007) / 10007
        yield {"kind": "predict", **head, "score": score}
        yield {"kind": "label", **head, "label": i % 2}


def as_lines(events):
    return "\n".join(map(json.dumps, events)).encode()


def as_arrow(events):
    import pyarrow as pa

    events, sink = list(events), io.BytesIO()
    names = dict.fromkeys(name for event in events for name in event)
    table = pa.table({name: [event.get(name) for event in events] for name in names})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def send(port, form, bodies, until, taken):
    """Send bodies, one after the other, until it is time; note what was taken of each."""
    asked = HTTPConnection("127.0.0.1", port, timeout=60)
    while time.monotonic() < until:
        for body in bodies:
            asked.request("POST", "/events", body, {"content-type": form})
            taken.append(json.loads(asked.getresponse().read())["taken"])
            if time.monotonic() >= until:
                break
    asked.close()


def worked(process):
    """Return the processor's seconds of a service, over all of its processes."""
    every = [process, *process.children(recursive=True)]
    return sum(sum(each.cpu_times()[:2]) for each in every)


def rates(form, make, rows, workers):
    """Return events a second, by the wall's clock and by the processor's time: the best of some.

    The first round is not counted: libraries are loaded in it.
    """
    clients, write = 4 * workers, as_arrow if form == ARROW else as_lines
    many = max(1, BODIES * 1000 // rows // clients)
    bodies = [[write(make(rows, i * clients + n)) for i in range(many)] for n in range(clients)]
    found = []
    with serving(workers) as service:
        process = psutil.Process(service.process.pid)
        for _ in range(ROUNDS + 1):
            taken, before, start = [], worked(process), time.monotonic()
            every = [
                threading.Thread(
                    target=send, args=(service.port, form, mine, start + SECONDS, taken)
                )
                for mine in bodies
            ]
            for each in every:
                each.start()
            for each in every:
                each.join()
            seconds, used = time.monotonic() - start, worked(process) - before
            found.append((sum(taken) / seconds, sum(taken) / used))
    return tuple(max(each) for each in zip(*found[1:], strict=True))


def events(scale):
    """Events a second by HTTP."""
    figures = []
    for form, make, rows, workers, goal in (
        (LINES, observed, 1000, 1, GOAL),
        (LINES, observed, 10, 1, None),
        (LINES, observed, 1000, 2, None),
        (LINES, joined, 1000, 1, None),
        (ARROW, observed, 1000, 1, GOAL),
        (ARROW, observed, 10_000, 1, None),
        (ARROW, observed, 1000, 2, None),
        (ARROW, joined, 1000, 1, None),
    ):
        wall, alone = rates(form, make, rows, workers)
        what = "predict and label" if make is joined else "observe"
        of = "lines of JSON" if form == LINES else "Arrow"
        title = f"POST /events, {what}, {rows:,} a request, {of}, {workers} worker"
        text = f"{wall:,.0f} events a second; {alone:,.0f} a second of the service's processor time"
        met = None if goal is None else alone >= goal
        told = "" if goal is None else f"{goal:,}"
        figures.append(Figure(title + "s" * (workers > 1), text, told, met))
    return figures


# --- answers out -----------------------------------------------------------------------------


def scrapes(scale):
    """A scrape, each after a new event, of a store that many workers have written, and its size."""
    restarts = int(RESTARTS * scale)
    with serving() as service:
        service.end()
        found, sizes = settings(service.config), []
        for place in range(restarts):
            with found.live() as live:
                live.observe(**columns(observed(200, place)))
            sizes.append(Path(found.options["store"]).stat().st_size)
        service.start()
        process, walls, alone = psutil.Process(service.process.pid), [], []
        for place in range(21):
            service.post(list(observed(1, place)))
            before, start = worked(process), time.perf_counter()
            with urlopen(f"{service.url}/metrics", timeout=60) as answer:
                answer.read()
            walls.append(time.perf_counter() - start)
            alone.append(worked(process) - before)
        # The processor's time is told in hundredths of a second: only the mean says something.
        wall, mean = statistics.median(walls[1:]), statistics.mean(alone[1:])
        half, whole = sizes[len(sizes) // 2], sizes[-1]
    text = f"{readable(wall)}; {readable(mean)} of the processor's time"
    return [
        Figure(f"scrape of /metrics after {restarts:,} restarts", text, "20 ms", mean <= 0.02),
        Figure("  the store then", f"{whole / 1e6:.1f} MB, halfway {half / 1e6:.1f} MB", "", None),
    ]


def columns(events):
    """Return events that are observed as columns."""
    rows = list(events)
    return {name: [row[name] for row in rows] for name in rows[0] if name != "kind"}


def page(scale):
    """What the page weighs, and how long it takes until it shows an event."""
    with serving() as service:
        weight = 0
        for name in PAGE:
            with urlopen(f"{service.url}/{name}", timeout=60) as answer:
                weight += len(answer.read())
        figures = [
            Figure("the page beside its charts", f"{weight:,} bytes", "120 kB", weight <= 120_000)
        ]
        if reason := getattr(looking, "reason", None):
            raise MissingPeer(reason)
        with tempfile.TemporaryDirectory() as profile, looking.browser(profile) as driver:
            service.post(list(observed(100, 0)))
            looking.look(driver, service.url)
            until(lambda: looking.is_drawn(driver, 1))
            taken = [seen(service, driver, place) for place in range(1, 12)]
    half, worst = statistics.median(taken), max(taken)
    text = f"{readable(half)}, at worst {readable(worst)}, of {len(taken)}"
    return [*figures, Figure("from an event to the page in Chromium", text, "2 s", worst <= 2)]


def seen(service, driver, place):
    """Return how long it takes until the page shows an event."""
    before, start = looking.text(driver, "#about"), time.monotonic()
    service.post(list(observed(1, place)))
    while looking.text(driver, "#about") == before:
        time.sleep(0.02)
    return time.monotonic() - start


BENCHMARKS = {"service events": events, "service scrapes": scrapes, "service page": page}
