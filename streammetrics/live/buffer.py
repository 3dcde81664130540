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

    from streammetrics.core.columns.schema import Kind

MOST = 1024  # rows that wait
_LABELS = 1 << 16  # that are known to be good
_NUMBERS = frozenset({float, int})
_SCALARS = frozenset({int, str, bool})
_NONE: frozenset[Any] = frozenset()

# The types of a value, the smallest and the largest number, or the labels that are known.
Check = tuple[frozenset[type], float, float, set[Any] | None]


class Form:
    """Rows of the same columns, as long as they wait."""

    __slots__ = ("checks", "kinds", "names", "rows", "widths")

    def __init__(self, names: tuple[str, ...], kinds: Mapping[str, Kind]) -> None:
        self.names = names
        self.kinds = [kinds.get(name, "number") for name in names]
        self.rows: list[tuple[Any, ...]] = []  # each with its time first
        self.widths: list[Any] = [None] * len(names)  # shape and type of vectors, once one was seen
        self.checks: list[Check] = [(_NONE, 1.0, 0.0, None)] * len(names)

    def known(self, values: Collection[Any]) -> bool:
        """Whether values are known to be good."""
        for value, (types, low, high, among) in zip(values, self.checks, strict=True):
            if type(value) not in types:
                return False
            if not (low <= value <= high if among is None else value in among):
                return False
        return True

    def fits(self, values: Sequence[Any]) -> bool:
        """Whether values, which were accepted, can wait beside those of other rows."""
        for place, value in enumerate(values):
            types, _, _, among = self.checks[place]
            width = self.widths[place]
            if isinstance(value, np.ndarray):
                if types or width not in {None, (value.shape, value.dtype)}:
                    return False
            elif width is not None or (types and type(value) not in types):
                return False
            elif self.kinds[place] == "number":
                if type(value) not in _NUMBERS or not -EXACT < value < EXACT:
                    return False
            elif type(value) not in _SCALARS or (among is not None and len(among) >= _LABELS):
                return False
        return True

    def learn(self, values: Sequence[Any]) -> None:
        """Widen what is known by values that were accepted, and fit."""
        for place, value in enumerate(values):
            types, low, high, among = self.checks[place]
            if isinstance(value, np.ndarray):
                self.widths[place] = value.shape, value.dtype
            elif self.kinds[place] == "number":
                low, high = (min(low, value), max(high, value)) if types else (value, value)
                self.checks[place] = _NUMBERS, low, high, None
            else:
                known = {*(among or ()), value}
                self.checks[place] = frozenset({type(value)}), 0.0, 0.0, known

    def take(self, heads: int) -> tuple[list[tuple[Any, ...]], dict[str, Any]]:
        """Return the columns of the rows that wait, of which there are some.

        The first `heads` have no names: the time, and the id where there is one.
        """
        n = len(self.rows)
        rows = self.rows[:n]
        del self.rows[:n]  # others may have come meanwhile, behind them
        columns = list(zip(*rows, strict=True))
        named = zip(self.names, columns[heads:], self.kinds, self.checks, strict=True)
        return columns[:heads], {name: _array(c, kind, check) for name, c, kind, check in named}


def _array(values: tuple[Any, ...], kind: Kind, check: Check) -> Any:
    if kind == "number" and check[0]:
        return np.array(values, np.float64)
    return list(values) if check[0] == {str} else np.array(values)


class Buffer:
    """Events of one sort that wait, by the columns that they have.

    Args:
        check: Takes columns, raises where they are refused, and says whether they can wait.
        kinds: What each column holds.
        heads: Values that each row has before those that are checked: its time, its id.
    """

    def __init__(
        self,
        check: Callable[[Mapping[str, Any]], bool],
        kinds: Mapping[str, Kind],
        heads: int = 1,
    ) -> None:
        self.forms: dict[tuple[str, ...], Form] = {}
        self.check, self._kinds, self._heads = check, kinds, heads

    def checked(self, columns: Mapping[str, Any]) -> Form | None:
        """Check one row, of which `plain` made the values; return the form where it can wait.

        Raises:
            InvalidBatchError: It is refused, alone or beside what other rows were.
        """
        names, values = tuple(columns), tuple(columns.values())
        form = self.forms.get(names)
        if form is not None and form.known(values):
            return form
        waits = self.check({name: as_row(value) for name, value in columns.items()})
        if form is None:
            form = self.forms.setdefault(names, Form(names, self._kinds))
        if not waits or not form.fits(values):
            return None
        form.learn(values)
        return form

    def taken(self) -> list[tuple[list[tuple[Any, ...]], dict[str, Any]]]:
        """Return the columns of all rows that wait."""
        return [form.take(self._heads) for form in list(self.forms.values()) if form.rows]


def plain(value: Any) -> Any:
    """Return one value as Python's own, or as an array of our own where a row has several."""
    if isinstance(value, np.generic) or getattr(value, "ndim", 1) == 0:
        return value.item()
    return np.array(value) if isinstance(value, list | tuple | np.ndarray) else value


def as_row(value: Any) -> Any:
    """Return the column of one row."""
    return None if value is None else [value]


def is_column(times: Any) -> bool:
    """Whether times are those of columns, and not that of one event."""
    if isinstance(times, str) or not hasattr(times, "__len__"):
        return False
    return bool(getattr(times, "ndim", 1) > 0)
