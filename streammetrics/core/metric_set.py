"""Several metrics updated together; each distinct statistic is updated once per batch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streammetrics.core.accumulator import Accumulator, ReadOnly
from streammetrics.core.columns.batch import (
    COUNTS,
    WEIGHT,
    as_renamed,
    asks_for,
    check_single,
    is_several,
    meant,
    n_rows,
    near,
    parted,
    streamed,
    table_columns,
)
from streammetrics.core.columns.conversion import Beside
from streammetrics.core.columns.schema import KINDS
from streammetrics.core.confidence import check_method_of_rows, unit_of, unsure
from streammetrics.core.configured import brief
from streammetrics.core.errors import (
    InvalidBatchError,
    NoConfidenceError,
    StateFormatError,
    undefined_expected,
    warn_undefined,
)
from streammetrics.core.feeding.plan import Plan
from streammetrics.core.floating import own_arithmetic
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.metric import read_together
from streammetrics.core.names import members_of, members_written, told_apart
from streammetrics.core.registry import class_named, registered_name
from streammetrics.core.representation import html_of_set
from streammetrics.core.results.hooks import drawn_together
from streammetrics.core.results.values import Values, flat

if TYPE_CHECKING:
    from collections.abc import ItemsView, Iterable, Iterator, KeysView, Sequence, ValuesView

    from matplotlib.axes import Axes

    from streammetrics.core.columns.batch import BatchStream
    from streammetrics.core.columns.schema import Kind
    from streammetrics.core.confidence import ConfidenceInterval, Unit
    from streammetrics.core.feeding.states import RowInfo, State
    from streammetrics.core.metric import Metric
    from streammetrics.core.results.values import Interval
    from streammetrics.core.types import ArrayLike, Foreign


_AT_MAKING = {"columns", "unit"}  # parameters of a set's constructor


class MetricSet(Mergeable):
    """Metrics by name, updated with the same rows.

    Metrics that read the same statistic with the same configuration share it, so that a batch is
    validated and counted once. If any metric refuses a batch, none of them changes.

    Args:
        metrics: The metrics by name; `compute` uses the same names. Or a list of names, of metrics
            without required parameters or of scikit-learn's scorers: ``["f1", "roc_auc", "rmse"]``.
        columns: The user's column for an input: ``{"y_true": "label"}``. Other inputs keep their
            name. Two inputs may use the same column. A matrix of scores may be several columns:
            ``["p0", "p1"]``, ``"p0,p1"``, or ``"p*"``, which matches columns that no other input
            names, p2 before p10. The column ``sample_weight`` of a table is only read if it is
            named here: ``{"sample_weight": "sample_weight"}``.
        unit: Column that identifies clustered rows, such as those of one user. A state is kept for
            each of up to 4,096 units, and for 64 groups of whole units if there are more.
            ``confidence`` of the set and its metrics then treats the units, rather than the rows,
            as the sample.
        counts: Column of whole numbers: how many rows each row stands for, as ``COUNT(*)`` of a
            table grouped by the other columns. The same as ``columns={"counts": ...}``.

    Raises:
        InvalidBatchError: From `update`, if a column is missing or invalid.

    Example:
        >>> import streammetrics as sm
        >>> suite = sm.MetricSet(
        ...     {"f1": sm.F1(threshold=0.5), "auc": sm.ROCAUC()},
        ...     columns={"y_true": "label", "y_score": "score"},
        ... )
        >>> _ = suite.update({"label": [0, 1, 1, 0], "score": [0.1, 0.4, 0.9, 0.2]})
        >>> suite.compute()
        {'f1': 0.6666666666666666, 'auc': 1.0}
        >>> suite["auc"].bounds()
        Interval(low=1.0, high=1.0)
    """

    columns: dict[str, str]  # the user's names of inputs that have another name
    _titles: dict[str, str]  # the user's name of every input
    _needed: tuple[str, ...]  # the user's names of required columns
    _in_tables: dict[str, str]
    _told: bool  # whether the warning about unused weights was given
    # The names in the last update by name, and the columns that they refer to.
    _by_name: tuple[list[str], dict[str, tuple[str, ...]]]
    _accumulator: Accumulator
    _metrics: dict[str, Metric]  # without rows
    _viewed: dict[str, Metric] | None  # created on first use

    def __new__(cls, *_: object, unit: str | None = None, **__: object) -> Self:
        """Return a set; with a `unit`, a `UnitSet`, which keeps rows by unit."""
        kind: Any = cls if unit is None or cls is not MetricSet else class_named("UnitSet")
        made: Self = object.__new__(kind)
        return made

    def __init__(
        self,
        metrics: Mapping[str, Metric] | Iterable[str],
        *,
        columns: Mapping[str, str | Sequence[str]] | None = None,
        unit: str | None = None,
        counts: str | None = None,
    ) -> None:
        given = members_of(dict(metrics.items()) if isinstance(metrics, MetricSet) else metrics)
        self.columns = as_renamed({} if columns is None else columns)
        if counts is not None:
            self.columns |= as_renamed({COUNTS: counts})
        plans = [metric._plan for metric in given.values()]
        plan = Plan.known(
            tuple(metric._key for metric in given.values()),
            lambda: [statistic for plan in plans for statistic in plan.start.statistics],
        )
        self._bind(given, plan)
        inputs = (*self.inputs, WEIGHT, COUNTS)
        unknown = self.columns.keys() - {*inputs}
        if unknown:
            raise ValueError(
                f"columns renames {', '.join(map(repr, sorted(unknown)))}, but the inputs of these "
                f"metrics are {', '.join(map(repr, inputs))}{meant(min(unknown), inputs)}"
            )

    def _bind(self, metrics: Mapping[str, Metric], plan: Plan) -> None:
        self._open(plan)
        # An accumulator without rows: metrics are read with states of this plan, by all copies.
        empty = ReadOnly(Accumulator(plan))
        self._metrics = {name: metric._over(empty) for name, metric in metrics.items()}
        self._viewed: dict[str, Metric] | None = None

    def _open(self, plan: Plan) -> None:
        """Start without rows; set the names of columns from `columns` and the plan."""
        self._accumulator, self._plan = Accumulator(plan), plan
        self._name_inputs(plan.required, plan.optional)

    def _whole(self, state: State) -> State:
        """Return the state that the metrics read."""
        return state

    def update(self, table: object = None, /, **columns: object) -> Self:
        """Add a batch, given as a table or as columns by name.

        Args:
            table: A mapping of arrays, a pandas or polars DataFrame or LazyFrame, an Arrow Table,
                RecordBatch, RecordBatchReader or Dataset, or a DuckDB relation. Tables that are
                read in batches need not fit in memory; all of their rows are added, or none.
            **columns: The columns by the user's names.

        Raises:
            InvalidBatchError: A column is missing or invalid; nothing has changed.
        """
        if not self._metrics:
            raise InvalidBatchError("the set has no metrics to update: MetricSet({'f1': sm.F1()})")
        if table is None:
            table, names, renamed, known = columns, list(columns), self.columns, self._by_name
            if names != known[0]:
                self._check_known(columns)
                known = self._by_name = names, self._parts(names, weighted=True)
            parts = known[1]
        elif columns:
            raise beside_a_table(columns)
        elif (stream := streamed(table)) is not None:
            return self._take(stream)
        else:
            names, renamed = table_columns(table), self._in_tables
            parts = self._parts(names)
            self._tell(names)
        raw = columns_of(table, parts)
        self._check_there([title for title in raw if raw[title] is not None], names)
        return self.feed(raw, renamed)

    def _take(self, stream: BatchStream) -> Self:
        """Add all batches of a stream, or none."""
        twin, row = self.copy().reset(), 0
        for batch in stream.batches(self._reads(stream.names)):
            try:
                twin.update(batch)
            except InvalidBatchError as error:
                raise error.after(row, "table") from None
            row += n_rows(batch)
        return self.merge(twin)

    def _name_inputs(self, required: Iterable[str], optional: Iterable[str]) -> None:
        """Derive the tables of names from `columns` once, because small batches need them often."""
        # No column of a table has an empty name.
        self._in_tables = {WEIGHT: "", COUNTS: "", **self.columns}
        self._told = False
        self._by_name = [], {}
        self._titles = {
            name: self.columns.get(name, name) for name in (*required, *optional, COUNTS)
        }
        # An optional input is required if `columns` names it.
        needed = (*required, *self.columns)
        self._needed = tuple(dict.fromkeys(self.columns.get(name, name) for name in needed))

    def _tell(self, names: Iterable[str]) -> None:
        """Warn once if a table has a column of weights that `columns` does not name."""
        if not self._told and WEIGHT in names and WEIGHT not in self._asked(names).values():
            warnings.warn(
                f"the table's column {WEIGHT!r} is not read, and every row weighs 1: "
                f"columns={{{WEIGHT!r}: {WEIGHT!r}}} takes it as the weight",
                stacklevel=3,
            )
            self._told = True

    def _asked(self, names: Iterable[str], *, weighted: bool = False) -> dict[str, str]:
        """Return the column of each input that is required, or is among the `names` of a table.

        Weights and counts are included only if `columns` names them, or if `weighted`: all columns
        were passed by name.
        """
        wanted = {*self._needed, *names}
        asked = {name: title for name, title in self._titles.items() if title in wanted}
        for name in (WEIGHT, COUNTS):
            if not weighted and name not in self.columns:
                asked.pop(name, None)
        return asked

    def _reads(self, names: Iterable[str]) -> list[str]:
        """Return the columns of a table that `update` reads.

        Raises:
            InvalidBatchError: A required column is missing.
        """
        names = list(names)
        self._tell(names)
        parts = self._parts(names).values()
        return list(dict.fromkeys(name for part in parts for name in part))

    def _parts(self, names: list[str], *, weighted: bool = False) -> dict[str, tuple[str, ...]]:
        """Return the columns that each of the user's names refers to: one, or those of a matrix."""
        asked = dict.fromkeys(self._asked(names, weighted=weighted).values())
        plain = [title for title in asked if title in names]
        several = [title for title in asked if title not in plain and is_several(title)]
        self._check_there([*plain, *several], names)
        parts = {t: (t,) if t in plain else parted(t, names, plain) for t in asked}
        check_single((name for part in parts.values() for name in part), names)
        return parts

    def _check_known(self, columns: Mapping[str, object]) -> None:
        """Raise if no input uses one of the columns."""
        titles = dict.fromkeys(self._titles.values())
        other = columns.keys() - set(titles)
        unknown = sorted(n for n in other if not any(asks_for(title, n) for title in titles))
        if unknown:
            for name in _AT_MAKING & columns.keys():
                raise _made_with(name, columns[name])
            if COUNTS not in self.columns:
                titles.pop(COUNTS, None)
            raise InvalidBatchError(
                f"no input is called {', '.join(map(repr, unknown))}"
                f"{meant(unknown[0], titles)}; the inputs are {', '.join(map(repr, titles))}"
            )

    def _check_there(self, given: Sequence[str], names: Sequence[str]) -> None:
        missing = [title for title in self._needed if title not in given]
        if missing and missing[0] in names:
            raise InvalidBatchError(f"{missing[0]} is None; pass its values", missing[0])
        if missing:
            near = meant(missing[0], [name for name in names if name not in given])
            raise InvalidBatchError(
                f"no column {', '.join(map(repr, missing))}; "
                f"there are: {', '.join(map(repr, names)) or 'none'}{near}"
            )

    def compute(self) -> Values:
        """Return the value of every metric by name, as a dictionary."""
        return self._computed(self._accumulator.flush())

    def _computed(self, state: State, depth: int = 3) -> Values:
        values, state = Values(), self._whole(state)
        with read_together():
            for name, metric in self._metrics.items():  # no comprehension: warnings count frames
                values[name] = metric._computed(state, depth + 1)
        return values

    def bounds(self) -> Values[Interval]:
        """Return the guaranteed limits of every metric by name, as a dictionary."""
        state = self._whole(self._accumulator.flush())
        with own_arithmetic():
            return Values(
                (name, m.interval(*m._chosen(state))) for name, m in self._metrics.items()
            )

    def confidence(
        self,
        level: float = 0.95,
        *,
        method: str | Mapping[str, str | None] | None = None,
        anytime: bool = False,
        unit: Unit = ...,
    ) -> Values[ConfidenceInterval]:
        """Return the `Metric.confidence` of every metric by name, as a dictionary.

        The limits of a metric without confidence intervals are NaN; a warning and their `method`
        give the reason. A set with a `unit` treats the units as the sample; ``unit=None`` treats
        the rows as the sample.

        Args:
            level: As in `Metric.confidence`.
            method: A method for all metrics, or a mapping by metric; a metric that the mapping
                lacks uses its default.
            anytime: As in `Metric.confidence`.
            unit: As in `Metric.confidence`.

        Raises:
            ValueError: There is no method of this name, the mapping names a metric that does not
                exist, or the set does not keep rows by this unit.

        Example:
            >>> import streammetrics as sm
            >>> suite = sm.MetricSet({"acc": sm.Accuracy()}, unit="user")
            >>> users = [user // 3 for user in range(90)]
            >>> rows = {"y_true": [1] * 90, "y_pred": [1, 1, 1, 0, 0, 1] * 15, "user": users}
            >>> low, high = suite.update(rows).confidence(0.95)["acc"]
            >>> round(low, 2), round(high, 2)
            (0.53, 0.78)
        """
        of = unit_of(unit, self._kept_unit)
        if of is not None:
            check_method_of_rows(method, of)
            return self._confident_by(of, level, anytime=anytime)
        methods = method if isinstance(method, Mapping) else dict.fromkeys(self._metrics, method)
        for name in methods:
            if name not in self._metrics:
                known = list(self._metrics)
                raise ValueError(f"confidence(method=...): no metric {name!r}{near(name, known)}")
        state = self._whole(self._accumulator.flush())
        values: Values[ConfidenceInterval] = Values()
        for name, metric in self._metrics.items():
            try:
                values[name] = metric._confident(
                    state, level, anytime=anytime, method=methods.get(name)
                )
            except NoConfidenceError as error:
                values[name] = unsure(level, str(error))
                warn_undefined(f"{name!r}: {error}", 2)
        return values

    def enough(self, width: Mapping[str, float], *, level: float = 0.95) -> bool:
        """Whether the anytime intervals of all named metrics are this narrow.

        `confidence` with ``anytime=True`` holds at all times at once, so an evaluation may stop at
        the first batch after which this is true: its limits are then still right in a share `level`
        of all evaluations. A limit that is NaN is never narrow: `confidence` gives the reason.

        Args:
            width: Largest width of the interval of each metric, by name.
            level: Level of the intervals.

        Raises:
            ValueError: A width is not positive, or names a metric that does not exist; or the set
                has a `unit`.

        Example:
            >>> import streammetrics as sm
            >>> suite = sm.MetricSet({"accuracy": sm.Accuracy()})
            >>> _ = suite.update(y_true=[1] * 500, y_pred=[1, 1, 1, 0] * 125)
            >>> suite.enough({"accuracy": 0.2}), suite.enough({"accuracy": 0.02})
            (True, False)
        """
        if not isinstance(width, Mapping) or not width:
            raise ValueError(f"enough({width!r}): expected widths by metric, {{'accuracy': 0.02}}")
        for name, most in width.items():
            if name not in self._metrics:
                raise ValueError(f"enough: no metric {name!r}{near(str(name), self._metrics)}")
            if not isinstance(most, int | float) or not 0 < most < math.inf:
                raise ValueError(f"enough: the width of {name!r} is {most!r}: expected more than 0")
        with undefined_expected():
            limits = self._anytime_limits(level)
        return all(
            np.all(np.subtract(high, low) <= most)
            for name, most in width.items()
            for low, high in limits[name]
        )

    def _anytime_limits(self, level: float) -> Mapping[str, Sequence[tuple[float, float]]]:
        """Return the anytime limits of every metric, of a comparison those of each pair."""
        found = self.confidence(level, anytime=True)
        return {name: [(limits.low, limits.high)] for name, limits in found.items()}

    def plot(self, *names: str, confidence: float | None = None) -> dict[str, Axes]:
        """Plot all metrics that have a plot in one figure, and return Matplotlib's axes by name.

        Metrics with the same plot share one: ROC AUC has that of the ROC curve. Requires the extra
        ``plot``; see ``docs/pictures.md`` for examples.

        Args:
            *names: The metrics to plot; by default all that have a plot.
            confidence: Level of confidence limits, drawn as light bands.

        Raises:
            ImportError: Matplotlib is not installed.
            TypeError: No metric, or one of `names`, has a plot.
            ValueError: There is no metric of such a name.
        """
        for name in names:
            if name not in self._metrics:
                raise ValueError(f"plot: no metric {name!r}{near(name, self._metrics)}")
        return drawn_together(self, names, confidence)

    @property
    def _kept_unit(self) -> str | None:
        """The unit that rows are kept by, if any."""
        return self._accumulator.unit

    def _confident_by(
        self, unit: str, level: float, *, anytime: bool
    ) -> Values[ConfidenceInterval]:
        values: Values[ConfidenceInterval] = Values()
        for name, metric in self.items():
            try:
                values[name] = metric.confidence(level, anytime=anytime, unit=unit)
            except NoConfidenceError as error:
                values[name] = unsure(level, str(error))
                warn_undefined(f"{name!r}: {error}", 3)
        return values

    @property
    def exact(self) -> bool:
        """Whether the values of all metrics are exact."""
        state = self._whole(self._accumulator.flush())
        with own_arithmetic():
            return all(metric.is_exact(*metric._chosen(state)) for metric in self._metrics.values())

    @property
    def inputs(self) -> tuple[str, ...]:
        """The canonical names of the columns that `update` takes, without the weight."""
        return tuple(dict.fromkeys(name for m in self._metrics.values() for name in m.inputs))

    @property
    def _kinds(self) -> dict[str, Kind]:
        """The kind of each input: label, id or number."""
        found: dict[str, Kind] = {WEIGHT: "number", COUNTS: "number"}
        for schema in self._plan.schemas:
            for name, kind in schema.kinds.items():
                found[name] = max(kind, found.get(name, kind), key=KINDS.index)
        return found

    def _over(self, accumulator: Accumulator) -> Self:
        """Return a set of the same configuration that updates and reads `accumulator`."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.columns, twin._told = dict(self.columns), False
        twin._accumulator, twin._viewed = accumulator, None
        return twin

    def _only(self, names: Iterable[str]) -> Self:
        """Return a set that reads these metrics alone, from the rows of this one."""
        twin = self._over(self._accumulator)
        twin._metrics = {name: self._metrics[name] for name in names}
        return twin

    def _chosen_feeds(self, state: State) -> Sequence[RowInfo]:
        return state.infos

    @property
    def _types(self) -> tuple[type, ...]:
        return tuple({type(metric): None for metric in self._metrics.values()})

    @property
    def _identity(self) -> object:
        metrics = tuple((name, metric._key) for name, metric in self._metrics.items())
        return metrics, sorted(self.columns.items())

    def _titled(self) -> str:
        return f"a MetricSet of {len(self)} metric{'s' * (len(self) != 1)}"

    def _differing(self, other: object) -> str:
        if {type(self).__name__, type(other).__name__} == {"MetricSet", "UnitSet"}:
            mine, theirs = (getattr(each, "unit", None) for each in (self, other))
            return f" (unit is {theirs!r} there and {mine!r} here)"
        return super()._differing(other)

    def _apart(self, other: Self) -> str:
        parts = told_apart(self._metrics, other._metrics)
        if other.columns != self.columns:
            parts.append(f"columns are {other.columns} there and {self.columns} here")
        return "; ".join(parts) or "the metrics are in another order"

    def _configuration(self) -> dict[str, object]:
        """Return the configuration as written to a file, before the row information."""
        members = [
            {"name": name, **metric._configuration()} for name, metric in self._metrics.items()
        ]
        return {"class": registered_name(type(self)), "columns": self.columns, "metrics": members}

    def _summary(self) -> dict[str, object]:
        metrics = {name: metric._titled() for name, metric in self._metrics.items()}
        return {**self._configuration(), "metrics": metrics}

    @classmethod
    def _configured(cls, meta: Mapping[str, object]) -> Self:
        """Return an empty set from the result of `_configuration`."""
        metrics, columns = members_written(meta.get("metrics")), meta.get("columns")
        if not isinstance(columns, dict) or not all(isinstance(t, str) for t in columns.values()):
            raise StateFormatError("the state does not say which columns the set reads")
        try:
            return cls(metrics, columns=columns)
        except ValueError as error:
            raise StateFormatError(f"these metrics cannot form a set: {error}") from error

    def __repr__(self) -> str:
        inside = ", ".join(
            f"{name!r}: {repr(metric).partition(' <')[0]}" for name, metric in self._metrics.items()
        )
        return f"MetricSet({{{inside}}}) <{self.n_rows:,} rows>"

    def _repr_html_(self) -> str:
        return html_of_set(self._metrics, self._accumulator.flush())

    def _views(self) -> dict[str, Metric]:
        """Return the metrics as views of this set's rows."""
        views = self._viewed
        if views is None:
            view = self._open_view()
            views = {name: metric._over(view) for name, metric in self._metrics.items()}
            self._viewed = views
        return views

    def _open_view(self) -> ReadOnly:
        """Return the accumulator that the views read."""
        return ReadOnly(self._accumulator)

    def keys(self) -> KeysView[str]:
        """Return the names of the metrics."""
        return self._metrics.keys()

    def values(self) -> ValuesView[Metric]:
        """Return read-only views of the metrics."""
        return self._views().values()

    def items(self) -> ItemsView[str, Metric]:
        """Return the names with read-only views of the metrics."""
        return self._views().items()

    def __getitem__(self, name: str) -> Metric:
        try:
            return self._views()[name]
        except KeyError:
            raise KeyError(f"no metric {name!r}{near(str(name), self._metrics)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    def flat(self, prefix: str = "") -> dict[str, float]:
        """Return all numbers in a flat dictionary, as experiment loggers expect.

        Values by class are named ``NAME/CLASS``. Curves and matrices are left out. See
        ``docs/training.md`` for MLflow, Weights & Biases, TensorBoard and Lightning.

        Args:
            prefix: Prefix of all names, such as ``"val/"``.

        Raises:
            ValueError: Two numbers have the same name, such as those of metrics ``"r"`` and
                ``"r/cat"``.

        Example:
            >>> import streammetrics as sm
            >>> suite = sm.MetricSet({"recall": sm.Recall(average=None), "acc": sm.Accuracy()})
            >>> suite.update(y_true=["a", "b", "b"], y_pred=["a", "b", "a"]).flat("val/")
            {'val/recall/a': 1.0, 'val/recall/b': 0.5, 'val/acc': 0.6666666666666666}
        """
        found: dict[str, float] = {}
        parts: Any = self.items()
        for name, part in parts:
            if isinstance(part, MetricSet):  # one for each model of a comparison
                numbers = part.flat(f"{prefix}{name}/")
            else:
                numbers = flat(f"{prefix}{name}", part.compute())
            if twice := numbers.keys() & found:
                raise ValueError(
                    f"two numbers of this set would be called {min(twice)!r}: rename one of the "
                    "metrics"
                )
            found |= numbers
        return found


def beside_a_table(columns: Mapping[str, object]) -> InvalidBatchError:
    """Return the error for columns passed in addition to a table."""
    for name in _AT_MAKING & columns.keys():
        return _made_with(name, columns[name])
    name = next(iter(columns))
    return InvalidBatchError(
        f"pass one table or columns by name, not both: beside the table there is {name!r}; it is "
        "read of the table where that has a column of this name, or of another one with "
        f"MetricSet(..., columns={{{name!r}: 'COLUMN'}})"
    )


def _made_with(name: str, value: object) -> InvalidBatchError:
    return InvalidBatchError(
        f"{name} is not a column: it is set once, when the set is made: "
        f"MetricSet(..., {name}={brief(value)}), whose update(table) takes the table alone"
    )


def columns_of(table: Foreign, parts: Mapping[str, tuple[str, ...]]) -> dict[str, ArrayLike]:
    """Return the column or matrix of a table for each of the user's names."""
    return {
        title: table[names[0]] if len(names) == 1 else Beside({name: table[name] for name in names})
        for title, names in parts.items()
    }
