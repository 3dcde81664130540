"""A service that answers from its first moment, while its history is being read."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, NamedTuple

from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.optional import needs

with needs("starlette", "live"):
    from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Receive, Scope, Send


class Workers(NamedTuple):
    """The workers of a service: how many they are, and which of them are ready.

    Attributes:
        number: How many workers there are.
        folder: Holds an empty file for every worker that is ready, named by its process; ``None``
            where there is only one worker.
    """

    number: int = 1
    folder: Path | None = None

    def tell_ready(self) -> None:
        """Say that this worker is ready."""
        if self.folder is not None:
            (self.folder / str(os.getpid())).touch()

    def all_ready(self) -> bool:
        """Whether as many workers are ready as there are: one that has died is not."""
        if self.folder is None:
            return True
        return sum([_is_running(int(path.name)) for path in self.folder.iterdir()]) >= self.number


ALONE = Workers()


class Opening:
    """Answers that a service starts until its application is made, and then lets that answer.

    ``/health`` is answered 200, and all else 503 with ``Retry-After``; ``/ready`` until all workers
    have their application, as any of them may get the next request. Where the application cannot be
    made, the process ends as by SIGTERM.

    Args:
        make: Makes the application, on a thread of its own.
        lost: Takes the error with which the application ends where it cannot write all events.
        workers: This worker among the others.

    Attributes:
        error: Why the application cannot be made.
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
        """Answer, or let the application answer."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif self._app is not None and not self._waits(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await _starting(scope["path"])(scope, receive, send)

    def _waits(self, scope: Scope) -> bool:
        """Whether a request asks if the service is ready, and another worker is not."""
        asks = scope["type"] == "http" and scope["path"] == "/ready"
        return asks and not self._workers.all_ready()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        try:
            async with AsyncExitStack() as stack:
                await self._live(receive, send, stack)
        except StreamMetricsError as error:
            self._lost(error)
        await send({"type": "lifespan.shutdown.complete"})

    async def _live(self, receive: Receive, send: Send, stack: AsyncExitStack) -> None:
        """Make the application, and wait until it is to end."""
        await receive()
        made: asyncio.Future[Starlette] = asyncio.get_running_loop().create_future()
        opening = asyncio.ensure_future(self._open(made, stack))
        arguments = (made, asyncio.get_running_loop())
        # A thread that nobody waits for: a service that ends has nothing to write before this.
        threading.Thread(target=self._run, args=arguments, name="opening", daemon=True).start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if not made.done():
            opening.cancel()
        await asyncio.wait([opening])

    def _run(self, made: asyncio.Future[Starlette], loop: asyncio.AbstractEventLoop) -> None:
        """Make the application."""
        try:
            app = self._make()
        except Exception as error:  # of whatever kind: who started the service is told
            self.error = error
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            with suppress(RuntimeError):  # the service has ended meanwhile
                loop.call_soon_threadsafe(_set, made, app)

    async def _open(self, made: asyncio.Future[Starlette], stack: AsyncExitStack) -> None:
        """Let the application answer once it is made."""
        app = await made
        await stack.enter_async_context(app.router.lifespan_context(app))
        self._app = app
        self._workers.tell_ready()


def _is_running(process: int) -> bool:
    """Whether a process of the same user runs."""
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


def _set(made: asyncio.Future[Starlette], app: Starlette) -> None:
    if not made.done():  # it is cancelled where the service has ended meanwhile
        made.set_result(app)


def _starting(path: str) -> JSONResponse:
    """Return the answer of a service whose history is being read."""
    if path == "/health":
        return JSONResponse({"status": "starting"})
    why = "the service starts and reads its history: come again in a second"
    return JSONResponse({"error": why}, 503, {"retry-after": "1"})
