"""Events in by HTTP: bounded in size, in time, and in how many requests wait."""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from streammetrics.core.errors import StreamMetricsError
from streammetrics.live.events import KINDS
from streammetrics.live.keeper import StoreError
from streammetrics.live.service.bodies import ARROW_TYPES, JSON_TYPES, Bodies
from streammetrics.live.service.groups import BodyError

if TYPE_CHECKING:
    from starlette.requests import Request

    from streammetrics.live.service.names import Names
    from streammetrics.live.service.server import Server

_AGAIN = (429, 503)  # answers that say when to come again
_STATUSES = ("400", "408", "413", "415", "422", "429", "503", "507")  # of refusals
_GZIP = 31  # what zlib calls it
_PACKED = ("gzip", "x-gzip")  # one encoding by both names, as HTTP has it
_HELD = 16  # bodies of the largest size that may be held at once


def _encoding(request: Request) -> str:
    """Return how a body is packed, in whatever case that is written."""
    written: str = request.headers.get("content-encoding", "identity")
    return written.strip().lower()


class RefusalError(Exception):
    """A request is not taken; the answer says why."""

    def __init__(self, status: int, why: str, **more: object) -> None:
        super().__init__(why)
        headers = {"retry-after": "1"} if status in _AGAIN else {"connection": "close"}
        told = {"error": why, **more}
        some = status in {408, 413, *_AGAIN}
        self.answer = JSONResponse(told, status, headers if some else None)


class Intake:
    """Takes requests with events, one after the other, on a thread of its own."""

    def __init__(self, live: Any, names: Names, server: Server) -> None:
        self._bodies, self._server = Bodies(live, names), server
        self._worker = ThreadPoolExecutor(1, "events")
        self.waiting = 0  # requests that are whole and wait for their turn
        self.held = 0  # bytes of bodies in memory
        self.taken: Counter[str] = Counter(dict.fromkeys(KINDS, 0))  # events, by kind
        self.refused: Counter[str] = Counter(dict.fromkeys(_STATUSES, 0))  # requests

    async def answer(self, request: Request) -> Response:
        """Answer a request with events."""
        body = bytearray()
        try:
            form, kind = self._form(request)
            await self._read(request, body)
            packed = _encoding(request) in _PACKED
            counts = await self._take(bytes(body), form, kind, packed=packed)
        except RefusalError as refusal:
            self.refused[str(refusal.answer.status_code)] += 1
            return refusal.answer
        except ClientDisconnect:
            self.refused["400"] += 1
            return Response(status_code=400)
        finally:
            self.held -= len(body)
        self.taken.update(counts)
        return JSONResponse({"taken": sum(counts.values()), **counts}, 202)

    def _form(self, request: Request) -> tuple[str, str | None]:
        form = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if form not in {*JSON_TYPES, *ARROW_TYPES, "application/x-www-form-urlencoded"}:
            known = ", ".join(filter(None, (*JSON_TYPES[:1], *ARROW_TYPES[:1])))
            raise RefusalError(415, f"no content type {form!r}: send {known}")
        encoding = _encoding(request)
        if encoding not in {"identity", *_PACKED}:
            raise RefusalError(415, f"no content-encoding {encoding!r}: send gzip, or none")
        return form, request.query_params.get("kind")

    async def _read(self, request: Request, body: bytearray) -> None:
        """Read the body as it comes, as long as it is neither too long nor too slow."""
        server = self._server
        try:
            length = int(request.headers.get("content-length", "0"))
        except ValueError:
            raise RefusalError(400, "content-length is no number") from None
        self._check_size(length)
        try:
            async with asyncio.timeout(server.timeout):
                async for chunk in request.stream():
                    self._check_size(len(body) + len(chunk))
                    if self.held + len(chunk) > _HELD * server.body:
                        raise RefusalError(429, "too many bytes wait: send them again in a second")
                    body += chunk
                    self.held += len(chunk)
        except TimeoutError:
            raise RefusalError(408, f"the body took more than {server.timeout:g} s") from None

    def _check_size(self, size: int) -> None:
        most = self._server.body
        if size > most:
            raise RefusalError(
                413, f"the body has {size:,} bytes or more; at most {most:,} may come"
            )

    def _bring(self, body: bytes, form: str, kind: str | None, packed: bool) -> dict[str, int]:
        """Bring events to the live state; one body at a time is unpacked."""
        return self._bodies.take(self._unpacked(body) if packed else body, form, kind)

    def _unpacked(self, body: bytes) -> bytes:
        """Return what gzip has packed, if that is no longer than a body may be."""
        found, rest = bytearray(), body
        try:
            while rest:  # there may be several members, one after the other
                member = zlib.decompressobj(wbits=_GZIP)
                found += member.decompress(rest, self._server.body + 1 - len(found))
                self._check_size(len(found))
                if not member.eof:
                    raise RefusalError(400, "the body ends before its gzip does")
                rest = member.unused_data
        except zlib.error as error:
            raise RefusalError(400, f"the body is no gzip: {error}") from None
        return bytes(found)

    async def _take(
        self, body: bytes, form: str, kind: str | None, *, packed: bool
    ) -> dict[str, int]:
        """Bring events to the live state when it is their turn."""
        if self.waiting >= self._server.queue:
            why = f"{self.waiting} requests wait, and no more may: send it again in a second"
            raise RefusalError(429, why)
        self.waiting += 1
        loop = asyncio.get_running_loop()
        call = loop.run_in_executor(self._worker, self._bring, body, form, kind, packed)
        call.add_done_callback(self._done)
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            if call.cancelled():
                raise RefusalError(503, "the service ends, and has not taken this") from None
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
            call.exception()  # of a client that has gone, nobody else asks

    def close(self) -> None:
        """Take what has begun, and no more: of the others nobody was told that they are taken."""
        self._worker.shutdown(wait=True, cancel_futures=True)
