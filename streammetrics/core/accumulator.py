"""Thread-safe accumulation: each distinct statistic is updated once a batch, all or none."""

from __future__ import annotations

import os
import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from streammetrics.core import tuning
from streammetrics.core.columns.batch import COUNTS
from streammetrics.core.confidence import without_units
from streammetrics.core.errors import (
    FloatingPointModeError,
    IncompatibleMetricsError,
    InvalidBatchError,
    StreamMetricsError,
)
from streammetrics.core.floating import check_arithmetic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Rows
    from streammetrics.core.confidence import ConfidenceInterval
    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.feeding.states import RefusedRows, State


class Locked:
    """An owner of a lock.

    The lock is reentrant because a signal handler, a finalizer or a user's array may re-enter the
    object in the thread that holds it, where a plain lock would deadlock. A forked process replaces
    the lock: the thread that held it does not exist there, and would never release it.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _OWNERS.add(self)


_OWNERS: weakref.WeakSet[Locked] = weakref.WeakSet()


def _unlock() -> None:
    for owner in list(_OWNERS):
        owner._lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_unlock)


class _Change:
    """A change made during another one: the state it added (None for a reset), and the next one."""

    __slots__ = ("added", "next")
    added: State | None
    next: _Change


class Accumulator(Locked):
    """The state of a plan, replaced in one assignment by the holder of the lock.

    Small batches are validated and buffered. Their rows reach the statistics together with later
    ones, or when the state is read. A statistic depends only on the multiset of rows, so buffering
    affects nothing but the time of an update.

    Rows are validated before the lock is taken, because columns are the user's objects and may run
    any code. The states of other accumulators are also taken before it, so that no thread holds two
    locks. A long change first flushes the buffered rows, so that other threads can read without the
    lock in the meantime.
    """

    __slots__ = ("_changing", "_last", "_state", "plan")
    # The column with the unit of each row, if rows are kept by unit.
    unit: str | None = None
    by_unit: Callable[..., ConfidenceInterval] = staticmethod(without_units)

    def __init__(self, plan: Plan, state: State | None = None) -> None:
        super().__init__()
        self.plan = plan
        self._changing: object = None  # the lock while a change is running, else None
        self._last = _Change()  # filled in by the next change that runs during another one
        self._state = plan.start if state is None else state

    def __reduce__(self) -> tuple[object, ...]:
        return Accumulator, (self.plan, self.flush())

    def update(self, batch: Batch) -> None:
        """Add a batch; on an error the state is unchanged."""
        check_arithmetic()
        plan, batch.copied = self.plan, tuning.STAGED_ROWS
        if batch.has(COUNTS):
            try:
                self.take(plan.repeated(batch))
            except IncompatibleMetricsError as error:  # more rows than can be counted
                raise InvalidBatchError(error.problem, hint=error.hint) from None
            return
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
        """Add the states of others; on an error the state is unchanged."""
        theirs = [other.part(self.plan) for other in others]
        self._change_long(lambda state: self.plan.merged(state, theirs))

    def blank(self) -> Accumulator:
        """Return an empty accumulator of the same plan."""
        return Accumulator(self.plan)

    def seen(self) -> State:
        """Return the current state, including its buffered rows."""
        return self._state

    def take(self, state: State) -> None:
        """Add the state of a `blank` accumulator after one batch; on an error nothing changes."""
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
        """Update the statistics with the buffered rows; return the state.

        Raises:
            InvalidBatchError: A statistic refused rows that its schema had accepted. They are
                dropped; the state holds all other rows.
            Exception: Raised by something else in the meantime, such as a signal handler for a
                timeout. All rows are in the state.
        """
        state = self._state
        if state.buffered is None:
            return state
        with self._lock:
            try:
                return self._change(self.plan.fed)
            except (MemoryError, FloatingPointModeError):  # not an error in the rows
                raise
            except Exception:  # a user's statistic or a signal handler may raise anything
                self._sift()
                raise  # the rows are fine: the error came from elsewhere

    def _sift(self) -> None:
        """Update the statistics with the buffered rows they accept; raise if they refuse any."""
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
        """Replace the state by the result of `change`.

        A signal handler, a finalizer or a user's statistic may re-enter this object, to change and
        read it. A nested change counts as the earlier one: what it added is merged into the new
        state, which is valid because states commute. However often that happens, the long part of
        the work is done once, or twice if the state is reset.
        """
        start, lock = self.plan.start, self._lock
        with lock:
            inside, self._changing = self._changing is lock, lock
            try:
                at, before = self._last, self._state
                after, alone = change(before), None
                if inside:
                    alone, mine, resets = change(start), _Change(), change == self._forget
                # CPython runs no signal handler between the loop's last check and the last
                # assignment.
                while self._last is not at:
                    before, added, at = self._state, at.added, at.next
                    try:
                        if added is None:
                            after = alone = change(start) if alone is None else alone
                        else:
                            after = self.plan.joined(after, added)
                    except StreamMetricsError:  # this change contradicts the nested one
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
        """Return the current state of some of the statistics, without buffered rows."""
        return self.plan.part(self.flush(), plan)


class ReadOnly:
    """The accumulator of a set, as seen by its metrics: readable, but updated only by the set."""

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
