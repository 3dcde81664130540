"""Reading after every batch, and states read, written and copied, of metrics on 1,000 rows."""

from __future__ import annotations

import numpy as np
import torch
from bench_states import binary_rows, binary_suite
from measuring import Case, Figure, best, readable
from peers import peer

import streammetrics as sm

tm = peer("torchmetrics")

_ROWS, _BATCH = 1000, 64
_COUNTED, _SUMMED = 30e-6, 150e-6  # seconds, the goals for a read


def seconds(call, rounds=7):
    """Return the seconds of one call: the best of some rounds of as many as take 20 ms.

    The first call is not counted: it takes what was staged, and imports.
    """
    call()
    calls = max(1, min(100, int(0.02 / best(call, 1))))
    return min(best(call, calls) for _ in range(rounds))


def figure(title, call, goal):
    """Return the figure of one piece of work."""
    taken = seconds(call)
    return Figure(title, readable(taken), readable(goal), taken <= goal)


def reads(_scale):
    """compute() of a state that is not changed in between; nothing of a value is kept."""
    rng = np.random.default_rng(11)
    scored = binary_rows(rng, _ROWS)
    called = {"y_true": scored["y_true"], "y_pred": (scored["y_score"] > 0.5).astype(int)}
    true = rng.normal(size=_ROWS)
    numbers = {"y_true": true, "y_pred": true + rng.normal(size=_ROWS)}
    counted = (
        (sm.F1(threshold=0.5), scored), (sm.F1(), called), (sm.Accuracy(), called),
        (sm.MatthewsCorrcoef(), called), (sm.CohenKappa(), called),
    )  # fmt: skip
    summed = (
        (sm.ROCAUC(), scored), (sm.AveragePrecision(), scored),
        (sm.KolmogorovSmirnov(), scored), (sm.CalibrationError(), scored), (sm.LogLoss(), scored),
        (sm.MSE(), numbers), (sm.R2(), numbers), (sm.PearsonCorrelation(), numbers),
    )  # fmt: skip
    return [
        figure(f"compute() of {metric._titled()}, {_ROWS:,} rows", metric.feed(rows).compute, goal)
        for metrics, goal in ((counted, _COUNTED), (summed, _SUMMED))
        for metric, rows in metrics
    ]


def states(_scale):
    """The default binary set after 1,000 rows: copied, written and read."""
    suite = binary_suite().feed(binary_rows(np.random.default_rng(12), _ROWS))
    blob = suite.to_bytes()
    return [
        figure("copy() of the default binary set", suite.copy, 50e-6),
        figure("  its to_bytes()", suite.to_bytes, 0.5e-3),
        figure("  from_bytes() of it", lambda: sm.from_bytes(blob), 1e-3),
    ]


def logged(title, ours, theirs, columns):
    """Return update and read of each batch, next to torchmetrics' forward."""
    tensors = [torch.from_numpy(column) for column in columns]

    def read():
        return ours.update(*columns).compute()

    return Case(
        f"{title}: update and read, batch of {_BATCH} rows",
        read,
        {"torchmetrics": lambda: theirs(tensors[1], tensors[0])},
        {"torchmetrics": 5.0},
        repeats=7,
        calls=100,
    )


def logged_errors(_scale):
    """Errors of numbers after every batch."""
    columns = np.random.default_rng(13).normal(size=(2, _BATCH)).astype(np.float32)
    pairs = {
        "MSE": (sm.MSE, tm.MeanSquaredError),
        "MAE": (sm.MAE, tm.MeanAbsoluteError),
        "R2": (sm.R2, tm.R2Score),
    }
    return [logged(name, ours(), theirs(), columns) for name, (ours, theirs) in pairs.items()]


def logged_f1(_scale):
    """F1 after every batch."""
    rng = np.random.default_rng(14)
    columns = rng.integers(0, 2, _BATCH), rng.random(_BATCH).astype(np.float32)
    return logged("F1", sm.F1(threshold=0.5), tm.F1Score(task="binary"), columns)


BENCHMARKS = {
    "reads": reads,
    "states read and written": states,
    "MSE, MAE and R2 after every batch": logged_errors,
    "F1 after every batch": logged_f1,
}
