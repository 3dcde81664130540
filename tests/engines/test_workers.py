"""Workers that die, are stopped, fail, or cannot be started: one error each, and no wait."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time

import pytest
from scripts import started
from thinning import some

import streammetrics as sm
from streammetrics.engines import processes
from streammetrics.engines.worker import portable

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


class Odd(Exception):
    """Does not unpickle: it takes two arguments, and keeps one."""

    def __init__(self, text, more):
        super().__init__(text)
        self.more = more


class Local(ValueError):
    """Does not pickle."""

    def __init__(self, text):
        super().__init__(text)
        self.lock = threading.Lock()


class Piece:
    """Rows, and what happens to whoever reads them."""

    once = False
    unit = "file"
    rows = 2

    def __init__(self, name, fate=None):
        self.name, self.fate = name, fate

    def __str__(self):
        return self.name

    def first_row(self):
        return 0

    def tables(self, batch_rows):
        yield 1, {"y_true": [1], "y_pred": [1]}
        match self.fate:
            case "exit":
                os._exit(9)
            case "local":
                raise Local("what is local")
            case "memory":
                raise MemoryError("1 TB")
            case int(number):
                os.kill(os.getpid(), number)
        yield 1, {"y_true": [1], "y_pred": [0]}


def evaluate(*fates, workers=2, **more):
    pieces = [Piece(f"piece {index}", fate) for index, fate in enumerate(fates)]
    suite = sm.MetricSet({"acc": sm.Accuracy()})
    result = sm.evaluate(suite, pieces, workers=workers, **more)
    assert multiprocessing.active_children() == []
    return result


def test_all_pieces_are_read_and_told():
    ticks = []
    result = evaluate(*[None] * 9, workers=2, progress=ticks.append)
    assert result["acc"].compute() == 0.5
    assert result.n_rows == sum(ticks) == 18


@pytest.mark.parametrize(
    ("fate", "error", "told"),
    some(
        [
            (signal.SIGKILL, sm.StreamMetricsError, r"\(SIGKILL\) while it read piece 2; systems"),
            ("exit", sm.StreamMetricsError, r"died \(exit code 9\) while it read"),
            (
                signal.SIGSTOP,
                sm.StreamMetricsError,
                "no sign of life for 3 s while it read piece 2",
            ),
            ("local", sm.StreamMetricsError, "^Local: what is local$"),
            ("memory", MemoryError, "1 TB"),
        ],
        every=5,
    ),
)
def test_what_befalls_a_worker_is_told(fate, error, told, monkeypatch):
    monkeypatch.setattr(processes, "SILENCE", 3.0)
    with pytest.raises(error, match=told):
        evaluate(None, None, fate, None, None)
    assert multiprocessing.active_children() == []


def test_errors_travel_as_they_are_where_they_can():
    error = sm.InvalidBatchError("x", "column", 3)
    assert portable(error) is error
    for odd, text in ((Odd("x", 1), "Odd: x"), (Local("y"), "Local: y")):
        told = portable(odd)
        assert (type(told), str(told)) == (sm.StreamMetricsError, text)


@pytest.mark.long
def test_a_parent_that_was_stopped_itself_blames_nobody(monkeypatch):
    monkeypatch.setattr(processes, "SILENCE", 10.0)
    clock = time.monotonic
    late = iter(range(0, 10**9, 1000))  # every look at the clock is a quarter of an hour later
    monkeypatch.setattr(processes.time, "monotonic", lambda: clock() + next(late))
    assert evaluate(*[None] * 4).n_rows == 8


def in_daemon(results):
    try:
        evaluate(None, None)
    except sm.StreamMetricsError as error:
        results.put(str(error))


@pytest.mark.long
def test_a_daemonic_process_is_told_so():
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    process = context.Process(target=in_daemon, args=(results,), daemon=True)
    process.start()
    process.join(60)
    assert results.get().startswith("this process is daemonic and cannot start workers: pass")


UNGUARDED = """
import streammetrics as sm
suite = sm.MetricSet({"worst": sm.MaxError()})  # its workers are processes
try:
    sm.evaluate(suite, [{"y_true": [1.0], "y_pred": [2.0]}] * 2, workers=2)
except sm.StreamMetricsError as error:
    print(error)
"""


@pytest.mark.long
def test_a_script_without_a_guard_is_told_so(tmp_path):
    (tmp_path / "run.py").write_text(UNGUARDED)
    out, err = started(tmp_path / "run.py").communicate(timeout=60)
    assert (out.count("\n"), err) == (1, "")
    assert out.endswith('put what it does under  if __name__ == "__main__":\n')


ENDLESS = """
import multiprocessing, time
import streammetrics as sm

class Endless:
    once, rows, unit = False, None, "file"
    def first_row(self):
        return 0
    def tables(self, batch_rows):
        print("started", flush=True)
        while True:
            time.sleep(0.01)
            yield 1, {"y_true": [1], "y_pred": [1]}

if __name__ == "__main__":
    try:
        sm.evaluate(sm.MetricSet({"acc": sm.Accuracy()}), [Endless()] * 4, workers=2)
    except KeyboardInterrupt:
        print(multiprocessing.active_children())
"""


@pytest.mark.long
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_workers_do_not_outlive_their_parent(end, tmp_path):
    (tmp_path / "run.py").write_text(ENDLESS)
    process = started(tmp_path / "run.py")
    assert [process.stdout.readline() for _ in range(2)] == ["started\n"] * 2
    if end == signal.SIGINT:
        os.killpg(process.pid, end)  # as a terminal does it
    else:
        process.send_signal(end)
    # Its pipes end when the last process that has them does.
    out, err = process.communicate(timeout=60)
    if end == signal.SIGINT:
        assert (out, err) == ("[]\n", "")


@pytest.mark.long
def test_a_worker_that_cannot_begin_is_told(tmp_path):
    (tmp_path / "run.py").write_text(
        "import sys\nif __name__ != '__main__': sys.exit(5)\n" + UNGUARDED
    )
    out, _ = started(tmp_path / "run.py").communicate(timeout=60)
    assert out == "a worker process died (exit code 5) before it began; what it wrote may say why\n"
