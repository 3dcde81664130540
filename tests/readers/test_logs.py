"""Logs of evaluation frameworks, as their packages write them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

import streammetrics as sm
from streammetrics.readers.paths import ReadError

REAL = Path(__file__).parents[1] / "data" / "logs"
SOLVED = {("a", 1): "C", ("a", 2): "I", ("b", 1): "C", ("b", 2): "C", (7, 1): "N", (7, 2): "C"}


def summary(sample, epoch, value):
    """Return a sample as Inspect summarizes it; the fields that are not read are shortened."""
    return {
        "id": sample,
        "epoch": epoch,
        "input": "What is 1 + 1?",
        "target": "2",
        "metadata": {},
        "scores": {
            "match": {"value": value, "answer": "2", "explanation": None, "metadata": None},
            "judge": {"value": {"tone": 3, "style": "P"}},
        },
        "model_usage": {},
        "completed": True,
        "message_count": 2,
    }


def log_of(path, samples, *, finished=True):
    """Write a log: a zip archive with a journal, and the header and summaries at its end."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as log:
        log.writestr("_journal/start.json", json.dumps({"version": 2, "eval": {"task": "sums"}}))
        for place, each in enumerate(samples, 1):
            log.writestr(f"_journal/summaries/{place}.json", json.dumps([each]))
        for name in {f"samples/{each['id']}_epoch_{each['epoch']}.json" for each in samples}:
            log.writestr(name, "{}")  # of messages and events, which are not read
        if finished:
            log.writestr("summaries.json", json.dumps(samples))
            log.writestr("header.json", json.dumps({"version": 2, "status": "success"}))
    return path


def attempts(k=2):
    columns = {"unit": "id", "attempt": "epoch", "y_true": "match"}
    return sm.MetricSet({"pass": sm.PassHatK(k=k)}, columns=columns)


@pytest.mark.parametrize("finished", [True, False])
def test_a_log_of_inspect_has_a_row_for_each_epoch(tmp_path, finished):
    samples = [summary(*key, value) for key, value in SOLVED.items()]
    path = log_of(tmp_path / "sums.eval", samples * 3, finished=finished)  # more than 9 in order
    found = sm.evaluate(attempts(), str(path))
    assert found["pass"].per_unit() == {"7": 0.0, "a": 0.0, "b": 1.0}
    assert found.n_rows == 6
    judged = sm.MetricSet({"mean": sm.Mean()}, columns={"values": "judge/style"})
    assert sm.evaluate(judged, str(path)).compute()["mean"] == 0.5


def test_a_contradiction_and_a_failed_sample_are_refused(tmp_path):
    samples = [summary(*key, value) for key, value in SOLVED.items()]
    again = log_of(tmp_path / "again.eval", [*samples, summary("a", 1, "I")])
    with pytest.raises(sm.InvalidBatchError, match="unit 'a', attempt 1: 1 before, 0 here"):
        sm.evaluate(attempts(), str(again))
    failed = log_of(tmp_path / "failed.eval", [*samples, {**samples[0], "id": "c", "scores": None}])
    with pytest.raises(sm.InvalidBatchError, match="match is missing"):
        sm.evaluate(attempts(), str(failed))


@pytest.mark.parametrize("content", [b"no archive", b"PK\x03\x04 cut off", None])
def test_what_is_no_log_is_refused(tmp_path, content):
    path = tmp_path / "x.eval"
    if content is None:
        with zipfile.ZipFile(path, "w") as log:
            log.writestr("summaries.json", json.dumps([{"epoch": 1}]))
    else:
        path.write_bytes(content)
    with pytest.raises(ReadError, match="cannot be read as a log of Inspect: it has no summaries"):
        sm.evaluate(attempts(), str(path))


def test_samples_of_the_harness_are_lines_of_json(tmp_path):
    lines = [
        {
            "doc_id": doc, "doc": {"question": "1 + 1"}, "target": "2",
            "arguments": {"gen_args_0": {"arg_0": "1 + 1", "arg_1": {"until": []}}},
            "resps": [["It is 2"]], "filtered_resps": ["2"], "filter": name,
            "metrics": ["exact_match"], "doc_hash": "0", "exact_match": value,
        }
        for doc, values in enumerate([(1.0, 1.0), (0.0, 1.0), (0.0, 0.0)])
        for name, value in zip(("strict-match", "flexible-extract"), values, strict=True)
    ]  # fmt: skip
    path = tmp_path / "samples_sums_2026-01-01T00-00-00.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    columns = {"unit": "doc_id", "attempt": "filter", "y_true": "exact_match"}
    suite = sm.MetricSet({"mean": sm.MeanAtK(k=1), "any": sm.PassAtK(k=2)}, columns=columns)
    assert sm.evaluate(suite, str(path)).compute() == {"mean": 0.5, "any": pytest.approx(2 / 3)}


def test_a_log_that_inspect_wrote():
    suite = sm.MetricSet(
        {"pass": sm.PassAtK(k=1), "short": sm.Mean()},
        columns={"unit": "id", "attempt": "epoch", "y_true": "match", "values": "style/short"},
    )
    found = sm.evaluate(suite, str(REAL / "sums.eval"))
    assert found.n_rows == 9
    third = pytest.approx(1 / 3)
    assert found["pass"].per_unit() == {"3": third, "one": third, "two": 0.0}
    assert found["short"].compute() == 1.0
    graded = sm.MetricSet({"mean": sm.Mean()}, columns={"values": "style/grade"})
    assert sm.evaluate(graded, str(REAL / "sums.eval")).compute()["mean"] == 3.5 / 9  # 3 C and 1 P


def test_a_killed_run_of_inspect_and_its_retry():
    killed, resumed = (
        sm.evaluate(attempts(), str(REAL / f"{n}.eval")) for n in ("killed", "resumed")
    )
    assert (killed.n_rows, resumed.n_rows) == (4, 6)
    assert sm.merge([killed, resumed]).to_bytes() == resumed.to_bytes()


def test_a_compressed_log_that_is_damaged_is_refused(tmp_path):
    log = bytearray((REAL / "sums.eval").read_bytes())
    start = log.index(b"summaries.json", log.index(b"_journal/summaries/3.json")) + 14
    for damage in (start + 40, start + 200):
        path = tmp_path / f"{damage}.eval"
        path.write_bytes(log[:damage] + bytes([log[damage] ^ 255]) + log[damage + 1 :])
        with pytest.raises(ReadError, match=r"cannot be read as a log of Inspect"):
            sm.evaluate(attempts(), str(path))


def test_samples_that_the_harness_wrote():
    (path,) = REAL.glob("samples_*.jsonl")
    columns = {"unit": "doc_id", "attempt": "filter", "y_true": "exact_match"}
    suite = sm.MetricSet({"mean": sm.MeanAtK(k=1), "all": sm.PassHatK(k=2)}, columns=columns)
    found = sm.evaluate(suite, str(path))
    assert found.n_rows == 6  # two filters of three questions
    assert found["all"].per_unit() == {0: 0.0, 1: 1.0, 2: 0.0}
