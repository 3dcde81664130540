"""The front door: a metric is statistics and a readout."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np

from streammetrics.core.accumulator import Accumulator, ReadOnly
from streammetrics.core.columns.batch import Batch
from streammetrics.core.configured import Configured
from streammetrics.core.errors import (
    IncompatibleMetricsError,
    UndefinedMetricWarning,
)
from streammetrics.core.stateful import Stateful

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streammetrics.core.statistic import Statistic


S = TypeVar("S", bound=Stateful)


class Interval(NamedTuple):
    """Two values that certainly hold the exact one between them; equal when it is known."""

    low: Any
    high: Any


class Mergeable(Stateful):
    """What a metric and a set of metrics have in common: everything but the reading."""

    _accumulator: Accumulator | ReadOnly

    @property
    @abstractmethod
    def _identity(self) -> Any:
        """What must be equal in two mergeable objects."""

    def feed(self, columns: Mapping[str, Any], renamed: Mapping[str, str] | None = None) -> Self:
        """Take columns by name: what every `update` comes down to."""
        self._accumulator.update(Batch(columns, renamed))
        return self

    def merge(self, *others: Self) -> Self:
        """Take what `others` have seen, in place, and return this object.

        Raises `IncompatibleMetricsError`, and changes nothing, where a configuration differs.
        """
        for other in others:
            if not self.alike(other):
                raise IncompatibleMetricsError(
                    f"cannot merge {other!r} into {self!r}: the configurations differ"
                )
        self._accumulator.merge([other._accumulator for other in others])
        return self

    def alike(self, other: object) -> bool:
        """Whether another object is of the same class and configuration."""
        return type(other) is type(self) and other._identity == self._identity

    @abstractmethod
    def alone(self) -> Accumulator:
        """Return an independent accumulator of this object's statistics, at its present state."""

    @abstractmethod
    def over(self, accumulator: Accumulator) -> Self:
        """Return an object of the same configuration over another accumulator."""

    def copy(self) -> Self:
        """Return an independent object of the same configuration and state."""
        return self.over(self.alone())

    def reset(self) -> Self:
        """Forget all rows; the configuration stays."""
        self._accumulator.clear()
        return self

    @property
    def n_rows(self) -> int:
        """Rows seen, without those of weight zero and those omitted."""
        return max((feed.n_rows for feed in self._feeds), default=0)

    @property
    def n_omitted(self) -> int:
        """Rows left out because a value was missing, under ``nan_policy="omit"``."""
        return max((feed.n_omitted for feed in self._feeds), default=0)

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        return sum(statistic.nbytes for statistic in self._accumulator.flush().statistics)

    @property
    def _feeds(self) -> Any:
        return self._accumulator.feeds


class Metric(Configured, Mergeable):
    """A value read from statistics of the rows seen.

    A subclass declares its parameters as annotated class attributes, names its statistics and
    reads them; ``nan_policy`` is ``"raise"`` or ``"omit"``, see `n_omitted`.
    """

    # A ClassVar would be kept by every dataclass, and go along where one is pickled by value.
    registry = dict[str, type["Metric"]]()  # noqa: RUF012 - see above

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.register()

    @classmethod
    def register(cls) -> None:
        """Let states of this class be read."""
        Metric.registry[registered_name(cls)] = cls

    def __post_init__(self) -> None:
        super().__post_init__()
        statistics = self.statistics()
        self._attach(Accumulator(statistics), statistics)

    def _attach(
        self, accumulator: Accumulator | ReadOnly, statistics: tuple[Statistic, ...]
    ) -> None:
        keys = [statistic.key for statistic in accumulator.flush().statistics]
        self._accumulator = accumulator
        self._reads = tuple(keys.index(statistic.key) for statistic in statistics)

    @abstractmethod
    def statistics(self) -> tuple[Statistic, ...]:
        """Return new, empty statistics: those that `readout` reads, in its order."""

    @abstractmethod
    def readout(self, *statistics: Any) -> Any:
        """Return the value of the statistics."""

    def interval(self, *statistics: Any) -> Interval:
        """Return what certainly holds the exact value; by default the readout is exact."""
        value = self.readout(*statistics)
        return Interval(value, value)

    def is_exact(self, *statistics: Any) -> bool:  # noqa: ARG002 - for those that depend on it
        """Whether the readout is the exact value; by default it is."""
        return True

    @abstractmethod
    def update(self, *args: Any, **kwargs: Any) -> Self:
        """Take a batch of rows; each family has its own signature."""

    def compute(self) -> Any:
        """Return the metric of all rows seen; ``nan`` with a warning where it is undefined."""
        value = self.readout(*self._read())
        if _undefined(value):
            why = "no rows were seen" if self.n_rows == 0 else "the rows seen do not define it"
            warnings.warn(
                f"{type(self).__name__} is nan: {why}", UndefinedMetricWarning, stacklevel=2
            )
        return value

    def bounds(self) -> Interval:
        """Return an interval that certainly holds the exact value."""
        return self.interval(*self._read())

    @property
    def exact(self) -> bool:
        """Whether `compute` is the exact value."""
        return self.is_exact(*self._read())

    def _read(self) -> tuple[Statistic, ...]:
        statistics = self._accumulator.flush().statistics
        return tuple(statistics[index] for index in self._reads)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that `update` takes, without the weight."""
        return tuple(dict.fromkeys(n for s in self._read() for n in s.schema.inputs))

    @property
    def _feeds(self) -> Any:
        sources, feeds = self._accumulator.sources, self._accumulator.feeds
        return [feeds[sources[index]] for index in self._reads]

    @property
    def _types(self) -> tuple[type, ...]:
        return (type(self),)

    @property
    def _identity(self) -> Any:
        return self.key

    def alone(self) -> Accumulator:
        """Return an accumulator of this metric's statistics only, at its present state."""
        return self._accumulator.part(self.statistics())

    def over(self, accumulator: Accumulator | ReadOnly) -> Self:
        """Return a metric of the same configuration that reads `accumulator`."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._attach(accumulator, self.statistics())
        return twin

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shown()}) <{self.n_rows:,} rows>"


def registered_name(cls: type) -> str:
    """Return the name under which states name a class: short for the package's own."""
    module = cls.__module__
    if module.partition(".")[0] == __name__.partition(".")[0]:
        return cls.__name__
    if module == "__mp_main__":  # a script, as processes that it spawns call it
        module = "__main__"
    return f"{module}.{cls.__qualname__}"


def _undefined(value: Any) -> bool:
    if isinstance(value, float):
        return value != value  # noqa: PLR0124 - the test for nan
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and bool(np.isnan(value).any())
    if isinstance(value, dict):
        return any(map(_undefined, value.values()))
    return isinstance(value, tuple) and any(map(_undefined, value))


def merge(metrics: Iterable[S]) -> S:
    """Return a new metric, set or ledger that has seen what all of `metrics` have, untouched.

    Raises:
        IncompatibleMetricsError: Their classes or configurations differ.
        ValueError: There are none.

    Example:
        >>> import streammetrics as sm
        >>> sm.merge([sm.Mean().update([1.0, 2.0]), sm.Mean().update([6.0])]).compute()
        3.0
    """
    every = list(metrics)
    if not every:
        raise ValueError("there is nothing to merge: pass at least one metric")
    return every[0].copy().merge(*every[1:])
