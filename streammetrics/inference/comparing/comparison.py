"""Several models on the same rows, and states of different rows."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from streammetrics.core.columns.batch import as_text, near
from streammetrics.core.confidence import check_level
from streammetrics.core.errors import (
    IncompatibleMetricsError,
    NoConfidenceError,
    StateFormatError,
    StreamMetricsError,
    UndefinedMetricWarning,
    an,
)
from streammetrics.core.feeding.plan import Plan
from streammetrics.core.feeding.states import State
from streammetrics.core.metric import Metric
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.registry import registered_name
from streammetrics.core.results.differences import Difference, Differences
from streammetrics.core.stateful import load
from streammetrics.inference.comparing.tests import (
    LEAST,
    Estimate,
    Side,
    clipped,
    family_of,
    verdict,
    widened,
)
from streammetrics.inference.distributions import holm, margin, normal_quantile, normal_tail
from streammetrics.statistics.joint import OF_MODELS, ModelSchema, alias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.core.confidence import ConfidenceInterval, Unit
    from streammetrics.core.statistic import Statistic


__all__ = [
    "Comparison",
    "compare",
]


ColumnNames: TypeAlias = str | Sequence[str]  # a column, or several that are one matrix


def told_columns(models: Any) -> dict[str, dict[str, str]]:
    """Return the models that a file names, in their order."""
    found = {}
    for model, columns in models:
        if not isinstance(columns, dict) or not all(isinstance(t, str) for t in columns.values()):
            raise ValueError(f"the columns of {model!r} are not told")
        found[model] = columns
    return found


def asked_columns(
    models: Mapping[str, ColumnNames | Mapping[str, ColumnNames]] | Sequence[str],
    own: Sequence[str],
) -> dict[str, dict[str, str]]:
    """Return for each model the columns of the inputs that are its own."""
    if isinstance(models, list | tuple) and all(isinstance(name, str) for name in models):
        models = {name: name for name in models}  # called as their columns are
    if not isinstance(models, Mapping):
        raise TypeError(
            f"models is {an(type(models).__name__)}: pass each model's column by its name, "
            "{'a': 'score_a', 'b': 'score_b'}"
        )
    if len(models) < 2:
        raise ValueError(f"models={dict(models)!r}: there are two at least to be compared")
    if not own:
        raise ValueError(f"none of the metrics reads an input of a model ({', '.join(OF_MODELS)})")
    asked: dict[str, dict[str, str]] = {}
    for model, given in models.items():
        if not isinstance(model, str) or not model:
            raise ValueError(f"{model!r} is no name of a model: expected text")
        if not isinstance(given, Mapping):
            if len(own) > 1:
                raise ValueError(
                    f"{model!r}: the metrics read {' and '.join(own)} of every model: "
                    f"{{{', '.join(f'{name!r}: ...' for name in own)}}}"
                )
            given = {own[0]: given}  # noqa: PLW2901 - as if it had been written so
        if given.keys() != set(own):
            raise ValueError(f"{model!r}: expected columns for {own}, not for {list(given)}")
        asked[model] = {name: as_text(given[name]) for name in own}
        for other, texts in asked.items():
            if other != model and texts == asked[model]:
                raise ValueError(f"models {other!r} and {model!r} are read from the same columns")
    return asked


MAX_ROWS = 8192  # of a sample, or of each class in it


class Comparison(MetricSet):
    """Several models on the same rows, and for every metric which of them is better.

    Every row has the predictions of every model, and what all models have in common of it cancels
    out of their difference: that is known from joint statistics, which are as small as those of
    the metrics and merge as they do. So a difference is told from chance by far fewer rows than if
    each model had rows of its own.

    Metrics of counts are compared by the joint counts of true and predicted labels, shares of the
    same rows by McNemar's exact test; mean losses by the paired t; ROC AUC by DeLong's paired
    test, average precision by its like; rankings by the paired t over queries, with p by flipping
    signs at random (B = 9,999, seeded by the values); all others by a jackknife.

    Args:
        suite: The metrics by name, or an empty set, whose ``columns`` name what models have in
            common: ``{"y_true": "label"}``.
        models: The column of each model's predictions by the model's name, or a list of columns
            that name their models. Where the metrics read several inputs of a model, a dictionary:
            ``{"y_score": "score_a", "y_pred": "a"}``.
        baseline: The model that all others are compared with; ``None``: all pairs.
        max_rows: How many distinct rows are kept, of each class where there are two, for metrics
            whose joint variance no sums hold: ROC AUC, average precision, R2 and their like.

    Raises:
        ValueError: There are not two models, two read the same columns, or a metric cannot be
            compared; the message says which.
        InvalidBatchError: From `update`, where a column is missing or not what it should be.

    Example:
        >>> import streammetrics as sm
        >>> suite = sm.MetricSet({"accuracy": sm.Accuracy(threshold=0.5), "loss": sm.LogLoss()})
        >>> duel = sm.Comparison(suite, {"a": "score_a", "b": "score_b"})
        >>> rows = {"y_true": [0, 1] * 50, "score_a": [0.1, 0.9] * 50, "score_b": [0.6, 0.7] * 50}
        >>> found = duel.update(rows).compute()
        >>> [(line.metric, line.verdict) for line in found]
        [('accuracy', 'a better'), ('loss', 'a better')]
        >>> found["accuracy"][0].difference
        0.5
    """

    def __init__(
        self,
        suite: MetricSet | Mapping[str, Metric],
        models: Mapping[str, ColumnNames | Mapping[str, ColumnNames]] | Sequence[str],
        *,
        baseline: str | None = None,
        max_rows: int = MAX_ROWS,
    ) -> None:
        if isinstance(suite, Comparison):
            raise TypeError("suite is a Comparison already: pass the set of metrics")
        if isinstance(suite, MetricSet) and suite._kept_unit is not None:
            raise ValueError(
                f"suite has unit={suite._kept_unit!r}, and a Comparison tests rows: pass "
                "MetricSet(dict(suite.items())) to compare by rows, or compare two sets of "
                "different units with sm.compare"
            )
        renamed = suite.columns if isinstance(suite, MetricSet) else {}
        metrics = dict(suite.items()) if isinstance(suite, MetricSet) else suite
        self._suite = MetricSet(metrics, columns=renamed)
        self.baseline, self.max_rows = baseline, max_rows
        if type(max_rows) is not int or not 64 <= max_rows <= 1 << 24:
            raise ValueError(f"max_rows={max_rows!r}: expected a whole number, 64 to 2**24")
        own = [name for name in self._suite.inputs if name in OF_MODELS]
        asked = asked_columns(models, own)
        self.models = tuple(asked)
        if baseline is not None and baseline not in asked:
            raise ValueError(f"baseline={baseline!r} is no model{near(str(baseline), asked)}")
        self._families = {
            name: family_of(name, metric, len(asked), max_rows)
            for name, metric in self._suite._metrics.items()
        }
        self.columns = {name: text for name, text in renamed.items() if name not in own}
        for model, texts in asked.items():
            self.columns |= {alias(name, model): text for name, text in texts.items()}
        self._metrics = self._suite._metrics
        self._joints = {
            name: family.joints(self.models, self.pairs) for name, family in self._families.items()
        }
        self._open(self._plan_of())
        optional = self._plan.optional
        own_titles = {
            self._titles[alias(n, m)] for m in asked for n in own if alias(n, m) in optional
        }
        self._needed = tuple(title for title in self._needed if title not in own_titles)

    def _plan_of(self) -> Plan:
        """Return a plan of every model's statistics, then the joint ones."""
        statistics: list[Statistic] = []
        schemas: list[ModelSchema] = []
        plain = self._suite._plan.start.statistics
        for model in self.models:
            for statistic in plain:
                statistics.append(statistic)
                schemas.append(ModelSchema.over(statistic.schema, self.models, [model]))
        for joints in self._joints.values():
            statistics += [joint.statistic for joint in joints]
            schemas += [joint.schema(self.models) for joint in joints]
        return Plan(statistics, schemas)

    @property
    def of_metrics(self) -> tuple[str, ...]:
        """The names of the metrics."""
        return tuple(self._metrics)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The models that are compared: each with the one it is compared with."""
        if self.baseline is None:
            return list(combinations(self.models, 2))
        return [(model, self.baseline) for model in self.models if model != self.baseline]

    def compute(self, confidence: float = 0.95) -> Differences:  # type: ignore[override]  # of several models
        """Return how the models differ: a line for every metric and pair.

        Args:
            confidence: The level of the limits; a difference is evidence where its adjusted p is
                below ``1 - confidence``.

        Raises:
            StreamMetricsError: For a ranking, where a query counts for one run only.
        """
        return self._compared(self._accumulator.flush(), check_level(confidence))

    def _computed(self, state: State, depth: int = 3) -> Differences:  # type: ignore[override]  # noqa: ARG002 - nothing warns
        return self._compared(state, 0.95)

    def _compared(self, state: State, level: float) -> Differences:
        suites = {model: self._of(model, state) for model in self.models}
        values = {model: suite.compute() for model, suite in suites.items()}
        lines: list[Difference] = []
        for name, family in self._families.items():
            found = []
            for model, against in self.pairs:
                one, other = (
                    Side(m, suites[m][name], float(values[m][name]), self.models.index(m))
                    for m in (model, against)
                )
                joint = self._joint(name, (model, against), state)
                estimate = family.estimate(one, other, joint, level)
                estimate = clipped(widened(estimate, one, other), one.metric)
                found.append((one, other, estimate))
            adjusted = holm([estimate.p for *_, estimate in found])
            for pair, (one, other, estimate), p in zip(self.pairs, found, adjusted, strict=True):
                says = verdict(one.metric, pair, estimate.difference, p, 1 - level)
                lines.append(
                    Difference(
                        name,
                        *pair,
                        one.value,
                        other.value,
                        *estimate[:4],
                        p,
                        says,
                        estimate.test,
                        family.n_rows(one),
                    )
                )
        return Differences(lines, level, self._n_rows(state))

    def _joint(self, name: str, pair: tuple[str, str], state: State) -> Statistic | None:
        """Return the joint statistic of a metric that has both models."""
        for joint in self._joints[name]:
            if set(pair) <= set(joint.models):
                key = joint.statistic._key, joint.schema(self.models)
                return state.statistics[self._plan.places[key]]
        return None

    def _of(self, model: str, state: State) -> MetricSet:
        """Return the metrics of a model at a state."""
        plan = self._suite._plan
        infos = tuple(
            state.infos[self._plan.schemas.index(ModelSchema.over(schema, self.models, [model]))]
            for schema in plan.schemas
        )
        places = (
            self._plan.places[key, ModelSchema.over(schema, self.models, [model])]
            for key, schema in plan.places
        )
        statistics = tuple(state.statistics[place] for place in places)
        return self._suite._at(State(infos, statistics))

    def __getitem__(self, model: str) -> MetricSet:  # type: ignore[override]  # by model, not by metric
        """Return the metrics of one model as they are now: a set of its own."""
        if model not in self.models:
            raise KeyError(f"no model {model!r}{near(str(model), self.models)}")
        return self._of(model, self._accumulator.flush())

    def keys(self) -> Any:
        """Return the names of the models."""
        return dict.fromkeys(self.models).keys()

    def values(self) -> Any:
        """Return the metrics of every model as they are now."""
        return dict(self.items()).values()

    def items(self) -> Any:
        """Return the models, each with its metrics as they are now."""
        state = self._accumulator.flush()
        return {model: self._of(model, state) for model in self.models}.items()

    def __iter__(self) -> Iterator[str]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)

    def bounds(self) -> Any:
        """Return what certainly holds the exact values, by model and metric."""
        return {model: suite.bounds() for model, suite in self.items()}

    def confidence(self, level: float = 0.95, *, anytime: bool = False, unit: Unit = ...) -> Any:
        """Return every metric's `Metric.confidence`, by model and metric."""
        return {m: suite.confidence(level, anytime=anytime, unit=unit) for m, suite in self.items()}

    @property
    def exact(self) -> bool:
        """Whether every value of every model is the exact one."""
        return all(suite.exact for suite in self.values())

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the columns that `update` takes, without the weight."""
        names = [name for schema in self._plan.schemas for name in schema.inputs]
        return tuple(dict.fromkeys(names))

    @property
    def _identity(self) -> object:
        metrics = tuple((name, metric._key) for name, metric in self._metrics.items())
        return metrics, self.models, self.baseline, self.max_rows, sorted(self.columns.items())

    def _titled(self) -> str:
        return f"a Comparison of {', '.join(self.models)}"

    def _apart(self, other: Self) -> str:
        mine, theirs = self, other
        if mine.models != theirs.models:
            return f"models are {list(theirs.models)} there and {list(mine.models)} here"
        parts = [
            f"{name} is {getattr(theirs, name)!r} there and {getattr(mine, name)!r} here"
            for name in ("baseline", "max_rows")
            if getattr(theirs, name) != getattr(mine, name)
        ]
        return "; ".join(parts) or super()._apart(other)

    def _configuration(self) -> dict[str, object]:
        """Return what a file says of the comparison before its rows."""
        own = {alias(n, m): n for m in self.models for n in OF_MODELS}
        shared = {name: text for name, text in self.columns.items() if name not in own}
        models = [
            [m, {n: self.columns[alias(n, m)] for n in OF_MODELS if alias(n, m) in self.columns}]
            for m in self.models
        ]
        told = super()._configuration()
        more = {"models": models, "baseline": self.baseline, "max_rows": self.max_rows}
        return {**told, "class": registered_name(type(self)), "columns": shared, **more}

    @classmethod
    def _configured(cls, meta: Mapping[str, object]) -> Self:
        """Return an empty comparison of what `_configuration` said."""
        options: Any = {name: meta.get(name) for name in ("baseline", "max_rows")}
        suite = MetricSet._configured(meta)
        try:
            return cls(suite, told_columns(meta.get("models")), **options)
        except (ValueError, TypeError) as error:
            raise StateFormatError(f"these are no models to compare: {error}") from error

    def __repr__(self) -> str:
        against = "" if self.baseline is None else f", baseline={self.baseline!r}"
        metrics = ", ".join(self._metrics)
        models = ", ".join(self.models)
        return f"Comparison of {models} by {metrics}{against} <{self.n_rows:,} rows>"

    def _repr_html_(self) -> str:
        return self.compute()._repr_html_() or "" if self.n_rows else f"<p>{escape(repr(self))}</p>"


UNPAIRED = "unpaired, weaker than paired"


def compare(
    a: Metric | MetricSet | str | os.PathLike[str],
    b: Metric | MetricSet | str | os.PathLike[str],
    *,
    confidence: float = 0.95,
    names: tuple[str, str] = ("a", "b"),
    unit: Unit = ...,
) -> Differences:
    """Return how two states differ that were fed with different rows.

    This is the weaker test: what rows have in common does not cancel out as it does where both
    models judge the same ones, which is what `Comparison` is for. It is the right one for two
    weeks, two groups of users, two halves of an A/B test.

    The limits of the difference are made of those of either value (`Metric.confidence`) by squares
    and sums (MOVER; Zou and Donner 2008), so they are as right as these are for small samples and
    values near their ends; p is that of a normal number with these limits.

    Args:
        a: A metric, a set, or the path of a saved state.
        b: Another one of the same metrics.
        confidence: The level of the limits; a difference is evidence where p is below
            ``1 - confidence``.
        names: How the two are called.
        unit: What is sampled: by default the `unit` of either set, if it has one; ``None``: rows.
            No unit may be in both sets, as no user is in both halves of an A/B test.

    Raises:
        IncompatibleMetricsError: They are not of the same metrics.
        ValueError: They do not keep that unit.
        StreamMetricsError: None of the metrics has confidence limits, see `Metric.confidence`.

    Example:
        >>> import streammetrics as sm
        >>> monday = sm.Accuracy().update([1] * 100, [1] * 90 + [0] * 10)
        >>> tuesday = sm.Accuracy().update([1] * 100, [1] * 75 + [0] * 25)
        >>> found = sm.compare(monday, tuesday, names=("monday", "tuesday"))
        >>> found[0].verdict, round(found[0].p, 4)
        ('monday better', 0.0052)
    """
    level = check_level(confidence)
    if len(names) != 2 or names[0] == names[1]:
        raise ValueError(f"names={names!r}: expected two different ones")
    states = _read(a), _read(b)
    one, other = map(_by_name, states)
    _check_same(one, other, names)
    lines, refused = [], []
    for name, metric in one.items():
        try:
            lines.append(_line(name, (metric, other[name]), names, level, unit))
        except NoConfidenceError as error:
            refused.append(f"{name!r}: {error}")
    if not lines:
        raise StreamMetricsError(f"none of the metrics can be compared: {'; '.join(refused)}")
    for reason in refused:
        warnings.warn(f"left out: {reason}", UndefinedMetricWarning, stacklevel=2)
    rows = {name: state.n_rows for name, state in zip(names, states, strict=True)}
    return Differences(lines, level, rows)


def _read(state: object) -> Metric | MetricSet:
    what = load(state) if isinstance(state, str | os.PathLike) else state
    if isinstance(what, Comparison) or not isinstance(what, Metric | MetricSet):
        raise TypeError(
            f"{an(type(what).__name__)} cannot be compared: pass metrics, sets or paths of such"
        )
    return what


def _by_name(what: Metric | MetricSet) -> Mapping[str, Metric]:
    return {type(what).__name__: what} if isinstance(what, Metric) else dict(what.items())


def _check_same(
    one: Mapping[str, Metric], other: Mapping[str, Metric], names: tuple[str, str]
) -> None:
    """Raise unless the metrics are the same; what columns they are read from does not matter."""
    for name in {**one, **other}:
        mine, theirs = one.get(name), other.get(name)
        if mine is None or theirs is None:
            has = names[0] if theirs is None else names[1]
            raise IncompatibleMetricsError(f"{name!r} is only in {has}, so they cannot be compared")
        if mine._key != theirs._key:
            raise IncompatibleMetricsError(
                f"{name!r} is {mine._titled()} in {names[0]} and {theirs._titled()} in {names[1]}, "
                "which cannot be compared"
            )


def _line(
    name: str,
    pair: tuple[Metric, Metric],
    names: tuple[str, str],
    level: float,
    unit: Unit,
) -> Difference:
    one, other = pair
    if not all(isinstance(metric.compute(), int | float) for metric in pair):
        raise NoConfidenceError(f"{one._titled()} is several numbers")
    values = float(one.compute()), float(other.compute())
    limits = [metric.confidence(level, unit=unit) for metric in pair]
    estimate = unpaired(limits, values, level)
    says = verdict(one, names, estimate.difference, estimate.p, 1 - level)
    return Difference(name, *names, *values, *estimate[:4], estimate.p, says, estimate.test)


def unpaired(
    limits: Sequence[ConfidenceInterval], values: tuple[float, float], level: float
) -> Estimate:
    """Return the difference of two independent values by the limits of either."""
    difference = values[0] - values[1]
    low, high = _apart(limits, values)
    if not (math.isfinite(difference) and math.isfinite(low) and math.isfinite(high)):
        return Estimate(difference, math.nan, math.nan, math.nan, UNPAIRED)
    # As of a normal number whose limits these are: at levels far beyond, the limits of few rows
    # themselves shrink too slowly, and would call rare what is not.
    side = difference - low if difference > 0 else high - difference
    z = abs(difference) / side * normal_quantile((1 + level) / 2) if side else math.inf
    p = min(1.0, max(2 * normal_tail(z), LEAST)) if difference else 1.0
    return Estimate(difference, low, high, p, UNPAIRED)


def _apart(
    limits: Sequence[ConfidenceInterval], values: tuple[float, float]
) -> tuple[float, float]:
    """Return the difference less and plus the root of the squares of what either may be off by."""
    (a_low, a_high), (b_low, b_high) = limits
    a, b = values
    difference = a - b
    below, above = margin(a, a_low, b, b_high), margin(b, b_low, a, a_high)
    return float(difference - below), float(difference + above)
