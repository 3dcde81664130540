"""Semantic segmentation: how well the classes of true and predicted masks overlap."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from streammetrics.core.columns.batch import MAX_NDIM
from streammetrics.core.columns.conversion import as_column
from streammetrics.core.columns.labels import Label, one_kind
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.core.types import Array, Floats
from streammetrics.metrics.classification.view import Confusion
from streammetrics.metrics.families import PIXELS
from streammetrics.statistics.tables.contingency import ContingencyTable

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike, Options

__all__ = ["Dice", "MeanIoU"]


class MaskMetric(Metric[float | Floats]):
    """Base of the metrics of overlap of each class's pixels, over all images together.

    Args:
        average: ``"macro"``: the mean over the classes that have pixels, true or predicted.
            ``"weighted"``: the mean weighted by true pixels. ``"micro"``: the pixels of all classes
            are added first. ``None``: an array of the classes, ``nan`` for those without pixels.
        labels: The classes and their order; others raise. ``None``: those seen, sorted.
        background: A class that is left out of the average; its pixels count for other classes.
        ignore_index: Pixels with this true class are left out.
        nan_policy: ``"raise"``, or ``"omit"``: pixels with a missing value are left out.

    Memory and cost: 16 bytes per pair of classes that occurs; a few ns per pixel.
    """

    _formula = ("readout", "_parts")
    family = PIXELS

    average: Literal["macro", "weighted", "micro"] | None = "macro"
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
        self, y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike = None
    ) -> Self:
        """Add a batch of label maps, in which every pixel is a row.

        Args:
            y_true: The true classes, of any shape such as (n, H, W).
            y_pred: The predicted classes, of the same shape, or scores (n, K, H, W) of K classes,
                whose largest (the first of equal ones) gives the class.
            sample_weight: Non-negative weights, of the shape of `y_true`.

        Raises:
            InvalidBatchError: The shapes do not fit, or a class is not among `labels`; the state is
                unchanged.
        """
        _warn_of_one_hot(y_true, y_pred)
        return self.feed({"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight})

    def readout(self, table: ContingencyTable) -> float | Floats:
        """Return the overlap as configured."""
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


class MeanIoU(MaskMetric):
    """Mean intersection over union (mIoU) of the classes of masks.

    Formula: mean_k (TP_k / (TP_k + FP_k + FN_k)), with k the classes that have pixels.

    The pixels of all images are counted together, as in the benchmarks of VOC and Cityscapes. For a
    mean over images use `Slices` by image.

    Parameters are those of `MaskMetric`.

    Reference: Everingham et al., "The Pascal visual object classes challenge", IJCV 88 (2010);
    ``sklearn.metrics.jaccard_score``; ``torchmetrics.segmentation.MeanIoU``, a mean over images.

    Example:
        >>> import streammetrics as sm
        >>> sm.MeanIoU().update([[0, 0], [1, 1]], [[0, 1], [1, 1]]).compute()
        0.5833333333333333
    """

    higher_is_better = True

    def _parts(self, both: Floats, true: Floats, pred: Floats) -> tuple[Floats, Floats]:
        """Return intersections and unions."""
        return both, true + pred - both


class Dice(MaskMetric):
    """Dice coefficient of the classes of masks.

    Formula: mean_k (2 TP_k / (2 TP_k + FP_k + FN_k)), with k the classes that have pixels.

    The pixels of all images are counted together. For a mean over images use `Slices` by image.

    Parameters are those of `MaskMetric`.

    Reference: Dice, Ecology 26 (1945); ``sklearn.metrics.f1_score``;
    ``torchmetrics.segmentation.DiceScore(aggregation_level="global")``.

    Example:
        >>> import streammetrics as sm
        >>> sm.Dice(background=0).update([[0, 0], [1, 1]], [[0, 1], [1, 1]]).compute()
        0.8
    """

    higher_is_better = True

    def _parts(self, both: Floats, true: Floats, pred: Floats) -> tuple[Floats, Floats]:
        """Return twice the intersections, and the sums of true and predicted sizes."""
        return 2 * both, true + pred


def _warn_of_one_hot(true: Any, pred: Any) -> None:
    """Warn where both maps are one-hot (n, K, H, W), as they are read as masks of 0 and 1."""
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
