"""Counts never wrap: a state merged with itself seventy times is right, or refused with words.

A group of processes that reduces without a reset does just this. Whatever state can be reached
is computed, written, and read back to the same bytes.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from oracles.attempts import answered_by_name, named_tries
from oracles.base import assert_close
from oracles.table import ORACLES, thinned

import streammetrics as sm

DOUBLINGS = 70
LOOKED_AT = {46, 55, 63, DOUBLINGS}
SETTLED = 44  # doublings after which what depends on the number of rows has its limit
GROWING = (
    sm.CalinskiHarabasz, sm.ClassificationReport, sm.ConfusionAtThresholds, sm.ConfusionMatrix,
    sm.Count, sm.EditDistance, sm.MultilabelConfusionMatrix, sm.PredictionError, sm.Sum,
)  # fmt: skip
# How the value grows with the number of rows, where it is not as they do.
POWERS = {
    "PairConfusionMatrix()": 2.0,
    "MinkowskiDistance(order=2.5)": 0.4,
    "NRMSE(normalization='l2')": -0.5,
}
# What counts in 64 bits stops before 2**61 rows of a clustering, 2**52 of a rank correlation, and
# 2**62 words, characters and their runs, 2**61 segments; before 2**52 attempts.
LIMITED = (
    sm.AttemptSpread, sm.MajorityAtK, sm.MeanAtK, sm.PassAtK, sm.PassHatK,
    sm.BLEU, sm.BoxAveragePrecision, sm.BoxAverageRecall, sm.CER, sm.ChrF, sm.ConcordanceIndex,
    sm.EditDistance, sm.FleissKappa, sm.GwetAC1, sm.KendallTau, sm.KrippendorffAlpha,
    sm.MER, sm.ModifiedPanopticQuality, sm.PanopticQuality, sm.PredictionError,
    sm.SpanF1, sm.SpanFBeta,
    sm.SpanPrecision, sm.SpanRecall, sm.SpearmanRho, sm.TranslationEditRate, sm.WER, sm.WIL,
)  # fmt: skip
# Rows of a query, and attempts with ids, count once however often they are merged.
DOUBLING = [
    oracle
    for oracle in ORACLES
    if "query" not in oracle.metric.inputs
    and oracle.rows not in {named_tries, answered_by_name}
    and not getattr(oracle.metric, "pseudo_count", 0)  # it counts less where there are more rows
]
DISTINCT = list({type(oracle.metric): oracle for oracle in DOUBLING}.values())


def doubled(metric, times):
    """Yield the number of doublings and the state, until it is refused."""
    metric = sm.from_bytes(metric.to_bytes())  # no rows wait, as they would double themselves
    for done in range(1, times + 1):
        try:
            metric = sm.merge([metric, metric])
        except sm.IncompatibleMetricsError:
            break
        yield done, metric
    if done < times:
        with pytest.raises(sm.IncompatibleMetricsError, match="at most 2") as refused:
            sm.merge([metric, metric])
        told = re.search(r"would have ([0-9]+) .*at most 2\*\*([0-9]+)", str(refused.value))
        assert told, refused.value
        held, power = map(int, told.groups())
        assert 1 << power < held <= 2 << power


def settled_value(metric, done):
    """Return what to compare: what grows with the rows is brought back to few."""
    value = metric.compute()
    power = POWERS.get(repr(metric).partition(" <")[0], 1.0)
    counts = getattr(metric, "normalize", None) is False or power != 1.0
    if not counts and (not isinstance(metric, GROWING) or getattr(metric, "normalize", None)):
        return value
    if isinstance(metric, sm.PredictionError):
        return {**value.to_dict(), "n_rows": value.n_rows / 2.0**done}
    if isinstance(metric, sm.ClassificationReport):
        return {k: {n: x for n, x in v.items() if n != "support"} if isinstance(v, dict) else v
                for k, v in value.items()}  # fmt: skip
    return np.asarray(value, float) / 2.0 ** (power * done)


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.filterwarnings("ignore::streammetrics.EstimateWarning")
@pytest.mark.parametrize("oracle", thinned(DISTINCT, columns=False))
def test_states_doubled_without_end_are_right_or_refused(oracle):
    rows = oracle.rows(np.random.default_rng(99), min(oracle.n, 16))
    metric, expected, reached = oracle.metric.copy().update(**rows), None, 0
    n_rows = metric.n_rows
    for done, state in doubled(metric, DOUBLINGS):
        reached = done
        assert state.n_rows == n_rows << done
        if done == SETTLED:
            expected = settled_value(state, done)
        elif done in LOOKED_AT:
            assert_close(settled_value(state, done), expected, 1e-9, 1e-12)
            blob = state.to_bytes()
            again = sm.from_bytes(blob)
            assert again.to_bytes() == blob
            assert_close(settled_value(again, done), expected, 1e-9, 1e-12)
            assert repr(again.bounds()) == repr(state.bounds())
            assert sm.merge([again, metric]).n_rows == state.n_rows + n_rows
    assert reached >= (46 if isinstance(metric, LIMITED) else 55)


@pytest.mark.parametrize("metric", [sm.DaviesBouldin(), sm.CalinskiHarabasz()])
def test_whole_points_doubled_without_end_have_their_clusters(metric):
    """Their sums are multiples of more and more, which the points are not."""
    points, labels = [[1.0], [2.0], [4.0], [7.0]], [0, 0, 1, 1]
    expected = None
    for done, state in doubled(metric.copy().update(points, labels), 55):
        n = 4 << done
        scale = n - 2 if isinstance(metric, sm.CalinskiHarabasz) else 1
        value = state.compute() / scale
        expected = value if expected is None else expected
        assert value == pytest.approx(expected, rel=1e-14)
    assert done == 55


@pytest.mark.parametrize("metric", [sm.NDCG(k=2), sm.DCG(k=1), sm.MRR()])
def test_judgments_doubled_without_end_are_refused(metric):
    judged = metric.copy().update(query=[1, 1, 2, 2], relevance=[2, 0, 1, 1])
    ranked = metric.copy().update(query=[1, 1, 2], relevance=[2, 0, 1], score=[0.1, 0.2, 0.3])
    expected, reached = None, 0
    for done, state in doubled(judged, DOUBLINGS):
        reached = done
        if done == SETTLED:
            expected = sm.merge([state, ranked]).compute()
        elif done in LOOKED_AT:
            blob = state.to_bytes()
            assert sm.from_bytes(blob).to_bytes() == blob
            assert sm.merge([ranked, sm.from_bytes(blob)]).compute() == expected
    assert 45 < reached < DOUBLINGS


def test_a_few_judgments_below_billions_are_read_at_the_cost_of_the_few():
    metric = sm.NDCG().update(query=[1, 1, 1], relevance=[2, 2, 2])
    for _ in range(34):
        metric = sm.merge([metric, metric])
    metric.update(query=[1, 1], relevance=[1, 1])
    metric.update(query=[1], doc=[5], relevance=[1], score=[0.5])
    rows = 3.0 * 2**34
    ideal = 1 / metric.compute()  # the one result has a gain of 1, at the top
    assert 2 * rows / np.log2(rows) < ideal < 2.2 * rows / np.log2(rows)
