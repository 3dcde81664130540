"""Boxes, masks and panoptic segments found in images."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np

from streammetrics.core.arithmetic.keys import cell_ids
from streammetrics.core.columns.batch import MAX_NDIM
from streammetrics.core.columns.conversion import as_column
from streammetrics.core.columns.labels import Label, one_kind
from streammetrics.core.configured import require
from streammetrics.core.constraints import Between, Bins, NanPolicy
from streammetrics.core.metric import Metric, NumberOrArray
from streammetrics.core.results.values import Interval, LabelledArray
from streammetrics.core.types import Array, Floats, FloatSequence, NoAverage
from streammetrics.metrics.classification.view import Confusion
from streammetrics.metrics.families import IMAGES, PIXELS
from streammetrics.statistics.boxes import (
    AREAS,
    IOUS,
    MAX_BINS,
    BoxFormat,
    BoxHits,
    BoxScores,
)
from streammetrics.statistics.segments import SegmentCounts
from streammetrics.statistics.tables import ContingencyTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.arithmetic.histogram import SortedHistogram
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike, Bools, ClassLabel, Ints, Options, Places


_MOST_IOUS = 30  # outcomes at this many thresholds fit in 64 bits


class BoxMetric(NumberOrArray[NoAverage], Metric[float | LabelledArray]):
    """Base class of metrics of boxes detected in images, as COCO evaluates them.

    A row is an image. For each class, the `max_detections` predicted boxes with the highest scores
    are matched in descending order of score. Each is matched with the unmatched true box of its
    class that it overlaps most, if the overlap is at least the threshold. Crowd boxes, and boxes
    outside the area, count neither as found nor as missed.

    Values do not depend on the order of images: boxes of different images with the same score are
    counted together, whereas pycocotools takes them in the order of images. For boxes of one image
    with equal scores or overlaps, the order in the lists decides, as in pycocotools.

    Args:
        iou: The intersection over union required for a match, or several values to average over.
            ``None``: COCO's ten thresholds, 0.5 to 0.95.
        area: Which boxes count: ``"all"``, or those of up to 32² pixels (``"small"``), from 32²
            to 96² (``"medium"``), or above (``"large"``).
        max_detections: The largest number of predicted boxes that count per class and image.
        average: ``"macro"``: the mean over the classes that have true boxes. ``"micro"``: all
            classes are treated as one. ``None``: an array with the value of each class, sorted.
        box_format: The four numbers of a box: its corners (``"xyxy"``); left, top, width and height
            (``"xywh"``); or centre, width and height (``"cxcywh"``). ``"rle"``: masks instead of
            boxes, each as the text of its run lengths, COCO's ``counts``.
        nan_policy: ``"raise"``, or ``"omit"``: images with a missing value are left out.
    """

    iou: Annotated[float, Between(0, 1)] | FloatSequence | None = None
    area: Literal["all", "small", "medium", "large"] = "all"
    max_detections: Annotated[int, Between(1, 1 << 30)] = 100
    average: Literal["macro", "micro"] | NoAverage = "macro"
    box_format: BoxFormat = "xyxy"
    nan_policy: NanPolicy = "raise"

    def check_parameters(self) -> None:
        """Check the thresholds."""
        ious = self.iou if isinstance(self.iou, tuple) else (1.0 if self.iou is None else self.iou,)
        shares = all(isinstance(iou, int | float) and 0 < iou <= 1 for iou in ious)
        distinct = shares and 0 < len(set(ious)) == len(ious) <= _MOST_IOUS
        words = f"shares above 0, at most {_MOST_IOUS} of them and all different"
        require(self, "iou", distinct, words)

    @property
    def _ious(self) -> tuple[float, ...]:
        """The thresholds of the metric."""
        if isinstance(self.iou, int | float):
            return (float(self.iou),)
        return IOUS if self.iou is None else tuple(map(float, self.iou))

    @property
    def _matched(self) -> Options:
        """The parameters of the statistic; all of COCO's thresholds if ours are among them."""
        return {
            "ious": IOUS if _places(self._ious) is not None else self._ious,
            "box_format": self.box_format,
            "max_detections": self.max_detections,
            "classes": self.average != "micro",
            "nan_policy": self.nan_policy,
        }

    @property
    def _columns(self) -> Places:
        """The positions of the thresholds among those of the statistic."""
        places = _places(self._ious)
        return np.arange(len(self._ious)) if places is None else places

    @property
    def _place(self) -> int:
        """The index of the area."""
        return list(AREAS).index(self.area)

    def update(
        self,
        true_boxes: ArrayLike,
        true_labels: ArrayLike,
        pred_boxes: ArrayLike,
        pred_labels: ArrayLike,
        pred_scores: ArrayLike,
        *,
        true_crowd: ArrayLike = None,
        true_areas: ArrayLike = None,
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of n images. A row holds the boxes of one image, in lists of equal length.

        Args:
            true_boxes: The g true boxes of each image, n lists (g, 4) of numbers; g may be 0.
            true_labels: Their classes, n lists of g integers or strings.
            pred_boxes: The d predicted boxes of each image, n lists (d, 4) of numbers.
            pred_labels: Their classes, n lists of d.
            pred_scores: Their scores, n lists of d.
            true_crowd: 1 for a crowd box, n lists of g values of 0 and 1. A crowd may be matched
                any number of times, or not at all, and does not count.
            true_areas: The areas that `area` refers to, n lists of g; by default those of the
                boxes. COCO uses those of the masks.
            counts: Must be ``None``: a row is an image.

        Raises:
            InvalidBatchError: A box is not four finite numbers, has a negative width or height, or
                lacks a label or a score; the state is unchanged.
        """
        true = {"true_boxes": true_boxes, "true_labels": true_labels, "true_crowd": true_crowd}
        pred = {"pred_boxes": pred_boxes, "pred_labels": pred_labels, "pred_scores": pred_scores}
        return self.feed({**true, "true_areas": true_areas, **pred, "counts": counts})

    def _lacking(self, *_: object) -> str:
        none = "there are no true boxes" + (f" of area={self.area!r}" if self.area != "all" else "")
        return f"{none} of a class" if self.average is None else none

    def _averaged(
        self, labels: list[ClassLabel], values: Floats, truths: Ints
    ) -> float | LabelledArray:
        """Return the configured average of values (n, T) over the classes with true boxes."""
        has_boxes = truths > 0
        if self.average is None:
            each = np.full(len(labels), math.nan)
            each[has_boxes] = values[has_boxes].mean(axis=1)
            return LabelledArray.of(each, labels)
        return float(values[has_boxes].mean()) if has_boxes.any() else math.nan


def _places(ious: tuple[float, ...]) -> Places | None:
    """Return the positions of thresholds among COCO's, ``None`` if any is not among them."""
    near = np.abs(np.array(ious)[:, None] - np.array(IOUS)) < 1e-9  # 0.9 is 0.8999... in IOUS
    return near.argmax(axis=1) if near.any(axis=1).all() else None


_RECALLS = np.linspace(0, 1, 101)
_ROOM = 2.0**-40  # relative; more than the rounding error of a mean of 101 numbers


class BoxAveragePrecision(BoxMetric[NoAverage]):
    """Average precision of boxes: COCO's mAP by default, AP50 with ``iou=0.5``.

    Formula: 1 / 101 Σ_r max_{R(s) >= r} P(s), with R(s) and P(s) the recall and precision of boxes
    that score s or more, and r from 0 to 1 by 0.01.

    The precision is 0 at recalls that no threshold reaches. In descending order of score, each
    predicted box is matched with the unmatched true box of its class that it overlaps most, if the
    overlap is at least `iou`.

    Exact for up to `max_bins` distinct scores per class and outcome. Beyond that, neighbouring
    scores share a cell, and `bounds()` holds for any order and ties within cells.

    The other parameters are those of `BoxMetric`.

    Args:
        max_bins: The largest number of distinct scores kept apart for each class and outcome.

    Memory and cost: about 32 bytes per distinct score of a class (16 for all boxes, 16 for those of
    its area), and 2 kB for each of the few dozen outcomes of a class. `update` takes about 4 µs per
    box, `compute` about a millisecond per class.

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
    value_range = (0.0, 1.0)
    family = IMAGES

    max_bins: Bins = MAX_BINS

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the scores of boxes by outcome."""
        return (BoxScores(**self._matched, max_bins=self.max_bins),)

    def readout(self, held: BoxScores) -> float | LabelledArray:
        """Return the value; beyond `max_bins` the midpoint of its bounds."""
        labels, truths, low, high = self._read_sides(held)
        return self._averaged(labels, (low + high) / 2, truths)

    def interval(self, held: BoxScores) -> Interval[float | LabelledArray]:
        """Return the range over all orders of boxes within cells."""
        labels, truths, low, high = self._read_sides(held)
        sides: list[Any] = [self._averaged(labels, side, truths) for side in (low, high)]
        if self.is_exact(held):
            return Interval(*sides)
        return Interval(sides[0] * (1 - _ROOM), np.minimum(sides[1] * (1 + _ROOM), 1.0) + 0.0)

    def is_exact(self, held: BoxScores) -> bool:
        """Whether every distinct score of the boxes that count has its own cell."""
        histograms = (h for outcome, h in held.outcomes.items() if outcome.area == self._place)
        return all(histogram.exact for histogram in histograms)

    def _read_sides(self, held: BoxScores) -> tuple[list[ClassLabel], Ints, Floats, Floats]:
        """Return the classes, their numbers of true boxes, and bounds of their values (n, T)."""
        labels, table = held.table(outcome.label for outcome in held.outcomes)
        truths, columns = table[:, self._place, 0], self._columns
        low, high = np.zeros((2, len(labels), columns.size))
        by_class: dict[ClassLabel, list[tuple[int, SortedHistogram]]] = {}
        for (label, area, code), histogram in held.outcomes.items():
            if area == self._place:
                by_class.setdefault(label, []).append((code, histogram))
        for place, label in enumerate(labels):
            if truths[place] and label in by_class:
                steps = _Steps.of(by_class[label], columns, len(held.ious))
                low[place], high[place] = steps.sides(int(truths[place]))
        return labels, truths, low, high


class _Steps:
    """Hits and misses (m, T) of a class, in cells by descending score."""

    def __init__(self, single: Bools, hits: Ints, misses: Ints) -> None:
        self.single, self.hits, self.misses = single, hits, misses

    @classmethod
    def of(cls, held: Sequence[tuple[int, SortedHistogram]], columns: Places, ious: int) -> _Steps:
        """Return the cells of all outcomes together, at the coarsest level among them."""
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
        # A cell holds one score if its lowest and highest scores are equal and not nan.
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
        # In a cell of several scores, all boxes may be tied, or the hits may precede the misses.
        return least, _mean_best(hits, misses - np.where(self.single, 0, self.misses), at)


def _mean_best(hits: Ints, misses: Ints, at: Ints) -> Floats:
    """Return the mean of the best precision from each position (T, 101) on; 0 past the last one."""
    boxes = hits + misses
    precision = np.divide(hits, boxes, out=np.zeros(boxes.shape), where=boxes > 0)
    best = np.zeros((len(hits) + 1, hits.shape[1]))
    np.maximum.accumulate(precision[::-1], axis=0, out=best[-2::-1])
    mean: Floats = np.take_along_axis(best, at.T, axis=0).mean(axis=0)
    return mean


class BoxAverageRecall(BoxMetric[NoAverage]):
    """Average recall of boxes, over classes and thresholds.

    Formula: mean_kt (h_kt / g_k), with h_kt of the g_k true boxes of class k found at threshold t.

    Boxes are matched as in `BoxAveragePrecision`. COCO reports this metric for `max_detections` of
    1, 10 and 100.

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
    value_range = (0.0, 1.0)
    family = IMAGES

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of boxes and hits."""
        return (BoxHits(**self._matched),)

    def readout(self, held: BoxHits) -> float | LabelledArray:
        """Return the value."""
        labels, table = held.table()
        truths = table[:, self._place, 0]
        hits = table[:, self._place, 1 + self._columns]
        return self._averaged(labels, hits / np.maximum(truths, 1)[:, None], truths)


class MaskMetric(NumberOrArray[NoAverage], Metric[float | LabelledArray]):
    """Base class of metrics of the overlap of masks by class, over all images together.

    Args:
        average: ``"macro"``: the mean over the classes that have pixels, true or predicted.
            ``"weighted"``: the mean weighted by true pixels. ``"micro"``: the pixels of all classes
            are added first. ``None``: an array of the classes, ``nan`` for those without pixels.
        labels: The classes and their order; others raise. ``None``: the labels seen, sorted.
        background: A class to leave out of the average; its pixels still count for other classes.
        ignore_index: Pixels with this true class are left out.
        nan_policy: ``"raise"``, or ``"omit"``: pixels with a missing value are left out.

    Memory and cost: 16 bytes per pair of classes that occurs; a few ns per pixel.
    """

    _formula = ("readout", "_parts")
    family = PIXELS

    average: Literal["macro", "weighted", "micro"] | NoAverage = "macro"
    labels: Any = None
    background: Label | None = None
    ignore_index: int | None = None
    nan_policy: NanPolicy = "raise"

    def check_parameters(self) -> None:
        """Convert the labels to one type."""
        self.labels = one_kind(self.labels, self.ignore_index)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the table of classes."""
        rows: Options = {"nan_policy": self.nan_policy, "ignore_index": self.ignore_index}
        return (ContingencyTable(labels=self.labels, **rows),)

    def update(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of label maps; every pixel is a row.

        Args:
            y_true: The true classes, of any shape such as (n, H, W).
            y_pred: The predicted classes, of the same shape, or scores (n, K, H, W) of K classes,
                the largest of which (the first if tied) gives the class.
            sample_weight: Non-negative weights, of the shape of `y_true`.
            counts: How many rows each row stands for, (n,); whole numbers.

        Raises:
            InvalidBatchError: The shapes do not fit, or a class is not among `labels`; the state is
                unchanged.
        """
        _warn_of_one_hot(y_true, y_pred)
        return self.feed(
            {"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight, "counts": counts}
        )

    def readout(self, table: ContingencyTable) -> float | LabelledArray:
        """Return the overlap, averaged as configured."""
        confusion = Confusion.of_labels(table.cells(), self.labels)
        kept = np.array([label != self.background for label in confusion.labels], np.bool_)
        actual = confusion.actual[0]
        both, whole = self._parts(confusion.tp[0], actual, confusion.predicted[0])
        both, whole, weight = both[kept], whole[kept], actual[kept]
        if self.average == "micro":
            return float(both.sum() / whole.sum()) if whole.any() else math.nan
        shares = np.divide(both, whole, out=np.full(whole.shape, math.nan), where=whole > 0)
        if self.average is None:
            names = [name for name, keep in zip(confusion.labels, kept, strict=True) if keep]
            return LabelledArray.of(shares, names)
        has_pixels = whole > 0
        weight = (
            weight[has_pixels] if self.average == "weighted" else np.ones(int(has_pixels.sum()))
        )
        return (
            float((shares[has_pixels] * weight).sum() / weight.sum()) if weight.any() else math.nan
        )

    def _lacking(self, *_: object) -> str:
        return f"there are no pixels of {'a' if self.average is None else 'any'} class that counts"

    @abstractmethod
    def _parts(self, both: Floats, true: Floats, pred: Floats) -> tuple[Floats, Floats]:
        """Return the numerator and the denominator of each class."""


class MeanIoU(MaskMetric[NoAverage]):
    """Mean intersection over union (mIoU) of the classes of masks.

    Formula: mean_k (TP_k / (TP_k + FP_k + FN_k)), with k the classes that have pixels.

    The pixels of all images are counted together, as in the VOC and Cityscapes benchmarks. For a
    mean over images, use `Slices` by image.

    Parameters are those of `MaskMetric`.

    Reference: Everingham et al., "The Pascal visual object classes challenge", IJCV 88 (2010);
    ``sklearn.metrics.jaccard_score``; ``torchmetrics.segmentation.MeanIoU``, a mean over images.

    Example:
        >>> import streammetrics as sm
        >>> sm.MeanIoU().update([[0, 0], [1, 1]], [[0, 1], [1, 1]]).compute()
        0.5833333333333333
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def _parts(self, both: Floats, true: Floats, pred: Floats) -> tuple[Floats, Floats]:
        """Return intersections and unions."""
        return both, true + pred - both


class Dice(MaskMetric[NoAverage]):
    """Dice coefficient of the classes of masks.

    Formula: mean_k (2 TP_k / (2 TP_k + FP_k + FN_k)), with k the classes that have pixels.

    The pixels of all images are counted together. For a mean over images, use `Slices` by image.

    Parameters are those of `MaskMetric`.

    Reference: Dice, Ecology 26 (1945); ``sklearn.metrics.f1_score``;
    ``torchmetrics.segmentation.DiceScore(aggregation_level="global")``.

    Example:
        >>> import streammetrics as sm
        >>> sm.Dice(background=0).update([[0, 0], [1, 1]], [[0, 1], [1, 1]]).compute()
        0.8
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def _parts(self, both: Floats, true: Floats, pred: Floats) -> tuple[Floats, Floats]:
        """Return twice the intersections, and the sums of true and predicted sizes."""
        return 2 * both, true + pred


def _warn_of_one_hot(true: object, pred: object) -> None:
    """Warn if both maps are one-hot (n, K, H, W), as they are read as masks of 0 and 1."""
    shape = tuple(getattr(true, "shape", ()))
    if len(shape) < 4 or shape[1] < 2 or tuple(getattr(pred, "shape", ())) != shape:
        return
    if all(_is_one_hot(as_column(maps, "maps", max_ndim=MAX_NDIM).values) for maps in (true, pred)):
        warnings.warn(
            f"y_true and y_pred are {shape}, one-hot of {shape[1]} classes, and read as masks of "
            "the classes 0 and 1: pass y_true.argmax(1) and y_pred.argmax(1)",
            stacklevel=3,
        )


def _is_one_hot(maps: Array) -> bool:
    """Whether each pixel is 1 for one class, along the second axis, and 0 for all others."""
    return bool(((maps == 0) | (maps == 1)).all() and (maps.sum(axis=1) == 1).all())


class PanopticMetric(NumberOrArray[NoAverage], Metric[float | LabelledArray]):
    """Base class of metrics of panoptic maps. A segment is the pixels of one category and instance.

    A true and a predicted segment of the same image and category match if their intersection over
    union is above 0.5, so each has at most one match. Pixels whose true category is void do not
    count. A predicted segment with more than half of its pixels on void is not a false positive.

    Args:
        things: The categories with separate instances.
        stuffs: The categories without instances: all pixels of one of them in an image form a
            single segment.
        of: The quality: ``"segmentation"``, the mean IoU of matched segments; ``"recognition"``,
            the F1 score of segments; or ``"panoptic"``, their product.
        average: ``"macro"``: the mean over categories that have segments. ``None``: an array of the
            categories, sorted, ``nan`` for those without segments.
        unknown: How to treat predicted pixels of other categories: ``"raise"``, or count them as
            ``"void"``. True pixels of other categories always count as void.
        predicted_void: How to treat pixels of a true segment that are predicted as void.
            ``"missed"``: they are part of the union, and a true segment without a match is missed,
            as in panopticapi, the official scorer. ``"ignored"``: they do not count, and a true
            segment with more than half of its pixels on them is not missed, as in torchmetrics; a
            model then gains by leaving out pixels it is unsure of.
        nan_policy: ``"raise"``, or ``"omit"``: images with a missing value are left out.
    """

    higher_is_better = True
    family = IMAGES

    things: tuple[int, ...]
    stuffs: tuple[int, ...] = ()
    of: Literal["panoptic", "segmentation", "recognition"] = "panoptic"
    average: Literal["macro"] | NoAverage = "macro"
    unknown: Literal["raise", "void"] = "raise"
    predicted_void: Literal["missed", "ignored"] = "missed"
    nan_policy: NanPolicy = "raise"

    def check_parameters(self) -> None:
        """Check the categories."""
        words = "distinct categories, integers of at least 0"
        for name in ("things", "stuffs"):
            whole = all(type(each) is int and 0 <= each < 1 << 53 for each in getattr(self, name))
            require(self, name, whole, words)
        categories = [*self.things, *self.stuffs]
        require(
            self,
            "things",
            0 < len({*categories}) == len(categories),
            f"{words}, that are not in stuffs",
        )

    @property
    @abstractmethod
    def _loose(self) -> bool:
        """Whether any overlap counts as a match for stuff."""

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of segments; the order of categories makes no difference."""
        counts = SegmentCounts(
            things=tuple(sorted(self.things)),
            stuffs=tuple(sorted(self.stuffs)),
            void=self.unknown == "void",
            lenient=self.predicted_void == "ignored",
            whole=self._loose,
            nan_policy=self.nan_policy,
        )
        return (counts,)

    def update(self, y_true: ArrayLike, y_pred: ArrayLike, *, counts: ArrayLike = None) -> Self:
        """Add a batch of images.

        The last axis of a map is (category, instance). A three-dimensional array is read as n
        images of m pixels, with a warning, as it may be meant as a single map (H, W, 2).

        Args:
            y_true: The true maps, (n, H, W, 2), or n lists (m, 2) of pixels.
            y_pred: The predicted maps, of the same shapes.
            counts: Must be ``None``: a row is an image.

        Raises:
            InvalidBatchError: A pixel is not two non-negative integers, two maps differ in shape,
                or a predicted category is unknown; the state is unchanged.
        """
        shape = tuple(getattr(y_true, "shape", ()))
        if len(shape) == 3 and shape[0] > 1:
            warnings.warn(
                f"y_true has shape {shape}, read as {shape[0]:,} images of {shape[1]:,} pixels "
                "each: a map of one image comes as y_true[None]; list(y_true) says that these are "
                "images",
                stacklevel=2,
            )
        return self.feed({"y_true": y_true, "y_pred": y_pred, "counts": counts})

    def readout(self, held: SegmentCounts) -> float | LabelledArray:
        """Return the quality, averaged as configured."""
        labels = sorted({*self.things, *self.stuffs})
        values = np.full(len(labels), math.nan)
        seen = held.held.labels
        for row, (label, (found, wrong, missed)) in enumerate(
            zip(seen.tolist(), held.counts(), strict=True)
        ):
            overlap = float(held.overlap(row) / found) if found else 0.0
            share = found / (found + (wrong + missed) / 2)
            quality = {"segmentation": overlap, "recognition": share, "panoptic": overlap * share}
            values[labels.index(label)] = quality[self.of]
        if self.average is None:
            return LabelledArray.of(values, labels)
        defined = values[~np.isnan(values)]
        return float(defined.mean()) if defined.size else math.nan

    def _lacking(self, *_: object) -> str:
        return f"there are no segments of {'a' if self.average is None else 'any'} category"


class PanopticQuality(PanopticMetric[NoAverage]):
    """Panoptic quality (PQ): segmentation quality times recognition quality.

    Formula: mean_k (Σ IoU_k / TP_k) (TP_k / (TP_k + FP_k / 2 + FN_k / 2)), with TP_k matched
    segments of category k, FP_k unmatched predicted and FN_k unmatched true ones, and IoU_k the
    intersections over union of matched segments.

    A true and a predicted segment of the same image and category match if their intersection over
    union is above 0.5.

    Parameters are those of `PanopticMetric`.

    Memory and cost: about 60 bytes per category; about 0.25 µs per pixel if neighbouring pixels are
    mostly equal.

    Reference: Kirillov et al., "Panoptic segmentation", CVPR 2019; ``panopticapi``, without crowds;
    with ``predicted_void="ignored"``, ``torchmetrics.detection.PanopticQuality``, which computes
    overlaps in 32 bits.

    Example:
        >>> import streammetrics as sm
        >>> true = [[[1, 0], [1, 0], [7, 0], [7, 0]]]
        >>> pred = [[[1, 5], [1, 5], [1, 5], [7, 0]]]
        >>> sm.PanopticQuality(things=(1,), stuffs=(7,)).update(true, pred).compute()
        0.3333333333333333
    """

    _loose = False
    value_range = (0.0, 1.0)


class ModifiedPanopticQuality(PanopticMetric[NoAverage]):
    """Modified panoptic quality (PQ†): for stuff any overlap counts, even below 0.5.

    Formula: mean_k q_k, with q_k as in `PanopticQuality` for things, and Σ IoU_k / N_k over the N_k
    true segments for stuff.

    Parameters are those of `PanopticMetric`.

    Memory and cost: about 60 bytes per category; about 0.25 µs per pixel if neighbouring pixels are
    mostly equal.

    Reference: Porzi et al., "Seamless scene segmentation", CVPR 2019; with
    ``predicted_void="ignored"``, ``torchmetrics.detection.ModifiedPanopticQuality``, which computes
    overlaps in 32 bits.

    Example:
        >>> import streammetrics as sm
        >>> true = [[[1, 0], [1, 0], [7, 0], [7, 0]]]
        >>> pred = [[[1, 5], [1, 5], [1, 5], [7, 0]]]
        >>> sm.ModifiedPanopticQuality(things=(1,), stuffs=(7,)).update(true, pred).compute()
        0.5833333333333333
    """

    _loose = True
    value_range = (0.0, 1.0)
