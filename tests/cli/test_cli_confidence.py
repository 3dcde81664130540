"""Limits of confidence beside the values: printed, in JSON and CSV, of saved states."""

from __future__ import annotations

import csv
import io
import json

import pytest
from prediction_files import store

import streammetrics as sm

BINARY = ("--task", "binary", "--y-true", "label", "--y-score", "score")


@pytest.fixture
def path(tmp_path, binary):
    return store(binary, tmp_path / "t.parquet")


def test_limits_stand_beside_values_apart_from_what_is_certain(command, path):
    plain = command("evaluate", path, *BINARY, "--param", "max_bins=16")
    sure = command("evaluate", path, *BINARY, "--param", "max_bins=16", "--confidence", "0.9")
    assert "confidence" not in plain.out
    header = next(line for line in sure.out.splitlines() if line.startswith("Metric"))
    assert "Certainly within" in header
    assert "90 % confidence" in header
    line = next(line for line in sure.out.splitlines() if line.startswith("CalibrationError"))
    assert " none " in line
    assert "note: CalibrationError has no confidence interval" in sure.out


def test_limits_of_a_saved_state_are_those_of_python(command, path, binary, tmp_path):
    state = tmp_path / "s.state"
    asked = ("--metrics", "ROCAUC, LogLoss, F1", "--confidence", "0.95")
    first = command("evaluate", path, *BINARY, *asked, "--save", state, "--json", "-")
    again = command("show", state, "--confidence", "0.95", "--json", "-")
    told = json.loads(again.out)["metrics"]
    assert {name: told[name]["confidence"] for name in told} == {
        name: entry["confidence"] for name, entry in json.loads(first.out)["metrics"].items()
    }
    label, score = binary["label"].to_numpy(), binary["score"].to_numpy()
    for metric in (sm.ROCAUC(), sm.LogLoss(), sm.F1(threshold=0.5)):
        expected = metric.update(label, score).confidence(0.95).to_dict()
        assert told[type(metric).__name__]["confidence"] == expected


def test_csv_has_limits_as_its_last_columns_where_they_were_asked_for(command, path):
    done = command("evaluate", path, *BINARY, "--confidence", "0.95", "--csv", "-")
    rows = {row["metric"]: row for row in csv.DictReader(io.StringIO(done.out))}
    assert float(rows["ROCAUC"]["confidence_low"]) < float(rows["ROCAUC"]["value"])
    assert rows["CalibrationError"]["confidence_high"] == ""


def test_a_state_without_squares_says_what_keeps_them(command, path, tmp_path):
    state = tmp_path / "s.state"
    command("evaluate", path, *BINARY, "--metrics", "LogLoss(spread=False)", "--save", state)
    done = command("show", state, "--confidence", "0.95")
    assert "LogLoss(spread=True), the default, keeps them" in done.out


@pytest.mark.parametrize("level", ["95", "0", "1", "-0.5"])
def test_a_level_is_a_share(mistake, path, level):
    assert "expected a level between 0 and 1, e.g. 0.95" in mistake(
        "evaluate", path, *BINARY, f"--confidence={level}"
    )


def test_limits_are_by_unit_where_one_is_named(command, binary, tmp_path):
    users = [[place // 10 for place in range(len(binary))]]
    by_user = binary.append_column("user", users)
    path = store(by_user, tmp_path / "users.parquet")
    asked = ("--metrics", "F1,ROCAUC", "--confidence", "0.9", "--unit", "user")
    state = tmp_path / "s.state"
    first = json.loads(
        command("evaluate", path, *BINARY, *asked, "--save", state, "--json", "-").out
    )
    assert first["unit"] == "user"
    suite = sm.load(state)
    for name, entry in first["metrics"].items():
        assert entry["confidence"] == suite[name].confidence(0.9, unit="user").to_dict()
    again = json.loads(command("show", state, "--confidence", "0.9", "--json", "-").out)
    assert again["metrics"]["F1"]["confidence"] == first["metrics"]["F1"]["confidence"]
    sliced = command("evaluate", path, *BINARY, *asked, "--by", "label", "--json", "-")
    whole = json.loads(sliced.out)["metrics"]
    for name, entry in first["metrics"].items():  # slices have limits by groups of units
        limits = [each.pop("confidence") for each in (whole[name], entry)]
        width = [each["high"] - each["low"] for each in limits]
        assert whole[name] == entry
        assert width[0] == pytest.approx(width[1], rel=0.3)


def test_a_state_by_unit_needs_no_level(command, path, tmp_path):
    state = tmp_path / "s.state"
    done = command("evaluate", path, *BINARY, "--metrics", "F1", "--unit", "label", "--save", state)
    assert done.code == 0, done.err
    assert sm.load(state).unit == "label"


def test_a_unit_is_of_limits_and_of_files_with_columns(command, path):
    alone = command("evaluate", path, *BINARY, "--unit", "user")
    assert "--unit requires --confidence, e.g. --confidence 0.95, or --save" in alone.err
    ranked = ("--metrics", "F1", "--by", "label", "--worst", "F1")  # by confidence limits
    assert command("evaluate", path, *BINARY, "--unit", "text", *ranked).code == 0
    rows = ("evaluate", path, *BINARY, "--confidence", "0.9", "--json", "-")
    assert command(*rows, "--unit", "none").out == command(*rows).out
    missing = command("evaluate", path, *BINARY, "--unit", "usr", "--confidence", "0.9")
    assert "'usr'" in missing.err
    runs = ("--task", "ranking", "--qrels", "q", "--run", "r", "--unit", "u", "--confidence", "0.9")
    assert "--unit is not for TREC files" in command("evaluate", *runs).err


def test_every_slice_has_limits_too(command, path, tmp_path):
    asked = ("--metrics", "F1", "--by", "label", "--confidence", "0.9", "--json", "-")
    told = json.loads(command("evaluate", path, *BINARY, *asked).out)["slices"]
    state = tmp_path / "s.state"
    command("evaluate", path, *BINARY, *asked[:4], "--save", state)
    table = sm.load(state).compute(confidence=0.9)
    assert told["F1_low"] == table["F1_low"].tolist()[1:]
    assert told["F1_high"] == table["F1_high"].tolist()[1:]
    again = json.loads(command("show", state, "--confidence", "0.9", "--json", "-").out)
    assert again["slices"] == told
