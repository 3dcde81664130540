"""Slices as rules read them: limits that hold for all of them together, and counts for evidence."""

from __future__ import annotations

import math
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from streammetrics.core.errors import NoConfidenceError, UndefinedMetricWarning
from streammetrics.core.floating import own_arithmetic
from streammetrics.inference.distributions import clopper_pearson
from streammetrics.inference.tables import trials_of
from streammetrics.slices.fairness import value_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.slices.fairness import Slice
    from streammetrics.slices.slices import Slices


def columns_of(by: str | Sequence[str] | None) -> str | tuple[str, ...] | None:
    """Return the columns of a kind of slices in canonical form."""
    return by if by is None or isinstance(by, str) else tuple(by)


def by_title(by: str | Sequence[str] | None) -> str:
    """Return the end of a rule's description, empty without slices."""
    columns = (by,) if isinstance(by, str) else by or ()
    return f" by {', '.join(columns)}" if columns else ""


class SliceLimits(NamedTuple):
    """A metric of a slice with its confidence limits, widened by its certain bounds."""

    title: str
    value: float
    low: float
    high: float
    rows: int

    def beyond(self, threshold: float, *, below: bool) -> bool:
        """Return whether the limit on the good side is beyond a threshold."""
        return self.high < threshold if below else self.low > threshold


def check_limits(metric: Any, name: str) -> None:
    """Raise `ValueError` if a metric has no confidence limits."""
    try:
        with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
            metric.confidence(0.95)
    except NoConfidenceError as error:
        raise ValueError(f"{name} cannot be judged by slice: {error}") from None


def limits_by_slice(
    slices: Slices, name: str, min_rows: int, level: float, *, reach: float, below: bool
) -> tuple[list[SliceLimits], int]:
    """Return the limits of slices that have some rows, the worst first, and how many there are.

    All limits hold together at a level (Bonferroni): each is at ``1 - (1 - level) / slices``. A
    slice whose value is on the good side of `reach` has no limit beyond it; except for the one with
    the worst value, such slices are left out, because exact limits are slow.

    Args:
        slices: Slices of one kind.
        name: The metric's name.
        min_rows: Slices with fewer rows are left out, and not counted.
        level: The level of all limits together.
        reach: The value that limits are compared with.
        below: Whether low values are bad.
    """
    metric: Any = slices[name]
    some = [one for one in _each(slices) if one.n_rows >= min_rows]
    values = [value_of(name, metric, one.state) for one in some]
    way = 1 if below else -1
    known = [pair for pair in zip(values, some, strict=True) if not math.isnan(pair[0])]
    known.sort(key=lambda pair: way * pair[0])
    asked = [pair for n, pair in enumerate(known) if not n or way * pair[0] < way * reach]
    tail = (1 - level) / max(len(some), 1)
    found = [_limits(one, metric, name, value, tail) for value, one in asked]
    found = [one for one in found if not (math.isnan(one.low) or math.isnan(one.high))]
    return sorted(found, key=lambda one: way * (one.high if below else one.low)), len(some)


def trials_by_slice(slices: Slices, name: str) -> dict[str, tuple[float, float]]:
    """Return the successes and rows of a share of rows for each slice, by its title."""
    metric: Any = slices[name]
    with own_arithmetic():
        return {one.title: trials_of(metric, *metric._chosen(one.state)) for one in _each(slices)}


def _each(slices: Slices) -> Iterator[Slice]:
    (kind,) = slices._specs
    return iter(kind.kept(slices._accumulator.flush()).slices())


# Windows that overlap often have the same counts.
_exact_limits = lru_cache(maxsize=4096)(clopper_pearson)


def _limits(one: Slice, metric: Any, name: str, value: float, tail: float) -> SliceLimits:
    try:
        with own_arithmetic():
            trials = trials_of(metric, *metric._chosen(one.state))
        return SliceLimits(one.title, value, *_exact_limits(*trials, tail / 2), one.n_rows)
    except TypeError:  # it is no share of rows
        found: Any = one.measured(name, metric, 1 - tail)
    low = found.confidence.low - (value - found.certain.low)
    high = found.confidence.high + (found.certain.high - value)
    return SliceLimits(one.title, value, float(low), float(high), one.n_rows)
