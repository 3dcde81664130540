"""Lists of Python's numbers as arrays."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Array

_CODES = {"d": np.float64, "q": np.int64}


def packed(values: Sequence[object], code: Literal["d", "q"]) -> Array:
    """Return numbers as float64 (``d``), or integers as int64 (``q``).

    It takes a third of the time in which NumPy finds out what a list holds.
    """
    array: Any = np.empty(len(values), _CODES[code])
    struct.pack_into(f"{len(values)}{code}", array, 0, *values)
    return array  # type: ignore[no-any-return]
