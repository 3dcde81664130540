"""Any number of threads update, merge and read: nothing is lost, and reads see a state that was."""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from functools import partial
from itertools import product

import numpy as np
import pytest
from alarms import alarms
from thinning import some

import streammetrics as sm
from streammetrics.core import tuning
from streammetrics.core.errors import undefined_expected
from streammetrics.testing.laws import broken_states

RNG = np.random.default_rng(0)
PAIRS = 400  # of rows, in a batch


@pytest.fixture(autouse=True)
def _switching():
    before = sys.getswitchinterval()
    sys.setswitchinterval(2e-6)
    yield
    sys.setswitchinterval(before)


def together(*jobs):
    """Run every job in a thread of its own, all from one moment on; raise what one of them did."""
    start, failed = threading.Barrier(len(jobs)), []

    def run(job):
        start.wait()
        try:
            job()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive(), "threads wait for each other"
    if failed:
        raise failed[0]


def batch(n, seed=0):
    """Rows of which each comes twice: every true state has an even number of each."""
    rng = np.random.default_rng(seed)
    y, s = rng.integers(0, 2, n // 2), rng.random(n // 2)
    return {"y_true": np.repeat(y, 2), "y_score": np.repeat(s, 2)}


def suite():
    metrics = {
        "f1": sm.F1(threshold=0.5), "auc": sm.ROCAUC(), "loss": sm.LogLoss(),
        "report": sm.ConfusionMatrix(threshold=0.5),
    }  # fmt: skip
    return sm.MetricSet(metrics)


def writer(metric, batches, done=None):
    def write():
        try:
            for rows in batches:
                metric.update(**rows)
        finally:
            (done if done is not None else []).append(True)

    return write


def looked(metric):
    """Return what a reader of a set sees, all from states that must have been."""
    values = metric.compute()
    matrix = values["report"]
    assert (matrix % 2 == 0).all(), "half a batch was seen"
    (_, fp), (fn, tp) = matrix
    assert values["f1"] == 2 * tp / (2 * tp + fn + fp), "values of two states"
    return int(matrix.sum())


READS = {
    "compute": looked,
    "bounds": lambda m: int(m.bounds()["report"].low.sum()),
    "n_rows": lambda m: m.n_rows,
    "exact": lambda m: 2 * m.exact,
    "nbytes": lambda m: 2 * (m.nbytes > 0),
    "copy": lambda m: looked(m.copy()),
    "deepcopy": lambda m: looked(copy.deepcopy(m)),
    "to_bytes": lambda m: looked(sm.from_bytes(m.to_bytes())),
    "pickle": lambda m: looked(pickle.loads(pickle.dumps(m))),
    "view": lambda m: int(m["report"].compute().sum()),
    "copy of a view": lambda m: m["f1"].copy().n_rows,
    "merge": lambda m: looked(sm.merge([m, m])),  # of two moments
    "==": lambda m: 2 * (m["f1"].copy() == sm.F1(threshold=0.5)),
    "repr": lambda m: int(repr(m).partition("<")[2].split()[0].replace(",", "")),
}


@pytest.mark.parametrize("read", READS)
def test_readers_lose_no_row_and_see_a_state_that_was(read):
    metric = suite().update(**batch(40))
    batches = [[batch(8, 100 * k + i) for i in range(60)] for k in range(3)]
    done = []  # a list grows in one step

    def reader():
        seen = 0
        while len(done) < len(batches):
            n = READS[read](metric)
            assert n % 2 == 0
            assert n >= seen, "rows that were there have gone"
            seen = n

    together(reader, *(writer(metric, each, done) for each in batches))
    alone = suite().update(**batch(40))
    for each in batches:
        writer(alone, each)()
    assert metric.to_bytes() == alone.to_bytes()


SIZES = {"rows": 1, "staged": 64, "at once": tuning.STAGED_ROWS + 2, "slices": tuning.BATCH_ROWS}


@pytest.mark.parametrize("sizes", some([list(SIZES), *([name] for name in SIZES)], 5), ids="-".join)
def test_writers_of_batches_of_any_size_lose_nothing(sizes):
    metric, alone = suite(), suite()
    batches = [batch(2 * SIZES[name], k) for k, name in enumerate(sizes * (4 // len(sizes)))]
    together(*(writer(metric, [rows] * 2) for rows in batches), lambda: metric.n_rows)
    for rows in batches:
        writer(alone, [rows] * 2)()
    assert metric.to_bytes() == alone.to_bytes()


@pytest.mark.long
def test_a_long_time_of_everything_at_once():
    metric, done = suite().update(**batch(40)), []
    sizes = [2, 16, 128, 1_024, tuning.STAGED_ROWS + 2, tuning.BATCH_ROWS + 2]
    batches = [[batch(RNG.choice(sizes), 1_000 * k + i) for i in range(60)] for k in range(4)]

    def reader():
        while len(done) < len(batches):
            for read in READS.values():
                assert read(metric) % 2 == 0

    together(reader, reader, *(writer(metric, each, done) for each in batches))
    alone = suite().update(**batch(40))
    for each in batches:
        writer(alone, each)()
    assert metric.to_bytes() == alone.to_bytes()
    assert not list(broken_states(metric))


def test_more_rows_than_are_staged():
    metric, alone = sm.F1(threshold=0.5), sm.F1(threshold=0.5)
    rows = batch(PAIRS)
    together(*[writer(metric, [rows] * 60)] * 3, *[lambda: [metric.n_rows for _ in range(40)]] * 2)
    writer(alone, [rows] * 180)()
    assert metric.to_bytes() == alone.to_bytes()


def test_metrics_that_merge_each_other_do_not_wait_for_each_other():
    a, b, sink = (suite().update(**batch(40, seed)) for seed in range(3))
    together(
        *[lambda: [sink.merge(a, b) for _ in range(20)]] * 2,
        lambda: [sink.merge(b.copy(), a.copy()) for _ in range(20)],
    )
    assert sink == sm.merge([suite().update(**batch(40, 2)), *[a, b] * 60])
    one, other = sm.Count().update([1.0]), sm.Count().update([2.0])
    together(
        lambda: [one.merge(other) for _ in range(10)], lambda: [other.merge(one) for _ in range(10)]
    )
    # Each merge adds what the other held at some moment, so the last ones hold Fibonacci numbers.
    assert 12 <= one.n_rows + other.n_rows <= 2**20
    together(*[lambda: [one.merge(one) for _ in range(3)]] * 3)


def test_reset_beside_updates_leaves_whole_batches():
    metric = suite()
    together(
        *[writer(metric, [batch(8, k) for k in range(100)])] * 2,
        lambda: [metric.reset() for _ in range(50)],
        lambda: [looked(metric.copy().update(**batch(40))) for _ in range(50)],
    )
    assert looked(metric.update(**batch(40))) <= 2 * 800 + 40
    assert metric.reset().update(**batch(8)) == suite().update(**batch(8))


# Statistics that count rows when they are read: one state may be read by several threads.
LAZY = {
    "scores": (sm.ROCAUC(max_bins=64), ("y_true", "y_score")),
    "values": (sm.Quantile(q=0.3, max_bins=64), ("values",)),
    "pairs": (sm.KendallTau(), ("y_true", "y_pred")),
    "few pairs": (sm.SpearmanRho(max_pairs=64), ("y_true", "y_pred")),
    "rankings": (sm.NDCG(k=3), ("query", "relevance", "score")),
    "points": (sm.DaviesBouldin(max_points=50), ("X", "labels")),
}


@pytest.mark.parametrize("kind", LAZY)
@pytest.mark.filterwarnings("ignore::streammetrics.EstimateWarning")
def test_states_that_are_settled_when_read_are_settled_once(kind):
    blank, names = LAZY[kind]
    rng = np.random.default_rng(7)
    n = 500

    def some():
        columns = {name: rng.normal(size=n) for name in names}
        for name in {"y_true", "labels", "relevance", "query"} & {*names}:
            columns[name] = rng.integers(0, 2, n)
        return columns

    metric, alone = blank.copy(), blank.copy()
    for _ in range(15):
        rows = some()
        metric.update(**rows)
        alone.update(**rows)
        twin = metric.copy()
        expected = sm.from_bytes(alone.to_bytes())
        together(
            metric.compute, twin.compute, lambda m=metric: m.nbytes, lambda m=metric: m.bounds(),
            lambda m=twin: m.nbytes, lambda m=metric: m.copy().to_bytes(),
            lambda m=twin, e=expected: m.merge(e),
        )  # fmt: skip
        assert metric.to_bytes() == alone.to_bytes()
        assert twin.to_bytes() == sm.merge([alone, alone]).to_bytes()


class Asking:
    """A column that reads, and feeds, the metric that it is given to."""

    def __init__(self, metric):
        self.metric = metric

    def __array__(self, dtype=None, copy=None):
        self.seen = self.metric.n_rows
        self.metric.update([4.0])
        return np.array([1.0, 2.0])


def test_columns_may_use_the_metric_that_reads_them():
    metric = sm.Mean()
    column = Asking(metric)
    metric.update(column)
    assert (column.seen, metric.n_rows, metric.compute()) == (0, 3, 7 / 3)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers")
def test_a_signal_in_the_middle_may_update_and_read():
    metric, calls = sm.Mean(), [0]

    def one_more():
        calls[0] += 1
        metric.update([1.0])
        assert metric.n_rows > 0

    n = 0
    with alarms(one_more, 1e-4):
        while calls[0] < 200:
            metric.update([1.0, 1.0])
            n += 2
    assert metric.n_rows == n + calls[0]


FIRST = """
import signal, sys
import streammetrics as sm

def handler(*_):
    m.update([1.0])

def hook(event, arguments):
    if event == "import" and arguments[0].startswith("numpy."):
        signal.raise_signal(signal.SIGALRM)

m = sm.Mean()
signal.signal(signal.SIGALRM, handler)
sys.addaudithook(hook)
m.update([2.0])
signal.raise_signal(signal.SIGALRM)
print(m.n_rows >= 2)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_signal_may_come_while_the_first_update_loads_modules():
    command = [sys.executable, "-c", FIRST]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers")
def test_a_periodic_signal_does_not_hold_up_a_long_update():
    metric, calls = sm.Quantile(q=0.5), [0]
    rows = np.random.default_rng(0).random(8 * tuning.BATCH_ROWS)

    def one_more():
        calls[0] += 1
        metric.update([0.5])
        assert calls[0] < 5_000, "the update starts anew each time"

    with alarms(one_more, 1e-3):
        metric.update(rows)
    assert metric.n_rows == len(rows) + calls[0]
    assert metric == sm.Quantile(q=0.5).update(rows).update(np.full(calls[0], 0.5))


(Held,) = map(type, sm.Mean().statistics())


class CalledBack(Held):
    """Calls somebody whenever it takes rows, or another state, as a finalizer may be called."""

    call = staticmethod(lambda often=True: None)

    def update(self, *columns, weight):
        type(self).call()
        super().update(*columns, weight=weight)

    def merge_all(self, others):
        type(self).call(often=False)
        super().merge_all(others)


(Table,) = map(type, sm.Accuracy().statistics())


class CalledTable(Table):
    """The same of labels."""

    call = staticmethod(lambda: None)

    def update(self, *columns, weight):
        type(self).call()
        super().update(*columns, weight=weight)


class Labelled(sm.Accuracy):
    """The share of right labels, come back to in the middle of every change."""

    def statistics(self):
        return tuple(CalledTable(**table.config) for table in super().statistics())


class CallingMean(sm.Mean):
    """A mean that is come back to in the middle of every change."""

    def statistics(self):
        return tuple(CalledBack(**held.config) for held in super().statistics())


LENGTHS = {"staged": 2, "at once": tuning.STAGED_ROWS + 2, "in slices": tuning.BATCH_ROWS + 2}
CHANGES = {
    **{f"update {name}": partial(sm.Mean.update, values=np.ones(n)) for name, n in LENGTHS.items()},
    **{f"batch {name}": partial(sm.Mean.batch, values=np.ones(n)) for name, n in LENGTHS.items()},
    "merge": lambda metric: metric.merge(of_ones(3)),
    "read": lambda metric: metric.compute(),
    "copy": lambda metric: metric.copy(),
    "update and read": lambda metric: metric.update([1.0]).to_bytes(),
    "reset": lambda metric: metric.reset(),
    "update and reset": lambda metric: metric.update([1.0]).reset(),
    "refused": lambda metric: metric.update([np.nan]),
}
BRINGS = {
    **{f"{how} {name}": n for name, n in LENGTHS.items() for how in ("update", "batch")},
    "merge": 3,
    "update and read": 1,
}


def of_ones(n):
    """Return a mean of ones, which nobody comes back to meanwhile."""
    return CallingMean().update(np.ones(n)).copy()


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize(
    ("outer", "inner", "depth"), some(product(CHANGES, CHANGES, [1, 2]), every=5)
)
def test_changes_in_the_middle_of_another_are_added_to_it(monkeypatch, outer, inner, depth):
    metric = of_ones(5).update([1.0, 1.0])  # of which some rows are staged
    calls, inside = [], []

    def call(often=True):
        if len(inside) < depth and (often or len(calls) < 3):
            assert len(calls) < 100, "the change starts anew each time"
            calls.append(None)
            inside.append(None)
            try:
                CHANGES[inner](metric)
            except sm.InvalidBatchError:
                assert inner == "refused"
            finally:
                inside.pop()

    monkeypatch.setattr(CalledBack, "call", staticmethod(call))
    refused = contextlib.nullcontext()
    if outer == "refused":
        refused = pytest.raises(sm.InvalidBatchError, match="missing")
    with refused:
        CHANGES[outer](metric)
    monkeypatch.setattr(CalledBack, "call", staticmethod(lambda often=True: None))
    after = metric.n_rows
    if "reset" in inner and calls:
        # A single long change comes after a reset in its middle, others may be before it in part.
        single = outer in {"update at once", "update in slices", "merge"}
        assert after in ({BRINGS[outer]} if single else {0, 7, BRINGS.get(outer, 0)})
    else:
        brought = BRINGS.get(inner, 0) * len(calls)
        if "reset" in outer:
            assert after <= brought
        else:
            assert after == 7 + BRINGS.get(outer, 0) + brought
    assert metric == of_ones(after) if after else CallingMean()


def test_a_change_that_contradicts_the_one_in_its_middle_is_refused(monkeypatch):
    metric = Labelled()

    def call():
        monkeypatch.setattr(CalledTable, "call", staticmethod(lambda: None))
        metric.update(["a"], ["b"])

    monkeypatch.setattr(CalledTable, "call", staticmethod(call))
    n = tuning.STAGED_ROWS + 1
    with pytest.raises(sm.InvalidBatchError, match="labels: 'integers' here, 'strings'"):
        metric.update(np.zeros(n, int), np.ones(n, int))
    assert metric == Labelled().update(["a"], ["b"])


def test_what_is_raised_in_the_middle_refuses_the_change_alone(monkeypatch):
    metric = of_ones(5)

    def call():
        monkeypatch.setattr(CalledBack, "call", staticmethod(lambda often=True: None))
        metric.update([1.0])
        raise TimeoutError("late")

    monkeypatch.setattr(CalledBack, "call", staticmethod(call))
    with pytest.raises(TimeoutError, match="late"):
        metric.update(np.ones(tuning.STAGED_ROWS + 1))
    assert metric == of_ones(6)


class SlowHeld(Held):
    """Takes its first rows when it is told to."""

    begun, go_on = threading.Event(), threading.Event()

    def update(self, *columns, weight):
        if not self.begun.is_set():
            self.begun.set()
            self.go_on.wait(30)
        super().update(*columns, weight=weight)


class SlowMean(sm.Mean):
    """A mean of which it can be known that somebody is changing it."""

    def statistics(self):
        return tuple(SlowHeld(**held.config) for held in super().statistics())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process is forked here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_finds_no_lock_held():
    metric = SlowMean().update([1.0])
    thread = threading.Thread(target=metric.compute)  # brings the row to the statistic
    thread.start()
    SlowHeld.begun.wait(30)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a child that waits
        os._exit(0 if metric.update([3.0]).compute() == 2.0 else 1)
    SlowHeld.go_on.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert metric.compute() == 1.0


def test_a_thread_that_expects_undefined_values_leaves_the_warnings_of_others_alone():
    undefined = sm.Precision().update([1, 0], [0, 0])
    with warnings.catch_warnings(record=True, action="always") as caught:
        filters = list(warnings.filters)
        with undefined_expected():
            assert np.isnan(undefined.compute())
            assert warnings.filters == filters
            other = threading.Thread(target=undefined.copy().compute)
            other.start()
            other.join()
        undefined.copy().compute()
    assert [each.category for each in caught] == [sm.UndefinedMetricWarning] * 2
