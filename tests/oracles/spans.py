"""Spans of tags against seqeval."""

from __future__ import annotations

import numpy as np
from seqeval import scheme as schemes
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import precision_recall_fscore_support

import streammetrics as sm
from oracles.base import Oracle

KINDS = np.array(["PER", "LOC", "ORG-X"])


def tagged(prefixes):
    """Return rows of sentences of tags of some prefixes, many of them beside each other wrongly."""

    def sentences(rng, n):
        columns = {"y_true": np.empty(n, object), "y_pred": np.empty(n, object)}
        for row, length in enumerate(rng.integers(0, 9, n)):
            true = tags(rng, prefixes, length)
            kept = rng.random(length) < 0.8
            columns["y_true"][row] = true
            columns["y_pred"][row] = [
                one if keep else other
                for one, other, keep in zip(true, tags(rng, prefixes, length), kept, strict=True)
            ]
        return columns

    sentences.__name__ = f"tags_{prefixes}"
    return sentences


def tags(rng, prefixes, length):
    found = rng.choice(list(prefixes), length)
    # Mostly those of one type stand beside each other.
    kinds = KINDS[np.minimum(np.cumsum(rng.random(length) < 0.3), 5) % len(KINDS)]
    return [p if p == "O" else f"{p}-{kind}" for p, kind in zip(found, kinds, strict=True)]


def reference(score, average="micro", scheme=None):
    """Return what seqeval says, in its strict mode where there is a scheme."""
    strict = {} if scheme is None else {"mode": "strict", "scheme": getattr(schemes, scheme)}

    def value(y_true, y_pred):
        columns = list(map(list, y_true)), list(map(list, y_pred))
        return score(*columns, average=average, zero_division=0, **strict)

    return value


def fbeta(average, beta=2):
    def value(y_true, y_pred):
        columns = list(map(list, y_true)), list(map(list, y_pred))
        options = {"beta": beta, "average": average, "zero_division": 0}
        return precision_recall_fscore_support(*columns, **options)[2]

    return value


MIXED = tagged("OBIIES")
PREFIXES = {
    "IOB1": "OIIB",
    "IOB2": "OBII",
    "IOE1": "OIIE",
    "IOE2": "OIIE",
    "IOBES": "OBIIEES",
    "BILOU": "OBIILLU",
}
ORACLES = [
    Oracle(sm.SpanF1(), MIXED, reference(f1_score), n=100),
    Oracle(sm.SpanFBeta(beta=2), MIXED, fbeta("micro")),
    Oracle(sm.SpanFBeta(beta=0.5, average="weighted"), MIXED, fbeta("weighted", 0.5)),
    Oracle(sm.SpanF1(average="macro"), MIXED, reference(f1_score, "macro")),
    Oracle(sm.SpanPrecision(average="weighted"), MIXED, reference(precision_score, "weighted")),
    Oracle(sm.SpanRecall(average=None), MIXED, reference(recall_score, None)),
]
