"""Streams of NATS JetStream."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from streammetrics.core.errors import needs
from streammetrics.live.consuming.queue import Message, QueueError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from streammetrics.core.types import Foreign, Options
    from streammetrics.live.consuming.queue import Address, Position

_TIMEOUT = 10.0  # seconds to wait for an answer
_IDLE = 300.0  # seconds after which the server drops a reader that has gone

T = TypeVar("T")


class NatsStream:
    """A stream of JetStream. It has one part, whose place is the number of the last message.

    It is read by a consumer without acknowledgements, made anew from a number whenever a message
    may have been lost on its way. So the stream must keep its messages by limits, which is the
    default, and not until they are acknowledged.
    """

    def __init__(self, address: Address, stream: str, group: str) -> None:
        with needs("nats-py", "nats"):
            import nats  # noqa: PLC0415 - an extra of its own
            from nats.js import api  # noqa: PLC0415
        self._nats, self._api = nats, api
        self._errors: Foreign = (nats.errors.Error, OSError)
        login: Options = {"token": address.password or None}
        if address.user:
            login = {"user": address.user, "password": address.password}
        urls = [f"{address.scheme}://{server}" for server in address.servers.split(",")]
        self._settings = {
            "servers": urls,
            "allow_reconnect": False,
            "max_reconnect_attempts": 1,  # of the first connection, which also counts as one
            "reconnect_time_wait": 0,
            "error_cb": _ignore,
            "connect_timeout": _TIMEOUT,
            "ping_interval": _TIMEOUT,  # so that a connection that is cut is noticed
            **login,
        }
        self._runner = asyncio.Runner()
        self.title = f"nats {stream} {group}"
        self._stream = stream
        self._connection: Foreign = None
        self._reader: Foreign = None
        self._next = 0  # number of the reader's next message

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            told = str(error) or type(error).__name__
            raise QueueError(f"NATS: {told}") from error

    def _run(self, call: Coroutine[object, object, T]) -> T:
        with self._reading():
            return self._runner.run(call)

    def open(self, position: Position) -> list[str]:
        """Read what follows a position; see `Queue`."""
        return self._run(self._open(int(position.get("", 0))))

    async def _open(self, last: int) -> list[str]:
        api = self._api
        await self._disconnect()
        self._connection = await self._nats.connect(**self._settings)
        stream = self._connection.jetstream(timeout=_TIMEOUT)
        try:
            info = await stream.stream_info(self._stream)
        except self._nats.js.errors.NotFoundError:
            raise QueueError(f"NATS has no stream {self._stream!r}") from None
        if info.config.retention not in {None, api.RetentionPolicy.LIMITS}:
            raise QueueError(
                f"the stream {self._stream!r} keeps messages only until they are acknowledged: "
                "give it the retention limits, so that it can be read again"
            )
        if info.state.last_seq < last:
            raise QueueError(
                f"the stream {self._stream!r} ends at {info.state.last_seq}, before {last}, up to "
                "which it was read: it was made anew; --group with another name reads it from its "
                "beginning"
            )
        made = await stream.add_consumer(
            self._stream,
            api.ConsumerConfig(
                ack_policy=api.AckPolicy.NONE,
                deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=last + 1,
                inactive_threshold=_IDLE,
            ),
        )
        self._reader = await stream.pull_subscribe_bind(made.name, self._stream)
        self._next = 1
        lost = info.state.first_seq - last - 1
        return (
            [f"{lost:,} messages were deleted before they were read"] if last and lost > 0 else []
        )

    def read(self, n: int, seconds: float) -> list[Message]:
        """Return up to `n` messages; see `Queue`."""
        found: list[Foreign] = []
        with self._reading(), suppress(TimeoutError):
            found = self._runner.run(self._reader.fetch(n, timeout=seconds))
        if not self._connection.is_connected:
            raise QueueError("NATS: the connection is closed")
        messages = []
        for message in found:
            sequence = message.metadata.sequence
            if sequence.consumer != self._next:
                raise QueueError("NATS: a message was lost on its way")
            self._next += 1
            messages.append(Message(message.data, "", sequence.stream))
        return messages

    def show(self, position: Position) -> None:
        """Show nothing: NATS has no positions of its readers."""

    def close(self) -> None:
        """Close the connection."""
        with suppress(*self._errors):
            self._runner.run(self._disconnect())
        self._runner.close()

    async def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(*self._errors):
                await self._connection.close()


async def _ignore(error: Exception) -> None:
    """Leave an error to the call that fails by it."""
