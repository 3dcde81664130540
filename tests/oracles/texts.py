"""Metrics of texts against sacrebleu, jiwer and rapidfuzz."""

from __future__ import annotations

import jiwer
import numpy as np
import sacrebleu
from rapidfuzz.distance import Levenshtein

import streammetrics as sm
from oracles.base import Oracle

WORDS = "the cat sat on a mat, and 3.5 dogs don't (ever) sleep-walk &amp; é . x-1"


def sentences(rng, n):
    known, references, predictions = np.array(WORDS.split(" ")), [], []
    for length in rng.integers(1, 9, n):
        words = rng.choice(known, length)
        other = np.where(rng.random(length) < 0.7, words, rng.choice(known, length))
        references.append(" ".join(words))
        predictions.append(" ".join(other[rng.random(length) < 0.9]))
    return {"reference": np.array(references), "prediction": np.array(predictions)}


def peer(function):
    return lambda reference, prediction: function(reference.tolist(), prediction.tolist())


def bleu(**options):
    return peer(lambda true, pred: sacrebleu.corpus_bleu(pred, [true], force=True, **options).score)


def chrf(**options):
    return peer(lambda true, pred: sacrebleu.corpus_chrf(pred, [true], **options).score)


ORACLES = [
    Oracle(sm.WER(), sentences, peer(jiwer.wer)),
    Oracle(sm.CER(), sentences, peer(jiwer.cer)),
    Oracle(sm.MER(), sentences, peer(jiwer.mer)),
    Oracle(sm.WIL(), sentences, peer(jiwer.wil)),
    Oracle(
        sm.EditDistance(),
        sentences,
        peer(lambda true, pred: sum(map(Levenshtein.distance, true, pred))),
    ),
    Oracle(sm.BLEU(), sentences, bleu(), rel=0, abs=0),
    Oracle(
        sm.BLEU(tokenize="none", lowercase=True),
        sentences,
        bleu(tokenize="none", lowercase=True),
        rel=0,
        abs=0,
    ),
    Oracle(sm.ChrF(), sentences, chrf(), rel=0, abs=0),
    Oracle(sm.ChrF(beta=1.0, order=4), sentences, chrf(beta=1, char_order=4), rel=0, abs=0),
]
