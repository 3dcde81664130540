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
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import numpy as np
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
auc = {auc}
loss = "LogLoss"
accuracy = "Accuracy(threshold=0.5)"
[columns]
y_true = "label"
y_score = "score"
[live]
store = "live.db"
tiers = [["1min", "3h"], ["1h", "15d"], ["1d", "400d"]]
{by}
[server]
workers = {workers}
"""
ROUNDS, SECONDS = 5, 1.5
BODIES = 100  # that each client sends, over and over
LINES, ARROW = "application/x-ndjson", "application/vnd.apache.arrow.stream"
RESTARTS = 1000
KEYS, AT_ONCE = 1000, 100_000  # slices, and rows that are observed at once
GOAL, GOAL_SLICED = 200_000, 100_000  # events a second
SLICED = 'by = [["country"]]'  # of the configuration
PAGE = ("", "page.css", "page.js", "draw.js", "icon.svg")


@contextmanager
def serving(workers: int = 1, by: str = "") -> Iterator[Service]:
    """Run a service of its own configuration, with an empty store; slices have fewer bins."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "live.toml")
        auc = "'ROCAUC(max_bins=1024)'" if by else '"ROCAUC"'
        path.write_text(CONFIG.format(workers=workers, auc=auc, by=by))
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


def rates(form, make, rows, workers, by=""):
    """Return events a second, by the wall's clock and by the processor's time: the best of some.

    The first round is not counted: libraries are loaded in it.
    """
    clients, write = 4 * workers, as_arrow if form == ARROW else as_lines
    many = max(1, BODIES * 1000 // rows // clients)
    bodies = [[write(make(rows, i * clients + n)) for i in range(many)] for n in range(clients)]
    found = []
    with serving(workers, by) as service:
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
        (LINES, of_keys, 200, 1, GOAL_SLICED),
        (ARROW, observed, 1000, 1, GOAL),
        (ARROW, observed, 10_000, 1, None),
        (ARROW, observed, 1000, 2, None),
        (ARROW, joined, 1000, 1, None),
    ):
        by = SLICED if make is of_keys else ""
        wall, alone = rates(form, make, rows, workers, by)
        what = "predict and label" if make is joined else "observe"
        what += ", 1,000 slices" * bool(by)
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


# --- beside a long history ----------------------------------------------------------------------


def of_keys(n, place):
    """Yield events that have their label and one of many slice keys with them."""
    for i, event in enumerate(observed(n, place)):
        yield {**event, "country": f"key {(place * n + i) * 31 % KEYS}"}


def fill(live, days, rows):
    """Observe rows evenly over some days until now."""
    dice, now, names = np.random.default_rng(0), time.time(), [f"key {n}" for n in range(KEYS)]
    for times in np.split(
        now - days * 86_400 * np.linspace(1, 0, rows, endpoint=False), rows // AT_ONCE
    ):
        score = dice.random(AT_ONCE)
        label = (dice.random(AT_ONCE) < score).astype(int)
        keys = np.array(names)[dice.integers(0, KEYS, AT_ONCE)]
        live.observe(time=times, label=label, score=score, country=keys)


def waits(live, rows):
    """Predict rows over the last day, with the labels of all of them."""
    dice, now = np.random.default_rng(0), time.time()
    for ids in np.split(np.arange(rows), rows // AT_ONCE):
        times, score = now - 86_400 + ids * (86_000 / rows), dice.random(AT_ONCE)
        keys = np.array([f"key {n}" for n in range(KEYS)])[dice.integers(0, KEYS, AT_ONCE)]
        live.predict(id=ids, time=times, score=score, country=keys)
        live.label(id=ids, time=times + 60, label=(dice.random(AT_ONCE) < score).astype(int))


def ready(scale):
    """How soon a service is ready with a large store, of panes by slice and of rows that wait."""
    figures = []
    for what, make, rows in (
        ("panes of 1,000 slices", partial(fill, days=60), int(200 * scale) * AT_ONCE),
        ("rows that wait for corrections", waits, int(60 * scale) * AT_ONCE),
    ):
        with serving(by=SLICED) as service:
            service.end()
            found = settings(service.config)
            with found.live() as live:
                make(live, rows=rows)
            size, walls, alone = Path(found.options["store"]).stat().st_size, [], []
            service.start()
            for _ in range(3):
                service.end()
                start = time.monotonic()
                service.start()
                walls.append(time.monotonic() - start)
                alone.append(worked(psutil.Process(service.process.pid)))
        text = f"{readable(min(alone))} of the processor's time; {readable(min(walls))}"
        title = f"ready with a store of {size / 1e6:,.0f} MB: {what}"
        figures.append(Figure(title, text, "2 s", min(alone) <= 2))
    return figures


def beside(scale):
    """Requests with events and scrapes while windows of 30 days are read, all of one worker."""
    seconds, posts, scraped, reads, wrong = 120 * scale, [], [], [], []
    with serving(by=SLICED) as service:
        service.end()
        with settings(service.config).live() as live:
            fill(live, 30, int(20 * min(scale, 1)) * AT_ONCE)
        service.start()
        process, until = psutil.Process(service.process.pid), time.monotonic() + seconds
        before = worked(process)
        bodies = [as_lines(of_keys(200, place)) for place in range(BODIES)]
        paths = [
            "/api/series?window=1d&every=1d&span=30d",
            "/api/slices?window=30d",
            "/api/now?window=30d",
        ]
        every = [
            (posts, lambda n: ("POST", "/events", bodies[n % BODIES]), 0.02),
            (scraped, lambda n: ("GET", "/metrics", None), 0.5),
            (reads, lambda n: ("GET", paths[n % len(paths)], None), 0.0),
        ]
        threads = [
            threading.Thread(target=call, args=(service.port, of, pause, until, taken, wrong))
            for taken, of, pause in every
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        used = worked(process) - before
    figures = [
        Figure(
            f"{what} beside reads of 30 days, 99 of 100",
            f"{readable(float(np.quantile(taken, 0.99)))}, the median "
            f"{readable(statistics.median(taken))} of {len(taken)}",
            "" if goal is None else readable(goal),
            None if goal is None else bool(np.quantile(taken, 0.99) <= goal),
        )
        for what, taken, goal in (
            ("POST /events, 200 a request", posts, 0.05),
            ("scrape of /metrics", scraped, 0.1),
            ("a read", reads, None),
        )
    ]
    text = f"{len(wrong)} of {len(posts) + len(scraped) + len(reads)}: {sorted(set(wrong))}"
    share = f"{used / seconds:.2f} of a processor"
    return [
        *figures,
        Figure("  answers other than 200 and 202", text, "0", not wrong),
        Figure("  the service took", share, "", None),
    ]


def call(port, of, pause, until, taken, wrong):
    """Send requests one after the other until it is time; note how long each took, and errors."""
    asked, n = HTTPConnection("127.0.0.1", port, timeout=60), 0
    while time.monotonic() < until:
        start = time.perf_counter()
        asked.request(*of(n), {"content-type": LINES})
        answer = asked.getresponse()
        answer.read()
        taken.append(time.perf_counter() - start)
        if answer.status not in {200, 202}:
            wrong.append(answer.status)
        n += 1
        time.sleep(pause)
    asked.close()


BENCHMARKS = {
    "service events": events,
    "service scrapes": scrapes,
    "service page": page,
    "service ready": ready,
    "service beside": beside,
}
