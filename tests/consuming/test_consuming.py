"""Events from queues: each counts once, through crashes of the consumer and of the server."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from consuming.queues import STREAM, Kafka, Nats, Redis
from service.serving import until

from streammetrics.cli import main
from streammetrics.live.service.config import settings

START = int(time.time()) // 60 * 60 - 3600


@pytest.fixture(params=[Redis, Nats, Kafka])
def queue(request, tmp_path):
    if not request.param.needs:
        pytest.skip(request.param.reason)
    folder = tmp_path / "server"
    folder.mkdir()
    with request.param(folder) as server:
        yield server


class Consumer:
    """`streammetrics live consume` in a process."""

    def __init__(self, config, queue, *more):
        words = ["-m", "streammetrics", "live", "consume", str(config), queue.url]
        self.process = subprocess.Popen(
            [sys.executable, *words, "--stream", STREAM, *more],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def begun(self):
        line = self.process.stdout.readline()
        assert line == f"consuming {STREAM}\n", self.process.communicate()[1]
        return self

    def end(self, number=signal.SIGTERM):
        os.kill(self.process.pid, number)
        out, err = self.process.communicate(timeout=120)
        return self.process.returncode, out, err


def observed(n, seed=0):
    chance = np.random.default_rng(seed)
    times = START + chance.integers(0, 1800, n)
    labels, scores = chance.integers(0, 2, n), chance.integers(0, 1001, n) / 1000
    return [
        {"kind": "observe", "time": int(t), "label": int(y), "score": float(s)}
        for t, y, s in zip(times, labels, scores, strict=True)
    ]


def joined(n, seed=0):
    """Return predictions and their labels, each as an event."""
    found = []
    for place, event in enumerate(observed(n, seed)):
        at = {"id": f"r{seed}-{place}", "time": event["time"]}
        found.append({"kind": "predict", **at, "score": event["score"]})
        late = {**at, "time": event["time"] + 60}
        found.append({"kind": "label", **late, "label": event["label"]})
    return found


def values(events):
    return [json.dumps(event).encode() for event in events]


def windows(path):
    with settings(path).live() as live:
        return live.series("1min", every="1min")


def n_rows(path):
    with settings(path).live() as live:
        return live.n_rows


def check_windows(path, events):
    """Compare each minute with its rows, counted by NumPy."""
    found = windows(path)
    times = np.array([event["time"] for event in events]) // 60 * 60
    labels = np.array([event["label"] for event in events])
    said = np.array([event["score"] for event in events]) >= 0.5
    for start, n, accuracy in zip(
        found["start"].astype("int64") // 10**9, found["n_rows"], found["accuracy"], strict=True
    ):
        mine = times == start
        assert n == mine.sum()
        if n:
            assert accuracy == (labels[mine] == said[mine]).sum() / n
    assert found["n_rows"].sum() == len(events)


def test_every_event_counts_once_and_sigterm_ends_it(queue, config):
    path, events = config(), observed(2500)
    queue.send(values(events[:1500]))
    for upto, rest in ((1500, events[1500:]), (2500, ()), (2500, ())):
        with_more = Consumer(path, queue).begun()
        until(lambda upto=upto: n_rows(path) == upto)
        code, out, err = with_more.end()
        assert (code, err) == (0, "")
        assert out.startswith("consumed ")
        if rest:
            queue.send(values(rest))
    check_windows(path, events)


@pytest.mark.long
def test_killed_at_any_moment_each_event_counts_once(queue, config):
    """Observations without ids: nothing but the stored position tells what has been counted."""
    path, events, chance = config(), observed(60_000), random.Random(3)
    consumer, n = None, len(events)
    for start in range(0, n, 3000):
        queue.send(values(events[start : start + 3000]))
        consumer = consumer or Consumer(path, queue).begun()
        time.sleep(chance.uniform(0.0, 0.6))
        if start % 2000 == 0:
            consumer.process.kill()
            consumer.process.communicate()
            consumer = None
    last = consumer or Consumer(path, queue).begun()
    until(lambda: n_rows(path) >= len(events))
    last.end()
    check_windows(path, events)


@pytest.mark.long
def test_predictions_and_labels_through_kills_are_those_of_one_run(queue, config):
    path, events, chance = config(), joined(4000), random.Random(5)
    for start in range(0, len(events), 1000):
        queue.send(values(events[start : start + 1000]))
        consumer = Consumer(path, queue).begun()
        time.sleep(chance.uniform(0.1, 0.5))
        consumer.process.kill()
        consumer.process.communicate()
    consumer = Consumer(path, queue).begun()
    until(lambda: n_rows(path) == 4000)
    consumer.end()
    with settings(path).live(store=False) as whole:
        for kind, take in (("predict", whole.predict), ("label", whole.label)):
            for event in (e for e in events if e["kind"] == kind):
                take(**{name: value for name, value in event.items() if name != "kind"})
        with settings(path).live() as live:
            assert live.to_bytes() == whole.to_bytes()


def test_a_server_that_comes_back_is_read_on(queue, config):
    if isinstance(queue, Kafka):
        pytest.skip("the mock keeps nothing")
    path, events = config(), observed(2000)
    queue.send(values(events[:1000]))
    consumer = Consumer(path, queue).begun()
    until(lambda: n_rows(path) == 1000)
    queue.end()
    time.sleep(1.5)
    queue.start()
    queue.send(values(events[1000:]))
    until(lambda: n_rows(path) == 2000)
    code, _, err = consumer.end()
    assert code == 0
    assert "it is tried again" in err
    check_windows(path, events)


def test_refused_events_are_dead_letters_and_the_rest_is_taken(queue, config, tmp_path):
    path, events = config(), observed(400)
    bad = [b"{", b"\xff\xfe", b'{"kind": "guess"}', b"", b"[1, 2", b"7", b"NaN"]
    several = [b"\n".join(values(events[200:300])), json.dumps(events[300:]).encode()]
    many = b"\n".join([b'{"kind": "guess"}'] * 150)  # of which only the whole is kept
    queue.send([*values(events[:100]), *bad, *values(events[100:200]), *several, many])
    consumer = Consumer(path, queue).begun()
    until(lambda: n_rows(path) == 400)
    until(lambda: (tmp_path / "refused.jsonl").read_text().count("\n") == 7)
    code, out, err = consumer.end()
    assert (code, err) == (0, "")
    assert out == "consumed 400 observe, 7 refused\n"
    letters = [json.loads(line) for line in (tmp_path / "refused.jsonl").read_text().splitlines()]
    found = {letter["event"] for letter in letters if isinstance(letter["event"], str)}
    assert {"{", "[1, 2", "NaN", many.decode()} <= found
    check_windows(path, events)


def test_a_second_consumer_of_a_queue_ends(queue, config):
    path = config()
    queue.send(values(observed(10)))
    both = [Consumer(path, queue).begun() for _ in range(2)]
    events = observed(20_000, seed=1)
    for start in range(0, len(events), 1000):
        queue.send(values(events[start : start + 1000]))
    until(lambda: n_rows(path) == 20_010)
    codes = [consumer.process.poll() for consumer in both]
    # Each batch is counted by one of them; the other sees that, and ends.
    told = [consumer.end()[2] if code is None else consumer.process.communicate()[1]
            for consumer, code in zip(both, codes, strict=True)]  # fmt: skip
    if 2 in codes:
        assert "another consumer has taken these messages" in told[codes.index(2)]
    assert n_rows(path) == 20_010


def test_a_queue_that_was_made_anew_is_told(queue, config, capsys):
    if isinstance(queue, Kafka):
        pytest.skip("a topic of the mock cannot be deleted")
    path = config()
    queue.send(values(observed(100)))
    consumer = Consumer(path, queue).begun()
    until(lambda: n_rows(path) == 100)
    consumer.end()
    queue.make_anew()
    assert main(["live", "consume", str(path), queue.url, "--stream", STREAM]) == 2
    assert "it was made anew; --group with another name" in capsys.readouterr().err


def test_entries_that_redis_trimmed_unread_are_told(queue, config):
    if not isinstance(queue, Redis):
        pytest.skip("these tell by themselves what they have deleted")
    path, events = config(), observed(300)
    queue.send(values(events[:100]))
    consumer = Consumer(path, queue).begun()
    until(lambda: n_rows(path) == 100)
    assert consumer.end()[2] == ""
    queue.send(values(events[100:]))
    queue.client.xtrim(STREAM, maxlen=50, approximate=False)
    consumer = Consumer(path, queue).begun()
    until(lambda: n_rows(path) == 150)
    code, _, err = consumer.end()
    assert code == 0
    assert err.count("may have been deleted before they were read") == 1
    check_windows(path, events[:100] + events[250:])


MISTAKES = {
    "http://127.0.0.1": "no queue 'http'",
    "redis:": "redis: is not the address of a queue: write redis://",
    "redis://127.0.0.1:1": "Redis: Error 111 connecting to 127.0.0.1:1",
    "nats://127.0.0.1:1": "NATS: ",
    "kafka://127.0.0.1:1?socket.timeout.ms=100": "Kafka: ",
    "kafka://127.0.0.1:1?no.such=1": 'Kafka: No such configuration property: "no.such"',
}


@pytest.mark.parametrize("url", MISTAKES)
def test_mistakes_are_one_line(url, config, capsys, monkeypatch):
    monkeypatch.setattr("streammetrics.live.consuming.kafka._TIMEOUT", 0.5)
    assert main(["live", "consume", str(config()), url, "--stream", STREAM]) == 2
    err = capsys.readouterr().err
    assert MISTAKES[url] in err
    assert err.count("\n") == 1


def test_it_needs_a_store_a_file_for_refused_events_and_a_password_that_is_named(config, capsys):
    words = ["redis://127.0.0.1:1", "--stream", STREAM]
    for live, more, told in (
        ('on_invalid = "dead_letter"', [], "has no store, which holds how far a queue is read"),
        ('store = "live.db"', [], 'write on_invalid = "dead_letter" in [live]'),
        ("", ["--password-env", "NO_SUCH"], "NO_SUCH is not set, or empty: export it"),
        ("", ["--log", "xml"], "--log xml: expected text or json"),
    ):
        assert main(["live", "consume", str(config(live=live)), *words, *more]) == 2
        assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "extra"), [("redis", "redis"), ("nats", "nats"), ("confluent_kafka", "kafka")]
)
def test_a_library_that_is_missing_is_named_with_its_extra(
    module, extra, config, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["live", "consume", str(config()), f"{extra}://127.0.0.1:1", "--stream", "e"]) == 2
    assert f"'streammetrics[{extra}]'" in capsys.readouterr().err
