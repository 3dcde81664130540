"""Sums of how well known shown items are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core import elementary
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import Schema
from streammetrics.core.constraints import NanPolicy
from streammetrics.statistics.sums.rowwise import RowSum

if TYPE_CHECKING:
    from streammetrics.core.types import Floats, ReadColumn


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
