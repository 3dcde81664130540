"""Sorted histograms as a field: one for each column of numbers."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from streammetrics.core.arithmetic.histogram import DyadicHistogram
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.field import StateField
from streammetrics.core.state.arrays import nested, take_array, take_sizes
from streammetrics.core.state.arrays import parted as parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.configured import Configured
    from streammetrics.core.types import Array, Arrays, Ints

# One for each column of numbers, all of the same rows.
ColumnHistograms: TypeAlias = tuple[DyadicHistogram, ...]

_MOST = (1 << 20) - 1


class Histograms(StateField[ColumnHistograms]):
    """A `DyadicHistogram` for each column, as many as rows turn out to have; none without rows.

    Args:
        cells: The budget of each, by the parameters of the statistic.
        classes: 1 for plain values, 2 for scores with a label.
        of: What a column is, for messages.
        inline: As of every field.

    Reading a histogram may change the form it is held in; rows are added to `forks` only.
    """

    def __init__(
        self, cells: Callable[[Any], int], classes: int, of: str, *, inline: bool = False
    ) -> None:
        super().__init__(inline=inline)
        self._cells, self._classes, self._of = cells, classes, of

    def empty(self, of: Configured) -> ColumnHistograms:  # noqa: ARG002 - nothing depends on it
        """Return no histogram."""
        return ()

    def forks(self, value: ColumnHistograms, width: int, of: Configured) -> ColumnHistograms:
        """Return as many histograms that may be added to, of the same rows."""
        if not value:
            return tuple([DyadicHistogram(self._cells(of), self._classes) for _ in range(width)])
        self._check_width(value, width)
        return tuple([histogram.fork() for histogram in value])

    def _check_width(self, value: ColumnHistograms, width: int) -> None:
        if len(value) != width:
            raise IncompatibleMetricsError(f"{width} {self._of} cannot join {len(value)}")

    def plus(self, mine: ColumnHistograms, other: ColumnHistograms) -> ColumnHistograms:
        """Return the rows of both."""
        return self.merged(mine, [other])

    def merged(
        self, mine: ColumnHistograms, others: Sequence[ColumnHistograms]
    ) -> ColumnHistograms:
        """Return the rows of all: histograms are merged at once."""
        seen = [value for value in (mine, *others) if value]
        if not seen:
            return ()
        first, *rest = seen
        for other in rest:
            self._check_width(first, len(other))
        merged = tuple([histogram.fork() for histogram in first])
        for histogram, *more in zip(merged, *rest, strict=True):
            histogram.merge(*more)
        return merged

    def arrays(self, value: ColumnHistograms) -> dict[str, Array]:
        """Return the number of histograms as ``width``, and the arrays of each."""
        return self.headed("width", np.array([len(value)], np.int64), value)

    def headed(self, name: str, head: Ints, value: ColumnHistograms) -> dict[str, Array]:
        """Return an array that begins with the number of histograms, and the arrays of each."""
        arrays: dict[str, Array] = {name: head}
        for index, histogram in enumerate(value):
            arrays |= nested(str(index), histogram.arrays())
        return arrays

    def taken(self, arrays: Arrays, of: Configured) -> ColumnHistograms:
        """Return the histograms, each of them checked."""
        return self.taken_headed("width", 1, arrays, of)[1]

    def taken_headed(
        self, name: str, size: int, arrays: Arrays, of: Configured
    ) -> tuple[list[int], ColumnHistograms]:
        """Return the array at the head, which is of that size, and the histograms."""
        parts = parts_of({key: array for key, array in arrays.items() if key != name})
        head = arrays.get(name)
        if head is None or head.dtype != np.int64 or head.shape != (size,):
            raise StateFormatError(f"the array {name!r} does not say how many histograms there are")
        count = int(head[0])
        if count != len(parts) or count > _MOST or parts.keys() != set(map(str, range(count))):
            raise StateFormatError(
                f"the number of {self._of} is said to be {count}, and there are the arrays "
                f"{sorted(arrays)}"
            )
        cells, classes = self._cells(of), self._classes
        histograms = [
            DyadicHistogram.from_arrays(cells, classes, parts[str(k)]) for k in range(count)
        ]
        return head.tolist(), tuple(histograms)

    def nbytes(self, value: ColumnHistograms) -> int:
        """Bytes held now."""
        return sum(histogram.nbytes for histogram in value)

    def groups_arrays(self, value: Sequence[ColumnHistograms], size: int) -> dict[str, Array]:  # noqa: ARG002 - the values say it
        """Return how many histograms each group has, and the arrays of all."""
        widths = np.array([len(columns) for columns in value], np.int64)
        every = [histogram for columns in value for histogram in columns]
        return {"widths": widths, **DyadicHistogram.arrays_of_all(every)}

    def groups_taken(
        self, arrays: Arrays, size: int, of: Configured
    ) -> tuple[ColumnHistograms, ...]:
        """Return the histograms of every group, each of them checked."""
        own = {key: array for key, array in arrays.items() if key != "widths"}
        total = len(take_array(own, "plain", "bool"))
        widths = take_sizes(arrays, "widths", size, total)
        found = DyadicHistogram.all_of_arrays(self._cells(of), self._classes, own, total)
        every = iter(found)
        return tuple([tuple(islice(every, width)) for width in widths.tolist()])

    def scaled(self, value: ColumnHistograms, weight: float) -> ColumnHistograms:
        """Return the same rows with as many times the weight."""
        return tuple([histogram.scaled(weight) for histogram in value])

    def minus(self, value: ColumnHistograms, other: ColumnHistograms) -> ColumnHistograms:
        """Return what is left; only histograms within their budget can tell."""
        if not other:
            return value
        self._check_width(value, len(other))
        left = [mine.minus(theirs) for mine, theirs in zip(value, other, strict=True)]
        return tuple(left) if any(any(histogram.totals()) for histogram in left) else ()
