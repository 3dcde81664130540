"""Values that are not one number: their types, and export as dictionary, table and plot."""

from __future__ import annotations

import math
from abc import abstractmethod
from itertools import chain, product
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Self

import numpy as np

from streammetrics.core.results.hooks import Drawing, drawn
from streammetrics.core.results.table import Table
from streammetrics.core.types import ClassLabel, Document, Each, Json, V_co

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes

    from streammetrics.core.results.table import Column, Library
    from streammetrics.core.types import Array, Floats, Foreign

    NamedAxes = tuple[tuple[str, tuple[object, ...]], ...]  # (name, labels) of each axis


VALUE = "value"  # title of the column of a table with one number per row


class Result:
    """A value made of several numbers, each with a label."""

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[Any, Any]:
        """Return the value by label, as plain Python objects that JSON can represent."""

    @abstractmethod
    def _table(self) -> Table:
        """Return the value as a table."""

    def to_frame(self, library: Library = "pandas") -> Foreign:
        """Return the value as a data frame.

        The labels of the rows are the index in pandas, and the first columns in polars.

        Args:
            library: ``"pandas"`` or ``"polars"``, which must be installed.
        """
        return self._table().frame(library)

    def to_csv(self) -> str:
        """Return the value as CSV in full precision; the labels of the rows come first."""
        return self._table().csv()

    def to_markdown(self) -> str:
        """Return the value as a Markdown table."""
        return self._table().markdown()

    def to_latex(self) -> str:
        r"""Return the value as a LaTeX tabular, which requires ``\\usepackage{booktabs}``."""
        return self._table().latex()

    def plot(self, ax: object = None, *, kind: str | None = None, **style: object) -> Axes:
        """Plot the value and return Matplotlib's axes; requires the extra ``plot``.

        Args:
            ax: Axes to draw on; by default those of a new figure.
            kind: Which plot, if there are several; see ``docs/pictures.md``.
            **style: Arguments of Matplotlib for the main line or mark: ``color``, ``label``, ...

        Raises:
            ImportError: Matplotlib is not installed.
            TypeError: The value has no plot, or none of this kind.
        """
        return drawn(self, ax, Drawing(kind, style=style))

    def _repr_html_(self) -> str | None:
        return self._table().html()


class LabelledArray(Result, np.ndarray):
    """An array with labels along its axes.

    It behaves like the plain array. Element-wise operations keep the labels; slices and reductions
    return plain arrays, because their axes may differ.

    Args:
        values: The array.
        axes: For each axis, what it runs over (such as ``"class"``) and its labels.
    """

    axes: NamedAxes

    def __new__(cls, values: object, axes: NamedAxes) -> Self:
        """Return a view of the values with labelled axes."""
        array = np.asarray(values).view(cls)
        array.axes = axes
        return array

    @classmethod
    def of(cls, values: object, labels: Iterable[object], name: str = "class") -> Self:
        """Return an array (n,) with a label for each element."""
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
        places = list(product(*(labels for _, labels in rows)))
        index = {name: tuple([at[axis] for at in places]) for axis, (name, _) in enumerate(rows)}
        columns = values.reshape(len(places), len(titles)).T
        return Table(index, dict(zip(titles, columns, strict=True)), across)

    def _known(self) -> NamedAxes:
        if len(self.axes) != self.ndim:
            raise ValueError(
                "what this array is of is not known, as it was made from a result: ask the result"
            )
        return self.axes

    def _repr_html_(self) -> str | None:
        return self._table().html() if self.axes else None  # without labels, show the repr

    def __array_finalize__(self, source: object) -> None:
        self.axes = ()

    def __array_wrap__(
        self,
        array: Array,
        context: tuple[np.ufunc, tuple[object, ...], int] | None = None,
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


def _nested(values: Json, labels: Sequence[tuple[object, ...]]) -> Json:
    if not labels:
        return values
    return {
        label: _nested(value, labels[1:]) for label, value in zip(labels[0], values, strict=True)
    }


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

    labels: tuple[object, ...]
    of: str

    def __new__(cls, curves: Iterable[Points], labels: Iterable[object], of: str = "class") -> Self:
        """Return the tuple of curves with the labels of their classes or models."""
        self = super().__new__(cls, curves)
        self.labels, self.of = tuple(labels), of
        return self

    def to_dict(self) -> dict[object, dict[str, list[float]]]:
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


class KeyedValues(Result, dict[ClassLabel, float]):
    """A number for each query or cluster, by its id."""

    def __init__(self, values: Mapping[ClassLabel, float], name: str) -> None:
        super().__init__(values)
        self.name = name

    def to_dict(self) -> dict[ClassLabel, float]:
        """Return a plain dictionary."""
        return dict(self)

    def _table(self) -> Table:
        return Table({self.name: list(self)}, {VALUE: list(self.values())})

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (dict(self), self.name)


class Report(Result, Document):
    """Several numbers for each class and for averages over classes, and one for all rows.

    The layout is that of `sklearn.metrics.classification_report` with ``output_dict=True``. In a
    table, the number for all rows is in the column of the F1 score, as in the printed report.
    """

    def to_dict(self) -> Document:
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

    def to_dict(self) -> Document:
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

    def to_dict(self) -> Document:
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


def numbers(value: object) -> Iterator[tuple[str, Document]]:
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


def plain(value: object) -> Json:
    """Return a value in plain Python: dictionaries, lists, strings and numbers."""
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
