"""Confidence limits of values read from tables of counts."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.confidence import (
    ConfidenceInterval,
    ConfidenceRequest,
    not_anytime,
    rule_of,
    unsure,
    without,
)
from streammetrics.core.errors import NoConfidenceError
from streammetrics.core.results.values import LabelledArray
from streammetrics.inference.areas import (
    derivatives,
    influence,
    read_at,
    standard_error,
)
from streammetrics.inference.distributions import (
    clopper_pearson,
    limits,
    normal_quantile,
    score_limits,
    share_limits,
    wider_tails,
)
from streammetrics.metrics.arena import StrengthFit
from streammetrics.metrics.classification.base import AveragedMetric, ContingencyMetric, is_table
from streammetrics.metrics.classification.overall import CohenKappa
from streammetrics.metrics.classification.view import Confusion, LabelCounts, RowCounts
from streammetrics.metrics.families import BY, Family
from streammetrics.statistics.tables import (
    ContingencyTable,
    LabelTables,
    RowTables,
    ThresholdTable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.core.statistic import GroupedStates
    from streammetrics.core.types import Floats, Ints, Numeric, Places
    from streammetrics.metrics.arena import BradleyTerry
    from streammetrics.metrics.classification.base import Parts
    from streammetrics.metrics.classification.multilabel import RowsMetric
    from streammetrics.metrics.classification.overall import (
        Accuracy,
        ConfusionMatrix,
        ExpectedCost,
        TopKAccuracy,
        ZeroOneLoss,
    )
    from streammetrics.metrics.scores.losses import BrierScore
    from streammetrics.statistics.matches import MatchTable
    from streammetrics.statistics.probabilities import ProbabilityLossSum
    from streammetrics.statistics.tables import TopKHits

    Counts = Ints


WILSON = "Wilson's score"
SCORE = "score test of a multinomial mean"
ANYTIME = "beta-binomial mixture, at all times at once"


def parts_of(metric: Any) -> Parts | None:
    """Return the counts of a share: successes, and the factors of failures; ``None`` if it is none.

    With odds o, the value is o s / (o s + f).
    """
    if metric.family == Family.SHARE:
        counted: Parts = metric._parts
        return counted
    if metric.family == Family.F_BETA:
        if metric.beta > 1:  # divided by the square of beta, which can overflow
            share = 1 / metric.beta / metric.beta
            return "tp", {"fn": 1.0, "fp": share}, 1 + share
        return "tp", {"fn": metric.beta**2, "fp": 1.0}, 1 + metric.beta**2
    return None


def shares_of(parts: Parts, table: Confusion, power: int) -> tuple[Numeric, Numeric]:
    """Return the successes, and the weighted failures, of each class of each group of a table."""
    success, failures, _ = parts
    failed = sum(share**power * getattr(table, name) for name, share in failures.items())
    return getattr(table, success)[:, : table.kept], np.asarray(failed)[:, : table.kept]


def share_rows(metric: Any, table: Confusion, power: int) -> tuple[Numeric, Numeric] | None:
    """Return successes and failures of each group; ``None`` if the value is not a share.

    They are (groups,), or (groups, classes) with ``average=None``. Factors of failures are raised
    to `power`.
    """
    if metric.family in {Family.HITS, Family.MISSES}:
        sides = table.hits, table.misses
        return sides if metric.family == Family.HITS else sides[::-1]
    parts = parts_of(metric)
    if parts is None or metric.average in {"macro", "weighted"}:
        return None
    success, failures, _ = parts
    if metric.average == "micro":  # each row is a hit, or wrong in two classes
        if "tn" in failures or success == "tn" or table.size > table.kept:
            return None
        sides = table.hits, (table.total - table.hits) * sum(failures.values()) ** power
        return sides if success == "tp" else sides[::-1]
    rows = shares_of(parts, table, power)
    if metric.average == "binary":
        place = metric._positive(table)
        return table.at(rows[0], place), table.at(rows[1], place)
    return rows


def share(
    metric: Metric, asked: ConfidenceRequest, rows: Numeric, squares: object, odds: float = 1.0
) -> ConfidenceInterval:
    """Return the interval of o s / (o s + f), from sums of weights and of squared weights."""
    success, failure = (np.asarray(side, np.float64) for side in rows)
    if asked.anytime and odds not in {1.0, 2.0}:
        raise not_anytime(metric)
    units = units_of((success, failure), squares)
    sides = share_limits(success, failure, asked.tail, units, odds, anytime=asked.anytime)
    return ConfidenceInterval(*sides, asked.level, ANYTIME if asked.anytime else WILSON)


def units_of(rows: Numeric, squares: Numeric) -> tuple[Numeric, Numeric]:
    """Return Σ w² / Σ w of successes and of failures; an empty side takes the value of both."""
    s, f = rows
    s_square, f_square = (np.asarray(side, np.float64) for side in squares)
    both = np.divide(s_square + f_square, s + f, out=np.ones_like(s + f), where=s + f > 0)
    s_unit, f_unit = (
        np.divide(square, side, out=np.array(both), where=side > 0)
        for side, square in ((s, s_square), (f, f_square))
    )
    return s_unit, f_unit


def trials_of(metric: Metric, *statistics: object) -> tuple[float, float]:
    """Return the sum, and the number of rows, of which a metric in [0, 1] is the mean.

    Raises:
        TypeError: The metric is not such a mean.
    """
    if metric.family not in _TRIALS or metric.config.get("normalize") is False:
        raise _no_share(metric)
    return _TRIALS[metric.family](metric, *statistics)


def _no_share(metric: object) -> TypeError:
    return TypeError(
        f"{type(metric).__name__} is not a share of rows: Accuracy, ZeroOneLoss, TopKAccuracy, "
        "BrierScore, and Precision, Recall, Specificity and their kin of one class or with "
        "average='micro' are"
    )


def _of_accuracy(metric: Accuracy, table: ContingencyTable | ThresholdTable) -> tuple[float, float]:
    cells = metric._confusion(table)
    return float(cells.hits[0]), float(cells.total[0])


def _of_zero_one(
    metric: ZeroOneLoss, table: ContingencyTable | ThresholdTable
) -> tuple[float, float]:
    cells = metric._confusion(table)
    return float(cells.misses[0]), float(cells.total[0])


def _of_top_k(metric: TopKAccuracy, counts: TopKHits) -> tuple[float, float]:  # noqa: ARG001 - common signature
    return float(counts.hits.fraction()), float(counts.total.fraction())


def _of_brier(metric: BrierScore, held: ProbabilityLossSum) -> tuple[float, float]:
    total = float(held.rows.fraction())
    return (metric.readout(held) * total if total else 0.0), total


def _of_classes(metric: AveragedMetric[None], table: object) -> tuple[float, float]:
    cells, parts = metric._confusion(table), parts_of(metric)
    if parts is None or parts[2] != 1 or metric.average not in {"binary", "micro"}:
        raise _no_share(metric)
    if not cells.total[0]:
        return 0.0, 0.0
    right, wrong = (side[0] for side in shares_of(parts, cells, 1))
    if metric.average == "binary":
        place = int(metric._positive(cells))
        return float(right[place]), float((right + wrong)[place])
    return float(np.sum(right)), float(np.sum(right + wrong))


_TRIALS: dict[str, Callable[..., tuple[float, float]]] = {
    Family.HITS: _of_accuracy,
    Family.MISSES: _of_zero_one,
    Family.TOP_K: _of_top_k,
    Family.BRIER: _of_brier,
    Family.SHARE: _of_classes,
    Family.F_BETA: _of_classes,
}


JACKKNIFE = "infinitesimal jackknife"
_GROWTH = 1e-3  # relative; a value that does not grow differs by rounding errors


def tables_of(
    metric: ContingencyMetric[object], asked: ConfidenceRequest, table: Any
) -> tuple[Confusion, Confusion]:
    """Return the table of weights, and the table of squared weights.

    Both are rescaled if the squares could overflow or underflow.
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


_FAR = 12  # squares of sums below 2**384 fit float64


def _in_units(amount: ExactSum, of: int) -> ExactSum:
    """Return amounts in units of 2**32 to a power."""
    return ExactSum(amount.shape, amount.digits, amount.exponent - 32 * of)


def no_squares(metric: Metric[object]) -> NoConfidenceError:
    """Return the error for a state with weighted rows but without squared weights."""
    return without(
        metric,
        "its state holds sums of weights and not of their squares, which say how many rows they "
        "are worth: weights, or counts of rows, lie so far from 1 that squares are not summed; "
        "rescale such weights",
    )


def counts_rows(metric: Metric[object]) -> NoConfidenceError:
    """Return the error for anytime-valid limits of weighted rows."""
    return without(metric, "limits at all times count rows, and these have weights")


@rule_of(Family.TABLE, anytime=True)
def of_labels(
    metric: ContingencyMetric, asked: ConfidenceRequest, table: object
) -> ConfidenceInterval:
    """Any value of a table of labels, including user-defined ones: the infinitesimal jackknife."""
    amounts, squares = tables_of(metric, asked, table)
    value = metric._of_table(amounts)
    return general(metric, asked, value, amounts, squares)


def general(
    metric: ContingencyMetric,
    asked: ConfidenceRequest,
    value: object,
    amounts: Confusion,
    squares: Confusion,
) -> ConfidenceInterval:
    """Return the interval of a value from its derivatives with respect to every cell."""
    if asked.anytime:
        raise not_anytime(metric)
    ends = metric.value_range or UNBOUNDED
    if not amounts.total[0]:
        return ConfidenceInterval(value, value, asked.level, JACKKNIFE)
    if isinstance(metric, AveragedMetric) and metric.average is None:
        return _of_each_class(metric, asked, value, amounts, squares)
    slopes = influence(metric, amounts, metric.read)
    if _grows(metric, slopes, amounts):
        raise without(metric, "it grows with the rows and estimates nothing of a population")
    error = standard_error(slopes, squares.amount)
    low, high = limits(value, error, normal_quantile(1 - asked.tail), *ends)
    method = f"{JACKKNIFE}, {_SCALES.get(ends, 'logit')}"
    if isinstance(value, float):
        found = ConfidenceInterval(low, high, asked.level, method)
        if math.isnan(low) and value in ends and math.isfinite(ends[1]):
            found = at_end(value, ends, smallest(amounts, squares), asked)
        else:
            found = _with_shares(metric, asked, value, amounts, squares, found)
        if not math.isnan(low) or value != ends[0]:
            return found
        high = float(np.fmax(found.high, _at_upper_recalls(metric, amounts, squares, asked.tail)))
        method = found.method if math.isfinite(ends[1]) else _OF_SHARES
        low = math.nan if math.isnan(high) else value
        return ConfidenceInterval(low, high, asked.level, method)
    return ConfidenceInterval(_like(value, low), _like(value, high), asked.level, method)


def _with_shares(
    metric: ContingencyMetric,
    asked: ConfidenceRequest,
    value: float,
    amounts: Confusion,
    squares: Confusion,
    found: ConfidenceInterval,
) -> ConfidenceInterval:
    """Return limits widened by those of `by_shares`."""
    wider = by_shares(metric, value, amounts, squares, asked.tail)
    low, high = metric.value_range or UNBOUNDED
    scale = high - low if math.isfinite(high) else abs(value)
    if wider is None or wider[1] - wider[0] <= _ROUNDED * scale:  # no share moves the value
        return found
    low, high = float(np.fmin(found.low, wider[0])), float(np.fmax(found.high, wider[1]))
    return ConfidenceInterval(low, high, asked.level, f"{found.method}, and {_OF_SHARES}")


_ROUNDED = 2.0**-40  # of the range, or of the value; one that moves by less does not move
_ENOUGH = 5  # right rows, and wrong ones, of a class that tell how its recall varies
_CLASSES = 512  # most classes for `by_shares`
_FEW = 64  # most classes whose shares are also read at lower levels: of more, each moves little


def by_shares(
    metric: ContingencyMetric, value: float, amounts: Confusion, squares: Confusion, tail: float
) -> tuple[float, float] | None:
    """Return the limits by how a value moves with recalls or precisions of rare classes (MOVER).

    The derivatives count a class whose few rows are all right as certain. Here the recall of each
    class moves to its limits by Wilson's score, or its precision if that moves the value further.
    The rows that this takes from a class or gives it are those of the other classes, in proportion.
    Distances are logarithmic for a value without an upper end. Returns ``None`` if all classes have
    rows enough, or if the metric reads single cells.

    Reference: Zou and Donner, "Construction of confidence limits about effect measures", Stat. Med.
    27 (2008).
    """
    ends = metric.value_range or UNBOUNDED
    if amounts.size < 2 or not math.isfinite(value):
        return None
    every = [_by_shares_of(metric, amounts, squares, tail, side) for side in (_ACTUAL, _PREDICTED)]
    values = [each for each in every if each is not None]
    if not values:
        return None
    logarithmic = ends[0] == 0 and math.isinf(ends[1]) and value > 0
    with np.errstate(divide="ignore"):
        origin = math.log(value) if logarithmic else value
        moves = [(np.log(each) if logarithmic else each) - origin for each in values]
    moves = [np.where(np.isnan(each), 0.0, each) for each in moves]
    down = max(math.hypot(*np.minimum(each.min(axis=0), 0)) for each in moves)
    up = max(math.hypot(*np.maximum(each.max(axis=0), 0)) for each in moves)
    if logarithmic:
        return value * math.exp(-down), value * math.exp(up) if up < _LARGE else math.inf
    return max(ends[0], value - down), min(ends[1], value + up)


def of_rare(
    metric: Metric, asked: ConfidenceRequest, statistics: Sequence[object]
) -> ConfidenceInterval | None:
    """Return the limits of rows, where few or none are in error; ``None`` if enough are.

    Limits of other kinds, which also see no variance in what is all right, are at least as wide.
    """
    (table, *more), exempt = statistics, (Family.HITS, Family.MISSES, Family.COST)
    if not isinstance(metric, ContingencyMetric) or more or metric.family in exempt:
        return None
    if not isinstance(table, ContingencyTable | ThresholdTable):
        return None
    with suppress(NoConfidenceError):
        amounts, squares = tables_of(metric, asked, table)
        value = metric._of_table(amounts)
        if isinstance(value, float):
            sides = by_shares(metric, value, amounts, squares, asked.tail)
            return sides and ConfidenceInterval(*sides, asked.level, _OF_SHARES)
    return None


_OF_SHARES = "shares of rare classes by Wilson's score"
_ACTUAL, _PREDICTED = 1, 2
_LARGE = 700.0  # logarithm of what is near the largest float64


def _by_shares_of(
    metric: ContingencyMetric, amounts: Confusion, squares: Confusion, tail: float, side: int
) -> Floats | None:
    """Return the values where the share of hits of each class is at its limits, (limits, classes).

    The share is that of the rows of a class, or of its predictions. Its limits are those of the
    level and of lower ones.
    """
    sums = [table[0] for table in (amounts.tp, amounts.actual, amounts.predicted)]
    tp, of, total = sums[0], sums[side], float(amounts.total[0])
    weights = (squares.actual if side == _ACTUAL else squares.predicted)[0]
    seen = np.flatnonzero(of > 0)
    wrong = of - tp
    unit = np.divide(weights, of, out=np.ones_like(of), where=of > 0)
    enough = np.minimum(tp, wrong)[seen] / unit[seen] >= _ENOUGH
    if enough.all() or seen.size > _CLASSES:
        return None
    units = unit[seen], unit[seen]
    tails = wider_tails(tail) if seen.size <= _FEW else [tail]
    sides = np.concatenate([share_limits(tp[seen], wrong[seen], each, units) for each in tails])
    if not np.isfinite(sides).all():  # squares of the weights are beyond float64
        return None
    own, found = (np.arange(seen.size), seen), []
    for share in sides:
        change = share * of[seen] - tp[seen]
        moved = [np.repeat(each[None], seen.size, axis=0) for each in sums]
        hits, other = moved[0], moved[_ACTUAL + _PREDICTED - side]
        # Wrong rows of a class become right ones, or right ones those of other classes.
        others = np.where(change[:, None] > 0, other - hits, other)
        others[own] = 0.0
        whole = others.sum(axis=1, keepdims=True)
        part = np.divide(
            others, whole, out=np.full_like(others, 1 / (amounts.size - 1)), where=whole > 0
        )
        hits[own] += change
        other -= part * change[:, None]
        other[own] = sums[_ACTUAL + _PREDICTED - side][seen] + change
        np.clip(other, hits, total, out=other)
        if isinstance(metric, CohenKappa) and metric.weights is not None:
            values = _kappa_at(metric, amounts, seen, change, side)
        else:
            values = read_at(metric, amounts, moved)
        if values is None:
            return None
        found.append(values)
    return np.array(found)


def _kappa_at(
    metric: CohenKappa, table: Confusion, of: Places, change: Floats, side: int
) -> Floats | None:
    """Return a weighted kappa where the hits of a class change, and its other rows in proportion.

    Its value is 1 - n Σ cost / Σ expected cost, of which only the row or column of a class changes.
    """
    if table.size > table.kept:
        return None
    cells = np.zeros((table.size, table.size))
    np.add.at(cells, (table.rows, table.columns), table.amount)
    cells = cells if side == _ACTUAL else cells.T
    own, cost = (np.arange(of.size), of), _costs(metric, table.size)
    wrong, spread = cells[of], np.repeat(cells.sum(axis=0)[None], of.size, axis=0)
    wrong[own] = spread[own] = 0.0
    spread = np.where(wrong.any(axis=1, keepdims=True), wrong, spread)
    moved = spread * -change[:, None] / spread.sum(axis=1, keepdims=True)
    moved[own] = change
    expected = cells.sum(axis=1) @ cost
    seen = float((cost * cells).sum()) + (cost[of] * moved).sum(axis=1)
    return np.asarray(1 - cells.sum() * seen / (expected @ cells.sum(axis=0) + moved @ expected))


def _costs(metric: CohenKappa, size: int) -> Floats:
    """Return the cost of each pair of labels."""
    place = np.arange(size, dtype=np.float64)
    cost = np.abs(place[:, None] - place)
    return cost if metric.weights == "linear" else cost**2


def _grows(metric: ContingencyMetric, slopes: Floats, amounts: Confusion) -> bool:
    """Whether a value grows when all amounts do.

    Compares with the value of twice the amounts. Slopes would not do: if a class is rare, they
    nearly cancel, and their sum is mostly numerical error.
    """
    value, twice = (
        np.asarray(metric.read(table)[0], np.float64) for table in (amounts, amounts.doubled())
    )
    size = np.fmax(np.abs(value), np.tensordot(amounts.amount, np.abs(slopes), axes=1))
    return bool((np.abs(twice - value) > _GROWTH * size).any())


def smallest(amounts: Confusion, squares: Confusion) -> float:
    """Return the effective number of rows of the smallest class, (Σ w)² / Σ w².

    Returns 0 if no row is of a class that counts.
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
    value: float,
    ends: tuple[float, float],
    n: float,
    asked: ConfidenceRequest,
    of: str = "the smallest class",
) -> ConfidenceInterval:
    """Return the limits of a value at the end of its range, which has no variance.

    They are exact binomial limits for n rows that are all right, or all wrong.
    """
    low, high = ends
    share = (value - low) / (high - low)
    sides = clopper_pearson(share * n, n, asked.tail)
    method = f"Clopper-Pearson of the {n:g} rows of {of}: no row of these differs"
    below, above = (low + (high - low) * side for side in sides)
    return ConfidenceInterval(below, above, asked.level, method)


def _at_upper_recalls(
    metric: ContingencyMetric, amounts: Confusion, squares: Confusion, tail: float
) -> float:
    """Return the largest value where the recalls of all classes are at upper limits at once.

    A value of several recalls together, such as their product, is the smallest possible as long as
    one recall is 0.
    """
    tp, of, of_squares = amounts.tp[0], amounts.actual[0], squares.actual[0]
    seen = of > 0
    unit = np.divide(of_squares, of, out=np.ones_like(of), where=seen)
    shares = []
    for each in wider_tails(tail):
        share = share_limits(tp, of - tp, each, (unit, unit))[1]
        with np.errstate(divide="ignore"):  # of light rows
            share = np.where(tp == 0, 1 - each ** (unit / of), share)  # by Clopper and Pearson
        shares.append(np.where(seen, share, 0.0))
    rows = np.repeat(of[None], len(shares), axis=0)
    found = read_at(metric, amounts, [np.array(shares) * of, rows, rows])
    return math.nan if found is None else float(np.fmax.reduce(found))


def _like(value: object, side: Floats) -> float | LabelledArray:
    return LabelledArray(side, value.axes) if isinstance(value, LabelledArray) else float(side)


def of_classes(
    metric: AveragedMetric[None], asked: ConfidenceRequest, table: object
) -> ConfidenceInterval:
    """Quotients of counts by class: a share if possible, else as any value of a table."""
    amounts, squares = tables_of(metric, asked, table)
    interval = share_of(metric, asked, amounts, squares)
    value = metric._of_table(amounts)
    if interval is None:
        return general(metric, asked, value, amounts, squares)
    low, high = (side[0] for side in interval)
    return ConfidenceInterval(_like(value, low), _like(value, high), asked.level, interval.method)


def share_of(
    metric: Metric, asked: ConfidenceRequest, amounts: Confusion, squares: Confusion
) -> ConfidenceInterval | None:
    """Return the limits of each group if the value is a share of rows, else ``None``."""
    rows, of_squares = share_rows(metric, amounts, 1), share_rows(metric, squares, 2)
    if rows is None or of_squares is None:
        return None
    parts = parts_of(metric)
    return share(metric, asked, rows, of_squares, 1.0 if parts is None else parts[2])


def check_is_share(metric: Metric) -> None:
    """Raise if a metric sums rows; one without the parameter `normalize` is a share of them."""
    if metric.config.get("normalize") is False:
        raise without(metric, "a sum grows with the rows; normalize=True has the share of them")


@rule_of(Family.HITS, Family.MISSES, anytime=True)
def of_accuracy(
    metric: Accuracy | ZeroOneLoss,
    asked: ConfidenceRequest,
    table: ContingencyTable | ThresholdTable,
) -> ConfidenceInterval:
    """The share of rows predicted right, or wrong."""
    check_is_share(metric)
    interval = share_of(metric, asked, *tables_of(metric, asked, table))
    assert interval is not None  # always a share in this family
    low, high = interval
    return ConfidenceInterval(float(low[0]), float(high[0]), asked.level, interval.method)


@rule_of(Family.COST)
def of_cost(
    metric: ExpectedCost, asked: ConfidenceRequest, table: ContingencyTable | ThresholdTable
) -> ConfidenceInterval:
    """The mean of costs that occur with unknown probabilities: Wilson's score for 0 and 1."""
    amounts, squares = tables_of(metric, asked, table)
    total = float(amounts.total[0])
    if not total:
        return unsure(asked.level, SCORE)
    held = amounts.amount > 0
    costs, shares = metric._costs(amounts)[held], amounts.amount[held] / total
    # As many equal rows would give the mean the same variance; light rows are not worth more.
    around = (costs - costs @ shares) ** 2
    spread = around @ squares.amount[held]
    n = total**2 / squares.total[0]
    if spread:
        n = min(n, around @ amounts.amount[held] * total / spread)
    sides = score_limits(costs, shares, float(n), asked.tail, metric.value_range)
    return ConfidenceInterval(*sides, asked.level, SCORE)


@rule_of(Family.TOP_K, anytime=True)
def of_top_k(
    metric: TopKAccuracy, asked: ConfidenceRequest, counts: TopKHits
) -> ConfidenceInterval:
    """The share of rows whose class is among the first k."""
    check_is_share(metric)
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


@rule_of(Family.KAPPA, anytime=True)
def of_kappa(metric: CohenKappa, asked: ConfidenceRequest, table: object) -> ConfidenceInterval:
    """Agreement beyond chance; with weights, derivatives have a closed form."""
    if metric.weights is None:
        return of_labels(metric, asked, table)
    if asked.anytime:
        raise not_anytime(metric)
    amounts, squares = (side.within() for side in tables_of(metric, asked, table))
    value = metric._of_table(amounts)
    if not amounts.total[0]:
        return ConfidenceInterval(value, value, asked.level, JACKKNIFE)
    n, cost = float(amounts.total[0]), _costs(metric, amounts.size)
    actual = amounts.actual[0]
    by_row, by_column = cost @ amounts.predicted[0], actual @ cost
    of_cells = cost[amounts.rows, amounts.columns]
    seen, chance = float(of_cells @ amounts.amount), float(actual @ by_row)
    if not chance:
        return unsure(asked.level, JACKKNIFE)
    moved = by_row[amounts.rows] + by_column[amounts.columns]
    # In this order, no intermediate result is out of range unless the weights are.
    slopes = seen / chance * (n * (moved / chance) - 1) - n * of_cells / chance
    error = standard_error(slopes, squares.amount)
    low, high = limits(value, error, normal_quantile(1 - asked.tail), -1.0, 1.0)
    if math.isnan(low) and value == 1:
        return at_end(value, (-1.0, 1.0), smallest(amounts, squares), asked)
    found = ConfidenceInterval(low, high, asked.level, f"{JACKKNIFE}, Fisher's z")
    return _with_shares(metric, asked, value, amounts, squares, found)


@rule_of(Family.CONFUSION_MATRIX, anytime=True)
def of_matrix(
    metric: ConfusionMatrix, asked: ConfidenceRequest, table: ContingencyTable | ThresholdTable
) -> ConfidenceInterval:
    """The shares of a matrix; counts grow with the rows and estimate no population value."""
    if metric.normalize is None:
        raise without(
            metric,
            "its counts grow with the rows; ConfusionMatrix(normalize='true') has shares, which do",
        )
    sides = []
    for whole_table in tables_of(metric, asked, table):  # of weights, and of squared weights
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


class Readings(NamedTuple):
    """The value of a metric and its limits for each group, each of shape (groups,)."""

    value: Floats
    low: Floats
    high: Floats


def readings_of(
    metric: Metric, level: float, n_rows: Ints, *forms: GroupedStates
) -> Readings | None:
    """Return the values and limits of a metric in every group, for `n_rows` rows of weight one.

    `forms` are the states of its statistics. Returns ``None`` if the groups must be read one by
    one.
    """
    values = metric._of_groups(*forms)
    if values is None or not isinstance(values.values, np.ndarray):
        return None
    limits = limits_of_groups(metric, level, n_rows, *forms)
    return None if limits is None else Readings(values.values, *limits)


def limits_of_groups(
    metric: Metric, level: float, n_rows: Ints, *forms: GroupedStates
) -> tuple[Floats, Floats] | None:
    """Return only the confidence limits; ``None`` if they must be computed one by one."""
    form, *more = forms
    if not isinstance(metric, ContingencyMetric) or not is_table(form) or more:
        return None
    if not getattr(metric, "normalize", True) or getattr(metric, "average", "") is None:
        return None
    low, high = np.full((2, form.size), np.nan)
    for groups, table in metric._confusions(form):
        if not table.counted or (table.total != n_rows[groups]).any():
            return None
        found = share_of(metric, ConfidenceRequest(level, False, 0), table, table)
        if found is None:
            return None
        low[groups], high[groups] = found
    return low, high


_KINDS = 1 << 14  # most kinds of rows whose derivatives are taken one by one


_MARGINS = {"actual", "predicted"}  # all rows of a class


@rule_of(Family.AVERAGES, Family.SHARE, Family.F_BETA, anytime=True)
def of_averages(
    metric: AveragedMetric[None], asked: ConfidenceRequest, table: object
) -> ConfidenceInterval:
    """Quotients of counts by class; for multilabel rows by label, or over rows."""
    check_known(metric)
    if metric.average == "weighted" and metric._parts is not None and metric._parts[0] in _MARGINS:
        raise without(
            metric,
            "shares of classes weighted by shares of classes vary by their squares, and not at all "
            "where classes are equally frequent; average=None and average='macro' have limits",
        )
    if isinstance(table, RowTables):
        return _of_rows(metric, asked, table, metric.read, joined=metric.average == "micro")
    if not isinstance(table, LabelTables):
        return of_classes(metric, asked, table)
    counts = LabelCounts.of(table, metric.labels)
    _check_rows(metric, asked, float(counts.total[0]), counts.counts is not None)
    if metric.average is not None:
        return _of_mean(metric, asked, counts)
    low, high, method = _of_each_label(metric, asked, counts)
    low, high = (LabelledArray.of(np.atleast_1d(side), counts.labels) for side in (low, high))
    return ConfidenceInterval(low, high, asked.level, method)


def _of_each_label(
    metric: AveragedMetric[None], asked: ConfidenceRequest, counts: LabelCounts
) -> tuple[Floats, Floats, str]:
    """Return the limits of each label, and their method."""
    parts = parts_of(metric)
    if parts is not None:
        rows = shares_of(parts, counts, 1)  # type: ignore[arg-type]  # a label stands for a class
        interval = share(metric, asked, [s[0] for s in rows], [s[0] for s in rows], parts[2])
        return interval.low, interval.high, interval.method
    sides = [_of_label(metric, asked, cells) for cells in counts.tables.reshape(-1, 4)]
    low, high = (np.array([side[end] for side in sides]) for end in (0, 1))
    return low, high, sides[0].method if sides else JACKKNIFE


def check_known(metric: Metric) -> None:
    """Raise if labels of rows may be unknown: the state has no row counts for such labels."""
    if metric.config.get("multilabel") and metric.config["ignore_index"] is not None:
        raise without(metric, f"ignore_index leaves labels of its rows out; {BY.format('row')}")


def _of_label(
    metric: AveragedMetric[None], asked: ConfidenceRequest, cells: Ints
) -> ConfidenceInterval:
    """Return the limits of one label, as the positive class of a table (4,) of two."""
    twin, table = _alone(metric), _of_two(cells)
    value = twin._of_table(table)
    return general(twin, asked, value, table, table)


def _of_each_class(
    metric: AveragedMetric[None],
    asked: ConfidenceRequest,
    value: object,
    amounts: Confusion,
    squares: Confusion,
) -> ConfidenceInterval:
    """Return the limits of each class, as the positive class of a table of two."""
    tables = zip(amounts.against_rest(), squares.against_rest(), strict=True)
    twin = _alone(metric)
    sides = [general(twin, asked, twin._of_table(one), one, two) for one, two in tables]
    low, high = (_like(value, np.array([side[end] for side in sides])) for end in (0, 1))
    return ConfidenceInterval(low, high, asked.level, sides[0].method if sides else JACKKNIFE)


def _alone(metric: AveragedMetric[None]) -> AveragedMetric[None]:
    """Return the metric of one label, as the positive class of two."""
    config = {**metric.config, "multilabel": False, "average": "binary"}
    return type(metric)(**{**config, "labels": None, "threshold": None, "pos_label": 1})


def _of_two(cells: Ints) -> Confusion:
    occupied = np.flatnonzero(cells)
    return Confusion([0, 1], occupied // 2, occupied % 2, cells[occupied])


def _of_mean(
    metric: AveragedMetric[None], asked: ConfidenceRequest, counts: LabelCounts
) -> ConfidenceInterval:
    """Return the limits of a mean over labels, with an upper bound of its error.

    The state does not keep which labels occur together. The error of a sum is at most the sum of
    the errors, which it attains if the labels are perfectly correlated.
    """
    if asked.anytime:
        raise not_anytime(metric)
    cells = counts.tables.reshape(-1, 4)
    total = float(counts.total[0])
    if not total:
        return unsure(asked.level, JACKKNIFE)
    values, slopes = _of_labels(metric, cells)
    have = cells[:, 2] + cells[:, 3]  # rows with the label
    weight = have if metric.average == "weighted" else np.ones(len(have))
    if metric.zero_division is None and not np.isnan(values).all():  # as in `mean_of_classes`
        values[np.isnan(values) & counts.seen[0]] = 0.0
    counted = ~np.isnan(values) & (weight > 0)
    if not counted.any():
        return unsure(asked.level, JACKKNIFE)
    share = weight[counted] / weight[counted].sum()
    value = float(share @ values[counted])
    adds, cells = slopes[counted] * share[:, None], cells[counted]
    if metric.average == "weighted":  # another row with the label increases its weight
        adds[:, 2:] += ((values[counted] - value) / weight[counted].sum())[:, None]
    adds -= (adds * cells).sum(axis=1, keepdims=True) / total
    error = float(np.sqrt((cells * adds**2).sum(axis=1)).sum())
    span = metric.value_range or UNBOUNDED
    if value in span and error == 0 and math.isfinite(span[1]):
        classes = np.concatenate([have[counted], total - have[counted]])
        return at_end(value, span, float(classes[classes > 0].min()), asked)
    low, high = limits(value, error, normal_quantile(1 - asked.tail), *span)
    method = f"{JACKKNIFE}, of a mean over labels as if they varied together (at most)"
    if (np.minimum(cells[:, 1:3], cells[:, 3:]) < _ENOUGH).any():  # as in `by_shares`
        sides = _of_each_label(metric, asked, counts)[:2]
        moves = [share * (np.atleast_1d(side)[counted] - values[counted]) for side in sides]
        down, up = (math.hypot(*np.nan_to_num(each)) for each in moves)
        low, high = min(low, max(span[0], value - down)), max(high, min(span[1], value + up))
        method += ", and shares of rare labels by Wilson's score"
    return ConfidenceInterval(low, high, asked.level, method)


def _of_labels(metric: AveragedMetric[None], cells: Ints) -> tuple[Floats, Floats]:
    """Return the value of each label, and its derivatives with respect to its cells, (L, 4)."""
    twin, slopes = _alone(metric), np.zeros(cells.shape)
    values = np.full(len(cells), math.nan)
    for place, amounts in enumerate(cells):
        table = _of_two(amounts)
        values[place] = twin._of_table(table)
        slopes[place, np.flatnonzero(amounts)] = influence(twin, table, twin.read)
    return values, np.nan_to_num(slopes)  # derivatives of 0/0 count as 0


@rule_of(Family.ROWS, Family.SUBSETS, anytime=True)
def of_rows(metric: RowsMetric, asked: ConfidenceRequest, table: RowTables) -> ConfidenceInterval:
    """The share of correct rows, and means over rows."""
    if metric.family == Family.SUBSETS:
        check_is_share(metric)
        rows = RowCounts.of(table, joined=False)
        _check_rows(metric, asked, float(rows.total[0]), rows.counted)
        right = float(rows.amount @ metric._of_rows(rows)[0])
        counts = right, float(rows.total[0]) - right
        return share(metric, asked, counts, counts)
    return _of_rows(
        metric, asked, table, lambda rows: rows.mean(metric._of_rows(rows), None), joined=False
    )


def _of_rows(
    metric: Metric,
    asked: ConfidenceRequest,
    table: RowTables,
    read: Callable[[Any], Numeric],
    *,
    joined: bool,
) -> ConfidenceInterval:
    """Return the limits of a value from its derivatives with respect to rows of each kind."""
    if asked.anytime:
        raise not_anytime(metric)
    rows = RowCounts.of(table, joined=joined)
    _check_rows(metric, asked, float(rows.total[0]), rows.counted)
    if rows.size > _KINDS:
        raise without(metric, f"{rows.size:,} kinds of rows, more than {_KINDS:,}, take too long")
    if not rows.size:
        return unsure(asked.level, JACKKNIFE)
    value = float(read(rows)[0])
    slopes = derivatives(
        rows.amount,
        lambda moved: [read(RowCounts(rows.kinds, each, joined=joined))[0] for each in moved],
    )
    error = math.sqrt(float(rows.amount @ slopes**2))
    span = metric.value_range or UNBOUNDED
    if value in span and error == 0 and math.isfinite(span[1]):
        return at_end(value, span, float(rows.total[0]), asked, "all")
    low, high = limits(value, error, normal_quantile(1 - asked.tail), *span)
    return ConfidenceInterval(low, high, asked.level, f"{JACKKNIFE} of kinds of rows")


def _check_rows(metric: Metric, asked: ConfidenceRequest, total: float, counted: bool) -> None:
    if not counted or total != asked.n_rows:
        raise without(
            metric,
            "its state holds sums of weights and not of their squares, which say how many rows "
            "they are worth",
        )


@rule_of(Family.STRENGTHS)
def of_strengths(
    _: BradleyTerry, asked: ConfidenceRequest, table: MatchTable
) -> ConfidenceInterval:
    """The sandwich variance, which holds if matches do not follow the model, too."""
    fit = StrengthFit.of(table)
    error = np.sqrt(fit.covariance().diagonal())
    quantile = normal_quantile(1 - asked.tail)
    low, high = (fit.labelled(sign * quantile * error) for sign in (-1, 1))
    return ConfidenceInterval(low, high, asked.level, "sandwich")
