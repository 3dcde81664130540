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


def several(rng, n):
    """Return rows of three references each."""
    rows = [sentences(rng, n) for _ in range(3)]
    references = np.stack(
        [rows[0]["reference"], *(each["prediction"] for each in rows[:2])], axis=1
    )
    mixed = rng.permuted(np.column_stack([references, rows[2]["reference"]]), axis=1)
    names = ("reference", "reference_2", "reference_3")
    return {**dict(zip(names, mixed.T, strict=False)), "prediction": rows[0]["prediction"]}


def lines(rng, n):
    """Return rows of two lines."""
    one, two = sentences(rng, n), sentences(rng, n)
    return {name: np.char.add(np.char.add(one[name], "\n"), two[name]) for name in one}


def peer(function):
    return lambda reference, prediction: function(reference.tolist(), prediction.tolist())


def corpus(function, **options):
    """Return the score of sacrebleu, of one reference a row or of several."""

    def score(prediction, **references):
        columns = [column.tolist() for column in references.values()]
        return function(prediction.tolist(), columns, **options).score

    return score


def bleu(**options):
    return corpus(sacrebleu.corpus_bleu, force=True, **options)


def chrf(**options):
    peer = sacrebleu.metrics.CHRF(**options)
    return corpus(peer.corpus_score)


def ter(**options):
    return corpus(sacrebleu.corpus_ter, **options)


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


def rouge(n, side=None):
    """Return the F1 of the longest common subsequence for n of 0, by all subsequences.

    Of `side` 1 return the precision instead, and of 0 the recall.
    """

    def value(true, pred):
        words = [re.findall(r"[a-z0-9]+", text.lower()) for text in (true, pred)]
        if n:
            grams = [Counter(tuple(w[i : i + n]) for i in range(len(w) - n + 1)) for w in words]
            both, sizes = sum((grams[0] & grams[1]).values()), [sum(g.values()) for g in grams]
        else:
            sizes = list(map(len, words))
            every = [{c for k in range(len(w) + 1) for c in combinations(w, k)} for w in words]
            both = max(map(len, every[0] & every[1]))
        whole = sum(sizes) / 2 if side is None else sizes[side]
        return both / whole if both else 0.0

    return value


def best(n):
    def reference(prediction, **references):
        each = [list(map(rouge(n), column, prediction)) for column in references.values()]
        return np.mean(np.max(each, axis=0))

    return reference


def indices(one, other):
    """Return which words of one are in the longest common subsequence, as in rouge-score."""
    size = np.zeros((len(one) + 1, len(other) + 1), int)
    for i, j in np.ndindex(len(one), len(other)):
        same = one[i] == other[j]
        size[i + 1, j + 1] = size[i, j] + 1 if same else max(size[i, j + 1], size[i + 1, j])
    i, j, found = len(one), len(other), set()
    while i > 0 and j > 0:
        if one[i - 1] == other[j - 1]:
            i, j = i - 1, j - 1
            found.add(i)
        elif size[i][j - 1] > size[i - 1][j]:
            j -= 1
        else:
            i -= 1
    return found


def rouge_lines(true, pred):
    true, pred = (
        [re.findall(r"[a-z0-9]+", line.lower()) for line in text.split("\n")]
        for text in (true, pred)
    )
    left = [Counter(word for line in side for word in line) for side in (true, pred)]
    total, hits = sum(map(len, true + pred)), 0
    for line in true:
        for at in sorted(set().union(*(indices(line, other) for other in pred))):
            if all(counts[line[at]] > 0 for counts in left):
                hits += 1
                left = [counts - Counter([line[at]]) for counts in left]
    return 2 * hits / total if hits else 0.0


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
    *(
        Oracle(sm.BLEU(references=3, **options), several, bleu(**options))
        for options in ({}, {"lowercase": True, "smooth_method": "floor", "smooth_value": 0.3})
    ),
    *(
        Oracle(sm.BLEU(**options), sentences, bleu(**options), n=9)
        for options in (
            {"smooth_method": "none"},
            {"smooth_method": "floor"},
            {"smooth_method": "add-k"},
            {"smooth_method": "add-k", "smooth_value": 0.5},
        )
    ),
    Oracle(sm.ChrF(references=3), several, chrf()),
    Oracle(sm.ChrF(word_order=2, beta=3.0, references=3), several, chrf(word_order=2, beta=3)),
    Oracle(
        sm.ChrF(word_order=2, whitespace=True, lowercase=True),
        sentences,
        chrf(word_order=2, whitespace=True, lowercase=True),
        rel=0,
        abs=0,
    ),
    Oracle(sm.TranslationEditRate(references=3), several, ter(), n=60),
    Oracle(sm.RougeN(n=2, references=3), several, best(2)),
    Oracle(sm.RougeN(n=1, of="precision"), sentences, mean_of(rouge(1, 1))),
    Oracle(sm.RougeL(of="recall"), sentences, mean_of(rouge(0, 0)), n=60),
    Oracle(sm.RougeL(lines=True), lines, mean_of(rouge_lines)),
]
