"""The buffer: the same bytes for every history, only what the top k needs, nothing hostile in."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kinds.rows import statistics_of
from thinning import some

import streammetrics as sm
from streammetrics.core import tuning
from streammetrics.core.errors import StateFormatError
from streammetrics.metrics.ranking import base as view
from streammetrics.statistics.rankings import RankingBuffer
from streammetrics.testing import check_laws

METRICS = some(
    [sm.NDCG(k=2, ties="doc"), sm.MRR(k=1), sm.MAP(), sm.BPref(), sm.NDCG(k=2), sm.MRR()]
)
SCORES = [0.5, -0.5, 0.0, -0.0, 5e-324, 1e308, -np.inf, np.inf, 0.5 + 2**-53]


@st.composite
def pieces(draw):
    """Draw rows of a few documents, each whole, in parts or repeated, never contradicting."""
    text = draw(st.booleans())
    rows = []
    for query in range(draw(st.integers(1, 3))):
        for doc in range(draw(st.integers(1, 5))):
            relevance = draw(st.sampled_from([None, -1.0, 0.0, 1.0, 2.5]))
            score = draw(st.sampled_from([None, *SCORES]))
            for form in draw(st.lists(st.sampled_from(["whole", "judged", "scored"]), max_size=3)):
                r = None if form == "scored" else relevance
                s = None if form == "judged" else score
                if r is not None or s is not None:
                    rows.append((query, doc, r, s))
    if not rows:
        rows = [(0, 0, 1.0, 1.0)]
    rows = draw(st.permutations(rows))
    query, doc, relevance, score = (np.array(c, dtype=object) for c in zip(*rows, strict=True))
    if text:
        query, doc = (np.array([f"{'é' * v}{v}" for v in c], object) for c in (query, doc))
    return {"query": query, "doc": doc, "relevance": relevance, "score": score}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("metric", METRICS, ids=repr)
@given(rows=pieces(), pending=st.sampled_from([1, 5, 1 << 20]), block=st.sampled_from([2, 1 << 20]))
def test_laws_hold_whenever_rows_are_put_in_order(metric, rows, pending, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "PENDING_RANKINGS", pending)
        patch.setattr(tuning, "RANKED_ROWS", block)
        check_laws(metric, rows, trials=1)


SAID = [
    (relevance, score)
    for relevance in (None, -2.0, -1.0, 0.0, 1.0, 2.0)
    for score in (None, 0.5, 0.25)
    if relevance is not None or score is not None
]


@pytest.mark.parametrize("first", SAID)
def test_a_result_contradicts_what_is_known_and_differs_at_any_level(first):
    other = {"query": [1], "doc": [6], "relevance": [0.0], "score": [0.1]}
    for second in SAID:
        told = zip(("relevances", "scores"), first, second, strict=True)
        differ = [
            (what, *sorted(two)) for what, *two in told if None not in two and len({*two}) > 1
        ]
        parts = [{**other, "doc": [5], "relevance": [r], "score": [s]} for r, s in (first, second)]
        whole = [{name: column + parts[1][name] for name, column in parts[0].items()}]
        for batches in (whole, [*parts, other], [other, *parts[::-1]]):
            metric = sm.NDCG()
            if not differ:
                known = [
                    next((v for v in two if v is not None), None)
                    for two in zip(first, second, strict=True)
                ]
                row = {**other, "doc": [5], "relevance": known[:1], "score": known[1:]}
                for batch in [*batches, other]:
                    metric.update(**batch)
                once = sm.NDCG().update(**row).update(**other)
                assert metric.compute() == once.compute()
                continue
            words = "|".join(f"has two {what}: {low:g} and {high:g}" for what, low, high in differ)
            with pytest.raises(sm.InvalidBatchError, match=words):
                [*[metric.update(**batch) for batch in batches], metric.compute()]


def large(n_queries, each, seed=0, named=False):
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_queries * each)
    rows = {
        "query": np.repeat(np.arange(n_queries), each)[order],
        "relevance": rng.integers(-1, 4, n_queries * each),
        "score": rng.integers(0, 200, n_queries * each) / 7,
    }
    return {**rows, "doc": np.tile(np.arange(each), n_queries)[order]} if named else rows


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("metric", [sm.NDCG(k=3), sm.MRR(), sm.MAP()], ids=repr)
def test_large_batches_in_any_order_give_the_same_bytes(metric, named, monkeypatch):
    monkeypatch.setattr(tuning, "PENDING_RANKINGS", 20_000)
    rows = large(450, 200, named=named)
    expected = metric.copy().update(**rows)
    n = len(rows["query"])
    order = np.random.default_rng(1).permutation(n)
    parts = [{k: v[rows_] for k, v in rows.items()} for rows_ in np.array_split(order, 7)]
    shards = [metric.copy().update(**part) for part in parts]
    assert sm.merge(shards).to_bytes() == expected.to_bytes()
    fed = metric.copy()
    for part in reversed(parts):
        fed.update(**part)
    assert fed.to_bytes() == expected.to_bytes()
    assert fed.compute() == expected.compute()
    again = sm.from_bytes(expected.to_bytes()).update(**parts[0])
    if named:  # documents seen before change nothing but the count of rows
        assert again.compute() == expected.compute()
        assert again.nbytes == expected.nbytes


def test_only_the_top_and_its_ties_are_kept():
    rows = {"query": [1] * 6, "score": [5, 4, 3, 3, 2, 1], "relevance": [0, 0, 1, 0, 3, 0]}
    table = statistics_of(sm.NDCG(k=3).update(**rows))[0].table
    assert table.results.score.tolist() == [5, 4, 3, 3]
    assert table.levels[table.grades.grade].tolist() == [0, 1, 3]
    assert table.grades.times.tolist() == [4, 1, 1]
    table = statistics_of(sm.MRR().update(**rows))[0].table
    assert table.results.score.tolist() == [5, 4, 3, 3]
    assert len(statistics_of(sm.MAP().update(**rows))[0].table.results.score) == 6


def test_of_named_documents_the_relevant_and_the_unplaced_are_kept():
    rows = {"query": [1] * 6, "doc": [1, 2, 3, 4, 5, 6], "score": [5, 4, 3, 2, 1, None]}
    metric = sm.NDCG(k=2).update(**rows, relevance=[0, 0, 0, 1, 0, 0])
    table = statistics_of(metric)[0].table
    assert table.results.doc.tolist() == [0, 1]
    assert table.docs.tolist() == [1, 2, 4, 6]
    assert table.docs[table.judgments.doc].tolist() == [4, 6]


@pytest.mark.parametrize("k", [1, 2, None])
def test_judgments_may_come_before_or_after_results_are_cut(k):
    judged = {"query": [1] * 4, "doc": [1, 2, 3, 4], "relevance": [1, 0, 2, 3]}
    scored = {"query": [1] * 5, "doc": [1, 2, 3, 4, 5], "score": [1, 2, 3, 4, 5]}
    metric = sm.NDCG(k=k)
    states = set()
    for first, second in ((judged, scored), (scored, judged)):
        fed = metric.copy().update(**first)
        fed.to_bytes()  # puts the rows in order, and cuts
        states.add(fed.update(**second).to_bytes())
    assert len(states) == 1


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("metric", [sm.NDCG(k=2), sm.MRR(), sm.MAP(), sm.MRR(k=1)], ids=repr)
@pytest.mark.parametrize("first", [("query", "relevance", "score"), ("query", "score"), ("query",)])
def test_documents_may_follow_rows_without_any_that_were_read(metric, first):
    rows = {"query": [1, 1, 2], "relevance": [1, 0, 1], "score": [0.1, 0.2, 0.3]}
    before = {name: rows[name] for name in first if first != ("query",)}
    named = {**rows, "doc": [1, 2, 3]}
    fed, straight = metric.copy(), metric.copy()
    if before:
        fed.update(**before)
        straight.update(**before)
    fed.compute()
    for read in (fed, sm.from_bytes(fed.to_bytes()), sm.merge([fed, metric])):
        assert read.update(**named) == straight.copy().update(**named)


@pytest.mark.parametrize("ranks", [(65_537, 65_538), (65_537, 900_000), (500_000, 500_400)])
def test_long_runs_of_one_grade_are_summed_as_one_by_one(ranks):
    first, last = ranks
    summed = view.summed_discounts(np.array([first]), np.array([last]))
    rank = np.arange(first, last + 1)
    whole = math.fsum(1 / np.log2(np.arange(2, last + 2)))  # of which it is the end
    assert abs(summed[0] - math.fsum(1 / np.log2(rank + 1))) < 1e-15 * whole


def test_reading_costs_what_the_state_is_and_not_what_it_counts():
    metric = sm.NDCG().update(query=np.zeros(1000, int), relevance=np.ones(1000))
    for _ in range(24):
        metric = sm.merge([metric, metric])
    metric.update(query=[0], relevance=[1], score=[0.5])
    metric = sm.from_bytes(metric.to_bytes())
    assert metric.n_rows == 1000 * 2**24 + 1
    ideal = 1 / metric.compute()
    n = metric.n_rows  # the sum lies between these integrals, for each of which n / log2(n) is near
    assert n / math.log2(n) < ideal < 1.06 * n / math.log2(n)


@pytest.mark.long
def test_state_of_the_top_k_is_a_fraction_of_the_rows():
    rows = large(10_000, 100)
    metric = sm.NDCG(k=10).update(**rows)
    metric.compute()
    assert metric.nbytes < 3_500_000  # 1 M rows; 100 bytes for each 40 rows at the end
    first = sm.MRR().update(**rows)
    first.compute()
    assert first.nbytes < 1_500_000
    named = sm.NDCG(k=10).update(**large(10_000, 100, named=True))
    named.compute()
    assert named.nbytes < 8_500_000


@pytest.mark.long
def test_small_batches_do_not_pile_up():
    metric = sm.NDCG(k=2)
    for i in range(3000):
        metric.update(query=i % 7, relevance=i % 3, score=float(i), doc=i)
    rows = {"query": np.arange(3000) % 7, "relevance": np.arange(3000) % 3}
    whole = sm.NDCG(k=2).update(**rows, score=np.arange(3000.0), doc=np.arange(3000))
    assert metric.nbytes < 2 * whole.nbytes
    assert metric == whole


def state():
    rows = large(4, 6, named=True) | {"doc": np.array([*"abcdef"] * 4)}
    rows["doc"] = np.array([f"{d}{q}" for q, d in enumerate(rows["doc"])])
    buffer = statistics_of(sm.NDCG(k=2).update(**rows))[0]
    return {name: array.copy() for name, array in buffer.arrays().items()}


def test_a_state_is_read_back():
    again = RankingBuffer.from_arrays({"k": 2}, state()).arrays()
    assert all(again[name].tobytes() == array.tobytes() for name, array in state().items())


@pytest.mark.parametrize("name", state())
def test_altered_arrays_are_refused(name):
    arrays = state()
    original = arrays[name]
    changes = [
        original[:-1],
        original.astype(np.complex64),
        original[::-1].copy(),
        original[:, None],
    ]
    for value in (-1, 0, 77, 2**31 - 1, np.nan, np.inf):
        for place in (0, -1) if original.size else ():
            with np.errstate(invalid="ignore"):
                changed = original.copy()
                changed.reshape(-1)[place] = np.array(value).astype(original.dtype)
                changes.append(changed)
    for changed in changes:
        if changed.dtype == original.dtype and np.array_equal(changed, original):
            continue
        try:
            table = RankingBuffer.from_arrays({"k": 2}, {**arrays, name: changed}).table
        except StateFormatError:
            continue
        # What is accepted is a state: canonical, and readable.
        fixed = RankingBuffer.from_arrays({"k": 2}, table.arrays()).table.arrays()
        assert all(fixed[key].tobytes() == array.tobytes() for key, array in table.arrays().items())


def test_missing_arrays_and_other_parameters_are_refused():
    for name in state():
        arrays = state()
        del arrays[name]
        with pytest.raises(StateFormatError, match=f"lacks the array '{name}'"):
            RankingBuffer.from_arrays({"k": 2}, arrays)
    with pytest.raises(StateFormatError, match="not canonical"):
        RankingBuffer.from_arrays({"k": 1}, state())
    with pytest.raises(StateFormatError, match="above max_grade"):
        RankingBuffer.from_arrays({"k": 2, "highest": 1.0}, state())
    unnamed = statistics_of(sm.NDCG(k=2).update(**large(2, 3)))[0].arrays()
    with pytest.raises(StateFormatError, match="no document"):
        RankingBuffer.from_arrays({"k": 2, "named": True}, unnamed)


def test_a_state_of_more_judgments_than_are_counted_is_refused():
    arrays = statistics_of(sm.NDCG().update(query=[1, 1], relevance=[1, 0]))[0].arrays()
    for times in ([2**63 - 1, 2**63 - 1], [2**53, 1]):
        with pytest.raises(StateFormatError, match="more judgments than are counted"):
            RankingBuffer.from_arrays({}, {**arrays, "grades/times": np.array(times)})


def test_ids_far_apart_and_many_levels():
    far = np.array([-(2**62), 2**62, 0, 5])
    rng = np.random.default_rng(0)
    rows = {
        "query": far[rng.integers(0, 4, 2000)],
        "relevance": rng.random(2000),
        "score": rng.normal(size=2000),
    }
    metric = sm.NDCG(k=5).update(**rows)
    assert list(metric.per_query()) == sorted(far.tolist())
    check_laws(metric, {name: column[:300] for name, column in rows.items()})


def test_ids_may_hold_lone_surrogates():
    # Python decodes names of files and badly encoded text to these.
    ids = {"query": ["a", "\ud800", "\ud800"], "doc": ["a", "b", "\udfff"]}
    rows = {"relevance": [1, 0, 1], "score": [1.0, 2.0, 1.0]}
    found = sm.NDCG().update(**ids, **rows)
    plain = sm.NDCG().update(query=["a", "b", "b"], doc=["a", "b", "c"], **rows)
    assert found.compute() == plain.compute()
    assert sm.from_bytes(found.to_bytes()).to_bytes() == found.to_bytes()
