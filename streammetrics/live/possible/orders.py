"""Extremes of areas under curves and of the KS distance over missing labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.results.values import Interval
from streammetrics.live.possible.classes import two_classes
from streammetrics.live.possible.remembered import ScoreCells, groups_of, with_unlabelled
from streammetrics.metrics.scores.areas import ROCAUC, AveragePrecision
from streammetrics.metrics.scores.thresholds import KolmogorovSmirnov

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Array, Bools, Floats, Ints, Numeric
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


_WORK = 1 << 20  # score groups times unlabelled rows, up to which the minimum distance is exact
_HALVINGS = 60
_EXACT = 1 << 26  # rows up to which numbers of pairs are exact in float64
_COUNTABLE = 1 << 30  # rows up to which they are counted in int64, and in float64 beyond
_ROUNDED, _ROUNDING = 2.0**-51, 2.0**-30  # bounds on the errors of an area of these, and of those


def asks(metric: Metric, titles: Mapping[str, str]) -> ScoreCells | None:
    """Return the scores to remember, or None if there is no rule for the metric."""
    if type(metric) not in _RULES or not is_plain(metric):
        return None
    return scores_of(metric, titles)


def scores_of(metric: Metric, titles: Mapping[str, str]) -> ScoreCells:
    """Return the scores to remember, in as many cells as the metric uses."""
    config = metric.config
    return ScoreCells(
        of=titles.get("y_score", "y_score"),
        nan_policy=config["nan_policy"],
        max_bins=config["max_bins"],
    )


def is_plain(metric: Metric, *others: str) -> bool:
    """Whether all parameters except those of labels, memory and `others` have their defaults."""
    given, default = metric.config, type(metric)().config
    free = {"pos_label", "labels", "max_bins", "nan_policy", *others}
    return all(given[name] == default[name] for name in given if name not in free)


def interval(known: Metric, held: ScoreCells, _: object) -> Interval | None:
    """Return the interval of a metric of the score order."""
    both = None if two_classes(known) is None else with_unlabelled(known, held)
    return None if both is None else _RULES[type(known)](groups_of(*both))


def area(groups: ScoreGroups) -> Interval | None:
    """Return the minimum and maximum of the area under the ROC curve.

    For any number k of positives among the unlabelled rows, the area is smallest if these have the
    k lowest scores, and largest if they have the k highest: moving a positive label to a row of
    higher score never lowers the area.
    """
    most = _extreme_area(groups, largest=True)
    least = _extreme_area(groups.exchanged, largest=False)
    if math.isnan(most) or math.isnan(least):
        return None
    rows = sum(groups.totals)
    error = 0.0 if rows < _EXACT else _ROUNDED if rows < _COUNTABLE else _ROUNDING
    return Interval(max(least - error, 0.0), min(most + error, 1.0))


def _extreme_area(groups: ScoreGroups, *, largest: bool) -> float:
    """Return the largest area, at which the positives have the highest scores, or 1 less it.

    The latter is a ratio of its own, as a difference from 1 would be rounded twice. Within a group,
    the ordered pairs and all pairs are quadratic in the number of positives. Their ratio is largest
    at an end or next to a zero of its derivative. Ordered pairs count twice, so that a tie counts
    one; in a cell of several scores, each pair may be ordered.
    """
    p: Array
    n: Array
    u: Array
    p, n, u = groups.amounts
    positives, negatives, unknown = groups.totals
    if positives + negatives + unknown >= _COUNTABLE:
        p, n, u = (each.astype(np.float64) for each in groups.amounts)
    tie = np.where(groups.single, 1, 2).astype(p.dtype)
    gained = 2 * (negatives - np.cumsum(n)) + tie * n
    lost = 2 * (np.cumsum(p) - p) + tie * p
    inside = (p * gained).sum()
    before = np.cumsum(u) - u  # unlabelled rows in higher groups, all positive
    base = inside + np.cumsum(u * gained) - u * gained + np.cumsum((u * lost)[::-1])[::-1]
    free = unknown - before
    pairs = (base + 2 * before * free, gained - lost + 2 * (free - before) - (2 - tie) * u, -tie)
    one, rest = positives + before, negatives + free
    every: Sequence[Array] = (2 * one * rest, 2 * (rest - one), np.full_like(tie, -2))
    if not largest:
        pairs = tuple(all_ - some for all_, some in zip(every, pairs, strict=True))
    found = np.concatenate([_ratio(pairs, every, j) for j in _turns(pairs, every, u)])
    best = np.fmax.reduce(found) if largest else np.fmin.reduce(found)
    return float(best)


def _turns(above: Sequence[Array], below: Sequence[Array], most: Array) -> Iterator[Array]:
    """Yield integers from 0 to `most` next to which a ratio of quadratics can be largest."""
    (a, b, c), (d, e, f) = ([x.astype(np.float64) for x in each] for each in (above, below))
    two, one, none = c * e - b * f, 2 * (c * d - a * f), b * d - a * e
    with np.errstate(all="ignore"):
        half = np.sqrt(one * one - 4 * two * none)
        roots = [(-one + half) / (2 * two), (-one - half) / (2 * two), -none / one]
    for root in roots:
        near = np.clip(np.nan_to_num(np.floor(root), posinf=0.0, neginf=0.0), 0, most)
        for step in (-1, 0, 1, 2):
            yield np.clip(near.astype(most.dtype) + step, 0, most)
    yield np.zeros_like(most)
    yield most


def _ratio(above: Sequence[Array], below: Sequence[Array], j: Array) -> Numbers:
    """Return the ratio of two quadratics at j, nan where there are no pairs."""
    (a, b, c), (d, e, f) = above, below
    whole = d + j * (e + f * j)
    found = np.full(len(j), math.nan)
    np.divide(a + j * (b + c * j), whole, out=found, where=whole > 0)
    return found


def distance(groups: ScoreGroups) -> Interval | None:
    """Return the minimum and maximum of the distance between the classes' distributions.

    At one threshold, the rates differ most if the unlabelled rows above it are all of one class and
    those below all of the other. The minimum is searched over all label counts. If that is too much
    work, a lower bound from each threshold separately is used, which is certain but mostly somewhat
    smaller.
    """
    known = groups.totals
    one, other = _furthest(groups), _furthest(groups.exchanged)
    if one is None or other is None:
        return None
    most = min(max(one[1], other[1], 0.0), 1.0)
    if known[2] * len(groups.single) <= _WORK:
        return Interval(_nearest(groups), most)
    return Interval(max(one[0], other[0], 0.0), most)


def _furthest(groups: ScoreGroups) -> tuple[float, float] | None:
    """Return how far the second rate must exceed the first, and how far the first can exceed it.

    A threshold within a cell of several scores may pass any of its rows: here, all that raise the
    first rate and none that raise the second.
    """
    known, (p, n, u) = groups.totals, map(np.cumsum, groups.amounts)
    if sum(known) < 2:
        return None
    found = _apart(known, p, u, n, u)
    inside = np.flatnonzero(~groups.single)
    start = [(sums - own)[inside] for sums, own in zip((n, u), groups.amounts[1:], strict=True)]
    within = _apart(known, p[inside], u[inside], *start)
    return float((-found).max(initial=0.0)), float(max(found.max(), within.max(initial=0.0)))


def _apart(known: tuple[int, int, int], p: Ints, u: Ints, n: Ints, v: Ints) -> Numbers:
    """Return the rate of p + u minus that of n, if v of the unlabelled rows are not negative."""
    positives, negatives = known[0] + u, known[1] + known[2] - v
    good = (positives > 0) & (negatives > 0)
    found = np.zeros(len(p))
    one, other = positives[good], negatives[good]
    found[good] = ((p + u)[good] * other - n[good] * one) / (one * other)
    return found


def _nearest(groups: ScoreGroups) -> float:
    """Return the minimum of the largest distance, to about 1e-12.

    Thresholds within cells of several scores are left out; they could only increase the distance.
    """
    positives, negatives, unknown = groups.totals
    k = np.arange(unknown + 1)
    k = k[(positives + k > 0) & (negatives + unknown - k > 0)]
    low, high = np.zeros(len(k)), np.ones(len(k))
    sums = [np.cumsum(each) for each in groups.amounts]
    for _ in range(_HALVINGS):
        least = low <= high.min()  # the others cannot reach the minimum
        k, low, high = k[least], low[least], high[least]
        middle = (low + high) / 2
        good = _reachable(middle, k, 1.0 / (positives + k), 1.0 / (negatives + unknown - k), sums)
        low, high = np.where(good, low, middle), np.where(good, middle, high)
    return float(low.min())


def _reachable(
    within: Numbers, k: Ints, one: Numbers, other: Numbers, sums: Sequence[Array]
) -> Bools:
    """Return a mask of the numbers of positives for which a distance is feasible at all thresholds.

    At each threshold, both rates bound the number of positives among the unlabelled rows above it.
    The number must not decrease, and grows by at most the unlabelled rows between two thresholds.
    """
    p, n, a = sums
    k, one, other = k[:, None], one[:, None], other[:, None]
    even = ((n + a) * other - p * one) / (one + other)
    room = within[:, None] / (one + other) + 1e-12 + 1e-15 * sum(each[-1] for each in sums)
    least = np.maximum(np.maximum(np.ceil(even - room), k - (a[-1] - a)), 0)
    most = np.minimum(np.floor(even + room), k) - a
    np.maximum.accumulate(least, axis=1, out=least)
    np.minimum.accumulate(most, axis=1, out=most)
    reachable: Bools = np.all(least <= a + np.minimum(most, 0), axis=1)
    return reachable


_RULES: dict[type, Callable[[ScoreGroups], Interval | None]] = {
    ROCAUC: area, AveragePrecision: precision, KolmogorovSmirnov: distance,
}  # fmt: skip
