"""The files of examples/service: what can be checked without running them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from streammetrics.live.exporting import files
from streammetrics.live.service.config import settings

FOLDER = Path(__file__).parents[2] / "examples" / "service"
MADE = {"rules.yml", "dashboard.json"}  # by commands that README.md tells


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd")
def test_systemd_accepts_the_unit(tmp_path):
    unit = tmp_path / "live.service"
    text = (FOLDER / "live.service").read_text()
    assert "ExecStart=/opt/streammetrics/bin/streammetrics live serve " in text
    unit.write_text(text.replace("/opt/streammetrics/bin/streammetrics", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("READ_TOKEN", "r")
    monkeypatch.setenv("WRITE_TOKEN", "w")
    path, text = tmp_path / "live.toml", (FOLDER / "live.toml").read_text()
    path.write_text(text.replace("/var/lib/streammetrics", str(tmp_path)))
    return settings(path)


def test_the_configuration_is_good(config):
    assert config.letters.endswith("refused.jsonl")
    assert config.server.needs_token


def test_the_compose_file_mounts_what_there_is():
    told = yaml.safe_load((FOLDER / "compose.yml").read_text())
    assert set(told["services"]) == {"live", "prometheus", "grafana"}
    assert (FOLDER / told["services"]["live"]["build"]["context"] / "pyproject.toml").exists()
    for service in told["services"].values():
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            if source.startswith("./") and source[2:] not in MADE:
                assert (FOLDER / source).is_file(), source
            elif not source.startswith("./"):
                assert source in told["volumes"]
    readme = (FOLDER / "README.md").read_text()
    assert all(f"> {name}" in readme for name in MADE)
    for path in FOLDER.rglob("*.yml"):
        assert yaml.safe_load(path.read_text()), path


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Prometheus is not installed")
def test_prometheus_accepts_its_configuration(config, tmp_path):
    (tmp_path / "rules.yml").write_text(
        files.rules(config.view.title, config.delivery.notices, "live")
    )
    (tmp_path / "token").write_text("r")
    text = (FOLDER / "prometheus.yml").read_text()
    (tmp_path / "prometheus.yml").write_text(text.replace("/run/secrets/read_token", "token"))
    done = subprocess.run(
        ["promtool", "check", "config", tmp_path / "prometheus.yml"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
