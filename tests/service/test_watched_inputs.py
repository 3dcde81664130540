"""Inputs in the service: configuration, events, answers, metrics, replay, export and estimates."""

from __future__ import annotations

import json
import time
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from service.test_endpoints import ARROW, ipc, lines

import streammetrics as sm
from streammetrics.cli import main
from streammetrics.live.exporting.families import Exported, families
from streammetrics.live.service.app import application
from streammetrics.live.service.config import settings
from streammetrics.live.service.judging import estimated, judging
from streammetrics.live.service.sizing import sized
from streammetrics.live.service.toml import ConfigError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what the client asks its own dependencies
    from starlette.testclient import TestClient

NOW = time.time() - 60
CONFIG = """
[metrics]
auc = "ROCAUC"
[columns]
y_true = "label"
y_score = "score"
[live]
store = "live.db"
[inputs]
age = { type = "number", range = [18, 100], reference = "age.state" }
country = { type = "category", reference = "country.state" }
score = "number"
[alerts]
lacking = 'Above("age/nulls", 0.5, window="1h", min_rows=10)'
far = 'Above("country/psi", 0.2, window="1h", clear=0.1)'
[prometheus]
inputs = true
"""


def trained(folder):
    """Save the references as the command line does."""
    rng = np.random.default_rng(1)
    frame = {"age": rng.integers(20, 70, 500), "country": rng.choice(["DE", "FR"], 500)}
    pd.DataFrame(frame).to_csv(folder / "train.csv", index=False)
    for name, more in (("age", []), ("country", ["--param", "bins=categories"])):
        words = ["evaluate", "--task", "drift", "-c", f"values={name}", *more, "--reference"]
        assert (
            main([*words, str(folder / "train.csv"), "--save", str(folder / f"{name}.state")]) == 0
        )


@pytest.fixture
def config(tmp_path, capsys):
    trained(tmp_path)
    (tmp_path / "live.toml").write_text(CONFIG)
    capsys.readouterr()
    return tmp_path / "live.toml"


def predicted(n=40):
    rng = np.random.default_rng(2)
    return [
        {"kind": "predict", "id": f"r{k}", "time": NOW + k / 10, "score": k % 7 / 7,
         "age": None if k % 4 == 0 else int(rng.integers(10, 70)),
         "country": ["DE", "FR", "GB", None][k % 4]}
        for k in range(n)
    ]  # fmt: skip


def served(config, **parameters):
    found = settings(config)
    live = found.live(store=False)
    app = application(live, names=found.names, view=found.view, rules=found.rules, **parameters)
    return live, TestClient(app, base_url="http://localhost")


def test_lines_and_tables_are_the_events_of_python_and_are_answered(config):
    events = predicted()
    expected = settings(config).live(store=False)
    for event in events:
        expected.predict(**{name: value for name, value in event.items() if name != "kind"})
    for body, headers in (
        (lines(*events), {}),
        (json.dumps(events), {"content-type": "application/json"}),
        (ipc(pa.Table.from_pylist(events)), ARROW),
    ):
        live, client = served(config)
        assert client.post("/events", content=body, headers=headers).json()["taken"] == 40
        assert live.to_bytes() == expected.to_bytes()
    told = client.get("/api/inputs?window=1h").json()
    table = expected.inputs("1h")
    assert told["window"] == "1h"
    assert [one["name"] for one in told["inputs"]] == ["age", "country", "score"]
    for mine, one in zip(told["inputs"], table, strict=True):
        assert [mine[name] for name in ("rows", "nulls", "outside", "unseen")] == [*one[1:5]]
        assert mine["distances"] == {m: d._asdict() for m, d in one.distances.items()}
    assert told["inputs"][1]["unseen"] == 10
    assert client.get("/api/inputs?wind=1h").status_code == 422
    tag = client.get("/api/inputs").headers["etag"]
    assert client.get("/api/inputs", headers={"if-none-match": tag}).status_code == 304


def test_bad_inputs_refuse_the_request_and_name_the_row(config):
    live, client = served(config)
    events = predicted()
    before = live.to_bytes()
    for value, told in (("old", "age"), ([1, 2], "age")):
        answer = client.post("/events", content=lines(*events[:3], {**events[3], "age": value}))
        assert answer.status_code == 422
        assert answer.json()["column"] == "age"
        assert answer.json()["row"] == 3
        assert told in answer.json()["error"]
    assert live.to_bytes() == before


def test_invalid_inputs_are_dead_letters_and_the_other_events_are_taken(config, tmp_path):
    live, client = served(config, letters=str(tmp_path / "refused.jsonl"))
    events = predicted()
    answer = client.post("/events", content=lines(*events[:3], {**events[3], "age": "old"}))
    assert answer.json() == {"taken": 3, "predict": 3, "refused": 1}
    (letter,) = map(json.loads, (tmp_path / "refused.jsonl").read_text().splitlines())
    assert letter["column"] == "age"
    assert live.inputs("1h")[0].rows == 3


def test_without_inputs_there_are_none_and_the_description_names_those_there_are(config):
    live = sm.Live(sm.MetricSet({"auc": sm.ROCAUC()}))
    plain = TestClient(application(live), base_url="http://localhost")
    assert plain.get("/api/inputs").json() == {"window": "1h", "inputs": []}
    _, client = served(config)
    events = client.get("/openapi.json").json()["paths"]["/events"]["post"]["requestBody"]
    observe, predict, label = events["content"]["application/json"]["schema"]["items"]["anyOf"]
    for form in (observe, predict):
        assert form["properties"]["age"] == {"type": ["number", "null"]}
        assert "age" not in form["required"]
        assert form["properties"]["score"] == {"type": "number"}
    assert "age" not in label["properties"]


def test_metrics_have_the_inputs_if_they_are_asked_for(config):
    live, client = served(config)
    client.post("/events", content=lines(*predicted()))
    queries = live._queries
    assert not [name for name in families(queries, "1h") if name.startswith("input")]
    found = families(queries, "1h", Exported(inputs=True))
    at = {"input": "age", "window": "1h"}
    age, country, _ = live.inputs("1h")
    assert [sample for sample in found["input_share"] if sample.labels["input"] == "age"] == [
        ({**at, "of": "nulls"}, 0.25),
        ({**at, "of": "outside"}, age.outside / 40),
    ]
    assert len(found["input_rows"]) == 3
    assert found["input_distance"][0] == ({**at, "method": "ks"}, age.distances["ks"].value)
    chance = {"input": "country", "window": "1h", "method": "js"}
    assert found["input_distance_chance"][-1] == (chance, country.distances["js"].chance)
    text = client.get("/metrics").text
    assert 'streammetrics_input_share{input="country",of="unseen",window="1h"} 0.25' in text
    empty = families(settings(config).live(store=False)._queries, "1h", Exported(inputs=True))
    assert empty["input_share"] == []


def test_rules_of_inputs_are_checked_and_answered(config):
    found = settings(config)
    told = [*judging(found), *estimated(found, 60)]
    assert told[0] == "lacking: judges panes 1min old"
    assert "far: judges panes 1min old" in told[1]
    assert told[2] == "lacking: about 3,600 rows in 1h"
    live, client = served(config)
    client.post("/events", content=lines(*predicted()))
    live.now(NOW + 600)
    far = live.alerts(found.rules)[1]
    assert far.firing
    assert [one["metric"] for one in client.get("/api/alerts").json()["alerts"]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('age = "text"', "inputs.age: age has the type 'text'"),
        ('age = { type = "number", rang = [0, 1] }', "no key 'rang'"),
        ('age = { type = "number", reference = "none.state" }', "inputs.age: .*none.state"),
        ('age = { type = "number", reference = 3 }', 'write reference = "train.state"'),
        ('age = { type = "number", reference = "country.state" }', "there is no histogram"),
        ('country = { type = "category", reference = "age.state" }', "no counts of categories"),
        ('time = "number"', "'time' is of the event itself, no input"),
        ('label = "number"', "inputs: 'label' is the label"),
        ("age = 3", "age is 3; expected"),
    ],
)
def test_mistakes_are_told_with_their_line(config, line, message):
    text = CONFIG[: CONFIG.index("[inputs]")] + f"[inputs]\n{line}\n"
    config.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        settings(config)
    assert "line 10" in str(caught.value) or "line 9" in str(caught.value)
    config.write_text(f"{text}\n[alerts]\nx = 'Above(\"agee/nulls\", 1)'")
    with pytest.raises(ConfigError, match=message):
        settings(config)


def test_a_rule_of_an_input_that_does_not_exist_is_a_mistake(config):
    config.write_text(CONFIG.replace('"age/nulls"', '"age/null"'))
    with pytest.raises(ConfigError, match="alerts.lacking: there is no metric 'age/null'"):
        settings(config)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_files_are_replayed_with_their_inputs_and_exported(config, form, capsys, tmp_path):
    events = predicted()
    frame = pd.DataFrame(events).drop(columns="kind")
    path = tmp_path / f"served.{form}"
    frame.to_csv(path, index=False) if form == "csv" else frame.to_parquet(path)
    assert main(["live", "replay", str(config), str(path)]) == 0
    expected, client = served(config)
    client.post("/events", content=lines(*events))
    with settings(config).live() as live:
        assert live.to_bytes() == expected.to_bytes()
    out = tmp_path / "history.csv"
    assert main(["live", "export", str(config), str(out), "--window", "1d", "--every", "1d"]) == 0
    history = pd.read_csv(out)
    assert history["age/nulls"].tolist()[-1] == 0.25
    assert {"country/unseen", "country/psi_low", "age/ks_high", "age/outside"} <= {*history}
    series = expected.series("1d", every="1d")
    assert history["country/psi"].tolist() == series["country/psi"].tolist()
    capsys.readouterr()


def test_estimates_of_memory_count_the_inputs(config):
    def bytes_of(text):
        config.write_text(text.replace('"ROCAUC"', '"ROCAUC(max_bins=256)"'))
        (memory, store) = sized(settings(config), 600, 1)
        return [
            float(one.split("about ")[1].split(" ")[0].replace(",", "")) for one in (memory, store)
        ]

    plain = CONFIG[: CONFIG.index("[inputs]")]
    some, none = bytes_of(CONFIG), bytes_of(plain)
    assert all(a > b for a, b in zip(some, none, strict=True))
