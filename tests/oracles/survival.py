"""Concordance of survival against its definition."""

from __future__ import annotations

import numpy as np

import streammetrics as sm
from oracles.base import Oracle


def lives(rng, n):
    return {
        "time": rng.exponential(size=n),
        "event": rng.integers(0, 2, n),
        "score": rng.normal(size=n),
    }


def lives_with_ties(rng, n):
    return {
        "time": rng.integers(0, 9, n).astype(float),
        "event": rng.random(n) < 0.7,
        "score": rng.integers(0, 5, n) / 4,
    }


def harrell(time, event, score):
    event = np.asarray(event, bool)
    later = (time[:, None] < time) | ((time[:, None] == time) & event[:, None] & ~event)
    pairs = event[:, None] & later
    right = (score[:, None] > score) + (score[:, None] == score) / 2
    return (pairs * right).sum() / pairs.sum()


ORACLES = [Oracle(sm.ConcordanceIndex(), rows, harrell) for rows in (lives, lives_with_ties)]
