"""What the page can show: windows, references and groups; series of earlier windows and slices."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.live.service.app import application
from streammetrics.live.service.config import settings
from streammetrics.live.service.server import PageView, Server
from streammetrics.live.service.toml import ConfigError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what the client asks its own dependencies
    from starlette.testclient import TestClient

START = 1_700_000_000 // 86_400 * 86_400
RULES = [
    sm.Below("accuracy", 0.5, window="1h", name="low"),
    sm.BurnRate("accuracy", 0.9, windows=("6h", "1h"), factor=2.0, name="burns"),
    sm.Change("accuracy", 0.5, name="moved"),
    sm.Coverage(0.9, name="late"),
]


def suite():
    return sm.MetricSet({"accuracy": sm.Accuracy(), "recall": sm.Recall()})


def live(days=3):
    """Return a state with a row each 10 minutes, whose country is text or missing."""
    state = sm.Live(
        suite(), tiers=[("1h", "30d")], by=[["country"], ["country", "device"]], max_ahead=None
    )
    rng = np.random.default_rng(0)
    n = days * 144
    countries = np.array(["DE", "FR", None], object)[rng.integers(0, 3, n)]
    return state.observe(
        time=START + 600 * np.arange(n),
        y_true=rng.integers(0, 2, n),
        y_pred=rng.integers(0, 2, n),
        country=countries,
        device=rng.choice(["phone", "desk"], n),
    )


def client(state=None, *, view=None, **server):
    view = view or PageView(window="2h", every="1h")
    server = Server(clock="events", **server)
    made = application(live() if state is None else state, view=view, server=server, rules=RULES)
    return TestClient(made, base_url="http://localhost")


def test_every_window_that_is_offered_can_be_read():
    asked = client()
    found = asked.get("/api/view").json()
    assert (found["title"], found["window"], found["every"]) == ("Live metrics", "2h", "1h")
    assert [each["window"] for each in found["windows"]] == [
        *("1h", "2h", "3h", "6h", "12h", "1d", "7d", "30d")
    ]
    assert found["spans"]["30d"] == 30 * 86_400
    assert "90d" not in found["spans"]
    for each in found["windows"]:
        for every in each["every"]:
            query = {"window": each["window"], "every": every, "span": "1d"}
            assert asked.get("/api/series", params=query).status_code == 200, query


def test_windows_that_ended_earlier_are_those_of_the_series():
    asked = client()
    whole = asked.get("/api/series").json()
    for ago, n in (("1d", 24), ("90min", 2)):
        found = asked.get("/api/series", params={"ago": ago, "span": "5h"}).json()
        place = len(whole["time"]) - n
        assert found["time"] == whole["time"][place - 5 : place]
        for name, points in whole["metrics"].items():
            assert found["metrics"][name]["value"] == points["value"][place - 5 : place]
    assert asked.get("/api/series", params={"ago": "20d"}).json()["time"] == []


@pytest.mark.parametrize(
    "key", [{"country": "DE"}, {"country": None}, {"country": "FR", "device": "desk"}]
)
def test_a_slice_of_the_series_is_that_of_each_window(key):
    state = live(1)
    found = client(state).get("/api/series", params={"slice": json.dumps(key)}).json()
    assert len(found["time"]) == 24
    for end, rows, value in zip(
        found["time"], found["n_rows"], found["metrics"]["accuracy"]["value"], strict=True
    ):
        with warnings.catch_warnings(action="ignore", category=sm.UndefinedMetricWarning):
            table = state.window("2h", end=end, by=list(key)).compute().to_dict()
        keys = list(zip(*[table[name] for name in key], strict=True))
        place = keys.index(tuple(key.values()))
        assert (rows, value) == (table["n_rows"][place], table["accuracy"][place])


def test_a_slice_without_rows_is_empty():
    asked = client()
    found = asked.get("/api/series", params={"slice": '{"country":"XX"}'}).json()
    assert found["time"] == []


@pytest.mark.parametrize(
    ("query", "status", "why"),
    [
        ({"slice": ""}, 400, "expected a JSON object"),
        ({"slice": "[" * 20_000}, 400, "expected a JSON object"),
        ({"slice": "{}"}, 400, "expected a JSON object"),
        ({"slice": '["country"]'}, 400, "expected a JSON object"),
        ({"slice": '{"country":5}'}, 400, "expected a JSON object"),
        ({"slice": '{"country":NaN}'}, 400, "expected a JSON object"),
        ({"slice": '{"color":"red"}'}, 400, "no slices by ['color']"),
        ({"ago": "-1d"}, 400, "is not a duration"),
        ({"ago": "yesterday"}, 400, "is not a duration"),
        ({"ago": "1d", "agoo": "1d"}, 422, "did you mean 'ago'?"),
    ],
)
def test_what_is_no_slice_or_duration_is_refused(query, status, why):
    answer = client().get("/api/series", params=query)
    assert answer.status_code == status
    assert why in answer.json()["error"]
    assert len(answer.json()["error"]) < 300


def test_a_service_without_slices_names_them_in_its_refusal():
    state = sm.Live(sm.Mean(), max_ahead=None).observe(time=START, values=1.0)
    asked = client(state, view=PageView(window="1h", every="1h"))
    state_of = {"slice": '{"country":"DE"}'}
    assert asked.get("/api/series", params=state_of).status_code == 400


def test_the_view_keeps_to_the_rules_of_every_answer():
    asked = client(token="secret")
    key = {"Authorization": "Bearer secret"}
    assert asked.get("/api/view").status_code == 401
    answer = asked.get("/api/view", headers=key)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    again = asked.get("/api/view", headers={**key, "If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    assert asked.get("/api/view?window=1h", headers=key).status_code == 422
    other = client().get("/api/view", headers={"Host": "evil.example"})
    assert other.status_code == 421
    described = asked.get("/openapi.json").json()["paths"]
    assert "/api/view" in described
    names = [each["name"] for each in described["/api/series"]["get"]["parameters"]]
    assert names == ["window", "every", "span", "ago", "slice"]


def test_alerts_name_their_metric_and_limit():
    asked = client()
    found = {each["name"]: each for each in asked.get("/api/alerts").json()["alerts"]}
    limits = {name: (each["metric"], each["limit"]) for name, each in found.items()}
    assert limits == {
        "low": ("accuracy", 0.5),
        "burns": ("accuracy", pytest.approx(0.8)),
        "moved": ("accuracy", 0.5),
        "late": (None, None),
    }


CONFIG = """
[metrics]
accuracy = "Accuracy"
recall = "Recall"
[page]
{page}
"""


def configured(tmp_path, page):
    path = tmp_path / "live.toml"
    path.write_text(CONFIG.format(page=page))
    return settings(path)


def test_references_and_groups_are_in_the_view(tmp_path):
    saved = suite().update(y_true=[1, 1, 0, 0], y_pred=[1, 0, 0, 0])
    saved.save(tmp_path / "v1.state")
    page = 'references = { "<b>v1" = "v1.state" }\ngroups = { Ranking = ["recall"] }'
    found = configured(tmp_path, page)
    view = client(view=found.view).get("/api/view").json()
    (name, metrics), *_ = view["references"].items()
    assert (name, {each: value["value"] for each, value in metrics.items()}) == (
        "<b>v1",
        {"accuracy": 0.75, "recall": 0.5},
    )
    limits = saved["accuracy"].confidence(0.95)
    assert (metrics["accuracy"]["sure_low"], metrics["accuracy"]["sure_high"]) == (
        limits.low,
        limits.high,
    )
    assert view["groups"] == [{"title": "Ranking", "metrics": ["recall"]}]


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ('groups = { A = "recall" }', 'A = ["accuracy"]'),
        ('groups = { A = ["recal"] }', "there is no metric 'recal'; did you mean 'recall'"),
        ('groups = { A = ["recall"], B = ["recall"] }', "'recall' is named twice"),
        ("references = { v1 = 5 }", "expected a file"),
        ('references = { v1 = "none.state" }', "'none.state' cannot be read"),
        ('references = { v1 = "text.state" }', "'text.state' cannot be read"),
        ('references = { v1 = "alone.state" }', "not a MetricSet"),
        ('references = { v1 = "other.state" }', "has none of these metrics, only 'auc'"),
        ('references = { v1 = "apart.state" }', "'recall' is Recall(threshold=0.5)"),
    ],
)
def test_mistakes_of_the_page_name_their_line(tmp_path, page, why):
    (tmp_path / "text.state").write_text("no state")
    sm.Mean().save(tmp_path / "alone.state")
    sm.MetricSet({"auc": sm.ROCAUC()}).save(tmp_path / "other.state")
    sm.MetricSet({"recall": sm.Recall(threshold=0.5)}).save(tmp_path / "apart.state")
    with pytest.raises(ConfigError, match=f"live.toml: line 6, page.*{re.escape(why)}"):
        configured(tmp_path, page)
