"""A service as processes: as many workers as asked for, each of which ends with all written."""

from __future__ import annotations

import math
import os
import signal
import threading
from typing import TYPE_CHECKING

from streammetrics.core.needs import needs

with needs("uvicorn", "live"):
    import uvicorn

from streammetrics.live.service.app import application
from streammetrics.live.service.config import settings
from streammetrics.live.service.connections import Connection

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from streammetrics.live.service.config import Settings

_PATH = "STREAMMETRICS_LIVE_CONFIG"  # how a worker learns what it is to serve
_HEADERS = 16_384  # bytes of a request's headers
_GRACE = 5  # seconds for requests to end; who stops a container often waits for no more than 10
_SILENCE = 60  # seconds without a sign of life, as on a machine that is busy, until one is replaced
_begun = threading.Event()  # the server takes signals from here on


def served() -> Starlette:
    """Return the application of a worker, which finds its configuration in the environment."""
    _begun.set()
    found = settings(os.environ[_PATH])
    Connection.patience = found.server.timeout
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
    uvicorn.run(
        f"{__name__}:served",
        factory=True,
        host=server.host,
        port=server.port,
        workers=server.workers,
        http=Connection,
        ws="none",
        loop="asyncio",
        limit_concurrency=server.connections + 1,  # at which it refuses
        h11_max_incomplete_event_size=_HEADERS,
        timeout_keep_alive=max(1, math.ceil(server.timeout)),
        timeout_graceful_shutdown=_GRACE,
        timeout_worker_healthcheck=_SILENCE,
        log_level="error",  # not a line for each request that is no HTTP
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
    )


def _ended(*_: object) -> None:
    """End where nothing has begun; else go on, as the server ends itself and raises it again."""
    if not _begun.is_set():
        raise SystemExit(0)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
