"""How many rows of Parquet are decoded at a time: many of two numbers, few of wide tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from prediction_files import store
from reading import rows

import streammetrics as sm
from streammetrics.readers.files import BATCH_ROWS
from streammetrics.readers.formats import pieces_of
from streammetrics.readers.paths import find

N = 40_000


def sizes(suite, path, batch_rows=BATCH_ROWS):
    """Return how many rows each batch of a file has."""
    pieces = pieces_of(find([str(path)]).sources, suite._asked, suite._kinds).pieces
    return [n for piece in pieces for n, _ in piece.tables(batch_rows)]


def test_two_columns_of_numbers_come_in_few_batches(tmp_path):
    path = store(rows(N), tmp_path / "two.parquet", N)
    suite = sm.MetricSet({"auc": sm.ROCAUC()}, columns={"y_true": "label", "y_score": "score"})
    assert sizes(suite, path) == [N]
    assert max(sizes(suite, path, 3000)) <= 3000


def test_batches_of_a_wide_table_stay_in_16_mb_and_its_rows_keep_their_numbers(tmp_path):
    score = np.full((N, 100), 0.01)
    table = pa.table({"label": np.zeros(N, int)} | {f"p{k}": score[:, k] for k in range(100)})
    suite = sm.MetricSet({"loss": sm.LogLoss()}, columns={"y_true": "label", "y_score": "p*"})
    path = store(table, tmp_path / "wide.parquet", N)
    found = sizes(suite, path)
    assert sum(found) == N
    assert max(found) * 101 * 8 <= 1 << 24
    score[N - 1, 7] = 2.0
    bad = store(table.set_column(8, "p7", pa.array(score[:, 7])), tmp_path / "bad.parquet", N)
    with pytest.raises(sm.InvalidBatchError, match=f"row {N - 1} ") as caught:
        sm.evaluate(suite, bad)
    assert caught.value.row == N - 1


def test_texts_come_in_smaller_batches_than_numbers(tmp_path):
    texts = pa.array([f"the cat sat on mat {k}" for k in range(2 * N)])
    path = store(pa.table({"t": texts, "p": texts}), tmp_path / "texts.parquet", 2 * N)
    suite = sm.MetricSet({"bleu": sm.BLEU()}, columns={"reference": "t", "prediction": "p"})
    assert max(sizes(suite, path)) == 1 << 16
