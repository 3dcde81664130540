"""What the endpoints take, answer and refuse, without a network."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import sqlite3
import threading
import time
import warnings

import numpy as np
import pyarrow as pa
import pytest

import streammetrics as sm
from streammetrics.live import journal as journal_module
from streammetrics.live.service.app import application
from streammetrics.live.service.bodies import Bodies, Intake
from streammetrics.live.service.server import Names, PageView, Server

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what the client asks its own dependencies
    from starlette.applications import Starlette
    from starlette.routing import Route
    from starlette.testclient import TestClient

NOW = time.time() - 60
ARROW = {"content-type": "application/vnd.apache.arrow.stream"}


def state(**parameters):
    metrics = {"auc": sm.ROCAUC(), "accuracy": sm.Accuracy(threshold=0.5)}
    return sm.Live(sm.MetricSet(metrics, columns={"y_true": "label"}), **parameters)


def client(live=None, base="http://localhost", **server):
    live = state() if live is None else live
    return TestClient(application(live, server=Server(**server)), base_url=base)


def lines(*events):
    return "\n".join(map(json.dumps, events))


def observed(n, first=0):
    return [
        {"kind": "observe", "time": NOW + i, "label": i % 2, "y_score": (i * 7 % 10) / 10}
        for i in range(first, first + n)
    ]


def joined(n):
    events = []
    for i in range(n):
        event = {"kind": "predict", "id": f"r{i}", "time": NOW, "y_score": (i * 7 % 10) / 10}
        events += [event, {"kind": "label", "id": f"r{i}", "time": NOW + 5, "label": i % 2}]
    return events


def ipc(table):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


# --- events in -------------------------------------------------------------------------------


def test_lines_arrays_and_arrow_are_the_events_of_python():
    expected = state()
    for event in observed(20) + joined(30):
        rest = {key: value for key, value in event.items() if key != "kind"}
        getattr(expected, event["kind"])(**rest)
    events = observed(20) + joined(30)
    tables = pa.Table.from_pylist(
        events, pa.schema([("kind", pa.string()), ("id", pa.string()), ("time", pa.float64()),
                           ("label", pa.int64()), ("y_score", pa.float64())])
    )  # fmt: skip
    for body, headers in (
        (lines(*events), {}),
        (lines(*events) + "\n\n", {"content-type": "application/x-ndjson"}),
        (json.dumps(events, indent=1), {"content-type": "application/json"}),
        (ipc(tables), ARROW),
    ):
        live = state()
        answer = client(live).post("/events", content=body, headers=headers)
        assert answer.status_code == 202, answer.text
        assert answer.json() == {"taken": 80, "observe": 20, "predict": 30, "label": 30}
        assert live.to_bytes() == expected.to_bytes()


def test_a_kind_for_all_and_keys_in_any_order():
    live = state()
    body = [{"time": NOW, "label": 1, "y_score": 0.5}, {"y_score": 0.25, "label": 0, "time": NOW}]
    answer = client(live).post("/events?kind=observe", content=lines(*body))
    assert answer.json() == {"taken": 2, "observe": 2}
    table = pa.table({"time": [NOW], "id": ["a"], "y_score": [0.5]})
    done = client(live).post("/events?kind=predict", content=ipc(table), headers=ARROW)
    assert done.json() == {"taken": 1, "predict": 1}
    assert client(live).post("/events", content=b"").json() == {"taken": 0}
    late = {"kind": "label", "id": "a", "time": NOW, "label": 1}
    told = client(live).post("/events?kind=observe", content=lines(late, body[0], body[1]))
    assert told.json() == {"taken": 3, "label": 1, "observe": 2}


def test_columns_are_called_as_the_configuration_says():
    live = state()
    names = Names(id="request", time="at", version="edition")
    with TestClient(application(live, names=names), base_url="http://localhost") as asked:
        body = [
            {"kind": "predict", "request": 7, "at": "2025-11-20T08:30Z", "y_score": 0.75},
            {"kind": "label", "request": 7, "at": "2025-11-20T09:30Z", "label": 1, "edition": 3},
        ]
        assert asked.post("/events", content=lines(*body)).status_code == 202
        for key, value in (("at", "2025-11-20"), ("request", None), ("edition", -1)):
            told = asked.post("/events", content=lines(body[1], {**body[1], key: value})).json()
            assert (told["row"], told["column"]) == (1, key)
            assert told["error"].startswith(f"{key} is ")
    assert live.coverage("1h", end="2025-11-20T09:00Z").labelled == 1


REFUSED = [
    ('{"kind": "observe"', 0, "row 0 is not JSON"),
    ('{"kind": "observe", "time": NaN}', 0, "NaN is not a JSON number"),
    ("7", 0, "row 0 is not a JSON object"),
    ('{"a":' * 100_000, 0, "row 0 is nested too deeply"),
    ('{"kind": "observe", "time": ' + "9" * 5_000 + "}", 0, "an integer with too many digits"),
    ('{"time": 1}', 0, "row 0 has no kind: say one of observe, predict, label"),
    ('{"kind": "erase"}', 0, "row 0 has the kind 'erase'"),
    ('{"kind": ["observe"]}', 0, "row 0 has the kind ['observe']"),
    ('{"kind": "observe", "label": 1, "y_score": 0.5}', 0, "has no 'time', first in row 0"),
    ('{"kind": "label", "time": 1, "label": 1}', 0, "an event to label has no 'id'"),
    ('{"kind": "observe", "time": 1, "y_score": 0.5}', 0, "label"),
    (
        '{"kind": "predict", "id": null, "time": 1, "y_score": 0.5}',
        0,
        "id is missing (null) in 1 row",
    ),
    ('{"kind": "predict", "id": 1, "time": 1e12, "y_score": 0.5}', 0, "divide milliseconds"),
    ('{"kind": "observe", "time": 1, "y_score": "x", "label": 1}', 0, "y_score"),
]


@pytest.mark.parametrize(("line", "row", "why"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused_names_its_row_and_changes_nothing(line, row, why):
    live = state()
    asked = client(live)
    assert asked.post("/events", content=lines(*joined(5))).status_code == 202
    before = live.to_bytes()
    answer = asked.post("/events", content=line)
    assert (answer.status_code, answer.json()["row"]) == (422, row), answer.text
    assert why in answer.json()["error"]
    good = [event for event in joined(9)[12:] if event["kind"] not in line]
    mixed = "\n".join([lines(*good), line]) if good else line
    answer = asked.post("/events", content=mixed)
    assert answer.status_code == 422
    if row is not None:
        assert answer.json()["row"] == len(good), answer.text
        assert f"row {len(good)}" in answer.json()["error"] or "row" not in why
    assert live.to_bytes() == before


def test_a_bad_row_among_good_ones_of_other_kinds_is_counted_from_the_first():
    live = state()
    events = [*joined(4), *observed(1), {**observed(1)[0], "time": -1}]
    answer = client(live).post("/events", content=lines(*events))
    assert (answer.status_code, answer.json()["row"], answer.json()["column"]) == (422, 9, "time")
    assert "first in row 9" in answer.json()["error"]
    assert live.coverage("1h").predicted == 0


def test_keys_that_differ_within_a_kind_are_named():
    events = [*observed(2), {**observed(1)[0], "sample_weight": 2}]
    answer = client().post("/events", content=lines(*events))
    assert answer.json()["row"] == 2
    assert "all events of a kind have the same columns" in answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"\xff\xfe", {}, 422),
        (b"ARROW1 and nothing", ARROW, 422),
        (b"", {"content-type": "text/html"}, 415),
        (b"{}", {"content-encoding": "gzip"}, 400),
        (b"{}", {"content-encoding": "br"}, 415),
        (gzip.compress(b"{}", mtime=0)[:-3], {"content-encoding": "gzip"}, 400),
        (b"[" * 100_000, {}, 422),
        (b'{"kind":"observe","time":' + b"9" * 5000 + b',"label":1,"y_score":0.5}', {}, 422),
    ],
)
def test_bodies_that_are_none(body, headers, status):
    assert client().post("/events", content=body, headers=headers).status_code == status


def test_too_long_too_many_and_too_slow(monkeypatch):
    asked = client(body=1000)
    assert asked.post("/events", content=b"x" * 1001).status_code == 413
    assert asked.post("/events", content=iter([b"x" * 600] * 2)).status_code == 413

    def take(*_):
        time.sleep(0.3)
        return {"observe": 1}

    async def ask(app):
        import httpx

        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as asked:
            answers = [asked.post("/events", content=b"{}") for _ in range(6)]
            return [answer.status_code for answer in await asyncio.gather(*answers)]

    monkeypatch.setattr(Bodies, "take", take)
    statuses = asyncio.run(ask(application(state(), server=Server(queue=2))))
    assert sorted(statuses) == [202, 202, 429, 429, 429, 429]


# --- who may ask -----------------------------------------------------------------------------


def test_a_token_is_asked_for_where_there_is_one():
    asked = client(token="secret", host="0.0.0.0", base="http://anywhere.example")
    for path in ("/api/now", "/state", "/api/series"):
        assert asked.get(path).status_code == 401
        assert asked.get(path, headers={"authorization": "Bearer wrong"}).status_code == 401
        assert asked.get(path, headers={"authorization": "Bearer secret"}).status_code == 200
    assert asked.post("/events", content=b"").status_code == 401
    assert asked.get("/").status_code == 200  # which says nothing
    assert asked.get("/health").json() == {"status": "ok"}
    assert "taken" in asked.get("/health", headers={"authorization": "Bearer secret"}).json()
    assert "taken" not in asked.get("/health", headers={"authorization": "Bearer no"}).json()


def test_pages_of_other_sites_send_and_read_nothing():
    asked = client()
    assert client(base="http://evil.example").get("/api/now").status_code == 421
    assert client(base="http://127.0.0.1:8000").get("/api/now").status_code == 200
    assert client(base="http://[::1]:8000").get("/api/now").status_code == 200
    others = ("http://evil.example", "http://[evil", "null", "")
    for headers in (*({"origin": each} for each in others), {"sec-fetch-site": "cross-site"}):
        assert asked.post("/events", content=b"", headers=headers).status_code == 403
    own = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
    assert asked.post("/events", content=b"", headers=own).status_code == 202


def test_every_answer_says_what_a_page_may_do():
    asked = client()
    for path in ("/", "/api/now", "/nothing", "/page.js"):
        headers = asked.get(path).headers
        assert "default-src 'none'; script-src 'self'; " in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


# --- answers ---------------------------------------------------------------------------------


def test_now_is_what_python_reads():
    live = state()
    asked = client(live)
    asked.post("/events", content=lines(*joined(40)[:-2], *observed(20)))
    now, window = asked.get("/api/now").json(), live.window("1h")
    auc = now["metrics"]["auc"]
    assert auc["value"] == window["auc"].compute()
    assert (auc["low"], auc["high"]) == window["auc"].bounds()
    sure = window["auc"].confidence()
    assert (auc["sure_low"], auc["sure_high"]) == (sure.low, sure.high)
    assert now["coverage"]["predicted"] == 39
    assert asked.get("/api/coverage").json()["labelled"] == 39
    asked.post("/events", content=lines({**joined(1)[0], "id": "alone"}))
    time.sleep(0.3)
    held = asked.get("/api/possible?window=1h").json()["metrics"]["accuracy"]
    assert held == list(live.possible("1h")["accuracy"])
    assert held[0] < held[1]
    refused = asked.get("/api/estimated")
    assert refused.status_code == 400
    assert "name their column" in refused.json()["error"]
    assert {found["estimated"] for found in now["metrics"].values()} == {None}


def test_estimates_over_all_rows_by_their_judgments():
    live = state(proxy="judge")
    asked = client(live)
    events = [each if each["kind"] == "label" else {**each, "judge": 1} for each in joined(40)]
    assert asked.post("/events", content=lines(*events)).status_code == 202
    found = live.estimated("1h")
    answers = asked.get("/api/estimated?window=1h").json()["metrics"]
    assert answers == {name: one and one._asdict() for name, one in found.items()}
    assert asked.get("/api/now").json()["metrics"]["auc"]["estimated"] == answers["auc"]
    refused = asked.post("/events", content=lines({**events[0], "id": "new", "judge": 2}))
    assert refused.status_code == 422
    assert refused.json()["column"] == "judge"
    described = asked.get("/openapi.json").json()["paths"]["/events"]["post"]["requestBody"]
    _, predict, label = described["content"]["application/json"]["schema"]["items"]["anyOf"]
    assert "judge" in predict["required"]
    assert "judge" not in label["properties"]


def test_answers_are_tagged_and_kept_for_a_moment():
    live = state()
    asked = client(live, clock="events")
    asked.post("/events", content=lines(*observed(10)))
    first = asked.get("/api/now")
    again = asked.get("/api/now", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    asked.post("/events", content=lines(*observed(10, 10)))
    time.sleep(0.3)
    changed = asked.get("/api/now", headers={"if-none-match": first.headers["etag"]})
    assert changed.json()["n_rows"] == 20


def test_events_have_no_parameter_but_kind():
    refused = client().post("/events?bar=1", content="")
    assert refused.status_code == 422
    assert refused.json()["error"] == "/events has no parameter 'bar': it reads kind"


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("POST", "/events?kind=observe&kind=label", "kind"),
        ("GET", "/api/now?window=5min&window=1h", "window"),
        ("GET", "/api/series?every=5min&window=5min&every=5min", "every"),
    ],
)
def test_a_parameter_that_comes_twice_is_refused(method, path, name):
    refused = client().request(method, path)
    told = f"{path.partition('?')[0]} has the parameter {name!r} 2 times: give it once"
    assert (refused.status_code, refused.json()["error"]) == (422, told)


def test_a_series_is_that_of_python():
    live = state(tiers=[("1min", "1h")])
    rows = {"label": np.arange(200) % 2, "y_score": np.arange(200) % 7 / 7}
    live.observe(time=NOW - 1000 + np.arange(200) * 5.0, **rows)
    with TestClient(application(live, view=PageView(window="5min", every="5min"),
                                server=Server(clock="events")),
                    base_url="http://localhost") as asked:  # fmt: skip
        found = asked.get("/api/series").json()
        assert asked.get("/api/series?window=61s").status_code == 400
        assert "not a whole number of panes" in asked.get("/api/series?window=61s").json()["error"]
        assert asked.get("/api/now?window=soon").status_code == 400
        for path in ("/api/now?windw=5min", "/api/now?every=5min", "/api/alerts?window=5min"):
            refused = asked.get(path)
            assert (refused.status_code, "has no parameter" in refused.json()["error"]) == (
                422,
                True,
            )
    series = live.series("5min", every="5min")
    some = series["n_rows"] > 0
    assert found["metrics"]["auc"]["value"] == series["auc"][some].tolist()
    assert found["n_rows"] == series["n_rows"][some].tolist()


def test_an_idle_service_empties_by_the_clock():
    live = state(tiers=[("1min", "1h")])
    live.observe(time=time.time() - 900, label=1, y_score=0.5)
    assert client(live, clock="events").get("/api/now?window=5min").json()["n_rows"] == 1
    assert client(live).get("/api/now?window=5min").json()["n_rows"] == 0


def test_slices_are_tables():
    live = sm.Live(
        sm.MetricSet({"accuracy": sm.Accuracy()}), by=[["country"], [sm.Bins("age", [18, 50])]]
    )
    rows = {"y_true": [1, 0], "y_pred": [1, 1], "country": ["<script>", None], "age": [20, 60]}
    live.observe(time=[NOW, NOW], **rows)
    one, other = client(live).get("/api/slices").json()["slices"]
    assert one["by"] == ["country"]
    assert sorted(one["rows"], key=str) == sorted([["<script>", 1, 1.0], [None, 1, 0.0]], key=str)
    assert len(other["rows"]) == 2
    assert client(live).get("/api/now").json()["metrics"]["accuracy"]["value"] == 0.5
    assert client().get("/api/slices").json()["slices"] == []


def test_the_state_is_for_merging():
    live = state()
    asked = client(live)
    asked.post("/events", content=lines(*joined(5)))
    assert sm.from_bytes(asked.get("/state").content) == live


def test_health_tells_of_accepted_events_that_contradict_those_of_another_worker(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(journal_module, "_run", lambda *_: None)  # nobody reads in between

    def rated():
        suite = sm.MetricSet({"kappa": sm.FleissKappa(from_raters=False)})
        return sm.Live(suite, types={"ratings": 2}, store=tmp_path / "live.db")

    with rated() as one, rated() as other:
        asked = client(one)
        for send, ratings in ((asked, [1, 2]), (client(other), [2, 2])):
            event = {"kind": "observe", "time": NOW, "ratings": ratings}
            assert send.post("/events", content=lines(event)).status_code == 202
        one.flush()
        other.flush()
        assert asked.get("/health").json()["status"] == "ok"
        with pytest.warns(UserWarning, match="contradict those of other workers"):
            one.window("1h")
        told = asked.get("/health").json()
        assert (told["status"], told["left_out"]["events"]) == ("degraded", 1)
        assert "ratings of an item: 4 here, 3 in rows seen before" in told["left_out"]["why"]
        with pytest.warns(UserWarning, match="contradict those of other workers"):
            other.window("1h")


def columns_of_observations(service, status):
    """Send observations with ids, one with a weight, in both orders."""
    for first in (0, 1):
        for place in (first, 1 - first):
            event = {"kind": "observe", "time": NOW, "label": 1, "y_score": 0.5, "id": f"{first}"}
            event |= {"sample_weight": 2.0} if place else {}
            answer = service.post("/events", content=lines(event))
            assert answer.status_code == status[place], answer.text
            if answer.status_code != 202:
                assert "sample_weight" in answer.json()["error"]


def test_columns_of_observations_with_ids_are_those_that_are_declared():
    columns_of_observations(client(), (202, 422))
    columns_of_observations(client(state(types={"sample_weight": "number"})), (422, 202))
    event = {"kind": "observe", "time": NOW, "label": 1, "y_score": 0.5, "counts": 2}
    answer = client().post("/events", content=lines(event))
    assert (answer.status_code, answer.json()["column"]) == (422, "counts")


def test_health_tells_of_the_store(tmp_path, monkeypatch):
    live = state(store=tmp_path / "live.db")
    asked = client(live)
    well = {"trouble": "", "failures": 0, "unwritten": 0, "durable": False, "at_risk": ""}
    well |= {"max_bytes": None, "overfull": False, "expired_early": {}}
    store = asked.get("/health").json()["store"]
    assert store.pop("bytes") > 0
    assert store == well
    monkeypatch.setattr(live._ingest.journal, "_put_part", _full)
    live.observe(time=NOW, label=1, y_score=0.5)
    with pytest.warns(UserWarning, match="the store cannot be used"):
        live.flush()
    told = asked.get("/health").json()
    assert (told["status"], told["store"]["trouble"]) == ("degraded", "disk is full")
    assert told["store"]["unwritten"] == 1
    assert "a crash would lose 1 event that is only in memory" in told["store"]["at_risk"]
    monkeypatch.undo()
    live.flush()
    assert asked.get("/health").json()["status"] == "ok"
    live.close()


def _full():
    import sqlite3

    raise sqlite3.OperationalError("disk is full")


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_service_that_ends_takes_no_request_that_has_not_begun(monkeypatch, cancelled):
    begun, go_on = threading.Event(), threading.Event()
    take = Bodies.take

    def slow(*args):
        begun.set()
        assert go_on.wait(60)
        return take(*args)

    async def ask():
        import httpx

        intake = Intake(live, Names(), Server())
        service = Starlette(routes=[Route("/events", intake.answer, methods=["POST"])])
        transport = httpx.ASGITransport(service)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as asked:
            content = lines(*observed(5))
            answers = [asyncio.create_task(asked.post("/events", content=content))]
            await asyncio.to_thread(begun.wait, 60)
            answers += [asyncio.create_task(asked.post("/events", content=content)) for _ in "123"]
            while intake.waiting < 4:
                await asyncio.sleep(0.01)
            for answer in answers if cancelled else ():  # as the server does after its grace
                answer.cancel()
            asyncio.get_running_loop().call_later(0.05, go_on.set)
            await asyncio.to_thread(intake.close)
            return [(await answer).status_code for answer in answers]

    live = state()
    monkeypatch.setattr(Bodies, "take", slow)
    assert asyncio.run(ask()) == [202, 503, 503, 503]
    assert live.n_rows == 5


def test_what_ends_is_written(tmp_path):
    live = state(store=tmp_path / "live.db")
    with TestClient(application(live, owned=True), base_url="http://localhost") as asked:
        asked.post("/events", content=lines(*observed(7)))
    with state(store=tmp_path / "live.db") as again:
        assert again.n_rows == 7


@pytest.mark.filterwarnings("ignore:the store cannot be used")  # which is told first
def test_what_cannot_be_written_at_the_end_is_told(tmp_path, monkeypatch):
    live = state(store=tmp_path / "live.db")
    monkeypatch.setattr("streammetrics.live.journal.PATIENCE", 0.1)

    def take_and_end():
        with TestClient(application(live, owned=True), base_url="http://localhost") as asked:
            monkeypatch.setattr(live._ingest.journal, "_put_part", _full)
            asked.post("/events", content=lines(*observed(7)))

    with pytest.raises(
        sm.StreamMetricsError, match="cannot be written, 7 events are lost: disk is f"
    ):
        take_and_end()
    monkeypatch.undo()
    live.close()


@pytest.mark.parametrize("owned", [True, False])
def test_a_deleted_store_is_an_error_at_the_end_even_if_all_events_were_written(tmp_path, owned):
    live = state(store=tmp_path / "live.db", durable=True)

    def take_and_end():
        with TestClient(application(live, owned=owned), base_url="http://localhost") as asked:
            assert asked.post("/events", content=lines(*observed(7))).status_code == 202
            (tmp_path / "live.db").unlink()

    with pytest.raises(sm.StreamMetricsError, match="its events may be lost: the f"):
        take_and_end()


def test_a_locked_store_that_has_all_events_is_a_warning_at_the_end(tmp_path, monkeypatch):
    live = state(store=tmp_path / "live.db", durable=True)
    journal = live._ingest.journal
    monkeypatch.setattr("streammetrics.live.journal._BUSY", 0.0)
    blocker = sqlite3.connect(tmp_path / "live.db", isolation_level=None)

    def take_and_end():
        with TestClient(application(live, owned=True), base_url="http://localhost") as asked:
            assert asked.post("/events", content=lines(*observed(7))).status_code == 202
            blocker.execute("begin immediate")

    with pytest.warns(UserWarning, match="no event is lost: database is locked"):
        take_and_end()
    blocker.close()
    assert not journal.try_to_write()  # as its thread may, once more
    assert journal.trouble == "database is locked"
    with state(store=tmp_path / "live.db", durable=True) as again:
        assert again.n_rows == 7


def test_it_mounts_in_other_applications():
    from starlette.applications import Starlette
    from starlette.routing import Mount

    live = state()
    app = Starlette(routes=[Mount("/metrics-live", live.asgi(title="Mine", token="secret"))])
    asked = TestClient(app, base_url="http://anywhere.example")
    assert asked.get("/metrics-live/").status_code == 200
    assert asked.get("/metrics-live/api/now").status_code == 401
    headers = {"authorization": "Bearer secret"}
    assert asked.get("/metrics-live/api/now", headers=headers).json()["title"] == "Mine"


def test_the_page_is_small_and_runs_no_script_of_others():
    asked = client()
    names = ("", "page.css", "page.js", "draw.js", "icon.svg")
    bodies = {name: asked.get(f"/{name}").content for name in names}
    assert sum(map(len, bodies.values())) < 120_000
    for name, body in bodies.items():
        assert b"http://" not in body.replace(b"http://www.w3.org", b""), name
        assert b"https://" not in body
        assert b"innerHTML" not in body
    assert b"<script>" not in bodies[""]
    packed = asked.get("/plotly.min.js")
    assert packed.headers["content-encoding"] == "gzip"


# --- a durable store -----------------------------------------------------------------------------


def stored(path):
    """Return what another process reads in a store."""
    with state(store=path) as live:
        return live.n_rows


def test_a_lock_is_answered_503_and_nothing_of_the_batch_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "_TIMEOUT", 0.05)
    path = tmp_path / "live.db"
    live = state(store=path, durable=True)
    asked = client(live)
    assert asked.post("/events", content=lines(*observed(3), *joined(2))).status_code == 202
    assert stored(path) == 5
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin immediate")
    before = live.to_bytes()
    answer = asked.post("/events", content=lines(*observed(10), *joined(3)))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "nothing was kept" in answer.json()["error"]
    told = asked.get("/health").json()
    assert (told["status"], told["store"]["unwritten"], told["taken"]) == ("degraded", 0, 7)
    assert not live._ingest.journal.try_to_write()  # as each second
    assert asked.get("/health").json()["status"] == "degraded"
    other.execute("rollback")
    other.close()
    assert live.to_bytes() == before
    assert asked.post("/events", content=lines(*observed(10, 3))).status_code == 202
    assert asked.get("/health").json()["status"] == "ok"
    assert (live.n_rows, stored(path)) == (15, 15)
    live.close()


FULL = "database or disk is full"


def test_a_full_disk_is_answered_507_and_nothing_of_the_batch_is_kept(tmp_path):
    path = tmp_path / "live.db"
    live = state(store=path, durable=True)
    asked, taken = client(live), 0
    db = live._ingest.journal._store._db
    (pages,) = db.execute("pragma page_count").fetchone()
    db.execute(f"pragma max_page_count={pages + 10}")
    for _ in range(100):
        answer = asked.post("/events", content=lines(*observed(50) * 4))
        if answer.status_code != 202:
            break
        taken += 200
    assert (answer.status_code, "make room" in answer.json()["error"]) == (507, True)
    assert (live.n_rows, stored(path)) == (taken, taken)
    for _ in "123":  # as each second: what is small could still be written
        assert not live._ingest.journal.try_to_write()
        assert live._ingest.journal.texts() == {}
        told = asked.get("/health").json()
        assert (told["status"], told["store"]["trouble"]) == ("degraded", FULL)
    db.execute("pragma max_page_count=1000000")
    assert asked.post("/events", content=lines(*observed(50) * 4)).status_code == 202
    assert (live.n_rows, stored(path)) == (taken + 200, taken + 200)
    assert asked.get("/health").json()["status"] == "ok"
    live.close()


def test_room_on_the_disk_is_noticed_and_used_for_nothing_else(tmp_path):
    path = tmp_path / "live.db"
    live = state(store=path, durable=True)
    asked, store = client(live), live._ingest.journal._store
    (pages,) = store._db.execute("pragma page_count").fetchone()
    store._db.execute(f"pragma max_page_count={pages}")
    assert asked.post("/events", content=lines(*observed(50) * 40)).status_code == 507
    assert not live._ingest.journal.try_to_write()
    store._db.execute("pragma max_page_count=1000000")
    (cached,) = store._db.execute("pragma cache_size").fetchone()
    assert live._ingest.journal.try_to_write()
    assert asked.get("/health").json()["status"] == "ok"
    assert store._db.execute("pragma page_count").fetchone() == (pages,)
    assert store._db.execute("pragma cache_size").fetchone() == (cached,)
    assert (live.n_rows, stored(path)) == (0, 0)
    live.close()


def test_a_bad_event_is_in_no_durable_store(tmp_path):
    path = tmp_path / "live.db"
    live = state(store=path, durable=True)
    asked = client(live)
    ghost = {"kind": "label", "id": "ghost", "time": NOW, "label": -1}
    for bad in (ghost, {**observed(1)[0], "label": -1}, {**observed(1)[0], "label": "1"}):
        answer = asked.post("/events", content=lines(bad, *joined(2)))
        assert (answer.status_code, answer.json()["row"]) == (422, 0)
        assert asked.post("/events", content=lines(bad)).status_code == 422
    assert live._ingest.journal._number == 0
    assert asked.post("/events", content=lines(*joined(2))).status_code == 202
    live.close()
    assert stored(path) == 2


@pytest.mark.parametrize("came_through", [False, True])
def test_a_part_whose_writing_failed_counts_once_or_not_at_all(tmp_path, monkeypatch, came_through):
    path = tmp_path / "live.db"
    live = state(store=path, durable=True)
    asked, store = client(live), live._ingest.journal._store
    put = store.put

    def broken(*part):
        if came_through:
            put(*part)
            store._db.execute("commit")
        raise sqlite3.OperationalError("disk I/O error")

    def blind(_):
        raise sqlite3.OperationalError("disk I/O error")

    for reads in (True, False):  # whether anybody can look what became of it
        with monkeypatch.context() as patch:
            patch.setattr(store, "put", broken)
            if not reads:
                patch.setattr(store, "last", lambda w: 0 if store._db.in_transaction else blind(w))
                patch.setattr(store, "put", broken)
            answer = asked.post("/events", content=lines(*observed(5)))
        assert answer.status_code == (202 if came_through and reads else 503)
    before = 5 * 2 * came_through
    assert asked.post("/events", content=lines(*observed(3))).status_code == 202
    assert (live.n_rows, stored(path)) == (before + 3, before + 3)
    live.close()


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("durable", [False, True])
def test_a_store_that_is_deleted_or_replaced_is_noticed(tmp_path, durable, replaced):
    path, aside = tmp_path / "live.db", tmp_path / "aside.db"
    live = state(store=path, durable=durable)
    asked = client(live)
    assert asked.post("/events", content=lines(*observed(5))).status_code == 202
    live.flush()
    path.rename(aside)
    if replaced:
        with pytest.raises(sm.StateFormatError, match="its log .* is not"):
            state(store=path)  # it would delete the log of this one
        state(store=tmp_path / "new.db").close()
        (tmp_path / "new.db").rename(path)
    assert not live._ingest.journal.try_to_write()  # as each second
    told = asked.get("/health").json()
    what = "another file has its place" if replaced else "the file was deleted"
    assert told["status"] == "degraded"
    assert what in told["store"]["trouble"]
    answer = asked.post("/events", content=lines(*observed(7)))
    assert answer.status_code == (503 if durable else 202)
    kept = 5 if durable else 12
    if not durable:
        with pytest.warns(UserWarning, match=what):
            live.flush()
        assert asked.get("/health").json()["store"]["unwritten"] == 7
    assert live.n_rows == kept
    if replaced:
        return
    aside.replace(path)
    assert live._ingest.journal.try_to_write()
    assert asked.get("/health").json()["status"] == "ok"
    live.close()
    assert stored(path) == kept


# --- what else comes in --------------------------------------------------------------------------


def test_bodies_of_gzip_are_taken_within_the_limits():
    live, whole = state(), state()
    events = lines(*observed(20)).encode()
    packed = {"content-encoding": "X-GZip"}  # in any case, and by its older name
    body = gzip.compress(events[: len(events) // 2]) + gzip.compress(events[len(events) // 2 :])
    asked = client(live, body=2_000)
    assert asked.post("/events", content=body, headers=packed).status_code == 202
    client(whole).post("/events", content=events)
    assert live.to_bytes() == whole.to_bytes()
    again, parts = state(), [gzip.compress(line) for line in events.splitlines(keepends=True)]
    many = gzip.compress(b"").join([b"", *parts, *[b""] * 2_000])  # pieces end anywhere in members
    assert client(again).post("/events", content=many, headers=packed).status_code == 202
    assert again.to_bytes() == whole.to_bytes()
    bomb = gzip.compress(b" " * 50_000_000)
    answer = client(live, body=100_000).post("/events", content=bomb, headers=packed)
    assert (answer.status_code, live.n_rows) == (413, 20)


def test_two_lengths_of_one_body_are_refused():
    head = {"transfer-encoding": "chunked", "content-length": "3"}
    answer = client().post("/events", content=b"{}\n", headers=head)
    assert (answer.status_code, answer.headers["connection"]) == (400, "close")
    assert "Content-Length conflict: send one" in answer.json()["error"]


def test_an_infinite_score_is_refused():
    live = state()
    asked, good = client(live), observed(2)
    bad = lines(*good, {**good[0], "y_score": 0.5}).replace('"y_score": 0.5', '"y_score": 1e400')
    for body in (bad, bad.replace("1e400", "-1e400")):
        answer = asked.post("/events", content=body)
        assert (answer.status_code, answer.json()["row"]) == (422, 2)
        assert "y_score is infinite" in answer.json()["error"]
    table = pa.table({"time": [NOW] * 2, "id": ["a", "b"], "y_score": [0.5, float("inf")]})
    answer = asked.post("/events?kind=predict", content=ipc(table), headers=ARROW)
    assert (answer.status_code, answer.json()["row"]) == (422, 1)
    for value in (float("inf"), np.float32("-inf")):
        with pytest.raises(sm.InvalidBatchError, match="y_score is infinite"):
            live.observe(time=NOW, label=1, y_score=value)
    assert live.n_rows == 0


@pytest.mark.parametrize("durable", [False, True])
def test_what_comes_too_late_is_counted_in_the_answer(tmp_path, durable):
    suite = sm.MetricSet({"auc": sm.ROCAUC()}, columns={"y_true": "label"})
    lengths = {"tiers": [("1min", "1h")], "label_ttl": "5min", "label_lateness": "5min"}
    with sm.Live(suite, store=tmp_path / "live.db", durable=durable, **lengths) as live:
        asked = client(live)
        new = {"kind": "observe", "time": NOW, "label": 1, "y_score": 0.5}
        assert asked.post("/events", content=lines(new)).json() == {"taken": 1, "observe": 1}
        live.flush()
        old = NOW - 7200
        told = asked.post("/events", content=lines(
            {"kind": "predict", "id": "a", "time": old, "y_score": 0.5},
            {"kind": "predict", "id": "b", "time": NOW, "y_score": 0.5},
            {"kind": "label", "id": "a", "time": old, "label": 1},
            {**new, "time": old},
        ))  # fmt: skip
        assert told.status_code == 202
        assert told.json() == {"taken": 1, "predict": 1, "label": 0, "observe": 0, "late": 3}
        found = live.coverage("5min")
        assert (found.predictions_refused, found.labels_refused, live.dropped) == (1, 1, 1)
        assert 'taken_events_total{kind="predict"} 1.0' in asked.get("/metrics").text


def test_a_retried_request_counts_once_by_its_key_or_the_ids_of_its_rows():
    live = state()
    asked, events = client(live), observed(6)
    for _ in range(2):
        answer = asked.post("/events", content=lines(*events), headers={"Idempotency-Key": "k1"})
        assert answer.json() == {"taken": 6, "observe": 6}
    assert live.n_rows == 6
    asked.post("/events", content=lines(*events), headers={"Idempotency-Key": "k2"})
    assert live.n_rows == 12
    named = [{**event, "id": f"r{n}"} for n, event in enumerate(events)]
    for key in ("k3", "k4"):  # rows with ids of their own need no key
        asked.post("/events", content=lines(*named), headers={"Idempotency-Key": key})
    table = pa.Table.from_pylist([{**event, "kind": "observe"} for event in named])
    asked.post("/events", content=ipc(table), headers=ARROW)
    assert live.n_rows == 18
    for _ in range(2):  # without both, each request counts
        asked.post("/events", content=lines(*events))
    assert live.n_rows == 30
    answer = asked.post("/events", content=lines(*events), headers={"Idempotency-Key": "k" * 256})
    assert (answer.status_code, live.n_rows) == (422, 30)
    bad = [*named, {**named[0], "id": "x", "label": 7}]
    answer = asked.post("/events", content=lines(*bad))
    assert (answer.status_code, answer.json()["row"]) == (422, 6)
    bad[-1] = {**named[0], "id": [1]}
    assert asked.post("/events", content=lines(*bad)).json()["row"] == 6
