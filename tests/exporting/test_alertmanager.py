"""Debian's Alertmanager takes what is delivered to it: alerts fire, and end."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from datetime import UTC, datetime

import pytest

from streammetrics.live.exporting.files import Notice
from streammetrics.live.service.delivery import DeliveryError, receiver_of
from streammetrics.live.service.toml import Section

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus-alertmanager") is None, reason="needs Debian's Alertmanager"
)
FIRES = {
    "id": "1",
    "service": "Shop",
    "alert": "auc is low",
    "state": "firing",
    "time": datetime.fromtimestamp(time.time() - 600, UTC).isoformat(),
    "why": 'auc 0.7 of "9" rows',
    "severity": "page",
    "labels": {"team": "ml"},
    "runbook": "https://r.org/1",
}


@pytest.fixture
def manager(tmp_path):
    """Run an Alertmanager, and return its address."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        at = f"127.0.0.1:{found.getsockname()[1]}"
    config = tmp_path / "alertmanager.yml"
    config.write_text("route: {receiver: none}\nreceivers: [{name: none}]\n")
    words = [f"--config.file={config}", f"--storage.path={tmp_path}", f"--web.listen-address={at}"]
    command = ["prometheus-alertmanager", *words, "--cluster.listen-address="]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        until(lambda: asked(at, "-/ready") is not None)
        yield f"http://{at}"
        process.terminate()


def asked(at, path):
    try:
        with urllib.request.urlopen(f"http://{at}/{path}", timeout=5) as answer:
            return answer.read()
    except OSError:
        return None


def until(is_so):
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_alerts_fire_and_end(manager):
    table = Section("live.toml", {}, {"kind": "alertmanager", "url": f"{manager}/"})
    receiver = receiver_of("manager", table, [Notice("auc is low")])

    def alerts():
        return json.loads(asked(manager.removeprefix("http://"), "api/v2/alerts"))

    receiver.send(FIRES)
    until(alerts)
    receiver.send(FIRES)  # a repetition is the same alert
    (alert,) = alerts()
    assert alert["status"]["state"] in {"active", "unprocessed"}
    labels = {"alertname": "auc is low", "service": "Shop", "severity": "page", "team": "ml"}
    assert alert["labels"] == labels
    assert alert["annotations"] == {"summary": FIRES["why"], "runbook_url": FIRES["runbook"]}
    assert datetime.fromisoformat(alert["startsAt"]).timestamp() < time.time() - 500
    receiver.send({**FIRES, "state": "ok", "time": datetime.now(UTC).isoformat()})
    until(lambda: not alerts())
    with pytest.raises(DeliveryError, match="400 Bad Request") as refused:
        receiver.send({**FIRES, "labels": {"no label": "x"}})
    assert refused.value.is_final
