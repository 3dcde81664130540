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
from typing import TYPE_CHECKING, Any, TypeVar

from streammetrics.core.needs import needs

with needs("starlette", "live"):
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

from streammetrics.core.errors import StreamMetricsError
from streammetrics.live.exporting.families import families
from streammetrics.live.exporting.prometheus import exposition
from streammetrics.live.keeper import StoreWarning
from streammetrics.live.service import answers
from streammetrics.live.service.cache import Cache, GoneError
from streammetrics.live.service.guard import Guard
from streammetrics.live.service.intake import Intake
from streammetrics.live.service.names import Names, PageView
from streammetrics.live.service.openapi import described
from streammetrics.live.service.page import FILES, static
from streammetrics.live.service.scrape import Requests, Scrape, UnreadError
from streammetrics.live.service.server import Server
from streammetrics.live.service.watching import Watching
from streammetrics.live.telling import tell
from streammetrics.live.time import shown_time

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from starlette.requests import Request

    from streammetrics.core.types import Document, Json
    from streammetrics.live.alerts.rule import Rule
    from streammetrics.live.keeper import Keeper

    GoOn = Callable[[], None]  # which raises where nobody waits any more

T = TypeVar("T")

_SCRAPES = 4  # at once
_OPEN = ("/", "/health", "/ready", "/openapi.json", *(f"/{name}" for name in FILES))
_PATHS = (
    *_OPEN, "/events", "/metrics", "/state",
    *(f"/api/{name}" for name in ("now", "series", "coverage", "possible", "slices", "alerts")),
)  # fmt: skip


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
    requests = Requests(_PATHS)
    service = Service(
        live, names or Names(), view or PageView(), server, rules, requests, owned=owned
    )
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
        Route("/ready", service.ready),
        Route("/openapi.json", service.openapi),
        *(Route(f"/{name}", partial(static, name)) for name in FILES),
        Route("/", partial(static, "index.html")),
    ]
    around = [Middleware(requests.around), guard]
    return Starlette(routes=routes, middleware=around, lifespan=service.lifespan)


class Service:
    """What answers.

    Reads are made one after the other, beside the thread that takes events; scrapes and alerts have
    threads of their own, and health needs none.
    """

    def __init__(
        self,
        live: Any,
        names: Names,
        view: PageView,
        server: Server,
        rules: Sequence[Rule],
        requests: Requests,
        *,
        owned: bool,
    ) -> None:
        self._live, self._view, self._server, self._owned = live, view, server, owned
        self._names, self._watching = names, Watching(live, rules)
        self._began = time.time()
        self._reader = ThreadPoolExecutor(1, "reads")
        self._scraper = ThreadPoolExecutor(_SCRAPES, "scrapes")  # which wait for no other read
        self._cache, self._quick = Cache(self._reader), Cache(self._scraper)
        self._line = answers.WindowAnswers()  # of what the page shows
        self._intake = Intake(live, names, server)
        read = partial(self._at_present, partial(families, live, view.window))
        self._scrape = Scrape(
            read, view.title, self._watching, self._intake, requests, shared=server.workers > 1
        )

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Write what waits when the service ends.

        Raises:
            StreamMetricsError: It cannot be written, or its file is gone, and events are lost.
        """
        yield
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._end)

    def _end(self) -> None:
        self._intake.close()
        keeper = self._live._keeper
        try:
            (self._live.close if self._owned else self._live.flush)()
        except StreamMetricsError as error:
            if n := keeper.waiting:
                lost = "1 event is" if n == 1 else f"{n:,} events are"
                raise StreamMetricsError(
                    f"the store cannot be written, {lost} lost: {keeper.trouble}"
                ) from error
        finally:
            for executor in (self._reader, self._scraper):
                executor.shutdown(wait=True, cancel_futures=True)
        if keeper is not None and keeper.is_gone:
            raise StreamMetricsError(
                f"the store is gone, and its events with it unless it was moved: {keeper.trouble}"
            )
        if keeper is not None and keeper.trouble:
            tell(f"the store cannot be written, no event is lost: {keeper.trouble}", StoreWarning)

    async def events(self, request: Request) -> Response:
        """Take events."""
        return await self._intake.answer(request)

    # --- what is read ----------------------------------------------------------------------

    async def now(self, request: Request) -> Response:
        """Answer what the newest window says."""
        return await self._window(request, "now", answers.now)

    async def series(self, request: Request) -> Response:
        """Answer how the metrics went."""
        view, span = self._asked(request), request.query_params.get("span")
        page = view == self._view and span is None  # which has as much as a request may read
        line = self._line if page else answers.WindowAnswers()

        def call(go_on: GoOn) -> Document:
            return line.read(self._live, view, span, go_on, whole=not page)

        key = ("series", view.window, view.every, span, page)
        return await self._answer(request, key, call)

    async def coverage(self, request: Request) -> Response:
        """Answer what became of predictions."""
        return await self._window(request, "coverage", answers.coverage)

    async def possible(self, request: Request) -> Response:
        """Answer what the missing labels could do."""
        return await self._window(request, "possible", answers.possible)

    async def slices(self, request: Request) -> Response:
        """Answer what the metrics are by slice, where there are any."""
        return await self._window(request, "slices", answers.slices)

    async def alerts(self, request: Request) -> Response:
        """Answer how the rules stand."""

        def call(_: GoOn) -> Document:
            return answers.alerts(self._watching.alerts() or self._watching.unjudged)

        return await self._answer(request, ("alerts",), call, self._quick)

    async def metrics(self, request: Request) -> Response:
        """Answer a scrape of Prometheus."""
        accept, loop = request.headers.get("accept", ""), asyncio.get_running_loop()
        read = partial(self._at_present, partial(exposition, self._scrape, accept))
        try:
            body, content_type = await loop.run_in_executor(self._scraper, read)
        except UnreadError:
            why = "the state is read for the first time: scrape again in a second"
            return JSONResponse({"error": why}, 503, {"retry-after": "1"})
        return Response(body, headers={"content-type": content_type})

    def _asked(self, request: Request) -> PageView:
        """Return what a request looks at: what it does not say is as the page has it."""
        said = {k: v for k, v in request.query_params.items() if k in {"window", "every"}}
        return replace(self._view, **said)

    async def _window(
        self, request: Request, name: str, read: Callable[[Any, PageView], Document]
    ) -> Response:
        """Answer what one window says; one that the page does not have must not cost too much."""
        view = self._asked(request)

        def call(go_on: GoOn) -> Document:
            if view.window != self._view.window:
                answers.check_cost(self._live, view.window, go_on)
            return read(self._live, view)

        return await self._answer(request, (name, view.window), call)

    async def _answer(
        self,
        request: Request,
        key: tuple[object, ...],
        call: Callable[[GoOn], Json],
        cache: Cache | None = None,
    ) -> Response:
        """Answer from the cache, or with 304 where the client has it."""

        def make(go_on: GoOn) -> Json:
            return self._at_present(partial(call, go_on))

        try:
            body = await (cache or self._cache).get(key, make, partial(_gone, request))
        except GoneError:
            return Response(status_code=499)  # which nobody reads
        except answers.CostError as error:
            return JSONResponse({"error": str(error)}, 422)
        except (StreamMetricsError, ValueError, TypeError) as error:
            return JSONResponse({"error": str(error)}, 400)
        tag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type="application/json", headers=headers)

    def _at_present(self, call: Callable[[], T]) -> T:
        if self._server.clock == "wall":
            self._live.now(time.time())
        return call()

    async def state(self, _: Request) -> Response:
        """Answer with the state as bytes, which others merge."""
        loop = asyncio.get_running_loop()
        blob = await loop.run_in_executor(self._reader, self._live.to_bytes)
        return Response(blob, media_type="application/octet-stream")

    async def health(self, request: Request) -> Response:
        """Answer how the service is, to who bears the token all of it."""
        keeper, intake = self._live._keeper, self._intake
        trouble = "" if keeper is None else keeper.trouble  # read once, as it changes meanwhile
        told: Document = {"status": "degraded" if trouble else "ok"}
        if request.scope["streammetrics.trusted"]:
            newest = self._live._stream.panes.newest
            told |= {
                "newest": shown_time(newest) if newest >= 0 else None,
                "taken": intake.taken.total(),
                "refused": intake.refused.total(),
                "queue": {"waiting": intake.waiting, "most": self._server.queue},
                "store": None if keeper is None else _of_store(keeper, trouble),
                "worker": os.getpid(),
                "seconds": round(time.time() - self._began, 1),
            }
        return JSONResponse(told)

    async def ready(self, _: Request) -> Response:
        """Answer that all that was stored has been read: before, nothing of this answers."""
        return JSONResponse({"status": "ready"})

    async def openapi(self, _: Request) -> Response:
        """Answer with the description of all this."""
        return JSONResponse(described(self._live, self._names, self._view, self._server))


def _of_store(keeper: Keeper, trouble: str) -> Document:
    """Return how the store is, and what a crash would lose."""
    n = keeper.unwritten
    them = "1 event, which is" if n == 1 else f"{n:,} events, which are"
    lost = f"a crash would lose {them} in memory alone: durable = true refuses them"
    return {
        "trouble": trouble,
        "failures": keeper.failures,
        "unwritten": n,
        "durable": keeper.durable,
        "at_risk": lost if n else "",
    }


async def _gone(request: Request) -> None:
    """Wait until the client of a request is gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
