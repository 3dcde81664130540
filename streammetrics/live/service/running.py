"""A service as processes: as many workers as asked for, each of which ends with all written."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import socket
import threading
import time
import warnings
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from streammetrics.core.errors import UndefinedMetricWarning
from streammetrics.core.needs import needs

with needs("uvicorn", "live"):
    import uvicorn

from streammetrics.live.service.app import application
from streammetrics.live.service.config import settings
from streammetrics.live.service.connections import Connection
from streammetrics.live.service.opening import Opening

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from starlette.applications import Starlette

    from streammetrics.live.service.config import Settings

_PATH = "STREAMMETRICS_LIVE_CONFIG"  # how a worker learns what it is to serve
_HEADERS = 16_384  # bytes of a request's headers
_GRACE = 5  # seconds for requests to end; who stops a container often waits for no more than 10
_SILENCE = 60  # seconds without a sign of life, as on a machine that is busy, until one is replaced
_PAUSE = 0.05  # seconds between looks whether it listens
_opening: Opening | None = None  # of this process
_begun = threading.Event()  # the server takes signals from here on


def served() -> Opening:
    """Return the application of a worker, which finds its configuration in the environment."""
    global _opening  # noqa: PLW0603 - the server takes a function, and returns nothing
    _begun.set()
    warnings.simplefilter("ignore", UndefinedMetricWarning)  # answers say null
    found = settings(os.environ[_PATH])
    Connection.patience = found.server.timeout
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), name="parent", daemon=True).start()
    _opening = Opening(partial(_made, found))
    return _opening


def _made(found: Settings) -> Starlette:
    """Return what answers, once all that is stored has been read."""
    return application(
        found.live(),
        names=found.names,
        view=found.view,
        server=found.server,
        rules=found.rules,
        owned=True,
    )


def _end_with(parent: BaseProcess) -> None:
    """End this worker, with all written, when its parent is gone and nobody else would end it."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def serve(found: Settings) -> None:
    """Serve until somebody ends it, by Ctrl-C or SIGTERM; then write all that came."""
    server = found.server
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _ended)
    store = found.options["store"]
    if server.workers > 1:  # what is wrong with the store is told here, not by every worker
        found.live(store=False)._check_store(store)
    os.environ[_PATH] = os.path.abspath(found.path)
    threading.Thread(target=_tell, args=(server.host, server.port), daemon=True).start()
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
    if _opening is not None and _opening.error is not None:
        raise _opening.error


def _tell(host: str, port: int) -> None:
    """Say where the service listens, once it does."""
    at = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    while True:
        with suppress(OSError), socket.create_connection((at, port), timeout=1):
            break
        time.sleep(_PAUSE)
    print(f"serving on http://{_shown(host)}:{port}/", flush=True)


def _ended(*_: object) -> None:
    """End where nothing has begun; else go on, as the server ends itself and raises it again."""
    if not _begun.is_set():
        raise SystemExit(0)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
