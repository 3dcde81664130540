"""Threads that flush small numbers to 0, or round otherwise, are refused before they change sums.

Modes are set by the C library, as libraries do it, in a thread of their own.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
import sys
import threading
from itertools import product

import numpy as np
import pytest
from thinning import some

import streammetrics as sm

X86 = platform.machine().lower() in {"x86_64", "amd64"} and sys.platform == "linux"
pytestmark = pytest.mark.skipif(not X86, reason="modes are set as on Linux and x86-64")

MXCSR = 28  # the place of this register in glibc's fenv_t
FLUSH, DAZ, DOWN, UP, ZERO = 0x8000, 0x0040, 0x2000, 0x4000, 0x6000
MODES = {
    "results flushed": FLUSH, "arguments flushed": DAZ, "both flushed": FLUSH | DAZ,
    "down": DOWN, "up": UP, "towards zero": ZERO,
}  # fmt: skip
ROWS = np.array([1.0, 2.0, 4.0])


def in_mode(bits, call):
    """Return what a call gives, or raises, in a thread with these bits set."""
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    found = []

    def run():
        before, changed = (ctypes.create_string_buffer(32) for _ in range(2))
        libm.fegetenv(before)
        libm.fegetenv(changed)
        mode = int.from_bytes(changed.raw[MXCSR : MXCSR + 4], "little") | bits
        changed[MXCSR : MXCSR + 4] = mode.to_bytes(4, "little")
        libm.fesetenv(changed)
        try:
            found.append(call())
        except Exception as error:
            found.append(error)
        finally:
            libm.fesetenv(before)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def made():
    """Return one of each kind that takes rows, and what it is called with."""
    suite = sm.MetricSet({"mse": sm.MSE(), "mae": sm.MAE()})
    rows = {"y_true": ROWS, "y_pred": ROWS + 1e-310}
    return {
        "metric": (sm.MSE(), rows),
        "few rows": (sm.MSE(), {name: column[:1] for name, column in rows.items()}),
        "many rows": (sm.MSE(), {name: np.resize(column, 10**6) for name, column in rows.items()}),
        "set": (suite, rows),
        "slices": (sm.Slices(suite, by=["c"]), {**rows, "c": [0, 1, 1]}),
        "live": (sm.Live(suite, tiers=[("1min", "10min")]), {**rows, "time": [0, 1, 2]}),
    }


def take(what, rows):
    (what.observe if isinstance(what, sm.Live) else what.update)(**rows)


@pytest.mark.parametrize(("kind", "mode"), some(product(made(), MODES), every=5))
def test_an_update_in_another_mode_is_refused_and_changes_nothing(kind, mode):
    what, rows = made()[kind]
    take(what, rows)
    before = what.to_bytes()
    error = in_mode(MODES[mode], lambda: take(what, rows))
    assert isinstance(error, sm.FloatingPointModeError)
    assert ("torch.set_flush_denormal(False)" in str(error)) == ("flushed" in mode)
    assert what.to_bytes() == before


@pytest.mark.parametrize("mode", MODES)
def test_staged_rows_wait_for_a_thread_that_computes_right(mode):
    metric = sm.MSE().update(ROWS, ROWS + 0.1)
    error = in_mode(MODES[mode], metric.compute)
    assert isinstance(error, sm.FloatingPointModeError)
    assert metric == sm.MSE().update(ROWS, ROWS + 0.1)
    assert metric.n_rows == 3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("call", ["compute", "bounds", "confidence"])
def test_readings_are_refused_too(call, mode):
    metric = sm.MSE().update(ROWS, ROWS + 0.1)
    metric.compute()
    assert isinstance(in_mode(MODES[mode], getattr(metric, call)), sm.FloatingPointModeError)


@pytest.mark.parametrize("mode", MODES)
def test_reading_a_state_is_refused_too(mode):
    """The state seemed damaged where small scores were compared as 0."""
    blob = sm.ROCAUC().update([0, 1], [1e-310, 2e-310]).to_bytes()
    error = in_mode(MODES[mode], lambda: sm.from_bytes(blob))
    assert isinstance(error, sm.FloatingPointModeError)
    assert sm.from_bytes(blob).compute() == 1.0


@pytest.mark.parametrize("mode", MODES)
def test_merging_is_refused_too(mode):
    metric, other = (sm.MSE().update(ROWS, ROWS + 0.1) for _ in range(2))
    other.compute()
    before = metric.to_bytes()
    error = in_mode(MODES[mode], lambda: metric.merge(other))
    assert isinstance(error, sm.FloatingPointModeError)
    assert metric.to_bytes() == before


@pytest.mark.parametrize("mode", MODES)
def test_events_of_a_live_are_kept_for_a_thread_that_computes_right(mode):
    live = sm.Live(sm.MetricSet({"mse": sm.MSE()}), tiers=[("1min", "10min")])
    rows = {"y_true": ROWS, "y_pred": ROWS + 0.1, "time": [0, 1, 2]}
    expected = live.copy().observe(**rows).to_bytes()
    live.observe(**rows)
    assert isinstance(in_mode(MODES[mode], live.flush), sm.FloatingPointModeError)
    assert live.to_bytes() == expected
