"""What a rule is: what it reads of a live state, and how it judges what it read."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from streammetrics.core.columns.naming import near
from streammetrics.core.configured import Configured, configure, require, written
from streammetrics.core.errors import UndefinedMetricWarning, an
from streammetrics.core.metric_set import MetricSet
from streammetrics.live.reading import ALONE
from streammetrics.live.time import duration, shown_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from streammetrics.core.mergeable import Mergeable

Verdict = Literal["bad", "good", "between", "no data"]

_DURATIONS = frozenset({"window", "windows", "length", "for_", "after"})  # among the parameters


class Moment(NamedTuple):
    """What a rule found at the end of a window."""

    end: int  # nanoseconds
    verdict: Verdict
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    rows: int = 0
    told: str = ""


class Reading(NamedTuple):
    """A metric of a window."""

    value: float
    low: float
    high: float
    rows: int

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return not (math.isnan(self.low) or math.isnan(self.high))


class Rule(Configured, ABC):
    """A rule of an alert, with its parameters checked and fixed.

    Rules that are equal have equal parameters. `name` tells one from others to people and machines.
    """

    name: str = ""

    def _configure(self, **parameters: object) -> None:
        """Set the parameters, durations as text of one form.

        Each rule has a constructor of its own, as people write it.
        """
        kept = {
            name: self._shortened(value, name) if name in _DURATIONS else value
            for name, value in parameters.items()
        }
        configure(self, (), kept)

    def _shortened(self, value: Any, name: str) -> object:
        """Return a duration as it is kept, or several; one that may be missing may be so."""
        default = self._parameters[name].given
        if isinstance(default, tuple):
            return tuple(shown_duration(duration(each, name)) for each in value)
        if value is None and default is None:
            return None
        return shown_duration(duration(value, name))

    @property
    def title(self) -> str:
        """The name, or else what the rule says."""
        return self.name or self._says()

    @abstractmethod
    def _says(self) -> str:
        """Return what the rule says in a few words."""

    @property
    def reach(self) -> int:
        """How long it has to be bad before the alert fires, in nanoseconds."""
        return 0

    def check(self, suite: Mergeable) -> None:
        """Raise `ValueError` where the rule asks for what a suite does not have."""

    @abstractmethod
    def moments(self, view: Any) -> Callable[[], list[Moment]]:
        """Return what finds moments, the oldest first, as far back as panes are kept.

        All that is needed of the view is read before this returns.
        """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({written(self)})"


class WindowRule(Rule):
    """A rule that judges windows, each by itself, one after the other.

    Args:
        for_: How long it has to be bad before the alert fires; ``None``: not at all.
        after: How long after its end a window is judged. ``None``: until nothing more is expected
            in it, see `Live.alerts`. A shorter time tells earlier, of what is there by then.
    """

    counted: ClassVar[bool] = False  # windows of what became of predictions, and not of metrics

    min_rows: int = 1
    for_: str | None = None
    after: str | None = None

    @property
    @abstractmethod
    def lengths(self) -> tuple[int, ...]:
        """How long the windows are that are judged together, in nanoseconds."""

    @property
    def reach(self) -> int:
        """How long it has to be bad, in nanoseconds."""
        return 0 if self.for_ is None else duration(self.for_, "for_")

    def check_parameters(self) -> None:
        """Check the number of rows."""
        require(self, "min_rows", self.min_rows >= 1, "1 or more")

    @abstractmethod
    def judge(self, end: int, windows: tuple[object, ...]) -> Moment:
        """Return what the windows that end at a time come to."""

    def part(self, suite: Mergeable) -> Mergeable:
        """Return what of a suite is judged: all of it, or one metric."""
        return suite

    def moments(self, view: Any) -> Callable[[], list[Moment]]:
        """Judge the windows of all panes."""
        found: Callable[[], list[Moment]] = view.judged(self)
        return found


class MetricRule(WindowRule):
    """A rule that judges a metric over windows."""

    metric: str

    def part(self, suite: Mergeable) -> Mergeable:
        """Return the metric."""
        found: Mergeable = metric_of(suite, self.metric)
        return found

    @abstractmethod
    def compare(self, end: int, readings: tuple[Reading, ...]) -> Moment:
        """Return what a metric's readings over the windows come to."""

    def judge(self, end: int, windows: tuple[object, ...]) -> Moment:
        """Read the metric."""
        return self.compare(end, tuple(reading_of(window, self.metric) for window in windows))

    def check(self, suite: Mergeable) -> None:
        """Check that there is such a metric."""
        metric_of(suite, self.metric)


def metric_of(suite: Mergeable, name: str) -> Any:
    """Return a metric of a suite.

    Raises:
        ValueError: It has none of that name; the message says which it has.
    """
    names: Iterable[str] = suite if isinstance(suite, MetricSet) else (ALONE,)
    if name not in names:
        raise ValueError(f"there is no metric {name!r}{near(name, names)}")
    return suite[name] if isinstance(suite, MetricSet) else suite


def reading_of(metric: Any, name: str) -> Reading:
    """Return what a metric of a window, which has a name, is.

    Raises:
        ValueError: Its value is no number.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        value = metric.compute()
        low, high = (value, value) if metric.exact else metric.bounds()
    if not isinstance(value, int | float | np.number):
        told = f"{name} is no number but {an(type(value).__name__)}: watch one of its parts"
        raise ValueError(told)  # noqa: TRY004 - it is the name that is wrong
    return Reading(float(value), float(low), float(high), int(metric.n_rows))
