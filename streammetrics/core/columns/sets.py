"""Conversion of rows that are sets of labels to indicators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.column import Column
from streammetrics.core.errors import Hint, InvalidBatchError

if TYPE_CHECKING:
    from collections.abc import Collection

    from streammetrics.core.types import ClassLabel


def as_sets(value: object) -> list[Any] | None:
    """Return the rows as sets or lists of labels; ``None`` if the value holds anything else.

    Rows are sets, or lists of strings. Lists of numbers are rejected because they are ambiguous:
    they could be sets of labels or rows of a matrix.
    """
    if isinstance(value, np.ndarray) and value.dtype != object:
        return None
    for method in ("tolist", "to_list", "to_pylist"):
        if not isinstance(value, list | tuple) and hasattr(value, method):
            if getattr(value, "ndim", 1) != 1:
                return None
            value = getattr(value, method)()
    if not isinstance(value, list | tuple):
        return None
    rows = list(value)
    nested = [row for row in rows if isinstance(row, set | frozenset | list | tuple)]
    if not nested or len(nested) + sum(row is None for row in rows) < len(rows):
        return None
    some = (row for row in nested if not isinstance(row, set | frozenset))
    listed = [item for row in some for item in row]
    if any(not isinstance(item, str) for item in listed):
        return None
    texts = bool(listed) or any(isinstance(row, set | frozenset) for row in nested)
    return rows if texts or not any(map(len, nested)) else None


def marked(rows: list[Any], labels: tuple[ClassLabel, ...] | None, title: str) -> Column:
    """Convert sets of labels to indicators (n, L), one column for each of `labels`."""
    if labels is None:
        raise InvalidBatchError(
            f"{title} holds sets of labels",
            hint=Hint("say which there are, in their order, {labels}", labels=[...]),
        )
    places = {label: place for place, label in enumerate(labels)}
    held: list[Collection[ClassLabel]] = [() if row is None else row for row in rows]
    counts = np.fromiter(map(len, held), np.intp, len(held))
    flat = [places.get(label, -1) for row in held for label in row]
    found = np.array(flat, np.intp)
    at = np.repeat(np.arange(len(held)), counts)
    if (found < 0).any():
        first = int(np.argmax(found < 0))
        label = [label for row in held for label in row][first]
        count = int(np.unique(at[found < 0]).size)
        raise InvalidBatchError(
            f"{title} has a label that is not one of those given in {count} "
            f"row{'s' * (count != 1)}, first in row {at[first]} ({label!r}); "
            f"labels={repr(labels)[:60]}",
            title,
            int(at[first]),
        )
    marks = np.zeros((len(held), len(labels)), np.uint8)
    marks[at, found] = 1
    nulls = np.array([row is None for row in rows], np.bool_)
    absent = np.repeat(nulls[:, None], len(labels), axis=1) if nulls.any() else None
    return Column(marks, absent, True)
