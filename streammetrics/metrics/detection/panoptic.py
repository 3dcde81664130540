"""Panoptic quality: things and stuff of images, found and told apart."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import LabelledArray
from streammetrics.core.types import Floats
from streammetrics.statistics.detection.segments import SegmentCounts

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike

__all__ = ["ModifiedPanopticQuality", "PanopticQuality"]


class PanopticMetric(Metric[float | Floats]):
    """The quality of maps of segments, which are pixels of one category and instance.

    A true and a predicted segment of an image and category match where their intersection over
    union is above 0.5, of which there can only be one; pixels that are void in either map do not
    count, and a segment that is mostly void in the other map is neither missed nor wrongly seen.

    Args:
        things: The categories of which instances are told apart.
        stuffs: Those of which they are not: all pixels of one in an image are a segment.
        of: ``"panoptic"``, the product of the two others: ``"segmentation"``, how far matched
            segments overlap, and ``"recognition"``, the F1 of segments.
        average: ``"macro"``: the mean over categories that have segments. ``None``: an array of the
            categories, sorted, ``nan`` where one has no segments.
        unknown: What predicted pixels of other categories are: ``"raise"``, or ``"void"``, which
            true ones always are.
        nan_policy: ``"raise"``, or ``"omit"``: images with a missing value are left out.
    """

    higher_is_better = True

    things: tuple[int, ...]
    stuffs: tuple[int, ...] = ()
    of: Literal["panoptic", "segmentation", "recognition"] = "panoptic"
    average: Literal["macro"] | None = "macro"
    unknown: Literal["raise", "void"] = "raise"
    nan_policy: NanPolicy = "raise"

    def check_parameters(self) -> None:
        """Check the categories."""
        words = "categories, finite integers from 0 on, none of them twice"
        for name in ("things", "stuffs"):
            whole = all(type(each) is int and 0 <= each < 1 << 53 for each in getattr(self, name))
            require(self, name, whole, words)
        every = [*self.things, *self.stuffs]
        require(self, "things", 0 < len({*every}) == len(every), f"{words}, beside those of stuffs")

    @property
    @abstractmethod
    def _loose(self) -> bool:
        """Whether stuff is judged by any overlap."""

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of segments, whatever the order of the categories."""
        counts = SegmentCounts(
            things=tuple(sorted(self.things)),
            stuffs=tuple(sorted(self.stuffs)),
            void=self.unknown == "void",
            whole=self._loose,
            nan_policy=self.nan_policy,
        )
        return (counts,)

    def update(self, y_true: ArrayLike, y_pred: ArrayLike) -> Self:
        """Take images: true and predicted maps (n, H, W, 2), or n lists of pixels (m, 2) each.

        An array of three dimensions is n images of m pixels; as it may be a single map (H, W, 2)
        that lacks the first one, a warning says so.

        Raises:
            InvalidBatchError: A pixel is not of two whole numbers from 0 on, a map has not as many
                as the other, or a predicted category is not known; nothing has changed.
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
        some = values[~np.isnan(values)]
        return float(some.mean()) if some.size else math.nan


class PanopticQuality(PanopticMetric):
    """Panoptic quality of maps of things and stuff.

    Formula: mean_k (Σ IoU_k / TP_k) (TP_k / (TP_k + FP_k / 2 + FN_k / 2))

    Of each category, TP are matched segments, FP predicted and FN true ones that are not, and IoU
    the intersection over union of matched ones. What matches, see `PanopticMetric`.

    Parameters are those of `PanopticMetric`.

    Memory and cost: about 60 bytes per category; about a quarter of a microsecond per pixel of
    maps whose neighbours are mostly alike.

    Reference: Kirillov et al., "Panoptic segmentation", CVPR 2019;
    ``torchmetrics.detection.PanopticQuality``, whose overlaps have 32 bits.

    Example:
        >>> import streammetrics as sm
        >>> true = [[[1, 0], [1, 0], [7, 0], [7, 0]]]
        >>> pred = [[[1, 5], [1, 5], [1, 5], [7, 0]]]
        >>> sm.PanopticQuality(things=(1,), stuffs=(7,)).update(true, pred).compute()
        0.3333333333333333
    """

    _loose = False


class ModifiedPanopticQuality(PanopticMetric):
    """Panoptic quality of which stuff is judged by its overlap, however small that is.

    Formula: mean_k q_k, with q_k as in `PanopticQuality` for things, Σ IoU_k / N_k for stuff.

    Of stuff all overlaps of true and predicted segments count, over the N true ones.

    Parameters are those of `PanopticMetric`.

    Memory and cost: about 60 bytes per category; about a quarter of a microsecond per pixel of
    maps whose neighbours are mostly alike.

    Reference: Porzi et al., "Seamless scene segmentation", CVPR 2019;
    ``torchmetrics.detection.ModifiedPanopticQuality``, whose overlaps have 32 bits.

    Example:
        >>> import streammetrics as sm
        >>> true = [[[1, 0], [1, 0], [7, 0], [7, 0]]]
        >>> pred = [[[1, 5], [1, 5], [1, 5], [7, 0]]]
        >>> sm.ModifiedPanopticQuality(things=(1,), stuffs=(7,)).update(true, pred).compute()
        0.5833333333333333
    """

    _loose = True
