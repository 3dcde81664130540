"""Arrays with labels along their axes."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streammetrics.core.results.result import VALUE, Result
from streammetrics.core.results.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streammetrics.core.types import Array

    NamedAxes = tuple[tuple[str, tuple[object, ...]], ...]  # (name, labels) of each axis


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


def _nested(values: Any, labels: Sequence[tuple[object, ...]]) -> Any:
    if not labels:
        return values
    return {
        label: _nested(value, labels[1:]) for label, value in zip(labels[0], values, strict=True)
    }
