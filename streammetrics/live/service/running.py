"""A service as processes: as many workers as asked for, each of which ends with all written."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from streammetrics.core.errors import StreamMetricsError, UndefinedMetricWarning
from streammetrics.core.optional import needs

with needs("uvicorn", "live"):
    import uvicorn

from streammetrics.live.journal import open_store
from streammetrics.live.service.app import application
from streammetrics.live.service.config import settings
from streammetrics.live.service.http import Connection
from streammetrics.live.service.opening import Opening, Workers

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from starlette.applications import Starlette

    from streammetrics.live.service.config import Settings
    from streammetrics.live.service.server import Server

_PATH = "STREAMMETRICS_LIVE_CONFIG"  # how a worker learns what it is to serve
_SHARED = "STREAMMETRICS_LIVE_WORKERS"  # the folder in which workers say what others must know
_HEADERS = 16_384  # bytes of a request's headers
_BACKLOG = 2048  # connections that are taken at once
_GRACE = 5  # seconds for requests to end; who stops a container often waits for no more than 10
_SILENCE = 60  # seconds without a sign of life, as on a machine that is busy, until one is replaced
_PAUSE = 0.05  # seconds between looks whether it listens
_opening: Opening | None = None  # of this process
_losses: list[StreamMetricsError] = []  # of this process
_begun = threading.Event()  # the server takes signals from here on


def served() -> Opening:
    """Return the application of a worker, which finds its configuration in the environment."""
    global _opening  # noqa: PLW0603 - the server takes a function, and returns nothing
    _begun.set()
    warnings.simplefilter("ignore", UndefinedMetricWarning)  # answers say null
    warnings.showwarning = _show_warning
    found = settings(os.environ[_PATH])
    Connection.patience, Connection.most = found.server.timeout, found.server.connections
    parent = multiprocessing.parent_process()
    if parent is None:
        _opening = Opening(partial(_made, found), _losses.append)
    else:
        threading.Thread(target=_end_with, args=(parent,), name="parent", daemon=True).start()
        workers = Workers(found.server.workers, Path(os.environ[_SHARED], "ready"))
        _opening = Opening(partial(_made, found), _tell_parent, workers)
    return _opening


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Write a warning as a line of a log; the place in the code that it is of helps nobody."""
    print(f"warning: {message}", file=sys.stderr, flush=True)


def _tell_parent(error: StreamMetricsError) -> None:
    """Say in a worker that events are lost, and see that the exit code of its parent does."""
    print(f"error: {error}", file=sys.stderr, flush=True)
    with Path(os.environ[_SHARED], "lost").open("r+b") as file:  # in place: the disk may be full
        file.write(b"1")


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
    """Serve until somebody ends it, by Ctrl-C or SIGTERM; then write all that came.

    Raises:
        StreamMetricsError: Not all that came could be written.
    """
    server = found.server
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _ended)
    store = found.options["store"]
    if server.workers > 1:  # what is wrong with the store is told here, not by every worker
        empty = found.live(store=False)
        pipeline = empty._shared.current
        open_store(store, type(empty), pipeline, durable=False, timeout=1.0).close()
    os.environ[_PATH] = os.path.abspath(found.path)
    threading.Thread(target=_tell, args=(server.host, server.port), daemon=True).start()
    if server.workers > 1:
        _run_workers(server)
        return
    _run(server)
    if _losses:
        raise _losses[0]
    if _opening is not None and _opening.error is not None:
        raise _opening.error


def _run_workers(server: Server) -> None:
    """Run the server in several processes, and raise where one of them lost events."""
    with tempfile.TemporaryDirectory(prefix="streammetrics-") as folder:
        os.environ[_SHARED] = folder
        lost = Path(folder, "lost")
        lost.write_bytes(b"0")
        Path(folder, "ready").mkdir()
        _run(server)
        if lost.read_bytes() == b"1":
            raise StreamMetricsError("events of a worker are lost, see above")


def _run(server: Server) -> None:
    uvicorn.run(
        f"{__name__}:served",
        factory=True,
        host=server.host,
        port=server.port,
        workers=server.workers,
        http=Connection,
        ws="none",
        loop="asyncio",
        backlog=_BACKLOG,
        # Of requests: beside those of open connections so many of closed ones may be about to end.
        limit_concurrency=server.connections + _BACKLOG,
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
