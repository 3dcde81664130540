"""The ASGI application: endpoints, the page, and the OpenAPI description."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import os
import time
from bisect import insort
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from hashlib import blake2b
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from streammetrics.core.columns.batch import near
from streammetrics.core.errors import InvalidBatchError, StreamMetricsError, needs, warn_caller
from streammetrics.core.registry import VERSION
from streammetrics.live.events import KINDS, duration, instant, shown_time
from streammetrics.live.exporting.families import families
from streammetrics.live.exporting.prometheus import exposition
from streammetrics.live.service import answers
from streammetrics.live.service.bodies import KEY, LONGEST_KEY, Intake, RefusalError, misread
from streammetrics.live.service.delivery import Deliverer, Delivery
from streammetrics.live.service.http import Cache, GoneError, Guard, SlowError
from streammetrics.live.service.monitoring import (
    ModelScrapes,
    Requests,
    Scrape,
    UnreadError,
    Watching,
)
from streammetrics.live.service.server import Names, PageView, Server
from streammetrics.live.store import StoreWarning
from streammetrics.live.validation import truth_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from starlette.requests import Request

    from streammetrics.core.types import Document, Json
    from streammetrics.live.alerts.rule import Rule
    from streammetrics.live.journal import Journal
    from streammetrics.live.queries import Queries
    from streammetrics.live.service.http import Steps
    from streammetrics.live.service.replicas import Replicas

    GoOn = Callable[[], None]  # raises if no client waits any more


_TYPES = {"number": "number", "id": "string", "label": "string"}
_LABEL = {"anyOf": [{"type": "integer"}, {"type": "boolean"}, {"type": "string"}]}
_TIME = {
    "anyOf": [
        {"type": "number", "minimum": 0, "description": "seconds since 1970"},
        {"type": "string", "format": "date-time"},
    ]
}
_ID = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
_SAID = {
    "window": 'A duration such as "1h"; without it, that of the configuration.',
    "every": 'A duration such as "5min"; without it, that of the configuration.',
    "span": 'How far back the windows end, such as "2d"; without it, as far as there are rows.',
    "ago": 'How much earlier the windows end, such as "1d".',
    "models": "Names of models with commas between; the others are compared with the first one.",
    "slice": 'A slice as a JSON object, such as {"country":"DE"}; without it, all rows.',
}
_INPUTS = {
    "number": {"type": ["number", "null"]},
    "category": {"type": ["string", "integer", "boolean", "null"]},
}
_READS = {  # by path: a summary and the query parameters
    "/api/now": ("Each metric over the newest window.", "window"),
    "/api/series": ("Windows one after the other.", "window", "every", "span", "ago", "slice"),
    "/api/coverage": ("What became of predictions.", "window"),
    "/api/possible": ("What the missing labels could do.", "window"),
    "/api/estimated": ("Each metric over all rows, by their judgments.", "window"),
    "/api/inputs": ("What inputs are like, without labels.", "window"),
    "/api/slices": ("Each metric by slice.", "window"),
    "/api/alerts": ("How the rules of alerts stand.",),
    "/api/marks": ("Marks on the charts.",),
    "/api/view": ("What the page can show.",),
}
_MARK = {
    "type": "object",
    "properties": {"text": {"type": "string", "minLength": 1, "maxLength": 200}, "time": _TIME},
    "required": ["text"],
    "additionalProperties": False,
}
_ERROR = {
    "type": "object",
    "properties": {
        "error": {"type": "string"},
        "row": {"type": ["integer", "null"]},
        "column": {"type": ["string", "null"]},
    },
    "required": ["error"],
}


def described(live: object, names: Names, view: PageView, server: Server) -> Document:
    """Return the OpenAPI description of a service."""
    paths = {
        "/events": {"post": _events(live, names)},
        "/marks": {"post": _marks()},
        **{path: _reading(summary, *names) for path, (summary, *names) in _READS.items()},
        **_SHARED,
        "/state": {
            "get": {
                "summary": "The state, for sm.from_bytes and merge.",
                "responses": {
                    "200": _content("application/octet-stream", {}),
                    "304": {"description": "It is what If-None-Match says."},
                    **_refusals(401, 403),
                },
            }
        },
    }
    return _description(view.title, paths, server)


def _description(title: str, paths: Document, server: Server) -> Document:
    told: Document = {
        "openapi": "3.1.0",
        "info": {"title": title, "version": VERSION},
        "paths": paths,
        "components": {"schemas": {"Error": _ERROR}},
    }
    if server.needs_token:
        told["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
        told["security"] = [{"bearer": []}]
    return told


def _events(live: Any, names: Names) -> dict[str, object]:
    kinds, truth = live._config.declared.kinds, truth_of(live._suite)
    columns = {n: _LABEL if k == "label" else {"type": _TYPES[k]} for n, k in kinds.items()}
    required = [n for n in columns if n != "sample_weight"]
    inputs = live._config.declared.inputs.every
    columns |= {one.name: _INPUTS[one.kind] for one in inputs if one.name not in columns}
    predicted = [n for n in required if n != truth]
    ids = {} if live._ingest.reads_id else {names.id: _ID}
    observed = {**ids, names.time: _TIME, **columns}
    every = [_event("observe", observed, [names.time, *required])]
    if truth:
        heads = {names.id: _ID, names.time: _TIME}
        rest = {n: kind for n, kind in columns.items() if n != truth}
        every.append(_event("predict", {**heads, **rest}, [*heads, *predicted]))
        late = {**heads, names.version: {"type": "integer", "minimum": 0}, truth: columns[truth]}
        every.append(_event("label", late, [*heads, truth]))
    lines = {"type": "array", "items": {"anyOf": every}}
    numbers = {name: {"type": "integer"} for name in ("taken", *KINDS, "late", "refused")}
    taken = {"type": "object", "properties": numbers, "required": ["taken"]}
    return {
        "summary": "Events: all of a request are taken, or none.",
        "description": "One JSON object a line, an array of them, or a table of Arrow.",
        "parameters": [
            {
                "name": "kind",
                "in": "query",
                "description": "That of events which do not say their own.",
                "schema": {"enum": list(KINDS)},
            },
            {
                "name": KEY,
                "in": "header",
                "description": "The same for each try of a request: its observations count once.",
                "schema": {"type": "string", "maxLength": LONGEST_KEY},
            },
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": lines},
                "application/x-ndjson": {"schema": {"type": "string"}},
                "application/vnd.apache.arrow.stream": {"schema": {}},
            },
        },
        "responses": {
            "202": _content("application/json", taken),
            **_refusals(400, 401, 403, 408, 413, 415, 422, 429, 503, 507),
        },
    }


def _marks() -> dict[str, object]:
    refusals = _refusals(400, 401, 403, 408, 413, 422, 429, 503)
    return {
        "summary": "A mark on the charts, such as a deployment.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": _MARK}}},
        "responses": {"201": _content("application/json", _MARK), **refusals},
    }


def _event(kind: str, columns: Document, required: list[str]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {"kind": {"const": kind}, **columns},
        "required": ["kind", *required],
    }


def _reading(summary: str, *parameters: str) -> dict[str, object]:
    asked = [
        {
            "name": name,
            "in": "query",
            "description": _SAID[name],
            "schema": {"type": "string"},
        }
        for name in parameters
    ]
    responses = {
        "200": _content("application/json", {"type": "object"}),
        **_refusals(400, 401, 403),
    }
    if parameters:
        responses |= _refusals(422, 503)
        responses["304"] = {"description": "It is what If-None-Match says."}
    return {"get": {"summary": summary, "parameters": asked, "responses": responses}}


def _content(form: str, schema: Document) -> dict[str, object]:
    return {"description": "Done.", "content": {form: {"schema": schema}}}


def _refusals(*statuses: int) -> dict[str, object]:
    schema = {"$ref": "#/components/schemas/Error"}
    content = {"application/json": {"schema": schema}}
    return {str(status): {"description": "Refused.", "content": content} for status in statuses}


_SHARED = {  # the description of what several models have together
    "/health": _reading("Whether the store can be written; otherwise degraded."),
    "/ready": _reading("Whether every worker has read the store; 503 before."),
    "/metrics": {
        "get": {
            "summary": "What Prometheus scrapes.",
            "responses": {"200": _content("text/plain", {}), **_refusals(401, 403, 503)},
        }
    },
}
_PAGE_TYPES = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
FILES = {
    "page.css": __package__,
    "page.js": __package__,
    "draw.js": __package__,
    "view.js": __package__,
    "icon.svg": __package__,
    "plotly.min.js": "plotly",
}
_FOLDERS = {__package__: "static", "plotly": "package_data"}


async def static(name: str, request: Request) -> Response:
    """Answer with a static file of the page."""
    tag, plain, packed = await asyncio.to_thread(_file, name)
    headers = {"etag": tag, "cache-control": "no-cache", "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    body = plain
    if "gzip" in request.headers.get("accept-encoding", ""):
        body, headers["content-encoding"] = packed, "gzip"
    form = _PAGE_TYPES[name.rpartition(".")[2]]
    return Response(body, media_type=f"{form}; charset=utf-8", headers=headers)


@cache
def _file(name: str) -> tuple[str, bytes, bytes]:
    package = FILES.get(name, __package__)
    body = resources.files(package).joinpath(_FOLDERS[package], name).read_bytes()
    return f'"{blake2b(body, digest_size=12).hexdigest()}"', body, gzip.compress(body, 6, mtime=0)


with needs("starlette", "live"):
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.responses import JSONResponse, RedirectResponse, Response
    from starlette.routing import Mount, Route


T = TypeVar("T")

_SCRAPES = 4  # concurrent scrapes
_SECONDS = 20  # seconds of processor time that a series may take
_LINES = 8  # series whose windows are kept for the next request
_OPEN = ("/", "/health", "/ready", "/openapi.json", *(f"/{name}" for name in FILES))
_WINDOWS: dict[str, Callable[[Queries, PageView], Document]] = {  # answers about one window
    "now": answers.now,
    "coverage": answers.coverage,
    "possible": answers.possible,
    "estimated": answers.estimated,
    "inputs": answers.inputs,
    "slices": answers.slices,
}
_PATHS = (*_OPEN, "/events", "/marks", "/metrics", "/state", *_READS)


def application(
    live: object,
    *,
    names: Names | None = None,
    view: PageView | None = None,
    server: Server | None = None,
    rules: Sequence[Rule] = (),
    delivery: Delivery | None = None,
    letters: str | None = None,
    replicas: Replicas | None = None,
    owned: bool = False,
) -> Starlette:
    """Return an application that takes events of a live state and answers queries.

    Args:
        live: The live state.
        names: The names of event columns.
        view: What the page shows.
        server: Limits of requests, and their token.
        rules: The alert rules.
        delivery: What is delivered when an alert changes.
        letters: The file for refused events; without it, a request with one is refused.
        replicas: The services whose states are shown; then no events are taken.
        owned: Whether to close the live state when the application ends; otherwise it is flushed.
    """
    server = server or Server()
    requests = Requests(_PATHS)
    service = Service(
        live,
        names or Names(),
        view or PageView(),
        server,
        rules,
        delivery or Delivery(),
        requests,
        letters=letters,
        replicas=replicas,
        owned=owned,
    )
    guard = Middleware(Guard, server=server, open_paths=_OPEN)
    routes = [
        Route("/events", service.events, methods=["POST"]),
        Route("/marks", service.mark, methods=["POST"]),
        Route("/api/marks", service.marks),
        Route("/api/view", service.view),
        *(Route(f"/api/{name}", partial(service.window, name)) for name in _WINDOWS),
        Route("/api/series", service.series),
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
    app = Starlette(routes=routes, middleware=around, lifespan=service.lifespan)
    app.state.service = service
    return app


def application_of(models: Mapping[str, Starlette], server: Server) -> Starlette:
    """Return an application of several models: that of each under ``/models/NAME/``.

    Beside these, ``/metrics`` and ``/health`` show all models, and ``/`` leads to the first one.

    Args:
        models: The application of each model, as `application` returns it.
        server: Limits of requests, and their token.
    """
    services: dict[str, Service] = {name: app.state.service for name, app in models.items()}
    duels = Duels({name: service.queries for name, service in services.items()})
    scrapes = ModelScrapes({name: service.scrape for name, service in services.items()})

    async def first(_: Request) -> Response:
        return RedirectResponse(f"models/{next(iter(models))}/")

    async def metrics(request: Request) -> Response:
        return await _scraped(partial(exposition, scrapes, request.headers.get("accept", "")))

    async def health(request: Request) -> Response:
        trusted = request.scope["streammetrics.trusted"]
        told = {name: service.told(trusted=trusted) for name, service in services.items()}
        is_well = all(each["status"] == "ok" for each in told.values())
        return JSONResponse({"status": "ok" if is_well else "degraded", "models": told})

    async def ready(_: Request) -> Response:
        return JSONResponse({"status": "ready"})

    async def openapi(_: Request) -> Response:
        compare = _reading("Models compared on the same requests.", "models", "window")
        title = ", ".join(models)
        return JSONResponse(_description(title, {**_SHARED, "/api/compare": compare}, server))

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(duels.close)
            for app in models.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    shared = Starlette(
        routes=[
            Route("/", first),
            Route("/metrics", metrics),
            Route("/health", health),
            Route("/ready", ready),
            Route("/api/compare", duels.answer),
            Route("/openapi.json", openapi),
        ],
        middleware=[Middleware(Guard, server=server, open_paths=_OPEN)],
    )
    every = [Mount(f"/models/{name}", app) for name, app in models.items()]
    return Starlette(routes=[*every, Mount("/", shared)], lifespan=lifespan)


class Duels:
    """Comparisons of models, one after the other, in a thread of their own.

    Args:
        queries: The live state of each model.
    """

    def __init__(self, queries: Mapping[str, Queries]) -> None:
        self._queries = queries
        self._executor = ThreadPoolExecutor(1, "duels")
        self._cache = Cache(self._executor)

    def close(self) -> None:
        """Wait for the comparison in progress."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    async def answer(self, request: Request) -> Response:
        """Answer with the differences of models to the first one."""
        asked = request.query_params
        if wrong := misread(request, "/api/compare", ("models", "window")):
            return RefusalError(422, wrong).answer
        names = tuple(filter(None, asked.get("models", ",".join(self._queries)).split(",")))
        for name in names:
            if name not in self._queries:
                return JSONResponse({"error": f"no model {name!r}{near(name, self._queries)}"}, 422)
        key = (names, asked.get("window"))
        try:
            body = await self._cache.get(key, partial(self._compare, *key), partial(_gone, request))
        except GoneError:
            return Response(status_code=499)  # nobody reads it
        except (StreamMetricsError, ValueError) as error:
            return JSONResponse({"error": str(error)}, 422)
        return _tagged(request, body, "application/json")

    def _compare(self, names: Sequence[str], window: str | None, _: GoOn) -> Iterator[Document]:
        models = {name: self._queries[name] for name in names}
        since = 0
        if window is not None and models:
            since = max(models[names[0]].clock - duration(window, "window"), 0)
        yield answers.compared(models, since)


async def _scraped(read: Callable[[], tuple[bytes, str]]) -> Response:
    """Answer a scrape of Prometheus, which `read` makes in a thread."""
    try:
        body, content_type = await asyncio.to_thread(read)
    except UnreadError:
        why = "the state is read for the first time: scrape again in a second"
        return JSONResponse({"error": why}, 503, {"retry-after": "1"})
    return Response(body, headers={"content-type": content_type})


_MOST_MARKS = 1000  # maximum number of marks; the newest are kept
_LONGEST_TEXT = 200  # maximum characters of a text


class MarkError(StreamMetricsError, ValueError):
    """A body is not a mark."""


class Mark(NamedTuple):
    """A time in nanoseconds and a text."""

    time: int
    text: str

    def to_dict(self) -> Document:
        """Return the mark as JSON values."""
        return {"time": shown_time(self.time), "text": self.text}


def mark_of(body: bytes, now: float) -> Mark:
    """Return the mark in a body; without a time, it is now.

    Raises:
        MarkError: The body is not a mark.
    """
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or not told.keys() <= {"time", "text"}:
        raise MarkError('expected a JSON object, as {"text": "version 2", "time": 1790000000}')
    text = told.get("text")
    if not isinstance(text, str) or not 1 <= len(text) <= _LONGEST_TEXT:
        raise MarkError(f"text is not a text of 1 to {_LONGEST_TEXT} characters")
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise MarkError("text holds half a character (a lone surrogate)")
    try:
        return Mark(instant(told.get("time", now)), text)
    except InvalidBatchError as error:
        raise MarkError(error.problem) from error


class Marks:
    """The marks of a service, kept in its store if it has one. The same mark again is ignored."""

    def __init__(self, journal: Journal | None) -> None:
        self._journal = journal
        self._memory: dict[str, str] = {}

    def read(self) -> list[Mark]:
        """Return all marks, oldest first."""
        if self._journal is not None:  # while it cannot be read, the last marks stay
            self._memory = self._journal.texts() or self._memory
        return _marks_in(self._memory)

    def put(self, mark: Mark) -> bool:
        """Add a mark; return whether it is kept."""

        def change(texts: Mapping[str, str]) -> dict[str, str]:
            marks = _marks_in(texts)
            if mark not in marks:
                insort(marks, mark)
            return {"marks": json.dumps(marks[-_MOST_MARKS:])}

        if self._journal is not None:
            return self._journal.exchange(change)
        self._memory = change(self._memory)
        return True


def _marks_in(texts: Mapping[str, str]) -> list[Mark]:
    return [Mark(*pair) for pair in json.loads(texts.get("marks", "[]"))]


class Service:
    """The endpoints.

    Windows are read one after the other, in another thread than events. Series, scrapes and alerts
    have their own threads, and health checks need none.
    """

    def __init__(
        self,
        live: Any,
        names: Names,
        view: PageView,
        server: Server,
        rules: Sequence[Rule],
        delivery: Delivery,
        requests: Requests,
        *,
        letters: str | None,
        replicas: Replicas | None,
        owned: bool,
    ) -> None:
        self._live, self._view, self._server, self._owned = live, view, server, owned
        self.queries: Queries = live._queries
        self._names, self._watching = names, Watching(self.queries, rules)
        self._began = time.time()
        self._reader = ThreadPoolExecutor(1, "reads")
        self._historian = ThreadPoolExecutor(1, "history")  # never delays reads of windows
        self._scraper = ThreadPoolExecutor(_SCRAPES, "scrapes")  # does not wait for other reads
        self._cache, self._quick = Cache(self._reader), Cache(self._scraper)
        self._history = Cache(self._historian, _SECONDS)
        self._line = answers.WindowAnswers()  # series of the page
        self._lines: dict[tuple[object, ...], answers.WindowAnswers] = {}  # the last other ones
        self.intake = Intake(live, names, server, letters)
        read = partial(families, self.queries, view.window, view.exported)
        judge = partial(self._at_present, self._watching.alerts)
        self._marks = Marks(self.queries.ingest.journal)
        self._deliverer = Deliverer(delivery, view.title, judge, self.queries.ingest.journal)
        self._replicas = replicas
        self.scrape = Scrape(
            partial(self._at_present, read),
            view.title,
            self._watching,
            self.intake,
            requests,
            self.queries.ingest.journal,
            self._deliverer,
            replicas,
            shared=server.workers > 1,
        )

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Evaluate the rules before requests are answered, and write pending events at the end.

        Raises:
            StreamMetricsError: Events cannot be written, or the store's file is gone, so that they
                are lost.
        """
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._scraper, partial(self._at_present, self._watching.start))
        self._deliverer.start()
        if self._replicas is not None:
            self._replicas.start()
        yield
        await loop.run_in_executor(None, self._end)

    def _end(self) -> None:
        self.intake.close()
        self._deliverer.close()
        if self._replicas is not None:
            self._replicas.close()
        journal: Any = self.queries.ingest.journal
        try:
            (self._live.close if self._owned else self._live.flush)()
        except StreamMetricsError as error:
            if n := journal.waiting:
                lost = "1 event is" if n == 1 else f"{n:,} events are"
                raise StreamMetricsError(
                    f"the store cannot be written, {lost} lost: {journal.trouble}"
                ) from error
        finally:
            for executor in (self._reader, self._historian, self._scraper):
                executor.shutdown(wait=True, cancel_futures=True)
        if journal is not None and journal.is_gone:
            raise StreamMetricsError(
                f"the store is gone or damaged, and its events may be lost: {journal.trouble}"
            )
        if journal is not None and journal.trouble:
            warn_caller(
                f"the store cannot be written, no event is lost: {journal.trouble}", StoreWarning
            )

    async def events(self, request: Request) -> Response:
        """Take events; a service that shows replicas takes none."""
        if self._replicas is None:
            return await self.intake.answer(request)
        why = "this service shows the merged states of replicas: send events to one of them"
        return JSONResponse({"error": why}, 405, {"allow": ""})

    async def mark(self, request: Request) -> Response:
        """Take a mark on the charts."""
        if request.query_params:
            return RefusalError(422, "/marks has no parameters: send a JSON object").answer
        body = bytearray()
        try:
            await self.intake.read(request, body)
            mark = mark_of(bytes(body), time.time())
        except MarkError as error:
            return RefusalError(422, str(error)).answer
        except RefusalError as refusal:
            return refusal.answer
        except ClientDisconnect:
            return Response(status_code=400)
        finally:
            self.intake.held -= len(body)
        loop = asyncio.get_running_loop()
        if await loop.run_in_executor(self._scraper, self._marks.put, mark):
            return JSONResponse(mark.to_dict(), 201)
        return RefusalError(503, "the store cannot be written: send it again in a second").answer

    # --- reads ------------------------------------------------------------------------------

    async def series(self, request: Request) -> Response:
        """Answer with a series of windows."""
        view, asked = self._asked(request), request.query_params
        span, ago, only = (asked.get(name) for name in ("span", "ago", "slice"))
        page = view == self._view and span is ago is only is None  # limited to what it may read
        key = ("series", view.window, view.every, span, ago, only, page)

        def call(go_on: GoOn) -> Iterator[Json]:
            one = None if only is None else answers.ChosenSlice.read(only)
            line = self._line if page else self._line_of(key, self._line if only is None else None)
            yield from line.read(self.queries, view, span, go_on, whole=not page, ago=ago, only=one)

        cache = self._cache if page else self._history
        check = partial(answers.check_series, self.queries, view, span, ago, only)
        return await self._answer(request, key, call, cache, check)

    def _line_of(
        self, key: tuple[object, ...], other: answers.WindowAnswers | None
    ) -> answers.WindowAnswers:
        """Return the series of a request, which keeps its windows until others replace it."""
        line = self._lines.pop(key) if key in self._lines else answers.WindowAnswers(other)
        self._lines[key] = line
        if len(self._lines) > _LINES:
            del self._lines[next(iter(self._lines))]
        return line

    async def view(self, request: Request) -> Response:
        """Answer with what the page can show."""

        def call(_: GoOn) -> Iterator[Json]:
            yield answers.view(self.queries, self._view)

        return await self._answer(request, ("view",), call, self._quick)

    async def alerts(self, request: Request) -> Response:
        """Answer with the states of the alert rules."""

        def call(_: GoOn) -> Iterator[Json]:
            found = self._watching.alerts() or self._watching.unjudged
            yield answers.alerts(self.queries, found, self._deliverer)

        return await self._answer(request, ("alerts",), call, self._quick)

    async def marks(self, request: Request) -> Response:
        """Answer with the marks on the charts, oldest first."""

        def call(_: GoOn) -> Iterator[Json]:
            yield {"marks": [mark.to_dict() for mark in self._marks.read()]}

        return await self._answer(request, ("marks",), call, self._quick)

    async def metrics(self, request: Request) -> Response:
        """Answer a scrape of Prometheus."""
        return await _scraped(partial(exposition, self.scrape, request.headers.get("accept", "")))

    def _asked(self, request: Request) -> PageView:
        """Return the view of a request; parameters that it lacks are those of the page."""
        said = {k: v for k, v in request.query_params.items() if k in {"window", "every"}}
        return replace(self._view, **said)

    async def window(self, name: str, request: Request) -> Response:
        """Answer with one window; a window other than the page's must not cost too much."""
        view = self._asked(request)

        def call(go_on: GoOn) -> Iterator[Json]:
            if view.window != self._view.window:
                answers.check_cost(self.queries, view.window, go_on)
            yield _WINDOWS[name](self.queries, view)

        check = partial(answers.check_window, self.queries, view.window)
        return await self._answer(request, (name, view.window), call, check=check)

    async def _answer(
        self,
        request: Request,
        key: tuple[object, ...],
        call: Steps,
        cache: Cache | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> Response:
        """Answer from the cache, or with 304 if the client has the current answer.

        A request that `check` refuses waits for no other one.
        """

        def make(go_on: GoOn) -> Iterator[Json]:
            yield from self._at_present(partial(call, go_on))

        path = f"/api/{key[0]}"
        known = _READS[path][1:]
        if wrong := misread(request, path, known):
            return RefusalError(422, wrong).answer
        try:
            check()
            body = await (cache or self._cache).get(key, make, partial(_gone, request))
        except GoneError:
            return Response(status_code=499)  # nobody reads it
        except SlowError:
            why = (
                f"this takes more than {_SECONDS} s of processor time: take a shorter span or a "
                "larger every, or ask again, which goes on where this has ended"
            )
            return JSONResponse({"error": why}, 503, {"retry-after": "1"})
        except answers.CostError as error:
            return JSONResponse({"error": str(error)}, 422)
        except (StreamMetricsError, ValueError, TypeError) as error:
            return JSONResponse({"error": str(error)}, 400)
        return _tagged(request, body, "application/json")

    def _at_present(self, call: Callable[[], T]) -> T:
        if self._server.clock == "wall":
            self._live.now(time.time())
        return call()

    async def state(self, request: Request) -> Response:
        """Answer with the serialized state, for merging elsewhere."""
        loop = asyncio.get_running_loop()
        blob = await loop.run_in_executor(self._reader, self._live.to_bytes)
        return _tagged(request, blob, "application/octet-stream")

    async def health(self, request: Request) -> Response:
        """Answer with the status of the service; with the token, in full."""
        return JSONResponse(self.told(trusted=request.scope["streammetrics.trusted"]))

    def told(self, *, trusted: bool) -> Document:
        """Return the status of the service, in full to those who are trusted."""
        journal, intake = self.queries.ingest.journal, self.intake
        trouble = "" if journal is None else journal.trouble  # read once, because it may change
        replicas = None if self._replicas is None else self._replicas.health
        apart = [trouble, *(one["trouble"] for one in (replicas or {}).values())]
        pipeline = self.queries.pipeline
        is_well = not any(apart) and not pipeline.left_out
        told: Document = {"status": "ok" if is_well else "degraded"}
        if trusted:
            newest = pipeline.panes.newest
            told |= {
                "newest": shown_time(newest) if newest >= 0 else None,
                "taken": intake.taken.total(),
                "refused": intake.refused.total(),
                "left_out": {"events": pipeline.left_out, "why": pipeline.contradiction},
                "queue": {"waiting": intake.waiting, "most": self._server.queue},
                "store": None
                if journal is None
                else {
                    **_of_store(journal, trouble),
                    "expired_early": self.queries.expired_early,
                },
                "deliveries": self._deliverer.health,
                "replicas": replicas,
                "worker": os.getpid(),
                "seconds": round(time.time() - self._began, 1),
            }
        return told

    async def ready(self, _: Request) -> Response:
        """Answer that all stored events have been read; before, this does not answer."""
        return JSONResponse({"status": "ready"})

    async def openapi(self, _: Request) -> Response:
        """Answer with the OpenAPI description."""
        told = described(self._live, self._names, self._view, self._server)
        if self._replicas is not None:
            del told["paths"]["/events"]
        return JSONResponse(told)


def _of_store(journal: Journal, trouble: str) -> Document:
    """Return the status of the store, and what a crash would lose."""
    n = journal.unwritten
    them = "1 event that is" if n == 1 else f"{n:,} events that are"
    lost = f"a crash would lose {them} only in memory; durable = true prevents this"
    return {
        "trouble": trouble,
        "failures": journal.failures,
        "unwritten": n,
        "durable": journal.durable,
        "at_risk": lost if n else "",
        "bytes": journal.size,
        "max_bytes": journal.most or None,
        "overfull": journal.is_overfull,
    }


def _tagged(request: Request, body: bytes, form: str) -> Response:
    """Return an answer with its ETag, or 304 if the client has it."""
    tag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=form, headers=headers)


async def _gone(request: Request) -> None:
    """Wait until the client of a request disconnects."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
