"""Sums of losses of probabilities that keep how far rows spread as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streammetrics.statistics.scores.losses import ProbabilityLossSum
from streammetrics.statistics.sums.spreads import Spreading, spread_by_group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.counting import Grouping
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, Columns, Floats, ReadColumn


class ProbabilityLossSpread(Spreading, ProbabilityLossSum):
    """The sum of a loss of probabilities, and of its squares."""

    in_kernels = True

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Add the losses of the rows, and their squares, in one pass."""
        self.update_among((self,), {}, columns, weight)

    def update_among(
        self,
        peers: Sequence[Statistic],
        found: dict[object, ReadColumn],
        columns: Columns,
        weight: Floats | None,
    ) -> None:
        """Add the losses of the rows; where they have weights those of peers are summed beside."""
        spread = self.sums_among(peers, found, columns, weight)
        self.add(columns, spread.total, spread.rows)
        self.spread_by(spread.powers, spread.squared)

    by_group = ProbabilityLossSum.by_group  # with what `losses_by_group` adds

    def losses_by_group(
        self, group: Grouping, losses: Floats, weight: Array | None
    ) -> dict[str, Any]:
        """Return what rows with these losses add to each group, squares included."""
        fields = super().losses_by_group(group, losses, weight)
        return fields | spread_by_group(group, losses, weight, fields["total"])

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return the losses."""
        return self.losses(*columns)
