"""What the endpoints take and answer, as OpenAPI describes it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from streammetrics.live.events import KINDS
from streammetrics.live.truth import kinds_of, truth_of

if TYPE_CHECKING:
    from streammetrics.core.types import Document
    from streammetrics.live.service.names import Names, PageView
    from streammetrics.live.service.server import Server

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
    """Return the description of a service."""
    paths = {
        "/events": {"post": _events(live, names)},
        "/api/now": _reading("Each metric over the newest window.", "window"),
        "/api/series": _reading("Windows one after the other.", "window", "every", "span"),
        "/api/coverage": _reading("What became of predictions.", "window"),
        "/api/possible": _reading("What the missing labels could do.", "window"),
        "/api/slices": _reading("Each metric by slice.", "window"),
        "/api/alerts": _reading("How the rules of alerts stand."),
        "/health": _reading("How the service is; degraded as long as the store cannot be written."),
        "/ready": _reading("Whether what is stored has been read; 503 before."),
        "/metrics": {
            "get": {
                "summary": "What Prometheus scrapes.",
                "responses": {"200": _content("text/plain", {}), **_refusals(401, 503)},
            }
        },
        "/state": {
            "get": {
                "summary": "The state, for sm.from_bytes and merge.",
                "responses": {"200": _content("application/octet-stream", {}), **_refusals(401)},
            }
        },
    }
    told: Document = {
        "openapi": "3.1.0",
        "info": {"title": view.title, "version": _version()},
        "paths": paths,
        "components": {"schemas": {"Error": _ERROR}},
    }
    if server.token:
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
    every = [_event("observe", {names.time: _TIME, **columns}, [names.time, *required])]
    if truth:
        heads = {names.id: _ID, names.time: _TIME}
        rest = {n: kind for n, kind in columns.items() if n != truth}
        every.append(_event("predict", {**heads, **rest}, [*heads, *predicted]))
        late = {**heads, names.version: {"type": "integer", "minimum": 0}, truth: columns[truth]}
        every.append(_event("label", late, [*heads, truth]))
    lines = {"type": "array", "items": {"anyOf": every}}
    taken = {"type": "object", "properties": {"taken": {"type": "integer"}}, "required": ["taken"]}
    return {
        "summary": "Events: all of a request are taken, or none.",
        "description": "One JSON object a line, an array of them, or a table of Arrow.",
        "parameters": [
            {
                "name": "kind",
                "in": "query",
                "description": "That of events which do not say their own.",
                "schema": {"enum": list(KINDS)},
            }
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
    responses = {"200": _content("application/json", {"type": "object"}), **_refusals(400, 401)}
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
