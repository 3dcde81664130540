"""Prediction-powered estimates: values over all rows, of which few have a label.

All rows have a cheap judgment in place of a label, such as that of a language model. With θ(P) the
value over rows P by their labels, and θ̃(P) by their judgments, the estimate is

    θ(labelled rows) + λ (θ̃(all rows) - θ̃(labelled rows)).

It is right for any λ and however poor the judgments are, because the labelled rows are drawn at
random. The variance of θ comes from what each row adds to it, ψ by its label and φ by its judgment,
and λ = cov(ψ, φ) / var(φ) makes it least (PPI++: Angelopoulos, Duchi and Zrnic 2023,
arXiv:2311.01453; for values other than means: Zou, Witten and Williamson 2026, arXiv:2602.10332).
All that needs is the joint statistic of labels and judgments on the labelled rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from fractions import Fraction
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum, nearest
from streammetrics.core.columns.batch import WEIGHT, near
from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.schema import Bring, SharedReading, reject
from streammetrics.core.confidence import ConfidenceInterval, ConfidenceRequest, check_level
from streammetrics.core.errors import (
    InvalidBatchError,
    NoConfidenceError,
    StateFormatError,
    undefined_expected,
)
from streammetrics.core.feeding.plan import Plan
from streammetrics.core.floating import own_arithmetic
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.values import Interval, Values
from streammetrics.inference.areas import curve_influence
from streammetrics.inference.paired import (
    TABLES,
    Joint,
    MeanFamily,
    Side,
    is_mean,
    refused,
    slopes,
    slopes_at,
)
from streammetrics.inference.scores import ladders
from streammetrics.inference.units import is_whole_area
from streammetrics.metrics.families import Family
from streammetrics.statistics.histograms import ScoredStatistic
from streammetrics.statistics.joint import (
    JointMoments,
    JointTable,
    alias,
    over_models,
    terms_of,
)
from streammetrics.statistics.tables import ThresholdTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Kind, Rows, Schema
    from streammetrics.core.confidence import Unit
    from streammetrics.core.feeding.states import RowInfo, State
    from streammetrics.core.metric import Metric
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Columns, Floats

LABELS, JUDGMENTS = "labels", "judgments"
BOTH = (LABELS, JUDGMENTS)
TRUTHS = ("y_true", "values")  # the inputs that a label, or a judgment, is given for
PROPENSITY = "propensity"
_LEAST = 2.0**-500  # propensities whose inverse has a square below 2**1000

# The sides of a state: the models whose columns a row must have, and the one that is shown.
Shown: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
_EVERY: Shown = (JUDGMENTS,), (JUDGMENTS,)  # all rows by their judgments
_LABELLED: Shown = BOTH, (LABELS,)
_JUDGED: Shown = BOTH, (JUDGMENTS,)  # the labelled rows by their judgments
_SIDES = _EVERY, _LABELLED, _JUDGED


class Variances(NamedTuple):
    """The variance of a value by labels, in parts, and its covariance with that by judgments.

    `rows` is the part of which rows there are. The others are of which of them have a label: the
    variance by labels, the covariance, and the variance by judgments. `told` is how many rows of
    equal influence would tell these as well as the labelled rows do: for the accuracy of a model
    that is hardly ever wrong, those few in which it is count nearly alone.
    """

    rows: float
    labels: float
    both: float
    judgments: float
    told: float


class MetricKind(ABC):
    """What is kept of the labelled rows, for a kind of metrics.

    `untold` is how many such rows are added whose judgment says nothing of the label: labels from
    which few judgments differ are too few to tell how often any does. How many, is from simulation;
    see ``docs/few-labels.md``.
    """

    untold: ClassVar[float] = 1

    @abstractmethod
    def joint(self, metric: Metric, *, drawn: bool) -> Joint:
        """Return the joint statistic of labels and judgments; `drawn` with propensities."""

    @abstractmethod
    def spread(self, sides: tuple[Side, Side], joint: Any, share: float | None) -> Variances:
        """Return the variances of the labelled rows, a `share` of all rows.

        With propensities the share is None: each row was drawn with its own.
        """


def _of_cells(
    adds: tuple[Floats, Floats], amount: Floats, squares: Floats, share: float | None, told: float
) -> Variances:
    """Return the variances from what a row of each cell adds by its label and by its judgment.

    A row that was drawn with the propensity π weighs 1/π, and adds 1/π² - 1/π to the variance of
    drawing, and 1/π to that of the rows.
    """
    by_label, by_judgment = adds
    rows = amount if share is None else share * squares
    drawn = np.maximum(squares - rows, 0.0)
    products = by_label**2, by_label * by_judgment, by_judgment**2
    labels, both, judgments = (float(drawn @ each) for each in products)
    return Variances(float(rows @ products[0]), labels, both, judgments, told)


class Tables(MetricKind):
    """Metrics of a table of labels: the joint counts (prediction, label, judgment)."""

    def joint(self, metric: Metric, *, drawn: bool) -> Joint:
        """Return the joint table."""
        (table,) = metric.statistics()
        cut = table.threshold if isinstance(table, ThresholdTable) else None
        bring = Bring(("prediction first", table._key), partial(_prediction_first, cut))
        return Joint(JointTable(), BOTH, table.schema, bring)

    def spread(self, sides: tuple[Side, Side], joint: JointTable, share: float | None) -> Variances:
        """Return the variances from the derivatives of both values with respect to the cells."""
        labels, cells, amount, squares = joint.triples
        by_label, by_judgment = (
            slopes_at(labels, cells[:, column], cells[:, 0], *slopes(side.metric))
            for column, side in enumerate(sides, 1)
        )
        amounts, spread = _floats(amount), _floats(squares)
        # The influence of a row, if the weights in its cell are alike.
        each = by_label * np.divide(spread, amounts, np.zeros(len(amounts)), where=amounts > 0)
        variances = spread * by_label**2
        fourths = float(variances @ each**2)
        told = float(variances.sum()) ** 2 / fourths if fourths > 0 else 0.0
        return _of_cells((by_label, by_judgment), amounts, spread, share, told)


def _floats(sums: ExactSum) -> Floats:
    return np.asarray(sums.to_float())


def _prediction_first(cut: float | None, columns: list[Columns]) -> Columns:
    (label, called), (judgment, _) = columns
    if cut is None:
        return called, label, judgment
    sides = (called >= cut, label, judgment)
    return tuple(Column(np.asarray(side).astype(np.int8), None, True) for side in sides)


class DrawnMoments(JointMoments):
    """The joint moments of terms, and of terms times the propensity of their row.

    The weight is w = 1/π, so that Σ w² t (π u) is Σ w t u. The last term is π itself.
    """

    def update(self, *terms: Floats, weight: Floats | None) -> None:
        """Add the sums of products of the rows."""
        assert weight is not None  # a row without a propensity is refused
        shares = 1 / weight
        super().update(*terms, *(term * shares for term in terms), shares, weight=weight)


class Means(MetricKind):
    """Mean losses and their roots: the moments of the losses by labels and by judgments."""

    def joint(self, metric: Metric, *, drawn: bool) -> Joint:
        """Return the joint moments."""
        (statistic,) = metric.statistics()
        moments = DrawnMoments(models=5) if drawn else JointMoments()
        return Joint(moments, BOTH, statistic.schema, terms_of(statistic))

    def spread(self, sides: tuple[Side, Side], joint: Any, share: float | None) -> Variances:
        """Return the variances from the moments around the means."""
        weight = joint.weight.fraction()
        means = [joint.totals[place].fraction() / weight for place in range(2)]
        family = MeanFamily(sides[0].metric)
        slope = [family.slope(side, mean) for side, mean in zip(sides, means, strict=True)]

        def moment(i: int, j: int, *, by_weight: bool) -> Fraction:
            """Return Σ w² t_i t_j around the means times their slopes; `by_weight` Σ w t_i t_j."""

            def product(one: int, other: int) -> Fraction:
                place = (other + 2 if other else 5) if by_weight else other
                found: Fraction = joint.product(one, place).fraction()
                return found

            one, other = means[i - 1], means[j - 1]
            around = product(i, j) - one * product(0, j) - other * product(i, 0)
            around += one * other * product(0, 0)
            return Fraction(around * slope[i - 1] * slope[j - 1] / weight**2)

        pairs = (1, 1), (1, 2), (2, 2)
        squares = [moment(*pair, by_weight=False) for pair in pairs]
        if share is None:
            rows = [moment(*pair, by_weight=True) for pair in pairs]
        else:
            rows = [Fraction(share) * square for square in squares]
        labels, both, judgments = (
            nearest(square - row) for square, row in zip(squares, rows, strict=True)
        )
        told = sides[0].metric.n_rows  # fourth powers are not kept
        return Variances(nearest(rows[0]), labels, both, judgments, told)


class LabelMeans(Means):
    """Mean losses of scores, where a judgment agrees with the label or not."""

    untold = 15


class Areas(MetricKind):
    """Areas under the ROC curve: the histograms of scores by label, by judgment, and by both.

    Rows that are positive by both, with those of either, give the joint counts of every cell.
    """

    untold = 8

    def joint(self, metric: Any, *, drawn: bool) -> Joint:
        """Return the histogram of scores in which a row is positive by its label and judgment."""
        (histogram,) = metric.statistics()
        (field,) = histogram.schema.fields
        single = replace(field, scores=replace(field.scores, wide=False))
        schema = replace(histogram.schema, fields=(single,))
        return Joint(histogram, BOTH, schema, Bring("positive by both", _positive_by_both))

    def spread(self, sides: tuple[Side, Side], joint: Any, share: float | None) -> Variances:
        """Return the variances from the influences of rows of each cell on both areas."""
        metric = sides[0].metric
        asked = ConfidenceRequest(0.5, anytime=False, n_rows=metric.n_rows)  # of any level
        (steps, label), (judged, judgment) = (
            ladders(metric, asked, *side.metric._read())[0] for side in sides
        )
        _, both = ladders(metric, asked, joint)[0]
        one, other = (curve_influence(metric, stairs) for stairs in (steps, judged))
        positive, negative = one.of_positive / label.positives, one.of_negative / label.negatives
        right, wrong = (
            other.of_positive / judgment.positives,
            other.of_negative / judgment.negatives,
        )
        adds = (
            np.concatenate([positive, positive, negative, negative]),
            np.concatenate([right, wrong, right, wrong]),
        )
        amount = _by_both(label.p, label.n, judgment.p, both.p)
        squares = _by_both(label.p_square, label.n_square, judgment.p_square, both.p_square)
        # Influences on areas differ less, and `untold` was chosen for the number of rows.
        return _of_cells(adds, amount, squares, share, metric.n_rows)


def _positive_by_both(columns: list[Columns]) -> Columns:
    (label, scores), (judgment, _) = columns
    return label & judgment, scores


def _by_both(positive: Floats, negative: Floats, judged: Floats, both: Floats) -> Floats:
    """Return the amounts in cells by label and judgment: both, label alone, judgment alone, none.

    Given are the amounts that are positive by label, negative by label, positive by judgment, and
    positive by both.
    """
    alone = judged - both
    return np.concatenate([both, positive - both, alone, negative - alone])


def kind_of(name: str, metric: Metric) -> MetricKind:
    """Return the kind of a metric.

    Raises:
        ValueError: There is no estimate for the metric; the message names it and the reason.
    """
    why = refused(metric)
    if not why:
        if metric.family in TABLES:
            return Tables()
        if is_mean(metric):
            (statistic,) = metric.statistics()
            return LabelMeans() if isinstance(statistic, ScoredStatistic) else Means()
        if metric.family == Family.ROC_AREA and is_whole_area(metric):
            return Areas()
        why = "how its value by labels varies with that by judgments is not kept"
    raise ValueError(f"{name!r}, {metric._titled()}, cannot be estimated: {why}")


class DrawnReading(SharedReading):
    """The reading of labelled rows, which weigh the inverse of their propensity."""

    __slots__ = ()

    def read(self, batch: Batch) -> Rows:
        """Return the validated rows."""
        title = batch.title(PROPENSITY)
        if batch.has(WEIGHT):
            raise InvalidBatchError(
                f"{batch.title(WEIGHT)} is given, but rows weigh the inverse of {title}: "
                "leave one of them out",
                batch.title(WEIGHT),
            )
        view = batch.aliased({WEIGHT: PROPENSITY})
        shares = view.weight()
        assert shares is not None  # the plan requires the column
        if (missing := np.isnan(shares)).any():
            reject(title, "is missing (NaN or null)", missing)
        if (wrong := ~((shares >= _LEAST) & (shares <= 1))).any():
            advice = "it is the probability with which the row's label was drawn"
            reject(title, "is not in (0, 1]", wrong, shares, advice=advice)
        rows = super().read(view)
        batch.n_rows = view.n_rows
        return rows if rows.weight is None else rows._replace(weight=1 / rows.weight)


class DrawnPlan(Plan):
    """A plan in which labelled rows weigh the inverse of their propensity, which is required."""

    __slots__ = ()

    def __init__(self, statistics: Iterable[Statistic], schemas: Iterable[Schema]) -> None:
        super().__init__(statistics, schemas)
        self.required = (*self.required, PROPENSITY)

    def _reading(self, schemas: Sequence[Schema]) -> SharedReading:
        labelled = len(schemas[0].models) > 1
        return DrawnReading(schemas) if labelled else super()._reading(schemas)


class Corrected(NamedTuple):
    """An estimate: the corrected value, λ, and the standard error in units of that of labels alone.

    `doubt` is how far below and above the exact value may be, where that of all rows by their
    judgments is not exact.
    """

    value: float
    weight: float = 0.0
    ratio: float = 1.0
    doubt: tuple[float, float] = (0.0, 0.0)

    def limits(
        self, metric: Metric, alone: ConfidenceInterval, value: float
    ) -> tuple[float, float]:
        """Return the limits, from those of the `value` by labels alone."""
        if not self.ratio < 1:
            return alone.low, alone.high
        ends = metric.value_range or (-math.inf, math.inf)
        sides = [_moved(limit, value, self.value, self.ratio, *ends) for limit in alone]
        most, wide = _WIDEST * (alone.high - alone.low), sides[1] - sides[0]
        scale = most / wide if wide > most else 1.0
        low, high = (self.value + scale * (side - self.value) for side in sides)
        return max(low - self.doubt[0], ends[0]), min(high + self.doubt[1], ends[1])


def _moved(
    limit: float, value: float, to: float, ratio: float, lowest: float, highest: float
) -> float:
    """Return a limit of `value` for the value `to`, with `ratio` times the standard error.

    Its distance is that on the scale of `distributions.limits`: the logit of a bounded range, the
    logarithm above a lower bound.
    """
    if math.isinf(lowest) or not lowest < to < highest or not lowest < value < highest:
        return min(max(to + ratio * (limit - value), lowest), highest)
    if limit >= highest:
        return highest
    up: float = (to - lowest) * ((limit - lowest) / (value - lowest)) ** ratio
    if math.isinf(highest):
        return lowest + up
    down: float = (highest - to) * ((highest - limit) / (highest - value)) ** ratio
    return lowest + (highest - lowest) * up / (up + down)


_WIDEST = 1.02  # widest limits, in widths of those of labels alone


class Estimated(MetricSet):
    """The metrics of all rows, of which few have a label and all have a cheap judgment.

    A judgment stands for the label: that of a language model, of a rule, or of a second model.
    Where the label is missing (null or NaN), the judgment is all there is. Estimates correct the
    value by judgments by what the labelled rows say of it (prediction-powered inference, PPI++).
    Their limits are as wide as those of labels alone where judgments are poor, and much narrower
    where they are good. See ``docs/few-labels.md`` for formulas, and for how often the limits hold.

    The rows with a label must be drawn at random from all rows. If some rows are more likely to be
    drawn than others, `propensity` names the column of the probabilities.

    Metrics may be those of a table of labels (accuracy, F1, ...), mean losses, means, and ROC AUC
    of (n,) scores. The state keeps the metrics by judgments of all rows, and those by labels, by
    judgments and by both of the labelled ones.

    Args:
        suite: The metrics by name, or a set without rows.
        proxy: Column of the judgments, which every row has. It is read as the labels are.
        propensity: Column of the probability with which each row's label was drawn, greater than 0
            and at most 1. ``None`` if it is the same for all rows.

    Raises:
        ValueError: There is no estimate for a metric; the message says which.
        InvalidBatchError: From `update`, if a column is missing or invalid, such as a row without a
            judgment, or a propensity outside (0, 1]. From reading, if no row has a label.

    Example:
        >>> import streammetrics as sm
        >>> estimated = sm.Estimated({"accuracy": sm.Accuracy()}, proxy="judge")
        >>> rows = {"y_pred": [1, 1, 0, 1] * 500, "judge": [1, 0, 0, 1] * 400 + [1, 1, 0, 0] * 100}
        >>> labels = [1, 0, 0, 1] * 45 + [1, 1, 1, 0] * 5 + [None] * 1800
        >>> estimated.update(**rows, y_true=labels).compute()
        {'accuracy': 0.725}
        >>> [round(limit, 3) for limit in estimated.confidence()["accuracy"]]
        [0.683, 0.763]
        >>> [round(limit, 3) for limit in estimated["labels"].confidence()["accuracy"]]
        [0.659, 0.782]
    """

    def __init__(
        self,
        suite: MetricSet | Mapping[str, Metric],
        *,
        proxy: str,
        propensity: str | None = None,
    ) -> None:
        if isinstance(suite, MetricSet) and (type(suite) is not MetricSet or suite._kept_unit):
            raise TypeError("suite is not a plain set of metrics: pass MetricSet({...})")
        for name, column in (("proxy", proxy), ("propensity", propensity)):
            if column is not None and (not isinstance(column, str) or not column):
                raise ValueError(f"Estimated({name}={column!r}): expected the name of a column")
        renamed = suite.columns if isinstance(suite, MetricSet) else {}
        metrics = dict(suite.items()) if isinstance(suite, MetricSet) else suite
        self._suite = MetricSet(metrics, columns=renamed)
        self._metrics, self.proxy, self.propensity = self._suite._metrics, proxy, propensity
        self._kind = {name: kind_of(name, metric) for name, metric in self._metrics.items()}
        self._joints = {
            name: kind.joint(self._metrics[name], drawn=propensity is not None)
            for name, kind in self._kind.items()
        }
        self._own = tuple(name for name in self._suite.inputs if name in TRUTHS)
        if len(self._own) > 1:
            raise ValueError(f"the metrics read labels of {' and '.join(self._own)}: make two sets")
        self.columns = {name: text for name, text in renamed.items() if name not in self._own}
        if propensity is not None:
            self.columns[PROPENSITY] = propensity
        for name in self._own:
            self.columns[alias(name, LABELS, self._own)] = renamed.get(name, name)
            self.columns[alias(name, JUDGMENTS, self._own)] = proxy
        self._open(self._plan_of())

    def _plan_of(self) -> Plan:
        """Return a plan of the statistics of each side, and the joint ones."""
        plain, joints = self._suite._plan, self._joints.values()
        self._sides = {
            side: Plan(
                plain.start.statistics,
                [self._read_by(schema, *side) for schema in plain.read_schemas],
            )
            for side in _SIDES
        }
        statistics = [s for side in self._sides.values() for s in side.start.statistics]
        schemas = [schema for side in self._sides.values() for schema in side.read_schemas]
        return (Plan if self.propensity is None else DrawnPlan)(
            [*statistics, *(joint.statistic for joint in joints)],
            [*schemas, *map(self._of_joint, joints)],
        )

    def _of_joint(self, joint: Joint) -> Schema:
        """Return the schema of the rows of a joint statistic."""
        return self._read_by(joint.of, BOTH, BOTH, joint.bring)

    def _read_by(
        self,
        schema: Schema,
        models: tuple[str, ...],
        shown: tuple[str, ...],
        bring: Bring | None = None,
    ) -> Schema:
        """Return the schema of rows that have all of `models`, without rows that lack a label."""
        if len(models) > 1:
            schema = replace(schema, nan_policy="omit")
        return over_models(schema, models, shown, bring, self._own)

    def _side(self, side: Shown, state: State) -> MetricSet:
        """Return the metrics of one side, with its part of a state."""
        return self._suite._at(self._plan.part(state, self._sides[side]))

    def compute(self) -> Values:
        """Return the estimate of every metric by name, as a dictionary.

        Raises:
            InvalidBatchError: No row has a label.
        """
        return self._computed(self._accumulator.flush())

    def _computed(self, state: State, depth: int = 3) -> Values:
        _, labelled, _ = sides = self._checked(state)
        alone = labelled._computed(labelled._accumulator.flush(), depth + 1)  # warns of NaN
        return Values((name, self._estimate(name, state, *sides).value) for name in alone)

    def confidence(
        self,
        level: float = 0.95,
        *,
        method: str | Mapping[str, str | None] | None = None,
        anytime: bool = False,
        unit: Unit = ...,
    ) -> Values:
        """Return confidence limits of every metric by name, as a dictionary.

        They are limits for the population that the rows are sampled from, as in
        `Metric.confidence`: those by labels alone, moved to the estimate, with its standard error,
        and at most 2 % wider. Their `method` states λ and how the labels were drawn.

        Args:
            level: As in `Metric.confidence`.
            method: Not used: there is one method.
            anytime: Not used: the limits hold at one time.
            unit: Not used: the sample is the rows.

        Raises:
            InvalidBatchError: No row has a label.
            ValueError: Another method, anytime limits or limits by unit are requested.
        """
        if method is not None or anytime or unit not in {None, ...}:
            raise ValueError(
                "confidence: estimates have one method, for rows and a single look: leave out "
                "method, anytime and unit"
            )
        state, values = self._accumulator.flush(), Values()
        every, labelled, judged = self._checked(state)
        alone = labelled.confidence(check_level(level))
        how = (
            "at random" if self.propensity is None else f"with the probability {self.propensity!r}"
        )
        for name, limits in alone.items():
            metric = labelled[name]
            found = self._estimate(name, state, every, labelled, judged)
            drawn = f"{metric.n_rows:,} of {every[name].n_rows:,} labels drawn {how}"
            told = f"prediction-powered, λ = {found.weight:.2f}, {drawn}; {limits.method}"
            value = _value(metric)
            values[name] = ConfidenceInterval(*found.limits(metric, limits, value), level, told)
        return values

    def _checked(self, state: State) -> tuple[MetricSet, MetricSet, MetricSet]:
        """Return the sides of a state; raise if there are rows, and none with a label."""
        every, labelled, judged = (self._side(side, state) for side in _SIDES)
        if every.n_rows and not labelled.n_rows:
            title = self._titles[alias(self._own[0], LABELS, self._own)]
            raise InvalidBatchError(
                f"{title} is missing (NaN or null) in {every.n_rows:,} rows, first in row 0: "
                "an estimate needs rows with a label",
                title,
                0,
            )
        return every, labelled, judged

    def _estimate(
        self, name: str, state: State, every: MetricSet, labelled: MetricSet, judged: MetricSet
    ) -> Corrected:
        """Return the estimate of a metric, which is the value by labels where nothing is better."""
        metric, n, total = every[name], labelled[name].n_rows, every[name].n_rows
        one, other = (
            Side(side, of[name], _value(of[name]), place)
            for place, (side, of) in enumerate(((LABELS, labelled), (JUDGMENTS, judged)))
        )
        alone, whole = Corrected(one.value), _value(metric)
        if n == total or n < 2 or not math.isfinite(one.value + other.value + whole):
            return alone
        share = n / total
        try:
            rows, labels, both, judgments, told = self._spread(name, state, (one, other), share)
        except NoConfidenceError:  # weights or losses too far apart, or too many cells
            return alone
        variance = rows + labels
        if not variance > 0:  # as where all labels are predicted: few say little of the rest
            return alone
        both *= told / (told + self._kind[name].untold)
        # The judgments are those of all N rows, and not of the others: this is λ N / (N - n).
        slope = min(max(both / judgments, 0.0), 1 / (1 - share)) if judgments > 0 else 0.0
        ratio = (variance - slope * (2 * both - slope * judgments)) / variance
        if not 0 <= ratio < 1:
            return alone
        low, high = metric.value_range or (-math.inf, math.inf)
        value = min(max(one.value + slope * (whole - other.value), low), high)
        ends = metric.bounds()
        doubt = slope * (whole - ends.low), slope * (ends.high - whole)
        return Corrected(value, slope * (1 - share), math.sqrt(ratio), doubt)

    def _spread(self, name: str, state: State, sides: tuple[Side, Side], share: float) -> Variances:
        """Return the variances of a metric, where a `share` of the rows has a label."""
        joint = self._joints[name]
        statistic = state.statistics[self._plan.places[joint.statistic._key, self._of_joint(joint)]]
        with own_arithmetic():
            return self._kind[name].spread(
                sides, statistic, share if self.propensity is None else None
            )

    def bounds(self) -> Values:
        """Return the range of every metric by name: an estimate guarantees nothing else."""
        ends = {name: m.value_range or (-math.inf, math.inf) for name, m in self._metrics.items()}
        return Values((name, Interval(*each)) for name, each in ends.items())

    @property
    def exact(self) -> bool:
        """Whether the values of all metrics are exact; estimates are not."""
        return False

    def __getitem__(self, side: str) -> MetricSet:  # type: ignore[override]  # by side, not by metric
        """Return the current metrics of one side as an independent set.

        They are those of the labelled rows by ``"labels"``, or of all rows by ``"judgments"``.
        """
        if side not in BOTH:
            raise KeyError(f"no side {side!r}{near(str(side), BOTH)}")
        return self._side(_LABELLED if side == LABELS else _EVERY, self._accumulator.flush())

    def keys(self) -> KeysView[str]:
        """Return the names of the sides, ``"labels"`` and ``"judgments"``."""
        return dict.fromkeys(BOTH).keys()

    def values(self) -> Any:
        """Return the current metrics of both sides."""
        return dict(self.items()).values()

    def items(self) -> Any:
        """Return the sides with their current metrics."""
        return {side: self[side] for side in BOTH}.items()

    def __iter__(self) -> Iterator[str]:
        return iter(BOTH)

    def __len__(self) -> int:
        return len(BOTH)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the columns that `update` takes, without the weight."""
        return self._plan.required

    @property
    def _kinds(self) -> dict[str, Kind]:
        return {**super()._kinds, PROPENSITY: "number"}

    def _chosen_feeds(self, state: State) -> Sequence[RowInfo]:
        """Return the information about all rows: those without a label are not left out."""
        pairs = zip(self._plan.schemas, state.infos, strict=True)
        return [info for schema, info in pairs if len(schema.models) == 1]

    @property
    def _identity(self) -> object:
        metrics = tuple((name, metric._key) for name, metric in self._metrics.items())
        return metrics, sorted(self.columns.items())

    def _titled(self) -> str:
        return f"an Estimated of {', '.join(self._metrics)}"

    def _configuration(self) -> dict[str, object]:
        told = {"proxy": self.proxy, "propensity": self.propensity}
        return {**super()._configuration(), "columns": self._suite.columns, **told}

    @classmethod
    def _configured(cls, meta: Mapping[str, object]) -> Self:
        suite, told = MetricSet._configured(meta), (meta.get("proxy"), meta.get("propensity"))
        try:
            return cls(suite, proxy=told[0], propensity=told[1])  # type: ignore[arg-type]  # checked there
        except (ValueError, TypeError) as error:
            raise StateFormatError(f"these are not metrics to estimate: {error}") from error

    def __repr__(self) -> str:
        drawn = "" if self.propensity is None else f", propensity={self.propensity!r}"
        inside = repr(self._suite).partition(" <")[0].removeprefix("MetricSet(").removesuffix(")")
        return f"Estimated({inside}, proxy={self.proxy!r}{drawn}) <{self.n_rows:,} rows>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>"


def _value(metric: Metric) -> float:
    """Return the value of a metric without warnings."""
    with undefined_expected():
        return float(metric.compute())
