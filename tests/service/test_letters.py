"""Dead letters: refused events are in a file, and the others of their request are taken."""

from __future__ import annotations

import json
import os
import stat

import pyarrow as pa
import pytest
from service.test_endpoints import ARROW, NOW, TestClient, application, ipc, lines, observed, state

from streammetrics.live.service import logs as module
from streammetrics.live.service.config import settings
from streammetrics.live.service.toml import ConfigError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "refused.jsonl"


def client(live, path):
    return TestClient(application(live, letters=str(path)), base_url="http://localhost")


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def mixed():
    """Return good events, bad ones of several kinds, and the rows of the bad ones."""
    good = observed(12)
    bad = [
        {**good[0], "label": 7},
        {**good[0], "y_score": 2.0, "time": "yesterday"},
        {"kind": "predict", "id": 1.5, "time": NOW, "y_score": 0.5},
        {"kind": "guess", "time": NOW},
        {"kind": "observe", "time": NOW, "label": 1},
    ]
    events = [*good[:4], bad[0], bad[1], *good[4:8], bad[2], bad[3], *good[8:], bad[4]]
    return good, events, [4, 5, 10, 11, 16]


def test_a_number_that_json_does_not_have_is_written_as_text(path):
    event = json.dumps({**observed(1)[0], "y_score": 7, "more": 8})
    event = event.replace(": 7", ": 1e999").replace(": 8", ": -1e999")
    answer = client(state(), path).post("/events", content=event)
    assert answer.json() == {"taken": 0, "refused": 1}
    (letter,) = [
        json.loads(line, parse_constant=pytest.fail) for line in path.read_text().splitlines()
    ]
    assert (letter["event"]["y_score"], letter["event"]["more"]) == ("Infinity", "-Infinity")


@pytest.mark.parametrize("form", ["lines", "array"])
def test_the_other_events_of_a_request_are_taken(path, form):
    live, whole = state(), state()
    good, events, rows = mixed()
    body = lines(*events) if form == "lines" else json.dumps(events)
    answer = client(live, path).post(
        "/events", content=body, headers={"Idempotency-Key": "k"} if form == "array" else {}
    )
    assert answer.status_code == 202
    assert answer.json() == {"taken": 12, "observe": 12, "refused": 5}
    for event in good:
        columns = {name: value for name, value in event.items() if name != "kind"}
        whole.observe(**columns)
    assert live.window("1h").to_bytes() == whole.window("1h").to_bytes()
    found = read(path)
    assert sorted(letter["row"] for letter in found) == rows
    for letter in found:
        assert letter["event"] == json.loads(json.dumps(events[letter["row"]]))
        assert f"row {letter['row']}" in letter["error"]
        assert letter["key"] == ("k" if form == "array" else "")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_ids_from_a_key_are_those_of_the_rows_of_the_request(path):
    live, (_, events, _) = state(), mixed()
    asked = client(live, path)
    assert "streammetrics_dead_letters_total 0.0" in asked.get("/metrics").text
    for _ in range(2):
        asked.post("/events", content=lines(*events), headers={"Idempotency-Key": "k"})
    assert live.n_rows == 12
    asked.post("/events", content=lines(*events[:4]), headers={"Idempotency-Key": "k"})
    assert live.n_rows == 12
    assert "streammetrics_dead_letters_total 10.0" in asked.get("/metrics").text


def test_lines_that_are_no_json_and_tables(path):
    live, good = state(), observed(4)
    asked = client(live, path)
    body = f"{lines(*good[:2])}\n[1, 2\n{{\n{lines(*good[2:])}"
    assert asked.post("/events", content=body).json()["refused"] == 2
    assert [letter["event"] for letter in read(path)] == ["[1, 2", "{"]
    bad = [*good, {**good[0], "label": 7}, {**good[0], "y_score": float("nan")}]
    answer = asked.post("/events", content=ipc(pa.Table.from_pylist(bad)), headers=ARROW)
    assert answer.json() == {"taken": 4, "observe": 4, "refused": 2}
    assert [letter["row"] for letter in read(path)[2:]] == [4, 5]
    assert live.n_rows == 8
    none = asked.post("/events", content=lines({"kind": "what"}))
    assert (none.status_code, none.json()) == (202, {"taken": 0, "refused": 1})
    assert asked.post("/events?kind=what", content=lines(*good)).status_code == 422
    assert asked.post("/events", content="[1, 2").status_code == 422
    assert live.n_rows == 8


def test_with_too_many_refused_events_none_is_taken(path, monkeypatch):
    monkeypatch.setattr("streammetrics.live.service.bodies.MOST", 3)
    live, good = state(), observed(8)
    body = lines(*good[:4], *[{**event, "label": 7} for event in good[4:]])
    answer = client(live, path).post("/events", content=body)
    assert (answer.status_code, live.n_rows) == (422, 0)
    assert "too many events of the request are refused, so none is taken" in answer.json()["error"]


def test_a_file_that_cannot_be_written_is_answered_503_and_nothing_is_taken(tmp_path):
    live, (_, events, _) = state(), mixed()
    asked = client(live, tmp_path / "gone" / "refused.jsonl")
    answer = asked.post("/events", content=lines(*events))
    assert (answer.status_code, live.n_rows) == (503, 0)


def test_a_line_that_is_cut_off_is_taken_back_or_ended(path, monkeypatch):
    asked, write = client(state(), path), os.write
    bad = lines({"kind": "what"})
    assert asked.post("/events", content=bad).status_code == 202
    monkeypatch.setattr(module.os, "write", lambda file, data: write(file, data[:9]))
    answer = asked.post("/events", content=bad)
    assert answer.status_code == 507
    assert f"the dead-letter file {path} cannot be written" in answer.json()["error"]
    monkeypatch.undo()
    assert len(read(path)) == 1
    with path.open("a") as file:  # as by a crash
        file.write('{"refused": ')
    assert asked.post("/events", content=bad).status_code == 202
    first, cut, last = path.read_text().splitlines()
    assert cut == '{"refused": '
    assert json.loads(first)["error"] == json.loads(last)["error"]


def test_a_large_file_is_renamed(path, monkeypatch):
    monkeypatch.setattr(module, "_BYTES", 1000)
    asked = client(state(), path)
    for _ in range(20):
        asked.post("/events", content=lines({"kind": "what"}))
    old = path.with_name("refused.jsonl.1")
    assert old.stat().st_size < 1500
    assert not path.exists() or path.stat().st_size < 1500
    assert {letter["event"]["kind"] for letter in read(old)} == {"what"}


def test_the_configuration_chooses(config, tmp_path):
    assert settings(config()).letters is None
    found = settings(config(live='on_invalid = "dead_letter"'))
    assert found.letters == str(tmp_path / "refused.jsonl")
    found = settings(config(live='on_invalid = "dead_letter"\ndead_letter = "bad.jsonl"'))
    assert found.letters == str(tmp_path / "bad.jsonl")
    for text, why in [
        ('on_invalid = "dead_leter"', "did you mean"),
        ('dead_letter = "no/such.jsonl"', "there is no folder"),
        ('dead_letter = ""', "is not a file: name one"),
    ]:
        with pytest.raises(ConfigError, match=why):
            settings(config(live=text))
