"""Columns of objects: those that a preparation makes columns of, and sets of labels."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import numpy as np

from streammetrics.core.columns.column import Column
from streammetrics.core.errors import Hint, InvalidBatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.types import Array, ClassLabel, Foreign

    F = TypeVar("F", bound=Callable[..., object])


@dataclass(slots=True)
class Objects(Column):
    """A column of objects; its `values` are without meaning.

    >>> as_objects([{"a": 1}, None, "b"])[1:].items.tolist()
    [None, 'b']
    """

    items: NDArray[np.object_] = field(kw_only=True)

    @classmethod
    def of(cls, items: NDArray[np.object_]) -> Objects:
        """Make a column of an array of objects."""
        return cls(np.zeros(len(items), np.int8), None, True, None, items=items)

    def __getitem__(self, rows: slice | Array) -> Objects:
        """Return some of the rows."""
        return Objects.of(self.items[rows])


def as_objects(value: Foreign) -> Objects:
    """Return a column of the objects in a list, an array or a series; anything else is one row."""
    if isinstance(value, Column):
        return value if isinstance(value, Objects) else Objects.of(_array(objects_in(value)))
    for convert in ("to_pylist", "to_list", "tolist"):  # of Arrow, pandas and polars, tensors
        if not isinstance(value, np.ndarray) and hasattr(value, convert):
            return Objects.of(_array(_without_marks(value, getattr(value, convert)())))
    plain = isinstance(value, list | tuple | np.ndarray)
    return Objects.of(_array(list(value) if plain and np.ndim(value) else [value]))


def _without_marks(series: Foreign, items: list[object]) -> list[object]:
    """Return the items of a series, with None for the several marks of pandas for a null."""
    if not hasattr(series, "isna") or np.dtype(float) == series.dtype:
        return items
    return [None if null else i for null, i in zip(series.isna(), items, strict=True)]


def _array(items: Sequence[object]) -> NDArray[np.object_]:
    array = np.empty(len(items), np.object_)
    for place, item in enumerate(items):
        array[place] = item
    return array


def objects_in(column: Column) -> list[object]:
    """Return the rows of a column as Python objects; nulls are ``None``."""
    if isinstance(column, Objects):
        return list(column.items)
    if column.vocabulary is not None:
        texts = [*column.vocabulary.tolist(), None]
        return [texts[code] for code in column.values.tolist()]
    items: list[object] = column.values.tolist()
    if column.nulls is not None and column.values.ndim == 1:
        return [None if null else i for null, i in zip(column.nulls.tolist(), items, strict=True)]
    return items


@dataclass(frozen=True)
class Configuration:
    """A class of metrics with the values of its parameters: what a formula may depend on."""

    cls: type
    key: tuple[object, ...]
    values: Mapping[str, object] = field(compare=False)

    @cached_property
    def metric(self) -> object:
        """A metric of the configuration without rows, for calls of its formula."""
        return self.cls(**self.values)

    def __reduce__(self) -> tuple[object, ...]:
        return Configuration, (self.cls, self.key, self.values)


def prepare(function: F) -> F:
    """Mark the method that turns an author's objects into the columns of `row`.

    It is called once for each batch and gets a list of objects for each of its parameters, which
    are the arguments of `update`. It returns a dictionary with a column for each parameter of
    `row`, or the column itself if there is only one. Each row depends on the objects of that row
    alone.

    Example:
        >>> from streammetrics.authoring import RowMean, prepare
        >>> class MeanWords(RowMean):
        ...     @prepare
        ...     def count(self, text):
        ...         return [len(one.split()) for one in text]
        ...
        ...     def row(self, words):
        ...         return words
        >>> MeanWords().update(["to be", "or not to be"]).compute()
        3.0
    """
    function.prepares = True  # type: ignore[attr-defined]  # read by `prepared_by`
    return function


def prepared_by(cls: type) -> Callable[..., object] | None:
    """Return the method of a class that is marked with `prepare`, ``None`` if there is none."""
    for base in cls.__mro__:
        marked = [
            name
            for name, value in vars(base).items()
            if getattr(value, "prepares", False) and not name.startswith("_")
        ]
        if len(marked) > 1:
            raise TypeError(
                f"{base.__name__} marks {' and '.join(marked)} with @prepare: mark one method"
            )
        if marked:
            found: Callable[..., object] = getattr(cls, marked[0])
            return found
    return None


@dataclass(frozen=True)
class Preparation:
    """A method marked with `prepare`, with the parameters of its metric."""

    function: Callable[..., object]
    names: tuple[str, ...]  # of its parameters
    columns: tuple[str, ...]  # that it makes
    key: tuple[object, ...]  # the values of the metric's parameters
    of: Configuration = field(compare=False)

    @property
    def title(self) -> str:
        """The name of the method."""
        return f"{self.of.cls.__name__}.{self.function.__name__}"

    @cached_property
    def items(self) -> dict[str, object]:
        """What each parameter is a list of, by its annotation; ``object`` if it does not say."""
        try:
            known = inspect.signature(self.function, eval_str=True).parameters
        except NameError:  # of an annotation that is imported for type checkers only
            known = inspect.signature(self.function).parameters
        every = {name: get_args(known[name].annotation) for name in self.names}
        return {name: args[0] if len(args) == 1 else object for name, args in every.items()}

    def __call__(self, *objects: list[object]) -> dict[str, object]:
        """Return the columns by name."""
        try:
            made = self.function(self.of.metric, *objects)
        except Exception as error:  # whatever an author's objects raise
            raise InvalidBatchError(
                f"{self.title} raised {type(error).__name__}: {error}", ", ".join(self.names)
            ) from error
        if not isinstance(made, dict) and len(self.columns) == 1:
            made = {self.columns[0]: made}
        if not isinstance(made, dict) or made.keys() != set(self.columns):
            got = f"a dictionary of {', '.join(made)}" if isinstance(made, dict) else repr(made)
            names = ", ".join(self.columns)
            raise TypeError(f"{self.title} returned {got[:80]}; return a dictionary of {names}")
        return made


def as_sets(value: object) -> list[object] | None:
    """Return the rows as sets or lists of labels; ``None`` if the value holds anything else.

    Rows are sets, or lists of strings. Lists of numbers are rejected because they are ambiguous:
    they could be sets of labels or rows of a matrix.
    """
    if isinstance(value, np.ndarray) and value.dtype != object:
        return None
    for method in ("tolist", "to_list", "to_pylist"):
        if not isinstance(value, list | tuple) and hasattr(value, method):
            if getattr(value, "ndim", 1) != 1:
                return None
            value = getattr(value, method)()
    if not isinstance(value, list | tuple):
        return None
    rows = list(value)
    nested = [row for row in rows if isinstance(row, set | frozenset | list | tuple)]
    if not nested or len(nested) + sum(row is None for row in rows) < len(rows):
        return None
    some = (row for row in nested if not isinstance(row, set | frozenset))
    listed = [item for row in some for item in row]
    if any(not isinstance(item, str) for item in listed):
        return None
    texts = bool(listed) or any(isinstance(row, set | frozenset) for row in nested)
    return rows if texts or not any(map(len, nested)) else None


def marked(rows: list[Any], labels: tuple[ClassLabel, ...] | None, title: str) -> Column:
    """Convert sets of labels to indicators (n, L), one column for each of `labels`."""
    if labels is None:
        raise InvalidBatchError(
            f"{title} holds sets of labels",
            hint=Hint("say which there are, in their order, {labels}", labels=[...]),
        )
    places = {label: place for place, label in enumerate(labels)}
    held: list[Collection[ClassLabel]] = [() if row is None else row for row in rows]
    counts = np.fromiter(map(len, held), np.intp, len(held))
    flat = [places.get(label, -1) for row in held for label in row]
    found = np.array(flat, np.intp)
    at = np.repeat(np.arange(len(held)), counts)
    if (found < 0).any():
        first = int(np.argmax(found < 0))
        label = [label for row in held for label in row][first]
        count = int(np.unique(at[found < 0]).size)
        raise InvalidBatchError(
            f"{title} has a label that is not one of those given in {count} "
            f"row{'s' * (count != 1)}, first in row {at[first]} ({label!r}); "
            f"labels={repr(labels)[:60]}",
            title,
            int(at[first]),
        )
    marks = np.zeros((len(held), len(labels)), np.uint8)
    marks[at, found] = 1
    nulls = np.array([row is None for row in rows], np.bool_)
    absent = np.repeat(nulls[:, None], len(labels), axis=1) if nulls.any() else None
    return Column(marks, absent, True)
