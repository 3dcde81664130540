"""Logs of a service as JSON, and its metrics of itself."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families
from service.serving import PATIENCE, until
from service.test_endpoints import NOW, client, lines, observed, state

from streammetrics.cli import main
from streammetrics.live.service import delivery as deliverer
from streammetrics.live.service import logs
from streammetrics.live.service.bodies import Bodies


def is_ready(url):
    try:
        with urllib.request.urlopen(f"{url}ready", timeout=30) as answer:
            return answer.status == 200
    except urllib.error.HTTPError:
        return False


def test_each_line_is_json(config):
    words = [sys.executable, "-m", "streammetrics", "live", "serve", str(config())]
    process = subprocess.Popen(
        [*words, "--port", "0", "--log", "json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    url = process.stdout.readline().removeprefix("serving on ").strip()
    until(lambda: is_ready(url), process)
    for _ in range(3):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{url}nothing", timeout=30)
    process.send_signal(signal.SIGTERM)
    found = [json.loads(line) for line in process.communicate(timeout=PATIENCE)[1].splitlines()]
    assert {"time", "level", "message", "process"} <= set.intersection(*map(set, found))
    said = {line["message"]: line for line in found}
    assert said["serving"]["url"] == url
    assert said["the store is read"]["seconds"] >= 0
    failed = said["request failed"]
    assert (failed["path"], failed["method"]) == ("other", "GET")
    assert failed["status"] == 404


def test_what_ends_a_service_is_json_too(config, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("STREAMMETRICS_LIVE_LOG", "text")
    path = config(server='host = "0.0.0.0"')
    assert main(["live", "serve", str(path), "--log", "json"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["level"] == "error"
    assert "there is no token" in json.loads(line)["message"]
    deliverer.log("warning", "red did not take it")
    assert json.loads(capsys.readouterr().err)["message"] == "red did not take it"


def test_a_defect_is_logged_as_500(monkeypatch, capsys):
    monkeypatch.setenv("STREAMMETRICS_LIVE_LOG", "json")
    monkeypatch.setattr(Bodies, "take", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError, match="division"):
        client().post("/events", content="")
    assert json.loads(capsys.readouterr().err)["status"] == 500


def test_the_form_is_one_of_two(config, capsys):
    assert main(["live", "serve", str(config()), "--log", "xml"]) == 2
    assert "--log xml: expected text or json" in capsys.readouterr().err


def test_alike_failures_are_one_line_a_second(monkeypatch, capsys):
    monkeypatch.setenv("STREAMMETRICS_LIVE_LOG", "json")
    found = logs.RequestLog()
    for status in (200, 404, 404, 404, 500):
        found.add("GET", "/metrics", status, 0.01)
    monkeypatch.setattr(logs, "_PAUSE", 0.0)
    found.add("GET", "/metrics", 404, 0.01)
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["status"], line["more"]) for line in told] == [(404, 0), (500, 0), (404, 2)]
    assert [line["level"] for line in told] == ["info", "error", "info"]


def test_errors_of_the_server_keep_their_traceback():
    try:
        int("broken")
    except ValueError:
        record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 1, "oh", (), sys.exc_info())
    line = json.loads(logs.Formatter().format(record))
    assert (line["level"], line["message"]) == ("error", "oh")
    assert "ValueError: invalid literal" in line["trace"]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_service_measures_itself(tmp_path, workers):
    with state(store=tmp_path / "live.db") as live:
        asked = client(live, workers=workers)
        asked.post("/events", content=lines(*observed(5)))
        asked.post("/events", content=lines({"kind": "observe", "time": NOW}))
        families = list(text_string_to_metric_families(asked.get("/metrics").text))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    values = {sample.name: sample for family in families for sample in family.samples}
    assert values["streammetrics_store_bytes"].value > 4096
    assert values["streammetrics_store_degraded"].value == 0
    assert values["streammetrics_store_failures_total"].value == 0
    assert values["streammetrics_waiting_requests"].value == 0
    assert values["process_resident_memory_bytes"].value > 1e7
    assert values["process_cpu_seconds_total"].value > 0
    for name in ("streammetrics_store_bytes", "process_open_fds"):
        assert ("worker" in values[name].labels) is (workers > 1)
