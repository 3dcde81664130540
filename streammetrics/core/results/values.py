"""The return types of `compute` and `bounds` for values that are not one number.

Each is what NumPy users expect (an array, a tuple, a dictionary) and also a `Result`: it has the
labels of the classes, queries or outputs behind its numbers.

    >>> import streammetrics as sm
    >>> matrix = sm.ConfusionMatrix().update(["cat", "dog", "dog"], ["cat", "dog", "cat"]).compute()
    >>> matrix
    array([[1, 0],
           [1, 1]])
    >>> matrix.to_dict()["dog"]["cat"]
    1
    >>> matrix.to_frame().loc["dog", "cat"]
    np.int64(1)

`to_dict` returns plain Python objects that JSON can represent (NaN and infinities stay floats).
`to_frame` returns a pandas or polars data frame. Notebooks show `_repr_html_`.
"""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import numpy as np

from streammetrics.core.results.labelled import LabelledArray
from streammetrics.core.results.result import VALUE, Result
from streammetrics.core.results.table import Table
from streammetrics.core.types import Each, V_co

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from streammetrics.core.results.table import Column


class KeyedValues(Result, dict[Any, float]):
    """A number for each query or cluster, by its id."""

    def __init__(self, values: Mapping[Any, float], name: str) -> None:
        super().__init__(values)
        self.name = name

    def to_dict(self) -> dict[Any, float]:
        """Return a plain dictionary."""
        return dict(self)

    def _table(self) -> Table:
        return Table({self.name: list(self)}, {VALUE: list(self.values())})

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (dict(self), self.name)


class Report(Result, dict[str, Any]):
    """Several numbers for each class and for averages over classes, and one for all rows.

    The layout is that of `sklearn.metrics.classification_report` with ``output_dict=True``. In a
    table, the number for all rows is in the column of the F1 score, as in the printed report.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dictionary."""
        return plain(dict(self))  # type: ignore[no-any-return]  # plain() of a dictionary is a dictionary

    def _table(self) -> Table:
        whole = next(entry for entry in self.values() if isinstance(entry, dict))
        rows = [
            entry if isinstance(entry, dict) else {"f1-score": entry} for entry in self.values()
        ]
        columns = {title: [row.get(title, np.nan) for row in rows] for title in whole}
        return Table({"class": list(self)}, columns)


class Values(Result, dict[str, Each]):
    """The values of the metrics of a set, by name; a table has a row for each number."""

    def to_dict(self) -> dict[str, Any]:
        """Return the value of each metric in plain Python."""
        return plain(dict(self))  # type: ignore[no-any-return]  # plain() of a dictionary is a dictionary

    def _table(self) -> Table:
        rows = [(name, *row) for name, value in self.items() for row in numbers(value)]
        index = {"metric": [name for name, _, _ in rows]}
        if any(of for _, of, _ in rows):
            index["of"] = [of for _, of, _ in rows]
        titles = dict.fromkeys(chain.from_iterable(row for _, _, row in rows))
        return Table(index, {title: _alike(row[title] for *_, row in rows) for title in titles})


class _Sides(NamedTuple, Generic[V_co]):
    low: V_co
    high: V_co


class Interval(Result, _Sides[V_co]):
    """Two values that are guaranteed to enclose the exact one; equal if it is known exactly."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return both limits in plain Python."""
        return {"low": plain(self.low), "high": plain(self.high)}

    def _table(self) -> Table:
        rows = list(numbers(self))
        index: Mapping[str, Column] = {"of": [of for of, _ in rows]}
        if isinstance(self.low, LabelledArray) and self.low.ndim == 1:
            index = self.low._table().index
        return Table(
            index if isinstance(self.low, Result) else {},
            {title: _alike(row[title] for _, row in rows) for title in self._fields},
        )


def numbers(value: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (label, {column title: number}) for every number of a value.

    Parts of a label are joined by slashes; a slash or backslash within a part is escaped by a
    backslash.
    """
    if isinstance(value, Interval):
        for (of, low), (_, high) in zip(numbers(value.low), numbers(value.high), strict=True):
            yield of, {"low": low[VALUE], "high": high[VALUE]}
    elif isinstance(value, Result):
        table = value._table()
        for row in range(len(table)):
            path = [labels[row] for labels in table.index.values()] or [row]
            for title, column in table.columns.items():
                parts = path if title == VALUE else [*path, title]
                texts = [f"{part}" for part in parts]
                if len(texts) > 1:
                    texts = [text.replace("\\", r"\\").replace("/", r"\/") for text in texts]
                yield "/".join(texts), {VALUE: column[row]}
    else:
        yield "", {VALUE: value}


def _alike(values: Iterable[object]) -> list[object]:
    """Return a column, with integers converted to floats if it has any floats."""
    column = list(values)
    if not any(isinstance(value, float) for value in column):
        return column
    return [float(value) if isinstance(value, int) else value for value in column]


def flat(name: str, value: object) -> dict[str, float]:
    """Return the numbers of a value by flat names; curves and matrices have none."""
    if isinstance(value, LabelledArray) and value.ndim == 1:
        return {f"{name}/{label}": float(number) for label, number in value.to_dict().items()}
    if isinstance(value, Report):
        parts = ((of, float(row[VALUE])) for of, row in numbers(value))
        return {f"{name}/{of}": number for of, number in parts if not math.isnan(number)}
    if isinstance(value, int | float | np.number):
        return {name: float(value)}
    return {}


def plain(value: object) -> Any:
    """Return a value in plain Python: dictionaries, lists, strings and numbers."""
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
