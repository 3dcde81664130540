"""Type aliases used by many modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    # Only type checkers see the defaults, which Python's own type variables support from 3.13 on.
    from collections.abc import Sequence
    from typing import Never

    from typing_extensions import TypeVar

    # The type of a metric's value; Any if unspecified.
    V_co = TypeVar("V_co", covariant=True, default=Any)
    # What is known of each metric of a set; Any if unspecified.
    Each = TypeVar("Each", default=Any)
    # What a parameter of a `NumberOrArray` is if it makes the value an array; Never if it does not.
    # Covariant, so that ``AveragedMetric[None]`` is one of either kind.
    Choice = TypeVar("Choice", covariant=True, default=Never)  # noqa: PLC0105 - a short name
    NoAverage = TypeVar("NoAverage", bound=None, covariant=True, default=Never)  # noqa: PLC0105 - a short name
    """The type of ``average`` of an `AveragedMetric`: None where the value is an array."""
    RawValues = TypeVar("RawValues", bound=Literal["raw_values"], covariant=True, default=Never)  # noqa: PLC0105 - a short name
    Several = TypeVar("Several", bound=Sequence[float], covariant=True, default=Never)  # noqa: PLC0105 - a short name
    # Parameters take any sequence of numbers, and keep a tuple.
    FloatSequence: TypeAlias = Sequence[float]
else:
    from typing import TypeVar

    V_co = TypeVar("V_co", covariant=True)
    Each = TypeVar("Each")
    Choice = TypeVar("Choice")
    NoAverage = TypeVar("NoAverage", bound=type(None))
    RawValues = TypeVar("RawValues", bound=Literal["raw_values"])
    Several = TypeVar("Several", bound=tuple[float, ...])
    FloatSequence = tuple[float, ...]

Array: TypeAlias = NDArray[Any]  # of any numeric type
Arrays: TypeAlias = Mapping[str, Array]  # a state, or a part of it: arrays by name
Floats: TypeAlias = NDArray[np.float64]
"""An array of float64; as the annotation of an input, a column of numbers."""
Ints: TypeAlias = NDArray[np.int64]
"""An array of int64."""
Bools: TypeAlias = NDArray[np.bool_]
Places: TypeAlias = NDArray[np.intp]  # indices of rows, cells or groups
ClassLabel: TypeAlias = bool | int | float | str  # labels of one metric are all of one kind
ArrayLike: TypeAlias = object  # anything `core/columns` accepts: lists, arrays, series, tensors

# Types that cannot be narrower; users of a part check its type.
ReadColumn: TypeAlias = Any  # as read by a field of a schema; the statistic knows its type
Columns: TypeAlias = tuple[ReadColumn, ...]  # validated rows, in the order of the schema
Options: TypeAlias = dict[str, Any]  # keyword arguments of different types, for ``**``
Json: TypeAlias = Any  # an untrusted document or a part of it; readers check its shape
Document: TypeAlias = dict[str, Json]
Foreign: TypeAlias = Any  # an object of an optional or untyped library
# A number, a fraction or an array of either, which formulas treat alike. Mypy has no sum or
# quotient for the union of them.
Numeric: TypeAlias = Any
