"""Columns of keys and ids: one value a row, text or whole numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.schema import reject
from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from streammetrics.core.errors import Hint
    from streammetrics.core.types import Array, Bools, Foreign, Ints


def flat(column: Column, title: str) -> Column:
    """Return a column with one value a row as (n,)."""
    if column.values.ndim > 1:
        if column.values.shape[1:] != (1,):
            shape = column.values.shape
            raise InvalidBatchError(f"{title} has shape {shape}; a key is one value a row")
        nulls = None if column.nulls is None else column.nulls.reshape(-1)
        return Column(column.values.reshape(-1), nulls, column.owned, column.vocabulary)
    return column


def as_integers(
    values: Array, nulls: Bools | None, title: str, what: str, advice: str | Hint = ""
) -> tuple[Ints, Foreign]:
    """Return floats as integers with a mask of missing values; raise if a value is not whole."""
    missing = np.isnan(values)
    if nulls is not None:
        missing |= nulls
    kept = np.where(missing, 0, values).astype(np.float64)
    wrong = (np.rint(kept) != kept) | (np.abs(kept) >= 2.0**63)
    if wrong.any():
        reject(title, what, wrong, values, advice=advice)
    return kept.astype(np.int64), missing if missing.any() else None
