"""The event that is refused is the invalid one, wherever it stands, and the others are taken."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from service.test_endpoints import TestClient, application, lines

import streammetrics as sm

NOW = time.time() - 60
TIMES = ["x", 1e12, -1, True, None, [NOW], {}, 10**400, "2026-11-27T09:00:00"]
BAD = [
    *[{"time": value} for value in TIMES],
    {"zzz": 3},
    {"score": "x"},
    {"score": [0.1, 0.2]},
    {"score": None},
    {"label": "x"},
    {"label": [1, 1]},
    {"label": 7},
    {"c": 3},
    {"c": 2**63},
    {"c": "\ud800"},
    {"id": [1]},
    {"score": ...},
    {"label": ...},
    {"time": ...},
    {"kind": "obs"},
]


def asked(letters=None):
    live = sm.Live(
        sm.MetricSet(
            {"accuracy": sm.Accuracy(threshold=0.5)},
            columns={"y_true": "label", "y_score": "score"},
        ),
        by="c",
        types={"c": "text"},
    )
    letters = letters and str(letters)
    return live, TestClient(application(live, letters=letters), base_url="http://localhost")


def good(moment=NOW):
    return {"kind": "observe", "time": moment, "score": 0.9, "label": 1, "c": "x"}


def changed(change):
    return {name: value for name, value in {**good(), **change}.items() if value is not ...}


@pytest.mark.parametrize("change", BAD, ids=range(len(BAD)))
@pytest.mark.parametrize("place", [0, 2])
def test_the_first_invalid_event_is_named_and_the_others_are_taken(change, place, tmp_path):
    events = [good(), good("2026-11-20T09:00:00Z"), good()]
    events.insert(place, changed(change))
    events.append(changed(change))
    answer = asked()[1].post("/events", content=lines(*events))
    assert (answer.status_code, answer.json()["row"]) == (422, place), answer.text
    assert f"row {place}" in answer.json()["error"]
    path = tmp_path / "refused.jsonl"
    live, client = asked(path)
    answer = client.post("/events", content=lines(*events))
    assert answer.json() == {"taken": 3, "observe": 3, "refused": 2}
    assert live.n_rows == 3
    assert [json.loads(line)["row"] for line in path.read_text().splitlines()] == [place, 4]


def test_what_is_valid_alone_is_valid_beside_others():
    live, client = asked()
    events = [{**good(), "score": [0.9]}, good(), {**good(), "id": "a"}, {**good(), "score": 2**63}]
    answer = client.post("/events", content=lines(*events[:3]))
    assert answer.json() == {"taken": 3, "observe": 3}, answer.text
    labels = [{"kind": "label", "id": "a", "time": NOW, "label": label} for label in ([1], 1)]
    labels[1]["version"] = 2
    assert client.post("/events", content=lines(*labels)).json() == {"taken": 2, "label": 2}
    score = {"kind": "predict", "time": NOW, "c": "x"}
    for n, value in enumerate(([0.5], 0.5)):
        event = {**score, "id": f"p{n}", "score": value}
        assert client.post("/events", content=lines(event)).json()["taken"] == 1
    assert live.n_rows == 3


def test_a_refused_request_leaves_nothing_behind():
    live = sm.Live(sm.MetricSet({"kappa": sm.FleissKappa(from_raters=False)}), types={"ratings": 2})
    client = TestClient(application(live), base_url="http://localhost")
    rows = [
        {"kind": "observe", "time": NOW, "ratings": counts} for counts in ([2, 1], [2, -1], [2, 2])
    ]
    answer = client.post("/events", content=lines(*rows[:2]))
    assert (answer.status_code, answer.json()["row"]) == (422, 1)
    assert client.post("/events", content=lines(rows[2])).status_code == 202


def test_advice_says_where_it_goes():
    answer = asked()[1].post("/events", content=lines(good(), changed({"score": None})))
    assert "nan_policy='omit' leaves such rows out if it is a parameter" in answer.json()["error"]


def test_an_array_with_bad_syntax_names_no_row():
    answer = asked()[1].post("/events", content=json.dumps([good(), good()])[:-3])
    assert (answer.status_code, answer.json()["row"]) == (422, None)
    assert answer.json()["error"].startswith("the body is not JSON")


def test_mixed_times_in_python_name_their_row():
    live = sm.Live(sm.MetricSet({"accuracy": sm.Accuracy(threshold=0.5)}))
    iso = "2026-11-20T09:00:00Z"
    for wrong in (1e12, np.datetime64("NaT"), "x", [NOW], 10**400):
        with pytest.raises(sm.InvalidBatchError, match="first in row 2") as error:
            live.observe(time=[NOW, iso, wrong], y_true=[1] * 3, y_score=[0.5] * 3)
        assert error.value.row == 2
    for times in ([[NOW], NOW], [10**400, NOW]):
        with pytest.raises(sm.InvalidBatchError, match="first in row 0"):
            live.observe(time=times, y_true=[1] * 2, y_score=[0.5] * 2)


def test_slices_of_large_unsigned_integers():
    sliced = sm.Slices(sm.MetricSet({"accuracy": sm.Accuracy()}), by="c")
    sliced.update(y_true=[1, 1], y_pred=[1, 0], c=[2**63, 2**63 + 2])
    assert [*sliced.compute()["c"]] == [2**63, 2**63 + 2]
