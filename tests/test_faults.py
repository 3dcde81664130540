"""A fault at any step of update or merge leaves the old state, and the call can be repeated."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path

import numpy as np
import pytest
from oracles import detection, spans, texts
from oracles.table import ORACLES, thinned

import streammetrics as sm
from streammetrics.core import tuning

PACKAGE = str(Path(sm.__file__).parent)


class Fault(MemoryError):
    """What a full memory would raise."""


# What update and merge still run after the assignment that has changed the state; the lock's line
# is also the one that opens it, where the line of the call stands in for it.
THROUGH = {
    "with self._lock:", "with lock:", "if not inside:", "self._changing = None",
    "return after", "return self", "return",
}  # fmt: skip


def is_through(frame):
    """Whether a frame is about to run a line that only follows a change."""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    return line.strip() in THROUGH


def run_until(step, call):
    """Call, raising `Fault` at one of the package's lines; return whether the call got there."""
    left = step

    def tracer(frame, event, arg):
        nonlocal left
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line" and not is_through(frame):
            left -= 1
            if left < 0:
                raise Fault
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        with np.errstate():  # a fault at the line that leaves such a block keeps what was set there
            call()
    except Fault:
        return True
    finally:
        sys.settrace(before)
    return False


EVERY = thinned(ORACLES, columns=False)
STAGED = [pytest.param(*p.values, True, id=p.id, marks=p.marks) for p in EVERY]
# Large batches take the path of their statistic, whatever is read from it.
AT_ONCE = [
    pytest.param(*p.values, False, id=f"{p.id} at once", marks=pytest.mark.long)
    for p in thinned(ORACLES)  # of each kind of rows as well
    if not p.marks
]


def taken_at_once(oracle, patch):
    """Return a number of rows that is worth a call of the statistics.

    20 000 texts or images would be walked one by one at each of the steps, some minutes for every
    metric: for these fewer rows are made worth it.
    """
    if oracle not in (*texts.ORACLES, *detection.ORACLES, *spans.ORACLES):
        return 20_000
    patch.setattr(tuning, "STAGED_ROWS", 100)
    return 200


@pytest.mark.parametrize(("oracle", "buffered"), [*STAGED, *AT_ONCE])
def test_fault_in_update_changes_nothing(oracle, buffered, monkeypatch):
    n = 40 if buffered else taken_at_once(oracle, monkeypatch)
    rng = np.random.default_rng(3)
    metric = oracle.metric.copy().update(**oracle.rows(rng, 50))
    before = metric.to_bytes()
    more = oracle.rows(rng, n)
    step, steps = 0, 0
    while run_until(step, lambda: metric.update(**more)):
        assert metric.to_bytes() == before, f"after a fault at step {step}"
        steps += 1
        step += 1 + step // 6
    assert steps > 5
    again = oracle.metric.copy().merge(sm.from_bytes(before)).update(**more)
    assert metric == again


@pytest.mark.parametrize("oracle", EVERY)
def test_fault_in_merge_changes_nothing(oracle):
    rng = np.random.default_rng(4)
    metric = oracle.metric.copy().update(**oracle.rows(rng, 50))
    other = oracle.metric.copy().update(**oracle.rows(rng, 30))
    before, theirs = metric.to_bytes(), other.to_bytes()
    step = 0
    while run_until(step, lambda: metric.merge(other)):
        assert metric.to_bytes() == before, f"after a fault at step {step}"
        assert other.to_bytes() == theirs
        step += 1 + step // 6
    assert step > 3
    assert metric == sm.merge([sm.from_bytes(before), sm.from_bytes(theirs)])
