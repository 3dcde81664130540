"""Dask: any collection, in any partitions, on any scheduler, gives the bytes of one local pass."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from engine_suites import exact_suite as metrics
from engine_suites import prepared_rows, prepared_suite, weighted_rows

import streammetrics as sm

REASON = "needs dask: pip install 'streammetrics[engines]'"
dask = pytest.importorskip("dask", reason=REASON)
distributed = pytest.importorskip("distributed", reason=REASON)
db = pytest.importorskip("dask.bag", reason=REASON)
dd = pytest.importorskip("dask.dataframe", reason=REASON)

from streammetrics.engines.dask import evaluate, tap  # noqa: E402 - it needs Dask


def table(n=300):
    return pd.DataFrame({"extra": [f"row {i}" for i in range(n)], **weighted_rows(n)})


def pieces(rows, n):
    return [rows.iloc[part] for part in np.array_split(np.arange(len(rows)), n)]


def arrays(rows):
    return {name: rows[name].to_numpy() for name in rows}


def frame(parts):
    return dd.from_delayed([dask.delayed(part) for part in parts], meta=parts[0].iloc[:0])


def bag(parts):
    return db.from_sequence(parts, npartitions=len(parts))


def bag_of_arrays(parts):
    return db.from_sequence(parts, npartitions=len(parts)).map(arrays)


def bag_of_halves(parts):
    """One table per item, two items per partition, as Arrow tables made on the worker."""
    halves = [half for part in parts for half in pieces(part, 2)]
    return db.from_sequence(halves, partition_size=2).map(pa.Table.from_pandas)


def delayed_tables(parts):
    return [dask.delayed(part) for part in parts]


def delayed_arrays(parts):
    return [dask.delayed(arrays)(part) for part in parts]


def delayed_lists(parts):
    return [dask.delayed(pieces)(part, 3) for part in parts]


KINDS = [
    frame, bag, bag_of_arrays, bag_of_halves, delayed_tables, delayed_arrays, delayed_lists
]  # fmt: skip
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


@pytest.mark.parametrize("collection", [frame, bag])
def test_objects_of_an_author_are_prepared_in_the_tasks(collection):
    rows = pd.DataFrame(prepared_rows())
    with dask.config.set({"dataframe.convert-string": False}):  # which makes text of objects
        found = evaluate(prepared_suite(), collection(pieces(rows, 3)))
    assert found.to_bytes() == prepared_suite().update(prepared_rows()).to_bytes()


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


@kinds
def test_two_worker_processes(client, kind):
    rows, suite = table(), metrics()
    local = suite.copy().update(rows)
    before = suite.to_bytes()
    empty = rows.iloc[:0]
    result = evaluate(suite, kind([empty, *pieces(rows, 5), empty]), split_every=3)
    assert result.to_bytes() == local.to_bytes()
    assert result.compute() == local.compute()
    assert suite.to_bytes() == before


@kinds
@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
@pytest.mark.parametrize(("n_rows", "n_partitions"), [(300, 1), (300, 20), (5, 12)])
def test_any_partitions_on_other_schedulers(kind, scheduler, n_rows, n_partitions):
    rows = table(n_rows)
    with dask.config.set(scheduler=scheduler):
        result = evaluate(metrics(), kind(pieces(rows, n_partitions)))
    assert result.to_bytes() == metrics().update(rows).to_bytes()


class SaysWhere:
    """Writes down the process that makes a table."""

    def __init__(self, path):
        self.path = path

    def __call__(self, rows):
        self.path.write_text(str(os.getpid()))
        return rows


@pytest.mark.parametrize("processes", [False, True])
def test_without_a_client_the_collection_runs_where_it_does_by_default(processes, tmp_path):
    rows, says = table(), SaysWhere(tmp_path / "pid")
    collection = bag([rows]).map(says) if processes else frame([rows]).map_partitions(says)
    result = evaluate(metrics(), collection)
    assert result.to_bytes() == metrics().update(rows).to_bytes()
    assert (int(says.path.read_text()) != os.getpid()) == processes


@pytest.mark.parametrize("split_every", [2, 100])
def test_any_merge_tree(client, split_every):
    rows = table()
    result = evaluate(metrics(), frame(pieces(rows, 17)), split_every=split_every)
    assert result.to_bytes() == metrics().update(rows).to_bytes()


@pytest.mark.parametrize(
    "empty",
    [
        pytest.param(list, id="no delayed"),
        pytest.param(lambda: db.from_delayed([]), id="no partitions"),
        pytest.param(lambda: db.from_sequence([]), id="no items"),
        pytest.param(lambda: [dask.delayed(list)()], id="no tables"),
        pytest.param(lambda: dd.from_pandas(table(0), npartitions=1), id="no rows"),
        pytest.param(lambda: frame(pieces(table(), 3)).query("label > 1"), id="none left"),
    ],
)
def test_no_rows(client, empty):
    suite = metrics()
    result = evaluate(suite, empty())
    assert result is not suite
    assert result.to_bytes() == suite.to_bytes()


def test_parquet_and_a_collection_in_memory(client, tmp_path):
    rows = table()
    for number, part in enumerate(pieces(rows, 4)):
        part.to_parquet(tmp_path / f"part-{number}.parquet")
    files = dd.read_parquet(tmp_path)
    expected = metrics().update(rows).to_bytes()
    assert evaluate(metrics(), files).to_bytes() == expected
    assert evaluate(metrics(), files.persist()).to_bytes() == expected


class Reader:
    """A source of partitions that leaves a file for each one it makes."""

    def __init__(self, folder, parts):
        self.folder, self.parts = folder, parts

    def __call__(self, number, columns=None):
        (self.folder / f"{number}-{uuid.uuid4().hex}").write_text(" ".join(columns or ["all"]))
        return self.parts[number] if columns is None else self.parts[number][columns]

    @property
    def runs(self):
        return sorted(path.name.partition("-")[0] for path in self.folder.iterdir())

    @property
    def columns_read(self):
        return {path.read_text() for path in self.folder.iterdir()}

    def frame(self):
        meta = self.parts[0].iloc[:0]
        return dd.from_map(self, range(len(self.parts)), meta=meta)


def test_other_columns_are_not_read(client, tmp_path):
    rows = table()
    reader = Reader(tmp_path, pieces(rows, 3))
    result = evaluate(metrics(), reader.frame())
    assert result.to_bytes() == metrics().update(rows).to_bytes()
    assert reader.runs == ["0", "1", "2"]
    (read,) = reader.columns_read
    assert set(read.split()) == {"label", "score", "weight"}


@pytest.mark.parametrize("name", ["label", "score", "weight"])
def test_a_missing_column_of_a_frame_raises_before_the_job(client, tmp_path, name):
    reader = Reader(tmp_path, [part.drop(columns=name) for part in pieces(table(), 3)])
    with pytest.raises(sm.InvalidBatchError, match=f"no column '{name}'"):
        evaluate(metrics(), reader.frame())
    assert reader.runs == []


@pytest.mark.parametrize("kind", [bag, delayed_arrays])
def test_a_missing_column_elsewhere_names_the_partition(client, kind):
    first, second = pieces(table(), 2)
    with pytest.raises(sm.InvalidBatchError, match="partition 1: no column 'score'"):
        evaluate(metrics(), kind([first, second.drop(columns="score")]))


def test_a_set_that_has_been_fed_raises_before_the_job(client, tmp_path):
    rows = table()
    reader = Reader(tmp_path, pieces(rows, 3))
    with pytest.raises(sm.IncompatibleMetricsError, match="already seen 300 rows"):
        evaluate(metrics().update(rows), reader.frame())
    assert reader.runs == []


@pytest.mark.parametrize("kind", [frame, bag, delayed_tables])
def test_bad_rows_name_partition_and_row(client, kind):
    rows, suite = table(), metrics()
    rows.loc[205, "score"] = np.nan
    before = suite.to_bytes()
    message = r"partition 2: score is missing \(NaN or null\) in 1 row, first in row 5 "
    with pytest.raises(sm.InvalidBatchError, match=message) as raised:
        evaluate(suite, kind(pieces(rows, 3)))
    assert (raised.value.column, raised.value.row) == ("score", 5)
    assert suite.to_bytes() == before
    # A repaired source is computed anew.
    assert evaluate(suite, kind(pieces(table(), 3))) == suite.copy().update(table())


def test_the_row_is_counted_from_the_beginning_of_the_partition(client):
    rows = table()
    rows.loc[270, "score"] = np.nan  # the third partition, in the second table
    with pytest.raises(sm.InvalidBatchError, match="partition 2: .* first in row 70 "):
        evaluate(metrics(), bag_of_halves(pieces(rows, 3)))


def test_partitions_with_labels_of_different_kinds(client):
    parts = pieces(table(), 2)
    parts[1] = parts[1].assign(label=np.where(parts[1]["label"] > 0, "yes", "no"))
    suite = sm.MetricSet(
        {"accuracy": sm.Accuracy()}, columns={"y_true": "label", "y_pred": "label"}
    )
    with pytest.raises(sm.IncompatibleMetricsError, match="different kinds of rows"):
        evaluate(suite, delayed_tables(parts))


def test_items_that_are_no_tables(client):
    with pytest.raises(sm.InvalidBatchError, match="partition 0: an int is not a table"):
        evaluate(metrics(), db.from_sequence([1, 2], npartitions=1))


@pytest.mark.parametrize("chosen", [0, 1])
def test_annotations_of_delayed_hold(client, tmp_path, chosen):
    address, pid = sorted(client.run(os.getpid).items())[chosen]
    rows = table()
    says = [SaysWhere(tmp_path / f"{number}") for number in range(6)]
    with dask.annotate(workers=[address]):
        collection = [
            dask.delayed(say, pure=False)(part)
            for say, part in zip(says, pieces(rows, 6), strict=True)
        ]
    assert evaluate(metrics(), collection).to_bytes() == metrics().update(rows).to_bytes()
    assert {int(say.path.read_text()) for say in says} == {pid}


def test_failures_of_the_source_stay_what_they_are(client):
    with pytest.raises(ZeroDivisionError, match="by zero"):
        evaluate(metrics(), [dask.delayed(divmod)(1, 0)])


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(table, id="pandas"),
        pytest.param(lambda: [table()], id="list of pandas"),
        pytest.param(lambda: dask.delayed(table()), id="one delayed"),
        pytest.param(lambda: dd.from_pandas(table(), npartitions=2)["label"], id="series"),
    ],
)
def test_other_collections_are_refused(wrong):
    with pytest.raises(TypeError, match="is no Dask collection of tables: pass a Dask DataFrame"):
        evaluate(metrics(), wrong())


def test_other_arguments_are_refused():
    collection = frame(pieces(table(), 2))
    with pytest.raises(ValueError, match="split_every=1, but a merge takes at least 2"):
        evaluate(metrics(), collection, split_every=1)
    with pytest.raises(TypeError, match="a ROCAUC is not a MetricSet"):
        evaluate(sm.ROCAUC(), collection)


@pytest.mark.parametrize("n_files", [1, 2, 5])
@pytest.mark.parametrize("scheduler", ["client", "synchronous"])
def test_files_however_dask_joins_them(request, tmp_path, n_files, scheduler):
    for number, part in enumerate(pieces(table(), n_files)):
        part.to_parquet(tmp_path / f"{number}.parquet")
    expected = metrics().update(table()).to_bytes()
    if scheduler == "client":
        request.getfixturevalue("client")
    with dask.config.set({} if scheduler == "client" else {"scheduler": scheduler}):
        read = dd.read_parquet(tmp_path)
        assert evaluate(metrics(), read).to_bytes() == expected
        assert evaluate(metrics(), read.repartition(npartitions=1)).to_bytes() == expected
        assert evaluate(metrics(), read[read["score"] >= 0]).to_bytes() == expected


@pytest.mark.parametrize("kind", [frame, bag, delayed_tables], ids=lambda kind: kind.__name__)
def test_the_set_is_shipped_once_however_many_partitions(client, monkeypatch, kind):
    shipped = []
    plain = sm.MetricSet.__reduce__
    monkeypatch.setattr(
        sm.MetricSet, "__reduce__", lambda suite: (shipped.append(suite), plain(suite))[1]
    )
    counts = []
    for n_partitions in (2, 40):
        shipped.clear()
        # The scheduler lives in this process as well; workers pickle states in their own.
        evaluate(metrics(), kind(pieces(table(), n_partitions)))
        counts.append(len(shipped))
    assert 1 <= counts[0] == counts[1]


class KilledOnce(Reader):
    """Kills the worker process that reads the last partition first."""

    def __call__(self, number, columns=None):
        rows = super().__call__(number, columns)
        killed = self.folder.parent / "killed"
        if number == len(self.parts) - 1 and not killed.exists():
            killed.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return rows


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_worker_killed_in_the_job_changes_no_byte(client, tmp_path):
    runs = tmp_path / "runs"
    runs.mkdir()
    rows = table()
    reader = KilledOnce(runs, pieces(rows, 6))
    workers = set(client.run(os.getpid).values())
    result = evaluate(metrics(), reader.frame(), split_every=2)
    assert result.to_bytes() == metrics().update(rows).to_bytes()

    victim = int((tmp_path / "killed").read_text())
    assert victim in workers
    assert reader.runs.count("5") == 2
    client.wait_for_workers(2)
    assert victim not in client.run(os.getpid).values()


@pytest.mark.parametrize("n_partitions", [1, 7])
def test_a_tap_lets_all_rows_through_and_counts_them_in_one_pass(client, tmp_path, n_partitions):
    runs = tmp_path / "runs"
    runs.mkdir()
    rows = table()
    reader = Reader(runs, pieces(rows, n_partitions))
    tapped, ledger = tap(reader.frame(), metrics())
    came, ledger = dask.compute(tapped, ledger)
    pd.testing.assert_frame_equal(came.astype(rows.dtypes), rows)
    assert ledger.merged().to_bytes() == metrics().update(rows).to_bytes()
    assert len(ledger) == n_partitions
    assert sorted(reader.runs) == sorted(map(str, range(n_partitions)))


def test_a_tap_before_a_write_and_a_filter(client, tmp_path):
    rows = table()
    tapped, ledger = tap(frame(pieces(rows, 5)), metrics())
    written = tapped[tapped["label"] == 1].to_parquet(tmp_path / "rows", compute=False)
    _, ledger = dask.compute(written, ledger)
    assert len(pd.read_parquet(tmp_path / "rows")) == rows["label"].sum()
    assert ledger.merged().to_bytes() == metrics().update(rows).to_bytes()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_tap_counts_once_what_a_killed_worker_had(client, tmp_path):
    runs = tmp_path / "runs"
    runs.mkdir()
    rows = table()
    reader = KilledOnce(runs, pieces(rows, 6))
    tapped, ledger = tap(reader.frame(), metrics())
    came, ledger = dask.compute(tapped, ledger)
    assert (tmp_path / "killed").exists()
    pd.testing.assert_frame_equal(came.astype(rows.dtypes), rows)
    assert ledger.merged().to_bytes() == metrics().update(rows).to_bytes()
    client.wait_for_workers(2)


def test_a_tap_refuses_what_evaluate_refuses():
    rows = table()
    with pytest.raises(sm.IncompatibleMetricsError, match="already seen"):
        tap(frame([rows]), metrics().update(rows))
    with pytest.raises(sm.InvalidBatchError, match="no column 'score'"):
        tap(frame([rows.drop(columns="score")]), metrics())
    rows.loc[250, "score"] = np.nan
    _, ledger = tap(frame(pieces(rows, 3)), metrics())
    with pytest.raises(sm.InvalidBatchError, match="partition 2: score is .* row 50 of the shard"):
        ledger.compute(scheduler="sync")


def test_without_dask_the_import_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.bag", None)
    monkeypatch.delitem(sys.modules, "streammetrics.engines.dask")
    with pytest.raises(ImportError, match=r"dask\[dataframe\] is needed: pip install"):
        importlib.import_module("streammetrics.engines.dask")
