"""Rankings: each query's value by one run beside its value by the other."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.errors import StreamMetricsError
from streammetrics.inference.comparing.base import Estimate, PairedTest, estimated
from streammetrics.inference.rankings import error_of_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Floats
    from streammetrics.inference.comparing.base import Joint, Side


PERMUTATIONS = 9_999
SIGNS = "sign flips"
_PAIRED = "paired t"
_MANY = 1 << 17  # queries from which the mean is normal, and flipping signs would tell no more
_BLOCK = 1 << 22  # signs at a time
_SLACK = 1e-12  # relative: sums of the same numbers in another order are equal


class QueryFamily(PairedTest):
    """Means over queries."""

    def joints(self, models: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[Joint]:  # noqa: ARG002 - queries are kept as they are
        """Return nothing: every run has its queries already."""
        return []

    def n_rows(self, one: Side) -> int | None:  # noqa: ARG002 - of runs, the rows are their own
        """Return none: values are of the same queries."""
        return None

    def estimate(self, one: Side, other: Side, joint: Statistic | None, level: float) -> Estimate:  # noqa: ARG002 - there is none
        """Return limits by the paired t, and p by flipping the signs of queries' differences."""
        ours, theirs = one.metric.per_query(), other.metric.per_query()
        for side in (one, other):
            _check_run(side)
        apart = [query for query in ours if query not in theirs]
        apart += [query for query in theirs if query not in ours]
        if apart:
            raise StreamMetricsError(
                f"{one.metric._titled()} counts other queries for the one run than for the other: "
                f"{len(apart)} of them, first {apart[0]!r}, count for one only; unretrieved='zero' "
                "counts those that a run has no results for as 0"
            )
        gaps = np.array([value - theirs[query] for query, value in ours.items()])
        n, difference = len(gaps), one.value - other.value
        if n < 2 or not np.isfinite(gaps).all():
            return estimated(difference, math.nan, level, SIGNS, 1.0)
        weights = _weights_of(one)
        variance = error_of_mean(gaps, difference, weights) ** 2
        found = estimated(difference, variance, level, _PAIRED, n - 1)
        if not gaps.any() or n > _MANY:
            return found
        p = sign_flips(gaps if weights is None else gaps * (weights / weights.max()))
        if math.isnan(found.low):  # all queries differ alike
            found = found._replace(low=difference, high=difference)
        return found._replace(p=p, test=SIGNS)


def _weights_of(side: Side) -> Floats | None:
    """Return the weights of the queries that count, which are those of the other run too."""
    (buffer,) = side.metric._read()
    weights: Floats | None = side.metric._weights(buffer, side.metric._counted(buffer)[0])
    return weights


def _check_run(side: Side) -> None:
    """Raise where a run has judgments and no results: its column may be misspelt."""
    (buffer,) = side.metric._read()
    if len(buffer.table.queries) and not len(buffer.table.results.query):
        raise StreamMetricsError(
            f"no row has a score of {side.model!r}: is its column called otherwise?"
        )


def sign_flips(gaps: Floats, permutations: int = PERMUTATIONS) -> float:
    """Return how probable a sum as far from 0 is where every difference may have either sign.

    Of up to 13 differences all signs are taken, else `permutations` at random, and the ones that
    are there: p = (r + 1) / (B + 1), which is never 0. The signs are a function of the differences
    alone, so that the same queries give the same p however they came.

    >>> sign_flips(np.array([1.0, 1.0, 1.0, 1.0]))
    0.125
    """
    gaps = np.sort(gaps[gaps != 0])  # of 0 either sign is the same
    n, seen = len(gaps), abs(float(gaps.sum()))
    least = seen - _SLACK * float(np.abs(gaps).sum())
    if 1 << n <= permutations + 1:
        every = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
        sums = gaps.sum() - 2 * (every @ gaps)
        return float(np.count_nonzero(np.abs(sums) >= least)) / (1 << n)
    seed = int.from_bytes(hashlib.sha256(np.ascontiguousarray(gaps, "<f8").tobytes()).digest()[:8])
    random, reached = np.random.Generator(np.random.PCG64(seed)), 0
    words = -(-n // 64)
    step = max(1, _BLOCK // (64 * words))
    for start in range(0, permutations, step):
        rows = min(step, permutations - start)
        drawn = random.integers(0, 1 << 64, (rows, words), np.uint64, endpoint=False)
        flipped = np.unpackbits(drawn.view(np.uint8), axis=1, count=n)
        sums = gaps.sum() - 2 * (flipped.astype(np.float64) @ gaps)
        reached += int(np.count_nonzero(np.abs(sums) >= least))
    return (reached + 1) / (permutations + 1)
