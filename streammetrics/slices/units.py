"""Units that rows are of, in groups by a hash of their value: whole units, and always alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.conversion import as_column
from streammetrics.core.errors import InvalidBatchError
from streammetrics.statistics.clusters.rows import label_hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

GROUPS = 64
_SEED = 0


def hashed(title: str) -> str:
    """Return the name of the column of groups."""
    return f"hash of {title}"


def groups_of(value: Any, title: str) -> NDArray[np.int64]:
    """Return the group of each row's unit, 0 to 63.

    Raises:
        InvalidBatchError: There is no such column, or it holds what is no id in every row.
    """
    if value is None:
        raise InvalidBatchError(f"no column {title!r}, which says what unit each row is of")
    column = as_column(value, title)
    values, missing = column.values.reshape(-1), column.nulls
    if values.dtype.kind == "f":
        missing = np.isnan(values) if missing is None else missing.reshape(-1) | np.isnan(values)
        odd = ~missing & ((np.rint(values) != values) | (np.abs(values) >= 2.0**63))
        _refuse(odd, title, "holds numbers that are no ids")
        values = np.where(missing, 0, values).astype(np.int64)
    if missing is not None:
        _refuse(missing.reshape(-1), title, "is missing, and every row is of a unit")
    of = column.vocabulary
    hashes = label_hashes(values.astype(np.int64) if of is None else of, _SEED)
    groups: NDArray[np.int64] = (hashes % np.uint64(GROUPS)).astype(np.int64)
    return groups if of is None else groups[values]


def _refuse(wrong: NDArray[np.bool_], title: str, what: str) -> None:
    if wrong.any():
        row, count = int(np.argmax(wrong)), int(np.count_nonzero(wrong))
        raise InvalidBatchError(
            f"{title} {what}, in {count} row{'s' * (count != 1)}, first in row {row}", title, row
        )
