"""How a service listens, and what it refuses."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streammetrics.core.columns.batch import near
from streammetrics.live.events import SECOND, duration

if TYPE_CHECKING:
    from streammetrics.live.service.toml import Section

_SIZE = re.compile(r"([0-9]+) ?(B|kB|MB|GB)")
_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}
_CLOCKS = ("wall", "events")


@dataclass(frozen=True)
class Server:
    """How a service listens.

    Attributes:
        host: The address, which is of this machine alone unless there is a token.
        port: Its port; 0: any free one.
        workers: Processes, which share a store.
        token: What requests have to bear; empty: none.
        clock: What time it is for reads: that of the wall, or of the newest event.
        body: Bytes of a request at most.
        queue: Requests with events that may wait; more are told to come again.
        timeout: Seconds that a request may take to arrive.
        connections: That may be open; of more, those that have waited longest are closed.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    token: str = ""
    clock: str = "wall"
    body: int = 16_000_000
    queue: int = 64
    timeout: float = 30.0
    connections: int = 1000

    @property
    def is_local(self) -> bool:
        """Whether the address is of this machine alone."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def server_of(table: Section, *, shared: bool) -> Server:
    """Return what a table says; `shared`: whether there is a store."""
    none = Server()
    host: str = table.take("host", str, none.host)
    port = _number(table, "port", none.port, 0, 65_535)
    workers = _number(table, "workers", none.workers, 1, 1024)
    if workers > 1 and not shared:
        table.fail("workers", "several workers share a store: give [live] store a file")
    variable: str = table.take("token_env", str, "")
    token = os.environ.get(variable, "") if variable else ""
    if variable and not token:
        table.fail("token_env", f"the environment has no {variable}, or an empty one: export it")
    if not token.isascii() or not token.isprintable() or " " in token:
        table.fail("token_env", f"the token in {variable} has characters that no header can have")
    clock: str = table.take("clock", str, none.clock)
    if clock not in _CLOCKS:
        table.fail("clock", f"no clock {clock!r}{near(clock, _CLOCKS)}")
    server = Server(
        host=host,
        port=port,
        workers=workers,
        token=token,
        clock=clock,
        body=_size(table, "body", none.body),
        queue=_number(table, "queue", none.queue, 1, 1_000_000),
        timeout=_seconds(table, "timeout", none.timeout),
        connections=_number(table, "connections", none.connections, 1, 1_000_000),
    )
    if not server.is_local and not token:
        table.fail(
            "host",
            f"{host!r} is open to other machines, and there is no token: name an environment "
            'variable that holds one, token_env = "STREAMMETRICS_TOKEN"',
        )
    table.end()
    return server


def _number(table: Section, key: str, default: int, low: int, high: int) -> int:
    value: int = table.take(key, int, default)
    if not low <= value <= high:
        table.fail(key, f"{value} is not between {low} and {high:,}")
    return value


def _size(table: Section, key: str, default: int) -> int:
    text = table.take(key, str)
    found = None if text is None else _SIZE.fullmatch(text)
    if text is None:
        return default
    if found is None or not int(found[1]):
        table.fail(key, f'{text!r} is no size: write "500kB" or "16MB"')
    return int(found[1]) * _BYTES[found[2]]


def _seconds(table: Section, key: str, default: float) -> float:
    text = table.take(key, str)
    if text is None:
        return default
    try:
        return duration(text, key) / SECOND
    except ValueError:
        table.fail(key, f'{text!r} is no duration: write "30s"')
