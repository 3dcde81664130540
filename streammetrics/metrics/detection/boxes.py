"""Average precision and recall of boxes, as COCO computes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.arithmetic.keys import cell_ids
from streammetrics.core.constraints import Bins
from streammetrics.core.results.values import Interval
from streammetrics.metrics.detection.base import BoxMetric
from streammetrics.metrics.families import IMAGES
from streammetrics.statistics.detection.boxes import MAX_BINS, BoxHits, BoxScores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.arithmetic.histogram import DyadicHistogram
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Bools, ClassLabel, Floats, Ints, Places

__all__ = ["BoxAveragePrecision", "BoxAverageRecall"]

_RECALLS = np.linspace(0, 1, 101)
_ROOM = 2.0**-40  # relative: more than the rounding error of a mean of 101 numbers


class BoxAveragePrecision(BoxMetric):
    """Average precision of boxes: COCO's mAP by default, AP50 with ``iou=0.5``.

    Formula: 1 / 101 Σ_r max_{R(s) >= r} P(s), with R(s) and P(s) the recall and precision of boxes
    that score s or more, and r from 0 to 1 by 0.01.

    A recall that no threshold reaches has the precision 0. `BoxMetric` says how boxes are matched.

    Exact up to `max_bins` distinct scores per class and outcome. Beyond that neighbouring scores
    share a cell, and `bounds()` holds for any order and ties within cells.

    The other parameters are those of `BoxMetric`.

    Args:
        max_bins: How many distinct scores are kept apart for each class and outcome.

    Memory and cost: about 16 bytes per distinct score of a class, twice that with areas, and 2 kB
    for each of the few dozen outcomes of a class. `update` takes about 4 µs per box, `compute`
    about a millisecond per class.

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

    higher_is_better = True
    family = IMAGES

    max_bins: Bins = MAX_BINS

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the scores of boxes by outcome."""
        return (BoxScores(**self._matched, max_bins=self.max_bins),)

    def readout(self, held: BoxScores) -> float | Floats:
        """Return the value; beyond `max_bins` the midpoint of its bounds."""
        labels, truths, low, high = self._read_sides(held)
        return self._averaged(labels, (low + high) / 2, truths)

    def interval(self, held: BoxScores) -> Interval[float | Floats]:
        """Return the range over all orders of boxes within cells."""
        labels, truths, low, high = self._read_sides(held)
        sides = [self._averaged(labels, side, truths) for side in (low, high)]
        if self.is_exact(held):
            return Interval(*sides)
        return Interval(sides[0] * (1 - _ROOM), np.minimum(sides[1] * (1 + _ROOM), 1.0) + 0.0)

    def is_exact(self, held: BoxScores) -> bool:
        """Whether every distinct score of the boxes that count has a cell of its own."""
        histograms = (h for outcome, h in held.outcomes.items() if outcome.area == self._place)
        return all(histogram.exact for histogram in histograms)

    def _read_sides(self, held: BoxScores) -> tuple[list[ClassLabel], Ints, Floats, Floats]:
        """Return the classes, their numbers of true boxes, and bounds of their values (n, T)."""
        labels, table = held.table(outcome.label for outcome in held.outcomes)
        truths, columns = table[:, self._place, 0], self._columns
        low, high = np.zeros((2, len(labels), columns.size))
        by_class: dict[ClassLabel, list[tuple[int, DyadicHistogram]]] = {}
        for (label, area, code), histogram in held.outcomes.items():
            if area == self._place:
                by_class.setdefault(label, []).append((code, histogram))
        for place, label in enumerate(labels):
            if truths[place] and label in by_class:
                steps = _Steps.of(by_class[label], columns, len(held.ious))
                low[place], high[place] = steps.sides(int(truths[place]))
        return labels, truths, low, high


class _Steps:
    """Boxes of a class by descending score: hits and misses in each cell (m, T)."""

    def __init__(self, single: Bools, hits: Ints, misses: Ints) -> None:
        self.single, self.hits, self.misses = single, hits, misses

    @classmethod
    def of(cls, held: Sequence[tuple[int, DyadicHistogram]], columns: Places, ious: int) -> _Steps:
        """Return the cells of all outcomes together, as wide as the widest."""
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
        cells, scores = cells[order], np.where(single, low, np.nan)[order]
        starts = np.flatnonzero(np.concatenate([[True], cells[1:] != cells[:-1]]))
        # A cell has one score if its lowest and its highest are the same, and neither is nan.
        alone = np.minimum.reduceat(scores, starts) == np.maximum.reduceat(scores, starts)
        amounts = np.stack([hit, 1 - hit - ignored])[:, outcomes] * counts[0][:, None]
        hits, misses = np.add.reduceat(amounts[:, order], starts, axis=1)
        return cls(alone[:, None], hits, misses)

    def sides(self, truths: int) -> tuple[Floats, Floats]:
        """Return the least and the largest average precision at each threshold (T,)."""
        hits, misses = np.cumsum(self.hits, axis=0), np.cumsum(self.misses, axis=0)
        at = np.array([np.searchsorted(column, _RECALLS) for column in (hits / truths).T])
        least = _mean_best(hits, misses, at)
        if self.single.all():
            return least, least
        # In a cell of several scores all boxes may be tied, or the hits come before the misses.
        return least, _mean_best(hits, misses - np.where(self.single, 0, self.misses), at)


def _mean_best(hits: Ints, misses: Ints, at: Ints) -> Floats:
    """Return the mean of the best precisions from positions (T, 101) on, 0 beyond the last one."""
    boxes = hits + misses
    precision = np.divide(hits, boxes, out=np.zeros(boxes.shape), where=boxes > 0)
    best = np.zeros((len(hits) + 1, hits.shape[1]))
    np.maximum.accumulate(precision[::-1], axis=0, out=best[-2::-1])
    mean: Floats = np.take_along_axis(best, at.T, axis=0).mean(axis=0)
    return mean


class BoxAverageRecall(BoxMetric):
    """Average recall of boxes, over classes and thresholds.

    Formula: mean_kt (h_kt / g_k), with h_kt of the g_k true boxes of class k found at threshold t.

    `BoxMetric` says how boxes are matched. COCO reports it for `max_detections` of 1, 10 and 100.

    Parameters are those of `BoxMetric`.

    Memory and cost: 16 bytes per class, area and threshold; about 2 µs per box.

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

    higher_is_better = True
    family = IMAGES

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of boxes and hits."""
        return (BoxHits(**self._matched),)

    def readout(self, held: BoxHits) -> float | Floats:
        """Return the value."""
        labels, table = held.table()
        truths = table[:, self._place, 0]
        hits = table[:, self._place, 1 + self._columns]
        return self._averaged(labels, hits / np.maximum(truths, 1)[:, None], truths)
