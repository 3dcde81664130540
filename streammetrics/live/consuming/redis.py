"""Redis streams."""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from streammetrics.core.errors import needs
from streammetrics.live.consuming.queue import Message, QueueError
from streammetrics.live.service.logs import log

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.core.types import Foreign
    from streammetrics.live.consuming.queue import Address, Position

_TIMEOUT = 10.0  # seconds to wait for an answer
FIELD = b"event"  # the field of an entry that holds its events
_FIRST = "0-0"  # before all entries


class RedisStream:
    """A stream of Redis. It has one part, whose place is the id of the last entry.

    A consumer group of Redis only shows the position; the store decides what is read.
    """

    def __init__(self, address: Address, stream: str, group: str) -> None:
        with needs("redis", "redis"):
            import redis  # noqa: PLC0415 - an extra of its own
        self._errors: Foreign = (redis.RedisError, OSError)
        url = f"{address.scheme}://{address.servers}{address.path}"
        login = {
            "username": address.user or None,
            "password": address.password or None,
            **address.options,
        }
        with self._reading():
            self._server = redis.Redis.from_url(url, protocol=2, socket_timeout=_TIMEOUT, **login)
        self.title = f"redis {stream} {group}"
        self._stream, self._group, self._last = stream, group, _FIRST
        self._trimmed = False  # whether the entry that was read last is gone, which was said

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (*self._errors, ValueError) as error:
            raise QueueError(f"Redis: {error}") from error

    def open(self, position: Position) -> list[str]:
        """Read what follows a position; see `Queue`."""
        self._last, self._trimmed = str(position.get("", _FIRST)), False
        with self._reading():
            self._server.ping()
            found = self._server.type(self._stream)
            if found == b"none":
                end = _FIRST
            elif found == b"stream":
                end = self._server.xinfo_stream(self._stream)["last-generated-id"].decode()
            else:
                raise QueueError(f"{self._stream!r} is a {found.decode()} of Redis, not a stream")
        if _numbers(end) < _numbers(self._last):
            raise QueueError(
                f"the stream {self._stream!r} ends at {end}, before {self._last}, up to which it "
                "was read: it was made anew; --group with another name reads it from its beginning"
            )
        return self._lost(end)

    def _lost(self, end: str) -> list[str]:
        """Return a warning if entries between the last one and `end` may have been trimmed.

        A stream is trimmed from its beginning, so nothing is lost while the last one is there.
        """
        trimmed = self._last not in {_FIRST, end}
        with self._reading():
            trimmed = trimmed and not self._server.xrange(self._stream, self._last, self._last)
        told, self._trimmed = self._trimmed, trimmed
        if not trimmed or told:
            return []
        return [
            f"entries after {self._last} may have been deleted before they were read: the stream "
            f"{self._stream!r} keeps too few for this consumer"
        ]

    def read(self, n: int, seconds: float) -> list[Message]:
        """Return up to `n` entries; see `Queue`."""
        streams = {self._stream: self._last}
        with self._reading():
            found: Foreign = self._server.xread(streams, count=n, block=max(int(1000 * seconds), 1))
        entries = found[0][1] if found else ()
        messages = [Message(_event(fields), "", key.decode()) for key, fields in entries]
        if messages:
            for lost in self._lost(str(messages[-1].place)):
                log("warning", lost)
            self._last = str(messages[-1].place)
        return messages

    def show(self, position: Position) -> None:
        """Show the position as that of a consumer group; see `Queue`."""
        names, place = (self._stream, self._group), position[""]
        with suppress(*self._errors):
            try:
                self._server.xgroup_setid(*names, place)
            except self._errors:  # there is no group yet
                self._server.xgroup_create(*names, place)

    def close(self) -> None:
        """Close the connection."""
        with suppress(*self._errors):
            self._server.close()


def _numbers(key: str) -> tuple[int, int]:
    time, _, number = key.partition("-")
    return int(time), int(number or 0)


def _event(fields: dict[bytes, bytes]) -> bytes:
    """Return the events of an entry; without any, a text that is refused."""
    if FIELD in fields:
        return fields[FIELD]
    told = {key.decode(errors="replace"): fields[key].decode(errors="replace") for key in fields}
    return b"no field 'event' in " + json.dumps(told).encode()
