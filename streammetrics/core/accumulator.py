"""Statistics fed from one stream by any number of threads: each distinct one once, all or none."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NoReturn

from streammetrics.core import tuning
from streammetrics.core.confidence import without_units
from streammetrics.core.errors import (
    FloatingPointModeError,
    IncompatibleMetricsError,
    InvalidBatchError,
    StreamMetricsError,
)
from streammetrics.core.floating import check_arithmetic
from streammetrics.core.locks import Locked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Rows
    from streammetrics.core.confidence import ConfidenceInterval
    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.feeding.states import RefusedRows, State


class _Change:
    """A change in the middle of another: what it added, None for a reset, and the next one."""

    __slots__ = ("added", "next")
    added: State | None
    next: _Change


class Accumulator(Locked):
    """The state of a plan, replaced in one assignment by whoever holds the lock.

    A small batch is validated and kept; its rows reach the statistics together with later ones,
    or when the state is read. Statistics are functions of the multiset of rows, so this cannot be
    seen, except in the time that a small update takes.

    Threads: rows are validated before the lock is taken, as columns are the user's own objects,
    which may do anything. The states of others are taken before it too, so that no thread holds
    two locks. A long change starts with no rows buffered: meanwhile others read without the lock.
    """

    __slots__ = ("_changing", "_last", "_state", "plan")
    # The column that says what unit each row is of, where these are kept apart.
    unit: str | None = None
    by_unit: Callable[..., ConfidenceInterval] = staticmethod(without_units)

    def __init__(self, plan: Plan, state: State | None = None) -> None:
        super().__init__()
        self.plan = plan
        self._changing: object = None  # the lock, while a change is made that it guards
        self._last = _Change()  # what the next one in the middle of another is written to
        self._state = plan.start if state is None else state

    def __reduce__(self) -> tuple[object, ...]:
        return Accumulator, (self.plan, self.flush())

    def update(self, batch: Batch) -> None:
        """Take a batch, or raise and be as before."""
        check_arithmetic()
        plan, batch.copied = self.plan, tuning.STAGED_ROWS
        rows = plan.whole(batch)
        if rows is not None:
            self._add((rows,), rows.n)
            return
        plan.prepare(batch)
        n = len(batch.column(plan.required[0]).values)
        if plan.nested:
            n = batch.bulk
        if n > tuning.BATCH_ROWS:
            for name in (*plan.required, *plan.optional):
                if name in plan.required or batch.has(name):
                    batch.column(name)
            self._change_long(lambda state: plan.with_slices(state, batch))
            return
        self._add(plan.read(batch), n)

    def _add(self, rows: tuple[Rows, ...], n: int) -> None:
        plan = self.plan
        if n > tuning.STAGED_ROWS or (plan.can_refuse and plan.may_refuse(self._state, rows)):
            self._change_long(lambda state: plan.with_rows(state, rows))
            return
        buffered = self._state.buffered
        if buffered is not None and buffered.size >= tuning.STAGED_ROWS:
            self.flush()
        self._change(partial(plan.with_buffered, rows=rows, n=n))

    def merge(self, others: Sequence[Accumulator | ReadOnly]) -> None:
        """Take what the others have seen, or raise and be as before."""
        theirs = [other.part(self.plan) for other in others]
        self._change_long(lambda state: self.plan.merged(state, theirs))

    def blank(self) -> Accumulator:
        """Return an empty accumulator of the same plan."""
        return Accumulator(self.plan)

    def seen(self) -> State:
        """Return the present state as it is, rows that are buffered in it included."""
        return self._state

    def take(self, state: State) -> None:
        """Take the single batch that a `blank` accumulator has seen, or raise and be as before."""
        if state.buffered is not None:
            self._add(state.buffered.rows, state.pending)
            return
        try:
            self._change_long(lambda mine: self.plan.merged(mine, [state]))
        except IncompatibleMetricsError as error:
            raise InvalidBatchError(error.problem, hint=error.hint) from None

    def clear(self) -> None:
        """Forget all rows."""
        self._change(self._forget)

    def flush(self) -> State:
        """Bring kept rows to the statistics; return the state.

        Raises:
            InvalidBatchError: A statistic refused rows which its schema had accepted. They have
                been dropped, and the state is that of all others.
            Exception: What something else raised meanwhile, as a signal's handler does for a
                timeout. All rows are in the state.
        """
        state = self._state
        if state.buffered is None:
            return state
        with self._lock:
            try:
                return self._change(self.plan.fed)
            except (MemoryError, FloatingPointModeError):  # the rows are not to blame
                raise
            except Exception:  # of whatever kind: it is a user's statistic, or a signal's handler
                self._sift()
                raise  # no rows raise it

    def _sift(self) -> None:
        """Bring those kept rows to the statistics that these take; raise where some are not."""
        refused: list[RefusedRows] = []

        def sifted(state: State) -> State:
            if state.buffered is None:
                return state
            after, refused[:] = self.plan.sifted(state)
            return after

        self._change(sifted)
        if refused:
            raise InvalidBatchError("; ".join(map(str, refused))) from refused[0].error

    def _change_long(self, change: Callable[[State], State]) -> State:
        with self._lock:
            self.flush()
            return self._change(change)

    def _change(self, change: Callable[[State], State]) -> State:
        """Replace the state by what `change` makes of it.

        A signal's handler, a finalizer or a user's statistic may come back to this object in the
        middle, to change and read it. That counts as having happened before: what it added is
        added to the new state, as states commute, so the long part of the work is done once, or
        twice where it resets the state, however often it comes back.
        """
        start, lock = self.plan.start, self._lock
        with lock:
            inside, self._changing = self._changing is lock, lock
            try:
                at, before = self._last, self._state
                after, alone = change(before), None
                if inside:
                    alone, mine, resets = change(start), _Change(), change == self._forget
                # From the check that ends the loop to the last assignment, Python runs no handler.
                while self._last is not at:
                    before, added, at = self._state, at.added, at.next
                    try:
                        if added is None:
                            after = alone = change(start) if alone is None else alone
                        else:
                            after = self.plan.joined(after, added)
                    except StreamMetricsError:  # this change contradicts the one in its middle
                        at, before = self._last, self._state
                        after = change(before)
                if inside:
                    at.added = None if resets else alone
                    at.next = self._last = mine
                self._state = after
            finally:
                if not inside:
                    self._changing = None
        return after

    def _forget(self, _: State) -> State:
        return self.plan.start

    def part(self, plan: Plan) -> State:
        """Return the present state of some of the statistics, with no rows buffered."""
        return self.plan.part(self.flush(), plan)


class ReadOnly:
    """An accumulator that belongs to a set: it can be read, only the set can feed it."""

    __slots__ = ("by_unit", "flush", "part", "plan", "unit")
    by_unit: Callable[..., ConfidenceInterval]
    unit: str | None

    def __init__(self, of: Accumulator) -> None:
        self.plan, self.flush, self.part = of.plan, of.flush, of.part
        self.unit, self.by_unit = of.unit, of.by_unit

    def _refuse(self, *_: object) -> NoReturn:
        raise StreamMetricsError(
            "this metric is a view into a MetricSet: update, merge and reset the set, "
            "or take a copy()"
        )

    update = merge = clear = blank = take = seen = _refuse
