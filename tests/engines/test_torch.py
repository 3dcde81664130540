"""torch.distributed: real ranks reduce to the bytes of one pass, or all refuse together."""

from __future__ import annotations

import datetime
import importlib
import re
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from engine_suites import exact_suite as metrics
from engine_suites import weighted_rows as table

import streammetrics as sm
from streammetrics.core.mergeable import Stateful

torch = pytest.importorskip("torch", reason="needs torch: pip install 'streammetrics[engines]'")
dist = pytest.importorskip("torch.distributed")
data = pytest.importorskip("torch.utils.data")

import streammetrics.engines.torch as engine  # noqa: E402 - it needs PyTorch
from streammetrics.engines.torch import all_reduce, n_repeated  # noqa: E402 - the same

WORLD = 3
PATIENCE = datetime.timedelta(seconds=120)  # a rank left alone fails instead of waiting for good


def some(rows, index):
    return {name: torch.from_numpy(column[index]) for name, column in rows.items()}


def join(rank, store):
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD, timeout=PATIENCE
    )


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """One process for each rank, which are members of one process group."""
    store = tmp_path_factory.mktemp("torch") / "store"
    spawn = get_context("spawn")
    pools = [ProcessPoolExecutor(1, spawn, join, (rank, store)) for rank in range(WORLD)]
    yield pools
    for leaving in [pool.submit(dist.destroy_process_group) for pool in pools]:
        leaving.result()
    for pool in pools:
        pool.shutdown()


def on_each(ranks, function, *args):
    """Call a function of the rank on all ranks at once and return what they return."""
    calls = [pool.submit(function, rank, *args) for rank, pool in enumerate(ranks)]
    return [call.result() for call in calls]


def shares(sizes):
    """Rows of each rank, by their sizes."""
    return np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])


def reduce_set(rank, sizes, n_batches):
    suite = metrics()
    for index in np.array_split(shares(sizes)[rank], n_batches):
        suite.update(some(table(), index))
    with torch.inference_mode():
        assert all_reduce(suite) is suite
    return suite.to_bytes()


@pytest.mark.parametrize(
    ("sizes", "n_batches"),
    [((100, 100, 100), 7), ((1, 0, 299), 1), ((0, 300, 0), 3), ((2, 1, 2), 9)],
)
def test_ranks_with_any_number_of_rows(ranks, sizes, n_batches):
    local = metrics().update(some(table(), np.arange(sum(sizes))))
    assert on_each(ranks, reduce_set, sizes, n_batches) == [local.to_bytes()] * WORLD


def reduce_nothing(rank):
    return all_reduce(metrics()).to_bytes()


def test_no_rank_with_rows(ranks):
    assert on_each(ranks, reduce_nothing) == [metrics().to_bytes()] * WORLD


def reduce_single(rank, metric):
    """Reduce a metric with the rows of this rank."""
    metric.update(**some({"values": np.arange(10.0)}, slice(rank, None, WORLD)))
    return all_reduce(metric).to_bytes()


@pytest.mark.parametrize("metric", [sm.Mean(), sm.Quantile(q=0.3), sm.Variance()])
def test_a_single_metric(ranks, metric):
    local = metric.copy().update(np.arange(10.0))
    assert on_each(ranks, reduce_single, metric) == [local.to_bytes()] * WORLD


def two_epochs(rank):
    """Reduce a copy in mid-epoch, then the metric, in each of two epochs."""
    metric, blobs = sm.Mean(), []
    for epoch in (1, 2):
        metric.update([1.0 * rank])
        blobs.append(all_reduce(metric.copy()).to_bytes())
        metric.update([10.0 * epoch])
        blobs.append(all_reduce(metric).to_bytes())
        metric.reset()
    return blobs


def test_copies_in_mid_epoch_and_reset_after_it(ranks):
    half = sm.Mean().update([0.0, 1.0, 2.0])
    first, second = half.copy().update([10.0] * 3), half.copy().update([20.0] * 3)
    expected = [metric.to_bytes() for metric in (half, first, half, second)]
    assert on_each(ranks, two_epochs) == [expected] * WORLD


class Unwritable(sm.Mean):
    """Its state cannot be made."""

    def to_bytes(self):
        raise RuntimeError("the disk is on fire")


def state_of(metric):
    return metric and Stateful.to_bytes(metric)


def refused(metric):
    """Reduce a metric, which raises; return what was said and whether the state is as before."""
    before = state_of(metric)
    with pytest.raises(sm.IncompatibleMetricsError, match="rank") as raised:
        all_reduce(metric)
    return str(raised.value), state_of(metric) == before


def reduce_unequal(rank, odd_rank, plain, odd):
    """Reduce metrics of which one rank's is odd, and then others, for which ranks are in step."""
    outcome = refused((odd if rank == odd_rank else plain)())
    return *outcome, all_reduce(sm.Mean().update([1.0 * rank])).compute()


def mean():
    return sm.Mean().update([2.0])


def view():
    return sm.MetricSet({"mean": sm.Mean()}).update(values=[2.0])["mean"]


def half():
    return sm.F1(threshold=0.5).update([0, 1], [0.2, 0.7])


def third():
    return sm.F1(threshold=0.3).update([0, 1], [0.2, 0.7])


def named():
    return sm.MetricSet({"mean": sm.Mean()}).update(values=[2.0])


def renamed():
    return sm.MetricSet({"mean": sm.Mean()}, columns={"values": "v"}).update(v=[2.0])


def words():
    return sm.Accuracy().update(["a"], ["b"])


def numbers():
    return sm.Accuracy().update([1], [2])


def nothing():
    return None


@pytest.mark.parametrize("odd_rank", [0, 2])
@pytest.mark.parametrize(
    ("plain", "odd", "message"),
    [
        (
            half,
            third,
            r"the state of rank \d: cannot merge F1\(threshold=0.\d\) into F1\(threshold=0.\d\)",
        ),
        (mean, sm.Sum, "the configurations differ"),
        (mean, named, "the configurations differ"),
        (named, renamed, "the configurations differ"),
        (numbers, words, "the states saw different kinds of rows"),
        (mean, view, r"rank {odd} failed with StreamMetricsError: .* view into a MetricSet"),
        (mean, Unwritable, r"rank {odd} failed with RuntimeError: the disk is on fire"),
        (mean, nothing, r"rank {odd} failed with AttributeError: 'NoneType' object"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_all_ranks_refuse_together(ranks, odd_rank, plain, odd, message):
    outcomes = on_each(ranks, reduce_unequal, odd_rank, plain, odd)
    (told,) = {told for told, _, _ in outcomes}
    assert re.match("no metric was changed, as rank ", told)
    assert re.search(message.replace("{odd}", str(odd_rank)), told)
    assert [rest for _, *rest in outcomes] == [[True, 1.0]] * WORLD


def no_room(blob):
    raise MemoryError("no room")


def reduce_where_one_cannot_read(rank):
    with pytest.MonkeyPatch.context() as patch:
        if rank == 1:
            patch.setattr(engine, "from_bytes", no_room)
        return refused(mean())


def test_a_rank_that_cannot_take_the_others_states(ranks):
    told = "no metric was changed, as rank 1 failed with MemoryError: no room"
    assert on_each(ranks, reduce_where_one_cannot_read) == [(told, True)] * WORLD


def reduce_in_groups(rank):
    """Reduce in the group of ranks 0 and 2."""
    group, metric = dist.new_group([0, 2]), sm.Sum().update([10.0**rank])
    if rank != 1:
        return all_reduce(metric, group).compute()
    with pytest.warns(UserWarning, match="does not belong to the given group"):
        return all_reduce(metric, group).compute()


def test_a_group_of_some_ranks(ranks):
    assert on_each(ranks, reduce_in_groups) == [101.0, 10.0, 101.0]


def test_without_a_process_group():
    metric = mean()
    with pytest.raises(ValueError, match="init_process_group"):
        all_reduce(metric)
    assert metric == mean()


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_repeats_are_the_last_rows_of_a_rank(shuffle, drop_last):
    for n in range(12):
        for world in range(1, 7):
            samplers = [
                data.DistributedSampler(range(n), world, rank, shuffle=shuffle, drop_last=drop_last)
                for rank in range(world)
            ]
            for sampler in samplers:
                sampler.set_epoch(n)
            seen, kept = set(), []
            # The sampler deals rows out in turns; from the second time on, a row is a repeat.
            for turn in zip(*samplers, strict=True):
                for rank, row in enumerate(turn):
                    kept.append((rank, row not in seen))
                    seen.add(row)
            for rank, sampler in enumerate(samplers):
                firsts = [first for owner, first in kept if owner == rank]
                n_kept = len(firsts) - n_repeated(sampler)
                assert firsts == [True] * n_kept + [False] * n_repeated(sampler), (n, world, rank)
            if not drop_last:
                assert seen == set(range(n))


def loader(n, sampler):
    rows = some(table(n), slice(None))
    dataset = data.TensorDataset(rows["label"], rows["score"], rows["weight"])
    return data.DataLoader(dataset, batch_size=4, sampler=sampler)


def reduce_loader(rank, n, shuffle, way):
    sampler = data.DistributedSampler(range(n), shuffle=shuffle)
    if way == "range":
        sampler = range(rank, n, WORLD)
    left = len(sampler) - (0 if way in ("range", "repeated") else n_repeated(sampler))
    suite = metrics()
    for label, score, weight in loader(n, sampler):
        keep = min(left, len(label))
        left -= keep
        if way == "weight 0":
            weight[keep:] = 0.0
            keep = len(label)
        suite.update(label=label[:keep], score=score[:keep], weight=weight[:keep])
    return all_reduce(suite).to_bytes()


@pytest.mark.parametrize("way", ["cut", "weight 0", "range"])
@pytest.mark.parametrize(("n", "shuffle"), [(31, False), (32, True), (30, True), (1, False)])
def test_a_sampler_that_pads(ranks, n, shuffle, way):
    local = metrics().update(some(table(n), slice(None)))
    assert on_each(ranks, reduce_loader, n, shuffle, way) == [local.to_bytes()] * WORLD


def test_repeats_count_unless_they_are_left_out(ranks):
    local = metrics().update(some(table(31), slice(None)))
    for blob in on_each(ranks, reduce_loader, 31, False, "repeated"):
        assert sm.from_bytes(blob).n_rows == 33
        assert blob != local.to_bytes()


def test_without_torch_the_import_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.distributed", None)
    monkeypatch.delitem(sys.modules, "streammetrics.engines.torch")
    with pytest.raises(ImportError, match="torch is needed: pip install 'torch'"):
        importlib.import_module("streammetrics.engines.torch")


def test_an_update_in_a_thread_that_flushes_denormals_is_refused():
    tiny, large = torch.tensor([1e-310, 2e-310], dtype=torch.float64), torch.ones(1 << 17)
    metric = sm.Sum().update(tiny)
    before, expected = metric.to_bytes(), sm.Sum().update(tiny).update(tiny).update(large)
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor keeps such numbers")
    try:
        for column in (tiny, large):
            with pytest.raises(sm.FloatingPointModeError, match=r"set_flush_denormal\(False\)"):
                metric.update(column)
        with pytest.raises(sm.FloatingPointModeError, match=r"set_flush_denormal\(False\)"):
            metric.compute()
    finally:
        torch.set_flush_denormal(False)
    assert metric.to_bytes() == before
    assert metric.update(tiny).update(large) == expected
    assert sm.Sum().update(tiny).compute() == 3e-310
