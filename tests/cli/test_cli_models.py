"""Several models side by side, and results as a table, JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from prediction_files import store

import streammetrics as sm

BINARY = ("--task", "binary", "--y-true", "label")
MULTICLASS = ("--task", "multiclass", "--y-true", "true", "--y-pred", "pred")
NAMES = ("cat", "dog", "hörse")


@pytest.fixture
def path(tmp_path, binary):
    other = np.round(1 - binary["score"].to_numpy(), 3)
    return store(binary.append_column("other", pa.array(other)), tmp_path / "t.parquet")


@pytest.fixture
def classes(tmp_path):
    rng = np.random.default_rng(0)
    true, pred = rng.integers(0, 3, (2, 200))
    names = np.array(NAMES)
    return store(pa.table({"true": names[true], "pred": names[pred]}), tmp_path / "c.parquet")


def test_each_model_is_a_column(command, path):
    both = ("--y-score", "score", "--y-score", "other", "--metrics", "ROCAUC,F1")
    code, out, err = command("evaluate", path, *BINARY, *both)
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["task=binary", "y_true=label", "threshold=0.5"]
    assert lines[1] == ["Metric", "score", "other"]
    found = json.loads(command("evaluate", path, *BINARY, *both, "--json", "-").out)
    for place, name in enumerate(("score", "other"), 1):
        one = ("--y-score", name, "--metrics", "ROCAUC,F1", "--json", "-")
        alone = json.loads(command("evaluate", path, *BINARY, *one).out)
        assert found["models"][name]["metrics"] == alone["metrics"]
        assert found["models"][name]["columns"] == alone["columns"]
        for line, metric in zip(lines[2:4], alone["metrics"].values(), strict=True):
            assert line[place] == f"{metric['value']:.6f}"
    assert lines[4] == ["Rows", "3,000", "3,000"]


def test_scores_and_labels_of_models_go_together(command, mistake, path):
    pairs = ("--y-score", "score", "--y-score", "other", "--y-pred", "label", "--y-pred", "label")
    result = command("evaluate", path, *BINARY, *pairs, "--metrics", "ROCAUC,Accuracy")
    line = next(line for line in result.out.splitlines() if "Accuracy" in line)
    assert line.split()[1:] == ["1.000000", "1.000000"]
    line = mistake("evaluate", path, *BINARY, *pairs, "--y-pred", "label")
    assert line.startswith("y_score 2 times and y_pred 3 times: give every input of a model")
    line = mistake("evaluate", path, *BINARY, *pairs[:2], *pairs[:2])
    assert line == "--y-score score is given twice"


def test_what_is_of_one_model_only(mistake, path, tmp_path, monkeypatch):
    both = (*BINARY, "--y-score", "score", "--y-score", "other")
    by = ("--by", "weight:0.5", "--save", tmp_path / "s")
    line = mistake("evaluate", path, *both, *by)
    assert line.startswith("--save is about one state, and the 2 models are not compared")
    line = mistake("evaluate", path, *both, "--weight", "weight", "--weight", "score")
    assert line.startswith("Option --weight is given twice; see streammetrics evaluate --help")


def test_what_is_saved_of_several_models_is_their_comparison(command, path, tmp_path):
    both = (*BINARY, "--y-score", "score", "--y-score", "other", "--metrics", "ROCAUC,F1")
    saved = tmp_path / "duel.state"
    told = command("evaluate", path, *both, "--save", saved).out
    state = sm.load(saved)
    assert isinstance(state, sm.Comparison)
    assert list(state) == ["score", "other"]
    duel = told[told.index("Which is better") :]
    assert duel in command("show", saved).out
    command("evaluate", path, *both, "--save", saved, "--force")
    apart = command("evaluate", path, *both, "--by", "weight:0.5")
    assert "with --by several models are shown but not compared" in apart.err


def test_several_runs_are_several_models(command, tmp_path):
    (tmp_path / "q").write_text("1 0 a 1\n1 0 b 0\n2 0 a 1\n")
    (tmp_path / "good").write_text("1 Q0 a 1 2 t\n2 Q0 a 1 2 t\n")
    (tmp_path / "bad").write_text("1 Q0 b 1 2 t\n2 Q0 c 1 2 t\n")
    runs = ("--run", tmp_path / "good", "--run", tmp_path / "bad", "--metrics", "MRR")
    args = ("evaluate", "--task", "ranking", "--qrels", tmp_path / "q", *runs)
    assert command(*args, "--csv", "-").out == (
        "model,metric,part,value,low,high,exact,n_rows,n_omitted\n"
        "good,MRR,,1.0,1.0,1.0,true,5,0\nbad,MRR,,0.0,0.0,0.0,true,5,0\n"
    )
    lines = command(*args, "--per-query").out.splitlines()
    assert lines[lines.index("good") + 1 :][:3] == [
        "Query       MRR",
        "1      1.000000",
        "2      1.000000",
    ]


def test_repeated_lists_count_all(command, path):
    one = ("--y-score", "score", "--metrics", "F1", "--metrics", "rocauc,Recall")
    found = json.loads(command("evaluate", path, *BINARY, *one, "--json", "-").out)
    assert list(found["metrics"]) == ["F1", "ROCAUC", "Recall"]


def test_standard_input_is_of_one_model(mistake, path):
    both = (*BINARY, "--y-score", "score", "--y-score", "other")
    line = mistake("evaluate", "-", "--input-format", "csv", *both)
    assert (
        line == "standard input can be read once, and there are 2 models: save it to a file first"
    )


METRICS = "accuracy,confusion_matrix,F1(average=none),recall(average=NULL),ClassificationReport"


def test_parts_have_the_names_of_their_classes(command, classes):
    args = ("evaluate", classes, *MULTICLASS, "--metrics", METRICS)
    out = command(*args).out
    suite = sm.MetricSet(
        {
            "matrix": sm.ConfusionMatrix(),
            "f1": sm.F1(average=None),
            "report": sm.ClassificationReport(),
        },
        columns={"y_true": "true", "y_pred": "pred"},
    )
    value = sm.evaluate(suite, classes).compute()
    lines = [line.split() for line in out.splitlines()]
    assert ["cat", "dog", "hörse"] in lines
    for place, name in enumerate(NAMES):
        assert [name, *map(str, value["matrix"][place].tolist())] in lines
        assert any(line[:2] == [name, f"{value['f1'][place]:.6f}"] for line in lines)
        row = value["report"][name]
        shown = [f"{row[key]:.6f}" for key in ("precision", "recall", "f1-score")]
        assert [name, *shown, f"{row['support']:.0f}"] in lines
    metrics = json.loads(command(*args, "--json", "-").out)["metrics"]
    for name in ("ConfusionMatrix", "F1(average=None)", "Recall(average=None)"):
        assert metrics[name]["labels"] == list(NAMES)
    rows = list(csv.DictReader(io.StringIO(command(*args, "--csv", "-").out)))
    found = {(row["metric"], row["part"]): row["value"] for row in rows}
    assert float(found["ConfusionMatrix", "cat/dog"]) == value["matrix"][0, 1]
    assert float(found["F1(average=None)", "hörse"]) == value["f1"][2]
    assert float(found["ClassificationReport", "dog/recall"]) == value["report"]["dog"]["recall"]


def test_matrices_are_shown_up_to_thirty_classes(command, tmp_path):
    for count, shown in ((30, True), (31, False)):
        labels = np.arange(count)
        path = store(pa.table({"true": labels, "pred": labels}), tmp_path / f"{count}.parquet")
        out = command("evaluate", path, *MULTICLASS, "--metrics", "ConfusionMatrix").out
        assert ("ConfusionMatrix: y_true down" in out) == shown
        assert ("31 x 31 values, see --json" in out) != shown


def test_markdown_is_the_same_tables(command, classes, path):
    args = ("evaluate", classes, *MULTICLASS, "--metrics", METRICS)
    tables = re.findall(r"(?:^\|.*\n)+", command(*args, "--markdown", "-").out, re.MULTILINE)
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1
    plain = [line.split() for line in command(*args).out.splitlines()]
    assert len(tables) == 4
    for line in tables[0].splitlines()[2:]:
        assert [cell.strip() for cell in line.strip("|").split("|")] in plain
    out = command(
        "evaluate", path, *BINARY, "--y-score", "score", "--weight", "weight", "--markdown", "-"
    ).out
    assert out.endswith("\nevery value is exact\n\n- weighted by weight\n")


@pytest.mark.parametrize("columns", [50, 70, 200])
def test_a_terminal_of_any_width_breaks_no_line(command, classes, path, monkeypatch, columns):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    runs = [
        ("evaluate", classes, *MULTICLASS, "--metrics", METRICS),
        (
            "evaluate",
            path,
            *BINARY,
            "--y-score",
            "score",
            "--y-score",
            "other",
            "--param",
            "max_bins=64",
        ),
    ]
    for arguments in runs:
        plain = re.sub(r"\x1b\[[0-9;]*m", "", command(*arguments).out)
        assert max(map(len, plain.splitlines())) <= columns
        assert "…" not in plain


def test_values_are_aggregated(command, path):
    args = ("evaluate", path, "--task", "aggregation", "--column", "values=score")
    metrics = json.loads(command(*args, "--json", "-").out)["metrics"]
    assert list(metrics) == ["Count", "Sum", "Mean", "Variance", "Minimum", "Maximum"]
    assert metrics["Count"]["value"] == 3000
    out = command(*args, "--weight", "weight", "--metrics", "quantile(q=0.5),mean").out
    assert "note: weighted by weight" in out
    assert [line.split()[0] for line in out.splitlines()[2:4]] == ["Quantile(q=0.5)", "Mean"]


def test_a_column_of_weights_that_nothing_names_is_told_once(command, path, tmp_path, binary):
    names = ["label", "score", "sample_weight", "text"]
    path = store(binary.rename_columns(names), tmp_path / "w.parquet")
    two = ("--y-score", "score", "--y-score", "sample_weight", "--metrics", "ROCAUC")
    plain = command("evaluate", path, *BINARY, *two[:2], *two[4:])
    assert plain.err.count("sample_weight") == 1
    assert "--weight" in plain.err
    weighted = command("evaluate", path, *BINARY, *two[:2], *two[4:], "--weight", "sample_weight")
    assert weighted.err == ""
    assert "note: weighted by sample_weight" in weighted.out
    columns = [binary.column(name).to_numpy() for name in ("label", "score", "weight")]
    auc = sm.ROCAUC().update(*columns[:2], sample_weight=columns[2]).compute()
    assert f"{auc:.6f}" in weighted.out
    assert f"{auc:.6f}" not in plain.out


def test_models_are_compared_by_unit(command, tmp_path):
    rng = np.random.default_rng(0)
    table = {"y_true": rng.integers(0, 2, 300), "question": np.arange(300) // 5}
    table |= {model: rng.random(300).round(3) for model in "ab"}
    path = tmp_path / "rows.csv"
    lines = [
        ",".join(table),
        *(",".join(map(str, row)) for row in zip(*table.values(), strict=True)),
    ]
    path.write_text("\n".join(lines))
    given = ("--y-true", "y_true", "--y-score", "a", "--y-score", "b", "--unit", "question")
    out = command("evaluate", path, "--task", "binary", *given, "--save", tmp_path / "s").out
    assert "60 units, sign flips" in out
    assert "unit='question'" in repr(sm.load(tmp_path / "s"))
    assert "60 units, sign flips" in command("show", tmp_path / "s").out
    lines = json.loads(command("evaluate", path, "--task", "binary", *given, "--json", "-").out)
    duel = sm.Comparison({"Accuracy": sm.Accuracy(threshold=0.5)}, ["a", "b"], unit="question")
    (line,) = duel.update(table).compute()
    (told,) = [each for each in lines["comparison"]["differences"] if each["metric"] == "Accuracy"]
    assert told["p"] == line.p
    (tmp_path / "s").unlink()


def test_what_a_saved_comparison_lacks_is_told(command, tmp_path):
    (tmp_path / "two.csv").write_text("y,p,q\n" + "1,2,3\n2,2,1\n4,3,5\n" * 30)
    columns = ("--task", "regression", "--y-true", "y", "--y-pred", "p", "--y-pred", "q")
    saved = ("--metrics", "MAE,MaxError", "--save", tmp_path / "it.state")
    found = command("evaluate", tmp_path / "two.csv", *columns, *saved)
    assert "note: --save is about the comparison, which has no MaxError" in found.err


def test_models_of_texts_are_compared_and_models_that_cannot_be_are_told(command, tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("r,a,b\nx y,x y,x\nq,q,z\nk l m,k l,k l m\n")
    both = ("--task", "text", "-c", "reference=r", "-c", "prediction=a", "-c", "prediction=b")
    said = command("evaluate", path, *both)
    duel = said.out[said.out.index("Which is better") :]
    names = [line.split()[0] for line in duel.splitlines()[2:5]]
    assert names == ["ExactMatch", "TokenF1", "RougeL"]
    assert "not compared" not in said.err
    said = command("evaluate", path, *both, "--metrics", "BLEU")
    assert "the models are not compared, as none of these metrics can be" in said.err
