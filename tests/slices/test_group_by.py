"""Rows grouped by a database give the bytes of the rows."""

from __future__ import annotations

import numpy as np
import pytest

import streammetrics as sm

COLUMNS = {"y_true": "true label", "y_score": 'a "score"'}


def suite(**options):
    metrics = {"auc": sm.ROCAUC(), "f1": sm.F1(threshold=0.5)}
    return sm.MetricSet(metrics, columns=COLUMNS, counts="n", **options)


SETS = {
    "set": suite,
    "by unit": lambda: suite(unit="user"),
    "slices": lambda: sm.Slices(suite(), by=[[], ["country"]]),
}


@pytest.mark.parametrize("make", SETS.values(), ids=SETS)
def test_duckdb_groups_the_rows(make):
    duckdb = pytest.importorskip("duckdb", reason="needs DuckDB")
    pytest.importorskip("pyarrow", reason="DuckDB exports rows through Arrow")
    pandas = pytest.importorskip("pandas", reason="DuckDB reads the rows from a data frame")
    rng = np.random.default_rng(0)
    n = 3000
    rows = pandas.DataFrame({
        "true label": rng.integers(0, 2, n), 'a "score"': np.round(rng.random(n), 1),
        "country": rng.choice(["DE", "FR"], n), "user": rng.integers(0, 9, n),
    })  # fmt: skip
    with duckdb.connect() as connection:
        connection.register("predictions", rows)
        grouped = connection.sql(sm.group_by(make()).sql("predictions"))
        found = make().update(grouped)
    assert found.to_bytes() == make().update(rows.assign(n=1)).to_bytes()
    assert found.n_rows == n


@pytest.mark.parametrize(
    ("dialect", "names"),
    [
        ("duckdb", '"true label", "a ""score"""'),
        ("postgres", '"true label", "a ""score"""'),
        ("bigquery", '`true label`, `a "score"`'),
        ("spark", '`true label`, `a "score"`'),
    ],
)
def test_names_are_quoted(dialect, names):
    text = sm.group_by(suite()).sql("t", dialect)
    quote = names[0]
    assert text == f"SELECT {names}, COUNT(*) AS {quote}n{quote} FROM t GROUP BY {names}"


def test_columns_are_those_that_are_read():
    slices = sm.Slices(suite(), by=[["country"], ["country", "day"]], unit="user")
    found = sm.group_by(slices)
    assert found.columns == ("true label", 'a "score"', "country", "day", "user")
    assert found.counts == "n"
    several = sm.MetricSet({"auc": sm.ROCAUC()}, columns={"y_score": ["p0", "p1"]})
    assert sm.group_by(several) == (("y_true", "p0", "p1"), "counts")


def test_what_cannot_be_grouped_is_refused():
    with pytest.raises(ValueError, match="'ndcg' does not take counted rows: a row of a ranking"):
        sm.group_by(sm.MetricSet({"ndcg": sm.NDCG()}))
    with pytest.raises(ValueError, match=r"columns 'p\*' are not known here"):
        sm.group_by(sm.MetricSet({"auc": sm.ROCAUC()}, columns={"y_score": "p*"}))
    with pytest.raises(TypeError, match="takes a set"):
        sm.group_by(sm.F1())
    with pytest.raises(ValueError, match="sql.dialect='duckdbb'.; did you mean 'duckdb'"):
        sm.group_by(suite()).sql("t", "duckdbb")


def test_live_takes_no_counts():
    with pytest.raises(ValueError, match="every event is one row"):
        sm.Live(suite())


def test_the_command_line_takes_counts(tmp_path):
    cli = pytest.importorskip("streammetrics.cli.evaluate", reason="needs the extra cli")
    path = tmp_path / "rows.csv"
    path.write_text("y,p,n\n1,1,3\n0,1,2\n0,0,5\n")
    result = cli.evaluate("binary", [str(path)], y_true="y", y_pred=["p"], counts="n")
    assert "10" in str(result)
