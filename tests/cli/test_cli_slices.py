"""Slices from the command line: tables, outputs for machines, states, and mistakes."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import pytest

import streammetrics as sm


@pytest.fixture
def predictions(tmp_path):
    rng = np.random.default_rng(0)
    n = 900
    frame = pd.DataFrame(
        {
            "label": rng.integers(0, 2, n),
            "score": rng.random(n).round(3),
            "country": rng.choice(["DE", "FR", "US"], n, p=[0.5, 0.45, 0.05]),
            "age": rng.integers(10, 80, n),
        }
    )
    path = tmp_path / "predictions.parquet"
    frame.to_parquet(path)
    return path, frame


BASE = ["evaluate", "--task", "binary", "--y-true", "label", "--y-score", "score"]


def test_slices_are_shown_and_written(command, predictions, tmp_path):
    path, frame = predictions
    out, table, state = (tmp_path / name for name in ("o.json", "o.csv", "o.state"))
    arguments = [*BASE, "--metrics", "ROCAUC,F1", "--by", "country", "--by", "country,age:30:60"]
    outputs = ["--json", out, "--csv", table, "--save", state, "--min-rows", "30"]
    result = command(*arguments, *outputs, "--worst", "ROCAUC", path)
    assert (result.code, result.err) == (0, "")
    assert "Slices (3 of fewer rows left out)" in result.out
    assert "Worst by ROCAUC, the surest first" in result.out
    document = json.loads(out.read_text())
    assert document["by"] == ["country", "country,age"]
    slices = document["slices"]
    for place in range(len(slices["country"])):
        if slices["by"][place] != "country":
            continue
        part = frame[frame.country == slices["country"][place]]
        auc = sm.ROCAUC().update(part.label, part.score).compute()
        assert slices["ROCAUC"][place] == auc
        assert slices["n_rows"][place] == len(part)
    assert min(slices["n_rows"]) >= 30
    assert document["worst"]["ROCAUC_high"] == sorted(document["worst"]["ROCAUC_high"])
    with open(table) as file:
        lines = list(csv.DictReader(file))
    assert {"country=DE", "country=FR, age=[30, 60)"} <= {line["part"] for line in lines}
    assert sm.load(state)[{"country": "FR"}].n_rows == (frame.country == "FR").sum()
    again = command(*arguments, *outputs, "--worst", "roc_auc", path, "--force")
    assert (again.code, again.err) == (0, "")
    shown = command("show", state, "--min-rows", "30", "--worst", "F1")
    assert "Worst by F1" in shown.out


@pytest.mark.parametrize("unit", [[], ["--unit", "age"]])
def test_csv_has_the_limits_of_every_slice(command, predictions, unit):
    metrics = "F1,Recall(average=none),CalibrationError,ROCCurve"
    asked = ["--metrics", metrics, "--by", "country", "--confidence", "0.9", *unit]
    lines = list(csv.reader(command(*BASE, *asked, "--csv", "-", predictions[0]).out.splitlines()))
    assert {len(line) for line in lines} == {10}
    limits = {(line[0], line[1]): line[8:] for line in lines[1:]}
    document = json.loads(command(*BASE, *asked, "--json", "-", predictions[0]).out)["slices"]
    recall = "Recall(average=None)"
    for place, country in enumerate(document["country"]):
        for name, part in (("F1", ""), (recall, "0"), (recall, "1")):
            title = f"{name}_{part}" if part else name
            expected = [document[f"{title}_{side}"][place] for side in ("low", "high")]
            found = limits[name, "/".join(filter(None, (f"country={country}", part)))]
            assert list(map(float, found)) == expected
        assert limits["ROCCurve", f"country={country}/0/fpr"] == ["", ""]
    if not unit:
        assert limits["CalibrationError", "country=DE"] == ["", ""]


def test_what_has_no_limits_is_ranked_by_its_values(command, predictions):
    asked = ["--metrics", "CalibrationError", "--by", "country", "--worst", "CalibrationError"]
    done = command(*BASE, *asked, predictions[0])
    assert (done.code, done.err) == (0, "")
    _, _, worst = done.out.partition("Worst by CalibrationError, which has no limits of confidence")
    assert worst.split()[:3] == ["country", "Rows", "CalibrationError"]
    values = [float(line.split()[-1]) for line in worst.strip().splitlines()[1:]]
    assert values == sorted(values, reverse=True)
    assert len(values) == 3


def test_the_worst_are_ranked_at_the_level_that_is_asked(command, predictions):
    asked = ["--metrics", "F1", "--by", "country", "--worst", "F1", "--json", "-"]
    done = command(*BASE, *asked, "--confidence", "0.8", predictions[0])
    document = json.loads(done.out)
    lows = dict(zip(document["slices"]["country"], document["slices"]["F1_low"], strict=True))
    worst = document["worst"]
    assert worst["F1_low"] == [lows[country] for country in worst["country"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by", "contry"], "no column 'contry'; did you mean 'country'"),
        (["--by", "score"], "--by score:18:30:50 cuts numbers"),
        (["--by", "age", "--max-slices", "9"], "beyond the limit of 9: 'age' alone has"),
        (["--by", "age:60:30"], "ascending edges of bins"),
        (["--by", ",age"], "does not name a column"),
        (["--by", "age,age:3"], "has a column twice"),
        (["--worst", "F1"], "--worst requires --by"),
        (["--min-rows", "3"], "--min-rows requires --by, e.g. --by country"),
        (
            ["--by", "country", "--worst", "AUC"],
            "--worst AUC: no such metric; did you mean 'ROCAUC'",
        ),
    ],
)
def test_mistakes_are_told(mistake, predictions, arguments, message):
    assert message in mistake(*BASE, *arguments, predictions[0])


def test_several_models_are_sliced(command, predictions):
    path, frame = predictions
    frame.assign(other=1 - frame.score).to_parquet(path)
    result = command(*BASE, "--y-score", "other", "--metrics", "ROCAUC", "--by", "country", path)
    assert "Slices of score" in result.out
    assert "Slices of other" in result.out


def test_states_of_one_kind_of_slice_show_all_of_them(command, tmp_path):
    suite = sm.MetricSet({"acc": sm.Accuracy()})
    rows = {"y_true": [1, 0, 1, 1], "y_pred": [1, 1, 1, 1], "k": [0, 1, 1, None]}
    sm.Slices(suite, by="k").update(rows).save(tmp_path / "k.state")
    shown = command("show", tmp_path / "k.state")
    assert [line.split() for line in shown.out.splitlines()[-3:]] == [
        ["0", "1", "1.000000"], ["1", "2", "0.500000"], ["missing", "1", "1.000000"],
    ]  # fmt: skip
    sm.Slices(suite, by=[[]], unit="k").update({**rows, "k": range(4)}).save(tmp_path / "all.state")
    alone = command("show", tmp_path / "all.state", "--json", "-")
    assert json.loads(alone.out)["slices"] == {"n_rows": [], "acc": []}


def test_the_worst_metric_is_named_in_any_case(command, predictions):
    arguments = [*BASE, "--metrics", "f1,rocauc", "--by", "country"]
    named = [command(*arguments, "--worst", name, predictions[0]) for name in ("rocauc", "ROCAUC")]
    assert named[0] == named[1]
    assert "Worst by ROCAUC" in named[0].out


def test_limits_of_the_worst_are_by_unit_where_the_others_are(command, predictions, tmp_path):
    path, _ = predictions
    out, state = tmp_path / "o.json", tmp_path / "o.state"
    by = ["--metrics", "F1", "--by", "country", "--confidence", "0.95", "--worst", "F1"]
    assert command(*BASE, *by, "--unit", "age", "--json", out, "--save", state, path).code == 0
    for found in (out.read_text(), command("show", state, *by[4:], "--json", "-").out):
        document = json.loads(found)
        slices, worst = document["slices"], document["worst"]
        assert set(worst["country"]) < set(slices["country"])
        for country in worst["country"]:
            here, there = slices["country"].index(country), worst["country"].index(country)
            for name in ("F1_low", "F1_high"):
                assert slices[name][here] == worst[name][there]


def test_a_state_without_slices_has_no_rows_of_them(command, mistake, predictions, tmp_path):
    state = tmp_path / "a.state"
    assert command(*BASE, "--metrics", "F1", "--save", state, predictions[0]).code == 0
    assert "--min-rows requires slices, and" in mistake("show", state, "--min-rows", "3")
    assert "--worst requires slices, and" in mistake("show", state, "--worst", "F1")


def test_tables_of_slices_leave_matrices_and_reports_out_and_say_so(command, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("t,p,when\n1,1,2026-01-31 10:00:00\n0,1,2026-02-01 00:00:00\n")
    metrics = "Accuracy,ConfusionMatrix,ClassificationReport,Recall(average=none)"
    columns = ("--task", "multiclass", "--y-true", "t", "--y-pred", "p", "--by", "when:month")
    out = command("evaluate", path, *columns, "--metrics", metrics).out
    title = "Slices, without ConfusionMatrix and ClassificationReport; --json or --csv has all\n"
    header = out.partition(title)[2].splitlines()[0].split()
    assert header == [
        "when",
        "Rows",
        "Accuracy",
        "Recall(average=None)_0",
        "Recall(average=None)_1",
    ]
    assert "2026-01" in out.partition(title)[2]
    found = json.loads(command("evaluate", path, *columns, "--metrics", metrics, "--json", "-").out)
    assert found["slices"]["ConfusionMatrix_1/1"] == [1, 0]
    lines = command("evaluate", path, *columns, "--metrics", metrics, "--csv", "-").out
    assert "ConfusionMatrix,when=2026-01/1/1," in lines


def test_distinct_keys_stay_distinct_in_every_output(command, tmp_path):
    """`true` and `1` once were one slice, and the text missing read like a missing key."""
    rows = ["true,1", "1,0", "missing,1", ",1", '""" a""",1', " a,1"]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["k,y", *rows, ""]))
    options = ("evaluate", path, "--task", "aggregation", "--metrics", "Mean", "-c", "values=y")
    for output in ("--csv", "--markdown", "--json"):
        found = tmp_path / f"found{output}"
        command(*options, "--by", "k", output, found)
    keys = json.loads((tmp_path / "found--json").read_text())["slices"]["k"]
    assert len(set(keys)) == len(rows)
    lines = (tmp_path / "found--csv").read_text().splitlines()[2:]
    assert len({line.rpartition("k=")[2].split(",")[0] for line in lines}) == len(rows)
    for shown in (command(*options, "--by", "k").out, (tmp_path / "found--markdown").read_text()):
        table = shown.partition("Slices")[2]
        assert '"missing"' in table
        assert table.count("missing") == 2
        assert '" a"' in table


def test_words_and_digits_of_one_column_are_text(command, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("k,y\ntrue,1\n1,0\n0,0\n")
    options = ("evaluate", path, "--task", "aggregation", "--metrics", "Mean", "-c", "values=y")
    found = json.loads(command(*options, "--by", "k", "--json", "-").out)["slices"]
    assert (found["k"], found["Mean"]) == (["0", "1", "true"], [0.0, 0.0, 1.0])
