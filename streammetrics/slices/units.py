"""Units that rows are of, in groups by a hash of their value: whole units, and always alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.columns.conversion import as_column
from streammetrics.core.columns.schema import reject
from streammetrics.core.errors import InvalidBatchError
from streammetrics.slices.reading import flat, whole
from streammetrics.statistics.clusters.rows import label_hashes

if TYPE_CHECKING:
    from streammetrics.core.types import Ints

GROUPS = 64
_SEED = 0


def hashed(title: str) -> str:
    """Return the name of the column of groups."""
    return f"hash of {title}"


def groups_of(value: object, title: str) -> Ints:
    """Return the group of each row's unit, 0 to 63.

    Raises:
        InvalidBatchError: There is no such column, or it holds what is no id in every row.
    """
    if value is None:
        raise InvalidBatchError(f"no column {title!r}, which says what unit each row is of")
    column = flat(as_column(value, title), title)
    values, missing = column.values, column.nulls
    if values.dtype.kind == "f":
        values, missing = whole(values, missing, title, "holds numbers that are no ids")
    if missing is not None and missing.any():
        reject(title, "is missing, and every row is of a unit", missing)
    of = column.vocabulary
    hashes = label_hashes(values.astype(np.int64) if of is None else of, _SEED)
    groups: Ints = (hashes % np.uint64(GROUPS)).astype(np.int64)
    return groups if of is None else groups[values]
