"""A score histogram as curves read it: cumulative counts by descending score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.columns.logits import log_odds, sigmoid
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.readings import made_once
from streammetrics.metrics.averages import lacking_classes
from streammetrics.statistics.sums.precise import product_and_error
from streammetrics.statistics.sums.values import cells_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from streammetrics.core.arithmetic.histogram import DyadicHistogram
    from streammetrics.core.types import Array, Bools, Floats, Places
    from streammetrics.statistics.scores.histogram import ScoreHistogram


_COUNTABLE = 1 << 61  # twice a product of two sums of counts up to this fits int64
_ROUNDED = 2.0**-48  # more than a difference of two rounded shares is off


@dataclass(eq=False)  # never changed, but a frozen one takes three times as long to make
class Steps:
    """Neighbouring cells in ascending order, and the positives and negatives at or above each.

    `p` and `n` (m,) are the positives and negatives in a cell; `tp` and `fp` those with a score
    of at least its lower edge, which that edge as a threshold predicts positive; `tp_above` and
    `fp_above` those of higher cells only. In a `single` cell all rows have the score `low`.
    `positives` and `negatives` are the sums from each cell up (m + 1,), or the first of them.
    """

    low: Floats
    high: Floats
    single: Bools
    p: Array
    n: Array
    positives: Array | int
    negatives: Array | int

    @cached_property
    def _tp(self) -> Array:
        return _counted_down(self.positives, self.p)

    @cached_property
    def _fp(self) -> Array:
        return _counted_down(self.negatives, self.n)

    @property
    def tp(self) -> Array:
        """Positives in the cell and above."""
        return self._tp[:-1]

    @property
    def fp(self) -> Array:
        """Negatives in the cell and above."""
        return self._fp[:-1]

    @property
    def tp_above(self) -> Array:
        """Positives above the cell."""
        return self._tp[1:]

    @property
    def fp_above(self) -> Array:
        """Negatives above the cell."""
        return self._fp[1:]


def _counted_down(sums: Array | int, counts: Array) -> Array:
    if not isinstance(sums, int):
        return sums
    down = np.empty(counts.size + 1, np.int64)
    down[0] = sums
    counts.cumsum(out=down[1:])
    np.subtract(sums, down[1:], out=down[1:])
    return down


class Staircase:
    """One class against the rest, or against another class: the steps of its ROC and PR curves.

    Amounts are integers (int64 arrays, whose products do not overflow) or float64. In float64 they
    are weights scaled by a power of two, and their sums are correct to about one unit in the last
    place. `least` is the smallest weight that a row can have, 0 where that is unknown; `one` is the
    scaled weight of 1; `logits` says whether scores are kept as logits.
    """

    def __init__(self, histogram: DyadicHistogram, whole: bool, logits: bool) -> None:
        self._histogram, self.logits = histogram, logits
        self.least, self.one = 1.0 if whole else 0.0, 1.0
        self._weighed: Steps | None = None
        self._unit = 0  # the power of two in which amounts are given
        negatives, positives = histogram.totals()
        blocks = histogram.cells()
        first = next(blocks, None)
        integers = first is None or first.counts.dtype == np.int64
        if not integers or positives * negatives > _COUNTABLE:
            self._weighed, self._unit = _weighed(histogram, negatives > 0, positives > 0)
            total, positives = positives, float(self._weighed.tp[0])
            negatives = float(self._weighed.fp[0])
            self.least, self.one = 0.0, positives / total if total else 1.0
        self.positives, self.negatives = positives, negatives
        # Reading the cells again takes longer than keeping them, where there is only one block.
        self._only = self._weighed
        if self._weighed is None and first is not None and next(blocks, None) is None:
            low, high, single, (n, p) = first
            self._only = Steps(low, high, single, p, n, int(positives), int(negatives))

    @property
    def exact(self) -> bool:
        """Whether no cell holds several distinct scores."""
        return self._histogram.exact

    @property
    def share(self) -> float:
        """The share of all rows that are positive, 0 without rows."""
        return self.positives / ((self.positives + self.negatives) or 1)

    @property
    def rows(self) -> float:
        """The weight of all rows, not scaled."""
        return float(sum(map(float, self._histogram.totals())))

    @property
    def counted(self) -> bool:
        """Whether the amounts are integers, so that sums and comparisons of them are exact."""
        return self._weighed is None

    @property
    def unit(self) -> int:
        """The power of two in which amounts are given."""
        return self._unit

    def unscaled(self, amount: object) -> Floats:
        """Return amounts as floats that are not scaled, infinite where they are too large."""
        with np.errstate(over="ignore"):
            floats: Floats = np.ldexp(np.asarray(amount, np.float64), self._unit)
        return floats

    def largest_gap(self) -> float:
        """Return max |TP / P - FP / N| over the edges of cells, rounded once; both have rows."""
        if self._weighed is None:
            p, n = int(self.positives), int(self.negatives)
            return max(int(np.abs(s.tp * n - s.fp * p).max()) for s in self.steps()) / (p * n)
        steps = self._weighed
        gaps = np.abs(steps.tp / self.positives - steps.fp / self.negatives)
        # What may be the largest but for rounding is compared in integers.
        near = np.flatnonzero(gaps >= gaps.max() - _ROUNDED)
        (n, p), *sums = self._histogram.sums_above(near).tolist()
        return float(max(abs(tp * n - fp * p) for fp, tp in sums) / (p * n))

    def gaps(self) -> Floats:
        """Return TP / P - FP / N at the lower edges of all cells (m,); both have rows.

        They are within 1e-15 of their size, or 1e-30, of the exact ones.
        """
        if self._weighed is None:
            every, others = int(self.positives), int(self.negatives)
            gaps = [(s.tp * others - s.fp * every) / (every * others) for s in self.steps()]
            return np.concatenate(gaps)
        (fp, fp_tail, n, n_tail), (tp, tp_tail, p, p_tail) = self._histogram.shares_above()
        (one, lost), (other, more) = product_and_error(tp, n), product_and_error(fp, p)
        tails = (tp * n_tail + tp_tail * n) - (fp * p_tail + fp_tail * p)
        whole, rest = product_and_error(np.asarray(p), n)
        # All positives and no negatives give exactly 1.
        scale = whole + (rest + (p * n_tail + p_tail * n))
        return ((one - other) + ((lost - more) + tails)) / scale

    def area(self) -> tuple[int, int]:
        """Return `DyadicHistogram.area`, where the amounts are counted."""
        area = self._histogram.area()
        assert area is not None
        return area

    def sums_above(self, places: Places) -> list[list[int]]:
        """Return exactly what negatives and positives weigh in all, and in each cell and above."""
        sums: list[list[int]] = self._histogram.sums_above(places).tolist()
        return sums

    def cuts(self, thresholds: Floats) -> Floats:
        """Return thresholds as logits where scores are kept as logits."""
        if not self.logits:
            return thresholds
        return np.array([log_odds(x) if 0 <= x <= 1 else x * math.inf for x in thresholds.tolist()])

    def mirrored(self) -> Staircase:
        """Return the same rows with the classes exchanged and the scores negated."""
        return _Mirror(self)

    def probabilities(self, scores: Floats) -> Floats:
        """Return scores as probabilities, where they are kept as logits."""
        return sigmoid(scores) if self.logits else scores

    def quantiles(self, levels: Sequence[Fraction]) -> tuple[Floats, Floats]:
        """Return the edges of the cells in which each share of all rows is reached."""
        edges = cells_at(self._histogram, levels)
        return np.array([low for low, _ in edges]), np.array([high for _, high in edges])

    def steps(self) -> Iterator[Steps]:
        """Yield the cells in ascending order, in blocks."""
        if self._only is not None:
            yield self._only
            return
        tp, fp = int(self.positives), int(self.negatives)
        for low, high, single, (n, p) in self._histogram.cells():
            yield Steps(low, high, single, p, n, tp, fp)
            tp, fp = tp - int(p.sum()), fp - int(n.sum())


class _Mirror(Staircase):
    """A staircase with the classes exchanged, read from its other end."""

    def __init__(self, of: Staircase) -> None:
        self.__dict__.update(of.__dict__)
        self._of, self.positives, self.negatives = of, of.negatives, of.positives

    def steps(self) -> Iterator[Steps]:
        """Yield the blocks of cells, each in reverse order."""
        for steps in self._of.steps():
            low, high, single = -steps.high[::-1], -steps.low[::-1], steps.single[::-1]
            below_p, below_n = self.positives - steps._fp, self.negatives - steps._tp
            p, n = steps.n[::-1], steps.p[::-1]
            yield Steps(low, high, single, p, n, below_p[::-1], below_n[::-1])


def _weighed(histogram: DyadicHistogram, *has_rows: bool) -> tuple[Steps, int]:
    """Return all cells with scaled float64 amounts, and the power of two that undoes the scaling.

    The heaviest cell is scaled to about 2**300, so that products of three sums are far from both
    ends of float64 even where one class weighs 2**-1200 of the other; classes farther apart are
    refused. `has_rows` says which classes have rows.
    """
    low, high, single, counts = map(np.concatenate, zip(*_transposed(histogram), strict=True))
    exponent = 300 - int(np.frexp(counts.max())[1])
    scaled = np.ldexp(counts, exponent)
    if ((scaled.sum(axis=0) < 2.0**-900) & has_rows).any():
        raise StreamMetricsError(
            "the weights of the two classes lie more than 2**1200 apart; bring them closer together"
        )
    negatives, positives = scaled.T
    p, n = np.ascontiguousarray(positives), np.ascontiguousarray(negatives)
    steps = Steps(low, high, single, p, n, _sums_above(p), _sums_above(n))
    return steps, histogram.unit - exponent


def _transposed(histogram: DyadicHistogram) -> Iterator[tuple[Array, ...]]:
    for low, high, single, counts in histogram.cells():
        yield low, high, single, counts.astype(np.float64).T


def _sums_above(mass: Floats) -> Floats:
    """Return the sum of each entry and all later ones (m + 1,), the last of them 0.

    Each entry is split at a unit of which the total is less than 2**53 times: multiples of the unit
    add up without error, and the rest is so small that the error of its sum does not matter.
    """
    unit = np.ldexp(1.0, np.frexp(mass.sum())[1] - 52)
    coarse = np.floor(mass / unit) * unit
    fine = mass - coarse
    sums = np.zeros(mass.size + 1)
    sums[:-1] = (np.cumsum(coarse[::-1]) + np.cumsum(fine[::-1]))[::-1]
    return sums


def staircases(scores: ScoreHistogram) -> tuple[Staircase, ...]:
    """Return the staircase of each class, which the metrics of a set share."""
    return made_once(_staircases, scores)


def _staircases(scores: ScoreHistogram) -> tuple[Staircase, ...]:
    classes = scores.classes()
    logits = scores.keeps_logits
    return tuple(Staircase(histogram, scores.whole, logits) for histogram in classes)


class Corners(NamedTuple):
    """All cells (m,) in ascending order, and the confusion table at their edges.

    `tp` and `fp` (m + 1,) are those with a score of at least the lower edge of each cell, and 0 at
    the end; `fn` and `tn` are those below, which in float64 keep digits that differences lose. A
    threshold within a cell has counts between those of its edge and of the next one.
    """

    low: Floats
    high: Floats
    single: Bools
    tp: Array
    fp: Array
    fn: Array
    tn: Array


def corners(stairs: Staircase) -> Corners:
    """Return all cells of a staircase at once."""
    parts = [(s.low, s.high, s.single, s.tp, s.fp, s.p, s.n) for s in stairs.steps()]
    empty = np.zeros(0), np.zeros(0), np.zeros(0, np.bool_), *(np.zeros(0, int),) * 4
    low, high, single, tp, fp, p, n = map(np.concatenate, zip(*(parts or [empty]), strict=True))
    tp, fp = np.append(tp, 0), np.append(fp, 0)
    if stairs.counted:
        fn, tn = stairs.positives - tp, stairs.negatives - fp
    else:
        fn, tn = (_sums_above(side[::-1])[::-1] for side in (p, n))
    return Corners(low, high, single, tp, fp, fn, tn)


def missing_sides(classes: Sequence[Staircase]) -> dict[str, Bools]:
    """Return which classes have no positive rows, and which have no negative ones."""
    return {
        "positive rows of": np.array([not stairs.positives for stairs in classes]),
        "negative rows of": np.array([not stairs.negatives for stairs in classes]),
    }


def why_undefined(classes: Sequence[Staircase], names: Sequence[object]) -> str:
    """Return which rows are missing, empty where each class has positive and negative ones."""
    (first, *more) = classes
    if not more and bool(first.positives) != bool(first.negatives):
        side = "positive" if first.positives else "negative"
        return f"only one class was seen, as every row is {side}"
    why = lacking_classes(names, missing_sides(classes))
    return f"there are {why}" if why else ""
