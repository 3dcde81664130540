"""The front door: a metric is statistics and a readout."""

from __future__ import annotations

import copy
import inspect
import math
import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Self, dataclass_transform

import numpy as np

from streammetrics.core.accumulator import Accumulator, ReadOnly
from streammetrics.core.confidence import ConfidenceRequest, confidence_of, unit_of, unsure
from streammetrics.core.configured import (
    configuration,
    configure,
    declared,
    differing,
    takes,
    written,
)
from streammetrics.core.errors import (
    StateFormatError,
    UndefinedMetricWarning,
    an,
)
from streammetrics.core.feeding.plan import Plan
from streammetrics.core.floating import check_arithmetic, own_arithmetic, quiet
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.parameters import Parameter  # noqa: TC001 - type hints are read
from streammetrics.core.registry import registered_name
from streammetrics.core.representation import drawn_of, html_of, line_of
from streammetrics.core.results.values import Interval
from streammetrics.core.types import V_co

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from streammetrics.core.confidence import ConfidenceInterval, Unit
    from streammetrics.core.feeding.states import RowInfo, State
    from streammetrics.core.groups import GroupedStates
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Bools, Floats, Options


class GroupValues(NamedTuple):
    """A metric of many groups: each value, an array where all are floats; where to warn."""

    values: Floats | Sequence[Any]
    doubtful: Bools


@dataclass_transform(kw_only_default=True, eq_default=False)
class Metric(Mergeable[V_co], Generic[V_co]):
    """A value read from statistics of the rows seen.

    A subclass declares its parameters as annotated public attributes, with the constraints of
    `streammetrics.core.constraints` in the annotations, names its statistics and reads them;
    ``nan_policy`` is ``"raise"`` or ``"omit"``, see `n_omitted`. ``Metric[float]`` is one whose
    `compute` is a float.
    """

    _parameters: ClassVar[dict[str, Parameter]] = {}
    _key: tuple[object, ...]

    # Facts about the value. A class with a formula of its own states them anew; see `_reset_facts`.
    # Whether a larger value is that of a better model; None where neither is.
    higher_is_better: ClassVar[bool | None] = None
    # The smallest and the largest value possible; None where this is not known.
    value_range: ClassVar[tuple[float, float] | None] = None
    # Which rule of `inference` gives confidence limits, or a `Refusal`; None where there is none.
    family: ClassVar[str | None] = None
    # Why the value is ``nan`` of rows that do not define it, where there is one reason only.
    _nan_reason: ClassVar[str] = ""
    # Whether `readout` also takes statistics whose fields are arrays over groups, and returns one.
    _reads_groups: ClassVar[bool] = False
    # Why a `Comparison` cannot take the metric; empty where it can.
    _incomparable: ClassVar[str] = ""

    # The methods that make the value.
    _formula: ClassVar[tuple[str, ...]] = ("readout",)
    # What holds for one formula only.
    _facts: ClassVar[tuple[str, ...]] = (
        "higher_is_better",
        "value_range",
        "family",
        "_incomparable",
        "_nan_reason",
        "_lacking",
        "_of_groups",
        "_reads_groups",
        "interval",
    )

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls._parameters = declared(cls)
        _reset_facts(cls)

    def __init__(self, *args: object, **parameters: object) -> None:
        configure(self, args, parameters)
        self._plan = Plan.known(self._key, self.statistics)
        self._attach(Accumulator(self._plan))

    def _attach(self, accumulator: Accumulator | ReadOnly) -> None:
        self._accumulator = accumulator
        plan = accumulator.plan
        if plan is self._plan:
            self._reads, self._feeds = tuple(range(len(plan.sources))), plan.sources
        else:
            self._reads = tuple([plan.places[key] for key in self._plan.places])
            self._feeds = tuple([plan.sources[place] for place in self._reads])

    def check_parameters(self) -> None:
        """Raise `ValueError` where parameters, each of which may be so, do not fit together."""

    @property
    def config(self) -> Options:
        """The parameters and their values, in the order of declaration."""
        return configuration(self)

    @abstractmethod
    def statistics(self) -> tuple[Statistic, ...]:
        """Return new, empty statistics: those that `readout` reads, in its order."""

    @abstractmethod
    def readout(self, *statistics: Any) -> V_co:
        """Return the value of the statistics."""

    def interval(self, *statistics: Any) -> Interval[V_co]:
        """Return what certainly holds the exact value; by default the range if it is not exact."""
        value = self.readout(*statistics)
        if self.is_exact(*statistics):
            return Interval(value, value)
        low, high = self.value_range or (-math.inf, math.inf)
        return Interval(_filled(value, low), _filled(value, high))

    def is_exact(self, *statistics: Any) -> bool:  # noqa: ARG002 - for those that depend on it
        """Whether the readout is the exact value; by default it is."""
        return True

    @abstractmethod
    def update(self, *args: Any, **kwargs: Any) -> Self:
        """Take a batch of rows; each family has its own signature."""

    def compute(self) -> V_co:
        """Return the metric of all rows seen; ``nan`` with a warning where it is undefined."""
        return self._computed(self._accumulator.flush())

    def _computed(self, state: State, depth: int = 3) -> V_co:
        value, doubt = self._judged_state(state)
        if doubt:
            warnings.warn(
                f"{type(self).__name__} {doubt}", UndefinedMetricWarning, stacklevel=depth
            )
        return value

    @quiet
    def _judged_state(self, state: State) -> tuple[V_co, str]:
        """Return the readout, and what `compute` warns of, also where there are no rows."""
        check_arithmetic()
        value, doubt = self._judged(*self._chosen(state))
        no_rows = doubt and not self._n_rows(state)
        return value, f"is nan: {self._no_rows()}" if no_rows else doubt

    def _judged(self, *statistics: Any) -> tuple[V_co, str]:
        """Return the readout, and what `compute` warns of, which is nothing where it is defined."""
        value = self.readout(*statistics)
        return value, self._why_nan(value, *statistics)

    def _of_groups(self, *forms: GroupedStates) -> GroupValues | None:
        """Return what `_judged` says of many states at once; ``None``: they are read in turn.

        Of each statistic the states of all groups are given.
        """
        if not self._reads_groups:
            return None
        statistics = [form.together() for form in forms]
        if None in statistics:
            return None
        values = self.readout(*statistics)
        if not isinstance(values, np.ndarray):
            return None
        return GroupValues(values, np.isnan(values))

    def _no_rows(self) -> str:
        """Return why there is no value before any row counts."""
        weighted = any(not schema.unweighted for schema in self._plan.schemas)
        return "no rows were seen" + (", or all of them had weight 0" if weighted else "")

    def _lacking(self, *statistics: Any) -> str:  # noqa: ARG002 - for those that know
        """Return what the rows lack for a value, as far as is known."""
        return self._nan_reason

    def _why_nan(self, value: object, *statistics: Any) -> str:
        """Return why a value is ``nan``, and nothing where it is not."""
        if (type(value) is float and value == value) or not has_nan(value):  # noqa: PLR0124 - no nan
            return ""
        return f"is nan: {self._lacking(*statistics) or 'the rows seen do not define it'}"

    def bounds(self) -> Interval[V_co]:
        """Return an interval that certainly holds the exact value."""
        with own_arithmetic():
            return self.interval(*self._read())

    def confidence(
        self, level: float = 0.95, *, anytime: bool = False, unit: Unit = ...
    ) -> ConfidenceInterval:
        """Return limits that hold the value of the population the rows are a sample of.

        Not the certain `bounds`, by which they are widened where the value itself is not exact:
        of a hundred samples, five have limits that miss at 0.95. ``docs/confidence.md`` says which
        interval each metric has, and how often it holds.

        Args:
            level: In which share of all samples the limits hold.
            anytime: Whether they are to hold at all times at once, so that one may look after
                every batch and stop at will: wider, and for rates and means of what is bounded.
            unit: What is sampled: by default the `unit` of the set that this metric belongs to, if
                it has one; ``None``: rows.

        Raises:
            ValueError: The metric is of no set that keeps such units.
            NoConfidenceError: The metric has no such limits, or the state not what they need.

        Example:
            >>> import streammetrics as sm
            >>> low, high = sm.Accuracy().update([0, 1, 1, 0], [0, 1, 1, 1]).confidence(0.95)
            >>> round(low, 3), round(high, 3)
            (0.301, 0.954)
        """
        of = unit_of(unit, self._accumulator.unit)
        if of is not None:
            return self._accumulator.by_unit(self, of, level, anytime=anytime)
        return self._confident(self._accumulator.flush(), level, anytime=anytime)

    def _confident(
        self, state: State, level: float, *, anytime: bool, depth: int = 3
    ) -> ConfidenceInterval:
        n_rows, statistics = self._n_rows(state), self._chosen(state)
        return self._limits(n_rows, statistics, level, anytime=anytime, depth=depth + 1)

    def _limits(
        self,
        n_rows: int,
        statistics: Sequence[Statistic],
        level: float,
        *,
        anytime: bool = False,
        depth: int = 3,
    ) -> ConfidenceInterval:
        """Return the confidence limits of statistics of so many rows."""
        try:
            with own_arithmetic():
                interval = confidence_of(
                    self, ConfidenceRequest(level, anytime, n_rows), *statistics
                )
        except ArithmeticError:  # too large, or too small, to be divided
            interval = unsure(level, "sums, or counts, beyond what a float64 holds")
        if has_nan(interval):
            why = "its rows do not tell how it varies" if n_rows else "no rows were seen"
            warnings.warn(
                f"{type(self).__name__} has limits that are nan: {why} ({interval.method})",
                UndefinedMetricWarning,
                stacklevel=depth,
            )
        return interval

    def plot(
        self,
        ax: object = None,
        *,
        kind: str | None = None,
        confidence: float | None = None,
        **style: object,
    ) -> Axes:
        """Draw what the value is read from, and return Matplotlib's axes.

        Curves, tables and values by query are drawn as they are, an area as the curve it is under,
        a quantile as all quantiles. What certainly holds the exact value is a solid band. It needs
        the extra ``plot``; ``docs/pictures.md`` shows the pictures.

        Args:
            ax: Axes to draw on; by default those of a new figure.
            kind: Which picture, where there are several.
            confidence: The level of confidence limits to draw beside, a light band.
            **style: What Matplotlib takes for the main line or mark.

        Raises:
            ImportError: Matplotlib is not installed.
            TypeError: There is no such picture of this metric.
        """
        with own_arithmetic():
            return drawn_of(
                self, self._accumulator.flush(), ax, kind=kind, confidence=confidence, style=style
            )

    def _pictured(self) -> Metric:
        """Return the metric of the same statistics whose value the picture is; by default this."""
        return self

    def _shape(self, *statistics: Any) -> Any:
        """Return what is drawn of the statistics; by default the readout."""
        return self.readout(*statistics)

    @property
    def exact(self) -> bool:
        """Whether `compute` is the exact value."""
        with own_arithmetic():
            return self.is_exact(*self._read())

    def _read(self) -> tuple[Statistic, ...]:
        return self._chosen(self._accumulator.flush())

    def _chosen(self, state: State) -> tuple[Statistic, ...]:
        if self._accumulator.plan is self._plan:  # all of them, in this order
            return state.statistics
        return tuple([state.statistics[place] for place in self._reads])

    def _chosen_feeds(self, state: State) -> Sequence[RowInfo]:
        return [state.infos[source] for source in self._feeds]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that `update` takes, without the weight."""
        return tuple(dict.fromkeys(n for s in self._plan.schemas for n in s.inputs))

    @property
    def _types(self) -> tuple[type, ...]:
        return (type(self),)

    @property
    def _identity(self) -> Any:
        return self._key

    def _over(self, accumulator: Accumulator | ReadOnly) -> Self:
        """Return a metric of the same configuration that reads `accumulator`."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._attach(accumulator)
        return twin

    def _configuration(self) -> Options:
        """Return what a file says of the metric before its rows."""
        return {"class": registered_name(type(self)), "parameters": self.config}

    @classmethod
    def _configured(cls, meta: Mapping[str, object]) -> Self:
        """Return an empty metric of what `_configuration` said."""
        parameters = meta.get("parameters")
        if not isinstance(parameters, dict) or not takes(cls, parameters):
            raise StateFormatError(f"these are not the parameters of {an(cls.__name__)}")
        try:
            return cls(**parameters)
        except ValueError as error:
            raise StateFormatError(f"the parameters are not those of a metric: {error}") from error

    def __repr__(self) -> str:
        with own_arithmetic():
            return line_of(self, self._accumulator.flush())

    def _apart(self, other: Self) -> str:
        return differing(self, other)

    def _summary(self) -> Options:
        return {"metric": self._titled()}

    def _titled(self) -> str:
        return f"{type(self).__name__}({written(self)})"

    def _repr_html_(self) -> str:
        with own_arithmetic():
            return html_of(self, self._accumulator.flush())


def _reset_facts(cls: type[Metric]) -> None:
    """Drop the inherited facts about the value where a class makes the value in its own way.

    What a base says that leaves a method of the formula to its classes holds whatever they make of
    it, and so is kept.
    """
    parent, *_ = above = [each for each in cls.__mro__[1:] if issubclass(each, Metric)]
    own = [name for name in cls._formula if _found(cls, name) is not _found(parent, name)]
    own = [name for name in own if _found(parent, name) is not None]
    if not own:
        return
    left = {name: [_found(each, name) for each in above if hasattr(each, name)][-1] for name in own}
    base = next(
        each for each in above if all(_found(each, name) in {left[name], None} for name in own)
    )
    for fact in cls._facts:
        if _found(cls, fact) is _found(parent, fact) and fact not in vars(cls):
            setattr(cls, fact, _found(base, fact))


def _found(cls: type[Metric], name: str) -> Any:
    return inspect.getattr_static(cls, name, None)


def _filled(value: Any, end: float) -> Any:
    """Return a value of the same shape whose defined numbers are all `end`."""
    if isinstance(value, int | float):
        return value if value != value else end  # noqa: PLR0124 - the test for nan
    if isinstance(value, np.ndarray):
        filled = value.astype(np.float64)
        filled[~np.isnan(filled)] = end
        return filled
    whole = copy.copy(value)
    if isinstance(value, dict):
        whole.update({key: _filled(each, end) for key, each in value.items()})
        return whole
    parts = [_filled(each, end) for each in value]
    return value._make(parts) if hasattr(value, "_make") else type(value)(parts, value.labels)


def has_nan(value: object) -> bool:
    """Whether a value, or a number in it, is ``nan``."""
    if isinstance(value, float):
        return value != value  # noqa: PLR0124 - the test for nan
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and bool(np.isnan(value).any())
    if isinstance(value, dict):
        return any(map(has_nan, value.values()))
    return isinstance(value, tuple) and any(map(has_nan, value))
