"""The endpoints of a live state, as an ASGI application."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from streammetrics.core.needs import needs

with needs("starlette", "live"):
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

from streammetrics.core.errors import StreamMetricsError
from streammetrics.live.exporting.prometheus import LiveCollector, exposition
from streammetrics.live.keeper import StoreWarning
from streammetrics.live.service import answers
from streammetrics.live.service.cache import Cache
from streammetrics.live.service.guard import Guard
from streammetrics.live.service.intake import Intake
from streammetrics.live.service.names import Names, PageView
from streammetrics.live.service.openapi import described
from streammetrics.live.service.page import FILES, static
from streammetrics.live.service.server import Server
from streammetrics.live.service.watching import Watching
from streammetrics.live.telling import tell
from streammetrics.live.time import shown_time

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from starlette.requests import Request

    from streammetrics.core.types import Document, Json
    from streammetrics.live.alerts.rule import Rule

_OPEN = ("/", "/health", "/openapi.json", *(f"/{name}" for name in FILES))


def application(
    live: object,
    *,
    names: Names | None = None,
    view: PageView | None = None,
    server: Server | None = None,
    rules: Sequence[Rule] = (),
    owned: bool = False,
) -> Starlette:
    """Return an application that takes events of a live state and answers for it.

    Args:
        live: The live state.
        names: What columns of events are called.
        view: What is shown.
        server: Limits of requests, and the token that they bear.
        rules: What alerts are watched for.
        owned: Whether it is closed when the application ends; else what waits is written.
    """
    server = server or Server()
    service = Service(live, names or Names(), view or PageView(), server, rules, owned=owned)
    guard = Middleware(Guard, token=server.token, local=server.is_local, open_paths=_OPEN)
    routes = [
        Route("/events", service.events, methods=["POST"]),
        Route("/api/now", service.now),
        Route("/api/series", service.series),
        Route("/api/coverage", service.coverage),
        Route("/api/possible", service.possible),
        Route("/api/slices", service.slices),
        Route("/api/alerts", service.alerts),
        Route("/metrics", service.metrics),
        Route("/state", service.state),
        Route("/health", service.health),
        Route("/openapi.json", service.openapi),
        *(Route(f"/{name}", partial(static, name)) for name in FILES),
        Route("/", partial(static, "index.html")),
    ]
    return Starlette(routes=routes, middleware=[guard], lifespan=service.lifespan)


class Service:
    """What answers; reads are made one after the other, beside the thread that takes events."""

    def __init__(
        self,
        live: Any,
        names: Names,
        view: PageView,
        server: Server,
        rules: Sequence[Rule],
        *,
        owned: bool,
    ) -> None:
        self._live, self._view, self._server, self._owned = live, view, server, owned
        self._names, self._watching = names, Watching(live, rules)
        self._began = time.time()
        self._reader = ThreadPoolExecutor(1, "reads")
        self._cache = Cache(self._reader)
        self._line = answers.WindowAnswers()  # of what the page shows
        self._intake = Intake(live, names, server)

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Write what waits when the service ends."""
        yield
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._end)

    def _end(self) -> None:
        self._intake.close()
        try:
            (self._live.close if self._owned else self._live.flush)()
        except StreamMetricsError:  # the keeper tries once more at the exit
            keeper = self._live._keeper
            why = f"{keeper.waiting:,} events are not in the store, and are lost: {keeper.down}"
            tell(why, StoreWarning)
        self._reader.shutdown(wait=True, cancel_futures=True)

    async def events(self, request: Request) -> Response:
        """Take events."""
        return await self._intake.answer(request)

    # --- what is read ----------------------------------------------------------------------

    async def now(self, request: Request) -> Response:
        """Answer what the newest window says."""
        view = self._asked(request)
        return await self._answer(request, ("now", view.window), partial(answers.now, view=view))

    async def series(self, request: Request) -> Response:
        """Answer how the metrics went."""
        view = self._asked(request)
        line = self._line if view == self._view else answers.WindowAnswers()
        call = partial(line.read, window=view.window, every=view.every)
        return await self._answer(request, ("series", view.window, view.every), call)

    async def coverage(self, request: Request) -> Response:
        """Answer what became of predictions."""
        window = self._asked(request).window
        call = partial(answers.coverage, window=window)
        return await self._answer(request, ("coverage", window), call)

    async def possible(self, request: Request) -> Response:
        """Answer what the missing labels could do."""
        view = self._asked(request)
        call = partial(answers.possible, view=view)
        return await self._answer(request, ("possible", view.window), call)

    async def alerts(self, request: Request) -> Response:
        """Answer how the rules stand."""

        def call(_: object) -> Document:
            return answers.alerts(self._watching.alerts() or self._watching.unjudged)

        return await self._answer(request, ("alerts",), call)

    async def metrics(self, request: Request) -> Response:
        """Answer a scrape of Prometheus."""
        collector = LiveCollector(
            self._live, window=self._view.window, alerts=self._watching.alerts
        )
        accept, loop = request.headers.get("accept", ""), asyncio.get_running_loop()
        read = partial(self._read, lambda _: exposition(collector, accept))
        body, content_type = await loop.run_in_executor(self._reader, read)
        return Response(body, headers={"content-type": content_type})

    async def slices(self, request: Request) -> Response:
        """Answer what the metrics are by slice, where there are any."""
        window = self._asked(request).window
        call = partial(answers.slices, window=window)
        return await self._answer(request, ("slices", window), call)

    def _asked(self, request: Request) -> PageView:
        """Return what a request looks at: what it does not say is as the page has it."""
        said = {k: v for k, v in request.query_params.items() if k in {"window", "every"}}
        return replace(self._view, **said)

    async def _answer(
        self, request: Request, key: tuple[str, ...], call: Callable[[Any], Json]
    ) -> Response:
        """Answer from the cache, or with 304 where the client has it."""
        try:
            body = await self._cache.get(key, partial(self._read, call))
        except (StreamMetricsError, ValueError, TypeError) as error:
            return JSONResponse({"error": str(error)}, 400)
        tag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type="application/json", headers=headers)

    def _read(self, call: Callable[[Any], Json]) -> Json:
        if self._server.clock == "wall":
            self._live.now(time.time())
        return call(self._live)

    async def state(self, _: Request) -> Response:
        """Answer with the state as bytes, which others merge."""
        loop = asyncio.get_running_loop()
        blob = await loop.run_in_executor(self._reader, self._live.to_bytes)
        return Response(blob, media_type="application/octet-stream")

    async def health(self, request: Request) -> Response:
        """Answer how the service is, to who bears the token all of it."""
        keeper, intake = self._live._keeper, self._intake
        trouble = "" if keeper is None else keeper.down
        told: Document = {"status": "degraded" if trouble else "ok"}
        if request.scope["streammetrics.trusted"]:
            newest = self._live._stream.panes.newest
            told |= {
                "newest": shown_time(newest) if newest >= 0 else None,
                "taken": intake.taken,
                "refused": intake.refused,
                "queue": {"waiting": intake.waiting, "most": self._server.queue},
                "store": None
                if keeper is None
                else {"trouble": trouble, "failures": keeper.failures, "unwritten": keeper.waiting},
                "worker": os.getpid(),
                "seconds": round(time.time() - self._began, 1),
            }
        return JSONResponse(told)

    async def openapi(self, _: Request) -> Response:
        """Answer with the description of all this."""
        return JSONResponse(described(self._live, self._names, self._view, self._server))
