"""HTTP: cached answers, access control, and limits on connections."""

from __future__ import annotations

import asyncio
import hmac
import json
import math
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

from streammetrics.core.errors import needs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Hashable, Iterator, Sequence
    from concurrent.futures import Executor

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from streammetrics.core.types import Json
    from streammetrics.live.service.server import Server

    # Begins an answer: yields None between two steps, and the answer as the last one. It may call
    # its argument within a step, which raises if the answer need not be computed any more.
    Steps = Callable[[Callable[[], None]], Iterator[Json]]


_LEAST = 0.25  # minimum seconds to cache an answer
_SHARE = 8  # an answer is cached for this multiple of its computation time
_MOST = 64  # maximum number of cached answers
_TURN = 0.02  # seconds after which an answer lets the next one compute a step


class GoneError(Exception):
    """No client waits for an answer any more."""


class SlowError(Exception):
    """An answer takes more processor time than it may."""


class Making:
    """An answer that is being computed, and the number of clients that wait for it.

    Args:
        most: The seconds of processor time that it may take.
    """

    def __init__(self, most: float) -> None:
        self.waiting = 0
        self.over = False  # whether all clients have disconnected
        self.is_partial = False
        self.task: asyncio.Task[bytes]
        self.spent, self._began, self._most = 0.0, 0.0, most

    def go_on(self) -> None:
        """Raise `GoneError` if no client waits any more, and `SlowError` if it takes too long."""
        if self.over:
            raise GoneError
        if self.spent + time.thread_time() - self._began > self._most:
            raise SlowError

    def turn(self, steps: Iterator[Json]) -> bytes | None:
        """Compute steps for a short time; return the body once the last one is done."""
        end, self._began = time.monotonic() + _TURN, time.thread_time()
        try:
            while True:
                self.go_on()
                found: Any = next(steps)
                if found is not None:
                    self.is_partial = bool(found.get("more"))
                    return json.dumps(found, separators=(",", ":"), allow_nan=False).encode()
                if time.monotonic() >= end:
                    return None
        finally:
            self.spent += time.thread_time() - self._began


class Cache:
    """Response bodies by request; slow ones are cached longer, to leave time for events.

    Answers are computed in steps. Those in progress take turns, so that a long one does not hold up
    short ones.

    Args:
        executor: Computes the steps.
        most: The seconds of processor time that an answer may take.
    """

    def __init__(self, executor: Executor, most: float = math.inf) -> None:
        self._executor, self._most = executor, most
        self._kept: OrderedDict[Hashable, tuple[float, bytes]] = OrderedDict()
        self._made: dict[Hashable, Making] = {}

    async def get(
        self,
        key: Hashable,
        make: Steps,
        gone: Callable[[], Coroutine[object, object, None]],
    ) -> bytes:
        """Return the body for a key, computed if it is missing or expired.

        Args:
            key: Identifies the request.
            make: Begins the answer.
            gone: Waits until the client disconnects.

        Raises:
            GoneError: The client has disconnected.
            SlowError: The answer takes more processor time than it may.
        """
        until, body = self._kept.get(key, (0.0, b""))
        if time.monotonic() < until:
            return body
        making = self._made.get(key)
        if making is None:
            making = self._made[key] = Making(self._most)
            making.task = asyncio.ensure_future(self._make(key, making, make))
            making.task.add_done_callback(_heard)
        making.waiting += 1
        left = asyncio.ensure_future(gone())
        try:
            await asyncio.wait({making.task, left}, return_when=asyncio.FIRST_COMPLETED)
            if making.task.done():
                return making.task.result()
            raise GoneError
        finally:
            left.cancel()
            making.waiting -= 1
            if not making.waiting and not making.task.done():
                making.over = True
                self._forget(key, making)

    async def _make(self, key: Hashable, making: Making, make: Steps) -> bytes:
        loop, steps, body = asyncio.get_running_loop(), make(making.go_on), None
        try:
            while body is None:
                body = await loop.run_in_executor(self._executor, making.turn, steps)
        except GoneError:
            return b""
        finally:
            self._forget(key, making)
        took = 0.0 if making.is_partial else making.spent  # the rest of a partial one is asked for
        self._kept[key] = time.monotonic() + max(_LEAST, _SHARE * took), body
        self._kept.move_to_end(key)
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return body

    def _forget(self, key: Hashable, making: Making) -> None:
        if self._made.get(key) is making:
            del self._made[key]


def _heard(task: asyncio.Task[bytes]) -> None:
    """Retrieve an exception, so that asyncio does not log it; waiting clients get it."""
    if not task.cancelled():
        task.exception()


_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_PIECE = 1 << 16  # bytes of an answer to send at a time
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_EMPTY = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"  # hash of an empty style
_HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; script-src 'self'; style-src 'self' {_EMPTY}; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """Rejects requests without the token, and cross-site requests on behalf of a user.

    Args:
        app: The application to protect.
        server: The tokens that requests need. If there are none and the service listens on a port
            of this machine only, only its host names are answered, which prevents DNS rebinding.
        open_paths: Paths that need no token, because they reveal nothing about the metrics.
    """

    def __init__(self, app: ASGIApp, *, server: Server, open_paths: Collection[str]) -> None:
        self._app, self._open = app, frozenset(open_paths)
        self._readers = [token.encode() for token in (server.token, server.read_token) if token]
        self._writers = [token.encode() for token in (server.token, server.write_token) if token]
        self._needs_token = server.needs_token
        self._local = server.is_local and not server.socket and not server.needs_token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or reject it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            for piece in _pieces(message):
                await send(piece)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if "transfer-encoding" in headers and "content-length" in headers:
            # A proxy in front may use the other length, and so see different requests (smuggling).
            answer = _refused(400, "Transfer-Encoding and Content-Length conflict: send one")
            answer.headers["connection"] = "close"
            return answer
        if self._local and _name(host) not in _LOCAL:
            return _refused(421, f"this is not {host!r}: it answers to localhost alone")
        writes = scope["method"] not in _SAFE
        if writes and not self._is_own(headers, host):
            return _refused(403, "pages of other sites send no events")
        scope["streammetrics.trusted"] = self._is_trusted(headers, self._readers)
        mine, others = (self._writers, self._readers) if writes else (self._readers, self._writers)
        if self._is_trusted(headers, mine) or self._path(scope) in self._open:
            return None
        if self._is_trusted(headers, others):
            return _refused(403, f"this token is for {'reading' if writes else 'writing'} only")
        answer = _refused(401, "a token is needed: Authorization: Bearer TOKEN")
        answer.headers["www-authenticate"] = "Bearer"
        return answer

    def _is_trusted(self, headers: Headers, tokens: Sequence[bytes]) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        borne = given.strip().encode() if kind.lower() == "bearer" else b""
        matches = [hmac.compare_digest(borne, token) for token in tokens]
        return not self._needs_token or any(matches)

    @staticmethod
    def _is_own(headers: Headers, host: str) -> bool:
        """Return whether a request comes from no page, or from a page of this service."""
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return False
        return headers.get("sec-fetch-site", "none") in {"none", "same-origin"}

    @staticmethod
    def _path(scope: Scope) -> str:
        path: str = scope["path"]
        return path.removeprefix(scope.get("root_path", ""))


def _pieces(message: Message) -> Iterator[Message]:
    """Yield a long body in pieces, so that the server waits for the client to read each."""
    body = message.get("body", b"")
    last = max(0, len(body) - 1) // _PIECE * _PIECE
    for place in range(0, last, _PIECE):
        yield {**message, "body": body[place : place + _PIECE], "more_body": True}
    yield {**message, "body": body[last:]} if last else message


def _name(host: str) -> str:
    """Return the host name in a Host header, without the port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _refused(status: int, why: str) -> JSONResponse:
    return JSONResponse({"error": why}, status)


with needs("uvicorn", "live"):
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):  # type: ignore[misc]  # an optional dependency
    """A connection that is closed if its client is too slow, or if too many are open.

    It waits for its client until the headers of a request have arrived, while the body arrives
    (with its own time limit in the application), and while the client does not read the answer. If
    too many connections are open, the one that has waited longest is closed. A client that sends
    its request without delay is therefore served even if idle connections use up the limit.
    """

    patience = 30.0  # seconds
    most = 1000  # maximum number of open connections
    _since = 0.0  # time at which it began to wait
    _begun = False  # whether part of the next request has arrived
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: object) -> None:
        """Start waiting for the first request."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > self.most:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Read data, and stop waiting once the headers are complete."""
        if self._is_idle() and not self._begun:
            self._begun = True
            self._wait()
        # If no connection could be closed, let the server reject this one.
        full = len(self.connections) > self.most
        self.limit_concurrency = 0 if full else self.config.limit_concurrency
        super().data_received(data)
        if not self._is_idle():
            self._forget()

    def send_400_response(self, msg: str) -> None:
        """Reject invalid HTTP, and disconnect the request in progress, if any."""
        if not self._is_idle():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:  # it was answered already, or may not have a body
            self.transport.close()

    def on_response_complete(self) -> None:
        """Start waiting for the next request, or for the client to read the last answer."""
        super().on_response_complete()
        if self._is_idle():  # otherwise the next request has already arrived
            self._begun = False
            self._wait()

    def pause_writing(self) -> None:
        """Start waiting for the client to read."""
        super().pause_writing()
        self._wait()

    def resume_writing(self) -> None:
        """Stop waiting, because the client has read."""
        super().resume_writing()
        if not self._is_idle():
            self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._forget()
        super().connection_lost(exc)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _waits(self) -> bool:
        """Return whether it is the client's turn."""
        return self._is_idle() or self.cycle.more_body or self.flow.write_paused

    def _wait(self) -> None:
        self._forget()
        self._since = self.loop.time()
        self._late = self.loop.call_later(self.patience, self.transport.abort)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _make_room(self) -> None:
        """Close the connection that has waited longest; if none waits, this one is rejected."""
        others = (other for other in self.connections if other is not self and other._waits())
        longest = min(others, key=lambda other: other._since, default=None)
        if longest is not None:
            self.connections.discard(longest)
            longest.transport.abort()
