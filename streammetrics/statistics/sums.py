"""Exact sums over rows: moments, losses and their means, and what limits need beside them."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, starmap
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np

from streammetrics.core import elementary
from streammetrics.core.arithmetic.exact import (
    LARGEST,
    SQUARED,
    ExactSum,
    are_finite,
    quotient,
    root,
)
from streammetrics.core.columns.computed import (
    RowFormula,  # noqa: TC001 - needed at run time by type hints
)
from streammetrics.core.columns.long import LongNumbers, nearest
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import Condition, Schema, reject_present
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.errors import InvalidBatchError, StateFormatError
from streammetrics.core.fields.sums import NamedSums, SquaredWeight, SquareWeighted, Sum, Width
from streammetrics.core.fields.weights import Weight, WeightedCount, have_weights
from streammetrics.core.floating import quiet
from streammetrics.core.statistic import SharedColumns, Statistic
from streammetrics.statistics.formulas import (
    LOSSES,
    LossName,
    parts_of,
    product_and_error,
    squared_losses,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Bools, Columns, Floats, Numeric, ReadColumn

    Extent = tuple[float, float]

_FAR = 2.0**400  # products of numbers below this, and above its inverse, are split without error
_OFF = 2.0**-48  # more than a few dozen roundings are off
_TINY = 2.0**-100  # more than what a pair of floats lacks of a number


def mean_of(total: ExactSum, rows: WeightedCount) -> float:
    """Return a sum over the weight of its rows as the nearest float; ``nan`` without rows.

    Of the sums of groups (m,) an array of them, which only readouts over groups see.
    """
    if total.shape == ():
        return quotient(*ratio) if (ratio := _ratio(total, rows)) else math.nan
    means = _quotient(total, rows.exact())
    return means.rounded(lambda group: mean_of(total[group], rows.at(group)))  # type: ignore[return-value]  # of groups


def root_mean_of(total: ExactSum, rows: WeightedCount) -> float:
    """Return the root of the mean likewise."""
    if total.shape == ():
        return root(Fraction(*ratio)) if (ratio := _ratio(total, rows)) else math.nan
    roots = _quotient(total, rows.exact()).root()
    return roots.rounded(lambda group: root_mean_of(total[group], rows.at(group)))  # type: ignore[return-value]  # of groups


def ratio_of(above: ExactSum, below: ExactSum) -> float:
    """Return the quotient of two sums of numbers of one sign likewise; ``nan`` if `below` is 0."""
    if above.shape == ():
        (x, x_unit), (y, y_unit) = above.integers(), below.integers()
        unit = x_unit - y_unit
        return quotient(x << max(unit, 0), y << max(-unit, 0)) if y else math.nan
    ratios = _quotient(above, below)
    return ratios.rounded(lambda group: ratio_of(above[group], below[group]))  # type: ignore[return-value]  # of groups


def _ratio(total: ExactSum, rows: WeightedCount) -> tuple[int, int] | None:
    """Return one sum over its weight as two integers, ``None`` without rows."""
    integer, exponent = total.integers()
    weight, parts = rows.ratio()
    above, below = integer * parts << max(exponent, 0), weight << max(-exponent, 0)
    return (above, below) if weight else None


class _Near(NamedTuple):
    """Numbers of groups, each within `error` of ``head + tail`` where it is `known`.

    The `head` of those that are `plain` is the nearest float.
    """

    head: Floats
    tail: Floats
    error: Floats
    known: Bools
    plain: Bools

    @quiet
    def rounded(self, exact: Callable[[int], float]) -> Floats:
        """Return the nearest floats; `exact` gives those of groups that may be either of two."""
        values = np.where(self.plain, self.head, self.head + (self.tail - self.error))
        sure = self.plain | (values == self.head + (self.tail + self.error))
        for group in np.flatnonzero(~(sure & self.known)).tolist():
            values[group] = exact(group)
        return values

    @quiet
    def root(self) -> _Near:
        """Return the square roots."""
        head = np.sqrt(self.head)
        square, lost = product_and_error(head, head)
        left = ((self.head - square) - lost) + self.tail
        below = np.where(head == 0, 1.0, head)
        error = (np.abs(left) * _OFF + self.error) / below + head * _TINY
        return _Near(head, left / (2 * below), error, self.known, np.zeros_like(self.plain))


@quiet
def _quotient(total: ExactSum, rows: ExactSum) -> _Near:
    (above, low, fits), (below, less, has_rows) = _pair(total), _pair(rows)
    head = above / below
    product, lost = product_and_error(head, below)
    rest, more = (above - product) - lost, head * less
    tail = (rest + (low - more)) / below
    error = (np.abs(rest) + np.abs(low) + np.abs(more)) / below * _OFF + np.abs(head) * _TINY
    plain = (np.frexp(below)[0] == 0.5) & (less == 0)  # a power of two: dividing rounds nothing
    return _Near(head, tail, error, fits & has_rows & (below > 0), plain)


def _pair(sums: ExactSum) -> tuple[Floats, Floats, Bools]:
    """Return each sum as the nearest float and what it lacks, and which are 0 or in range."""
    near = np.asarray(sums.to_float())
    size = np.abs(near)
    fits = (size < _FAR) & (size > 1 / _FAR)
    head = np.where(fits, near, 0.0)
    tail = sums - ExactSum.grouped(np.arange(head.size), head.size, head)
    return head, np.asarray(tail.to_float()), fits | ~sums.digits.any(axis=1)


TRUE, PRED = "y_true", "y_pred"


@dataclass(frozen=True)
class FiniteTerms(Condition):
    """Refuses rows where a term of target and prediction overflows.

    It is checked with the batch, since rows may wait before a statistic computes their terms.
    """

    complaint: ClassVar[str]  # what to say of rows whose term overflows

    @abstractmethod
    def fits(self, true: Extent, pred: Extent) -> bool:
        """Whether no term can overflow, by the smallest and the largest of both columns."""

    @abstractmethod
    def terms(self, true: Floats, pred: Floats) -> Floats:
        """Return the terms, not finite where one overflows."""

    def holds(self, batch: Batch) -> bool:
        """Whether the extents of both columns tell that every term is finite."""
        one, other = batch.known[TRUE], batch.known[PRED]
        return self.fits((one.low, one.high), (other.low, other.high))

    def check(self, batch: Batch, missing: Bools | None) -> None:
        """Check that both columns are of one shape and that every term is finite."""
        one, other = batch.numeric(TRUE), batch.numeric(PRED)
        true, pred = one.values, other.values
        if true.shape != pred.shape and _table(true).shape != _table(pred).shape:
            raise InvalidBatchError(
                f"{batch.title(TRUE)} has {_table(true).shape[1]} numbers a row, "
                f"{batch.title(PRED)} has {_table(pred).shape[1]}"
            )
        if self.fits((one.low, one.high), (other.low, other.high)):
            return
        true, pred = _table(true), _table(pred)
        with np.errstate(all="ignore"):
            wrong = np.logical_not(np.isfinite(self.terms(true, pred)).all(axis=1))
        titles = f"{batch.title(TRUE)} and {batch.title(PRED)}"
        shown = np.stack([true, pred], axis=1)
        reject_present(titles, self.complaint, wrong, missing, shown)


@dataclass(frozen=True)
class FiniteDifference(FiniteTerms):
    """Refuses rows where ``y_true - y_pred`` overflows."""

    complaint = "differ by more than float64 can hold"

    def fits(self, true: Extent, pred: Extent) -> bool:
        """Whether the largest difference is finite."""
        return math.isfinite(true[1] - pred[0]) and math.isfinite(pred[1] - true[0])

    def terms(self, true: Floats, pred: Floats) -> Floats:
        """Return the differences."""
        return true - pred


def _table(values: Floats) -> Floats:
    return values[:, None] if values.ndim == 1 else values


def regression_schema(
    nan_policy: str,
    finite: FiniteTerms | None = None,
    *,
    true: Numbers | None = None,
    pred: Numbers | None = None,
) -> Schema:
    """Return the schema of targets and predictions, by default any whose difference is finite."""
    fields = (
        true or Numbers(TRUE, wide=True, long=True),
        pred or Numbers(PRED, wide=True, long=True),
    )
    return Schema(fields, nan_policy, conditions=(finite or FiniteDifference(),))


def values_schema(of: str, nan_policy: str, *, long: bool = False) -> Schema:
    """Return the schema of plain ``"values"``, of ``"targets"``, or of ``"errors"``.

    What is read of targets is how far apart they are, which rounded ones do not tell.
    """
    if of == "values":
        return Schema((Numbers("values", ordered=True, long=long),), nan_policy)
    return regression_schema(nan_policy, true=Numbers(TRUE, wide=True, long=of != "targets"))


class ExactSums(Statistic):
    """Named exact sums over the rows, one for each of ``width`` outputs, and the total weight.

    Rows weigh one where no weight is given, so the total weight is then their number. The width is
    0 until there are rows. Arrays: ``width`` (1,), and the digits of ``weight`` and of each sum.
    """

    in_kernels = takes_counts = True

    width = Width("outputs")
    weight = Weight()
    sums = NamedSums(lambda of: of.names, inline=True)

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names of the sums."""

    @staticmethod
    def fields_of(
        columns: Columns, rows: WeightedCount, sums: dict[str, ExactSum]
    ) -> dict[str, object]:
        """Return the fields of rows, of which these are the weight and the sums.

        Columns are (n,) for one output, else (n, d).
        """
        width = 1 if columns[0].ndim == 1 else columns[0].shape[1]
        return {"width": width, "weight": rows, "sums": sums}

    def check_fields(self) -> None:
        """Check that there are sums of as many outputs, and rows, or neither."""
        shape = () if self.width == 1 else (self.width,)
        named = {*self.sums} == {*(self.names if self.width else ())}
        if not named or any(total.shape != shape for total in self.sums.values()):
            raise StateFormatError(f"{sorted(self.sums)} are not the sums of {self.width} outputs")
        if bool(self.weight) != (self.width > 0):
            raise StateFormatError("the total weight does not fit the sums")

    @property
    def total(self) -> Fraction:
        """The exact total weight."""
        return self.weight.fraction()

    def exact(self, name: str) -> list[Fraction]:
        """Return one sum exactly, an entry for each output, none without rows."""
        return list(starmap(Fraction, self.exact_ratios(name)))

    def exact_ratios(self, name: str) -> list[tuple[int, int]]:
        """Return the same as numerators and denominators, which may have factors in common."""
        if not self.width:
            return []
        integers, exponent = self._integers(name)
        above, below = 1 << max(exponent, 0), 1 << max(-exponent, 0)
        return [(integer * above, below) for integer in integers]

    def _integers(self, name: str) -> tuple[list[int], int]:
        """Return one sum as integers, and the power of two that is their unit."""
        integers, exponent = self.sums[name].integers()
        return [integers] if self.width == 1 else integers.tolist(), exponent

    def means(self, name: str) -> list[Fraction]:
        """Return the weighted mean for each output."""
        if not self.width:
            return []
        integers, exponent = self._integers(name)
        weight, parts = self.weight.ratio()
        above, below = parts << max(exponent, 0), weight << max(-exponent, 0)
        return [Fraction(integer * above, below) for integer in integers]

    @property
    def one_output(self) -> bool:
        """Whether there are rows, of one output; of many groups at once there are no others."""
        return not isinstance(self.width, int) or self.width == 1


def has_long(columns: tuple[object, ...]) -> bool:
    """Whether a column holds integers that no float64 does."""
    return any(isinstance(column, LongNumbers) for column in columns)


def as_outputs(columns: Columns) -> Columns:
    """Return columns as (n,) where there is one output."""
    return tuple([c.reshape(-1) if c.shape[1:] == (1,) else c for c in columns])


def summed(
    x: ReadColumn, weight: Array | None, group: GroupCodes | None, times: Floats | None = None
) -> ExactSum:
    """Return the sums of numbers (n, ...) times others and the weights, or those of each group."""
    if group is None:
        return ExactSum.product(x, times, weight)
    return ExactSum.grouped(group.index, group.size, x, weight, times=times)


class Moments(ExactSums):
    """Sums of columns and, of the second `order`, of the products of every pair of them.

    Columns are plain values ``x``; the target ``y`` (of rows that have a prediction as well, so
    that it shares its rows with sums of losses); or the target ``y`` and the prediction ``p``.
    Of order ``"count"`` there is only the total weight.
    """

    takes_counts = True

    of: Literal["values", "target", "pair"]
    order: Literal["count", "first", "second"] = "second"
    nan_policy: Literal["raise", "omit"] = "raise"

    @property
    def schema(self) -> Schema:
        """Values, infinite ones too where they are only counted, or a target and a prediction."""
        if self.of == "values":
            return Schema(
                (Numbers("values", ordered=self.order == "count", long=True),), self.nan_policy
            )
        return regression_schema(self.nan_policy)

    @property
    def letters(self) -> str:
        """What the columns are called."""
        return {"values": "x", "target": "y", "pair": "yp"}[self.of]

    @property
    def names(self) -> tuple[str, ...]:
        """The letters of the columns, then those of the products: ``y p yy yp pp``."""
        return _names(self.letters, self.order)

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, object] | None:
        """Return the sums of columns and products."""
        if group is not None and has_long(columns):
            return None
        columns = columns if group is None else as_outputs(columns)
        by_letter, sums = dict(zip(self.letters, columns, strict=False)), {}
        for name in self.names:
            times = by_letter[name[1]] if len(name) > 1 else None
            sums[name] = summed(by_letter[name[0]], weight, group, times)
        rows = WeightedCount.of_rows(len(columns[0]), weight, group)
        return self.fields_of(columns, rows, sums)

    def check_fields(self) -> None:
        """Check as well that means are finite, no variance negative, no |correlation| above 1."""
        super().check_fields()
        if self.order != "count" and self.width:
            each = [(*self._integers(letter), *self.weight.ratio()) for letter in self.letters]
            if not all(starmap(are_finite, each)):
                raise StateFormatError("the sums are beyond those of any finite numbers")
        if self.order != "second" or not self.width:
            return
        squares = [self.centred(a, a) for a in self.letters]
        products = self.centred(self.letters[0], self.letters[-1])
        for low, high, product in zip(squares[0], squares[-1], products, strict=True):
            if min(low, high) < 0 or product**2 > low * high:
                raise StateFormatError("the moments are not those of any rows")

    def centred(self, a: str, b: str) -> list[Fraction]:
        """Return Σ w (a - mean a)(b - mean b) for each output; 0 where one is constant."""
        return list(starmap(Fraction, self.centred_ratios(a, b)))

    def centred_ratios(self, a: str, b: str) -> list[tuple[int, int]]:
        """Return the same as numerators and denominators, which may have factors in common."""
        if not self.width:
            return []
        (xs, x_unit), (ys, y_unit) = self._integers(a), self._integers(b)
        products, unit = self._integers(a + b)
        weight, part = self.weight.ratio()
        # (W Σ w a b - Σ w a Σ w b) / W of integers.
        low = min(unit, x_unit + y_unit)
        left, right = weight << unit - low, part << x_unit + y_unit - low
        above, below = 1 << max(low, 0), weight << max(-low, 0)
        return [
            ((left * product - right * x * y) * above, below)
            for product, x, y in zip(products, xs, ys, strict=True)
        ]


@cache
def _names(letters: str, order: str) -> tuple[str, ...]:
    products = [a + b for i, a in enumerate(letters) for b in letters[i:]]
    return {"count": (), "first": (*letters,), "second": (*letters, *products)}[order]


_ROOT = 2.0**511  # squares of what is below, and above its inverse, are normal floats
_ROOM = 1024.0  # corners of an extent are moved outwards by this when overflow is looked for


@dataclass(frozen=True)
class FiniteLoss(FiniteTerms):
    """Refuses rows whose loss overflows."""

    complaint = "have a loss beyond float64"

    loss: str = ""
    parameter: float = 0.0

    def fits(self, true: Extent, pred: Extent) -> bool:
        """Whether the loss is finite at the corners, which are moved well outwards.

        Each loss is a sum of a few terms monotone in either number on either side of 0.
        """
        corners = np.meshgrid(_corners(*true), _corners(*pred))
        with np.errstate(all="ignore"):
            return bool(np.isfinite(self.terms(*corners)).all())

    def terms(self, true: Floats, pred: Floats) -> Floats:
        """Return the losses, or the roots of which they are summed as squares."""
        loss = LOSSES[self.loss]
        return nearest((loss.rough_root or loss.terms)(true, pred, self.parameter))


def _corners(low: float, high: float) -> list[float]:
    corners = [low * _ROOM, low / _ROOM, high / _ROOM, high * _ROOM]
    return [*corners, 0.0] if low <= 0 <= high else corners


class LossSum(ExactSums):
    """The sum of a loss of every row, exact once each row's loss is rounded."""

    in_kernels = takes_counts = True

    loss: LossName
    parameter: float = 0.0
    nan_policy: Literal["raise", "omit"] = "raise"

    def __post_init__(self) -> None:
        """Look up the terms with their parameter, or their roots, and which powers are summed."""
        super().__post_init__()
        loss = LOSSES[self.loss]
        self._of = (loss.root or loss.terms, self.parameter)
        self.exponents: tuple[int, ...] = (2,) if loss.root else (1,)

    @property
    def schema(self) -> Schema:
        """Targets and predictions in the domain of the loss."""
        if self.loss == "squared_log":
            sides = [Numbers(name, above=-1.0, wide=True, long=True) for name in (TRUE, PRED)]
            return regression_schema(self.nan_policy, true=sides[0], pred=sides[1])
        if LOSSES[self.loss].bounded:
            return regression_schema(self.nan_policy)
        finite = FiniteLoss(loss=self.loss, parameter=self.parameter)
        if not self.loss.startswith("tweedie"):
            return regression_schema(self.nan_policy, finite)
        positive = Numbers(PRED, above=0.0, wide=True, long=True)
        true = Numbers(TRUE, wide=True, long=True)
        if self.parameter >= 2:
            true = Numbers(TRUE, above=0.0, wide=True, long=True)
        elif self.parameter >= 1:
            true = Numbers(TRUE, low=0.0, wide=True, long=True)
        return regression_schema(self.nan_policy, finite, true=true, pred=positive)

    @property
    def names(self) -> tuple[str, ...]:
        """The one sum."""
        return ("loss",)

    def check_fields(self) -> None:
        """Check as well that no sum of losses is negative, where no loss is."""
        super().check_fields()
        if self.width and not LOSSES[self.loss].signed and self.sums["loss"].any_negative:
            raise StateFormatError("the sum of losses is negative, which no rows have")

    def terms(self, y: Floats, p: Floats) -> Numeric:
        """Return the loss of each row."""
        return LOSSES[self.loss].terms(y, p, self.parameter)

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, object] | None:
        """Return the losses of rows; ``None`` where one of a group takes more than a float64.

        Powers of the same terms are summed once for all peers.
        """
        loss = LOSSES[self.loss]
        if group is not None:
            if loss.long or has_long(columns):
                return None
            try:
                with np.errstate(all="ignore"):
                    return self.lift_whole(as_outputs(columns), weight, group)
            except FloatingPointError:  # of a square or a power
                return None
        if have_weights(weight) or loss.long:
            return self.lift_whole(columns, weight)
        of, powers, found = self._of, self.exponents, {}
        if isinstance(columns, SharedColumns):
            found = columns.found
            if of not in found:
                alike = [p for p in columns.peers if isinstance(p, LossSum) and p._of == of]
                powers = tuple({power for peer in alike for power in peer.exponents})
        if of not in found:
            terms, parameter = of
            try:
                found[of] = ExactSum.of_powers(terms, columns, powers, parameter, weight=weight)
            except FloatingPointError:  # of a power
                return self.lift_whole(columns, weight)
        sums, low, high = found[of]
        if loss.root and high and not (low > 1 / _ROOT and high < _ROOT):
            return self.lift_whole(columns, weight)
        return self.lift_powers(columns, WeightedCount.of_rows(len(columns[0]), weight), sums)

    def lift_powers(
        self, columns: Columns, rows: WeightedCount, sums: Mapping[int, ExactSum]
    ) -> dict[str, object]:
        """Return the fields of rows of weight one, of which these are the sums of powers."""
        return self.fields_of(columns, rows, {"loss": sums[self.exponents[0]]})

    def lift_whole(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, object]:
        """Return the fields of rows with weights, of groups, or beyond the normal floats."""
        rows = WeightedCount.of_rows(len(columns[0]), weight, group)
        if group is not None or LOSSES[self.loss].long:
            total = summed(self.terms(*columns), weight, group)
        else:
            try:
                total = ExactSum.of_terms(self.terms, columns, weight)
            except FloatingPointError:  # of a square or a power
                rounded, roots = parts_of(self.loss, self.parameter, *columns)
                total = ExactSum.of(rounded, weight) + ExactSum.product(roots, roots, weight)
        return self.fields_of(columns, rows, {"loss": total})


Powers = dict[str, ExactSum]


class SpreadSums(NamedTuple):
    """What numbers x of rows of weight w add: Σ w x, their powers, Σ w and Σ w²."""

    total: ExactSum
    powers: Powers
    rows: WeightedCount
    squared: WeightedCount

    @property
    def spread(self) -> dict[str, object]:
        """The fields of `Spreading`."""
        return {"powers": self.powers, "squared_weight": self.squared}


class Spreading:
    """What is added to a statistic of sums: Σ w² x², Σ w² x and Σ w² of the numbers that it sums.

    They are exact, once x² is rounded as float64. The first two are of a shape ``()``, or ``(d,)``
    for d outputs.
    """

    powers = SquareWeighted(lambda _: ("squares", "values"))
    squared_weight = SquaredWeight()

    def check_fields(self) -> None:
        """Check as well that the squares are those of as many outputs."""
        super().check_fields()  # type: ignore[misc]  # of the statistic
        width, shapes = getattr(self, "width", 1), {total.shape for total in self.powers.values()}
        seen = bool(self.squared_weight)
        if seen != bool(shapes) or (seen and shapes != {() if width == 1 else (width,)}):
            raise StateFormatError(f"there are no sums of squares of {width} outputs")
        if seen and self.powers["squares"].any_negative:
            raise StateFormatError("sums of squares are negative")


class LossSpread(Spreading, LossSum):
    """The sum of a loss, and of its squares."""

    def __post_init__(self) -> None:
        """Sum the powers of the losses, and of their squares."""
        super().__post_init__()
        (power,) = self.exponents
        self.exponents = power, 2 * power

    def lift_powers(
        self, columns: Columns, rows: WeightedCount, sums: Mapping[int, ExactSum]
    ) -> dict[str, object]:
        """Return the fields of rows of weight one, of which these are the sums of powers."""
        total, squares = map(sums.__getitem__, self.exponents)
        powers = {"values": total, "squares": squares}
        fields = self.fields_of(columns, rows, {"loss": total})
        return fields | {"powers": powers, "squared_weight": rows}

    def lift_whole(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, object]:
        """Return the fields of rows with weights, of groups, or beyond the normal floats."""
        try:
            sums = sums_of(self.terms, columns, weight, group)
        except FloatingPointError:  # of a square
            if group is not None:
                raise
            clipped = sums_of(self._clipped, columns, weight)
            return super().lift_whole(columns, weight) | clipped.spread
        return self.fields_of(columns, sums.rows, {"loss": sums.total}) | sums.spread

    def _clipped(self, y: Floats, p: Floats) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return np.minimum(squared_losses(self.loss, y, p), LARGEST)


class MomentSpread(Spreading, Moments):
    """The sum of values, or of targets and predictions, and the squares of their differences."""

    in_kernels = takes_counts = True

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, object] | None:
        """Return the sums of the rows, and how far their numbers spread."""
        long = has_long(columns)
        if group is not None:
            if long:
                return None
            columns = as_outputs(columns)
        found = sums_of(self.numbers, columns, weight, group)
        if self.names == ("x",) and not long:  # summed once for both
            return self.fields_of(columns, found.rows, {"x": found.total}) | found.spread
        return (super().lift(columns, weight, group) or {}) | found.spread

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return the values, or predictions less targets."""
        return columns[1] - columns[0] if self.of == "pair" else nearest(columns[0])


def sums_of(
    terms: Callable[..., Floats],
    columns: Columns,
    weight: Floats | None,
    group: GroupCodes | None = None,
) -> SpreadSums:
    """Return what ``terms(*columns)``, (n,) or (n, d), add: if there are groups, to each of them.

    The terms are not one column of several.
    """
    if group is None and have_weights(weight):
        found, _, _ = ExactSum.of_powers(terms, columns, (1, *SQUARED), weight=weight)
        weights, squares, *both = [found[name] for name in SQUARED]
        powers = dict(zip(("values", "squares"), both, strict=True))
        rows = WeightedCount.of_weights(weights)
        return SpreadSums(found[1], powers, rows, WeightedCount.of_weights(squares))
    if group is None:
        found, _, _ = ExactSum.of_powers(terms, columns, (1, 2), weight=weight)
        rows = WeightedCount.of_rows(len(columns[0]), weight)
        return SpreadSums(found[1], {"values": found[1], "squares": found[2]}, rows, rows)
    numbers = terms(*columns)
    numbers = numbers[:, 0] if numbers.shape[1:] == (1,) else numbers
    rows = WeightedCount.of_rows(len(numbers), weight, group)
    if weight is None:
        if numbers.ndim == 1:
            total, squares = ExactSum.grouped_squares(group.index, group.size, numbers)
        else:
            total, squares = (summed(x, None, group) for x in (numbers, squares_of(numbers)))
        return SpreadSums(total, {"values": total, "squares": squares}, rows, rows)
    twice = np.repeat(weight, numbers[:1].size).reshape(numbers.shape)  # beside each number
    powers = {
        "values": summed(numbers, weight, group, twice),
        "squares": summed(squares_of(nearest(numbers)), weight, group, twice),
    }
    squared = WeightedCount.of_weights(summed(weight, weight, group))
    return SpreadSums(summed(numbers, weight, group), powers, rows, squared)


def squares_of(numbers: Floats) -> Floats:
    """Return squares as float64, none of them infinite."""
    with np.errstate(over="ignore", under="ignore"):
        squares = numbers * numbers
    return np.minimum(squares, LARGEST, out=squares)


class RowSum(Spreading, Statistic):
    """The exact sum of a number of each row, rounded row by row, of its squares and of weights.

    `numbers` says which it is; it must not depend on other rows, and be finite for all rows that
    the schema takes.
    """

    takes_counts = True

    total = Sum()
    rows = Weight()

    @abstractmethod
    def numbers(self, *columns: object) -> Floats:
        """Return the number of each row, (n,)."""

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, object]:
        """Return the sums of the numbers of rows, and of their squares."""
        found = sums_of(self.numbers, columns, weight, group)
        return {"total": found.total, "rows": found.rows, **found.spread}

    def check_fields(self) -> None:
        """Check that there is no sum without rows."""
        super().check_fields()
        if bool(self.rows) != bool(self.squared_weight) or (
            self.total.digits.any() and not self.rows
        ):
            raise StateFormatError("the sums are not those of any rows")

    def exact_mean(self) -> Fraction | None:
        """Return the mean, ``None`` without rows."""
        rows = self.rows.fraction()
        return self.total.fraction() / rows if rows else None


class FormulaSum(RowSum):
    """The exact sums of the numbers that a metric's formula makes of each row.

    With `count` numbers x_1, x_2, ... the products x_i x_j, i < j, are summed after them: the
    variance of a function of several means needs them.
    """

    of: RowFormula
    read: Schema
    count: int = 1

    total = Sum(lambda of: () if of.count == 1 else (of.width,))

    @property
    def width(self) -> int:
        """How many numbers are summed, products included."""
        return self.count * (self.count + 1) // 2

    @property
    def schema(self) -> Schema:
        """The columns, of which only the numbers of the formula are read."""
        return self.read

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return the numbers of each row, and their products."""
        if self.count == 1:
            numbers: Floats = columns[0].copy()
            return numbers
        pairs = combinations(columns, 2)
        with np.errstate(over="ignore", under="ignore"):
            products = [np.clip(one * other, -LARGEST, LARGEST) for one, other in pairs]
        return np.stack([*columns, *products], axis=1)

    def products(self) -> list[list[Fraction]]:
        """Return Σ w² x_i x_j of every two numbers."""
        values, squares = self.powers["values"], self.powers["squares"]
        if self.count == 1:
            return [[squares.fraction()]]
        table = [[Fraction(0)] * self.count for _ in range(self.count)]
        for i in range(self.count):
            table[i][i] = squares[i].fraction()
        for place, (i, j) in enumerate(combinations(range(self.count), 2), self.count):
            table[i][j] = table[j][i] = values[place].fraction()
        return table

    def exact_means(self) -> list[Fraction]:
        """Return the mean of each number; none without rows."""
        rows = self.rows.fraction()
        if not rows:
            return []
        sums = [self.total] if self.count == 1 else [self.total[i] for i in range(self.count)]
        return [each.fraction() / rows for each in sums]


class Popularity(RowSum):
    """The popularity of items, or the bits of information in meeting one."""

    surprise: bool = False
    nan_policy: NanPolicy = "raise"

    @property
    def schema(self) -> Schema:
        """Shares above 0."""
        return Schema((Numbers("popularity", above=0.0, high=1.0),), self.nan_policy)

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return what each item has."""
        popularity: Floats = columns[0]
        return np.abs(elementary.log2(popularity)) if self.surprise else popularity.copy()
