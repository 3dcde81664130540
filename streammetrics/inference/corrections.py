"""Chances corrected for how many were looked at."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


def holm(chances: Sequence[float]) -> list[float]:
    """Return p-values as Holm (1979) corrects them: any of them small by chance is as rare.

    Those that are undefined count for nothing.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    known = sorted((p, at) for at, p in enumerate(chances) if not math.isnan(p))
    adjusted, least = list(chances), 0.0
    for rank, (p, at) in enumerate(known):
        least = max(least, min(1.0, p * (len(known) - rank)))
        adjusted[at] = least
    return adjusted


def benjamini_hochberg(chances: Sequence[float]) -> list[float]:
    """Return p-values as Benjamini and Hochberg (1995) correct them: of findings few are chance.

    Those that are undefined count for nothing.

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    adjusted = np.array(chances, np.float64)
    known = np.flatnonzero(~np.isnan(adjusted))
    order = known[np.argsort(adjusted[known])[::-1]]
    raised = adjusted[order] * order.size / np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.minimum.accumulate(raised), 1.0)
    found: list[float] = adjusted.tolist()
    return found
