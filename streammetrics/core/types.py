"""Names for types that many modules write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    # What a metric's value is: any, where nobody says. The default is for type checkers, as
    # Python's own type variables have one from 3.13 on.
    from typing_extensions import TypeVar

    V_co = TypeVar("V_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    V_co = TypeVar("V_co", covariant=True)

Array: TypeAlias = NDArray[Any]  # of whatever type of numbers
Arrays: TypeAlias = Mapping[str, Array]  # a state, or a part of it: its arrays by name
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Places: TypeAlias = NDArray[np.intp]  # which rows, cells or groups: an index
ClassLabel: TypeAlias = bool | int | float | str  # those of one metric are all of one kind
ArrayLike: TypeAlias = object  # lists, arrays, series, tensors: what core/columns takes

# What nothing narrower is true of, by what it is; who takes a part of it looks at what that is.
ReadColumn: TypeAlias = Any  # as the field of a schema reads it; of what type, its statistic knows
Columns: TypeAlias = tuple[ReadColumn, ...]  # of validated rows, in the order of the schema
Options: TypeAlias = dict[str, Any]  # arguments by name, each of a type of its own: for ``**``
Json: TypeAlias = Any  # a document or a part of it, of anyone: readers check what shape it has
Document: TypeAlias = dict[str, Json]
Foreign: TypeAlias = Any  # an object of a library that need not be there, or says no types
# A number, a fraction or an array of either: formulas take all alike, and of the union of them mypy
# knows neither a sum nor a quotient.
Numeric: TypeAlias = Any
