"""The classes of each group, and what follows from the sums of each class."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.arithmetic.exact import ExactSum
    from streammetrics.core.types import Array, Bools, ClassLabel, Floats, Numeric, Places


class GroupedClasses:
    """The classes of each group, and what there is to warn of in the values read.

    Every group has `size` classes, of which `kept` have a name. Without `codes` all groups have
    the classes `labels`; with `codes`, (groups, kept), these are their places among `labels`.
    """

    groups: int = 1
    codes: Places | None = None
    labels: list[ClassLabel]
    kept: int
    size: int

    @cached_property
    def _doubts(self) -> list[tuple[Bools, Callable[[int], str]]]:
        return []

    def labels_of(self, group: int) -> list[ClassLabel]:
        """Return the classes of a group, in order."""
        if self.codes is None:
            return self.labels
        return [self.labels[code] for code in self.codes[group].tolist()]

    def place_of(self, label: ClassLabel) -> int | Places:
        """Return the place of a class, -1 where there is none: one, or of each group (groups,)."""
        place = self.labels.index(label) if label in self.labels else -1
        if self.codes is None or place < 0:
            return place
        there = self.codes == place
        return np.where(there.any(axis=1), there.argmax(axis=1), -1)

    def at(self, values: Array, place: int | Places) -> Array:
        """Return from values (groups, classes) those at a place, (groups,)."""
        return values[:, place] if isinstance(place, int) else values[np.arange(self.groups), place]

    def each(self) -> list[Self]:
        """Return the classes of each group on their own."""
        assert self.groups == 1
        return [self]

    def doubt(self, where: Bools, why: Callable[[int], str]) -> None:
        """Warn of the values of some groups, (groups,); `why` is the text for one of them."""
        if where.any():
            self._doubts.append((where, why))

    def why(self, group: int) -> str:
        """Return the warning about the value of a group, empty where there is none."""
        texts = (why(group) for where, why in reversed(self._doubts) if where[group])
        return next(texts, "")

    @property
    def doubtful(self) -> Bools:
        """Of which groups there is something to warn of, (groups,)."""
        doubtful = np.zeros(self.groups, np.bool_)
        for where, _ in self._doubts:
            doubtful |= where
        return doubtful


class Margins(GroupedClasses):
    """False positives, false negatives and true negatives of each class, from its margins."""

    actual: Numeric
    predicted: Numeric
    tp: Numeric
    total: Numeric

    @property
    def fp(self) -> Floats:
        """False positives of each class."""
        fp: Floats = self.predicted - self.tp
        return fp

    @property
    def fn(self) -> Floats:
        """False negatives of each class."""
        fn: Floats = self.actual - self.tp
        return fn

    @property
    def tn(self) -> Floats:
        """True negatives of each class."""
        tn: Floats = self.total[:, None] - self.actual - self.fp
        return tn

    def recalls(self) -> tuple[Floats, Bools]:
        """Return the recall of each class, 0 without rows, and which classes have rows."""
        seen = self.actual > 0
        return np.divide(self.tp, self.actual, out=np.zeros(seen.shape), where=seen), seen


class Integers(NamedTuple):
    """Each class's rows, predictions and true positives, and all cells, in one unit.

    They are Python's integers, whose products do not overflow.
    """

    actual: list[int]
    predicted: list[int]
    tp: list[int]
    cells: list[int]


def in_one_unit(sums: Sequence[ExactSum]) -> list[list[int]]:
    """Return sums as integers of a common unit."""
    integers = [one.integers() for one in sums]
    unit = min(exponent for _, exponent in integers)  # that of an empty sum may be larger
    return [[value << (exponent - unit) for value in values] for values, exponent in integers]
