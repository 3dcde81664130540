"""The worst slices, their comparison with all other rows, and the disparity between slices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from streammetrics.core.confidence import ConfidenceInterval, unsure
from streammetrics.core.errors import NoConfidenceError, undefined_expected
from streammetrics.core.results.values import Interval
from streammetrics.inference.distributions import benjamini_hochberg, margin
from streammetrics.inference.tables import Readings
from streammetrics.inference.units import jackknife_limits, standalone, without_each
from streammetrics.slices.fairness import (
    Measured,
    Slice,
    p_by_unit,
    p_values,
    plain_limits,
    readings,
    value_of,
)
from streammetrics.slices.table import SliceTable, key_columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.feeding.states import State
    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Document, Floats, Ints, Places
    from streammetrics.inference.units import Rests
    from streammetrics.slices.keyed import GroupView
    from streammetrics.statistics.keys import Part


# ---- limits of the largest distance between slices ----

# Slices of one kind share no rows, so their values are independent. Limits of a difference of two
# values follow from the limits of each (MOVER, see `margin`), and so do those of a ratio (Donner
# and Zou, Statistical Methods in Medical Research 21, 2012). If the limits of all pairs hold
# simultaneously, the maximum over all pairs lies between the largest lower limit and the largest
# upper limit.


def pairs_of(count: int) -> int:
    """Return the number of pairs of `count` slices."""
    return count * (count - 1) // 2


def difference_limits(value: Floats, low: Floats, high: Floats) -> tuple[float, float]:
    """Return limits of the largest value minus the smallest, for at least two values.

    >>> value, low, high = np.array([[0.5, 0.9], [0.2, 0.6], [0.9, 1.0]])
    >>> least, most = difference_limits(value, low, high)
    >>> least, round(most, 4)  # 0.4 - hypot(0.3, 0.4) is below 0; 0.4 + hypot(0.1, 0.3)
    (0.0, 0.7162)
    """

    def least(one: int, others: Places) -> Floats:
        apart = margin(value[one], low[one], value[others], high[others])
        return np.asarray(value[one] - value[others] - apart)

    def most(one: int, others: Places) -> Floats:
        apart = margin(value[others], low[others], value[one], high[one])
        return np.asarray(value[one] - value[others] + apart)

    lower = _of_pairs(least, _foremost(value, low), _foremost(-value, -high))
    upper = _of_pairs(most, _foremost(value, high), _foremost(-value, -low))
    return max(0.0, float(lower.max())), float(upper.max())


def ratio_limits(value: Floats, low: Floats, high: Floats) -> tuple[float, float]:
    """Return limits of the smallest value over the largest, for two or more non-negative values.

    They are the ratios r of a and b at which ``|a - r b| = hypot(a - a', r (b - b'))``. For the
    lower limit, a' is the lower limit of a, and b' the upper limit of b; for the upper limit, they
    are the other ones.

    >>> value, low, high = np.array([[0.5, 0.8], [0.4, 0.7], [0.6, 0.9]])
    >>> [round(limit, 4) for limit in ratio_limits(value, low, high)]
    [0.486, 0.7838]
    """
    below, above = low * (2 * value - low), high * (2 * value - high)

    def root(one: int, others: Places, product: Floats) -> Floats:
        whole = value[one] * value[others]
        return np.asarray(whole + np.sqrt(np.maximum(whole * whole - product, 0.0)))

    def least(one: int, others: Places) -> Floats:
        ratio = below[one] / root(one, others, below[one] * above[others])
        return np.where(np.isnan(ratio), 0.0, ratio)

    def most(one: int, others: Places) -> Floats:
        ratio = root(one, others, above[one] * below[others]) / below[others]
        return np.where(np.isnan(ratio), np.inf, ratio)

    with np.errstate(all="ignore"):  # 0 and infinity give nan, replaced by trivial limits
        lower = _of_pairs(least, _foremost(-value, -low), _foremost(value, high))
        upper = _of_pairs(most, _foremost(-value, -high), _foremost(value, low))
    return float(lower.min()), min(1.0, float(upper.min()))


def _foremost(value: Floats, limit: Floats) -> Places:
    """Return the slices that fewer than two others exceed in both value and limit.

    A pair's limit increases with the value and the limit of its first side. If two others exceed
    a side, one of them gives a more extreme pair, because only one can be the second side.
    """
    order = np.lexsort((limit, value))[::-1]
    found = []
    for _ in range(2):
        best = np.maximum.accumulate(limit[order])
        first = np.ones(order.size, np.bool_)
        np.greater(limit[order][1:], best[:-1], out=first[1:])
        found.append(order[first])
        order = order[~first]
    return np.concatenate(found)


def _of_pairs(limit: Callable[[int, Places], Floats], first: Places, second: Places) -> Floats:
    """Return the limit of every pair of a slice of `first` and another of `second`."""
    return np.concatenate([limit(one, second[second != one]) for one in first.tolist()])


class RankedSlices(NamedTuple):
    """Slices of one kind with limits, and their comparison with all other rows.

    Arrays are (n,). Without a confidence level, `low` and `high` equal `value`.
    """

    columns: tuple[str, ...]
    keys: Sequence[tuple[Part, ...] | None]
    n_rows: Ints
    value: Floats
    low: Floats
    high: Floats
    rest: Floats
    p: Floats


def beside_rest(
    kept: GroupView, name: str, metric: Metric, least: int, level: float | None
) -> RankedSlices:
    """Compare slices of at least `least` rows with all other rows, as samples of rows."""
    wanted = kept.n_rows >= least
    places = np.flatnonzero(wanted)
    slices = kept.columns, [kept.keys[place] for place in places.tolist()], kept.n_rows[wanted]
    if level is None:
        value = kept.values(metric).values
        if not isinstance(value, np.ndarray):
            every = kept.slices()
            value = np.array([value_of(name, metric, every[place].state) for place in places])
        else:
            value = value[wanted]
        nothing = np.full(places.size, math.nan)
        return RankedSlices(*slices, value, value, value, nothing, nothing)
    found = kept.beside_rest(name, metric, level)
    if found is None:
        own = standalone(metric)
        part = kept.groups.plan.parting(own._plan)
        every = [each.parted(part) for each in kept.slices()]
        rests = without_each(own._plan, [each.state for each in every], wanted.tolist())
        pairs = [
            (each.measured(name, own, level), each.beside(name, own, rest, level))
            for each, rest in zip(every, rests, strict=True)
            if rest is not None
        ]
        mine, rest = (_readings([pair[side] for pair in pairs]) for side in (0, 1))
    else:
        mine, rest = (Readings(*(each[wanted] for each in side)) for side in found)
    return RankedSlices(*slices, *mine, rest.value, np.array(p_values(mine, rest, level)))


def _readings(every: Sequence[Measured]) -> Readings:
    """Return the values and limits of measured slices as arrays."""
    return readings([(each.value, *plain_limits(each.confidence)) for each in every])


def beside_units(
    pairs: Sequence[tuple[Slice, Rests]],
    name: str,
    metric: Metric,
    least: int,
    level: float,
) -> RankedSlices:
    """Compare slices as `beside_rest` does, but as samples of units.

    A unit may have rows in several slices. The states are those of the metric's own plan.
    """
    wanted = [each.n_rows >= least for each, _ in pairs]

    def apart(states: Sequence[State]) -> list[tuple[float, float]]:
        rests = without_each(metric._plan, states, wanted)
        return [
            (math.nan, math.nan)
            if rest is None
            else (value_of(name, metric, one), value_of(name, metric, rest))
            for one, rest in zip(states, rests, strict=True)
        ]

    now = apart([each.state for each, _ in pairs])
    of_group = {
        group: apart(
            [next(own.states) if group in own.groups else each.state for each, own in pairs]
        )
        for group in sorted({group for _, own in pairs for group in own.groups})
    }
    without = np.array([of_group[group] for group in sorted(of_group, key=str)])
    chosen = [place for place, is_wanted in enumerate(wanted) if is_wanted]
    every = [pairs[place][0] for place in chosen]
    limits = [
        jackknife_limits(
            metric,
            pairs[place][0].state,
            now[place][0],
            [of_group[group][place][0] for group in pairs[place][1].groups],
            level,
        )
        for place in chosen
    ]
    mine = [
        (now[place][0], *plain_limits(found)) for place, found in zip(chosen, limits, strict=True)
    ]
    rest = np.array([now[place][1] for place in chosen], float)
    p = [
        p_by_unit(now[place][0] - now[place][1], without[:, place, 0] - without[:, place, 1])
        for place in chosen
    ]
    return RankedSlices(
        every[0].columns if every else (),
        [each.parts for each in every],
        np.array([each.n_rows for each in every], np.int64),
        *readings(mine),
        rest,
        np.array(p, float),
    )


def ranked(
    found: Sequence[RankedSlices],
    name: str,
    k: int,
    level: float | None,
    *,
    low_is_bad: bool,
) -> SliceTable:
    """Return the `k` worst slices as a table."""
    n_rows, value, low, high, rest, p = (
        np.concatenate([each[column] for each in found]) for column in range(2, 8)
    )
    keys = [(each.columns, parts) for each in found for parts in each.keys]
    adjusted_p = np.array(benjamini_hochberg(p.tolist()))
    sign = 1.0 if low_is_bad else -1.0
    limit = sign * (high if low_is_bad else low)
    worse = ~np.isnan(value) & (np.isnan(rest) | (sign * value < sign * rest))
    badness = (sign * value, np.where(np.isnan(limit), 0.0, limit), np.isnan(limit))
    order = np.lexsort([side[worse] for side in badness])[:k]
    chosen = np.flatnonzero(worse)[order]
    shown = [(columns, [parts]) for columns, parts in map(keys.__getitem__, chosen)]
    table = SliceTable(key_columns([*shown, *((each.columns, []) for each in found)]))
    table["n_rows"], table[name] = n_rows[chosen], value[chosen]
    if level is not None:
        table[f"{name}_low"], table[f"{name}_high"] = low[chosen], high[chosen]
        table[f"{name}_rest"] = rest[chosen]
        table["p"], table["p_adjusted"] = p[chosen], adjusted_p[chosen]
    return table


def limits_of(
    metric: Metric, state: State, level: float, *, anytime: bool = False
) -> tuple[ConfidenceInterval, str]:
    """Return the confidence limits of a metric at a state, and if undefined, the reason."""
    with undefined_expected():
        try:
            return metric._confident(state, level, anytime=anytime), ""
        except NoConfidenceError as error:
            return unsure(level, ""), str(error)


Method = Literal["between_groups", "to_overall"]


@dataclass(frozen=True)
class Disparity:
    """The difference or ratio of a metric between slices.

    Attributes:
        value: The difference or the ratio.
        bounds: Certain limits of the exact value for these rows.
        confidence: Limits for the population at the given level. They hold for all slices
            simultaneously, because the level of each pair's limits is corrected for their number.
        lowest: The slice with the smallest value.
        highest: The slice with the largest value.

    With a single slice the numbers are nan, and there is no confidence.
    """

    value: float
    bounds: Interval
    confidence: ConfidenceInterval | None
    lowest: str
    highest: str

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        words = [f"{self.value:.6g}"]
        if self.bounds.low < self.bounds.high:
            words.append(f"certainly {self.bounds.low:.6g} .. {self.bounds.high:.6g}")
        if self.confidence is not None:
            low, high = self.confidence
            words.append(f"{low:.6g} .. {high:.6g} ({100 * self.confidence.level:.6g} %)")
        if self.lowest:
            words.append(f"lowest {self.lowest}, highest {self.highest}")
        return "; ".join(words)

    def to_dict(self) -> Document:
        """Return all attributes as plain Python objects."""
        return {
            "value": self.value,
            "bounds": self.bounds.to_dict(),
            "confidence": None if self.confidence is None else self.confidence.to_dict(),
            "lowest": self.lowest,
            "highest": self.highest,
        }


_UNDEFINED = Disparity(math.nan, Interval(math.nan, math.nan), None, "", "")


class Comparing(NamedTuple):
    """How slices are compared: the method, the confidence level, and their independence."""

    method: Method
    level: float | None
    independent: bool  # whether slices share no rows and no units

    @property
    def by_pairs(self) -> bool:
        """Whether limits are computed for each pair of slices."""
        return self.independent and self.method == "between_groups"

    def level_of_each(self, slices: int) -> float | None:
        """Return the level of each slice's limits at which all hold together (Bonferroni)."""
        if self.level is None:
            return None
        count = pairs_of(slices) if self.by_pairs else slices + (self.method == "to_overall")
        return 1 - (1 - self.level) / max(count, 1)

    def words(self, slices: int, method: str) -> str:
        """Return a description of how limits are computed from those of `slices` slices."""
        if self.by_pairs:
            return f"MOVER of {pairs_of(slices):,} pairs of slices (Bonferroni), from {method}"
        return f"Bonferroni over {slices:,} slices of {method}"


def alone(every: Sequence[Measured], overall: Measured, method: Method) -> Measured | None:
    """Return the only slice with a value if it has nothing to be compared with, else ``None``."""
    known = [each for each in every if not math.isnan(each.value)]
    if len(known) != 1 or (method == "to_overall" and known[0].n_rows < overall.n_rows):
        return None
    return known[0]


Limits = Sequence[float]
Bounds = tuple[float, float]


class _Distance(NamedTuple):
    """A measure of distance between two values, with functions for its limits."""

    apart: Callable[[float, float], float]
    between: Callable[[Limits, Limits], Bounds]
    from_overall: Callable[[Limits, Limits, Bounds], Bounds]
    of_pairs: Callable[[Floats, Floats, Floats], Bounds]

    def limits(self, every: Sequence[Bounds], overall: Bounds, method: Method) -> Bounds:
        """Return limits of the distance, given limits of all slices and of all rows."""
        low, high = zip(*every, strict=True)
        if method == "between_groups":
            return self.between(low, high)
        return self.from_overall(low, high, overall)


def difference(every: Sequence[Measured], overall: Measured, how: Comparing) -> Disparity:
    """Return the largest difference between slices, or from all rows."""

    def between(low: Limits, high: Limits) -> Bounds:
        return max(0.0, max(low) - min(high)), max(high) - min(low)

    distance = _Distance(lambda a, b: b - a, between, _from_overall, difference_limits)
    return _disparity(every, overall, how, distance)


def ratio(every: Sequence[Measured], overall: Measured, how: Comparing) -> Disparity:
    """Return the smallest ratio between slices, or to all rows; at most 1."""

    def between(low: Limits, high: Limits) -> Bounds:
        if min(low) < 0:
            return _BELOW_ZERO
        return _over(min(low), max(high)), min(1.0, _over(min(high), max(low)))

    def of_pairs(value: Floats, low: Floats, high: Floats) -> Bounds:
        return _BELOW_ZERO if low.min() < 0 else ratio_limits(value, low, high)

    if any(each.value < 0 for each in (overall, *every)):
        return _UNDEFINED
    return _disparity(every, overall, how, _Distance(_over, between, _to_overall, of_pairs))


# The ratio of values that may be negative is unbounded below.
_BELOW_ZERO = (-math.inf, 1.0)


def _over(a: float, b: float) -> float:
    return a / b if b else math.nan


def _disparity(
    every: Sequence[Measured], overall: Measured, how: Comparing, distance: _Distance
) -> Disparity:
    known = [each for each in every if not math.isnan(each.value)]
    if not known or alone(every, overall, how.method) is not None:
        return _UNDEFINED
    lowest = min(known, key=lambda each: each.value)
    highest = max(known, key=lambda each: each.value)
    if how.method == "between_groups":
        value = distance.apart(lowest.value, highest.value)
    else:
        values = [(each.value, each.value) for each in known]
        value, _ = distance.limits(values, (overall.value, overall.value), how.method)
    pairs = [(each.certain.low, each.certain.high) for each in known]
    whole = (overall.certain.low, overall.certain.high)
    certain = Interval(*distance.limits(pairs, whole, how.method))
    sure = None if how.level is None else _sure(known, overall, how, distance, how.level)
    if sure is not None and how.by_pairs:
        sure = _widened(sure, value, certain)
    return Disparity(value, certain, sure, lowest.title, highest.title)


def _sure(
    known: Sequence[Measured],
    overall: Measured,
    how: Comparing,
    distance: _Distance,
    level: float,
) -> ConfidenceInterval:
    """Return the confidence limits; nan if a slice has none, since then nothing is known."""
    asked = known if how.method == "between_groups" else [overall, *known]
    limits = [plain_limits(each.confidence) for each in asked]
    for each, (low, _) in zip(asked, limits, strict=True):
        if math.isnan(low):
            words = f"{each.title or 'all rows'} has none; min_rows leaves out what is small"
            return ConfidenceInterval(math.nan, math.nan, level, words)
    if how.by_pairs:
        low, high = np.array(limits, np.float64).T
        found = distance.of_pairs(np.array([each.value for each in known]), low, high)
    else:
        found = distance.limits(limits[-len(known) :], limits[0], how.method)
    method = "" if known[0].confidence is None else known[0].confidence.method
    return ConfidenceInterval(*found, level, how.words(len(known), method))


def _widened(sure: ConfidenceInterval, value: float, certain: Interval) -> ConfidenceInterval:
    """Return limits widened by the bounds of the value's error, which add linearly."""
    low = max(min(sure.low, 0.0), sure.low - (value - certain.low))
    return ConfidenceInterval(low, sure.high + (certain.high - value), sure.level, sure.method)


def _from_overall(low: Limits, high: Limits, whole: Bounds) -> Bounds:
    nearest = (max(0.0, a - whole[1], whole[0] - b) for a, b in zip(low, high, strict=True))
    farthest = (max(b - whole[0], whole[1] - a) for a, b in zip(low, high, strict=True))
    return max(nearest), max(farthest)


def _to_overall(low: Limits, high: Limits, whole: Bounds) -> Bounds:
    """Return limits of the smallest ratio between a slice and all rows, folded to at most 1."""
    if min(*low, whole[0]) < 0:
        return _BELOW_ZERO
    lows, highs = [], []
    for a, b in zip(low, high, strict=True):
        ends = [_over(a, whole[1]), _over(b, whole[0])]
        folded = [min(x, _over(1.0, x)) if x > 0 else x for x in ends]
        lows.append(min(folded))
        highs.append(1.0 if ends[0] <= 1 <= ends[1] else max(folded))
    return min(lows), min(highs)
