"""How sure are metrics of labels: shares (`shares`), all others by how each cell moves them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.confidence import (
    Asked,
    ConfidenceInterval,
    not_anytime,
    rule_of,
    unsure,
    without,
)
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.inference.distributions import normal_quantile
from streammetrics.inference.influence import influence, standard_error
from streammetrics.inference.limits import clopper_pearson, limits
from streammetrics.inference.shares import parts_of, share, share_rows
from streammetrics.metrics.families import Family

if TYPE_CHECKING:
    from streammetrics.core.errors import NoConfidenceError
    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Floats
    from streammetrics.metrics.classification.averaged import AveragedMetric
    from streammetrics.metrics.classification.base import ContingencyMetric
    from streammetrics.metrics.classification.overall import Accuracy, CohenKappa, ZeroOneLoss
    from streammetrics.metrics.classification.reports import ConfusionMatrix
    from streammetrics.metrics.classification.topk import TopKAccuracy
    from streammetrics.metrics.classification.view import Confusion
    from streammetrics.statistics.tables.contingency import ContingencyTable
    from streammetrics.statistics.tables.threshold import ThresholdTable
    from streammetrics.statistics.tables.topk import TopKHits

JACKKNIFE = "infinitesimal jackknife"
_GROWTH = 1e-3  # relative: numeric slopes of a value that does not grow cancel to far less


def tables_of(
    metric: ContingencyMetric[object], asked: Asked, table: Any
) -> tuple[Confusion, Confusion]:
    """Return the table of amounts, and that of the sums of squared weights.

    Where squares could be too large or too small, in a unit of which there are some in all.
    """
    amounts: Confusion = metric._confusion(table)
    squares = table.squares()
    if not isinstance(squares, ExactSum):
        if squares is None or amounts.total[0] != asked.n_rows:
            raise no_squares(metric)
        return amounts, amounts
    if asked.anytime:
        raise counts_rows(metric)
    weights = table.cells().amount
    unit = weights.exponent // 32 + weights.digits.shape[1]
    unit = 0 if abs(unit) < _FAR else unit
    pair = [_in_units(weights, unit), _in_units(squares, 2 * unit)]
    one, two = map(amounts.holding, pair)
    return one, two


_FAR = 12  # a square of sums below 2**384 is a float64


def _in_units(amount: ExactSum, of: int) -> ExactSum:
    """Return amounts in units of 2**32 to a power."""
    return ExactSum(amount.shape, amount.digits, amount.exponent - 32 * of)


def no_squares(metric: Metric[object]) -> NoConfidenceError:
    """Return the error of a state of rows with weights that does not hold their squares."""
    return without(
        metric,
        "its state holds sums of weights and not of their squares, which say how many rows they "
        "are worth: those of 0.1.0 do not, nor do histograms of weights so far from 1 that a "
        "square is no float64; rescale such weights",
    )


def counts_rows(metric: Metric[object]) -> NoConfidenceError:
    """Return the error of limits at all times of rows with weights."""
    return without(metric, "limits at all times count rows, and these have weights")


@rule_of(Family.TABLE)
def of_labels(metric: ContingencyMetric, asked: Asked, table: object) -> ConfidenceInterval:
    """Any readout of a table of labels, a user's own too: the infinitesimal jackknife."""
    amounts, squares = tables_of(metric, asked, table)
    value = metric._of_table(amounts)
    return general(metric, asked, value, amounts, squares)


def general(
    metric: ContingencyMetric, asked: Asked, value: object, amounts: Confusion, squares: Confusion
) -> ConfidenceInterval:
    """Return the interval of a readout by how it moves with every cell."""
    if asked.anytime:
        raise not_anytime(metric)
    ends = metric.value_range or UNBOUNDED
    if not amounts.total[0]:
        return ConfidenceInterval(value, value, asked.level, JACKKNIFE)
    slopes = influence(metric, amounts, metric.read)
    if _grows(value, slopes, amounts.amount):
        raise without(metric, "it grows with the rows and estimates nothing of a population")
    error = standard_error(slopes, squares.amount)
    low, high = limits(value, error, normal_quantile(1 - asked.tail), *ends)
    method = f"{JACKKNIFE}, {_SCALES.get(ends, 'logit')}"
    if isinstance(value, float):
        if math.isnan(low) and value in ends and math.isfinite(ends[1]):
            return at_end(value, ends, smallest(amounts, squares), asked)
        return ConfidenceInterval(low, high, asked.level, method)
    return ConfidenceInterval(_like(value, low), _like(value, high), asked.level, method)


def _grows(value: object, slopes: Floats, amounts: Floats) -> bool:
    """Whether a value grows where all amounts do, by Euler's theorem on homogeneous functions."""
    drift = np.abs(np.tensordot(amounts, slopes, axes=1))
    sizes = np.tensordot(amounts, np.abs(slopes), axes=1), np.abs(np.asarray(value, np.float64))
    return bool((drift > _GROWTH * np.fmax(*sizes)).any())


def smallest(amounts: Confusion, squares: Confusion) -> float:
    """Return how many rows of weight one the smallest class is worth: (Σ w)² / Σ w².

    None where no row is of a class that counts.
    """
    actual, of_squares = (table.actual[0, : table.kept] for table in (amounts, squares))
    seen = actual > 0
    return float(np.min(actual[seen] ** 2 / of_squares[seen])) if seen.any() else 0.0


UNBOUNDED = (-math.inf, math.inf)
_SCALES = {
    (-1.0, 1.0): "Fisher's z",
    (0.0, math.inf): "logarithm",
    UNBOUNDED: "normal",
}


def at_end(
    value: float, ends: tuple[float, float], n: float, asked: Asked, of: str = "the smallest class"
) -> ConfidenceInterval:
    """Return limits of a value that is as good, or as bad, as can be, and so does not vary.

    Exact binomial ones of n rows that all are right, or all wrong.
    """
    low, high = ends
    share = (value - low) / (high - low)
    sides = clopper_pearson(share * n, n, asked.tail)
    method = f"Clopper-Pearson of the {n:g} rows of {of}: no row of these differs"
    below, above = (low + (high - low) * side for side in sides)
    return ConfidenceInterval(below, above, asked.level, method)


def _like(value: object, side: Any) -> Any:
    return LabelledArray(side, value.axes) if isinstance(value, LabelledArray) else float(side)


def of_classes(metric: AveragedMetric, asked: Asked, table: object) -> ConfidenceInterval:
    """Quotients of counts by class: a share where one class or none is averaged, else as any."""
    amounts, squares = tables_of(metric, asked, table)
    interval = share_of(metric, asked, amounts, squares)
    value = metric._of_table(amounts)
    if interval is None:
        return general(metric, asked, value, amounts, squares)
    low, high = (side[0] for side in interval)
    return ConfidenceInterval(_like(value, low), _like(value, high), asked.level, interval.method)


def share_of(
    metric: Any, asked: Asked, amounts: Confusion, squares: Confusion
) -> ConfidenceInterval | None:
    """Return the limits of each group where the value is a share of rows, else ``None``."""
    rows, of_squares = share_rows(metric, amounts, 1), share_rows(metric, squares, 2)
    if rows is None or of_squares is None:
        return None
    parts = parts_of(metric)
    return share(metric, asked, rows, of_squares, 1.0 if parts is None else parts[2])


@rule_of(Family.HITS, Family.MISSES)
def of_accuracy(
    metric: Accuracy | ZeroOneLoss,
    asked: Asked,
    table: ContingencyTable | ThresholdTable,
) -> ConfidenceInterval:
    """The share of rows predicted right, or wrong."""
    if not metric.normalize:
        raise without(metric, "a sum grows with the rows; normalize=True has the share of them")
    interval = share_of(metric, asked, *tables_of(metric, asked, table))
    assert interval is not None  # of this family
    low, high = interval
    return ConfidenceInterval(float(low[0]), float(high[0]), asked.level, interval.method)


@rule_of(Family.TOP_K)
def of_top_k(metric: TopKAccuracy, asked: Asked, counts: TopKHits) -> ConfidenceInterval:
    """The share of rows whose class is among the first k."""
    if not metric.normalize:
        raise without(metric, "a sum grows with the rows; normalize=True has the share of them")
    hits, total = counts.hits.fraction(), counts.total.fraction()
    of_hits, of_all = counts.hits.squared(), counts.total.squared()
    if of_hits is None or of_all is None:
        raise no_squares(metric)
    weighted = counts.total.weights is not None
    if not weighted and total != asked.n_rows:
        raise no_squares(metric)
    if weighted and asked.anytime:
        raise counts_rows(metric)
    scale = Fraction(2) ** -(total.numerator.bit_length() - total.denominator.bit_length())
    rows = [float(scale * side) for side in (hits, total - hits)]
    squares = [float(scale**2 * each.fraction()) for each in (of_hits, of_all - of_hits)]
    return share(metric, asked, rows, squares)


@rule_of(Family.KAPPA)
def of_kappa(metric: CohenKappa, asked: Asked, table: object) -> ConfidenceInterval:
    """Agreement beyond chance; what disagreement costs is known, so how each cell moves it is."""
    if metric.weights is None:
        return of_labels(metric, asked, table)
    if asked.anytime:
        raise not_anytime(metric)
    amounts, squares = (side.within() for side in tables_of(metric, asked, table))
    value = metric._of_table(amounts)
    if not amounts.total[0]:
        return ConfidenceInterval(value, value, asked.level, JACKKNIFE)
    n, place = float(amounts.total[0]), np.arange(amounts.size, dtype=np.float64)
    cost = np.abs(place[:, None] - place)
    cost = cost if metric.weights == "linear" else cost**2
    actual = amounts.actual[0]
    by_row, by_column = cost @ amounts.predicted[0], actual @ cost
    of_cells = cost[amounts.rows, amounts.columns]
    seen, chance = float(of_cells @ amounts.amount), float(actual @ by_row)
    if not chance:
        return unsure(asked.level, JACKKNIFE)
    moved = by_row[amounts.rows] + by_column[amounts.columns]
    slopes = -(n * of_cells + seen) / chance + seen * n * moved / chance**2
    error = standard_error(slopes, squares.amount)
    low, high = limits(value, error, normal_quantile(1 - asked.tail), -1.0, 1.0)
    if math.isnan(low) and value == 1:
        return at_end(value, (-1.0, 1.0), smallest(amounts, squares), asked)
    return ConfidenceInterval(low, high, asked.level, f"{JACKKNIFE}, Fisher's z")


@rule_of(Family.CONFUSION_MATRIX)
def of_matrix(
    metric: ConfusionMatrix, asked: Asked, table: ContingencyTable | ThresholdTable
) -> ConfidenceInterval:
    """The shares of a matrix; its counts grow with the rows and estimate nothing."""
    if metric.normalize is None:
        raise without(
            metric,
            "its counts grow with the rows; ConfusionMatrix(normalize='true') has shares, which do",
        )
    sides = []
    for whole_table in tables_of(metric, asked, table):  # of weights, and of their squares
        amounts = whole_table.within()
        matrix = np.zeros((amounts.size, amounts.size))
        matrix[amounts.rows, amounts.columns] = amounts.amount
        whole = {
            "true": matrix.sum(axis=1, keepdims=True),
            "pred": matrix.sum(axis=0, keepdims=True),
            "all": matrix.sum(keepdims=True),
        }[metric.normalize]
        sides.append((matrix, whole - matrix))
    interval = share(metric, asked, sides[0], sides[1])
    axes = metric.readout(table).axes
    low, high = (LabelledArray(side, axes) for side in interval)
    return ConfidenceInterval(low, high, interval.level, interval.method)
