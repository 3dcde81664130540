"""Groups of sampling units, as a column of slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.inference.units import unit_column
from streammetrics.statistics.grouped.keys import GROUPS

if TYPE_CHECKING:
    from streammetrics.core.types import Ints


def hashed(title: str) -> str:
    """Return the name of the column of unit groups."""
    return f"hash of {title}"


def groups_of(value: object, title: str) -> Ints:
    """Return the group of each row's unit, from 0 to 63.

    Raises:
        InvalidBatchError: The column does not exist, or a row has no valid id.
    """
    groups: Ints = unit_column(value, title).values & np.int64(GROUPS - 1)
    return groups
