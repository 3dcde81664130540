"""Tests of the service need the extra `service`; `.ci/run` installs it, a default run does not."""

from __future__ import annotations

import importlib.util

import pytest

NEEDED = ("starlette", "uvicorn", "httpx", "plotly", "selenium", "axe_selenium_python")
if not all(map(importlib.util.find_spec, NEEDED)):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def config(tmp_path):
    """Return a writer of configurations."""

    def write(*lines, server="", page="", live='store = "live.db"'):
        text = f"""
        title = "A service"
        [metrics]
        auc = "ROCAUC"
        accuracy = "Accuracy(threshold=0.5)"
        [columns]
        y_true = "label"
        y_score = "score"
        [live]
        {live}
        [page]
        {page}
        [server]
        {server}
        """
        path = tmp_path / "live.toml"
        path.write_text("\n".join([*(line.strip() for line in text.splitlines()), *lines]))
        return path

    return write
