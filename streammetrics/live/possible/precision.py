"""Extremes of average precision over missing labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.results.values import Interval

if TYPE_CHECKING:
    from streammetrics.core.types import Floats, Numeric
    from streammetrics.live.possible.remembered import ScoreGroups

    Numbers = Floats

_MOST = 10_000  # maximum number of unlabelled rows


def precision(groups: ScoreGroups) -> Interval | None:
    """Return the minimum and maximum of average precision, ``None`` with too many unlabelled rows.

    Dynamic programming over score groups, from the highest scores down: for each number of
    positives among the unlabelled rows so far, keep the best sum of precisions. Lower groups depend
    only on that number.
    """
    known, _, unknown = groups.totals
    total = known + np.arange(unknown + 1)
    good = total > 0
    if unknown > _MOST or not good.any():
        return None
    least, most = (_sums(groups, best)[good] / total[good] for best in (np.minimum, np.maximum))
    slack = len(groups.single) * 2.0**-52
    return Interval(float(least.min()) * (1 - slack), min(float(most.max()) * (1 + slack), 1.0))


class _Group(NamedTuple):
    """Rows of one score or cell, below `above` labelled positives and `before` rows in all."""

    p: Numeric
    n: Numeric
    single: Numeric
    above: Numeric
    before: Numeric

    def sum(self, m: Numeric, above: Numeric, rows: Numeric, best: Numeric) -> Numeric:
        """Return the best sum of precisions at m positives in `rows`, below `above` others.

        Rows of one score count together. In a cell of several scores, the sum is largest if all
        positives share one score above the negatives. It is smallest if they follow one by one
        below the negatives: the precisions then increase concavely, and their sum is at least that
        of the line between the first and the last.
        """
        others = rows - m
        last = (above + m) / np.maximum(self.before + m + others, 1)
        if best is np.maximum:
            alone = (above + m) / np.maximum(self.before + m, 1)
        else:
            alone = ((above + 1) / (self.before + others + 1) + last) / 2
        return m * np.where(self.single, last, alone)


def _sums(groups: ScoreGroups, best: object) -> Numbers:
    """Return the best sum of precisions for each number of positives among the unlabelled rows."""
    p, n, u = groups.amounts
    rows = p + n + u
    every = _Group(p, n, groups.single, np.cumsum(p) - p, np.cumsum(rows) - rows)
    # Groups without unlabelled rows add a linear function of the unlabelled positives above them.
    fixed = np.where(u == 0, p, 0)
    flat = every.sum(fixed, every.above, rows, best)
    slope = every.sum(fixed, every.above + 1, rows, best) - flat
    flat, slope = np.append(0.0, np.cumsum(flat)), np.append(0.0, np.cumsum(slope))
    sums, after = np.zeros(1), 0
    for place in np.flatnonzero(u).tolist():
        sums = sums + _line(flat, slope, after, place, len(sums))
        group = _Group(*(each[place] for each in every))
        sums = _chosen(sums, group, int(u[place]), int(rows[place]), best)
        after = place + 1
    return sums + _line(flat, slope, after, len(u), len(sums))


def _line(flat: Numbers, slope: Numbers, first: int, last: int, size: int) -> Numbers:
    """Return what some groups without unlabelled rows add for each number of positives above."""
    line: Numbers = flat[last] - flat[first] + (slope[last] - slope[first]) * np.arange(size)
    return line


def _chosen(sums: Numbers, group: _Group, unknown: int, rows: int, best: Numeric) -> Numbers:
    """Return the best sums after a group, over all label counts of its unlabelled rows."""
    found = np.full(len(sums) + unknown, np.inf if best is np.minimum else -np.inf)
    above = group.above + np.arange(len(sums))
    for j in range(unknown + 1):
        part = slice(j, j + len(sums))
        best(found[part], sums + group.sum(group.p + j, above, rows, best), out=found[part])
    return found
