"""Metrics of texts against sacrebleu, jiwer and rapidfuzz."""

from __future__ import annotations

import re
import string
from collections import Counter
from itertools import combinations

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


def ter(**options):
    return peer(lambda true, pred: sacrebleu.corpus_ter(pred, [true], **options).score)


def extended(reference, prediction):
    """Return the mean of the extended edit distances, with all costs at each place."""
    return np.mean(list(map(one_extended, reference, prediction)))


def one_extended(true, said):
    for mark, instead in ((r"([.!?,])", r" \1"), (r"\s+", " "), (r"(\d) ([.,]) (\d)", r"\1\2\3")):
        true, said = (re.sub(mark, instead, text) for text in (true, said))
    true, said = f" {true} ", f" {said} "
    costs = {(0, i): float(i > 0) for i in range(len(said) + 1)}
    seen = Counter()
    for j, letter in enumerate(true, 1):
        for i in range(len(said) + 1):
            put_in = costs[j - 1, i] + 1.0
            ways = [put_in]
            if i:
                ways += [costs[j, i - 1] + 0.2, costs[j - 1, i - 1] + (said[i - 1] != letter)]
            costs[j, i] = min(ways)
        row = [costs[j, i] for i in range(len(said) + 1)]
        seen[row.index(min(row))] += 1
        if letter == " ":
            costs |= {(j, i): min(cost, min(row) + 2.0) for i, cost in enumerate(row)}
    again = 0.3 * sum(abs(seen[i] - 1) for i in range(len(said) + 1))
    return min(1.0, (costs[len(true), len(said)] + again) / (len(true) + again))


def answer(text):
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def same(true, pred):
    return float(answer(true) == answer(pred))


def token_f1(true, pred):
    true, pred = answer(true).split(), answer(pred).split()
    if not true or not pred:
        return float(true == pred)
    return 2 * sum((Counter(true) & Counter(pred)).values()) / (len(true) + len(pred))


def rouge(n):
    """Return the F1 of the longest common subsequence for n of 0, by all subsequences."""

    def value(true, pred):
        words = [re.findall(r"[a-z0-9]+", text.lower()) for text in (true, pred)]
        if n:
            grams = [Counter(tuple(w[i : i + n]) for i in range(len(w) - n + 1)) for w in words]
            both, sizes = sum((grams[0] & grams[1]).values()), [sum(g.values()) for g in grams]
        else:
            sizes = list(map(len, words))
            every = [{c for k in range(len(w) + 1) for c in combinations(w, k)} for w in words]
            both = max(map(len, every[0] & every[1]))
        return 2 * both / sum(sizes) if both else 0.0

    return value


def mean_of(value):
    return lambda reference, prediction: np.mean(list(map(value, reference, prediction)))


ORACLES = [
    Oracle(sm.ExactMatch(), sentences, mean_of(same)),
    Oracle(sm.TokenF1(), sentences, mean_of(token_f1)),
    Oracle(sm.RougeN(n=1), sentences, mean_of(rouge(1))),
    Oracle(sm.RougeN(n=2), sentences, mean_of(rouge(2))),
    Oracle(sm.RougeL(), sentences, mean_of(rouge(0)), n=60),
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
    Oracle(sm.TranslationEditRate(), sentences, ter(), rel=0, abs=0),
    Oracle(
        sm.TranslationEditRate(normalized=True, no_punct=True, case_sensitive=True),
        sentences,
        ter(normalized=True, no_punct=True, case_sensitive=True),
        rel=0,
        abs=0,
    ),
    Oracle(sm.ExtendedEditDistance(), sentences, extended, n=20),
    Oracle(sm.ChrF(), sentences, chrf(), rel=0, abs=0),
    Oracle(sm.ChrF(beta=1.0, order=4), sentences, chrf(beta=1, char_order=4), rel=0, abs=0),
]
