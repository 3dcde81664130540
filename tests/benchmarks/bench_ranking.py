"""Ranking and rank correlation."""

from __future__ import annotations

import numpy as np
import scipy.stats
import torch
from measuring import Case, Figure
from peers import peer

import streammetrics as sm

ranx, retrieval = peer("ranx"), peer("torchmetrics.retrieval")


def shuffled(scale):
    """Return queries, relevances and scores of shuffled rows, a hundred a query."""
    rng, n = np.random.default_rng(6), int(1_000_000 * scale)
    query = rng.permutation(np.repeat(np.arange(max(n // 100, 1)), 100)[:n])
    return query, rng.integers(0, 4, n) * (rng.random(n) < 0.3), rng.random(n)


def top_ten(scale):
    """nDCG@10, MAP@10 and MRR@10."""
    query, relevance, score = shuffled(scale)
    measures = ["ndcg@10", "map@10", "mrr@10"]
    by_ranx = evaluated_by_ranx(query, relevance, score, measures)
    tensors = [torch.from_numpy(column) for column in (score, relevance, query)]

    def ours():
        suite = sm.MetricSet(
            {"ndcg": sm.NDCG(k=10), "map": sm.MAP(k=10), "mrr": sm.MRR(k=10)},
        )
        return suite.update(query=query, relevance=relevance, score=score).compute()

    def theirs():
        metric = retrieval.RetrievalNormalizedDCG(top_k=10)
        metric.update(tensors[0], tensors[1], indexes=tensors[2])
        return metric.compute()

    n = len(np.unique(query))
    return Case(
        f"nDCG@10 + MAP@10 + MRR@10, {len(query):,} shuffled rows, {n:,} queries",
        ours,
        {
            "ranx (built beforehand)": by_ranx,
            "torchmetrics, nDCG alone": theirs,
        },
        {"ranx (built beforehand)": 2, "torchmetrics, nDCG alone": 8},
        (query, relevance, score),
    )


def evaluated_by_ranx(query, relevance, score, measures):
    """Return a call of ranx on its own form of the rows, which is made and compiled before."""
    judged = {str(q): {} for q in np.unique(query).tolist()}
    ranked = {q: {} for q in judged}
    rows = zip(query.tolist(), relevance.tolist(), score.tolist(), strict=True)
    for i, (q, r, s) in enumerate(rows):
        judged[str(q)][str(i)] = r
        ranked[str(q)][str(i)] = s
    qrels, run = ranx.Qrels(judged), ranx.Run(ranked)
    ranx.evaluate(qrels, run, measures)
    return lambda: ranx.evaluate(qrels, run, measures)


def correlated(scale):
    """Return two correlated columns of distinct numbers."""
    rng, n = np.random.default_rng(7), int(1_000_000 * scale)
    x = rng.normal(size=n)
    return x, x + rng.normal(size=n)


def tau(scale):
    """Kendall's tau."""
    x, y = correlated(scale)
    return Case(
        f"Kendall's tau-b, {len(x):,} pairs",
        lambda: sm.KendallTau().update(x, y).compute(),
        {"scipy": lambda: scipy.stats.kendalltau(x, y)},
        {"scipy": 2.0},
        (x, y),
    )


def rho(scale):
    """Spearman's rho."""
    x, y = correlated(scale)
    return Case(
        f"Spearman's rho, {len(x):,} pairs",
        lambda: sm.SpearmanRho().update(x, y).compute(),
        {"scipy": lambda: scipy.stats.spearmanr(x, y)},
        {"scipy": 1.0},
        (x, y),
    )


def truncated(scale):
    """State of the top ten of 100 M rows in 1 M queries."""
    rows, queries = int(100_000_000 * scale), max(int(1_000_000 * scale), 1)
    rng, metric, batch = np.random.default_rng(8), sm.NDCG(k=10), 1_000_000
    for _ in range(max(rows // batch, 1)):
        metric.update(
            query=rng.integers(0, queries, batch),
            relevance=rng.integers(0, 4, batch),
            score=rng.random(batch),
        )
    held = metric.nbytes / 1e6
    title = f"state of nDCG@10, {metric.n_rows:,} rows, {queries:,} queries"
    return [Figure(title, f"{held:.0f} MB", f"{1000 * scale:g} MB", held < 1000 * scale)]


BENCHMARKS = {
    "ranking top ten": top_ten,
    "Kendall's tau": tau,
    "Spearman's rho": rho,
    "ranking state": truncated,
}
