"""Tables that come in batches, and matrices of several columns, in a set and in `evaluate`."""

from __future__ import annotations

import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from prediction_files import store
from reading import fed, rows, suite

import streammetrics as sm

TABLE = rows(5000).append_column('un"used', pa.array(["x"] * 5000))
BAD = TABLE.set_column(1, "score", pa.array([0.5] * 4321 + [np.nan] + [0.5] * 678))


def lazy(table, _):
    return pl.from_arrow(table).lazy()


def dataset(table, tmp_path):
    (tmp_path / "data").mkdir()
    store(table.slice(0, 3000), tmp_path / "data" / "a.parquet")
    store(table.slice(3000), tmp_path / "data" / "b.parquet")
    return ds.dataset(tmp_path / "data")


def reader(table, _):
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=700))


def relation(table, _):
    return duckdb.from_arrow(table)


STREAMS = [lazy, dataset, reader, relation]


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_gives_the_state_of_its_table(tmp_path, stream):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state = suite().update(stream(TABLE, tmp_path))
    assert state == fed(TABLE)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("among", [False, True])
def test_streams_are_evaluated(tmp_path, stream, among):
    data = stream(TABLE, tmp_path)
    if among:
        path = store(TABLE, tmp_path / "a.csv")
        assert sm.evaluate(suite(), [TABLE, data, path], workers=2) == fed(TABLE, TABLE, TABLE)
    else:
        assert sm.evaluate(suite(), data) == fed(TABLE)


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_is_taken_whole_or_not_at_all(tmp_path, stream):
    state = fed(TABLE.slice(0, 10))
    before = state.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=r"score is .* row 4321 of the table") as caught:
        state.update(stream(BAD, tmp_path))
    assert state.to_bytes() == before
    assert (caught.value.column, caught.value.row) == ("score", 4321)


def test_a_reader_that_breaks_changes_nothing():
    def batches():
        yield from TABLE.slice(0, 1000).to_batches()
        raise RuntimeError("the network is gone")

    state = fed(TABLE.slice(0, 10))
    before = state.to_bytes()
    with pytest.raises(RuntimeError, match="the network is gone"):
        state.update(pa.RecordBatchReader.from_batches(TABLE.schema, batches()))
    assert state.to_bytes() == before


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_without_a_column(tmp_path, stream):
    data = stream(TABLE.drop_columns("score"), tmp_path)
    with pytest.raises(sm.InvalidBatchError, match="^no column 'score'"):
        suite().update(data)
    with pytest.raises(sm.InvalidBatchError, match="^table 1: no column 'score'"):
        sm.evaluate(suite(), [TABLE, data])


# --- matrices ------------------------------------------------------------------------------------

SCORES = np.random.default_rng(3).dirichlet(np.ones(11), 200)
LABELS = np.random.default_rng(4).integers(0, 11, 200)
WIDE = pa.table({"label": LABELS, **{f"p{i}": SCORES[:, i] for i in range(11)}, "prior": LABELS})
NAMES = [f"p{i}" for i in range(11)]


def multiclass(scores):
    metrics = {"auc": sm.ROCAUC(average="macro"), "top": sm.TopKAccuracy(k=2), "loss": sm.LogLoss()}
    return sm.MetricSet(metrics, columns={"y_true": "label", "y_score": scores})


@pytest.mark.parametrize("scores", [NAMES, tuple(NAMES), ",".join(NAMES), "p[0-9]*"])
@pytest.mark.parametrize(
    "table",
    [
        WIDE,
        WIDE.to_batches()[0],
        WIDE.to_pandas(),
        pl.from_arrow(WIDE),
        pl.from_arrow(WIDE).lazy(),
        WIDE.to_pydict(),
        {name: np.asarray(WIDE[name]) for name in reversed(WIDE.column_names)},
    ],
)
def test_scores_in_several_columns(scores, table):
    expected = multiclass("y").update({"label": LABELS, "y": SCORES})
    found = multiclass(scores).update(table)
    assert found["auc"] == expected["auc"]
    assert found.compute() == expected.compute()
    assert sm.evaluate(multiclass(scores), table) == found
    assert sm.from_bytes(found.to_bytes()) == found


def test_tables_and_files_read_the_same_columns(tmp_path):
    path = store(WIDE, tmp_path / "a.parquet")
    for scores in (NAMES, "p[0-9]*"):
        assert sm.evaluate(multiclass(scores), path) == multiclass(scores).update(WIDE)


def test_a_glob_takes_no_column_that_another_input_names():
    table = pd.DataFrame({"p": LABELS, **{f"p{i}": SCORES[:, i] for i in range(11)}})
    metrics = sm.MetricSet({"top": sm.TopKAccuracy(k=2)}, columns={"y_true": "p", "y_score": "p*"})
    expected = multiclass("y").update({"label": LABELS, "y": SCORES})["top"]
    assert metrics.update(table)["top"].compute() == expected.compute()


def test_columns_by_name():
    expected = multiclass(NAMES).update(WIDE)
    by_name = {f"p{i}": SCORES[:, i] for i in range(11)}
    assert multiclass(NAMES).update(label=LABELS, **by_name) == expected
    with pytest.raises(sm.InvalidBatchError, match="no input is called 'q0'"):
        multiclass("p*").update(label=LABELS, q0=SCORES[:, 0], **by_name)


def test_columns_that_are_not_there_or_cannot_be_beside_each_other():
    with pytest.raises(sm.InvalidBatchError, match="no column 'p11'; did you mean 'p1"):
        multiclass([*NAMES, "p11"]).update(WIDE)
    with pytest.raises(sm.InvalidBatchError, match=r"no column matches 'q\*'; there are:"):
        multiclass("q*").update(WIDE)
    with pytest.raises(ValueError, match="'a,b' cannot stand in one, rename it"):
        multiclass(["a,b", "c"])
    with pytest.raises(ValueError, match=r"\[\] cannot be a list of columns: it is empty"):
        multiclass([])
    with pytest.raises(sm.InvalidBatchError, match="columns of unequal length"):
        multiclass("a,b").update({"label": [0, 1], "a": [0.5, 0.5], "b": [0.5]})


def twice(titles):
    """Return a table of columns of which two or more have one name, the first right, then wrong."""
    columns = [[1, 0], [1, 0], *[[0, 1]] * (len(titles) - 2)]
    return pa.Table.from_arrays([pa.array(column) for column in columns], titles)


def frame(table, _):
    columns = [column.to_numpy() for column in table.columns]
    return pd.DataFrame(np.column_stack(columns), columns=table.column_names)


def record_batch(table, _):
    return table.to_batches()[0]


def in_memory(table, _):
    return ds.dataset(table)


def selected(table, _):
    columns = (f'{c[0]} as "{n}"' for n, c in zip(table.column_names, table.columns, strict=True))
    return duckdb.sql(f"select {', '.join(columns)}")


TABLES = [frame, lambda table, _: table, record_batch, reader, selected]


@pytest.mark.parametrize("kind", [*TABLES, in_memory])
def test_two_columns_of_the_name_that_is_read_are_refused(kind):
    matrix = {"y_true": "l", "y_score": "s*"}
    for titles, columns in [("lss", {"y_true": "l", "y_score": "s"}), (["l", "s1", "s1"], matrix)]:
        data = kind(twice(list(titles)), None)
        empty = sm.MetricSet({"auc": sm.ROCAUC()}, columns=columns)
        with pytest.raises(sm.InvalidBatchError, match=r"^2 columns are called 's1?': rename"):
            empty.update(data)
        assert empty.n_rows == 0
        with pytest.raises(sm.InvalidBatchError, match=r"^table 0: 2 columns are called 's1?'"):
            sm.evaluate(empty, kind(twice(list(titles)), None))


@pytest.mark.parametrize("kind", [*TABLES, in_memory])
def test_two_columns_of_a_name_that_is_not_read_do_not_matter(kind):
    columns = {"y_true": "l", "y_pred": "s"}
    state = sm.MetricSet({"accuracy": sm.Accuracy()}, columns=columns)
    assert state.update(kind(twice(list("lszz")), None)).compute() == {"accuracy": 1.0}


def test_a_glob_means_numbered_columns_or_others_and_never_both():
    table = {"label": [0, 1], "p0": [0.9, 0.2], "p10": [0.1, 0.8], "predicted": [0, 1]}
    columns = {"y_true": "label", "y_pred": "p*"}
    suite = sm.MetricSet({"accuracy": sm.Accuracy()}, columns=columns)
    with pytest.raises(sm.InvalidBatchError, match=r"'p\*' means 2 numbered columns.*: predicted"):
        suite.update(table)
    assert suite.n_rows == 0
    columns["y_pred"] = "p[0-9]*"  # what the message says to write
    found = sm.MetricSet({"accuracy": sm.Accuracy()}, columns=columns).update(table)
    assert found.compute() == {"accuracy": 1.0}
    both = {"y_true": "is_*", "y_pred": "says_*"}  # names that end in numbers are no numbers
    labels = {f"{side}_{name}": [0, 1] for side in ("is", "says") for name in ("a1", "a2", "other")}
    several = sm.MetricSet({"subset": sm.SubsetAccuracy()}, columns=both).update(labels)
    assert several.compute() == {"subset": 1.0}
