"""One screen of what a store holds: metrics, coverage, alerts."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest

import streammetrics as sm
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


def test_inputs_are_told(config, capsys):
    given = """[inputs]
age = { type = "number", range = [18, 100], reference = "age.state" }
device = "category"
"""
    config.write_text(f"{CONFIG}{given}")
    sm.Quantile(q=0.5).update(np.arange(20.0, 60.0)).save(config.parent / "age.state")
    with settings(config).live() as live:
        for row in range(80):
            age = None if row % 8 == 0 else 20 + row % 40 + 200 * (row % 2)
            live.predict(id=f"r{row}", time=START + row, score=0.75, age=age, device="phone")
    assert main(["live", "status", str(config)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "Inputs, with and without labels" in lines
    age = next(line for line in lines if line.startswith("age")).split()
    assert age[:4] == ["age", "80", "10", "40"]
    assert age[4] == "ks"
    assert age[5] == "0.571429!,"  # 40 of the 70 ages are above all of the reference
    assert next(line for line in lines if line.startswith("device")).split() == [
        "device",
        "80",
        "0",
    ]


def test_panes_that_expired_early_are_told(config, capsys):
    with settings(config).live() as live:
        for row in range(300):
            live.observe(time=START + 60 * row, score=0.75, label=1)
        journal = live.flush()._ingest.journal
        live._shared.current.evict((START // 60 + 100, 0, 0))
        journal._fold(lambda: True)
    assert main(["live", "status", str(config)]) == 0
    text = capsys.readouterr().out
    assert "Expired early, because the store has reached max_store (UTC)" in text
    assert ["1min", "2026-09-21", "15:53"] in [line.split() for line in text.splitlines()]


def test_what_cannot_be_asked_is_said(config, capsys):
    assert main(["live", "status", str(config)]) == 2
    assert "that does not exist yet: give the address of the service" in capsys.readouterr().err
    store = config.with_name("live.db")
    store.touch()
    assert main(["live", "status", str(config)]) == 2
    assert "that is empty: give the address of the service" in capsys.readouterr().err
    assert store.stat().st_size == 0  # reading makes no store of it
    store.unlink()
    assert not config.with_name("live.db").exists()
    config.write_text(CONFIG.replace('store = "live.db"', ""))
    assert main(["live", "status", str(config)]) == 2
    assert "has no store: give the address" in capsys.readouterr().err
    assert main(["live", "status", "http://127.0.0.1:9"]) == 2
    assert "http://127.0.0.1:9/api/now does not answer" in capsys.readouterr().err
    assert main(["live", "status", "http://127.0.0.1:9", "--token-env", "NO_SUCH_TOKEN"]) == 2
    assert "the environment variable NO_SUCH_TOKEN is not set" in capsys.readouterr().err


def test_alerts_are_told_and_one_that_fires_is_the_exit_code(config, capsys, tmp_path):
    with settings(config).live() as live:
        live.observe(time=[START, START + 300], score=[0.75, 0.75], label=[1, 1])
    assert main(["live", "alerts", str(config)]) == 0
    name, state, *_ = capsys.readouterr().out.splitlines()[2].split()
    assert (name, state) == ("is_low", "ok")
    with settings(config).live() as live:
        live.observe(time=[START + 310, START + 900], score=[0.75, 0.75], label=[0, 0])
    out = tmp_path / "alerts.json"
    assert main(["live", "alerts", str(config), "--json", str(out)]) == 1
    assert capsys.readouterr().out.splitlines()[2].split()[:2] == ["is_low", "firing"]
    (told,) = json.loads(out.read_text())["alerts"]
    assert (told["state"], told["rows"]) == ("firing", 3)
    assert main(["live", "alerts", str(config), "--json", "-"]) == 1
    assert capsys.readouterr().out == out.read_text()
    assert main(["live", "alerts", str(config), "--json", str(config)]) == 2
    assert "live.toml" in capsys.readouterr().err
    config.write_text(CONFIG.replace("is_low", "# is_low"))
    assert main(["live", "alerts", str(config)]) == 0
    assert "has no rules" in capsys.readouterr().out


def test_check_says_how_old_what_a_rule_judges_is(config, capsys):
    rules = (
        "[alerts]\nlate = 'Below(\"accuracy\", 0.9)'\nquiet = 'Silence(\"10min\")'\n"
        'moved = \'Change("accuracy", 0.9, after="2h")\''
    )
    config.write_text(CONFIG.replace("[alerts]", rules))
    assert main(["live", "check", str(config)]) == 0
    late, quiet, moved, low = capsys.readouterr().out.splitlines()[1:]
    assert late.startswith("late: judges panes 2d old where labels come later")
    assert late.endswith("and 1min old where none do")
    assert quiet == "quiet: fires as soon as nothing has come for 10min"
    assert moved == "moved: judges panes 2h old, by what is there then"
    assert low == "is_low: judges panes 1min old, by what is there then"
    config.write_text(CONFIG.replace("[alerts]", f"{rules}\nc1 = '{CLEARS}'\nc2 = '{CLEARS_5}'"))
    assert main(["live", "check", str(config)]) == 0
    *_, hour, minutes, _ = capsys.readouterr().out.splitlines()
    assert "clear" not in hour
    assert "; ends without clear=0.95 3h after it fired, as panes of 1min are kept no" in minutes


CLEARS = 'Below("accuracy", 0.9, clear=0.95, window="1h", after="5min")'
CLEARS_5 = CLEARS.replace("1h", "5min")


def test_what_only_reads_needs_no_secret(config, capsys, tmp_path):
    with settings(config).live() as live:
        live.observe(time=START, score=0.75, label=1)
    secrets = 'token_env = "NO_TOKEN"\n[deliver.chat]\nkind = "slack"\nurl_env = "NO_URL"\n'
    pager = '[deliver.pager]\nkind = "pagerduty"\nkey_file = "no.key"\n'
    config.write_text(CONFIG + 'host = "0.0.0.0"\n' + secrets + pager)
    assert main(["live", "status", str(config)]) == 0
    assert main(["live", "alerts", str(config)]) == 0
    assert main(["live", "backfill", str(config)]) == 0
    assert main(["live", "rules", str(config)]) == 0
    assert main(["live", "export", str(config), str(tmp_path / "out.csv")]) == 0
    capsys.readouterr()
    # `serve` is tried where the extra `live` is installed.
    for command in ("check", *(["serve"] if importlib.util.find_spec("uvicorn") else [])):
        assert main(["live", command, str(config)]) == 2
        assert "the environment has no NO_TOKEN" in capsys.readouterr().err
