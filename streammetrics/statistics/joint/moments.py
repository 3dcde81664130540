"""Exact second moments of what each row adds to several models' sums."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.long import LongNumbers, nearest
from streammetrics.core.counting import extent
from streammetrics.core.errors import StateFormatError, StreamMetricsError, an
from streammetrics.core.fields.sums import Sum
from streammetrics.statistics.joint.base import JointStatistic
from streammetrics.statistics.joint.schema import Bring
from streammetrics.statistics.scores.losses import ProbabilityLossSum
from streammetrics.statistics.sums.formulas import squared_losses
from streammetrics.statistics.sums.losses import LossSum
from streammetrics.statistics.sums.moments import Moments
from streammetrics.statistics.tables.topk import TopKHits

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, Columns, Floats, ReadColumn


_TERMS = 1 << 14  # rows whose terms are computed at a time, so that they stay in the cache
_LARGEST = float(np.finfo(np.float64).max)


class JointMoments(JointStatistic):
    """Σ w, Σ w·t_i, and Σ of all products of w, w·t_1, ..., w·t_m, for model i's term of a row t_i.

    From them the variance of any difference of weighted means of the terms follows exactly. The
    terms times the weight are rounded row by row. A few hundred bytes.
    """

    models: int = 2

    weight = Sum()
    totals = Sum(lambda of: (of.models,))
    products = Sum(lambda of: (len(of._pairs),))

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return [(i, j) for i in range(self.models + 1) for j in range(i, self.models + 1)]

    def update(self, *terms: Floats, weight: Floats | None) -> None:
        """Add the products of the rows."""
        if weight is None:
            first, second = ExactSum.moments([_finite(term) for term in terms])
            sums = {(i + 1, j + 1): product for (i, j), product in second.items()}
            sums |= {(0, i): total for i, total in enumerate(first, 1)}
            first = [ExactSum.counts(np.array(len(terms[0]))), *first]
            sums[0, 0] = first[0]
        else:
            with np.errstate(over="ignore", under="ignore"):
                columns = [weight, *(_finite(term * weight) for term in terms)]
            first, sums = ExactSum.moments(columns)
        self.weight = self.weight + first[0]
        self.totals = self.totals + ExactSum.row_of(first[1:])
        self.products = self.products + ExactSum.row_of([sums[pair] for pair in self._pairs])

    def product(self, i: int, j: int) -> ExactSum:
        """Return Σ w² t_i t_j, where model 0 is the weight itself: its term is 1."""
        return self.products[self._pairs.index((min(i, j), max(i, j)))]

    def check_fields(self) -> None:
        """Check that the sums of squares, and of weights, are not negative."""
        squares = [self._pairs.index((i, i)) for i in range(self.models + 1)]
        products = np.asarray(self.products.to_float())
        if self.weight.fraction() < 0 or bool((products[squares] < 0).any()):
            raise StateFormatError("a sum of squares, or of weights, is negative")


def _finite(terms: Floats) -> Floats:
    """Return terms of which none is infinite: those of the schema are finite, but for products."""
    low, high = extent(terms)
    return terms if low >= -_LARGEST and high <= _LARGEST else np.clip(terms, -_LARGEST, _LARGEST)


def terms_of(statistic: Statistic) -> Bring:
    """Return how the columns of models become what each row adds to their sums."""
    return Bring(("terms", statistic._key), _Terms(statistic))


class _Terms:
    """Makes a row's term of its columns, for each model."""

    def __init__(self, statistic: Statistic) -> None:
        self.statistic = statistic

    def __call__(self, columns: list[Columns]) -> Columns:
        return tuple(map(self._of_model, columns))

    def _of_model(self, columns: Columns) -> Floats:
        terms = np.empty(len(columns[0]))
        for start in range(0, len(terms), _TERMS):
            rows = slice(start, start + _TERMS)
            terms[rows] = row_terms(self.statistic, *[column[rows] for column in columns])
        return terms


@singledispatch
def row_terms(statistic: Statistic, *columns: object) -> Floats:  # noqa: ARG001 - of any statistic
    """Return what each row adds to the sum of a statistic, the mean over outputs of several."""
    raise StreamMetricsError(f"{an(type(statistic).__name__)} is no sum over rows")


@row_terms.register(LossSum)
def _(statistic: LossSum, y: Floats, p: Floats) -> Floats:
    with np.errstate(all="ignore"):
        try:
            found = statistic.terms(y, p)
        except FloatingPointError:  # of a square beyond the normal floats
            found = squared_losses(statistic.loss, y, p)
    return _one(nearest(found))


@row_terms.register(ProbabilityLossSum)
def _(statistic: ProbabilityLossSum, codes: Array, scores: Floats) -> Floats:
    return statistic.losses(codes, scores)


@row_terms.register(TopKHits)
def _(statistic: TopKHits, truth: ReadColumn, scores: ReadColumn) -> Floats:
    return statistic.hit(truth, scores).astype(np.float64)


@row_terms.register(Moments)
def _(statistic: Moments, *columns: ReadColumn) -> Floats:
    if statistic.of == "pair":
        y, p = columns
        return _one(p - y)
    (values,) = columns
    return _one(values.head if isinstance(values, LongNumbers) else values)


def _one(terms: Floats) -> Floats:
    """Return a number a row."""
    return terms if terms.ndim == 1 else terms.sum(axis=1) / terms.shape[1]
