"""Curves: named tuples of arrays, one curve or one per class."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from streammetrics.core.results.result import Result
from streammetrics.core.results.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streammetrics.core.types import Floats


class Points(Result):
    """Base class of the points of a curve; a named tuple of arrays lists it as its first base."""

    __slots__ = ()

    # Column titles of tables that differ from the names of the arrays.
    _titles: ClassVar[dict[str, str]] = {"thresholds": "threshold"}

    # Properties of the rows that a metric adds for plots.
    positives: float | None = None
    negatives: float | None = None
    exact: bool = True
    rows: Floats | None = None  # number of rows in each bin

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if not hasattr(cls, "_asdict"):
            name = cls.__name__
            told = f"define a NamedTuple _{name}, and class {name}(Points, _{name})"
            raise TypeError(f"{name} is not a named tuple: {told}")

    def told(self, **facts: object) -> Self:
        """Set properties of the rows; return the points."""
        self.__dict__.update(facts)
        return self

    def to_dict(self) -> dict[str, list[float]]:
        """Return the arrays as lists by name."""
        return {name: values.tolist() for name, values in self._named().items()}

    def _table(self) -> Table:
        named = self._named()
        size = max(map(len, named.values()))
        # The last point of a precision-recall curve has no threshold.
        columns = {
            self._titles.get(name, name): values
            if len(values) == size
            else np.append(values, [np.nan] * (size - len(values)))
            for name, values in named.items()
        }
        return Table({}, columns)

    def _named(self) -> dict[str, Floats]:
        return self._asdict()  # type: ignore[attr-defined,no-any-return]  # _asdict of the named tuple

    def __repr__(self) -> str:
        with np.printoptions(threshold=50, edgeitems=2):
            inside = ", ".join(f"{name}={values!r}" for name, values in self._named().items())
        return f"{type(self).__name__}({inside})"


class Curves(Result, tuple[Points, ...]):
    """A curve for each class or model, in their order; `of` says which.

    The data decide whether a metric returns these or one curve. Type checkers see ``ROCPoints |
    Any``, which lets the code use the one that it knows it has.
    """

    labels: tuple[Any, ...]
    of: str

    def __new__(cls, curves: Iterable[Points], labels: Iterable[object], of: str = "class") -> Self:
        """Return the tuple of curves with the labels of their classes or models."""
        self = super().__new__(cls, curves)
        self.labels, self.of = tuple(labels), of
        return self

    def to_dict(self) -> dict[Any, dict[str, list[float]]]:
        """Return the curve of each class or model by its label."""
        return {label: curve.to_dict() for label, curve in zip(self.labels, self, strict=True)}

    def _table(self) -> Table:
        tables = [curve._table() for curve in self]
        labels = [[label] * len(table) for label, table in zip(self.labels, tables, strict=True)]
        columns = {
            title: np.concatenate([table.columns[title] for table in tables])
            for title in tables[0].columns
        }
        return Table({self.of: list(chain.from_iterable(labels))}, columns)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (tuple(self), self.labels, self.of)


def is_curve(value: object) -> bool:
    """Whether a value is one or more curves: its fields are arrays, not single numbers."""
    first = value[0] if isinstance(value, Curves) and value else value
    return isinstance(first, Points) and any(map(np.ndim, first._named().values()))
