"""Runs a service as worker processes, each of which writes all its events before it ends."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import socket
import stat
import tempfile
import threading
import time
import warnings
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from streammetrics.core.errors import StreamMetricsError, UndefinedMetricWarning, needs

with needs("uvicorn", "live"):
    import uvicorn
    from uvicorn.config import LOGGING_CONFIG

from streammetrics.live.journal import open_store
from streammetrics.live.service.app import application
from streammetrics.live.service.config import settings
from streammetrics.live.service.http import Connection
from streammetrics.live.service.logs import is_json, log, server_logs
from streammetrics.live.service.opening import Opening, Workers
from streammetrics.live.store import StoreWarning

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.process import BaseProcess

    from starlette.applications import Starlette

    from streammetrics.live.service.config import Settings
    from streammetrics.live.service.server import Server

_PATH = "STREAMMETRICS_LIVE_CONFIG"  # tells a worker its configuration
_SHARED = "STREAMMETRICS_LIVE_WORKERS"  # the folder through which workers share their status
_HEADERS = 16_384  # maximum bytes of a request's headers
_BACKLOG = 2048  # maximum pending connections
_GRACE = 5  # seconds for requests to end; container runtimes often wait for no more than 10
_SILENCE = 60  # seconds without a heartbeat after which a worker is replaced
_PAUSE = 0.05  # seconds between checks whether it listens
_opening: Opening | None = None  # of this process
_losses: list[StreamMetricsError] = []  # of this process
_begun = threading.Event()  # set once the server handles signals


def served() -> Opening:
    """Return the application of a worker, configured through the environment."""
    global _opening  # noqa: PLW0603 - the server calls a function, and drops its state
    _begun.set()
    warnings.simplefilter("ignore", UndefinedMetricWarning)  # answers have null instead
    warnings.showwarning = _show_warning
    found = settings(os.environ[_PATH])
    Connection.patience, Connection.most = found.server.timeout, found.server.connections
    parent = multiprocessing.parent_process()
    if parent is None:
        _opening = Opening(partial(_made, found), _losses.append)
    else:
        threading.Thread(target=_end_with, args=(parent,), name="parent", daemon=True).start()
        workers = Workers(found.server.workers, Path(os.environ[_SHARED], "ready"))
        for process in [] if found.options["durable"] else workers.take_killed():
            warnings.warn(
                f"worker {process} was killed, by somebody or because it did nothing for a minute, "
                "and is replaced: events that it took in its last second may be lost; durable = "
                "true prevents this",
                StoreWarning,
                stacklevel=1,
            )
        _opening = Opening(partial(_made, found), _tell_parent, workers)
    return _opening


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Log a warning as one line, without its source location."""
    log("warning", str(message))


def _tell_parent(error: StreamMetricsError) -> None:
    """Report lost events in a worker, and make the parent exit with an error."""
    log("error", str(error))
    with Path(os.environ[_SHARED], "lost").open("r+b") as file:  # in place: the disk may be full
        file.write(b"1")


def _made(found: Settings) -> Starlette:
    """Return the application, after reading everything that is stored."""
    began = time.monotonic()
    live = found.live()
    log("info", "the store is read", seconds=round(time.monotonic() - began, 3))
    return application(
        live,
        names=found.names,
        view=found.view,
        server=found.server,
        rules=found.rules,
        delivery=found.delivery,
        letters=found.letters,
        owned=True,
    )


def _end_with(parent: BaseProcess) -> None:
    """End this worker, with all events written, when its parent is gone."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def serve(found: Settings) -> None:
    """Serve until Ctrl-C or SIGTERM, then write all events.

    Raises:
        StreamMetricsError: Not all events could be written.
    """
    server = found.server
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _ended)
    store = found.options["store"]
    if server.workers > 1:  # report problems with the store here, not in every worker
        empty = found.live(store=False)
        pipeline = empty._shared.current
        open_store(store, type(empty), pipeline, durable=False, timeout=1.0).close()
    os.environ[_PATH] = os.path.abspath(found.path)
    with _listening(server.socket) if server.socket else nullcontext() as own:
        fd = None if own is None else own.fileno()
        threading.Thread(target=_tell, args=(server,), daemon=True).start()
        if server.workers > 1:
            _run_workers(server, fd)
            return
        _run(server, fd)
    if _losses:
        raise _losses[0]
    if _opening is not None and _opening.error is not None:
        raise _opening.error


@contextmanager
def _listening(path: str) -> Iterator[socket.socket]:
    """Listen on a unix socket, which its owner and group may use; remove it afterwards.

    Raises:
        StreamMetricsError: Another service listens there, or no socket can be made.
    """
    own = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o117)
    try:
        if os.path.exists(path) and stat.S_ISSOCK(os.stat(path).st_mode):
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
                    other.connect(path)
            except ConnectionRefusedError:  # left by a service that was killed
                os.unlink(path)
        own.bind(path)
    except OSError as error:
        own.close()
        raise StreamMetricsError(
            f"cannot listen on {path}: {error.strerror or error}; [server] socket names another"
        ) from error
    finally:
        os.umask(before)
    with own:
        own.listen(_BACKLOG)
        try:
            yield own
        finally:
            with suppress(FileNotFoundError):
                os.unlink(path)


def _run_workers(server: Server, fd: int | None) -> None:
    """Run the server in several processes, and raise if one of them lost events."""
    with tempfile.TemporaryDirectory(prefix="streammetrics-") as folder:
        os.environ[_SHARED] = folder
        lost = Path(folder, "lost")
        lost.write_bytes(b"0")
        Path(folder, "ready").mkdir()
        _run(server, fd)
        if lost.read_bytes() == b"1":
            raise StreamMetricsError("events of a worker are lost, see above")


def _run(server: Server, fd: int | None) -> None:
    uvicorn.run(
        f"{__name__}:served",
        factory=True,
        host=server.host,
        port=server.port,
        fd=fd,
        ssl_certfile=server.certificate or None,
        ssl_keyfile=server.key or None,
        workers=server.workers,
        http=Connection,
        ws="none",
        loop="asyncio",
        backlog=_BACKLOG,
        # Counts requests: besides open connections, up to a backlog of closed ones may be ending.
        limit_concurrency=server.connections + _BACKLOG,
        h11_max_incomplete_event_size=_HEADERS,
        timeout_keep_alive=max(1, math.ceil(server.timeout)),
        timeout_graceful_shutdown=_GRACE,
        timeout_worker_healthcheck=_SILENCE,
        log_config=server_logs() if is_json() else LOGGING_CONFIG,
        log_level="error",  # no line for each invalid HTTP request
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
    )


def _tell(server: Server) -> None:
    """Print the address of the service once it listens."""
    at = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(server.host, server.host)
    while not server.socket:
        with suppress(OSError), socket.create_connection((at, server.port), timeout=1):
            break
        time.sleep(_PAUSE)
    print(f"serving on {server.url}", flush=True)
    log("info", "serving", url=server.url)


def _ended(*_: object) -> None:
    """Exit if the server has not begun; otherwise it ends itself and re-raises the signal."""
    if not _begun.is_set():
        raise SystemExit(0)
