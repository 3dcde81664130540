"""The base classes of objects with a state, and of metrics and sets of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self

from streammetrics.core.accumulator import Accumulator, ReadOnly
from streammetrics.core.columns.batch import Batch
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError, an
from streammetrics.core.feeding.plan import (
    Plan,
    described,
    filled,
)
from streammetrics.core.receipts import receipt_of
from streammetrics.core.registry import class_named, public, register, registered_name
from streammetrics.core.results.hooks import reported
from streammetrics.core.state.container import ROWS, brief, opened, packed
from streammetrics.core.state.files import write_whole
from streammetrics.core.types import Arrays, V_co

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from streammetrics.core.types import Array, Arrays, Document

    # The description in a file, the arrays, and the opening.
    Description = tuple[Document, dict[str, Array], str]


class Stateful(ABC):
    """An object fully described by `to_bytes()`: its configuration and state.

    These are metrics, sets, and containers of them such as a ledger. `from_bytes` finds a class by
    its registered name; `_describe` and `_rebuild` define the contents of the file.
    """

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        register(cls)

    @abstractmethod
    def _describe(self) -> Description:
        """Return the description of this object with its class first, its arrays, and an opening.

        The opening, if not empty, is `opened` of the configuration, which includes the class.
        """

    @classmethod
    @abstractmethod
    def _rebuild(cls, meta: Mapping[str, object], arrays: Arrays) -> Self:
        """Rebuild the described object, after validating all of its description."""

    @property
    def _later(self) -> tuple[str, ...]:
        """The names in a file of fields that files of older versions may lack."""
        return ()

    def _configuration(self) -> Document:
        """Return the description without what is known of rows."""
        return {}

    @abstractmethod
    def merge(self, *others: Self) -> Self:
        """Add the rows of `others` in place, and return this object."""

    @abstractmethod
    def copy(self) -> Self:
        """Return an independent object of the same configuration and state."""

    @property
    @abstractmethod
    def _types(self) -> tuple[type, ...]:
        """The classes of metrics that must be defined to read the state."""

    def to_bytes(self) -> bytes:
        """Serialize the state: versioned, checksummed, free of code, and equal for equal rows."""
        return packed(*self._describe())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_bytes()` to a file atomically: `load` finds the old state or the new one.

        The state is written to a hidden file in the same folder, flushed to disk and renamed. A
        hidden file left by a killed process is deleted by the next save. Symbolic links are
        followed.

        Raises:
            OSError: The file cannot be written; an existing one is unchanged.
        """
        write_whole(path, packed(*self._describe()))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return packed(*self._describe()) == packed(*other._describe())

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __reduce__(self) -> tuple[object, ...]:
        return pickled(self._types, packed(*self._describe()))


def pickled(types: tuple[type, ...], blob: bytes) -> tuple[object, ...]:
    """Return the pickle of an object with a state: its bytes, and the user's own classes.

    Listing a class makes pickle import its module. Classes of the package are found by name.
    """
    return public("from_bytes"), (blob, *[cls for cls in types if "." in registered_name(cls)])


def registered(name: object) -> type[Any]:
    """Return the class with this name in files, or raise `StateFormatError` if it is unknown."""
    cls = class_named(name) if isinstance(name, str) else None
    if cls is None:
        module = name.rpartition(".")[0] if isinstance(name, str) else ""
        can_type = module != "__main__" and all(map(str.isidentifier, module.split(".")))
        typed = f" (on the command line: --import {module})" if can_type else ""
        raise StateFormatError(
            f"the state is of {an(name) if isinstance(name, str) else brief(name)}, which is not "
            f"defined here: import its module first{typed}, or read it with the version of "
            "streammetrics that wrote it"
        )
    return cls


if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    # Only type checkers see the default, as in `streammetrics.core.types`.
    from typing_extensions import TypeVar

    from streammetrics.core.feeding.states import RowInfo, State
    from streammetrics.core.mergeable import Description
    from streammetrics.core.types import Options

    # The type of what a ledger or a live store merges.
    M_co = TypeVar("M_co", covariant=True, bound="Mergeable", default="Mergeable")
else:
    from typing import TypeVar

    M_co = TypeVar("M_co", covariant=True)

S = TypeVar("S", bound="Merging")


class Mergeable(Stateful, Generic[V_co]):
    """The common base class of metrics and sets of metrics: everything except reading values."""

    _accumulator: Accumulator | ReadOnly
    _plan: Plan  # own statistics; the accumulator of a view has those of its set

    @property
    @abstractmethod
    def _identity(self) -> object:
        """The key that must be equal for two objects to be merged."""

    def feed(self, columns: Mapping[str, object], renamed: Mapping[str, str] | None = None) -> Self:
        """Add a batch of columns by name; every `update` calls this."""
        self._accumulator.update(Batch(columns, renamed))
        return self

    def batch(self, *args: object, **kwargs: object) -> V_co:
        """Add a batch as `update` does, and return the value of its rows alone.

        Takes the arguments of `update`. Nothing changes if the batch is invalid or its value cannot
        be read. If the value is undefined for its rows, it is NaN, with a warning.

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
        """Write an HTML report with values, confidence limits and plots to a single file.

        The file contains no scripts and loads nothing from other hosts. It is written atomically.
        Requires the extra ``report``.

        Args:
            path: The file; an existing one is replaced.
            title: Title of the report.
            confidence: Level of the confidence limits.

        Raises:
            ImportError: Matplotlib or Jinja is not installed.
            OSError: The file cannot be written.
        """
        reported(self, path, title=title, confidence=confidence)

    def receipt(self) -> Options:
        """Return a receipt that identifies this result, for a paper or a pull request.

        It is a dictionary for JSON with the configuration, the number of rows, the version of the
        package, the kernels in use, and the SHA-256 of `to_bytes()`, which is also that of a saved
        file. Equal rows give equal bytes, and therefore the same hash. ``streammetrics verify``
        compares a receipt with a saved state.

        Example:
            >>> import streammetrics as sm
            >>> one = sm.Mean().update([1.0, 2.0, 3.0])
            >>> again = sm.Mean().update([3.0, 1.0]).update([2.0])
            >>> one.receipt()["sha256"] == again.receipt()["sha256"]
            True
            >>> one.receipt()["rows"], one.receipt()["configuration"]
            (3, {'metric': 'Mean()'})
        """
        twin = self.copy()  # a snapshot, for consistent rows and bytes
        return receipt_of(
            packed(*twin._describe()),
            twin._summary(),
            rows=twin.n_rows,
            omitted=twin.n_omitted,
        )

    @abstractmethod
    def _summary(self) -> Options:
        """Return the configuration for a receipt; defaults are left out."""

    @abstractmethod
    def update(self, *args: Any, **kwargs: Any) -> Self:
        """Add a batch of rows."""

    @abstractmethod
    def compute(self) -> V_co:
        """Return the value for all rows seen."""

    @abstractmethod
    def bounds(self) -> Any:
        """Return guaranteed limits of the exact value."""

    @abstractmethod
    def _computed(self, state: State, depth: int = 3) -> V_co:
        """Return the value of a state; `depth` is the ``stacklevel`` of warnings."""

    def merge(self, *others: Self) -> Self:
        """Add the rows of `others` to this object in place, and return it.

        Raises `IncompatibleMetricsError`, without any change, if a configuration differs.
        """
        for other in others:
            self._require_alike(other, "merge {} into {}")
        self._accumulator.merge([other._accumulator for other in others])
        return self

    def without(self, other: Self) -> Self:
        """Return a new object of the rows of this one without those of `other`.

        The state is, byte for byte, that of never having seen the rows. This object and `other` do
        not change. Two facts stay those of all rows where the state does not tell: that labels are
        integers, if only booleans are left; and the negative label of metrics of a loss alone, if
        only positive rows are left.

        Args:
            other: An object of the same configuration that has seen the rows to be taken back, and
                no others.

        Raises:
            IncompatibleMetricsError: The configuration differs; rows of `other` are not among the
                rows here, as far as the state shows; or the state does not determine what is left,
                such as an extreme that the rows may have set, a histogram beyond its budget, or
                documents of a ranking. The message says which.

        Example:
            >>> import streammetrics as sm
            >>> whole = sm.Mean().update([1.0, 2.0, 6.0])
            >>> left = whole.without(sm.Mean().update([6.0]))
            >>> left == sm.Mean().update([1.0, 2.0]), whole.n_rows
            (True, 3)
        """
        self._require_alike(other, "take {} out of {}")
        plan = self._plan
        mine, theirs = (each._accumulator.part(plan) for each in (self, other))
        return self._at(plan.without(mine, theirs))

    def _alike(self, other: object) -> bool:
        """Whether another object is of the same class and configuration."""
        return type(other) is type(self) and other._identity == self._identity

    def _require_alike(self, other: object, what: str) -> None:
        if not self._alike(other):
            done = what.format(_titled(other), _titled(self))
            differing = self._differing(other)
            raise IncompatibleMetricsError(f"cannot {done}: the configurations differ{differing}")

    def _differing(self, other: object) -> str:
        """Describe the differences from another object, as the end of a message."""
        return f" ({self._apart(other)})" if type(other) is type(self) else ""

    @abstractmethod
    def _apart(self, other: Self) -> str:
        """Describe the differences from another object of this class."""

    @abstractmethod
    def _titled(self) -> str:
        """Return the class and the parameters as short text."""

    def _alone(self) -> Accumulator:
        """Return an independent accumulator of this object's statistics, in their current state."""
        return Accumulator(self._plan, self._accumulator.part(self._plan))

    @abstractmethod
    def _chosen_feeds(self, state: State) -> Sequence[RowInfo]:
        """Return the row information of this object's schemas in a state of its accumulator."""

    @abstractmethod
    def _over(self, accumulator: Accumulator) -> Self:
        """Return an object of the same configuration with another accumulator."""

    @abstractmethod
    def _configuration(self) -> Options:
        """Return the configuration as written to a file before the row information; class first."""

    @classmethod
    @abstractmethod
    def _configured(cls, meta: Mapping[str, object]) -> Self:
        """Return an empty object from the result of `_configuration`."""

    @property
    def _later(self) -> tuple[str, ...]:
        return tuple(
            f"{index}/{name}"
            for index, statistic in enumerate(self._plan.start.statistics)
            for name in statistic._later
        )

    def _describe(self) -> Description:
        """Return the row information, the arrays of the statistics, and the opening of a file."""
        rows, arrays = described(self._accumulator.part(self._plan))
        opening: str | None = self.__dict__.get("_opening")
        if opening is None:
            opening = self.__dict__["_opening"] = opened(self._configuration())
        return {ROWS: rows}, arrays, opening

    @classmethod
    def _rebuild(cls, meta: Mapping[str, object], arrays: Arrays) -> Self:
        """Rebuild the described object; every array must be used."""
        return cls._configured(meta)._refilled(meta, arrays)

    def _refilled(self, meta: Mapping[str, object], arrays: Arrays) -> Self:
        return self._at(filled(self._plan, meta.get(ROWS), arrays))

    def _blank(self) -> Self:
        return self._at(self._plan.start)

    def _at(self, state: State) -> Self:
        """Return an object of the same configuration with another state."""
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
        """The number of rows seen, without rows of weight zero and omitted rows."""
        return self._n_rows(self._accumulator.flush())

    def _n_rows(self, state: State) -> int:
        return max((feed.n_rows for feed in self._chosen_feeds(state)), default=0)

    @property
    def n_omitted(self) -> int:
        """The number of omitted rows: missing value (``nan_policy="omit"``), or ignored label."""
        infos = self._chosen_feeds(self._accumulator.flush())
        return max((feed.n_omitted for feed in infos), default=0)

    @property
    def nbytes(self) -> int:
        """The size of the state in bytes."""
        return sum(statistic.nbytes for statistic in self._accumulator.flush().statistics)


def _titled(what: object) -> str:
    return what._titled() if isinstance(what, Mergeable) else f"{an(type(what).__name__)}"


class Merging(Protocol):
    """The methods that `merge` requires: those of metrics, sets, ledgers and others."""

    def copy(self) -> Self:
        """Return an independent object."""

    def merge(self, *others: Self) -> Self:
        """Add the rows of others, and return this object."""


def merge(metrics: Iterable[S]) -> S:
    """Merge metrics, sets or ledgers into a new object; those of `metrics` stay unchanged.

    Raises:
        IncompatibleMetricsError: Their classes or configurations differ.
        TypeError: The argument is not a list of metrics, sets or ledgers.
        ValueError: The list is empty.

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
            raise TypeError(
                f"item {place} to merge is not a metric, set or ledger but of type {kind}"
            )
    return every[0].copy().merge(*every[1:])
