"""Average precision and recall of boxes, as COCO computes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.constraints import Bins
from streammetrics.core.histograms.cells import runs_of
from streammetrics.core.histograms.keys import cell_ids
from streammetrics.core.results.values import Interval
from streammetrics.metrics.detection.base import BoxMetric
from streammetrics.statistics.detection.boxes import MAX_BINS, BoxHits, BoxScores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.histograms.histogram import DyadicHistogram
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Bools, Floats, Ints, Places

__all__ = ["BoxAveragePrecision", "BoxAverageRecall"]

_RECALLS = np.linspace(0, 1, 101)
_ROOM = 2.0**-40  # relative: more than means of 101 numbers are rounded by


class BoxAveragePrecision(BoxMetric):
    """Average precision of boxes: the mean of the best precisions at recalls of 0, 0.01, ... 1.

    Formula: 1 / 101 Σ_r max_{R(s) >= r} P(s), with R(s) and P(s) the recall and precision of boxes
    scored s or more, and r from 0 to 1 by 0.01.

    The best precision at a recall r is the largest of hits / (hits + misses) over all thresholds
    of the score at which at least r of the true boxes are hits, 0 where there is none; it is
    COCO's mAP by default, and ``iou=0.5`` Pascal VOC's AP50. Which boxes are hits, see `BoxMetric`.

    Past `max_bins` distinct scores of a class and outcome neighbours share a cell: `bounds()` holds
    for any order and ties within the cells.

    The other parameters are those of `BoxMetric`.

    Args:
        max_bins: How many distinct scores are told apart, of each class and outcome.

    Memory and cost: about 16 bytes per distinct score of a class, twice that with the areas,
    and 2 kB per outcome of a class of which there are some dozens; about 4 microseconds per box,
    and a millisecond of reading for each class.

    Reference: Lin et al., "Microsoft COCO", ECCV 2014; ``pycocotools.cocoeval.COCOeval``;
    ``torchmetrics.detection.MeanAveragePrecision``.

    Example:
        >>> import streammetrics as sm
        >>> ap = sm.BoxAveragePrecision(iou=0.75)
        >>> true_boxes, true_labels = [[0, 0, 9, 9], [20, 20, 30, 30]], ["cat", "dog"]
        >>> _ = ap.update([true_boxes], [true_labels], [[[0, 0, 9, 8]]], [["cat"]], [[0.9]])
        >>> ap.compute()
        0.5
    """

    max_bins: Bins = MAX_BINS

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the scores of boxes by outcome."""
        return (BoxScores(**self._matched, max_bins=self.max_bins),)

    def readout(self, held: BoxScores) -> Any:
        """Return the value; past the budget the middle of what it can be."""
        labels, truths, low, high = self._read_sides(held)
        return self._averaged(labels, (low + high) / 2, truths)

    def interval(self, held: BoxScores) -> Interval[Any]:
        """Return the range over all orders that boxes within cells may have."""
        labels, truths, low, high = self._read_sides(held)
        sides = [self._averaged(labels, side, truths) for side in (low, high)]
        if self.is_exact(held):
            return Interval(*sides)
        return Interval(sides[0] * (1 - _ROOM), np.minimum(sides[1] * (1 + _ROOM), 1.0) + 0.0)

    def is_exact(self, held: BoxScores) -> bool:
        """Whether every distinct score of the boxes that count has a cell of its own."""
        mine = (h for outcome, h in held.outcomes.items() if outcome.area == self._place)
        return all(histogram.exact for histogram in mine)

    def _read_sides(self, held: BoxScores) -> tuple[list[Any], Ints, Floats, Floats]:
        """Return classes, how many true boxes each has, and the least and largest values (n, T)."""
        labels, table = held.table(outcome.label for outcome in held.outcomes)
        truths, columns = table[:, self._place, 0], self._columns
        low, high = np.zeros((2, len(labels), columns.size))
        by_class: dict[Any, list[tuple[int, DyadicHistogram]]] = {}
        for (label, area, code), histogram in held.outcomes.items():
            if area == self._place:
                by_class.setdefault(label, []).append((code, histogram))
        for place, label in enumerate(labels):
            if truths[place] and label in by_class:
                steps = _Steps.of(by_class[label], columns, len(held.ious))
                low[place], high[place] = steps.sides(int(truths[place]))
        return labels, truths, low, high


class _Steps:
    """Boxes of a class by score from above: hits and misses in each cell (m, T)."""

    def __init__(self, single: Bools, hits: Ints, misses: Ints) -> None:
        self.single, self.hits, self.misses = single, hits, misses

    @classmethod
    def of(cls, held: Sequence[tuple[int, DyadicHistogram]], columns: Places, ious: int) -> _Steps:
        """Return the cells of all outcomes together, at the width of the widest."""
        codes = np.array([code for code, _ in held])[:, None]
        hit, ignored = (codes >> columns) & 1, (codes >> (ious + columns)) & 1
        blocks = [(k, block) for k, (_, each) in enumerate(held) for block in each.cells()]
        low, single, counts = (
            np.concatenate([getattr(block, name) for _, block in blocks], axis=-1)
            for name in ("low", "single", "counts")
        )
        outcomes = np.repeat([k for k, _ in blocks], [block.low.size for _, block in blocks])
        level = max(each.level for _, each in held)
        cells = cell_ids(low, level) if level else low
        order = np.argsort(-cells, kind="stable")
        starts, _, score = runs_of(
            cells[order], np.where(single, low, np.nan)[order], ascending=False
        )
        amounts = np.stack([hit, 1 - hit - ignored])[:, outcomes] * counts[0][:, None]
        hits, misses = np.add.reduceat(amounts[:, order], starts, axis=1)
        return cls(~np.isnan(score)[:, None], hits, misses)

    def sides(self, truths: int) -> tuple[Floats, Floats]:
        """Return the least and the largest average precision at each threshold (T,)."""
        hits, misses = np.cumsum(self.hits, axis=0), np.cumsum(self.misses, axis=0)
        at = np.array([np.searchsorted(column, _RECALLS) for column in (hits / truths).T])
        least = _mean_best(hits, misses, at)
        if self.single.all():
            return least, least
        # In a cell of several scores all may come together, or the hits before the misses.
        return least, _mean_best(hits, misses - np.where(self.single, 0, self.misses), at)


def _mean_best(hits: Ints, misses: Ints, at: Ints) -> Floats:
    """Return the mean of the best precisions from places (T, 101) on, 0 past the last one."""
    found = hits + misses
    precision = np.divide(hits, found, out=np.zeros(found.shape), where=found > 0)
    best = np.zeros((len(hits) + 1, hits.shape[1]))
    np.maximum.accumulate(precision[::-1], axis=0, out=best[-2::-1])
    mean: Floats = np.take_along_axis(best, at.T, axis=0).mean(axis=0)
    return mean


class BoxAverageRecall(BoxMetric):
    """Average recall of boxes: hits over true boxes, the mean over thresholds and classes.

    Formula: mean_kt (h_kt / g_k), with h_kt the hits of class k at threshold t, g_k true boxes.

    Which boxes are hits, see `BoxMetric`. COCO has it for 1, 10 and 100 `max_detections`.

    Parameters are those of `BoxMetric`.

    Memory and cost: 16 bytes per class, area and threshold; about 2 microseconds per box.

    Reference: Hosang et al., "What makes for effective detection proposals?", TPAMI 38 (2016);
    ``pycocotools.cocoeval.COCOeval``; ``torchmetrics.detection.MeanAveragePrecision``.

    Example:
        >>> import streammetrics as sm
        >>> recall = sm.BoxAverageRecall(iou=(0.5, 0.75, 0.95))
        >>> true_boxes, true_labels = [[0, 0, 9, 9], [20, 20, 30, 30]], [1, 1]
        >>> _ = recall.update([true_boxes], [true_labels], [[[0, 0, 9, 8]]], [[1]], [[0.9]])
        >>> recall.compute()
        0.3333333333333333
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of boxes and hits."""
        return (BoxHits(**self._matched),)

    def readout(self, held: BoxHits) -> Any:
        """Return the value."""
        labels, table = held.table()
        truths = table[:, self._place, 0]
        hits = table[:, self._place, 1 + self._columns]
        return self._averaged(labels, hits / np.maximum(truths, 1)[:, None], truths)
