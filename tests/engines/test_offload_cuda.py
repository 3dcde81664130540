"""Updates off the critical path with tensors of a GPU; skipped where there is none."""

from __future__ import annotations

import time

import numpy as np
import pytest

import streammetrics as sm

torch = pytest.importorskip("torch", reason="needs torch: pip install 'streammetrics[engines]'")

from streammetrics.engines import offload as engine  # noqa: E402 - it needs PyTorch
from streammetrics.engines.torch import Offload  # noqa: E402 - the same

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def suite():
    return sm.MetricSet(
        {"f1": sm.F1(threshold=0.5), "auc": sm.ROCAUC(), "loss": sm.LogLoss(), "n": sm.Count()},
        columns={"values": "y_true"},
    )


def batches(n, rows=4096):
    generator = np.random.default_rng(3)
    for _ in range(n):
        yield generator.integers(0, 2, rows), generator.random(rows, np.float32)


def plain(n, rows=4096):
    expected = suite()
    for labels, scores in batches(n, rows):
        expected.update(y_true=labels, y_score=scores)
    return expected.to_bytes()


@pytest.mark.parametrize("stream", ["default", "own"])
@pytest.mark.parametrize("rows", [1, 4096, 1_000_000])
def test_the_same_tensors_are_overwritten_after_each_update(stream, rows):
    labels = torch.empty(rows, dtype=torch.long, device="cuda")
    scores = torch.empty(rows, device="cuda")
    used = torch.cuda.default_stream() if stream == "default" else torch.cuda.Stream()
    torch.cuda.synchronize()
    with Offload(suite()) as metrics, torch.cuda.stream(used):
        for mine, theirs in batches(20, rows):
            torch.cuda._sleep(1_000_000)
            labels.copy_(torch.from_numpy(mine))
            scores.copy_(torch.from_numpy(theirs))
            metrics.update(y_true=labels, y_score=scores)
            labels.fill_(-1)
            scores.fill_(np.nan)
    assert metrics.suite.to_bytes() == plain(20, rows)


def test_memory_is_not_used_again_too_early():
    with Offload(suite()) as metrics:
        for labels, scores in batches(50):
            metrics.update(
                y_true=torch.from_numpy(labels).cuda(), y_score=torch.from_numpy(scores).cuda()
            )
            for _ in range(4):  # takes the memory that the loop has dropped
                torch.full((4096,), np.nan, device="cuda")
    assert metrics.suite.to_bytes() == plain(50)
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() < 2**20


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype:UserWarning")
def test_update_does_not_wait_for_the_device():
    labels, scores = (torch.from_numpy(each).cuda() for each in next(batches(1)))
    with Offload(suite()) as metrics:
        metrics.update(y_true=labels, y_score=scores)  # allocates
        metrics.drain()
        torch.cuda._sleep(2_000_000_000)  # about a second
        start = time.perf_counter()
        try:
            torch.cuda.set_sync_debug_mode("error")
            for _ in range(10):
                metrics.update(y_true=labels, y_score=scores)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert time.perf_counter() - start < 0.2
        assert metrics.processed == 1
        assert metrics.drain().n_rows == 11 * 4096


def test_columns_move_to_pinned_memory():
    columns = {"w": torch.zeros(3)}
    batch = engine._Snapshot((torch.ones(5, device="cuda"),), columns, None, 0)
    batch.wait()
    assert batch.args[0].is_pinned()
    assert batch.args[0].tolist() == [1.0] * 5
    assert batch.rows()["w"].tolist() == [0.0] * 3


def large_batch(kind):
    """Return a set with a batch that is counted on the device."""
    generator = torch.Generator("cuda").manual_seed(0)
    labels = torch.randint(0, 2, (8, 400, 400), generator=generator, device="cuda")
    scores = torch.rand(8, 400, 400, generator=generator, device="cuda")
    if kind == "thresholds":
        made, scores = sm.MetricSet({"f1": sm.F1(threshold=0.3)}), scores.reshape(-1)
    elif kind == "curves":
        made, scores = sm.MetricSet({"auc": sm.ROCAUC()}), scores.reshape(-1).bfloat16()
    else:
        made = sm.MetricSet({"iou": sm.Jaccard(average="macro")}, columns={"y_pred": "y_score"})
        scores = (
            labels.flip(1) if kind == "labels" else torch.stack([scores, 1 - scores, scores], 1)
        )
    if scores.ndim == 1:
        labels = labels.reshape(-1)
    return made, {"y_true": labels, "y_score": scores}


@pytest.mark.parametrize("kind", ["labels", "classes", "thresholds", "curves"])
def test_large_batches_are_counted_on_the_device(kind, monkeypatch):
    def spy(*args):
        results.append(count(*args))
        return results[-1]

    results, count = [], engine.counted.counted
    monkeypatch.setattr(engine.counted, "counted", spy)
    made, columns = large_batch(kind)
    expected = made.copy()
    with Offload(made) as metrics:
        for _ in range(3):
            torch.cuda._sleep(1_000_000)
            there = {name: column.clone() for name, column in columns.items()}
            metrics.update(**there)
            expected.update(**{name: column.cpu() for name, column in columns.items()})
            for column in there.values():
                column.fill_(7)
    assert metrics.suite.to_bytes() == expected.to_bytes()
    assert len(results) == 3
    assert None not in results


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int32", "uint8", "bool"])
def test_tensors_of_any_kind(dtype):
    values = torch.arange(12, device="cuda").reshape(4, 3).to(getattr(torch, dtype)).T
    if values.is_floating_point():
        values.requires_grad_()
    with Offload(sm.Sum()) as total:
        total.update(values[1:2].reshape(-1) if dtype == "bool" else values[1:2].T)
        with torch.inference_mode():
            total.update((values[2] * 1).reshape(-1))
    rows = values.detach().float().cpu()
    assert total.compute() == pytest.approx(float(rows[1].sum() + rows[2].sum()))


def test_a_mixed_batch_and_a_table():
    labels, scores = next(batches(1))
    with Offload(suite()) as metrics:
        metrics.update(y_true=labels, y_score=torch.from_numpy(scores).cuda())
        metrics.update({"y_true": torch.from_numpy(labels).cuda(), "y_score": scores})
    expected = suite()
    for _ in range(2):
        expected.update(y_true=labels, y_score=scores)
    assert metrics.suite == expected


def test_a_refused_batch_is_reported_by_its_number():
    with Offload(suite()) as metrics:
        for labels, scores in batches(3):
            metrics.update(y_true=torch.from_numpy(labels).cuda(), y_score=scores)
        bad = torch.full((2,), np.nan, device="cuda")
        metrics.update(y_true=torch.zeros(2, device="cuda", dtype=torch.long), y_score=bad)
        with pytest.raises(sm.InvalidBatchError, match="batch 3: y_score is missing"):
            metrics.drain()
    assert metrics.suite.to_bytes() == plain(3)
