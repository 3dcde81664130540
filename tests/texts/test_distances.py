"""Distances with moves and jumps beside sacrebleu and torchmetrics, on hostile texts."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import sacrebleu
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles.texts import one_extended
from sacrebleu.metrics.lib_ter import translation_edit_rate
from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer

import streammetrics as sm
from streammetrics.statistics.texts import edits, tercom

few = st.lists(st.integers(0, 5), max_size=14)
MARKS = "aB5é .,-'s$&;\n\u3001\u4e2d\u3042\u30a2\uff0c\u3f30\u3250!?()[]~<>"
WORDS = ["the", "cat", "on", "Mr.", "e.g.", "3.5", "don't", "&amp;", "\u4e2d\u6587"]
texts = st.one_of(
    st.text(MARKS, max_size=30), st.text(max_size=20),
    st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
)  # fmt: skip


@given(few, few)
@example([0, 0, 0, 1], [1, 0, 0, 0])
def test_moves_and_edits_are_those_of_sacrebleu(said, true):
    words = [list(map(str, each)) for each in (said, true)]
    assert edits(said, true) == translation_edit_rate(*words)[0]


LONG = [
    ([0] * 80, [0] * 40 + [1] * 40), ([0, 1] * 30, [1, 0] * 30),
    (list(range(36)), list(range(18, 36)) + list(range(18))),
    (list(range(12)) * 4, list(range(11, -1, -1)) * 4),
]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "true"),
    [
        ([0] * 70, [1] * 30 + [0] * 30), (list(range(70)), [0] * 3), ([5] * 3, list(range(90))),
        ([], [1, 2]), ([1, 2], []), ([], []),
        *(pytest.param(*words, marks=pytest.mark.long) for words in LONG),
    ],
    ids=lambda words: f"{len(words)} words",
)  # fmt: skip
def test_long_and_repeated_words_are_searched_as_by_sacrebleu(said, true):
    words = [list(map(str, each)) for each in (said, true)]
    assert edits(said, true) == translation_edit_rate(*words)[0]


@given(texts, st.booleans(), st.booleans(), st.booleans())
@example("\u3042\u3044", True, True, True)
@example("it's, dogs'. $5.50-6 'S '", True, False, True)
def test_words_are_those_of_tercom(text, normalized, no_punct, asian):
    theirs = TercomTokenizer(normalized, no_punct, asian, case_sensitive=True)(text.rstrip())
    options = {"normalized": normalized, "punctuated": not no_punct, "asian": asian}
    assert tercom(text, **options) == theirs.split()


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize(
    ("reference", "prediction"),
    [(["a b"], [""]), ([""], ["a b"]), ([""], [""]), (["", "a b"], ["x", "b a"]), (["A"], ["a"])],
)
def test_odd_corpora_have_the_rate_of_sacrebleu(reference, prediction):
    metric = sm.TranslationEditRate().update(reference, prediction)
    assert metric.compute() == sacrebleu.corpus_ter(prediction, [reference]).score
    assert sm.from_bytes(metric.to_bytes()) == metric


@pytest.mark.long
@settings(max_examples=100)
@given(texts, texts, st.sampled_from(["en", "ja"]))
@example("", "", "ja")
@example("a " * 40, "a " * 3, "en")
def test_extended_distances_are_those_of_torchmetrics(true, said, language):
    torchmetrics = pytest.importorskip(
        "torchmetrics.functional.text.eed", reason="pip install --group peers"
    )
    clean = {"en": torchmetrics._preprocess_en, "ja": torchmetrics._preprocess_ja}[language]
    theirs = torchmetrics._eed_function(clean(said), clean(true))
    metric = sm.ExtendedEditDistance(language=language)
    assert metric.update([true], [said]).compute() == theirs


def test_jumps_begin_where_a_word_ends():
    words = ["abcdefgh", "klmnopqr", "stuvwxyz", "habcdefg"]
    pairs = [(words, words[k:] + words[:k]) for k in range(4)]
    pairs += [(["".join(words)], ["".join(words[k:] + words[:k])]) for k in range(1, 4)]
    for true, said in pairs:
        one = sm.ExtendedEditDistance().update([" ".join(true)], [" ".join(said)]).compute()
        assert one == pytest.approx(one_extended(" ".join(true), " ".join(said)), rel=1e-14)


@pytest.mark.parametrize("parameters", [{"rho": 0.0}, {"rho": 1e9, "alpha": 0.0, "deletion": 1e9}])
def test_texts_without_a_character_are_as_far_apart_as_can_be(parameters):
    metric = sm.ExtendedEditDistance(language="ja", **parameters)
    assert metric.update(["", ""], ["", "a"]).compute() == 1.0


@pytest.mark.parametrize("metric", [sm.WER(), sm.CER(), sm.EditDistance()])
def test_rows_are_refused_where_rapidfuzz_is_missing(metric, monkeypatch):
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    suite = sm.MetricSet({"edits": metric, "exact": sm.ExactMatch()})
    with pytest.raises(ImportError, match=r"pip install 'streammetrics\[text\]'"):
        suite.update(reference=["a b"], prediction=["a b"])
    monkeypatch.undo()
    assert suite.update(reference=["a"], prediction=["a"]).compute()["exact"] == 1


def test_distances_may_be_weighted():
    metric = sm.ExtendedEditDistance()
    near, far = (metric.copy().update(["a b"], [t]).compute() for t in ("a b", "x"))
    both = metric.update(["a b", "a b"], ["a b", "x"], sample_weight=[3, 1]).compute()
    assert both == pytest.approx((3 * near + far) / 4, rel=1e-15)
    assert np.isfinite(metric.confidence().low)
