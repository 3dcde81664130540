"""Comparison of slices: the worst ones, and the differences and ratios between them."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from streammetrics.core.columns.batch import near
from streammetrics.core.confidence import ConfidenceInterval, unit_of
from streammetrics.core.errors import UndefinedMetricWarning
from streammetrics.core.results.values import Interval
from streammetrics.slices.bins import KeySpec, title_of
from streammetrics.slices.fairness import plain_limits, value_of
from streammetrics.slices.groups import Grouping
from streammetrics.slices.worst import (
    RankedSlices,
    beside_rest,
    beside_units,
    difference_limits,
    pairs_of,
    ranked,
    ratio_limits,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.accumulator import Accumulator
    from streammetrics.core.confidence import Unit
    from streammetrics.core.feeding.states import State
    from streammetrics.core.metric import Metric
    from streammetrics.core.metric_set import MetricSet
    from streammetrics.core.types import Floats
    from streammetrics.inference.units import Rests
    from streammetrics.slices.fairness import Measured, Slice
    from streammetrics.slices.table import SliceTable

    Chosen = KeySpec | Sequence[KeySpec] | None  # the columns of one kind of slice

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

    def to_dict(self) -> dict[str, Any]:
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


class Audit:
    """Comparisons of one metric over all slices."""

    _accumulator: Accumulator
    _suite: MetricSet
    _metrics: dict[str, Metric]
    _specs: tuple[Grouping, ...]
    unit: str | None

    @abstractmethod
    def _without_groups(self, spec: Grouping, state: State) -> list[tuple[Slice, Rests]]:
        """Return every slice of a kind, with its state without each group of its units."""

    @abstractmethod
    def _check_unit(self, unit: str, *, anytime: bool) -> None:
        """Raise `ValueError` if there are no confidence limits by this unit."""

    def worst(
        self,
        metric: str,
        *,
        k: int = 10,
        min_rows: int = 0,
        by: Chosen = None,
        confidence: float | None = 0.95,
        lowest: bool | None = None,
        unit: Unit = ...,
    ) -> SliceTable:
        """Return the slices where a metric is worst, compared with all other rows.

        Slices that are as good as all other rows, or better, are left out.

        Slices are ranked by the confidence limit on the good side. A slice that is bad even at its
        best limit comes first; a small slice that may only be unlucky does not. Each slice is
        compared with all other rows, ``rest``: ``p`` is the probability of a difference at least
        this large if there were none, and ``p_adjusted`` is adjusted for the number of comparisons
        (Benjamini and Hochberg).

        Args:
            metric: The metric's name; its value must be one number.
            k: Maximum number of slices to return.
            min_rows: Slices with fewer rows are left out.
            by: One kind of slice, given by its columns; by default all kinds except all rows.
            confidence: The level of the limits; ``None`` ranks by the values.
            lowest: Whether low values are bad; by default taken from the metric.
            unit: The sampling unit for limits and ``p``: by default the `unit` of these slices;
                ``None`` for rows.

        Raises:
            NoConfidenceError: The metric has no confidence limits; pass ``confidence=None``.
            KeyError: There is no such metric or kind of slice.

        Example:
            >>> import streammetrics as sm
            >>> slices = sm.Slices(sm.MetricSet({"acc": sm.Accuracy()}), by=[["k"]])
            >>> _ = slices.update(y_true=[1, 1, 1, 1], y_pred=[1, 1, 0, 1], k=["a", "a", "b", "b"])
            >>> worst = slices.worst("acc", k=1)
            >>> worst["k"].tolist(), worst["acc"].tolist(), worst["acc_rest"].tolist()
            (['b'], [0.5], [1.0])
        """
        read, of = self._metric(metric), unit_of(unit, self.unit)
        if of is not None:
            self._check_unit(of, anytime=False)
        _check_count("k", k, 1)
        _check_count("min_rows", min_rows, 0)
        if lowest not in {None, True, False}:
            raise ValueError(f"lowest={lowest!r}: expected True, False or None")
        low_is_bad = read.higher_is_better if lowest is None else lowest
        if low_is_bad is None:
            value_of(metric, read, self._suite._plan.start)  # raises if it is several numbers
            raise ValueError(
                f"{metric!r} has no better direction: pass lowest=True or lowest=False"
            )
        state = self._accumulator.flush()
        found: list[RankedSlices] = []
        for spec in self._chosen_specs(by):
            asked = metric, read, max(min_rows, 1)
            if of is None or confidence is None:
                found.append(beside_rest(spec.kept(state), *asked, confidence))
            else:
                pairs = self._without_groups(spec, state)
                found.append(beside_units(self._suite._plan, pairs, *asked, confidence))
        table = ranked(found, metric, k, confidence, low_is_bad=low_is_bad)
        return table.told(confidence, {metric: low_is_bad})

    def gap(
        self,
        metric: str,
        *,
        by: Chosen = None,
        method: Method = "between_groups",
        confidence: float | None = 0.95,
        min_rows: int = 0,
        unit: Unit = ...,
    ) -> Disparity:
        """Return the largest difference of a metric between slices, or from all rows.

        Like fairlearn's ``MetricFrame.difference``, with certain limits and confidence limits.
        Slices where the metric is undefined are left out. With a single slice the result is nan.

        Args:
            metric: The metric's name; its value must be one number.
            by: The kind of slice, given by its columns; required if there are several.
            method: ``"between_groups"`` for the largest value minus the smallest, or
                ``"to_overall"`` for the largest distance from the value of all rows.
            confidence: The level of the limits, which hold for all slices simultaneously (MOVER for
                each pair of slices, with Bonferroni's correction for their number); ``None`` for
                no limits.
            min_rows: Slices with fewer rows are left out.
            unit: The sampling unit: by default the `unit` of these slices; ``None`` for rows.

        Example:
            >>> import streammetrics as sm
            >>> slices = sm.Slices(sm.MetricSet({"acc": sm.Accuracy()}), by=[["k"]])
            >>> _ = slices.update(y_true=[1, 1, 1, 1], y_pred=[1, 1, 0, 1], k=["a", "a", "b", "b"])
            >>> gap = slices.gap("acc")
            >>> gap.value, gap.lowest, gap.highest
            (0.5, 'k=b', 'k=a')
        """
        return self._disparity(
            difference, metric, by, method, confidence, min_rows, unit_of(unit, self.unit)
        )

    def ratio(
        self,
        metric: str,
        *,
        by: Chosen = None,
        method: Method = "between_groups",
        confidence: float | None = 0.95,
        min_rows: int = 0,
        unit: Unit = ...,
    ) -> Disparity:
        """Return the smallest ratio of a metric between slices, or to all rows; at most 1.

        Like fairlearn's ``MetricFrame.ratio``; the arguments are those of `gap`.

        Example:
            >>> import streammetrics as sm
            >>> slices = sm.Slices(sm.MetricSet({"acc": sm.Accuracy()}), by=[["k"]])
            >>> _ = slices.update(y_true=[1, 1, 1, 1], y_pred=[1, 1, 0, 1], k=["a", "a", "b", "b"])
            >>> slices.ratio("acc").value
            0.5
        """
        return self._disparity(
            ratio, metric, by, method, confidence, min_rows, unit_of(unit, self.unit)
        )

    def _disparity(
        self,
        reading: Callable[..., Disparity],
        metric: str,
        by: Chosen,
        method: Method,
        level: float | None,
        min_rows: int,
        unit: str | None,
    ) -> Disparity:
        if method not in {"between_groups", "to_overall"}:
            raise ValueError(f"method={method!r}: expected 'between_groups' or 'to_overall'")
        _check_count("min_rows", min_rows, 0)
        if unit is not None:
            self._check_unit(unit, anytime=False)
        read, state = self._metric(metric), self._accumulator.flush()
        name = "ratio" if reading is ratio else "gap"
        specs = self._chosen_specs(by)
        if len(specs) > 1:
            known = [list(spec.columns) for spec in specs]
            raise ValueError(f"by is required: pass by={known[0]} or another of {known}")
        every = [
            (one, without)
            for one, without in self._with_units(specs[0], state, unit)
            if one.n_rows >= max(min_rows, 1)
        ]
        how = Comparing(method, level, independent=unit is None)
        each = how.level_of_each(len(every))
        found = [one.measured(metric, read, each, without) for one, without in every]
        ((rows, without),) = self._with_units(Grouping((), specs[0].cut), state, unit)
        overall = rows.measured(metric, read, each, without)
        left_out = [each.title for each in found if math.isnan(each.value)]
        if left_out or not found:
            told = f"none has {max(min_rows, 1):,} rows"
            if left_out:
                told = f"{len(left_out):,} are left out, first {left_out[0]}, as {metric!r} is nan"
            warnings.warn(
                f"{name} of {len(found) - len(left_out):,} slices: {told}",
                UndefinedMetricWarning,
                stacklevel=3,
            )
        apart = reading(found, overall, how)
        single = alone(found, overall, method)
        if single is not None:
            warnings.warn(
                f"{name} is nan: it takes two slices, and only {single.title} is there",
                UndefinedMetricWarning,
                stacklevel=3,
            )
        below = [each.title or "all rows" for each in (*found, overall) if each.value < 0]
        if reading is ratio and below:
            warnings.warn(
                f"ratio is nan: it is of values from 0 on, and {metric!r} is below 0 in {below[0]}",
                UndefinedMetricWarning,
                stacklevel=3,
            )
        if apart.confidence is not None and math.isnan(apart.confidence.low):
            warnings.warn(
                f"{name} has limits that are nan: {apart.confidence.method}",
                UndefinedMetricWarning,
                stacklevel=3,
            )
        return apart

    def _with_units(
        self, spec: Grouping, state: State, unit: str | None
    ) -> list[tuple[Slice, list[State] | None]]:
        """Return the slices of one kind, with their states without each group of units."""
        if unit is None:
            return [(each, None) for each in spec.kept(state).slices()]
        pairs = self._without_groups(spec, state)
        return [(each, list(own.values())) for each, own in pairs]

    def _metric(self, name: str) -> Metric:
        if name not in self._metrics:
            raise KeyError(f"no metric {name!r}{near(str(name), self._metrics)}")
        return self._metrics[name]

    def _chosen_specs(self, by: Chosen) -> list[Grouping]:
        """Return the requested kinds of slice, without that of all rows."""
        if by is None:
            return [spec for spec in self._specs if spec.columns]
        columns = {title_of(part) for part in ([by] if isinstance(by, KeySpec) else by)}
        found = [spec for spec in self._specs if spec.columns and set(spec.columns) == columns]
        if not found:
            known = [list(spec.columns) for spec in self._specs if spec.columns]
            raise KeyError(f"no slices by {sorted(columns)}; slices are by {known}")
        return found


def _check_count(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name}={value!r}: expected an integer of at least {least}")
