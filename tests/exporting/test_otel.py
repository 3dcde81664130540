"""OpenTelemetry reads the same numbers, with its in-memory reader."""

from __future__ import annotations

from exporting.test_prometheus import filled
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, Sum

import streammetrics as sm
from streammetrics.live.exporting.otel import observe


def test_gauges_are_of_one_reading():
    live, reader = filled(), InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    observe(provider.get_meter("ours"), live, window="30min", rules=[sm.Below("auc", 0.9)])
    (resource,) = reader.get_metrics_data().resource_metrics
    found = {
        metric.name: {tuple(p.attributes.values()): p.value for p in metric.data.data_points}
        for metric in resource.scope_metrics[0].metrics
    }
    window = live.window("30min")
    assert found["streammetrics.value"] == {
        (name, "30min"): value for name, value in window.compute().items()
    }
    assert found["streammetrics.value_low"]["auc", "30min"] == window.bounds()["auc"].low
    kinds = {metric.name: type(metric.data) for metric in resource.scope_metrics[0].metrics}
    assert kinds["streammetrics.dropped_rows"] is kinds["streammetrics.refused_events"] is Sum
    assert found["streammetrics.alert_firing"] == {("auc below 0.9 over 1h",): 1.0}
    provider.shutdown()


def test_inputs_are_exported_on_request():
    live = sm.Live(sm.Mean(), inputs={"age": {"type": "number", "range": [18, 100]}})
    start = 1_700_000_000
    live.observe(time=range(start, start + 4), values=[1.0] * 4, age=[None, 20, 30, 400])
    for inputs, share in (
        (True, {("age", "30min", "nulls"): 0.25, ("age", "30min", "outside"): 0.25}),
        (False, None),
    ):
        reader = InMemoryMetricReader()
        provider = MeterProvider(metric_readers=[reader])
        observe(provider.get_meter("ours"), live, window="30min", inputs=inputs)
        (resource,) = reader.get_metrics_data().resource_metrics
        found = {
            metric.name: {tuple(p.attributes.values()): p.value for p in metric.data.data_points}
            for metric in resource.scope_metrics[0].metrics
        }
        assert found.get("streammetrics.input_share") == share
        provider.shutdown()
