"""A service that answers requests while it is still reading its history."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, NamedTuple

from streammetrics.core.errors import StreamMetricsError, needs

with needs("starlette", "live"):
    from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Receive, Scope, Send


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
        if self.folder is None:
            return True
        return sum([_is_running(int(path.name)) for path in self.folder.iterdir()]) >= self.number

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
        workers: The workers of the service.

    Attributes:
        error: Why the application could not be created.
    """

    def __init__(
        self,
        make: Callable[[], Starlette],
        lost: Callable[[StreamMetricsError], None],
        workers: Workers = ALONE,
    ) -> None:
        self._make, self._lost, self._workers = make, lost, workers
        self._app: ASGIApp | None = None
        self.error: Exception | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or delegate it to the application."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif self._app is not None and not self._waits(scope):
            await self._app(scope, receive, send)
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
            self.error = error
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
