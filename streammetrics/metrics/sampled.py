"""Base class of metrics that are computed from a sample of the rows."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.constraints import MaxPoints, Seed
from streammetrics.core.errors import EstimateWarning
from streammetrics.metrics.rowwise import NamedColumns
from streammetrics.statistics.joint import SampledRows

if TYPE_CHECKING:
    from streammetrics.core.feeding.states import State


class SampleMetric(NamedColumns):
    """Base class of metrics of columns that need the rows, of which they keep a limited number.

    A subclass computes the value in `of_sample`; its parameters are the columns. Up to `max_rows`
    distinct rows the value is exact. Beyond that it is computed from a sample: the rows with the
    smallest seeded hash, with the number of times each was seen. It does not depend on the order of
    arrival. `exact` is then False, `bounds` gives the `value_range`, and the first `compute` gives
    an `EstimateWarning`.

    Args:
        max_rows: The largest number of distinct rows to keep.
        seed: The seed of the hash that draws the sample; only states with the same seed merge.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
    """

    _formula = ("readout", "of_sample")
    _reader = "of_sample"
    _weighted = False

    max_rows: MaxPoints = 20_000
    seed: Seed = 0

    @abstractmethod
    def of_sample(self, *columns: Any, **named: Any) -> Any:
        """Return the value of rows, given as columns (n,) in an order without meaning.

        Rows that were seen several times are repeated, up to 67,108,864 rows in all; beyond,
        reading raises a `StreamMetricsError`. There are no weights.
        """

    def statistics(self) -> tuple[SampledRows]:
        """Return an empty sample."""
        read = self._schema(unweighted="metrics of samples")
        return (SampledRows(read=read, max_rows=self.max_rows, seed=self.seed),)

    def readout(self, sample: SampledRows) -> float:
        """Return the value of the sampled rows; ``nan`` without rows."""
        columns = sample.columns()
        return float(np.float64(self.of_sample(*columns))) if columns else math.nan

    def is_exact(self, *statistics: Any) -> bool:
        """Whether the sample holds all rows."""
        (sample,) = statistics
        return bool(sample.complete)

    def _computed(self, state: State, depth: int = 3) -> float:
        value = super()._computed(state, depth + 1)
        if not self.is_exact(*self._chosen(state)) and not self.__dict__.get("_told", False):
            self.__dict__["_told"] = True
            warnings.warn(
                f"{type(self).__name__} is an estimate: more than max_rows={self.max_rows:,} "
                "distinct rows were seen; bounds() gives what is certain",
                EstimateWarning,
                stacklevel=depth,
            )
        return value
