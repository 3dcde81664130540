"""Texts: what is refused, and what corpora of odd texts give."""

from __future__ import annotations

import itertools
import subprocess
import sys

import jiwer
import numpy as np
import pytest
import sacrebleu
from fuzz.forging import arrays_of
from rapidfuzz.distance import Levenshtein
from thinning import some

import streammetrics as sm
from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.statistics.texts import BleuCounts, ChrfCounts, EditCounts

TEXTS = ["", " ", "a", "a b", "b a c"]


@pytest.mark.parametrize("rate", some(["wer", "cer", "mer", "wil"], every=2))
def test_empty_references_count_as_in_jiwer(rate):
    metric, reference = getattr(sm, rate.upper()), getattr(jiwer, rate)
    rows = list(itertools.product(TEXTS, repeat=2))
    for chosen in [*itertools.combinations_with_replacement(rows, 2), rows]:
        true, said = map(list, zip(*chosen, strict=True))
        found = metric().update(true, said)
        assert found.compute() == pytest.approx(reference(true, said), abs=1e-15), chosen
        parts = sm.merge([metric().update([a], [b]) for a, b in chosen])
        assert parts.to_bytes() == found.to_bytes()
        assert sm.from_bytes(found.to_bytes()) == found


def test_silence_has_the_distance_of_what_was_put_into_it():
    assert sm.EditDistance().update(["", "ab"], ["abc", "ab"]).compute() == 3.0
    assert sm.EditDistance(of="words").update(["", "a"], ["a b", "a"]).compute() == 2.0


def test_white_space_at_the_ends_is_text_to_a_distance_and_not_to_a_rate():
    rows = ["  ab", "a b", "ab", " ", ""], ["x  ab", "a b ", "ab\n", "", "  x"]
    distance = sum(Levenshtein.distance(true, said) for true, said in zip(*rows, strict=True))
    assert sm.EditDistance().update(*rows).compute() == distance == 7
    assert sm.CER().update(*rows).compute() == jiwer.cer(*map(list, rows)) == 4 / 7


@pytest.mark.parametrize("metric", [sm.WER, sm.CER])
def test_a_rate_of_silence_alone_is_a_sum_and_has_no_limits(metric):
    state = metric().update([""] * 3, ["a b", "c", ""])
    with pytest.warns(sm.UndefinedMetricWarning, match="limits that are nan"):
        assert np.isnan(state.confidence()).all()
    low, high = state.update(["a b", "c"], ["a b", "d"]).confidence()
    assert low < state.compute() < high


@pytest.mark.parametrize("metric", [sm.WER, sm.BLEU, sm.ChrF])
def test_numbers_are_no_texts(metric):
    with pytest.raises(sm.InvalidBatchError, match="prediction holds no text: pass strings"):
        metric().update(["a"], [1])


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize(
    ("reference", "prediction"),
    [
        (["a b c d e"], [""]), ([""], ["a b c d e"]), (["a"], ["a"]), (["a b c d"], ["w x y z"]),
        (["a b c d e f"], ["a b c d x y"]), (["x"], ["y"]), (["the mat.\n"], ["The mat."]),
    ],
)  # fmt: skip
def test_odd_texts_are_scored_as_by_sacrebleu(reference, prediction):
    for metric, corpus in ((sm.BLEU(), sacrebleu.corpus_bleu), (sm.ChrF(), sacrebleu.corpus_chrf)):
        assert (
            metric.update(reference, prediction).compute() == corpus(prediction, [reference]).score
        )
        assert sm.from_bytes(metric.to_bytes()) == metric


@pytest.mark.parametrize(
    ("statistic", "counts"),
    [
        (EditCounts(of="words"), [0, 0, 0, 0, 1]), (BleuCounts(order=2), [1, 0, 2, 0, 0, 2, 1]),
        (BleuCounts(order=2), [1, 2, 0, 1, 0, 2, 1]), (BleuCounts(order=2), [1, 2, 2, 1, 0, 2, 3]),
        (BleuCounts(order=2), [1, 2, 2, 0, 1, 2, 1]), (BleuCounts(order=2), [1, 2, 3, 3, 0, 2, 1]),
        (ChrfCounts(order=1), [1, 3, 2, 3]), (ChrfCounts(order=1), [1, 2, 3, 3]),
    ],
    ids=lambda value: str(value) if isinstance(value, list) else type(value).__name__,
)  # fmt: skip
def test_counts_that_no_texts_have_are_no_state(statistic, counts):
    products = {k: v for k, v in statistic.arrays().items() if k.startswith("products")}
    with pytest.raises(sm.StateFormatError, match="are not the counts of"):
        statistic.restored({"counts": np.array(counts), **products})


def test_products_that_no_counts_have_are_no_state():
    metric = sm.WER().update(["a b", "c"], ["a", "c d"])
    (statistic,), arrays = metric.statistics(), arrays_of(metric.to_bytes())
    for wrong in (0.0, 1.5, -1.0):
        doubled = ExactSum.of(np.full((1, 10), wrong))
        products = {f"products/{k}": v for k, v in doubled.arrays().items()}
        with pytest.raises(sm.StateFormatError, match="the products of .* are not those of 2 rows"):
            statistic.restored({**arrays, **products})


def corpus(rng, n):
    """Return references, and predictions of which words are wrong, more in some rows."""
    words = np.array(["the", "a", "cat", "dog", "sat", "ran", "home", "out", "to", "bed"])
    rows = [rng.choice(words, rng.integers(2, 9)) for _ in range(n)]
    wrong = rng.beta(1, 4, n)
    said = [
        np.where(rng.random(len(row)) < share, rng.choice(words, len(row)), row)
        for row, share in zip(rows, wrong, strict=True)
    ]
    return [" ".join(row) for row in rows], [" ".join(row) for row in said]


@pytest.mark.parametrize("name", some(["WER", "BLEU", "CER", "MER", "WIL", "ChrF"], every=6))
def test_limits_are_near_those_of_the_bootstrap(name):
    rng = np.random.default_rng(2)
    true, said = corpus(rng, 300)
    metric = getattr(sm, name)()
    low, high = metric.copy().update(true, said).confidence()
    values = []
    for _ in range(60):
        rows = rng.integers(0, 300, 300)
        value = metric.copy().update([true[r] for r in rows], [said[r] for r in rows]).compute()
        values.append(value)
    spread = np.std(values, ddof=1) * 1.96
    assert (high - low) / 2 == pytest.approx(spread, rel=0.25)


def test_limits_of_rows_that_do_not_differ_say_nothing():
    metric = sm.WER().update(["a b", "c d"], ["a x", "c y"])
    alone = sm.BLEU().update(["a b c d e"], ["a b c d"])
    for one in (metric, alone):
        with pytest.warns(sm.UndefinedMetricWarning, match="its rows do not tell how it varies"):
            assert np.isnan(one.confidence().low)
    with pytest.raises(sm.NoConfidenceError, match="anytime=True is for rates"):
        sm.WER().update(["a b", "c"], ["a", "c"]).confidence(anytime=True)


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
def test_nothing_said_is_lost_whole():
    assert sm.WER().update(["a b"], [""]).compute() == 1.0
    assert sm.WIL().update(["a b"], [""]).compute() == 1.0
    assert np.isnan(sm.WER().compute())


def test_answers_without_a_word_agree_only_with_such():
    for metric in (sm.ExactMatch(), sm.TokenF1()):
        assert metric.update(["the", "", "a cat"], ["!", "dog", ""]).compute() == 1 / 3
    assert sm.RougeL().update(["", "x"], ["", "x"]).compute() == 0.5


def test_references_are_as_many_as_the_metric_has():
    with pytest.raises(TypeError, match="takes no reference_2"):
        sm.WER().update(["a"], ["b"], reference_2=["c"])
    with pytest.raises(sm.InvalidBatchError, match="no column 'reference_2'"):
        sm.BLEU(references=2).update(["a"], ["b"])
    with pytest.raises(ValueError, match="with 'floor' or 'add-k'"):
        sm.BLEU(smooth_value=0.2)


def test_rouge_of_lines_is_that_of_lin_2004():
    rows = ["w1 w2 w3 w4 w5"], ["w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5"]
    assert sm.RougeL(lines=True, of="recall").update(*rows).compute() == 0.8


def test_edits_are_imported_before_rows_come():
    """A signal handler that updates during the first update could not re-enter the import."""
    asked = "import sys, streammetrics as sm; sm.WER(); print('rapidfuzz.distance' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True
    )
    assert found.stdout == "True\n"
