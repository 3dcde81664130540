"""How sure are rank correlations: the infinitesimal jackknife on a grid of ranks.

Correlations of ranks move with every row through the ranks of all others, which sums over rows and
columns of a table tell. For that, neighbouring ranks share a place of a grid; the value itself is
that of all ranks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.confidence import (
    Asked,
    ConfidenceInterval,
    not_anytime,
    rule_of,
    unsure,
)
from streammetrics.inference.distributions import normal_quantile
from streammetrics.inference.limits import clopper_pearson, limits
from streammetrics.metrics.families import Family

if TYPE_CHECKING:
    from streammetrics.core.arithmetic.pairs import PairCells
    from streammetrics.core.types import Floats, Numeric
    from streammetrics.metrics.correlation.rank import KendallTau
    from streammetrics.statistics.pairs.histogram import PairHistogram


_SIDE = 256  # places of a side of the grid


@rule_of(Family.KENDALL, Family.SPEARMAN)
def of_ranks(metric: Any, asked: Asked, pairs: PairHistogram) -> ConfidenceInterval:
    """Kendall's tau and Spearman's rho, on Fisher's z."""
    if asked.anytime:
        raise not_anytime(metric)
    method = "infinitesimal jackknife of ranks, Fisher's z"
    low, high = metric.interval(pairs)
    if low != low:  # noqa: PLR0124 - the test for nan
        return unsure(asked.level, method)
    grid = grid_of(pairs.cells())
    slopes = _spearman(grid) if metric.family == Family.SPEARMAN else _kendall(grid, metric)
    error = float(np.sqrt((grid * slopes**2).sum()))
    z = normal_quantile(1 - asked.tail)
    below, above = limits(low, error, z, -1.0, 1.0)[0], limits(high, error, z, -1.0, 1.0)[1]
    if math.isnan(below) or math.isnan(above):
        n = float(grid.sum())
        method = f"Clopper-Pearson of {n:g} rows, as no row varies"
        exact = [2 * clopper_pearson((side + 1) / 2 * n, n, asked.tail)[k] - 1
                 for k, side in enumerate((low, high))]  # fmt: skip
        below = exact[0] if math.isnan(below) else below
        above = exact[1] if math.isnan(above) else above
    return ConfidenceInterval(below, above, asked.level, method)


def grid_of(cells: PairCells) -> Floats:
    """Return how many rows are at each place of both ranks, in their order."""
    places = []
    for at, marginal in zip((cells.rows, cells.columns), cells.marginals(), strict=True):
        counts = marginal.counts
        order = np.arange(counts.size)
        if counts.size > _SIDE:
            middle = np.cumsum(counts) - counts / 2
            order = np.minimum(middle * (_SIDE / cells.size), _SIDE - 1).astype(np.intp)
        places.append(np.unique(order, return_inverse=True)[1][at])
    rows, columns = places
    grid = np.zeros((int(rows.max()) + 1, int(columns.max()) + 1))
    np.add.at(grid, (rows, columns), cells.counts)
    return grid


def _kendall(grid: Floats, metric: KendallTau) -> Numeric:
    n, (x, y) = grid.sum(), (grid.sum(axis=1), grid.sum(axis=0))
    moved = _above(_above(grid, 0), 1) + _below(_below(grid, 0), 1)
    moved -= _above(_below(grid, 0), 1) + _below(_above(grid, 0), 1)
    balance = float((grid * moved).sum()) / 2  # concordant less discordant pairs
    if metric.variant == "a":
        return (moved - 2 * balance / n) * 2 / n**2
    if metric.variant == "c":
        levels = min(grid.shape)
        return (moved - 2 * balance / n) * 2 * levels / (levels - 1) / n**2
    a, b = (n * n - x @ x) / 2, (n * n - y @ y) / 2
    untied = (n - x)[:, None] / a + (n - y) / b
    return moved / np.sqrt(a * b) - balance / np.sqrt(a * b) / 2 * untied


def _spearman(grid: Floats) -> Numeric:
    n, (x, y) = grid.sum(), (grid.sum(axis=1), grid.sum(axis=0))
    ranks_x, ranks_y = np.cumsum(x) - x / 2, np.cumsum(y) - y / 2
    together = ranks_x @ grid @ ranks_y - n**3 / 4
    slopes = np.outer(ranks_x, ranks_y) - 3 * n * n / 4
    slopes += _later(grid @ ranks_y)[:, None] + _later(ranks_x @ grid)
    spreads, moved = [], []
    for counts, ranks in ((x, ranks_x), (y, ranks_y)):
        spreads.append(counts @ ranks**2 - n**3 / 4)
        moved.append(ranks**2 + 2 * _later(counts * ranks) - 3 * n * n / 4)
    root = math.sqrt(spreads[0] * spreads[1])
    value = together / root
    both = (moved[0] / spreads[0])[:, None] + moved[1] / spreads[1]
    return slopes / root - value / 2 * both


def _later(parts: Floats) -> Numeric:
    """Return the sum of all later parts and half of the own, as a rank grows with a row."""
    return parts.sum() - np.cumsum(parts) + parts / 2


def _above(grid: Floats, axis: int) -> Numeric:
    """Return sums of what lies at higher places of an axis."""
    return grid.sum(axis=axis, keepdims=True) - np.cumsum(grid, axis=axis)


def _below(grid: Floats, axis: int) -> Numeric:
    """Return sums of what lies at lower places of an axis."""
    return np.cumsum(grid, axis=axis) - grid
