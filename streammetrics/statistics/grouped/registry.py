"""Which form the states of a statistic are held in for many groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.statistics.grouped.split import Split
from streammetrics.statistics.grouped.tables import Tables

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.statistics.grouped.forms import Form


def form_of(statistic: Statistic) -> type[Form]:
    """Return the form for a statistic: tables where there is one, else rows are split by group."""
    return Tables if Tables.fits(statistic) else Split
