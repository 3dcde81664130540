"""What Prometheus reads: its own tools check it, and a real one scrapes two workers."""

from __future__ import annotations

import json
import math
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from exporting.worker import opened
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as parsed

import streammetrics as sm
from streammetrics.cli import main
from streammetrics.live.exporting import files
from streammetrics.live.exporting.prometheus import LiveCollector, exposition

WORKER = Path(__file__).with_name("worker.py")
NOW = int(time.time()) // 60 * 60


def filled(n=4000, start=0, suite=None):
    suite = suite or sm.MetricSet({"auc": sm.ROCAUC(max_bins=64), "loss": sm.LogLoss()})
    ttl = {"label_ttl": "5min", "label_lateness": "5min"}
    live = sm.Live(suite, tiers=[("1min", "3h")], max_ahead=None, **ttl)
    rng = np.random.default_rng(3)
    rows = {"y_true": rng.integers(0, 2, n), "y_score": rng.random(n)}
    return live.observe(time=start + np.arange(n) / 2, **rows)


def promtool(*arguments, **options):
    return subprocess.run(
        ["promtool", *arguments], capture_output=True, check=False, timeout=60, **options
    )


@contextmanager
def running(*command):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def asked(port, query, **parameters):
    """Return what Prometheus answers to a query, once it has an answer."""
    url = f"http://127.0.0.1:{port}/api/v1/query?"
    url += urllib.parse.urlencode({"query": query, **parameters})
    for _ in range(300):
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                found = json.load(answer)["data"]["result"]
        except urllib.error.URLError:
            found = []
        if found:
            return found
        time.sleep(0.2)
    raise AssertionError(f"Prometheus has no {query}")


def test_a_scrape_has_every_number_to_the_last_digit():
    live = filled()
    rules = [sm.Below("auc", 0.9, name='a "name"\nwith \\'), sm.Silence("1h")]
    body, content_type = exposition(LiveCollector(live, window="30min", rules=rules))
    assert content_type.startswith("text/plain")
    assert 'streammetrics_info{title="Live metrics"} 1.0\n' in body.decode()
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in parsed(body.decode())
        for sample in family.samples
    }
    window = live.window("30min")
    for name, value in window.compute().items():
        of = (name, "30min")
        assert found["streammetrics_value", *of] == value
        sides = found["streammetrics_value_low", *of], found["streammetrics_value_high", *of]
        assert sides == tuple(window.bounds()[name])
    assert found["streammetrics_rows", "30min"] == window.n_rows
    assert found["streammetrics_newest_event_timestamp_seconds",] == 1999.5
    assert found["streammetrics_alert_firing", 'a "name"\nwith \\'] == 1
    assert found["streammetrics_alert_state", "no events for 1h", "ok"] == 1


def test_labels_are_told_by_what_became_of_them():
    live = sm.Live(sm.MetricSet({"accuracy": sm.Accuracy()}), label_ttl="1h")
    for second in range(10):
        live.predict(id=second, time=second, y_pred=1)
    live.label(id=3, time=8, y_true=1)
    body, _ = exposition(LiveCollector(live))
    text = body.decode()
    assert 'streammetrics_predictions{label="pending",window="1h"} 9.0' in text
    assert 'streammetrics_coverage{window="1h"} 0.1' in text
    assert 'streammetrics_label_delay_seconds{percentile="50",window="1h"} 5.0' in text


def test_promtool_finds_nothing_wrong_with_a_scrape():
    rules = [sm.Below("auc", 0.9), sm.Change("recall", 0.5), sm.Silence("1h")]
    suite = sm.MetricSet({"auc": sm.ROCAUC(), "recall": sm.Recall(threshold=0.5)})
    live = filled(suite=suite)
    live.predict(id=1, time=1995, y_score=0.5).label(id=1, time=1998, y_true=1)
    body, _ = exposition(LiveCollector(live, rules=rules))
    assert b"streammetrics_label_delay_seconds{" in body
    checked = promtool("check", "metrics", input=body)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_open_metrics_is_served_to_who_asks_for_it():
    accept = "application/openmetrics-text; version=1.0.0"
    body, content_type = exposition(LiveCollector(filled()), accept)
    assert content_type.startswith("application/openmetrics-text")
    families = list(text_string_to_metric_families(body.decode()))
    assert families[0].name == "streammetrics_info"


def test_names_in_rules_are_no_templates(tmp_path):
    path = tmp_path / "rules.yml"
    more = {"labels": (("team", "{{x"),), "runbook": "https://r.org/{{x"}
    notices = [files.Notice('weird {{x}} "a"', "below {{ .Value }}", **more)]
    path.write_text(files.rules("{{title}}", notices, "{{job}}"))
    assert promtool("check", "rules", str(path)).returncode == 0


def test_promtool_checks_the_rules_and_they_fire_for_one_title(tmp_path):
    path = tmp_path / "rules.yml"
    notices = [
        files.Notice("auc", "auc below 0.8"),
        files.Notice('a "label"', "", "ticket", "2min"),
    ]
    path.write_text(files.rules('a "service"', notices, "shop"))
    assert promtool("check", "rules", str(path)).returncode == 0
    (tmp_path / "test.yml").write_text(
        f"""
rule_files: [{path}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: 'streammetrics_info{{job="shop",instance="a",title="a \\"service\\""}}'
        values: '1x4 stale stale 1x23 stale'
      - series: 'streammetrics_alert_firing{{job="shop",instance="a",alert="auc"}}'
        values: '0 0 1 1 1 stale stale 1 0x40'
      - series: 'streammetrics_alert_value{{job="shop",instance="a",alert="auc"}}'
        values: '0.5x60'
      - series: 'up{{job="shop",instance="a"}}'
        values: '1x30 0x8 stale'
      - series: 'streammetrics_info{{job="shop",instance="b",title="another"}}'
        values: '1x10 stale'
      - series: 'streammetrics_alert_firing{{job="shop",instance="b",alert="auc"}}'
        values: '1x10 stale'
      - series: 'streammetrics_alert_value{{job="shop",instance="b",alert="auc"}}'
        values: '0.25x10 stale'
      - series: 'streammetrics_alert_state{{job="shop",instance="b",alert="auc",state="no data"}}'
        values: '1x10 stale'
      - series: 'up{{job="shop",instance="b"}}'
        values: '1x10 0x50'
      - series: 'streammetrics_alert_firing{{job="other",instance="a",alert="auc"}}'
        values: '1x60'
    alert_rule_test:
      - eval_time: 2m
        alertname: auc
        exp_alerts: []
      - eval_time: 3m
        alertname: auc
        exp_alerts: &firing
          - exp_labels: {{severity: page, job: shop, instance: a, alert: auc}}
            exp_annotations: {{summary: "auc fires: auc below 0.8, now at 0.5"}}
      - eval_time: 6m  # the service restarts
        alertname: auc
        exp_alerts: *firing
      - eval_time: 30m
        alertname: auc
        exp_alerts: []
      - eval_time: 30m
        alertname: StreammetricsDown
        exp_alerts: []
      - eval_time: 37m
        alertname: StreammetricsDown
        exp_alerts:
          - exp_labels: {{severity: page, job: shop, instance: a}}
            exp_annotations: {{summary: nothing is scraped of shop}}
      - eval_time: 55m  # the target is no longer configured
        alertname: StreammetricsDown
        exp_alerts:
          - exp_labels: {{severity: page, job: shop, title: 'a "service"'}}
            exp_annotations: {{summary: nothing is scraped of shop}}
"""
    )
    tested = promtool("test", "rules", str(tmp_path / "test.yml"))
    assert tested.returncode == 0, tested.stdout


def test_prometheus_scrapes_two_workers_which_tell_the_whole(tmp_path):
    store, ports, own = str(tmp_path / "live.db"), (free_port(), free_port()), free_port()
    commands = [
        (sys.executable, str(WORKER), store, str(port), str(NOW - start), "2000")
        for port, start in zip(ports, (3000, 2400), strict=True)
    ]
    with running(*commands[0]) as first, running(*commands[1]) as second:
        assert [process.stdout.readline() for process in (first, second)] == [b"ready\n"] * 2
        config = tmp_path / "prometheus.yml"
        targets = json.dumps([f"127.0.0.1:{port}" for port in ports])
        config.write_text(
            "global: {scrape_interval: 1s}\n"
            f"scrape_configs: [{{job_name: live, static_configs: [{{targets: {targets}}}]}}]\n"
        )
        with opened(store) as live:
            expected = live.window("1h").compute()["auc"]
            assert live.window("1h").n_rows == 4000
        with running(
            "prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{own}",
        ):  # fmt: skip
            found = asked(own, 'count(streammetrics_value{metric="auc"}) == 2')
            assert found
            values = asked(own, 'streammetrics_value{metric="auc"}')
            assert [float(one["value"][1]) for one in values] == [expected] * 2
            assert len(asked(own, "streammetrics_alert_firing == 1")) == 2


def test_history_is_written_as_blocks_that_prometheus_loads(tmp_path):
    live, own = filled(start=NOW - 7200), free_port()
    history = tmp_path / "history.txt"
    history.write_text("".join(files.openmetrics(live, "30min", "5min")))
    list(text_string_to_metric_families(history.read_text()))
    data = tmp_path / "data"
    made = promtool("tsdb", "create-blocks-from", "openmetrics", str(history), str(data))
    assert made.returncode == 0, made.stderr
    (tmp_path / "prometheus.yml").write_text("global: {}\n")
    series = live.series("30min", every="5min")
    with running(
        "prometheus", f"--config.file={tmp_path / 'prometheus.yml'}",
        f"--storage.tsdb.path={data}", f"--web.listen-address=127.0.0.1:{own}",
    ):  # fmt: skip
        for place in (-1, -4):
            at = series["time"][place].astype("datetime64[s]").astype(int)
            (found,) = asked(own, 'streammetrics_value{metric="loss"}', time=at)
            assert float(found["value"][1]) == series["loss"][place]


def test_history_continues_from_coarser_panes_and_says_how_long_its_windows_are():
    live = sm.Live(sm.Mean(), tiers=[("1min", "1h"), ("1h", "1d"), ("1d", "9d")], max_ahead=None)
    times = NOW // 86_400 * 86_400 - 6 * 86_400 + 900 * np.arange(6 * 96)
    live.observe(time=times, values=times / 900 % 11)
    text = "".join(files.openmetrics(live, "15min", "15min"))
    list(text_string_to_metric_families(text))
    found = {}
    for line in text.splitlines():
        if line.startswith("streammetrics_rows{"):
            labels, value, time = line.rsplit(" ", 2)
            found.setdefault(labels.split('"')[1], {})[float(time)] = float(value)
    assert list(found) == ["1d", "1h", "15min"]
    lengths = {"1d": 86_400, "1h": 3600, "15min": 900}
    for name, samples in found.items():
        for end, n in samples.items():
            assert n == ((times >= end - lengths[name]) & (times < end)).sum()
    assert sum(sum(samples.values()) for samples in found.values()) >= len(times)
    values = [line for line in text.splitlines() if line.startswith("streammetrics_value{")]
    assert {line.split('window="')[1].split('"')[0] for line in values} == {*lengths}


def test_counters_are_counters():
    live = filled()
    live.observe(time=NOW, y_true=1, y_score=0.5).observe(time=0, y_true=1, y_score=0.5)
    body, _ = exposition(LiveCollector(live))
    text = body.decode()
    assert "# TYPE streammetrics_dropped_rows_total counter" in text
    assert "streammetrics_dropped_rows_total 1.0" in text
    for kind in ("predictions", "labels", "observations"):
        assert f'streammetrics_refused_events_total{{kind="{kind}"}} 0.0' in text


def test_a_dashboard_has_a_panel_for_each_metric():
    board = json.loads(files.dashboard("A service", ["auc", 'a "b"'], "1h"))
    assert [panel["title"] for panel in board["panels"]][:2] == ["auc", 'a "b"']
    assert r'{metric="a \"b\"",window="1h"}' in board["panels"][1]["targets"][0]["expr"]
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_commands_print_rules_a_dashboard_and_history(tmp_path, capsys):
    config = tmp_path / "live.toml"
    config.write_text(
        'title = "Ours"\n[metrics]\nloss = "LogLoss"\n[live]\nstore = "live.db"\n'
        '[page]\nwindow = "5min"\n'
    )
    suite = sm.MetricSet({"loss": sm.LogLoss()})
    with sm.Live(suite, store=tmp_path / "live.db") as live:
        live.observe(time=NOW - 90, y_true=1, y_score=0.25)
    said = {}
    for name in ("rules", "grafana", "backfill"):
        assert main(["live", name, str(config)]) == 0
        said[name] = capsys.readouterr().out
    assert said["rules"] == files.rules("Ours")
    assert json.loads(said["grafana"])["title"] == "Ours"
    value = f'streammetrics_value{{metric="loss",window="5min"}} {-math.log(0.25)!r} '
    assert value in said["backfill"]


def test_where_nothing_is_kept_there_is_no_history(tmp_path, capsys):
    config, store = tmp_path / "live.toml", tmp_path / "live.db"
    config.write_text('[metrics]\nloss = "LogLoss"\n')
    assert main(["live", "backfill", str(config)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "has no store: there is no history; `live serve` and" in err
    config.write_text('[metrics]\nloss = "LogLoss"\n[live]\nstore = "live.db"\n')
    assert main(["live", "backfill", str(config)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "live.db, that does not exist yet: there is no history" in err
    assert not store.exists()
    suite = sm.MetricSet({"loss": sm.LogLoss()})
    sm.Live(suite, store=store).close()
    assert main(["live", "backfill", str(config)]) == 1
    out, err = capsys.readouterr()
    assert out.endswith("# EOF\n")
    assert "error: no rows: " in err
    assert err.endswith("live.db has no event\n")
    with sm.Live(suite, store=store) as live:
        live.predict(id="a", time=NOW, y_score=0.5)
    assert main(["live", "backfill", str(config)]) == 0
    assert 'streammetrics_coverage{window="1h"} 0.0' in capsys.readouterr().out


def test_the_service_is_scraped():
    testing = pytest.importorskip("starlette.testclient", reason="needs starlette and httpx")
    live = filled(start=NOW - 4000)
    with testing.TestClient(live.asgi(title="Ours", window="2h")) as asked:
        asked.post("/events", content="{")
        answer = asked.get("/metrics")
    checked = promtool("check", "metrics", input=answer.content)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    value = live.now(NOW).window("2h").compute()["loss"]
    assert f'streammetrics_value{{metric="loss",window="2h"}} {value!r}\n' in answer.text
    assert 'streammetrics_info{title="Ours"} 1.0\n' in answer.text


def test_reading_fails_where_a_rule_does():
    collector = LiveCollector(filled(), rules=[sm.Below("missing", 0.5)])
    with pytest.raises(ValueError, match="no metric 'missing'"):
        exposition(collector)
