"""Alerts reach their receivers, whichever of both is killed, hangs, refuses or comes back."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families
from service.serving import Service, children, free_port, until
from service.test_endpoints import TestClient

import streammetrics as sm
from streammetrics.live.alerts.rule import Alert, Alerts
from streammetrics.live.exporting.files import Notice
from streammetrics.live.service import delivery as module
from streammetrics.live.service.app import application
from streammetrics.live.service.delivery import Deliverer, Delivery, Match, MuteInterval, Receiver
from streammetrics.live.service.server import Server

RULE = sm.Below("accuracy", 0.8, name="low")
NOTICE = Notice(
    "low", "accuracy below 0.8", "page", labels=(("team", "ml"),), runbook="https://r/1"
)


class Desk:
    """An HTTP server that receives alerts; `answers` are statuses, 200 where there is none."""

    def __init__(self, port=None):
        self.port, self.posts, self.answers = port or free_port(), [], []
        self.holds = threading.Event()
        self.holds.set()
        self.url = f"http://127.0.0.1:{self.port}/hook"

    def __enter__(self):
        desk = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = desk.answers.pop(0) if desk.answers else 200
                desk.holds.wait(60)
                desk.posts.append((self.path, self.headers, json.loads(body), status))
                with contextlib.suppress(OSError):  # the client waits no longer
                    self.send_response(status)
                    if status == 302:
                        self.send_header("Location", desk.url)
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.holds.set()
        self.server.shutdown()
        self.server.server_close()

    def taken(self):
        """Return the states of the changes that it has taken, in order, without repetitions."""
        found = {body["id"]: body["state"] for _, _, body, status in self.posts if status == 200}
        return list(found.values())


class Rules:
    """Alerts as a test wants them: what rules would have found."""

    def __init__(self, *names):
        self.changes = {name: [] for name in names or ("low",)}
        self.until = 1_700_000_000

    def change(self, state, name="low"):
        self.until += 60
        self.changes[name].append((datetime.fromtimestamp(self.until, UTC), state))

    def __call__(self):
        until = datetime.fromtimestamp(self.until, UTC)
        return Alerts(
            Alert(name, changes[-1][1], changes[-1][0], until, 0.7, 0.7, 0.7, 9, "<why>",
                  tuple(changes), RULE)
            for name, changes in self.changes.items() if changes
        )  # fmt: skip


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for name, seconds in (("_EVERY", 0.05), ("_FIRST", 0.05), ("_GRACE", 0.5), ("_LEASE", 1.0)):
        monkeypatch.setattr(module, name, seconds)


@pytest.fixture
def deliver(tmp_path):
    """Return a maker of started deliverers, which end with the test."""
    with contextlib.ExitStack() as stack:

        def make(judge, *receivers, silences=(), journal=None, notices=(NOTICE,)):
            made = Deliverer(Delivery(notices, receivers, silences), "Shop", judge, journal)
            made.start()
            stack.callback(made.close)
            return made

        yield make


@pytest.fixture
def to(tmp_path):
    """Return a maker of receivers whose dead letters are in the test's folder."""

    def make(desk, kind="webhook", **rest):
        letters = str(tmp_path / "letters.jsonl")
        rest = {"match": Match(), "dead_letters": letters, "timeout": 0.5, **rest}
        return Receiver(rest.pop("name", kind), kind, desk.url, **rest)

    return make


def buried(tmp_path):
    path = tmp_path / "letters.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_every_kind_has_its_form(deliver, to):
    with Desk() as desk:
        rules = Rules()
        rules.change("ok")
        made = deliver(
            rules, to(desk, token="t"), to(desk, "slack"), to(desk, "pagerduty", key="k"),
            to(desk, "alertmanager"),
        )  # fmt: skip
        until(lambda: made._followed)
        rules.change("firing")
        until(lambda: len(desk.posts) == 4)
        first = {headers["Idempotency-Key"] for _, headers, _, _ in desk.posts}
        assert len(first) == 1
        rules.change("ok")
        until(lambda: len(desk.posts) == 8)
        of = {
            kind: [body for _, _, body, _ in desk.posts if part in str(body)]
            for kind, part in (
                ("webhook", "'before'"), ("slack", "'text'"), ("pagerduty", "'dedup_key'"),
                ("alertmanager", "'alertname'"),
            )
        }  # fmt: skip
        on, off = [body for body in of["webhook"] if "id" in body]
        assert (on["state"], on["before"], off["state"]) == ("firing", "ok", "ok")
        assert {on["id"]} == first != {off["id"]}
        assert (on["service"], on["alert"], on["severity"]) == ("Shop", "low", "page")
        assert (on["labels"], on["runbook"], on["value"]) == ({"team": "ml"}, "https://r/1", 0.7)
        tokens = [headers["Authorization"] for _, headers, _, _ in desk.posts]
        assert tokens.count("Bearer t") == 2
        assert tokens.count(None) == 6
        texts = [body["text"] for body in of["slack"] if "text" in body and "id" not in body]
        assert texts[0] == "*FIRING* (page) Shop: low\n&lt;why&gt;\n<https://r/1|Runbook>"
        assert texts[1].startswith("*RESOLVED* (page) Shop: low")
        on, off = of["pagerduty"]
        assert (on["event_action"], off["event_action"]) == ("trigger", "resolve")
        assert on["dedup_key"] == off["dedup_key"]
        assert on["routing_key"] == off["routing_key"] == "k"
        assert on["payload"].keys() >= {"summary", "source", "severity", "timestamp"}
        assert (on["payload"]["severity"], on["links"][0]["href"]) == ("critical", "https://r/1")
        (on,), (off,) = (body for body in of["alertmanager"] if isinstance(body, list))
        labels = {"alertname": "low", "service": "Shop", "severity": "page", "team": "ml"}
        assert on["labels"] == off["labels"] == labels
        assert on["annotations"]["runbook_url"] == "https://r/1"
        ends = [
            datetime.fromisoformat(one["endsAt"]).timestamp() - time.time() for one in (on, off)
        ]
        assert 200 < ends[0] < 300
        assert ends[1] <= 0


def test_failures_are_tried_again_in_order_and_counted_once(deliver, to, tmp_path, capfd):
    with Desk() as desk:
        desk.answers = [500, 503, 429, 200, 500]
        rules = Rules()
        rules.change("firing")
        made = deliver(rules, to(desk))
        until(lambda: made._followed)
        rules.change("ok")
        rules.change("firing")
        until(lambda: desk.taken() == ["firing", "ok", "firing"])
        until(lambda: made.health["webhook"]["delivered"] == 3)
        assert [status for *_, status in desk.posts] == [500, 503, 429, 200, 500, 200, 200]
        assert made.health["webhook"] == {
            "waiting": 0, "delivered": 3, "undelivered": 0, "trouble": "",
        }  # fmt: skip
    assert not buried(tmp_path)
    assert "warning: webhook does not take alerts: 500" in capfd.readouterr().err


def test_a_receiver_that_is_not_there_gets_them_later(deliver, to):
    desk, rules = Desk(), Rules()
    rules.change("firing")
    made = deliver(rules, to(desk))
    until(lambda: made.health["webhook"]["trouble"])
    with desk:
        until(lambda: desk.taken() == ["firing"])


def test_a_receiver_that_hangs_delays_no_other_and_gets_them_again(deliver, to):
    with Desk() as slow, Desk() as good:
        slow.holds.clear()
        rules = Rules()
        rules.change("firing")
        made = deliver(rules, to(slow, name="slow", timeout=0.2), to(good))
        until(lambda: good.taken() == ["firing"])
        until(lambda: made.health["slow"]["trouble"] == "timed out")
        slow.holds.set()
        until(lambda: made.health["slow"]["delivered"] == 1)
        assert slow.taken() == ["firing"]


@pytest.mark.parametrize("status", [302, 400, 401, 404, 410])
def test_a_refusal_is_a_dead_letter_and_the_next_change_is_sent(deliver, to, tmp_path, status):
    with Desk() as desk:
        desk.answers = [status]
        rules = Rules()
        rules.change("firing")
        deliver(rules, to(desk))
        until(lambda: buried(tmp_path))
        rules.change("ok")
        until(lambda: desk.taken() == ["ok"])
        ((letter),) = buried(tmp_path)
        assert (letter["receiver"], letter["change"]["state"]) == ("webhook", "firing")
        assert letter["why"].startswith(str(status))
        assert len(desk.posts) == 2


def test_a_change_is_given_up_after_its_time(deliver, to, tmp_path):
    desk, rules = Desk(), Rules()
    rules.change("firing")
    made = deliver(rules, to(desk, give_up=0.3))
    until(lambda: buried(tmp_path))
    assert made.health["webhook"]["undelivered"] == 1
    assert "refused" in buried(tmp_path)[0]["why"]


def test_the_queue_is_bounded(deliver, to, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_QUEUE", 3)
    rules = Rules()
    rules.change("firing")
    made = deliver(rules, to(Desk()))
    until(lambda: made._followed)
    for state in ("ok", "firing") * 3:
        rules.change(state)
    until(lambda: len(buried(tmp_path)) == 4)
    assert made.health["webhook"]["waiting"] == 3


def test_without_a_store_the_end_leaves_dead_letters(deliver, to, tmp_path):
    rules = Rules()
    rules.change("firing")
    made = deliver(rules, to(Desk()))
    until(lambda: made.health["webhook"]["waiting"])
    made.close()
    assert [letter["why"] for letter in buried(tmp_path)] == [
        "the service has ended, and has no store"
    ]
    (tmp_path / "letters.jsonl").unlink()


def test_no_data_neither_begins_nor_ends_an_incident(deliver, to):
    with Desk() as every, Desk() as incidents:
        rules = Rules()
        rules.change("ok")
        made = deliver(rules, to(every), to(incidents, "pagerduty", key="k"))
        until(lambda: made._followed)
        for state in ("no data", "ok", "firing", "no data", "firing", "no data", "ok", "no data"):
            rules.change(state)
        until(lambda: len(every.taken()) == 8)
        until(lambda: made.health["pagerduty"]["delivered"] == 2)
        assert [body["event_action"] for _, _, body, _ in incidents.posts] == ["trigger", "resolve"]


def test_history_before_the_first_evaluation_is_no_news_and_what_moves_later_is_none(deliver, to):
    with Desk() as desk:
        rules = Rules()
        for state in ("ok", "firing", "ok"):
            rules.change(state)
        made = deliver(rules, to(desk))
        until(lambda: made._followed)
        rules.changes["low"] = rules.changes["low"][-1:]  # panes are no longer kept
        rules.until += 60
        time.sleep(0.2)
        rules.change("firing")
        until(lambda: desk.taken() == ["firing"])
        rules.changes["low"][-1] = (rules.changes["low"][-1][0], "ok")  # late rows
        until(lambda: desk.taken() == ["firing", "ok"])


def test_a_worker_that_lags_behind_the_last_one_tells_nothing(deliver, to):
    with Desk() as desk:
        rules, lagging = Rules(), Rules()
        rules.change("firing")
        made = deliver(rules, to(desk))
        until(lambda: desk.taken() == ["firing"])
        lagging.until -= 60
        lagging.change("ok")
        made._judge = lagging
        time.sleep(0.3)
        lagging.until = rules.until
        until(lambda: desk.taken() == ["firing", "ok"])
        assert len(desk.posts) == 2


def test_alertmanager_gets_again_what_fires(deliver, to, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_REPEAT", 0.2)
    with Desk() as desk:
        rules = Rules()
        rules.change("firing")
        deliver(rules, to(desk, "alertmanager"))
        until(lambda: len(desk.posts) > 3)
        desk.answers = [404]  # which is no dead letter, as it was delivered before
        rules.change("ok")
        until(lambda: "startsAt" not in desk.posts[-1][2][0])
        n = len(desk.posts)
        time.sleep(0.5)
        assert len(desk.posts) == n
        assert not buried(tmp_path) or buried(tmp_path)[0]["change"]["state"] == "ok"


def test_a_receiver_gets_the_rules_that_it_selects(deliver, to):
    notices = (NOTICE, Notice("late", "", "ticket"), Notice("late_too", "", "ticket"))
    with Desk() as pages, Desk() as tickets, Desk() as late:
        rules = Rules("low", "late", "late_too")
        for name in rules.changes:
            rules.change("firing", name)
        deliver(
            rules, to(pages, match=Match(labels=(("severity", "page"),)), name="a"),
            to(tickets, match=Match(labels=(("severity", "ticket"),)), name="b"),
            to(late, match=Match(("late*",)), name="c"), notices=notices,
        )  # fmt: skip
        until(lambda: [len(d.posts) for d in (pages, tickets, late)] == [1, 2, 2])
        assert [body["alert"] for _, _, body, _ in late.posts] == ["late", "late_too"]


def test_silenced_changes_are_recorded_and_told_later_only_if_they_last(deliver, to):
    with Desk() as desk:
        rules, begins = Rules("low", "other"), time.time()
        mute = MuteInterval(Match(("low",)), begins, begins + 2.0, reason="deployment")
        notices = (NOTICE, Notice("other"))
        rules.change("ok")
        rules.change("ok", "other")
        made = deliver(rules, to(desk), silences=(mute,), notices=notices)
        until(lambda: made._followed)
        for state in ("firing", "ok", "firing"):
            rules.change(state)
        rules.change("firing", "other")
        until(lambda: len(desk.posts) == 1)
        assert desk.posts[0][2]["alert"] == "other"
        history = made.told(rules()[0])["history"]
        assert [each["silenced"] for each in history] == ["deployment"] * 3 + [None]
        assert time.time() < begins + 2.0
        until(lambda: len(desk.posts) == 2)
        assert time.time() >= begins + 2.0
        assert desk.posts[1][2]["id"] == made._followed["low"]["change"]["id"]
        rules.change("ok")
        until(lambda: len(desk.posts) == 3)


# --- stores and processes -----------------------------------------------------------------------


def test_of_two_workers_one_delivers_and_the_other_goes_on(deliver, to, tmp_path):
    with Desk() as desk, contextlib.ExitStack() as stack:
        workers = [
            stack.enter_context(sm.Live(sm.Mean(), store=tmp_path / "live.db")) for _ in range(2)
        ]
        rules = Rules()
        rules.change("ok")
        first, second = (deliver(rules, to(desk), journal=live._ingest.journal) for live in workers)
        until(lambda: first._leads or second._leads)
        until(lambda: first._followed and second._followed)
        rules.change("firing")
        until(lambda: len(desk.posts) == 1)
        time.sleep(0.5)
        assert first._leads + second._leads == 1
        leader, other = (first, second) if first._leads else (second, first)
        leader.close()
        rules.change("ok")
        until(lambda: len(desk.posts) == 2)
        assert other._leads
        assert desk.taken() == ["firing", "ok"]
        assert len(desk.posts) == 2


def test_a_leader_that_stops_is_replaced_and_sends_no_more(deliver, to, tmp_path):
    with Desk() as desk, contextlib.ExitStack() as stack:
        lives = [stack.enter_context(sm.Live(sm.Mean(), store=tmp_path / "s.db")) for _ in range(2)]
        rules = Rules()
        rules.change("ok")
        first = deliver(rules, to(desk), journal=lives[0]._ingest.journal)
        until(lambda: first._leads)
        hang, judge = threading.Event(), first._judge

        def hangs():
            hang.wait(60)
            return judge()

        first._judge = hangs
        second = deliver(rules, to(desk), journal=lives[1]._ingest.journal)
        until(lambda: second._leads)
        rules.change("firing")
        until(lambda: desk.taken() == ["firing"])
        hang.set()
        until(lambda: not first._leads)
        time.sleep(0.3)
        assert len({body["id"] for _, _, body, _ in desk.posts}) == 1


def test_what_a_store_cannot_keep_is_delivered_nevertheless(deliver, to):
    stored, works = {}, [True]

    def exchange(change):
        told = change(dict(stored))
        if works[0]:
            stored.update(told)
        return works[0]

    with Desk() as desk:
        rules = Rules()
        rules.change("ok")
        made = deliver(rules, to(desk), journal=SimpleNamespace(exchange=exchange))
        until(lambda: stored and made._followed)
        works[0] = False
        rules.change("firing")
        until(lambda: desk.taken() == ["firing"])
        works[0] = True
        until(lambda: json.loads(stored["alerts"])["low"]["state"] == "firing")


def bad_events(n, share, at):
    return [
        {"kind": "observe", "time": at, "label": i % 2, "score": float((i % 2) ^ (i < share * n))}
        for i in range(n)
    ]


def test_deliveries_are_counted_at_metrics(to):
    start = (int(time.time()) - 3600) // 60 * 60
    live = sm.Live(sm.Accuracy())
    rule = sm.Below("value", 0.6, window="1min", name="low")
    many = {"delivered_changes_total", "undelivered_changes_total", "waiting_changes"}

    def counts(client):
        samples = [
            sample
            for family in text_string_to_metric_families(client.get("/metrics").text)
            for sample in family.samples
            if sample.name.removeprefix("streammetrics_") in many
        ]
        assert all(sample.labels == {"receiver": "webhook"} for sample in samples)
        return [int(sample.value) for sample in samples]

    with Desk() as desk:
        desk.answers, rest = [200, 400], {"server": Server(clock="events"), "rules": [rule]}
        app = application(live, delivery=Delivery((NOTICE,), (to(desk),), ()), **rest)
        with TestClient(app, base_url="http://localhost") as client:
            assert counts(client) == [0, 0, 0]
            minutes = iter([0, 0, 1, 1, 0, 0, 0])  # whether rows are right; a pane waits for two
            for n, found in ((3, [1, 0, 0]), (2, [1, 1, 0]), (2, [1, 1, 1])):
                if found[2]:
                    desk.holds.clear()
                for right in islice(minutes, n):
                    live.observe(time=start, y_true=1, y_pred=right)
                    start += 60
                until(lambda: counts(client) == found)  # noqa: B023 - called in this turn only
            desk.holds.set()
    with TestClient(application(live, **rest), base_url="http://localhost") as client:
        assert counts(client) == []


QUICK = 'store = "live.db"\nlabel_ttl = "5min"\nlabel_lateness = "1min"'


def alarm(url, window="30min"):
    rule = f'\'Below("accuracy", 0.6, window="{window}")\''
    return [
        "[alerts]",
        f'low = {{ rule = {rule}, runbook = "https://r/1" }}',
        "[deliver.desk]",
        'kind = "webhook"',
        f'url = "{url}"',
        'timeout = "1s"',
    ]


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_kill_between_a_change_and_its_delivery(config, workers):
    desk = Desk()
    path = config(*alarm(desk.url), live=QUICK, server=f"workers = {workers}")
    start = time.time() - 900
    with Service(path) as service:
        service.post(bad_events(50, 1.0, start))
        until(lambda: service.get("/health")["deliveries"]["desk"]["waiting"])
        time.sleep(2)  # in which it has written the events
        service.end(signal.SIGKILL)
        time.sleep(1)  # in which its workers end
        with desk:
            service.start()
            until(lambda: desk.taken() == ["firing"])
            (alert,) = service.get("/api/alerts")["alerts"]
            assert (alert["severity"], alert["runbook"]) == ("page", "https://r/1")
            until(lambda: not service.get("/health")["deliveries"]["desk"]["waiting"])
            time.sleep(3)
            n = len(desk.posts)
            service.end()
            service.start()
            service.post(bad_events(500, 0.0, start + 300))
            until(lambda: desk.taken() == ["firing", "ok"])
            assert len(desk.posts) == n + 1


@pytest.mark.long
def test_no_change_is_lost_by_kills_at_random_moments(config):
    rng, start = random.Random(1), (int(time.time()) - 4 * 3600) // 60 * 60
    live = QUICK.replace("5min", "4min") + '\ndurable = true\ntiers = [["1min", "6h"]]'
    with Desk() as desk:
        lines = alarm(desk.url, window="1min")
        path = config(*lines, live=live, server='workers = 2\nclock = "events"')
        with Service(path) as service:
            for n in range(10):  # each minute of events is another state
                desk.answers += rng.choices([200, 500], k=2)
                events = bad_events(20, n % 2, start + 60 * n)
                until(lambda: posted(service, events))  # noqa: B023 - called at once
                time.sleep(rng.uniform(0, 2) if n > 2 else 4)
                victim = rng.randrange(6) if n > 2 else 6
                if victim == 0:
                    service.end(signal.SIGKILL)
                    time.sleep(0.5)
                    service.start()
                elif victim < 3:
                    os.kill(rng.choice(children(service.process.pid)[1:]), signal.SIGKILL)
            (alert,) = until_given(lambda: (service.get("/api/alerts") or {}).get("alerts"))
            known = [(each["time"], each["state"]) for each in reversed(alert["history"])]
            assert len(known) == 8  # the last two minutes are not complete

            def taken():
                done = [body for _, _, body, status in desk.posts if status == 200]
                return list({(body["time"], body["state"]): None for body in done})

            until(lambda: taken()[-1:] == known[-1:])
            assert taken() == known


def posted(service, events):
    try:
        return service.post(events)
    except OSError:  # its worker was killed
        return None


def until_given(call):
    found = []
    until(lambda: found.append(call()) or found[-1])
    return found[-1]


@pytest.mark.long
def test_events_are_taken_while_a_receiver_hangs(config):
    with Desk() as desk:
        desk.holds.clear()
        with Service(config(*alarm(desk.url), live=QUICK)) as service:
            service.post(bad_events(50, 1.0, time.time() - 900))
            until(lambda: service.get("/health")["deliveries"]["desk"]["waiting"])
            slowest = 0.0
            for _ in range(100):
                began = time.monotonic()
                service.post(bad_events(20, 1.0, time.time() - 300))
                slowest = max(slowest, time.monotonic() - began)
            assert slowest < 1.0
            desk.holds.set()
            until(desk.taken)
            service.end()
            assert service.process.returncode == 0
