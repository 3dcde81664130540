"""Statistics fed from one stream by any number of threads: each distinct one once, all or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NoReturn

from streammetrics.core import tuning
from streammetrics.core.confidence import without_units
from streammetrics.core.errors import (
    IncompatibleMetricsError,
    InvalidBatchError,
    StreamMetricsError,
)
from streammetrics.core.locks import Locked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Rows
    from streammetrics.core.confidence import ConfidenceInterval
    from streammetrics.core.feeding.layout import Layout
    from streammetrics.core.feeding.states import RefusedRows, State


class Accumulator(Locked):
    """The state of a layout, replaced in one assignment by whoever holds the lock.

    A small batch is validated and kept; its rows reach the statistics together with later ones,
    or when the state is read. Statistics are functions of the multiset of rows, so this cannot be
    seen, except in the time that a small update takes.

    Threads: rows are validated before the lock is taken, as columns are the user's own objects,
    which may do anything. The states of others are taken before it too, so that no thread holds
    two locks. A long change starts with no rows staged: meanwhile others read without the lock.
    """

    __slots__ = ("_state", "layout")
    by_unit: ClassVar[Callable[..., ConfidenceInterval]] = staticmethod(without_units)

    def __init__(self, layout: Layout, state: State | None = None) -> None:
        super().__init__()
        self.layout = layout
        self._state = layout.start if state is None else state

    def __reduce__(self) -> tuple[object, ...]:
        return Accumulator, (self.layout, self.flush())

    def update(self, batch: Batch) -> None:
        """Take a batch, or raise and be as before."""
        layout = self.layout
        layout.prepare(batch)
        n = len(batch.column(layout.required[0]).values)
        if layout.nested:
            n = batch.bulk
        if n > tuning.BATCH_ROWS:
            for name in (*layout.required, *layout.optional):
                if name in layout.required or batch.has(name):
                    batch.column(name)
            self._change_long(lambda state: layout.with_slices(state, batch))
            return
        self._add(layout.read(batch), n)

    def _add(self, rows: tuple[Rows, ...], n: int) -> None:
        layout = self.layout
        if n > tuning.STAGED_ROWS or (layout.can_refuse and layout.may_refuse(self._state, rows)):
            self._change_long(lambda state: layout.with_rows(state, rows))
            return
        if self._state.pending >= tuning.STAGED_ROWS:
            self.flush()
        self._change(lambda state: layout.with_staged(state, rows, n))

    def merge(self, others: Sequence[Accumulator | ReadOnly]) -> None:
        """Take what the others have seen, or raise and be as before."""
        theirs = [other.part(self.layout) for other in others]
        self._change_long(lambda state: self.layout.merged(state, theirs))

    def blank(self) -> Accumulator:
        """Return an empty accumulator of the same layout."""
        return Accumulator(self.layout)

    def seen(self) -> State:
        """Return the present state as it is, rows that are staged in it included."""
        return self._state

    def take(self, state: State) -> None:
        """Take the single batch that a `blank` accumulator has seen, or raise and be as before."""
        if state.staged is not None:
            self._add(state.staged.rows, state.pending)
            return
        try:
            self._change_long(lambda mine: self.layout.merged(mine, [state]))
        except IncompatibleMetricsError as error:
            raise InvalidBatchError(str(error)) from None

    def clear(self) -> None:
        """Forget all rows."""
        self._change(lambda _: self.layout.start)

    def flush(self) -> State:
        """Bring kept rows to the statistics; return the state.

        Raises:
            InvalidBatchError: A statistic refused rows which its schema had accepted. They have
                been dropped, and the state is that of all others.
            Exception: What something else raised meanwhile, as a signal's handler does for a
                timeout. All rows are in the state.
        """
        state = self._state
        if state.staged is None:
            return state
        with self._lock:
            try:
                return self._change(self.layout.fed)
            except MemoryError:  # the rows are not to blame
                raise
            except Exception:  # of whatever kind: it is a user's statistic, or a signal's handler
                self._sift()
                raise  # no rows raise it

    def _sift(self) -> None:
        """Bring those kept rows to the statistics that these take; raise where some are not."""
        refused: list[RefusedRows] = []

        def sifted(state: State) -> State:
            after, refused[:] = self.layout.sifted(state)
            return after

        self._change(sifted)
        if refused:
            raise InvalidBatchError("; ".join(map(str, refused))) from refused[0].error

    def _change_long(self, change: Callable[[State], State]) -> State:
        with self._lock:
            self.flush()
            return self._change(change)

    def _change(self, change: Callable[[State], State]) -> State:
        with self._lock:
            before, after = None, self._state
            while before is not self._state:  # a signal's handler may change it in between
                before = self._state
                after = change(before)
            self._state = after
        return after

    def part(self, layout: Layout) -> State:
        """Return the present state of some of the statistics, with no rows staged."""
        return self.layout.part(self.flush(), layout)


class ReadOnly:
    """An accumulator that belongs to a set: it can be read, only the set can feed it."""

    __slots__ = ("flush", "layout", "part")
    by_unit: ClassVar[Callable[..., ConfidenceInterval]] = staticmethod(without_units)

    def __init__(self, of: Accumulator) -> None:
        self.layout, self.flush, self.part = of.layout, of.flush, of.part

    def _refuse(self, *_: object) -> NoReturn:
        raise StreamMetricsError(
            "this metric is a view into a MetricSet: update, merge and reset the set, "
            "or take a copy()"
        )

    update = merge = clear = blank = take = seen = _refuse
