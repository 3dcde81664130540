"""Means of all groups at once are rounded as that of each alone, to the bit."""

import numpy as np
import pytest

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.fields.weights import WeightedCount
from streammetrics.statistics.sums import mean_of, root_mean_of

GROUPS = 400
NUMBERS = {
    "spread": lambda rng, n: np.abs(rng.normal(size=n)),
    "eighths": lambda rng, n: rng.integers(0, 9, n) / 8,  # many means are halfway, or exact
    "far apart": lambda rng, n: 10.0 ** rng.integers(-300, 300, n),
    "tiny": lambda rng, n: rng.random(n) * 1e-310,
    "huge": lambda rng, n: rng.random(n) * 1.7e308,
    "nothing": lambda _, n: np.zeros(n),
}


@pytest.mark.parametrize("each", [1, 2, 3, 10])
@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_means_and_roots(numbers, each, weighted):
    rng = np.random.default_rng(each)
    group = rng.integers(0, GROUPS, GROUPS * each)
    x = NUMBERS[numbers](rng, group.size)
    weight = rng.random(group.size) + 2.0**-20 if weighted else None
    if weighted:
        rows = WeightedCount.of_weights(ExactSum.grouped(group, GROUPS, weight))
    else:
        rows = WeightedCount.of_counts(np.bincount(group, minlength=GROUPS))
    for sign, read in ((1, mean_of), (-1, mean_of), (1, root_mean_of)):
        total = ExactSum.grouped(group, GROUPS, sign * x, weight)
        alone = [read(total[k], rows.at(k)) for k in range(GROUPS)]
        assert np.asarray(read(total, rows)).tobytes() == np.array(alone).tobytes()
