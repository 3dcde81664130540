"""Repeated attempts against plain formulas, and against all subsets of attempts."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np

import streammetrics as sm
from oracles.base import Oracle


def tries(rng, n):
    units = rng.integers(0, max(n // 12, 1), n)
    return {"unit": units, "y_true": (rng.random(n) < units % 5 / 4).astype(int)}


def named_tries(rng, n):
    """Attempts with ids, of which some come twice."""
    units = np.array([f"q{unit}" for unit in range(max(n // 8, 1))])
    unit, attempt = rng.integers(0, units.size, n), rng.integers(0, 9, n)
    return {"unit": units[unit], "y_true": (7 * unit + attempt) % 3 == 0, "attempt": attempt}


def answered(rng, n):
    unit, answer = rng.integers(0, max(n // 7, 1), n), rng.integers(0, 4, n)
    return {"unit": unit, "y_true": answer == unit % 4, "answer": np.array(list("wxyz"))[answer]}


def answered_by_name(rng, n):
    rows = named_tries(rng, n)
    answer = [f"{'right' if solved else 'wrong'}{a % 2}" for solved, a in
              zip(rows["y_true"], rows["attempt"], strict=True)]  # fmt: skip
    return {**rows, "answer": np.array(answer)}


def by_unit(unit, attempt, *columns):
    """Return what the attempts at each unit have in other columns, each attempt once."""
    ids = range(len(unit)) if attempt is None else attempt.tolist()
    found = {}
    for u, a, *values in zip(unit.tolist(), ids, *columns, strict=True):
        found.setdefault(u, {})[a] = values
    return [list(attempts.values()) for attempts in found.values()]


def mean_of(value, needed):
    """Return the mean over units, of those with enough attempts."""

    def reference(unit, y_true, answer=None, attempt=None):
        columns = [y_true.tolist()] if answer is None else [y_true.tolist(), answer.tolist()]
        units = by_unit(unit, attempt, *columns)
        return float(np.mean([value(tries) for tries in units if len(tries) >= needed]))

    return reference


def chen(k):
    """Return the product that Chen et al. compute."""

    def value(tries):
        n, c = len(tries), sum(solved for (solved,) in tries)
        return 1.0 if n - c < k else 1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1))

    return value


def all_of(k):
    def value(tries):
        subsets = list(combinations([solved for (solved,) in tries], k))
        return np.mean([all(subset) for subset in subsets])

    return value


def variance(tries):
    return np.var([solved for (solved,) in tries], ddof=1)


def majority(k):
    """Return the value over all subsets, by counting the answers of each."""

    def value(tries):
        share = {}
        for solved, answer in tries:
            share.setdefault(answer, []).append(solved)
        rights = {answer: Fraction(sum(of), len(of)) for answer, of in share.items()}
        total = Fraction(0)
        for subset in combinations([answer for _, answer in tries], k):
            counts = {answer: subset.count(answer) for answer in subset}
            first = [answer for answer in counts if counts[answer] == max(counts.values())]
            total += sum(rights[answer] for answer in first) / len(first)
        return total / math.comb(len(tries), k)

    return value


def spread(unit, y_true, attempt=None):
    return math.sqrt(mean_of(variance, 2)(unit, y_true, attempt=attempt))


ORACLES = [
    *(
        Oracle(metric(incomplete="skip", **given), rows, mean_of(value, needed))
        for rows in (tries, named_tries)
        for metric, given, value, needed in (
            (sm.PassAtK, {"k": 1}, chen(1), 1),
            (sm.PassAtK, {"k": 3}, chen(3), 3),
            (sm.PassHatK, {"k": 2}, all_of(2), 2),
            (sm.MeanAtK, {}, np.mean, 1),
            (sm.MeanAtK, {"k": 4}, np.mean, 4),
        )
    ),
    *(Oracle(sm.AttemptSpread(incomplete="skip"), rows, spread) for rows in (tries, named_tries)),
    *(
        Oracle(sm.MajorityAtK(k=k, incomplete="skip"), rows, mean_of(majority(k), k))
        for rows in (answered, answered_by_name)
        for k in (1, 3)
    ),
]
