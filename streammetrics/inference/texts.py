"""How sure are scores of a corpus: by how they move with what is counted in its rows.

The counts of a row c_r are summed to C, and a score θ(C) does not change when all are doubled, so
that it is nearly linear in them: with g its slopes the variance is n / (n - 1) Σ_r (g · c_r)²,
which the sums of the products of counts tell: g' P g.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.confidence import (
    Asked,
    ConfidenceInterval,
    not_anytime,
    rule_of,
    unsure,
)
from streammetrics.inference.distributions import t_quantile
from streammetrics.inference.influence import derivatives
from streammetrics.inference.limits import limits
from streammetrics.inference.tables import UNBOUNDED
from streammetrics.metrics.families import Family
from streammetrics.metrics.text import recognition

if TYPE_CHECKING:
    from streammetrics.metrics.text.base import TextMetric
    from streammetrics.statistics.texts.base import TextCounts

_SCALES = {(False, True): ", on the logarithm", (False, False): ", on the logit"}
_NOISE = Fraction(1, 1 << 40)  # of the terms: less than that is the rounding of the slopes


@rule_of(Family.CORPUS)
def of_corpus(metric: TextMetric, asked: Asked, held: TextCounts) -> ConfidenceInterval:
    """A score of sums over rows, linearised."""
    if asked.anytime:
        raise not_anytime(metric)
    low, high = metric.value_range or UNBOUNDED
    scale = _SCALES.get((math.isinf(low), math.isinf(high)), "")
    method = f"Student's t, linearised{scale}"
    n, *counts = held.counts.tolist()
    silent = isinstance(metric, recognition.ErrorRate) and not any(counts[:3])
    if n < 2 or silent:  # without a word of a reference the rate is a sum
        return unsure(asked.level, method)
    sums = np.array(counts, np.float64)
    slopes = derivatives(sums, lambda moved: list(map(metric.read, moved.tolist()))).tolist()
    exact, products = list(map(Fraction, slopes)), held.moments()
    terms = [
        one * other * products[i][j] for i, one in enumerate(exact) for j, other in enumerate(exact)
    ]
    around = sum(terms, Fraction(0))
    if around <= _NOISE * sum(map(abs, terms), Fraction(0)):
        return unsure(asked.level, method)
    error = math.sqrt(around * n / (n - 1))
    sides = limits(metric.read(counts), error, t_quantile(1 - asked.tail, n - 1), low, high)
    return ConfidenceInterval(*sides, asked.level, method)
