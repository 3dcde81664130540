"""Tests of what other tools read need Prometheus and Alertmanager; `.ci/run` installs them."""

from __future__ import annotations

import importlib.util
import shutil

NEEDED = ("prometheus_client", "opentelemetry.sdk")
if shutil.which("prometheus") is None or not all(
    importlib.util.find_spec(name.partition(".")[0]) for name in NEEDED
):
    collect_ignore_glob = ["test_*.py"]
