"""A service as processes: as many workers as asked for, each of which ends with all written."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any

from streammetrics.core.needs import needs

with needs("uvicorn", "live"):
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

from streammetrics.live.service.app import application
from streammetrics.live.service.config import settings

if TYPE_CHECKING:
    import asyncio

    from starlette.applications import Starlette

    from streammetrics.live.service.config import Settings

_PATH = "STREAMMETRICS_LIVE_CONFIG"  # how a worker learns what it is to serve
_TIMEOUT = "STREAMMETRICS_LIVE_TIMEOUT"
_HEADERS = 16_384  # bytes of a request's headers
_GRACE = 10  # seconds for requests to end
_begun = threading.Event()  # the server takes signals from here on


class Impatient(H11Protocol):  # type: ignore[misc]  # an extra, which need not be there
    """A connection that is closed where the headers of a request take too long to come."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read on, and wait no longer once the headers are there."""
        if self._late is None and self._is_idle():
            self._wait()
        super().data_received(data)
        if not self._is_idle():
            self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._forget()
        super().connection_lost(exc)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        seconds = float(os.environ.get(_TIMEOUT, "30"))
        self._late = self.loop.call_later(seconds, self._close)

    def _close(self) -> None:
        self._late = None
        if self._is_idle():
            self.transport.close()

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def served() -> Starlette:
    """Return the application of a worker, which finds its configuration in the environment."""
    _begun.set()
    found = settings(os.environ[_PATH])
    live = found.live()
    return application(
        live, names=found.names, view=found.view, server=found.server, rules=found.rules, owned=True
    )


def serve(found: Settings) -> None:
    """Serve until somebody ends it, by Ctrl-C or SIGTERM; then write all that came."""
    server = found.server
    with found.live():  # what is wrong with its store is told here, not by every worker
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _ended)
        print(f"serving on http://{_shown(server.host)}:{server.port}/", flush=True)
    os.environ[_PATH] = os.path.abspath(found.path)
    os.environ[_TIMEOUT] = str(server.timeout)
    uvicorn.run(
        f"{__name__}:served",
        factory=True,
        host=server.host,
        port=server.port,
        workers=server.workers,
        http=Impatient,
        ws="none",
        loop="asyncio",
        limit_concurrency=server.connections,
        h11_max_incomplete_event_size=_HEADERS,
        timeout_keep_alive=max(1, int(server.timeout)),
        timeout_graceful_shutdown=_GRACE,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
    )


def _ended(*_: Any) -> None:
    """End where nothing has begun; else go on, as the server ends itself and raises it again."""
    if not _begun.is_set():
        raise SystemExit(0)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
