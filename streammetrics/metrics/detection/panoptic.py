"""Panoptic segmentation: the quality of segments of things and stuff."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.core.types import Floats
from streammetrics.metrics.families import IMAGES
from streammetrics.statistics.detection.segments import SegmentCounts

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike

__all__ = ["ModifiedPanopticQuality", "PanopticQuality"]


class PanopticMetric(Metric[float | Floats]):
    """Base of the metrics of panoptic maps: segments are the pixels of a category and instance.

    A true and a predicted segment of one image and category match if their intersection over union
    is above 0.5, so that each has at most one match. Pixels whose true category is void do not
    count, and a predicted segment of which more than half is on them is not false.

    Args:
        things: The categories with separate instances.
        stuffs: The categories without: all pixels of one in an image are a single segment.
        of: The quality: ``"segmentation"``, the mean IoU of matched segments; ``"recognition"``,
            the F1 score of segments; or ``"panoptic"``, their product.
        average: ``"macro"``: the mean over categories that have segments. ``None``: an array of the
            categories, sorted, ``nan`` for those without segments.
        unknown: Predicted pixels of other categories: ``"raise"``, or count them as ``"void"``, as
            true pixels of other categories always are.
        predicted_void: Pixels of a true segment that are predicted as void: ``"missed"``: they are
            part of the union, and a true segment without a match is missed (panopticapi, the
            official scorer); ``"ignored"``: they do not count, and a true segment of which more
            than half is on them is not missed (torchmetrics), so that a model gains by leaving out
            what it is not sure of.
        nan_policy: ``"raise"``, or ``"omit"``: images with a missing value are left out.
    """

    higher_is_better = True
    family = IMAGES

    things: tuple[int, ...]
    stuffs: tuple[int, ...] = ()
    of: Literal["panoptic", "segmentation", "recognition"] = "panoptic"
    average: Literal["macro"] | None = "macro"
    unknown: Literal["raise", "void"] = "raise"
    predicted_void: Literal["missed", "ignored"] = "missed"
    nan_policy: NanPolicy = "raise"

    def check_parameters(self) -> None:
        """Check the categories."""
        words = "categories, finite integers from 0 on, none of them twice"
        for name in ("things", "stuffs"):
            whole = all(type(each) is int and 0 <= each < 1 << 53 for each in getattr(self, name))
            require(self, name, whole, words)
        categories = [*self.things, *self.stuffs]
        require(
            self,
            "things",
            0 < len({*categories}) == len(categories),
            f"{words}, beside those of stuffs",
        )

    @property
    @abstractmethod
    def _loose(self) -> bool:
        """Whether any overlap counts for stuff."""

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of segments; categories in any order give the same statistic."""
        counts = SegmentCounts(
            things=tuple(sorted(self.things)),
            stuffs=tuple(sorted(self.stuffs)),
            void=self.unknown == "void",
            lenient=self.predicted_void == "ignored",
            whole=self._loose,
            nan_policy=self.nan_policy,
        )
        return (counts,)

    def update(self, y_true: ArrayLike, y_pred: ArrayLike) -> Self:
        """Add a batch of images.

        The last axis of a map is (category, instance). An array of three dimensions is read as n
        images of m pixels; as a single map (H, W, 2) may be meant, a warning says so.

        Args:
            y_true: The true maps, (n, H, W, 2), or n lists (m, 2) of pixels.
            y_pred: The predicted maps, of the same shapes.

        Raises:
            InvalidBatchError: A pixel is not two whole numbers of at least 0, two maps differ in
                shape, or a predicted category is unknown; the state is unchanged.
        """
        shape = tuple(getattr(y_true, "shape", ()))
        if len(shape) == 3 and shape[0] > 1:
            warnings.warn(
                f"y_true has shape {shape}, read as {shape[0]:,} images of {shape[1]:,} pixels "
                "each: a map of one image comes as y_true[None]; list(y_true) says that these are "
                "images",
                stacklevel=2,
            )
        return self.feed({"y_true": y_true, "y_pred": y_pred})

    def readout(self, held: SegmentCounts) -> float | Floats:
        """Return the quality as configured."""
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


class PanopticQuality(PanopticMetric):
    """Panoptic quality (PQ): segmentation quality times recognition quality.

    Formula: mean_k (Σ IoU_k / TP_k) (TP_k / (TP_k + FP_k / 2 + FN_k / 2)), with TP_k matched
    segments of category k, FP_k unmatched predicted and FN_k unmatched true ones, and IoU_k the
    intersections over union of matched segments.

    `PanopticMetric` says which segments match.

    Parameters are those of `PanopticMetric`.

    Memory and cost: about 60 bytes per category; about 0.25 µs per pixel, for maps in which
    neighbouring pixels are mostly equal.

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


class ModifiedPanopticQuality(PanopticMetric):
    """Modified panoptic quality (PQ†): for stuff any overlap counts, also below 0.5.

    Formula: mean_k q_k, with q_k as in `PanopticQuality` for things, and Σ IoU_k / N_k over the N_k
    true segments for stuff.

    Parameters are those of `PanopticMetric`.

    Memory and cost: about 60 bytes per category; about 0.25 µs per pixel, for maps in which
    neighbouring pixels are mostly equal.

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
