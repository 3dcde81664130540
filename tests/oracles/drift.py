"""Distances of two samples against SciPy and a formula of fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import scipy.stats
from scipy.spatial.distance import jensenshannon

import streammetrics as sm
from oracles.base import Oracle


def two_samples(rng, n):
    sample = rng.random(n) < 0.4
    return {"sample": sample, "values": rng.normal(0.3 * sample, 1)}


def ties(rng, n):
    sample = rng.integers(0, 2, n)
    return {"sample": sample, "values": rng.integers(0, 12, n) + 3 * sample}


def two_samples_weighted(rng, n):
    return {**two_samples(rng, n), "sample_weight": rng.exponential(size=n)}


def ties_weighted(rng, n):
    return {**ties(rng, n), "sample_weight": rng.integers(0, 4, n)}


def months(rng, n):
    return {"sample": rng.choice(["may", "june"], n), "values": rng.random(n).round(1)}


def infinities(rng, n):
    values = rng.choice([-math.inf, math.inf, 0.0, 1.0], n)
    return {"sample": rng.integers(0, 2, n), "values": values}


def words(rng, n):
    sample = rng.integers(0, 2, n)
    return {
        "sample": sample,
        "values": np.where(rng.random(n) < 0.2 * sample, "a", rng.choice([*"abc"], n)),
    }


def numbers_weighted(rng, n):
    rows = {"sample": rng.choice(["may", "june"], n), "values": rng.integers(-2, 3, n)}
    return {**rows, "sample_weight": rng.exponential(size=n)}


def of_categories(of, **options):
    """Return a reference that reads categories as bins between the numbers of them."""

    def reference(values, **rows):
        names, codes = np.unique(values, return_inverse=True)
        edges = [code + 0.5 for code in range(len(names) - 1)]
        return of(edges=edges, **options)(values=codes, **rows)

    return reference


def parted(sample, values, sample_weight=None, current=1):
    """Return values and weights of the reference, and of the current sample."""
    weight = np.ones(len(values)) if sample_weight is None else np.asarray(sample_weight, float)
    mine = np.asarray(sample) == current
    return (values[~mine], weight[~mine]), (values[mine], weight[mine])


def largest_difference(**rows):
    (u, v), (x, w) = parted(**rows)
    if "sample_weight" not in rows and np.isfinite(u).all():
        return scipy.stats.ks_2samp(u, x).statistic
    every = np.unique(np.concatenate([u, x]))[:, None]
    shares = [((a <= every) * b).sum(axis=1) / b.sum() for a, b in ((u, v), (x, w))]
    return np.abs(shares[0] - shares[1]).max()


def area(**rows):
    (u, v), (x, w) = parted(**rows)
    return scipy.stats.wasserstein_distance(u, x, v, w)


def shares(rows, bins=10, edges=None, pseudo_count=0.0, current=1):
    """Return the exact shares of both samples in bins."""
    (u, v), (x, w) = parted(**rows, current=current)
    samples = [[(a, Fraction(b)) for a, b in zip(*s, strict=True)] for s in ((u, v), (x, w))]
    total = [sum(b for _, b in s) for s in samples]
    if edges is None:
        edges, passed, k = [], Fraction(0), 1
        for a, b in sorted(samples[0]):
            passed += b
            while k < bins and passed * bins >= k * total[0]:
                edges.append(a)
                k += 1
    edges = [-math.inf, *edges, math.inf]
    more = Fraction(pseudo_count)
    found = []
    for s, whole in zip(samples, total, strict=True):
        inside = [sum(b for a, b in s if low < a <= high) for low, high in pairwise(edges)]
        found.append([(m + more) / (whole + more * len(inside)) for m in inside])
    return found


def stability(**options):
    def reference(**rows):
        terms = [
            0 if q == p else math.inf if not (p and q) else float(p - q) * math.log(p / q)
            for q, p in zip(*shares(rows, **options), strict=True)
        ]
        return math.fsum(terms)

    return reference


def divergence(base=None, **options):
    def reference(**rows):
        q, p = shares(rows, **options)
        return jensenshannon([float(x) for x in p], [float(x) for x in q], base)

    return reference


ORACLES = [
    *(
        Oracle(metric, rows, reference)
        for rows in (two_samples, ties, two_samples_weighted, ties_weighted)
        for metric, reference in (
            (sm.KSDistance(), largest_difference),
            (sm.Wasserstein(), area),
            (sm.PopulationStability(), stability()),
            (sm.JensenShannon(), divergence()),
        )
    ),
    Oracle(sm.KSDistance(), infinities, largest_difference),
    Oracle(sm.PopulationStability(current="june"), months, stability(current="june")),
    Oracle(
        sm.PopulationStability(edges=[-1.0, 0.0, 0.5]), two_samples, stability(edges=[-1, 0, 0.5])
    ),
    Oracle(sm.PopulationStability(bins="categories"), words, of_categories(stability)),
    Oracle(sm.JensenShannon(bins="categories"), words, of_categories(divergence)),
    Oracle(
        sm.PopulationStability(bins="categories", current="june", pseudo_count=0.5),
        numbers_weighted,
        of_categories(stability, current="june", pseudo_count=0.5),
    ),
    Oracle(sm.JensenShannon(edges=[3, 7.5], base=2), ties_weighted, divergence(2, edges=[3, 7.5])),
]
