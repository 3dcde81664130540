"""Confidence of areas read from cells of scores, and DeLong beside those who have it."""

from __future__ import annotations

import numpy as np
from bench_reads import figure
from measuring import Case
from peers import peer

import streammetrics as sm

_CELLS, _GOAL = 65_536, 5e-3  # seconds


def rows(n):
    """Labels, and probabilities on a grid of 65,536 scores."""
    rng = np.random.default_rng(21)
    y = rng.integers(0, 2, n)
    s = 1 / (1 + np.exp(-(y + rng.standard_normal(n))))
    return y, np.floor(s * _CELLS) / _CELLS


def cells(scale):
    """confidence() of a state that is there, from 65,536 cells."""
    y, s = rows(max(int(1e6 * scale), 1000))
    return [
        figure(f"confidence() of {metric._titled()}, {_CELLS:,} cells", metric.confidence, _GOAL)
        for metric in (m.update(y, s) for m in (sm.ROCAUC(), sm.AveragePrecision()))
    ]


def delong(scale):
    """The area and its limits of rows as they come."""
    y, s = rows(max(int(1e6 * scale), 1000))
    interval, kit = peer("confidenceinterval"), peer("MLstatkit")
    peers = {
        "confidenceinterval": lambda: interval.roc_auc_score(y, s, confidence_level=0.95),
        "MLstatkit": lambda: kit.Delong_test(y, s, s[::-1].copy()),
    }
    goals = dict.fromkeys(peers, 50.0)
    ours = lambda: sm.ROCAUC().update(y, s).confidence()  # noqa: E731 - as the peers
    return Case(f"ROC AUC with DeLong's limits, {len(y):,} rows", ours, peers, goals, (y, s))


BENCHMARKS = {"confidence from cells": cells, "DeLong": delong}
