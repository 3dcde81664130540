"""Losses of scores and distributions against scikit-learn and plain formulas."""

from __future__ import annotations

import numpy as np
import sklearn.metrics as sk

import streammetrics as sm
from oracles.base import Oracle
from oracles.probability import (
    log_loss_of_logits,
    margins,
    of,
    probabilities,
    probabilities_weighted,
    three_classes,
    three_classes_weighted,
    three_logits,
)


def margins_weighted(rng, n):
    return {**margins(rng, n), "sample_weight": rng.exponential(size=n)}


def three_margins(rng, n):
    return {"y_true": rng.integers(0, 3, n), "y_score": rng.standard_normal((n, 3))}


def squared_hinge(y_true, y_score, sample_weight=None):
    if y_score.ndim == 1:
        margin = y_score * (2 * y_true - 1)
    else:
        own = y_score[np.arange(len(y_true)), y_true]
        others = np.where(np.arange(3) == y_true[:, None], -np.inf, y_score)
        margin = own - others.max(axis=1)
    return np.average(np.maximum(1 - margin, 0) ** 2, weights=sample_weight)


def of_truth(y_true, y_score):
    if y_score.ndim == 1:
        return np.where(y_true, y_score, 1 - y_score)
    return y_score[np.arange(len(y_true)), y_true]


def focal(gamma):
    def reference(y_true, y_score, sample_weight=None):
        p = np.clip(of_truth(y_true, y_score), 2.0**-52, 1 - 2.0**-52)
        return np.average(-((1 - p) ** gamma) * np.log(p), weights=sample_weight)

    return reference


def ranked(y_true, y_score, sample_weight=None):
    true = (y_true[:, None] <= np.arange(y_score.shape[1])).astype(float)
    return np.average(
        ((y_score.cumsum(axis=1) - true)[:, :-1] ** 2).sum(axis=1), weights=sample_weight
    )


def halved(reference):
    return lambda **rows: reference(**rows) / 2


def perplexity(y_true, y_score, sample_weight=None):
    return np.exp(sk.log_loss(y_true, y_score, sample_weight=sample_weight))


def perplexity_of_logits(y_true, y_score):
    return np.exp(log_loss_of_logits(y_true, y_score))


LABELS = {"labels": [0, 1, 2]}

ORACLES = [
    *(
        Oracle(sm.HingeLoss(), rows, of(sk.hinge_loss, **labels))
        for rows, labels in ((margins, {}), (margins_weighted, {}), (three_margins, LABELS))
    ),
    *(
        Oracle(sm.HingeLoss(squared=True), rows, squared_hinge)
        for rows in (margins, margins_weighted, three_margins)
    ),
    Oracle(sm.D2LogLoss(), probabilities, of(sk.d2_log_loss_score)),
    Oracle(sm.D2LogLoss(), probabilities_weighted, of(sk.d2_log_loss_score)),
    Oracle(sm.D2LogLoss(), three_classes_weighted, of(sk.d2_log_loss_score, **LABELS)),
    Oracle(sm.D2Brier(), probabilities, of(sk.d2_brier_score)),
    Oracle(sm.D2Brier(), three_classes_weighted, of(sk.d2_brier_score, **LABELS)),
    *(
        Oracle(sm.FocalLoss(gamma=gamma), rows, focal(gamma))
        for gamma, rows in ((2.0, probabilities), (0.5, three_classes_weighted))
    ),
    Oracle(sm.RankedProbabilityScore(), three_classes_weighted, ranked),
    Oracle(sm.RankedProbabilityScore(normalize=True), three_classes, halved(ranked)),
    Oracle(sm.Perplexity(from_logits=True), three_logits, perplexity_of_logits),
    Oracle(sm.Perplexity(), three_classes_weighted, perplexity),
]
