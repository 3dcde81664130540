"""The ASGI application: endpoints, the page, and the OpenAPI description."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import os
import time
import zlib
from bisect import bisect_left
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from hashlib import blake2b
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from streammetrics.core.columns.batch import meant
from streammetrics.core.errors import StreamMetricsError, needs, warn_caller
from streammetrics.live.events import KINDS, shown_time
from streammetrics.live.exporting.families import COUNTERS, PREFIX, families, families_of
from streammetrics.live.exporting.prometheus import exposition, info, metrics
from streammetrics.live.service import answers
from streammetrics.live.service.bodies import ARROW_TYPES, JSON_TYPES, Bodies, BodyError
from streammetrics.live.service.delivery.deliverer import Deliverer, Delivery
from streammetrics.live.service.http import Cache, GoneError, Guard
from streammetrics.live.service.itself import itself
from streammetrics.live.service.letters import DeadLetters
from streammetrics.live.service.logs import RequestLog
from streammetrics.live.service.marks import MarkError, Marks, mark_of
from streammetrics.live.service.names import Names, PageView
from streammetrics.live.service.server import Server
from streammetrics.live.service.watching import Latest, Watching
from streammetrics.live.store import StoreError, StoreWarning
from streammetrics.live.validation import kinds_of, truth_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence

    from prometheus_client import Metric
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from streammetrics.core.types import Document, Json
    from streammetrics.live.alerts.rule import Rule
    from streammetrics.live.exporting.families import Families
    from streammetrics.live.journal import Journal
    from streammetrics.live.queries import Queries

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
}
_READS = {  # by path: a summary and the query parameters
    "/api/now": ("Each metric over the newest window.", "window"),
    "/api/series": ("Windows one after the other.", "window", "every", "span"),
    "/api/coverage": ("What became of predictions.", "window"),
    "/api/possible": ("What the missing labels could do.", "window"),
    "/api/slices": ("Each metric by slice.", "window"),
    "/api/alerts": ("How the rules of alerts stand.",),
    "/api/marks": ("Marks on the charts.",),
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


def described(live: object, names: Names, view: PageView, server: Server) -> dict[str, object]:
    """Return the OpenAPI description of a service."""
    paths = {
        "/events": {"post": _events(live, names)},
        "/marks": {"post": _marks()},
        **{path: _reading(summary, *names) for path, (summary, *names) in _READS.items()},
        "/health": _reading("Whether the store can be written; otherwise degraded."),
        "/ready": _reading("Whether every worker has read the store; 503 before."),
        "/metrics": {
            "get": {
                "summary": "What Prometheus scrapes.",
                "responses": {"200": _content("text/plain", {}), **_refusals(401, 403, 503)},
            }
        },
        "/state": {
            "get": {
                "summary": "The state, for sm.from_bytes and merge.",
                "responses": {
                    "200": _content("application/octet-stream", {}),
                    **_refusals(401, 403),
                },
            }
        },
    }
    told: Document = {
        "openapi": "3.1.0",
        "info": {"title": view.title, "version": _version()},
        "paths": paths,
        "components": {"schemas": {"Error": _ERROR}},
    }
    if server.needs_token:
        told["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
        told["security"] = [{"bearer": []}]
    return told


def _version() -> str:
    try:
        return version("streammetrics")
    except PackageNotFoundError:
        return "0"


def _events(live: Any, names: Names) -> dict[str, object]:
    kinds, truth = kinds_of(live._suite), truth_of(live._suite)
    columns = {n: _LABEL if k == "label" else {"type": _TYPES[k]} for n, k in kinds.items()}
    required = [n for n in columns if n != "sample_weight"]
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
                "name": _KEY,
                "in": "header",
                "description": "The same for each try of a request: its observations count once.",
                "schema": {"type": "string", "maxLength": _LONGEST_KEY},
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
        responses |= _refusals(422)
        responses["304"] = {"description": "It is what If-None-Match says."}
    return {"get": {"summary": summary, "parameters": asked, "responses": responses}}


def _content(form: str, schema: Document) -> dict[str, object]:
    return {"description": "Done.", "content": {form: {"schema": schema}}}


def _refusals(*statuses: int) -> dict[str, object]:
    schema = {"$ref": "#/components/schemas/Error"}
    content = {"application/json": {"schema": schema}}
    return {str(status): {"description": "Refused.", "content": content} for status in statuses}


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


with needs("prometheus_client", "live"):
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )


DEADLINE = 2.0  # seconds for a scrape to read the state, before it gets the last reading
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class UnreadError(Exception):
    """There is no reading yet that a scrape could show."""


class Scrape:
    """The Prometheus collector of a service, which never waits long for other reads.

    Args:
        read: Reads the live state.
        title: The name of the service.
        watching: The states of the alert rules.
        intake: Counts of events.
        requests: Durations of requests.
        journal: The journal, if there is a store.
        shared: Whether other workers answer scrapes as well; counters then have a worker label.
    """

    def __init__(
        self,
        read: Callable[[], Families],
        title: str,
        watching: Watching,
        intake: Intake,
        requests: Requests,
        journal: Journal | None,
        *,
        shared: bool,
    ) -> None:
        self._journal = journal
        self._title, self._watching, self._intake = title, watching, intake
        self._requests = requests
        self._worker = {"worker": str(os.getpid())} if shared else {}
        self._read = Latest(lambda: (read(), time.time()), None, "scrape")

    def describe(self) -> list[Metric]:
        """Return nothing, so that registering does not read the state."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the families of one reading.

        Raises:
            UnreadError: The first reading is not complete.
        """
        found = self._read.get(DEADLINE)
        if found is None:
            raise UnreadError
        families, at = found
        counted = {
            name: [
                sample._replace(labels=self._worker | sample.labels) for sample in families[name]
            ]
            for name in COUNTERS
        }
        yield info(self._title)
        yield from metrics(families | counted | families_of(self._watching.alerts()))
        yield GaugeMetricFamily(
            f"{PREFIX}read_timestamp_seconds", "When the state that this scrape shows was read.", at
        )
        yield self._counter("taken_events", "Events taken, by kind.", "kind", self._intake.taken)
        told = "Requests with events that were refused, by the status of the answer."
        yield self._counter("refused_requests", told, "status", self._intake.refused)
        yield self._requests.family(self._worker)
        intake = self._intake
        queue = intake.waiting, intake.held
        yield from itself(self._journal, queue, intake.dead_letters, self._worker)

    def _counter(
        self, name: str, told: str, label: str, counts: Mapping[str, int]
    ) -> CounterMetricFamily:
        family = CounterMetricFamily(PREFIX + name, told, labels=(*self._worker, label))
        for key, count in counts.items():
            family.add_metric([*self._worker.values(), key], count)
        return family


class Requests:
    """Durations of requests, by path and status; wraps the whole application.

    Args:
        paths: Paths to count separately; all others are counted together.
    """

    def __init__(self, paths: Collection[str]) -> None:
        self._paths, self._log = frozenset(paths), RequestLog()
        self._seen: dict[tuple[str, str], tuple[list[int], list[float]]] = {}

    def around(self, app: ASGIApp) -> ASGIApp:
        """Wrap an application to measure its requests."""

        async def timed(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            began, status = time.perf_counter(), 499  # the client disconnected before the answer

            async def told(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            try:
                await app(scope, receive, told)
            except Exception:
                status = 500
                raise
            finally:
                path = scope["path"].removeprefix(scope.get("root_path", ""))
                self._add(scope["method"], path, status, time.perf_counter() - began)

        return timed

    def _add(self, method: str, path: str, status: int, seconds: float) -> None:
        key = (path if path in self._paths else "other", str(status))
        self._log.add(method, key[0], status, seconds)
        counts, total = self._seen.setdefault(key, ([0] * (len(BUCKETS) + 1), [0.0]))
        counts[bisect_left(BUCKETS, seconds)] += 1
        total[0] += seconds

    def family(self, labels: Mapping[str, str]) -> HistogramMetricFamily:
        """Return the histogram, with additional labels before its own."""
        family = HistogramMetricFamily(
            f"{PREFIX}request_duration_seconds",
            "How long requests took.",
            labels=(*labels, "path", "status"),
        )
        edges = [*map(str, BUCKETS), "+Inf"]
        for key, (counts, total) in list(self._seen.items()):
            buckets = list(zip(edges, accumulate(counts), strict=True))
            family.add_metric([*labels.values(), *key], buckets, total[0])
        return family


_AGAIN = (429, 503)  # answers that ask the client to retry
_STATUSES = ("400", "408", "413", "415", "422", "429", "503", "507")  # of rejected requests
_GZIP = 31  # zlib's window bits for gzip
_PACKED = ("gzip", "x-gzip")  # two names of one encoding in HTTP
_KEY = "idempotency-key"  # header that makes the observations of a retried request count once
_LONGEST_KEY = 255
_HELD = 16  # number of maximum-size bodies that memory may hold at once


def _encoding(request: Request) -> str:
    """Return the content encoding of a body in lower case."""
    written: str = request.headers.get("content-encoding", "identity")
    return written.strip().lower()


class RefusalError(Exception):
    """A request is rejected; the answer says why."""

    def __init__(self, status: int, why: str, **more: object) -> None:
        super().__init__(why)
        headers = {"retry-after": "1"} if status in _AGAIN else {"connection": "close"}
        told = {"error": why, **more}
        some = status in {408, 413, *_AGAIN}
        self.answer = JSONResponse(told, status, headers if some else None)


class Intake:
    """Takes requests with events, one after the other, in its own thread."""

    def __init__(self, live: Any, names: Names, server: Server, letters: str | None = None) -> None:
        into = None if letters is None else DeadLetters(letters)
        self._bodies, self._server = Bodies(live._ingest, names, into), server
        self._worker = ThreadPoolExecutor(1, "events")
        self.waiting = 0  # complete requests that wait for their turn
        self.held = 0  # bytes of bodies in memory
        self.taken: Counter[str] = Counter(dict.fromkeys(KINDS, 0))  # events, by kind
        self.refused: Counter[str] = Counter(dict.fromkeys(_STATUSES, 0))  # requests
        self.dead_letters = 0  # refused events of requests whose other events are taken

    async def answer(self, request: Request) -> Response:
        """Answer a request with events."""
        body = bytearray()
        try:
            form, kind, key = self._form(request)
            await self.read(request, body)
            packed = _encoding(request) in _PACKED
            counts = await self._take(bytes(body), form, kind, key, packed=packed)
        except RefusalError as refusal:
            self.refused[str(refusal.answer.status_code)] += 1
            return refusal.answer
        except ClientDisconnect:
            self.refused["400"] += 1
            return Response(status_code=400)
        finally:
            self.held -= len(body)
        taken = {kind: counts[kind] for kind in KINDS if kind in counts}
        self.taken.update(taken)
        self.dead_letters += counts.get("refused", 0)
        return JSONResponse({"taken": sum(taken.values()), **counts}, 202)

    def _form(self, request: Request) -> tuple[str, str | None, str]:
        """Return the content type, the kind of events, and the idempotency key."""
        form = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if form not in {*JSON_TYPES, *ARROW_TYPES, "application/x-www-form-urlencoded"}:
            known = ", ".join(filter(None, (*JSON_TYPES[:1], *ARROW_TYPES[:1])))
            raise RefusalError(415, f"no content type {form!r}: send {known}")
        encoding = _encoding(request)
        if encoding not in {"identity", *_PACKED}:
            raise RefusalError(415, f"no content-encoding {encoding!r}: send gzip, or none")
        for name in request.query_params:
            if name != "kind":
                told = f"/events has no parameter {name!r}: it reads kind{meant(name, ['kind'])}"
                raise RefusalError(422, told)
        key = request.headers.get(_KEY, "")
        if len(key) > _LONGEST_KEY:
            why = f"{_KEY} has {len(key)} characters; the limit is {_LONGEST_KEY}"
            raise RefusalError(422, why)
        return form, request.query_params.get("kind"), key

    async def read(self, request: Request, body: bytearray) -> None:
        """Read the body in chunks, unless it is too long or too slow; the caller lowers `held`."""
        server = self._server
        try:
            length = int(request.headers.get("content-length", "0"))
        except ValueError:
            raise RefusalError(400, "content-length is not a number") from None
        self._check_size(length)
        try:
            async with asyncio.timeout(server.timeout):
                async for chunk in request.stream():
                    self._check_size(len(body) + len(chunk))
                    if self.held + len(chunk) > _HELD * server.body:
                        raise RefusalError(
                            429, "too many bytes are waiting: send them again in a second"
                        )
                    body += chunk
                    self.held += len(chunk)
        except TimeoutError:
            raise RefusalError(408, f"the body took more than {server.timeout:g} s") from None

    def _check_size(self, size: int) -> None:
        most = self._server.body
        if size > most:
            raise RefusalError(413, f"the body has {size:,} bytes or more; the limit is {most:,}")

    def _bring(
        self, body: bytes, form: str, kind: str | None, key: str, packed: bool
    ) -> dict[str, int]:
        """Add events to the live state; only one body at a time is decompressed."""
        return self._bodies.take(self._unpacked(body) if packed else body, form, kind, key)

    def _unpacked(self, body: bytes) -> bytes:
        """Decompress gzip, unless the result exceeds the maximum size of a body."""
        found, rest = bytearray(), body
        try:
            while rest:  # there may be several members
                member = zlib.decompressobj(wbits=_GZIP)
                found += member.decompress(rest, self._server.body + 1 - len(found))
                self._check_size(len(found))
                if not member.eof:
                    raise RefusalError(400, "the gzip data is cut off")
                rest = member.unused_data
        except zlib.error as error:
            raise RefusalError(400, f"the body is not gzip: {error}") from None
        return bytes(found)

    async def _take(
        self, body: bytes, form: str, kind: str | None, key: str, *, packed: bool
    ) -> dict[str, int]:
        """Add events to the live state when it is their turn."""
        if self.waiting >= self._server.queue:
            why = f"{self.waiting} requests are waiting, the limit: send it again in a second"
            raise RefusalError(429, why)
        self.waiting += 1
        loop = asyncio.get_running_loop()
        call = loop.run_in_executor(self._worker, self._bring, body, form, kind, key, packed)
        call.add_done_callback(self._done)
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            if call.cancelled():
                raise RefusalError(
                    503, "the service is shutting down and did not take this: send it again"
                ) from None
            raise
        except BodyError as error:
            raise RefusalError(422, str(error), row=error.row, column=error.column) from error
        except StoreError as error:
            raise RefusalError(507 if error.full else 503, str(error)) from error
        except StreamMetricsError as error:
            raise RefusalError(503, str(error)) from error

    def _done(self, call: asyncio.Future[Any]) -> None:
        self.waiting -= 1
        if not call.cancelled():
            call.exception()  # retrieve the exception in case the client has disconnected

    def close(self) -> None:
        """Finish the request in progress and drop waiting ones, which were not acknowledged."""
        self._worker.shutdown(wait=True, cancel_futures=True)


with needs("starlette", "live"):
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route


T = TypeVar("T")

_SCRAPES = 4  # concurrent scrapes
_OPEN = ("/", "/health", "/ready", "/openapi.json", *(f"/{name}" for name in FILES))
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
        owned=owned,
    )
    guard = Middleware(Guard, server=server, open_paths=_OPEN)
    routes = [
        Route("/events", service.events, methods=["POST"]),
        Route("/marks", service.mark, methods=["POST"]),
        Route("/api/marks", service.marks),
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
        owned: bool,
    ) -> None:
        self._live, self._view, self._server, self._owned = live, view, server, owned
        self._queries: Queries = live._queries
        self._names, self._watching = names, Watching(self._queries, rules)
        self._began = time.time()
        self._reader = ThreadPoolExecutor(1, "reads")
        self._historian = ThreadPoolExecutor(1, "history")  # never delays reads of windows
        self._scraper = ThreadPoolExecutor(_SCRAPES, "scrapes")  # does not wait for other reads
        self._cache, self._quick = Cache(self._reader), Cache(self._scraper)
        self._history = Cache(self._historian)
        self._line = answers.WindowAnswers()  # series of the page
        self._intake = Intake(live, names, server, letters)
        read = partial(self._at_present, partial(families, self._queries, view.window))
        judge = partial(self._at_present, self._watching.alerts)
        self._marks = Marks(self._queries.ingest.journal)
        self._deliverer = Deliverer(delivery, view.title, judge, self._queries.ingest.journal)
        self._scrape = Scrape(
            read,
            view.title,
            self._watching,
            self._intake,
            requests,
            self._queries.ingest.journal,
            shared=server.workers > 1,
        )

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Write pending events when the service ends.

        Raises:
            StreamMetricsError: Events cannot be written, or the store's file is gone, so that they
                are lost.
        """
        self._deliverer.start()
        yield
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._end)

    def _end(self) -> None:
        self._intake.close()
        self._deliverer.close()
        journal: Any = self._queries.ingest.journal
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
        """Take events."""
        return await self._intake.answer(request)

    async def mark(self, request: Request) -> Response:
        """Take a mark on the charts."""
        if request.query_params:
            return RefusalError(422, "/marks has no parameters: send a JSON object").answer
        body = bytearray()
        try:
            await self._intake.read(request, body)
            mark = mark_of(bytes(body), time.time())
        except MarkError as error:
            return RefusalError(422, str(error)).answer
        except RefusalError as refusal:
            return refusal.answer
        except ClientDisconnect:
            return Response(status_code=400)
        finally:
            self._intake.held -= len(body)
        loop = asyncio.get_running_loop()
        if await loop.run_in_executor(self._scraper, self._marks.put, mark):
            return JSONResponse(mark.to_dict(), 201)
        return RefusalError(503, "the store cannot be written: send it again in a second").answer

    # --- reads ------------------------------------------------------------------------------

    async def now(self, request: Request) -> Response:
        """Answer with the newest window."""
        return await self._window(request, "now", answers.now)

    async def series(self, request: Request) -> Response:
        """Answer with a series of windows."""
        view, span = self._asked(request), request.query_params.get("span")
        page = view == self._view and span is None  # limited to what a request may read
        line = self._line if page else answers.WindowAnswers()

        def call(go_on: GoOn) -> Document:
            return line.read(self._queries, view, span, go_on, whole=not page)

        key = ("series", view.window, view.every, span, page)
        return await self._answer(request, key, call, self._cache if page else self._history)

    async def coverage(self, request: Request) -> Response:
        """Answer with the label coverage."""
        return await self._window(request, "coverage", answers.coverage)

    async def possible(self, request: Request) -> Response:
        """Answer with the intervals over all values of the missing labels."""
        return await self._window(request, "possible", answers.possible)

    async def slices(self, request: Request) -> Response:
        """Answer with the metrics by slice, if there are any."""
        return await self._window(request, "slices", answers.slices)

    async def alerts(self, request: Request) -> Response:
        """Answer with the states of the alert rules."""

        def call(_: GoOn) -> Document:
            found = self._watching.alerts() or self._watching.unjudged
            return answers.alerts(found, self._deliverer)

        return await self._answer(request, ("alerts",), call, self._quick)

    async def marks(self, request: Request) -> Response:
        """Answer with the marks on the charts, oldest first."""

        def call(_: GoOn) -> Document:
            return {"marks": [mark.to_dict() for mark in self._marks.read()]}

        return await self._answer(request, ("marks",), call, self._quick)

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
        """Return the view of a request; parameters that it lacks are those of the page."""
        said = {k: v for k, v in request.query_params.items() if k in {"window", "every"}}
        return replace(self._view, **said)

    async def _window(
        self, request: Request, name: str, read: Callable[[Queries, PageView], Document]
    ) -> Response:
        """Answer with one window; a window other than the page's must not cost too much."""
        view = self._asked(request)

        def call(go_on: GoOn) -> Document:
            if view.window != self._view.window:
                answers.check_cost(self._queries, view.window, go_on)
            return read(self._queries, view)

        return await self._answer(request, (name, view.window), call)

    async def _answer(
        self,
        request: Request,
        key: tuple[object, ...],
        call: Callable[[GoOn], Json],
        cache: Cache | None = None,
    ) -> Response:
        """Answer from the cache, or with 304 if the client has the current answer."""

        def make(go_on: GoOn) -> Json:
            return self._at_present(partial(call, go_on))

        path = f"/api/{key[0]}"
        known = _READS[path][1:]
        for name in request.query_params:
            if name not in known:
                reads = f"it reads {', '.join(known) or 'none'}{meant(name, known)}"
                return JSONResponse({"error": f"{path} has no parameter {name!r}: {reads}"}, 422)
        try:
            body = await (cache or self._cache).get(key, make, partial(_gone, request))
        except GoneError:
            return Response(status_code=499)  # nobody reads it
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
        """Answer with the serialized state, for merging elsewhere."""
        loop = asyncio.get_running_loop()
        blob = await loop.run_in_executor(self._reader, self._live.to_bytes)
        return Response(blob, media_type="application/octet-stream")

    async def health(self, request: Request) -> Response:
        """Answer with the status of the service; with the token, in full."""
        journal, intake = self._queries.ingest.journal, self._intake
        trouble = "" if journal is None else journal.trouble  # read once, because it may change
        told: Document = {"status": "degraded" if trouble else "ok"}
        if request.scope["streammetrics.trusted"]:
            newest = self._live._shared.current.panes.newest
            told |= {
                "newest": shown_time(newest) if newest >= 0 else None,
                "taken": intake.taken.total(),
                "refused": intake.refused.total(),
                "queue": {"waiting": intake.waiting, "most": self._server.queue},
                "store": None if journal is None else _of_store(journal, trouble),
                "deliveries": self._deliverer.health,
                "worker": os.getpid(),
                "seconds": round(time.time() - self._began, 1),
            }
        return JSONResponse(told)

    async def ready(self, _: Request) -> Response:
        """Answer that all stored events have been read; before, this does not answer."""
        return JSONResponse({"status": "ready"})

    async def openapi(self, _: Request) -> Response:
        """Answer with the OpenAPI description."""
        return JSONResponse(described(self._live, self._names, self._view, self._server))


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
    }


async def _gone(request: Request) -> None:
    """Wait until the client of a request disconnects."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
