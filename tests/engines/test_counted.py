"""Batches counted on their device: the bytes of plain updates, and the same refusals."""

from __future__ import annotations

import late_device
import numpy as np
import pytest

import streammetrics as sm

torch = pytest.importorskip("torch", reason="needs torch: pip install 'streammetrics[engines]'")

from streammetrics.engines import counted as module  # noqa: E402 - the tests need PyTorch
from streammetrics.engines import offload as engine  # noqa: E402 - the same
from streammetrics.engines.counted import narrowed, roles_of  # noqa: E402 - the same
from streammetrics.engines.offload import Offload  # noqa: E402 - the same

N = 4000
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


def labels_suite(**parameters):
    return sm.MetricSet(
        {
            "accuracy": sm.Accuracy(**parameters),
            "f1": sm.F1(average="macro", **parameters),
            "kappa": sm.CohenKappa(**parameters),
        },
        columns={"y_true": "label"},
    )


def cut_suite():
    return sm.MetricSet(
        {"f1": sm.F1(threshold=0.3), "recall": sm.Recall(threshold=0.7), "n": sm.Count()},
        columns={"values": "y_true"},
    )


def scores_suite():
    return sm.MetricSet(
        {"f1": sm.F1(threshold=0.3), "auc": sm.ROCAUC(), "ap": sm.AveragePrecision()}
    )


def values_suite():
    return sm.MetricSet({"mean": sm.Mean(), "least": sm.Minimum(), "median": sm.Quantile(q=0.5)})


@pytest.fixture
def random():
    return torch.Generator().manual_seed(0)


@pytest.fixture(autouse=True)
def _batches_are_large(monkeypatch):
    monkeypatch.setattr(module, "LEAST", 1000)


def counted(columns, roles):
    return module.counted(*narrowed(columns, roles), roles)


def by_counts(suite, columns):
    counts = counted(columns, roles_of(suite))
    assert counts is not None
    rows = max(column.numel() for column in columns.values())
    assert all(len(column) < rows for column in counts.values())
    return suite.copy().update(**counts).to_bytes()


def by_rows(suite, columns):
    return suite.copy().update(**columns).to_bytes()


def same(suite, **columns):
    return by_counts(suite, columns) == by_rows(suite, columns)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_labels(dtype, random):
    label, pred = torch.randint(0, 2, (2, N), generator=random).to(dtype)
    assert same(labels_suite(), label=label, y_pred=pred)
    if dtype not in {torch.bool, torch.uint8}:
        assert same(labels_suite(), label=label - 100, y_pred=pred - 100)
        assert same(labels_suite(ignore_index=1), label=label, y_pred=pred - 1)


def test_labels_that_are_far_apart(random):
    label, pred = torch.randint(0, 5, (2, N), generator=random)
    far = (label - 2) * 2**62
    assert same(labels_suite(), label=far, y_pred=pred)
    assert same(labels_suite(), label=far, y_pred=far[pred])
    columns = {"label": label * 2**30, "y_pred": pred * 2**30 + 7}
    assert counted(columns, roles_of(labels_suite())) is None


@pytest.mark.parametrize("weight", [None, torch.float32, torch.int64])
@pytest.mark.parametrize("shape", [(N,), (8, N // 8), (4, 25, N // 100), (N, 1)])
def test_labels_of_any_shape(shape, weight, random):
    label, pred = torch.randint(0, 7, (2, *shape), generator=random)
    columns = {"label": label, "y_pred": pred.to(torch.int16)}
    suite = labels_suite()
    if weight is not None:
        suite = sm.MetricSet(suite, columns={"y_true": "label", "sample_weight": "weight"})
        columns["weight"] = torch.randint(0, 3, shape, generator=random).to(weight)
        if weight == torch.float32 and len(shape) > 1:  # as scores of positions would be
            assert counted(columns, roles_of(suite)) is None
            return
    assert same(suite, **columns)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(N,), (8, N // 8), (4, 25, N // 100)])
def test_scores_of_classes_beside_labels(shape, dtype, random):
    label = torch.randint(0, 4, shape, generator=random)
    pred = torch.randn(shape[0], 4, *shape[1:], generator=random).to(dtype)
    pred.round_(decimals=0)  # ties
    assert same(labels_suite(), label=label, y_pred=pred)
    assert same(labels_suite(labels=(3, 2, 0, 1)), label=label, y_pred=pred)
    label.reshape(-1)[:100] = -100
    assert same(labels_suite(ignore_index=-100), label=label, y_pred=pred)


@pytest.mark.parametrize("dtype", FLOATS)
def test_thresholds(dtype, random):
    label = torch.randint(0, 2, (N,), generator=random)
    score = torch.rand(N, generator=random).to(dtype)
    cuts = torch.tensor([0.3, 0.7], dtype=torch.double).to(dtype)
    nearby = torch.tensor([-0.0, 0.0, -np.inf, np.inf, -5e-324, 1e-40], dtype=torch.double)
    score[:6] = nearby.to(dtype)
    score[6:8] = cuts
    if dtype in {torch.float32, torch.float64}:
        score[8:10] = torch.nextafter(cuts, torch.ones(2, dtype=dtype))
        score[10:12] = torch.nextafter(cuts, torch.zeros(2, dtype=dtype))
        assert same(cut_suite(), y_true=label, y_score=score)
        assert same(cut_suite(), y_true=label == 1, y_score=score)
    else:
        assert same(cut_suite(), y_true=label, y_score=score[torch.randint(0, 40, (N,))])


@pytest.mark.parametrize("threshold", [1e-310, 1e300, -1e300, -np.inf, np.inf, 0.0])
def test_thresholds_beyond_the_type_of_the_scores(threshold, random):
    suite = sm.MetricSet({"f1": sm.F1(threshold=threshold)})
    score = torch.randn(N, generator=random)
    score[:4] = torch.tensor([-np.inf, np.inf, -0.0, 1e-45])
    assert same(suite, y_true=torch.randint(0, 2, (N,), generator=random), y_score=score)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_with_few_distinct_values(dtype, weighted, random):
    suite, columns = scores_suite(), {}
    score = (torch.randint(-20, 20, (N,), generator=random) / 7).to(dtype)
    if weighted:
        suite = sm.MetricSet(suite, columns={"sample_weight": "w"})
        columns["w"] = torch.randint(0, 4, (N,), generator=random).to(torch.uint8)
    assert same(suite, y_true=score > 0.1, y_score=score, **columns)
    assert same(suite, y_true=(score > 0.1).long(), y_score=score, **columns)


def test_values_are_distinct_by_their_bits(random):
    values = torch.tensor([0.0, -0.0, np.inf, -np.inf, 1e-320, 3.5], dtype=torch.double)
    rows = values[torch.randint(0, 6, (N,), generator=random)]
    counts = counted({"values": rows}, roles_of(values_suite()))
    assert len(counts["values"]) == 6
    finite = rows[rows.isfinite()]
    assert same(values_suite(), values=finite)
    assert same(values_suite(), values=finite.float())
    omit = sm.MetricSet({"mean": sm.Mean(nan_policy="omit")})
    finite[:7] = np.nan
    assert same(omit, values=finite)


def test_rows_are_needed(random):
    label = torch.randint(0, 2, (N,), generator=random)
    score = torch.rand(N, generator=random)
    for suite, columns in [
        (scores_suite(), {"y_true": label, "y_score": score}),  # too many distinct ones
        (scores_suite(), {"y_true": label, "y_score": torch.stack([score, 1 - score], 1)}),
        (cut_suite(), {"y_true": label, "y_score": torch.full((N,), np.nan)}),
        (cut_suite(), {"y_true": label, "y_score": score[1:]}),
        (cut_suite(), {"y_true": label[:0], "y_score": score[:0]}),
        (cut_suite(), {"y_true": label, "y_score": label, "counts": label}),
        (values_suite(), {"values": score.to(torch.complex64)}),
        (values_suite(), {"values": label.to(torch.uint32)}),
        (labels_suite(), {"label": label, "y_pred": score[:, None]}),
        (labels_suite(), {"label": label.reshape(2, -1), "y_pred": label.reshape(2, -1).float()}),
        (labels_suite(), {"label": label[:4, None], "y_pred": torch.randn(4, 2, 3)}),
    ]:
        assert counted(columns, roles_of(suite)) is None
    many = torch.randn(50, 100_000)
    wide = counted({"label": label[:50], "y_pred": many}, roles_of(labels_suite()))
    assert wide is None


def test_suites_that_take_rows_only():
    class Odd(sm.MetricSet):
        def update(self, **columns):
            return super().update(values=-columns["values"])

    for suite in (
        sm.Sum(),
        Odd({"sum": sm.Sum()}),
        sm.MetricSet({"sum": sm.Sum()}, unit="user"),
        sm.MetricSet({"ndcg": sm.NDCG()}),
    ):
        assert roles_of(suite) is None
    shared = sm.MetricSet({"f1": sm.F1(threshold=0.5), "mean": sm.Mean()}, columns={"values": "s"})
    assert roles_of(shared).cuts == {"y_score": [0.5]}
    shared = sm.MetricSet(cut_suite(), columns={"values": "s", "y_score": "s"})
    assert roles_of(shared).cuts == {}


class Far(torch.Tensor):
    """A tensor of a device that is not there."""

    device, is_cpu = late_device.FIRST, False

    def to(self, *where, **_):
        if where == ("cpu",):
            Far.moved += self.numel()
            return self.as_subclass(torch.Tensor).clone()
        return super().to(*where)

    def cpu(self):
        return self.as_subclass(torch.Tensor).clone()

    def record_stream(self, stream):
        pass


@pytest.fixture(params=["streams", "none"])
def far(request, monkeypatch):
    backend = late_device.Backend(late=False) if request.param == "streams" else None
    monkeypatch.setattr(engine, "_SIDES", {})
    monkeypatch.setattr(engine, "_backend", lambda _: backend)
    monkeypatch.setattr(Far, "moved", 0, raising=False)
    return lambda tensor: tensor.clone().as_subclass(Far)


def test_an_offload_moves_counts(far, random):
    expected, batches = scores_suite(), []
    for n in (N, 400, 10, N):
        label = torch.randint(0, 2, (n,), generator=random)
        score = label + torch.randint(-9, 9, (n,), generator=random) / 7
        batches.append((label, score.to(torch.bfloat16)))
    with Offload(scores_suite()) as metrics:
        for label, score in batches:
            there = far(label), far(score)
            metrics.update(y_true=there[0], y_score=there[1], sample_weight=None)
            for tensor in there:
                tensor.fill_(7)
            expected.update(y_true=label, y_score=score)
        assert metrics.drain().to_bytes() == expected.to_bytes()
        assert Far.moved == 2 * 410
        assert metrics._kept == metrics._freed > 0


def test_an_offload_moves_rows_beyond_its_memory(far, random, monkeypatch):
    monkeypatch.setattr(engine, "_KEPT", 100)
    label = torch.randint(0, 2, (N,), generator=random)
    with Offload(cut_suite()) as metrics:
        metrics.update(y_true=far(label), y_score=far(label.float()))
        assert metrics.drain().to_bytes() == by_rows(
            cut_suite(), {"y_true": label, "y_score": label.float()}
        )
        assert Far.moved == 2 * N


@pytest.mark.parametrize("room", [1 << 30, 0])
@pytest.mark.parametrize("width", [5, 300])
def test_an_offload_keeps_places_of_largest_scores(width, room, far, random, monkeypatch):
    monkeypatch.setattr(engine, "_KEPT", room)
    label = torch.randint(0, width, (8, 50), generator=random)
    score = torch.randn(8, width, 50, generator=random).round()
    suite = labels_suite(zero_division=0)
    with Offload(suite.copy()) as metrics:
        for _ in range(2):
            there = far(label), far(score)
            metrics.update(label=there[0], y_pred=there[1])
            there[1].fill_(7)
        expected = suite.copy().update(label=label, y_pred=score)
        expected.update(label=label, y_pred=score)
        assert metrics.drain().to_bytes() == expected.to_bytes()
        assert Far.moved == (0 if room and width == 5 else 2 * 2 * label.numel())
        score[3, :, 20] = np.nan
        with pytest.raises(sm.InvalidBatchError, match="y_pred") as refused:
            expected.update(label=label, y_pred=score)
        metrics.update(label=far(label), y_pred=far(score))
        with pytest.raises(sm.InvalidBatchError, match="batch 2: y_pred") as raised:
            metrics.drain()
        assert str(refused.value).partition(";")[0] in str(raised.value)
        assert metrics.suite == expected


def test_after_distinct_rows_an_offload_moves_rows_for_a_while(far, random, monkeypatch):
    tried = []
    monkeypatch.setattr(module, "counted", lambda *_: tried.append(1))
    label, score = torch.randint(0, 2, (N,), generator=random), torch.rand(N, generator=random)
    with Offload(scores_suite()) as metrics:
        for _ in range(2 * engine._PAUSE + 2):
            metrics.update(y_true=far(label), y_score=far(score))
            metrics.drain()
        assert len(tried) == 3
        assert metrics.suite.n_rows == (2 * engine._PAUSE + 2) * N


@pytest.mark.parametrize("bad", ["y_score", "y_true", "y_pred"])
def test_a_refused_batch_is_refused_as_its_rows_are(bad, far, random):
    label = torch.randint(0, 2, (N,), generator=random)
    score = label.float() / 2
    columns = {"y_true": label, "y_score": score}
    good = by_rows(cut_suite(), columns)
    wrong = {"y_true": label.clone(), "y_score": score.clone()}
    if bad == "y_pred":
        wrong["y_pred"] = label
    else:
        wrong[bad][[70, 5]] = 3 if bad == "y_true" else np.nan
    with pytest.raises(sm.InvalidBatchError, match=bad) as expected:
        cut_suite().update(**wrong)
    with Offload(cut_suite()) as metrics:
        for each in (columns, wrong):
            metrics.update(**{name: far(column) for name, column in each.items()})
        with pytest.raises(sm.InvalidBatchError, match=bad) as raised:
            metrics.drain()
        assert str(raised.value).startswith("batch 1: ")
        assert str(expected.value).partition(";")[0].partition(" (3)")[0] in str(raised.value)
        assert metrics.suite.to_bytes() == good


def test_a_device_without_memory_for_counts_moves_rows(far, random, monkeypatch):
    def counted(*_):
        raise torch.OutOfMemoryError("no memory is left")

    monkeypatch.setattr(module, "counted", counted)
    label = torch.randint(0, 2, (N,), generator=random)
    with Offload(cut_suite()) as metrics:
        metrics.update(y_true=far(label), y_score=far(label.float()))
        assert metrics.drain().n_rows == N
        assert Far.moved == 2 * N
