"""What metrics of boxes share: their rows, images of lists of boxes, and means over classes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.constraints import Between, NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import LabelledArray
from streammetrics.core.types import Floats
from streammetrics.statistics.detection.boxes import IOUS
from streammetrics.statistics.detection.matching import AREAS
from streammetrics.statistics.detection.schema import BoxFormat  # noqa: TC001 - of a parameter

if TYPE_CHECKING:
    from streammetrics.core.types import ArrayLike, Ints, Places

_MOST_IOUS = 30  # whose outcomes fit 64 bits


class BoxMetric(Metric[float | Floats]):
    """A metric of the boxes found in images, as COCO evaluates them.

    A row is an image. Its predicted boxes of a class are taken by score from above, the best
    `max_detections` of them; each is matched with the true box of this class that it overlaps
    most, by at least the threshold, and that is still free. Boxes of a crowd, and those of another
    area, count neither when they are found nor when they are missed.

    A value does not depend on the order of images: boxes of different images that have one score
    come in or stay out together, where pycocotools takes them in the order of the images. Where
    boxes of one image have the same score or overlap alike, their order in the lists decides, as
    it does there.

    Args:
        iou: The intersection over union that a match needs, or several, over which the mean is
            taken. ``None``: COCO's ten, 0.5 to 0.95.
        area: The boxes that count: ``"all"``, or those of up to 32² pixels (``"small"``), from 32²
            to 96² (``"medium"``) or from there on (``"large"``).
        max_detections: How many predicted boxes of a class count in an image.
        average: ``"macro"``: the mean of the classes that have true boxes. ``"micro"``: all boxes
            are of one class. ``None``: an array of the classes, sorted.
        box_format: What the four numbers of a box are: two corners, ``"xyxy"``, left, top, width
            and height, ``"xywh"``, or the centre, width and height, ``"cxcywh"``.
        nan_policy: ``"raise"``, or ``"omit"``: images with a missing value are left out.
    """

    higher_is_better = True

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
        """The thresholds that are asked for."""
        if isinstance(self.iou, tuple):
            return tuple(map(float, self.iou))
        return IOUS if self.iou is None else (float(self.iou),)

    @property
    def _matched(self) -> dict[str, Any]:
        """The parameters of the statistic: COCO's thresholds where those asked for are such."""
        return {
            "ious": IOUS if _places(self._ious) is not None else self._ious,
            "box_format": self.box_format,
            "max_detections": self.max_detections,
            "classes": self.average != "micro",
            "nan_policy": self.nan_policy,
        }

    @property
    def _columns(self) -> Places:
        """The places of the thresholds among those of the statistic."""
        places = _places(self._ious)
        return np.arange(len(self._ious)) if places is None else places

    @property
    def _place(self) -> int:
        """The place of the area."""
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
        """Take images: all boxes of an image are in one row, lists of as many things each.

        Args:
            true_boxes: The true boxes of each image, n lists of (g, 4) numbers; lists may be empty.
            true_labels: Their classes, n lists of g integers or strings.
            pred_boxes: The predicted boxes, n lists of (d, 4) numbers.
            pred_labels: Their classes, n lists of d.
            pred_scores: Their scores, n lists of d.
            true_crowd: Whether a true box is of a crowd, n lists of g of 0 and 1: it may be found
                any number of times, or not, and then does not count.
            true_areas: The areas by which true boxes are small or large, n lists of g; by default
                those of the boxes, COCO has those of the masks.

        Raises:
            InvalidBatchError: A box is not of four finite numbers, has a negative width or height,
                or lacks a label or score; nothing has changed.
        """
        true = {"true_boxes": true_boxes, "true_labels": true_labels, "true_crowd": true_crowd}
        pred = {"pred_boxes": pred_boxes, "pred_labels": pred_labels, "pred_scores": pred_scores}
        return self.feed({**true, "true_areas": true_areas, **pred})

    def _averaged(self, labels: list[Any], values: Floats, truths: Ints) -> Any:
        """Return the values (n, T) of classes as configured; those without true boxes have none."""
        some = truths > 0
        if self.average is None:
            each = np.full(len(labels), math.nan)
            each[some] = values[some].mean(axis=1)
            return LabelledArray.of(each, labels)
        return float(values[some].mean()) if some.any() else math.nan


def _places(ious: tuple[float, ...]) -> Places | None:
    """Return the places of thresholds among COCO's, `None` where one is not."""
    near = np.abs(np.array(ious)[:, None] - np.array(IOUS)) < 1e-9  # 0.9 is 0.8999... there
    return near.argmax(axis=1) if near.any(axis=1).all() else None
