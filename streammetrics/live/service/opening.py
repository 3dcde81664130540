"""A service that answers from its first moment, while its history is being read."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.optional import needs

with needs("starlette", "live"):
    from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Receive, Scope, Send


class Opening:
    """Answers that a service starts until its application is made, and then lets that answer.

    ``/health`` is answered 200, and all else 503 with ``Retry-After``. Where the application cannot
    be made, the process ends as by SIGTERM.

    Args:
        make: Makes the application, on a thread of its own.
        lost: Takes the error with which the application ends where it cannot write all events.

    Attributes:
        error: Why the application cannot be made.
    """

    def __init__(
        self, make: Callable[[], Starlette], lost: Callable[[StreamMetricsError], None]
    ) -> None:
        self._make, self._lost = make, lost
        self._app: ASGIApp | None = None
        self.error: Exception | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the application answer."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif self._app is not None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await _starting(scope["path"])(scope, receive, send)

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


def _set(made: asyncio.Future[Starlette], app: Starlette) -> None:
    if not made.done():  # it is cancelled where the service has ended meanwhile
        made.set_result(app)


def _starting(path: str) -> JSONResponse:
    """Return the answer of a service whose history is being read."""
    if path == "/health":
        return JSONResponse({"status": "starting"})
    why = "the service starts and reads its history: come again in a second"
    return JSONResponse({"error": why}, 503, {"retry-after": "1"})
