"""Recommended lists against plain formulas."""

from __future__ import annotations

from itertools import combinations

import numpy as np

import streammetrics as sm
from oracles.base import Oracle


def shown(rng, n):
    return {
        "query": rng.integers(0, max(n // 4, 1), n),
        "item": np.array(list("abcdefg"))[rng.integers(0, 5, n)],
    }


def lists(rng, n):
    return {"query": rng.integers(0, max(n // 4, 1), n), "category": rng.integers(0, 4, n)}


def known(rng, n):
    return {"popularity": 1 - rng.random(n)}


def known_weighted(rng, n):
    return {**known(rng, n), "sample_weight": rng.exponential(size=n)}


def gini(n_items):
    def reference(query, item):
        counts = np.unique(item, return_counts=True)[1]
        counts = np.concatenate([counts, np.zeros(max(0, n_items - counts.size))])
        apart = np.abs(counts[:, None] - counts).sum()
        return apart / (2 * counts.size * counts.sum())

    return reference


def diversity(query, category):
    values = []
    for each in np.unique(query):
        pairs = list(combinations(category[query == each], 2))
        values += [np.mean([a != b for a, b in pairs])] if pairs else []
    return np.mean(values)


ORACLES = [
    Oracle(sm.CatalogueCoverage(n_items=9), shown, lambda query, item: len(set(item)) / 9),
    Oracle(sm.ExposureGini(), shown, gini(0)),
    Oracle(sm.ExposureGini(n_items=12), shown, gini(12)),
    Oracle(sm.IntraListDiversity(), lists, diversity),
    *(
        Oracle(
            metric,
            rows,
            lambda popularity, sample_weight=None, of=of: np.average(
                of(popularity), weights=sample_weight
            ),
        )
        for metric, of in (
            (sm.Novelty(), lambda p: -np.log2(p)),
            (sm.PopularityBias(of_catalogue=0.5), lambda p: p / 0.5),
        )
        for rows in (known, known_weighted)
    ),
]
