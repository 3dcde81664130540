"""Comparison of models on the same rows, and of two states of different rows."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from itertools import combinations, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

from streammetrics.core.columns.batch import as_text, near
from streammetrics.core.confidence import check_level, unit_of
from streammetrics.core.errors import (
    IncompatibleMetricsError,
    NoConfidenceError,
    StateFormatError,
    StreamMetricsError,
    an,
    warn_undefined,
)
from streammetrics.core.feeding.plan import Plan
from streammetrics.core.feeding.states import State
from streammetrics.core.loading import load
from streammetrics.core.metric import Metric
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.registry import registered_name
from streammetrics.core.results.differences import Difference, Differences
from streammetrics.inference.decisions import (
    Margin,
    check_power,
    decided,
    detectable,
    margins_of,
    needed,
    standard_error,
)
from streammetrics.inference.distributions import holm, margin, normal_quantile, normal_tail
from streammetrics.inference.paired import (
    LEAST,
    Estimate,
    Side,
    clipped,
    family_of,
    of_units,
    paired_by_unit,
    verdict,
    widened,
)
from streammetrics.inference.units import (
    BY_UNIT,
    UnitRows,
    check_one_time,
    groups_at,
    influence_of_units,
    kept_infos,
    limits_of_units,
    units_of,
    whole_of,
    with_units,
)
from streammetrics.metrics.families import Family
from streammetrics.statistics.grouped import Groups, unit_plan
from streammetrics.statistics.joint import OF_MODELS, alias, over_models

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, KeysView

    from streammetrics.core.columns.schema import Kind
    from streammetrics.core.confidence import ConfidenceInterval, Unit
    from streammetrics.core.feeding.states import RowInfo
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Json, Options


ColumnNames: TypeAlias = str | Sequence[str]  # a column, or several that form one matrix


def told_columns(models: Json) -> dict[str, dict[str, str]]:
    """Parse the models in a file: their columns by name, in order."""
    found = {}
    for model, columns in models:
        if not isinstance(columns, dict) or not all(isinstance(t, str) for t in columns.values()):
            raise ValueError(f"the columns of {model!r} are missing")
        found[model] = columns
    return found


def own_inputs(inputs: Sequence[str], models: object) -> list[str]:
    """Return the inputs that each model has: predictions, and those named for a model."""
    each = models.values() if isinstance(models, Mapping) else ()
    named = {name for given in each if isinstance(given, Mapping) for name in given}
    return [name for name in inputs if name in OF_MODELS or name in named]


def asked_columns(
    models: Mapping[str, ColumnNames | Mapping[str, ColumnNames]] | Sequence[str],
    own: Sequence[str],
) -> dict[str, dict[str, str]]:
    """Return each model's columns for the inputs that are its own."""
    if isinstance(models, list | tuple) and all(isinstance(name, str) for name in models):
        models = {name: name for name in models}  # models named after their columns
    if not isinstance(models, Mapping):
        raise TypeError(
            f"models is {an(type(models).__name__)}: pass each model's column by its name, "
            "{'a': 'score_a', 'b': 'score_b'}"
        )
    if len(models) < 2:
        raise ValueError(f"models={dict(models)!r}: pass at least two models")
    if not own:
        raise ValueError(
            f"none of the metrics reads an input of a model ({', '.join(OF_MODELS)}): name those "
            "that each model has, {'a': {'text': 'text_a'}, 'b': {'text': 'text_b'}}"
        )
    asked: dict[str, dict[str, str]] = {}
    for model, given in models.items():
        if not isinstance(model, str) or not model:
            raise ValueError(f"the name of a model must be text, not {model!r}")
        if not isinstance(given, Mapping):
            if len(own) > 1:
                raise ValueError(
                    f"{model!r}: the metrics read {' and '.join(own)} of every model: "
                    f"{{{', '.join(f'{name!r}: ...' for name in own)}}}"
                )
            given = {own[0]: given}  # noqa: PLW2901 - normalize the short form
        if given.keys() != set(own):
            raise ValueError(f"{model!r}: expected columns for {own}, not for {list(given)}")
        asked[model] = {name: as_text(given[name]) for name in own}
        for other, texts in asked.items():
            if other != model and texts == asked[model]:
                raise ValueError(f"models {other!r} and {model!r} are read from the same columns")
    return asked


MAX_ROWS = 8192  # largest sample, per class if there are two


class Comparison(MetricSet):
    """A comparison of several models on the same rows, for each metric and pair of models.

    Every row has the predictions of every model, so variation that the models share cancels out of
    their differences. The variance of a difference comes from joint statistics, which are as small
    as those of the metrics and merge like them. Far fewer rows are needed to detect a difference
    than if each model had its own rows.

    The test depends on the metric:

    - Metrics of counts use the joint counts of true and predicted labels; shares of the same rows
      use McNemar's exact test.
    - Mean losses and means of your own (`RowMean`) use the paired t-test, linearized for a root and
      a function of means.
    - ROC AUC uses DeLong's paired test, and average precision its analogue.
    - Rankings use the paired t-test over queries for the limits, and a randomization test for p,
      which flips the signs of differences (B = 9,999, seeded by the values).
    - All other metrics use a jackknife.

    With a `unit`, the sample is the units, such as questions with several rows each: the variance
    of a difference comes from what each unit adds to it (Student's t with Satterthwaite's degrees
    of freedom), and p from flipping the signs of these differences. A state of every model is kept
    for each of up to 4,096 units, and for 64 groups of units by hash if there are more; the name of
    the test says which.

    Args:
        suite: The metrics by name, or a set without rows. The ``columns`` of a set are those of the
            inputs that models share: ``{"y_true": "label"}``.
        models: The column of each model's predictions by the model's name, or a list of columns,
            which then are the names of the models. If the metrics read several inputs of a model,
            or inputs of your own that each model has, its value is a dictionary:
            ``{"y_score": "score_a", "y_pred": "a"}``.
        baseline: The model that all others are compared with; ``None`` compares all pairs.
        max_rows: How many distinct rows to keep, per class if there are two, for metrics whose
            joint variance cannot be computed from sums: ROC AUC, average precision, R2 and similar
            ones. Not used with a `unit`.
        unit: Column that identifies clustered rows, such as those of one question or user.

    Raises:
        ValueError: There are fewer than two models, two of them read the same columns, or a metric
            cannot be compared; the message says which.
        InvalidBatchError: From `update`, if a column is missing or invalid.

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
        unit: Unit = ...,
    ) -> None:
        if isinstance(suite, Comparison):
            raise TypeError("suite is already a Comparison: pass a MetricSet")
        kept = suite._kept_unit if isinstance(suite, MetricSet) else None
        self.unit = unit_of(unit, kept)
        if self.unit is not None and (not isinstance(self.unit, str) or not self.unit):
            raise ValueError(f"Comparison(unit={unit!r}): expected the name of a column")
        renamed = suite.columns if isinstance(suite, MetricSet) else {}
        metrics = dict(suite.items()) if isinstance(suite, MetricSet) else suite
        self._suite = MetricSet(metrics, columns=renamed)
        self.baseline, self.max_rows = baseline, max_rows
        if type(max_rows) is not int or not 64 <= max_rows <= 1 << 24:
            raise ValueError(f"max_rows={max_rows!r}: expected a whole number, 64 to 2**24")
        own = own_inputs(self._suite.inputs, models)
        self._own = (*OF_MODELS, *(name for name in own if name not in OF_MODELS))
        asked = asked_columns(models, own)
        self.models = tuple(asked)
        self._sorted = sorted(asked)  # the order in joint statistics, so that tests are symmetric
        if baseline is not None and baseline not in asked:
            raise ValueError(f"baseline={baseline!r} is not a model{near(str(baseline), asked)}")
        self._families = {
            name: family_of(name, metric, len(asked), max_rows, self._own)
            for name, metric in self._suite._metrics.items()
        }
        self.columns = {name: text for name, text in renamed.items() if name not in own}
        for model, texts in asked.items():
            self.columns |= {self._alias(name, model): text for name, text in texts.items()}
        self._metrics = self._suite._metrics
        self._joints = {
            name: family.joints(self._sorted, self.pairs) for name, family in self._families.items()
        }
        plain = self._suite._plan
        self._sides = {
            model: Plan(
                plain.start.statistics,
                [
                    over_models(schema, self.models, [model], own=self._own)
                    for schema in plain.read_schemas
                ],
            )
            for model in self.models
        }
        self._open(self._plan_of() if self.unit is None else self._plan_by_unit())
        optional = self._plan.optional
        own_titles = {
            self._titles[alias]
            for model in asked
            for name in own
            if (alias := self._alias(name, model)) in optional
        }
        self._needed = tuple(title for title in self._needed if title not in own_titles)
        if self.unit is not None:
            self._titles[BY_UNIT] = self.unit
            needed = (self._titles.get(title, title) for title in self._needed)
            self._needed = tuple(dict.fromkeys(needed))

    def _alias(self, name: str, model: str) -> str:
        """Return the name of a model's input in a batch of all models."""
        return alias(name, model, self._own)

    def _plan_of(self) -> Plan:
        """Return a plan of the statistics of each model, followed by the joint ones."""
        joints = [joint for joints in self._joints.values() for joint in joints]
        statistics = [s for side in self._sides.values() for s in side.start.statistics]
        schemas = [schema for side in self._sides.values() for schema in side.read_schemas]
        return Plan(
            [*statistics, *(joint.statistic for joint in joints)],
            [*schemas, *(joint.schema(self.models, self._own) for joint in joints)],
        )

    def _plan_by_unit(self) -> Plan:
        """Return a plan of the statistics of each model, kept by unit."""
        sides = [side.schemas for side in self._sides.values()]
        plan, places = unit_plan(self._suite._plan, sides, BY_UNIT)
        self._places = dict(zip(self.models, places, strict=True))
        return plan

    def feed(self, columns: Mapping[str, object], renamed: Mapping[str, str] | None = None) -> Self:
        """Add rows given as columns by name, including the column of units if there is one."""
        if self.unit is None:
            return super().feed(columns, renamed)
        return super().feed(*with_units(columns, renamed, self.unit))

    @property
    def of_metrics(self) -> tuple[str, ...]:
        """The names of the metrics."""
        return tuple(self._metrics)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of models to compare; the second is the one compared with."""
        if self.baseline is None:
            return list(combinations(self.models, 2))
        return [(model, self.baseline) for model in self.models if model != self.baseline]

    def compute(  # type: ignore[override]  # values of several models
        self, confidence: float = 0.95, *, margin: Margin = None, anytime: bool = False
    ) -> Differences:
        """Return the differences between models: a line for each metric and pair of models.

        Args:
            confidence: Level of the confidence limits. A difference is evidence if its adjusted
                p-value is below ``1 - confidence``.
            margin: Largest acceptable deterioration: one number for all metrics that have a better
                direction, or a mapping by metric. With a margin, differences are signed so that
                larger is better, and the verdict is the first that holds: ``"better"`` if the lower
                limit is above 0, ``"not worse"`` if it is above ``-margin``, ``"worse"`` if the
                upper limit is below 0, else ``"undecided"``.
            anytime: Whether limits and p-values hold at all times at once, so that you may look
                after every batch and stop when you like. They exist for shares of the same rows,
                such as accuracy and recall; for other metrics they are NaN, with a warning.

        Raises:
            StreamMetricsError: For a ranking, if a query counts for only one of the runs.
            ValueError: A margin is negative, or names a metric that does not exist or has no better
                direction.
        """
        margins = {} if margin is None else margins_of(margin, self._metrics)
        level = check_level(confidence)
        return self._compared(self._accumulator.flush(), level, margins, anytime=anytime)

    def enough(self, width: Mapping[str, float], *, level: float = 0.95) -> bool:
        """Whether the anytime limits of every pair of models are this narrow.

        As `MetricSet.enough`, of differences.

        Example:
            >>> import streammetrics as sm
            >>> duel = sm.Comparison({"accuracy": sm.Accuracy()}, ["a", "b"])
            >>> _ = duel.update(y_true=[1] * 500, a=[1, 1, 1, 0] * 125, b=[1, 1, 0, 0] * 125)
            >>> duel.enough({"accuracy": 0.2}), duel.enough({"accuracy": 0.02})
            (True, False)
        """
        return super().enough(width, level=level)

    def _anytime_limits(self, level: float) -> dict[str, list[tuple[float, float]]]:
        found: dict[str, list[tuple[float, float]]] = {}
        for line in self.compute(level, anytime=True):
            found.setdefault(line.metric, []).append((line.low, line.high))
        return found

    def detectable(self, power: float = 0.8, *, confidence: float = 0.95) -> dict[str, float]:
        """Return the smallest difference that this design can detect, by metric.

        With a difference of this size in the population, a share `power` of samples like this one
        gives the verdict ``"better"``. Without any difference, the same share gives ``"not worse"``
        for a margin of this size. With several pairs of models it is the largest over pairs. It is
        ``nan`` if these rows do not tell how the difference varies.

        Args:
            power: Probability of detection.
            confidence: Level of the confidence limits.

        Raises:
            ValueError: `power` or `confidence` is not between 0 and 1.

        Example:
            >>> import streammetrics as sm
            >>> duel = sm.Comparison({"mae": sm.MAE()}, {"a": "one", "b": "two"})
            >>> _ = duel.update(y_true=[0.0] * 100, one=[0.1, 0.3] * 50, two=[0.3, 0.2] * 50)
            >>> round(duel.detectable()["mae"], 4)
            0.0427
        """
        level, power = check_level(confidence), check_power(power)
        found: dict[str, float] = {}
        for name, _, _, estimate in self._estimates(self._accumulator.flush(), level):
            error = standard_error(estimate.low, estimate.high, level, estimate.df)
            least = detectable(error, estimate.df, power, level)
            found[name] = max(least, found.get(name, 0.0), key=_nan_last)
        return found

    def _units_needed(self, power: float, level: float) -> Iterator[tuple[str, Needed]]:
        """Yield for each metric and pair of models a function that returns the units needed."""
        state = self._accumulator.flush()
        for name, one, _, estimate in self._estimates(state, level):
            error = standard_error(estimate.low, estimate.high, level, estimate.df)
            if self.unit is None:
                n = self._families[name].n_units(one)
            else:
                n = _number_of(self._groups(one.model, state), self.unit)
            _check_varies(name, error)
            yield name, partial(needed, error, n, power=power, level=level)

    def _computed(self, state: State, depth: int = 3) -> Differences:  # type: ignore[override]
        return self._compared(state, 0.95, {})

    def _estimates(
        self, state: State, level: float, *, anytime: bool = False
    ) -> Iterator[tuple[str, Side, Side, Estimate]]:
        """Yield the estimated difference of each pair of models, metric by metric."""
        if self.unit is not None:
            yield from self._estimates_by_unit(state, level, anytime=anytime)
            return
        suites = {model: self._of(model, state) for model in self.models}
        values = {model: suite.compute() for model, suite in suites.items()}
        for name, family in self._families.items():
            for pair in self.pairs:
                one, other = (
                    Side(m, suites[m][name], float(values[m][name]), self._sorted.index(m))
                    for m in pair
                )
                joint = self._joint(name, pair, state)
                estimate = family.anytime if anytime else family.estimate
                try:
                    yield name, one, other, estimate(one, other, joint, level)
                except NoConfidenceError as error:
                    warn_undefined(f"{name!r}: {error}", 4)
                    test = UNKNOWN if anytime else "none"
                    nothing = (one.value - other.value, math.nan, math.nan, math.nan, test)
                    yield name, one, other, Estimate(*nothing)

    def _estimates_by_unit(
        self, state: State, level: float, *, anytime: bool
    ) -> Iterator[tuple[str, Side, Side, Estimate]]:
        check_one_time(str(self.unit), anytime=anytime)
        groups = {model: self._groups(model, state) for model in self.models}
        wholes = {model: whole_of(of) for model, of in groups.items()}
        suites = {model: self._suite._at(whole) for model, whole in wholes.items()}
        values = {model: suite.compute() for model, suite in suites.items()}
        for name in self._families:
            adds = {
                model: influence_of_units(suite[name], groups[model], wholes[model])
                for model, suite in suites.items()
            }
            sides = {
                model: Side(model, suite[name], float(values[model][name]), place)
                for place, (model, suite) in enumerate(suites.items())
            }
            for one, other in self.pairs:
                estimate = of_units(sides[one], sides[other], adds[one], adds[other], level)
                yield name, sides[one], sides[other], estimate

    def _groups(self, model: str, state: State) -> Groups:
        """Return the states of a model by unit."""
        return groups_at(state, self._suite._plan, self._places[model])

    def _compared(
        self, state: State, level: float, margins: Mapping[str, float], *, anytime: bool = False
    ) -> Differences:
        lines: list[Difference] = []
        estimates = self._estimates(state, level, anytime=anytime)
        for name, every in groupby(estimates, key=itemgetter(0)):
            found = [
                (one, other, clipped(widened(estimate, one, other), one.metric))
                for _, one, other, estimate in every
            ]
            adjusted = holm([estimate.p for *_, estimate in found])
            for (one, other, estimate), p in zip(found, adjusted, strict=True):
                n_rows = self._families[name].n_rows(one)
                lines.append(line_of(name, one, other, estimate, p, level, margins, n_rows))
        return Differences(lines, level, self._n_rows(state))

    def _joint(self, name: str, pair: tuple[str, str], state: State) -> Statistic | None:
        """Return the joint statistic of a metric for a pair of models, if any."""
        for joint in self._joints[name]:
            if set(pair) <= set(joint.models):
                key = joint.statistic._key, joint.schema(self.models, self._own)
                return state.statistics[self._plan.places[key]]
        return None

    def _of(self, model: str, state: State) -> MetricSet:
        """Return the metrics of a model with its part of a state."""
        if self.unit is not None:
            groups = self._groups(model, state)
            whole = whole_of(groups)

            def found(metric: Metric, level: float) -> ConfidenceInterval:
                return limits_of_units(metric, groups, whole, level)

            return self._suite._over(UnitRows(self._suite._plan, whole, self.unit, found))
        return self._suite._at(self._plan.part(state, self._sides[model]))

    def __getitem__(self, model: str) -> MetricSet:  # type: ignore[override]  # by model, not by metric
        """Return the current metrics of one model as an independent set."""
        if model not in self.models:
            raise KeyError(f"no model {model!r}{near(str(model), self.models)}")
        return self._of(model, self._accumulator.flush())

    def keys(self) -> KeysView[str]:
        """Return the names of the models."""
        return dict.fromkeys(self.models).keys()

    def values(self) -> Any:
        """Return the current metrics of every model."""
        return dict(self.items()).values()

    def items(self) -> Any:
        """Return the models with their current metrics."""
        state = self._accumulator.flush()
        return {model: self._of(model, state) for model in self.models}.items()

    def __iter__(self) -> Iterator[str]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)

    def bounds(self) -> Any:
        """Return the guaranteed limits of the exact values, by model and metric."""
        return {model: suite.bounds() for model, suite in self.items()}

    def confidence(
        self,
        level: float = 0.95,
        *,
        method: str | Mapping[str, str | None] | None = None,
        anytime: bool = False,
        unit: Unit = ...,
    ) -> Any:
        """Return the `MetricSet.confidence` of every model."""
        return {
            model: suite.confidence(level, method=method, anytime=anytime, unit=unit)
            for model, suite in self.items()
        }

    @property
    def exact(self) -> bool:
        """Whether the values of all models and metrics are exact."""
        return all(suite.exact for suite in self.values())

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the columns that `update` takes, without the weight."""
        names = [name for schema in self._plan.schemas for name in schema.inputs]
        return tuple(dict.fromkeys(names))

    @property
    def _kept_unit(self) -> str | None:
        return self.unit

    @property
    def _kinds(self) -> dict[str, Kind]:
        return super()._kinds | ({} if self.unit is None else {BY_UNIT: "id"})

    def _chosen_feeds(self, state: State) -> Sequence[RowInfo]:
        return state.infos if self.unit is None else kept_infos(self._plan, state)

    @property
    def _identity(self) -> object:
        metrics = tuple((name, metric._key) for name, metric in self._metrics.items())
        columns = sorted(self.columns.items())
        return metrics, self.models, self.baseline, self.max_rows, columns, self.unit

    def _titled(self) -> str:
        return f"a Comparison of {', '.join(self.models)}"

    def _apart(self, other: Self) -> str:
        mine, theirs = self, other
        if mine.models != theirs.models:
            return f"models are {list(theirs.models)} there and {list(mine.models)} here"
        parts = [
            f"{name} is {getattr(theirs, name)!r} there and {getattr(mine, name)!r} here"
            for name in ("baseline", "max_rows", "unit")
            if getattr(theirs, name) != getattr(mine, name)
        ]
        return "; ".join(parts) or super()._apart(other)

    def _configuration(self) -> dict[str, object]:
        """Return the configuration as written to a file, before the row information."""
        each = {m: {self._alias(n, m): n for n in self._own} for m in self.models}
        own = {name for names in each.values() for name in names}
        shared = {name: text for name, text in self.columns.items() if name not in own}
        models = [
            [m, {n: self.columns[a] for a, n in names.items() if a in self.columns}]
            for m, names in each.items()
        ]
        told = super()._configuration()
        more = {"models": models, "baseline": self.baseline, "max_rows": self.max_rows}
        more |= {} if self.unit is None else {"unit": self.unit}
        return {**told, "class": registered_name(type(self)), "columns": shared, **more}

    @classmethod
    def _configured(cls, meta: Mapping[str, object]) -> Self:
        """Return an empty comparison from the result of `_configuration`."""
        options: Options = {name: meta.get(name) for name in ("baseline", "max_rows", "unit")}
        suite = MetricSet._configured(meta)
        try:
            return cls(suite, told_columns(meta.get("models")), **options)
        except (ValueError, TypeError) as error:
            raise StateFormatError(f"invalid models: {error}") from error

    def __repr__(self) -> str:
        against = "" if self.baseline is None else f", baseline={self.baseline!r}"
        metrics = ", ".join(self._metrics)
        models = ", ".join(self.models)
        by_unit = "" if self.unit is None else f", unit={self.unit!r}"
        return f"Comparison of {models} by {metrics}{against}{by_unit} <{self.n_rows:,} rows>"

    def _repr_html_(self) -> str:
        return self.compute()._repr_html_() or "" if self.n_rows else f"<p>{escape(repr(self))}</p>"


def line_of(
    name: str,
    one: Side,
    other: Side,
    estimate: Estimate,
    p_adjusted: float,
    level: float,
    margins: Mapping[str, float],
    n_rows: int | None = None,
) -> Difference:
    """Build the line of an estimate, with its verdict."""
    pair, margin = (one.model, other.model), margins.get(name)
    if margin is None:
        says = verdict(one.metric, pair, estimate.difference, p_adjusted, 1 - level)
    else:
        says = decided(one.metric, estimate, margin)
    values = (one.value, other.value, *estimate[:4], p_adjusted)
    return Difference(name, *pair, *values, says, estimate.test, n_rows, margin)


UNKNOWN = "none at all times"
UNPAIRED = "unpaired, weaker than paired"


def compare(
    a: Metric | MetricSet | str | os.PathLike[str],
    b: Metric | MetricSet | str | os.PathLike[str],
    *,
    confidence: float = 0.95,
    names: tuple[str, str] = ("a", "b"),
    unit: Unit = ...,
    margin: Margin = None,
    paired: bool = False,
) -> Differences:
    """Compare two states of different rows.

    With ``paired=True`` both states are of the same units: queries of rankings, units of repeated
    attempts, or units of sets with `unit`. Variation that the units share then cancels out.

    The default test is weaker than that of `Comparison`: with different rows, variation does not
    cancel out. Use `Comparison` if both models predict the same rows. Use this function for two
    weeks, two groups of users, or the two arms of an A/B test.

    The limits of the difference combine the limits of both values (`Metric.confidence`) as a root
    of squares (MOVER; Zou and Donner 2008). For small samples, and for values near the ends of
    their range, they are therefore as accurate as the limits of the values. The p-value is that of
    a normal variable with these limits.

    Args:
        a: A metric, a set, or the path of a saved state.
        b: Another state of the same metrics.
        confidence: Level of the confidence limits. A difference is evidence if p is below
            ``1 - confidence``.
        names: Names of the two states.
        unit: What is sampled: by default the `unit` of the sets, if they have one; ``None`` for
            rows. No unit may occur in both sets, just as no user is in both arms of an A/B test,
            unless they are paired.
        margin: Largest acceptable deterioration, as in `Comparison.compute`.
        paired: Whether both states are of the same units, each with the same number of rows.

    Raises:
        IncompatibleMetricsError: The metrics differ, or the states are paired and their units
            differ.
        ValueError: The states are not kept by this unit, or a margin is invalid.
        StreamMetricsError: None of the metrics has confidence limits; see `Metric.confidence`.

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
    margins = {} if margin is None else margins_of(margin, one)
    by_unit = _by_unit(states, names, unit) if paired else None
    lines, refused = [], []
    for name, metric in one.items():
        try:
            sides = _sides((metric, other[name]), names)
            how = partial(_paired, by_unit=by_unit) if paired else partial(_unpaired, unit=unit)
            estimate = how(sides, level=level)
        except NoConfidenceError as error:
            refused.append(f"{name!r}: {error}")
        else:
            lines.append(line_of(name, *sides, estimate, estimate.p, level, margins))
    if not lines:
        raise StreamMetricsError(f"none of the metrics can be compared: {'; '.join(refused)}")
    for reason in refused:
        warn_undefined(f"left out: {reason}", 2)
    rows = {name: state.n_rows for name, state in zip(names, states, strict=True)}
    return Differences(lines, level, rows)


def _read(state: object) -> Metric | MetricSet:
    what = load(state) if isinstance(state, str | os.PathLike) else state
    of_sets = isinstance(what, MetricSet) and any(isinstance(m, MetricSet) for m in what.values())
    if of_sets or not isinstance(what, Metric | MetricSet):
        raise TypeError(
            f"{an(type(what).__name__)} cannot be compared: pass metrics, sets or paths of states"
        )
    return what


def _by_name(what: Metric | MetricSet) -> Mapping[str, Metric]:
    return {type(what).__name__: what} if isinstance(what, Metric) else dict(what.items())


def _check_same(
    one: Mapping[str, Metric], other: Mapping[str, Metric], names: tuple[str, str]
) -> None:
    """Raise unless the metrics are the same; the columns they read may differ."""
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


def _sides(pair: tuple[Metric, Metric], names: tuple[str, str]) -> tuple[Side, Side]:
    values = [metric.compute() for metric in pair]
    if not all(isinstance(value, int | float) for value in values):
        raise NoConfidenceError(f"{pair[0]._titled()} is several numbers")
    one, other = (Side(*each, 0) for each in zip(names, pair, map(float, values), strict=True))
    return one, other


def _unpaired(sides: tuple[Side, Side], level: float, unit: Unit) -> Estimate:
    limits = [side.metric.confidence(level, unit=unit) for side in sides]
    return unpaired(limits, (sides[0].value, sides[1].value), level)


ByUnit: TypeAlias = tuple[tuple[Groups, State], tuple[Groups, State]]


def _by_unit(
    states: tuple[Metric | MetricSet, ...], names: tuple[str, str], unit: Unit
) -> ByUnit | None:
    """Return both states by unit; ``None`` for states without units.

    Raises:
        IncompatibleMetricsError: A unit has different numbers of rows in the two states.
    """
    kept = [s._kept_unit if isinstance(s, MetricSet) else None for s in states]
    if unit is not ... and any(unit != each for each in kept):
        raise ValueError(f"unit={unit!r}: the sets keep {kept[0]!r} and {kept[1]!r}")
    if kept[0] != kept[1]:
        raise IncompatibleMetricsError(
            f"unit is {kept[0]!r} in {names[0]} and {kept[1]!r} in {names[1]}, so their rows "
            "cannot be paired"
        )
    if kept[0] is None:
        return None
    one, other = (state.groups() for state in states)  # type: ignore[union-attr]  # sets with a unit
    rows = [dict(zip(of.keys.tolist(), of.n_rows.tolist(), strict=True)) for of in (one, other)]
    every = {**rows[0], **rows[1]}
    apart = [key for key in every if rows[0].get(key) != rows[1].get(key)]
    if apart:
        raise IncompatibleMetricsError(
            f"units have other rows in {names[0]} ({states[0].n_rows:,}) than in {names[1]} "
            f"({states[1].n_rows:,}): {len(apart)} of {len(every)} {units_of(one)} by {kept[0]!r}; "
            "paired=False (--unpaired) compares them as different ones"
        )
    return (one, whole_of(one)), (other, whole_of(other))


def _paired(sides: tuple[Side, Side], by_unit: ByUnit | None, level: float) -> Estimate:
    """Estimate the difference between two values of the same units."""
    one, other = sides
    if one.metric._incomparable:
        raise NoConfidenceError(
            f"{one.metric._titled()} cannot be paired: {one.metric._incomparable}"
        )
    if by_unit is None:
        estimate = paired_by_unit(one, other, level)
        if estimate is None:
            raise NoConfidenceError(
                f"{one.metric._titled()} keeps no values of units: pair sets that have a unit, "
                "MetricSet({...}, unit='question'), or compare them unpaired"
            )
    else:
        ours, theirs = (
            influence_of_units(side.metric, *of) for side, of in zip(sides, by_unit, strict=True)
        )
        estimate = of_units(one, other, ours, theirs, level)
    return clipped(widened(estimate, one, other), one.metric)


class Needed(Protocol):
    """Returns the number of units needed to detect a difference."""

    def __call__(self, *, difference: float) -> int:
        """Return the number of units for a difference of this size."""


def units_needed(
    state: Comparison | Metric | MetricSet,
    difference: float | Mapping[str, float],
    power: float = 0.8,
    *,
    confidence: float = 0.95,
) -> dict[str, int]:
    """Return the number of units needed to detect a difference, by metric.

    Units are rows, queries of rankings, units of repeated attempts, or the units of a set or
    comparison that has a `unit`. For a `Comparison` it is the number that suffices for every pair
    of its models. For a metric or a set it is the number in each of two independent samples.
    Standard errors scale with one over the root of the number of units.

    Args:
        state: A pilot, from which the standard error is taken.
        difference: Difference to detect: one number for all metrics, or a mapping by metric.
        power: Probability of detection, as in `Comparison.detectable`.
        confidence: Level of the confidence limits.

    Raises:
        ValueError: A difference is not positive, or names a metric that does not exist; or there
            are so many units that only groups of them are kept, and not their number.
        NoConfidenceError: A metric has no confidence limits, or the rows do not tell how it varies.

    Example:
        >>> import streammetrics as sm
        >>> duel = sm.Comparison({"mae": sm.MAE()}, {"a": "one", "b": "two"})
        >>> _ = duel.update(y_true=[0.0] * 100, one=[0.1, 0.3] * 50, two=[0.3, 0.2] * 50)
        >>> sm.units_needed(duel, 0.01)
        {'mae': 1786}
    """
    level, power = check_level(confidence), check_power(power)
    found: Iterable[tuple[str, Needed]]
    if isinstance(state, Comparison):
        names, found = state.of_metrics, state._units_needed(power, level)
    else:
        metrics = _by_name(state)
        names = tuple(metrics)
        unit = state._kept_unit if isinstance(state, MetricSet) else None
        n = None if unit is None else _number_of(state.groups(), unit)  # type: ignore[union-attr]  # a set with a unit
        found = ((name, _alone(metric, n, power, level)) for name, metric in metrics.items())
    wanted = difference if isinstance(difference, Mapping) else dict.fromkeys(names, difference)
    for name, value in wanted.items():
        if name not in names:
            raise ValueError(f"difference: no metric {name!r}{near(str(name), names)}")
        if not isinstance(value, int | float) or not 0 < value < math.inf:
            raise ValueError(f"difference of {name!r} is {value!r}: expected a positive number")
    units: dict[str, int] = {}
    for name, count in found:
        if name in wanted:
            units[name] = max(units.get(name, 0), count(difference=wanted[name]))
    return units


def _nan_last(value: float) -> tuple[bool, float]:
    """Return the key by which nan is above all numbers."""
    return math.isnan(value), value


def _check_varies(name: str, error: float) -> None:
    if not error > 0:
        raise NoConfidenceError(
            f"{name!r}: its variance cannot be estimated from these rows: pass more rows"
        )


def _number_of(groups: Groups, unit: str) -> int:
    """Return the number of units; raise `ValueError` if only groups of them are kept."""
    if units_of(groups) != "units" and len(groups):
        raise ValueError(f"groups of {unit!r} are kept, and not how many of them there are")
    return len(groups)


def _alone(metric: Metric, n: int | None, power: float, level: float) -> Needed:
    """Return a function of the units needed in each of two samples like this one, of `n` units."""
    if n is None:
        counts = {str(Family.QUERIES): "n_queries", str(Family.UNITS): "n_units"}
        n = getattr(metric, counts.get(str(metric.family), "n_rows"))
    error = standard_error(*metric.confidence(level), level)
    _check_varies(metric._titled(), error)
    return partial(needed, error * math.sqrt(2), n, power=power, level=level)


def unpaired(
    limits: Sequence[ConfidenceInterval], values: tuple[float, float], level: float
) -> Estimate:
    """Return the difference of two independent values, from the limits of each."""
    difference = values[0] - values[1]
    low, high = _apart(limits, values)
    if not (math.isfinite(difference) and math.isfinite(low) and math.isfinite(high)):
        return Estimate(difference, math.nan, math.nan, math.nan, UNPAIRED)
    # The p-value of a normal variable with these limits. Inverting the limits themselves would be
    # wrong: at extreme levels those of few rows widen too slowly, and p would be too small.
    side = difference - low if difference > 0 else high - difference
    z = abs(difference) / side * normal_quantile((1 + level) / 2) if side else math.inf
    p = min(1.0, max(2 * normal_tail(z), LEAST)) if difference else 1.0
    return Estimate(difference, low, high, p, UNPAIRED)


def _apart(
    limits: Sequence[ConfidenceInterval], values: tuple[float, float]
) -> tuple[float, float]:
    """Return the difference minus and plus the margin of both values."""
    (a_low, a_high), (b_low, b_high) = limits
    a, b = values
    difference = a - b
    below, above = margin(a, a_low, b, b_high), margin(b, b_low, a, a_high)
    return float(difference - below), float(difference + above)
