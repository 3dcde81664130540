"""The least and the most of average precision, over all labels that rows may have."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.results.values import Interval

if TYPE_CHECKING:
    from streammetrics.core.types import Floats, Numeric
    from streammetrics.live.possible.remembered import ScoreGroups

    Numbers = Floats

_MOST = 10_000  # rows without a label that are looked at


def precision(groups: ScoreGroups) -> Interval | None:
    """Return the least and the most of average precision, ``None`` of too many rows.

    Of the first groups and each number of positives among their unknown rows the best sum of
    precisions is kept, from the highest scores down: what is below does not ask for more.
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
    """Rows of one score or cell, below `above` known positives and `before` rows in all."""

    p: Numeric
    n: Numeric
    single: Numeric
    above: Numeric
    before: Numeric

    def sum(self, m: Numeric, above: Numeric, rows: Numeric, best: Numeric) -> Numeric:
        """Return the sum of precisions at m positives of so many rows, below so many positives.

        Rows of one score count together. In a cell of several scores it is most where all
        positives have one above the others, and least where they follow one by one below them:
        precisions then rise less and less, and are no less in sum than the line between the ends.
        """
        others = rows - m
        last = (above + m) / np.maximum(self.before + m + others, 1)
        if best is np.maximum:
            alone = (above + m) / np.maximum(self.before + m, 1)
        else:
            alone = ((above + 1) / (self.before + others + 1) + last) / 2
        return m * np.where(self.single, last, alone)


def _sums(groups: ScoreGroups, best: object) -> Numbers:
    """Return the best sum of precisions at each number of positives among the unknown rows."""
    p, n, u = groups.amounts
    rows = p + n + u
    every = _Group(p, n, groups.single, np.cumsum(p) - p, np.cumsum(rows) - rows)
    # Groups whose own positives are known add a line in the number of unknown positives above.
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
    """Return what some groups add at each count of positives above."""
    line: Numbers = flat[last] - flat[first] + (slope[last] - slope[first]) * np.arange(size)
    return line


def _chosen(sums: Numbers, group: _Group, unknown: int, rows: int, best: Numeric) -> Numbers:
    """Return the best sums after a group, of which any number of unknown rows is positive."""
    found = np.full(len(sums) + unknown, np.inf if best is np.minimum else -np.inf)
    above = group.above + np.arange(len(sums))
    for j in range(unknown + 1):
        part = slice(j, j + len(sums))
        best(found[part], sums + group.sum(group.p + j, above, rows, best), out=found[part])
    return found
