"""The page: a few files of ours, and the chart library of an installed package."""

from __future__ import annotations

import asyncio
import gzip
from functools import cache
from hashlib import blake2b
from importlib import resources
from typing import TYPE_CHECKING

from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.requests import Request

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FILES = {
    "page.css": __package__,
    "page.js": __package__,
    "draw.js": __package__,
    "icon.svg": __package__,
    "plotly.min.js": "plotly",
}
_FOLDERS = {__package__: "static", "plotly": "package_data"}


async def static(name: str, request: Request) -> Response:
    """Answer with a file of the page."""
    tag, plain, packed = await asyncio.to_thread(_file, name)
    headers = {"etag": tag, "cache-control": "no-cache", "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    body = plain
    if "gzip" in request.headers.get("accept-encoding", ""):
        body, headers["content-encoding"] = packed, "gzip"
    form = _TYPES[name.rpartition(".")[2]]
    return Response(body, media_type=f"{form}; charset=utf-8", headers=headers)


@cache
def _file(name: str) -> tuple[str, bytes, bytes]:
    package = FILES.get(name, __package__)
    body = resources.files(package).joinpath(_FOLDERS[package], name).read_bytes()
    return f'"{blake2b(body, digest_size=12).hexdigest()}"', body, gzip.compress(body, 6, mtime=0)
