"""One machine: files and tables, the same bytes however many processes read them."""

from __future__ import annotations

import io
import os
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from engine_suites import Own
from prediction_files import store
from scripts import started

import streammetrics as sm
from streammetrics.engines import processes
from streammetrics.readers import formats
from streammetrics.readers.paths import ReadError

rng = np.random.default_rng(7)
N = 3000
P0 = rng.random(N)
TABLE = pa.table(
    {
        "label": rng.integers(0, 2, N),
        "score": rng.random(N).round(2),
        "weight": rng.integers(0, 4, N) / 2,
        "p0": P0,
        "p1": 1 - P0,
        "note": ["not read"] * N,
    }
)


def suite(**more):
    return sm.MetricSet(
        {"auc": sm.ROCAUC(max_bins=64), "f1": sm.F1(threshold=0.5), "mse": sm.MSE(), **more},
        columns={"y_true": "label", "y_score": "score", "y_pred": "score"},
    )


EXPECTED = suite().update(TABLE).to_bytes()


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "PIECE_ROWS", 500)
    return [
        store(TABLE.slice(index * 750, 750), tmp_path / f"{index}{ending}", rows=200)
        for index, ending in enumerate([".parquet", ".arrow", ".csv.gz", ".jsonl"])
    ]


WORKERS = [1, 2, pytest.param(3, marks=pytest.mark.long)]


@pytest.mark.parametrize("workers", WORKERS)
def test_files_give_the_bytes_of_one_pass(files, workers):
    forms = [files[0].parent, [os.fspath(path) for path in files], files, iter(files)]
    for data in forms if workers != 2 else forms[::3]:
        template = suite()
        ticks = []
        result = sm.evaluate(template, data, workers=workers, batch_rows=100, progress=ticks.append)
        assert result.to_bytes() == EXPECTED
        assert template == suite()
        assert sum(ticks) == N


@pytest.mark.long
@pytest.mark.parametrize("workers", WORKERS)
def test_tables_give_the_bytes_of_one_pass(workers):
    edges = np.linspace(0, N, 8).astype(int)
    shards = [TABLE.slice(a, b - a) for a, b in pairwise(edges)]
    kinds = [
        lambda t: {name: t[name].to_numpy() for name in t.column_names},
        lambda t: t,
        lambda t: t.to_pandas(),
        pl.from_arrow,
        lambda t: t.to_batches()[0],
    ]
    tables = [kinds[i % len(kinds)](shard) for i, shard in enumerate(shards)]
    forms = [iter(tables), tables, tuple(tables), [*tables, TABLE.slice(0, 0)]]
    for data in forms if workers != 2 else forms[::3]:
        assert sm.evaluate(suite(), data, workers=workers).to_bytes() == EXPECTED


def test_one_table_one_path_and_nothing(files):
    assert sm.evaluate(suite(), TABLE).to_bytes() == EXPECTED
    assert sm.evaluate(suite(), TABLE.to_pandas(), workers=4).to_bytes() == EXPECTED
    first = suite().update(TABLE.slice(0, 750))
    assert sm.evaluate(suite(), files[0]) == first
    assert sm.evaluate(suite(), []) == sm.evaluate(suite(), iter([])) == suite()


@pytest.mark.long
def test_tables_and_files_together(files):
    data = [files[0], TABLE.slice(750, 1500), *files[3:]]
    for workers in (1, 2):
        assert sm.evaluate(suite(), data, workers=workers).to_bytes() == EXPECTED


def test_tables_of_an_iterator_are_taken_one_by_one():
    alive = []

    class Table(dict):
        def __del__(self):
            alive.remove(id(self))

    def stream():
        for start in range(0, N, 100):
            part = TABLE.slice(start, 100)
            table = Table({name: part[name] for name in ("label", "score")})
            alive.append(id(table))
            assert len(alive) <= 3  # the next, the last, and what iterators still hold
            yield table

    assert sm.evaluate(suite(), stream(), workers=2).to_bytes() == EXPECTED


def test_weights_renamed_and_by_their_own_name(tmp_path):
    names = {"values": "score", "sample_weight": "sample_weight"}
    weighted = sm.MetricSet({"mean": sm.Mean()}, columns=names)
    table = TABLE.rename_columns({"weight": "sample_weight"})
    path = store(table, tmp_path / "t.parquet")
    expected = weighted.copy().update(table)
    assert sm.evaluate(weighted, path) == sm.evaluate(weighted, table) == expected
    renamed = sm.MetricSet(
        {"mean": sm.Mean()}, columns={"values": "score", "sample_weight": "weight"}
    )
    with pytest.raises(sm.InvalidBatchError, match="no column 'weight'"):
        sm.evaluate(renamed, path)


def test_several_columns_are_a_matrix_of_scores(tmp_path):
    path = store(TABLE, tmp_path / "t.parquet")
    scores = np.column_stack([TABLE["p0"].to_numpy(), TABLE["p1"].to_numpy()])
    for text in ("p0,p1", "p*"):
        wide = sm.MetricSet({"auc": sm.ROCAUC()}, columns={"y_true": "label", "y_score": text})
        expected = wide.copy().update({"label": TABLE["label"].to_numpy(), text: scores})
        assert sm.evaluate(wide, path) == expected


def test_text_is_read_by_what_the_metrics_take(tmp_path):
    ranking = sm.MetricSet({"mrr": sm.MRR(), "n": sm.Count()}, columns={"values": "relevance"})
    path = tmp_path / "r.csv"
    path.write_text("query,doc,relevance,score\n007,1,1,0.5\n7,1,0,0.25\n")
    result = sm.evaluate(ranking, path)
    assert result["mrr"].per_query().keys() == {"007", "7"}
    assert result["n"].compute() == 2


@pytest.mark.long
def test_a_users_own_metric(files):
    own = sm.MetricSet({"own": Own()}, columns={"values": "score"})
    result = sm.evaluate(own, files, workers=2)
    assert result == own.copy().update(TABLE)
    assert result["own"].compute() == sm.Mean().update(TABLE["score"]).compute()


OWN = """
import sys
import streammetrics as sm

class Twice(sm.Metric):
    def statistics(self):
        return sm.Mean().statistics()

    def readout(self, mean):
        return 2 * sm.Mean().readout(mean)

    def update(self, values):
        return self.feed({"values": values})

if __name__ == "__main__":
    suite = sm.MetricSet({"twice": Twice()})
    print(sm.evaluate(suite, [{"values": [1.0]}, {"values": [2.0, 3.0]}], workers=2).compute())
"""


@pytest.mark.long
def test_a_metric_that_a_script_defines(tmp_path):
    (tmp_path / "run.py").write_text(OWN)
    process = started(tmp_path / "run.py")
    assert process.communicate(timeout=60) == ("{'twice': 4.0}\n", "")


# --- what cannot be taken ------------------------------------------------------------------------


def test_a_set_that_was_fed_is_refused():
    fed = suite().update(TABLE.slice(0, 5))
    before = fed.to_bytes()
    with pytest.raises(sm.IncompatibleMetricsError, match="already seen 5 rows.*reset"):
        sm.evaluate(fed, TABLE)
    assert fed.to_bytes() == before
    with pytest.raises(TypeError, match="is not a MetricSet"):
        sm.evaluate("ROCAUC", TABLE)


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_a_part_that_lacks_a_column(tmp_path, workers):
    good = store(TABLE, tmp_path / "a.parquet")
    bad = store(TABLE.drop_columns("score"), tmp_path / "b.parquet")
    template = suite()
    with pytest.raises(sm.InvalidBatchError, match=r"b.parquet: no column 'score'; there are: lab"):
        sm.evaluate(template, [good, bad], workers=workers)
    with pytest.raises(sm.InvalidBatchError, match="^table 1: no column 'score'; there are: 'lab"):
        sm.evaluate(template, [TABLE, TABLE.drop_columns("score")], workers=workers)
    assert template == suite()


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_the_row_is_that_of_the_file_or_table(tmp_path, workers, monkeypatch):
    monkeypatch.setattr(formats, "PIECE_ROWS", 500)
    score = TABLE["score"].to_numpy().copy()
    score[[1234, 2750]] = np.nan
    table = TABLE.set_column(1, "score", pa.array(score))
    path = store(table, tmp_path / "a.parquet", rows=250)
    for data, where in ((path, "file"), ([TABLE, table], "table")):
        with pytest.raises(sm.InvalidBatchError, match=rf"row 1234 of the {where}") as caught:
            sm.evaluate(suite(), data, workers=workers, batch_rows=100)
        assert (caught.value.column, caught.value.row) == ("score", 1234)


def test_what_is_no_data(tmp_path):
    with pytest.raises(TypeError, match="an int is neither a path or table"):
        sm.evaluate(suite(), 5)
    with pytest.raises(TypeError, match="item 1 is an ndarray"):
        sm.evaluate(suite(), [TABLE, np.zeros(3)])
    with pytest.raises(ReadError, match=r"nowhere.csv: no such file or folder"):
        sm.evaluate(suite(), tmp_path / "nowhere.csv")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ReadError, match=r"broken.parquet: cannot be read as Parquet"):
        sm.evaluate(suite(), tmp_path / "broken.parquet")
    path = store(TABLE, tmp_path / "a.parquet")
    with pytest.raises(ReadError, match="named twice"):
        sm.evaluate(suite(), [path, path])
    with pytest.raises(ValueError, match="workers=0"):
        sm.evaluate(suite(), TABLE, workers=0)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("workers", 1.5, "an integer, 1 or above"),
        ("workers", "2", "an integer, 1 or above"),
        ("workers", None, "an integer, 1 or above"),
        ("workers", True, "an integer, 1 or above"),
        ("batch_rows", None, "an integer, 1 or above"),
        ("format", 1, "a string or None"),
        ("delimiter", 5, "a string or None"),
        ("progress", 5, "a function of the number of rows read"),
    ],
)
def test_options_of_another_type_are_refused_by_name(tmp_path, name, value, expected):
    path = store(TABLE, tmp_path / "a.csv")
    with pytest.raises(TypeError, match=rf"^{name}={value!r}: expected {expected}$"):
        sm.evaluate(suite(), path, **{name: value})


def test_files_need_pyarrow(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("streammetrics.readers.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'pyarrow', or 'streammetrics\[io\]'"):
        sm.evaluate(suite(), tmp_path / "a.parquet")
    table = pd.DataFrame({"label": [0, 1], "score": [0.1, 0.2]})
    assert sm.evaluate(suite(), table)["auc"].compute() == 1.0


# --- pieces --------------------------------------------------------------------------------------


class Rows:
    """A piece that needs no file."""

    once = False
    unit = "file"

    def __init__(self, *batches):
        self.batches = batches
        self.rows = sum(map(len, batches))

    def __str__(self):
        return "memory"

    def first_row(self):
        return 100

    def tables(self, batch_rows):
        for values in self.batches:
            yield len(values), {"y_true": values, "y_pred": [1] * len(values)}


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_a_piece_that_fails_names_itself_and_its_row(workers):
    pieces = [Rows([1, 1, 1], [0, 0.5])] * 2
    with pytest.raises(sm.InvalidBatchError, match="memory: y_true .* row 104 of the file"):
        sm.evaluate(sm.MetricSet({"acc": sm.Accuracy()}), pieces, workers=workers)


def test_workers_have_no_threads_for_linear_algebra_unless_told(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with processes._one_thread():
        assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
        assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "OPENBLAS_NUM_THREADS" not in os.environ
    assert os.environ["OMP_NUM_THREADS"] == "3"


@pytest.mark.parametrize("data", [b"t.csv", io.BytesIO(b"label\n1\n")])
def test_bytes_and_open_files_are_no_names(data):
    with pytest.raises(TypeError, match="neither a path nor a table: pass a file's name as text"):
        sm.evaluate(suite(), data)


def test_an_empty_name_is_none():
    with pytest.raises(ReadError, match="^'' names no file$"):
        sm.evaluate(suite(), "")


def test_a_dictionary_of_metrics_is_read_as_a_set():
    table = {"y_true": [1.0, 2.0], "y_pred": [1.0, 4.0]}
    expected = sm.evaluate(sm.MetricSet({"mae": sm.MAE()}), table)
    assert sm.evaluate({"mae": sm.MAE()}, table) == expected
