"""Comparison of slices: the worst ones, and the differences and ratios between them."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING

from streammetrics.core.columns.batch import near
from streammetrics.core.confidence import unit_of
from streammetrics.core.errors import UndefinedMetricWarning
from streammetrics.slices.bins import KeySpec, title_of
from streammetrics.slices.disparity import Comparing, Disparity, alone, difference, ratio
from streammetrics.slices.fairness import value_of
from streammetrics.slices.groups import Grouping
from streammetrics.slices.worst import RankedSlices, beside_rest, beside_units, ranked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.accumulator import Accumulator
    from streammetrics.core.confidence import Unit
    from streammetrics.core.feeding.states import State
    from streammetrics.core.metric import Metric
    from streammetrics.core.metric_set import MetricSet
    from streammetrics.inference.units import Rests
    from streammetrics.slices.disparity import Method
    from streammetrics.slices.fairness import Slice
    from streammetrics.slices.table import SliceTable

    Chosen = KeySpec | Sequence[KeySpec] | None  # the columns of one kind of slice


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
