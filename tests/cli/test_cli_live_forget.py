"""`live forget`: rows of ids leave a store as if they had never been there."""

from __future__ import annotations

import csv
import itertools
import struct

import pytest

from streammetrics.live import maintenance
from streammetrics.live.service.config import settings

START = 1_790_000_040
CONFIG = """
[metrics]
auc = "ROCAUC(max_bins=4096)"
accuracy = "Accuracy(threshold=0.5)"
loss = "LogLoss"
[columns]
y_true = "label"
y_score = "score"
[live]
store = "live.db"
tiers = [["1min", "3h"], ["1h", "10d"]]
label_ttl = "10min"
label_lateness = "10min"
dedupe = "10min"
[server]
clock = "events"
"""
PERSON = {"r3", "r40", "7", "late"}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "live.toml"
    path.write_text(CONFIG)
    return path


def history():
    """Return predictions and labels, four hours of them, with those of a person."""
    names = [f"r{n}" for n in range(240)]
    rows = [(name, START + 60 * n, (n * 7 % 10) / 10) for n, name in enumerate(names)]
    rows += [("7", START + 90, 0.25), ("late", START + 60 * 238, 0.75)]
    labels = [(name, time + 30, int(score > 0.4)) for name, time, score in rows if name != "late"]
    return sorted(rows, key=lambda row: row[1]), labels


def send(live, without=frozenset()):
    rows, labels = history()
    for (name, time, score), label in itertools.zip_longest(rows, labels):
        if name not in without:
            live.predict(id=int(name) if name == "7" else name, time=time, score=score)
        if label is not None and label[0] not in without:
            known = int(label[0]) if label[0] == "7" else label[0]
            live.label(id=known, time=label[1], label=label[2])
    return live


def write(path, header, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def windows(live):
    return live.window("10d").to_bytes(), live.window("1h").to_bytes()


def test_rows_that_wait_are_removed_and_the_file_does_not_hold_them(config, run):
    with settings(config).live() as live:
        send(live)
        live.observe(id="secret observation", time=START + 60 * 236, label=1, score=0.123456789)
        live.label(id="secret and alone", time=START + 60 * 236, label=1)
    path, trace = config.with_name("live.db"), struct.pack("<d", 0.123456789)
    assert trace in path.read_bytes()
    code, out, _ = run("forget", config, "--id", "r235", "--id", "secret observation",
                       "--id", "secret and alone")  # fmt: skip
    assert code == 0
    assert "3 waiting rows and labels are removed" in out
    assert "hold sums without ids" in out
    assert trace not in path.read_bytes()
    with settings(config).live() as live, settings(config).live(store=False) as expected:
        assert windows(live) == windows(send(expected, {"r235"}))
        assert live.coverage("1h").predicted == expected.coverage("1h").predicted
    code, out, _ = run("forget", config, "--id", "r235")
    assert "0 waiting rows and labels are removed" in out


def test_rows_in_panes_are_taken_back_exactly(config, run, tmp_path):
    rows, labels = history()
    sent = write(tmp_path / "sent.csv", ["id", "time", "score"], rows)
    known = write(tmp_path / "labels.csv", ["id", "label_time", "label"], labels)
    with settings(config).live() as live:
        send(live)
    ids = [word for name in ("r3", "r40", "late") for word in ("--id", name)]
    code, out, _ = run("forget", config, *ids, "--rows", sent, "--labels", known)
    assert (code, "2 rows are taken back from panes" in out) == (0, True), out
    assert "1 waiting rows and labels are removed" in out
    assert "still in" not in out
    with settings(config).live() as live, settings(config).live(store=False) as expected:
        assert windows(live) == windows(send(expected, {"r3", "r40", "late"}))


def test_panes_that_do_not_determine_what_is_left_are_named(config, run, tmp_path):
    config.write_text(CONFIG.replace('"LogLoss"', '"BrierScore"').replace("4096", "2"))
    rows, labels = history()
    sent = write(tmp_path / "sent.csv", ["id", "time", "score"], rows)
    known = write(tmp_path / "labels.csv", ["id", "label_time", "label"], labels)
    with settings(config).live() as live:
        send(live)
        before = live.window("10d").n_rows
    code, out, _ = run("forget", config, "--id", "r3", "--rows", sent, "--labels", known)
    assert code == 0
    assert "0 rows are taken back" in out
    assert "still in the pane from 2026-09-21 14:00 UTC to 2026-09-21 15:00 UTC" in out
    with settings(config).live() as live:
        assert live.window("10d").n_rows == before


def test_it_needs_a_store_that_no_service_uses(config, run):
    assert run("forget", config, "--id", "a")[0] == 2
    with settings(config).live() as live:
        send(live).flush()
        code, _, err = run("forget", config, "--id", "a")
        assert (code, "stop it" in err) == (2, True)
    assert run("forget", config, "--id", "a", "--labels", "x.csv")[0] == 2
    config.write_text(CONFIG.replace('store = "live.db"', ""))
    code, _, err = run("forget", config, "--id", "a")
    assert (code, "has no store" in err) == (2, True)


def test_ids_may_be_integers(config, run):
    with settings(config).live() as live:
        live.predict(id=7, time=START, score=0.5).predict(id="7", time=START, score=0.5)
    assert "2 waiting rows" in run("forget", config, "--id", "7")[1]
    with settings(config).live() as live:
        assert live.coverage("1h").predicted == 0
    maintenance.compact(settings(config).options["store"])
