"""Chances corrected for how many were looked at."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

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
    known = sorted(((p, at) for at, p in enumerate(chances) if not math.isnan(p)), reverse=True)
    adjusted, least = list(chances), 1.0
    for above, (p, at) in enumerate(known):
        least = min(least, p * len(known) / (len(known) - above))
        adjusted[at] = least
    return adjusted
