"""Ranking metrics: worked examples, ties, what counts as a query, and what is refused."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

import streammetrics as sm

ALL = [
    sm.PrecisionAtK(k=3), sm.RecallAtK(k=3), sm.HitRateAtK(k=3), sm.FBetaAtK(k=3), sm.MRR(),
    sm.MAP(), sm.DCG(), sm.NDCG(), sm.RPrecision(), sm.RankBiasedPrecision(p=0.8),
    sm.ExpectedReciprocalRank(), sm.BPref(),
]  # fmt: skip


def ranking(*lists):
    """Return the rows of ranked lists of relevances, one a query."""
    rows = [(q, r, -i) for q, ranked in enumerate(lists) for i, r in enumerate(ranked)]
    return dict(zip(("query", "relevance", "score"), zip(*rows, strict=True), strict=True))


class TestLiterature:
    def test_precision_and_recall_at_5(self):
        rows = ranking([1, 0, 1, 0, 0, 1, 0, 1])
        assert sm.PrecisionAtK(k=5).update(**rows).compute() == 0.4
        assert sm.RecallAtK(k=5).update(**rows).compute() == 0.5

    def test_mean_reciprocal_rank(self):
        rows = ranking([0, 1, 0], [0, 0, 1], [0, 1, 1])
        assert round(sm.MRR().update(**rows).compute(), 2) == 0.44
        assert sm.MRR().update(**rows).per_query() == {0: 1 / 2, 1: 1 / 3, 2: 1 / 2}

    def test_mean_average_precision(self):
        metric = sm.MAP().update(**ranking([0, 1], [0, 1, 1, 0, 0], [0, 1, 0, 1]))
        values = metric.per_query()
        assert values == {0: 0.5, 1: pytest.approx((1 / 2 + 2 / 3) / 2), 2: 0.5}
        rows = ranking([0, 1], [0, 1, 0, 0, 0, 1], [0, 1])
        metric = sm.MAP().update(**rows)
        assert [round(v, 2) for v in metric.per_query().values()] == [0.5, 0.42, 0.5]
        assert round(metric.compute(), 2) == 0.47

    def test_normalised_gain(self):
        values = sm.NDCG().update(**ranking((2, 1, 0, 1), (2, 0, 1, 1), (1, 0, 2, 1))).per_query()
        assert [round(v, 2) for v in values.values()] == [0.98, 0.94, 0.78]

    @pytest.mark.parametrize(
        ("denominator", "value"), [("relevant", 1 / 6), ("min", 0.25), ("hits", 0.5)]
    )
    def test_average_precision_at_2(self, denominator, value):
        metric = sm.MAP(k=2, denominator=denominator).update(**ranking([0, 1, 1, 0, 1]))
        assert metric.compute() == pytest.approx(value, rel=1e-15)

    def test_all_tied(self):
        rows = {"query": [1] * 5, "relevance": [0, 1, 1, 0, 1], "score": [0.5] * 5}
        rows["doc"] = [1, 2, 3, 4, 5]
        tied = sm.MAP().update(**rows).compute()
        each = [
            sum(Fraction(sum(p[:i]), i) for i in range(1, 6) if p[i - 1]) / 3
            for p in permutations(rows["relevance"])
        ]
        assert tied == pytest.approx(float(sum(each) / len(each)), rel=1e-14)
        by_doc = sm.MAP(ties="doc").update(**rows).compute()
        assert by_doc == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)
        assert round(by_doc, 3) == 0.806
        assert sm.MAP(k=2, ties="doc").update(**rows).compute() == pytest.approx(1 / 3)

    def test_documents_are_ordered_as_strings_or_as_integers(self):
        rows = {"query": [1, 1], "relevance": [1, 0], "score": [1, 1]}
        assert sm.MRR(ties="doc").update(**rows, doc=[9, 10]).compute() == 0.5
        assert sm.MRR(ties="doc").update(**rows, doc=["9", "10"]).compute() == 1.0


class TestQueries:
    rows = {  # noqa: RUF012 - read only
        "query": ["good", "good", "none", "lost", "unjudged"],
        "relevance": [1, 0, 0, 1, None],
        "score": [2, 1, 1, None, 1],
    }

    @pytest.mark.parametrize(
        ("options", "queries"),
        [
            ({}, ["good", "lost", "none"]),
            ({"no_relevant": "skip"}, ["good", "lost"]),
            ({"unretrieved": "skip"}, ["good", "none"]),
            ({"no_relevant": "skip", "unretrieved": "skip"}, ["good"]),
        ],
    )
    @pytest.mark.parametrize("metric", ALL, ids=repr)
    def test_which_count(self, metric, options, queries):
        metric = type(metric)(**metric.config | options).update(**self.rows)
        assert list(metric.per_query()) == queries
        assert metric.n_queries == len(queries)
        assert metric.n_unjudged == 1
        values = metric.per_query()
        assert [values[q] for q in queries if q != "good"] == [0.0] * (len(queries) - 1)
        assert metric.compute() == pytest.approx(values["good"] / len(queries))

    @pytest.mark.parametrize("metric", ALL, ids=repr)
    def test_queries_without_relevant_documents_count_as_1(self, metric):
        metric = type(metric)(**metric.config | {"no_relevant": "one"}).update(**self.rows)
        values = metric.per_query()
        assert (values["none"], values["lost"]) == (1.0, 0.0)
        assert metric.n_queries == 3

    def test_only_means_over_queries_have_limits(self):
        metric = sm.MRR(aggregation="median").update(**self.rows)
        with pytest.raises(sm.NoConfidenceError, match="only the mean over queries"):
            metric.confidence()
        with pytest.raises(ValueError, match="aggregation='mean'"):
            sm.Comparison({"mrr": metric.reset()}, ["a", "b"])

    @pytest.mark.parametrize("aggregation", ["mean", "max"])
    def test_states_keep_the_parameter(self, aggregation):
        state = sm.MRR(aggregation=aggregation).update(**self.rows).to_bytes()
        assert sm.from_bytes(state).aggregation == aggregation

    @pytest.mark.parametrize("metric", ALL, ids=repr)
    def test_nothing_is_nan(self, metric):
        with pytest.warns(sm.UndefinedMetricWarning, match="no rows were seen"):
            assert math.isnan(metric.copy().compute())
        unjudged = metric.copy().update(query=[1], score=[0.5])
        with pytest.warns(sm.UndefinedMetricWarning, match="no query has a judged document"):
            assert math.isnan(unjudged.compute())
        assert unjudged.per_query() == {}
        assert metric.update(query=[], relevance=[], score=[]).n_rows == 0

    def test_grouped_auc_says_what_queries_lack(self):
        metric = sm.GroupedROCAUC().update(query=[1, 1], relevance=[1, 1], score=[0.5, 0.6])
        with pytest.warns(sm.UndefinedMetricWarning, match="no query has results of both kinds"):
            assert math.isnan(metric.compute())

    def test_ids_come_back_in_their_order(self):
        rows = {"relevance": [1, 1, 1], "score": [1, 1, 1]}
        assert list(sm.MRR().update([10, -3, 9], **rows).per_query()) == [-3, 9, 10]
        words = ["z", "日本", "é"]
        assert list(sm.MRR().update(words, **rows).per_query()) == sorted(words)

    def test_judged_and_not_retrieved_counts_in_the_ideal(self):
        rows = {"query": [1, 1], "doc": [1, 2], "relevance": [1, 3], "score": [0.5, None]}
        assert sm.NDCG().update(**rows).compute() == pytest.approx(1 / (3 + 1 / math.log2(3)))
        assert sm.RecallAtK(k=5).update(**rows).compute() == 0.5

    # Of BPref it says that a result was not judged.
    @pytest.mark.parametrize("metric", [m for m in ALL if not isinstance(m, sm.BPref)], ids=repr)
    def test_negative_relevance_is_not_relevant(self, metric):
        rows = ranking([-2, 1, 0, -1], [0, -1])
        rows["doc"] = [1, 2, 3, 4, 1, 2]
        low = metric.copy().update(**rows).compute()
        rows["relevance"] = np.maximum(rows["relevance"], 0)
        assert low == metric.copy().update(**rows).compute()

    def test_gains_beyond_float64_are_said(self):
        rows = ranking([2000, 0])
        assert sm.DCG(gain="exponential").update(**rows).compute() == math.inf
        assert sm.ExpectedReciprocalRank().update(**rows).compute() == 1.0

    def test_shares_of_gains_beyond_float64_are_those_of_whole_numbers(self):
        rng = np.random.default_rng(0)
        queries = {
            "large": rng.integers(1990, 2002, 8),
            "near": rng.choice([3, 505, 513, 1020, 1023], 8),
            "small": rng.integers(0, 4, 8),
            "mixed": np.array([2000, 1990, 1, 0, 1030, 2000, 1999, 7]),
        }
        for k in (None, 3):
            metric = sm.NDCG(k=k, gain="exponential")
            for query, relevance in queries.items():
                order = np.arange(8, 0, -1.0)
                metric.update(query=[query] * 8, relevance=relevance, score=order)
            for query, value in metric.per_query().items():
                gains = [2 ** int(grade) - 1 for grade in queries[query]]
                found, ideal = (
                    sum(Fraction(gain) / Fraction(math.log2(i + 2)) for i, gain in enumerate(some))
                    for some in (gains[:k], sorted(gains, reverse=True)[:k])
                )
                assert value == pytest.approx(float(found / ideal), rel=1e-14)


FIRST = "in 1 row, first in row 0"
QD, QE = "query 'q', document 'd'", "query 'q', document 'e'"
NEEDED = 'doc is missing, and ties="doc" orders equal scores by it,'
OTHER = "'integers' here"


class TestRefused:
    good = {"query": ["q"], "doc": ["d"], "relevance": [1.0], "score": [0.5]}  # noqa: RUF012

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            ({"relevance": [2.0], "score": [0.5]}, f"{QD} has two relevances: 1 and 2"),
            ({"score": [0.25]}, f"{QD} has two scores: 0.25 and 0.5"),
            ({"relevance": [0.0]}, f"{QD} has two relevances: 0 and 1"),
            ({"doc": ["e"], "score": [math.nan]}, f"score is NaN {FIRST}, {QE}"),
            ({"doc": ["e"], "relevance": [math.nan]}, f"relevance is NaN {FIRST}, {QE}"),
            ({"doc": ["e"], "relevance": [math.inf]}, f"relevance is infinite {FIRST}, {QE}"),
            (
                {"doc": ["e"], "relevance": [None], "score": [None]},
                f"relevance and score are both missing {FIRST}, {QE}",
            ),
            ({"doc": ["e"]}, "a ranking needs relevance, score or both"),
            ({"query": [1], "doc": ["e"], "score": [0.5]}, f"query ids: {OTHER}"),
            ({"doc": [1], "score": [0.5]}, f"doc ids: {OTHER}"),
            ({"query": [True], "score": [0.5]}, "query holds booleans; ids are integers or"),
            ({"query": [None], "score": [0.5]}, f"query is missing (NaN or null) {FIRST}, doc"),
            ({"doc": [None], "score": [0.5]}, f"{NEEDED} {FIRST}, query 'q'"),
            ({"doc": None, "score": [0.5]}, f"{NEEDED} {FIRST}, query 'q'"),
            ({"doc": ["e"], "score": [0.5, 0.25]}, "columns differ in length"),
            ({"doc": ["e"], "score": [[0.5, 1]]}, "score has shape (1, 2); one number"),
            ({"doc": ["e"], "score": ["high"]}, "score"),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("metric", [sm.NDCG(k=1, ties="doc"), sm.BPref(ties="doc")], ids=repr)
    def test_batch_names_query_and_document_and_changes_nothing(self, metric, rows, message):
        metric = metric.copy().update(**self.good)
        before = metric.to_bytes()
        with pytest.raises(sm.InvalidBatchError, match=re.escape(message)):
            metric.update(**{"query": ["q"], "doc": ["d"], "relevance": None, "score": None} | rows)
        assert metric.to_bytes() == before

    @pytest.mark.parametrize("rows", [{"relevance": [2.0]}, {"score": [0.25]}])
    def test_merge_names_query_and_document_and_changes_nothing(self, rows):
        metric = sm.NDCG(k=1).update(**self.good)
        other = sm.NDCG(k=1).update(
            query=["a", "q"], doc=["d", "d"], **{k: v * 2 for k, v in rows.items()}
        )
        before = metric.to_bytes(), other.to_bytes()
        with pytest.raises(sm.InvalidBatchError, match="query 'q', document 'd' has two"):
            metric.merge(other)
        assert (metric.to_bytes(), other.to_bytes()) == before

    def test_large_batches_too(self):
        n = 200_000
        rows = {"query": np.arange(n) // 10, "doc": np.arange(n) % 10, "score": np.zeros(n)}
        metric = sm.MAP().update(**rows, relevance=np.ones(n))
        before = metric.to_bytes()
        with pytest.raises(
            sm.InvalidBatchError, match="query 19999, document 9 has two scores: 0 and"
        ):
            metric.update(**rows | {"score": np.arange(n) // (n - 1)})
        rows |= {"query": rows["query"] + n}
        relevance = np.ones(n)
        relevance[123_456] = math.nan
        with pytest.raises(sm.InvalidBatchError, match="row 123456, query 212345, document 6"):
            metric.update(**rows, relevance=relevance)
        assert metric.to_bytes() == before

    def test_omitted_rows_are_counted(self):
        rows = {"query": [1, 1, 1], "relevance": [1, math.nan, 0], "score": [0.5, 0.7, math.nan]}
        metric = sm.MRR(nan_policy="omit").update(**rows)
        assert (metric.compute(), metric.n_rows, metric.n_omitted) == (1.0, 1, 2)

    @pytest.mark.parametrize(
        "make",
        [
            lambda: sm.PrecisionAtK(k=-1),
            lambda: sm.NDCG(k=0),
            lambda: sm.MAP(k=2.5),
            lambda: sm.MAP(denominator="all"),
            lambda: sm.MRR(ties="random"),
            lambda: sm.MRR(relevant_at=0),
            lambda: sm.MRR(relevant_at=math.nan),
            lambda: sm.NDCG(gain="square"),
            lambda: sm.NDCG(no_relevant="nan"),
            lambda: sm.NDCG(unretrieved="raise"),
            lambda: sm.FBetaAtK(k=1, beta=-1),
            lambda: sm.RankBiasedPrecision(p=1),
            lambda: sm.ExpectedReciprocalRank(max_grade=0),
            lambda: sm.ranking_preset("ranx"),
        ],
    )
    def test_parameters(self, make):
        with pytest.raises(ValueError, match="expected"):
            make()

    def test_grade_above_the_highest(self):
        metric = sm.ExpectedReciprocalRank(max_grade=3)
        with pytest.raises(sm.InvalidBatchError, match="relevance is above max_grade=3 in 1 row"):
            metric.update(query=[1], relevance=[4], score=[1])

    def test_weights_have_no_place(self):
        suite = sm.MetricSet({"mrr": sm.MRR()})
        with pytest.raises(sm.InvalidBatchError, match="ranking metrics do not accept weights"):
            suite.update(query=[1], relevance=[1], score=[1], sample_weight=[2.0])


class TestInfiniteScores:
    def test_are_ordered(self):
        rows = {
            "query": [1] * 4,
            "relevance": [0, 1, 0, 1],
            "score": [-math.inf, 0.0, math.inf, -math.inf],
        }
        assert sm.MRR().update(**rows).compute() == 0.5
        assert sm.MAP().update(**rows).compute() == pytest.approx((1 / 2 + (2 / 3 + 2 / 4) / 2) / 2)

    def test_zeros_are_one_score(self):
        rows = {"query": [1, 1], "relevance": [0, 1], "doc": [1, 2]}
        assert sm.MRR().update(**rows, score=[0.0, -0.0]).compute() == 0.75
        again = sm.MRR().update(**rows, score=[0.0, -0.0]).update(**rows, score=[-0.0, 0.0])
        assert again.compute() == 0.75


def test_a_set_shares_the_buffer():
    suite = sm.MetricSet({"ndcg": sm.NDCG(k=10), "map": sm.MAP(k=10), "mrr": sm.MRR(k=10)})
    rng = np.random.default_rng(0)
    rows = {
        "query": np.arange(5000) % 50,
        "relevance": rng.integers(0, 3, 5000),
        "score": rng.random(5000),
    }
    suite.update(rows)
    alone = sm.NDCG(k=10).update(**rows)
    assert suite.nbytes == alone.nbytes
    assert suite["ndcg"].compute() == alone.compute()
    assert suite["mrr"].per_query().keys() == alone.per_query().keys()


@pytest.mark.parametrize("metric", [*ALL, sm.ExpectedReciprocalRank(k=2)], ids=repr)
def test_queries_are_read_in_blocks(metric, monkeypatch):
    rng = np.random.default_rng(3)
    rows = {"query": rng.integers(0, 40, 400), "score": rng.integers(0, 5, 400)}
    rows |= {
        "relevance": rng.integers(0, 4, 400),
        "doc": [None if i % 2 else i for i in range(400)],
    }
    metric = metric.copy().update(**rows)
    expected = metric.per_query(), metric.compute()
    monkeypatch.setattr("streammetrics.metrics.ranking.base._BLOCK", 7)
    assert (metric.per_query(), metric.compute()) == expected


@pytest.mark.parametrize("n", [3000])
def test_many_tied_are_in_expectation(n):
    relevance = np.zeros(n)
    relevance[: n // 3] = 1
    rows = {"query": np.zeros(n, int), "relevance": relevance, "score": np.zeros(n)}
    assert sm.PrecisionAtK(k=7).update(**rows).compute() == pytest.approx(1 / 3, rel=1e-13)
    missed = Fraction(1)
    for i in range(7):
        missed *= Fraction(n - n // 3 - i, n - i)
    assert sm.HitRateAtK(k=7).update(**rows).compute() == pytest.approx(
        float(1 - missed), rel=1e-13
    )
    first, reading = Fraction(0), Fraction(1)
    for i in range(60):  # the rest is below 1e-12
        first += reading * Fraction(n // 3, n - i) / (i + 1)
        reading *= Fraction(n - n // 3 - i, n - i)
    assert sm.MRR().update(**rows).compute() == pytest.approx(float(first), rel=1e-10)
    err = sm.ExpectedReciprocalRank(max_grade=1, k=9).update(**rows).compute()
    reads = [
        sum(
            Fraction(math.comb(n // 3, x) * math.comb(n - n // 3, i - x), 2**x)
            for x in range(i + 1)
        )
        / math.comb(n, i)
        for i in range(10)
    ]
    stops = sum((reads[i - 1] - reads[i]) / i for i in range(1, 10))
    assert err == pytest.approx(float(stops), rel=1e-12)
    over_hits = sm.MAP(k=400, denominator="hits").update(**rows).compute()
    assert over_hits == pytest.approx(1 / 3, rel=0.05)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_nulls_of_tables_are_values_left_out(library):
    columns = {
        "query": ["a", "a", "a", "b"],
        "doc": ["x", "y", "x", None],
        "relevance": [1, 0, None, 2],
        "score": [None, 0.25, 0.5, 0.5],
    }
    module = pytest.importorskip(library)
    if library == "pandas":
        types = {"relevance": "Int64", "score": "Float64", "doc": "string"}
        table = module.DataFrame(columns).astype(types)
    else:
        table = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    suite = sm.MetricSet({"ndcg": sm.NDCG(k=2), "mrr": sm.MRR()}).update(table)
    expected = sm.NDCG(k=2).update(**columns)
    assert suite["ndcg"] == expected
    assert suite.compute() == {"ndcg": expected.compute(), "mrr": 1.0}


@pytest.mark.parametrize("relevant_at", [1.0, 2.0])
@pytest.mark.parametrize(
    ("metric", "value"),
    [
        (sm.DCG, lambda g: sum(x / np.log2(rank + 2) for rank, x in enumerate(g))),
        (
            sm.NDCG,
            lambda g: (
                sum(x / np.log2(rank + 2) for rank, x in enumerate(g))
                / sum(x / np.log2(rank + 2) for rank, x in enumerate(sorted(g)[::-1]))
            ),
        ),
        (sm.ExpectedReciprocalRank, None),
    ],
)
def test_a_query_has_relevant_documents_where_it_has_a_gain(metric, value, relevant_at):
    """Of gains below 1 too; only queries without any gain are left out."""
    queries = {
        "half": [0.25, 0.5, 0.0], "tenth": [0.1], "none": [0.0, 0.0], "less": [-1.0, 0.0],
        "one": [1.0, 0.0], "two": [0.0, 2.0],
    }  # fmt: skip
    rows = [(q, x, -rank) for q, g in queries.items() for rank, x in enumerate(g)]
    query, relevance, score = zip(*rows, strict=True)
    columns = {"query": query, "relevance": relevance, "score": score}
    more = {"max_grade": 2.0} if metric is sm.ExpectedReciprocalRank else {}
    skips = metric(no_relevant="skip", relevant_at=relevant_at, **more).update(**columns)
    every = metric(**more).update(**columns).per_query()
    kept = ["half", "tenth", "one", "two"]
    assert skips.per_query() == {q: every[q] for q in kept}
    assert skips.n_queries == 4
    assert skips.compute() == pytest.approx(np.mean([every[q] for q in kept]))
    for q in kept if value else ():
        assert every[q] == pytest.approx(value(queries[q]))
    of_binary = sm.MRR(no_relevant="skip", relevant_at=relevant_at).update(**columns)
    assert set(of_binary.per_query()) == ({"one", "two"} if relevant_at == 1.0 else {"two"})
