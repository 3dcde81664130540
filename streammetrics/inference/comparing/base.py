"""What a comparison finds for one metric and two models, and what every way to find it shares."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from streammetrics.inference.distributions import (
    normal_quantile,
    normal_tail,
    t_quantile,
    t_tail,
)
from streammetrics.statistics.joint.schema import ModelSchema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.columns.schema import Schema
    from streammetrics.core.statistic import Statistic
    from streammetrics.statistics.joint.schema import Bring


LEAST = 1e-300  # p is not 0, where it is too small for a float


class Estimate(NamedTuple):
    """A difference of two values, its limits, and how probable one as large is by chance."""

    difference: float
    low: float
    high: float
    p: float
    test: str


class Joint(NamedTuple):
    """A joint statistic that a metric needs: of which models, and how it is fed."""

    statistic: Statistic
    models: tuple[str, ...]
    of: Schema  # as the metric reads the rows of one model
    bring: Bring

    def schema(self, models: Sequence[str]) -> ModelSchema:
        """Return how it reads the rows of all models."""
        return ModelSchema.over(self.of, models, self.models, self.bring)


class Side(NamedTuple):
    """A model, its metric as it is now, its value, and its place among the models."""

    model: str
    metric: Any
    value: float
    place: int


class PairedTest(ABC):
    """Metrics that are compared in one way."""

    @abstractmethod
    def joints(self, models: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[Joint]:
        """Return the joint statistics that these pairs of models need."""

    def n_rows(self, one: Side) -> int | None:
        """Return how many rows both values are of: one that a model leaves out, all leave out."""
        return int(one.metric.n_rows)

    @abstractmethod
    def estimate(self, one: Side, other: Side, joint: Statistic | None, level: float) -> Estimate:
        """Return how two models differ."""


def estimated(difference: float, variance: float, level: float, test: str, df: float) -> Estimate:
    """Return the estimate of a difference by its variance, with Student's t of `df` or normal."""
    normal = math.isinf(df)
    if not variance > 0:  # or nan
        certain = variance == 0 and difference == 0
        p = 1.0 if certain else math.nan
        side = difference if certain else math.nan
        return Estimate(difference, side, side, p, test)
    error = math.sqrt(variance)
    tail = (1 + level) / 2
    reach = error * (normal_quantile(tail) if normal else t_quantile(tail, df))
    t = abs(difference) / error
    p = min(1.0, max(2 * (normal_tail(t) if normal else t_tail(t, df)), LEAST))
    return Estimate(difference, difference - reach, difference + reach, p, test)
