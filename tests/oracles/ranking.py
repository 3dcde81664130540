"""Ranking metrics against plain formulas over every order of tied results, and scikit-learn."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from itertools import groupby, permutations, product
from statistics import median_low

import numpy as np
import sklearn.metrics as sk

import streammetrics as sm
from oracles.base import Oracle


def _some(rng, n, **columns):
    """Return columns of n rows; those of lists of objects may hold nulls."""
    queries = rng.permutation(np.repeat(np.arange(-(-n // 6)), 6)[:n])
    return {"query": queries, **{name: make(rng, queries) for name, make in columns.items()}}


def _scores(rng, queries):
    return rng.integers(0, 4, len(queries)) / 4


def _grades(rng, queries):
    return rng.integers(-1, 4, len(queries)) * (rng.random(len(queries)) < 0.7)


def _docs(rng, queries):
    """Return documents that differ within a query and recur in others."""
    order = np.argsort(queries, kind="stable")
    docs = np.empty(len(queries), np.int64)
    docs[order] = np.arange(len(queries)) % 7
    return docs


def _nulls(values, absent):
    column = np.array(values.tolist(), dtype=object)
    column[absent] = None
    return column


def graded(rng, n):
    return _some(rng, n, relevance=_grades, score=_scores)


def named(rng, n):
    """Return rows whose relevance and score follow from query and document: no call contradicts."""
    rows = _some(rng, n, doc=_docs)
    mixed = (rows["query"] * 7919 + rows["doc"] * 104729) % 1009
    relevance = (mixed % 5 - 1) * (mixed % 10 < 7)
    return {**rows, "relevance": relevance, "score": mixed // 5 % 4 / 4}


def words(rng, n):
    rows = named(rng, n)
    names = np.array(["é", "zz", "a", "ab", "Z", "日本", "b"])
    return {**rows, "query": np.char.add("q", rows["query"].astype(str)), "doc": names[rows["doc"]]}


def in_parts(rng, n):
    """Return rows of which some are judgments, some results and some both, and some come twice."""
    rows = named(rng, n - n // 3)
    twice = rng.choice(n - n // 3, n // 3)
    rows = {name: np.concatenate([column, column[twice]]) for name, column in rows.items()}
    kind = rng.integers(0, 3, n)
    relevance, score = _nulls(rows["relevance"], kind == 1), _nulls(rows["score"], kind == 2)
    order = rng.permutation(n)
    rows |= {"relevance": relevance, "score": score}
    return {name: column[order] for name, column in rows.items()}


def weighed(rng, n):
    """Return rows of which some say the weight of their query, which may be 0."""
    rows = in_parts(rng, n)
    weights = rows["query"] * 31 % 5 / 4
    return {**rows, "query_weight": _nulls(weights, rng.random(n) < 0.6)}


def unnamed_in_parts(rng, n):
    rows = graded(rng, n)
    kind = rng.integers(0, 4, n)
    return {
        **rows,
        "relevance": _nulls(rows["relevance"], kind == 1),
        "score": _nulls(rows["score"], kind == 2),
    }


def queries(query, relevance=None, score=None, doc=None):
    """Yield each judged query's results, as (score, relevance, doc), and its judgments."""
    n = len(query)
    relevance = [None] * n if relevance is None else relevance
    score = [None] * n if score is None else score
    doc = [None] * n if doc is None else doc
    table = {}
    for row, (q, r, s, d) in enumerate(zip(query, relevance, score, doc, strict=True)):
        held = table.setdefault(q, {}).setdefault(("row", row) if d is None else d, [None, None])
        held[0] = held[0] if r is None else r
        held[1] = held[1] if s is None else s
    for q in sorted(table):
        docs = table[q]
        judgments = [r for r, _ in docs.values() if r is not None]
        if judgments:
            yield [(s, r, d) for d, (r, s) in docs.items() if s is not None], judgments


def orders(results, ties):
    """Return every order of the results that their scores allow, as lists of relevances."""
    results = sorted(results, key=lambda row: row[0], reverse=True)
    groups = [list(group) for _, group in groupby(results, key=lambda row: row[0])]
    if ties == "doc":
        groups = [sorted(group, key=lambda row: row[2], reverse=True) for group in groups]
        return [[r for group in groups for _, r, _ in group]]
    each = [[[r for _, r, _ in p] for p in permutations(group)] for group in groups]
    return [[r for group in chosen for r in group] for chosen in product(*each)]


def mean_of(
    value, ties="average", no_relevant="zero", unretrieved="zero", level=1, aggregated=np.mean
):
    """Return the reference: `value(ranking, judgments)` in expectation, mean over queries."""

    def reference(*query, **rows):
        values = []
        for results, judgments in queries(*query, **rows):
            lacks = not any(r >= level for r in judgments)
            if no_relevant == "skip" and lacks:
                continue
            if unretrieved == "skip" and not results:
                continue
            each = [value(ranking, judgments) for ranking in orders(results, ties)]
            one = no_relevant == "one" and lacks
            values.append(1.0 if one else math.fsum(each) / len(each))
        return aggregated(values) if values else math.nan

    return reference


def weighted_median(query, query_weight, **rows):
    """Return the median of MRR over queries, each repeated as often as its weight, in quarters."""
    values = []
    for one in set(query):
        mine = np.flatnonzero(query == one)
        each = mean_of(reciprocal_rank())(query[mine], **{k: v[mine] for k, v in rows.items()})
        said = next((w for w in query_weight[mine] if w is not None), 1.0)
        values += [each] * int(4 * said) * (not math.isnan(each))
    return np.median(values)


def weighted_mean_of(value):
    """Return the reference: the mean of each query alone, by the weight that some row says."""

    def reference(query, query_weight, **rows):
        total = weight = 0.0
        for one in set(query):
            mine = np.flatnonzero(query == one)
            each = mean_of(value)(query[mine], **{k: v[mine] for k, v in rows.items()})
            said = next((w for w in query_weight[mine] if w is not None), 1.0)
            if not math.isnan(each):
                total, weight = total + said * each, weight + said
        return total / weight if weight else math.nan

    return reference


def flags(ranking, level=1):
    return [r is not None and r >= level for r in ranking]


def precision(k, level=1):
    return lambda ranking, _: sum(flags(ranking, level)[:k]) / k


def recall(k, level=1):
    def value(ranking, judgments):
        n = sum(flags(judgments, level))
        return sum(flags(ranking, level)[:k]) / n if n else 0.0

    return value


def hit_rate(k):
    return lambda ranking, _: float(any(flags(ranking)[:k]))


def fbeta(k, beta):
    def value(ranking, judgments):
        p, r = Fraction(sum(flags(ranking)[:k]), k), Fraction(sum(flags(judgments)) or 1)
        r = sum(flags(ranking)[:k]) / r
        weight = Fraction(beta) ** 2
        return float((1 + weight) * p * r / (weight * p + r)) if p else 0.0

    return value


def r_precision(ranking, judgments):
    n = sum(flags(judgments))
    return sum(flags(ranking)[:n]) / n if n else 0.0


def reciprocal_rank(k=None):
    def value(ranking, _):
        return next((1 / i for i, hit in enumerate(flags(ranking)[:k], 1) if hit), 0.0)

    return value


def average_precision(k=None, denominator="relevant"):
    def value(ranking, judgments):
        hits, n = flags(ranking)[:k], sum(flags(judgments))
        total = math.fsum(sum(hits[:i]) / i for i, hit in enumerate(hits, 1) if hit)
        by = {"relevant": n, "min": min(n, k or n), "hits": sum(hits)}[denominator]
        return total / by if by else 0.0

    return value


def gained(relevances, k, gain):
    positive = [max(r or 0, 0) for r in relevances[:k]]
    gains = positive if gain == "linear" else [2.0**r - 1 for r in positive]
    return math.fsum(g / math.log2(i + 1) for i, g in enumerate(gains, 1))


def dcg(k=None, gain="linear"):
    return lambda ranking, _: gained(ranking, k, gain)


def ndcg(k=None, gain="linear"):
    def value(ranking, judgments):
        ideal = gained(sorted(judgments, reverse=True), k, gain)
        return gained(ranking, k, gain) / ideal if ideal else 0.0

    return value


def rank_biased(p):
    return lambda ranking, _: math.fsum(
        (1 - p) * p**i for i, hit in enumerate(flags(ranking)) if hit
    )


def err(k=None, top=3):
    def value(ranking, _):
        total, reading = 0.0, 1.0
        for i, r in enumerate(ranking[:k], 1):
            stop = (2.0 ** max(r or 0, 0) - 1) / 2.0**top
            total, reading = total + reading * stop / i, reading * (1 - stop)
        return total

    return value


def err_of_highest(**rows):
    top = max(r for _, judgments in queries(**rows) for r in judgments)
    return mean_of(err(None, max(top, 0)))(**rows)


def bpref(ranking, judgments):
    n, wrong = sum(flags(judgments)), sum(0 <= r < 1 for r in judgments)
    total, above = 0.0, 0
    for r in ranking:
        if r is not None and 0 <= r < 1:
            above += 1
        elif r is not None and r >= 1:
            total += 1 - min(above, n) / min(wrong, n) if above else 1.0
    return total / n if n else 0.0


def with_sklearn(function, k=None):
    """Return the mean of a scikit-learn function over queries of two or more rows."""

    def reference(query, relevance, score):
        values = []
        for q in np.unique(query):
            rows = query == q
            truth = np.maximum(relevance[rows], 0)
            values.append(function(truth[None], score[rows][None], k=k))
        return math.fsum(values) / len(values)

    return reference


DOC = {"ties": "doc"}
SKIP = {"no_relevant": "skip", "unretrieved": "skip"}
TREC = sm.ranking_preset("trec_eval")
SKLEARN = sm.ranking_preset("sklearn")


def set_ratio(beta):
    """Return the F score of all results; of beta 0 their precision, of None their recall."""

    def value(ranking, judgments):
        hits, n, m = sum(flags(ranking)), sum(flags(judgments)), len(ranking)
        if beta is None:
            return hits / n if n else 0.0
        whole = beta**2 * n + m
        return (1 + beta**2) * hits / whole if whole else 0.0

    return value


def judged(k):
    return lambda ranking, _: (
        float(np.mean([r is not None for r in ranking[:k]])) if ranking else 0.0
    )


def fall_out(k, without=0.0):
    def value(ranking, judgments):
        others = sum(not flag for flag in flags(judgments))
        wrong = sum(r is not None and r < 1 for r in ranking[:k])
        return wrong / others if others else without

    return value


def interpolated(level):
    def value(ranking, judgments):
        wanted = int(level * sum(flags(judgments)) + 0.9)
        found = np.cumsum(flags(ranking))
        return max([f / (i + 1) for i, f in enumerate(found) if f >= wanted], default=0.0)

    return value


def inferred(ranking, judgments):
    """Return trec_eval's sum, line by line, over all that are relevant."""
    relevant = wrong = pooled = total = 0
    for i, r in enumerate(ranking, 1):
        if r is None:
            continue
        if r < 1:
            pooled, wrong = pooled + (r < 0), wrong + (r >= 0)
            continue
        above = relevant + wrong + pooled
        total += (1 + above * (relevant + 1e-5) / (relevant + wrong + 2e-5)) / i
        relevant += 1
    n = sum(flags(judgments))
    return total / n if n else 0.0


def set_ap(ranking, judgments):
    return set_ratio(0)(ranking, judgments) * set_ratio(None)(ranking, judgments)


def counts(what):
    """Return the sum over queries."""

    def reference(**rows):
        of = {
            "queries": lambda results, judgments: 1,
            "results": lambda results, judgments: len(results),
            "relevant": lambda results, judgments: sum(flags(judgments)),
            "hits": lambda results, judgments: sum(flags([r for _, r, _ in results])),
        }[what]
        return float(sum(of(*one) for one in queries(**rows)))

    return reference


def median_count(**rows):
    return np.median([len(results) for results, _ in queries(**rows)])


def precision_of_results(k):
    return lambda ranking, _: sum(flags(ranking)[:k]) / max(1, min(k, len(ranking)))


def best_recall(least, k, precision=precision):
    def reference(**rows):
        depths = range(1, k + 1)
        precise = [depth for depth in depths if mean_of(precision(depth))(**rows) >= least]
        return max([mean_of(recall(depth))(**rows) for depth in precise], default=0.0)

    return reference


def eleven_points(ranking, judgments):
    return np.mean([interpolated(place / 10)(ranking, judgments) for place in range(11)])


def grouped_auc(unjudged=None, k=None, max_fpr=None, one_sided=None, alone=None, **rows):
    values = []
    for results, judgments in queries(**rows):
        scores = sorted((s for s, _, _ in results), reverse=True)
        last = scores[min(k, len(scores)) - 1] if k and scores else -math.inf
        told = [(unjudged if r is None else r, s) for s, r, _ in results if s >= last]
        known = [(r >= 1, s) for r, s in told if r is not None]
        if len({label for label, _ in known}) == 2:
            values.append(sk.roc_auc_score(*zip(*known, strict=True), max_fpr=max_fpr))
        elif alone is not None and max(judgments) < 1:
            values.append(alone)
        elif one_sided is not None:
            values.append(one_sided)
    return np.mean(values)


ORACLES = [
    Oracle(sm.InfAP(), in_parts, mean_of(inferred)),
    Oracle(sm.InfAP(), graded, mean_of(inferred)),
    Oracle(sm.InfAP(**TREC), words, mean_of(inferred, **DOC, unretrieved="skip")),
    Oracle(sm.SetAP(), in_parts, mean_of(set_ap)),
    *(
        Oracle(sm.RankingCount(of=of), in_parts, counts(of))
        for of in ("queries", "results", "relevant", "hits")
    ),
    Oracle(sm.RecallAtFixedPrecision(precision=0.35, k=4), in_parts, best_recall(0.35, 4)),
    Oracle(sm.RecallAtFixedPrecision(precision=0.9, k=2), graded, best_recall(0.9, 2)),
    Oracle(sm.SetPrecision(), in_parts, mean_of(set_ratio(0))),
    Oracle(sm.SetRecall(), in_parts, mean_of(set_ratio(None))),
    Oracle(sm.SetF(), in_parts, mean_of(set_ratio(1))),
    Oracle(sm.SetF(beta=2.0), graded, mean_of(set_ratio(2))),
    Oracle(sm.HitsAtK(k=3), in_parts, mean_of(lambda ranking, _: sum(flags(ranking)[:3]))),
    Oracle(sm.JudgedAtK(k=3), in_parts, mean_of(judged(3))),
    Oracle(sm.FallOutAtK(k=2), in_parts, mean_of(fall_out(2))),
    *(
        Oracle(sm.InterpolatedPrecision(recall=r, **DOC), words, mean_of(interpolated(r), **DOC))
        for r in (0.0, 0.3, 1.0)
    ),
    Oracle(sm.ElevenPointAP(**DOC), named, mean_of(eleven_points, **DOC)),
    Oracle(sm.GroupedROCAUC(), in_parts, grouped_auc),
    Oracle(sm.GroupedROCAUC(), graded, grouped_auc),
    Oracle(sm.GroupedROCAUC(unjudged="wrong"), in_parts, partial(grouped_auc, unjudged=0)),
    Oracle(sm.FallOutAtK(k=2, no_irrelevant="one"), in_parts, mean_of(fall_out(2, 1.0))),
    Oracle(
        sm.FallOutAtK(k=2, no_irrelevant="skip"),
        in_parts,
        mean_of(fall_out(2, math.nan), aggregated=np.nanmean),
    ),
    Oracle(sm.PrecisionAtK(k=5, adaptive_k=True), in_parts, mean_of(precision_of_results(5))),
    Oracle(
        sm.RecallAtFixedPrecision(precision=0.35, k=4, adaptive_k=True),
        in_parts,
        best_recall(0.35, 4, precision_of_results),
    ),
    Oracle(sm.GroupedROCAUC(k=3), in_parts, partial(grouped_auc, k=3)),
    Oracle(sm.GroupedROCAUC(max_fpr=0.4), graded, partial(grouped_auc, max_fpr=0.4)),
    Oracle(
        sm.GroupedROCAUC(k=4, max_fpr=0.7, one_sided="zero", no_relevant="one"),
        in_parts,
        partial(grouped_auc, k=4, max_fpr=0.7, one_sided=0.0, alone=1.0),
    ),
    Oracle(sm.PrecisionAtK(k=3), graded, mean_of(precision(3))),
    Oracle(sm.PrecisionAtK(k=2, relevant_at=2), in_parts, mean_of(precision(2, 2))),
    Oracle(sm.PrecisionAtK(k=2, **SKIP), in_parts, mean_of(precision(2), **SKIP)),
    Oracle(sm.RecallAtK(k=3), in_parts, mean_of(recall(3))),
    Oracle(sm.RecallAtK(k=2, relevant_at=1.5), unnamed_in_parts, mean_of(recall(2, 1.5))),
    Oracle(sm.RecallAtK(k=2, **DOC), words, mean_of(recall(2), **DOC)),
    Oracle(sm.HitRateAtK(k=2), graded, mean_of(hit_rate(2))),
    Oracle(sm.HitRateAtK(k=1), in_parts, mean_of(hit_rate(1))),
    Oracle(sm.HitRateAtK(k=2, **DOC), named, mean_of(hit_rate(2), **DOC)),
    Oracle(sm.FBetaAtK(k=3), graded, mean_of(fbeta(3, 1))),
    Oracle(sm.FBetaAtK(k=3, beta=0.5), in_parts, mean_of(fbeta(3, 0.5))),
    Oracle(sm.RPrecision(), in_parts, mean_of(r_precision)),
    Oracle(sm.RPrecision(**TREC), words, mean_of(r_precision, **DOC, unretrieved="skip")),
    Oracle(sm.MRR(), graded, mean_of(reciprocal_rank())),
    Oracle(sm.MRR(), in_parts, mean_of(reciprocal_rank())),
    Oracle(sm.MRR(k=2), unnamed_in_parts, mean_of(reciprocal_rank(2))),
    Oracle(sm.MRR(**DOC), in_parts, mean_of(reciprocal_rank(), **DOC)),
    Oracle(sm.MAP(), graded, mean_of(average_precision())),
    Oracle(sm.MAP(**DOC), words, mean_of(average_precision(), **DOC)),
    Oracle(sm.MAP(k=3), in_parts, mean_of(average_precision(3))),
    Oracle(sm.MAP(k=2, denominator="min"), graded, mean_of(average_precision(2, "min"))),
    Oracle(sm.MAP(k=2, denominator="hits"), graded, mean_of(average_precision(2, "hits"))),
    Oracle(sm.MAP(k=3, denominator="hits"), in_parts, mean_of(average_precision(3, "hits"))),
    Oracle(sm.MAP(denominator="hits"), in_parts, mean_of(average_precision(None, "hits"))),
    Oracle(sm.DCG(**SKLEARN), graded, with_sklearn(sk.dcg_score)),
    Oracle(sm.DCG(k=2, **SKLEARN), graded, with_sklearn(sk.dcg_score, 2)),
    Oracle(sm.DCG(k=3, gain="exponential"), in_parts, mean_of(dcg(3, "exponential"))),
    Oracle(sm.NDCG(k=3), in_parts, mean_of(ndcg(3))),
    Oracle(sm.NDCG(k=3), weighed, weighted_mean_of(ndcg(3))),
    Oracle(sm.NDCG(k=2, gain="exponential"), unnamed_in_parts, mean_of(ndcg(2, "exponential"))),
    Oracle(sm.NDCG(**DOC), words, mean_of(ndcg(), **DOC)),
    Oracle(sm.NDCG(k=3, **TREC), in_parts, mean_of(ndcg(3), **DOC, unretrieved="skip")),
    Oracle(sm.NDCG(no_relevant="skip"), graded, mean_of(ndcg(), no_relevant="skip")),
    Oracle(sm.RankBiasedPrecision(p=0.8), in_parts, mean_of(rank_biased(0.8))),
    Oracle(sm.ExpectedReciprocalRank(), in_parts, err_of_highest),
    Oracle(sm.ExpectedReciprocalRank(k=2, max_grade=4), graded, mean_of(err(2, 4))),
    Oracle(sm.ExpectedReciprocalRank(max_grade=3, **DOC), words, mean_of(err(), **DOC)),
    Oracle(sm.BPref(), in_parts, mean_of(bpref)),
    Oracle(sm.BPref(), graded, mean_of(bpref)),
    Oracle(sm.BPref(**DOC), words, mean_of(bpref, **DOC)),
    Oracle(sm.MRR(no_relevant="one"), in_parts, mean_of(reciprocal_rank(), no_relevant="one")),
    Oracle(sm.NDCG(no_relevant="one", k=3), graded, mean_of(ndcg(3), no_relevant="one")),
    *(
        Oracle(sm.NDCG(aggregation=how), graded, mean_of(ndcg(), aggregated=aggregated))
        for how, aggregated in (
            ("median", np.median),
            ("median_low", median_low),
            ("min", min),
            ("max", max),
        )
    ),
    Oracle(sm.MRR(aggregation="median"), weighed, weighted_median),
    Oracle(sm.RankingCount(of="results", aggregation="median"), in_parts, median_count),
]
