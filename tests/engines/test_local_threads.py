"""Workers that are threads: the bytes, the first error, Ctrl-C, and which metrics they serve."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest
from prediction_files import store

import streammetrics as sm
from streammetrics.engines import processes, threads
from streammetrics.readers.files import TablePiece


def suite():
    return sm.MetricSet({"auc": sm.ROCAUC(), "f1": sm.F1(threshold=0.5), "loss": sm.LogLoss()})


def tables(n=12):
    rng = np.random.default_rng(0)
    return [{"y_true": rng.integers(0, 2, 70_000), "y_score": rng.random(70_000)} for _ in range(n)]


@pytest.fixture
def no_processes(monkeypatch):
    def refuse(*_):
        pytest.fail("a process was started")

    monkeypatch.setattr(processes, "shared", refuse)


def test_threads_give_the_bytes_of_one_pass(no_processes):
    data = tables()
    whole = suite()
    for table in data:
        whole.update(table)
    for workers in (2, 3, 50):
        told = []
        found = sm.evaluate(suite(), data, workers=workers, progress=told.append)
        assert found.to_bytes() == whole.to_bytes()
        assert sum(told) == 12 * 70_000


def test_files_whose_path_says_a_column_are_read_by_threads(no_processes, tmp_path):
    for label in (0, 1):
        folder = tmp_path / f"y_true={label}"
        folder.mkdir()
        store(
            pa.table({"y_score": np.random.default_rng(label).random(3000)}), folder / "a.parquet"
        )
    one, two = (sm.evaluate(suite(), tmp_path, workers=workers) for workers in (1, 2))
    assert one.n_rows == 6000
    assert one.to_bytes() == two.to_bytes()


def test_the_first_piece_that_fails_is_told(no_processes):
    data = tables()
    for place in (3, 7):
        data[place]["y_score"][5] = np.nan
    for _ in range(5):
        with pytest.raises(sm.InvalidBatchError, match="table 3: y_score is missing .* in 1 row"):
            sm.evaluate(suite(), data, workers=3)


def test_an_interrupt_stops_the_threads(no_processes):
    def interrupt(_):
        raise KeyboardInterrupt("now")

    with pytest.raises(KeyboardInterrupt, match="now"):
        sm.evaluate(suite(), tables(), workers=2, progress=interrupt)
    assert not [each for each in threading.enumerate() if each.name.startswith("evaluate")]


def test_metrics_and_pieces_that_hold_the_gil_have_processes():
    pieces = [TablePiece({}, 0), TablePiece({}, 1)]
    assert threads.gains(suite(), pieces)
    assert not threads.gains(sm.MetricSet({"bleu": sm.BLEU()}), pieces)
    assert not threads.gains(suite(), [*pieces, object()])


def test_a_statistic_with_an_update_of_its_own_says_so_itself():
    table = type(sm.Accuracy()._plan.start.statistics[0])

    class Own(table):
        def update(self, *columns, weight):
            super().update(*columns, weight=weight)

    assert table.in_kernels
    assert not Own.in_kernels
