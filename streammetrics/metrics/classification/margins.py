"""The classes of each group, and counts derived from the margins of each class."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.arithmetic.exact import ExactSum
    from streammetrics.core.types import Array, Bools, ClassLabel, Floats, Numeric, Places


class GroupedClasses:
    """The classes of each group, and the warnings about the values computed from them.

    Every group has `size` classes, of which `kept` have names. Without `codes`, all groups have the
    classes `labels`; `codes`, (groups, kept), are indices into `labels`.
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
        """Return the position of a class, -1 if absent: one for all groups, or (groups,)."""
        place = self.labels.index(label) if label in self.labels else -1
        if self.codes is None or place < 0:
            return place
        there = self.codes == place
        return np.where(there.any(axis=1), there.argmax(axis=1), -1)

    def at(self, values: Array, place: int | Places) -> Array:
        """Return the values (groups,) at a position, from values (groups, classes)."""
        return values[:, place] if isinstance(place, int) else values[np.arange(self.groups), place]

    def each(self) -> list[Self]:
        """Return the classes of each group separately."""
        assert self.groups == 1
        return [self]

    def doubt(self, where: Bools, why: Callable[[int], str]) -> None:
        """Register a warning for some groups, (groups,); `why` returns the text for one group."""
        if where.any():
            self._doubts.append((where, why))

    def why(self, group: int) -> str:
        """Return the warning about the value of a group, empty if there is none."""
        texts = (why(group) for where, why in reversed(self._doubts) if where[group])
        return next(texts, "")

    @property
    def doubtful(self) -> Bools:
        """Which groups have a warning, (groups,)."""
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

    def counts_of(self, label: ClassLabel) -> ClassCounts:
        """Return the counts of one class; without rows of it, all are true negatives."""
        place = self.place_of(label)
        total = np.asarray(self.total, dtype=np.float64)
        sides = ((self.tp, 0.0), (self.fp, 0.0), (self.fn, 0.0), (self.tn, total))
        here = np.asarray(place) >= 0
        return ClassCounts(*(np.where(here, self.at(side, place), none) for side, none in sides))

    def recalls(self) -> tuple[Floats, Bools]:
        """Return the recall of each class, 0 without rows, and which classes have rows."""
        seen = self.actual > 0
        return np.divide(self.tp, self.actual, out=np.zeros(seen.shape), where=seen), seen


class ClassCounts(NamedTuple):
    """The counts of one class against the rest in each group, (groups,)."""

    tp: Floats
    fp: Floats
    fn: Floats
    tn: Floats


class Integers(NamedTuple):
    """Each class's rows, predictions and true positives, and all cells, in one unit.

    They are Python integers, so products do not overflow.
    """

    actual: list[int]
    predicted: list[int]
    tp: list[int]
    cells: list[int]


def in_one_unit(sums: Sequence[ExactSum]) -> list[list[int]]:
    """Return sums as integers of a common unit."""
    integers = [one.integers() for one in sums]
    unit = min(exponent for _, exponent in integers)  # an empty sum may have a larger one
    return [[value << (exponent - unit) for value in values] for values, exponent in integers]
