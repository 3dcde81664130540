"""Which group each row of a block is of: passed to every form, counted once for all."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.counting import counts_of

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Ints


class Grouping:
    """The group of each row, 0 to ``size - 1``, given as integers of any width."""

    def __init__(self, codes: Array, size: int) -> None:
        self.codes, self.size = codes, size

    @cached_property
    def index(self) -> Ints:
        """The group of each row in 64 bits; not to be written to."""
        return self.codes.astype(np.int64, copy=False)

    @cached_property
    def counts(self) -> Ints:
        """How many rows each group has; not to be written to."""
        return counts_of((self.size,), self.codes)
