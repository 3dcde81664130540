"""What all queues have in common: their address, their messages, and how they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from streammetrics.core.errors import StreamMetricsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Place = int | str  # an offset, a sequence number, or the id of an entry
Position = dict[str, Place]  # of each part of a queue, the place up to which it was read


class QueueError(StreamMetricsError):
    """A queue cannot be read."""


class Address(NamedTuple):
    """The address of a queue.

    Attributes:
        scheme: The kind of queue, which may say whether to use TLS.
        servers: One server or several, as HOST:PORT, separated by commas.
        path: What follows the servers.
        user: The user, or an empty text.
        password: The password, or an empty text.
        options: The parameters of the URL.
    """

    scheme: str
    servers: str
    path: str
    user: str
    password: str
    options: Mapping[str, str]

    @classmethod
    def of(cls, url: str, password: str = "") -> Address:
        """Read a URL; a `password` from elsewhere replaces that of the URL.

        Raises:
            QueueError: It is not the URL of a server.
        """
        try:
            parts = urlsplit(url)
            options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        except ValueError as error:
            raise QueueError(f"{url} is not the address of a queue: {error}") from None
        login, _, servers = parts.netloc.rpartition("@")
        user, _, own = map(unquote, login.partition(":"))
        if not servers or any(c.isspace() for c in url):
            raise QueueError(
                f"{url} is not the address of a queue: write redis://, nats:// or kafka://HOST:PORT"
            )
        return cls(parts.scheme, servers, parts.path, user, password or own, options)


class Message(NamedTuple):
    """A message: its value, and the part of the queue and the place up to which it leads."""

    value: bytes
    part: str
    place: Place


class Queue(Protocol):
    """A queue whose messages can be read again from any place.

    All methods raise `QueueError` if the queue cannot be read, and are then continued by `open`.

    Attributes:
        title: The name of its position in a store.
    """

    title: str

    def open(self, position: Position) -> list[str]:
        """Read what follows a position; without one, from the beginning.

        Returns:
            What was lost since then, as texts for a log.
        """

    def read(self, n: int, seconds: float) -> Sequence[Message]:
        """Return up to `n` messages, in their order; none if none comes within `seconds`."""

    def show(self, position: Position) -> None:
        """Show the position to the tools of the queue, which tell how much is left to read."""

    def close(self) -> None:
        """Close the connection."""
