"""Units of a sample: confidence intervals for clustered rows, and sets that keep rows by unit.

Rows of one user are correlated, so many rows of few users carry less information than their number
suggests. The sample is the units: the variance of a value comes from what each unit adds to it. A
state is kept for each of up to `MOST_UNITS` units; more of them are united in 64 groups by hash,
and the variance comes from those (Kott 2001; Chamandy et al. 2012).
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np

from streammetrics.core.accumulator import Accumulator, ReadOnly
from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.column import are_more, numbered
from streammetrics.core.columns.conversion import Column, as_column
from streammetrics.core.columns.labels import as_integers, flat
from streammetrics.core.columns.schema import reject
from streammetrics.core.confidence import (
    Biased,
    ConfidenceInterval,
    ConfidenceRequest,
    Refusal,
    check_level,
    unsure,
    without,
    without_units,
)
from streammetrics.core.counting import is_dense
from streammetrics.core.errors import (
    InvalidBatchError,
    StateFormatError,
    undefined_expected,
    warn_undefined,
)
from streammetrics.core.fields.keyed import coded_labels
from streammetrics.core.fields.sums import GroupedSums
from streammetrics.core.fields.tables import GroupedCells
from streammetrics.core.fields.weights import WeightedCount
from streammetrics.core.floating import own_arithmetic
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.values import LabelledArray, Values
from streammetrics.core.statistic import GroupedStates
from streammetrics.inference.areas import class_influences
from streammetrics.inference.distributions import limits, t_quantile
from streammetrics.inference.labelings import of_agreement
from streammetrics.inference.tables import of_rare
from streammetrics.metrics.families import Family
from streammetrics.metrics.scores.base import staircases
from streammetrics.statistics.grouped import MOST_UNITS, Groups, unit_plan
from streammetrics.statistics.keys import (
    GROUPS,
    KeyColumn,
    KeyedSchema,
    text_keys,
    unit_keys,
    united,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from streammetrics.core.columns.schema import Kind
    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.feeding.states import RowInfo, State
    from streammetrics.core.metric import Metric
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, Floats, Ints, Numeric
    from streammetrics.metrics.ranking.base import RankingMetric
    from streammetrics.metrics.scores.base import ClassScoreMetric
    from streammetrics.statistics.histograms import ScoreHistogram
    from streammetrics.statistics.rankings import RankingBuffer

M = TypeVar("M", bound="Metric")

BY_UNIT = "by unit"  # the canonical name of the column of units
FEW = 30  # units below which limits hold too seldom, see docs/confidence.md
MOST_LEFT_OUT = 512  # units left out one by one where the others must be merged


def unit_column(value: object, title: str) -> KeyColumn:
    """Return the key of each row's unit; that of its group where these are too many.

    Raises:
        InvalidBatchError: The column does not exist, or a row has no valid id.
    """
    if value is None:
        raise InvalidBatchError(
            f"no column {title!r}, which identifies the unit of each row", title
        )
    keys, codes, kind = text_keys(value) or _keys_of(value, title)
    if codes is not None:
        codes, used = numbered(codes, len(keys))
        keys = keys[used]
    if are_more(keys, MOST_UNITS):
        keys = keys & (GROUPS - 1)
    keys = keys if codes is None else keys[codes]
    return KeyColumn(keys, None, True, None, {f"units {title!r}": kind})


def _keys_of(value: object, title: str) -> tuple[Ints, Array, str]:
    """Return the keys of units, the index of each row's unit, and the kind of the ids."""
    column = flat(as_column(value, title, advice="units are text or integers"), title)
    values, missing = column.values, column.nulls
    if values.dtype.kind == "f":
        values, missing = as_integers(values, missing, title, "holds numbers that are not ids")
    if missing is not None and missing.any():
        reject(title, "is missing (NaN or null)", missing, advice="every row needs a unit")
    codes, units = coded_labels(Column(values, None, False, column.vocabulary))
    return unit_keys(units), codes, "integers" if column.vocabulary is None else "text"


def units_of(groups: Groups | UnitInfluence) -> str:
    """Return what the groups are, in words."""
    keys = groups.keys
    return "units" if keys.dtype.kind == "i" and (keys < 0).all() else "groups of units"


class UnitInfluence(NamedTuple):
    """What each unit adds to a value, and its share of the rows that the value is computed from.

    `adds` is (units,), or (units, ...) for a value of several numbers, and sums to about 0.
    Numbers are sorted before they are summed, as otherwise the ids, which order them, would matter.
    """

    keys: Array
    adds: Floats
    share: Floats

    @property
    def of(self) -> str:
        """The units, in words."""
        return f"{len(self.keys):,} {units_of(self)}"

    @property
    def error(self) -> Numeric:
        """The standard error: a unit's influence is divided by the root of 1 - its share (CR2)."""
        if len(self.keys) < 2:
            return np.full(self.adds.shape[1:], math.nan)
        rest = 1 - self.share.reshape(-1, *[1] * (self.adds.ndim - 1))
        return np.sqrt(np.sort(self.adds**2 / rest, axis=0).sum(axis=0))

    @property
    def df(self) -> float:
        """Satterthwaite's degrees of freedom of the variance: one less than equal units."""
        h = np.sort(self.share)
        if len(h) < 2 or h.max() == 1:
            return 1.0
        each = h**2 / (1 - h)
        pairs = (each[1:] * np.cumsum(each)[:-1]).sum()  # (sum² - sum of squares) / 2 cancels
        return 1 / float((h**2).sum() + 2 * pairs)


def influence_of_units(metric: Any, groups: Groups, whole: State) -> UnitInfluence:
    """Return what each unit adds to a metric.

    It is exact for areas under curves and means over queries. For other metrics it is the change of
    the value without the unit, or without each of 64 groups of units if the states of all other
    units must be merged and there are more than 512, or more than 64 for quantiles and other values
    that move in steps.
    """
    groups = groups.seen_by(metric)
    forms, statistics = groups.forms(metric) or (), metric._chosen(whole)
    found: tuple[Floats, Floats] | None = None
    if len(forms) == 1:
        if metric.family in {Family.ROC_AREA, Family.AVERAGE_PRECISION} and is_whole_area(metric):
            found = _of_area(metric, forms[0], statistics[0])
        elif metric.family == Family.QUERIES and metric.aggregation == "mean":
            found = _of_queries(metric, forms[0], statistics[0])
    if found is None:
        groups, adds = _of_rests(metric, groups, forms, statistics)
        size: Numeric = groups.rows_of(metric)
    else:
        adds, size = found
    return UnitInfluence(groups.keys, adds, size / np.sort(size).sum() if len(size) else size)


# Values that move in steps: leaving out a single unit says little of how they vary.
_STEPS = {
    Family.QUANTILE, Family.ERROR_QUANTILE, Family.BEST_RATE, Family.CROSSING, Family.DEPTH,
}  # fmt: skip


def is_whole_area(metric: Any) -> bool:
    """Whether a metric is a whole area under a curve, of one class or as an average of several."""
    return metric.family == Family.AVERAGE_PRECISION or (
        metric.max_fpr in {None, 1.0}
        and metric.min_tpr in {None, 0.0}
        and metric.multi_class == "ovr"
        and metric.average != "micro"
    )


def _of_rests(
    metric: Metric[Numeric],
    groups: Groups,
    forms: Sequence[GroupedStates],
    statistics: Sequence[Statistic],
) -> tuple[Groups, Floats]:
    """Return the influences by leaving units out, and the units or groups of units."""
    value = metric._judged(*statistics)[0]
    if not len(groups):
        return groups, np.zeros((0, *np.shape(value)))
    others = [rest for form in forms if (rest := rest_of(form)) is not None]
    together = None
    rests: Iterator[Sequence[Statistic]]
    if not forms or len(others) < len(forms):
        if len(groups) > (GROUPS if metric.family in _STEPS else MOST_LEFT_OUT):
            keys, places = united(groups.keys)
            groups = groups.regrouped(places, keys)
        part = groups.plan.parting(metric._plan)
        states = [part(groups.state(np.array([place]))) for place in range(len(groups))]
        rests = (rest.statistics for rest in without_each(metric._plan, states))
    else:
        together = metric._of_groups(*others)
        rests = zip(*[other.each() for other in others], strict=True)
    values = together.values if together else [metric._judged(*rest)[0] for rest in rests]
    if any(np.shape(each) != np.shape(value) for each in values):  # a class is of one unit alone
        return groups, np.full((len(groups), *np.shape(value)), math.nan)
    apart = np.asarray(value, np.float64) - np.array(
        [np.asarray(each, np.float64) for each in values]
    )
    rows = groups.rows_of(metric)
    rest = 1 - rows / max(rows.sum(), 1)
    return groups, apart * rest.reshape(-1, *[1] * (apart.ndim - 1))


def _of_area(
    metric: ClassScoreMetric[None], form: GroupedStates, whole: ScoreHistogram
) -> tuple[Floats, Floats]:
    """Return the influences of units on an area, and their weights."""
    classes = staircases(whole)
    parts, total = list(class_influences(metric, classes)), classes[0].rows if classes else 0.0
    adds, rows = np.full(form.size, math.nan if not parts else 0.0), np.zeros(form.size)
    every: Any = form.each()
    for unit, own in enumerate(every):
        mine = staircases(own)
        rows[unit] = mine[0].rows
        for place, weight, share, area, influence in parts:
            steps = mine[place]
            scale = steps.rows / (steps.positives + steps.negatives)
            gain = scale * float(steps.positives) - share * steps.rows
            adds[unit] += area * gain + weight * scale * influence.of_steps(steps, share)
    return adds / total if total else adds, rows


def _of_queries(
    metric: RankingMetric, form: GroupedStates, whole: RankingBuffer
) -> tuple[Floats, Floats] | None:
    """Return the influences of units on a mean over queries, and their weights.

    Returns ``None`` if a query has rows of several units.
    """
    every: Any = form.each()
    queries, each = whole.rows.queries, [own.rows.queries for own in every]
    if sum(map(len, each)) != len(queries):
        return None
    unit = np.empty(len(queries), np.intp)
    places = np.searchsorted(queries, np.concatenate([queries[:0], *each]))
    unit[places] = np.repeat(np.arange(form.size), list(map(len, each)))
    counted, values = metric._counted(whole)
    weight = metric._weights(whole, counted)
    weight = np.ones(len(values)) if weight is None else weight
    apart = weight * (values - metric.readout(whole))
    size: Any = np.bincount(unit[counted], weight, form.size)
    return np.bincount(unit[counted], apart, form.size) / (size.sum() or math.nan), size


def standalone(metric: M) -> M:
    """Return a metric of a set that reads states of its own plan, which are cheaper to merge."""
    return metric._over(Accumulator(metric._plan))


class Rests(NamedTuple):
    """The groups of units of some rows, and the state of these rows without each group in turn.

    The states are made as they are read, because all of them take as much memory as the rows'
    state times the number of groups.
    """

    groups: Sequence[int]  # ascending
    states: Iterator[State]


def without_each(
    plan: Plan, states: Sequence[State], wanted: Sequence[bool] | None = None
) -> Iterator[Any]:
    """Yield, for each state in turn, the merged state of all others; ``None`` if it is not wanted.

    The states are halved until one is left: about log2(n) merged states exist at once, not n.
    """

    def walk(start: int, stop: int, outside: State) -> Iterator[State | None]:
        while wanted is None or any(wanted[start:stop]):
            if stop - start == 1:
                yield outside
                return
            middle = (start + stop) // 2
            yield from walk(start, middle, plan.merged(outside, states[middle:stop]))
            outside, start = plan.merged(outside, states[start:middle]), middle
        yield from [None] * (stop - start)

    if states:
        yield from walk(0, len(states), plan.start)


def rest_of(states: GroupedStates) -> GroupedStates | None:
    """Return for each group the merged state of all others; ``None`` if that is too expensive."""
    values = {name: _rest(value, states.size) for name, value in states.values.items()}
    if any(value is None for value in values.values()):
        return None
    return GroupedStates(states.of, states.size, values)


def _rest(value: Any, size: int) -> Any:
    """Return, for the grouped value of a field, what all other groups hold."""
    if isinstance(value, ExactSum):
        return value.regroup(np.zeros(size, np.intp), 1)[np.zeros(size, np.intp)] - value
    if isinstance(value, WeightedCount):
        if value.weights is None:
            return WeightedCount.of_counts(value.counts.sum(axis=0) - value.counts)
        squares = value.squared()
        left = None if squares is None else _rest(squares, size)
        return WeightedCount.of_weights(_rest(value.exact(), size), left)
    if isinstance(value, GroupedSums):
        left = {name: _rest(sums, size) for name, sums in value.sums.items()}
        return GroupedSums(np.count_nonzero(value.seen) > value.seen, left)
    if isinstance(value, GroupedCells):
        return _rest_of_cells(value, size)
    if isinstance(value, np.ndarray):  # widths, which are equal in all groups with rows
        return np.where(np.count_nonzero(value) > (value > 0), value.max(initial=0), 0)
    return None


def _rest_of_cells(cells: GroupedCells, size: int) -> GroupedCells | None:
    if not is_dense(size * cells.area, cells.codes.size):
        return None
    amount = cells.amount.spread(cells.codes, size * cells.area)
    left = _rest(amount.shaped((size, cells.area)), size).shaped((size * cells.area,))
    found = np.flatnonzero(left.signs())
    return cells._replace(codes=found, amount=left.at(found))


def limits_by_unit(
    metrics: Sequence[Metric], whole: State, rests: Iterable[State], level: float
) -> list[ConfidenceInterval]:
    """Return jackknife limits from the states of all rows and without each group of units.

    All metrics are read from one state before the next is made.
    """
    others: list[list[Numeric]] = [[] for _ in metrics]
    with undefined_expected(), own_arithmetic():
        values = [metric._judged(*metric._chosen(whole))[0] for metric in metrics]
        known = [
            place
            for place, (metric, value) in enumerate(zip(metrics, values, strict=True))
            if _refusal(metric, value) is None
        ]
        for rest in rests if known else ():
            for place in known:
                others[place].append(metrics[place]._judged(*metrics[place]._chosen(rest))[0])
    return [
        jackknife_limits(metric, whole, value, apart, level)
        for metric, value, apart in zip(metrics, values, others, strict=True)
    ]


def _refusal(metric: Metric, value: object) -> Refusal | None:
    """Return why a value has no jackknife limits, or ``None`` if it has."""
    if isinstance(metric.family, Biased):
        return metric.family
    return None if isinstance(value, int | float | np.ndarray) else NO_NUMBER


def jackknife_limits(
    metric: Metric, whole: State, value: Numeric, others: Sequence[Numeric], level: float
) -> ConfidenceInterval:
    """Return jackknife limits of a value from its values without each group of units."""
    refusal = _refusal(metric, value)
    if refusal is not None:
        return unsure(level, refusal)
    groups, error = len(others), np.full(np.shape(value), math.nan)
    if groups > 1 and not any(np.shape(each) != np.shape(value) for each in others):
        every = np.array([np.asarray(each, np.float64) for each in others])
        error = np.sqrt((groups - 1) * np.var(every, axis=0))
    method = f"jackknife of {groups} group{'s' * (groups != 1)} of units, Student's t"
    return _limits(metric, whole, value, error, max(groups - 1, 1), level, method)


def limits_of_units(
    metric: Metric, groups: Groups, whole: State, level: float
) -> ConfidenceInterval:
    """Return limits from what each unit adds, on the logit for values in [0, 1]."""
    if isinstance(metric.family, Biased):
        return unsure(level, metric.family)
    with undefined_expected(), own_arithmetic():
        value = metric._judged(*metric._chosen(whole))[0]
        if not isinstance(value, int | float | LabelledArray):
            return unsure(level, NO_NUMBER)
        found = influence_of_units(metric, groups, whole)
    warn_few(metric, found)
    return _limits(metric, whole, value, found.error, found.df, level, f"{found.of}, Student's t")


def warn_few(metric: Metric, found: UnitInfluence) -> None:
    """Warn of limits that hold too seldom because there are few units."""
    if 1 < len(found.keys) < FEW:
        warnings.warn(
            f"{type(metric).__name__} has limits of {found.of}: of fewer than {FEW}, they are "
            "often too narrow; see docs/confidence.md",
            stacklevel=3,
        )


NO_NUMBER = Refusal("its value is not one number, nor an array of some")


def _limits(
    metric: Metric,
    whole: State,
    value: Numeric,
    error: Numeric,
    df: float,
    level: float,
    method: str,
) -> ConfidenceInterval:
    """Return the limits of a value, widened by its guaranteed ones if it is not exact."""
    arrays = isinstance(value, LabelledArray)
    if not arrays and not isinstance(value, int | float):
        return unsure(level, NO_NUMBER)
    ends, quantile = metric.value_range or (-math.inf, math.inf), t_quantile((1 + level) / 2, df)
    low, high = limits(np.asarray(value), error, quantile, *ends)
    statistics = metric._chosen(whole)
    if not metric.is_exact(*statistics):
        least, most = (np.asarray(s, np.float64) for s in metric.interval(*statistics))
        low = _widened(low, limits(least, error, quantile, *ends)[0], least)
        high = _widened(high, limits(most, error, quantile, *ends)[1], most)
    if arrays:
        low, high = LabelledArray(low, value.axes), LabelledArray(high, value.axes)
    else:
        low, high = float(low), float(high)
        asked = ConfidenceRequest(level, False, metric._n_rows(whole))
        rows = asked, statistics
        if (wider := of_rare(metric, *rows) or of_agreement(metric, *rows)) is not None:
            low, high = float(np.fmin(low, wider.low)), float(np.fmax(high, wider.high))
            method += f", and {wider.method}"
    return ConfidenceInterval(low, high, level, method)


def _widened(limit: Numeric, of_end: Numeric, end: Floats) -> Numeric:
    """Return the limit computed for an end of the range of a value; the end itself if it is NaN."""
    wider = np.where(np.isnan(of_end), end, of_end)
    return np.where(np.isnan(limit), limit, wider)


def warn_unsure(name: str, interval: ConfidenceInterval, depth: int = 3) -> None:
    """Warn of limits by unit that are missing or nan."""
    why = f": {interval.method}"
    if not isinstance(interval.method, Refusal):
        if not np.isnan(np.asarray(interval.low, np.float64)).any():
            return
        why = f" has limits that are nan: its units do not tell how it varies ({interval.method})"
    warn_undefined(f"{name}{why}", depth + 1)


def check_one_time(unit: str, *, anytime: bool) -> None:
    """Raise `ValueError` if limits by unit are requested for all times simultaneously."""
    if anytime:
        raise ValueError(
            f"confidence(anytime=True): limits by the unit {unit!r} hold at one time only; "
            "unit=None has limits of rows at all times"
        )


# The limits by unit of a metric, for a level.
Limits = Callable[["Metric", float], ConfidenceInterval]


def _limits_or_refusal(metric: Metric, found: Limits, level: float) -> ConfidenceInterval:
    """Return the limits by unit of one metric; raise `NoConfidenceError` if there are none."""
    interval = found(metric, check_level(level))
    if isinstance(interval.method, Refusal):
        raise without(metric, interval.method)
    warn_unsure(type(metric).__name__, interval, depth=4)
    return interval


class UnitRows(Accumulator):
    """Rows that have limits by unit until other rows are added."""

    __slots__ = ("_known", "_limits", "unit")

    def __init__(self, plan: Plan, state: State, unit: str, found: Limits) -> None:
        super().__init__(plan, state)
        self.unit, self._limits, self._known = unit, found, self.flush()

    def by_unit(
        self, metric: Metric, unit: str, level: float, *, anytime: bool
    ) -> ConfidenceInterval:
        """Return the limits of one metric."""
        if unit != self.unit or self.flush() is not self._known:
            without_units(metric, unit)
        check_one_time(unit, anytime=anytime)
        return _limits_or_refusal(metric, self._limits, level)


class WholeView(ReadOnly):
    """The accumulator that a metric of a set by unit reads: all rows, and their limits by unit."""

    __slots__ = ("_set",)

    def __init__(self, of: GroupedSet) -> None:
        self._set, self.unit = of, of.unit
        self.plan, self.flush, self.part = of._suite._plan, self._read, self._part

    def _read(self) -> State:
        return self._set._whole(self._set._accumulator.flush())

    def _part(self, plan: Plan) -> State:
        return self.plan.part(self._read(), plan)

    def by_unit(
        self, metric: Metric, unit: str, level: float, *, anytime: bool
    ) -> ConfidenceInterval:
        """Return the limits of one metric of the set."""
        self._set._check_unit(unit, anytime=anytime)
        return _limits_or_refusal(metric, self._set._limits_by_unit, level)


class GroupedSet(MetricSet):
    """A set whose state is kept by key; its metrics read the rows of all keys."""

    _called = "MetricSet"  # the name in error messages
    _suite: MetricSet  # without keys
    unit: str | None  # that limits are by

    def __init__(self, suite: MetricSet, plan: Plan, titles: Mapping[str, str]) -> None:
        """Keep rows of a set in a state of `plan`, which reads keys of the columns `titles`."""
        super().__init__(dict(suite.items()), columns=suite.columns)
        self._suite, self._plan, self._accumulator = suite, plan, Accumulator(plan)
        self._titles = {**suite._titles, **titles}
        self._needed = tuple(dict.fromkeys((*suite._needed, *titles.values())))
        self._viewed = None
        self._merged: tuple[State | None, State] = (None, suite._plan.start)

    @abstractmethod
    def _limits_by_unit(self, metric: Metric, level: float) -> ConfidenceInterval:
        """Return the limits by unit of one metric."""

    @abstractmethod
    def _finest(self, state: State) -> Groups:
        """Return a state by key."""

    def _whole(self, state: State) -> State:
        known, merged = self._merged
        if known is not state:
            merged = whole_of(self._finest(state))
            self._merged = (state, merged)
        return merged

    def _open_view(self) -> ReadOnly:
        return WholeView(self)

    @property
    def _kept_unit(self) -> str | None:
        return self.unit

    def _check_unit(self, unit: str, *, anytime: bool) -> None:
        """Raise `ValueError` if there are no confidence limits by this unit."""
        if unit != self.unit:
            kept = "no units are kept" if self.unit is None else f"units are kept by {self.unit!r}"
            raise ValueError(
                f"confidence(unit={unit!r}): {kept}; {self._called}(..., unit={unit!r}) keeps those"
            )
        check_one_time(unit, anytime=anytime)

    def _chosen_feeds(self, state: State) -> Sequence[RowInfo]:
        return kept_infos(self._plan, state)


class UnitSet(GroupedSet):
    """The class of ``MetricSet(..., unit="user")``: a set of metrics with limits by unit."""

    unit: str

    def __init__(
        self,
        metrics: Mapping[str, Metric],
        *,
        columns: Mapping[str, str | Sequence[str]] | None = None,
        unit: str,
        counts: str | None = None,
    ) -> None:
        if not isinstance(unit, str) or not unit:
            raise ValueError(f"MetricSet(unit={unit!r}): expected the name of a column")
        suite, self.unit = MetricSet(metrics, columns=columns, counts=counts), unit
        plan, (self._places,) = unit_plan(suite._plan, [suite._plan.schemas], BY_UNIT)
        super().__init__(suite, plan, {BY_UNIT: unit})

    def feed(self, columns: Mapping[str, object], renamed: Mapping[str, str] | None = None) -> Self:
        """Add rows given as columns by name, including the column of units."""
        return super().feed(*with_units(columns, renamed, self.unit))

    def groups(self) -> Groups:
        """Return the states of all units, or groups of units."""
        return self._finest(self._accumulator.flush())

    def _finest(self, state: State) -> Groups:
        return groups_at(state, self._suite._plan, self._places)

    def _limits_by_unit(self, metric: Metric, level: float) -> ConfidenceInterval:
        state = self._accumulator.flush()
        return limits_of_units(metric, self.groups(), self._whole(state), level)

    def _confident_by(
        self, unit: str, level: float, *, anytime: bool
    ) -> Values[ConfidenceInterval]:
        self._check_unit(unit, anytime=anytime)
        level = check_level(level)
        values: Values[ConfidenceInterval] = Values()
        for name, metric in self._metrics.items():
            values[name] = interval = self._limits_by_unit(metric, level)
            warn_unsure(repr(name), interval)
        return values

    @property
    def _kinds(self) -> dict[str, Kind]:
        return {**super()._kinds, BY_UNIT: "id"}

    @property
    def _identity(self) -> object:
        return super()._identity, self.unit

    def _configuration(self) -> dict[str, object]:
        return {**super()._configuration(), "unit": self.unit}

    @classmethod
    def _configured(cls, meta: Mapping[str, object]) -> Self:
        suite, unit = MetricSet._configured(meta), meta.get("unit")
        if not isinstance(unit, str):
            raise StateFormatError("the state does not say what its units are")
        return cls(dict(suite.items()), columns=suite.columns, unit=unit)

    def _apart(self, other: Self) -> str:
        if self.unit != other.unit:
            return f"unit is {other.unit!r} there and {self.unit!r} here"
        return super()._apart(other)

    def __repr__(self) -> str:
        inside = repr(self._suite).partition(" <")[0].removesuffix(")")
        return f"{inside}, unit={self.unit!r}) <{self.n_rows:,} rows>"


def with_units(
    columns: Mapping[str, object], renamed: Mapping[str, str] | None, unit: str
) -> tuple[dict[str, object], dict[str, str]]:
    """Return a batch with a column of the keys of its units, as `unit_plan` reads it."""
    title = f"by {unit}"
    given = {**columns, title: unit_column(columns.get(unit), unit)}
    return given, {**(renamed or {}), BY_UNIT: title}


def groups_at(state: State, plan: Plan, places: Sequence[int]) -> Groups:
    """Return the groups of a state of `unit_plan`, of the side with these places."""
    every: Any = [state.statistics[place] for place in places]
    return Groups.holding(plan, every)


def whole_of(groups: Groups) -> State:
    """Return the state of all rows."""
    return groups.state(np.arange(len(groups))) if len(groups) else groups.plan.start


def kept_infos(plan: Plan, state: State) -> Sequence[RowInfo]:
    """Return the information about rows that are kept, not about those left out."""
    pairs = zip(plan.schemas, state.infos, strict=True)
    return [info for schema, info in pairs if isinstance(schema, KeyedSchema)]
