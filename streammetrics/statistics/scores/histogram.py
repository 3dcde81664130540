"""Scores of labelled rows: what curves, the areas under them and calibration are read from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streammetrics.core.columns.labels import ScoredLabels
from streammetrics.core.columns.schema import Numbers, Schema
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.histograms.histogram import DyadicHistogram
from streammetrics.core.statistic import Statistic, nested, part, take_array

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MAX_BINS = 1 << 20
_COUNTABLE = 1 << 61  # products of two sums of counts up to here may be doubled in int64


class ScoreHistogram(Statistic):
    """Weight of both classes at each score, or in each cell of scores past `max_bins`.

    One histogram for (n,) scores of the positive class; K of them, each class against the rest,
    for (n, K) scores. See `DyadicHistogram` for memory and cost of each.
    """

    max_bins: int = MAX_BINS
    pos_label: Any = 1
    labels: tuple[Any, ...] | None = None
    nan_policy: Literal["raise", "omit"] = "raise"

    def check_parameters(self) -> None:
        """Check what a type cannot say."""
        super().check_parameters()
        if not 2 <= self.max_bins <= 1 << 29:
            raise ValueError(f"max_bins={self.max_bins}: expected 2 to 2**29")

    @property
    def schema(self) -> Schema:
        """A label and a score, or a score for each class; only the order of scores matters."""
        scores = Numbers("y_score", ordered=True, wide=True)
        return Schema((ScoredLabels(scores, self.pos_label, self.labels),), self.nan_policy)

    def clear(self) -> None:
        """Forget all rows."""
        self.histograms: tuple[DyadicHistogram, ...] = ()
        self.whole = True  # every weight is a whole number: a row may stand for several, not less

    def update(self, *columns: Any, weight: Floats | None) -> None:
        """Count the rows at their scores: codes (n,) and scores (n,) or (n, K)."""
        codes, scores = columns
        if weight is not None and self.whole:
            self.whole = bool((np.rint(weight) == weight).all())
        self._grow(1 if scores.ndim == 1 else scores.shape[1])
        if scores.ndim == 1:
            self.histograms[0].add(scores, codes.view(np.uint8), weight)
            return
        for k, histogram in enumerate(self.histograms):
            mine = (codes == k).view(np.uint8)
            histogram.add(np.ascontiguousarray(scores[:, k]), mine, weight)

    def merge(self, other: ScoreHistogram) -> None:
        """Add the rows of another histogram."""
        self.merge_all([other])

    def merge_all(self, others: Sequence[ScoreHistogram]) -> None:
        """Add the rows of other histograms."""
        seen = [other for other in others if other.histograms]
        for other in seen:
            self._grow(len(other.histograms))
        for k, mine in enumerate(self.histograms):
            mine.merge(*(other.histograms[k] for other in seen))
        self.whole = self.whole and all(other.whole for other in seen)

    def _grow(self, columns: int) -> None:
        """Rebind to forks that may be added to, one for each column of scores."""
        if not self.histograms:
            self.histograms = tuple(DyadicHistogram(self.max_bins, 2) for _ in range(columns))
        elif len(self.histograms) == columns:
            self.histograms = tuple(histogram.fork() for histogram in self.histograms)
        else:
            raise IncompatibleMetricsError(
                f"{columns} columns of scores cannot join {len(self.histograms)}"
            )

    @property
    def exact(self) -> bool:
        """Whether no cell holds several distinct scores."""
        return all(histogram.exact for histogram in self.histograms)

    def staircases(self) -> tuple[Staircase, ...]:
        """Return what each class is read from: of (n,) scores and of no rows the only one."""
        histograms = self.histograms or (DyadicHistogram(self.max_bins, 2),)
        return tuple(Staircase(histogram, self.whole) for histogram in histograms)

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        return sum(histogram.nbytes for histogram in self.histograms)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the number of histograms, whether all weights are whole, and each histogram."""
        arrays = {"form": np.array([len(self.histograms), self.whole], np.int64)}
        for k, histogram in enumerate(self.histograms):
            arrays |= nested(str(k), histogram.arrays())
        return arrays

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Set the histograms."""
        form = take_array(arrays, "form", "int64")
        if form.shape != (2,) or form[0] < 0 or form[0] > len(arrays) or form[1] not in {0, 1}:
            raise StateFormatError(f"{form.tolist()} is not the form of score histograms")
        parts = [part(arrays, str(k)) for k in range(int(form[0]))]
        if 1 + sum(map(len, parts)) != len(arrays):
            raise StateFormatError("the state of score histograms holds arrays that are not theirs")
        self.histograms = tuple(
            DyadicHistogram.from_arrays(self.max_bins, 2, arrays) for arrays in parts
        )
        self.whole = bool(form[1])


@dataclass(frozen=True)
class Steps:
    """Neighbouring cells in ascending order, and how much lies at or above each.

    `p` and `n` (m,) are the positives and negatives in a cell; `tp` and `fp` those with a score
    of at least its lower edge, so what that edge as a threshold calls positive; `tp_above` and
    `fp_above` those of higher cells only. In a `single` cell all rows have the score `low`.
    `positives` and `negatives` are the sums from each cell up (m + 1,), or the first of them.
    """

    low: Floats
    high: Floats
    single: NDArray[np.bool_]
    p: NDArray[Any]
    n: NDArray[Any]
    positives: NDArray[Any] | int
    negatives: NDArray[Any] | int

    @cached_property
    def _tp(self) -> NDArray[Any]:
        return _counted_down(self.positives, self.p)

    @cached_property
    def _fp(self) -> NDArray[Any]:
        return _counted_down(self.negatives, self.n)

    @property
    def tp(self) -> NDArray[Any]:
        """Positives in the cell and above."""
        return self._tp[:-1]

    @property
    def fp(self) -> NDArray[Any]:
        """Negatives in the cell and above."""
        return self._fp[:-1]

    @property
    def tp_above(self) -> NDArray[Any]:
        """Positives above the cell."""
        return self._tp[1:]

    @property
    def fp_above(self) -> NDArray[Any]:
        """Negatives above the cell."""
        return self._fp[1:]


def _counted_down(sums: NDArray[Any] | int, counts: NDArray[Any]) -> NDArray[Any]:
    if not isinstance(sums, int):
        return sums
    down = np.empty(counts.size + 1, np.int64)
    down[0] = sums
    np.cumsum(counts, out=down[1:])
    np.subtract(sums, down[1:], out=down[1:])
    return down


class Staircase:
    """One class against the rest by score: the steps that its ROC and PR curves take.

    Amounts are integers (int64 arrays, whose products do not overflow) or float64: then they are
    weights scaled by a power of two, and sums of them are right to about one unit in the last
    place. `least` is the least that a row can weigh, 0 where that is not known.
    """

    def __init__(self, histogram: DyadicHistogram, whole: bool) -> None:
        self._histogram = histogram
        self.least = 1.0 if whole else 0.0
        self._weighed: Steps | None = None
        negatives, positives = histogram.totals()
        first = next(histogram.cells(), None)
        integers = first is None or first.counts.dtype == np.int64
        if not integers or positives * negatives > _COUNTABLE:
            self._weighed = _weighed(histogram)
            positives, negatives = float(self._weighed.tp[0]), float(self._weighed.fp[0])
            self.least = 0.0
        self.positives, self.negatives = positives, negatives

    @property
    def exact(self) -> bool:
        """Whether no cell holds several distinct scores."""
        return self._histogram.exact

    @property
    def share(self) -> float:
        """The part of all rows that are positive, 0 of no rows."""
        return self.positives / ((self.positives + self.negatives) or 1)

    @property
    def counted(self) -> bool:
        """Whether the amounts are integers, so that sums and comparisons of them are exact."""
        return self._weighed is None

    def steps(self) -> Iterator[Steps]:
        """Yield the cells in ascending order, in blocks."""
        if self._weighed is not None:
            yield self._weighed
            return
        tp, fp = int(self.positives), int(self.negatives)
        for low, high, single, (n, p) in self._histogram.cells():
            yield Steps(low, high, single, p, n, tp, fp)
            tp, fp = tp - int(p.sum()), fp - int(n.sum())


def _weighed(histogram: DyadicHistogram) -> Steps:
    """Return all cells with float64 amounts, scaled so that the heaviest weighs about one."""
    low, high, single, counts = map(np.concatenate, zip(*_transposed(histogram), strict=True))
    negatives, positives = np.ldexp(counts, -np.frexp(counts.max())[1]).T
    p, n = np.ascontiguousarray(positives), np.ascontiguousarray(negatives)
    return Steps(low, high, single, p, n, _sums_above(p), _sums_above(n))


def _transposed(histogram: DyadicHistogram) -> Iterator[tuple[NDArray[Any], ...]]:
    for low, high, single, counts in histogram.cells():
        yield low, high, single, counts.astype(np.float64).T


def _sums_above(mass: Floats) -> Floats:
    """Return for each entry the sum of it and all later ones (m + 1,), the last of them 0.

    What of each entry is a multiple of a unit of which the total has less than 2**53 is summed
    without error; the rest is so small that the error of its sum does not matter.
    """
    unit = np.ldexp(1.0, np.frexp(mass.sum())[1] - 52)
    coarse = np.floor(mass / unit) * unit
    fine = mass - coarse
    sums = np.zeros(mass.size + 1)
    sums[:-1] = (np.cumsum(coarse[::-1]) + np.cumsum(fine[::-1]))[::-1]
    return sums
