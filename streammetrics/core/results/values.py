"""What `compute` and `bounds` return where it is not one number.

Each of them is what NumPy users expect (an array, a tuple, a dictionary), and a `Result`: it knows
the classes, queries or outputs that its numbers are of, and tells them by three methods.

    >>> import streammetrics as sm
    >>> matrix = sm.ConfusionMatrix().update(["cat", "dog", "dog"], ["cat", "dog", "cat"]).compute()
    >>> matrix
    array([[1, 0],
           [1, 1]])
    >>> matrix.to_dict()["dog"]["cat"]
    1
    >>> matrix.to_frame().loc["dog", "cat"]
    np.int64(1)

`to_dict` gives plain Python, ready for JSON (``nan`` and infinities stay floats), and `to_frame` a
pandas or polars frame; notebooks show `_repr_html_`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from itertools import chain, product
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self

import numpy as np

from streammetrics.core.results.pictures import Drawing, drawn
from streammetrics.core.results.table import Table
from streammetrics.core.types import Array, V_co

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes

    from streammetrics.core.results.table import Column, Library
    from streammetrics.core.types import Foreign

    NamedAxes = tuple[tuple[str, tuple[Any, ...]], ...]  # of each what it is of, and the labels

VALUE = "value"  # the title of a table's only column of values


class Result:
    """A value of several numbers that knows what each of them is of."""

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[Any, Any]:
        """Return the value in plain Python, ready for JSON, by the labels of what it is of."""

    @abstractmethod
    def _table(self) -> Table:
        """Return the value as a table."""

    def to_frame(self, library: Library = "pandas") -> Foreign:
        """Return the value as a data frame.

        What the rows are of is the index in pandas, and the first columns in polars.

        Args:
            library: ``"pandas"`` or ``"polars"``, which has to be installed.
        """
        return self._table().frame(library)

    def to_csv(self) -> str:
        """Return the value as CSV in full precision: what the rows are of comes first."""
        return self._table().csv()

    def to_markdown(self) -> str:
        """Return the value as a Markdown table."""
        return self._table().markdown()

    def to_latex(self) -> str:
        r"""Return the value as a LaTeX tabular, for ``\\usepackage{booktabs}``."""
        return self._table().latex()

    def plot(self, ax: object = None, *, kind: str | None = None, **style: object) -> Axes:
        """Draw the value and return Matplotlib's axes; it needs the extra ``plot``.

        Args:
            ax: Axes to draw on; by default those of a new figure.
            kind: Which picture, where there are several, as ``docs/pictures.md`` lists them.
            **style: What Matplotlib takes for the main line or mark: ``color``, ``label``, ...

        Raises:
            ImportError: Matplotlib is not installed.
            TypeError: There is no such picture of this value.
        """
        return drawn(self, ax, Drawing(kind, style=style))

    def _repr_html_(self) -> str | None:
        return self._table().html()


class LabelledArray(Result, np.ndarray):
    """An array that knows what the places along its axes are.

    It behaves as the array that it is. What is computed from it place by place keeps the labels;
    what is sliced or summed is a plain array, as its places may be others.

    Args:
        values: The array.
        axes: For each axis what its places are, and their labels.
    """

    axes: NamedAxes

    def __new__(cls, values: object, axes: NamedAxes) -> Self:
        """Return a view of the values that knows its axes."""
        array = np.asarray(values).view(cls)
        array.axes = axes
        return array

    @classmethod
    def of(cls, values: object, labels: Iterable[object], name: str = "class") -> Self:
        """Return an array (n,) with the labels of its places."""
        return cls(values, ((name, tuple(labels)),))

    def to_dict(self) -> dict[Any, Any]:
        """Return the numbers by label: ``matrix.to_dict()[true][predicted]``."""
        nested: dict[Any, Any] = _nested(self.tolist(), [labels for _, labels in self._known()])
        return nested

    def _table(self) -> Table:
        values = np.asarray(self)
        *rows, (across, titles) = self._known()
        if not rows:
            return Table({across: titles}, {VALUE: values})
        places = product(*(labels for _, labels in rows))
        index = dict(zip((name for name, _ in rows), zip(*places, strict=True), strict=True))
        columns = values.reshape(-1, len(titles)).T
        return Table(index, dict(zip(titles, columns, strict=True)), across)

    def _known(self) -> NamedAxes:
        if len(self.axes) != self.ndim:
            raise ValueError(
                "what this array is of is not known, as it was made from a result: ask the result"
            )
        return self.axes

    def _repr_html_(self) -> str | None:
        return self._table().html() if self.axes else None  # then a notebook shows the repr

    def __array_finalize__(self, source: object) -> None:
        self.axes = ()

    def __array_wrap__(
        self,
        array: Array,
        context: Any = None,
        return_scalar: bool = False,
    ) -> Any:
        values = np.asarray(array)
        if context is not None and self.axes and values.shape == self.shape:
            function, arguments, _ = context
            labelled = [each for each in arguments if isinstance(each, LabelledArray)]
            if function.signature is None and all(each.axes == self.axes for each in labelled):
                return type(self)(values, self.axes)
        return values[()] if return_scalar else values

    def __getitem__(self, place: Any) -> Any:
        return np.asarray(self)[place]

    def __copy__(self) -> Self:
        return type(self)(np.array(self), self.axes)

    def __deepcopy__(self, memo: object) -> Self:
        return self.__copy__()

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (np.asarray(self), self.axes)

    def __repr__(self) -> str:
        return repr(np.asarray(self))


def _nested(values: Any, labels: Sequence[tuple[Any, ...]]) -> Any:
    if not labels:
        return values
    return {
        label: _nested(value, labels[1:]) for label, value in zip(labels[0], values, strict=True)
    }


class KeyedValues(Result, dict[Any, float]):
    """A number for each query or cluster, by its id."""

    def __init__(self, values: Mapping[Any, float], name: str) -> None:
        super().__init__(values)
        self.name = name

    def to_dict(self) -> dict[Any, float]:
        """Return the dictionary."""
        return dict(self)

    def _table(self) -> Table:
        return Table({self.name: list(self)}, {VALUE: list(self.values())})

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (dict(self), self.name)


class Report(Result, dict[str, Any]):
    """Several numbers for each class and for averages of them, and one for all rows.

    A dictionary of dictionaries, as of `sklearn.metrics.classification_report`. As in that report
    in print, a table has the one number in the column of the F1 score.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return the dictionary."""
        return plain(dict(self))  # type: ignore[no-any-return]  # a dictionary gives one

    def _table(self) -> Table:
        whole = next(entry for entry in self.values() if isinstance(entry, dict))
        rows = [
            entry if isinstance(entry, dict) else {"f1-score": entry} for entry in self.values()
        ]
        columns = {title: [row.get(title, np.nan) for row in rows] for title in whole}
        return Table({"class": list(self)}, columns)


class Values(Result, dict[str, Any]):
    """What the metrics of a set give, by name; a table has a row for every number."""

    def to_dict(self) -> dict[str, Any]:
        """Return each metric's value in plain Python."""
        return plain(dict(self))  # type: ignore[no-any-return]  # a dictionary gives one

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
    """Two values that certainly hold the exact one between them; equal when it is known."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return both sides in plain Python."""
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
    """Yield every number of a value: what it is of, and it by the title of its column."""
    if isinstance(value, Interval):
        for (of, low), (_, high) in zip(numbers(value.low), numbers(value.high), strict=True):
            yield of, {"low": low[VALUE], "high": high[VALUE]}
    elif isinstance(value, Result):
        table = value._table()
        for row in range(len(table)):
            path = [labels[row] for labels in table.index.values()] or [row]
            for title, column in table.columns.items():
                parts = path if title == VALUE else [*path, title]
                yield "/".join(map(str, parts)), {VALUE: column[row]}
    else:
        yield "", {VALUE: value}


def _alike(values: Iterable[object]) -> list[object]:
    """Return a column with its integers as floats where it has floats too, as frames want it."""
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
