"""Who may ask, from where, and what every answer carries; around all that answers."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_PIECE = 1 << 16  # bytes of an answer that are brought on together
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_EMPTY = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"  # of a style that says nothing
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
    """Refuses who has no token, and pages of other sites that ask in a user's name.

    Args:
        app: What answers.
        token: What requests bear as ``Authorization: Bearer TOKEN``; empty: none is asked for, and
            only names of this machine are answered to where `local`, so that no site that calls
            itself so can ask.
        local: Whether this listens on this machine alone.
        open_paths: What is answered without a token, as it says nothing of the metrics.
    """

    def __init__(
        self, app: ASGIApp, *, token: str, local: bool, open_paths: Collection[str]
    ) -> None:
        self._app, self._token, self._open = app, token.encode(), frozenset(open_paths)
        self._local = local and not token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
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
            # A proxy before this may go by the other one, and so see another request here.
            answer = _refused(400, "Transfer-Encoding and Content-Length say two lengths: send one")
            answer.headers["connection"] = "close"
            return answer
        if self._local and _name(host) not in _LOCAL:
            return _refused(421, f"this is not {host!r}: it answers to localhost alone")
        if scope["method"] not in _SAFE and not self._is_own(headers, host):
            return _refused(403, "pages of other sites send no events")
        scope["streammetrics.trusted"] = trusted = self._is_trusted(headers)
        if trusted or self._path(scope) in self._open:
            return None
        answer = _refused(401, "a token is needed: Authorization: Bearer TOKEN")
        answer.headers["www-authenticate"] = "Bearer"
        return answer

    def _is_trusted(self, headers: Headers) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        borne = kind.lower() == "bearer" and given.strip()
        return not self._token or bool(borne and hmac.compare_digest(borne.encode(), self._token))

    @staticmethod
    def _is_own(headers: Headers, host: str) -> bool:
        """Whether a request is of no page, or of one of ours."""
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return False
        return headers.get("sec-fetch-site", "none") in {"none", "same-origin"}

    @staticmethod
    def _path(scope: Scope) -> str:
        path: str = scope["path"]
        return path.removeprefix(scope.get("root_path", ""))


def _pieces(message: Message) -> Iterator[Message]:
    """Yield a long body in pieces, of which the server waits for each to be read by the client."""
    body = message.get("body", b"")
    last = max(0, len(body) - 1) // _PIECE * _PIECE
    for place in range(0, last, _PIECE):
        yield {**message, "body": body[place : place + _PIECE], "more_body": True}
    yield {**message, "body": body[last:]} if last else message


def _name(host: str) -> str:
    """Return the name in a Host header, without the port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _refused(status: int, why: str) -> JSONResponse:
    return JSONResponse({"error": why}, status)
