"""The base class of metrics: statistics and a readout of them."""

from __future__ import annotations

import copy
import inspect
import math
from abc import abstractmethod
from collections.abc import Mapping  # noqa: TC003 - an annotation of a class is read at run time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    Self,
    TypeVar,
    cast,
    dataclass_transform,
    overload,
)

import numpy as np

from streammetrics.core.accumulator import Accumulator, ReadOnly
from streammetrics.core.authored import check_class, check_statistics, if_added_later
from streammetrics.core.confidence import (
    ConfidenceRequest,
    check_method_of_rows,
    confidence_of,
    unit_of,
    unsure,
)
from streammetrics.core.configured import (
    Parameter,
    check_constructor,
    configuration,
    configure,
    declared,
    differing,
    written,
)
from streammetrics.core.errors import (
    StateFormatError,
    an,
    warn_undefined,
)
from streammetrics.core.feeding.plan import Plan
from streammetrics.core.floating import check_arithmetic, own_arithmetic, quiet
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.registry import registered_name
from streammetrics.core.representation import drawn_of, html_of, line_of
from streammetrics.core.results.values import Interval
from streammetrics.core.types import Choice, V_co

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Never

    from matplotlib.axes import Axes

    from streammetrics.core.confidence import ConfidenceInterval, Unit
    from streammetrics.core.feeding.states import RowInfo, State
    from streammetrics.core.results.values import LabelledArray
    from streammetrics.core.statistic import GroupedStates, Statistic
    from streammetrics.core.types import Bools, Floats, Options


S = TypeVar("S")
T = TypeVar("T")


class GroupValues(NamedTuple):
    """Values of a metric for many groups (an array if all are floats); where to warn of NaN."""

    values: Floats | Sequence[Any]
    doubtful: Bools


def dependent(read: Callable[[Any], T]) -> T:
    """Make a property of a method that returns a fact about the value which depends on parameters.

    To type checkers it is the fact itself, so that a subclass may state another.
    """
    return cast("T", property(read))


@dataclass_transform(kw_only_default=True, eq_default=False)
class Metric(Mergeable[V_co], Generic[V_co]):
    """A value computed from statistics of the rows seen.

    A subclass declares its parameters as annotated public attributes, with the constraints of
    `streammetrics.core.constraints` in the annotations. It returns its statistics in `statistics`
    and computes the value in `readout`. ``nan_policy`` is ``"raise"`` or ``"omit"``; see
    `n_omitted`. ``Metric[float]`` is a metric whose `compute` returns a float.
    """

    _parameters: ClassVar[dict[str, Parameter]] = {}
    _key: tuple[object, ...]

    # Facts about the value. A class with its own formula must state them again; see `_reset_facts`.
    # Whether a larger value means a better model; None if neither larger nor smaller is better.
    higher_is_better: ClassVar[bool | None] = None
    # The smallest and the largest possible value; None if unknown.
    value_range: ClassVar[tuple[float, float] | None] = None
    # Name of the rule in `inference` for confidence limits, or a `Refusal`; None if there is none.
    family: ClassVar[str | None] = None
    # The reason why the value can be NaN, if there is only one.
    _nan_reason: ClassVar[str] = ""
    # Whether `readout` also accepts statistics whose fields are arrays over groups, and returns
    # one.
    _reads_groups: ClassVar[bool] = False
    # The reason why a `Comparison` cannot take the metric; empty if it can.
    _incomparable: ClassVar[str] = ""

    # Values of parameters that were added to the class after states had been written.
    state_defaults: ClassVar[Mapping[str, object]] = {}

    # The methods that define the value.
    _formula: ClassVar[tuple[str, ...]] = ("readout",)
    # Attributes that are only valid for one formula.
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
        check_constructor(cls)
        cls._parameters = declared(cls)
        check_class(cls)
        _reset_facts(cls)

    def __init__(self, *args: object, **parameters: object) -> None:
        configure(self, args, parameters)
        self._plan = Plan.known(self._key, lambda: check_statistics(self, self.statistics()))
        self._attach(Accumulator(self._plan))

    def __post_init__(self) -> None:
        """Raise `TypeError`: only the constructor of a dataclass calls this."""
        raise TypeError(
            f"{type(self).__name__} is a dataclass: leave the decorator out; annotated attributes "
            "of the class are its parameters"
        )

    def _attach(self, accumulator: Accumulator | ReadOnly) -> None:
        self._accumulator = accumulator
        plan = accumulator.plan
        if plan is self._plan:
            self._reads, self._feeds = tuple(range(len(plan.sources))), plan.sources
        else:
            self._reads = tuple([plan.places[key] for key in self._plan.places])
            self._feeds = tuple([plan.sources[place] for place in self._reads])

    def check_parameters(self) -> None:
        """Raise `ValueError` if parameters that are valid one by one do not fit together."""

    @property
    def config(self) -> Options:
        """The parameters and their values, in the order of declaration."""
        return configuration(self)

    @abstractmethod
    def statistics(self) -> tuple[Statistic, ...]:
        """Return new, empty statistics, in the order of the arguments of `readout`."""

    # Methods with ``**_`` may be overridden with any parameters, by the rules of type checkers.

    @abstractmethod
    def readout(self, *statistics: Any, **_: Any) -> V_co:
        """Return the value of the statistics."""

    def interval(self, *statistics: Any, **_: Any) -> Interval[V_co]:
        """Return guaranteed limits of the exact value; by default the range, unless it is exact."""
        value = self.readout(*statistics)
        if self.is_exact(*statistics):
            return Interval(value, value)
        low, high = self.value_range or (-math.inf, math.inf)
        return Interval(_filled(value, low), _filled(value, high))

    def is_exact(self, *statistics: Any, **_: Any) -> bool:
        """Whether the readout is the exact value; by default it is."""
        return True

    @abstractmethod
    def update(self, *args: Any, **kwargs: Any) -> Self:
        """Add a batch of rows; the signature depends on the family of metrics."""

    def compute(self) -> V_co:
        """Return the value for all rows seen; NaN, with a warning, if it is undefined."""
        return self._computed(self._accumulator.flush())

    def _computed(self, state: State, depth: int = 3) -> V_co:
        value, doubt = self._judged_state(state)
        if doubt:
            warn_undefined(f"{type(self).__name__} {doubt}", depth)
        return value

    @quiet
    def _judged_state(self, state: State) -> tuple[V_co, str]:
        """Return the readout, and the text of the warning of `compute` (empty for none)."""
        check_arithmetic()
        value, doubt = self._judged(*self._chosen(state))
        no_rows = doubt and not self._n_rows(state)
        return value, f"is nan: {self._no_rows()}" if no_rows else doubt

    def _judged(self, *statistics: Any) -> tuple[V_co, str]:
        """Return the readout, and why it is NaN (empty if it is defined)."""
        value = self.readout(*statistics)
        return value, self._why_nan(value, *statistics)

    def _of_groups(self, *forms: GroupedStates) -> GroupValues | None:
        """Return the result of `_judged` for many groups at once, given each statistic's groups.

        Returns ``None`` if they must be read one by one.
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
        """Return why there is no value if no row counts."""
        weighted = any(not schema.unweighted for schema in self._plan.schemas)
        return "no rows were seen" + (", or all of them had weight 0" if weighted else "")

    def _lacking(self, *statistics: Any) -> str:
        """Return what is missing from the rows for a defined value, if known."""
        return self._nan_reason

    def _why_nan(self, value: object, *statistics: Any) -> str:
        """Return why a value is NaN; empty if it is not."""
        if (type(value) is float and value == value) or not has_nan(value):  # noqa: PLR0124 - false for NaN
            return ""
        return f"is nan: {self._lacking(*statistics) or 'the rows seen do not define it'}"

    def bounds(self) -> Interval[V_co]:
        """Return guaranteed limits of the exact value."""
        with own_arithmetic():
            return self.interval(*self._read())

    def confidence(
        self,
        level: float = 0.95,
        *,
        method: str | None = None,
        anytime: bool = False,
        unit: Unit = ...,
    ) -> ConfidenceInterval[V_co]:
        """Return confidence limits for the value in the population that the rows are sampled from.

        They differ from the guaranteed `bounds`: of a hundred samples, the limits of about five
        miss the value at a level of 0.95. If the value itself is not exact, the limits are widened
        by `bounds`. See ``docs/confidence.md`` for the method of each metric and its coverage.

        Args:
            level: Share of samples whose limits contain the population value.
            method: ``None`` for the default, the method with the best coverage. A name gives limits
                as published, to reproduce a figure: ``"wilson"``, ``"clopper-pearson"`` or
                ``"wald"`` for shares of rows, ``"delong"`` or ``"delong-logit"`` for ROC AUC,
                ``"bootstrap"`` for values read from counts.
            anytime: Whether the limits hold at all times simultaneously, so that one may look after
                every batch and stop at will. They are wider, and exist for rates and for means of
                bounded values.
            unit: What is sampled: by default the `unit` of the metric's set, if it has one;
                ``None`` for rows.

        Raises:
            ValueError: The metric is not in a set that keeps rows by this unit, or there is no
                method of this name.
            NoConfidenceError: The metric has no such limits, or the state lacks the data for them.

        Example:
            >>> import streammetrics as sm
            >>> low, high = sm.Accuracy().update([0, 1, 1, 0], [0, 1, 1, 1]).confidence(0.95)
            >>> round(low, 3), round(high, 3)
            (0.301, 0.954)
        """
        of = unit_of(unit, self._accumulator.unit)
        if of is not None:
            check_method_of_rows(method, of)
            return self._accumulator.by_unit(self, of, level, anytime=anytime)
        return self._confident(self._accumulator.flush(), level, anytime=anytime, method=method)

    def _confident(
        self,
        state: State,
        level: float,
        *,
        anytime: bool,
        method: str | None = None,
        depth: int = 3,
    ) -> ConfidenceInterval:
        n_rows, statistics = self._n_rows(state), self._chosen(state)
        depth += 1
        return self._limits(n_rows, statistics, level, anytime=anytime, method=method, depth=depth)

    def _limits(
        self,
        n_rows: int,
        statistics: Sequence[Statistic],
        level: float,
        *,
        anytime: bool = False,
        method: str | None = None,
        depth: int = 3,
    ) -> ConfidenceInterval:
        """Return the confidence limits for statistics of `n_rows` rows."""
        try:
            with own_arithmetic():
                interval = confidence_of(
                    self, ConfidenceRequest(level, anytime, n_rows, method), *statistics
                )
        except ArithmeticError:  # overflow, or division by an underflowed number
            interval = unsure(level, "sums, or counts, beyond what a float64 holds")
        if has_nan(interval):
            why = "its rows do not tell how it varies" if n_rows else self._no_rows()
            warn_undefined(
                f"{type(self).__name__} has limits that are nan: {why} ({interval.method})", depth
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
        """Plot the data behind the value, and return Matplotlib's axes.

        Curves, tables and values by query are plotted as they are, an area as its curve, a quantile
        as all quantiles. A solid band shows guaranteed limits of the exact value. Requires the
        extra ``plot``; see ``docs/pictures.md`` for examples.

        Args:
            ax: Axes to draw on; by default those of a new figure.
            kind: Which plot, if there are several.
            confidence: Level of confidence limits, drawn as a light band.
            **style: Arguments of Matplotlib for the main line or mark.

        Raises:
            ImportError: Matplotlib is not installed.
            TypeError: The metric has no plot, or none of this kind.
        """
        with own_arithmetic():
            return drawn_of(
                self, self._accumulator.flush(), ax, kind=kind, confidence=confidence, style=style
            )

    def _pictured(self) -> Metric:
        """Return the metric of the same statistics whose value is plotted; by default this one."""
        return self

    def _shape(self, *statistics: Any) -> Any:
        """Return the object to plot; by default the readout."""
        return self.readout(*statistics)

    @property
    def exact(self) -> bool:
        """Whether `compute` returns the exact value."""
        with own_arithmetic():
            return self.is_exact(*self._read())

    def _read(self) -> tuple[Statistic, ...]:
        return self._chosen(self._accumulator.flush())

    def _chosen(self, state: State) -> tuple[Statistic, ...]:
        if self._accumulator.plan is self._plan:  # all statistics, in this order
            return state.statistics
        return tuple([state.statistics[place] for place in self._reads])

    def _chosen_feeds(self, state: State) -> Sequence[RowInfo]:
        return [state.infos[source] for source in self._feeds]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the columns that `update` takes, without the weight."""
        return tuple(dict.fromkeys(n for s in self._plan.schemas for n in s.inputs))

    @property
    def _types(self) -> tuple[type, ...]:
        return (type(self),)

    @property
    def _identity(self) -> object:
        return self._key

    def _over(self, accumulator: Accumulator | ReadOnly) -> Self:
        """Return a metric of the same configuration that reads `accumulator`."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._attach(accumulator)
        return twin

    def _configuration(self) -> Options:
        """Return the configuration as written to a file, before the row information."""
        return {"class": registered_name(type(self)), "parameters": self.config}

    @classmethod
    def _configured(cls, meta: Mapping[str, object]) -> Self:
        """Return an empty metric from the result of `_configuration`."""
        parameters = meta.get("parameters")
        if isinstance(parameters, dict):
            parameters = {**cls.state_defaults, **parameters}
        if not isinstance(parameters, dict):
            raise StateFormatError(f"these are not the parameters of {an(cls.__name__)}")
        if added := [name for name in cls._parameters if name not in parameters]:
            advice = if_added_later(cls, added[0], "...")
            raise StateFormatError(
                f"the state lacks the parameter {added[0]!r} of {cls.__name__}"
                f"{advice and f'{advice}, with its value until then'}"
            )
        if gone := [name for name in parameters if name not in cls._parameters]:
            raise StateFormatError(f"{cls.__name__} has no parameter {gone[0]!r}, as the state has")
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
    """Reset facts that belong to an inherited formula which the class overrides.

    If a class overrides the formula of its parent, facts that the parent stated about its own
    formula no longer apply. Facts of a base class that leaves a formula method abstract hold for
    any formula, and are kept.
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
        kept = fact in vars(cls) or _found(cls, fact) is not _found(parent, fact)
        if not kept and hasattr(base, fact):  # otherwise only the inherited formula uses it
            setattr(cls, fact, _found(base, fact))


def _found(cls: type[Metric], name: str) -> object:
    return inspect.getattr_static(cls, name, None)


if TYPE_CHECKING:

    class NumberOrArray(Generic[Choice]):
        """A base of metrics whose value is a number, or an array if a parameter asks for one.

        `Choice` is read from that parameter: ``average: Literal["macro"] | NoAverage`` makes it
        ``None`` for ``average=None``, and otherwise ``Never``, its default.
        """

        @overload
        def compute(self: NumberOrArray[Never]) -> float: ...  # type: ignore[overload-overlap]  # Never is no choice
        @overload
        def compute(self) -> LabelledArray: ...
        def compute(self) -> object:
            """Return the value, as `Metric.compute` does."""

        @overload
        def batch(self: NumberOrArray[Never], *args: object, **kwargs: object) -> float: ...  # type: ignore[overload-overlap]  # as above
        @overload
        def batch(self, *args: object, **kwargs: object) -> LabelledArray: ...
        def batch(self, *args: object, **kwargs: object) -> object:
            """Return the value of a batch, as `Metric.batch` does."""

        @overload
        def bounds(self: NumberOrArray[Never]) -> Interval[float]: ...  # type: ignore[overload-overlap]  # as above
        @overload
        def bounds(self) -> Interval[LabelledArray]: ...
        def bounds(self) -> object:
            """Return guaranteed limits of the exact value, as `Metric.bounds` does."""

        @overload
        def confidence(  # type: ignore[overload-overlap]  # as above
            self: NumberOrArray[Never],
            level: float = 0.95,
            *,
            method: str | None = None,
            anytime: bool = False,
            unit: Unit = ...,
        ) -> ConfidenceInterval[float]: ...
        @overload
        def confidence(
            self,
            level: float = 0.95,
            *,
            method: str | None = None,
            anytime: bool = False,
            unit: Unit = ...,
        ) -> ConfidenceInterval[LabelledArray]: ...
        def confidence(self, *_: object, **__: object) -> object:
            """Return confidence limits, as `Metric.confidence` does."""

else:
    NumberOrArray = Generic  # it has no code of its own


def _filled(value: Any, end: float) -> Any:
    """Return a value of the same shape with all numbers replaced by `end`; NaN is kept."""
    if isinstance(value, int | float):
        return value if value != value else end  # noqa: PLR0124 - tests for NaN
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
    """Whether a value is NaN or contains NaN."""
    if isinstance(value, float):
        return value != value  # noqa: PLR0124 - tests for NaN
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and bool(np.isnan(value).any())
    if isinstance(value, dict):
        return any(map(has_nan, value.values()))
    return isinstance(value, tuple) and any(map(has_nan, value))


_MADE: ContextVar[dict[int, tuple[object, Any]] | None] = ContextVar("_MADE", default=None)


@contextmanager
def read_together() -> Iterator[None]:
    """Cache the results of `made_once` until the end of the block."""
    before = _MADE.set({})
    try:
        yield
    finally:
        _MADE.reset(before)


def made_once(make: Callable[[S], T], of: S) -> T:
    """Return ``make(of)``, computed once within `read_together`; `of` must not change there."""
    made = _MADE.get()
    if made is None:
        return make(of)
    if id(of) not in made:
        made[id(of)] = of, make(of)  # keeping `of` alive prevents reuse of its id
    found: T = made[id(of)][1]
    return found
