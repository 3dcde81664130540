"""One screen of what a store holds: metrics, coverage, alerts."""

from __future__ import annotations

import pytest

from streammetrics.cli import main
from streammetrics.live.service.config import settings

START = 1_790_000_000
CONFIG = """
title = "A service"
[metrics]
accuracy = "Accuracy(threshold=0.5)"
[columns]
y_true = "label"
y_score = "score"
[live]
store = "live.db"
[alerts]
is_low = 'Below("accuracy", 0.9, window="1h", min_rows=1, after="1min")'
[page]
window = "1h"
[server]
clock = "events"
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "live.toml"
    path.write_text(CONFIG)
    return path


def test_a_store_is_told_on_one_screen(config, capsys):
    with settings(config).live() as live:
        for row in range(8):
            live.predict(id=f"r{row}", time=START + 60 * row, score=0.75)
            if row % 4:
                live.label(id=f"r{row}", time=START + 60 * row, label=int(row > 4))
    assert main(["live", "status", str(config)]) == 0
    text = capsys.readouterr().out
    heads = [line.split() for line in text.splitlines()]
    assert "A service: last 1h, until 2026-09-21 14:21 (UTC), 6 rows" in text
    assert heads[2][:2] == ["accuracy", "0.500000"]
    assert heads[2][-3:] == ["0.375000", "to", "0.625000"]
    assert "75.0% have their label" in text
    assert ["pending", "2"] in heads
    assert next(line for line in heads if line[:1] == ["is_low"])[1] == "firing"


def test_what_cannot_be_asked_is_said(config, capsys):
    assert main(["live", "status", str(config)]) == 2
    assert "which is not there yet: give the address of the service" in capsys.readouterr().err
    assert not config.with_name("live.db").exists()
    config.write_text(CONFIG.replace('store = "live.db"', ""))
    assert main(["live", "status", str(config)]) == 2
    assert "has no store: give the address" in capsys.readouterr().err
    assert main(["live", "status", "http://127.0.0.1:9"]) == 2
    assert "http://127.0.0.1:9/api/now does not answer" in capsys.readouterr().err
    assert main(["live", "status", "http://127.0.0.1:9", "--token-env", "NO_SUCH_TOKEN"]) == 2
    assert "the environment has no NO_SUCH_TOKEN" in capsys.readouterr().err
