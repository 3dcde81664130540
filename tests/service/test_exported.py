"""What /metrics has beside values: slices, confidence and possible, if they are asked for."""

from __future__ import annotations

import re
import warnings

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import streammetrics as sm
from streammetrics.live.exporting.prometheus import LiveCollector
from streammetrics.live.service.app import application
from streammetrics.live.service.config import settings
from streammetrics.live.service.toml import ConfigError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what the client asks its own dependencies
    from starlette.testclient import TestClient

START = 1_700_000_000


def sliced():
    """Return a state whose slices have 6, 4 and 2 rows, and one prediction without a label."""
    state = sm.Live(
        sm.MetricSet({"accuracy": sm.Accuracy(), "worst": sm.MaxError()}),
        by=[["who"], ["who", "how"]],
        labels=[0, 1],
        max_ahead=None,
    )
    who = ["a"] * 6 + ["b"] * 4 + [None] * 2
    rows = {"y_true": [1, 0] * 6, "y_pred": [1, 1, 1, 0] * 3, "how": ["x"] * 12}
    state.observe(time=range(START, START + 12), who=who, **rows)
    return state.predict(id="r1", time=START, y_pred=1, who="a", how="x")


def scraped(**more):
    registry = CollectorRegistry()
    registry.register(LiveCollector(sliced(), window="1h", **more))
    found = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def test_slices_confidence_and_possible_are_exported_if_they_are_asked_for():
    plain = scraped()
    assert not [name for name in plain if re.search("slice|confidence|possible", name)]
    found = scraped(slices=2, confidence=True, possible=True)
    window = sliced().window("1h")
    limits = window["accuracy"].confidence(0.95)
    at = {"metric": "accuracy", "window": "1h"}  # MaxError has no limits
    assert found["streammetrics_confidence_low"] == [(at, limits.low)]
    assert found["streammetrics_confidence_high"] == [(at, limits.high)]
    low, high = sliced().possible("1h")["accuracy"]
    assert found["streammetrics_possible_low"] == [(at, low)]
    assert found["streammetrics_possible_high"] == [(at, high)]
    both = [{"by": "who", "slice": "a"}, {"by": "who", "slice": "b"}]
    both += [{"by": "who, how", "slice": '["a", "x"]'}, {"by": "who, how", "slice": '["b", "x"]'}]
    rows = [({"window": "1h", **each}, n) for each, n in zip(both, [6, 4] * 2, strict=True)]
    assert found["streammetrics_slice_rows"] == rows
    left = [({"window": "1h", "by": by}, 1.0) for by in ("who", "who, how")]
    assert found["streammetrics_slices_left_out"] == left
    table = sliced().window("1h", by="who").compute().to_dict()
    values = {
        (labels["metric"], labels["slice"]): value
        for labels, value in found["streammetrics_slice_value"]
        if labels["by"] == "who"
    }
    assert values == {
        (name, who): table[name][table["who"].index(who)]
        for name in ("accuracy", "worst")
        for who in ("a", "b")
    }
    every = scraped(slices=3)
    assert "(missing)" in [labels["slice"] for labels, _ in every["streammetrics_slice_rows"]]
    assert {value for _, value in every["streammetrics_slices_left_out"]} == {0.0}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("slices = -1", "-1 is not between 0 and 10,000"),
        ("slices = 10001", "10001 is not between 0 and 10,000"),
        ("slices = true", "true is not a whole number"),
        ("confidence = 1", "1 is not true or false"),
        ('possible = "yes"', "'yes' is not true or false"),
        ("slice = 5", "did you mean 'slices'"),
    ],
)
def test_mistakes_of_what_is_exported_name_their_line(tmp_path, line, why):
    path = tmp_path / "live.toml"
    path.write_text(f'[metrics]\nauc = "ROCAUC"\n[prometheus]\n{line}\n')
    with pytest.raises(ConfigError, match=f"line 4, prometheus.*{re.escape(why)}"):
        settings(path)


def test_a_service_exports_what_its_configuration_says(tmp_path):
    path = tmp_path / "live.toml"
    said = 'by = [["who"]]\n[prometheus]\nslices = 1\n[server]\nclock = "events"'
    path.write_text(f'[metrics]\naccuracy = "Accuracy"\n[live]\n{said}\n')
    found = settings(path)
    live = found.live().observe(
        time=range(START, START + 3), y_true=[1, 0, 1], y_pred=[1, 1, 1], who=["a", "b", "b"]
    )
    made = application(live, view=found.view, server=found.server)
    scrape = TestClient(made, base_url="http://localhost").get("/metrics").text
    label = 'by="who",slice="b",window="1h"'
    assert f"streammetrics_slice_rows{{{label}}} 2.0" in scrape
    assert 'slice="a"' not in scrape
    assert "confidence" not in scrape
