"""Influence functions of rows on areas, and the bootstrap of counts."""

from __future__ import annotations

import math
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.histogram import SortedHistogram
from streammetrics.core.confidence import without
from streammetrics.metrics.classification.view import Integers, Margins
from streammetrics.metrics.families import Family
from streammetrics.metrics.scores.base import Corners, CumulativeCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Array, Bools, Floats, Ints, Numeric
    from streammetrics.metrics.classification.view import Confusion
    from streammetrics.metrics.scores.areas import TopDecileLift
    from streammetrics.metrics.scores.base import ClassScoreMetric, EqualErrorRate


_STEP = 2.0**-17  # relative step: truncation and rounding errors leave about ten digits
_UNMOVED = 1 - 4 * _STEP  # largest share of a class whose sums are moved by such steps
_ROUNDED = 2.0**-50  # relative; values that are apart by less are equal
_CANCELLED = 2.0**-30  # of the sum of absolute terms; smaller slopes are rounding errors
_RARE = 2.0**-30  # of the total; the steps of smaller cells need all the bits of an int64
_BITS = 60  # bits of the total when sums are converted to integers
_UNIT = 2.0**-48  # of the total; smaller differences of sums are rounding errors
_ROOM = 1 << 20  # most numbers in perturbed tables read at a time
_FEW = 4096  # most cells whose derivatives are taken one by one


class _NeedsCells(Exception):  # noqa: N818 - a signal, not an error
    """A readout used individual cells."""


class _Margins(Margins):
    """A table reduced to the sums of each class, for readouts that use nothing else.

    The sums need not be consistent with any table, so that each can be changed on its own. Where
    they are `consistent` but for rounding, so are the integers.
    """

    def __init__(self, of: Confusion, sums: Sequence[Floats], *, consistent: bool) -> None:
        self._consistent = consistent
        self.labels, self.size, self.kept, self.exponent = of.labels, of.size, of.kept, of.exponent
        self.tp, self.actual, self.predicted = sums
        self.groups, self.seen = len(self.tp), np.repeat(of.seen, len(self.tp), axis=0)
        self.unscaled = of.unscaled

    def __getattr__(self, name: str) -> Numeric:
        raise _NeedsCells(name)

    def each(self) -> list[_Margins]:
        raise _NeedsCells("each")

    def within(self) -> _Margins:
        if self.size > self.kept:
            raise _NeedsCells("within")
        return self

    @property
    def total(self) -> Floats:
        total: Floats = self.actual.sum(axis=1)
        return total

    @property
    def fp(self) -> Floats:
        return self._counts(super().fp)

    @property
    def fn(self) -> Floats:
        return self._counts(super().fn)

    @property
    def tn(self) -> Floats:
        return self._counts(super().tn)

    def _counts(self, differences: Floats) -> Floats:
        """Return differences of sums, without the rounding errors that would make 0/0 a number."""
        if not self._consistent:  # derivatives need the smallest steps
            return differences
        return np.where(differences > _UNIT * self.total[:, None], differences, 0.0)

    @property
    def hits(self) -> Floats:
        hits: Floats = self.tp.sum(axis=1)
        return hits

    @property
    def misses(self) -> Floats:
        misses: Floats = self.fn.sum(axis=1)
        return misses

    def integers(self) -> list[Integers]:
        found = []
        for *sums, total in zip(self.actual, self.predicted, self.tp, self.total, strict=True):
            if not self._consistent and max(sums[0].max(), sums[1].max()) > _UNMOVED * total:
                raise _NeedsCells("sums that a step brings above the total")
            shift = _BITS - math.frexp(total)[1]
            actual, predicted, tp = (_whole(each, shift) for each in sums)
            if self._consistent:
                predicted[np.argmax(predicted)] += actual.sum() - predicted.sum()
                tp = np.minimum(tp, np.minimum(actual, predicted))
            found.append(Integers._make([actual, predicted, tp, _Unread()]))
        return found


class _Unread:
    """The cells of a table of which only the sums are known."""

    def __getattr__(self, name: str) -> Numeric:
        raise _NeedsCells(name)

    def __mul__(self, other: object) -> Numeric:
        raise _NeedsCells("*")

    __rmul__ = __array__ = __mul__
    __array_ufunc__ = None


def _whole(values: Floats, shift: int) -> Array:
    return np.array([round(math.ldexp(value, shift)) for value in values.tolist()], dtype=object)


def influence(metric: Metric, table: Confusion, read: Callable[[Any], Numeric]) -> Floats:
    """Return ∂θ/∂n for every cell of a table, of shape (cells, *shape of the value)."""
    if not len(table.rows):
        return np.empty(0)
    try:
        of_tp, of_actual, of_predicted = _of_margins(table, read)
    except _NeedsCells:
        return _of_cells(metric, table, read)
    hit = (table.rows == table.columns).reshape(-1, *[1] * (of_tp.ndim - 1))
    terms = (of_actual[table.rows], of_predicted[table.columns], hit * of_tp[table.rows])
    slopes: Floats = np.sum(terms, axis=0)
    cancelled = np.abs(slopes) <= _CANCELLED * np.sum(np.abs(terms), axis=0)
    return np.where(cancelled, 0.0, slopes)


def _of_margins(table: Confusion, read: Callable[[Any], Numeric]) -> list[Floats]:
    sums = [table.tp, table.actual, table.predicted]

    def read_with(place: int, moved: Floats) -> Numeric:
        sides = [np.repeat(side, len(moved), axis=0) for side in sums]
        sides[place] = moved
        return read(_Margins(table, sides, consistent=False))

    return [derivatives(side[0], partial(read_with, place)) for place, side in enumerate(sums)]


def read_at(metric: Any, table: Confusion, sums: Sequence[Floats]) -> Floats | None:
    """Return the value for other hits, rows and predictions of the classes, (m, size) each.

    Returns ``None`` if the metric reads more of the table than the sums of each class.
    """
    try:
        found = metric.read(_Margins(table, sums, consistent=True))
    except _NeedsCells:
        return None
    return np.asarray(found, np.float64)


def derivatives(amounts: Floats, read: Callable[[Floats], object]) -> Floats:
    """Return the derivatives with respect to `amounts` (n,) of a readout; 0 for amounts of 0.

    `read` is given perturbed amounts (m, n), and returns the value of each row.
    """
    found = []
    block = max(1, _ROOM // (2 * max(amounts.size, 1)))
    for first in range(0, amounts.size, block):
        index = np.arange(first, min(first + block, amounts.size))
        moved = np.repeat(amounts[None], 2 * index.size, axis=0)
        for row, sign in enumerate((1.0, -1.0)):
            moved[row::2][np.arange(index.size), index] = amounts[index] * (1 + sign * _STEP)
        values = np.asarray(read(moved), np.float64)
        up, down = values[::2], values[1::2]
        up = np.where(np.abs(up - down) <= _ROUNDED * np.abs(down), down, up)
        amount = amounts[index].reshape(-1, *[1] * (values.ndim - 1))
        with np.errstate(all="ignore"):
            slopes = (up - down) / (2 * _STEP * amount)
        found.append(np.where(amount == 0, 0 * up, slopes))
    return np.concatenate(found)


def _of_cells(metric: Metric, table: Confusion, read: Callable[[Any], Numeric]) -> Floats:
    if table.amount.size > _FEW:
        raise without(
            metric,
            f"its value is read from single cells, of which there are {table.amount.size:,}, and "
            f"more than {_FEW:,} take too long",
        )
    # Scale the counts up, so that steps are whole numbers, also those of rare cells.
    total = float(table.total[0])
    bits = 52 if table.amount.min() > _RARE * total else 62
    amount = np.ldexp(table.amount, bits - math.frexp(total)[1])
    slopes = []
    for index, size in enumerate(amount.tolist()):
        ends, places = [], []
        for sign in (1.0, -1.0):
            moved = np.rint(amount).astype(np.int64)
            places.append(max(round(size + sign * max(size * _STEP, 1.0)), 0))
            moved[index] = places[-1]
            ends.append(np.asarray(read(table.holding(moved))[0], np.float64))
        apart = places[0] - places[1]
        slopes.append((ends[0] - ends[1]) / apart if apart else 0 * ends[0])
    return np.array(slopes) * float(amount.sum() / total)


def standard_error(influences: Floats, squares: Floats) -> Floats:
    """Return √Σ w² (∂θ/∂W)² over cells, where `squares` has each cell's sum of squared weights."""
    with np.errstate(over="ignore", invalid="ignore"):  # very uneven weights give inf or NaN
        return np.sqrt(np.tensordot(squares, influences**2, axes=1))


class Ladder(NamedTuple):
    """All cells of one class against the rest: the amounts in each cell, and above it.

    With weights w, `p_square` and `n_square` are Σ w² of each cell; without weights, numbers of
    rows.
    """

    p: Floats
    n: Floats
    p_above: Floats
    n_above: Floats
    positives: float
    negatives: float
    p_square: Floats
    n_square: Floats

    @classmethod
    def of(
        cls,
        stairs: CumulativeCounts,
        positives: float,
        negatives: float,
        squares: SortedHistogram | None = None,
    ) -> Ladder:
        """Return the cells, for totals of rows or weights; `squares` holds the squared weights."""
        steps = [(s.p, s.n, s.tp_above, s.fp_above, s.low) for s in stairs.steps()]
        scale = positives / stairs.positives if positives else 1.0  # for large or weighted amounts
        if not math.isfinite(scale):
            raise OverflowError("weights beyond what float64 holds")
        *sides, low = _joined(steps) if steps else [np.zeros(0)] * 5
        p, n, p_above, n_above = (
            column.astype(np.float64) if scale == 1 else column * scale for column in sides
        )
        own = (p, n) if squares is None or not steps else _shared(squares, low, p, n)
        if not all(side.all(where=weight > 0) for side, weight in zip(own, (p, n), strict=True)):
            raise FloatingPointError("squares of weights that float64 does not tell from 0")
        if not np.isfinite([side.sum() for side in own]).all():
            raise OverflowError("squares of weights beyond what float64 holds")
        return cls(p, n, p_above, n_above, positives, negatives, *own)

    @property
    def weighted(self) -> bool:
        """Whether rows have weights other than one."""
        return self.p_square is not self.p

    @property
    def rows(self) -> tuple[float, float]:
        """The effective numbers of positives and negatives, in rows of weight one."""
        if not self.weighted:
            return self.positives, self.negatives
        sides = ((self.positives, self.p_square), (self.negatives, self.n_square))
        positives, negatives = (w * w / s.sum() if w else 0.0 for w, s in sides)
        return float(positives), float(negatives)

    def mirrored(self) -> Ladder:
        """Return the cells in reverse order, with the classes exchanged."""
        p_below = self.positives - self.p_above - self.p
        n_below = self.negatives - self.n_above - self.n
        sides = (self.n, self.p, n_below, p_below, self.n_square, self.p_square)
        n, p, n_below, p_below, n_square, p_square = (side[::-1] for side in sides)
        return Ladder(n, p, n_below, p_below, self.negatives, self.positives, n_square, p_square)


def _joined(parts: Sequence[tuple[Array, ...]]) -> list[Array]:
    """Concatenate each column of all parts."""
    return (
        list(parts[0]) if len(parts) == 1 else list(map(np.concatenate, zip(*parts, strict=True)))
    )


def _shared(squares: SortedHistogram, low: Floats, p: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Split the squares of wider cells among the cells they contain, in proportion to weight."""
    edges, sums = [], []
    unit = 2.0**squares.unit
    for block in squares.cells():
        edges.append(block.low)
        sums.append(block.counts * unit)
    at = np.searchsorted(np.concatenate(edges), low, side="right") - 1
    negative, positive = np.concatenate(sums, axis=1)
    shared = []
    for side, square in ((p, positive), (n, negative)):
        held = np.bincount(at, side, square.size)
        each = np.divide(square, held, out=np.zeros_like(held), where=held > 0)
        shared.append(side * each[at])
    return shared[0], shared[1]


class Influences(NamedTuple):
    """The influence on an area of one more row in each cell."""

    positive: Floats
    negative: Floats

    def variances(self, cells: Ladder) -> tuple[float, float]:
        """Return what the positives and the negatives add to the variance."""
        positive, negative = self.positive**2, self.negative**2
        return float((cells.p_square * positive).sum()), float((cells.n_square * negative).sum())

    def error(self, cells: Ladder) -> float:
        """Return the standard error."""
        return math.sqrt(sum(self.variances(cells)))


def structural_components(cells: Ladder) -> tuple[Floats, Floats]:
    """Return DeLong's components (1988): share of the other class that a row is ranked right of."""
    beats = (cells.negatives - cells.n_above - cells.n / 2) / cells.negatives  # ties count half
    return beats, (cells.p_above + cells.p / 2) / cells.positives


def roc_influences(cells: Ladder, area: float) -> Influences:
    """Return the influences on the area under the ROC curve."""
    positives, negatives = cells.positives, cells.negatives
    beats, beaten = structural_components(cells)
    # The variance of a mean of m components uses m - 1, for rows of weight one.
    return Influences(
        (beats - area) / np.sqrt(positives**2 - cells.p_square.sum()),
        (beaten - area) / np.sqrt(negatives**2 - cells.n_square.sum()),
    )


def exponential_variance(area: float, positives: float, negatives: float) -> float:
    """Return the variance of the area under the ROC curve for exponential scores in both classes.

    Near 0 and 1 it exceeds that of most other distributions (Hanley and McNeil, Radiology 143,
    1982; here with equal class sizes, Newcombe, Statistics in Medicine 25, 2006, method 5).
    """
    pairs = (positives + negatives) / 2 - 1
    alike = (1 - area) / (2 - area) + area / (1 + area)
    return area * (1 - area) * (1 + pairs * alike) / (positives * negatives)


class CurveInfluence(NamedTuple):
    """The influence of a row of each cell on an area, times the number of rows of its class."""

    low: Floats  # lower edges of the cells, ascending
    p: Floats
    n: Floats
    of_positive: Floats
    of_negative: Floats

    def at(self, positive: Bools, scores: Floats) -> Floats:
        """Return the influence of rows, from their class and score."""
        order = np.argsort(scores)  # ascending look-ups stay in the cache
        cell = np.empty(scores.size, np.intp)
        cell[order] = np.searchsorted(self.low, scores[order], side="right") - 1
        return np.where(positive, self.of_positive[cell], self.of_negative[cell])

    def of_steps(self, stairs: CumulativeCounts, share: float) -> float:
        """Return the sum over some rows, each divided by the share of its class in all rows."""
        total = 0.0
        for step in stairs.steps():
            cell = np.searchsorted(self.low, step.low, side="right") - 1
            total += float((step.p * self.of_positive[cell]).sum()) / share
            total += float((step.n * self.of_negative[cell]).sum()) / (1 - share)
        return total


def curve_influence(metric: Metric, stairs: CumulativeCounts) -> CurveInfluence:
    """Return the influence of a row of each cell on the metric's area, or average precision."""
    return (_roc if metric.family == Family.ROC_AREA else _precision)(stairs)


class ClassInfluence(NamedTuple):
    """The influence of rows on the part of a class in an average over classes.

    `weight` is that of the class in the average, `share` that of its rows in all rows, and `area`
    what another row of the class adds through the weights of the classes.
    """

    place: int
    weight: float
    share: float
    area: float
    adds: CurveInfluence


def class_influences(
    metric: ClassScoreMetric[None], classes: Sequence[CumulativeCounts]
) -> Iterator[ClassInfluence]:
    """Yield the influences of all classes that have an area."""
    weighted = len(classes) > 1 and metric.average == "weighted"
    shares = np.array([stairs.share for stairs in classes])
    seen = (shares > 0) & (shares < 1)
    each = shares if weighted else seen / max(int(seen.sum()), 1)
    for k in np.flatnonzero(seen).tolist():
        area = float(metric.read(classes[k])) if weighted else 0.0
        adds = curve_influence(metric, classes[k])
        yield ClassInfluence(k, float(each[k]), float(shares[k]), area, adds)


def _ladder(stairs: CumulativeCounts) -> tuple[Floats, Ladder]:
    """Return the lower edges of all cells, and the cells."""
    low = np.concatenate([step.low for step in stairs.steps()] or [np.zeros(0)])
    cells = Ladder.of(stairs, float(stairs.positives), float(stairs.negatives))
    return low.astype(np.float64, copy=False), cells


def _roc(stairs: CumulativeCounts) -> CurveInfluence:
    """Return the influence of a row of each cell on the area under the ROC curve."""
    low, cells = _ladder(stairs)
    with np.errstate(invalid="ignore", divide="ignore"):
        beats, beaten = structural_components(cells)
        area = float(np.dot(cells.p, beats)) / cells.positives
    return CurveInfluence(low, cells.p, cells.n, beats - area, beaten - area)


def _precision(stairs: CumulativeCounts) -> CurveInfluence:
    """Return the influence of a row of each cell on the average precision."""
    low, cells = _ladder(stairs)
    with np.errstate(invalid="ignore", divide="ignore"):
        tp, fp = cells.p_above + cells.p, cells.n_above + cells.n
        area = float(np.dot(cells.p, tp / (tp + fp))) / cells.positives
        (positive, negative), _ = precision_influences(cells, area, trapezoid=False)
    return CurveInfluence(
        low, cells.p, cells.n, positive * cells.positives, negative * cells.negatives
    )


def partial_roc_influences(cells: Ladder, rate: float) -> Influences:
    """Return the influences on the area up to a false positive rate, with an estimated threshold.

    A positive contributes the share of negatives above the threshold that it beats. A negative
    above the threshold costs the share of positives that beat it. It also moves the threshold,
    which changes the area by the true positive rate there.
    """
    positives, negatives = cells.positives, cells.negatives
    limit = rate * negatives
    inside = np.clip(limit - cells.n_above, 0.0, cells.n)  # negatives above the threshold
    share = np.divide(inside, cells.n, out=np.zeros_like(inside), where=cells.n > 0)
    cut = int(np.argmax(share > 0))  # the lowest cell with negatives above the threshold
    at_cut = (cells.p_above[cut] + share[cut] * cells.p[cut]) / positives
    # Of the negatives in the cell that the threshold splits, assume some above and the rest tied.
    before = np.minimum(cells.n_above, limit)
    beats = (limit - before - inside + share * inside / 2) / negatives
    beaten = (cells.p_above + share * cells.p / 2) / positives
    area = float(cells.p @ beats) / positives
    moved = share * (beaten - at_cut)
    return Influences(
        (beats - area) / positives, (moved - float(cells.n @ moved) / negatives) / negatives
    )


def precision_influences(
    cells: Ladder, area: float, *, trapezoid: bool
) -> tuple[Influences, float]:
    """Return the influences on the area under the precision-recall curve, and the area's bias.

    H is the precision A = T / (T + F) at the cell, where T and F count the positives and negatives
    in and above it. With `trapezoid`, H is the mean of A and that of the next cell above; above all
    cells the precision is 1. A row changes A in its cell and in all cells below: by F / (T + F)² if
    it is positive, by -T / (T + F)² if not. Each A counts for the positives p that use it.

    The area of a sample is too large on average, because each positive is included in the precision
    at its own score. This adds w F / (T + F)² in its cell, where w is its weight.
    """
    tp, fp = cells.p_above + cells.p, cells.n_above + cells.n
    called = tp + fp
    height, counts = tp / called, _stood_for(cells.p, trapezoid=trapezoid)
    if trapezoid:
        height = (height + np.append(height[1:], 1.0)) / 2
    # In place: allocating memory for each step would take as long as the steps themselves.
    called *= called
    each = np.divide(counts, called, out=called)
    fp *= each
    tp *= each
    own = fp  # bias from positives of weight one
    if cells.weighted:
        squares = _stood_for(cells.p_square, trapezoid=trapezoid)
        own = fp * np.divide(squares, counts, out=np.zeros_like(fp), where=counts > 0)
    excess = float(own.sum()) / cells.positives / (2 if trapezoid else 1)  # trapezoids: half
    up, down = np.cumsum(fp, out=fp), np.cumsum(tp, out=tp)
    up -= area
    up += height
    up /= cells.positives
    down /= -cells.positives
    return Influences(up, down), excess


def _stood_for(p: Floats, *, trapezoid: bool) -> Floats:
    """Return the number of positives that use the precision at each cell."""
    return (p + np.append(0.0, p[:-1])) / 2 if trapezoid else p


def distance_influences(cells: Ladder) -> Influences:
    """Return the influences on the largest distance between two distributions, at its location."""
    cut, above, below = _furthest(cells)
    called = (np.arange(cells.p.size) >= cut).astype(np.float64)
    return Influences((called - above) / cells.positives, (called - below) / cells.negatives)


def distance_variances(cells: Ladder) -> tuple[float, float]:
    """Return the binomial variances of both distributions where they are furthest apart.

    They are those of the effective numbers of rows and of two more rows on each side (Agresti and
    Coull, The American Statistician 52, 1998).
    """
    _, *shares = _furthest(cells)
    p, n = ((x * rows + 2) / (rows + 4) for x, rows in zip(shares, cells.rows, strict=True))
    return p * (1 - p) / cells.rows[0], n * (1 - n) / cells.rows[1]


def _furthest(cells: Ladder) -> tuple[int, float, float]:
    """Return the cell where two distributions are furthest apart, and their shares from it up."""
    above = (cells.p_above + cells.p) / cells.positives
    below = (cells.n_above + cells.n) / cells.negatives
    cut = int(np.argmax(np.abs(above - below)))
    return cut, float(above[cut]), float(below[cut])


REPLICATES = 200
GROUPS = 64  # groups of the jackknife
_GROUPS = 2048  # groups of neighbouring cells for redraws; precision within a group varies little
_MOST = 2.0**62  # most rows drawn; more would not change the share of each cell


def drawn(counts: Ints, replicates: int = REPLICATES) -> Ints:
    """Return multinomial redraws of the same number of rows, (replicates, cells)."""
    generator = seeded(counts)
    n = int(counts.sum())
    if n < 1:
        return np.zeros((replicates, counts.size), np.int64)
    return generator.multinomial(n, counts / n, size=replicates)


def seeded(counts: Ints) -> np.random.Generator:
    """Return a generator whose seed depends on the counts only."""
    seed = int.from_bytes(blake2b(np.ascontiguousarray(counts).tobytes(), digest_size=16).digest())
    return np.random.Generator(np.random.PCG64(seed))


class _Redraw(NamedTuple):
    """The totals of both classes in a redraw."""

    positives: float
    negatives: float


def best_errors(metric: Any, cells: Ladder) -> float:
    """Return the bootstrap standard error of the best value over thresholds."""
    values = []
    for p, n in _redrawn(cells):
        tp, fp = np.cumsum(p[::-1]), np.cumsum(n[::-1])
        if not metric._undefined(_Redraw(tp[-1], fp[-1])):
            values.append(_best(metric, tp, fp))
    return float(np.std(values)) if values else 0.0


def point_errors(metric: EqualErrorRate | TopDecileLift, cells: Ladder) -> float:
    """Return the bootstrap standard error of a value read from a point of a curve."""
    values = []
    for p, n in _redrawn(cells):
        tp, fp = (np.append(np.cumsum(side[::-1])[::-1], 0) for side in (p, n))
        if 0 < tp[0] < np.inf and 0 < fp[0] < np.inf:
            places, tied = np.arange(p.size, dtype=np.float64), np.ones(p.size, np.bool_)
            known = Corners(places, places, tied, tp, fp, tp[0] - tp, fp[0] - fp)
            values.append(metric._found(known)[1])
    return float(np.std(values)) if values else 0.0


def top_rise(cells: Ladder) -> float:
    """Return the bootstrap estimate of the bias of the largest distance, at least 0."""
    values = []
    for p, n in ((cells.p, cells.n), *_redrawn(cells)):
        above, below = np.cumsum(_grouped(p, cells)), np.cumsum(_grouped(n, cells))
        if above[-1] and below[-1]:
            values.append(float(np.abs(above / above[-1] - below / below[-1]).max()))
    return max(float(np.mean(values[1:])) - values[0], 0.0) if len(values) > 1 else 0.0


def _redrawn(cells: Ladder) -> Iterator[tuple[Floats, Floats]]:
    """Yield redraws of the positives and the negatives in ascending cells.

    With weights, each drawn row has the weight Σ w² / Σ w of its cell, which preserves the
    variance.
    """
    every = (cells.p, cells.n), (cells.p_square, cells.n_square)
    weight, square = (np.concatenate([_grouped(side, cells) for side in pair]) for pair in every)
    unit = np.divide(square, weight, out=np.ones_like(weight), where=weight > 0)
    weighted = bool((unit != 1).any())
    rows = weight / unit
    rows *= min(1.0, _MOST / max(rows.sum(), 1.0))
    for row in drawn(np.rint(rows).astype(np.int64)):
        positives, negatives = np.split(row * unit if weighted else row, 2)
        yield positives, negatives


def _best(metric: Any, tp: Array, fp: Array) -> float:
    side = _Redraw(tp[-1], fp[-1])
    none = np.zeros(1)
    reached = [metric._reached(side, t, f, fp[-1] - f, 0.0) for t, f in ((none, none), (tp, fp))]
    return float(max(values.max() / scale for values, scale in reached))


def jackknife_error(
    metric: ClassScoreMetric[None], stairs: CumulativeCounts, cells: Ladder
) -> float:
    """Return the jackknife standard error of any value of a class.

    Rows are assigned to groups at random, with a seed that depends on the counts only. The value is
    computed without each group.
    """
    low = np.concatenate([step.low for step in stairs.steps()])
    counts = np.rint(np.concatenate([cells.n, cells.p])).astype(np.int64)
    codes = np.repeat(np.array([0, 1], np.uint8), low.size)
    generator = seeded(counts)
    left, rows = counts.copy(), int(counts.sum())
    groups, values = min(GROUPS, rows), []
    for size in np.diff(np.arange(groups + 1) * rows // groups).tolist():
        group = generator.multivariate_hypergeometric(left, size, method="marginals")
        left -= group
        kept = counts - group
        some = kept > 0
        histogram = SortedHistogram(max_cells=2 * counts.size + 2, classes=2)
        histogram.add(np.tile(low, 2)[some], codes[some], kept[some].astype(np.float64))
        values.append(metric.read(CumulativeCounts(histogram, True, stairs.logits)))
    known = np.array(values)
    return math.sqrt((groups - 1) * float(np.var(known))) if np.isfinite(known).all() else math.nan


def _grouped(side: Floats, cells: Ladder) -> Floats:
    """Return sums over groups of neighbouring cells with about the same weight."""
    if side.size <= _GROUPS:
        return side
    passed = np.cumsum(cells.p + cells.n)
    row = (cells.p_square.sum() + cells.n_square.sum()) / passed[-1]  # the weight of a typical row
    at = np.clip((passed - row / 2) * (_GROUPS / passed[-1]), 0, _GROUPS - 1).astype(np.intp)
    return np.bincount(at, side, _GROUPS).astype(np.float64)
