"""Runs a service as worker processes, each of which writes all its events before it ends."""

from __future__ import annotations

import asyncio
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
from contextlib import AsyncExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from streammetrics.core.errors import StreamMetricsError, UndefinedMetricWarning, needs
from streammetrics.live.service.app import application, application_of
from streammetrics.live.service.config import models_of
from streammetrics.live.service.http import Connection
from streammetrics.live.service.logs import is_json, log, server_logs
from streammetrics.live.service.replicas import Replicas
from streammetrics.live.store import StoreWarning

with needs("starlette", "live"):
    from starlette.responses import JSONResponse

with needs("uvicorn", "live"):
    import uvicorn
    from uvicorn.config import LOGGING_CONFIG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from multiprocessing.process import BaseProcess

    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from streammetrics.live.service.config import Settings
    from streammetrics.live.service.server import Server


class Workers(NamedTuple):
    """The workers of a service, and which of them are ready.

    Attributes:
        number: The number of workers.
        folder: Holds an empty file for every worker that is ready, named after its process id;
            ``None`` with a single worker.
    """

    number: int = 1
    folder: Path | None = None

    def tell_ready(self) -> None:
        """Record that this worker is ready."""
        if self.folder is not None:
            (self.folder / str(os.getpid())).touch()

    def all_ready(self) -> bool:
        """Return whether all workers are ready; one that has died is not."""
        return self.folder is None or self.n_ready() >= self.number

    def n_ready(self) -> int:
        """Return how many workers are ready and have not died."""
        paths = [] if self.folder is None else self.folder.iterdir()
        return sum([_is_running(int(path.name)) for path in paths])

    def tell_ended(self) -> None:
        """Record that this worker has written all that it can."""
        if self.folder is not None:
            (self.folder / str(os.getpid())).unlink(missing_ok=True)

    def take_killed(self) -> list[int]:
        """Return the process ids of workers that were killed, each to one caller only."""
        found = []
        for path in [] if self.folder is None else list(self.folder.iterdir()):
            if not _is_running(process := int(path.name)):
                with suppress(FileNotFoundError):  # another worker is faster
                    path.unlink()
                    found.append(process)
        return found


ALONE = Workers()


class Opening:
    """Answers that a service is starting until its application exists, then delegates to it.

    ``/health`` is answered with 200, everything else with 503 and ``Retry-After``. ``/ready`` is
    answered with 503 until all workers have their application, because any of them may get the next
    request. If the application cannot be created, the process ends as on SIGTERM.

    Args:
        make: Creates the application, in a separate thread.
        lost: Called with the error if the application ends and cannot write all events.
        failed: Called with the error if the application cannot be created.
        workers: The workers of the service.
    """

    def __init__(
        self,
        make: Callable[[], Starlette],
        lost: Callable[[StreamMetricsError], None],
        failed: Callable[[Exception], None],
        workers: Workers = ALONE,
    ) -> None:
        self._make, self._lost, self._failed, self._workers = make, lost, failed, workers
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or delegate it to the application."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif self._app is not None and not self._waits(scope):
            await _answered(self._app, scope, receive, send)
        elif scope["type"] == "http":
            await _starting(scope["path"])(scope, receive, send)

    def _waits(self, scope: Scope) -> bool:
        """Return whether a request asks if the service is ready while another worker is not."""
        asks = scope["type"] == "http" and scope["path"] == "/ready"
        return asks and not self._workers.all_ready()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        try:
            async with AsyncExitStack() as stack:
                await self._live(receive, send, stack)
        except StreamMetricsError as error:
            self._lost(error)
        self._workers.tell_ended()
        await send({"type": "lifespan.shutdown.complete"})

    async def _live(self, receive: Receive, send: Send, stack: AsyncExitStack) -> None:
        """Create the application, and wait until the service ends."""
        await receive()
        made: asyncio.Future[Starlette] = asyncio.get_running_loop().create_future()
        opening = asyncio.ensure_future(self._open(made, stack))
        arguments = (made, asyncio.get_running_loop())
        # A daemon thread: if the service ends before this, there is nothing to write.
        threading.Thread(target=self._run, args=arguments, name="opening", daemon=True).start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if not made.done():
            opening.cancel()
        await asyncio.wait([opening])

    def _run(self, made: asyncio.Future[Starlette], loop: asyncio.AbstractEventLoop) -> None:
        """Create the application."""
        try:
            app = self._make()
        except Exception as error:  # any exception is reported to the caller of the service
            self._failed(error)
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            with suppress(RuntimeError):  # the service has ended meanwhile
                loop.call_soon_threadsafe(_set, made, app)

    async def _open(self, made: asyncio.Future[Starlette], stack: AsyncExitStack) -> None:
        """Delegate requests to the application once it exists."""
        app = await made
        await stack.enter_async_context(app.router.lifespan_context(app))
        self._app = app
        self._workers.tell_ready()


async def _answered(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request, with 503 if the server cancels it because the service ends."""
    has_begun = False

    async def begin(message: Message) -> None:
        nonlocal has_begun
        has_begun = True
        await send(message)

    try:
        await app(scope, receive, begin)
    except asyncio.CancelledError:
        if not has_begun:
            why = "the service is shutting down: send it again"
            await JSONResponse({"error": why}, 503, {"retry-after": "1"})(scope, receive, send)


def _is_running(process: int) -> bool:
    """Return whether a process of the same user is running."""
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


def _set(made: asyncio.Future[Starlette], app: Starlette) -> None:
    if not made.done():  # it is cancelled if the service has ended meanwhile
        made.set_result(app)


def _starting(path: str) -> JSONResponse:
    """Return the answer of a service that is still reading its history."""
    if path == "/health":
        return JSONResponse({"status": "starting"})
    why = "the service is starting and reads its history: retry in a second"
    return JSONResponse({"error": why}, 503, {"retry-after": "1"})


_PATH = "STREAMMETRICS_LIVE_CONFIG"  # tells a worker its configuration
_SHARED = "STREAMMETRICS_LIVE_WORKERS"  # the folder through which workers share their status
_TROUBLE = 64  # bytes of the file that tells the parent why it exits with an error
_HEADERS = 16_384  # maximum bytes of a request's headers
_BACKLOG = 2048  # maximum pending connections
_GRACE = 5  # seconds for requests to end; container runtimes often wait for no more than 10
_SILENCE = 60  # seconds without a heartbeat after which a worker is replaced
_PAUSE = 0.05  # seconds between checks whether it listens
_errors: list[Exception] = []  # of this process: why it could not start, or lost events
_begun = threading.Event()  # set once the server handles signals


def served() -> Opening:
    """Return the application of a worker, configured through the environment."""
    _begun.set()
    warnings.simplefilter("ignore", UndefinedMetricWarning)  # answers have null instead
    warnings.showwarning = _show_warning
    models = models_of(os.environ[_PATH])
    found = next(iter(models.values()))
    Connection.patience, Connection.most = found.server.timeout, found.server.connections
    parent = multiprocessing.parent_process()
    if parent is None:
        return Opening(partial(_made, models), _errors.append, _errors.append)
    threading.Thread(target=_end_with, args=(parent,), name="parent", daemon=True).start()
    workers = Workers(found.server.workers, Path(os.environ[_SHARED], "ready"))
    is_durable = all(each.options["durable"] for each in models.values())
    for process in [] if is_durable else workers.take_killed():
        warnings.warn(
            f"worker {process} was killed, by somebody or because it did nothing for a minute, "
            "and is replaced: events that it took in its last second may be lost; durable = "
            "true prevents this",
            StoreWarning,
            stacklevel=1,
        )
    failed = partial(_tell_failed, parent, workers)
    return Opening(partial(_made, models), _tell_lost, failed, workers)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Log a warning as one line, without its source location."""
    log("warning", str(message))


def _tell_lost(error: StreamMetricsError) -> None:
    """Report lost events in a worker, and make the parent exit with an error."""
    log("error", str(error))
    _tell_parent("events of a worker are lost")


def _tell_failed(parent: BaseProcess, workers: Workers, error: Exception) -> None:
    """Report that a worker cannot start; end the service if none is ready, or try again."""
    log("error", f"a worker cannot start: {error}")
    if not workers.n_ready() and parent.pid is not None:
        _tell_parent("a worker cannot start")
        os.kill(parent.pid, signal.SIGTERM)


def _tell_parent(trouble: str) -> None:
    """Make the parent exit with an error."""
    with Path(os.environ[_SHARED], "trouble").open("r+b") as file:  # in place: the disk may be full
        file.write(trouble.encode().ljust(_TROUBLE, b"\0"))


def _made(models: Mapping[str, Settings]) -> Starlette:
    """Return the application, after reading everything that is stored."""
    apps = {name: _made_of(found) for name, found in models.items()}
    if "" in apps:
        return apps[""]
    return application_of(apps, next(iter(models.values())).server)


def _made_of(found: Settings) -> Starlette:
    """Return the application of a model."""
    began = time.monotonic()
    live = found.live()
    log("info", "the store is read", seconds=round(time.monotonic() - began, 3))
    replicas = None
    if found.merging is not None:
        replicas = Replicas(live, found.merging)
        replicas.pull()
    return application(
        live,
        names=found.names,
        view=found.view,
        server=found.server,
        rules=found.rules,
        delivery=found.delivery,
        letters=found.letters,
        replicas=replicas,
        owned=True,
    )


def _end_with(parent: BaseProcess) -> None:
    """End this worker, with all events written, when its parent is gone."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def serve(models: Mapping[str, Settings], server: Server) -> None:
    """Serve until Ctrl-C or SIGTERM, then write all events.

    Args:
        models: The settings of each model.
        server: How to listen.

    Raises:
        StreamMetricsError: Not all events could be written.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _ended)
    # Problems with a store are reported here, not in every worker.
    for found in models.values() if server.workers > 1 else ():
        found.check_store()
    os.environ[_PATH] = os.path.abspath(next(iter(models.values())).path)
    with _listening(server.socket) if server.socket else nullcontext() as own:
        fd = None if own is None else own.fileno()
        threading.Thread(target=_tell, args=(server,), daemon=True).start()
        if server.workers > 1:
            _run_workers(server, fd)
            return
        _run(server, fd)
    if _errors:
        raise _errors[0]


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
        trouble = Path(folder, "trouble")
        trouble.write_bytes(bytes(_TROUBLE))
        Path(folder, "ready").mkdir()
        _run(server, fd)
        if told := trouble.read_bytes().rstrip(b"\0").decode():
            raise StreamMetricsError(f"{told}, see above")


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
