"""Events one by one: checked at once, kept, and brought on together.

A row of scalars is checked against what is known to be good: a number lies between numbers that
the schemas have accepted, a label is one that they have. What is not is read by the schemas, as a
batch of one row, and widens what is known; the domain of every number is an interval, and so a few
rows are enough. Rows that wait are appended to lists, which any number of threads may do.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streammetrics.core.columns.column import EXACT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.columns.schema import Kind

    # What values of a column are that wait together: numbers, labels of one type, or arrays.
    Sort = Literal["number", "alone"] | type | tuple[tuple[int, ...], np.dtype[Any]]

MOST = 1024  # rows that wait
MOST_WITH_ID = 2048  # the same of those looked up by it: they cost less, the more there are
_LABELS = 1 << 16  # that are known to be good
_LONGEST = 1 << 63  # integers that wait are nearer to 0
_CODES = {"d": np.float64, "q": np.int64}


class Form:
    """Rows of the same columns that hold values of the same sorts, as long as they wait.

    Attributes:
        knows: Whether values of columns are known to be good.
        put: Takes the values of columns, and what stands before them, if they are known to be good;
            returns how many values wait then, 0 where it has not taken them.
    """

    __slots__ = ("_good", "full", "heads", "knows", "names", "put", "sorts", "values")

    knows: Callable[[Mapping[str, Any]], bool]
    put: Callable[..., int]

    def __init__(
        self, heads: Sequence[str], names: tuple[str, ...], sorts: Sequence[Sort], most: int
    ) -> None:
        self.names, self.sorts, self.heads = names, sorts, len(heads)
        self.full = most * (len(heads) + len(names))  # values that are enough
        self.values: list[Any] = []  # row by row, its time first: nothing else is made of an event
        self._good: dict[str, Any] = {"values": self.values, "extend": self.values.extend}
        for place, sort in enumerate(sorts):  # no number and no label, to begin with
            if sort == "number":
                self._good |= {f"low_{place}": 1.0, f"high_{place}": 0.0}
            else:
                self._good |= {f"among_{place}": set()}
        exec(_source(heads, names, sorts), self._good)
        self.knows, self.put = self._good["knows"], self._good["put"]

    def learn(self, columns: Mapping[str, Any]) -> None:
        """Widen what is known by values that were accepted."""
        good = self._good
        for place, (sort, value) in enumerate(zip(self.sorts, columns.values(), strict=True)):
            if sort == "number":
                low, high = good[f"low_{place}"], good[f"high_{place}"]
                known = low <= high
                good[f"low_{place}"] = min(low, value) if known else value
                good[f"high_{place}"] = max(high, value) if known else value
            elif isinstance(sort, type) and len(good[f"among_{place}"]) < _LABELS:
                good[f"among_{place}"].add(value)

    def taken(self) -> tuple[list[list[Any]], dict[str, Any]]:
        """Return the columns of the rows that wait, of which there are some.

        The first have no names: the time, and the id where there is one.
        """
        heads, width = self.heads, self.heads + len(self.names)
        n = len(self.values) // width * width
        columns = [self.values[place:n:width] for place in range(width)]
        del self.values[:n]  # others may have come meanwhile, behind them
        named = zip(self.names, self.sorts, columns[heads:], strict=True)
        return columns[:heads], {name: _array(sort, column) for name, sort, column in named}


def sort_of(value: Any, kind: Kind) -> Sort:
    """Return what a value can wait with."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype
    cls = type(value)
    if kind == "number":
        return "number" if (cls is float or cls is int) and -EXACT < value < EXACT else "alone"
    if cls is int:
        return int if -_LONGEST < value < _LONGEST else "alone"
    return cls if cls is str or cls is bool or cls is float else "alone"


def _array(sort: Sort, values: list[Any]) -> Any:
    if sort in {"number", float}:
        return packed(values, "d")
    if sort is int:
        return packed(values, "q")
    return values if sort is str else np.array(values)


def _source(heads: Sequence[str], names: Sequence[str], sorts: Sequence[Sort]) -> str:
    """Return the functions of a form, which know what is good as their global names.

    They run for each event, and so they are written out for its columns, as named tuples are.
    """
    values = [f"value_{place}" for place in range(len(names))]
    taken = [f"{value} = columns[{name!r}]" for value, name in zip(values, names, strict=True)]
    known = [f"len(columns) == {len(names)}"]
    for value, place, sort in zip(values, range(len(names)), sorts, strict=True):
        if sort == "number":
            known.append(f"(type({value}) is float or type({value}) is int)")
            known.append(f"low_{place} <= {value} <= high_{place}")
        elif isinstance(sort, type):
            known.append(f"type({value}) is {sort.__name__} and {value} in among_{place}")
        else:
            known.append("False")  # arrays are looked at, each of them
    return f"""
def knows(columns):
    try:
        {"; ".join(taken)}
        return {" and ".join(known)}
    except KeyError:  # of another column
        return False

def put(columns, {", ".join(heads)}):
    try:
        {"; ".join(taken)}
        if {" and ".join(known)}:
            extend(({", ".join([*heads, *values])}))
            return len(values) or 1  # others may have taken them meanwhile
    except KeyError:
        pass
    return 0
"""


def packed(values: Sequence[Any], code: Literal["d", "q"]) -> NDArray[Any]:
    """Return numbers as float64 (``d``), or integers as int64 (``q``).

    It takes a third of the time in which NumPy finds out what a list holds.
    """
    array: Any = np.empty(len(values), _CODES[code])
    struct.pack_into(f"{len(values)}{code}", array, 0, *values)
    return array  # type: ignore[no-any-return]


class Buffer:
    """Events of one sort that wait, by the columns that they have.

    Args:
        check: Takes columns, raises where they are refused, and says whether they can wait.
        kinds: What each column holds.
        heads: What each row has before the values that are checked: its time, its id.
        keys: Columns of which a missing value is one, too.
    """

    def __init__(
        self,
        check: Callable[[Mapping[str, Any]], bool],
        kinds: Mapping[str, Kind],
        heads: Sequence[str] = ("time",),
        keys: Collection[str] = (),
    ) -> None:
        self.forms: dict[tuple[Any, ...], Form] = {}
        self.first: Form | None = None  # mostly the only one
        self._keys, self._alike = keys, dict[str, Any]()
        self.check, self._kinds, self._heads = check, kinds, heads
        self.most = MOST_WITH_ID if "id" in heads else MOST  # rows that wait

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the first events that could wait."""
        return () if self.first is None else self.first.names

    def checked(self, columns: Mapping[str, Any]) -> Form | None:
        """Check one row, of which `plain` made the values; return the form where it can wait.

        Raises:
            InvalidBatchError: It is refused, alone or beside what other rows were.
        """
        kinds = [self._kinds.get(name, "number") for name in columns]
        names = tuple(columns)
        sorts = tuple(map(sort_of, columns.values(), kinds))
        form = self.forms.get((names, sorts))
        if form is not None and form.knows(columns):
            return form
        waits = self.check(self.as_rows(columns))
        if not (waits and all(map(self._fits, names, sorts))):
            return None
        if form is None:
            new = Form(self._heads, names, sorts, self.most)
            form = self.forms.setdefault((names, sorts), new)
            self.first = self.first or form
        form.learn(columns)
        return form

    def _fits(self, name: str, sort: Sort) -> bool:
        """Whether a value can wait beside others: text with text, and all else by its shape."""
        if sort == "alone":
            return False
        alike = sort if isinstance(sort, tuple) else (sort is str)
        return bool(self._alike.setdefault(name, alike) == alike)

    def as_rows(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of one row; what is missing is a key, and else no column."""
        return {
            name: None if value is None and name not in self._keys else [value]
            for name, value in columns.items()
        }

    def taken(self) -> list[tuple[list[list[Any]], dict[str, Any]]]:
        """Return the columns of all rows that wait."""
        return [form.taken() for form in list(self.forms.values()) if form.values]


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
