"""Files of predictions and labels fed through a live state: in any format and order, one state."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import streammetrics as sm
from streammetrics.cli import main
from streammetrics.live.service.config import settings

START = 1_700_000_000
CONFIG = """
[metrics]
auc = "ROCAUC"
loss = "LogLoss"
[columns]
y_true = "label"
y_score = "score"
[live]
store = "live.db"
tiers = [["2h", "4d"]]
label_ttl = "1d"
label_lateness = "1h"
[page]
window = "6h"
every = "6h"
"""


@pytest.fixture
def served():
    """Return a day and a half of predictions, and the labels of nine in ten of them."""
    dice = np.random.default_rng(3)
    n = 900
    time = START + dice.permutation(n) * 144.0
    label = dice.integers(0, 2, n)
    score = np.round(np.clip(0.3 * label + dice.random(n) * 0.7, 0, 1), 3)
    name = pa.array([f"r{number}" for number in range(n)])
    known = dice.permutation(n)[: n * 9 // 10]
    predictions = pa.table({"id": name, "time": time, "score": score})
    # Up to an hour later than label_ttl, at which a label is counted as late.
    when = time[known] + dice.integers(1, 90_000, len(known))
    return predictions, pa.table(
        {"id": name.take(known), "label_time": when, "label": label[known]}
    )


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "live.toml"
    path.write_text(CONFIG)
    return path


def stored(config):
    with settings(config).live() as live:
        return live.to_bytes()


def direct(config, served):
    """Return the state of all events, one after the other."""
    live = settings(config).live(store=False)
    events = [("predict", row["time"], row) for row in served[0].to_pylist()]
    events += [("label", row["label_time"], row) for row in served[1].to_pylist()]
    for kind, time, row in sorted(events, key=lambda event: event[1]):
        rest = {key: value for key, value in row.items() if key in {"score", "label"}}
        getattr(live, kind)(id=row["id"], time=time, **rest)
    return live.to_bytes()


def put(table, path):
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".csv":
        pc.write_csv(table, path)
    else:
        lines = "".join(f"{row}\n".replace("'", '"') for row in table.to_pylist())
        path.write_bytes(gzip.compress(lines.encode()))
    return path


LONG = pytest.mark.long


@pytest.mark.parametrize(
    "ending", ["parquet", pytest.param("csv", marks=LONG), pytest.param("jsonl.gz", marks=LONG)]
)
def test_every_format_gives_the_state_of_the_events(command, served, config, tmp_path, ending):
    files = [put(table, tmp_path / f"{n}.{ending}") for n, table in enumerate(served)]
    result = command("live", "replay", config, files[0], "--labels", files[1])
    assert result.code == 0, result.err
    assert "labelled" in result.out
    assert stored(config) == direct(config, served)
    command("live", "replay", config, files[0], "--labels", files[1])  # the same events again
    with settings(config).live() as live:
        assert live.coverage("4d").predicted == 900


def test_judgments_are_a_column_of_predictions(command, served, config, tmp_path):
    config.write_text(CONFIG.replace("[page]", 'proxy = "judge"\n[page]'))
    predictions, labels = served
    judge = np.arange(900) % 2
    files = [put(predictions.append_column("judge", pa.array(judge)), tmp_path / "rows.parquet")]
    files.append(put(labels, tmp_path / "labels.csv"))
    result = command("live", "replay", config, files[0], "--labels", files[1])
    assert result.code == 0, result.err
    told = {row["id"]: (row["label_time"], row["label"]) for row in labels.to_pylist()}
    known = [None] * 900
    for place, row in enumerate(predictions.to_pylist()):
        when, label = told.get(row["id"], (np.inf, None))
        known[place] = label if when - row["time"] <= 86_400 else None  # others are too late
    expected = sm.Estimated({"auc": sm.ROCAUC(), "loss": sm.LogLoss()}, proxy="judge")
    expected.update(y_true=known, y_score=predictions["score"].to_numpy(), judge=judge)
    with settings(config).live() as live:
        assert {n: one.value for n, one in live.estimated("4d").items()} == expected.compute()
    put(predictions, files[0])
    result = command("live", "replay", config, files[0], "--labels", files[1])
    assert result.code == 2
    assert "judge" in result.err
    for wrong in ("score", "time"):
        config.write_text(CONFIG.replace("[page]", f'proxy = "{wrong}"\n[page]'))
        result = command("live", "check", config)
        assert result.code == 2
        assert "proxy" in result.err


@pytest.mark.parametrize("durable", ["false", "true"])
def test_a_replay_that_fails_leaves_the_store_as_it_was(command, config, tmp_path, durable):
    config.write_text(CONFIG.replace("[page]", f"durable = {durable}\n[page]"))
    n = 100_000  # several calls
    score = np.full(n, 0.3)
    rows = {"time": START + np.arange(n) * 1.0, "label": np.arange(n) % 2, "score": score}
    score[70_000] = 7.0
    file = put(pa.table(rows), tmp_path / "rows.parquet")
    result = command("live", "replay", config, file)
    assert (result.code, "row 70000" in result.err) == (2, True)
    score[70_000] = 0.7
    put(pa.table(rows), file)
    result = command("live", "replay", config, file)
    assert result.code == 0, result.err
    with settings(config).live() as live:
        assert live.n_rows == n


def test_a_replay_that_cannot_be_told_leaves_the_store_as_it_was(
    command, config, tmp_path, monkeypatch
):
    n = 2000
    rows = {"time": START + np.arange(n) * 60.0, "label": np.arange(n) % 2, "score": np.ones(n) / 3}
    file = put(pa.table(rows), tmp_path / "rows.parquet")
    (tmp_path / "full.csv").symlink_to("/dev/full")
    series = ("--series-out", tmp_path / "full.csv", "--force")
    assert command("live", "replay", config, file, *series).code == 2
    with monkeypatch.context() as patched, open("/dev/full", "w") as full:
        patched.setattr(sys, "stdout", full)
        assert main(["live", "replay", str(config), str(file)]) == 2
    result = command("live", "replay", config, file)
    assert result.code == 0, result.err
    assert "note" not in result.err
    with settings(config).live() as live:
        assert live.n_rows == n
    assert "has 2,000 rows, and rows without ids are added" in (
        command("live", "replay", config, file).err
    )


def test_times_may_be_dates_and_rows_in_several_files(command, served, config, tmp_path):
    expected = direct(config, served)
    predictions, labels = served
    dates = (predictions["time"].to_numpy() * 1e9).astype("datetime64[ns]")
    predictions = predictions.set_column(1, "time", pa.array(dates, pa.timestamp("ns", "UTC")))
    labels = labels.rename_columns(["id", "time", "label"])  # "time" does where there is no other
    for place in range(3):
        put(predictions.slice(place * 300, 300), tmp_path / f"p{place}.parquet")
    put(labels, tmp_path / "labels.csv")
    arguments = tmp_path / "p*.parquet", "--labels", tmp_path / "labels.csv"
    assert command("live", "replay", config, *arguments).code == 0
    assert stored(config) == expected


@LONG
def test_labels_beside_their_predictions(command, served, config, tmp_path):
    predictions, labels = served
    both = predictions.join(labels, "id", join_type="inner")
    assert command("live", "replay", config, put(both, tmp_path / "b.parquet")).code == 0
    assert stored(config) == direct(config, (both.select(["id", "time", "score"]), labels))


def test_rows_with_labels_are_observed(command, config, tmp_path):
    text = "time,score,label\n" + "".join(f"{START + n},0.{n % 9},{n % 2}\n" for n in range(50))
    (tmp_path / "rows.csv").write_text(text)
    result = command("live", "replay", config, tmp_path / "rows.csv", "--series-out", "-")
    assert result.out.startswith("time,n_rows,coverage,start,auc,auc_low,auc_high,loss")
    with settings(config).live() as live:
        assert live.n_rows == 50


def test_the_series_has_no_line_of_a_window_before_the_first_row(command, config, tmp_path):
    config.write_text(CONFIG.replace('every = "6h"', 'every = "2h"'))
    text = f"time,score,label\n{START},0.5,1\n{START + 7200},0.25,0\n"
    (tmp_path / "rows.csv").write_text(text)
    told = command("live", "replay", config, tmp_path / "rows.csv", "--series-out", "-").out
    rows = [line.split(",")[1] for line in told.splitlines()]
    assert rows == ["n_rows", "1", "2"]


@LONG
def test_the_series_is_written(command, mistake, served, config, tmp_path):
    files = [put(table, tmp_path / f"{n}.parquet") for n, table in enumerate(served)]
    base = ("live", "replay", config, files[0], "--labels", files[1], "--series-out")
    assert command(*base, tmp_path / "s.csv").code == 0
    assert command(*base, tmp_path / "s.parquet").code == 0
    with settings(config).live() as live:
        series = live.series("6h", every="6h")
    written = pq.read_table(tmp_path / "s.parquet")
    assert written.column_names == list(series)
    for name in ("auc", "loss_high", "n_rows"):
        np.testing.assert_array_equal(written[name].to_numpy(), series[name])
    text = pc.read_csv(io.BytesIO((tmp_path / "s.csv").read_bytes()))
    np.testing.assert_array_equal(text["auc"].to_numpy(), series["auc"])
    assert command(*base, tmp_path / "s.csv", "--force").code == 0
    assert "would overwrite" in mistake(*base, files[0])
    (tmp_path / "other.csv").write_text("a,b\n")
    assert "add --force to overwrite it" in mistake(*base, tmp_path / "other.csv")
    assert "ends in .csv or .parquet" in mistake(*base, tmp_path / "s.txt")


def test_mistakes_name_the_file_and_the_row(mistake, config, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(f"time,score,label\n{START + 9},0.5,1\n{START},1.5,0\n")
    told = mistake("live", "replay", config, path)
    assert f"in row 1 of {path}" in told
    path.write_text("time,score,label\n2023-11-14T22:13:20Z,0.5,1\n2023-11-14 22:13,0.25,1\n")
    assert "time is naive, first in row 1 of the file" in mistake("live", "replay", config, path)
    path.write_text("score,label\n0.5,1\n")
    assert "no column 'time'" in mistake("live", "replay", config, path)
    path.write_text("time,score\n1,0.5\n")
    assert "no column 'id'" in mistake("live", "replay", config, path)
    path.write_text(f"time,score,label\n{START + 9},0.5,1\n{START},0.5,0\n{START + 5},0.5,yes\n")
    assert f"label has text, first in row 2 of {path}" in mistake("live", "replay", config, path)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("table", "column", "advice"),
    [
        ("predictions", "id", "every row needs an id"),
        ("predictions", "time", "every row needs a time"),
        ("predictions", "score", "nan_policy"),
        ("labels", "id", "every row needs an id"),
        ("labels", "label_time", "every row needs a time"),
        ("labels", "label", "a row that waits has all its columns"),
    ],
)
def test_null_values_are_counted(mistake, config, tmp_path, table, column, advice, ending):
    columns = {
        "predictions": {"id": [*"abcd"], "time": [START + n for n in range(4)], "score": [0.5] * 4},
        "labels": {"id": [*"abcd"], "label_time": [START + 9] * 4, "label": [0, 1, 0, 1]},
    }
    whole = columns[table][column]
    columns[table][column] = [whole[0], None, whole[2], None]
    files = [put(pa.table(c), tmp_path / f"{name}.{ending}") for name, c in columns.items()]
    told = mistake("live", "replay", config, files[0], "--labels", files[1])
    assert f"{column} is missing (" in told
    assert "null) in 2 rows, first in row 1 of " in told
    assert advice in told


def test_a_refused_replay_leaves_no_store_that_it_has_made(command, mistake, config, tmp_path):
    path = tmp_path / "rows.csv"
    good = f"time,score,label\n{START},0.5,1\n"
    path.write_text(f"{good}{START},1.5,0\n")
    before = {*tmp_path.iterdir()}
    mistake("live", "replay", config, path)
    assert {*tmp_path.iterdir()} == before
    path.write_text(good)
    assert command("live", "replay", config, path).code == 0
    stored = {*tmp_path.iterdir()} - before
    assert stored
    path.write_text(f"{good}{START},1.5,0\n")
    assert command("live", "replay", config, path).code == 2
    assert {*tmp_path.iterdir()} - before == stored
    settings(config).live().close()


@pytest.mark.parametrize("text", ["predictions", "labels"])
def test_ids_of_two_types_are_refused_as_no_label_would_match(
    command, mistake, served, config, tmp_path, text
):
    tables = dict(zip(("predictions", "labels"), served, strict=True))
    for name, table in tables.items():
        numbers = pa.array([int(each[1:]) for each in table["id"].to_pylist()])
        tables[name] = table.set_column(0, "id", numbers)
    files = {name: tmp_path / f"{name}.parquet" for name in tables}
    mixed = {**files, text: tmp_path / f"{text}.csv"}  # in which ids are text
    for path in {*files.values(), *mixed.values()}:
        put(tables[path.stem], path)
    told = mistake("live", "replay", config, mixed["predictions"], "--labels", mixed["labels"])
    assert f"text in {mixed[text]}" in told
    assert "no label matches" in told
    assert "write both files as Parquet" in told
    result = command("live", "replay", config, files["predictions"], "--labels", files["labels"])
    assert result.code == 0
    with settings(config).live() as live:
        told = live.coverage("4d")
        assert told.labelled + told.late == len(served[1])


def test_labels_without_a_prediction_are_counted(command, served, config, tmp_path):
    predictions, labels = served
    others = labels.set_column(0, "id", pa.array([f"R{n}" for n in range(len(labels))]))
    files = put(predictions, tmp_path / "p.parquet"), put(others, tmp_path / "l.parquet")
    result = command("live", "replay", config, files[0], "--labels", files[1])
    assert "labels waiting" in result.out
    assert "labels unmatched" in result.out


@LONG
def test_the_data_of_the_examples_are_what_their_script_makes(tmp_path):
    examples = Path(__file__).parents[2] / "examples"
    subprocess.run([sys.executable, examples / "live_data.py", tmp_path], check=True)
    for name in ("adult_served.parquet", "adult_labels.parquet"):
        assert pq.read_table(tmp_path / name) == pq.read_table(examples / "data" / name)
