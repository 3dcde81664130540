"""Events one by one: checked at once, kept, and brought on together.

A row of scalars is checked against what is known to be good: a number lies between numbers that
the schemas have accepted, a label is one that they have. What is not is read by the schemas, as a
batch of one row, and widens what is known; the domain of every number is an interval, and so a few
rows are enough. Rows that wait are appended to lists, which any number of threads may do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.column import EXACT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.columns.schema import Kind

    Row = Callable[[Mapping[str, Any]], tuple[Any, ...] | None]

MOST = 1024  # rows that wait
_LABELS = 1 << 16  # that are known to be good
_NUMBERS = frozenset({float, int})
_SCALARS = frozenset({int, str, bool})


class Form:
    """Rows of the same columns, as long as they wait."""

    __slots__ = ("full", "kinds", "labels", "names", "numbers", "row", "types", "values", "widths")

    def __init__(self, names: tuple[str, ...], kinds: Mapping[str, Kind], full: int) -> None:
        self.names = names
        self.full = full  # values that are enough
        self.kinds = {name: kinds.get(name, "number") for name in names}
        self.values: list[Any] = []  # row by row, its time first: nothing else is made of an event
        self.widths: dict[str, Any] = {}  # shape and type of vectors, once one was seen
        self.types: dict[str, type] = {}  # of labels
        # What is known to be good; of a column of which nothing is, no number and no label.
        self.numbers = [(n, 1.0, 0.0) for n in names if self.kinds[n] == "number"]
        nothing: frozenset[Any] = frozenset()
        self.labels = [(n, nothing) for n in names if self.kinds[n] != "number"]
        self.row = _row_of(names, self.labels, self.numbers)  # the values, where known to be good

    def fits(self, columns: Mapping[str, Any]) -> bool:
        """Whether values, which were accepted, can wait beside those of other rows."""
        return all(map(self._fits, columns, columns.values()))

    def _fits(self, name: str, value: Any) -> bool:
        width = self.widths.get(name)
        if isinstance(value, np.ndarray):
            one = any(n == name and low <= high for n, low, high in self.numbers)
            return not one and name not in self.types and width in {None, _width(value)}
        if width is not None:
            return False
        if self.kinds[name] == "number":
            return type(value) in _NUMBERS and -EXACT < value < EXACT
        if type(value) not in _SCALARS or len(dict(self.labels)[name]) >= _LABELS:
            return False
        kind = int if type(value) is bool else type(value)  # 1 and True are one label
        return kind is self.types.setdefault(name, kind)

    def learn(self, columns: Mapping[str, Any]) -> None:
        """Widen what is known by values that were accepted, and fit."""
        for name, value in columns.items():
            if isinstance(value, np.ndarray):
                self.widths[name] = _width(value)
        self.numbers = [
            (name, *_widened(low, high, columns[name])) for name, low, high in self.numbers
        ]
        self.labels = [
            (name, among if isinstance(columns[name], np.ndarray) else among | {columns[name]})
            for name, among in self.labels
        ]
        self.row = _row_of(self.names, self.labels, self.numbers)

    def take(self, heads: int) -> tuple[list[list[Any]], dict[str, Any]]:
        """Return the columns of the rows that wait, of which there are some.

        The first `heads` have no names: the time, and the id where there is one.
        """
        width = heads + len(self.names)
        n = len(self.values) // width * width
        values = self.values[:n]
        del self.values[:n]  # others may have come meanwhile, behind them
        columns = [values[place::width] for place in range(width)]
        named = zip(self.names, columns[heads:], strict=True)
        return columns[:heads], {name: self._array(name, column) for name, column in named}

    def _array(self, name: str, values: list[Any]) -> Any:
        if self.kinds[name] == "number" and name not in self.widths:
            return np.array(values, np.float64)
        # Of booleans and integers NumPy makes integers, as metrics do.
        return values if self.types.get(name) is str else np.array(values)


def _row_of(
    names: tuple[str, ...],
    labels: Sequence[tuple[str, frozenset[Any]]],
    numbers: Sequence[tuple[str, float, float]],
) -> Row:
    """Return what gives the values of columns in order, ``None`` if one is not known to be good.

    It runs for each event: columns of one label, one number, or one of each have their own.
    """
    if len(names) > 2 or max(len(labels), len(numbers)) > 1:
        return _several(names, labels, numbers)
    label, among = labels[0] if labels else ("", frozenset())
    number, low, high = numbers[0] if numbers else ("", 1.0, 0.0)

    def of_label(columns: Mapping[str, Any]) -> tuple[Any, ...] | None:
        try:
            value = columns[label]
            return (value,) if value in among and len(columns) == 1 else None
        except (KeyError, TypeError):  # another column, or a value that has no hash
            return None

    def of_number(columns: Mapping[str, Any]) -> tuple[Any, ...] | None:
        value = columns.get(number)
        if (type(value) is float or type(value) is int) and low <= value <= high:
            return (value,) if len(columns) == 1 else None
        return None

    def of_both(columns: Mapping[str, Any]) -> tuple[Any, ...] | None:
        try:
            known, value = columns[label], columns[number]
            if (
                known in among
                and (type(value) is float or type(value) is int)
                and low <= value <= high
                and len(columns) == 2
            ):
                return (known, value) if first else (value, known)
        except (KeyError, TypeError):
            pass
        return None

    first = names[0] == label
    if labels and numbers:
        return of_both
    return of_label if labels else of_number


def _several(
    names: tuple[str, ...],
    labels: Sequence[tuple[str, frozenset[Any]]],
    numbers: Sequence[tuple[str, float, float]],
) -> Row:
    """Return what gives the values of any columns, as `_row_of`."""

    def row(columns: Mapping[str, Any]) -> tuple[Any, ...] | None:
        if len(columns) != len(names):
            return None
        try:
            for name, among in labels:
                if columns[name] not in among:
                    return None
            for name, low, high in numbers:
                value = columns[name]
                if type(value) is not float and type(value) is not int:
                    return None
                if not low <= value <= high:
                    return None
            return tuple([columns[name] for name in names])
        except (KeyError, TypeError):
            return None

    return row


def _width(value: NDArray[Any]) -> tuple[Any, ...]:
    return value.shape, value.dtype


def _widened(low: float, high: float, value: Any) -> tuple[float, float]:
    if isinstance(value, np.ndarray):
        return low, high
    return (min(low, value), max(high, value)) if low <= high else (value, value)


class Buffer:
    """Events of one sort that wait, by the columns that they have.

    Args:
        check: Takes columns, raises where they are refused, and says whether they can wait.
        kinds: What each column holds.
        heads: Values that each row has before those that are checked: its time, its id.
        keys: Columns of which a missing value is one, too.
    """

    def __init__(
        self,
        check: Callable[[Mapping[str, Any]], bool],
        kinds: Mapping[str, Kind],
        heads: int = 1,
        keys: Collection[str] = (),
    ) -> None:
        self.forms: dict[tuple[str, ...], Form] = {}
        self.first: Form | None = None  # mostly the only one
        self._keys = keys
        self.check, self._kinds, self._heads = check, kinds, heads
        self.most = MOST  # rows that wait

    def checked(self, columns: Mapping[str, Any]) -> Form | None:
        """Check one row, of which `plain` made the values; return the form where it can wait.

        Raises:
            InvalidBatchError: It is refused, alone or beside what other rows were.
        """
        names = tuple(columns)
        form = self.forms.get(names)
        if form is not None and form.row(columns) is not None:
            return form
        waits = self.check(self.as_rows(columns))
        if form is None:
            form = self.forms.setdefault(names, self._form(names))
            self.first = self.first or form
        if not waits or not form.fits(columns):
            return None
        form.learn(columns)
        return form

    def as_rows(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of one row; what is missing is a key, and else no column."""
        return {
            name: None if value is None and name not in self._keys else [value]
            for name, value in columns.items()
        }

    def _form(self, names: tuple[str, ...]) -> Form:
        return Form(names, self._kinds, self.most * (self._heads + len(names)))

    def taken(self) -> list[tuple[list[list[Any]], dict[str, Any]]]:
        """Return the columns of all rows that wait."""
        return [form.take(self._heads) for form in list(self.forms.values()) if form.values]


def plain(value: Any) -> Any:
    """Return one value as Python's own, or as an array of our own where a row has several."""
    if isinstance(value, np.generic) or getattr(value, "ndim", 1) == 0:
        return value.item()
    return np.array(value) if isinstance(value, list | tuple | np.ndarray) else value


def is_column(times: Any) -> bool:
    """Whether times are those of columns, and not that of one event."""
    if isinstance(times, str) or not hasattr(times, "__len__"):
        return False
    return bool(getattr(times, "ndim", 1) > 0)
