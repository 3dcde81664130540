"""Updates off the critical path: the bytes of plain updates, whatever comes late or fails."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import queue
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from random import Random

import late_device
import numpy as np
import pytest
from engine_suites import exact_suite

import streammetrics as sm
from streammetrics.engines import offload as engine
from streammetrics.engines.offload import Offload, QueueFullError

PATIENCE = 20.0  # seconds after which what still waits has failed

# Later versions of Python warn of what is tested here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no process is forked here")


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    end = time.monotonic() + 10
    while any(thread.name == "offload" for thread in threading.enumerate()):
        assert time.monotonic() < end, "a worker is left"
        gc.collect()
        time.sleep(0.001)


class Held:
    """A column of one zero, which the worker reads when it is let."""

    def __init__(self):
        self.begun, self.let = threading.Event(), threading.Event()

    def __array__(self, dtype=None, copy=None):
        self.begun.set()
        assert self.let.wait(PATIENCE)
        return np.zeros(1)

    def __deepcopy__(self, memo):
        return self


def held(metrics, name="values", **others):
    """Let the worker begin with a batch that it cannot finish."""
    column = Held()
    metrics.update(**{name: column}, **others)
    assert column.begun.wait(PATIENCE)
    return column


def rows(seed, n=50):
    rng = np.random.default_rng(seed)
    return {
        "label": rng.integers(0, 2, n),
        "score": rng.random(n).round(3),
        "weight": rng.integers(0, 5, n) / 4,
    }


def plain(batches):
    suite = exact_suite()
    for batch in batches:
        suite.update(**batch)
    return suite


def test_the_bytes_of_plain_updates():
    batches = [rows(seed, n) for seed, n in enumerate([1, 0, 50, 5000, 200_000])]
    with Offload(exact_suite()) as metrics:
        for batch in batches:
            metrics.update(**batch)
        assert metrics.compute() == plain(batches).compute()
        assert metrics.enqueued == metrics.processed == 5
        assert metrics.drain() is metrics.suite
    assert metrics.suite.to_bytes() == plain(batches).to_bytes()
    assert repr(metrics).endswith("<5 of 5 batches>")


TENSORS = ["tensor", "gradient", "bfloat16", "negated"]  # NumPy has only the first


@pytest.mark.parametrize("kind", ["array", "list", *TENSORS, "table", "frame", "nested"])
def test_what_was_passed_may_be_overwritten(kind):
    v = np.arange(5.0)
    if kind in TENSORS:
        torch = pytest.importorskip("torch")
        v = {
            "tensor": torch.arange(5.0),
            "gradient": torch.arange(5.0, requires_grad=True) * 1.0,
            "bfloat16": torch.arange(5.0, dtype=torch.bfloat16),
            "negated": torch.complex(torch.zeros(5), -torch.arange(5.0)).conj().imag,
        }[kind]
    elif kind == "frame":
        v = pytest.importorskip("pandas").Series(v)
    elif kind in {"list", "nested"}:
        v = [0.0, 1.0, 2.0, 3.0, 4.0]
    with Offload(sm.MetricSet({"sum": sm.Sum()})) as metrics:
        wall = held(metrics)
        if kind == "table":
            metrics.update({"values": v})
        elif kind == "frame":
            metrics.update(v.to_frame("values"))
        elif kind == "nested":
            metrics.update({"values": [(x,) for x in v]})
        else:
            metrics.update(values=v)
        (v.detach() if kind in TENSORS else v)[:] = [9.0] * 5 if isinstance(v, list) else 9.0
        wall.let.set()
        assert metrics.compute()["sum"] == 10.0


class Seen(sm.Mean):
    """A metric that keeps what its updates get."""

    batches = ()

    def update(self, *args, **columns):
        self.batches = (*self.batches, (args, columns))
        return self


def tensors(torch):
    """Return tensors of all types, and some whose memory does not have their values."""
    names = ("bool", "bfloat16", "complex64", "float8_e4m3fn", "uint16", "uint32", "uint64")
    names += ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
    some = [torch.tensor([[0, 1, 0], [1, 1, 0]]).to(getattr(torch, name)) for name in names]
    some += [torch.arange(6.0)[1:4], torch.arange(6.0)[::2], torch.ones(2, 3).T, torch.ones(2, 0)]
    some += [torch.tensor(3), torch.ones(1).expand(4), torch.ones(1 << 19)]
    pairs = torch.complex(torch.zeros(3), torch.arange(1.0, 4.0)).conj()
    some += [pairs, pairs.imag, pairs[:1].imag, pairs.imag.as_strided((3,), (1,))]
    some += [
        torch._efficientzerotensor(3),
        torch.nn.Parameter(torch.ones(2)),
        torch.ones(2).double(),
    ]
    return some


@pytest.mark.parametrize("way", ["kernel", "clones"])
def test_tensors_of_all_kinds_arrive_as_they_were(way, monkeypatch):
    torch = pytest.importorskip("torch")
    if way == "clones":
        monkeypatch.setattr(engine, "_copied", lambda *_: None)
    given, metrics = tensors(torch), Offload(Seen())
    expected = [value.detach().clone().resolve_conj().resolve_neg() for value in given]
    for value in given:
        metrics.update(value, column=value)
    metrics.close()
    assert len(metrics.suite.batches) == len(given)
    for (args, columns), value in zip(metrics.suite.batches, expected, strict=True):
        for found in (*args, columns["column"]):
            assert type(found) is torch.Tensor or isinstance(found, torch.nn.Parameter)
            assert (found.dtype, found.shape) == (value.dtype, value.shape)
            wide = torch.complex128 if value.is_complex() else torch.float64
            assert torch.equal(found.to(wide), value.to(wide))


def test_the_kernel_copies_small_tensors_and_leaves_the_others():
    torch = pytest.importorskip("torch")
    exchange = engine._find_exchange()
    if exchange is None or not sm.kernels().startswith("kernels"):
        pytest.skip("there is no kernel, or no table of PyTorch")

    def copied(*values):
        return engine._copied(values, {}) is not None

    taken = [copied(value) for value in tensors(torch)]
    # All types but complex and float8, a slice, a scalar and a float64.
    whole = [True, True, False, False, *[True] * 11]
    assert taken == [*whole, True, *[False] * 3, True, *[False] * 8, True]
    assert copied(torch.ones(2), torch.arange(5, dtype=torch.int64))
    assert not copied(torch.ones(2), [1.0])
    assert not copied(torch.ones(2), None)


def test_positional_columns_and_columns_of_any_name():
    with Offload(sm.Mean()) as mean:
        mean.update([1.0, 3.0], sample_weight=[1.0, 3.0])
        assert mean.compute() == 2.5
    with Offload(sm.MetricSet({"sum": sm.Sum()}, columns={"values": "self"})) as metrics:
        metrics.update(self=[1.0])
        assert metrics.compute() == {"sum": 1.0}


@pytest.mark.parametrize("late", [False, True])
def test_a_device_whose_copies_complete_late(late, monkeypatch):
    backend = late_device.Backend(late=late)
    monkeypatch.setattr(engine, "_SIDES", {})
    monkeypatch.setattr(engine, "_backend", lambda _: backend)
    devices = list(backend.streams)
    batches = [rows(seed) for seed in range(20)]
    with Offload(exact_suite(), queue=30) as metrics:
        wall = held(metrics, "label", score=[0.5], weight=[1.0])
        for turn, batch in enumerate(batches):
            there = {
                name: late_device.Tensor(backend, values, devices[place % 2 * turn % 2])
                for place, (name, values) in enumerate(batch.items())
            }
            if turn % 3 == 0:
                there["weight"] = batch["weight"].copy()
            metrics.update(**there)
            for column in there.values():
                (getattr(column, "fill_", None) or column.fill)(0)
        wall.let.set()
    batches.append({"label": [0], "score": [0.5], "weight": [1.0]})
    assert metrics.suite.to_bytes() == plain(batches).to_bytes()
    assert len(engine._SIDES) == 2  # one stream a device, for all batches


def test_a_device_without_streams_is_read_at_once(monkeypatch):
    class Tensor(late_device.Tensor):
        def clone(self):
            return Tensor(self.backend, self.memory)

        def to(self, where):
            return self.memory.copy()

    monkeypatch.setattr(engine, "_backend", lambda _: None)
    tensor = Tensor(late_device.Backend(late=False), [1.0, 2.0])
    with Offload(sm.Sum()) as total:
        total.update(tensor)
        tensor.fill_(0)
        assert total.compute() == 3.0


def test_a_full_queue_blocks_until_there_is_room():
    with Offload(sm.Sum(), queue=2) as total:
        wall = held(total)
        total.update([1.0])
        timer = threading.Timer(0.05, wall.let.set)
        timer.start()
        total.update([2.0])
        assert wall.let.is_set()
        timer.join()
        assert total.compute() == 3.0
        assert total.enqueued == total.processed == 3


def test_a_full_queue_raises_without_block():
    with Offload(sm.Sum(), queue=2, block=False) as total:
        wall = held(total)
        total.update([1.0])
        for _ in range(3):
            with pytest.raises(queue.Full, match="2 batches wait"):
                total.update([2.0])
            assert total.enqueued == 2
        wall.let.set()
        total.drain()
        total.update([4.0])
        assert total.compute() == 5.0
    assert issubclass(QueueFullError, sm.StreamMetricsError)


def refused(call, *args, **kwargs):
    with pytest.raises(sm.StreamMetricsError, match="batch") as raised:
        call(*args, **kwargs)
    return str(raised.value), getattr(raised.value, "__notes__", [])


@pytest.mark.parametrize("way", ["update", "drain", "compute", "close", "pickle"])
def test_the_next_call_raises_what_was_refused(way):
    total = Offload(sm.Sum())
    wall = held(total)
    for values in ([1.0], [2.0, np.nan], [4.0], [np.inf], [8.0]):
        total.update(values)
    wall.let.set()
    if way == "update":
        while total.processed < 6:
            time.sleep(0.001)
    call = {"update": lambda: total.update([99.0]), "pickle": lambda: pickle.dumps(total)}
    told, notes = refused(call.get(way) or getattr(total, way))
    assert told.startswith(
        "batch 2: values is missing (NaN or null) in 1 row, first in row 1 of the batch"
    )
    assert len(notes) == 1
    assert "InvalidBatchError: batch 4: values" in notes[0]
    assert total.compute() == 13.0  # told once, and the batches after it are taken
    assert total.enqueued == total.processed == 6
    total.close()


def test_other_errors_keep_their_type_and_note_the_batch():
    class Odd(sm.Mean):
        def update(self, values):
            if values == 1:
                raise SystemExit("an exit")
            return self.feed({"values": [values]})

    with Offload(Odd()) as odd:
        for value in (0, 1, 5):
            odd.update(value)
        with pytest.raises(SystemExit, match="an exit") as raised:
            odd.drain()
        assert raised.value.__notes__ == ["in batch 1 of an Offload"]
        assert odd.compute() == 2.5
        odd.update(wrong=3)
        with pytest.raises(TypeError, match="unexpected keyword") as raised:
            odd.drain()
        assert raised.value.__notes__ == ["in batch 3 of an Offload"]


def test_a_column_that_cannot_be_copied_takes_no_room():
    class Bad:
        def __deepcopy__(self, memo):
            raise ZeroDivisionError("no copy")

    with Offload(sm.Sum(), queue=1) as total:
        for _ in range(3):
            with pytest.raises(ZeroDivisionError, match="no copy"):
                total.update(Bad())
        total.update([1.0])
        assert total.compute() == 1.0
        assert total.enqueued == total.processed == 1


def test_a_loop_that_raises_loses_nothing():
    total = Offload(sm.Sum())
    wall = held(total)
    for value in (1.0, 2.0, np.nan, 4.0):
        total.update([value])
    threading.Timer(0.05, wall.let.set).start()
    with pytest.raises(ZeroDivisionError, match="the loop") as raised, total:
        raise ZeroDivisionError("the loop")
    assert total.compute() == 7.0
    assert raised.value.__notes__[0].startswith(
        "and then InvalidBatchError: batch 3: values is missing"
    )


def test_closed():
    total = Offload(sm.Sum())
    total.close()
    total.close()
    with pytest.raises(sm.StreamMetricsError, match="was closed"):
        total.update([1.0])
    assert total.drain().n_rows == total.enqueued == 0


def test_what_is_no_suite():
    with pytest.raises(TypeError, match="a dict is not a metric or a MetricSet"):
        Offload({})
    with pytest.raises(ValueError, match="queue=0"):
        Offload(sm.Sum(), 0)


@pytest.mark.parametrize("way", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_a_copy_has_all_batches_and_a_queue_of_its_own(way):
    with Offload(sm.Sum(), 1, block=False) as total:
        wall = held(total)
        threading.Timer(0.05, wall.let.set).start()
        with way(total) as twin:
            assert twin.suite == total.suite
            assert (twin.enqueued, twin.suite.n_rows) == (0, 1)
            twin.update([1.0])
            assert twin.compute() == 1.0
            wall = held(twin)
            with pytest.raises(QueueFullError, match="1 batches wait"):
                twin.update([1.0])
            wall.let.set()
        assert total.compute() == 0.0


def test_batches_of_an_offload_that_was_dropped_are_counted():
    suite = sm.Sum()
    total = Offload(suite)
    wall = held(total)
    total.update([1.0])
    gone = weakref.ref(total)
    del total
    wall.let.set()
    end = time.monotonic() + PATIENCE
    while gone() is not None:
        assert time.monotonic() < end
        time.sleep(0.001)
    assert suite.compute() == 1.0


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("naps", [0, 1 << 30])
def test_a_worker_that_waits_finds_a_batch_by_itself_or_is_woken(naps, monkeypatch):
    monkeypatch.setattr(engine, "_NAPS", naps)
    with Offload(sm.Sum()) as total:
        for n in range(1, 4):
            total.update([1.0])
            until(lambda n=n: total.processed == n)
            until(lambda: total._jobs._rest == (engine._NAPPING if naps else engine._ASLEEP))


def test_a_worker_that_naps_is_woken_to_drain_and_where_half_the_queue_is_full(monkeypatch):
    monkeypatch.setattr(engine, "_NAP", 10 * PATIENCE)
    with Offload(sm.Sum(), queue=4) as total:
        total.update([1.0])
        assert total.drain().n_rows == 1
        until(lambda: total._jobs._rest == engine._NAPPING)
        for _ in range(2):
            total.update([1.0])
        assert total.processed == 1
        total.update([1.0])
        until(lambda: total.processed == 4)


def test_several_threads_update_and_drain():
    def work(seed):
        rng = Random(seed)
        for value in range(200):
            total.update([float(value)])
            if rng.random() < 0.02:
                total.drain()

    total = Offload(sm.Sum(), queue=3)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total.compute() == 4 * sum(range(200))
    assert total.enqueued == total.processed == 800
    total.close()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_a_signals_handler_drains_in_the_middle_of_an_update():
    def handle(*_):
        seen.append(total.drain().n_rows)
        total.update([0.0])
        signal.setitimer(signal.ITIMER_REAL, 0.002)  # again, but not while this one works

    seen, total = [], Offload(sm.Sum(), queue=4)
    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.002)
    try:
        count = 0
        while len(seen) < 50:
            total.update([1.0])
            count += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert total.compute() == count
    assert total.enqueued == total.processed == count + len(seen)
    total.close()


def wait_for(child):
    """Return the status of a child, which is killed where it hangs."""
    end = time.monotonic() + PATIENCE
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.0005)


def forked(check):
    """Fork; return the child's process id, which exits with 0 where the check holds."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        status = 0 if check() else 2
    finally:
        os._exit(status)


@forks
def test_a_forked_child_has_an_empty_queue():
    def child():
        known = total.suite.compute()
        agree = total.enqueued == total.processed == 1
        total.update([5.0])
        return agree and known == 8.0 and total.compute() == 13.0 and total.enqueued == 2

    with Offload(sm.Sum()) as total:
        total.update([8.0])
        total.drain()
        wall = held(total)
        total.update([1.0])
        total.update([np.nan])
        assert wait_for(forked(child)) == 0
        wall.let.set()
        with pytest.raises(sm.InvalidBatchError, match="batch 3: values is missing"):
            total.drain()
        assert total.compute() == 9.0


class RandomRun:
    """Batches of which some are refused, with full queues, forks and reads in between."""

    def __init__(self, seed):
        self.rng = Random(seed)
        self.suite = sm.MetricSet({"sum": sm.Sum(), "count": sm.Count()})
        self.metrics = Offload(self.suite, self.rng.randint(1, 5), block=self.rng.random() < 0.5)
        self.taken, self.n_refused, self.n_told, self.children = [], 0, 0, []
        self.wall = None
        if self.rng.random() < 0.2:
            self.wall, self.taken = held(self.metrics), [[0.0]]

    def until_done(self, call, *args, **columns):
        """Call until no earlier batch is reported and there is room."""
        while True:
            try:
                return call(*args, **columns)
            except QueueFullError:
                time.sleep(0)
            except sm.InvalidBatchError as error:
                notes = getattr(error, "__notes__", [])
                self.n_told += 1 + sum(note.startswith("and then") for note in notes)

    def update(self, good):
        values = [self.rng.random() for _ in range(self.rng.randint(1, 5))]
        if good:
            self.until_done(self.metrics.update, values=np.array(values))
            self.taken.append(values)
        elif self.rng.random() < 0.5:
            self.until_done(self.metrics.update, values=[*values, np.nan])
        else:
            self.until_done(self.metrics.update, valuse=values)
        self.n_refused += not good

    def child(self):
        rows, agree = self.suite.n_rows, self.metrics.enqueued == self.metrics.processed
        self.metrics.update(values=[1.0, 2.0])
        agree &= self.metrics.drain().n_rows == rows + 2
        return agree and self.metrics.enqueued == self.metrics.processed

    def step(self):
        metrics, rng = self.metrics, self.rng
        n_rows = sum(map(len, self.taken))
        kind = rng.choice(["good", "good", "good", "bad", "drain", "read", "fork"])
        full = metrics.enqueued - metrics.processed == metrics._queue
        if self.wall and (full or kind == "drain" or rng.random() < 0.2):
            self.wall = self.wall.let.set()
        if kind == "drain":
            assert self.until_done(metrics.drain).n_rows == n_rows
        elif kind == "read":
            assert 0 <= self.suite.n_rows <= n_rows
        elif kind != "fork":
            self.update(kind == "good")
        elif hasattr(os, "fork") and rng.random() < 0.2:
            self.children.append(forked(self.child))

    def end(self):
        if self.wall:
            self.wall.let.set()
        if self.rng.random() < 0.5:
            with pytest.raises(KeyError, match="the loop") as raised, self.metrics:
                raise KeyError("the loop")
            assert len(getattr(raised.value, "__notes__", [])) <= 1
        else:
            self.until_done(self.metrics.close)
            assert self.n_told == self.n_refused
        expected = sm.MetricSet({"sum": sm.Sum(), "count": sm.Count()})
        for values in self.taken:
            expected.update(values=values)
        assert self.suite.to_bytes() == expected.to_bytes()
        assert self.metrics.enqueued == self.metrics.processed
        assert self.metrics.enqueued == len(self.taken) + self.n_refused
        assert [wait_for(child) for child in self.children] == [0] * len(self.children)


def run_randomly(seed):
    run = RandomRun(seed)
    for _ in range(run.rng.randint(1, 12)):
        run.step()
    run.end()


@pytest.mark.parametrize("seed", range(2))
def test_random_runs(seed):
    for run in range(20):
        run_randomly(f"{seed} {run}")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 25))
def test_many_random_runs(seed):
    for run in range(500):
        run_randomly(f"{seed} {run}")


SCRIPT = """
import atexit, sys, threading, time

import streammetrics as sm

suite = sm.Sum()
atexit.register(lambda: print(suite.n_rows, "rows"))  # runs after those registered later

from streammetrics.engines.offload import Offload

class Late:
    def __array__(self, dtype=None, copy=None):
        time.sleep(0.2)
        import numpy
        return numpy.zeros(1)

total = Offload(suite)
total.update(Late())
for value in range(20):
    total.update([float(value)])

class Last:
    def __del__(self):
        print(total.drain().n_rows, "at the very end", flush=True)

sys.last = Last()
"""


@pytest.mark.parametrize(
    ("ending", "status", "shown"),
    [
        ("", 0, ""),
        ("raise ZeroDivisionError('the loop')", 1, "ZeroDivisionError: the loop"),
        ("sys.exit(3)", 3, ""),
        ("total.update([float('nan')])", 0, "InvalidBatchError: batch 21: values is missing"),
    ],
)
def test_the_exit_of_the_interpreter_drains(ending, status, shown):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT) + ending],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stdout.splitlines()[0] == "21 rows", done.stderr
    assert done.stdout.splitlines()[1:] in ([], ["21 at the very end"])
    assert done.returncode == status
    assert shown in done.stderr
    assert bool(done.stderr) == bool(shown)
