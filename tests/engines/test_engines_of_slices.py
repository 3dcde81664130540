"""Slices run wherever a set does: the bytes are those of one pass."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streammetrics as sm


def slices():
    suite = sm.MetricSet({"auc": sm.ROCAUC(), "f1": sm.F1(threshold=0.5)})
    return sm.Slices(suite, by=[[], ["country"], ["country", sm.Bins("age", [30])]])


def table(n=2000):
    rng = np.random.default_rng(0)
    country = [None if key == "" else key for key in rng.choice(["DE", "FR", ""], n).tolist()]
    return pa.table(
        {
            "y_true": rng.integers(0, 2, n),
            "y_score": rng.random(n).round(2),
            "country": country,
            "age": rng.integers(0, 90, n),
        }
    )


@pytest.fixture
def files(tmp_path):
    for number in range(4):
        pq.write_table(table().slice(number * 500, 500), tmp_path / f"{number}.parquet")
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_files_give_the_bytes_of_one_pass(files, workers):
    expected = slices().update(table())
    assert sm.evaluate(slices(), files, workers=workers, batch_rows=300) == expected


def test_csv_and_folders_give_the_bytes_of_one_pass(tmp_path):
    from pyarrow import csv

    rows = table().drop_columns("country")
    suite = sm.MetricSet({"f1": sm.F1(threshold=0.5)})
    empty = sm.Slices(suite, by=[["country", sm.Bins("age", [30])]])
    for country in ("DE", "FR"):
        folder = tmp_path / f"country={country}"
        folder.mkdir()
        csv.write_csv(rows, folder / "a.csv")
    both = [rows.append_column("country", pa.array([c] * 2000)) for c in ("DE", "FR")]
    assert sm.evaluate(empty, tmp_path) == empty.copy().update(pa.concat_tables(both))


def test_a_ledger_counts_shards_once():
    ledger, expected = sm.Ledger(), slices().update(table())
    for number in (0, 1, 0):
        shard = slices().update(table().slice(number * 1000, 1000))
        ledger.merge(sm.Ledger().add(f"shard {number}", shard, 1))
    assert sm.from_bytes(ledger.to_bytes()).merged() == expected


def test_dask_gives_the_bytes_of_one_pass():
    dask = pytest.importorskip("dask.dataframe")
    from streammetrics.engines.dask import evaluate

    frame = dask.from_pandas(table().to_pandas(), npartitions=3)
    assert evaluate(slices(), frame) == slices().update(table())
