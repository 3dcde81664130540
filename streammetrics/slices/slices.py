"""Slices: a set of metrics that groups its rows by key."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self, overload

import numpy as np

from streammetrics.core.columns.batch import near
from streammetrics.core.confidence import check_level, unit_of
from streammetrics.core.errors import (
    StateFormatError,
    undefined_expected,
    warn_undefined,
)
from streammetrics.core.feeding.states import State
from streammetrics.core.floating import own_arithmetic
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.hooks import Drawing, drawn
from streammetrics.inference.units import limits_by_unit, standalone
from streammetrics.slices.bins import Bins, KeySpec, Periods, title_of
from streammetrics.slices.fairness import value_of
from streammetrics.slices.keyed import Grouping, KeyedSet, keys_of, spec_of
from streammetrics.slices.table import (
    SliceTable,
    limit_columns,
    merged_tables,
    value_columns,
)
from streammetrics.slices.worst import (
    Comparing,
    Disparity,
    Method,
    RankedSlices,
    alone,
    beside_rest,
    beside_units,
    difference,
    limits_of,
    ranked,
    ratio,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from matplotlib.axes import Axes

    from streammetrics.core.confidence import Unit
    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.metric import Metric
    from streammetrics.core.results.values import Interval
    from streammetrics.core.types import Bools, Floats, Json
    from streammetrics.slices.fairness import Slice
    from streammetrics.slices.keyed import GroupView

    Chosen = KeySpec | Sequence[KeySpec] | None  # the columns of one kind of slice


class Slices(KeyedSet):
    """A set of metrics by key: for each country, for each device in each country, for all rows.

    It is updated, merged and saved like a `MetricSet`, and works wherever one does. The state of a
    slice equals, byte for byte, the state of a set that has seen only the rows of this slice. Only
    the slices of the finest keys are stored; coarser slices are exact merges of them, computed
    when they are read.

    Keys are text, integers, booleans, dates, or numbers in `Bins`; missing values form their own
    key. Each column holds keys of one kind.

    Args:
        suite: The metrics, without rows; its ``columns`` are taken over.
        by: The kinds of slice, each a list of columns. ``[]`` is all rows.
        max_slices: Maximum number of finest slices.
        overflow: How to handle more slices. With ``"raise"``, the batch that exceeds the limit
            raises. With ``"other"``, the `max_slices` keys with the lowest hashes are kept for each
            kind, and all other rows form one slice ``(other)``; the order of rows does not matter.
        unit: A column that identifies clustered rows, such as those of one user. Slices are stored
            for 64 groups of units, which takes up to 64 times the memory, so that `confidence` can
            be by unit.
        counts: Column of whole numbers: how many rows each row stands for, as in `MetricSet`.

    Raises:
        InvalidBatchError: From `update`: a column is missing, a key is of a different kind than
            before, or there are too many slices. The state is unchanged.

    Memory and cost:
        One state of the set for each slice. Counts, sums and histograms of all slices are updated
        together, at about the cost of one set; other statistics sort the rows by slice first.

    Example:
        >>> import streammetrics as sm
        >>> suite = sm.MetricSet({"recall": sm.Recall()}, columns={"y_true": "label"})
        >>> slices = sm.Slices(suite, by=[[], ["country"]])
        >>> _ = slices.update(label=[1, 1, 0], y_pred=[1, 0, 0], country=["DE", "FR", "FR"])
        >>> slices.compute().to_dict()["recall"]
        [0.5, 1.0, 0.0]
        >>> slices[{"country": "FR"}]["recall"].n_rows
        2
    """

    def compute(  # type: ignore[override]  # returns a table
        self, *, confidence: float | None = None, unit: Unit = ...
    ) -> SliceTable:
        """Return every metric of every slice.

        Slices come in the order of `by`; those of one kind are sorted by their keys.

        Args:
            confidence: The level of confidence limits to add in columns ``name_low`` and
                ``name_high``; metrics without limits get ``nan`` with a warning.
            unit: The sampling unit of the limits, as in `confidence`.

        Example:
            >>> import streammetrics as sm
            >>> slices = sm.Slices(sm.MetricSet({"mean": sm.Mean()}), by=[["day"]])
            >>> _ = slices.update(values=[1.0, 2.0, 6.0], day=["Mon", "Tue", "Tue"])
            >>> slices.compute().to_dict()
            {'day': ['Mon', 'Tue'], 'n_rows': [1, 2], 'mean': [1.0, 4.0]}
        """
        if confidence is not None:
            return self.confidence(confidence, unit=unit)
        return self._read(self._accumulator.flush(), None, anytime=False)

    def _computed(self, state: State, depth: int = 3) -> SliceTable:  # type: ignore[override]  # returns a table
        return self._read(state, None, anytime=False, depth=depth + 1)

    def confidence(  # type: ignore[override]  # returns a table
        self, level: float = 0.95, *, anytime: bool = False, unit: Unit = ...
    ) -> SliceTable:
        """Return every metric of every slice with its confidence limits, in the form of `compute`.

        Args:
            level: The share of samples for which the limits hold.
            anytime: Whether limits hold at all times simultaneously, see `Metric.confidence`.
            unit: The sampling unit: by default the `unit` of these slices, for which every metric
                that is a number or an array of numbers has limits; ``None`` for rows.

        Example:
            >>> import streammetrics as sm
            >>> suite = sm.MetricSet({"acc": sm.Accuracy()})
            >>> slices = sm.Slices(suite, by=[[]], unit="user")
            >>> rows = {"y_true": [1] * 6, "y_pred": [1, 1, 0, 1, 1, 0], "user": [1, 1, 2, 3, 3, 4]}
            >>> table = slices.update(rows).confidence(0.95)
            >>> {name: round(column[0], 2) for name, column in table.to_dict().items()}
            {'n_rows': 6, 'acc': 0.67, 'acc_low': 0.05, 'acc_high': 0.99}
        """
        of = unit_of(unit, self.unit)
        if of is None:
            return self._read(self._accumulator.flush(), level, anytime=anytime)
        self._check_unit(of, anytime=anytime)
        return self._by_units(self._accumulator.flush(), check_level(level))

    def _by_units(self, state: State, level: float) -> SliceTable:
        """Read every slice, and its states without each group of its units."""
        every: list[Slice] = []
        limits: dict[str, list[Interval[object]]] = {name: [] for name in self._metrics}
        values: dict[str, list[object]] = {name: [] for name in self._metrics}
        plan = self._suite._plan
        pairs = (pair for spec in self._specs for pair in self._without_groups(spec, state, plan))
        for each, rests in pairs:
            every.append(each)
            for name, metric in self._metrics.items():
                with own_arithmetic():
                    values[name].append(metric._judged(*metric._chosen(each.state))[0])
            metrics = list(self._metrics.values())
            found = limits_by_unit(metrics, each.state, rests.states, level)
            for name, interval in zip(self._metrics, found, strict=True):
                limits[name].append(interval)
        tables = [keys_of([spec.kept(state) for spec in self._specs])]
        for name in self._metrics:
            tables += [value_columns(name, values[name]), limit_columns(name, limits[name])]
        return merged_tables(tables).told(level, self._better)

    def bounds(self) -> SliceTable:  # type: ignore[override]  # returns a table
        """Return certain limits of every metric of every slice."""
        kinds = [spec.kept(self._accumulator.flush()) for spec in self._specs]
        found = [each for kept in kinds for each in kept.slices()]
        tables = [keys_of(kinds)]
        for name, metric in self._metrics.items():
            with own_arithmetic():
                intervals = [metric.interval(*metric._chosen(each.state)) for each in found]
            tables.append(limit_columns(name, intervals))
        return merged_tables(tables).told(None, self._better)

    def _read(
        self,
        state: State,
        level: float | None,
        *,
        anytime: bool,
        depth: int = 3,
        only: Container[str] | None = None,
    ) -> SliceTable:
        """Read every slice: all metrics, or only the named ones."""
        kinds = [spec.kept(state) for spec in self._specs]
        tables = [keys_of(kinds)]
        for name, metric in self._metrics.items():
            if only is not None and name not in only:
                continue
            found = [kept.values(metric) for kept in kinds]
            tables.append(value_columns(name, *(each.values for each in found)))
            doubtful = np.concatenate([each.doubtful for each in found])
            if doubtful.any():
                first = self._first(kinds, doubtful)
                _, doubt = metric._judged_state(first.state)
                what, _, why = doubt.partition(": ")
                self._warn(name, what, first.title, doubtful, depth, why)
            if level is not None:
                limits: list[Sequence[Interval[object]] | tuple[Floats, Floats]] = []
                refused: list[str] = []
                for kept in kinds:
                    both = None if anytime else kept.limits(metric, level)
                    if both is None:
                        each = [
                            limits_of(metric, one.state, level, anytime=anytime)
                            for one in kept.slices()
                        ]
                        limits.append([limit for limit, _ in each])
                        refused += [why for _, why in each]
                    else:
                        limits.append(both)
                        refused += [""] * len(kept.keys)
                if any(refused):
                    what = "has no confidence limits"
                    without = np.array(list(map(bool, refused)))
                    first = self._first(kinds, without)
                    why = next(filter(None, refused))
                    self._warn(name, what, first.title, without, depth, why)
                tables.append(limit_columns(name, *limits))
        return merged_tables(tables).told(level, self._better)

    def _first(self, kinds: Sequence[GroupView], where: Bools) -> Slice:
        """Return the first slice of all kinds for which the mask is True."""
        place = int(where.argmax())
        for kept in kinds:
            if place < len(kept.keys):
                return kept.slice(place)
            place -= len(kept.keys)
        raise IndexError(place)

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
            if of is None or confidence is None:
                kept = spec.kept(state)
                found.append(beside_rest(kept, metric, read, max(min_rows, 1), confidence))
            else:
                own = standalone(read)
                pairs = list(self._without_groups(spec, state, own._plan))
                found.append(beside_units(pairs, metric, own, max(min_rows, 1), confidence))
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
        read, state = standalone(self._metric(metric)), self._accumulator.flush()
        name = "ratio" if reading is ratio else "gap"
        specs = self._chosen_specs(by)
        if len(specs) > 1:
            known = [list(spec.columns) for spec in specs]
            raise ValueError(f"by is required: pass by={known[0]} or another of {known}")
        every = [
            (one, without)
            for one, without in self._with_units(specs[0], state, unit, read._plan)
            if one.n_rows >= max(min_rows, 1)
        ]
        how = Comparing(method, level, independent=unit is None)
        each = how.level_of_each(len(every))
        found = [one.measured(metric, read, each, without) for one, without in every]
        ((rows, without),) = self._with_units(Grouping((), specs[0].cut), state, unit, read._plan)
        overall = rows.measured(metric, read, each, without)
        left_out = [each.title for each in found if math.isnan(each.value)]
        if left_out or not found:
            told = f"none has {max(min_rows, 1):,} rows"
            if left_out:
                told = f"{len(left_out):,} are left out, first {left_out[0]}, as {metric!r} is nan"
            warn_undefined(f"{name} of {len(found) - len(left_out):,} slices: {told}", 3)
        apart = reading(found, overall, how)
        single = alone(found, overall, method)
        if single is not None:
            warn_undefined(
                f"{name} is nan: it takes two slices, and only {single.title} is there", 3
            )
        below = [each.title or "all rows" for each in (*found, overall) if each.value < 0]
        if reading is ratio and below:
            warn_undefined(
                f"ratio is nan: it is of values from 0 on, and {metric!r} is below 0 in {below[0]}",
                3,
            )
        if apart.confidence is not None and math.isnan(apart.confidence.low):
            warn_undefined(f"{name} has limits that are nan: {apart.confidence.method}", 3)
        return apart

    def _with_units(
        self, spec: Grouping, state: State, unit: str | None, plan: Plan
    ) -> list[tuple[Slice, Iterable[State] | None]]:
        """Return the slices of one kind, with their states without each group of units."""
        if unit is None:
            part = self._suite._plan.parting(plan)
            return [(each.parted(part), None) for each in spec.kept(state).slices()]
        return [(each, own.states) for each, own in self._without_groups(spec, state, plan)]

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

    def plot(  # type: ignore[override]  # draws slices
        self,
        metric: str | None = None,
        ax: object = None,
        *,
        confidence: float | None = 0.95,
        **style: object,
    ) -> Axes:
        """Draw a metric of every slice, the worst first, and return the Matplotlib axes.

        Args:
            metric: The metric's name; by default the first metric.
            ax: Axes to draw on; by default those of a new figure.
            confidence: The level of the limits; ``None`` draws none.
            **style: ``most``, the maximum number of slices to draw, and options of Matplotlib for
                the markers.
        """
        with undefined_expected():
            table = self.compute(confidence=confidence)
            certain = None if self.exact else self.bounds()
        options = {"metric": metric}
        return drawn(table, ax, Drawing(certain=certain, options=options, style=style))

    @property
    def _better(self) -> dict[str, bool | None]:
        return {name: metric.higher_is_better for name, metric in self._metrics.items()}

    def _warn(self, name: str, what: str, first: str, where: Bools, depth: int, why: str) -> None:
        slices = f"{np.count_nonzero(where):,} of {where.size:,} slices, first of {first}"
        warn_undefined(f"{name!r} {what} in {slices}" + (f": {why}" if why else ""), depth + 1)

    @overload
    def __getitem__(self, which: str) -> Metric: ...
    @overload
    def __getitem__(self, which: Mapping[str, object]) -> MetricSet: ...

    def __getitem__(self, which: object) -> Metric | MetricSet:
        """Return a slice as a separate `MetricSet`: ``slices[{"country": "DE"}]``.

        ``{}`` gives all rows. A metric's name gives a view of that metric over all rows.

        Raises:
            KeyError: There is no such slice; the message suggests existing ones.
        """
        if isinstance(which, str):
            return super().__getitem__(which)
        if not isinstance(which, Mapping):
            raise TypeError(f"expected a dictionary such as {{'country': 'DE'}}, not {which!r}")
        state = self._accumulator.flush()
        return self._slice_set(state, which)

    def _only_by(self, kinds: Sequence[Sequence[str]]) -> Slices:
        """Return slices that read these kinds alone, from the rows of these ones.

        Raises:
            KeyError: There are no such slices.
        """
        twin = self._over(self._accumulator)
        twin._specs = tuple(spec_of(dict.fromkeys(by), self._specs, self._cuts) for by in kinds)
        return twin

    def _of_kind(self, state: State, by: str | Sequence[str]) -> Slices:
        """Return slices of one kind from a state of these slices with ``overflow="other"``."""
        (kind,) = self._chosen_specs(by)
        number = self._cuts.index(kind.cut)
        one = type(self)(
            self._suite, by=[kind.cut.by], max_slices=self.max_slices, overflow=self.overflow
        )
        plan = one._plan
        infos, statistics = len(plan.schemas), len(plan.places)
        kept = state.statistics[number * statistics : (number + 1) * statistics]
        forks = tuple([statistic.fork() for statistic in plan.start.statistics])
        for fork, mine in zip(forks, kept, strict=True):
            fork.merge(mine)  # a merge, because the column of keys has another number
        seen = state.infos[number * infos : (number + 1) * infos]
        return one._at(State(seen, forks))

    @property
    def exact(self) -> bool:
        """Whether every value of every slice is exact."""
        every = self._slices(self._accumulator.flush())
        metrics = self._metrics.values()
        with own_arithmetic():
            return all(m.is_exact(*m._chosen(each.state)) for each in every for m in metrics)

    @property
    def n_slices(self) -> int:
        """The number of slices in the table of `compute`."""
        state = self._accumulator.flush()
        return sum(len(spec.kept(state).keys) for spec in self._specs)

    def _apart(self, other: Self) -> str:
        names = ("by", "max_slices", "overflow", "unit")
        mine, theirs = ({name: getattr(each, name) for name in names} for each in (self, other))
        parts = [
            f"{name} is {_listed(theirs[name])} there and {_listed(mine[name])} here"
            for name in mine
            if mine[name] != theirs[name]
        ]
        if self._suite._identity != other._suite._identity:
            parts.append(self._suite._apart(other._suite))
        return "; ".join(parts)

    def _titled(self) -> str:
        return f"Slices by {_listed(self.by)} of {self._suite._titled()}"

    def _configuration(self) -> dict[str, object]:
        return {
            **super()._configuration(),
            "by": [[_written(column) for column in spec] for spec in self.by],
            "max_slices": self.max_slices,
            "overflow": self.overflow,
            **({} if self.unit is None else {"unit": self.unit}),
        }

    @classmethod
    def _configured(cls, meta: Mapping[str, Json]) -> Self:
        suite = MetricSet._configured(meta)
        by: Json = meta.get("by")
        try:
            specs = [[_read_back(column) for column in spec] for spec in by]
            return cls(
                suite,
                by=specs,
                max_slices=meta.get("max_slices"),  # type: ignore[arg-type]  # the constructor checks it
                overflow=meta.get("overflow"),  # type: ignore[arg-type]  # the constructor checks it
                unit=meta.get("unit"),
            )
        except (ValueError, TypeError) as error:
            raise StateFormatError(f"the state does not say what is sliced: {error}") from error

    def __repr__(self) -> str:
        inside = repr(self._suite).partition(" <")[0]
        return f"Slices({inside}, by={_listed(self.by)}) <{self.n_rows:,} rows>"

    def _repr_html_(self) -> str:
        with undefined_expected():
            return self.compute()._repr_html_() or ""


def _listed(by: object) -> str:
    return str([list(spec) for spec in by]) if isinstance(by, tuple) else repr(by)


def _written(column: KeySpec) -> object:
    if isinstance(column, str):
        return column
    return [column.column, list(column.edges) if isinstance(column, Bins) else column.period]


def _read_back(column: Json) -> KeySpec:
    if isinstance(column, str):
        return column
    name, cut = column
    return Periods(name, cut) if isinstance(cut, str) else Bins(name, cut)  # type: ignore[arg-type]  # the constructor checks it


def _check_count(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name}={value!r}: expected an integer of at least {least}")
