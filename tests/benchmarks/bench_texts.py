"""Texts against references."""

from __future__ import annotations

import numpy as np
from measuring import Case
from peers import peer

import streammetrics as sm

sacrebleu, seqeval = peer("sacrebleu"), peer("seqeval.metrics")


def sentences(scale):
    """Return sentences of some twenty words, and others of which most words are the same."""
    rng, n = np.random.default_rng(0), max(int(20_000 * scale), 20)
    words = np.array(["".join(rng.choice(list("etaoinshrdlu"), 5)) for _ in range(5000)])
    true, pred = [], []
    for length in rng.integers(10, 30, n):
        said = words[(rng.random(length) ** 3 * words.size).astype(int)]
        changed = np.where(rng.random(length) < 0.8, said, rng.choice(words, length))
        true.append(" ".join(said) + ".")
        pred.append(" ".join(changed) + ".")
    return true, pred


def bleu(scale):
    """BLEU of a corpus."""
    true, pred = sentences(scale)
    return Case(
        f"BLEU, {len(true):,} sentences",
        lambda: sm.BLEU().update(true, pred).compute(),
        {"sacrebleu": lambda: sacrebleu.corpus_bleu(pred, [true]).score},
        {"sacrebleu": 1},
    )


def chrf(scale):
    """chrF of a corpus."""
    true, pred = sentences(scale / 4)
    return Case(
        f"chrF, {len(true):,} sentences",
        lambda: sm.ChrF().update(true, pred).compute(),
        {"sacrebleu": lambda: sacrebleu.corpus_chrf(pred, [true]).score},
        {"sacrebleu": 1},
    )


def spans(scale):
    """F1 of spans."""
    rng, n = np.random.default_rng(1), max(int(20_000 * scale), 20)
    tags = np.array(["O", "O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC"])
    true = [rng.choice(tags, length).tolist() for length in rng.integers(10, 30, n)]
    pred = [[one if rng.random() < 0.9 else "O" for one in sentence] for sentence in true]
    return Case(
        f"F1 of spans, {n:,} sentences",
        lambda: sm.SpanF1().update(true, pred).compute(),
        {"seqeval": lambda: seqeval.f1_score(true, pred)},
        {"seqeval": 3},
    )


BENCHMARKS = {"BLEU": bleu, "chrF": chrf, "spans of tags": spans}
