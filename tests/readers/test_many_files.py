"""Files of one data set: their columns are compared before the first is read."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from prediction_files import store
from reading import fed, rows, suite

import streammetrics as sm

TABLE = rows(400)
HIVE = {"y_true": "label", "y_score": "score", "sample_weight": "month"}


def weighed(seed=0):
    rng = np.random.default_rng(seed)
    return rows(400, seed).append_column("doc", pa.array(rng.integers(0, 9, 400)))


def both_ways(paths):
    return itertools.permutations(paths)


def test_the_order_of_files_and_of_columns_does_not_matter(tmp_path):
    tables = [TABLE, rows(0), rows(300, 1).select(["score", "label"]), rows(200, 2)]
    tables[3] = tables[3].append_column("more", pa.array(["x"] * 200))
    names = ["a.parquet", "b.csv", "c.jsonl", "d.arrow"]
    paths = [store(t, tmp_path / n) for t, n in zip(tables, names, strict=True)]
    for order in itertools.permutations(paths):
        assert sm.evaluate(suite(), list(order)) == fed(*tables)


def test_a_column_that_may_be_left_out_in_some_files_only(tmp_path):
    ranking = sm.MetricSet({"ndcg": sm.NDCG(k=5)})
    table = pa.table(
        {"query": [1, 1, 2], "relevance": [1, 0, 1], "score": [0.1, 0.2, 0.3], "doc": [1, 2, 3]}
    )
    paths = [
        store(table, tmp_path / "a.parquet"),
        store(table.drop_columns("doc"), tmp_path / "b.parquet"),
    ]
    for order in both_ways(paths):
        with pytest.raises(
            sm.InvalidBatchError, match=r"a.parquet: has a column 'doc', and .*b.parquet has none"
        ):
            sm.evaluate(ranking, list(order))


def test_a_glob_that_means_other_columns_in_another_file(tmp_path):
    three = pa.table({"label": [0, 1, 2], **{f"p{i}": [0.2, 0.3, 0.5] for i in range(3)}})
    paths = [
        store(three.drop_columns("p2"), tmp_path / "a.parquet"),
        store(three, tmp_path / "b.parquet"),
    ]
    metrics = sm.MetricSet(
        {"top": sm.TopKAccuracy(k=1)}, columns={"y_true": "label", "y_score": "p*"}
    )
    for order in both_ways(paths):
        with pytest.raises(
            sm.InvalidBatchError,
            match=r"'p\*' is p0, p1.* here, but p0, p1.* in .*name them",
        ) as caught:
            sm.evaluate(metrics, list(order))
        assert {path.name for path in paths if path.name in str(caught.value)} == {
            "a.parquet",
            "b.parquet",
        }


def test_weights_count_only_where_they_are_named(tmp_path):
    weights = pa.array(np.linspace(0.5, 2, 400))
    heavy = TABLE.append_column("sample_weight", weights)
    paths = [store(TABLE, tmp_path / "a.parquet"), store(heavy, tmp_path / "b.parquet")]
    for order in both_ways(paths):
        with pytest.raises(sm.InvalidBatchError, match=r"a.parquet: no column 'sample_weight'"):
            sm.evaluate(
                suite(y_true="label", y_score="score", sample_weight="sample_weight"), list(order)
            )


def test_weights_that_nothing_names_are_told_of(tmp_path):
    heavy = TABLE.append_column("sample_weight", pa.array(np.linspace(0.5, 2, 400)))
    paths = [store(TABLE, tmp_path / "a.parquet"), store(heavy, tmp_path / "b.parquet")]
    for order in both_ways(paths):
        with pytest.warns(UserWarning, match="b.parquet: the column 'sample_weight' is not read"):
            state = sm.evaluate(suite(), list(order))
        assert state == fed(TABLE, TABLE)
    named = {"y_true": "label", "y_score": "score", "sample_weight": "sample_weight"}
    assert sm.evaluate(suite(**named), paths[1]) == fed(heavy, **named)


def test_whole_and_other_numbers_in_one_column(tmp_path):
    ones = pa.table({"label": [0, 1, 1], "score": [0, 1, 1]})
    paths = [store(TABLE, tmp_path / "a.parquet"), store(ones, tmp_path / "b.parquet")]
    for order in both_ways(paths):
        assert sm.evaluate(suite(), list(order)) == fed(TABLE, ones)


# --- columns of the path -------------------------------------------------------------------------


@pytest.mark.long
def test_folders_are_columns(tmp_path):
    parts = {"country=DE/month=1": rows(300, 1), "country=FR/month=12": rows(200, 2)}
    tables = []
    for folder, table in parts.items():
        (tmp_path / folder).mkdir(parents=True)
        country, month = folder[8:10], int(folder.rpartition("=")[2])
        for name in ("a.parquet", "b.csv", "c.jsonl", "d.arrow"):
            store(table, tmp_path / folder / name)
            weights = pa.array([month] * len(table))
            countries = pa.array([country] * len(table))
            tables.append(table.append_column("month", weights).append_column("country", countries))
    assert sm.evaluate(suite(**HIVE), tmp_path) == fed(*tables, **HIVE)
    assert sm.evaluate(suite(**HIVE), tmp_path, workers=2) == fed(*tables, **HIVE)
    alike = sm.MetricSet(
        {"acc": sm.Accuracy(), "count": sm.ConfusionMatrix()},
        columns={"y_true": "country", "y_pred": "country"},
    )
    result = sm.evaluate(alike, tmp_path)
    for table in tables:
        alike.update(table)
    assert result == alike


def test_values_of_folders_are_text_unless_all_of_them_spell_numbers(tmp_path):
    labels = sm.MetricSet({"acc": sm.Accuracy()}, columns={"y_true": "key", "y_pred": "key"})
    for value in ("1", "007"):
        (tmp_path / f"key={value}").mkdir()
        store(TABLE, tmp_path / f"key={value}" / "a.parquet")
    table = {"key": [1] * 400 + [7] * 400}
    assert sm.evaluate(labels, tmp_path) == labels.copy().update(table)
    (tmp_path / "key=a%2Fb c'").mkdir()
    store(rows(1), tmp_path / "key=a%2Fb c'" / "a.parquet")
    table = {"key": ["1"] * 400 + ["007"] * 400 + ["a/b c'"]}
    assert sm.evaluate(labels, tmp_path) == labels.copy().update(table)


def test_the_folder_of_no_value_is_a_null(tmp_path):
    for value in ("1", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / f"month={value}").mkdir()
        store(TABLE, tmp_path / f"month={value}" / "a.parquet")
    with pytest.raises(sm.InvalidBatchError, match=r"month is missing .* 400 rows"):
        sm.evaluate(suite(**HIVE), tmp_path)


def test_a_file_has_the_last_word_on_its_columns(tmp_path):
    (tmp_path / "label=7").mkdir()
    path = store(TABLE, tmp_path / "label=7" / "a.parquet")
    assert sm.evaluate(suite(), path) == fed(TABLE)


def test_globs_of_columns_take_none_of_the_path(tmp_path):
    (tmp_path / "part=0").mkdir()
    table = pa.table({"label": [0, 1], "p0": [0.25, 0.5], "p1": [0.75, 0.5]})
    store(table, tmp_path / "part=0" / "a.parquet")
    metrics = sm.MetricSet(
        {"top": sm.TopKAccuracy(k=1)}, columns={"y_true": "label", "y_score": "p*"}
    )
    assert sm.evaluate(metrics, tmp_path)["top"].n_rows == 2


def test_numbers_that_a_path_does_not_spell(tmp_path):
    (tmp_path / "month=May").mkdir()
    store(TABLE, tmp_path / "month=May" / "a.parquet")
    with pytest.raises(sm.InvalidBatchError, match=r"month holds 'May' in the path; numbers are"):
        sm.evaluate(suite(**HIVE), tmp_path)
