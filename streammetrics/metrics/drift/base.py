"""What the distances between two samples share: inputs, the histogram and bounds."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Self

from streammetrics.core.columns.labels import Label  # noqa: TC001 - annotations of parameters are read
from streammetrics.core.constraints import Bins, NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import Interval
from streammetrics.metrics.scores.view import staircases
from streammetrics.statistics.scores.histogram import MAX_BINS
from streammetrics.statistics.scores.samples import SampleHistogram

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike
    from streammetrics.metrics.scores.view import Staircase


class SampleDistance(Metric[float]):
    """Base of the distances between two samples, exact up to `max_bins` distinct values.

    Args:
        current: The label in `sample` of the rows of the current sample; those of the reference
            have one other label. ``None``: 1, of labels 0 and 1, -1 and 1, or booleans; any other
            labels raise.
        max_bins: How many distinct values are kept apart. Beyond that neighbouring values share a
            cell: memory stays bounded, and `bounds()` holds wherever in their cells the values are.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
    """

    _formula: ClassVar[tuple[str, ...]] = ("readout", "certain")

    current: Label | None = None
    max_bins: Bins = MAX_BINS
    nan_policy: NanPolicy = "raise"

    def update(
        self, sample: ArrayLike, values: ArrayLike, *, sample_weight: ArrayLike = None
    ) -> Self:
        """Add a batch of rows.

        Args:
            sample: The sample of each row, (n,): two labels.
            values: Numbers, (n,), which may be infinite.
            sample_weight: Non-negative weights, (n,).

        Raises:
            InvalidBatchError: A column has a wrong type or length, a missing value or a third
                label; the state is unchanged.
        """
        return self.feed({"sample": sample, "values": values, "sample_weight": sample_weight})

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the histogram of both samples."""
        return (
            SampleHistogram(
                pos_label=self.current, max_bins=self.max_bins, nan_policy=self.nan_policy
            ),
        )

    @abstractmethod
    def certain(self, stairs: Staircase) -> tuple[float, float, float]:
        """Return a lower bound, the value and an upper bound, allowing for rounding.

        Both samples have rows; the positives are those of the current one.
        """

    def readout(self, samples: SampleHistogram) -> float:
        """Return the distance, ``nan`` without rows of both samples."""
        return self._certain(samples)[1]

    def interval(self, samples: SampleHistogram) -> Interval[float]:
        """Return the range of the distance over all positions of rows within their cells."""
        low, value, high = self._certain(samples)
        return Interval(value, value) if samples.exact else Interval(low, high)

    def _certain(self, samples: SampleHistogram) -> tuple[float, float, float]:
        (stairs,) = staircases(samples)
        if not (stairs.positives and stairs.negatives):
            return math.nan, math.nan, math.nan
        return self.certain(stairs)

    def _lacking(self, samples: SampleHistogram) -> str:
        (stairs,) = staircases(samples)
        return f"there are no rows of the {'reference' if stairs.positives else 'current sample'}"

    def is_exact(self, samples: SampleHistogram) -> bool:
        """Whether every cell holds a single value."""
        return samples.exact
