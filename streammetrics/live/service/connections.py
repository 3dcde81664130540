"""A connection that does not wait for its client for long, and makes room for those who do ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.core.needs import needs

with needs("uvicorn", "live"):
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio


class Connection(H11Protocol):  # type: ignore[misc]  # an extra, which need not be there
    """A connection that is closed where its client takes too long, or others need its place.

    It waits for its client until the headers of a request have come, for the rest of the request
    (which what answers gives up by itself), and where the client does not read the answer. When
    more are open than may be, the one that has waited longest is closed: who sends a request as
    fast as the network has it always finds a place, however many hold theirs by saying nothing.
    """

    patience = 30.0  # seconds
    most = 1000  # that are open
    _since = 0.0  # when it began to wait
    _begun = False  # whether a part of the next request has come
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: object) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > self.most:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Read on, and wait no longer once the headers are there."""
        if self._is_idle() and not self._begun:
            self._begun = True
            self._wait()
        # Where no place could be made, the server refuses what it has no limit for.
        full = len(self.connections) > self.most
        self.limit_concurrency = 0 if full else self.config.limit_concurrency
        super().data_received(data)
        if not self._is_idle():
            self._forget()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; who answers the request that it is part of answers nobody."""
        if not self._is_idle():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:  # it has an answer already, or may have none with a text
            self.transport.close()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, or for the client to read the last answer."""
        super().on_response_complete()
        if self._is_idle():  # else the next one had come already
            self._begun = False
            self._wait()

    def pause_writing(self) -> None:
        """Begin to wait for the client to read."""
        super().pause_writing()
        self._wait()

    def resume_writing(self) -> None:
        """Wait no longer, as the client has read."""
        super().resume_writing()
        if not self._is_idle():
            self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._forget()
        super().connection_lost(exc)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _waits(self) -> bool:
        """Whether it is the client's turn."""
        return self._is_idle() or self.cycle.more_body or self.flow.write_paused

    def _wait(self) -> None:
        self._forget()
        self._since = self.loop.time()
        self._late = self.loop.call_later(self.patience, self.transport.abort)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _make_room(self) -> None:
        """Close the connection that has waited longest; where none does, this one is refused."""
        others = (other for other in self.connections if other is not self and other._waits())
        longest = min(others, key=lambda other: other._since, default=None)
        if longest is not None:
            self.connections.discard(longest)
            longest.transport.abort()
