"""Ray Data: the bytes of one pass, whatever the blocks, also after a worker was killed."""

from __future__ import annotations

import logging
import os
import signal
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from engine_suites import prepared_rows, prepared_suite, suite

import streammetrics as sm

ray = pytest.importorskip("ray", reason="needs ray: pip install 'streammetrics[engines]'")
pytest.importorskip("ray.data", reason="needs ray[data]: pip install 'streammetrics[engines]'")

from ray.data.block import BlockMetadata  # noqa: E402 - where Ray is there
from ray.data.datasource import Datasource, ReadTask  # noqa: E402

from streammetrics.engines import ray as engine  # noqa: E402

pytestmark = [
    # Ray's own settings warn that they are deprecated when Ray makes them.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context"),
]

rng = np.random.default_rng(5)
N = 1000
TABLE = pa.table(
    {
        "label": rng.integers(0, 2, N),
        "score": rng.random(N).round(2),
        "weight": rng.integers(0, 4, N) / 2,
        "group": [None if row % 4 == 3 else "abc"[row % 4] for row in range(N)],
        "note": ["not read"] * N,
    }
)


def blocks(table, ends):
    """Return the rows as a dataset of blocks that end there."""
    bounds = pairwise([0, *ends, len(table)])
    return ray.data.from_arrow([table.slice(start, end - start) for start, end in bounds])


def alone(table):
    return suite().update(table).to_bytes()


EXPECTED = alone(TABLE)


@pytest.fixture(scope="module", autouse=True)
def _cluster():
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.CRITICAL,
        object_store_memory=200 * 2**20,
        # The workers import this module for the metric of our own.
        runtime_env={"env_vars": {"PYTHONPATH": str(Path(__file__).parent)}},
    )
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    yield
    ray.shutdown()


@pytest.mark.parametrize(
    ("rows", "ends"),
    [(N, []), (N, [0, 7, 7, 500]), (3, [0, 1, 1, 2, 3, 3]), (0, [0])],
    ids=["one block", "some empty", "more than rows", "all empty"],
)
def test_any_blocks_give_the_bytes_of_one_pass(rows, ends):
    table, template = TABLE.slice(0, rows), suite()
    result = engine.evaluate(template, blocks(table, ends))
    assert result.to_bytes() == alone(table)
    assert template == suite()


def test_objects_of_an_author_are_prepared_on_the_workers():
    rows = pa.table(prepared_rows())
    result = engine.evaluate(prepared_suite(), blocks(rows, [3, 90]))
    assert result.to_bytes() == prepared_suite().update(prepared_rows()).to_bytes()


def test_a_dataset_without_blocks_is_an_empty_set():
    assert engine.evaluate(suite(), ray.data.from_items([])) == suite()
    assert engine.evaluate_groups(suite(), ray.data.from_items([]), "group") == {}


def test_states_are_merged_by_tasks(monkeypatch):
    came, merged = [], engine._merged

    def counted(tables, suite):
        tables = list(tables)
        came.extend(tables)
        return merged(tables, suite)

    monkeypatch.setattr(engine, "_FAN_IN", 8)
    monkeypatch.setattr(engine, "_merged", counted)
    assert engine.evaluate(suite(), blocks(TABLE, range(50, N, 50))).to_bytes() == EXPECTED
    assert [table.num_rows for table in came] == [1, 1, 1]  # of 20 blocks


def test_other_columns_are_not_read(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(TABLE, path, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    assert data.count(b"not read") >= N
    note = pq.read_metadata(path).row_group(0).column(4)
    start = note.data_page_offset
    data[start : start + note.total_compressed_size] = bytes(note.total_compressed_size)
    path.write_bytes(data)
    with pytest.raises(OSError, match="."):
        pq.read_table(path)

    result = engine.evaluate(suite(), ray.data.read_parquet(str(path), override_num_blocks=3))
    assert result.to_bytes() == EXPECTED


def test_columns_that_only_a_run_can_tell():
    dataset = blocks(TABLE, [500]).map_batches(lambda table: table, batch_format="pandas")
    assert engine.evaluate(suite(), dataset).to_bytes() == EXPECTED


def test_groups():
    groups = engine.evaluate_groups(suite(), blocks(TABLE, [7, 7, 500]), "group")
    assert list(groups) == ["a", "b", "c", None]
    for group, result in groups.items():
        column = TABLE["group"]
        rows = pc.is_null(column) if group is None else pc.equal(column, group)
        assert result.to_bytes() == alone(TABLE.filter(rows))
    assert sm.merge(groups.values()).to_bytes() == EXPECTED


def test_groups_may_be_numbers_that_are_read():
    half = pc.if_else(pc.equal(TABLE["weight"], 0.5), float("nan"), TABLE["weight"])
    table = TABLE.set_column(3, "group", half)
    assert list(engine.evaluate_groups(suite(), blocks(table, [9]), "group")) == [0, 1, 1.5, None]
    groups = engine.evaluate_groups(suite(), blocks(TABLE, [9]), "label")
    assert {group: result.n_rows for group, result in groups.items()} == {
        group: suite().update(TABLE.filter(pc.equal(TABLE["label"], group))).n_rows
        for group in (0, 1)
    }


def test_nothing_runs_where_it_cannot_end_well():
    dataset = blocks(TABLE, []).map_batches(lambda _: 1 / 0)
    with pytest.raises(sm.IncompatibleMetricsError, match="already seen"):
        engine.evaluate(suite().update(TABLE), dataset)
    with pytest.raises(sm.InvalidBatchError, match="no column 'weight'; there are: 'label'"):
        engine.evaluate(suite(), blocks(TABLE.drop(["weight"]), []))
    with pytest.raises(sm.InvalidBatchError, match="no column 'sex'; there are: 'label'"):
        engine.evaluate_groups(suite(), blocks(TABLE, []), "sex")
    for other in (TABLE, TABLE.to_pandas()):
        with pytest.raises(TypeError, match=r"is not a Ray dataset.*ray\.data\.from_pandas"):
            engine.evaluate(suite(), other)


@pytest.mark.parametrize("typed", [False, True])
def test_a_bad_row_fails_the_job_with_its_place(typed, monkeypatch):
    context = ray.data.DataContext.get_current()
    monkeypatch.setattr(context, "raise_original_map_exception", typed)
    scores = TABLE["score"].to_numpy().copy()
    scores[605] = np.nan
    bad = TABLE.set_column(1, "score", pa.array(scores, from_pandas=False))
    template = suite()
    place = "a block of 400 rows: score is missing .NaN or null. in 1 row, first in row 5 of the bl"
    with pytest.raises(ray.exceptions.RayTaskError, match=place) as caught:
        engine.evaluate(template, blocks(bad, [600]))
    assert isinstance(caught.value, sm.InvalidBatchError) == typed
    assert template == suite()

    place = "group b in a block of 400 rows: score is missing .* first in row 1 of the group"
    with pytest.raises(ray.exceptions.RayTaskError, match=place):
        engine.evaluate_groups(template, blocks(bad, [600]), "group")


class KilledOnce(Datasource):
    """Two blocks from one task, whose process is killed between them, the first time."""

    def __init__(self, attempts):
        super().__init__()
        self.attempts = attempts

    def estimate_inmemory_data_size(self):
        return TABLE.nbytes

    def get_read_tasks(self, parallelism, *args, **kwargs):
        attempts = self.attempts

        def read():
            yield TABLE.slice(0, 600)
            with attempts.open("a") as file:
                file.write("one more\n")
            if len(attempts.read_text().splitlines()) == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            yield TABLE.slice(600)

        metadata = BlockMetadata(N, TABLE.nbytes, input_files=None, exec_stats=None)
        return [ReadTask(read, metadata, schema=TABLE.schema)]


def test_rows_count_once_where_a_worker_is_killed(tmp_path, monkeypatch):
    context = ray.data.DataContext.get_current()
    monkeypatch.setattr(context, "target_max_block_size", 1)  # a state leaves as it is made
    attempts = tmp_path / "attempts"
    result = engine.evaluate(suite(), ray.data.read_datasource(KilledOnce(attempts)))
    assert attempts.read_text().splitlines() == ["one more"] * 2
    assert result.to_bytes() == EXPECTED


@pytest.mark.parametrize("kind", ["arrow", "pandas"])
def test_a_tap_lets_all_blocks_through_and_counts_them(kind, tmp_path):
    source = blocks(TABLE, [0, 7, 7, 500])
    if kind == "pandas":
        source = source.map_batches(lambda frame: frame, batch_format="pandas", batch_size=None)
    tapped, ledger = engine.tap(source, suite())
    assert ledger().n_rows == 0
    tapped.write_parquet(str(tmp_path))
    assert sorted(map(str, pq.read_table(tmp_path).to_pylist())) == sorted(
        map(str, TABLE.to_pylist())
    )
    assert ledger().merged().to_bytes() == EXPECTED
    assert tapped.map_batches(lambda block: block, batch_size=10).count() == N
    assert ledger().merged().to_bytes() == EXPECTED  # of the second pass alone
    assert 1 <= len(ledger()) <= 5


def test_a_tap_of_a_dataset_without_blocks():
    tapped, ledger = engine.tap(ray.data.from_items([]), suite())
    assert tapped.count() == 0
    assert ledger().merged() == suite()


def test_tapped_blocks_count_once_where_a_worker_is_killed(tmp_path, monkeypatch):
    context = ray.data.DataContext.get_current()
    monkeypatch.setattr(context, "target_max_block_size", 1)  # a state leaves as it is made
    attempts = tmp_path / "attempts"
    tapped, ledger = engine.tap(ray.data.read_datasource(KilledOnce(attempts)), suite())
    tapped.write_parquet(str(tmp_path / "rows"))
    assert attempts.read_text().splitlines() == ["one more"] * 2
    assert len(pq.read_table(tmp_path / "rows")) == N
    assert ledger().merged().to_bytes() == EXPECTED


@pytest.mark.filterwarnings("ignore:.ray_remote_args. is deprecated:DeprecationWarning")
def test_a_tapped_task_that_is_tried_again_in_the_same_process_counts_once(tmp_path):
    failed = tmp_path / "failed"

    def fails_once(table):
        if len(table) < 600 and not failed.exists():
            failed.touch()
            raise OSError("a disk failed after all rows went through the tap")
        return table

    tapped, ledger = engine.tap(blocks(TABLE, [600]), suite())
    again = tapped.map_batches(
        fails_once, batch_format="pyarrow", batch_size=None, retry_exceptions=True
    )
    assert again.count() == N
    assert failed.exists()
    assert ledger().merged().to_bytes() == EXPECTED


def test_a_tap_refuses_what_evaluate_refuses():
    with pytest.raises(sm.IncompatibleMetricsError, match="already seen"):
        engine.tap(blocks(TABLE, []), suite().update(TABLE))
    with pytest.raises(sm.InvalidBatchError, match="no column 'weight'; there are: 'label'"):
        engine.tap(blocks(TABLE.drop(["weight"]), []), suite())
    with pytest.raises(TypeError, match="is not a Ray dataset"):
        engine.tap(TABLE, suite())
    tapped, ledger = engine.tap(blocks(TABLE.set_column(1, "score", pa.nulls(N)), []), suite())
    with pytest.raises(ray.exceptions.RayTaskError, match="a block of 1,000 rows: score is"):
        tapped.count()
    assert ledger().n_rows == 0


def test_a_tap_runs_no_earlier_step_to_learn_its_columns(tmp_path):
    runs = tmp_path / "runs"

    def score(table):
        with runs.open("a") as file:
            file.write("a run\n")
        return table

    dataset = blocks(TABLE, []).map_batches(score, batch_format="pyarrow", batch_size=None)
    tapped, ledger = engine.tap(dataset, suite())
    assert not runs.exists()
    assert tapped.count() == N
    assert runs.read_text() == "a run\n"
    assert ledger().merged().to_bytes() == EXPECTED
    less = dataset.map_batches(lambda table: table.drop(["weight"]), batch_format="pyarrow")
    with pytest.raises(ray.exceptions.RayTaskError, match="no column 'weight'; there are: 'label'"):
        engine.tap(less, suite())[0].count()


def test_a_metric_that_the_workers_cannot_import():
    module = sys.modules["engine_suites"]
    ray.cloudpickle.register_pickle_by_value(module)  # as it is for a main script or a notebook
    try:
        result = engine.evaluate(suite(), blocks(TABLE, range(50, N, 50)))
    finally:
        ray.cloudpickle.unregister_pickle_by_value(module)
    assert result.to_bytes() == EXPECTED


def test_matrices():
    scores, labels = rng.dirichlet([1, 1, 1], 60), rng.integers(0, 3, 60)
    top = sm.MetricSet({"top": sm.TopKAccuracy(k=2)})
    rows = [{"y_true": labels[row], "y_score": scores[row]} for row in range(60)]
    result = engine.evaluate(top, ray.data.from_items(rows, override_num_blocks=2))
    assert result.to_bytes() == top.copy().update(y_true=labels, y_score=scores).to_bytes()
