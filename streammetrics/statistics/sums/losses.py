"""Sums of one row's loss: what every mean loss of regression reads.

The sum of the losses, which are rounded elementwise (`formulas`), is exact. A square beyond the
normal floats, on either side, is not rounded at all. Losses are non-negative, so the sum is as
accurate as its terms. Nor is a power of an error, as long as its root is a float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.long import nearest
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.amounts import Amount
from streammetrics.statistics.sums.formulas import (
    LOSSES,
    LossName,
    parts_of,
)
from streammetrics.statistics.sums.moments import ExactSums, as_outputs, has_long
from streammetrics.statistics.sums.targets import PRED, TRUE, FiniteTerms, regression_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from streammetrics.core.columns.schema import Schema
    from streammetrics.core.counting import Grouping
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, Columns, Floats, ReadColumn
    from streammetrics.statistics.sums.targets import Extent


_ROOT = 2.0**511  # squares of what is below, and above its inverse, are normal floats
_ROOM = 1024.0  # corners of an extent are moved outwards by this when overflow is looked for


@dataclass(frozen=True)
class FiniteLoss(FiniteTerms):
    """Refuses rows whose loss overflows."""

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

    def complaint(self) -> str:
        """Say that the loss overflows."""
        return "have a loss beyond float64"


def _corners(low: float, high: float) -> list[float]:
    corners = [low * _ROOM, low / _ROOM, high / _ROOM, high * _ROOM]
    return [*corners, 0.0] if low <= 0 <= high else corners


class LossSum(ExactSums):
    """The sum of a loss of every row, exact once each row's loss is rounded."""

    in_kernels = True

    loss: LossName
    parameter: float = 0.0
    nan_policy: Literal["raise", "omit"] = "raise"

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

    def terms(self, y: Floats, p: Floats) -> Any:
        """Return the loss of each row."""
        return LOSSES[self.loss].terms(y, p, self.parameter)

    def update(self, *columns: object, weight: Floats | None) -> None:
        """Add the losses of the rows."""
        LossSum.update_among(self, (self,), {}, columns, weight)

    def update_among(
        self,
        peers: Sequence[Statistic],
        found: dict[object, ReadColumn],
        columns: Columns,
        weight: Floats | None,
    ) -> None:
        """Add the losses of the rows, of which peers mostly read powers of the same terms."""
        loss = LOSSES[self.loss]
        if weight is None and not loss.long:
            of = terms, parameter = loss.root or loss.terms, self.parameter
            if of not in found:
                powers = self.exponents if len(peers) == 1 else _powers_read(of, peers)
                try:
                    found[of] = ExactSum.of_powers(terms, columns, powers, parameter)
                except FloatingPointError:  # of a power
                    self.add_whole(columns, None, (), found)
                    return
            sums, low, high = found[of]
            if not loss.root or not high or (low > 1 / _ROOT and high < _ROOT):
                self.add_powers(columns, Amount(len(columns[0])), sums)
                return
        self.add_whole(columns, weight, peers, found)

    def by_group(
        self, group: Grouping, columns: tuple[Any, ...], weight: Array | None
    ) -> dict[str, object] | None:
        """Return the losses of each group; ``None`` where one takes more than a float64."""
        if LOSSES[self.loss].long or has_long(columns):
            return None
        try:
            with np.errstate(all="ignore"):
                terms: Floats = self.terms(*as_outputs(columns))
        except FloatingPointError:  # of a square or a power
            return None
        return self.terms_by_group(group, terms, weight)

    def terms_by_group(
        self, group: Grouping, terms: Floats, weight: Array | None
    ) -> dict[str, Any]:
        """Return what rows with these losses add to each group."""
        total = ExactSum.grouped(group.index, group.size, terms, weight)
        return self.fields_by_group(group, (terms,), {"loss": total}, weight)

    @cached_property
    def exponents(self) -> tuple[int, ...]:
        """Which powers are summed of the terms, or of those that these are the squares of."""
        return (2,) if LOSSES[self.loss].root else (1,)

    def add_powers(self, columns: Columns, rows: Amount, sums: Mapping[int, ExactSum]) -> None:
        """Add rows of weight one, of which these are the sums of powers."""
        self.add(columns, rows, {"loss": sums[self.exponents[0]]})

    def add_whole(
        self,
        columns: Columns,
        weight: Floats | None,
        peers: Sequence[Statistic],  # noqa: ARG002 - for those that share them
        found: dict[object, ReadColumn],  # noqa: ARG002
    ) -> None:
        """Add rows that have weights, or squares or powers beyond the normal floats."""
        rows = Amount.of_rows(len(columns[0]), weight)
        self.add(columns, rows, self.lift(columns, weight))

    def lift(self, columns: tuple[Floats, ...], weight: Floats | None) -> dict[str, ExactSum]:
        """Return the sum of the losses of rows."""
        if LOSSES[self.loss].long:
            return {"loss": ExactSum.of(self.terms(*columns), weight)}
        try:
            return {"loss": ExactSum.of_terms(self.terms, columns, weight)}
        except FloatingPointError:  # of a square or a power
            rounded, roots = parts_of(self.loss, self.parameter, *columns)
            total = ExactSum.of(rounded, weight) + ExactSum.product(roots, roots, weight)
            return {"loss": total}


def _powers_read(of: tuple[Callable[..., Floats], float], peers: Sequence[Statistic]) -> set[int]:
    """Return which powers of some terms peers read."""
    terms, parameter = of
    powers: set[int] = set()
    for peer in peers:
        if isinstance(peer, LossSum) and peer.parameter == parameter:
            loss = LOSSES[peer.loss]
            if terms is (loss.root or loss.terms):
                powers.update(peer.exponents)
    return powers
