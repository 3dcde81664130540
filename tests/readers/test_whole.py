"""Integers beyond 2**53 in text: the values of the same integers in Parquet, or an error."""

from __future__ import annotations

import io
import sys

import pyarrow as pa
import pytest
from prediction_files import store

import streammetrics as sm
from streammetrics.readers import delimited, jsonlines
from streammetrics.readers.trec import read_qrels

HUGE = 2**60
ENDINGS = ["csv", "csv.gz", "jsonl", "json"]


def suite(metric=None):
    columns = {"y_true": "t", "y_pred": "p"}
    return sm.MetricSet({"m": metric or sm.MAE()}, columns=columns)


def body(rows, ending):
    """Return rows of texts as a file of the ending has them; nothing is null."""
    if "csv" in ending:
        return "t,p\n" + "".join(f"{t},{p}\n" for t, p in rows)
    objects = [f'{{"t": {t or "null"}, "p": {p or "null"}}}' for t, p in rows]
    return f"[{', '.join(objects)}]" if ending == "json" else "\n".join(objects)


def written(tmp_path, rows, ending):
    path = tmp_path / f"rows.{ending}"
    text = body(rows, ending).encode()
    if ending.endswith("gz"):
        with pa.CompressedOutputStream(str(path), "gzip") as stream:
            stream.write(text)
    else:
        path.write_bytes(text)
    return path


INTEGERS = {
    "beyond 2**53": [(2**53 + 1, 2**53), (2**53 + 1, 2**53 + 1)],
    "beyond 2**60": [(HUGE, HUGE + 1), (-HUGE - 1, -HUGE), (3, 7)],
    "unsigned": [(2**64 - 1, 2**64 - 2), (5, 2)],
    "with nulls": [(HUGE, HUGE + 1), (None, 5), (HUGE, None)],
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("rows", INTEGERS.values(), ids=INTEGERS)
def test_integers_of_text_have_the_state_of_parquet(tmp_path, rows, ending):
    kind = pa.uint64() if any(t and t >= 2**63 for t, _ in rows) else pa.int64()
    t, p = (pa.array(column, kind) for column in zip(*rows, strict=True))
    stored = store(pa.table({"t": t, "p": p}), tmp_path / "rows.parquet")
    texts = [["" if value is None else str(value) for value in row] for row in rows]
    empty = suite(sm.MAE(nan_policy="omit"))
    state = sm.evaluate(empty, written(tmp_path, texts, ending))
    assert state == sm.evaluate(empty, stored)
    assert state.compute() == empty.copy().update({"t": t, "p": p}).compute()


@pytest.mark.parametrize("ending", ENDINGS)
def test_scores_that_differ_beyond_float64_are_ranked(tmp_path, ending):
    path = written(tmp_path, [("0", HUGE), ("1", HUGE + 1)], ending)
    auc = sm.MetricSet({"m": sm.ROCAUC()}, columns={"y_true": "t", "y_score": "p"})
    assert sm.evaluate(auc, path).compute() == {"m": 1.0}


@pytest.mark.parametrize("ending", ENDINGS)
def test_long_integers_after_blocks_of_floats(tmp_path, ending, monkeypatch):
    for module in (delimited, jsonlines):
        monkeypatch.setattr(module, "_BLOCK", 256)
    small = [("3", "4")] * 100  # these go with either: no block has both of the others
    floats = [("0.5", "0.25")] * 100
    whole = [(str(HUGE), str(HUGE + 1 + place)) for place in range(100)]
    path = written(tmp_path, floats + small + whole + small + floats, ending)
    apart = suite().update({"t": [0.5] * 200 + [3] * 200, "p": [0.25] * 200 + [4] * 200})
    apart.update({"t": [HUGE] * 100, "p": [HUGE + 1 + place for place in range(100)]})
    assert sm.evaluate(suite(), path, batch_rows=7) == apart


def test_a_pipe_is_read_once(monkeypatch):
    text = body([(HUGE, HUGE + 1), (" 4", "+4 ")], "csv").encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert sm.evaluate(suite(), "-", format="csv").compute() == {"m": 0.5}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([("0.5", "1"), ("3", HUGE + 1)], None),
        ([("1", "0.5"), ("3", HUGE + 1)], "beside numbers that are not all integers of 64 bits"),
        ([("1", "2"), ("3", 2**70 + 1)], "float64 cannot hold: divide it"),
        ([("1", 2**70), ("3", "1e300")], None),
    ],
)
def test_what_no_type_holds_is_refused(tmp_path, rows, says, ending):
    path = written(tmp_path, rows, ending)
    if says is None:
        assert sm.evaluate(suite(), path).n_rows == 2
        return
    with pytest.raises(sm.InvalidBatchError, match=rf"rows.*: p holds \d+ in row 1, .*{says}"):
        sm.evaluate(suite(), path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_matrices_of_long_integers(tmp_path, ending):
    path = written(tmp_path, [(HUGE, "1"), (HUGE + 1, "2")], ending)
    stored = store(pa.table({"t": [HUGE, HUGE + 1], "p": [1, 2]}), tmp_path / "rows.parquet")
    wide = sm.MetricSet({"m": sm.MAE()}, columns={"y_true": "t,p", "y_pred": "p,p"})
    assert sm.evaluate(wide, path) == sm.evaluate(wide, stored)


def test_labels_that_float64_would_merge_stay_apart(tmp_path):
    for rows in ([(2**64 - 1, 2**64 - 2)], [(2**70 + 1, 2**70 + 3), ("0", "1")]):
        path = written(tmp_path, rows, "csv")
        assert sm.evaluate(suite(sm.Accuracy()), path).compute() == {"m": 0.0}


@pytest.mark.parametrize("ending", ["jsonl", "json"])
def test_labels_of_json_are_not_rounded(tmp_path, ending):
    path = written(tmp_path, [("0.5", "1.5"), (HUGE + 1, HUGE)], ending)
    with pytest.raises(sm.InvalidBatchError, match=r"t holds \d+ in row 1, which float64 cannot"):
        sm.evaluate(suite(sm.Accuracy()), path)


def test_long_integers_in_the_names_of_folders(tmp_path):
    for value in (HUGE, HUGE + 1, "0.5"):
        folder = tmp_path / f"p={value}"
        folder.mkdir()
        (folder / "rows.csv").write_text(f"t\n{value}\n")
    assert sm.evaluate(suite(), tmp_path).compute() == {"m": 0.0}
    (tmp_path / f"p={2**70 + 1}").mkdir()
    (tmp_path / f"p={2**70 + 1}" / "rows.csv").write_text("t\n1\n")
    with pytest.raises(sm.InvalidBatchError, match=r"p holds \d+ in .*float64 cannot hold: divide"):
        sm.evaluate(suite(), tmp_path)


def test_relevances_of_judgments_are_not_rounded(tmp_path):
    path = tmp_path / "t.qrels"
    path.write_text(f"q 0 d {HUGE + 1}\n")
    assert next(read_qrels(path))["relevance"].tolist() == [HUGE + 1]
    path.write_text(f"q 0 d 1\nq 0 e {2**64}\n")
    with pytest.raises(sm.InvalidBatchError, match=rf"line 2: expected an integer .*'{2**64}'"):
        next(read_qrels(path))


def test_a_decimal_comma_is_told_of(tmp_path):
    (tmp_path / "t.csv").write_text('t,p\n1,"0,2"\n')
    says = r"p holds '0,2' in row 0; numbers are needed, and commas are not read as decimal points"
    with pytest.raises(sm.InvalidBatchError, match=says):
        sm.evaluate(suite(), tmp_path / "t.csv")
