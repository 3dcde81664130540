"""Columns of more than one dimension as rows: one-column matrices, and labels at positions.

Labels of tokens or pixels come as (B, T...): a sample has one at each position. Every position is
a row of its own, and the columns beside the labels follow their shape: (B, T...) too, or (B, K,
T...) scores of K classes, the class second, as PyTorch has it; they become (n, K).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.columns.column import Column
from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from streammetrics.core.types import Array


_NEAR = 1e-2  # as far off as sums of probabilities in half precision may be


def by_row(column: Column, positions: tuple[int, ...], title: str) -> Column:
    """Return a column (n,) or (n, d) of one of two or more dimensions.

    `positions` is the shape of labels (B, T...), and empty where they are (n,).

    >>> by_row(Column(np.array([[1], [2]])), (), "y_true").values
    array([1, 2])
    >>> by_row(Column(np.arange(12).reshape(2, 2, 3)), (2, 3), "y_score").values.tolist()
    [[0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8, 11]]
    """
    shape = column.values.shape
    if not positions:
        if shape[1:] == (1,):
            return _reshaped(column, (shape[0],))
        if len(shape) == 2:
            return column
        if math.prod(shape[2:]) == 1:  # (B, K, 1) scores, whose labels (B, 1) are (n,)
            return _reshaped(column, shape[:2])
        raise InvalidBatchError(
            f"{title} has shape {shape}; pass (n,) or (n, d), which .reshape(-1) makes of numbers "
            "that are a row each, or beside labels of shape (B, T...) scores of shape (B, K, T...)"
        )
    if shape == positions:
        return _reshaped(column, (math.prod(shape),))
    if len(shape) > len(positions) and shape[:1] + shape[2:] == positions:
        moved = Column(_class_last(column.values), None, True)
        if column.nulls is not None:
            moved.nulls = _class_last(column.nulls)
        return by_row(_reshaped(moved, (math.prod(positions), shape[1])), (), title)
    sample, *rest = map(str, positions)
    raise InvalidBatchError(
        f"{title} has shape {shape}, and the labels {positions}: pass one value for each label, or "
        f"scores of shape ({', '.join([sample, 'K', *rest])}), the class second; labels that are "
        "one-hot come as y_true.argmax(axis=1)"
    )


def refuse_one_hot(labels: Column, column: Column, positions: tuple[int, ...], title: str) -> None:
    """Raise where labels (n, K) are one-hot, and what is beside them is rows of probabilities.

    Both would be read as n * K rows of two classes, and hardly anybody means that: labels at
    positions have none or several of the class in some row, or scores that do not sum to 1.
    """
    if len(positions) != 2 or column.values.shape != positions or labels.vocabulary is not None:
        return
    if column.values.dtype.kind != "f":
        return
    marks = labels.values.reshape(positions)
    one = marks == 1
    if not ((one | (marks == 0)).all() and (np.count_nonzero(one, axis=1) == 1).all()):
        return
    if (np.abs(column.values.sum(axis=1, dtype=np.float64) - 1) <= _NEAR).all():
        raise InvalidBatchError(
            f"{title} has shape {positions} and rows that sum to 1, beside labels that are "
            "one-hot: pass y_true.argmax(axis=1) for rows of classes, or both columns as "
            ".reshape(-1) for rows of positions"
        )


def _class_last(values: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(values, 1, -1))


def _reshaped(column: Column, shape: tuple[int, ...]) -> Column:
    nulls = None if column.nulls is None else column.nulls.reshape(shape)
    return Column(column.values.reshape(shape), nulls, column.owned, column.vocabulary)
