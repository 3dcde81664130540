"""Tests of consumers need `redis`, `nats` and `kafka`; a default run does not have them."""

from __future__ import annotations

import importlib.util

import pytest

NEEDED = ("starlette", "redis", "nats", "confluent_kafka")
if not all(map(importlib.util.find_spec, NEEDED)):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def config(tmp_path):
    """Return a writer of configurations."""

    def write(*lines, live='store = "live.db"\non_invalid = "dead_letter"'):
        path = tmp_path / "live.toml"
        text = """[metrics]
auc = "ROCAUC"
accuracy = "Accuracy(threshold=0.5)"
[columns]
y_true = "label"
y_score = "score"
[live]
tiers = [["1min", "3h"]]
label_ttl = "1h"
label_lateness = "1h"
"""
        path.write_text("\n".join([text, live, *lines, ""]))
        return path

    return write
