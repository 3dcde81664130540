"""Scores of labelled rows: what curves, the areas under them and calibration are read from."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.columns.long import LongNumbers
from streammetrics.core.columns.scores import Scores
from streammetrics.core.constraints import Bins
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.fields.field import StateField
from streammetrics.core.fields.histograms import Columns, Histograms
from streammetrics.core.histograms.histogram import DyadicHistogram
from streammetrics.statistics.scores.base import ScoredStatistic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.configured import Configured

    Floats = NDArray[np.float64]

MAX_BINS = 1 << 20


class Counted(NamedTuple):
    """Histograms of scores, and whether every weight is a whole number."""

    histograms: Columns = ()
    whole: bool = True


class CountedScores(StateField[Counted]):
    """Histograms of scores with labels, and whether every weight in them is a whole number.

    Weights that were not all whole are not known to be so when they are scaled, and where some of
    them are taken out it cannot always be told what is left.
    """

    def __init__(self) -> None:
        super().__init__(inline=True)
        self.columns = Histograms(lambda of: of.max_bins, 2, "columns of scores")

    def empty(self, of: Configured) -> Counted:  # noqa: ARG002 - nothing depends on it
        """Return no histogram."""
        return Counted()

    def plus(self, mine: Counted, other: Counted) -> Counted:
        """Return the rows of both."""
        return self.merged(mine, [other])

    def merged(self, mine: Counted, others: Sequence[Counted]) -> Counted:
        """Return the rows of all."""
        histograms = self.columns.merged(mine.histograms, [other.histograms for other in others])
        return Counted(histograms, mine.whole and all(other.whole for other in others))

    def arrays(self, value: Counted) -> dict[str, NDArray[Any]]:
        """Return the number of histograms and whether weights are whole, and each histogram."""
        form = np.array([len(value.histograms), value.whole], np.int64)
        return self.columns.headed("form", form, value.histograms)

    def taken(self, arrays: Mapping[str, NDArray[Any]], of: Configured) -> Counted:
        """Return the histograms."""
        return _counted(*self.columns.after("form", 2, arrays, of))

    def each_taken(
        self, stacks: Mapping[str, NDArray[Any]], n: int, of: Configured
    ) -> list[Counted]:
        """Return the histograms of each state, those of plain counts checked at once."""
        return list(starmap(_counted, self.columns.each_after("form", 2, stacks, n, of)))

    def nbytes(self, value: Counted) -> int:
        """Bytes of state held now."""
        return self.columns.nbytes(value.histograms)

    def scaled(self, value: Counted, weight: float) -> Counted:
        """Return the same rows with as many times the weight."""
        histograms = self.columns.scaled(value.histograms, weight)
        return Counted(histograms, value.whole and (weight.is_integer() or not histograms))

    def minus(self, value: Counted, other: Counted) -> Counted:
        """Return what is left of rows."""
        if not other.histograms:
            return value
        left = self.columns.minus(value.histograms, other.histograms)
        if not left or value.whole or other.whole:
            return Counted(left, value.whole or not left)
        if all(_are_whole(histogram) for histogram in left):
            raise IncompatibleMetricsError(
                "the weights that are left add up to whole numbers, and it cannot be told whether "
                "each is one: merge the states that are to stay"
            )
        return Counted(left, whole=False)


def _counted(form: list[int], histograms: Columns) -> Counted:
    if form[1] not in {0, 1} or not (histograms or form[1]):
        raise StateFormatError(f"{form} is not the form of score histograms")
    return Counted(histograms, bool(form[1]))


def _are_whole(histogram: DyadicHistogram) -> bool:
    """Whether each cell weighs a whole number, or more than float64 tells."""
    blocks = (block.counts for block in histogram.cells())
    return all(bool((np.rint(counts) == counts).all()) for counts in blocks)


class ScoreHistogram(ScoredStatistic):
    """Weight of both classes at each score, or in each cell of scores past `max_bins`.

    One histogram for (n,) scores of the positive class; K of them, each class against the rest,
    for (n, K) scores. See `DyadicHistogram` for memory and cost of each. With `from_logits` (n, K)
    scores are kept as probabilities, and (n,) ones as the logits they are, in the same order.
    """

    max_bins: Bins = MAX_BINS
    from_logits: bool = False

    counted = CountedScores()

    @property
    def scores(self) -> Scores:
        """Any scores: only their order matters."""
        # Integers as logits would have to be rounded by the softmax.
        return Scores(wide=True, from_logits=self.from_logits, long=not self.from_logits)

    def update(self, *columns: Any, weight: Floats | None) -> None:
        """Count the rows at their scores: codes (n,) and scores (n,) or (n, K)."""
        codes, scores = columns
        before, whole = self.counted
        if weight is not None and whole:
            whole = bool((np.rint(weight) == weight).all())
        width = 1 if scores.ndim == 1 else scores.shape[1]
        histograms = type(self).counted.columns.forks(before, width, self)
        if scores.ndim == 1:
            long = isinstance(scores, LongNumbers)
            heads, tails = (scores.head, scores.tail) if long else (scores, None)
            histograms[0].add(heads, codes.view(np.uint8), weight, tails)
        else:
            for k, histogram in enumerate(histograms):
                mine = (codes == k).view(np.uint8)
                histogram.add(np.ascontiguousarray(scores[:, k]), mine, weight)
        self.counted = Counted(histograms, whole)

    @property
    def histograms(self) -> tuple[DyadicHistogram, ...]:
        """One for each column of scores; none without rows."""
        return self.counted.histograms

    @property
    def whole(self) -> bool:
        """Whether every weight is a whole number: a row may stand for several, not less."""
        return self.counted.whole

    @property
    def amount(self) -> float:
        """What all rows weigh."""
        return sum(self.classes()[0].totals())

    @property
    def exact(self) -> bool:
        """Whether no cell holds several distinct scores."""
        return all(histogram.exact for histogram in self.histograms)

    def classes(self) -> tuple[DyadicHistogram, ...]:
        """Return the histogram of each class: of (n,) scores and of no rows the only one."""
        return self.histograms or (DyadicHistogram(self.max_bins, 2),)


class TopLabelHistogram(ScoreHistogram):
    """The largest score of each row (n, K), of the rows of which it is of the true class or not."""

    matrix = True

    def update(self, *columns: Any, weight: Floats | None) -> None:
        """Count the rows at their largest score."""
        codes, scores = columns
        best = scores.argmax(axis=1)
        hit = (best == codes).view(np.uint8)
        super().update(hit, scores[np.arange(best.size), best], weight=weight)
