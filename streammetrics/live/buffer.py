"""Events one by one: checked, buffered, and handed on together."""

from __future__ import annotations

import math
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy import ma  # loaded here: a handler of a signal may come while it loads

from streammetrics.core.columns.column import EXACT
from streammetrics.live.events import IDS, packed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Options

    Sort = Literal["number", "alone"] | type | tuple[tuple[int, ...], np.dtype[Any]]
    from collections.abc import Callable, Collection, Mapping

    from streammetrics.core.columns.schema import Kind
    from streammetrics.core.types import ArrayLike
    from streammetrics.live.events import Kind as EventKind


VERSIONS = 1 << 63  # below which they are
_HEADS = {
    "time": "(_type(time) is _float or _type(time) is _int) and 0 <= time < _until",
    "id": "_type(id) in _ids",
    "version": "(version is _version or _type(version) is _int and 0 <= version < _versions)",
}


def known_names(sorts: Sequence[Sort]) -> Options:
    """Return the global names of functions that know no number and no label to be good yet."""
    types = {"_type": type, "_len": len, "_float": float, "_int": int, "_str": str, "_bool": bool}
    known = {**types, "_ids": IDS, "_version": 1, "_versions": VERSIONS, "_until": 0.0}
    for place, sort in enumerate(sorts):
        if sort == "number":
            known |= {f"_low_{place}": 1.0, f"_high_{place}": 0.0}
        else:
            known |= {f"_among_{place}": set()}
    return known


def _is_known(value: str, place: int, sort: Sort) -> str:
    if sort == "number":
        kind = f"(_type({value}) is _float or _type({value}) is _int)"
        return f"{kind} and _low_{place} <= {value} <= _high_{place}"
    if isinstance(sort, type):
        return f"_type({value}) is _{sort.__name__} and {value} in _among_{place}"
    return "False"  # arrays are looked at, each of them


def source_of_knows(names: Sequence[str], sorts: Sequence[Sort]) -> str:
    """Return a function that says whether columns are known to be good."""
    values = [f"_value_{place}" for place in range(len(names))]
    taken = [f"{value} = columns[{name!r}]" for value, name in zip(values, names, strict=True)]
    known = map(_is_known, values, range(len(names)), sorts)
    return f"""
def knows(columns):
    try:
        {"; ".join(taken)}
    except KeyError:  # of another column
        return False
    return {" and ".join([f"_len(columns) == {len(names)}", *known])}
"""


def source_of_entry(
    kind: str, heads: Sequence[str], names: Sequence[str], sorts: Sequence[Sort]
) -> str:
    """Return a function that takes an event of a kind, nothing where its columns are no names.

    It puts what is known to be good into `_values`, calls `_bring` when there are enough, and
    leaves all else to `_take`; it returns `_live`.
    """
    if not all(name.isidentifier() and not iskeyword(name) and name[0] != "_" for name in names):
        return ""
    if {*heads} & {*names}:
        return ""
    first = [f"{head}=_version" if head == "version" else head for head in heads]
    known = [_HEADS[head] for head in heads]
    known += map(_is_known, names, range(len(names)), sorts)
    given = ", ".join(f"{name!r}: {name}" for name in names)
    return f"""
def {kind}(*, {", ".join([*first, *[f"{name}=_absent" for name in names]])}, **_others):
    if {" and ".join([*known, "not _others"])}:
        _rows = _values
        _rows += ({", ".join([*heads, *names])},)  # in one step, whatever other threads do
        if _len(_rows) >= _full:
            _bring()
        return _live
    return _take(({", ".join(heads)},), {{{given}}}, _others)
"""


MOST = 768  # rows that wait: of seven metrics some 2 ms of work for the call that brings them on
MOST_WITH_ID = 2048  # the same of those looked up by it: they cost less, the more there are
_LABELS = 1 << 16  # that are known to be good
_LONGEST = 1 << 63  # integers that wait are nearer to 0
ABSENT = object()  # a column that an event does not have


class WaitingRows:
    """Rows of the same columns that hold values of the same sorts, as long as they wait.

    Attributes:
        knows: Whether values of columns are known to be good.
    """

    __slots__ = ("_good", "heads", "knows", "names", "sorts", "values")

    knows: Callable[[Mapping[str, ArrayLike]], bool]

    def __init__(self, heads: Sequence[str], names: tuple[str, ...], sorts: Sequence[Sort]) -> None:
        self.names, self.sorts, self.heads = names, sorts, tuple(heads)
        self.values: list[Any] = []  # row by row, its time first: nothing else is made of an event
        self._good = known_names(sorts)
        exec(source_of_knows(names, sorts), self._good)
        self.knows = self._good["knows"]

    def entry(self, kind: str, live: object, most: int, bring: object, take: object) -> Any:
        """Return a function that takes events of this form, ``None`` where there can be none.

        Args:
            kind: What it is called.
            live: What it returns.
            most: Rows that are enough.
            bring: What it calls then.
            take: Takes what is not known to be good: heads, columns by name, some of them
                `ABSENT`, and other columns.
        """
        source = source_of_entry(kind, self.heads, self.names, self.sorts)
        if not source:
            return None
        self._good |= {"_values": self.values, "_absent": ABSENT}
        self._good |= {"_live": live, "_bring": bring, "_take": take}
        self._good["_full"] = most * self.width
        exec(source, self._good)
        return self._good[kind]

    @property
    def width(self) -> int:
        """How many values a row has."""
        return len(self.heads) + len(self.names)

    def until(self, seconds: float) -> None:
        """Learn up to which time events are known not to be ahead of the clock."""
        self._good["_until"] = seconds

    def learn(self, columns: Mapping[str, object]) -> None:
        """Widen what is known by values that were accepted."""
        good = self._good
        for place, (sort, value) in enumerate(zip(self.sorts, columns.values(), strict=True)):
            if sort == "number":
                low, high = good[f"_low_{place}"], good[f"_high_{place}"]
                known = low <= high
                good[f"_low_{place}"] = min(low, value) if known else value
                good[f"_high_{place}"] = max(high, value) if known else value
            elif isinstance(sort, type) and len(good[f"_among_{place}"]) < _LABELS:
                good[f"_among_{place}"].add(value)

    def taken(self) -> tuple[list[list[Any]], dict[str, Any]]:
        """Return the columns of the rows that wait, of which there are some.

        The first have no names: the time, and the id where there is one.
        """
        heads, width = len(self.heads), self.width
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


def _array(sort: Sort, values: Sequence[object]) -> object:
    if sort in {"number", float}:
        return packed(values, "d")
    if sort is int:
        return packed(values, "q")
    return values if sort is str else np.array(values)


class Buffer:
    """Events of one sort that wait, by the columns that they have.

    Args:
        kind: What events are called.
        check: Takes columns, raises where they are refused, and says whether they can wait.
        kinds: What each column holds.
        heads: What each row has before the values that are checked: its time, its id.
        keys: Columns of which a missing value is one, too.
    """

    def __init__(
        self,
        kind: EventKind,
        check: Callable[[Mapping[str, ArrayLike]], bool],
        kinds: Mapping[str, Kind],
        heads: Sequence[str] = ("time",),
        keys: Collection[str] = (),
    ) -> None:
        self.forms: dict[tuple[object, ...], WaitingRows] = {}
        self.first: WaitingRows | None = None  # mostly the only one, and with an entry of its own
        self._keys, self._alike = keys, dict[str, Any]()
        self.kind, self.check, self._kinds, self._heads = kind, check, kinds, heads
        self.most = MOST_WITH_ID if "id" in heads else MOST  # rows that wait

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the first events that could wait."""
        return () if self.first is None else self.first.names

    @property
    def n(self) -> int:
        """How many rows wait."""
        return sum(len(form.values) // form.width for form in list(self.forms.values()))

    def checked(self, columns: Mapping[str, object]) -> WaitingRows | None:
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
            new = WaitingRows(self._heads, names, sorts)
            form = self.forms.setdefault((names, sorts), new)
        form.learn(columns)
        return form

    def _fits(self, name: str, sort: Sort) -> bool:
        """Whether a value can wait beside others: text with text, and all else by its shape."""
        if sort == "alone":
            return False
        alike = sort if isinstance(sort, tuple) else (sort is str)
        return bool(self._alike.setdefault(name, alike) == alike)

    def as_rows(self, columns: Mapping[str, object]) -> dict[str, Any]:
        """Return the columns of one row; what is missing is a key, and else no column."""
        return {
            name: None if value is None and name not in self._keys else [value]
            for name, value in columns.items()
        }

    def until(self, seconds: float) -> None:
        """Learn up to which time events are known not to be ahead of the clock."""
        for form in list(self.forms.values()):
            form.until(seconds)

    def close(self) -> None:
        """Take no more events, also from who holds the entry of a form."""
        self.until(0.0)
        self.forms.clear()
        self.first = None

    def taken(self) -> list[tuple[list[list[Any]], dict[str, Any]]]:
        """Return the columns of all rows that wait."""
        return [form.taken() for form in list(self.forms.values()) if form.values]


def plain(value: Any) -> Any:
    """Return one value as Python's own, or as an array of our own where a row has several."""
    if value is ma.masked:  # which NumPy has as 0.0
        return math.nan
    if isinstance(value, np.generic) or getattr(value, "ndim", 1) == 0:
        return value.item()
    if isinstance(value, list | tuple) and value and isinstance(value[0], str):
        return list(value)  # the tags of a sentence, which are no row of an array
    return np.array(value) if isinstance(value, list | tuple | np.ndarray) else value


def is_column(times: object) -> bool:
    """Whether times are those of columns, and not that of one event."""
    if isinstance(times, str) or not hasattr(times, "__len__"):
        return False
    return bool(getattr(times, "ndim", 1) > 0)
