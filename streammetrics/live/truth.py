"""Which column is the label of a suite, and how columns are kept while one is waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.column import EXACT
from streammetrics.core.columns.conversion import Column, as_column
from streammetrics.core.errors import InvalidBatchError
from streammetrics.live.keys import SliceKeys
from streammetrics.live.reading import metrics_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streammetrics.core.columns.schema import Kind
    from streammetrics.core.mergeable import Mergeable

_BEYOND = 2.0**63  # labels are in int64
_TRUTHS = ("y_true", "labels_true", "relevance")


def truth_of(suite: Mergeable) -> str:
    """Return the user's name of the column that holds the label, nothing where there is none."""
    renamed: Mapping[str, str] = getattr(suite, "columns", {})
    inputs = suite._layout.required
    return next((renamed.get(name, name) for name in _TRUTHS if name in inputs), "")


def kinds_of(suite: Mergeable) -> dict[str, Kind]:
    """Return what each column holds, by the name that the user gives it."""
    renamed: Mapping[str, str] = getattr(suite, "columns", {})
    found: dict[str, Kind] = {}
    order: tuple[Kind, ...] = ("label", "id", "number")
    for schema in suite._layout.schemas:
        for name, kind in schema.kinds.items():
            title = renamed.get(name, name)
            found[title] = max(kind, found.get(title, kind), key=order.index)
    return {**{n: k for n, k in found.items() if not n.startswith("by/")}, **SliceKeys(suite).kinds}


def as_numbers(column: Column, name: str, kind: Kind) -> Column:
    """Return a column as it waits: numbers as floats, labels as integers or strings.

    A label True is 1, and 3.0 is 3, so that it does not matter which came first.

    Raises:
        InvalidBatchError: An integer is not held by a float64, or a label is no label.
    """
    values = column.values
    if column.vocabulary is not None:
        return column
    if kind == "number":
        if values.dtype.kind in "iu" and values.size and np.abs(values.astype(float)).max() > EXACT:
            raise InvalidBatchError(
                f"{name} holds integers beyond 2**53, which a row that waits, or is kept by "
                "itself, does not hold: subtract an offset, or observe() without keep_rows"
            )
        return Column(values.astype(np.float64), column.nulls, True)
    if values.dtype.kind == "f":
        good = (np.rint(values) == values) & (np.abs(values) < _BEYOND)
        if not good.all():
            row = int(np.argmin(good.reshape(len(good), -1).all(axis=1)))
            raise InvalidBatchError(
                f"{name} is not a label (an integer, a boolean or a string), first in row {row} "
                f"({values[row].tolist()!r})",
                name,
                row,
            )
    if values.dtype.kind in "fb":
        return Column(values.astype(np.int64), column.nulls, True)
    return column


def stand_ins(suite: Mergeable, others: Mapping[str, object]) -> Iterator[Any]:
    """Yield labels of which one goes with predictions that are good, whatever the suite."""
    for metric in metrics_of(suite).values():
        config = metric.config
        yield from config.get("labels") or ()
        if "pos_label" in config:
            yield 1 if config["pos_label"] is None else config["pos_label"]
    for name, value in others.items():
        column = as_column(value, name)[:1]
        if column.values.ndim == 1 and len(column):
            words = column.vocabulary
            yield (column.values if words is None else words[column.values])[0].item()
    yield from (1, 0)
    for name, value in others.items():  # as many labels as there are predictions
        values = as_column(value, name).values
        if values.ndim > 1:
            yield np.zeros_like(values[0], np.int64)
