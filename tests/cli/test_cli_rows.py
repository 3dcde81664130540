"""Which rows are read, and how: filters, decimal commas, classes of columns, two samples."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.spatial.distance

import streammetrics as sm
from streammetrics.cli.result import NO_ROWS
from streammetrics.readers.where import conditions

RNG = np.random.default_rng(5)
N = 300
CLASS = RNG.integers(0, 3, N)
P = RNG.dirichlet(np.ones(3), N)
FRAME = pd.DataFrame(
    {
        "label": np.array(["cat", "dog", "eel"])[CLASS], "code": CLASS,
        "p_cat": P[:, 0], "p_dog": P[:, 1], "p_eel": P[:, 2],
        "age": RNG.integers(1, 90, N), "land": RNG.choice(["DE", "FR", "007"], N),
        "test": RNG.random(N) < 0.3, "y": RNG.normal(size=N), "p": RNG.normal(size=N),
        "gap": np.where(RNG.random(N) < 0.2, np.nan, 1.0),
    }
)  # fmt: skip
WHERE = {
    "age >= 30": FRAME.age >= 30,
    "age<30 and age != 7": (FRAME.age < 30) & (FRAME.age != 7),
    "land = DE AND test = false": (FRAME.land == "DE") & ~FRAME.test,
    "land == '007'": FRAME.land == "007",
    "land != DE": FRAME.land != "DE",
    "y > -1.5e-1": FRAME.y > -0.15,
    "gap != 2": FRAME.gap.notna(),
    '"p_cat" <= 0.5': FRAME.p_cat <= 0.5,
}


@pytest.fixture(params=["csv", "parquet", "jsonl", "feather"])
def path(request, tmp_path):
    path = tmp_path / f"rows.{request.param}"
    if request.param == "csv":
        FRAME.to_csv(path, index=False)
    elif request.param == "jsonl":
        FRAME.to_json(path, orient="records", lines=True, double_precision=15)
    else:
        (FRAME.to_parquet if request.param == "parquet" else FRAME.to_feather)(path)
    return path


def values(result):
    assert result.code == 0, result.err
    return {name: each["value"] for name, each in json.loads(result.out)["metrics"].items()}


@pytest.mark.parametrize("where", WHERE)
def test_rows_are_those_that_fulfil_the_conditions(command, path, where):
    asked = ("--task", "regression", "--y-true", "y", "--y-pred", "p", "--json", "-")
    found = values(command("evaluate", path, *asked, "--where", where, "--batch-rows", 64))
    kept = FRAME[WHERE[where]]
    assert found["MAE"] == pytest.approx(sm.MAE().update(kept.y, kept.p).compute(), rel=1e-13)


def test_a_filter_changes_no_column_that_is_read(command, path):
    """Columns that are inputs or among those of a pattern are read as they are without it."""
    asked = ("--task", "multiclass", "--y-true", "code", "--y-score", "p_*", "--json", "-")
    where = ("--where", "code != 1 and p_cat > 0.25")
    found = json.loads(command("evaluate", path, *asked, *where).out)
    kept = FRAME[(FRAME.code != 1) & (FRAME.p_cat > 0.25)]
    expected = sm.Accuracy().update(kept.code, kept[["p_cat", "p_dog", "p_eel"]]).compute()
    assert found["metrics"]["Accuracy"]["value"] == expected
    assert found["where"] == "code != 1 and p_cat > 0.25"
    assert found["columns"]["y_score"] == ["p_cat", "p_dog", "p_eel"]


def test_errors_name_the_row_of_the_file(mistake, tmp_path):
    rows = pd.DataFrame({"y": [1.0] * 50, "p": [1.0] * 41 + [np.nan] * 9, "k": [0, 1] * 25})
    asked = ("--task", "regression", "--y-true", "y", "--y-pred", "p", "--where", "k = 0")
    for name in ("rows.csv", "rows.parquet"):
        path = tmp_path / name
        rows.to_csv(path) if name.endswith("csv") else rows.to_parquet(path, row_group_size=8)
        says = mistake("evaluate", path, *asked, "--batch-rows", 7)
        assert "in row 42 of the file" in says


def test_several_models_and_slices_are_filtered_alike(command, path):
    asked = ("--task", "regression", "--y-true", "y", "--where", "age >= 50", "--json", "-")
    found = json.loads(command("evaluate", path, *asked, "--y-pred", "p", "--y-pred", "p_cat").out)
    rows = int((FRAME.age >= 50).sum())
    assert {model["n_rows"] for model in found["models"].values()} == {rows}
    one = json.loads(command("evaluate", path, *asked, "--y-pred", "p", "--by", "test").out)
    assert sum(one["slices"]["n_rows"]) in {rows, 2 * rows}


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("age", "expected column OP value"),
        ("age > 3 or age < 1", "expected column OP value"),
        ("age > 3 and", "expected column OP value"),
        ("land > DE", "> is of numbers: 'DE' is only equal or not"),
        ("land = 007", "007 is not a number or a word: write text in single quotes"),
        ("land = null", "null is not a value"),
        ("land = 7", "land holds text"),
        ("age = old", "age holds numbers"),
        ("test = 1", "test holds booleans"),
        ("lnad = DE", "no column 'lnad'; did you mean 'land'"),
    ],
)
def test_what_may_mean_several_things_is_refused(mistake, tmp_path, where, says):
    FRAME.to_parquet(tmp_path / "rows.parquet")
    asked = ("--task", "regression", "--y-true", "y", "--y-pred", "p", "--where", where)
    assert says in mistake("evaluate", tmp_path / "rows.parquet", *asked)


def test_quotes_may_be_in_text_and_labels_are_no_numbers_in_text(mistake, tmp_path):
    assert conditions("a = 'it''s'")[0].value == "it's"
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    asked = ("--task", "multiclass", "--y-true", "code", "--y-pred", "code")
    says = mistake("evaluate", tmp_path / "rows.csv", *asked, "--where", "code = '1'")
    assert "write code = 1" in says


FAR = 2**53
NEAR_INTEGERS = {
    f"i < {FAR}.5": 2, f"i <= {FAR}.5": 2, f"i > {FAR}.5": 2, f"i >= {FAR}.5": 2,
    f"i = {FAR}.5": 0, f"i != {FAR}.5": 4, f"i = {FAR}.0": 1, f"i > {FAR + 1}.0": 1,
    f"i < {FAR + 2}.00": 3, "i <= 9.007199254740993e15": 3, "i < 1e400": 4, "i > -1e400": 4,
    f"i < {FAR}.000000000000000000000001": 2,
}  # fmt: skip


@pytest.mark.parametrize("where", NEAR_INTEGERS)
def test_integers_are_compared_exactly(command, tmp_path, where):
    frame = pd.DataFrame({"y": [1.0, 2.0, 4.0, 5.0], "i": [FAR - 1, FAR, FAR + 1, FAR + 2]})
    frame.to_parquet(tmp_path / "rows.parquet")
    asked = ("--task", "aggregation", "--column", "values=y", "--where", where, "--json", "-")
    result = command("evaluate", tmp_path / "rows.parquet", *asked)
    kept = json.loads(result.out)["n_rows"] if result.out else 0
    assert kept == NEAR_INTEGERS[where]


def test_values_of_other_types_are_refused_and_missing_ones_fulfil_nothing(
    command, mistake, tmp_path
):
    path = tmp_path / "rows.parquet"
    columns = {
        "y": [1.0, 2.0, 4.0],
        "k": pd.array([1, None, 3], "Int64"),
        "on": [True, None, False],
    }
    frame = pd.DataFrame({**columns, "day": pd.to_datetime(["2024-05-01"] * 3)})
    frame.assign(price=[Decimal("1.5")] * 3, word=["a", None, "b"]).to_parquet(path)
    asked = ("--task", "aggregation", "--column", "values=y", "--where")
    for where, rows in {"k != 7": 2, "k > 1": 1, "on = true": 1, "word != a": 1}.items():
        found = json.loads(command("evaluate", path, *asked, where, "--json", "-").out)
        assert found["n_rows"] == rows, where
    for where in ("day = '2024-05-01'", "price = 1.5", "price = 'x'"):
        assert "holds values of type" in mistake("evaluate", path, *asked, where)
    none = command("evaluate", path, *asked, "k > 9")
    assert (none.code, none.out) == (NO_ROWS, "")


def test_columns_of_folders_are_filtered(command, tmp_path):
    for day in ("mon", "tue"):
        (tmp_path / f"day={day}").mkdir()
        FRAME.to_csv(tmp_path / f"day={day}" / "rows.csv", index=False)
    asked = ("--task", "aggregation", "--column", "values=y", "--where", "day = mon and age > 40")
    found = json.loads(command("evaluate", tmp_path, *asked, "--json", "-", "--workers", 2).out)
    assert found["n_rows"] == int((FRAME.age > 40).sum())


def test_trec_files_have_no_filter(mistake):
    asked = ("--task", "ranking", "--qrels", "a", "--run", "b", "--where", "x = 1")
    assert "--where is not for TREC files" in mistake("evaluate", *asked)


def test_decimal_commas(command, mistake, tmp_path):
    path = tmp_path / "rows.csv"
    FRAME.to_csv(path, index=False, sep=";", decimal=",")
    asked = ("--task", "regression", "--y-true", "y", "--y-pred", "p", "--json", "-")
    found = values(command("evaluate", path, *asked, "--decimal", ","))
    suite = sm.MetricSet({"MAE": sm.MAE()}, columns={"y_true": "y", "y_pred": "p"})
    assert found["MAE"] == sm.evaluate(suite, path, decimal=",").compute()["MAE"]
    assert found["MAE"] == pytest.approx(sm.MAE().update(FRAME.y, FRAME.p).compute(), rel=1e-13)
    assert "commas are not read as decimal points without --decimal ," in mistake(
        "evaluate", path, *asked
    )
    path.write_text("y;p\n1.234;1\n")
    assert "y holds '1.234' in row 0" in mistake("evaluate", path, *asked, "--decimal", ",")
    path.write_text("y;p\n9007199254740993;1,0\n1;0,5\n")  # beyond float64: parsed as text first
    found = values(command("evaluate", path, *asked, "--decimal", ",", "--metrics", "MaxError"))
    assert found["MaxError"] == 9007199254740992.0
    path.write_text("y;p\n1,0;1,0\n0,0;1,0\n")
    labels = ("--task", "binary", "--y-true", "y", "--y-pred", "p", "--json", "-")
    found = values(command("evaluate", path, *labels, "--decimal", ","))
    assert (found["Recall"], found["Precision"]) == (1.0, 0.5)
    for more in (("--delimiter", ","), ("--input-format", "jsonl")):
        assert "decimal" in mistake("evaluate", path, *asked, "--decimal", ",", *more)
    assert "neither '.' nor ','" in mistake("evaluate", path, *asked, "--decimal", ";")


def test_classes_are_named_by_the_columns_of_scores(command, path):
    asked = ("--task", "multiclass", "--y-true", "label", "--json", "-")
    found = json.loads(command("evaluate", path, *asked, "--scores", "p_*").out)
    metric = sm.ROCAUC(labels=("cat", "dog", "eel"), average="macro")
    expected = metric.update(FRAME.label, P).compute()
    assert found["metrics"]["ROCAUC"]["value"] == pytest.approx(expected, rel=1e-13)
    assert found["options"]["labels"] == ["cat", "dog", "eel"]


def test_integers_in_names_are_integers(command, tmp_path):
    frame = pd.DataFrame({"code": CLASS, **{f"of {k} %": P[:, k] for k in (2, 0, 1)}})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    asked = ("--task", "multiclass", "--y-true", "code", "--scores", "of * %", "--json", "-")
    found = json.loads(command("evaluate", tmp_path / "rows.csv", *asked).out)
    assert found["options"]["labels"] == [0, 1, 2]
    assert found["metrics"]["Accuracy"]["value"] == np.mean(P.argmax(axis=1) == CLASS)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--scores", "p_"), "expected one *"),
        (("--scores", "q_*"), "has 0 such columns"),
        (("--scores", "p_*", "--y-score", "p_cat"), "leave out --y-score"),
        (("--scores", "p_*", "--param", "labels=a,b,c"), "leave out --param labels"),
        (("--scores", "p_*", "--y-pred", "p_dog"), "p_dog, which --y-pred names"),
        (("--scores", "c*"), "classes 01, 2 may be numbers or text"),
        (("--scores", "s_*"), "the column 's_a,b' has a comma"),
    ],
)
def test_classes_that_are_not_clear_are_refused(mistake, tmp_path, more, says):
    more_columns = {"c01": 1.0, "c2": 0.0, "s_a,b": 0.0, "s_c": 1.0}
    FRAME.assign(**more_columns).drop(columns="code").to_csv(tmp_path / "a.csv", index=False)
    asked = ("--task", "multiclass", "--y-true", "label")
    assert says in mistake("evaluate", tmp_path / "a.csv", *asked, *more)
    if more == ("--scores", "p_"):
        asked = ("--task", "binary", "--y-true", "label", "--scores", "p_*")
        assert "--scores is for --task multiclass" in mistake(
            "evaluate", tmp_path / "a.csv", *asked
        )


@pytest.fixture
def samples(tmp_path):
    FRAME.to_csv(tmp_path / "old.csv", index=False)
    later = FRAME.assign(age=FRAME.age + 5, land=FRAME.land.replace("007", "DE"))
    later.iloc[:200].to_csv(tmp_path / "new.csv", index=False)
    return tmp_path


def test_drift_against_a_reference_file_or_a_state_of_it(command, mistake, samples):
    old, new, state = (samples / name for name in ("old.csv", "new.csv", "old.state"))
    asked = ("--task", "drift", "--column", "values=age")
    found = values(command("evaluate", new, *asked, "--reference", old, "--json", "-"))
    ages = np.concatenate([FRAME.age, FRAME.age[:200] + 5])
    rows = ([0] * N + [1] * 200, ages)
    assert found["KSDistance"] == sm.KSDistance().update(*rows).compute()
    assert found["PopulationStability"] == sm.PopulationStability().update(*rows).compute()
    saved = command("evaluate", *asked, "--reference", old, "--save", state)
    assert saved.code == 0
    assert "there are no rows of the current sample" in saved.out
    again = command(
        "evaluate", new, *asked, "--reference", state, "--json", "-", "--save", samples / "b"
    )
    assert values(again) == found
    where = command("evaluate", new, *asked, "--reference", state, "--where", "age > 30")
    assert f"note: --where leaves the rows of {state} alone: it is a saved state" in where.err
    over = ("--reference", state, "--save", state, "--force")
    assert "would overwrite" in mistake("evaluate", new, *asked, *over)
    says = mistake("evaluate", new, *asked, "--reference", samples / "b")
    assert "holds rows of a current sample, too" in says
    says = mistake("evaluate", new, "--task", "drift", "--column", "values=y", "--reference", state)
    assert "old.state does not fit" in says


def test_a_sample_without_rows_is_no_measurement(command, samples):
    old, none, state = (samples / name for name in ("old.csv", "none.csv", "old.state"))
    FRAME[:0].to_csv(none, index=False)
    asked = ("--task", "drift", "--column", "values=age")
    assert command("evaluate", *asked, "--reference", old, "--save", state).code == 0
    for current, reference, of in (
        (none, old, "current sample"),
        (none, state, "current sample"),
        (old, none, "reference"),
    ):
        found = command("evaluate", current, *asked, "--reference", reference)
        assert found.code == 1
        assert found.err == f"error: there are no rows of the {of}: nothing was measured\n"
        assert "undefined" in found.out


def test_drift_of_several_columns_and_of_categories(command, samples):
    old, new = samples / "old.csv", samples / "new.csv"
    asked = ("--task", "drift", "--reference", old, "--json", "-")
    found = json.loads(command("evaluate", new, *asked, "-c", "values=age", "-c", "values=y").out)
    assert list(found["models"]) == ["age", "y"]
    assert found["reference"] == [str(old)]
    one = values(command("evaluate", new, *asked, "-c", "values=land", "-p", "bins=categories"))
    later = FRAME.land.replace("007", "DE")[:200]
    kinds = ["007", "DE", "FR"]
    p, q = ([np.mean(side == kind) for kind in kinds] for side in (later, FRAME.land))
    assert one["JensenShannon"] == pytest.approx(
        scipy.spatial.distance.jensenshannon(p, q), rel=1e-12
    )
    assert one["PopulationStability"] is not None
    assert list(one) == ["PopulationStability", "JensenShannon"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("binary --y-true x --y-score y --reference old.csv", "--reference is for --task drift"),
        ("drift -c values=age -c sample=test --reference old.csv", "leave out sample"),
        ("drift -c values=age", "beside it, or --reference"),
        ("drift -c values=age --reference old.csv -p current=1", "leave out --param current"),
        ("drift -c values=age -c values=y --reference old.state", "for one column of values"),
        ("drift -c values=age --reference old.state --reference old.csv", "give it alone, merged"),
    ],
)
def test_samples_that_are_not_clear_are_refused(mistake, samples, monkeypatch, more, says):
    monkeypatch.chdir(samples)
    (samples / "old.state").write_bytes(b"")
    assert says in mistake("evaluate", "new.csv", "--task", *more.split())


def test_metrics_and_slices_of_a_state_are_shown_alone(command, mistake, samples):
    state = samples / "old.state"
    asked = ("--task", "regression", "--y-true", "y", "--y-pred", "p", "--by", "land,test")
    assert command("evaluate", samples / "old.csv", *asked, "--save", state).code == 0
    shown = ("show", state, "--metrics", "mae, R2", "--json", "-")
    found = json.loads(command(*shown, "--by", "test").out)
    assert list(found["metrics"]) == ["MAE", "R2"]
    assert set(found["slices"]) == {"test", "n_rows", "MAE", "R2"}
    test = FRAME[FRAME.test]
    assert found["slices"]["MAE"][1] == pytest.approx(sm.MAE().update(test.y, test.p).compute())
    worst = command(
        "show", state, "--metrics", "MAE", "--by", "land", "--worst", "mae", "--csv", "-"
    )
    assert "R2" not in worst.out
    assert "no such metric; did you mean 'MAE'" in mistake("show", state, "--metrics", "mea")
    assert "no slices by ['age']" in mistake("show", state, "--by", "age")
    FRAME.to_csv(samples / "m.csv")
    models = ("--task", "regression", "--y-true", "y", "--y-pred", "p", "--y-pred", "p_cat")
    assert command("evaluate", samples / "m.csv", *models, "--save", samples / "m.state").code == 0
    found = json.loads(command("show", samples / "m.state", "--metrics", "RMSE", "--json", "-").out)
    assert {tuple(model["metrics"]) for model in found["models"].values()} == {("RMSE",)}
    assert {line["metric"] for line in found["comparison"]["differences"]} == {"RMSE"}
    assert "--by requires slices" in mistake("show", samples / "m.state", "--by", "land")


def test_commas_are_decimal_points_or_delimiters(mistake, tmp_path):
    (tmp_path / "a.csv").write_text('"y","p"\n"1,5","2,5"\n')
    asked = ("--task", "regression", "--y-true", "y", "--y-pred", "p", "--decimal", ",")
    says = mistake("evaluate", tmp_path / "a.csv", *asked)
    assert "save it with another delimiter" in says
    assert "--delimiter" not in says
