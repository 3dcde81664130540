"""A service that merges others shows what one service would, had it taken all of their events."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest.mock import Mock

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from service.serving import Service, free_port, until
from service.test_endpoints import NOW, TestClient, application, client, joined, observed, state

import streammetrics as sm
from streammetrics.live.service import replicas as module
from streammetrics.live.service.config import settings
from streammetrics.live.service.replicas import Replicas, ReplicaSettings
from streammetrics.live.service.server import Server
from streammetrics.live.service.toml import ConfigError


class Host:
    """A replica behind a socket; `answer` replaces what its application answers."""

    def __init__(self, live=None, **server):
        self.live = state() if live is None else live
        self.asked = TestClient(
            application(self.live, server=Server(**server)), base_url="http://localhost"
        )
        self.answer, self.statuses, self.headers = None, [], []
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                names = {"if-none-match", "authorization"}
                headers = {n: v for n, v in self.headers.items() if n.lower() in names}
                host.headers.append(headers)
                status, body, more = host.answer or host.asks(self.path, headers)
                host.statuses.append(status)
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(body))} | more).items():
                    self.send_header(name, value)
                with contextlib.suppress(OSError):  # the reader waits no longer
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def asks(self, path, headers):
        assert path == "/state"
        found = self.asked.get(path, headers=headers)
        tag = found.headers.get("etag")
        return found.status_code, found.content, {"ETag": tag} if tag else {}

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def merging(*hosts, **rest):
    return ReplicaSettings(tuple(host.url for host in hosts), **{"timeout": 5.0, **rest})


def told(events, live):
    for event in events:
        columns = dict(event)
        getattr(live, columns.pop("kind"))(**columns)


@pytest.mark.parametrize("by", [(), [["country"]]])
@pytest.mark.parametrize("seed", range(3))
def test_the_merge_is_the_state_of_all_events(seed, by):
    rng = np.random.default_rng(seed)
    named = [{**event, "id": f"o{n}"} for n, event in enumerate(observed(9))]
    events = [*observed(20), *joined(30), *named]
    for event in events if by else ():
        if event["kind"] != "label":
            event["country"] = str(rng.choice(["DE", "FR"]))
    places = rng.integers(0, 3, len(events))
    whole, mine = state(by=by), state(by=by)
    with Host(state(by=by)) as one, Host(state(by=by)) as two, Host(state(by=by)) as three:
        hosts = (one, two, three)
        replicas = Replicas(mine, merging(*hosts))
        half = rng.permutation(len(events)) < len(events) // 2
        for part in (half, ~half):  # a label may come to another host, before its prediction
            for place in np.flatnonzero(part):
                told([events[place]], hosts[places[place]].live)
                told([events[place]], whole)
            replicas.pull()
            assert mine.to_bytes() == whole.to_bytes()
        twice = sorted(rng.permutation(len(events))[:10])
        waiting = [e for e in np.array(events, object)[twice] if "id" in e]
        told(waiting, one.live)  # it was retried at another host, and counts once
        replicas.pull()
        assert mine.to_bytes() == whole.to_bytes()
        assert mine.coverage("1h") == whole.coverage("1h")


def test_labels_that_come_to_another_replica_than_their_prediction_are_told_once(capsys):
    events, mine = joined(6), state()
    with Host() as one, Host() as two:
        replicas = Replicas(mine, merging(one, two))
        told([event for event in events if event["kind"] == "predict"], one.live)
        labels = [event for event in events if event["kind"] == "label"]
        told(labels[:2], one.live)
        replicas.pull()
        assert capsys.readouterr().err == ""
        for label in labels[2:]:
            told([label], two.live)
            replicas.pull()
    assert mine.coverage("1h").labelled == 6
    err = capsys.readouterr().err
    assert err.count("to another replica than their prediction") == 1
    assert "1 labels came" in err


def test_only_states_that_have_changed_are_sent_and_merged():
    mine = state()
    with Host() as one, Host() as two:
        told(observed(4), one.live)
        replicas = Replicas(mine, merging(one, two))
        replicas.pull()
        before = mine._shared.current
        replicas.pull()
        assert mine._shared.current is before
        told(observed(4, first=4), two.live)
        replicas.pull()
        assert (one.statuses, two.statuses) == ([200, 304, 304], [200, 304, 200])
        assert mine.window("1h").n_rows == 8


def test_the_state_has_a_tag():
    live = state()
    asked = client(live)
    tag = asked.get("/state").headers["etag"]
    answer = asked.get("/state", headers={"If-None-Match": tag})
    assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    told(observed(1), live)
    answer = asked.get("/state", headers={"If-None-Match": tag})
    assert answer.status_code == 200
    assert sm.from_bytes(answer.content) == live


def state_of(*args, **parameters):
    return state(*args, **parameters).to_bytes()


FORGED = bytearray(state_of())
FORGED[len(FORGED) // 2] ^= 1
WRONG = {
    "another configuration": ((200, state_of(label_ttl="2h"), {}), "label_ttl is 2h there and 1d"),
    "other metrics": ((200, sm.Live(sm.MAE()).to_bytes(), {}), "a Live of MAE"),
    "no live state": ((200, sm.MAE().to_bytes(), {}), "cannot merge a MAE into a Live"),
    "junk": ((200, b"junk", {}), "not a state of streammetrics, or cut short"),
    "nothing": ((200, b"", {}), "not a state of streammetrics, or cut short"),
    "a changed byte": ((200, bytes(FORGED), {}), ""),
    "an error": ((500, b"oh no", {}), "it answers 500"),
    "an error that says why": ((401, b'{"error": "a token"}', {}), "it answers 401: a token"),
    "an odd error": ((403, b'["error"]', {}), "it answers 403"),
    "it is starting": ((503, b'{"error": "the service is starting"}', {}), "503: the service is"),
    "a redirect": ((302, b"", {"Location": "http://127.0.0.1:1/state"}), "it answers 302"),
    "cut off": ((200, b"abc", {"Content-Length": "9"}), "its answer is cut off"),
    "no length that can be": ((200, b"", {"Content-Length": "-1"}), ""),
    "unchanged, of nothing": ((304, b"", {}), "it answers 304"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_an_answer_that_is_wrong_leaves_the_last_state(case, first, capsys):
    (answer, why), mine = WRONG[case], state()
    with Host() as good, Host() as bad:
        told(observed(4), good.live)
        told(observed(6, first=4), bad.live)
        replicas = Replicas(mine, merging(good, bad))
        if not first:
            replicas.pull()
        rows = 4 if first else 10
        bad.answer = answer
        if case == "unchanged, of nothing" and not first:
            return  # which is right then
        for _ in range(2):
            replicas.pull()
            assert mine.n_rows == rows
            trouble = replicas.health[bad.url]["trouble"]
            assert trouble
            assert why in trouble
            assert not replicas.health[good.url]["trouble"]
        app = application(mine, replicas=replicas)
        asked = TestClient(app, base_url="http://localhost")
        found = asked.get("/health").json()
        assert found["status"] == "degraded"
        assert found["replicas"][bad.url]["trouble"] == trouble
        assert (found["replicas"][bad.url]["read"] is None) is first
        assert capsys.readouterr().err.count(f"replica {bad.url}: {trouble}") == 1
        bad.answer = None
        replicas.pull()
        assert mine.n_rows == 10
        assert asked.get("/health").json()["status"] == "ok"


def test_nobody_answers():
    mine, url = state(), f"http://127.0.0.1:{free_port()}"
    replicas = Replicas(mine, ReplicaSettings((url, "unix:///nowhere/live.sock")))
    replicas.pull()
    assert mine.n_rows == 0
    assert "refused" in replicas.health[url]["trouble"]
    assert "No such file" in replicas.health["unix:///nowhere/live.sock"]["trouble"]


def test_a_replica_that_hangs_is_given_up(monkeypatch):
    with Host() as one:
        one.asks = lambda *_: time.sleep(2) or (200, b"", {})
        replicas = Replicas(state(), merging(one, timeout=0.2))
        replicas.pull()
        assert "timed out" in replicas.health[one.url]["trouble"]


def test_states_that_contradict_each_other_leave_the_last_merge(monkeypatch, capsys):
    mine = state()
    with Host() as one, Host() as two:
        told(observed(4), one.live)
        replicas = Replicas(mine, merging(one, two))
        replicas.pull()
        told(observed(3, first=4), two.live)
        with monkeypatch.context() as patch:
            refused = module.IncompatibleMetricsError("waiting rows have other types")
            patch.setattr(module.Pipeline, "merge", Mock(side_effect=refused))
            for rows in (7, 8):
                replicas.pull()
                assert mine.n_rows == 4
                for host in (one, two):
                    trouble = replicas.health[host.url]["trouble"]
                    assert trouble == "the states cannot be merged: waiting rows have other types"
                told(observed(1, first=rows), two.live)
        replicas.pull()
        assert mine.n_rows == 9
        assert not any(each["trouble"] for each in replicas.health.values())
    assert capsys.readouterr().err.count("cannot be merged") == 1


def test_a_state_that_is_too_large_is_not_read(monkeypatch):
    monkeypatch.setattr(module, "_MOST", 1000)
    with Host() as one:
        told(observed(5), one.live)
        assert len(one.live.to_bytes()) > 1000
        replicas = Replicas(state(), merging(one))
        replicas.pull()
        assert replicas.health[one.url]["trouble"] == "its state has more than 1,000 bytes"


def test_one_that_hangs_holds_up_no_other():
    mine, holds = state(), threading.Event()
    with Host() as one, Host() as two:
        asks = two.asks
        two.asks = lambda *given: holds.wait(60) and asks(*given)
        replicas = Replicas(mine, merging(one, two, every=0.02))
        replicas.start()
        told(observed(5), one.live)
        until(lambda: mine.n_rows == 5)
        told(observed(3, first=5), two.live)
        holds.set()
        until(lambda: mine.n_rows == 8)
        replicas.close()


def test_the_token_is_sent():
    with Host(token="secret") as one:
        told(observed(3), one.live)
        mine = state()
        Replicas(mine, merging(one)).pull()
        assert mine.n_rows == 0
        Replicas(mine, merging(one, token="secret")).pull()
        assert mine.n_rows == 3


def test_it_takes_no_events_and_shows_everything_else():
    mine = state()
    with Host() as one:
        told(observed(6), one.live)
        replicas = Replicas(mine, merging(one, every=0.05))
        replicas.pull()
        app = application(mine, replicas=replicas)
        with TestClient(app, base_url="http://localhost") as asked:
            answer = asked.post("/events", json=observed(1))
            assert answer.status_code == 405
            assert answer.json()["error"].endswith("send events to one of them")
            paths = asked.get("/openapi.json").json()["paths"]
            assert "/events" not in paths
            for path in paths:
                if path not in {"/marks", "/api/estimated"}:
                    assert asked.get(path).status_code == 200, path
            assert asked.get("/api/now").json()["n_rows"] == 6
            told(observed(2, first=6), one.live)  # of which it learns by itself
            until(lambda: mine.n_rows == 8)
            assert sm.from_bytes(asked.get("/state").content) == one.live
            families = text_string_to_metric_families(asked.get("/metrics").text)
            found = {
                sample.name.removeprefix("streammetrics_replica_"): sample.value
                for family in families
                for sample in family.samples
                if "replica" in sample.labels
            }
        assert found.keys() == {"failing", "read_timestamp_seconds", "state_bytes"}
        assert (found["failing"], found["state_bytes"]) == (0, len(one.live.to_bytes()))
        assert time.time() - 60 < found["read_timestamp_seconds"] <= time.time()


def test_an_error_of_its_own_ends_no_thread(monkeypatch, capsys):
    mine = state()
    with Host() as one:
        told(observed(6), one.live)
        replicas = Replicas(mine, merging(one, every=0.02))
        merge = module.Replicas._merge
        monkeypatch.setattr(module.Replicas, "_merge", lambda *_: 1 / 0)
        replicas.start()
        until(lambda: len(one.statuses) > 3)
        monkeypatch.setattr(module.Replicas, "_merge", merge)
        told(observed(1, first=6), one.live)
        until(lambda: mine.n_rows == 7)
        replicas.close()
    assert capsys.readouterr().err.count("not merged: ZeroDivisionError") == 1


MISTAKES = {
    'replicas = ["ftp://a"]': "'ftp://a' is not the address of a service",
    'replicas = ["http://user:secret@a"]': "is not the address of a service",
    'replicas = ["http://a?b"]': "is not the address of a service",
    'replicas = ["http://a:99999"]': "is not the address of a service",
    "replicas = [1]": "1 is not the address of a service",
    'replicas = "http://a"': "is not a list",
    'replicas = ["http://a", "http://a"]': "one service is named twice",
    'replica = ["http://a"]': "no such key; did you mean 'replicas'?",
    'replicas = ["http://a"]\nevery = "soon"': "'soon' is not a duration",
    'replicas = ["http://a"]\ntoken_env = "NOT_THERE"': "the environment has no NOT_THERE",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_of_the_configuration_are_named(config, text):
    path = config("[merge]", *text.split("\n"), live="")
    with pytest.raises(ConfigError, match=rf"merge\..*{re.escape(MISTAKES[text])}") as error:
        settings(path)
    assert len(error.value.mistakes) == 1


def test_a_service_that_merges_has_no_store(config):
    with pytest.raises(ConfigError, match="has no store: leave out"):
        settings(config("[merge]", 'replicas = ["http://a"]'))
    assert settings(config("[merge]", live="")).merging is None
    found = settings(config("[merge]", 'replicas = ["http://a"]', 'every = "1min"', live=""))
    assert found.merging == ReplicaSettings(("http://a",), every=60.0)


@pytest.mark.long
def test_two_hosts_one_of_which_is_killed(tmp_path, config):
    one = tmp_path / "one.toml"
    one.write_text(config(live='store = "one.db"\ndurable = true').read_text())
    two = tmp_path / "two.toml"
    two.write_text(config(live='store = "two.db"\ndurable = true').read_text())
    events = [{("score" if k == "y_score" else k): v for k, v in e.items()} for e in observed(40)]
    with Service(one) as first, Service(two) as second:
        lines = ["[merge]", f'replicas = ["{first.url}", "{second.url}"]', 'every = "1s"']
        with Service(config(*lines, live="")) as merged:
            first.post(events[:20])
            second.post(events[20:])
            until(lambda: merged.get("/api/now")["n_rows"] == 40)
            second.end(9)
            until(lambda: merged.get("/health")["status"] == "degraded")
            first.post([{**events[0], "time": NOW + 50}])
            until(lambda: merged.get("/api/now")["n_rows"] == 41)
            second.start()
            until(lambda: merged.get("/health")["status"] == "ok")
            assert merged.get("/api/now")["n_rows"] == 41
            assert "Traceback" not in merged.end()
