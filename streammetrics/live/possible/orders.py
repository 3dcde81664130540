"""Areas and distances of curves: which order of labels makes them least and largest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.results.values import Interval
from streammetrics.metrics.scores.precision_area import AveragePrecision
from streammetrics.metrics.scores.roc_area import ROCAUC
from streammetrics.metrics.scores.thresholds import KolmogorovSmirnov

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from streammetrics.core.metric import Metric
    from streammetrics.metrics.scores.view import Staircase

    Numbers = NDArray[np.float64]
    Ints = NDArray[np.int64]

_MOST = 10_000  # rows without a label that are looked at for average precision
_WORK = 1 << 21  # of groups of scores and counts of positives, beyond which a distance is looser
_HALVINGS = 60


class Groups(NamedTuple):
    """Rows of equal scores, from the highest down: those known, and those without a label."""

    positives: Ints
    negatives: Ints
    unknown: Ints

    @property
    def totals(self) -> tuple[int, int, int]:
        """The sums of each."""
        return int(self.positives.sum()), int(self.negatives.sum()), int(self.unknown.sum())


def groups_of(stairs: Staircase, scores: Numbers) -> Groups:
    """Return the groups of the scores seen, and of those of rows without a label."""
    empty = np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64)
    steps = [(s.low, s.p, s.n) for s in stairs.steps()]
    low, p, n = map(np.concatenate, zip(empty, *steps, strict=True))
    every, places = np.unique(np.concatenate([low, scores]), return_inverse=True)
    size = len(every)
    known, unknown = places[: len(low)], places[len(low) :]
    held = [np.zeros(size, np.int64) for _ in range(2)]
    for amounts, into in zip((p, n), held, strict=True):
        into[known] = amounts
    return Groups(*(each[::-1] for each in (*held, np.bincount(unknown, minlength=size))))


def is_plain(metric: Metric, *others: str) -> bool:
    """Whether all parameters but those of labels, memory, and `others` are the default."""
    given, default = metric.config, type(metric)().config
    free = {"pos_label", "labels", "max_bins", *others}
    return all(given[name] == default[name] for name in given if name not in free)


def between(values: list[float]) -> Interval | None:
    """Return the least and the most of values, ``None`` where all are undefined."""
    defined = [value for value in values if not math.isnan(value)]
    return Interval(min(defined), max(defined)) if defined else None


def area(groups: Groups) -> Interval | None:
    """Return the least and the most of the area under the ROC curve.

    For any number k of positives it is least, or largest, where they have the lowest, or the
    highest, scores: an exchange of two labels moves it one way.
    """
    return between([*_areas(groups), *(1.0 - area for area in _areas(groups, least=True))])


def _areas(groups: Groups, *, least: bool = False) -> Iterator[float]:
    """Yield the largest area; or of one less the area, of which negatives have the top scores."""
    p, n, u = groups
    if least:
        p, n = n, p
    positives, negatives, unknown = int(p.sum()), int(n.sum()), int(u.sum())
    # Twice the pairs in order are counted, so that a tie is one; the rows below each group.
    below = negatives - np.cumsum(n)
    inside = int((p * (2 * below + n)).sum())
    above = np.cumsum(p) - p
    rows = np.repeat(np.arange(len(u)), u)  # the group of each unknown row, from the top
    gained = np.append(0, np.cumsum(2 * below[rows] + n[rows]))
    lost = np.append(np.cumsum((2 * above[rows] + p[rows])[::-1])[::-1], 0)
    k = np.arange(unknown + 1)
    starts = np.cumsum(u) - u
    at = np.append(rows, rows[-1:]) if unknown else np.zeros(1, np.intp)
    here = k - starts[at]  # of the tie that k is in the middle of
    tied = here * (u[at] - here)
    pairs = inside + gained + lost + 2 * k * (unknown - k) - tied
    whole = (positives + k) * (negatives + unknown - k)
    good = whole > 0
    yield from (pairs[good] / (2.0 * whole[good])).tolist()


def precision(groups: Groups) -> Interval | None:
    """Return the least and the most of average precision, ``None`` of too many rows.

    Of the first groups and each number of positives among their unknown rows the best sum of
    precisions is kept, from the highest scores down: what is below does not ask for more.
    """
    p, n, u = groups
    known, _, unknown = groups.totals
    if unknown > _MOST:
        return None
    rows = np.cumsum(p + n + u)
    above = np.cumsum(p)
    fixed = np.where(u == 0, p, 0)  # groups whose own positives are known add a line
    flat, slope = np.cumsum(fixed * above / rows), np.cumsum(fixed / rows)
    sums = [np.zeros(1), np.zeros(1)]
    before = -1
    for place in np.flatnonzero(u).tolist():
        extra = _line(flat, slope, before, place, len(sums[0]))
        sums = [
            _chosen(each + extra, place, groups, above, rows, best)
            for each, best in zip(sums, (np.minimum, np.maximum), strict=True)
        ]
        before = place
    extra = _line(flat, slope, before, len(u) - 1, unknown + 1)
    total = known + np.arange(unknown + 1)
    good = total > 0
    values = [((each + extra)[good] / total[good]) for each in sums]
    if not good.any():
        return None
    slack = len(u) * 2.0**-52
    return Interval(
        float(values[0].min()) * (1 - slack), min(float(values[1].max()) * (1 + slack), 1.0)
    )


def _line(flat: Numbers, slope: Numbers, before: int, last: int, size: int) -> Numbers:
    """Return what groups after one, up to another, add at each count of positives above."""
    a, b = flat[last], slope[last]
    if before >= 0:
        a, b = a - flat[before], b - slope[before]
    line: Numbers = a + b * np.arange(size)
    return line


def _chosen(
    sums: Numbers, place: int, groups: Groups, above: Ints, rows: Ints, best: Any
) -> Numbers:
    """Return the best sums after a group, of which any number of unknown rows is positive."""
    p, u = int(groups.positives[place]), int(groups.unknown[place])
    worst = np.inf if best is np.minimum else -np.inf
    found = np.full(len(sums) + u, worst)
    precisions = (above[place] + np.arange(len(found))) / rows[place]
    for j in range(u + 1):
        part = slice(j, j + len(sums))
        best(found[part], sums + (p + j) * precisions[part], out=found[part])
    return found


def distance(groups: Groups) -> Interval | None:
    """Return the least and the most of the distance between the classes' distributions.

    At one threshold the rates are furthest apart where the unknown rows are all of one class above
    it and of the other below. The least is sought among all orders, or, where these are too many,
    is what every threshold needs by itself: certain, and mostly somewhat less.
    """
    p, n, u = map(np.cumsum, groups)
    known = groups.totals
    one, other = _furthest(p, n, u, known), _furthest(n, p, u, (known[1], known[0], known[2]))
    if one is None or other is None:
        return None
    most = float(max(one.max(), other.max(), 0.0))
    if known[2] * len(p) <= _WORK:
        return Interval(_nearest(groups), most)
    return Interval(float(max((-one).max(), (-other).max(), 0.0)), most)


def _furthest(p: Ints, n: Ints, u: Ints, known: tuple[int, int, int]) -> Numbers | None:
    """Return how far the first rate can be above the second at each threshold."""
    positives, negatives, unknown = known[0] + u, known[1] + known[2] - u, known[2]
    good = (positives > 0) & (negatives > 0)
    found = np.zeros(len(p))
    found[good] = (p + u)[good] / positives[good] - n[good] / negatives[good]
    return found if good.any() or known[0] + known[1] + unknown > 1 else None


def _nearest(groups: Groups) -> float:
    """Return the least of the largest distance, to some 1e-12."""
    p, n, u = groups
    positives, negatives, unknown = groups.totals
    k = np.arange(unknown + 1)
    k = k[(positives + k > 0) & (negatives + unknown - k > 0)]
    one, other = 1.0 / (positives + k), 1.0 / (negatives + unknown - k)
    low, high = np.zeros(len(k)), np.ones(len(k))
    sums = [np.cumsum(each).tolist() for each in (p, n, u)]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        good = _reachable(middle, k, one, other, sums, u.tolist())
        low, high = np.where(good, low, middle), np.where(good, middle, high)
    return float(low.min())


def _reachable(within: Numbers, k: Ints, one: Numbers, other: Numbers, sums: Any, u: Any) -> Any:
    """Return for which numbers of positives no threshold needs to be further apart."""
    least, most = np.zeros(len(k)), np.zeros(len(k))
    good = np.ones(len(k), bool)
    rounding = 1e-12 + 1e-15 * sum(each[-1] for each in sums)
    for p, n, a, step in zip(*sums, u, strict=True):
        even = ((n + a) * other - p * one) / (one + other)
        room = within / (one + other) + rounding
        least = np.maximum(np.maximum(least, np.ceil(even - room)), k - (sums[2][-1] - a))
        most = np.minimum(np.minimum(most + step, np.floor(even + room)), k)
        good &= least <= most
    return good


RULES: dict[type, Callable[[Groups], Interval | None]] = {
    ROCAUC: area, AveragePrecision: precision, KolmogorovSmirnov: distance,
}  # fmt: skip
