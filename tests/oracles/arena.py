"""Bradley-Terry with Davidson's ties, by Newton's method in 50 digits."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal, localcontext

import numpy as np

import streammetrics as sm
from oracles.base import Oracle

STRENGTHS = {"ant": 0.0, "bee": 0.6, "cat": -0.4, "dog": 0.2, "eel": 1.0}


def simulated(rng, n, strengths, log_nu, share=None):
    """Return the players of matches and the outcome: 0 and 1 for the winner, 2 for a tie."""
    size = len(strengths)
    first = rng.integers(0, size, n)
    second = (first + rng.integers(1, size, n)) % size
    half = (strengths[first] - strengths[second]) / 2
    chance = np.exp(np.stack([half, -half, np.full(n, log_nu)], axis=1))
    chance /= chance.sum(axis=1, keepdims=True)
    return first, second, (rng.random((n, 1)) > np.cumsum(chance, axis=1)).sum(axis=1).clip(0, 2)


def matches(rng, n, log_nu=-0.5):
    names = np.array(list(STRENGTHS))
    first, second, won = simulated(rng, n, np.array(list(STRENGTHS.values())), log_nu)
    a, b = names[first], names[second]
    return {"a": a, "b": b, "winner": np.select([won == 0, won == 1], [a, b], "tie")}


def decided(rng, n):
    return matches(rng, n, -np.inf)


def numbered(rng, n):
    """Players are integers, and the winner of a tie is missing."""
    first, second, won = simulated(rng, n, np.array([0.3, -0.3, 0.0, 0.8]), 0.0)
    a, b = 10 * first - 10, 10 * second - 10
    return {"a": a, "b": b, "winner": np.select([won == 0, won == 1], [a, b], np.nan)}


def weighted_matches(rng, n):
    return {**matches(rng, n), "sample_weight": rng.integers(1, 9, n) / 4}


def fitted(a, b, winner, sample_weight=None):
    """Return players, strengths with mean 0 and nu (0 without ties) as decimals."""
    weight = np.ones(len(a)) if sample_weight is None else sample_weight
    players = sorted({*np.asarray(a).tolist(), *np.asarray(b).tolist()})
    counts = Counter()
    for one, two, won, w in zip(*(np.asarray(c).tolist() for c in (a, b, winner, weight)),
                                strict=True):  # fmt: skip
        features = [0] * (len(players) + 1)
        for player in (one, two):
            tied = won not in (one, two)
            features[players.index(player)] = 1 if tied else 2 * (player == won)
        features[-1] = 2 * tied
        pair = tuple(sorted((players.index(one), players.index(two))))
        counts[pair, tuple(features)] += Decimal(w)
    ties = any(features[-1] for _, features in counts)
    free = [*range(1, len(players)), *([len(players)] if ties else [])]
    with localcontext() as context:
        context.prec = 60
        at = [Decimal(0)] * (len(players) + 1)
        for _ in range(60):
            step = newton(counts, at, free, ties)
            for place, change in zip(free, step, strict=True):
                at[place] += change
            if max(map(abs, step)) < Decimal("1e-50"):
                break
        mean = sum(at[:-1]) / len(players)
        return players, [each - mean for each in at[:-1]], at[-1].exp() if ties else Decimal(0)


def newton(counts, at, free, ties):
    """Return a step; the logarithm of an outcome's chance is linear but for the pair's total."""
    size = len(free)
    gradient = [Decimal(0)] * size
    matrix = [[Decimal(0)] * size for _ in range(size)]
    for ((i, j), seen), count in counts.items():
        options = []
        for first, second, tie in ((2, 0, 0), (0, 2, 0), *([(1, 1, 2)] if ties else [])):
            row = [Decimal(0)] * len(at)
            row[i], row[j], row[-1] = (Decimal(each) / 2 for each in (first, second, tie))
            options.append((row, sum(x * y for x, y in zip(row, at, strict=True)).exp()))
        total = sum(chance for _, chance in options)
        mean = [sum(row[k] * chance for row, chance in options) / total for k in free]
        for x, k in enumerate(free):
            gradient[x] += count * (Decimal(seen[k]) / 2 - mean[x])
            for y, m in enumerate(free):
                product = sum(row[k] * row[m] * chance for row, chance in options) / total
                matrix[x][y] += count * (product - mean[x] * mean[y])
    for x in range(size):
        for y in range(x + 1, size):
            factor = matrix[y][x] / matrix[x][x]
            matrix[y] = [u - factor * v for u, v in zip(matrix[y], matrix[x], strict=True)]
            gradient[y] -= factor * gradient[x]
    for x in reversed(range(size)):
        above = sum(matrix[x][y] * gradient[y] for y in range(x + 1, size))
        gradient[x] = (gradient[x] - above) / matrix[x][x]
    return gradient


def strengths(**rows):
    return np.array(list(map(float, fitted(**rows)[1])))


ORACLES = [
    Oracle(metric, rows, strengths, abs=1e-11, why="Newton's method ends where steps are 1e-13")
    for metric, rows in (
        (sm.BradleyTerry(), matches),
        (sm.BradleyTerry(), numbered),
        (sm.BradleyTerry(), weighted_matches),
        (sm.BradleyTerry(ties=None), decided),
    )
]
