"""How a service listens, the names of event columns, and what the page shows."""

from __future__ import annotations

import ipaddress
import os
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streammetrics.core.columns.batch import near
from streammetrics.live.exporting.families import NOTHING, Exported

if TYPE_CHECKING:
    from streammetrics.core.metric_set import MetricSet
    from streammetrics.live.service.toml import Section


@dataclass(frozen=True)
class Names:
    """The names of the columns of events and files that no metric reads."""

    id: str = "id"
    time: str = "time"
    label_time: str = "label_time"
    version: str = "version"


@dataclass(frozen=True)
class PageView:
    """What the page and the default queries show: successive windows.

    Attributes:
        title: The name of the service.
        window: The length of each window.
        every: The distance between the ends of windows.
        target_range: The smallest and the largest target.
        groups: The names of the groups of metrics, each with its metrics.
        references: Sets to compare with, by name.
        exported: What `/metrics` has beside the values.
        model: The name of the model, if the service has several.
        models: The names of all of them.
    """

    title: str = "Live metrics"
    window: str = "1h"
    every: str = "5min"
    target_range: tuple[float, float] | None = None
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    references: tuple[tuple[str, MetricSet], ...] = ()
    exported: Exported = NOTHING
    model: str = ""
    models: tuple[str, ...] = ()


MOST_SLICES = 10_000  # of each kind at /metrics
_CLOCKS = ("wall", "events")


@dataclass(frozen=True)
class Server:
    """How a service listens.

    Attributes:
        host: The address; without a token it has to be local to this machine.
        port: The port; 0 for any free one.
        socket: The path of a unix socket, which replaces host and port.
        certificate: The file of a certificate chain for TLS; if empty, there is no TLS.
        key: The file of its private key.
        workers: The number of processes, which share a store.
        token: The bearer token for reading and writing.
        read_token: One for reading only.
        write_token: One for writing only, i.e. for sending events. If no token is set, none is
            needed.
        clock: The time of reads: ``"wall"`` for the system clock, ``"events"`` for the newest
            event.
        body: The maximum bytes of a request body.
        queue: The maximum number of waiting requests with events; more are answered 429.
        timeout: The maximum seconds for a request to arrive.
        connections: The maximum number of open connections; beyond it, the longest waiting are
            closed.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    socket: str = ""
    certificate: str = ""
    key: str = ""
    workers: int = 1
    token: str = ""
    read_token: str = ""
    write_token: str = ""
    clock: str = "wall"
    body: int = 16_000_000
    queue: int = 64
    timeout: float = 30.0
    connections: int = 1000

    @property
    def is_local(self) -> bool:
        """Whether the address is local to this machine."""
        if self.socket or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def needs_token(self) -> bool:
        """Whether requests need a token."""
        return bool(self.token or self.read_token or self.write_token)

    @property
    def url(self) -> str:
        """The address as a URL."""
        if self.socket:
            return f"unix://{self.socket}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.certificate else ''}://{host}:{self.port}/"


def server_of(table: Section) -> Server:
    """Return the settings in a table."""
    none = Server()
    host: str = table.take("host", str, none.host)
    port = _number(table, "port", none.port, 0, 65_535)
    workers = _number(table, "workers", none.workers, 1, 1024)
    token, read, write = map(table.secret, ("token", "read_token", "write_token"))
    if bool(read) != bool(write) and not token:
        one = "read" if write else "write"
        table.fail(f"{one}_token_env", f"nobody could {one}: name a token for this as well")
    certificate, key = _tls(table)
    path: str = table.take("socket", str, "")
    clock: str = table.take("clock", str, none.clock)
    if clock not in _CLOCKS:
        table.fail("clock", f"no clock {clock!r}{near(clock, _CLOCKS)}")
    server = Server(
        host=host,
        port=port,
        socket=os.path.abspath(table.beside(path)) if path else "",
        certificate=certificate,
        key=key,
        workers=workers,
        token=token,
        read_token=read,
        write_token=write,
        clock=clock,
        body=table.size("body", none.body),
        queue=_number(table, "queue", none.queue, 1, 1_000_000),
        timeout=table.seconds("timeout", "30s"),
        connections=_number(table, "connections", none.connections, 1, 1_000_000),
    )
    if not server.is_local and not server.needs_token:
        table.fail(
            "host",
            f"{host!r} is open to other machines, and there is no token: name an environment "
            'variable that holds one, token_env = "STREAMMETRICS_TOKEN"',
        )
    table.end()
    return server


def _tls(table: Section) -> tuple[str, str]:
    """Return the files of a certificate and its key, after reading them."""
    names: list[str] = [table.take(key, str, "") for key in ("certificate", "key")]
    certificate, key = (table.beside(name) if name else "" for name in names)
    if bool(certificate) != bool(key):
        table.fail("certificate", "TLS needs both certificate and key: name two PEM files")
    if certificate:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, _no_password)
        except (OSError, ValueError) as error:
            table.fail("certificate", f"{certificate} and {key} cannot be used: {error}")
    return certificate, key


def _no_password() -> str:
    raise ValueError("the key has a password: remove it with `openssl pkey`")


def _number(table: Section, key: str, default: int, low: int, high: int) -> int:
    value: int = table.take(key, int, default)
    if not low <= value <= high:
        table.fail(key, f"{value} is not between {low} and {high:,}")
    return value


def exported_of(table: Section, target_range: tuple[float, float] | None) -> Exported:
    """Return what a table adds to `/metrics`."""
    slices = _number(table, "slices", 0, 0, MOST_SLICES)
    confidence: bool = table.take("confidence", bool, False)
    possible: bool = table.take("possible", bool, False)
    inputs: bool = table.take("inputs", bool, False)
    table.end()
    return Exported(slices, confidence, possible, target_range, inputs)
