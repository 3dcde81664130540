"""Association of labels and agreement of raters against SciPy, krippendorff and plain formulas."""

from __future__ import annotations

import numpy as np
import sklearn.metrics as sk
from scipy.stats.contingency import association
from sklearn.metrics.cluster import contingency_matrix

import streammetrics as sm
from oracles.base import Oracle
from oracles.clustering import independent_labelings, labelings


def ratings(rng, n):
    return {"ratings": rng.multinomial(4, [0.2, 0.5, 0.3], n)}


def ratings_of_some(rng, n):
    shares = np.where(rng.random((n, 1)) < 0.5, [0.1, 0.2, 0.7], [0.6, 0.3, 0.1])
    return {"ratings": np.array([rng.multinomial(rng.integers(1, 6), row) for row in shares])}


def codes(rng, n):
    return {"ratings": rng.choice([0, 1, 3], (n, 4), p=[0.2, 0.5, 0.3])}


def of_codes(reference):
    """Return the same of codes, of which those that occur are the categories."""

    def counted(ratings):
        seen = np.unique(ratings)
        return reference((ratings[:, :, None] == seen).sum(axis=1))

    return counted


def of_every_code(reference):
    """Return the same of codes, with a place for each code up to the largest."""

    def counted(ratings):
        return reference((ratings[:, :, None] == np.arange(ratings.max() + 1)).sum(axis=1))

    return counted


def of_table(method):
    def reference(labels_true, labels_pred):
        return association(contingency_matrix(labels_true, labels_pred), method=method)

    return reference


def corrected(power):
    """Return Bergsma's correction, of Cramér's V and of Tschuprow's T."""

    def reference(labels_true, labels_pred):
        table = contingency_matrix(labels_true, labels_pred)
        n, (r, k) = table.sum(), table.shape
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
        phi = max(0, ((table - expected) ** 2 / expected).sum() / n - (r - 1) * (k - 1) / (n - 1))
        sides = [side - (side - 1) ** 2 / (n - 1) - 1 for side in (r, k)]
        return np.sqrt(phi / (min(sides) if power == "v" else np.sqrt(sides[0] * sides[1])))

    return reference


def observed(ratings):
    m = ratings.sum(axis=1)
    some = m > 1
    agreeing = (ratings * (ratings - 1)).sum(axis=1)[some] / (m * (m - 1))[some]
    return agreeing.mean()


def fleiss(ratings):
    share = ratings.sum(axis=0) / ratings.sum()
    chance = (share**2).sum()
    return (observed(ratings) - chance) / (1 - chance)


def randolph(ratings):
    chance = 1 / ratings.shape[1]
    return (observed(ratings) - chance) / (1 - chance)


def gwet(ratings):
    share = (ratings / ratings.sum(axis=1, keepdims=True)).mean(axis=0)
    chance = (share * (1 - share)).sum() / (ratings.shape[1] - 1)
    return (observed(ratings) - chance) / (1 - chance)


def krippendorff(level):
    """Return alpha of its definition, from every pair of ratings."""

    def reference(ratings):
        ratings = ratings[ratings.sum(axis=1) > 1]
        counts, (_, size) = ratings.sum(axis=0), ratings.shape
        squared = np.zeros((size, size))
        for a in range(size):
            for b in range(size):
                low, high = min(a, b), max(a, b)
                between = counts[low : high + 1].sum() - (counts[a] + counts[b]) / 2
                squared[a, b] = {
                    "nominal": a != b,
                    "interval": (a - b) ** 2,
                    "ratio": ((a - b) / max(1, a + b)) ** 2,
                    "ordinal": between**2,
                }[level]
        rows = [np.repeat(np.arange(size), row) for row in ratings]
        within = [squared[np.ix_(row, row)].sum() / (row.size - 1) for row in rows]
        every = np.concatenate(rows)
        total = squared[np.ix_(every, every)].sum() / (every.size - 1)
        return 1 - sum(within) / total

    return reference


ORACLES = [
    *(
        Oracle(metric, rows, reference, abs=1e-12)
        for metric, reference in (
            (sm.CramersV(), of_table("cramer")),
            (sm.CramersV(bias_correction=True), corrected("v")),
            (sm.TschuprowsT(), of_table("tschuprow")),
            (sm.TschuprowsT(bias_correction=True), corrected("t")),
            (sm.PearsonsContingencyCoefficient(), of_table("pearson")),
            (sm.TheilsU(), sk.homogeneity_score),
        )
        for rows in (labelings, independent_labelings)
    ),
    Oracle(sm.FleissKappa(), ratings, fleiss),
    Oracle(sm.FleissKappa(chance="uniform"), ratings, randolph),
    Oracle(sm.GwetAC1(), ratings, gwet),
    Oracle(sm.GwetAC1(from_raters=False), ratings_of_some, gwet),
    Oracle(sm.FleissKappa(from_raters=True), codes, of_codes(fleiss)),
    Oracle(sm.GwetAC1(from_raters=True), codes, of_codes(gwet)),
    *(
        Oracle(sm.KrippendorffAlpha(level=level, from_raters=True), codes, of(krippendorff(level)))
        for level, of in (("ordinal", of_codes), ("interval", of_every_code))
    ),
    *(
        Oracle(sm.KrippendorffAlpha(level=level, from_raters=told), rows, krippendorff(level))
        for level, told, rows in (
            ("nominal", False, ratings_of_some),
            ("ordinal", False, ratings_of_some),
            ("interval", None, ratings),
            ("ratio", False, ratings_of_some),
        )
    ),
]
