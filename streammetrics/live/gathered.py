"""Events that wait in buffers, and how they are taken from there to the stream together."""

from __future__ import annotations

import weakref
from abc import abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING

from streammetrics.core.columns.conversion import as_column
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.floating import check_arithmetic
from streammetrics.live.buffer import Buffer
from streammetrics.live.checking import Checks, kinds_of, truth_of
from streammetrics.live.events import Events, SliceKeys, keys_of_checked, nanoseconds, packed
from streammetrics.live.rows import batch_of, columns_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.core.locks import Locked
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.types import Ints
    from streammetrics.live.config import Config
    from streammetrics.live.store import Keeper
    from streammetrics.live.stream import Stream


class Gathered:
    """Events that have come, by kind in buffers: the lock is held as they are taken."""

    _suite: Mergeable
    _config: Config
    _stream: Stream
    _guard: Locked
    _buffers: tuple[Buffer, ...] = ()
    _keeper: Keeper | None
    _held = ""  # what is done with the stream just now, by whom has the lock

    def _open(self) -> None:
        """Begin with empty buffers."""
        self._close_entries()
        self._closed = False
        as_column([0], "time")  # NumPy loads parts of it when first asked: no event waits for that
        self._truth = truth_of(self._suite)
        self._limit = 0.0  # seconds up to which times are known not to be ahead of the clock
        kinds = kinds_of(self._suite)
        mine, default = weakref.proxy(self), self._config.default_label
        # By a proxy, so that this object goes at once, with all it holds.
        checks = Checks(
            self._suite,
            kinds,
            lambda: mine._stream.panes.facts,
            default=default,
            declared=self._config.declared.check,
        )
        keys = SliceKeys(self._suite).kinds
        self._observed = Buffer("observe", checks.observed, kinds, ("time",), keys)
        self._predicted = Buffer("predict", checks.predicted, kinds, ("time", "id"), keys)
        self._labelled = Buffer("label", checks.labelled, kinds, ("time", "id", "version"))
        self._buffers = (self._observed, self._predicted, self._labelled)

    @abstractmethod
    def _came(self, events: Events, *, checked: bool) -> None:
        """Take events, or raise where they are not `checked` one by one; the lock is held."""

    def _close_entries(self) -> None:
        """Let no event in without a look at it; the lock is held."""
        for buffer in self._buffers:
            buffer.close()
            vars(self).pop(buffer.kind, None)

    @property
    def _is_durable(self) -> bool:
        """Whether events are in the store before they are in the state."""
        return self._keeper is not None and self._keeper.durable

    def _check_open(self) -> None:
        """Raise where no more events are taken."""
        if self._closed:
            raise StreamMetricsError("this Live is closed: it takes no more events")

    def _full(self, buffer: Buffer) -> None:
        """Bring the events that wait in a buffer on, as there are enough of them.

        What this leaves to do the next calls do before, a piece each, so that none takes long.
        """
        check_arithmetic()
        with self._guard._lock:
            if self._held:  # by whom this thread was interrupted, who goes on with it
                return
            with self._holding("taking"):
                if not self._stream.rest():
                    self._empty(buffer)
                    self._stream.release()

    def _drain(self) -> None:
        """Take the events that wait; the lock is held."""
        self._check_whole()
        check_arithmetic()
        if self._held:  # nothing has to change under who reads
            return
        with self._holding("taking"):
            for buffer in (self._predicted, self._labelled, self._observed):
                self._empty(buffer)
            self._stream.tidy()

    def _empty(self, buffer: Buffer) -> None:
        """Take the events that wait in one buffer; the lock is held."""
        stream = self._stream
        for (times, *heads), columns in buffer.taken():
            when = _instants(times)
            if buffer is self._observed:
                events = Events("observe", when, columns_of(batch_of(self._suite, columns)))
            elif buffer is self._predicted:
                events = Events(
                    "predict", when, stream.predicted(columns), keys_of_checked(heads[0])
                )
            else:
                keys, versions = keys_of_checked(heads[0]), packed(heads[1], "q")
                events = Events("label", when, stream.columns(columns), keys, versions)
            self._came(events, checked=True)

    def _check_whole(self) -> None:
        """Raise where this has interrupted its own thread as that took events; the lock is held."""
        if self._held == "taking":
            raise StreamMetricsError(
                "events are being taken in this thread, which was interrupted: a signal's handler "
                "may observe one by one, and reads in a thread of its own"
            )

    @contextmanager
    def _holding(self, held: str) -> Iterator[None]:
        """Say what is done with the stream; the lock is held, which this thread may take again."""
        before, self._held = self._held, held
        try:
            yield
        finally:
            self._held = before

    def _know(self, limit: float) -> None:
        """Learn up to which time events are not ahead of the clock."""
        with self._guard._lock:
            self._limit = limit
            for buffer in self._buffers:
                buffer.until(limit)


def _instants(seconds: Sequence[object]) -> Ints:
    return nanoseconds(packed(seconds, "d"))
