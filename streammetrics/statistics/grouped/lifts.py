"""What rows add to the fields of a statistic, for all groups at once: the hot loop of slices.

A lift returns a value for every field that it is listed with, as `fields` holds them for groups, or
``None`` where rows are none of the usual ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.long import LongNumbers
from streammetrics.core.counting import counts_above, packed
from streammetrics.core.fields.amounts import Amount
from streammetrics.core.fields.labels import coded_labels
from streammetrics.statistics.grouped.grouping import Grouping
from streammetrics.statistics.grouped.pairs import GroupedCells
from streammetrics.statistics.scores.losses import ProbabilityLossSum
from streammetrics.statistics.scores.spreads import ProbabilityLossSpread
from streammetrics.statistics.sums.formulas import LOSSES
from streammetrics.statistics.sums.losses import LossSum
from streammetrics.statistics.sums.moments import Moments
from streammetrics.statistics.sums.spreads import LossSpread, MomentSpread, Spreading, squares_of
from streammetrics.statistics.tables.contingency import ContingencyTable, LabelPairs, amounts_of
from streammetrics.statistics.tables.threshold import ThresholdTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Floats, ReadColumn


Lift = Callable[
    [Any, Grouping, "Sequence[ReadColumn]", "Floats | None"], "dict[str, object] | None"
]


def _amounts(by: Grouping, weight: Floats | None) -> Amount:
    """Return how much there is of each group."""
    if weight is None:
        return Amount.of_counts(by.counts, by.codes.size)
    return Amount.at_places(by.index, by.size, weight, squared=False)


def _contingency(
    _: ContingencyTable, by: Grouping, columns: Sequence[ReadColumn], weight: Floats | None
) -> dict[str, object]:
    (rows, row_labels), (cols, column_labels) = map(coded_labels, columns)
    shape = by.size, len(row_labels), len(column_labels)
    every, amount = amounts_of(shape, by.codes, rows, cols, weight=weight)
    return {"table": GroupedCells(row_labels, column_labels, every, amount)}


def _threshold(
    of: ThresholdTable, by: Grouping, columns: Sequence[ReadColumn], weight: Floats | None
) -> dict[str, object]:
    positive, score = columns
    if weight is None and isinstance(score, np.ndarray):
        counts = counts_above((by.size, 2), score, of.threshold, by.codes, positive)
        return {"amount": Amount.of_counts(counts.reshape(by.size, 4), len(positive))}
    cell = packed((by.size, 2, 2), by.codes, positive, score >= of.threshold)
    amount = Amount.at_places(cell, 4 * by.size, weight).shaped((by.size, 4))
    return {"amount": amount}


def _sums(by: Grouping, terms: Floats, weight: Floats | None) -> ExactSum:
    """Return the sums of terms (n,) or (n, d), by group: (size,) or (size, d)."""
    codes, size = by.index, by.size
    if terms.ndim == 1:
        return ExactSum.grouped(codes, size, terms, weight)
    width = terms.shape[1]
    index = (codes[:, None] * width + np.arange(width)).reshape(-1)
    each = None if weight is None else np.repeat(weight, width)
    sums = ExactSum.grouped(index, size * width, np.ascontiguousarray(terms).reshape(-1), each)
    return ExactSum((size, width), sums.digits, sums.exponent)


class _Summed(NamedTuple):
    """What a lift of sums has found, with what the spread of rows is computed from."""

    fields: dict[str, object]
    numbers: Callable[[], Floats]  # of the rows, whose mean it is
    total: ExactSum | None = None  # of the numbers, where it is known


Summing = Callable[[Any, Grouping, "Sequence[ReadColumn]", "Floats | None"], _Summed | None]


def _probability_loss(
    of: ProbabilityLossSum, by: Grouping, columns: Sequence[ReadColumn], weight: Floats | None
) -> _Summed:
    scores, losses = columns[1], of.losses(*columns)
    total = _sums(by, losses, weight)
    width = 1 if scores.ndim == 1 else scores.shape[1]
    fields = {"total": total, "rows": _amounts(by, weight), "columns": width}
    return _Summed(fields, lambda: losses, total)


def _single(columns: Sequence[ReadColumn]) -> tuple[int, list[ReadColumn]] | None:
    """Return how many outputs columns have, and them, one output as (n,)."""
    if any(isinstance(column, LongNumbers) for column in columns):
        return None
    width = 1 if columns[0].ndim == 1 else columns[0].shape[1]
    return width, [column.reshape(-1) if width == 1 else column for column in columns]


def _loss(
    of: LossSum, by: Grouping, columns: Sequence[object], weight: Floats | None
) -> _Summed | None:
    single = _single(columns)
    if single is None or of.names != ("loss",) or LOSSES[of.loss].long:
        return None
    width, columns = single
    try:
        with np.errstate(all="ignore"):
            terms = of.terms(*columns)
    except FloatingPointError:  # of a square
        return None
    total = _sums(by, terms, weight)
    fields = {"width": width, "weight": _amounts(by, weight), "sums": {"loss": total}}
    return _Summed(fields, lambda: terms, total)


def _moments(
    of: Moments, by: Grouping, columns: Sequence[object], weight: Floats | None
) -> _Summed | None:
    single = None if weight is not None and of.order == "second" else _single(columns)
    if single is None:
        return None
    width, columns = single
    if width > 1 and of.order == "second":
        return None
    by_letter = dict(zip(of.letters, columns, strict=False))
    sums = {}
    for name in of.names:
        first, *second = (by_letter[letter] for letter in name)
        # A product is exact as a value times its weight.
        sums[name] = _sums(by, first, second[0] if second else weight)
    fields = {"width": width, "weight": _amounts(by, weight), "sums": sums}
    return _Summed(fields, lambda: of.numbers(*columns))  # type: ignore[attr-defined]  # of those that spread


def _plain(lift: Summing) -> Lift:
    """Return the lift of a statistic that keeps sums alone."""

    def lifted(
        of: object, by: Grouping, columns: Sequence[object], weight: Floats | None
    ) -> dict[str, object] | None:
        found = lift(of, by, columns, weight)
        return None if found is None else found.fields

    return lifted


def _spreading(lift: Summing) -> Lift:
    """Return the lift of a statistic that keeps how far the numbers spread that it sums."""

    def lifted(
        of: Spreading, by: Grouping, columns: Sequence[object], weight: Floats | None
    ) -> dict[str, object] | None:
        # Weights are rare, and their squares rarer.
        found = None if weight is not None else lift(of, by, columns, weight)
        if found is None:
            return None
        fields, numbers, total = found.fields, found.numbers(), found.total
        values = _sums(by, numbers, None) if total is None else total
        squares = _sums(by, squares_of(numbers), None)
        return fields | {
            "powers": {"values": values, "squares": squares},
            "squared_weight": _amounts(by, None),
        }

    return lifted


# Each with the fields that it lifts: a statistic that has others as well is split.
LIFTS: dict[type[Statistic], tuple[Lift, tuple[str, ...]]] = {
    ContingencyTable: (_contingency, ("table",)),
    LabelPairs: (_contingency, ("table",)),
    ThresholdTable: (_threshold, ("amount",)),
}
for _sum, _spread, _summing, _fields in (
    (ProbabilityLossSum, ProbabilityLossSpread, _probability_loss, ("total", "rows", "columns")),
    (LossSum, LossSpread, _loss, ("width", "weight", "sums")),
    (Moments, MomentSpread, _moments, ("width", "weight", "sums")),
):
    LIFTS[_sum] = _plain(_summing), _fields
    LIFTS[_spread] = _spreading(_summing), (*_fields, "powers", "squared_weight")
