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
ArrayLike: TypeAlias = object  # lists, arrays, series, tensors: what core/columns takes
