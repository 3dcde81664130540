"""What a metric and a set of metrics have in common: everything but the reading."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from streammetrics.core.accumulator import Accumulator, ReadOnly
from streammetrics.core.columns.batch import Batch
from streammetrics.core.errors import IncompatibleMetricsError, an
from streammetrics.core.feeding.described import described, filled
from streammetrics.core.feeding.plan import Plan  # noqa: TC001 - type hints are read
from streammetrics.core.receipts import receipt_of
from streammetrics.core.results.hooks import reported
from streammetrics.core.state.container import ROWS, opened, packed
from streammetrics.core.stateful import Stateful
from streammetrics.core.types import Arrays, V_co

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from streammetrics.core.feeding.states import RowInfo, State
    from streammetrics.core.stateful import Description
    from streammetrics.core.types import Options


S = TypeVar("S", bound="Merging")


class Mergeable(Stateful, Generic[V_co]):
    """What a metric and a set of metrics have in common: everything but the reading."""

    _accumulator: Accumulator | ReadOnly
    _plan: Plan  # of this object's own statistics; a view's accumulator has those of its set

    @property
    @abstractmethod
    def _identity(self) -> Any:
        """What must be equal in two mergeable objects."""

    def feed(self, columns: Mapping[str, object], renamed: Mapping[str, str] | None = None) -> Self:
        """Take columns by name: what every `update` comes down to."""
        self._accumulator.update(Batch(columns, renamed))
        return self

    def batch(self, *args: object, **kwargs: object) -> V_co:
        """Take a batch as `update` does, and return the value of its rows alone.

        The arguments are those of `update`. Where the batch is refused or its value cannot be
        read, nothing has changed; a value that its rows do not define is ``nan`` with a warning.

        Example:
            >>> import streammetrics as sm
            >>> accuracy = sm.Accuracy()
            >>> accuracy.batch([0, 1], [0, 1]), accuracy.batch([1, 1], [0, 1])
            (1.0, 0.5)
            >>> accuracy.compute()
            0.75
        """
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._accumulator = self._accumulator.blank()
        twin.update(*args, **kwargs)
        state = twin._accumulator.seen()
        value = twin._computed(twin._accumulator.flush())
        self._accumulator.take(state)
        return value

    def report(
        self, path: str | os.PathLike[str], *, title: str = "", confidence: float = 0.95
    ) -> None:
        """Write a report for people: one HTML file with numbers, limits and pictures.

        It has no script and asks no host for anything; it needs the extra ``report``. The file is
        the old one or the new one at any moment.

        Args:
            path: Where to; an earlier file is replaced.
            title: What stands above it.
            confidence: The level of the confidence limits.

        Raises:
            ImportError: Matplotlib or Jinja is not installed.
            OSError: The file cannot be written.
        """
        reported(self, path, title=title, confidence=confidence)

    def receipt(self) -> Options:
        """Return what identifies this result, as JSON has it, for a paper or a pull request.

        It holds the configuration, the number of rows, the versions of the package and of the
        kernels, and the SHA-256 of `to_bytes()`, which is that of a file that `save` wrote. As
        equal rows give equal bytes, whoever evaluates the same rows gets the same hash.
        ``streammetrics verify`` compares a receipt with a saved state.

        Example:
            >>> import streammetrics as sm
            >>> one = sm.Mean().update([1.0, 2.0, 3.0])
            >>> again = sm.Mean().update([3.0, 1.0]).update([2.0])
            >>> one.receipt()["sha256"] == again.receipt()["sha256"]
            True
            >>> one.receipt()["rows"], one.receipt()["configuration"]
            (3, {'metric': 'Mean()'})
        """
        twin = self.copy()  # the rows and the bytes of one moment
        return receipt_of(
            packed(*twin._describe()),
            twin._summary(),
            rows=twin.n_rows,
            omitted=twin.n_omitted,
        )

    @abstractmethod
    def _summary(self) -> Options:
        """Return the configuration for people, without what is as it is by default."""

    @abstractmethod
    def update(self, *args: Any, **kwargs: Any) -> Self:
        """Take a batch of rows."""

    @abstractmethod
    def _computed(self, state: State, depth: int = 3) -> V_co:
        """Return the value of a state; warnings name the line so many calls up."""

    def merge(self, *others: Self) -> Self:
        """Take what `others` have seen, in place, and return this object.

        Raises `IncompatibleMetricsError`, and changes nothing, where a configuration differs.
        """
        for other in others:
            if not self._alike(other):
                raise IncompatibleMetricsError(
                    f"cannot merge {_titled(other)} into {_titled(self)}: "
                    f"the configurations differ{self._differing(other)}"
                )
        self._accumulator.merge([other._accumulator for other in others])
        return self

    def _alike(self, other: object) -> bool:
        """Whether another object is of the same class and configuration."""
        return type(other) is type(self) and other._identity == self._identity

    def _differing(self, other: object) -> str:
        """Return in what another object differs, as the end of a message."""
        return f" ({self._apart(other)})" if type(other) is type(self) else ""

    @abstractmethod
    def _apart(self, other: Any) -> str:
        """Return in what another object of this class differs."""

    @abstractmethod
    def _titled(self) -> str:
        """Return the class and the parameters, in a few words."""

    def _alone(self) -> Accumulator:
        """Return an independent accumulator of this object's statistics, at its present state."""
        return Accumulator(self._plan, self._accumulator.part(self._plan))

    @abstractmethod
    def _chosen_feeds(self, state: State) -> Sequence[RowInfo]:
        """Return what is known of this object's rows in a state of its accumulator."""

    @abstractmethod
    def _over(self, accumulator: Accumulator) -> Self:
        """Return an object of the same configuration over another accumulator."""

    @abstractmethod
    def _configuration(self) -> Options:
        """Return what a file says of this object before its rows, the class first."""

    @classmethod
    @abstractmethod
    def _configured(cls, meta: Mapping[str, object]) -> Self:
        """Return an empty object of what `_configuration` said."""

    def _describe(self) -> Description:
        """Return what a file says of the rows, the arrays of the statistics, and the opening."""
        rows, arrays = described(self._accumulator.part(self._plan))
        opening: str | None = self.__dict__.get("_opening")
        if opening is None:
            opening = self.__dict__["_opening"] = opened(self._configuration())
        return {ROWS: rows}, arrays, opening

    @classmethod
    def _rebuild(cls, meta: Mapping[str, object], arrays: Arrays) -> Self:
        """Return the object that was described; every array must be used."""
        return cls._configured(meta)._refilled(meta, arrays)

    def _refilled(self, meta: Mapping[str, object], arrays: Arrays) -> Self:
        return self._at(filled(self._plan, meta.get(ROWS), arrays))

    def _blank(self) -> Self:
        return self._at(self._plan.start)

    def _at(self, state: State) -> Self:
        """Return an object of the same configuration at another state."""
        return self._over(Accumulator(self._plan, state))

    def copy(self) -> Self:
        """Return an independent object of the same configuration and state."""
        return self._at(self._accumulator.part(self._plan))

    def reset(self) -> Self:
        """Forget all rows; the configuration stays."""
        self._accumulator.clear()
        return self

    @property
    def n_rows(self) -> int:
        """Rows seen, without those of weight zero and those omitted."""
        return self._n_rows(self._accumulator.flush())

    def _n_rows(self, state: State) -> int:
        return max((feed.n_rows for feed in self._chosen_feeds(state)), default=0)

    @property
    def n_omitted(self) -> int:
        """Rows left out: a value was missing (``nan_policy="omit"``), or the label is ignored."""
        infos = self._chosen_feeds(self._accumulator.flush())
        return max((feed.n_omitted for feed in infos), default=0)

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        return sum(statistic.nbytes for statistic in self._accumulator.flush().statistics)


def _titled(what: object) -> str:
    return what._titled() if isinstance(what, Mergeable) else f"{an(type(what).__name__)}"


class Merging(Protocol):
    """What `merge` asks of an object: metrics, sets, ledgers and more have it."""

    def copy(self) -> Self:
        """Return an independent object."""

    def merge(self, *others: Self) -> Self:
        """Take what others have seen, and return this object."""


def merge(metrics: Iterable[S]) -> S:
    """Return a new metric, set or ledger that has seen what all of `metrics` have, untouched.

    Raises:
        IncompatibleMetricsError: Their classes or configurations differ.
        TypeError: These are no metrics, or one that does not stand in a list.
        ValueError: There are none.

    Example:
        >>> import streammetrics as sm
        >>> sm.merge([sm.Mean().update([1.0, 2.0]), sm.Mean().update([6.0])]).compute()
        3.0
    """
    if isinstance(metrics, Stateful) or not isinstance(metrics, Iterable):
        raise TypeError("merge takes what it merges in a list: merge([a, b]), or a.merge(b)")
    every = list(metrics)
    if not every:
        raise ValueError("there is nothing to merge: pass at least one metric")
    for place, one in enumerate(every):
        if not isinstance(one, Stateful):
            kind = type(one).__name__
            raise TypeError(f"item {place} to be merged is no metric, set or ledger, but of {kind}")
    return every[0].copy().merge(*every[1:])
