"""Predicted boxes matched with true ones, image by image, as COCO does: many images at once."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.column import Column, concatenate
from streammetrics.core.columns.nested import Nested, within
from streammetrics.core.counting import packed
from streammetrics.core.fields.labels import coded_labels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.core.types import Bools, Columns, Floats, Ints, Places


AREAS = {
    "all": (0.0, 1e10),
    "small": (0.0, 32.0**2),
    "medium": (32.0**2, 96.0**2),
    "large": (96.0**2, 1e10),
}
_NEARLY = 1 - 1e-10  # what an IoU of 1 is asked for as


class Outcomes(NamedTuple):
    """What became of the boxes of images, which are sorted by class, and by score from above.

    `regular` (g, A) says whether a true box counts among those of an area, not being a crowd.
    `codes` (d, A) are for each area the thresholds at which a predicted box is a hit, as bits, and
    above these bits those at which it is ignored: matched with what does not count, or alone and
    of another size. `ranks` are its places among the boxes of its class in the image, from 0.
    """

    true_labels: Nested
    regular: Nested
    pred_labels: Nested
    scores: Nested
    ranks: Nested
    codes: Nested


class _Side(NamedTuple):
    """Boxes of one side: the class of its image that each is of, in ascending order."""

    order: Places
    groups: Ints
    boxes: Floats
    areas: Floats

    @classmethod
    def of(cls, boxes: Nested, groups: Ints, areas: Floats, keys: tuple[Floats, ...] = ()) -> _Side:
        """Return the boxes in the order of their groups, and of some keys within."""
        order = np.lexsort((*keys, groups))
        return cls(order, groups[order], boxes.flat.values[order], areas[order])


def matched(columns: Columns, ious: tuple[float, ...], *, classes: bool = True) -> Outcomes:
    """Return what becomes of the boxes of each image.

    Boxes of a class are taken by score from above, those of equal scores in the order given; each
    is matched with the free true box that it overlaps most, the last of those that it overlaps
    alike, and with one that does not count only where there is no other.
    """
    true_boxes, true_labels, crowd, true_areas, pred_boxes, pred_labels, scores = columns
    if not classes:
        true_labels, pred_labels = map(_alike, (true_labels, pred_labels))
    size = len(true_labels.flat)
    both = concatenate([true_labels.flat, pred_labels.flat])
    groups = np.concatenate([true_boxes.rows, pred_boxes.rows])
    if len(both):
        places, labels = coded_labels(both)
        groups = packed((1, len(labels)), groups, places)
    true = _Side.of(true_boxes, groups[:size], true_areas.flat.values)
    boxes = pred_boxes.flat.values
    areas = boxes[:, 2] * boxes[:, 3]
    pred = _Side.of(pred_boxes, groups[size:], areas, (-scores.flat.values,))
    crowded = crowd.flat.values[true.order] > 0
    regular = _in_areas(true.areas) & ~crowded[:, None]
    codes = _codes(true, pred, crowded, regular, np.minimum(ious, _NEARLY))
    starts = np.searchsorted(pred.groups, pred.groups)
    held = (
        (true_labels, true_labels.flat[true.order]),
        (true_labels, Column(regular, None, True)),
        (pred_labels, pred_labels.flat[pred.order]),
        (pred_labels, scores.flat[pred.order]),
        (pred_labels, Column(np.arange(starts.size) - starts, None, True)),
        (pred_labels, Column(codes, None, True)),
    )
    return Outcomes(*[Nested.of(like.values, flat) for like, flat in held])


def _alike(labels: Nested) -> Nested:
    """Return labels that are all one, 0."""
    return Nested.of(labels.values, Column(np.zeros(len(labels.flat), np.int64), None, True))


def _in_areas(areas: Floats) -> Bools:
    """Return whether each is of an area (n, A), both ends of which belong to it."""
    low, high = np.array(list(AREAS.values())).T
    inside: Bools = (areas[:, None] >= low) & (areas[:, None] <= high)
    return inside


def _codes(true: _Side, pred: _Side, crowd: Bools, regular: Bools, ious: Floats) -> Ints:
    """Return the codes of the predicted boxes, (d, A)."""
    bits = np.int64(1) << np.arange(ious.size)
    every = np.int64((1 << ious.size) - 1)
    codes = np.where(_in_areas(pred.areas), 0, every)  # where they stay alone, those ignored
    hits = np.zeros_like(codes)
    pairs = _Pairs.of(true, pred, crowd, ious.min())
    taken = np.zeros((*regular.shape, ious.size), np.bool_)
    for boxes, starts, places in pairs.turns(pred.groups):
        truths, n = pairs.true[places], places.size
        free = ~taken[truths] | crowd[truths][:, None, None]
        near = pairs.iou[places][:, None] >= ious
        # Pairs of a box ascend by overlap; those that count come after all others.
        order = np.arange(1, n + 1)[:, None] + n * regular[truths]
        best = np.maximum.reduceat(
            np.where(free & near[:, None, :], order[:, :, None], 0), starts, axis=0
        )
        box, area, iou = np.nonzero(best)
        taken[truths[(best[box, area, iou] - 1) % n], area, iou] = True
        hit, lost = (best > n) @ bits, ((best > 0) & (best <= n)) @ bits
        hits[boxes] = hit
        codes[boxes] = (codes[boxes] & ~hit) | lost
    ignored: Ints = codes << ious.size
    return ignored | hits


class _Pairs(NamedTuple):
    """Pairs of a predicted and a true box that overlap enough, by the former, then by overlap."""

    pred: Places
    true: Places
    iou: Floats

    @classmethod
    def of(cls, true: _Side, pred: _Side, crowd: Bools, least: float) -> _Pairs:
        """Return the pairs of boxes of one group whose overlap is at least so large."""
        first = np.searchsorted(true.groups, pred.groups)
        counts = np.searchsorted(true.groups, pred.groups, "right") - first
        cuts = np.searchsorted(
            np.cumsum(counts), np.arange(0, counts.sum(), tuning.OVERLAPS), "right"
        )
        parts = []
        for start, stop in pairwise([*cuts.tolist(), counts.size]):
            part = slice(start, stop)
            box = np.repeat(np.arange(start, stop), counts[part])
            other = within(first[part], counts[part])
            iou = overlap(pred.boxes[box], true.boxes[other], crowd[other])
            near = np.flatnonzero(iou >= least)
            parts.append((box[near], other[near], iou[near]))
        none = np.empty(0, np.intp)
        box, other, iou = (
            map(np.concatenate, zip(*parts, strict=True)) if parts else (none, none, np.empty(0))
        )
        order = np.lexsort((other, iou, box))
        return cls(box[order], other[order], iou[order])

    def turns(self, groups: Ints) -> Iterator[tuple[Places, ...]]:
        """Yield boxes of which no two are of one group, where each begins, and their pairs.

        Boxes that come later in their group come in a later turn.
        """
        if not self.pred.size:
            return
        starts = np.flatnonzero(np.diff(self.pred, prepend=-1))
        counts = np.diff(starts, append=self.pred.size)
        boxes = self.pred[starts]
        own = groups[boxes]
        turn = np.arange(boxes.size) - np.searchsorted(own, own)
        order = np.argsort(turn, kind="stable")
        for some in np.split(order, np.cumsum(np.bincount(turn))[:-1]):
            ends = np.cumsum(counts[some])
            yield boxes[some], ends - counts[some], within(starts[some], counts[some])


def overlap(one: Floats, other: Floats, crowd: Bools) -> Floats:
    """Return the intersection over union of boxes (n, 4), with a crowd over the first one's area.

    Boxes are left, top, width and height.
    """
    low = np.maximum(one[:, :2], other[:, :2])
    high = np.minimum(one[:, :2] + one[:, 2:], other[:, :2] + other[:, 2:])
    both = np.prod(np.maximum(high - low, 0.0), axis=1)
    area, second = one[:, 2] * one[:, 3], other[:, 2] * other[:, 3]
    union = np.where(crowd, area, area + second - both)
    shares: Floats = np.divide(both, union, out=np.zeros_like(both), where=both > 0)
    return shares
