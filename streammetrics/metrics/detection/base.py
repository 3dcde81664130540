"""What metrics of boxes share: inputs, matching parameters and means over classes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.constraints import Between, NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.core.types import Floats
from streammetrics.statistics.detection.boxes import IOUS
from streammetrics.statistics.detection.matching import AREAS
from streammetrics.statistics.detection.schema import BoxFormat  # noqa: TC001 - of a parameter

if TYPE_CHECKING:
    from streammetrics.core.types import ArrayLike, ClassLabel, Ints, Options, Places

_MOST_IOUS = 30  # outcomes of as many thresholds fit 64 bits


class BoxMetric(Metric[float | Floats]):
    """Base of the metrics of boxes found in images, as COCO evaluates them.

    A row is an image. For each class the `max_detections` predicted boxes with the highest scores
    are taken, in descending order of score; each is matched with the unmatched true box of the
    class that it overlaps most, by at least the threshold. Crowd boxes, and boxes outside the
    area, count neither as found nor as missed.

    Values do not depend on the order of images: boxes of different images with the same score are
    counted together, whereas pycocotools takes them in the order of images. For boxes of one image
    with equal scores or overlaps the order in the lists decides, as in pycocotools.

    Args:
        iou: The intersection over union that a match needs, or several of them, over which values
            are averaged. ``None``: COCO's ten, 0.5 to 0.95.
        area: Which boxes count: ``"all"``, or those of up to 32² pixels (``"small"``), from 32²
            to 96² (``"medium"``), or above (``"large"``).
        max_detections: How many predicted boxes per class and image count.
        average: ``"macro"``: the mean over the classes that have true boxes. ``"micro"``: all
            classes are treated as one. ``None``: an array with the value of each class, sorted.
        box_format: The four numbers of a box: its corners (``"xyxy"``); left, top, width and height
            (``"xywh"``); or centre, width and height (``"cxcywh"``).
        nan_policy: ``"raise"``, or ``"omit"``: images with a missing value are left out.
    """

    iou: Annotated[float, Between(0, 1)] | tuple[float, ...] | None = None
    area: Literal["all", "small", "medium", "large"] = "all"
    max_detections: Annotated[int, Between(1, 1 << 30)] = 100
    average: Literal["macro", "micro"] | None = "macro"
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
        if isinstance(self.iou, tuple):
            return tuple(map(float, self.iou))
        return IOUS if self.iou is None else (float(self.iou),)

    @property
    def _matched(self) -> Options:
        """The parameters of the statistic, with all of COCO's thresholds if ours are among them."""
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
        """The position of the area."""
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
    ) -> Self:
        """Add a batch of n images. The boxes of an image are one row, in lists of equal length.

        Args:
            true_boxes: The g true boxes of each image, n lists (g, 4) of numbers; g may be 0.
            true_labels: Their classes, n lists of g integers or strings.
            pred_boxes: The d predicted boxes of each image, n lists (d, 4) of numbers.
            pred_labels: Their classes, n lists of d.
            pred_scores: Their scores, n lists of d.
            true_crowd: Whether a true box is a crowd, n lists of g values of 0 and 1. A crowd may
                be found any number of times, or not at all, and does not count.
            true_areas: The areas that `area` refers to, n lists of g; by default those of the
                boxes. COCO uses those of the masks.

        Raises:
            InvalidBatchError: A box is not four finite numbers, has a negative width or height, or
                lacks a label or a score; the state is unchanged.
        """
        true = {"true_boxes": true_boxes, "true_labels": true_labels, "true_crowd": true_crowd}
        pred = {"pred_boxes": pred_boxes, "pred_labels": pred_labels, "pred_scores": pred_scores}
        return self.feed({**true, "true_areas": true_areas, **pred})

    def _lacking(self, *_: object) -> str:
        none = "there are no true boxes" + (f" of area={self.area!r}" if self.area != "all" else "")
        return f"{none} of a class" if self.average is None else none

    def _averaged(self, labels: list[ClassLabel], values: Floats, truths: Ints) -> float | Floats:
        """Return the average of values (n, T), as configured, over classes with true boxes."""
        has_boxes = truths > 0
        if self.average is None:
            each = np.full(len(labels), math.nan)
            each[has_boxes] = values[has_boxes].mean(axis=1)
            return LabelledArray.of(each, labels)
        return float(values[has_boxes].mean()) if has_boxes.any() else math.nan


def _places(ious: tuple[float, ...]) -> Places | None:
    """Return the positions of thresholds among COCO's, ``None`` if one is not among them."""
    near = np.abs(np.array(ious)[:, None] - np.array(IOUS)) < 1e-9  # 0.9 is 0.8999... there
    return near.argmax(axis=1) if near.any(axis=1).all() else None
