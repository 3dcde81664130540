"""Long reads: they hold up no scrape, stop when nobody waits, and cost no more than they may."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from types import SimpleNamespace

import httpx
import numpy as np
import pytest

import streammetrics as sm
from streammetrics.live.service import answers, app, http
from streammetrics.live.service import monitoring as scrape
from streammetrics.live.service.app import application
from streammetrics.live.service.server import PageView, Server

WAIT = 60  # seconds for what is to be at once
START = 1_700_000_000 // 86_400 * 86_400
TIERS = [("1min", "3h"), ("1h", "2d"), ("1d", "30d")]
RULE = sm.Below("loss", 0.01, window="1h", name="high")


def live(days=5):
    metrics = {"loss": sm.MSE(), "auc": sm.Quantile(q=0.5)}
    state = sm.Live(
        sm.MetricSet(metrics, columns={"values": "y_pred"}),
        tiers=TIERS,
        label_ttl="5min",
        label_lateness="5min",
        max_ahead=None,
    )
    n = days * 24 * 12
    rng = np.random.default_rng(0)
    return state.observe(
        time=START + 300 * np.arange(n), y_true=rng.random(n), y_pred=rng.random(n)
    )


def made(state, **view):
    view = PageView(**{"window": "1h", "every": "30min", **view})
    return application(state, view=view, server=Server(clock="events"), rules=[RULE])


def asking(service):
    transport = httpx.ASGITransport(service)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=None)


class Held:
    """Stops the read of a line at its first window, until it may go on."""

    def __init__(self, monkeypatch):
        self.begun, self.go_on, self.windows = threading.Event(), threading.Event(), 0
        self._of = answers.WindowRow.of
        monkeypatch.setattr(answers.WindowRow, "of", self._hold)

    def _hold(self, *arguments):
        self.begun.set()
        assert self.go_on.wait(WAIT)
        self.windows += 1
        return self._of(*arguments)


@pytest.fixture
def held(monkeypatch):
    found = Held(monkeypatch)
    yield found
    found.go_on.set()


def test_scrapes_health_and_alerts_wait_for_no_other_read(held):
    async def ask():
        async with asking(made(live())) as client:
            long = asyncio.create_task(client.get("/api/series"))
            await asyncio.to_thread(held.begun.wait, WAIT)
            waiting = asyncio.create_task(client.get("/api/now"))  # for its turn
            told = {}
            for path in ("/metrics", "/health", "/api/alerts"):
                answer = await asyncio.wait_for(client.get(path), WAIT)
                told[path] = answer.status_code, answer.text
            assert not long.done()
            assert not waiting.done()
            held.go_on.set()
            assert (await long).status_code == (await waiting).status_code == 200
            return told

    told = asyncio.run(ask())
    assert {status for status, _ in told.values()} == {200}
    assert 'streammetrics_alert_firing{alert="high"} 0.0' in told["/metrics"][1]
    assert 'streammetrics_value{metric="loss",window="1h"}' in told["/metrics"][1]


def get(service, path, left):
    """Ask as a server does whose client leaves when `left` is set; return the status."""
    sent = []

    async def receive():
        if not receive.begun:
            receive.begun = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message.get("status"))

    receive.begun = False
    path, _, query = path.partition("?")
    scope = {
        "type": "http", "method": "GET", "path": path, "query_string": query.encode(),
        "headers": [(b"host", b"localhost")], "http_version": "1.1", "scheme": "http",
    }  # fmt: skip

    async def status():
        await service(scope, receive, send)
        return sent[0]

    return status()


def test_a_read_ends_when_its_client_is_gone(held):
    async def ask():
        service, left = made(live()), asyncio.Event()
        long = asyncio.create_task(get(service, "/api/series", left))
        await asyncio.to_thread(held.begun.wait, WAIT)
        others = [asyncio.create_task(get(service, f"/api/now?window={h}h", left)) for h in "12"]
        await asyncio.sleep(0)
        left.set()
        assert {await each for each in (long, *others)} == {499}
        held.go_on.set()
        async with asking(service) as client:  # the thread that reads is free
            assert (await client.get("/api/now")).status_code == 200

    asyncio.run(ask())
    assert held.windows == 1


def test_a_read_goes_on_for_those_who_wait(held):
    async def ask():
        service, left, never = made(live()), asyncio.Event(), asyncio.Event()
        gone = asyncio.create_task(get(service, "/api/series", left))
        await asyncio.to_thread(held.begun.wait, WAIT)
        stays = asyncio.create_task(get(service, "/api/series", never))
        await asyncio.sleep(0)
        left.set()
        assert await gone == 499
        held.go_on.set()
        assert await stays == 200

    asyncio.run(ask())
    assert held.windows > 1


def test_who_asks_again_after_all_have_gone_is_answered(held):
    async def ask():
        service, left, never = made(live()), asyncio.Event(), asyncio.Event()
        gone = asyncio.create_task(get(service, "/api/series", left))
        await asyncio.to_thread(held.begun.wait, WAIT)
        left.set()
        assert await gone == 499
        again = asyncio.create_task(get(service, "/api/series", never))
        await asyncio.sleep(0)
        held.go_on.set()
        assert await again == 200

    asyncio.run(ask())


def answered(service, *paths):
    async def ask():
        async with asking(service) as client:
            return [await client.get(path) for path in paths]

    found = asyncio.run(ask())
    return found if len(paths) > 1 else found[0]


def last(steps):
    """Return the answer, which is the last of its steps."""
    return [*steps][-1]


def largest(answer):
    """Return what a refusal says may be asked instead."""
    assert answer.status_code == 422, answer.text
    (allowed,) = re.findall(r"the largest span is (\w+=\w+)", answer.json()["error"])
    return allowed


def test_more_windows_than_a_request_may_read_are_refused_and_the_page_has_the_newest(monkeypatch):
    monkeypatch.setattr(answers, "POINTS", 10)
    service = made(live())
    page = answered(service, "/api/series").json()
    assert (len(page["time"]), page["complete"]) == (10, False)
    path = "/api/series?window=1h&every=15min"
    allowed = largest(answered(service, path))
    found = answered(service, f"{path}&{allowed}").json()
    assert (len(found["time"]), found["complete"]) == (10, True)
    assert largest(answered(service, f"{path}&span=4d")) == allowed


def test_the_page_has_the_newest_windows_first_and_older_ones_with_each_answer(monkeypatch):
    state = live(days=1)
    whole = answered(made(state), "/api/series").json()
    assert (len(whole["time"]) > 4, whole["more"]) == (True, False)
    monkeypatch.setattr(answers, "FRESH", -1.0)  # one new window a request
    monkeypatch.setattr(http, "_LEAST", -1.0)  # no answer is cached
    service = made(state)
    for n in range(1, len(whole["time"])):
        some = answered(service, "/api/series").json()
        assert (some["more"], some["complete"]) == (True, False)
        assert some["time"] == whole["time"][-n:]
        assert some["metrics"]["loss"]["value"] == whole["metrics"]["loss"]["value"][-n:]
    while some["more"]:  # windows without rows
        some = answered(service, "/api/series").json()
    assert some == whole


def test_more_states_than_a_request_may_merge_are_refused(monkeypatch):
    state = live()
    service = made(state, every="1d")
    path = "/api/series?window=2h&every=1h"
    whole = answered(made(state), path).json()
    monkeypatch.setattr(answers, "BYTES", 5000)
    allowed = largest(answered(service, path))
    some = answered(service, f"{path}&{allowed}").json()
    n = len(some["time"])
    assert 0 < n < len(whole["time"])
    assert some["metrics"]["loss"]["value"] == whole["metrics"]["loss"]["value"][-n:]

    refused = answered(service, "/api/now?window=5d")
    window = largest(refused)
    for name in ("now", "possible", "coverage", "slices"):
        assert answered(service, f"/api/{name}?window=5d").json() == refused.json()
        assert answered(service, f"/api/{name}?{window}").status_code == 200
    days = int(re.fullmatch(r"window=(\d)d", window)[1])
    assert answered(service, f"/api/now?window={days + 1}d").status_code == 422


def test_states_that_were_merged_before_cost_nothing(monkeypatch):
    state, view = live(), PageView(window="2h", every="1h")
    line = answers.WindowAnswers()
    whole = last(line.read(state._queries, view, None, lambda: None, whole=True))
    monkeypatch.setattr(answers, "BYTES", 0)
    assert last(line.read(state._queries, view, None, lambda: None, whole=True)) == whole
    with pytest.raises(answers.CostError, match="merge 0 MB of states: the largest span"):
        last(answers.WindowAnswers().read(state._queries, view, None, lambda: None, whole=True))


def test_series_are_read_in_turns(held, monkeypatch):
    monkeypatch.setattr(http, "_TURN", 0.0)

    async def ask():
        service = made(live())
        made_now = service.state.service._history._made
        async with asking(service) as client:
            long = asyncio.create_task(client.get("/api/series?window=1h&every=1h"))
            await asyncio.to_thread(held.begun.wait, WAIT)
            short = asyncio.create_task(client.get("/api/series?window=1h&every=1h&span=2h"))
            while len(made_now) < 2:
                await asyncio.sleep(0)
            held.go_on.set()
            found = await short
            windows = held.windows
            return found, windows, await long

    short, windows, long = asyncio.run(ask())
    assert len(short.json()["time"]) == 2
    assert len(long.json()["time"]) > 48 > windows


def test_a_wrong_request_waits_for_no_series(held):
    wrong = {
        "window=1h&every=x": "every='x'",
        "window=7s&every=1min": "a window of 7s is not a whole number of panes",
        "window=x": "window='x'",
        "window=1h&every=5min&span=x": "span='x'",
        "window=1h&every=5min&ago=x": "ago='x'",
        "window=1h&every=5min&slice=x": "slice='x'",
        'window=1h&every=5min&slice={"country":"DE"}': "nothing is sliced here",
    }

    async def ask():
        async with asking(made(live())) as client:
            reads = [client.get("/api/series?window=1h&every=5min"), client.get("/api/series")]
            tasks = [asyncio.create_task(read) for read in reads]
            await asyncio.to_thread(held.begun.wait, WAIT)
            for query, why in wrong.items():
                answer = await asyncio.wait_for(client.get(f"/api/series?{query}"), WAIT)
                assert (answer.status_code, why in answer.text) == (400, True), answer.text
            answer = await asyncio.wait_for(client.get("/api/now?window=7s"), WAIT)
            assert (answer.status_code, "7s" in answer.text) == (400, True), answer.text
            assert not any(task.done() for task in tasks)
            held.go_on.set()
            await asyncio.gather(*tasks)

    asyncio.run(ask())


def test_a_series_that_takes_too_long_ends_and_goes_on_when_asked_again(monkeypatch):
    state, path = live(days=1), "/api/series?window=1h&every=1h"
    whole = answered(made(state), path).json()
    measured, of = [], answers.WindowRow.of
    monkeypatch.setattr(
        answers.WindowRow, "of", lambda found, window: measured.append(found) or of(found, window)
    )
    clock = SimpleNamespace(monotonic=time.monotonic, thread_time=lambda: 30 * len(measured))
    monkeypatch.setattr(http, "time", clock)
    monkeypatch.setattr(app, "_SECONDS", 200)  # so that each answer measures some windows
    service, refused = made(state), 0
    while (answer := answered(service, path)).status_code == 503:
        assert answer.headers["retry-after"] == "1"
        assert "more than 200 s of processor time: take a shorter span" in answer.json()["error"]
        refused += 1
    assert refused == len(measured) // 7 > 2
    assert len({found.span for found in measured}) == len(measured)  # none is read twice
    assert answer.json() == whole


def test_what_the_configuration_has_is_never_refused(monkeypatch):
    monkeypatch.setattr(answers, "BYTES", 1)
    service = made(live(), window="5d", every="1d")
    now, series = answered(service, "/api/now?window=5d", "/api/series?window=5d&every=1d")
    assert now.json()["n_rows"] == 5 * 24 * 12
    assert (len(series.json()["time"]), series.json()["complete"]) == (1, False)


def test_a_line_is_measured_once(monkeypatch):
    state, measured = live(), []
    of = answers.WindowRow.of
    monkeypatch.setattr(
        answers.WindowRow,
        "of",
        lambda found, window: measured.append(found.end) or of(found, window),
    )
    line, view = answers.WindowAnswers(), PageView(window="1h", every="1h")

    def read():
        measured.clear()
        return last(line.read(state._queries, view, None, lambda: None, whole=False))

    first = read()
    assert len(measured) >= len(first["time"]) > 48
    assert read() == first
    assert measured == []
    end = state._queries.clock // (60 * 10**9) * 60 + 60
    state.observe(time=end - 90, y_true=0.5, y_pred=0.5)
    assert read()["n_rows"][-1] == first["n_rows"][-1] + 1
    assert measured == [end * 10**9]


def expired(default=None):
    """A sliced stream of 2.5 hours, of which only the last 70 minutes still wait for labels."""
    rng, n = np.random.default_rng(1), 600
    metrics = {"accuracy": sm.Accuracy(threshold=0.5), "auc": sm.ROCAUC()}
    state = sm.Live(
        sm.MetricSet(metrics),
        tiers=[("1min", "3h"), ("1h", "15d")],
        by=[["country"]],
        label_ttl="1h",
        label_lateness="10min",
        default_label=default,
        max_ahead=None,
    )
    times, labels = START + 15.0 * np.arange(n), rng.integers(0, 2, n)
    scores, countries = rng.random(n).round(2), rng.choice(list("abcdef"), n)
    for first in range(0, n, 20):
        rows = slice(first, first + 20)
        state.predict(
            id=np.arange(n)[rows], time=times[rows], y_score=scores[rows], country=countries[rows]
        )
        some = np.arange(n)[rows][rng.random(20) < 0.4]
        state.label(id=some, time=times[some] + 60, y_true=labels[some])
    return state


@pytest.mark.parametrize("default", [None, 0])
def test_each_answer_adds_a_window_until_all_are_those_of_one_read(monkeypatch, default):
    monkeypatch.setattr(answers, "FRESH", 0.0)
    state, view, measured = expired(default), PageView(window="1h", every="5min"), []
    of = answers.WindowRow.of
    whole = last(answers.WindowAnswers().read(state._queries, view, None, lambda: None, whole=True))
    monkeypatch.setattr(
        answers.WindowRow, "of", lambda found, window: measured.append(found) or of(found, window)
    )
    line, n = answers.WindowAnswers(), len(whole["time"])
    assert n == 25
    for known in range(1, n + 1):
        found = last(line.read(state._queries, view, None, lambda: None, whole=False))
        assert len(found["time"]) == known
        assert found["more"] == (known < n)
        assert len(measured) == known  # no window is read twice
    assert found == whole


def test_each_answer_adds_a_window_while_others_change(monkeypatch):
    monkeypatch.setattr(answers, "FRESH", 0.0)
    state, line = expired(), answers.WindowAnswers()
    for known in range(1, 26):
        end = state._queries.clock // 10**9
        row = {"y_true": known % 2, "y_score": 0.5, "country": "a"}
        state.observe(time=[end, end - 1800, end - 3600], **{k: [v] * 3 for k, v in row.items()})
        view = PageView(window="1h", every="5min")
        found = last(line.read(state._queries, view, None, lambda: None, whole=False))
        assert len(found["time"]) == known
    assert not found["more"]


# --- scrapes -----------------------------------------------------------------------------------


@pytest.fixture
def slow(monkeypatch):
    """Let the state be read for a scrape only when it may be."""
    go_on, read = threading.Event(), app.families

    def hold(*arguments):
        assert go_on.wait(WAIT)
        return read(*arguments)

    monkeypatch.setattr(app, "families", hold)
    monkeypatch.setattr(scrape, "DEADLINE", 0.05)
    yield go_on
    go_on.set()


def test_a_scrape_tells_what_was_read_last_where_reading_takes_long(slow):
    state = live()

    def rows(answer):
        found = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if line[0] != "#")
        names = 'streammetrics_rows{window="1h"}', "streammetrics_read_timestamp_seconds"
        return [float(found[name]) for name in names]

    async def ask():
        async with asking(made(state)) as client:
            first = await client.get("/metrics")
            assert (first.status_code, first.headers["retry-after"]) == (503, "1")
            slow.set()
            while (known := await client.get("/metrics")).status_code == 503:
                pass
            slow.clear()
            state.observe(time=START + 5 * 86_400 - 1, y_true=0.5, y_pred=0.5)
            old = await client.get("/metrics")
            slow.set()
            end = time.monotonic() + WAIT
            while rows(new := await client.get("/metrics"))[0] == rows(old)[0]:
                assert time.monotonic() < end
            return rows(known), rows(old), rows(new)

    known, old, new = asyncio.run(ask())
    assert old[0] == known[0] == new[0] - 1
    assert old[1] <= new[1]


def test_counters_and_latencies_of_requests_are_told():
    events = [
        {"kind": "observe", "time": START, "y_true": 0.5, "y_pred": 0.5},
        {"kind": "predict", "id": 1, "time": START, "y_pred": 0.5},
    ]
    service = made(live())

    async def ask():
        async with asking(service) as client:
            for _ in "123":
                body = "\n".join(map(json.dumps, events))
                assert (await client.post("/events", content=body)).status_code == 202
            assert (await client.post("/events", content="{")).status_code == 422
            assert (await client.get("/nothing/<script>")).status_code == 404
            return (await client.get("/metrics")).text

    text = asyncio.run(ask())
    for line in (
        "# TYPE streammetrics_taken_events_total counter",
        'streammetrics_taken_events_total{kind="observe"} 3.0',
        'streammetrics_taken_events_total{kind="label"} 0.0',
        'streammetrics_refused_requests_total{status="422"} 1.0',
        "# TYPE streammetrics_dropped_rows_total counter",
        'streammetrics_refused_events_total{kind="observations"} 0.0',
        "# TYPE streammetrics_request_duration_seconds histogram",
        'streammetrics_request_duration_seconds_count{path="/events",status="202"} 3.0',
        'streammetrics_request_duration_seconds_bucket{le="+Inf",path="other",status="404"} 1.0',
    ):
        assert line in text.splitlines(), text
    assert "<script" not in text
    assert "nothing" not in text


def test_counters_of_several_workers_say_whose_they_are():
    view, server = PageView(), Server(clock="events", workers=2)
    text = answered(application(live(), view=view, server=server), "/metrics").text
    assert re.search(r'streammetrics_dropped_rows_total\{worker="\d+"\} 0.0', text)
    assert re.search(r'streammetrics_taken_events_total\{kind="label",worker="\d+"\} 0.0', text)
