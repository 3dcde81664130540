"""How a live state survives: what came goes to a file, and what others wrote comes from it."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Self

from streammetrics.core.errors import IncompatibleMetricsError
from streammetrics.core.stateful import from_bytes
from streammetrics.live.form import bytes_of
from streammetrics.live.store import Image, Keeper, Store

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from streammetrics.core.locks import Locked
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.live.buffer import Buffer
    from streammetrics.live.config import Config
    from streammetrics.live.events import Events
    from streammetrics.live.stream import Stream


class Surviving:
    """The side of a live state that a keeper sees: the events that came, and the stream."""

    _suite: Mergeable
    _config: Config
    _stream: Stream
    _guard: Locked
    _buffers: tuple[Buffer, ...]
    _closed: bool
    _keeper: Keeper | None
    _arrived: list[Events]  # which are in the stream, and not yet in the store

    @abstractmethod
    def _start(self) -> Stream:
        """Return the stream before any event."""

    @abstractmethod
    def _drain(self) -> None:
        """Take the events that wait; the lock is held."""

    @abstractmethod
    def _check_whole(self) -> None:
        """Raise where this has interrupted its own thread as that took events."""

    @abstractmethod
    def _holding(self, held: str) -> AbstractContextManager[None]:
        """Say what is done with the stream; the lock is held."""

    @abstractmethod
    def _close_entries(self) -> None:
        """Let no event in without a look at it; the lock is held."""

    @abstractmethod
    def _check_alike(self, other: object) -> None:
        """Raise unless another state is of the same configuration."""

    @abstractmethod
    def _snapshot(self) -> Stream:
        """Return the present state, in which every row is where it belongs."""

    @abstractmethod
    def to_bytes(self) -> bytes:
        """Return the state as bytes."""

    def _catch_up(self) -> None:
        """Read what other workers have written; before the lock is taken."""
        if self._keeper is not None:
            self._keeper.sync()

    def _keep(self, path: str, *, durable: bool) -> None:
        """Keep the state in a file from now on."""
        self._keeper = Keeper(self, path, self.to_bytes(), durable=durable)

    def _check_store(self, path: str) -> None:
        """Raise where a file is no store of this configuration, or cannot be opened."""
        Store(path, self.to_bytes(), self._differing, durable=False, timeout=1.0).close()

    def _taken(self) -> list[Events]:
        with self._guard._lock:
            self._drain()
            taken, self._arrived = self._arrived, []
            return taken

    def _unwritten(self) -> int:
        """Return how many events are on no disk, of those that are not the keeper's to write."""
        arrived = sum(len(events.times) for events in list(self._arrived))
        return arrived + sum(buffer.n for buffer in self._buffers)

    def _apply(self, events: list[Events]) -> None:
        with self._guard._lock:
            self._check_whole()
            with self._holding("taking"):
                self._stream.take_parts(events)
                self._stream.tidy()

    def _restore(self, blob: bytes, counters: Mapping[str, int], events: list[Events]) -> None:
        stream = self._start()
        if blob:
            found = from_bytes(blob)
            self._check_alike(found)
            stream = found._stream
        stream.counters = counters
        with self._guard._lock:
            self._drain()
            self._stream = stream
            self._apply([*events, *self._arrived])  # also what came since the last were taken

    def _differing(self, blob: bytes) -> str:
        try:
            self._check_alike(from_bytes(blob))
        except IncompatibleMetricsError as error:
            return str(error)
        return "it was written otherwise"

    def _image(self) -> Image:
        with self._guard._lock:
            events, stream = self._taken(), self._snapshot()
            return Image(events, stream.counters, partial(bytes_of, type(self), stream))

    def close(self) -> None:
        """Write what waits, and close the store; no more events are taken. Reading goes on.

        Raises:
            StreamMetricsError: The store cannot be written just now; nothing was closed.
        """
        if self._closed:
            return
        if self._keeper is not None:
            self._keeper.sync()
            self._keeper.close()
        with self._guard._lock:
            self._drain()
            self._closed, self._keeper = True, None
            self._close_entries()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
