"""Logits as probabilities, row by row: nothing of a row depends on the others of its batch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core import elementary

if TYPE_CHECKING:
    from streammetrics.core.types import Floats


def sigmoid(logits: Floats) -> Floats:
    """Return 1 / (1 + exp(-z)) of each logit (n,), without overflow.

    >>> sigmoid(np.array([-np.inf, 0.0, np.inf])).tolist()
    [0.0, 0.5, 1.0]
    """
    small = elementary.exp(-np.abs(logits))
    probabilities: Floats = np.where(logits >= 0, 1.0, small)
    probabilities /= 1.0 + small
    return probabilities


def softmax(logits: Floats) -> Floats:
    """Return exp(z) / sum of exp(z) of each row (n, K), shifted by its largest, which is finite.

    >>> softmax(np.array([[1000.0, 1000.0, -np.inf]])).tolist()
    [[0.5, 0.5, 0.0]]
    """
    with np.errstate(over="ignore"):  # a difference beyond float64 is a probability of 0
        shifted = logits - logits.max(axis=1, keepdims=True)
    probabilities: Floats = elementary.exp(shifted, out=shifted)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return probabilities


def log_total(logits: Floats) -> tuple[Floats, Floats]:
    """Return log of the sum of exp(z) of each row (n, K) as its largest logit and what exceeds it.

    >>> log_total(np.array([[1000.0, 1000.0 - 40.0]]))
    (array([1000.]), array([4.24835426e-18]))
    """
    rows, best = np.arange(len(logits)), logits.argmax(axis=1)
    top = logits[rows, best]
    others = elementary.exp(logits - top[:, None])
    others[rows, best] = 0.0  # a term of 1, beside which small ones would lose their digits
    return top, elementary.log1p(others.sum(axis=1))


def softplus(logits: Floats) -> Floats:
    """Return log(1 + exp(z)) of each logit (n,), which is -log of the sigmoid of -z."""
    rest = elementary.exp(-np.abs(logits))
    elementary.log1p(rest, out=rest)
    rest += np.maximum(logits, 0.0)
    return rest


def log_odds(probability: float) -> float:
    """Return log(p / (1 - p)): a sigmoid is at least p where its logit is at least this.

    >>> log_odds(0.5), log_odds(1.0)
    (0.0, inf)
    """
    if probability <= 0.0:
        return -math.inf
    if probability >= 1.0:
        return math.inf
    return float(elementary.log(probability) - elementary.log1p(-probability))
